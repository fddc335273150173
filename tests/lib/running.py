# SPDX-License-Identifier: GPL-2.0-only
"""Runs whose records are read as they come."""
import datetime
import json
import os
import time

from puppet import wait_asleep
from records import Result

FAULTS = ["-e", "page-faults:u"]


def reader_of(process):
    """The process that reads measured files for nhmtap; None: there is none yet."""
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as children:
        for child in children.read().split():
            with open(f"/proc/{child}/cmdline", "rb") as line:
                if line.read().startswith(b"nhmtap-worker"):
                    return int(child)
    return None


class Running:
    """A run with -I, whose records are read as they come."""

    def __init__(self, nhmtap, path, command, *arguments, interval=100, events=FAULTS, **options):
        self.nhmtap, self.path = nhmtap, path
        self.process = nhmtap.start(command, *events, "-o", path, "-I", interval, *arguments, **options)
        self.wait(lambda record: record["type"] in ("start", "error"))

    def records(self):
        said = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        return [json.loads(line) for line in said.splitlines(True) if line[-1] == "\n"]

    def wait(self, wanted, times=1):
        deadline = time.monotonic() + 240
        while len([r for r in self.records() if wanted(r)]) < times:
            assert time.monotonic() < deadline and self.process.poll() is None, self.path.read_text()
            time.sleep(0.01)

    def intervals(self, kind, times):
        """Waits for so many intervals that begin from now on, whose records are of this kind. Their times tell which they are:
        on a busy machine the records of earlier ones may still be missing."""
        now = f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%S.%f}"
        self.wait(lambda record: record["type"] == kind and record.get("part", 1) == 1 and record["start_time"] > now, times)

    def told(self, change, times=1):
        self.wait(lambda record: record["type"] == "target" and record["change"] == change, times)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def resident(self):
        """Returns its anonymous resident memory in KiB."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return int(next(line for line in file if line.startswith("RssAnon")).split()[1])

    def end(self):
        done = self.nhmtap.interrupt(self.process)
        return Result(done.status, self.path.read_text(encoding="utf-8"), done.err)


def enter(folder, pid):
    """Moves a process into a cgroup while it sleeps. If cgroups are counted at context switches,
    what a running process has caused since its CPU's last switch would be counted in the new
    cgroup."""
    wait_asleep(pid)
    with open(f"{folder}/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(pid))


OTHERS, MISSED = "(others)", "(missed)"


def missed(result, event="page-faults:u"):
    """Counts around cgroup switches that the BPF program missed, because another process on the CPU
    was inside bpf(). They may belong to any cgroup. There are none if no switch was missed."""
    counts = result.of("count", cgroup=MISSED, event=event)
    assert not counts or result.one("end")["cgroup_switches"]["missed"]
    return sum(r["value"] for r in counts)


def lost(result):
    """Samples that are in no entry, for example because another process on the CPU was inside bpf()."""
    return sum(sum(r["samples"]["lost"].values()) for r in result.of("end") if "samples" in r)


def total(result):
    return sum(r["value"] for r in result.of("count") + result.of("profile") + result.of("mem") if "value" in r)
