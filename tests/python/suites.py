# SPDX-License-Identifier: GPL-2.0-only
"""The results of a test suite that was run with the plugin. Importing this puts the package on the
path."""
import inspect
import json
import mmap
import os
import pathlib
import sys
import xml.etree.ElementTree

import jsonschema
from records import HERE

PACKAGE = os.path.join(os.path.dirname(HERE), "user", "python")
sys.path.insert(0, PACKAGE)


def touch(pages):
    """Touches so many pages of new memory, which causes as many page faults and hardly any others."""
    with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        for page in range(pages):
            memory[page * mmap.PAGESIZE] = 1


# The same as the beginning of a suite.
TOUCH = "import mmap\n\n\n" + inspect.getsource(touch)


def schema(name):
    return json.loads(pathlib.Path(PACKAGE, "nhmtap", f"{name}.schema.json").read_text())


def validate(name, data):
    """Validates data against one of the package's schemas, which refer to each other."""
    baseline = schema("baseline")
    resolver = jsonschema.RefResolver.from_schema(schema(name), store={baseline["$id"]: baseline})
    validator = jsonschema.Draft202012Validator(schema(name), resolver=resolver)
    validator.check_schema(schema(name))
    validator.validate(data)


class Outcome:
    """The results of a suite: the outcomes of its tests by name, its output, and its records."""

    def __init__(self, done, folder):
        self.status, self.text = done.ret, done.stdout.str() + done.stderr.str()
        cases = xml.etree.ElementTree.parse(folder / "report" / "junit.xml").iter("testcase")
        self.cases = {case.get("name"): case for case in cases}
        self.records = [json.loads(line) for line in
                        (folder / "report" / "tests.jsonl").read_text().splitlines()]
        for record in self.records:
            validate("test", record)

    def said(self, name, kind):
        """Returns junit's text of this kind (failure, skipped, …) for a test, or None."""
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
        """Returns the record of an event that a test measured."""
        record, = [r for r in self.records if r["test"].endswith(f"::{test}")]
        return next(e for e in record["events"] if e["event"] == event)
