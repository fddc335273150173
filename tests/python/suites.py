# SPDX-License-Identifier: GPL-2.0-only
"""What a test suite that was run with the plugin gave. Importing this puts the package on the path."""
import json
import os
import pathlib
import sys
import xml.etree.ElementTree

import jsonschema
from records import HERE

PACKAGE = os.path.join(os.path.dirname(HERE), "user", "python")
sys.path.insert(0, PACKAGE)

# Touches so many pages of new memory, which are as many page faults and hardly any besides.
TOUCH = """
import mmap

def touch(pages):
    with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
        for page in range(pages):
            memory[page * mmap.PAGESIZE] = 1
"""


def schema(name):
    return json.loads(pathlib.Path(PACKAGE, "nhmtap", f"{name}.schema.json").read_text())


def validate(name, data):
    """Against one of the package's schemas, which refer to each other."""
    baseline = schema("baseline")
    resolver = jsonschema.RefResolver.from_schema(schema(name), store={baseline["$id"]: baseline})
    validator = jsonschema.Draft202012Validator(schema(name), resolver=resolver)
    validator.check_schema(schema(name))
    validator.validate(data)


class Outcome:
    """What a suite gave: the outcomes of its tests by name, its text, and its records."""

    def __init__(self, done, folder):
        self.status, self.text = done.ret, done.stdout.str() + done.stderr.str()
        cases = xml.etree.ElementTree.parse(folder / "report" / "junit.xml").iter("testcase")
        self.cases = {case.get("name"): case for case in cases}
        self.records = [json.loads(line) for line in
                        (folder / "report" / "tests.jsonl").read_text().splitlines()]
        for record in self.records:
            validate("test", record)

    def said(self, name, kind):
        """What junit has of a test that failed, was skipped, …; None if it was not so."""
        found = self.cases[name].find(kind)
        return None if found is None else found.get("message") + (found.text or "")

    def failure(self, name):
        return self.said(name, "failure")

    def skip(self, name):
        return self.said(name, "skipped")

    def passed(self, *names):
        return all(not list(self.cases[name].iterfind(kind)) for name in names or self.cases
                   for kind in ("failure", "skipped", "error"))

    def properties(self, name):
        return {p.get("name"): p.get("value") for p in self.cases[name].iter("property")}

    def event(self, test, event):
        """The record of what a test measured."""
        record, = [r for r in self.records if r["test"].endswith(f"::{test}")]
        return next(e for e in record["events"] if e["event"] == event)
