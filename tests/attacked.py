# SPDX-License-Identifier: GPL-2.0-only
"""Commands that are run while a system call or an allocation fails, and how they may end: with a documented status, a
message if it is not 0, and records that are whole."""
import collections
import itertools
import json
import os
import re
import signal
import subprocess

import callers
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
# profile whose code has no names yet. Those that need a PMU are run on one: tests/machine/test_faults_on_nehalem.py.
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
    "help": ["help", "stat"],
}
# What differs from "profile" in its last part alone, which the other commands have as well.
ALIKE = {"stacks", "folded", "pprof", "mem"}
EACH_COMMAND = pytest.mark.parametrize(
    "command", [pytest.param(name, marks=pytest.mark.thorough if name in ALIKE else ()) for name in COMMANDS])


# What is written is not lines of JSON.
OTHER_FORMATS = {"folded", "pprof", "flamegraph"}


class Attacked:
    """A command that is run many times, each time with a different fault."""

    def __init__(self, folder, command):
        self.folder, self.command = folder, command
        self.environment = {}
        if command == "help":  # what man does is its own
            (folder / "man").symlink_to("/bin/true")
            self.environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
        (folder / "config").write_text(json.dumps(SESSION | {"outputs": [{"path": str(folder / "out")}]}))
        words = {"OUT": str(folder / "out"), "CONFIG": str(folder / "config"), "RECORDS": str(folder / "records")}
        if "RECORDS" in COMMANDS[command]:
            subprocess.run([NHMTAP, "profile", "-e", "page-faults:u", "-c", "1", "--by", "place,stack", "-o", words["RECORDS"],
                            "--", *FAULTS], stdout=subprocess.DEVNULL, check=True)
        self.arguments = [words.get(word, word) for word in COMMANDS[command]]
        self.writes = "OUT" in COMMANDS[command] or "CONFIG" in COMMANDS[command]

    def run(self, *before, **environment):
        """Runs it with these words in front and these variables set."""
        (self.folder / "out").unlink(missing_ok=True)
        command = [*before, NHMTAP, *self.arguments]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace", env=os.environ | self.environment | environment,
                              start_new_session=True) as going:
            try:
                out, err = going.communicate(timeout=300)
            except subprocess.TimeoutExpired:
                # Killing strace alone would leave the traced program running.
                os.killpg(going.pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(command, going.returncode, out, err)

    def read(self, name):
        """What the last run has left in a file of its folder; None: no such file."""
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else None

    def records(self):
        return check_lines(self.read("out") or "")

    def what_is_wrong(self, done, more=()):
        """Returns what is wrong after a fault, or None. more: other statuses that it may have."""
        if done.returncode not in STATUSES | set(more):
            return "another status"
        if done.returncode and not done.stderr:
            return "no message"
        try:
            records = self.records() if self.writes and self.command not in OTHER_FORMATS else None
            if self.command == "schema" and not done.returncode:
                json.loads(done.stdout)
        except (AssertionError, ValueError) as error:
            return f"its output: {error}"
        if records is not None and not done.returncode and (not records or records[-1]["type"] != "end"):
            return "no end record"
        return None


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


class Calls:
    """The system calls of a command. Each may fail."""

    ERRORS = ("EINTR", "EPERM", "ENOMEM", "EIO", "ENOSYS", "EAGAIN", "EMFILE", "ENOSPC")
    # Left out are exit, and calls that never fail on Linux and on whose success glibc relies: it aborts when futex(2)
    # fails, and takes what brk(2) and getpid(2) return for an address and a process. A close(2) that strace lets fail
    # leaves the descriptor open, which Linux never does.
    LEFT_OUT = {"exit_group", "restart_syscall", "rt_sigreturn", "futex", "brk", "getpid", "gettid", "getuid", "geteuid",
                "getgid", "getegid", "close"}
    STATUSES = {126, 127}  # of a command that did not run
    CALL = re.compile(r"(?:(\d+) +)?(\w+)\(.*?(= 0$)?$")

    def __init__(self, attacked):
        self.attacked = attacked
        # Naming reads files in a thread. What is measured must not be disturbed, and man is not ours.
        alone = "--" in attacked.arguments or attacked.command == "help"
        self.strace = ["strace", *([] if alone else ["-f"]), "-o", str(attacked.folder / "log")]
        done = attacked.run(*self.strace)
        assert done.returncode in STATUSES, done.stderr
        calls = [match.groups() for match in map(self.CALL.match, attacked.read("log").splitlines()) if match]
        # What fails before nhmtap is there, in the dynamic loader (up to its look at the stack's limit), or in another program
        # that takes nhmtap's place, is not ours to tell.
        names, seen = [name for _, name, _ in calls], collections.Counter()
        begins = [at for at, (pid, name, worked) in enumerate(calls) if name == "execve" and worked and pid == calls[0][0]]
        loaded = names.index("prlimit64", begins[1 if callers.CALLER else 0])
        self.calls = []
        for at, (pid, name, worked) in enumerate(calls):
            seen[name] += 1
            if at > loaded and name not in self.LEFT_OUT:
                self.calls.append((name, seen[name]))
            if at > loaded and name == "execve" and worked and pid == calls[0][0]:
                break

    def fail(self, name, nth, error):
        """Runs the command while the nth call of this name fails."""
        # LeakSanitizer also needs to trace the process, and a process has only one tracer.
        return self.attacked.run(*self.strace, "-e", f"trace={name}", "-e", f"inject={name}:error={error}:when={nth}",
                                 ASAN_OPTIONS="detect_leaks=0")

    def spread(self, n, of=None):
        """The first call of each kind, then n and one of the others, with the errors in turn. of: kinds to which this is
        limited. n None: each call with each error."""
        calls = [(name, nth) for name, nth in self.calls if not of or name in of]
        if n is None:
            return itertools.product(calls, self.ERRORS)
        firsts = {name: (name, nth) for name, nth in reversed(calls)}
        some = [*firsts.values(), *(calls[i * (len(calls) - 1) // n] for i in range(n + 1))]
        return zip(some, itertools.cycle(self.ERRORS))

    def try_them(self, places):
        """Lets each of the calls fail in turn. Returns how many were there to fail, and what went wrong."""
        injected, found = 0, []
        for (name, nth), error in places:
            try:
                done = self.fail(name, nth, error)
            except subprocess.TimeoutExpired:
                found.append(f"{name} {nth} {error}: it hangs")
                continue
            wrong = self.attacked.what_is_wrong(done, self.STATUSES)
            if wrong:
                found.append(f"{name} {nth} {error}: status {done.returncode}, {wrong}; {done.stderr}")
            injected += "(INJECTED)" in self.attacked.read("log")
        return injected, found


class Allocations:
    """The allocations of a command, in the program or in a library. shim: tests/shims/fail_alloc.c."""

    def __init__(self, attacked, shim):
        self.attacked, self.shim = attacked, shim
        # Without man help ends by itself, and says how many they were.
        elsewhere = {"PATH": "/nonexistent"} if attacked.command == "help" else {}
        done = self.run(COUNT_TO=str(attacked.folder / "count"), **elsewhere)
        assert done.returncode in STATUSES, done.stderr
        self.total = int(attacked.read("count"))

    def run(self, **environment):
        return self.attacked.run(LD_PRELOAD=str(self.shim), **environment)

    def spread(self, n):
        """All of the first ones, because they differ, then n and one of the others. n None: each."""
        if n is None:
            return range(1, self.total + 1)
        return sorted({*range(1, 4), *(1 + i * (self.total - 1) // n for i in range(n + 1))})

    def try_them(self, places, **environment):
        """Lets each of the allocations fail in turn. Returns how often that was said, and what went wrong."""
        said, found = 0, []
        for place in places:
            done = self.run(FAIL_AT=str(place), **environment)
            wrong = self.attacked.what_is_wrong(done)
            if wrong:
                found.append(f"allocation {place}: status {done.returncode}, {wrong}; {done.stderr}")
            said += "no more memory" in done.stderr
        return said, found
