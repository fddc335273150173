# SPDX-License-Identifier: GPL-2.0-only
"""Short sessions to which everything happens that a seed chooses: processes come and go, calls fail, the clock is
set, readers stop or go away, CONFIG changes and is read again. Each step ends before the next begins, so a seed does
the same each time.

What must hold: activities that see the same page faults account for the same number; it is the number that was made,
where that is exact; every record is valid and each stream whole; nothing is left behind.
"""
import contextlib
import os
import random
import signal
import socket
import struct
import time

import cgroups
from puppet import Puppet
from records import check_stream, parse
from sessions import Session
from soak import accounted

TWINS = ("counts", "samples", "places")
STEPS = 12
QUEUE = 65536  # the least that an output's queue may have


def keys(rng, names):
    return ",".join(rng.sample(names, rng.randint(1, 3)))


class Seeded:
    def __init__(self, nhmtap, folder, seed, shims):
        self.rng, self.folder, self.nhmtap = random.Random(seed), folder, nhmtap
        self.made, self.exact = 0, True  # page faults; whether there are no others
        self.stack = contextlib.ExitStack()
        self.shims = shims
        self.readers, self.parts = {}, [folder / "all"]
        self.rotated = 0

    # --- what is asked for ---------------------------------------------------------------------------

    def activities(self):
        rng, of = self.rng, {"event": "page-faults", "cgroup": "/" + os.path.basename(self.cgroup), "all_cpus": True}
        interval = {name: rng.choice((20, 50, 100, 86400000)) for name in TWINS}
        stacks = rng.random() < 0.3
        listed = [
            {"name": "counts", "command": "stat", "interval_ms": interval["counts"], **of},
            {"name": "samples", "command": "profile", "interval_ms": interval["samples"], "count": 1,
             "by": "comm,stack" if stacks else keys(rng, ["comm", "symbol", "module", "place", "ip", "pid", "tid", "cpu", "cgroup", "line"]),
             **({"call_graph": True} if stacks else {}), **({"top": rng.randint(1, 5)} if rng.random() < 0.3 else {}), **of},
            {"name": "places", "command": "mem", "interval_ms": interval["places"], "count": 1,
             "by": keys(rng, ["ip", "pid", "tid", "cpu", "page", "cacheline", "symbol", "comm"]), **of},
        ]
        if rng.random() < 0.3:
            listed.append({"name": "noise", "command": "profile", "event": "cpu-clock", "freq": 99, "by": "comm", "all_cpus": True,
                           "interval_ms": rng.choice((30, 70))})
        rng.shuffle(listed)
        return listed

    def outputs(self):
        made = {"all": {"path": str(self.folder / "all")}}
        for name in self.rng.sample(["fifo", "full", "flat", "socket"], self.rng.randint(0, 2)):
            made[name] = getattr(self, "output_" + name)()
        return made

    def output_fifo(self):
        os.mkfifo(self.folder / "fifo")
        # Open for reading and writing, so that neither end waits for the other.
        self.readers["fifo"] = os.open(self.folder / "fifo", os.O_RDWR | os.O_NONBLOCK)
        return {"path": str(self.folder / "fifo"), "queue_bytes": QUEUE}

    def output_full(self):
        return {"path": "/dev/full", "queue_bytes": QUEUE}

    def output_flat(self):
        return {"path": str(self.folder / "flat"), "format": "flat"}

    def output_socket(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.stack.callback(listener.close)
        listener.settimeout(60)
        self.listener = listener
        return {"path": "tcp:127.0.0.1:%d" % listener.getsockname()[1], "queue_bytes": QUEUE}

    # --- steps ---------------------------------------------------------------------------------------

    def faults(self):
        number = self.rng.choice((1, 7, 100, 1000, 20000))
        self.puppet.do(f"faults={number}")
        self.made += number

    def worker_faults(self):
        number = self.rng.randint(1, 500)
        self.puppet.do(f"worker={self.rng.randrange(2)},{number}")
        self.made += number

    def processes_come_and_go(self):
        number, times = self.rng.randint(1, 50), self.rng.randint(1, 10)
        for _ in range(times):
            self.puppet.do(f"{self.rng.choice(('fork', 'thread'))}={number}")
        self.made += number * times
        self.exact = False  # each takes some of its own

    def name_changes(self):
        self.puppet.do("name=" + bytes(self.rng.choice(b'ab"\\\n\xff\x01 ') for _ in range(self.rng.randint(1, 15))).hex())

    def clock_is_set(self):
        (self.folder / "step.new").write_text(str(self.rng.randrange(-10**12, 10**12)))
        os.rename(self.folder / "step.new", self.folder / "step")

    def calls_fail(self):
        self.fail(self.rng.randrange(1, 1 << 60))

    def no_call_fails(self):
        self.fail(0)

    def fail(self, seed):
        with open(self.folder / "fail", "r+b") as file:
            file.write(struct.pack("=Q", seed))

    def snapshot(self):
        self.session.do("snapshot")

    def config_is_read_again(self):
        self.session.hup()

    def config_changes(self):
        self.config = self.activities()
        self.session.reload(self.config)

    def config_is_broken(self):
        self.session.config.write_text(self.rng.choice(("{", "[]", '{"activities": [{"command": "stat", "event": "none-of-these"}]}')))
        self.session.hup()
        self.session.write(self.config)

    def reader_reads(self):
        for fd in self.readers.values():
            with contextlib.suppress(BlockingIOError):
                while os.read(fd, 1 << 16):
                    pass

    def reader_goes_away(self):
        for name in list(self.readers):
            os.close(self.readers.pop(name))

    def connection_is_cut(self):
        if self.listener:
            connection, _ = self.listener.accept()
            connection.close()
            self.listener.close()
            self.listener = None

    def files_are_rotated(self):
        self.rotated += 1
        os.rename(self.folder / "all", self.folder / f"all.{self.rotated}")
        self.parts.insert(-1, self.folder / f"all.{self.rotated}")
        self.session.hup()

    def other_files_are_cut(self):
        if (self.folder / "flat").exists():
            os.truncate(self.folder / "flat", 0)

    def time_passes(self):
        time.sleep(self.rng.uniform(0, 0.03))

    def steps(self):
        often = [self.faults, self.faults, self.worker_faults, self.calls_fail]
        others = [self.processes_come_and_go, self.name_changes, self.clock_is_set, self.no_call_fails, self.snapshot,
                  self.config_is_read_again, self.config_changes, self.config_is_broken, self.reader_reads, self.reader_goes_away,
                  self.connection_is_cut, self.files_are_rotated, self.other_files_are_cut, self.time_passes]
        return [self.rng.choice(often if self.rng.random() < 0.4 else others) for _ in range(self.rng.randint(3, STEPS))]

    # --- the whole -----------------------------------------------------------------------------------

    def new_cgroup(self, name):
        path = os.path.join(cgroups.mount(), f"nhmtap-seeded-{os.getpid()}-{id(self)}-{name}")
        os.mkdir(path)
        self.stack.callback(cgroups.remove, path)
        return path

    def run(self):
        """Returns the names of the steps, and the result of the session, whose records are those of all parts of its file."""
        self.listener = None
        with self.stack:
            self.cgroup, own = self.new_cgroup("measured"), self.new_cgroup("own")
            (self.folder / "fail").write_bytes(bytes(8))
            self.puppet = self.stack.enter_context(Puppet(workers=2, before=cgroups.inside(self.cgroup)))
            before = cgroups.inside(own, "env", "LD_PRELOAD=" + ":".join(self.shims), f"STEP_FILE={self.folder}/step",
                                    f"FAIL_FILE={self.folder}/fail", "ASAN_OPTIONS=verify_asan_link_order=0")
            self.config = self.activities()
            steps = self.steps()
            self.session = self.stack.enter_context(
                Session(self.nhmtap, self.folder, self.config, before=before, outputs=list(self.outputs().values())))
            for step in steps:
                step()
            done = [step.__name__ for step in steps]
            # What finds no room at the end is lost, and said to be.
            self.fail(0)
            self.session.do("ping")
            result = self.session.end(by=self.rng.choice((signal.SIGTERM, signal.SIGINT)))
            nothing_left(own)
            for fd in self.readers.values():
                os.close(fd)
        return done, result

    def judge(self, result):
        """Returns what is wrong."""
        wrong = []
        if result.status not in (0, 3) or (result.status == 3 and not result.err):
            wrong.append(f"it ended with {result.status}: {result.err}")
        # A stream goes on in the file that takes the place of the one that was renamed.
        records = parse("".join(part.read_text() for part in self.parts))
        if records[-1]["type"] != "end":
            return [f"its stream has no end; it ended with {result.status}: {result.err}"]
        check_stream(records)
        if gaps := [r for r in records if r["type"] == "gap" and r["records"]]:
            wrong.append(f"its file lacks records: {gaps}")
        sums = {name: accounted(records, name) for name in TWINS}
        if len(set(sums.values())) != 1:
            wrong.append(f"the activities account for different numbers of page faults: {dict(sums)}")
        if sums["counts"] < self.made or (self.exact and sums["counts"] != self.made):
            wrong.append(f"{self.made} page faults were made, and {sums['counts']} are told")
        return wrong


def nothing_left(cgroup):
    """Of the session's processes, none may be left. Those that it has ended leave the cgroup slightly later."""
    deadline = time.monotonic() + 60
    while True:
        with open(f"{cgroup}/cgroup.procs", encoding="ascii") as file:
            left = file.read().split()
        if not left:
            return
        assert time.monotonic() < deadline, f"left behind: {left}"
        time.sleep(0.01)
