# SPDX-License-Identifier: GPL-2.0-only
"""A process that executes a program which changes its rights, or which it may not read: the kernel ends its
counting (begin_new_exec(), fs/exec.c)."""
import os
import shutil
import subprocess

import pytest
from puppet import wait_asleep
from records import FILE, Result

NOBODY = 65534
BURN = """
#include <stdlib.h>
#include <time.h>

/* Runs for so many ms of CPU time. */
int main(int argc, char **argv)
{
	clock_t end = argc > 1 ? atol(argv[1]) * CLOCKS_PER_SEC / 1000 : 0;

	while (clock() < end)
		;
	return 0;
}
"""
# Nothing but the start and the end of threads, or of children.
STARTS = """
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void *nothing(void *none)
{
	return none;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 2000; i++) {
		pthread_t thread;

		if (argv[1][0] == 't' && !pthread_create(&thread, 0, nothing, 0))
			pthread_join(thread, 0);
		if (argv[1][0] == 'f' && !fork())
			_exit(0);
		if (argv[1][0] == 'v' && !vfork())
			_exit(0);
		if (argv[1][0] != 't')
			wait(0);
	}
	return 0;
}
"""
HOW = {"setuid": (0, 0, 0o4755), "setgid": (0, 0, 0o2755), "unreadable": (0, 0, 0o711)}


def build(folder, name, source):
    (folder / f"{name}.c").write_text(source, encoding="ascii")
    subprocess.run(["gcc", "-O1", "-w", "-pthread", "-o", folder / name, folder / f"{name}.c"], check=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Programs that anyone may execute: nhmtap, and one that burns CPU time, with different rights."""
    made = tmp_path_factory.mktemp("anyone")
    for parent in (made, *made.parents):
        if parent.name.startswith(("pytest-", "popen-", "anyone")):
            parent.chmod(parent.stat().st_mode | 0o055)
    shutil.copy(FILE, made / "nhmtap")
    build(made, "plain", BURN)
    build(made, "starts", STARTS)
    for name, (user, group, mode) in HOW.items():
        shutil.copy(made / "plain", made / name)
        os.chown(made / name, user, group)
        (made / name).chmod(mode)
    return made


@pytest.fixture
def stat(folder):
    def runs(*arguments):
        done = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "./nhmtap", "stat",
                               "-e", "page-faults:u", *map(str, arguments)], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False, cwd=folder,
                              env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})
        return Result(done.returncode, done.stdout, done.stderr)
    return runs


def cut(result):
    return [record for record in result.of("warning") if record["cause"] == "not_followed"]


@pytest.mark.parametrize("program", HOW)
@pytest.mark.parametrize("ms", [0, 20])
def test_a_command_that_changes_its_rights_is_not_counted_and_no_expectation_is_met(stat, program, ms):
    result = stat("--expect", "page-faults:u<1", "--", f"./{program}", ms)
    count, told = result.one("count"), result.one("expectation")
    assert count["status"] == "not_counted" and "setuid" in count["why"]
    assert told["outcome"] == "cannot_tell" and "setuid" in told["why"]
    assert result.status == 3 and len(cut(result)) == 1


def test_a_command_that_becomes_such_a_program_is_not_counted_either(stat):
    result = stat("--", "sh", "-c", "exec ./setuid 5")
    assert result.one("count")["status"] == "not_counted" and cut(result)


def test_no_interval_after_it_is_called_one_in_which_the_command_never_ran(stat):
    result = stat("-I", "20", "--", "./setuid", 60)
    assert {(count["status"], "setuid" in count["why"]) for count in result.of("count")} == {("not_counted", True)}


def test_what_earlier_intervals_have_counted_is_not_said_to_be_uncounted(stat):
    result = stat("-I", "20", "--", "sh", "-c", "./plain 60; exec ./setuid 60")
    assert {"counted", "not_counted"} <= {r["status"] for r in result.of("count")} and ": not counted: " not in result.err


def test_repeated_runs_of_it_have_no_mean(stat):
    summary = stat("-r", "3", "--", "./setuid", 1).one("summary")
    assert summary["counted"] == 0 and "mean" not in summary


def test_a_child_that_is_not_counted_is_told_with_its_time(stat):
    result = stat("--", "sh", "-c", "./plain 10; ./setuid 300; true")
    warning, = cut(result)
    assert result.one("count")["status"] == "counted"
    # The child's CPU time, and what starting and ending it costs.
    assert 299e6 < warning["uncounted_ns"] < warning["spent_ns"] - 10e6
    assert "setuid" in warning["why"] and "(-a)" in result.err


@pytest.mark.parametrize("command", [["./plain", 0], ["./plain", 20], ["sh", "-c", "./plain 5; ./plain 5; true"],
                                     ["./starts", "threads"], ["./starts", "forks"], ["./starts", "vforks"],
                                     ["sh", "-c", "kill -9 $$"], ["sh", "-c", "exec ./plain 5"]])
def test_an_ordinary_command_has_no_such_warning(stat, command):
    result = stat("--", *command)
    assert result.one("count")["status"] == "counted" and not cut(result)


def test_time_in_which_counting_was_off_is_not_missing(stat):
    assert not cut(stat("-D", "20", "--", "./plain", 60))


@pytest.fixture
def attached(folder):
    """Runs nobody's shell, attaches to it, and has it execute a program. Returns the result of stat."""
    def runs(program, option="-p", user=NOBODY, more=()):
        shell = subprocess.Popen(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "sh", "-c",
                                  f"read line; exec ./{program} 50"], stdin=subprocess.PIPE, cwd=folder)
        wait_asleep(shell.pid)
        caller = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        stat = subprocess.Popen([*caller, "./nhmtap", "stat", "-e", "page-faults:u", option, str(shell.pid), *more],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder,
                                env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})
        began = stat.stdout.readline()
        shell.communicate(b"\n")
        out, err = stat.stdout.read(), stat.stderr.read()  # communicate() would miss what came with the first line
        return Result(stat.wait(timeout=60), began + out, err)
    return runs


@pytest.mark.parametrize("user", [0, NOBODY])
@pytest.mark.parametrize("option", ["-p", "-t"])
@pytest.mark.parametrize("program", HOW)
def test_a_process_that_is_attached_to_and_changes_its_rights_is_not_counted_either(attached, program, option, user):
    result = attached(program, option, user, more=["-I", "10", "--expect", "page-faults:u<1000000"])
    warning, = cut(result)
    assert "rights" in warning["why"] and "(-a)" in warning["remedy"] and warning["why"] in result.err
    last = result.of("count")[-1]
    assert last["status"] == "not_counted" and "setuid" in last["why"]
    assert result.one("expectation")["outcome"] == "cannot_tell" and result.status == 3


@pytest.mark.parametrize("option", ["-p", "-t"])
def test_a_process_that_executes_an_ordinary_program_has_no_such_warning(attached, option):
    result = attached("plain", option, more=["-I", "10"])
    # On a busy machine it may not run in some of the intervals.
    assert "counted" in {count["status"] for count in result.of("count")} <= {"counted", "not_counted"} and not cut(result)
