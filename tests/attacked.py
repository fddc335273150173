# SPDX-License-Identifier: GPL-2.0-only
"""Commands that are run while something goes wrong, and how they may end."""
import json
import os
import signal
import subprocess

import pytest

from records import NHMTAP, check_stream, parse, program

STATUSES = {0, 1, 2, 3, 4}

SESSION = {"activities": [
    {"name": "counts", "command": "stat", "event": "page-faults", "interval_ms": 5},
    {"name": "samples", "command": "profile", "event": "page-faults", "count": 1, "by": "symbol",
     "interval_ms": 7}]}

FAULTS = [program("puppet"), "faults=50"]
EVERY_FAULT = ["-e", "page-faults", "-c", "1"]
# OUT is the file for the records, because stdout is the command's. CONFIG is the one for SESSION. RECORDS has those of a
# profile whose code has no names yet. Left out are branch and offcore, which begin as mem does and need a PMU, and help, which
# is man.
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
    "completion": ["completion", "bash"],
    "symbolize": ["symbolize", "--debug-dir", "/nonexistent", "RECORDS", "-o", "OUT"],
    "flamegraph": ["flamegraph", "RECORDS", "-o", "OUT"],
    "run": ["run", "CONFIG", "--", *FAULTS],
}
# What differs from "profile" in its last part alone, which the other commands have as well.
ALIKE = {"stacks", "folded", "pprof", "mem"}
EACH_COMMAND = pytest.mark.parametrize(
    "command", [pytest.param(name, marks=pytest.mark.thorough if name in ALIKE else ()) for name in COMMANDS])


class Attacked:
    """A command that is run many times, each time with a different fault."""

    def __init__(self, folder, command):
        self.out = folder / "out"
        config = folder / "config.json"
        config.write_text(json.dumps(SESSION | {"outputs": [{"path": str(self.out)}]}))
        words = {"OUT": str(self.out), "CONFIG": str(config), "RECORDS": str(folder / "records")}
        if "RECORDS" in COMMANDS[command]:
            subprocess.run([NHMTAP, "profile", "-e", "page-faults:u", "-c", "1", "--by", "place,stack", "-o", words["RECORDS"],
                            "--", *FAULTS], stdout=subprocess.DEVNULL, check=True)
        self.arguments = [words.get(word, word) for word in COMMANDS[command]]
        self.writes = "OUT" in COMMANDS[command] or "CONFIG" in COMMANDS[command]

    def run(self, *before, **environment):
        """Runs it with these words in front and these variables set."""
        self.out.unlink(missing_ok=True)
        command = [*before, NHMTAP, *self.arguments]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=os.environ | environment, start_new_session=True) as going:
            try:
                out, err = going.communicate(timeout=300)
            except subprocess.TimeoutExpired:
                # Killing strace alone would leave the traced program running.
                os.killpg(going.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(command, going.returncode, out, err)

    def records(self):
        return check_lines(self.out.read_text()) if self.out.exists() else []


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
