# SPDX-License-Identifier: GPL-2.0-only
"""The examples in user/machine/examples, run as their readers would, without capabilities and a network as in a container: make,
CTest and Meson, each with a limit that holds, one that does not, and an event that is not counted."""
import os
import pathlib
import shutil
import subprocess

import pytest
import yaml
from records import HERE, NHMTAP

EXAMPLES = pathlib.Path(HERE, "..", "user", "machine", "examples")
LIMIT = "instructions:u<1M"
TOOLS = {
    "Makefile": ("make check", 2, "as expected", "no value"),
    "CMakeLists.txt": ("cmake -S . -B made && cmake --build made && ctest --test-dir made --verbose", 8, "100% tests passed", "(Skipped)"),
    "meson.build": ("meson setup made && meson test -C made --verbose", 1, "Ok: ", "SKIP"),
}
CONFINED = ["unshare", "--net", "setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]


@pytest.fixture
def run(tmp_path):
    """A function that runs what an example is for, perhaps with something else than the limit."""
    def run(name, limit=LIMIT):
        shutil.copy(EXAMPLES / "search.c", tmp_path)
        text = (EXAMPLES / name).read_text(encoding="utf-8")
        assert text.count(LIMIT) == 1
        (tmp_path / name).write_text(text.replace(LIMIT, limit), encoding="utf-8")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "NHMTAP"))}
        environment.update(PATH=f"{os.path.dirname(os.path.abspath(NHMTAP))}:{os.environ['PATH']}")
        done = subprocess.run([*CONFINED, "sh", "-c", TOOLS[name][0]], cwd=tmp_path, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
        return done.returncode, done.stdout
    return run


@pytest.mark.parametrize("name", TOOLS)
def test_a_limit_that_holds_passes(run, name):
    status, said = run(name)
    assert status == 0 and TOOLS[name][2] in said, said
    assert "emulated machine (ep" in said and "NOT AS EXPECTED" not in said


@pytest.mark.parametrize("name", TOOLS)
def test_a_limit_that_does_not_hold_fails(run, name):
    status, said = run(name, "instructions:u<1k")
    assert status == TOOLS[name][1] and "NOT AS EXPECTED" in said, said


@pytest.mark.parametrize("name", TOOLS)
def test_a_count_that_there_is_not_skips_with_the_reason(run, name):
    status, said = run(name, "ITLB_FLUSH<5")
    assert status == 0 and TOOLS[name][3] in said, said
    assert "the emulated machine does not model it" in said


def commands(name):
    """The commands of a workflow's steps or of jobs' scripts, in order."""
    jobs = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    if "jobs" not in jobs:
        return [line for job in jobs.values() for line in job["script"]]
    assert set(jobs) == {"name", True, "jobs"}  # YAML's "on"
    job, = jobs["jobs"].values()
    return [step["run"] for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml"])
def test_commands_for_a_forge_do_what_they_say(name, tmp_path):
    """What they run in the container is run here; tests of the image run it there."""
    shutil.copy(EXAMPLES / "search.c", tmp_path)
    compile, measure = commands(name)
    if "docker" in measure:
        start, _, measure = measure.partition('"$IMAGE" ')
        assert start.startswith("docker run ") and "--cap-drop ALL" in start and "--network none" in start
        measure = "nhmtap " + measure
    path = f"{os.path.dirname(os.path.abspath(NHMTAP))}:{os.environ['PATH']}"
    done = subprocess.run([*CONFINED, "sh", "-ec", f"{compile}\n{measure}"], cwd=tmp_path, env={**os.environ, "PATH": path}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300, check=False)
    assert done.returncode == 0 and done.stdout.count("as expected") == 2, done.stdout


def test_jobs_for_gitlab_hand_the_program_on():
    build, counts = yaml.safe_load((EXAMPLES / "gitlab.yml").read_text(encoding="utf-8")).values()
    assert build["artifacts"]["paths"] == ["search"] and counts["needs"] == ["build"] and counts["image"]["entrypoint"] == [""]
