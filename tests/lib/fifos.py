# SPDX-License-Identifier: GPL-2.0-only
"""FIFOs whose other end is opened by a program that may fail to start."""
import errno
import os
import select
import time

LONG = 60  # seconds


def open_fifo(path, mode):
    """Opens a FIFO like open(), but fails if nobody opens the other end within a minute. For
    reading, it returns when there is something to read."""
    deadline = time.monotonic() + LONG
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if mode == "r" else opened_for_writing(path, deadline)
    if mode == "r" and not select.select([fd], [], [], LONG)[0]:
        os.close(fd)
        raise AssertionError(f"nobody wrote to {path}")
    os.set_blocking(fd, True)
    return os.fdopen(fd, mode, buffering=1, encoding="ascii")


def opened_for_writing(path, deadline):
    while True:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        assert time.monotonic() < deadline, f"nobody opened {path} for reading"
        time.sleep(0.01)
