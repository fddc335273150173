# SPDX-License-Identifier: GPL-2.0-only
"""pytest --nhmtap-machine: a suite whose measured tests run on the machine, twice, the second time by two workers."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import types
import venv
import xml.etree.ElementTree

import pytest

import forks
from records import NHMTAP

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "user", "python")
SUITE = """
import mmap, os, warnings
import pytest

HERE = {here!r}

@pytest.fixture
def breaking():
    yield
    raise RuntimeError("the teardown broke")

@pytest.mark.expect("instructions:u>1000", "instructions:u<1e7", "page-faults>=64", "instructions")
def test_counts():
    print("said in the guest")
    with mmap.mmap(-1, 64 * mmap.PAGESIZE) as memory:
        for page in range(64):
            memory[page * mmap.PAGESIZE] = 1

@pytest.mark.expect("instructions:u<10")
def test_too_many():
    sum(range(100))

@pytest.mark.expect("ITLB_FLUSH<5")
def test_not_modelled():
    pass

@pytest.mark.expect("instructions:u")
@pytest.mark.parametrize("word", ["a b", "a::b", "\\u00fc"])
def test_words(word):
    assert os.uname().nodename == "nehalem"

def test_the_fixture(nhmtap):
    assert nhmtap.stat(["true"], events=["instructions:u"])["instructions:u"] > 1000

def test_not_there(tmp_path):
    assert str(os.uname()) == HERE

class Marked:
    pytestmark = pytest.mark.nhmtap_machine

class TestOutcomes(Marked):
    def test_assertion(self):
        warnings.warn("a warning of the guest")
        numbers = [1, 2]
        assert numbers == [1, 3]

    def test_teardown(self, breaking):
        pass

    def test_skip(self):
        pytest.skip("it says so")

    @pytest.mark.xfail(reason="known")
    def test_xfail(self):
        assert False

    def test_crash(self):
        os.abort()

    def test_exit(self):
        os._exit(3)

    def test_error(self, nosuch):
        pass

    def test_writes(self, tmp_path):
        with open(os.path.join(os.path.dirname(__file__), "written"), "w"):
            pass
"""


def run(folder, *options, package=PACKAGE, cache="no:cacheprovider", python=sys.executable):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "NHMTAP_MACHINE"))}
    environment.update(PYTHONPATH=str(package), NHMTAP=os.path.abspath(NHMTAP))
    done = subprocess.run([python, "-m", "pytest", "-p", "nhmtap.plugin", "-p", cache, "-rA", "--strict-markers",
                           "--junitxml=out/junit.xml", "--nhmtap-machine", *options], cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
    tree = xml.etree.ElementTree.parse(folder / "out/junit.xml")
    cases = {}
    for case in tree.iter("testcase"):
        cases.setdefault(case.get("name"), []).extend(case)
    told = {name: {one.tag: (one.get("message") or "") + (one.text or "") for one in found} for name, found in cases.items()}
    properties = {(case.get("name"), p.get("name")): p.get("value") for case in tree.iter("testcase") for p in case.iter("property")}
    return types.SimpleNamespace(status=done.returncode, text=done.stdout, told=told, properties=properties)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    (folder / "out").mkdir()
    (folder / "test_it.py").write_text(SUITE.format(here=str(os.uname())), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def first(folder):
    """It leaves a baseline and pytest's cache beside the tests, where there were none."""
    return run(folder, "test_it.py", "--nhmtap-save=base.json", cache="cacheprovider")


@pytest.fixture(scope="module")
def again(folder, first):
    """Fewer tests run, in another order and two at a time; what is measured goes elsewhere, and is compared with
    one more instruction of test_words[a b] than there was. /tmp has some more names, before and after those that are used."""
    baselines = json.loads((folder / "base.json").read_text(encoding="utf-8"))
    for entry in baselines[1:]:
        if entry["test"].endswith("[a b]"):
            entry["runs"][0] += 1
    (folder / "base.json").write_text(json.dumps(baselines), encoding="utf-8")
    with contextlib.ExitStack() as others:
        for number in range(100):
            others.enter_context(tempfile.NamedTemporaryFile(dir="/tmp", prefix="az"[number % 2]))
        return run(folder, "-n2", "--nhmtap-compare=base.json", "--nhmtap-fail=instructions:0%", "--nhmtap-fail=page-faults:+-0%",
                   "--nhmtap-fail=instructions:u:+-0%", "--nhmtap-json=out/again.jsonl", "-k", "counts or words or fixture", cache="cacheprovider")


def test_measured_and_marked_tests_run_in_the_guest_and_others_here(first):
    passed = {name for name, told in first.told.items() if set(told) <= {"properties", "system-out", "system-err"}}
    assert passed == {"test_counts", "test_words[a b]", "test_words[a::b]", "test_words[\\xfc]", "test_the_fixture", "test_not_there",
                      "test_writes"}, first.text


def test_expectations_are_judged_by_counts_of_the_machine(first):
    assert "expected instructions:u<10: instructions:u " in first.told["test_too_many"]["failure"]
    assert int(first.properties["test_counts", "nhmtap.page-faults"]) >= 64
    assert "emulated (ep)" in first.text


def test_an_event_that_is_not_modelled_skips_the_test(first):
    assert first.told["test_not_modelled"]["skipped"].startswith("nhmtap: ITLB_FLUSH has no value: the emulated machine does not model it")
    assert ("test_not_modelled", "nhmtap.ITLB_FLUSH") not in first.properties


def test_reports_are_those_of_pytest(first):
    told = first.told
    assert "numbers == [1, 3]" in told["test_assertion"]["failure"] and "At index 1 diff: 2 != 3" in told["test_assertion"]["failure"]
    assert "the teardown broke" in told["test_teardown"]["error"]
    assert "it says so" in told["test_skip"]["skipped"]
    assert "known" in told["test_xfail"]["skipped"]
    assert "without a report, with status 3" in told["test_exit"]["failure"]
    assert "without a report, by the signal SIGABRT: " in told["test_crash"]["failure"] and "in test_crash" in told["test_crash"]["failure"]
    assert "fixture 'nosuch' not found" in told["test_error"]["error"]
    assert "said in the guest" in first.text and "UserWarning: a warning of the guest" in first.text


def test_what_a_test_writes_stays_in_the_machine(first, folder):
    assert not (folder / "written").exists()


def test_counts_are_the_same_by_whomever_and_in_whatever_order_tests_are_run(first, again):
    """The kernel's instructions too, though names in /tmp come and go."""
    counts = {key: value for key, value in again.properties.items() if not key[1].endswith(".change")}
    assert counts and counts == {key: value for key, value in first.properties.items() if key[0] in again.told}, again.text
    assert {"nhmtap.instructions", "nhmtap.page-faults"} <= {name for test, name in counts if test == "test_counts"}
    failed = {name for name, told in again.told.items() if set(told) & {"failure", "error", "skipped"}}
    assert failed == {"test_words[a b]"}, again.text


def test_a_difference_of_one_breaks_a_limit_of_0(again):
    assert "instructions:u fell by 0.00 %, the limit is 0 %" in again.told["test_words[a b]"]["failure"]


SAID = """
import logging, sys
import pytest

pytestmark = pytest.mark.nhmtap_machine

def test_said():
    print(list(range(3)), end=' ')
    sys.stdout.flush()
    sys.stderr.write('an unfinished line')

def test_past_the_capture(capsys):
    with capsys.disabled():
        print("past the capture")

def test_live():
    logging.error("while it runs")
"""


def test_what_a_test_writes_is_shown_once_if_nothing_captures_it(folder):
    """The last line too, which has no end: the guest's process ends without Python's own end. The guest's pytest says nothing."""
    (folder / "test_said.py").write_text(SAID)
    done = run(folder, "-s", "test_said.py::test_said")
    assert done.status == 0 and "\ntest_said.py [0, 1, 2] an unfinished line.\n" in done.text, done.text


def test_what_a_test_writes_past_the_capture_and_live_logs_are_shown(folder):
    (folder / "test_said.py").write_text(SAID)
    done = run(folder, "-o", "log_cli=1", "test_said.py", "-k", "past or live")
    assert done.status == 0 and "past the capture\n" in done.text and done.text.count(" live log call ") == 1, done.text


ENDING = """
import pytest

pytestmark = pytest.mark.nhmtap_machine

@pytest.mark.parametrize("one", [object()], ids=str)
def test_address(one):
    pass

def test_exit():
    pytest.exit("that is enough", returncode=5)

def test_never():
    pass
"""


def test_a_test_ends_the_run_as_here_and_one_with_another_id_there_is_told_why(folder):
    (folder / "test_ending.py").write_text(ENDING)
    done = run(folder, "test_ending.py")
    assert done.status == 5 and "Exit: that is enough" in done.text and "test_never" not in done.told, done.text
    address, = (told for name, told in done.told.items() if (name or "").startswith("test_address"))
    assert "Its id is another one there" in address["error"] and "test_ending.py::test_exit, " in address["error"]


OWN = """
import subprocess, sys, warnings
import pytest

pytestmark = pytest.mark.nhmtap_machine

@pytest.fixture
def prepared():
    yield

def test_quiet(prepared):
    pass

def test_loud():
    warnings.warn("loud")

def test_python():
    assert sys.prefix == {prefix!r}
    subprocess.run([sys.executable, "-c", "import installed"], check=True)

def test_command_line():
    assert sys.argv == [{program!r}]
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A suite that makes errors of warnings, run by the Python of a virtual environment, which has a module of its own. All of it is in a
    folder for temporary files."""
    folder = tmp_path_factory.mktemp("own")
    venv.create(folder / "venv", system_site_packages=True, symlinks=True)
    packages, = (folder / "venv").glob("lib/python3*/site-packages")
    (packages / "installed.py").touch()
    (folder / "out").mkdir()
    (folder / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    program = os.path.join(os.path.dirname(pytest.__file__), "__main__.py")
    (folder / "test_own.py").write_text(OWN.format(prefix=str(folder / "venv"), program=program))
    return run(folder, "--setup-show", "test_own.py", python=folder / "venv/bin/python3")


def test_a_suite_that_makes_errors_of_warnings_starts_there(own):
    assert not set(own.told["test_quiet"]) & {"failure", "error", "skipped"}, own.text
    assert "UserWarning: loud" in own.told["test_loud"]["failure"]


def test_a_virtual_environment_is_python_there_and_sys_argv_names_pytest(own):
    """Programs of it find its packages. argparse takes the name from sys.argv."""
    assert not {name for name in ("test_python", "test_command_line") if set(own.told[name]) & {"failure", "error", "skipped"}}, own.text


def test_setup_show_shows_fixtures_as_they_are_set_up_there(own):
    shown = "SETUP    F prepared\n        test_own.py::test_quiet (fixtures used: prepared)\n        TEARDOWN F prepared"
    assert own.text.count(shown) == 1, own.text


def test_the_next_run_goes_on_where_pytest_had_started_whatever_ran_and_from_whatever_shell(tmp_path, monkeypatch):
    """pytest keeps in its cache which tests there were, and which have failed. A fixture finds there what others keep. The package is
    a copy, since others may make files beside it meanwhile."""
    (tmp_path / "out").mkdir()
    package = shutil.copytree(PACKAGE, tmp_path / "package")
    (tmp_path / ".pytest_cache/v/own").mkdir(parents=True)
    (tmp_path / ".pytest_cache/v/own/kept").write_text("[4]")
    (tmp_path / "test_cached.py").write_text("import os, pytest\n@pytest.mark.nhmtap_machine\ndef test_one(cache):\n"
                                             "    assert cache.get('own/kept', None) == [4]\n@pytest.mark.nhmtap_machine\n"
                                             "def test_two():\n    assert 'OLDPWD' not in os.environ\n")
    (tmp_path / "kept").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kept"))
    of_runs = []
    for shell, which in ("1", "one"), ("2", "two"):
        monkeypatch.setenv("SHLVL", shell)
        monkeypatch.setenv("OLDPWD", "/" * int(shell))
        done = run(tmp_path, "-k", which, cache="cacheprovider", package=package)
        assert done.status == 0, done.text
        of_runs.append({(one.name, one.inode()) for one in os.scandir(tmp_path / "kept/nhmtap/started")})
    assert len(of_runs[0]) == 2 and of_runs[0] == of_runs[1]


# On the machine nothing is compiled once this file is read, and the test that is there has a fixture of a second one.
CONFTEST = """
import os
from _pytest.assertion import rewrite

def refuse(path, config):
    raise RuntimeError(f"{path} is compiled in the guest")

if os.uname().nodename == "nehalem":
    rewrite._rewrite_test = refuse
"""
# Nor are the modules of a package that is kept without compiled files.
SITE = """
import os
from importlib.machinery import SourceFileLoader

def refuse(loader, data, path, **more):
    if os.path.dirname(path).endswith("/nhmtap"):
        raise RuntimeError(f"{path} is compiled in the guest")
    return compiled(loader, data, path, **more)

if os.uname().nodename == "nehalem":
    compiled, SourceFileLoader.source_to_code = SourceFileLoader.source_to_code, refuse
"""
WRITING = """
import os
import subprocess
import time
import pytest

@pytest.mark.nhmtap_machine
def test_writing(nothing):
    subprocess.Popen(["sh", "-c", "while :; do echo on and on >&2; echo > /tmp/written; done"], start_new_session=True)
    while not os.path.exists("/tmp/written"):
        time.sleep(0.001)
    assert nothing is None
"""


def test_files_that_are_not_kept_compiled_come_from_here_and_what_a_test_leaves_behind_ends_with_it(folder, tmp_path, monkeypatch):
    """It writes to the errors of the guest's pytest for ever, since nothing captures them."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (folder / "below").mkdir()
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "below/conftest.py").write_text("import pytest\n@pytest.fixture\ndef nothing():\n    assert 1\n")
    (folder / "below/test_writing.py").write_text(WRITING)
    package = tmp_path / "package"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "sitecustomize.py").write_text(SITE)
    done = run(folder, "-s", "below", package=package)
    assert done.status == 0 and "on and on" in done.text, done.text[-4000:]


def test_a_run_that_is_killed_leaves_no_folder(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (folder / "test_killed.py").write_text("import os\ndef test_killed():\n    assert os.listdir(os.environ['TMPDIR'])\n    os.kill(os.getpid(), 9)\n")
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "nhmtap.plugin", "-p", "no:cacheprovider", "--nhmtap-machine", "test_killed.py"],
                          cwd=folder, env={**os.environ, "PYTHONPATH": PACKAGE}, stdout=subprocess.DEVNULL, check=False)
    assert done.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 60
    while os.listdir(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert os.listdir(tmp_path) == []


def test_a_socket_has_its_name_when_it_listens(tmp_path, monkeypatch):
    """pytest connects as soon as it sees the name."""
    path = str(tmp_path / "socket")
    listen = socket.socket.listen
    monkeypatch.setattr(socket.socket, "listen", lambda *given: os.path.exists(path) or listen(*given))
    with forks.listen(path), socket.socket(socket.AF_UNIX) as client:
        client.connect(path)
    assert os.listdir(tmp_path) == ["socket"]


def test_without_a_machine_its_tests_fail_and_others_run(folder, monkeypatch):
    monkeypatch.setenv("NHM_BUILD", str(folder))
    done = run(folder, "-k", "words or not_there")
    assert "the emulated machine did not start: nhmtap: nhmtap machine: the emulated machine is not built" in done.told["test_words[a b]"]["error"]
    assert not set(done.told["test_not_there"]) & {"failure", "error", "skipped"}


def test_a_model_that_there_is_not_is_named(folder):
    done = run(folder, "--nhmtap-machine=pentium", "-k", "words")
    assert "no model 'pentium'" in done.told["test_words[a b]"]["error"]
