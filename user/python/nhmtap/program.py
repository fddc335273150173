# SPDX-License-Identifier: GPL-2.0-only
"""Finds the program nhmtap, and runs it."""
from __future__ import annotations

import contextlib
import functools
import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
from typing import Any, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .errors import Ended, Error, Refused, Timeout
from .measured import Record
from .version import __version__

# Seconds between SIGTERM and SIGKILL after a timeout.
GRACE_S = 5.0


class Program(NamedTuple):
    """The program nhmtap: its path, where that comes from (the caller, NHMTAP, the package's place,
    the source tree, or PATH), and its version."""

    path: str
    origin: str
    version: str


def _candidates(program: Optional[str]) -> Iterator[Tuple[str, str]]:
    if program:
        yield program, "the caller"
        return
    if os.environ.get("NHMTAP"):
        yield os.environ["NHMTAP"], "NHMTAP"
        return
    # PREFIX/lib/python3.N/site-packages/nhmtap: the program is in PREFIX/bin, for a virtual
    # environment as well. In a source tree it is in build/.
    package = pathlib.Path(__file__).resolve().parent
    for prefix in package.parents:
        if package.relative_to(prefix).parts[0].startswith("lib"):
            yield str(prefix / "bin" / "nhmtap"), "beside the package"
    yield str(package.parents[2] / "build" / "nhmtap"), "the source tree"
    yield "nhmtap", "PATH"


@functools.lru_cache(maxsize=None)
def _version(path: str, _changed: Tuple[int, int]) -> str:
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError) as error:
        raise Error(f"{path} does not tell its version: {error}") from None
    if len(said) != 2 or said[0] != "nhmtap":
        raise Error(f"{path} does not tell its version: it says {' '.join(said)!r}")
    return said[1]


def find(program: Optional[str] = None) -> Program:
    """Returns the program that this package runs: `program` if given, else $NHMTAP, else the one
    installed with the package or built in its source tree, else the one in PATH. Raises Error if
    there is none, or if its major version differs from the package's."""
    __tracebackhide__ = True
    for name, origin in _candidates(program):
        path = shutil.which(name)
        if path:
            break
        if origin in ("NHMTAP", "the caller"):
            raise Error(f"there is no program {name} (from {origin})")
    else:
        raise Error("there is no program nhmtap: neither beside this package nor in PATH. Next: make "
                    "install, or set NHMTAP to its path")
    path = os.path.abspath(path)
    stat = os.stat(path)
    version = _version(path, (stat.st_mtime_ns, stat.st_size))
    if version.split(".")[0] != __version__.split(".")[0]:
        raise Error(f"{path} is version {version}, this package is for version "
                    f"{__version__.split('.')[0]}.x. Next: install both from one release, or set NHMTAP")
    return Program(path, origin, version)


@functools.lru_cache(maxsize=None)
def _metrics(program: Program, options: Tuple[str, ...]) -> FrozenSet[str]:
    listed = subprocess.run([program.path, "list", *options, "metrics", "--json"],
                            capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                            check=False).stdout
    records = [json.loads(line) for line in listed.splitlines()]
    return frozenset(record["name"].lower() for record in records
                     if str(record.get("section", "")).startswith("metrics"))


def names_metric(name: str, program: Program, options: Sequence[str] = ()) -> bool:
    """Whether the program takes this as the name of a metric ("ipc:u" is one of user mode), by the
    rule of --expect. options: --events-dir for other tables."""
    return name.split(":")[0].strip().lower() in _metrics(program, tuple(options))


class Done(NamedTuple):
    """A run of the program: its records, its exit status, and the command's output if it was
    captured."""

    records: List[Record]
    status: int
    stdout: Any
    stderr: Any


def parse(text: str) -> Tuple[List[Record], bool]:
    """Returns the records of a stream, and whether it is complete. Unknown members are kept."""
    lines = text.split("\n")
    records = []
    for line in lines[:-1]:
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            return records, False
    return records, not lines[-1] and bool(records) and records[-1].get("type") == "end"


def refuse_errors(records: Sequence[Record]) -> None:
    """Raises Refused if there is an error record."""
    __tracebackhide__ = True
    for record in records:
        if record.get("type") == "error":
            raise Refused(record)


def _descendants(pid: int) -> List[int]:
    """Returns the running children of a process, their children, and so on."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(path, encoding="ascii") as file:
            for child in map(int, file.read().split()):
                found += [child, *_descendants(child)]
    return found


@contextlib.contextmanager
def _handlers_later() -> Iterator[None]:
    """Calls Python's signal handlers at the end of the block. One that raises, as SIGINT's does, after
    a process was made and before its pid is stored would leave a process that nobody ends."""
    if threading.current_thread() is not threading.main_thread():  # handlers run in the main thread
        yield
        return
    came: List[int] = []
    handlers = {number: handler for number in signal.valid_signals() if callable(handler := signal.getsignal(number))}
    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


class _Process(subprocess.Popen):  # type: ignore[type-arg]
    """The program with its command. Both are also ended if an exception, such as KeyboardInterrupt,
    comes while they are started."""

    def __init__(self, argv: Sequence[Any], start_new_session: Any, **options: Any) -> None:
        self._own_group = bool(start_new_session)
        try:
            with _handlers_later():
                super().__init__(argv, start_new_session=self._own_group, **options)
        except BaseException as error:
            if getattr(self, "pid", None) and self.returncode is None:
                self.end(None if isinstance(error, KeyboardInterrupt) else GRACE_S)
            raise

    def end(self, grace_s: Optional[float] = GRACE_S) -> None:
        """Terminates the program and its command, and kills what is still running after grace_s. None:
        waits until both have ended by themselves. An exception, such as a second KeyboardInterrupt, ends
        the wait."""
        left = []
        for pid in _descendants(self.pid):  # a pidfd is safe if a pid is reused
            with contextlib.suppress(OSError):
                left.append(os.pidfd_open(pid))
        try:
            with contextlib.suppress(subprocess.TimeoutExpired, OSError, ValueError):
                self.terminate()
                self.communicate(timeout=grace_s)
        finally:
            self._kill(left)

    def _kill(self, left: Sequence[int]) -> None:
        if self._own_group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
        self.kill()
        self.wait()
        for pidfd in left:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()


def run(arguments: Sequence[str], command: Sequence[Any], *, program: Optional[str] = None,
        timeout: Optional[float] = None, input: Any = None, capture_output: bool = False,
        **popen: Any) -> Done:
    """Runs the program with these arguments and a command. It has a session of its own, so that no
    process of it is left after a timeout or an exception."""
    __tracebackhide__ = True
    options: Dict[str, Any] = {"start_new_session": True, **popen}
    options.pop("check", None)
    if capture_output:
        options.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if input is not None:
        options["stdin"] = subprocess.PIPE
    path = find(program).path
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", errors="surrogateescape",
                                     suffix=".jsonl") as out:
        process = _Process([path, *arguments, "--format", "json", "-o", out.name, "--",
                            *map(os.fspath, map(_text, command))], **options)
        try:
            stdout, stderr = process.communicate(input, timeout)
        except subprocess.TimeoutExpired as expired:
            process.end()
            raise Timeout(expired) from None
        except KeyboardInterrupt:
            process.end(None)
            raise
        except BaseException:
            process.end()
            raise
        records, whole = parse(out.read())
    refuse_errors(records)
    if not whole:
        status = process.returncode
        if status < 0:
            process.end()
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        said = f": {str(stderr).strip()[-500:]}" if stderr else ""
        raise Ended(f"nhmtap {how} before it had written all of its records{said}")
    return Done(records, process.returncode, stdout, stderr)


def _text(word: Any) -> Any:
    return word if isinstance(word, (str, bytes, os.PathLike)) else str(word)
