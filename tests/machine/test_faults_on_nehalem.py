# SPDX-License-Identifier: GPL-2.0-only
"""System calls and allocations that fail in the commands that need a PMU. The rules are those of
tests/live/test_faults.py and test_memory.py, which test the other commands."""
import pathlib
import subprocess

import pytest

from attacked import Allocations, Attacked, Calls

pytestmark = [pytest.mark.thorough, pytest.mark.xdist_group("faults")]

FOLDER = pathlib.PurePosixPath("/tmp")
SHIM = "/run/fail_alloc.so"
COMMANDS = {
    "mem": "mem --side u -c 100 -o /tmp/out -- chase l1",
    "offcore": "offcore --side u --request DEMAND_DATA_RD --response LOCAL_DRAM,LLC_HIT_NO_OTHER_CORE -o /tmp/out -- offcore data",
    "branch": "branch -e branches:u -c 1009 -o /tmp/out -- kinds",
}
EACH_COMMAND = pytest.mark.parametrize("command", COMMANDS)
HANGS = 137  # the status of a command that timeout(1) killed; idle time passes quickly in a guest
FILES = ("stdout", "out", "log", "count")
SCRIPT = f'timeout -s KILL 300 "$@" > stdout; status=$?; tail -n +1 {" ".join(FILES)} 2> /dev/null; exit $status'


class InGuest(Attacked):
    """A command in a guest. Each run starts with an empty /tmp; the files that it leaves there are
    printed after it."""

    def __init__(self, bench, command):
        self.bench, self.command, self.folder = bench, command, FOLDER
        self.arguments, self.writes, self.files = COMMANDS[command].split(), True, {}

    def run(self, *before, **environment):
        command = [*before, "/opt/nhmtap", *self.arguments]
        variables = [f"{name}={value}" for name, value in environment.items()]
        done = self.bench.run("sh", "-c", SCRIPT, "sh", "env", *variables, *command, paranoid=-1)
        if done.status == HANGS:
            raise subprocess.TimeoutExpired(command, 300)
        self.files = dict(part.split(" <==\n", 1) for part in ("\n" + done.stdout).split("\n==> ")[1:])
        return subprocess.CompletedProcess(command, done.status, self.read("stdout"), done.stderr)

    def read(self, name):
        return self.files.get(name)


@pytest.fixture
def attacked(machines, shim, command):
    bench = machines(add=("/usr/bin/strace",))
    assert bench.put(shim("fail_alloc")) == SHIM
    return InGuest(bench, command)


# The system calls that only these commands make.
OWN = {"perf_event_open", "ioctl", "bpf"}
TRIED = 3  # beside the first ones


@EACH_COMMAND
def test_whatever_call_fails_it_ends_with_a_message_and_whole_records(attacked):
    calls = Calls(attacked)
    injected, found = calls.try_them(calls.spread(TRIED, OWN))
    assert not found, "\n".join(found)
    assert injected > TRIED


@EACH_COMMAND
def test_without_memory_it_ends_with_a_message_and_whole_records(attacked):
    allocations = Allocations(attacked, SHIM)
    places = allocations.spread(TRIED)
    for again in {}, {"FAIL_ALL": "1"}:
        said, found = allocations.try_them(places, **again)
        assert not found, "\n".join(found)
        assert said, "no allocation of the program's own was tried"
