# SPDX-License-Identifier: GPL-2.0-only
"""Starts nhmtap for measure(). Run as a script, with the number of a socket.

A process that is measured hands its events down to whatever it starts. This process is started
before the first measurement, so what it starts in turn is counted by none: a measurement that is
made within another does not count the other's nhmtap.

Each message is JSON, {"argv": …, "cwd": …}, with four descriptors: control, acknowledgements, stdout,
stderr. The answer is the process's number, or why there is none.
"""
import json
import os
import socket
import subprocess
import sys
from typing import Any, Dict, List


def launch(request: Dict[str, Any], fds: List[int]) -> "subprocess.Popen[bytes]":
    """Returns the process that was started."""
    argv = [word.replace("CTL,ACK", f"{fds[0]},{fds[1]}") for word in request["argv"]]
    return subprocess.Popen(argv, cwd=request["cwd"], stdin=subprocess.DEVNULL, stdout=fds[2],
                            stderr=fds[3], pass_fds=fds[:2])


def main() -> None:
    """Serves until the other end of the socket is closed."""
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
        ours.send(answer.encode())


if __name__ == "__main__":
    main()
