# SPDX-License-Identifier: GPL-2.0-only
"""Runs commands while a system call or an allocation fails. A command has to end with a documented
status, with a message if the status is not 0, and with complete records."""
import collections
import itertools
import json
import os
import random
import re
import signal
import subprocess

import callers
import pytest
from records import NHMTAP, check_stream, parse, program

# Which calls and allocations fail: `make search` chooses others each time.
SEED = os.environ.get("NHMTAP_SEED")

STATUSES = {0, 1, 2, 3, 4}

SESSION = {"activities": [
    {"name": "counts", "command": "stat", "event": "page-faults", "interval_ms": 5},
    {"name": "samples", "command": "profile", "event": "page-faults", "count": 1, "by": "symbol",
     "interval_ms": 7}]}

FAULTS = [program("puppet"), "faults=50"]
EVERY_FAULT = ["-e", "page-faults", "-c", "1"]
# OUT is the file for the records, because stdout belongs to the measured command. CONFIG is the
# file of SESSION. RECORDS has the records of a profile without names of code. Commands that need a
# PMU are in tests/machine/test_faults_on_nehalem.py.
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
    "report": ["report", "RECORDS", "-o", "OUT"],
    "show": ["show", "--children", "RECORDS", "-o", "OUT"],
    "run": ["run", "CONFIG", "--", *FAULTS],
    "help": ["help", "stat"],
}
# These differ from "profile" only at the end of the run.
ALIKE = {"stacks", "folded", "pprof", "mem"}
EACH_COMMAND = pytest.mark.parametrize(
    "command", [pytest.param(name, marks=pytest.mark.thorough if name in ALIKE else ()) for name in COMMANDS])


# Their output is not lines of JSON.
OTHER_FORMATS = {"folded", "pprof", "flamegraph", "report", "show"}


class Attacked:
    """A command that is run many times, each time with a different fault."""

    def __init__(self, folder, command):
        self.folder, self.command = folder, command
        self.environment = {}
        if command == "help":  # man itself is not under test
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
        """Runs the command, preceded by `before`, with these environment variables."""
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
        """Returns what the last run left in a file of its folder, or None if it left no such
        file."""
        path = self.folder / name
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else None

    def records(self):
        return check_lines(self.read("out") or "")

    def what_is_wrong(self, done, more=()):
        """Returns what is wrong with a run after a fault, or None. more: further allowed
        statuses."""
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
    """Every line is complete, and a stream with an end record is consistent. If there was no memory
    for the rest of an interval, the records are still in order, and the end record says so."""
    records = parse(text)
    if not records or records[-1]["type"] != "end" or "records" not in records[-1]:
        return records
    if records[-1]["reason"] != "out_of_memory":
        check_stream(records)
    assert [r["seq"] for r in records] == list(range(len(records))) and records[-1]["records"] == len(records)
    return records


class Calls:
    """The system calls of a command, each of which may be made to fail."""

    ERRORS = ("EINTR", "EPERM", "ENOMEM", "EIO", "ENOSYS", "EAGAIN", "EMFILE", "ENOSPC")
    # exit_group(2) is left out, and so are calls that never fail on Linux and whose success glibc
    # relies on: it aborts if futex(2) fails, and takes any result of brk(2) as an address and of
    # getpid(2) as a pid, and it blocks all signals around clone(2) and restores them unchecked:
    # rt_sigprocmask(2) fails for wrong arguments only. If strace makes close(2) fail, the descriptor
    # stays open, which never happens on Linux.
    LEFT_OUT = {"exit_group", "restart_syscall", "rt_sigreturn", "rt_sigprocmask", "futex", "brk", "getpid", "gettid", "getuid", "geteuid",
                "getgid", "getegid", "close"}
    STATUSES = {126, 127}  # the measured command could not be executed
    CALL = re.compile(r"(?:(\d+) +)?(\w+)\(.*?(= 0$)?$")

    def __init__(self, attacked):
        self.attacked = attacked
        # strace follows threads and children (-f) because names are read in a thread, but not if a
        # command is measured, which must not be disturbed, and not into man, which is not under
        # test.
        alone = "--" in attacked.arguments or attacked.command == "help"
        self.strace = ["strace", *([] if alone else ["-f"]), "-o", str(attacked.folder / "log")]
        done = attacked.run(*self.strace)
        assert done.returncode in STATUSES, done.stderr
        calls = [match.groups() for match in map(self.CALL.match, attacked.read("log").splitlines()) if match]
        # Calls that the dynamic loader makes before nhmtap begins (the last is prlimit64), and
        # calls of a program that nhmtap executes in its own process, are left out: nhmtap cannot
        # report their failure.
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
        """Runs the command and makes the nth call of this name fail."""
        # LeakSanitizer has to trace the process as well, and a process can have only one tracer.
        return self.attacked.run(*self.strace, "-e", f"trace={name}", "-e", f"inject={name}:error={error}:when={nth}",
                                 ASAN_OPTIONS="detect_leaks=0")

    def spread(self, n, of=None):
        """Returns the first call of each name, then n + 1 calls spread over all, with the errors in
        turn. of: only calls of these names. n None: each call with each error. With NHMTAP_SEED, others
        are chosen than without."""
        calls = [(name, nth) for name, nth in self.calls if not of or name in of]
        if n is None:
            return itertools.product(calls, self.ERRORS)
        if SEED:
            chance = random.Random(int(SEED))
            return [(chance.choice(calls), chance.choice(self.ERRORS)) for _ in range(2 * n + 1)]
        firsts = {name: (name, nth) for name, nth in reversed(calls)}
        some = [*firsts.values(), *(calls[i * (len(calls) - 1) // n] for i in range(n + 1))]
        return zip(some, itertools.cycle(self.ERRORS))

    def try_them(self, places):
        """Makes each of the calls fail in turn. Returns how many failures were injected, and what
        went wrong."""
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
    """The allocations of a command, by the program or a library. shim: tests/shims/fail_alloc.c."""

    def __init__(self, attacked, shim):
        self.attacked, self.shim = attacked, shim
        # If "help" executed man, the shim would write no count; without man it exits itself.
        elsewhere = {"PATH": "/nonexistent"} if attacked.command == "help" else {}
        done = self.run(COUNT_TO=str(attacked.folder / "count"), **elsewhere)
        assert done.returncode in STATUSES, done.stderr
        self.total = int(attacked.read("count"))

    def run(self, **environment):
        return self.attacked.run(LD_PRELOAD=str(self.shim), **environment)

    def spread(self, n):
        """Returns the first three, which differ, and n + 1 spread over all. n None: each."""
        if n is None:
            return range(1, self.total + 1)
        if SEED:
            return random.Random(int(SEED)).sample(range(1, self.total + 1), min(n, self.total))
        return sorted({*range(1, 4), *(1 + i * (self.total - 1) // n for i in range(n + 1))})

    def try_them(self, places, **environment):
        """Makes each of the allocations fail in turn. Returns how many runs reported it, and what
        went wrong."""
        said, found = 0, []
        for place in places:
            done = self.run(FAIL_AT=str(place), **environment)
            wrong = self.attacked.what_is_wrong(done)
            if wrong:
                found.append(f"allocation {place}: status {done.returncode}, {wrong}; {done.stderr}")
            said += "no more memory" in done.stderr
        return said, found
