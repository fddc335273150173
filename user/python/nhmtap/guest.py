# SPDX-License-Identifier: GPL-2.0-only
"""Runs tests on the emulated machine: the guest's part of machine.py.

pytest starts here as on the host, with the same options, and waits. It is told a file, collects its tests, and waits.
It is told a test, runs it, and ends. Where it waits the machine stands still and is forked, so no test sees anything of
another one, and a test's counts do not depend on which others are run.
"""
from __future__ import annotations

import contextlib
import gc
import marshal
import os
import pickle
import sys
from pathlib import Path
from types import CodeType
from typing import Any, Callable, Dict, List, Optional, Tuple

import pytest
from _pytest.assertion import rewrite
from _pytest.config import Config

from . import inprocess, plugin
from .port import Port, unpacked

MOST_NAMED = 20  # tests, where one is missing


class _Silent:
    """pytest's reporter for those that write with it, as live logs do. What it says of tests by itself, the host's says."""

    def __init__(self, reporter: Any) -> None:
        self._reporter = reporter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reporter, name)


class Server:
    """Runs what the host asks for instead of pytest's loop over all tests."""

    def __init__(self, port: Port, out: int) -> None:
        self._port, self._out, self._errors = port, out, os.dup(2)
        self._uncollected: List[str] = []
        self._reports: List[Any] = []
        self._warnings: List[Dict[str, Any]] = []

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: Config) -> None:
        """Leaves it to the host to tell of tests."""
        reporter = config.pluginmanager.unregister(name="terminalreporter")
        if reporter:
            config.pluginmanager.register(_Silent(reporter), "terminalreporter")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> bool:
        """Collects nothing yet."""
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Collects a file and runs one of its tests."""
        inprocess.warm([("instructions:u",)])  # what starts it, and its files in memory, serve other events too
        path, compiled = unpacked(self._wait())
        take_compiled(compiled)
        try:
            items = {item.nodeid: item for item in session.perform_collect([path])}
        except pytest.UsageError as error:
            self._uncollected.append(str(error))
            items = {}
        inprocess.warm({names: None for item in items.values() if (names := _names(item))})
        test = self._wait()
        self._answer(self._run(items[test]) if test in items else {"uncollected": "\n".join(self._uncollected or [_others(list(items))])})
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keeps why a file could not be collected."""
        if report.failed:
            self._uncollected.append(report.longreprtext)

    @pytest.hookimpl(optionalhook=True)
    def pytest_warning_recorded(self, warning_message: Any, when: str, nodeid: str, location: Any) -> None:
        """Keeps what the host shows at its end."""
        one = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        try:
            pickle.dumps(one)
        except Exception:  # pylint: disable=broad-except
            return  # of a class that cannot be told elsewhere
        self._warnings.append(one)

    def _wait(self) -> str:
        gc.collect()
        gc.freeze()  # no later collection depends on what there is by now
        return self._port.wait()

    def _run(self, item: pytest.Item) -> Dict[str, Any]:
        self._warnings.clear()
        stop: Optional[BaseException] = None
        try:
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        except pytest.exit.Exception as asked:
            stop = pytest.exit.Exception(str(asked.msg), asked.returncode)
        except KeyboardInterrupt:
            stop = KeyboardInterrupt()
        tell = item.config.hook.pytest_report_to_serializable
        reports = [tell(config=item.config, report=report) for report in self._reports]
        return {"reports": reports, "warnings": self._warnings, "stop": stop}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps the reports of the test."""
        self._reports.append(report)

    def _answer(self, answer: Dict[str, Any]) -> None:
        for stream in sys.stdout, sys.stderr:
            with contextlib.suppress(OSError, ValueError):  # the test has closed it
                stream.flush()
        with open(self._out, "wb") as out:
            out.write(pickle.dumps(answer))
            out.flush()
            with contextlib.suppress(OSError):  # the test has left this process without /proc, say
                self._port.end(self._out, self._errors)
        os._exit(0)


def _others(items: List[str]) -> str:
    """Why a test is not among these."""
    return ("Its id is another one there, as with an address or a random number in it (next: give parametrize() ids), or the file has it "
            f"here only. It has: {', '.join(items[:MOST_NAMED])}{', ...' if len(items) > MOST_NAMED else ''}")


def _names(item: pytest.Item) -> Tuple[str, ...]:
    with contextlib.suppress(ValueError):  # the test reports it
        return tuple(plugin.Expected.of(item).names)
    return ()


def take_compiled(compiled: Dict[str, bytes]) -> None:
    """Has pytest take the code of these files from here, as if a file had it. To compile one takes seconds in the guest. There
    are none if this pytest has no such functions."""
    if not compiled:
        return
    read = rewrite._read_pyc

    def read_or_take(source: Path, pyc: Path, trace: Callable[[str], None] = lambda _: None) -> Optional[CodeType]:
        if str(source) not in compiled:
            return read(source, pyc, trace)
        code: CodeType = marshal.loads(compiled[str(source)])
        return code

    rewrite._read_pyc = read_or_take


def forget_other_runs() -> None:
    """Has pytest's own part of its cache be empty, which each run writes anew: what has failed, and which tests there were.
    The machine that has started pytest serves the next run only if no file has changed that it has read."""
    get = pytest.Cache.get

    def get_of_others(cache: pytest.Cache, key: str, default: Any) -> Any:
        return default if key.startswith("cache/") else get(cache, key, default)

    setattr(pytest.Cache, "get", get_of_others)


def not_be_warned_of() -> None:
    """Has pytest not warn that the modules of this package were imported before it could rewrite their assertions. Where a suite makes
    errors of warnings, pytest would not start."""
    for name, module in sys.modules.items():
        if name.partition(".")[0] == __package__:
            module.__doc__ = f"{module.__doc__}\nPYTEST_DONT_REWRITE"


def main(port: Port, order: Dict[str, Any]) -> None:
    """Starts pytest by what the host says of it."""
    out = os.dup(1)
    os.dup2(2, 1)
    take_compiled(order["compiled"])
    forget_other_runs()
    not_be_warned_of()
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.path[:] = order["path"]
    sys.argv[:] = [order["program"]]
    config = Config.fromdictargs(order["options"], order["arguments"])
    config.pluginmanager.register(Server(port, out), "nhmtap.server")
    sys.exit(config.hook.pytest_cmdline_main(config=config))
