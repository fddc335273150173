# SPDX-License-Identifier: GPL-2.0-only
"""`make test TIMES=N`: the tables of where the time of the tests goes."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

LIB = pathlib.Path(__file__).parents[1] / "lib"
SPIN = "import time\nwhile time.process_time() < 0.4: pass"
# A process whose child works, and is not waited for: a booted machine and its fork.
FORKS = f"""
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if not os.fork():
    {SPIN.replace(chr(10), chr(10) + 4 * " ")}
    print("done", flush=True)
time.sleep(240)
"""
TESTS = f"""
import os, pytest, signal, subprocess, sys, time
def test_that_waits(): time.sleep(0.4)
def test_whose_child_works(): subprocess.run([sys.executable, "-c", {SPIN!r}], check=True)
def test_of_nothing(): pass
@pytest.fixture
def booted():
    with subprocess.Popen([sys.executable, "-c", {FORKS!r}], stdout=subprocess.PIPE, start_new_session=True) as booted:
        yield booted
        os.killpg(booted.pid, signal.SIGKILL)
def test_whose_fork_works(booted): booted.stdout.readline()
"""


@pytest.mark.parametrize("jobs", [0, 2])
def test_a_child_s_cpu_time_is_its_test_s_and_waiting_is_none(tmp_path, jobs):
    (tmp_path / "test_four.py").write_text(TESTS, encoding="ascii")
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "times", "-n", str(jobs), "--times", "4",
                           "test_four.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(LIB)}, capture_output=True,
                          text=True, timeout=240, check=True)
    tables = [re.findall(r"^ *(\d+\.\d) +(\d+\.\d)  (.*)$", part, re.M) for part in done.stdout.split("= tests ")[1:]]
    work, wait, files = ({name.rpartition(":")[2]: (float(cpu), float(wall)) for cpu, wall, name in rows} for rows in tables)
    assert set(work) == set(wait) and len(work) == 4 and list(files) == ["test_four.py"]
    assert set(list(work)[:2]) == {"test_whose_child_works", "test_whose_fork_works"} and min(list(work.values())[:2])[0] > 0.3
    cpu, wall = wait["test_that_waits"]
    assert cpu < 0.4 <= wall
