#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""soak.py [SECONDS]: puts a session under all kinds of trouble at once, for so many seconds.

Processes, threads and cgroups come and go; a reader stops reading and goes on; a file system fills
up and empties; CONFIG is read again; the clock is set; consumers of every kind are killed and come
again. At the end, the records of different activities have to account for exactly the same page
faults, and each consumer for those of them that it was not told to have missed. Memory must not
grow after the first minute, the number of descriptors must be that of the beginning, and no
interval may be late.
"""
import argparse
import base64
import collections
import contextlib
import json
import os
import random
import re
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import cgroups
import native
import otlp
import otlp_profiles
import pprof
from asked import free_port
from records import NHMTAP, build_shim, check_stream, parse, program

FAULTS = {"event": "page-faults"}
EACH = {**FAULTS, "count": 1}
QUEUE = 65536
RSS = {"rss": "VmRSS", "own": "RssAnon", "files": "RssFile", "shared": "RssShmem"}
TMPFS_BYTES = 1 << 20
UNWIND_BLOCK = "array of 1 MiB"  # struct unwind_block in bpf/unwind.h; no other map is one of this size
# Held for names and for unwinding tables: their number depends on the programs that the machine
# runs.
OF_PROGRAMS = ("files", "mnt", UNWIND_BLOCK)
# Connections to consumers, which come and go with these.
OF_CONSUMERS = ("socket",)

# For each kind of consumer, where it listens, in requests of HTTP the path, and what the output has.
PUSHED = {
    "metrics": ("/v1/metrics", {"format": "otlp"}),
    "cumulative": ("/cumulative/v1/metrics", {"format": "otlp", "temporality": "cumulative"}),
    "profiles": ("/v1development/profiles", {"format": "otlp-profiles", "activities": ["samples"]}),
    "profiles in JSON": ("/json/v1development/profiles", {"format": "otlp-profiles-json", "activities": ["samples"]}),
    "pprof": ("/profiles/writeraw", {"format": "pprof", "activities": ["samples"]}),
    "folded": ("/ingest?name=soak", {"format": "folded", "activities": ["samples"]}),
    "rows": ("/rows?query=INSERT+INTO+nhmtap+FORMAT+Native", {"format": "clickhouse", "activities": ["counts"]}),
    "page": ("/api/v1/import/prometheus", {"format": "prometheus"}),
}
PLACES = {where.partition("?")[0]: which for which, (where, _) in PUSHED.items()}
OF_SAMPLES = ("profiles", "profiles in JSON", "pprof", "folded")


def activities(cgroup, turn):
    """Returns the activities. One of them changes with each turn."""
    of = {"cgroup": cgroup, "all_cpus": True}
    return [
        {"name": "counts", "command": "stat", "interval_ms": 500, **FAULTS, **of},
        {"name": "samples", "command": "profile", "by": "cgroup,symbol", "interval_ms": 1000, **EACH, **of},
        {"name": "stacks", "command": "profile", "call_graph": True, "by": "comm", "interval_ms": 2000, **EACH, **of},
        {"name": "places", "command": "mem", "by": "pid,ip", "interval_ms": 700, **EACH, **of},
        {"name": "cpu", "command": "profile", "by": "comm", "event": "cpu-clock", "freq": 99,
         "interval_ms": 250 + 50 * (turn % 3), **of},
    ]


TWINS = ("counts", "samples", "stacks", "places")


class Trouble:
    """Repeats an action in a thread of its own until end()."""

    def __init__(self, happen, pause, rng):
        self.happen, self.pause, self.rng = happen, pause, rng
        self.over, self.times, self.error = threading.Event(), 0, None
        self.thread = threading.Thread(target=self.go_on, name=happen.__name__)
        self.thread.start()

    def go_on(self):
        try:
            while not self.over.wait(self.rng.uniform(0, 2 * self.pause)):
                self.happen()
                self.times += 1
        except Exception as error:  # errors are reported at the end, with the others
            self.error = error

    def end(self):
        self.over.set()
        self.thread.join()
        if self.error:
            raise self.error


def is_unwind_block(fdinfo):
    """Whether a map is a BPF_MAP_TYPE_ARRAY with one value of 1 MiB, by its fdinfo."""
    with open(fdinfo, encoding="ascii") as file:
        told = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
    return (told["map_type"], told["max_entries"], told["value_size"]) == ("2", "1", str(1 << 20))


class Soak:
    def __init__(self, seconds, seed):
        self.seconds, self.rng = seconds, random.Random(seed)
        self.folder = tempfile.mkdtemp(prefix="nhmtap-soak-")
        self.cgroup = os.path.join(cgroups.mount(), os.path.basename(self.folder))
        self.turn, self.samples = 0, []
        self.port, self.consumers = free_port(), {}
        self.stack = contextlib.ExitStack()
        self.lock = threading.Lock()

    # --- the session ---------------------------------------------------------------------------------

    def path(self, name):
        return os.path.join(self.folder, name)

    def configure(self):
        config = {"activities": activities("/" + os.path.basename(self.cgroup), self.turn),
                  "outputs": [{"path": self.path("all")}, {"path": self.path("all.jsonl.zst")},
                              {"path": self.path("page"), "format": "prometheus"}, {"path": self.path("pipe"), "queue_bytes": QUEUE},
                              {"path": self.path("small/records"), "queue_bytes": QUEUE},
                              {"path": f"unix:{self.path('lines')}"},
                              # It keeps a total of each series, and pids of places are ever new ones.
                              {"path": f"unix:{self.path('flat')}", "format": "flat", "activities": ["counts", "samples"]},
                              {"path": "listen", "format": "openmetrics"},
                              *({"path": f"http://127.0.0.1:{self.port}{where}", **output} for where, output in PUSHED.values())],
                  "listen": f"unix:{self.path('listen')}", "control": f"fifo:{self.path('ctl')},{self.path('ack')}"}
        with open(self.path("config.json.new"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        os.rename(self.path("config.json.new"), self.path("config.json"))

    def begin(self):
        os.mkdir(self.cgroup)
        self.stack.callback(cgroups.remove, self.cgroup)
        os.mkdir(self.path("small"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "none", self.path("small")], check=True)
        self.stack.callback(subprocess.run, ["umount", self.path("small")], check=True)
        for name in ("pipe", "ctl", "ack"):
            os.mkfifo(self.path(name))
        # Open for reading and writing, so that neither end waits for the other.
        self.pipe, self.ctl, self.ack = (os.open(self.path(name), os.O_RDWR) for name in ("pipe", "ctl", "ack"))
        for which in self.kinds():
            self.consume(which)
        shim = build_shim("set_clock", self.path(""))
        self.configure()
        with open(self.path("err"), "w", encoding="utf-8") as err:
            self.process = subprocess.Popen(
                [NHMTAP, "run", self.path("config.json")], stdin=subprocess.DEVNULL, stdout=err, stderr=err,
                env=os.environ | {"LD_PRELOAD": shim, "STEP_FILE": self.path("step"), "ASAN_OPTIONS": "verify_asan_link_order=0"})
        self.began = time.monotonic()
        self.obey("ping")

    def obey(self, line):
        with self.lock:
            os.write(self.ctl, f"{line}\n".encode())
            while not select.select([self.ack], [], [], 1)[0]:
                assert self.process.poll() is None, self.said()
            assert os.read(self.ack, 4) == b"ack\n"

    def kinds(self):
        return {"posts": ("http", str(self.port)), "lines": ("unix", self.path("lines")), "flat": ("unix", self.path("flat")),
                "pages": ("page", self.path("listen"))}

    def consume(self, which):
        """Starts a consumer, which appends to the file taken.WHICH."""
        kind, place = self.kinds()[which]
        self.consumers[which] = subprocess.Popen(
            [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "consumer.py"), kind, place,
             self.path(f"taken.{which}")], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end_consumer(self, which):
        self.consumers[which].kill()
        self.consumers[which].wait()

    def pushed(self, since):
        """Whether each kind of PUSHED has come once more since the file of posts had this size."""
        with open(self.path("taken.posts"), "rb") as file:
            file.seek(since)
            paths = {line.split(b" ")[0].partition(b"?")[0].decode() for line in file.read().splitlines()}
        return paths >= set(PLACES)

    # --- what happens to it --------------------------------------------------------------------------

    def in_cgroup(self, folder, *command):
        subprocess.run(cgroups.inside(folder, *command), check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)

    def processes_come_and_go(self):
        self.in_cgroup(self.cgroup, "sh", "-c", "for i in $(seq 100); do /bin/true; done")

    def threads_come_and_go(self):
        self.in_cgroup(self.cgroup, program("puppet"), *["thread=20"] * 30, *["fork=20"] * 30)

    def cgroups_come_and_go(self):
        inner = os.path.join(self.cgroup, f"inner{self.rng.randrange(8)}")
        os.mkdir(inner)
        self.in_cgroup(inner, program("puppet"), "faults=200")
        cgroups.remove(inner)

    def the_reader_stops_and_goes_on(self):
        time.sleep(self.rng.uniform(0, 4))
        os.set_blocking(self.pipe, False)
        with contextlib.suppress(BlockingIOError):
            while os.read(self.pipe, 1 << 16):
                pass

    def the_disk_fills_and_empties(self):
        with contextlib.suppress(OSError), open(self.path("small/filler"), "wb") as filler:
            for _ in range(2 * TMPFS_BYTES // 4096):
                filler.write(b"\0" * 4096)
                filler.flush()
        time.sleep(self.rng.uniform(0, 2))
        os.unlink(self.path("small/filler"))
        os.truncate(self.path("small/records"), 0)  # as copytruncate does

    def config_is_read_again(self):
        self.turn += 1
        self.configure()
        self.process.send_signal(signal.SIGHUP)
        self.obey("ping")

    def a_consumer_is_killed(self):
        which = self.rng.choice(list(self.consumers))
        self.end_consumer(which)
        time.sleep(self.rng.uniform(0, 3))
        self.consume(which)

    def the_clock_is_set(self):
        with open(self.path("step.new"), "w", encoding="utf-8") as file:
            file.write(str(self.rng.randrange(-10**12, 10**12)))
        os.rename(self.path("step.new"), self.path("step"))

    # --- its memory and descriptors ------------------------------------------------------------------

    def look(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii", errors="replace") as status:
            fields = dict(line.rstrip("\n").split(":\t", 1) for line in status if ":\t" in line)
        kinds = {kind: int(fields[name].split()[0]) * 1024 for kind, name in RSS.items()}
        return {"at": time.monotonic(), **kinds, **self.spent(), **self.held()}

    def spent(self):
        """Returns in ns how long the session ran and waited for a CPU (proc_pid_schedstat in
        Documentation/scheduler/sched-stats.rst), and how long the host took the CPUs away from
        this machine (proc_stat(5))."""
        with open(f"/proc/{self.process.pid}/schedstat", encoding="ascii") as file:
            ran, waited, _ = map(int, file.read().split())
        with open("/proc/stat", encoding="ascii") as file:
            ticks = int(file.readline().split()[8])
        return {"ran": ran, "waited": waited, "stolen": ticks * 10**9 // os.sysconf("SC_CLK_TCK")}

    def held(self):
        """Returns the number of its descriptors of each kind: BPF objects, events, watches,
        sockets. Files of programs are open for their names until the last process that maps them
        ends. Unwinding tables take a further map when one is full."""
        folder = f"/proc/{self.process.pid}/fd"
        kinds = collections.Counter()
        for fd in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                what = os.readlink(os.path.join(folder, fd))
                kind = "files" if what.startswith("/") else re.sub(r":\[\d+\]", "", what)
                if kind == "anon_inode:bpf-map" and is_unwind_block(f"{folder}info/{fd}"):
                    kind = UNWIND_BLOCK
                kinds[kind] += 1
        return {"held": {kind: kinds[kind] for kind in sorted(kinds)}}

    # --- the whole -----------------------------------------------------------------------------------

    def run(self):
        self.begin()
        time.sleep(1)
        first = self.look()
        troubles = [Trouble(happen, pause, random.Random(self.rng.random())) for happen, pause in (
            (self.processes_come_and_go, 0.3), (self.threads_come_and_go, 0.3), (self.cgroups_come_and_go, 0.3),
            (self.the_reader_stops_and_goes_on, 2), (self.the_disk_fills_and_empties, 2),
            (self.config_is_read_again, 5), (self.the_clock_is_set, 7),
            (self.a_consumer_is_killed, 3))]
        deadline = time.monotonic() + self.seconds
        try:
            while time.monotonic() < deadline:
                time.sleep(1)
                assert self.process.poll() is None, self.said()
                self.samples.append(self.look())
        finally:
            for trouble in troubles:
                trouble.end()
        size = os.path.getsize(self.path("taken.posts"))
        self.processes_come_and_go()  # an interval without samples has no folded stacks
        self.obey("snapshot")
        # After a consumer was away, a try may be a minute off. The session's end waits for two seconds only.
        while not self.pushed(size):
            assert self.process.poll() is None, self.said()
            time.sleep(0.1)
        last = self.look()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        for which in self.consumers:
            self.end_consumer(which)
        return {"status": status, "first": first, "last": last,
                "times": {trouble.happen.__name__: trouble.times for trouble in troubles}}

    def said(self):
        with open(self.path("err"), encoding="utf-8") as err:
            return err.read()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for which in self.consumers:
            self.end_consumer(which)
        for fd in (self.pipe, self.ctl, self.ack):
            os.close(fd)
        self.stack.close()
        shutil.rmtree(self.folder)


def accounted(records, activity):
    """Returns the page faults that an activity's records account for: counted, aggregated, or
    reported as lost."""
    return (sum(r["value"] for r in records if r["type"] == "count" and r["activity"] == activity) +
            sum(r["samples"]["aggregated"] + sum(r["samples"]["lost"].values()) for r in records
                if "samples" in r and r["type"] in ("profile", "mem") and r["activity"] == activity))


def table_full(records, activity):
    """Returns the largest share of an interval's samples that were lost because a table was
    full."""
    return max((r["samples"]["lost"].get("table_full", 0) / r["samples"]["expected"] for r in records
                if r["activity"] == activity and "samples" in r and r["type"] in ("profile", "mem") and r["samples"]["expected"]),
               default=0)


def lateness(records, asked):
    """Returns for each interval by which share it was longer than requested, its activity, and how
    many seconds after the session's start it ended, sorted. Intervals that a HUP or the end cut
    short are negative."""
    late, lasted = [], collections.Counter()
    for r in records:
        if r["type"] in ("count", "profile", "mem") and r["activity"] in asked and r.get("part", 1) == 1:
            lasted[r["activity"]] += r["duration_ns"] / 1e9
            share = r["duration_ns"] / 1e6 / r.get("merged", 1) / asked[r["activity"]] - 1
            late.append((share, r["activity"], lasted[r["activity"]]))
    return sorted(late)


def meanwhile(samples, at):
    """Returns how many ms of the 2 to 3 seconds around a time the session ran and waited for a CPU,
    and the host took from the machine: what may have made an interval late."""
    before = [one for one in samples if one["at"] < at - 1] or samples[:1]
    after = [one for one in samples if one["at"] > at + 1] or samples[-1:]
    return {name: round((after[0][name] - before[-1][name]) / 1e6) for name in ("ran", "waited", "stolen")}


def by_minute(samples):
    """Returns the samples of each whole minute. Memory for the entries of an interval is only held
    for seconds."""
    minutes = collections.defaultdict(list)
    for one in samples:
        minutes[int(one["at"] - samples[0]["at"]) // 60].append(one)
    return [minutes[i] for i in range(len(minutes) - 1)]


def posts(soak):
    """Returns the bodies of each kind of PUSHED. One whose answer got lost with its server comes again, unchanged."""
    bodies = {which: [] for which in PUSHED}
    with open(soak.path("taken.posts"), encoding="ascii") as file:
        for line in file.read().splitlines():
            path, body = line.split(" ")
            own = bodies[PLACES[path.partition("?")[0]]]
            if body not in own[-1:]:
                own.append(body)
    return {which: [base64.b64decode(body) for body in own] for which, own in bodies.items()}


def on_page(page, name, **labels):
    """Returns the sum of the values of a page's series with these labels."""
    return sum(int(line.split()[-1]) for line in page.splitlines() if line.startswith(name + "{")
               and all(f'{label}="{value}"' in line for label, value in labels.items()))


def unpacked(soak, body):
    """Yields the profiles of a request to Parca: ProfileStoreService.WriteRaw, in JSON."""
    for sample in (sample for series in json.loads(body)["series"] for sample in series["samples"]):
        with open(soak.path("body"), "wb") as file:
            file.write(base64.b64decode(sample["rawProfile"]))
        yield pprof.read(soak.path("body"))


def samples_of(message):
    return sum(sample.values[0] for profile in message.profiles if message.type(profile)[0] == "samples" for sample in profile.samples)


def lines_of(soak, which):
    """Returns the whole lines that a socket's consumer got: with it the end of the last one may have been lost."""
    found = []
    with open(soak.path(f"taken.{which}"), encoding="utf-8", errors="replace") as file:
        for line in file.read().splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
    return found


def consumed(soak):
    """Returns for each consumer the page faults that it knows of, of one activity, and the records that it was told to have
    missed."""
    own, found = posts(soak), {}
    for which, temporality in (("metrics", 1), ("cumulative", 2)):
        read = [otlp.read(body, temporality=temporality) for body in own[which]]
        values = [sum(point.as_int for labels, point in otlp.points(data, "nhmtap.events") if labels["activity"] == "counts")
                  for data in read]
        found[which] = (sum(values) if temporality == 1 else max(values),
                        sum(point.as_int for data in read for _, point in otlp.points(data, "nhmtap.missed_records")))
    found["page"] = (on_page(own["page"][-1].decode(), "nhmtap_events_total", activity="counts"), 0)
    with open(soak.path("page"), encoding="utf-8") as file:
        found["page in a file"] = (on_page(file.read(), "nhmtap_events_total", activity="counts"), 0)
    found["profiles"] = (sum(samples_of(otlp_profiles.read(body)) for body in own["profiles"]), None)
    found["profiles in JSON"] = (sum(samples_of(otlp_profiles.read(body.decode())) for body in own["profiles in JSON"]), None)
    found["folded"] = (sum(int(line.rpartition(b" ")[2]) for body in own["folded"] for line in body.splitlines()), None)
    rows = [row for body in own["rows"] for row in native.rows(body)]
    found["rows"] = (sum(row["value"] for row in rows if row.get("event") == "page-faults"), sum(row.get("missed", 0) for row in rows))
    found["pprof"] = (sum(sample.value[0] for body in own["pprof"] for profile in unpacked(soak, body) for sample in profile.sample), None)
    with open(soak.path("taken.pages"), encoding="ascii") as file:
        pages = [base64.b64decode(page).decode() for page in file.read().splitlines()]
    found["listen"] = (on_page(pages[-1], "nhmtap_events_total", activity="counts"), None)
    for which in ("lines", "flat"):
        records = lines_of(soak, which)
        found[which] = (sum(r["value"] for r in records if r.get("activity") == "counts" and r["type"] in ("count", "flat")),
                        sum(r["records"] for r in records if r["type"] == "gap"))
    return found


def wrong_with_consumers(found, counted, aggregated):
    """A consumer of totals has all; one of parts has all but what it was told to have missed. What a socket held when its
    consumer was killed is lost untold, and the last pages of `listen` may not have been asked for."""
    for which, (value, missed) in found.items():
        all_of_it = aggregated if which in OF_SAMPLES else counted
        whole = which in ("cumulative", "page", "page in a file") or (missed == 0 and which in ("metrics", "rows"))
        if value > all_of_it or not value or (whole and value != all_of_it):
            yield f"{which} has {value} of {all_of_it} page faults, and misses {missed} records"


def judge(soak, seen):
    """Returns the figures, and what is wrong."""
    with open(soak.path("all"), encoding="utf-8") as file:
        records = parse(file.read())
    check_stream(records)
    packed = subprocess.run(["zstd", "-dcq", soak.path("all.jsonl.zst")], stdout=subprocess.PIPE, check=True).stdout.decode()
    sums = {name: accounted(records, name) for name in TWINS}
    asked = {one["name"]: one["interval_ms"] for one in activities("", 0) if one["name"] in TWINS}
    late = lateness(records, asked)
    minutes = by_minute(soak.samples)
    taken = consumed(soak)
    figures = {
        "page faults": sums, "consumers (page faults, records missed)": taken, "records": len(records), "seconds": soak.seconds, "times": seen["times"],
        "table_full at most": {name: table_full(records, name) for name in TWINS[1:]},
        "late, 99 % no more than": late[int(len(late) * 0.99) - 1][0] if late else None,
        "late at most": late[-1][0] if late else None,
        "the latest": [{"by": share, "activity": activity, "at_s": round(at, 1),
                        "ms": meanwhile(soak.samples, soak.began + at)}
                       for share, activity, at in reversed(late[-5:])] if soak.samples else [],
        "rss at first, at most, at last": [seen["first"]["rss"], max(one["rss"] for one in soak.samples), seen["last"]["rss"]],
        "its median in each minute": {kind: [statistics.median(one[kind] for one in minute) for minute in minutes] for kind in RSS},
        "held at first": seen["first"]["held"], "held at last": seen["last"]["held"],
        "gaps": collections.Counter(r["type"] for r in records)["gap"],
        "warnings": collections.Counter(r.get("cause") for r in records if r["type"] == "warning"),
    }
    wrong = []
    # 3: an output (the pipe or the small disk) did not get all records, and the session reports it.
    if seen["status"] not in (0, 3):
        wrong.append(f"it ended with {seen['status']}: {soak.said()}")
    if len(set(sums.values())) != 1 or not sums["counts"]:
        wrong.append(f"the activities account for different numbers of page faults: {sums}")
    first, last = ({kind: nr for kind, nr in figures[f"held at {when}"].items() if kind not in OF_PROGRAMS + OF_CONSUMERS}
                   for when in ("first", "last"))
    aggregated = sum(r["samples"]["aggregated"] for r in records if r["type"] == "profile" and r["activity"] == "samples"
                     and "samples" in r)
    if {name: accounted(parse(packed), name) for name in TWINS} != sums:
        wrong.append("what was compressed is not what was written beside it")
    wrong += wrong_with_consumers(taken, sums["counts"], aggregated)
    if first != last:
        wrong.append("it holds other things than in the beginning")
    steady = figures["its median in each minute"]["rss"][1:]
    if steady and max(steady) > 1.05 * steady[0]:
        wrong.append(f"it grew from {steady[0]} to {max(steady)} bytes after the second minute")
    return figures, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("seconds", type=float, nargs="?", default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    soak = Soak(options.seconds, options.seed)
    try:
        figures, wrong = judge(soak, soak.run())
    finally:
        soak.close()
    # A busy machine is enough to exceed these bounds, so tests, which call judge(), do not check
    # them.
    if figures["late at most"] is not None and figures["late at most"] > 0.1:
        wrong.append(f"an interval was late by {100 * figures['late at most']:.0f} %")
    if any(share >= 0.01 for share in figures["table_full at most"].values()):
        wrong.append("a table was full")
    json.dump(figures, sys.stdout, indent=2)
    print()
    for one in wrong:
        print(f"soak: {one}", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
