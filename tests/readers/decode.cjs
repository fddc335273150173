// SPDX-License-Identifier: GPL-2.0-only
// Reads a line of OTLP's metrics, passes it through protobuf by the message classes that OpenTelemetry generates from its
// published definitions, and prints it as they have it.
const fs = require("fs");
const {opentelemetry: {proto}} = require(process.env.NHMTAP_READERS + "/node_modules/@opentelemetry/otlp-transformer/build/src/generated/root.js");
const Request = proto.collector.metrics.v1.ExportMetricsServiceRequest;
const given = JSON.parse(fs.readFileSync(0, "utf8"));
const message = Request.fromObject(given);
const wrong = Request.verify(message);
if (wrong) throw new Error(wrong);
const read = Request.decode(Request.encode(message).finish());
console.log(JSON.stringify(Request.toObject(read, {longs: String, enums: Number, json: true})));
