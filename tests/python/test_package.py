# SPDX-License-Identifier: GPL-2.0-only
"""The package: installing it, finding the program, running it, and its errors."""
import json
import mmap
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import types

import pytest
from fifos import open_fifo
from puppet import command
from records import HERE, NHMTAP
from suites import PACKAGE, validate

import nhmtap as module
from nhmtap import plugin, program as programs, table
from nhmtap.runs import Counts

MANUAL = pathlib.Path(HERE, "..", "user", "manual", "nhmtap-python.md")


@pytest.fixture(autouse=True)
def program(monkeypatch):
    monkeypatch.setenv("NHMTAP", os.path.abspath(NHMTAP))


# --- installing and finding -----------------------------------------------------------------------


def test_pip_installs_it_into_a_virtual_environment(tmp_path):
    source, venv = tmp_path / "python", tmp_path / "venv"
    shutil.copytree(PACKAGE, source, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", venv],
                   check=True)
    python = venv / "bin" / "python3"
    done = subprocess.run([python, "-m", "pip", "install", "--no-index", "--no-build-isolation",
                           "--disable-pip-version-check", source], check=False, capture_output=True,
                          text=True, env=os.environ | {"HOME": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    os.symlink(os.path.abspath(NHMTAP), venv / "bin" / "nhmtap")
    (tmp_path / "test_it.py").write_text("""
import importlib.resources, pytest

@pytest.mark.expect("page-faults>=0")
def test_it(nhmtap):
    found = nhmtap.find()
    assert found.origin == "beside the package", found
    assert nhmtap.stat(["true"], "page-faults")["page-faults"] > 0
    files = {file.name for file in importlib.resources.files("nhmtap").iterdir()}
    assert {"py.typed", "baseline.schema.json", "test.schema.json", "launcher.py"} <= files
""")
    environment = {k: v for k, v in os.environ.items() if k not in ("NHMTAP", "PYTHONPATH")}
    done = subprocess.run([python, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers",
                           "test_it.py"], check=False, capture_output=True, text=True, cwd=tmp_path,
                          env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"nhmtap: {module.__version__}, {venv}/bin/nhmtap (beside the package)" in done.stdout


def test_the_package_has_the_programs_version():
    said = subprocess.run([NHMTAP, "--version"], capture_output=True, text=True, check=True).stdout
    assert said == f"nhmtap {module.__version__}\n"
    assert module.find() == (os.path.abspath(NHMTAP), "NHMTAP", module.__version__)


def fake(folder, says):
    path = folder / "nhmtap"
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)
    return path


def test_another_major_version_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("NHMTAP", str(fake(tmp_path, "echo nhmtap 9.1.0")))
    with pytest.raises(module.Error, match=r"is version 9.1.0, this package is for version 0.x"):
        module.find()
    with pytest.raises(module.Error, match=r"is version 9.1.0"):
        module.stat(["true"])
    with pytest.raises(module.Error, match=r"is version 9.1.0"):
        module.measure("cs")


def test_another_minor_version_is_accepted(tmp_path):
    path = fake(tmp_path, "echo nhmtap 0.99.1")
    assert module.find(str(path)) == (str(path), "the caller", "0.99.1")


@pytest.mark.parametrize("says", ["echo hello", "exit 3", "kill -9 $$"])
def test_a_program_that_is_not_nhmtap_is_refused(tmp_path, says):
    with pytest.raises(module.Error, match="does not tell its version"):
        module.find(str(fake(tmp_path, says)))


def test_a_program_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("NHMTAP", "/no/such/nhmtap")
    with pytest.raises(module.Error, match="there is no program /no/such/nhmtap .from NHMTAP."):
        module.find()


def test_the_program_in_path_comes_last(tmp_path, monkeypatch):
    fake(tmp_path, "echo nhmtap 0.5.0")
    package = tmp_path / "lib" / "python3" / "nhmtap" / "program.py"
    monkeypatch.delenv("NHMTAP")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "__file__", str(package))
    assert module.find() == (str(tmp_path / "nhmtap"), "PATH", "0.5.0")
    (tmp_path / "bin").mkdir()
    beside = fake(tmp_path / "bin", "echo nhmtap 0.6.0")
    assert module.find() == (str(beside), "beside the package", "0.6.0")


def test_the_types_hold(tmp_path):
    done = subprocess.run(["mypy", "--config-file", os.path.join(PACKAGE, "pyproject.toml"),
                           "--cache-dir", tmp_path / "cache", os.path.join(PACKAGE, "nhmtap")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# --- runs and their errors ------------------------------------------------------------------------


def test_a_run_without_a_target_is_refused():
    with pytest.raises(module.Refused, match="there is nothing to measure"):
        module.stat([])


@pytest.mark.parametrize("options", [
    ["-p", os.getpid()], [f"-p{os.getpid()}"], [f"--pid=1,{os.getpid()}"], ["--tid", os.getpid()],
    ["-a"], ["--cpu=0"],
])
def test_a_run_that_nothing_ends_is_refused_instead_of_hanging(options):
    with pytest.raises(ValueError, match="--duration"):
        module.stat([], "page-faults", options=options)


def test_the_own_process_can_be_counted_for_a_time():
    run = module.stat([], "page-faults", options=["-p", os.getpid(), "--duration", "0.05"])
    assert set(run) == {"page-faults"}
    assert run.records[-1]["reason"] == "duration"


@pytest.mark.parametrize("command, options", [([], {}), (["setsid", "-w"], {}), ([], {"start_new_session": False})],
                         ids=["in the session of nhmtap", "in its own", "in that of the caller"])
def test_after_a_timeout_the_command_is_not_left_behind(tmp_path, command, options):
    script = f": {tmp_path}; trap '' TERM; while :; do sleep 1; done"
    with pytest.raises(module.Timeout, match="timed out after"):
        module.stat([*command, "sh", "-c", script], "cs", timeout=1, **options)
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if script.encode() in path.read_bytes():
                gone(int(path.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            pass  # it has ended in the meantime


def test_after_an_interrupt_the_command_has_the_time_that_it_needs(tmp_path):
    """The timeout's bound is the caller's; an interrupt has none, but a second one."""
    os.mkfifo(tmp_path / "fifo")
    script = f"trap 'echo told; cat {tmp_path}/fifo; echo flushed; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    with subprocess.Popen([sys.executable, "-c", "import nhmtap.program, sys; nhmtap.program.GRACE_S = 0.1;"
                           "nhmtap.stat(['sh', '-c', sys.argv[1]], 'cs')", script],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as caller:
        assert caller.stdout.readline() == "ready\n"
        caller.send_signal(signal.SIGINT)
        assert caller.stdout.readline() == "told\n"
        time.sleep(0.5)  # longer than GRACE_S
        with open_fifo(tmp_path / "fifo", "w"):
            pass
        out, err = caller.communicate(timeout=120)
    assert out == "flushed\n" and "KeyboardInterrupt" in err


def gone(pid):
    """Waits until a process has ended. It may still be a zombie that nobody has reaped."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([descriptor], [], [], 120)[0], f"process {pid} was left behind"
    finally:
        os.close(descriptor)


def test_a_timeout_is_also_subprocess_own():
    with pytest.raises(subprocess.TimeoutExpired) as caught:
        module.stat(["sleep", "1000"], "cs", timeout=0.2)
    assert isinstance(caught.value, module.Error)


# Run in a process of its own: Python handles signals in the main thread, where tests may not run. The
# command sends the signal when that thread waits, in wait4 (number 61).
INTERRUPTED = '''
import os, signal, sys
import nhmtap

class Mine(Exception):
    pass

def interrupt(*_):
    raise Mine

signal.signal(signal.SIGUSR1, interrupt)
try:
    nhmtap.stat(["sh", "-c", f"""echo $$ > {sys.argv[1]}
        until grep -q '^61 ' /proc/{os.getpid()}/syscall; do sleep 0.01; done
        kill -USR1 {os.getpid()}; exec sleep 1000"""], "cs")
except Mine:
    print("interrupted")
'''


def test_an_exception_in_the_waiting_ends_the_command_too(tmp_path):
    pid_file = tmp_path / "pid"
    said = subprocess.run([sys.executable, "-c", INTERRUPTED, pid_file], check=True, capture_output=True, text=True)
    assert said.stdout == "interrupted\n"
    gone(int(pid_file.read_text()))


def test_an_exception_in_the_starting_ends_nhmtap_too(monkeypatch):
    class Mine(BaseException):
        pass

    started, execute = [], subprocess.Popen._execute_child

    def interrupted(process, *arguments):
        execute(process, *arguments)
        started.append(process.pid)
        raise Mine

    module.find()
    monkeypatch.setattr(subprocess.Popen, "_execute_child", interrupted)
    with pytest.raises(Mine):
        module.stat(["sleep", "1000"], "cs")
    gone(*started)


# SIGINT comes when nhmtap has been started and Popen has not stored its pid.
INTERRUPTED_EARLY = """
import os, signal, subprocess, sys
import nhmtap

def fork_exec(*arguments):
    pid = original(*arguments)
    print(pid, flush=True)
    os.kill(os.getpid(), signal.SIGINT)
    return pid

nhmtap.find()
original, subprocess._fork_exec = subprocess._fork_exec, fork_exec
nhmtap.stat(["sleep", "1000"], "cs")
"""


def test_an_interrupt_before_the_pid_of_nhmtap_is_known_ends_it_too():
    said = subprocess.run([sys.executable, "-c", INTERRUPTED_EARLY], capture_output=True, text=True, check=False,
                          timeout=60)
    assert "KeyboardInterrupt" in said.stderr
    gone(int(said.stdout))


def test_an_nhmtap_that_is_killed_is_an_error_and_its_command_ends(tmp_path):
    pid_file = tmp_path / "pid"
    script = f"echo $$ > {pid_file}; kill -KILL $PPID; exec sleep 1000"
    with pytest.raises(module.Ended, match="nhmtap was ended by signal 9 before it had written all"):
        module.stat(["sh", "-c", script], "cs")
    gone(int(pid_file.read_text()))


def test_a_stream_that_is_cut_off_is_an_error(tmp_path):
    path = fake(tmp_path, """case "$*" in *--version) echo nhmtap 0.1.0; exit;; esac
while [ "$1" != -o ]; do shift; done
printf '{"type":"start"}\\n{"type":"cou' > "$2"; exit 3""")
    with pytest.raises(module.Ended, match="ended with status 3 before it had written all"):
        module.stat(["true"], program=str(path))


def test_repeats_give_a_median():
    run = module.stat(command("faults=100", "exit=0"), "page-faults", repeat=3)
    assert len(run.all("page-faults")) == 3
    assert run.over_repeats("page-faults") > 99


def test_an_event_that_a_metric_needs_as_well_is_one():
    run = module.stat(["true"], "task-clock", "cpus_utilized")
    assert run["task-clock"] > 0
    assert run["cpus_utilized"] > 0


TWO = ["software/config=2,name=x/", "software/config=3,name=x/", "software/config=2,name=x/"]  # page faults, context switches


def test_two_events_of_one_name_are_two_counts_and_one_that_is_asked_for_twice_is_one():
    run = module.stat(command("faults=5000", "exit=0"), TWO, repeat=2)
    assert list(run) == ["x", "x (2)"]
    assert all(count > 5000 for count in run.all("x")) and len(run.all("x")) == 2
    assert run.over_repeats("x") > 5000 and run.over_repeats("x (2)") < 5000
    with module.measure(*TWO) as block, mmap.mmap(-1, 1000 * mmap.PAGESIZE) as memory:
        for page in range(1000):
            memory[page * mmap.PAGESIZE] = 1
    assert block["x"] >= 1000 and block["x (2)"] < 500
    assert [repr(count).split(" ")[0] for count in (run.all("x")[0], block["x"])] == ["x", "x"]


def test_shares_are_of_one_event():
    with pytest.raises(ValueError, match="shares are of one event, and page-faults, task-clock were sampled"):
        module.profile(command("faults=5000", "exit=0"), "page-faults,task-clock", options=["-c", "1000"])
    with pytest.raises(ValueError, match="shares are of one event, and minor-faults, page-faults were sampled"):
        module.mem(command("faults=5000", "exit=0"), "page-faults,minor-faults", options=["-c", "100"])
    assert list(module.mem(command("faults=5000", "exit=0"), "page-faults", options=["-c", "100"])) == ["unmeasured"]


def test_streams_of_the_next_version_are_read():
    """Unknown members are kept and do no harm."""
    run = module.stat(["true"], "task-clock", "cpus_utilized")
    newer = [record | {"schema_version": "2.0.0", "activity": "stat"} for record in run.records]
    text = "".join(json.dumps(record) + "\n" for record in newer)
    records, whole = programs.parse(text)
    assert whole
    again = Counts(records)
    assert set(again) == set(run)
    assert again["task-clock"].value == run["task-clock"].value
    assert again["task-clock"].record["activity"] == "stat"


def test_shares_of_a_profile_have_bounds():
    def done(samples, lost):
        profile = {"type": "profile", "event": "cycles", "samples": {
            "expected": sum(samples.values()) + lost, "uncertainty": 1,
            "aggregated": sum(samples.values()), "lost": {"table_full": lost}},
            "entries": [{"samples": n, "code": {"symbol": name}} for name, n in samples.items()]}
        return module.Profile(programs.Done([profile, {"type": "end"}], 0, None, None))
    profile = done({"hot": 80, "cold": 20}, 0)
    # Wilson's interval for 80 of 100, from published tables.
    assert (profile["hot"].low, profile["hot"].high) == pytest.approx((0.7112, 0.8666), abs=1e-4)
    assert list(profile) == ["hot", "cold"]
    with pytest.raises(KeyError, match="warm has no sample; the largest are hot, cold"):
        profile["warm"]
    assert profile.share("warm").value == 0 and 0 < profile.share("warm").high < 0.04
    few = module.Profile(programs.Done([{"type": "profile", "event": "cs", "samples": {"expected": 3, "aggregated": 3, "lost": {}}, "entries": [
        {"samples": n, "period": weight, "code": {"symbol": name}} for name, n, weight in (("hot", 2, 999), ("cold", 1, 1))]},
        {"type": "end"}], 0, None, None))
    assert few["hot"].low < 0.35 and few["hot"].high > 0.999, "two samples: from 34 % on"
    uncertain = done({"hot": 80, "cold": 20}, 100)
    assert uncertain["hot"].low < 0.41 and uncertain["hot"].high > 0.89
    with pytest.raises(module.CannotTell):
        assert uncertain["hot"] > 0.5


# --- documentation --------------------------------------------------------------------------------


def test_the_manuals_test_file_passes(tmp_path):
    text, = re.findall(r"^    # test_words.py\n((?:    .*\n|\n)+)", MANUAL.read_text(), re.M)
    (tmp_path / "test_words.py").write_text(re.sub(r"^    ", "", text, flags=re.M))
    options = re.search(r"^    pytest (--nhmtap-save=.*)$", MANUAL.read_text(), re.M)[1].split()
    environment = os.environ | {"PYTHONPATH": PACKAGE}
    for arguments in (options, ["--nhmtap-compare=base.json"]):
        done = subprocess.run([sys.executable, "-m", "pytest", "-p", "nhmtap.plugin",
                               "-p", "no:cacheprovider", *arguments, "test_words.py"], check=False,
                              capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stdout
        assert "passed" in done.stdout and "nhmtap: medians" in done.stdout


# --- analyze --------------------------------------------------------------------------------------

ANALYSIS = [{"type": "start"},
            {"type": "analysis", "whole": "cycles", "verdict": [{"name": "far"}, {"name": "near"}], "part": 1, "parts": 2,
             "shares": [{"name": "far", "description": "Far", "share": 0.5, "low": 0.25, "high": 0.75}]},
            {"type": "analysis", "whole": "cycles", "part": 2, "parts": 2,
             "shares": [{"name": "near", "description": "Near", "why": "it was not counted"}]},
            {"type": "end", "command": {"exit_code": 3}}]


def test_an_analysis_is_compared_by_its_bounds():
    analysis = module.Analysis(programs.Done(ANALYSIS, 3, None, None))
    assert (analysis.status, analysis.verdict, list(analysis)) == (3, ["far", "near"], ["far", "near"])
    assert analysis["far"] < 0.8 and not analysis["far"] > 0.75 and float(analysis["far"]) == 0.5
    with pytest.raises(module.CannotTell):
        bool(analysis["far"] < 0.6)
    with pytest.raises(module.CannotTell, match="it was not counted"):
        float(analysis["near"])
    with pytest.raises(KeyError, match="there are far, near"):
        analysis["middle"]


# --- emulated machines ------------------------------------------------------------------------------


def test_what_an_emulated_machine_counted_is_named_so():
    """In the record of a test, in its table, and apart from baselines of a real CPU of this model."""
    said = []
    reporter = types.SimpleNamespace(hasmarkup=False, section=said.append, write=lambda text, **_: said.append(text),
                                     write_line=lambda text, **_: said.append(text), _tw=types.SimpleNamespace(fullwidth=80))
    host = {"cpu": {"model_name": "X5570"}, "kernel": "6.1"}
    machines, records = [], []
    for more in ({}, {"emulated": {"model": "ep", "version": "0123456789ab"}}):
        collected = plugin.Collected()
        collected.note_machine([{"type": "start", "host": host | more}])
        machines.append(collected.machine)
        records.append(collected.record("test_it"))
        validate("test", records[-1] | {"result": "passed"})
    assert machines == [("X5570", "6.1"), ("X5570, emulated (ep)", "6.1")]
    assert "emulated" not in records[0] and records[1]["emulated"]["version"] == "0123456789ab"
    counted = {"event": "cycles", "outcome": "measured", "runs": [1], "median": 1}
    table.Table(reporter, [records[1] | {"events": [counted]}], False).write()
    assert said[-2:] == ["on X5570, emulated (ep), Linux 6.1",
                         "emulated machine (ep, version 0123456789ab): cycles and latencies are a model's"]
