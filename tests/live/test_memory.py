# SPDX-License-Identifier: GPL-2.0-only
"""Allocations that fail: no crash, a documented status, and records that are whole or none.

The n-th allocation of the whole process fails, in the program or in a library, for n from the first to
the last. NHMTAP_EVERY=1 tries every one; without it a spread of them.
"""
import json
import os
import subprocess

import pytest
from records import NHMTAP, check_stream, parse, program

SHIM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "shims", "fail_alloc.c")
TRIED = None if os.environ.get("NHMTAP_EVERY") else 24
STATUSES = {0, 1, 2, 3, 4}

SESSION = {"activities": [
    {"name": "counts", "command": "stat", "event": "page-faults", "interval_ms": 5},
    {"name": "samples", "command": "profile", "event": "page-faults", "count": 1, "by": "symbol",
     "interval_ms": 7}]}

FAULTS = [program("puppet"), "faults=50"]
EVERY_FAULT = ["-e", "page-faults", "-c", "1"]
# OUT is a file for the records: stdout is the command's. CONFIG is SESSION's.
COMMANDS = {
    "stat": ["stat", "-e", "cs,page-faults", "-I", "10", "-o", "OUT", "--", *FAULTS],
    "profile": ["profile", *EVERY_FAULT, "--by", "line,comm", "-o", "OUT", "--", *FAULTS],
    "stacks": ["profile", "-g", *EVERY_FAULT, "-o", "OUT", "--", *FAULTS],
    "folded": ["profile", "--format", "folded", *EVERY_FAULT, "-o", "OUT", "--", *FAULTS],
    "pprof": ["profile", "--format", "pprof", *EVERY_FAULT, "-o", "OUT", "--", *FAULTS],
    "mem": ["mem", *EVERY_FAULT, "-o", "OUT", "--", *FAULTS],
    "list": ["list", "--json"],
    "explain": ["explain", "--cpu", "nehalem-ep", "--format", "json", "MEM_LOAD_RETIRED.L2_HIT:pp"],
    "doctor": ["doctor", "--need", "software", "--format", "json"],
    "schema": ["schema", "config"],
    "run": ["run", "CONFIG", "--", *FAULTS],
}


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    path = tmp_path_factory.mktemp("shim") / "fail_alloc.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", path, SHIM], check=True)
    return str(path)


class Tried:
    """A command that is run again and again, each time with another allocation that fails."""

    def __init__(self, shim, folder, command):
        self.shim, self.out = shim, folder / "out"
        config = folder / "config.json"
        config.write_text(json.dumps(SESSION | {"outputs": [{"path": str(self.out)}]}))
        words = {"OUT": str(self.out), "CONFIG": str(config)}
        self.arguments = [words.get(word, word) for word in COMMANDS[command]]
        counted = folder / "count"
        assert self.run(COUNT_TO=str(counted)).returncode in STATUSES
        self.total = int(counted.read_text())

    def run(self, **environment):
        self.out.unlink(missing_ok=True)
        return subprocess.run([NHMTAP, *self.arguments], capture_output=True, stdin=subprocess.DEVNULL,
                              timeout=60, env=os.environ | {"LD_PRELOAD": self.shim} | environment,
                              check=False)

    def records(self):
        return check_lines(self.out.read_text()) if self.out.exists() else []


def places(total):
    """Which allocations fail: the first ones all, for they are all different, then a spread."""
    if not TRIED:
        return range(1, total + 1)
    return sorted({*range(1, 4), *(1 + i * (total - 1) // TRIED for i in range(TRIED + 1))})


def check_lines(text):
    """Every line is whole, and whole streams close. Where there was no memory for the rest of an interval,
    the records are still in their order, up to an end that says so."""
    records = parse(text)
    if not records or records[-1]["type"] != "end" or "records" not in records[-1]:
        return records
    if records[-1]["reason"] != "out_of_memory":
        check_stream(records)
    assert [r["seq"] for r in records] == list(range(len(records))) and records[-1]["records"] == len(records)
    return records


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("which", ["once", "from then on"])
def test_without_memory_it_ends_with_a_message_and_whole_records(shim, tmp_path, command, which):
    tried = Tried(shim, tmp_path, command)
    again = {"FAIL_ALL": "1"} if which != "once" else {}
    said = 0
    for place in places(tried.total):
        done = tried.run(FAIL_AT=str(place), **again)
        told = f"allocation {place}: {done.stderr.decode(errors='replace')}"
        assert done.returncode in STATUSES, told
        assert done.returncode == 0 or done.stderr, told
        if command in ("stat", "profile", "stacks", "mem", "run"):
            tried.records()
        elif command == "schema" and done.returncode == 0:
            json.loads(done.stdout)
        said += b"no more memory" in done.stderr
    assert said, "no allocation of the program's own was tried"


def test_the_end_record_says_that_there_was_no_memory(shim, tmp_path):
    tried = Tried(shim, tmp_path, "stat")
    ends = []
    for place in places(tried.total):
        tried.run(FAIL_AT=str(place))
        ends += [r for r in tried.records() if r["type"] == "end" and r["reason"] == "out_of_memory"]
    assert ends
    assert {end["exit_status"] for end in ends} == {2}
