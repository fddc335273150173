# SPDX-License-Identifier: GPL-2.0-only
import fcntl
import functools
import os
import signal
import subprocess
import sys
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))

# What make says, for pytest by hand after `make`. Programs of the tests inherit it.
BUILD = os.environ.setdefault("NHMTAP_BUILD", os.path.join(os.path.dirname(HERE), "build"))
os.environ.setdefault("NHMTAP", os.path.join(BUILD, "nhmtap"))
os.environ.setdefault("NHMTAP_PROGRAMS", os.path.join(BUILD, "programs"))
os.environ.setdefault("PYTHONPATH", os.path.join(os.path.dirname(HERE), "user", "python"))
# What the workers compile is kept in the build folder, and shared. Programs of the tests keep nothing: they import modules that
# a test has just written. They read what the system has compiled, which Python does not look for where it is given a prefix: a
# pytest in a test would compile all of pytest.
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
os.environ.pop("PYTHONPYCACHEPREFIX", None)
sys.dont_write_bytecode = False
sys.pycache_prefix = os.environ.setdefault("NHMTAP_PYCACHE", os.path.join(BUILD, "pycache"))

import callers  # first: it decides which nhmtap the others run
import cgroups
import hosts
import naming
import thorough
import times
from compiled import compiled
from puppet import Puppet
from records import Tool, build_shim, parse
from reports import nothing_reported, reports  # noqa: F401
from sessions import Control

# Whoever started the tests may ignore signals (nohup, a background job). Programs inherit that, and
# nhmtap respects it. The tests need the default.
for ending in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(ending) == signal.SIG_IGN:
        signal.signal(ending, signal.SIG_DFL)


def pytest_addoption(parser):
    times.pytest_addoption(parser)


def pytest_configure(config):
    if callers.CALLER:
        config.pluginmanager.register(callers)
    times.pytest_configure(config)


@pytest.hookimpl(hookwrapper=True)
def pytest_collection():
    """Has the first worker compile what all others load then: to compile the tests takes three times as long as to
    collect them."""
    os.makedirs(sys.pycache_prefix, exist_ok=True)
    with open(os.path.join(sys.pycache_prefix, "lock"), "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield


@pytest.hookimpl(tryfirst=True)  # before the tests are selected by their markers
def pytest_collection_modifyitems(items):
    rows, long = thorough.rows(), set()
    for item in items:
        if f"{os.path.relpath(item.path, HERE)}::{item.name}".startswith(rows):
            item.add_marker(pytest.mark.thorough)
            long.add(item)
        # The guests run the plain build, and large consumers (pipelines/check_*.py) take its records.
        if os.path.join(HERE, "machine") in map(str, item.path.parents) or item.path.name.startswith("check_"):
            item.add_marker(pytest.mark.plain)
        # .pytest.ini's limit is for as many runs as a test makes by itself. A run that hangs has a limit of its own.
        if "NHMTAP_RUNS" in os.environ:
            item.add_marker(pytest.mark.timeout(0))
    # What is long first, and groups before all: one that started last would keep the other workers waiting at the end.
    items.sort(key=lambda item: (item.get_closest_marker("xdist_group") is None, item not in long))


@pytest.fixture
def nhmtap():
    """Runs nhmtap and always checks its records against their schemas."""
    tool = Tool()
    yield tool
    tool.kill()


@pytest.fixture(scope="session")
def names_program(tmp_path_factory):
    """The program that naming.Names talks to."""
    folder = tmp_path_factory.mktemp("names")
    compiled(folder, "names", *naming.WORKER)
    return folder / "names"


@pytest.fixture
def control(tmp_path):
    made = Control(tmp_path)
    yield made
    made.close()


@pytest.fixture
def puppet():
    with Puppet() as one:
        yield one


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """Builds a shim of tests/shims by its name and returns its path."""
    folder = tmp_path_factory.mktemp("shims")
    return functools.cache(lambda name: build_shim(name, folder))


@pytest.fixture
def host(tmp_path):
    """Builds a machine of hosts.py. host(hosts.NEHALEM, {file: text, …}) returns the option that
    makes nhmtap read it instead of this machine."""
    count = iter(range(1000))

    def make(*layers):
        files = {path: text for layer in layers for path, text in layer.items()}
        return f"--host-root={hosts.build(tmp_path / f'host{next(count)}', files)}"
    return make


@pytest.fixture
def explain(nhmtap):
    """Returns the events as nhmtap would open them on a machine, by nhmtap explain."""
    def run(*arguments):
        result = nhmtap("explain", *arguments)
        assert result.status == 0, result.err
        assert result.err == ""
        return [record["event"] for record in parse(result.out) if record["type"] == "event"]
    return run


@pytest.fixture
def cgroup():
    """A new cgroup: its path below the cgroup2 mount, and its folder."""
    path = f"/nhmtap-test-{os.getpid()}-{time.monotonic_ns()}"
    folder = cgroups.mount() + path
    os.mkdir(folder)
    yield path, folder
    for inside, _, _ in os.walk(folder, topdown=False):  # a failed test may leave cgroups inside
        cgroups.remove(inside)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Adds the output of a failed command to the report: its exception holds it, but does not print
    it."""
    report = (yield).get_result()
    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, subprocess.SubprocessError):
        for name in ("stdout", "stderr"):
            said = getattr(error, name) or ""
            report.sections.append((f"{name} of {error.cmd}", said if isinstance(said, str) else said.decode(errors="replace")))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """A test that is run again makes anew what its module's tests share. Otherwise it would read
    the same run a second time."""
    if getattr(item, "execution_count", 1) < 2:
        return
    for fixtures in item._fixtureinfo.name2fixturedefs.values():
        for fixture in fixtures:
            if fixture.scope in ("class", "module"):
                fixture.finish(item._request)
    for value in vars(item.module).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def pytest_terminal_summary(terminalreporter):
    """Shows why a test that passed when it was run again had failed the first time."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.section(f"why {report.nodeid} was run again")
        terminalreporter.write_line(report.longreprtext)
        for name, text in report.sections:
            if text:
                terminalreporter.write_line(f"--- {name}\n{text}")
