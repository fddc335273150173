# SPDX-License-Identifier: GPL-2.0-only
"""Has tests run on the emulated machine: the host's part of --nhmtap-machine; guest.py is the other one.

One machine serves the whole run, all of xdist's workers included. `nhmtap machine --forks` forks it for each test.
"""
from __future__ import annotations

import contextlib
import fcntl
import glob
import io
import json
import marshal
import os
import pathlib
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.machinery import SourceFileLoader
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple

import pytest
from _pytest.assertion import rewrite

from . import baseline, program
from .errors import Ended, Error

# What the guest's pytest does not need to know. So a test's counts do not depend on what is done with them, or on
# what else is run.
LEFT_OUT = {
    "file_or_dir", "plugins", "keyword", "markexpr", "deselect", "xmlpath", "junitprefix", "numprocesses", "maxprocesses",
    "dist", "distload", "tx", "px", "rsyncdir", "rsyncignore", "looponfail", "usepdb", "usepdb_cls", "trace", "maxfail",
    "lf", "failedfirst", "newfirst", "stepwise", "stepwise_skip", "last_failed_no_failures", "cacheclear", "durations",
    "durations_min", "pastebin", "report_log", "htmlpath", "cov_source", "collectonly", "reportchars", "log_file",
    "basetemp", "loadgroup",
}
# Of a run or of one of its workers.
VARIABLES_LEFT_OUT = ("PYTEST_XDIST_", "PYTEST_CURRENT_TEST", "COV_CORE_")
# Of the shell and the login that pytest is run from. Their lengths would change what the kernel counts.
OF_A_SHELL = {"_", "OLDPWD", "SHLVL", "SSH_AUTH_SOCK", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "WINDOWID", "XDG_SESSION_ID"}
BASETEMP = "/tmp/pytest-nhmtap-machine"  # not numbered: its length would be another one some day
WITHOUT_REFERENCES = 2  # a version of marshal, whose output does not depend on what else there is
PACKAGE = os.path.dirname(os.path.abspath(__file__))
# Removes the machine's folder when the run has ended, also if it was killed.
GUARD = "import os, shutil, sys; os.read(0, 1); shutil.rmtree(sys.argv[1], ignore_errors=True)"
PATIENCE_S = 60.0  # until there is a socket, which is made before the machine is


def marked(item: pytest.Item) -> bool:
    """Whether a test is to run on the machine."""
    return (any(item.get_closest_marker(name) for name in ("expect", "nhmtap_machine"))
            or "nhmtap" in getattr(item, "fixturenames", ()))


def options_of(words: str) -> List[str]:
    """Returns the options of nhmtap machine for MODEL,cpus=2,…"""
    options = []
    for number, word in enumerate(filter(None, words.split(","))):
        is_model = not number and "=" not in word and word != "no-snapshot"
        options.append(f"--model={word}" if is_model else f"--{word}")
    return options


class Machine:
    """The machine of a run. Workers of xdist are given the folder of the process that started them."""

    def __init__(self, config: pytest.Config, words: str, repeat: int) -> None:
        self._config, self._words, self._repeat = config, words, repeat
        self._process: Optional["subprocess.Popen[bytes]"] = None
        self._alive: Optional[int] = None
        given = getattr(config, "workerinput", {}).get("nhmtap_machine")
        if not given:
            # A name that the machine does not show, for it is another one in each run.
            given = os.path.join(tempfile.gettempdir(), f"nehalem.{os.urandom(6).hex()}")
            os.mkdir(given, 0o700)
            os.mkfifo(os.path.join(given, "alive"), 0o600)
            # The machine lives as long as this descriptor, and the folder.
            self._alive = os.open(os.path.join(given, "alive"), os.O_RDWR)
            with open(os.path.join(given, "alive"), "rb") as alive:
                self._guard = subprocess.Popen([sys.executable, "-IS", "-c", GUARD, given], stdin=alive, stdout=subprocess.DEVNULL,
                                               stderr=subprocess.DEVNULL, start_new_session=True)
        self.folder = pathlib.Path(given)
        self._socket = self.folder / "socket"
        self._compiled: Dict[pathlib.Path, bytes] = {}
        self._code_of_modules: Optional[Dict[str, bytes]] = None

    # --- its life -------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the machine, unless another worker has. It boots while tests run here."""
        with open(self.folder / "lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._socket.exists():
                self._launch()

    def prepare(self, item: pytest.Item) -> None:
        """Has the machine collect the file of this test while others run here."""
        with contextlib.suppress(Error, OSError):  # which the tests report
            self.start()
            self._send([self._order(), self._file(item.path), None]).close()

    def _launch(self) -> None:
        self._modules()  # so that the machine finds what is compiled now
        self._leave_names()
        package = os.path.dirname(PACKAGE)
        begin = (f"import sys; sys.path.insert(0, {package!r}); given = {{}}; path = {PACKAGE + '/port.py'!r}; "
                 "exec(compile(open(path, encoding='utf-8').read(), path, 'exec'), given); given['begin']()")
        command = [sys.executable, *subprocess._args_from_interpreter_flags(),  # type: ignore[attr-defined]
                   "-c", begin, *self._needed(package)]
        environment = {"PYTHONHASHSEED": "0", **_environment()}
        with open(self.folder / "alive", "rb") as alive, open(self.folder / "errors", "wb") as errors:
            self._process = subprocess.Popen(
                [program.find().path, "machine", "--root", *options_of(self._words),
                 f"--forks={self._socket}", "--", *command], cwd=self._config.invocation_params.dir,
                env=environment, stdin=alive, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)
        deadline = time.monotonic() + PATIENCE_S
        while not self._socket.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise Error(f"the emulated machine did not start: {self._errors()}")
            time.sleep(0.01)

    def _leave_names(self) -> None:
        """Makes the files that this run leaves beside the tests, so that the machine of the first run sees the names that the next
        one's does. Python lists folders where it looks for modules, and a name more moves its memory and a test's instructions."""
        config = self._config
        with contextlib.suppress(OSError), warnings.catch_warnings():  # what can't be written is told when it is
            warnings.simplefilter("ignore")
            if cache := getattr(config, "cache", None):
                cache.set("nhmtap/machine", True)
            save, report = config.getoption("nhmtap_save"), config.getoption("xmlpath", None)
            if save and not os.path.exists(save):
                baseline.save(save, {})
            if report:
                path = pathlib.Path(os.path.expanduser(os.path.expandvars(report)))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            if config.getoption("nhmtap_json"):
                pathlib.Path(config.getoption("nhmtap_json")).touch()

    def _needed(self, package: str) -> List[str]:
        """What the guest's pytest reads. It is told to the machine, which shows of /tmp only what leads to one of its
        command's words."""
        config = self._config
        paths = {package, program.find().path, sys.prefix, sys.base_prefix, str(config.rootpath), str(config.inipath or ""),
                 *sys.path, *_folders(config)}
        return sorted(path for path in paths if os.path.isabs(path))

    def _errors(self) -> str:
        with contextlib.suppress(OSError):
            return (self.folder / "errors").read_text(errors="replace").strip()[-2000:]
        return ""

    def close(self) -> None:
        """Ends the machine."""
        if self._alive is not None:
            os.close(self._alive)
            if self._process:
                self._process.wait()
            self._guard.wait()

    # --- a test ---------------------------------------------------------------------------------

    def run(self, item: pytest.Item) -> Tuple[List[pytest.TestReport], Optional[BaseException]]:
        """Runs a test there. Returns its reports, and with what it has ended the whole run."""
        self.start()
        answer = self._ask([self._order(), self._file(item.path), _own_id(item)])
        if "uncollected" in answer:
            raise Error(f"the test was not collected on the emulated machine. {answer['uncollected']}")
        for one in answer["warnings"]:
            item.config.hook.pytest_warning_recorded.call_historic(kwargs=one)
        hook = item.config.hook
        reports = [hook.pytest_report_from_serializable(config=item.config, data=data) for data in answer["reports"]]
        for report in reports:
            report.nodeid = item.nodeid
        return reports, answer["stop"]

    def _send(self, messages: Sequence[Optional[str]]) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self._socket))
            connection.sendall(json.dumps(messages).encode())
            connection.shutdown(socket.SHUT_WR)
        except BaseException:
            connection.close()
            raise
        return connection

    def _ask(self, messages: Sequence[str]) -> Dict[str, Any]:
        try:
            with self._send(messages) as connection:
                said = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        except OSError as error:
            raise Error(f"the emulated machine has ended: {self._errors() or error}") from None
        answer, _, end = said.rpartition(b"\n")
        if not end:
            raise Error(f"the emulated machine has ended: {self._errors()}")
        told = json.loads(end)
        if answer and told["status"] == 0:
            sys.stdout.write(told["errors"])  # what nothing has captured there
            return dict(pickle.loads(answer))
        raise Ended(f"the test ended on the emulated machine without a report, {_end_of(told['status'])}"
                    + (f": {errors[-4000:]}" if (errors := told["errors"].strip()) else ""))

    def _order(self) -> str:
        """What the guest's pytest starts with."""
        config = self._config
        options = {name: value for name, value in sorted(vars(config.option).items())
                   if name not in LEFT_OUT and not name.startswith("nhmtap_") and _can_be_told(value)}
        options.update(rootdir=str(config.rootpath), basetemp=BASETEMP, pyargs=False, nhmtap_on_machine=True,
                       nhmtap_strict=config.getoption("nhmtap_strict"), inifilename=str(config.inipath or "") or None,
                       nhmtap_repeat=self._repeat)
        arguments = [word for plugin in config.option.plugins for word in ("-p", plugin)]
        first = [config.rootpath, config.invocation_params.dir, *map(pathlib.Path, _folders(config))]
        order = {"modules": self._modules(), "environment": _environment(), "path": sys.path, "program": _program(config), "options": options,
                 "arguments": arguments + _folders(config), "compiled": self._compile([folder / "conftest.py" for folder in first])}
        return packed(order)

    def _file(self, path: pathlib.Path) -> str:
        """What the guest's pytest is to collect."""
        below_root = (folder for folder in path.parents if self._config.rootpath in folder.parents)
        return packed((str(path), self._compile([path, *(folder / "conftest.py" for folder in below_root)])))

    def _modules(self) -> Dict[str, bytes]:
        """The code of the package's modules that Python does not keep compiled."""
        if self._code_of_modules is None:
            paths = sorted(glob.glob(glob.escape(PACKAGE) + "/*.py"))
            self._code_of_modules = {path: code for path in paths if (code := _code_of_module(path))}
        return self._code_of_modules

    def _compile(self, paths: Sequence[pathlib.Path]) -> Dict[str, bytes]:
        """The code of those of the files that pytest would compile, because Python writes no compiled files."""
        for path in paths:
            if path not in self._compiled:
                self._compiled[path] = _compiled(path, self._config)
        return {str(path): self._compiled[path] for path in paths if self._compiled[path]}


def _end_of(status: int) -> str:
    """A shell's status in words."""
    try:
        return f"by the signal {signal.Signals(status - 128).name}"
    except ValueError:
        return f"with status {status}"


def _compiled(path: pathlib.Path, config: pytest.Config) -> bytes:
    """The code of a file with pytest's own assertions; empty if a file has it already, or it can't be told."""
    if config.getoption("assertmode") != "rewrite" or path.suffix != ".py" or not path.is_file():
        return b""
    try:
        if rewrite._read_pyc(path, rewrite.get_cache_dir(path) / (path.stem + rewrite.PYC_TAIL)):
            return b""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were shown when pytest here compiled it
            return marshal.dumps(rewrite._rewrite_test(path, config)[1])
    except Exception:  # pylint: disable=broad-except
        return b""  # no Python, which the guest reports, or another pytest's functions


class _KeptCompiled(SourceFileLoader):
    """Finds what is kept compiled, and compiles nothing."""

    def source_to_code(self, *_: Any, **__: Any) -> NoReturn:  # type: ignore[override]
        raise LookupError


def _code_of_module(path: str) -> bytes:
    """The code of a module; empty if Python keeps it compiled, or does so from now on."""
    code = SourceFileLoader("module", path).get_code("module")
    try:
        _KeptCompiled("module", path).get_code("module")
    except LookupError:
        return marshal.dumps(code, WITHOUT_REFERENCES)
    return b""


def packed(value: Any) -> str:
    """Makes a message of it; the guest has unpacked()."""
    return _told(value).hex()


def _told(value: Any) -> bytes:
    """Without references to what came before, which depend on where a value comes from."""
    told = io.BytesIO()
    pickler = pickle.Pickler(told, protocol=4)
    pickler.fast = True
    pickler.dump(value)
    return told.getvalue()


def _environment() -> Dict[str, str]:
    return {name: value for name, value in sorted(os.environ.items())
            if name not in OF_A_SHELL and not name.startswith(VARIABLES_LEFT_OUT)}


def _program(config: pytest.Config) -> str:
    """The name of pytest; a worker of xdist has that of the process that started it."""
    return str(getattr(config, "workerinput", {}).get("mainargv", sys.argv)[0])


def _folders(config: pytest.Config) -> List[str]:
    """The folders of what is run, whose conftest.py may have options."""
    here = config.invocation_params.dir
    paths = [here / argument.split("::")[0] for argument in config.option.file_or_dir]
    folders = {str(path if path.is_dir() else path.parent) for path in paths if path.exists()}
    return sorted(folders - {str(here)})


def _own_id(item: pytest.Item) -> str:
    """A test's id without the group that xdist adds."""
    grouped = getattr(item.config.option, "loadgroup", False) and item.get_closest_marker("xdist_group")
    return item.nodeid.rpartition("@")[0] if grouped else item.nodeid


def _can_be_told(value: Any) -> bool:
    try:
        _told(value)
    except Exception:  # pylint: disable=broad-except
        return False
    return True
