# SPDX-License-Identifier: GPL-2.0-only
"""Clears up after a process that was killed.

Its number in a pipe is the argument. From there come the folders to remove, each followed by a zero byte; when the
other end has closed, they are removed, unless the last word is `done`.
"""
import _signal as signal  # for nehalem.py, which says why
import os
import sys


def remove_folder(path):
    """One of nehalem.make_folder(), which may have gone."""
    try:
        for entry in os.scandir(path):
            (remove_folder if entry.is_dir(follow_symlinks=False) else os.unlink)(entry.path)
        os.rmdir(path)
    except OSError:
        pass


def wait(reader):
    """Returns the folders to remove when the other process has ended; None if there is nothing to do."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    said = b""
    while part := os.read(reader, 4096):
        said += part
    *folders, last = said.split(b"\0")
    return None if last == b"done" else folders


if __name__ == "__main__":
    for folder in wait(int(sys.argv[1])) or ():
        remove_folder(folder)
