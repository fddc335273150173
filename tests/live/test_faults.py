# SPDX-License-Identifier: GPL-2.0-only
"""System calls that fail: no hang, no crash, a documented status, and records that are whole.

The n-th call of a kind fails with an error that it may have or not. NHMTAP_EVERY=1 tries every call with
every error, which takes hours; without it a spread of them.
"""
import collections
import itertools
import json
import os
import re
import subprocess

import pytest
from attacked import EACH_COMMAND, STATUSES, Attacked

ERRORS = ("EINTR", "EPERM", "ENOMEM", "EIO", "ENOSYS", "EAGAIN", "EMFILE", "ENOSPC")
TRIED = None if os.environ.get("NHMTAP_EVERY") else 10
# Left out are exit, exec, and calls that never fail on Linux and on whose success glibc relies: it aborts
# when futex(2) fails, and takes what brk(2) and getpid(2) return for an address and a process. A close(2)
# that strace lets fail leaves the descriptor open, which Linux never does.
LEFT_OUT = {"exit_group", "execve", "restart_syscall", "rt_sigreturn", "futex", "brk", "getpid", "gettid",
            "getuid", "geteuid", "getgid", "getegid", "close"}
# The statuses of a command that did not run.
STATUSES = STATUSES | {126, 127}
CALL = re.compile(r"(?:\d+ +)?(\w+)\(")


class Tried(Attacked):
    """Runs with a different failing system call each time."""

    def __init__(self, folder, command):
        super().__init__(folder, command)
        self.log = folder / "log"
        # Naming reads files in a thread. The measured command must not be disturbed.
        self.strace = ["strace", *([] if "--" in self.arguments else ["-f"]), "-o", str(self.log)]
        done = self.run(*self.strace)
        assert done.returncode in STATUSES, done.stderr
        with open(self.log, encoding="utf-8", errors="replace") as log:
            names = [match[1] for match in map(CALL.match, log) if match]
        # The dynamic loader's calls come first, up to its cache's end; what fails there is not ours to tell.
        loaded, seen = names.index("munmap"), collections.Counter()
        self.calls = []
        for at, name in enumerate(names):
            seen[name] += 1
            if at > loaded and name not in LEFT_OUT:
                self.calls.append((name, seen[name]))

    def fail(self, name, nth, error):
        # LeakSanitizer also needs to trace the process, and a process has only one tracer.
        return self.run(*self.strace, "-e", f"trace={name}", "-e", f"inject={name}:error={error}:when={nth}",
                        ASAN_OPTIONS="detect_leaks=0")


def places(calls):
    """Which calls fail with which error: the first call of each kind, then a spread of the others, with the
    errors in turn."""
    if not TRIED:
        return itertools.product(calls, ERRORS)
    firsts = {name: (name, nth) for name, nth in reversed(calls)}
    some = [*firsts.values(), *(calls[i * (len(calls) - 1) // TRIED] for i in range(TRIED + 1))]
    return zip(some, itertools.cycle(ERRORS))


def what_is_wrong(tried, done, command):
    """Returns what is wrong after a fault, or None."""
    if done.returncode not in STATUSES:
        return "another status"
    if done.returncode and not done.stderr:
        return "no message"
    try:
        records = tried.records() if tried.writes and command not in ("folded", "pprof", "flamegraph") else None
        if command == "schema" and not done.returncode:
            json.loads(done.stdout)
    except (AssertionError, ValueError) as error:
        return f"its output: {error}"
    if records is not None and not done.returncode and (not records or records[-1]["type"] != "end"):
        return "no end record"
    return None


@EACH_COMMAND
def test_whatever_call_fails_it_ends_with_a_message_and_whole_records(tmp_path, command):
    tried = Tried(tmp_path, command)
    injected, found = 0, []
    for (name, nth), error in places(tried.calls):
        try:
            done = tried.fail(name, nth, error)
        except subprocess.TimeoutExpired:
            found.append(f"{name} {nth} {error}: it hangs")
            continue
        wrong = what_is_wrong(tried, done, command)
        if wrong:
            found.append(f"{name} {nth} {error}: status {done.returncode}, {wrong}; "
                         f"{done.stderr.decode(errors='replace')}")
        injected += "(INJECTED)" in tried.log.read_text(errors="replace")
    assert not found, "\n".join(found)
    assert injected > TRIED if TRIED else injected
