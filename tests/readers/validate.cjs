// SPDX-License-Identifier: GPL-2.0-only
// Validates Kubernetes objects, a list in JSON, against the schemas of its published API. Prints what is wrong with each,
// or an empty text.
const fs = require("fs");
const models = process.env.NHMTAP_READERS + "/node_modules/kubernetes-models/";
console.log(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map(object => {
  const Model = require(models + object.apiVersion + "/" + object.kind)[object.kind];
  try { new Model(object).validate(); return ""; } catch (error) { return error.message; }
})));
