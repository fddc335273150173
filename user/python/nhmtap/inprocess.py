# SPDX-License-Identifier: GPL-2.0-only
"""Measures a block of the process's own code.

The program does the counting, controlled by --control, instead of perf_event_open() in this module.
Groups, bounds of estimates and metrics are therefore the same as everywhere else, for existing
threads as well as for new ones. The cost is a context switch and some instructions per block, which
empty_block() measures.
"""
from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import select
import socket
import subprocess
import sys
import threading
import weakref
# Imported by name, because a test may replace those of os and restore them only after a block's
# end.
from os import close, fstat, getpid, read, write
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from . import program as programs
from .errors import Ended, Error, Refused
from .measured import Measured, Record, over_repeats
from .runs import Counts, Profile, values_of

# An acknowledgement that is this late does not mean a busy machine, but a hang.
PATIENCE_MS = 120_000
# Sessions that are kept for a next block, because starting one takes longer than most blocks.
IDLE_MOST = 4
EMPTY_BLOCKS = 5


def _above_streams(fd: int) -> int:
    """Returns the descriptor with a number above those of stdin, stdout and stderr, which may be closed
    in this process, and are others in nhmtap."""
    if fd > 2:
        return fd
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    finally:
        close(fd)


def _identity(fd: int) -> Optional[Tuple[int, int]]:
    """Identifies the file behind a descriptor; None: it is closed. The caller's code may close all
    descriptors (as a daemon does) and get the same numbers for its own files."""
    try:
        found = fstat(fd)
    except OSError:
        return None
    return found.st_dev, found.st_ino


class _Launcher:
    """The process that starts nhmtap (launcher.py)."""

    def __init__(self) -> None:
        ends = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket, theirs = (socket.socket(fileno=_above_streams(end.detach())) for end in ends)
        self._file = _identity(self._socket.fileno())
        with theirs:
            script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launcher.py")
            self._process = subprocess.Popen(
                [sys.executable or "python3", "-I", "-S", script, str(theirs.fileno())],
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True)

    def usable(self) -> bool:
        """Whether it is running, and the socket is still its."""
        return _identity(self._socket.fileno()) == self._file and self._process.poll() is None

    def launch(self, argv: Sequence[str], fds: Sequence[int]) -> int:
        """Starts a program and returns its pid."""
        try:
            cwd: Optional[str] = os.getcwd()
        except OSError:  # the directory has been removed
            cwd = None
        request = json.dumps({"argv": list(argv), "cwd": cwd}).encode()
        try:
            socket.send_fds(self._socket, [request], list(fds))
            answer = self._socket.recv(4096).decode()
        except OSError as error:
            answer = str(error)
        except BaseException:  # its answer, which is to come, would be taken for that to a later request
            self.close()
            raise
        if not answer.isdigit():
            raise Error(f"{argv[0]} could not be started: {answer or 'its launcher has ended'}")
        return int(answer)

    def close(self) -> None:
        """Closes the socket, unless its number belongs to another file by now."""
        if self._socket.fileno() >= 0 and _identity(self._socket.fileno()) != self._file:
            self._socket.detach()
        self._socket.close()

    def end(self) -> None:
        """Ends the launcher and waits for it."""
        self.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # something else holds the socket's other end
            self._process.kill()
            self._process.wait()


class Session:
    """An nhmtap that measures this process, and counts only between enable() and disable(). .pid is
    the pid of that nhmtap."""

    def __init__(self, arguments: Sequence[str], program: Optional[str] = None) -> None:
        __tracebackhide__ = True
        self._fds: Dict[int, Optional[Tuple[int, int]]] = {}
        self._owner = getpid()
        _sessions.add(self)
        path = programs.find(program).path
        control, self._control = self._pipe()
        self._acknowledged, acknowledge = self._pipe()
        self._out, out = self._pipe()
        self._err, err = self._pipe()
        theirs = (control, acknowledge, out, err)
        try:
            self.pid = _launcher().launch(
                [path, *arguments, "--format", "json", "--delay", "-1",
                 "--control=fd:CTL,ACK", "-p", str(getpid())], theirs)
        except BaseException:
            self.close()
            raise
        finally:
            for fd in theirs:
                if self._fds.pop(fd, None):
                    close(fd)
        self._ready = select.poll()
        self._ready.register(self._acknowledged, select.POLLIN)
        self._written = select.poll()
        self._written.register(self._out, select.POLLIN)
        self._text = ""
        self.start: List[Record] = []
        try:
            self._do(b"ping\n")
        except BaseException:
            self.close()
            raise

    def __del__(self) -> None:
        """Ends what an exception, such as KeyboardInterrupt, has left between two statements."""
        with contextlib.suppress(Exception):
            if self._owner == getpid():
                self.close()

    def _pipe(self) -> Tuple[int, int]:
        first, second = map(_above_streams, os.pipe())
        self._fds.update({fd: _identity(fd) for fd in (first, second)})
        return first, second

    def usable(self) -> bool:
        """Whether nhmtap is running, as far as its descriptors tell."""
        return self._intact() and not self._ready.poll(0)

    def _intact(self) -> bool:
        return bool(self._fds) and all(_identity(fd) == file for fd, file in self._fds.items())

    def _check(self) -> None:
        __tracebackhide__ = True
        if not self._intact():
            self.close()
            raise Ended("the descriptors of nhmtap were closed while it measured. Next: let the block close "
                        "its own descriptors only")

    def _do(self, command: bytes) -> None:
        __tracebackhide__ = True
        self._check()
        with contextlib.suppress(BrokenPipeError):  # it has died, which is found below as well
            write(self._control, command)
        if not self._ready.poll(PATIENCE_MS):
            self.close()
            raise Ended(f"nhmtap has not answered for {PATIENCE_MS // 1000} seconds")
        if not read(self._acknowledged, 4):
            self._dead()

    def enable(self) -> None:
        """Starts counting. Older counts are dropped."""
        __tracebackhide__ = True
        self._do(b"snapshot\n")
        self._read(lambda _: False, wait=False)
        self._do(b"enable\n")

    def disable(self) -> None:
        """Stops counting."""
        __tracebackhide__ = True
        self._do(b"disable\n")

    def counts(self, events: int, metrics: int) -> List[Record]:
        """Returns the records of the interval since enable(), with so many events and metrics."""
        __tracebackhide__ = True
        self._do(b"snapshot\n")

        def whole(records: List[Record]) -> bool:
            types = [r["type"] for r in records if r.get("part", 1) == r.get("parts", 1)]
            return types.count("count") >= events and types.count("metric") >= metrics
        return self._read(whole)

    def finish(self) -> List[Record]:
        """Ends the session and returns the records that were not read yet."""
        __tracebackhide__ = True
        self._check()
        write(self._control, b"stop\n")
        records = self._read(lambda _: False, until_end=True)
        self.close()
        return records

    def _read(self, enough: Any, wait: bool = True, until_end: bool = False) -> List[Record]:
        """Returns all records that are in the pipe. Waits for more if these are not enough."""
        __tracebackhide__ = True
        records: List[Record] = []
        while True:
            block = wait and not enough(records)
            if not self._written.poll(PATIENCE_MS if block else 0):
                if not block:
                    break
                self.close()
                raise Ended("nhmtap acknowledged a command, but wrote no records")
            chunk = read(self._out, 1 << 16)
            if not chunk:
                if until_end:
                    break
                self._dead(records)
            lines = (self._text + chunk.decode(errors="surrogateescape")).split("\n")
            self._text = lines.pop()
            records += map(json.loads, lines)
        self.start += [r for r in records if r["type"] == "start"]
        return [r for r in records if r["type"] != "start"]

    def _dead(self, records: Sequence[Record] = ()) -> None:
        """Raises the error that nhmtap reported before it ended."""
        __tracebackhide__ = True
        try:
            text = self._text + _drain(self._out)
            said = _drain(self._err).strip()
        finally:
            self.close()
        programs.refuse_errors([*records, *programs.parse(text)[0]])
        raise Ended(f"nhmtap ended while it measured{': ' + said[-500:] if said else ''}")

    def close(self) -> None:
        """Ends nhmtap, if it is still running."""
        control = getattr(self, "_control", -1)
        if control in self._fds and _identity(control) == self._fds[control]:
            try:
                write(control, b"stop\n")
            except OSError:
                pass  # it has ended before
        self.forget()

    def forget(self) -> None:
        """Only closes the descriptors. In a child process, nhmtap belongs to the parent."""
        fds, self._fds = self._fds, {}
        for fd, file in fds.items():
            if _identity(fd) == file:
                close(fd)


def _drain(fd: int) -> str:
    chunks = []
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while poll.poll(1000):
        chunk = read(fd, 1 << 16)
        if not chunk:
            break
        chunks.append(chunk)
    return b"".join(chunks).decode(errors="surrogateescape")


Key = Tuple[str, ...]
_lock = threading.RLock()
_idle: List[Tuple[Key, Session]] = []
_sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()
_the_launcher: Optional[_Launcher] = None
_empty: Dict[Tuple[str, ...], Dict[str, Measured]] = {}


def _launcher() -> _Launcher:
    global _the_launcher
    with _lock:
        if _the_launcher and not _the_launcher.usable():
            _the_launcher.end()
            _the_launcher = None
        if not _the_launcher:
            _the_launcher = _Launcher()
        return _the_launcher


def _take(key: Key, program: Optional[str]) -> Session:
    __tracebackhide__ = True
    with _lock:
        for known in [one for one in _idle if one[0] == key]:
            _idle.remove(known)
            if known[1].usable():
                return known[1]
            known[1].close()
    return Session(key[1:], program)


def _give_back(key: Key, session: Session) -> None:
    with _lock:
        _idle.append((key, session))
        too_many = _idle[:-IDLE_MOST]
        del _idle[:-IDLE_MOST]
    for _, old in too_many:
        old.close()


def close_sessions() -> None:
    """Ends every nhmtap that is kept for a next block, and the process that starts them. This is
    done at exit as well."""
    global _the_launcher
    with _lock:
        idle, launcher = _idle[:], _the_launcher
        _idle.clear()
        _the_launcher = None
    for _, session in idle:
        session.close()
    if launcher:
        launcher.end()


def _forget_in_child() -> None:
    """Drops the parent's sessions in a forked child, because they measure the parent."""
    global _the_launcher, _lock
    _lock = threading.RLock()
    for session in list(_sessions):
        session.forget()
    _idle.clear()
    if _the_launcher:
        _the_launcher.close()
    _the_launcher = None


atexit.register(close_sessions)
os.register_at_fork(after_in_child=_forget_in_child)


class Measurement(Counts):
    """Counts of a block of this process: see measure(). If it is entered several times, they are
    those of the last time."""

    def __init__(self, names: Sequence[str], options: Sequence[Any], program: Optional[str]) -> None:
        __tracebackhide__ = True
        Counts.__init__(self, [])
        if not names:
            raise ValueError("there is nothing to measure: name events or metrics")
        found = programs.find(program)
        unique = list(dict.fromkeys(names))
        tables = [f"--events-dir={folder}"
                  for folder in values_of([str(o) for o in options], "--events-dir")]
        metrics = [name for name in unique if programs.names_metric(name, found, tables)]
        events = [name for name in unique if name not in metrics]
        self._program, self._numbers = program, (len(events), len(metrics))
        arguments = ["stat", *(["-e", ",".join(events)] if events else []),
                     *(["-M", ",".join(metrics)] if metrics else []), *map(str, options)]
        self._key: Key = (found.path, *arguments)
        self._session: Optional[Session] = None
        self._owner = getpid()

    def __enter__(self) -> "Measurement":
        __tracebackhide__ = True
        if self._session:
            raise Error("this block is being measured already. Next: use another measure() within it")
        session = _take(self._key, self._program)
        self._owner = getpid()
        self._session = session
        try:
            session.enable()
        except BaseException:
            self._session = None
            session.close()
            raise
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        __tracebackhide__ = True
        session, self._session = self._session, None
        if not session or getpid() != self._owner:
            return  # a child that was forked in the block leaves the block
        try:
            session.disable()
            records = session.counts(*self._numbers)
        except Error:
            session.close()
            if kind is None:
                raise
            return  # the block's own exception tells more
        except BaseException:
            session.close()
            raise
        Counts.__init__(self, [*session.start, *records])
        _give_back(self._key, session)

    def empty_block(self) -> Dict[str, Measured]:
        """Returns what an empty block counts, by name: the overhead that each count includes. It is
        not subtracted. It is measured once for each set of names."""
        __tracebackhide__ = True
        if self._key not in _empty:
            empty = Measurement.__new__(Measurement)
            empty.__dict__.update(self.__dict__, _session=None)
            blocks = []
            for _ in range(EMPTY_BLOCKS):
                with empty:
                    pass
                blocks.append({name: empty.all(name) for name in empty})
            _empty[self._key] = {name: over_repeats([m for b in blocks for m in b[name]])
                                 for name in blocks[0]}
        return _empty[self._key]


def measure(*names: str, options: Sequence[Any] = (), program: Optional[str] = None) -> Measurement:
    """Measures a block of this process, with all threads and the processes that are started in it.

        with nhmtap.measure("instructions:u", "page-faults", "ipc") as m:
            work()
        assert m["page-faults"] < 1000

    The names are events and metrics. Blocks may be nested; each counts what happens in it. Raises
    Refused for what this machine can't count, and Ended if nhmtap dies. options: more options of
    nhmtap stat; program: see find().
    """
    __tracebackhide__ = True
    return Measurement(names, options, program)


def warm(sets: Iterable[Sequence[str]]) -> None:
    """Makes ready what measures blocks with these sets of names, as far as they can be measured."""
    global IDLE_MOST
    sets = list(sets)
    IDLE_MOST = max(IDLE_MOST, len(sets))
    _launcher()
    for names in sets:
        with contextlib.suppress(Error):
            one = measure(*names)
            with one:
                pass
            one.empty_block()


def profile_block(block: Any, program: Optional[str] = None) -> Tuple[Profile, List[Record]]:
    """Calls block() under nhmtap profile -g. Returns its functions' shares and all records, which
    are the input for `nhmtap flamegraph`. Exceptions of block() are ignored."""
    __tracebackhide__ = True
    session = Session(["profile", "-g", "--by", "symbol,comm"], program)
    session.enable()
    try:
        block()
    except Exception:  # pylint: disable=broad-except
        pass
    finally:
        session.disable()
        records = [*session.start, *session.finish()]
    done = programs.Done(flat(records), 0, None, None)
    return Profile(done), records


def _which(record: Record) -> Tuple[Any, ...]:
    return record.get("event"), record.get("nth"), record.get("start_time")


def flat(records: Sequence[Record]) -> List[Record]:
    """Converts profile records with stacks to records without: each entry has its innermost
    function."""
    frames: Dict[Tuple[Any, ...], Any] = {}
    result = []
    for record in records:
        if record["type"] == "frames":
            for frame in record["frames"]:
                frames[(*_which(record), frame["id"])] = frame
        if record["type"] == "profile":
            where = _which(record)
            entries = [{**entry, "code": frames.get((*where, *entry.get("stack", [None])[:1]), {})}
                       for entry in record["entries"]]
            record = {**record, "entries": entries}
        result.append(record)
    return result


__all__ = ["Measurement", "Refused", "close_sessions", "measure"]
