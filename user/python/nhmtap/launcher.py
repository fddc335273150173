# SPDX-License-Identifier: GPL-2.0-only
"""Starts nhmtap for measure(). Run as a script, with the number of a socket.

The children of a measured process inherit its events. This process is started before the first
measurement, so it and its children are not counted. A measurement therefore does not count the
nhmtap of another one within it.

Each message is JSON, {"argv": …, "cwd": …}, with four descriptors: control, acknowledgements, stdout,
stderr. The answer is the new process's pid, or an error message.
"""
import json
import os
import socket
import subprocess
import sys
from typing import Any, Dict, List


def launch(request: Dict[str, Any], fds: List[int]) -> "subprocess.Popen[bytes]":
    """Starts a process and returns it."""
    argv = [word.replace("CTL,ACK", f"{fds[0]},{fds[1]}") for word in request["argv"]]
    return subprocess.Popen(argv, cwd=request["cwd"], stdin=subprocess.DEVNULL, stdout=fds[2],
                            stderr=fds[3], pass_fds=fds[:2])


def main() -> None:
    """Serves until the other end of the socket is closed."""
    # If the caller has closed stdout or stderr, a descriptor that is received must not get its number.
    while os.open(os.devnull, os.O_RDWR) < 3:
        pass
    ours = socket.socket(fileno=int(sys.argv[1]))
    running: List["subprocess.Popen[bytes]"] = []
    while True:
        message, fds, _, _ = socket.recv_fds(ours, 1 << 17, 4)
        if not message:
            return
        running = [process for process in running if process.poll() is None]
        try:
            running.append(launch(json.loads(message), fds))
            answer = str(running[-1].pid)
        except OSError as error:
            answer = str(error)
        for fd in fds:
            os.close(fd)
        try:
            ours.send(answer.encode())
        except BrokenPipeError:  # the caller was interrupted, and has started another launcher
            return


if __name__ == "__main__":
    main()
