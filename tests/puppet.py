# SPDX-License-Identifier: GPL-2.0-only
"""Drives tests/programs/puppet.c."""
import subprocess
import time

from records import program


def command(*steps, workers=0):
    return [program("puppet"), *(["-w", str(workers)] if workers else []), *steps]


def touched(said):
    """Returns a function that tells whether an address lies in touch() or busy(), by its output."""
    start, stop = (int(word, 16) for word in said.splitlines()[0].split()[2:])
    return lambda ip: start <= int(ip, 16) < stop


def ids(said):
    """Returns the ID (pid or tid) of who did each step, by its output."""
    return [int(line.split()[1]) for line in said.splitlines() if line.startswith("done")]


def wait_asleep(pid):
    """Waits until the process sleeps and no CPU runs it any more. This may take long on a busy
    machine."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            asleep = file.read().rpartition(")")[2].split()[0] == "S"
        # A process is marked as asleep before the CPU switches away from it. Its system call is
        # only shown after that.
        with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
            if asleep and file.read() != "running\n":
                return
        time.sleep(0.001)


class Puppet:
    """A puppet that waits for steps. Use it in a with statement, which ends it."""

    def __init__(self, workers=0, before=(), **options):
        self.process = subprocess.Popen([*before, *command(workers=workers)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, **options)
        self.said = self.process.stdout.readline()
        self.pid = int(self.said.split()[1])
        self.touched = touched(self.said)
        # It reports that it is ready slightly before it waits for its steps.
        wait_asleep(self.pid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def do(self, step):
        """Makes it do the step. Returns the ID (pid or tid) of who did it."""
        self.process.stdin.write(step + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline().split()[1])

    def end(self):
        self.process.stdin.close()
        self.process.stdout.read()
        return self.process.wait(timeout=240)
