# SPDX-License-Identifier: GPL-2.0-only
"""How the host tells the guest's pytest what to do, and how that starts. guest.py does it.

This file alone is compiled in the guest. To compile takes there a hundred times as long as here.
"""
from __future__ import annotations

import contextlib
import fcntl
import marshal
import os
import pickle
import signal
import struct
import sys
import termios
import time
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any, Dict, Iterator, List, Optional

# The ports of user/machine/src/nhm/nhm_ports.cc, as user/machine/forks.py uses them.
WORD, REQUESTS, READY, DONE = 0xCE7, range(0x4000, 0x8000), 4, 5
# What an emulator without these ports answers, which is no length of a message.
NO_PORTS = 0xFFFFFFFF
# Times that what was written may take to be passed on, each 0.1 ms, before processes that write on are ended.
PATIENCE = 100


class Port:
    """What the host says. While nothing is said, the whole machine stands still."""

    def __init__(self) -> None:
        self._fd = os.open("/dev/port", os.O_RDWR | os.O_CLOEXEC)
        self._carrier = os.getppid()

    def wait(self) -> str:
        """Returns the next message. The process that carries this one's output takes what the host sends, too, and
        is stopped meanwhile."""
        os.kill(self._carrier, signal.SIGSTOP)
        self._until_carrier_is("Tt")
        os.pwrite(self._fd, bytes([READY]), WORD)
        length, = struct.unpack("<I", self._read(4))
        message = b"" if length == NO_PORTS else self._read(length)
        os.kill(self._carrier, signal.SIGCONT)
        if length == NO_PORTS:
            sys.exit("the emulated machine is older than nhmtap's Python package")
        return message.decode()

    def end(self, *pipes: int) -> None:
        """Has the host end the machine once it has what was written to these pipes. What the kernel would do at the end of
        all processes takes longer than many a test."""
        looks = 0
        while any(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)) != bytes(4) for pipe in pipes):
            looks += 1
            if looks == PATIENCE:
                self._end_others()
            time.sleep(0.0001)
        self._until_carrier_is("S")  # it waits for more, so it has passed on what it took
        os.pwrite(self._fd, bytes([DONE]), WORD)
        self._read(1)  # never comes

    def _end_others(self) -> None:
        """Kills what the test has left behind, which may write for ever: all but this process and those that carry its output."""
        kept = {os.getpid()}
        pid = self._carrier
        while pid:
            kept.add(pid)
            pid = int(_stat(pid)[1])
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) not in kept:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(name), signal.SIGKILL)

    def _until_carrier_is(self, states: str) -> None:
        while _stat(self._carrier)[0] not in states:
            time.sleep(0.0001)

    def _read(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            data += os.pread(self._fd, min(length - len(data), len(REQUESTS)), REQUESTS.start)
        return data


def _stat(pid: int) -> List[str]:
    """Returns a process's state, its parent, and so on."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()


def unpacked(message: str) -> Any:
    """Returns what machine.packed() has made a message of."""
    return pickle.loads(bytes.fromhex(message))


@contextlib.contextmanager
def taken(compiled: Dict[str, bytes]) -> Iterator[None]:
    """Has Python take the code of these modules' files from here, as if a file had it."""
    read = SourceFileLoader.get_code

    def read_or_take(loader: SourceFileLoader, name: str) -> Optional[CodeType]:
        if loader.path not in compiled:
            return read(loader, name)
        code: CodeType = marshal.loads(compiled[loader.path])
        return code

    setattr(SourceFileLoader, "get_code", read_or_take)
    try:
        yield
    finally:
        setattr(SourceFileLoader, "get_code", read)


def begin() -> None:
    """Imports pytest, and starts it by what the host says of it."""
    import pytest  # noqa: F401  # pylint: disable=import-outside-toplevel,unused-import
    port = Port()
    order = unpacked(port.wait())
    with taken(order["modules"]):
        from nhmtap.guest import main  # pylint: disable=import-outside-toplevel
    main(port, order)
