# SPDX-License-Identifier: GPL-2.0-only
"""Drives tests/programs/puppet.c, and other programs, step by step."""
import os
import shlex
import signal
import subprocess
import time

from records import program
from sessions import until


def command(*steps, workers=0, path=None):
    return [path or program("puppet"), *(["-w", str(workers)] if workers else []), *steps]


def touched(said):
    """Returns a function that tells whether an address lies in touch() or busy(), by its output."""
    start, stop = (int(word, 16) for word in said.splitlines()[0].split()[2:])
    return lambda ip: start <= int(ip, 16) < stop


def ids(said):
    """Returns the ID (pid or tid) of who did each step, by its output."""
    return [int(line.split()[1]) for line in said.splitlines() if line.startswith("done")]


def pinned(cpu=None):
    """The command that binds a process to one CPU; by default to the first that we may use."""
    return ["taskset", "-c", str(min(os.sched_getaffinity(0)) if cpu is None else cpu)]


def online():
    """All CPUs, which are those that `-a` measures. The tests themselves may be bound to some of them."""
    with open("/sys/devices/system/cpu/online", encoding="ascii") as file:
        parts = [part.partition("-") for part in file.read().strip().split(",")]
    return [cpu for first, _, last in parts for cpu in range(int(first), int(last or first) + 1)]


def wait_asleep(pid):
    """Waits until the process sleeps and no CPU runs it any more. This may take long on a busy
    machine."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        asleep = state_of(pid) == "S"
        # A process is marked as asleep before the CPU switches away from it. Its system call is
        # only shown after that.
        with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
            if asleep and file.read() != "running\n":
                return
        time.sleep(0.001)


def stop(pid):
    """Stops a process, and waits until each of its threads has stopped: one that runs goes on until the signal reaches it."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: {state_of(f"{pid}/task/{thread}") for thread in os.listdir(f"/proc/{pid}/task")} == {"T"})


def state_of(task):
    with open(f"/proc/{task}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


class Puppet:
    """A puppet that waits for steps. Use it in a with statement, which ends it."""

    def __init__(self, workers=0, before=(), path=None, **options):
        self.process = subprocess.Popen([*before, *command(workers=workers, path=path)], text=True,
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


def stat_of(nhmtap, steps, *options):
    """Counts a puppet while it does these steps and nothing else."""
    with Puppet() as puppet:
        process = nhmtap.attach("stat", *options, "-p", puppet.pid)
        for step in steps:
            puppet.do(step)
        return nhmtap.interrupt(process)


def profile_while_stopped(nhmtap, options, times, *words):
    """Profiles a shell on one CPU that runs a command so many times. nhmtap is stopped while the
    command runs, and then goes on until it sleeps. Returns its result."""
    with subprocess.Popen([*pinned(), "sh"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        process = nhmtap.attach("profile", *options, "-p", str(shell.pid))
        for _ in range(times):
            stop(process.pid)
            print(shlex.join(map(str, words)), "> /dev/null; echo done", file=shell.stdin, flush=True)
            assert shell.stdout.readline() == "done\n"
            process.send_signal(signal.SIGCONT)
            wait_asleep(process.pid)
        return nhmtap.interrupt(process)
