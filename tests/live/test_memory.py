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

COMMANDS = {
    "stat": ["stat", "-e", "cs,page-faults", "-I", "10", "--format", "json", "--", program("puppet"), "faults=50"],
    "profile": ["profile", "-e", "page-faults", "-c", "1", "--by", "line,comm", "--format", "json", "--",
                program("puppet"), "faults=50"],
    "stacks": ["profile", "-g", "-e", "page-faults", "-c", "1", "--format", "json", "--", program("puppet"),
               "faults=50"],
    "folded": ["profile", "--format", "folded", "-e", "page-faults", "-c", "1", "--", program("puppet"),
               "faults=50"],
    "pprof": ["profile", "--format", "pprof", "-e", "page-faults", "-c", "1", "-o", "/dev/null", "--",
              program("puppet"), "faults=50"],
    "mem": ["mem", "-e", "page-faults", "-c", "1", "--format", "json", "--", program("puppet"), "faults=50"],
    "list": ["list", "--json"],
    "explain": ["explain", "--cpu", "nehalem-ep", "--format", "json", "MEM_LOAD_RETIRED.L2_HIT:pp"],
    "doctor": ["doctor", "--need", "software", "--format", "json"],
    "schema": ["schema", "config"],
    "run": ["run", "CONFIG", "--", program("puppet"), "faults=50"],
}


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    path = tmp_path_factory.mktemp("shim") / "fail_alloc.so"
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", path, SHIM], check=True)
    return str(path)


def run(shim, arguments, **environment):
    return subprocess.run([NHMTAP, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=60,
                          env=os.environ | {"LD_PRELOAD": shim} | environment, check=False)


def places(total):
    """Which allocations fail: the first ones all, for they are all different, then a spread."""
    if not TRIED:
        return range(1, total + 1)
    return sorted({*range(1, 4), *(1 + i * (total - 1) // TRIED for i in range(TRIED + 1))})


def check_lines(text):
    """What was written is whole: records without an end only if none was possible any more."""
    records = parse(text)
    if records and records[-1]["type"] == "end" and records[-1].get("records"):
        check_stream(records)
    return records


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("which", ["once", "from then on"])
def test_without_memory_it_ends_with_a_message_and_whole_records(shim, tmp_path, command, which):
    config = tmp_path / "config.json"
    config.write_text(json.dumps(SESSION))
    arguments = [str(config) if word == "CONFIG" else word for word in COMMANDS[command]]
    counted = tmp_path / "count"
    assert run(shim, arguments, COUNT_TO=str(counted)).returncode in STATUSES
    again = {"FAIL_ALL": "1"} if which != "once" else {}
    said = 0
    for place in places(int(counted.read_text())):
        done = run(shim, arguments, FAIL_AT=str(place), **again)
        told = f"allocation {place}: {done.stderr.decode(errors='replace')}"
        assert done.returncode in STATUSES, told
        assert done.returncode == 0 or done.stderr, told
        if command in ("stat", "profile", "stacks", "mem", "run"):
            check_lines(done.stdout.decode())
        elif command == "schema" and done.returncode == 0:
            json.loads(done.stdout)
        said += b"no more memory" in done.stderr
    assert said, "no allocation of the program's own was tried"


def test_the_end_record_says_that_there_was_no_memory(shim, tmp_path):
    arguments = COMMANDS["stat"]
    counted = tmp_path / "count"
    run(shim, arguments, COUNT_TO=str(counted))
    ends = []
    for place in places(int(counted.read_text())):
        records = check_lines(run(shim, arguments, FAIL_AT=str(place)).stdout.decode())
        ends += [r for r in records if r["type"] == "end" and r["reason"] == "out_of_memory"]
    assert ends
    assert {end["exit_status"] for end in ends} == {2}
