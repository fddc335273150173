# SPDX-License-Identifier: GPL-2.0-only
"""Sessions of several activities: a CONFIG, `nhmtap run` with it, and the FIFOs of --control, by
which a test knows what the session has done. Nothing here waits for a fixed time."""
import functools
import json
import os
import select
import signal
import subprocess
import time

import callers
import jsonschema
from records import NHMTAP, Result

DAY = 86400000  # no interval of this length ends before the test does


@functools.cache
def config_schema():
    said = subprocess.run([NHMTAP, "schema", "config"], stdout=subprocess.PIPE, check=True, text=True).stdout
    return jsonschema.Draft202012Validator(json.loads(said))


def faults(name, command, **options):
    """Returns an activity that counts page faults or samples each. Its interval ends on command
    only."""
    sampling = {} if command == "stat" else {"count": 1}
    return {"name": name, "command": command, "event": "page-faults", "interval_ms": DAY, **sampling, **options}


def write(path, config):
    """Writes CONFIG to a file. A list means the activities alone."""
    text = config if isinstance(config, str) else json.dumps(
        config if isinstance(config, dict) else {"activities": config})
    path.write_text(text)
    return path


def until(there, told=lambda: ""):
    """Waits until `there` holds. `told` says what there is instead, if it never does."""
    deadline = time.monotonic() + 240
    while not there():
        assert time.monotonic() < deadline, told()
        time.sleep(0.01)


def is_blocked(pid, which):
    """Whether a process has blocked this signal."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        blocked_now = next(line.split()[1] for line in file if line.startswith("SigBlk"))
    return int(blocked_now, 16) >> which - 1 & 1


class Control:
    """The two FIFOs of --control."""

    def __init__(self, folder):
        paths = [str(folder / name) for name in ("ctl", "ack")]
        for path in paths:
            os.mkfifo(path)
        # Open for reading and writing, so that neither end waits for the other.
        self.ctl, self.ack = (os.open(path, os.O_RDWR) for path in paths)
        self.place = "fifo:" + ",".join(paths)
        self.option = "--control=" + self.place

    def send(self, text):
        os.write(self.ctl, text.encode())

    def acknowledged(self, timeout=240):
        ready, until = [], time.monotonic() + timeout
        while not ready and time.monotonic() < until and not callers.refusal():
            ready, _, _ = select.select([self.ack], [], [], min(timeout, 1))
        return os.read(self.ack, 4).decode() if ready else ""

    def do(self, command):
        self.send(command + "\n")
        assert self.acknowledged() == "ack\n"

    def close(self):
        os.close(self.ctl)
        os.close(self.ack)


class Session:
    """A running session. Use it in a with statement. Records go to its file `out`, unless CONFIG has outputs."""

    def __init__(self, nhmtap, folder, activities, *command, before=(), options=(), **members):
        self.folder, self.config, self.out = folder, folder / "config.json", folder / "out"
        self.control = Control(folder)
        self.members = {"control": self.control.place, **members}
        self.write(activities, **members)
        config_schema().validate(json.loads(self.config.read_text()))
        with open(self.out, "w") as out, open(folder / "err", "w") as err:
            self.process = subprocess.Popen(
                [*before, *nhmtap.command("run", *options, self.config, *(["--", *command] if command else []))],
                stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        self.do("ping")  # from now on it counts

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.control.close()

    def write(self, activities, **members):
        write(self.config, {"activities": activities, **self.members, **members})

    def said(self):
        return (self.folder / "err").read_text()

    def do(self, line):
        """Sends a command to --control and waits until it is acknowledged."""
        self.control.send(f"{line}\n")
        while not (said := self.control.acknowledged(timeout=1)):
            assert self.process.poll() is None, self.out.read_text() + self.said()
        assert said == "ack\n"

    def hup(self):
        """Makes it read CONFIG again, and waits until that is done."""
        self.process.send_signal(signal.SIGHUP)
        while self.is_pending(signal.SIGHUP):
            assert self.process.poll() is None, self.said()
        self.do("ping")

    def is_pending(self, which):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            pending = next(line.split()[1] for line in file if line.startswith("ShdPnd"))
        return int(pending, 16) >> which - 1 & 1

    def reload(self, activities, **members):
        self.write(activities, **members)
        self.hup()

    def text(self, path=None):
        return (path or self.out).read_text()

    def until(self, there, path=None):
        """Waits until `there` holds for the complete records so far. Returns these."""
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            text = self.text(path)
            records = [json.loads(line) for line in text[:text.rfind("\n") + 1].split("\n")[:-1]]
            if there(records):
                return records
            assert self.process.poll() is None, text + self.said()
            time.sleep(0.01)
        raise AssertionError(text + self.said())

    def wait(self, path=None):
        """Waits until the session ends by itself. Returns the result."""
        status = self.process.wait(timeout=240)
        return Result(status, self.text(path), self.said())

    def end(self, by=signal.SIGTERM, path=None):
        self.process.send_signal(by)
        return self.wait(path)


def seen(result, activity):
    """Returns the number of page faults in an activity's records."""
    return (sum(r["value"] for r in result.of("count", activity=activity)) +
            sum(r["samples"]["aggregated"] for kind in ("profile", "mem")
                for r in result.of(kind, activity=activity) if "samples" in r))
