# SPDX-License-Identifier: GPL-2.0-only
"""What nhmtap costs, as ratios of two things run side by side; `make bench` runs it.

Machines are noisy and differ, so every figure is a comparison. The things compared take turns in
small slices on one CPU. Costs are CPU time, of the tool and the measured program together. Each
round gives one value of each figure; the median and the spread of the rounds are printed. The exit
status is 1 if a median exceeds its bound, or if the tool that nhmtap is compared with fails.
"""
import argparse
import contextlib
import filecmp
import itertools
import json
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import cgroups
import hosts
import page
from figures import Figures, print_table, write_records

NHMTAP = os.environ.get("NHMTAP", "build/nhmtap")
PROGRAMS = os.environ.get("NHMTAP_PROGRAMS", "build/programs")
FAULTS = os.path.join(PROGRAMS, "faults")
BURSTS = os.path.join(PROGRAMS, "bench", "bursts")
PLACES = os.path.join(PROGRAMS, "bench", "places")
AROUND = os.path.join(PROGRAMS, "bench", "around")
EMPTY = os.path.join(PROGRAMS, "bench", "empty.bpf.o")
HASH = os.path.join(PROGRAMS, "bench", "hash.bpf.o")
STACKS = os.path.join(PROGRAMS, "bench", "stacks.bpf.o")
EDGES = os.path.join(PROGRAMS, "bench", "edges.bpf.o")
UNHASHED = os.path.join(PROGRAMS, "bench", "unhashed.bpf.o")
UNREAD = os.path.join(PROGRAMS, "bench", "unread.bpf.o")
PLAN = os.path.join(PROGRAMS, "bench", "plan")
COST = os.path.join(PROGRAMS, "bench", "cost")
PINGPONG = os.path.join(PROGRAMS, "bench", "pingpong")
WORK = os.path.join(PROGRAMS, "bench", "work")
WAITS = os.path.join(PROGRAMS, "bench", "waits")
NAMING = os.path.join(PROGRAMS, "bench", "naming")

ALL_KEYS = "pid,tid,comm,cpu,ip,cgroup"
REPORTED_BYTES = 100_000_000


# --- running things ------------------------------------------------------------------------------

class Run:
    """Runs a command to its end: seconds of wall clock, and of CPU (including children)."""

    def __init__(self, command, stdout=os.devnull, both=False):
        """both: stderr goes to the same file as stdout."""
        out = os.open(stdout, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        null = os.open(os.devnull, os.O_RDWR)
        began = time.monotonic()
        pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, out, 1),
            (os.POSIX_SPAWN_DUP2, out if both else null, 2), (os.POSIX_SPAWN_CLOSE, out)])
        _, status, usage = os.wait4(pid, 0)
        self.wall = time.monotonic() - began
        self.cpu = usage.ru_utime + usage.ru_stime
        os.close(out)
        os.close(null)
        if status:
            sys.exit(f"bench: status {os.waitstatus_to_exitcode(status)}: {' '.join(command)}")


def nhmtap(*arguments):
    return [NHMTAP, *map(str, arguments)]


def profile(*arguments, by="pid,ip"):
    return nhmtap("profile", "-e", "page-faults", "-c", 1, "--by", by, "--format", "json", *arguments)


def records(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Burster:
    """A running command that runs "bursts". Each burst is triggered here; its CPU nanoseconds are
    kept."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.bursts = []

    def burst(self):
        self.process.stdin.write(b".")
        self.process.stdin.flush()
        self.bursts.append(int(self.process.stdout.readline()))
        return self.bursts[-1]

    def close(self):
        self.end()

    def end(self):
        """Ends the command. Returns the CPU nanoseconds that it took in addition to its bursts."""
        self.process.stdin.close()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.process.stdout.close()
        if status:
            sys.exit(f"bench: status {self.process.returncode}: {' '.join(self.process.args)}")
        return (usage.ru_utime + usage.ru_stime) * 1e9 - sum(self.bursts)


def burst_costs(variants, burst, cycles):
    """Returns for each variant the CPU nanoseconds per fault in excess of "counting", and those of
    the tool itself without its start and end; and the nanoseconds per fault of "counting".

    A variant is a function of 0 or 1 that returns a command that runs "bursts". Two of each run,
    because the placement of a process's pages makes a difference. All run at once and take turns,
    so that bursts a few milliseconds apart are compared. The median over all cycles is taken.
    """
    running = [(name, i, Burster(command(i))) for i in range(2) for name, command in variants.items()]
    for cycle in range(cycles + 1):
        for place in range(len(running)):
            running[(place + cycle) % len(running)][2].burst()
    values, tools = ({name: [] for name in variants} for _ in range(2))
    for name, i, burster in running:
        # The first burst is a warm-up.
        values[name].append([ns / burst for ns in burster.bursts[1:]])
        tools[name].append(burster.end() - Burster(variants[name](i)).end())
    counted = [statistics.mean(pair) for pair in zip(*values["counting"])]
    beyond = {name: statistics.mean(statistics.median(a - b for a, b in zip(of_one, counted))
                                    for of_one in pair) for name, pair in values.items()}
    tool = {name: statistics.mean(pair) / burst / cycles for name, pair in tools.items()}
    return beyond, tool, statistics.median(counted)


class PeerFailed(Exception):
    """The tool that nhmtap is compared with failed, so there is no figure."""


def perf(*arguments):
    """Runs perf and returns its stdout."""
    done = subprocess.run(["perf", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise PeerFailed(f"bench: perf {' '.join(arguments)} failed: {done.stderr}")
    return done.stdout


# --- figures -------------------------------------------------------------------------------------

def measure_samples(figures, folder, options):
    """The cost of a page fault as a sample, in excess of being counted: in nhmtap, and in an empty
    program."""
    command = [BURSTS, "1000"]
    variants = {
        "counting": lambda i: [AROUND, *command],
        "empty": lambda i: [AROUND, "-p", EMPTY, *command],
        "hash": lambda i: [AROUND, "-p", HASH, *command],
        "nhmtap": lambda i: profile("-o", os.devnull, "--", *command),
        "all keys": lambda i: profile("-o", os.devnull, "--", *command, by=ALL_KEYS),
    }
    for _ in range(options.rounds):
        # A million samples of each. The tools only wait meanwhile, so their CPU time is left out.
        beyond, _, counted = burst_costs(variants, 1000, 500)
        empty = beyond["empty"]
        for name, variant in (("by pid and ip", "nhmtap"), ("by every key", "all keys"), ("in a per-CPU hash map", "hash")):
            figures.add(f"a sample {name} / in an empty program", beyond[variant] / empty, None,
                        f"{beyond[variant]:.0f} / {empty:.0f} ns over counting's {counted:.0f}")


@contextlib.contextmanager
def timed_programs():
    """The kernel times each run of a BPF program: kernel.bpf_stats_enabled in
    Documentation/admin-guide/sysctl/kernel.rst."""
    path = "/proc/sys/kernel/bpf_stats_enabled"
    with open(path, encoding="ascii") as file:
        before = file.read()
    with open(path, "w", encoding="ascii") as file:
        file.write("1")
    try:
        yield
    finally:
        with open(path, "w", encoding="ascii") as file:
            file.write(before)


def sample_program(pid):
    """Returns what fdinfo tells of the program for samples that a process has open."""
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as file:
            told = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
            if told.get("prog_type") == "7":  # BPF_PROG_TYPE_PERF_EVENT, include/uapi/linux/bpf.h
                return {name: int(value) for name, value in told.items() if value.isdecimal()}
    sys.exit(f"bench: process {pid} has no BPF program for samples")


def program_runs(pid):
    """Returns the time in ns and the number of all runs of a process's program for samples."""
    told = sample_program(pid)
    return told["run_time_ns"], told["run_cnt"]


def program_time(command, bursts):
    """Returns the ns that a run of the program of this command takes, as the kernel times it."""
    burster = Burster(command)
    burster.burst()
    before = program_runs(burster.process.pid)
    for _ in range(bursts):
        burster.burst()
    ns, runs = (after - earlier for after, earlier in zip(program_runs(burster.process.pid), before))
    burster.end()
    return ns / runs


def measure_programs(figures, folder, options):
    """The time that programs take of a sample, in excess of an empty program, as the kernel times
    it. Unlike the whole cost of a sample, it can be measured where page faults are slow, as in some
    virtual machines. Page faults leave little in the cache there."""
    command = [BURSTS, "1000"]
    ours = {
        "profile by pid and ip": profile("-o", os.devnull, "--", *command),
        "profile by every key": profile("-o", os.devnull, "--", *command, by=ALL_KEYS),
        "mem by every key": mem("-o", os.devnull, "--", *command),
        "a per-CPU hash map": [AROUND, "-p", HASH, *command],
    }
    with timed_programs():
        for _ in range(options.rounds):
            times = [[program_time(run, 20) for run in ([AROUND, "-p", EMPTY, *command], *ours.values())] for _ in range(7)]
            empty, *each = map(statistics.median, zip(*times))
            for name, ns in zip(ours, each):
                figures.add(f"a sample in the program of {name}, beyond an empty one", ns - empty, None, f"{ns:.0f} - {empty:.0f} ns", "ns")
            figures.add("a sample in the program of profile by pid and ip / of a per-CPU hash map, each beyond an empty one",
                        (each[0] - empty) / (each[-1] - empty), None, f"{each[0] - empty:.0f} / {each[-1] - empty:.0f} ns")


LOAD_KEYS = "ip,pid,tid,comm,cpu,cgroup,cacheline,offset,page,node"


def mem(*arguments):
    return nhmtap("mem", "-e", "page-faults", "-c", 1, "--by", LOAD_KEYS, "--format", "json", *arguments)


def verified_instructions(command):
    """Returns how many instructions the verifier processed for the command's program for samples,
    or None on kernels before 5.16, which do not tell."""
    process = subprocess.Popen([*command, "--", "sleep", "10"], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()  # the start record: everything is loaded
        return sample_program(process.pid).get("verified_insns")
    finally:
        process.terminate()
        process.communicate()


def measure_loads(figures, folder, options):
    """The cost of a page fault as a sample of mem with every key, which reads address, latency and
    source from the kernel, compared with a sample of profile. All faults are at one address and so
    have one key: a thousand addresses would be a thousand keys, whose cache misses would dominate
    the cost."""
    command = [BURSTS, "1000", "1"]
    variants = {
        "counting": lambda i: [AROUND, *command],
        "profile": lambda i: profile("-o", os.devnull, "--", *command),
        "all keys": lambda i: profile("-o", os.devnull, "--", *command, by=ALL_KEYS),
        "mem": lambda i: mem("-o", os.devnull, "--", *command),
    }
    for _ in range(options.rounds):
        beyond, _, counted = burst_costs(variants, 1000, 500)
        for name, variant, bound in (("by pid and ip", "profile", None), ("by every key", "all keys", 1.5)):
            figures.add(f"a sample of mem by every key / of profile {name}",
                        beyond["mem"] / beyond[variant], bound,
                        f"{beyond['mem']:.0f} / {beyond[variant]:.0f} ns over counting's {counted:.0f}")
    for name, run in (("mem", mem()), ("profile", profile(by=ALL_KEYS))):
        verified = verified_instructions(run)
        if verified is not None:
            figures.add(f"instructions that the verifier went through for {name}", verified, None, "", "")


def measure_stacks(figures, folder, options):
    """The cost of adding a branch stack of 16 to the table as edges, compared with adding the same edges to a per-CPU
    hash map. Both are in excess of the same sample with its stack unread."""
    command = [BURSTS, "1000"]
    variants = {
        "counting": lambda i: [AROUND, *command],
        "unread": lambda i: [AROUND, "-p", UNREAD, *command],
        "stacks": lambda i: [AROUND, "-p", STACKS, *command],
        "unhashed": lambda i: [AROUND, "-p", UNHASHED, *command],
        "edges": lambda i: [AROUND, "-p", EDGES, *command],
    }
    for _ in range(options.rounds):
        beyond, _, _ = burst_costs(variants, 1000, 500)
        ours, theirs = ((beyond[used] - beyond[made]) / 16 for used, made in (("stacks", "unread"), ("edges", "unhashed")))
        figures.add("a branch of a stack of 16 / in a per-CPU hash map", ours / theirs, None, f"{ours:.0f} / {theirs:.0f} ns")


CALLS = os.path.join(PROGRAMS, "calls")


def by_way(way, *arguments):
    return nhmtap("profile", "-g", "--unwind", way, "--by", "symbol,comm", "-o", os.devnull, *arguments)


def frame_costs(faults):
    """Returns the CPU nanoseconds that each further frame costs, by frame pointers and by tables,
    of the same program."""
    def cpu(way, depth):
        command = [CALLS, f"deep={depth},{faults}"]
        options = ["-e", "page-faults", "-c", 1, "--", *command]
        counted = Run(nhmtap("stat", "-e", "page-faults", "-o", os.devnull, "--", *command)).cpu
        return Run(by_way(way, *options)).cpu - counted
    return {way: (cpu(way, 110) - cpu(way, 10)) / faults / 100 * 1e9 for way in ("fp", "tables")}


TICKING = "import time\nt = time.process_time()\nwhile time.process_time() - t < {}: sorted(map(lambda x: x * x % 7, range(999)))"
SECONDS = 2


def by_perf(folder, event, *command):
    """Returns CPU seconds, samples and bytes of perf record, which copies the stack's memory, and
    perf script, which walks it."""
    data, script = os.path.join(folder, "perf"), os.path.join(folder, "script")
    # Without --buildid-mmap, Debian 12's perf sometimes aborts: "assertion failed at
    # util/build-id.c".
    cpu = Run(["perf", "record", "-q", "--buildid-mmap", "-m", "4096", "--call-graph", "dwarf", *event, "-o", data, *command]).cpu
    cpu += Run(["perf", "script", "-i", data, "-F", "comm,ip,sym", "--no-inline"], stdout=script).cpu
    with open(script, encoding="utf-8", errors="replace") as file:
        return cpu, file.read().count("\n\n"), os.path.getsize(data)


def by_tables(folder, form, event, *command):
    """Returns the same of nhmtap. The number of samples is 0 unless the format is json."""
    out = os.path.join(folder, "unwound")
    cpu = Run(by_way("tables", *event, "--format", form, "-o", out, "--", *command)).cpu
    samples = sum(r["stacks"]["delivered"] for r in records(out) if "stacks" in r) if form == "json" else 0
    return cpu, samples, os.path.getsize(out)


def measure_unwind(figures, folder, options):
    """Stacks that are walked by tables, compared with frame pointers and with perf, which copies
    the stack's memory; and the memory and time that the tables take."""
    out = os.path.join(folder, "unwound")
    for _ in range(options.rounds):
        costs = frame_costs(50000)
        figures.add("a frame by tables / by frame pointers", costs["tables"] / costs["fp"], 1.5,
                    f"{costs['tables']:.0f} / {costs['fp']:.0f} ns")
        # Includes what walking the stack, or copying it, takes of the measured program's time.
        event, command = ["-e", "page-faults", "-c", "1"], [CALLS, "deep=20,20000"]
        counted = Run(nhmtap("stat", "-e", "page-faults", "-o", os.devnull, "--", *command)).cpu
        ours, theirs = by_tables(folder, "json", event, *command), by_perf(folder, event, *command)
        costs = [(cpu - counted) / samples * 1e6 for cpu, samples, _ in (ours, theirs)]
        figures.add("CPU of a sample by tables, named / of perf --call-graph dwarf and script", costs[0] / costs[1], 0.2,
                    f"{costs[0]:.1f} / {costs[1]:.1f} µs")
        event, command = ["-e", "cpu-clock:u", "-F", "997"], ["/usr/bin/python3", "-c", TICKING.format(SECONDS)]
        bare = Run(command).cpu
        ours, theirs = by_tables(folder, "json", event, *command), by_perf(folder, event, *command)
        costs = [(cpu - bare) / samples * 1e6 for cpu, samples, _ in (ours, theirs)]
        figures.add(f"the same of python3 at 997 Hz for {SECONDS} s, with what each run takes once", costs[0] / costs[1], None,
                    f"{costs[0]:.0f} / {costs[1]:.0f} µs")
        for form, written, bound in (("pprof", by_tables(folder, "pprof", event, *command)[2], 0.001), ("json", ours[2], None)):
            each = [written / ours[1], theirs[2] / theirs[1]]
            figures.add(f"bytes written of a sample, as {form} / by perf --call-graph dwarf", each[0] / each[1], bound,
                        f"{each[0]:.1f} / {each[1]:.0f}")
    sleeping = [subprocess.Popen(["/usr/bin/python3", "-c", "import ssl, sqlite3, time; print(1, flush=True); time.sleep(600)"],
                                 stdout=subprocess.PIPE) for _ in range(100)]
    try:
        for process in sleeping:
            process.stdout.readline()
        done = subprocess.run([*by_way("tables", "-e", "page-faults", "-o", out, "--duration", 0.1), "-p",
                               ",".join(str(process.pid) for process in sleeping)], check=False)
        unwind = records(out)[0]["unwind"]
        figures.add("tables and lists of 100 python3", unwind["bytes"] / 1048576, 2,
                    f"{unwind['tables']} files, status {done.returncode}", "MiB")
    finally:
        for process in sleeping:
            process.kill()
            process.wait()
            process.stdout.close()
    took = []
    for _ in range(5):  # the least is taken, because build_ms is wall-clock time
        Run(by_way("tables", "-e", "page-faults", "-o", out, "--", "sleep", "0.1"))
        unwind = records(out)[0]["unwind"]
        took.append(unwind["build_ms"])
    figures.add("tables of libc, ld.so and sleep, the least of 5", min(took), 10, f"{unwind['tables']} files", "ms")


def measure_perf(figures, folder, options):
    """The same samples, aggregated by nhmtap or recorded by perf."""
    ours, theirs = os.path.join(folder, "nhmtap.json"), os.path.join(folder, "perf.data")
    command = [BURSTS, "1000"]
    variants = {
        "counting": lambda i: [AROUND, *command],
        "nhmtap": lambda i: profile("-o", f"{ours}{i}", "--", *command),
        "perf": lambda i: ["perf", "record", "-q", "-e", "page-faults", "-c", "1", "-o",
                           f"{theirs}{i}", *command],
    }
    for _ in range(options.rounds):
        beyond, tool, _ = burst_costs(variants, 1000, 500)
        # The "tool" of counting is the cost of triggering the bursts.
        tool = {name: max(0, tool[name] - tool["counting"]) for name in variants}
        whole = {name: beyond[name] + tool[name] for name in variants}
        figures.add("a sample / in perf record", whole["nhmtap"] / whole["perf"], None,
                    f"{whole['nhmtap']:.0f} / {whole['perf']:.0f} ns over counting, of which "
                    f"{tool['nhmtap']:.0f} and {tool['perf']:.0f} in the tool")
        Run(profile("-o", ours, "--", FAULTS, 1_000_000))
        Run(["perf", "record", "-q", "-e", "page-faults", "-c", "1", "-o", theirs, FAULTS, "1000000"])
        sizes = os.path.getsize(ours), os.path.getsize(theirs)
        figures.add("bytes written / by perf record", sizes[0] / sizes[1], None,
                    f"{sizes[0]} / {sizes[1]}")


STREAMED = "time,ip,symbol,pid,tid,comm,cpu"  # what perf data convert writes, too
STREAMED_NR = 1_000_000  # so many that the start, with the kernel's symbols, is a small part for both


def remove(path):
    """So that what writes the file makes a new one: to empty the one of the last round takes time as well."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def writing_cpu(path, record, nr):
    """The CPU seconds of copying so many records of this size into a buffer and writing that to the file: the least that
    any program takes for such output."""
    remove(path)
    line, began = bytes(record), time.process_time()
    with open(path, "wb", buffering=0) as file:
        for _ in range(nr // 512):
            file.write(512 * line)
    return time.process_time() - began


def end_of(path):
    """The last record of a file of lines."""
    with open(path, "rb") as file:
        file.seek(-4096, os.SEEK_END)
        return json.loads(file.read().splitlines()[-1])


def measure_stream(figures, folder, options):
    """The cost of a sample all the way to a line of JSON, that of the measured program included, compared with perf
    record and what makes text of its data.

    What limits these ratios is writing the bytes. A program that only copies a sample out of a ring, puts its number and the
    digits of its time into a line of 365 bytes, copies that to a buffer and writes this to a file took 157 ns a line, 65
    without the writing, where nhmtap took 400, perf data convert 1,390 and perf script 980: no writer of such lines is
    more than 9 and 6 times as fast. Of nhmtap's 400 ns, 54 are its start, for the kernel's symbols, and 130 the kernel's for
    the file. Its own instructions by callgrind were 2,900 then. They are 1,960 now: 740 for the line, 450 to
    list its members, 130 to find the output, 300 to find the name, and 290 to take the sample out of its ring. Before any of it is read, the kernel takes
    320 ns for a sample, which is most of the rest of the two sums."""
    nr, out, data = STREAMED_NR, os.path.join(folder, "stream.jsonl"), os.path.join(folder, "stream.data")
    stream = nhmtap("stream", "-e", "page-faults", "-c", 1, "--fields", STREAMED, "-o", out, "--", FAULTS, nr)
    texts = {
        "perf data convert": ["perf", "data", "convert", "--force", "-i", data, "--to-json", os.path.join(folder, "stream.json")],
        "perf script": ["perf", "script", "-i", data, "-F", "comm,pid,tid,cpu,time,ip,sym"],
    }
    for _ in range(options.rounds):
        remove(out)
        bare, ours = Run([FAULTS, str(nr)]).cpu, Run(stream).cpu
        with open(out, "rb") as file:
            samples = sum(line.startswith(b'{"type":"sample"') for line in file)
        end = end_of(out)
        figures.add(f"samples missing in a stream of {nr:,}", max(0, nr - samples), 0, f"{samples} lines", "")
        # --buildid-mmap: see by_perf(). With a smaller ring, perf loses samples, and what it takes for one seems less.
        recorded = Run(["perf", "record", "-q", "-B", "-T", "--sample-cpu", "--buildid-mmap", "-m", "4096", "-e", "page-faults", "-c", "1",
                        "-o", data, FAULTS, str(nr)]).cpu
        own = end["overhead"]["cpu_time_ns"] / samples
        least = writing_cpu(out, size := os.path.getsize(out) // samples, nr) * 1e9 / nr
        figures.add("nhmtap's own CPU of a streamed sample / writing as many bytes", own / least, None,
                    f"{own:.0f} / {least:.0f} ns, {size} bytes a line")
        for (name, command), bound in zip(texts.items(), (0.4, 0.6)):
            remove(command[-1])
            try:
                made = Run(command).cpu
            except SystemExit as error:
                raise PeerFailed(str(error)) from error
            whole = [1e9 * (cpu - bare) / nr for cpu in (ours, recorded + made)]
            figures.add(f"a streamed sample / in perf record and {name}", whole[0] / whole[1], None,
                        f"{whole[0]:.0f} / {whole[1]:.0f} ns over not being sampled")
            figures.add(f"nhmtap's own CPU of a streamed sample / {name}'s", own * nr / 1e9 / made, bound,
                        f"{own:.0f} / {1e9 * made / nr:.0f} ns; writing {size} bytes takes {least:.0f}")


ROW_OUTPUTS = 4
ROW_FIELDS = "time,pid,tid,cpu,ip"
# {form: (its name as an output, the end of its file's name, bound of its CPU / that of writing as many bytes)}. One of so
# few bytes as a compressed one has no such bound. A row of clickhouse takes 140 to 190 ns (5 to 7 million a second), of which
# writing its bytes takes 110.
ROW_FORMS = {"clickhouse": ("clickhouse", "", 2.5), "flat": ("flat", "", 5), "json": ("json", "", 3),
             "json in a .zst": ("json", ".jsonl.zst", None)}


def row_cost(folder, form, end, nr):
    """Streams into `nr` outputs of a form beside one of json. Returns the CPU nanoseconds of nhmtap alone, and an output's
    size. The faults take ten times as much, and a twentieth more or less of that from run to run, which would be half of
    what a row takes."""
    out, lines = os.path.join(folder, "rows"), os.path.join(folder, "lines")
    outputs = [word for i in range(nr) for word in ("-o", f"{form}={out}{i}{end}")]
    Run(nhmtap("stream", "-e", "page-faults", "-c", 1, "--fields", ROW_FIELDS, "-o", f"json={lines}", *outputs,
               "--", FAULTS, STREAMED_NR))
    return end_of(lines)["overhead"]["cpu_time_ns"], os.path.getsize(f"{out}0{end}") if nr else 0


def measure_rows(figures, folder, options):
    """The cost of a sample in each form: the difference between a run with several outputs of it and one without, one after
    the other."""
    for _ in range(options.rounds):
        for name, (form, end, bound) in ROW_FORMS.items():
            alone = row_cost(folder, None, None, 0)[0]
            used, size = row_cost(folder, form, end, ROW_OUTPUTS)
            each = (used - alone) / ROW_OUTPUTS / STREAMED_NR
            figures.add(f"a streamed sample in {name}", each, None,
                        f"{1e3 / each:.1f} million a second, {size / STREAMED_NR:.0f} bytes, {size / each / STREAMED_NR * 1e3:.0f} MB/s",
                        "ns")
            if bound:
                least = writing_cpu(os.path.join(folder, "rows0"), size // STREAMED_NR, STREAMED_NR) / STREAMED_NR * 1e9
                figures.add(f"a streamed sample in {name} / writing as many bytes", each / least, bound,
                            f"{each:.0f} / {least:.0f} ns")


def measure_reading(figures, folder, options):
    """The samples that are lost if tables are read every 10 ms on the sampled CPU, compared with a
    twin."""
    out, twin = os.path.join(folder, "reading.json"), os.path.join(folder, "twin")
    for _ in range(options.rounds):
        # Enough faults for ten seconds at the present speed.
        n = max(1_000_000, int(14 * 200_000 / Run(profile("--", FAULTS, 200_000)).wall))
        Run(profile("-I", 10, "--", AROUND, "-o", twin, FAULTS, n, by="comm,pid,ip"), out)
        parts = [r for r in records(out) if r["type"] == "profile"]
        intervals = [r for r in parts if r.get("part", 1) == 1]
        seen = sum(e["samples"] for r in parts for e in r["entries"] if e["comm"] == "faults")
        with open(twin, encoding="ascii") as file:
            counted = int(file.read())
        seconds = sum(r["duration_ns"] for r in intervals) / 1e9
        figures.add("samples lost by reading every 10 ms", counted - seen, None,
                    f"{seen} of {counted} in {seconds:.1f} s, {len(intervals)} readings", "")


def walls(commands, times):
    """Returns the median wall-clock seconds of each command. The commands take turns."""
    each = [[] for _ in commands]
    for _ in range(times):
        for command, values in zip(commands, each):
            values.append(Run(command).wall)
    return [statistics.median(values) for values in each]


def measure_start(figures, folder, options):
    """The time that it takes to start and end with a command that does nothing."""
    pairs = [
        ("stat -- true / perf stat true", None, 20,
         nhmtap("stat", "-e", "task-clock", "--", "true"),
         ["perf", "stat", "-e", "task-clock", "true"]),
        ("profile -- true / perf record true", 1.0, 5,
         nhmtap("profile", "--", "true"),
         ["perf", "record", "-o", "/dev/null", "true"]),
    ]
    for _ in range(options.rounds):
        for name, bound, times, *commands in pairs:
            ours, theirs = walls(commands, times)
            figures.add(name, ours / theirs, bound, f"{ours * 1e3:.1f} / {theirs * 1e3:.1f} ms")


def measure_functions(figures, folder, options):
    """The additional cost of functions, which profile reports by default, instead of addresses: per
    run, and with a million samples in a thousand places, whose names are looked up once, at the
    end."""
    out = os.path.join(folder, "functions.json")
    keys = {"functions": "comm,symbol", "addresses": "comm,ip"}
    for _ in range(options.rounds):
        names, plain = walls([nhmtap("profile", "--by", by, "-o", out, "--", "true") for by in keys.values()], 7)
        figures.add("profile -- true by function, instead of by address", (names - plain) * 1e3, None,
                    f"{names * 1e3:.1f} - {plain * 1e3:.1f} ms", "ms")
        costs = {name: [] for name in keys}
        for _ in range(3):
            for name, by in keys.items():
                costs[name].append(Run(profile("-o", out, "--", PLACES, 1000, 1_000_000, by=by)).cpu)
        names, plain = (statistics.median(costs[name]) for name in keys)
        figures.add("a million samples of a thousand places, by function / by address", names / plain, 1.25,
                    f"{names:.2f} / {plain:.2f} s CPU")


SOFTWARE = ("task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults",
            "major-faults", "cpu-clock", "alignment-faults")


def piped_cpu(command):
    """Returns the CPU seconds of a command whose stdout and stderr are one pipe, which is read
    here."""
    reader, writer = os.pipe()
    null = os.open(os.devnull, os.O_RDONLY)
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, writer, 1), (os.POSIX_SPAWN_DUP2, writer, 2),
        (os.POSIX_SPAWN_CLOSE, reader), (os.POSIX_SPAWN_CLOSE, writer)])
    os.close(writer)
    os.close(null)
    while os.read(reader, 1 << 20):
        pass
    os.close(reader)
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"bench: status {os.waitstatus_to_exitcode(status)}: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime


INTERVAL_MS, FEW, MANY = 10, 5, 105


def interval_costs(commands):
    """Returns the CPU seconds of an interval of each command: the difference between many intervals
    and few. A command is given as a function of the number of intervals."""
    return [(piped_cpu(command(MANY)) - piped_cpu(command(FEW))) / (MANY - FEW) for command in commands]


def measure_intervals(figures, folder, options):
    """The cost of a counter in each interval. Both tools write JSON, to a pipe (perf to stderr, which is unbuffered) or with
    -o to a file (which perf buffers). The part of it that is waking up and going to sleep is shown too.

    Of nhmtap's, nine tenths are the kernel's (0.15 of 0.17 s for 1000 intervals of 64 counters): it wakes up, calls each CPU
    once to run a BPF program that reads all counters there, and writes records, 1.7 times as many bytes as perf's. With few
    counters most of both is waking up and calling the other CPUs, which the host has to wake if they are idle: there the
    bound is that nhmtap costs no more than perf."""
    out = os.path.join(folder, "intervals")

    def of(tool, *arguments):
        return lambda intervals: [*tool, "-I", str(INTERVAL_MS), "--interval-count", str(intervals), *arguments]

    tools = nhmtap("stat", "--format", "json"), ["perf", "stat", "-j"]
    for where, target in (("all CPUs", ["-a"]), ("a process", ["-p", str(os.getpid())])):
        for count, bound in ((8, 1), (64, 0.75)):
            events = ["-e", ",".join((SOFTWARE * 8)[:count]), *target]
            commands = [of(tool, *output, *events) for output in ((), ("-o", out)) for tool in tools]
            commands.append(lambda intervals: [WAITS, str(intervals), str(INTERVAL_MS)])
            for _ in range(options.rounds):
                *costs, waiting = map(statistics.median, zip(*(interval_costs(commands) for _ in range(3))))
                for output, ours, theirs in (("to a pipe", *costs[:2]), ("-o FILE", *costs[2:])):
                    unit = count / 1e6
                    figures.add(f"an interval of each of {count} counters of {where}, {output} / in perf stat -I -j",
                                ours / theirs, bound, f"{ours / unit:.1f} / {theirs / unit:.1f} µs, "
                                f"of which waking up {waiting / unit:.1f}")


def output_cost(folder, command, form, nr):
    """Runs with nr outputs of this form in addition to one of json. Returns CPU seconds, the size
    of an output in bytes, and its number of records."""
    out = os.path.join(folder, "out")
    outputs = [word for i in range(nr) for word in ("-o", f"{form}={out}{i}")]
    used = cost(nhmtap(command[0], "-o", f"json={out}.records", *outputs, *command[1:]))[0]
    lines = [r for r in records(f"{out}.records") if r["type"] in ("count", "profile")]
    return used, os.path.getsize(f"{out}0") if nr else 0, len(lines)


MORE_OUTPUTS = 8
WRITTEN = {
    "a count": ["stat", "-a", "-e", ",".join(SOFTWARE), "--per", "cpu", "-I", "2", "--interval-count", "500"],
    "50 entries": ["profile", "-a", "-e", "page-faults", "-c", "1", "--by", "ip,pid", "--top", "50", "-I", "10",
                   "--interval-count", "100"],
}


def measure_outputs(figures, folder, options):
    """The cost of a record in each form: the difference between a run with eight outputs of it and
    one without."""
    out = os.open(os.devnull, os.O_RDWR)
    busy = subprocess.Popen([PLACES, "10000", str(1 << 40)], stdin=out, stdout=out, stderr=out)
    try:
        for (what, command), _ in itertools.product(WRITTEN.items(), range(options.rounds)):
            alone = output_cost(folder, command, "json", 0)[0]
            for form in ("json", "flat", "openmetrics", "otlp"):
                used, size, nr = output_cost(folder, command, form, MORE_OUTPUTS)
                each = (used - alone) / MORE_OUTPUTS
                speed = "" if form == "openmetrics" else f", {size / nr:.0f} bytes, {size / each / 1e6:.0f} MB/s"
                figures.add(f"a record of {what} as {form}", each / nr * 1e6, None, f"{nr} records{speed}", "µs")
    finally:
        busy.kill()
        busy.wait()
        os.close(out)


@contextlib.contextmanager
def unread_socket(folder):
    """Returns the path of a socket that listens but is never read from."""
    path = os.path.join(folder, "unread")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(16)
        yield path
    os.unlink(path)


@contextlib.contextmanager
def running(commands):
    """Runs processes and terminates them at the end. Their status is ignored."""
    with contextlib.ExitStack() as stack:
        out = stack.enter_context(open(os.devnull, "r+b"))
        processes = []
        for command in commands:
            processes.append(subprocess.Popen(command, stdin=out, stdout=out, stderr=out))
            stack.callback(processes[-1].wait)
            stack.callback(processes[-1].terminate)
        yield processes


def cpu_by_bytes(sessions, paths, size):
    """Returns the CPU seconds that each session takes to write so many bytes to its file. As many
    bytes before that are ignored, because they include what a session does once, such as loading a
    library. All sessions run at once, so that a disturbance affects all."""
    def after(least):
        while any(not os.path.exists(path) or os.path.getsize(path) < most for path, most in zip(paths, least)):
            time.sleep(0.01)
        return [(cpu_ns(session.pid) / 1e9, os.path.getsize(path)) for session, path in zip(sessions, paths)]

    began = after([size] * len(paths))
    ended = after([bytes_before + size for _, bytes_before in began])
    return [(cpu - cpu_before) / (size_after - size_before) * size
            for (cpu_before, size_before), (cpu, size_after) in zip(began, ended)]


def measure_dead(figures, folder, options):
    """The cost of an output whose reader is dead or does not exist, in addition to a file. Two runs
    of the same session show how precise the ratios are. All together take half of the CPU, so that
    none has to wait for it."""
    counting = {"name": "counts", "command": "stat", "event": ",".join(SOFTWARE), "all_cpus": True, "per": "cpu",
                "interval_ms": 5}
    same, dead = "nothing more", {
        "an output that nobody reads": {"path": f"unix:{folder}/unread"},
        "an output to nobody": {"path": f"unix:{folder}/nobody"},
        "an output to a server of OTLP that is not there": {"path": "http://127.0.0.1:1/v1/metrics", "format": "otlp"}}
    with unread_socket(folder):
        for _ in range(options.rounds):
            # Each has each position once, because the first to be woken up takes the cache misses.
            variants = [None, same, *dead]
            names = [variants[(i + turn) % len(variants)] for turn in range(len(variants)) for i in range(len(variants))]
            folders = [tempfile.mkdtemp(dir=folder) for _ in names]
            files = [os.path.join(own, "alive") for own in folders]
            commands = [nhmtap("run", configure(own, [counting], {"outputs": [
                {"path": file}, *([{**dead[name], "queue_bytes": 8192}] if name in dead else [])]}))
                for name, own, file in zip(names, folders, files)]
            with running(commands) as sessions:
                costs = list(zip(names, cpu_by_bytes(sessions, files, 10_000_000)))
            for own in folders:
                shutil.rmtree(own)
            each = {name: sum(seconds for of, seconds in costs if of == name) / len(variants) for name in names}
            for name in (same, *dead):
                figures.add(f"a run with {name} / without", each[name] / each[None], 1.02 if name in dead else None,
                            f"{each[name] * 1e3:.0f} / {each[None] * 1e3:.0f} ms CPU")


def scrape(path):
    with socket.socket(socket.AF_UNIX) as asking:
        asking.connect(path)
        asking.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = b""
        while piece := asking.recv(1 << 20):
            text += piece
    return text


def measure_scrape(figures, folder, options):
    """The cost of a scrape of /metrics with a thousand series."""
    path, out = os.path.join(folder, "http"), os.open(os.devnull, os.O_RDWR)
    command = profile("--series", 1000, "-o", "openmetrics=listen", "--listen", f"unix:{path}", "-I", 100, "--control",
                      f"fifo:{path}.ctl", "--", PLACES, "2000", "1000000000", by="ip,pid")
    os.mkfifo(f"{path}.ctl")
    process = subprocess.Popen(command, stdin=out, stdout=out, stderr=out)
    try:
        while not os.path.exists(path) or scrape(path).count(b"nhmtap_profile_entries_total{") < 1000:
            time.sleep(0.05)
        with open(f"{path}.ctl", "w", encoding="ascii") as control:
            control.write("disable\n")
        time.sleep(1)
        for _ in range(options.rounds):
            before = cpu_ns(process.pid)
            for _ in range(200):
                size = len(scrape(path))
            figures.add("a scrape of 1,000 series", (cpu_ns(process.pid) - before) / 200 / 1e6, 2, f"{size} bytes", "ms")
    finally:
        process.terminate()
        process.wait()
        os.close(out)


def cpu_ns(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0])


def measure_forks(figures, folder, options):
    """The CPU time of a command that makes many processes, each of which inherits the counters."""
    command = ["sh", "-c", "i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done"]
    events = ",".join(SOFTWARE[:4])
    for _ in range(options.rounds):
        values = [[], [], []]
        for _ in range(7):
            for place, tool in enumerate((nhmtap("stat", "-e", events, "--"),
                                          ["perf", "stat", "-e", events], [])):
                values[place].append(Run([*tool, *command]).cpu)
        ours, theirs, alone = map(statistics.median, values)
        figures.add("500 processes that inherit 4 counters / under perf stat", ours / theirs, 1.0,
                    f"{ours:.3f} / {theirs:.3f} s; {alone:.3f} s uncounted")


def status_of(pid, name):
    """Returns a number in /proc/PID/status."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name + ":"))


def measure_memory(figures, folder, options):
    """The memory of a minute of samples, read ten times a second. All rounds run at once, because
    time does not matter."""
    command = profile("-I", 100, "--duration", 60, "--", FAULTS, 1 << 40)
    null = os.open(os.devnull, os.O_RDWR)
    pids = [os.posix_spawnp(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)]) for _ in range(options.rounds)]
    os.close(null)
    try:
        time.sleep(10)
        early = [status_of(pid, "VmRSS") for pid in pids]
        time.sleep(48)
        late = [status_of(pid, "VmRSS") for pid in pids]
        peak = [status_of(pid, "VmHWM") for pid in pids]
    finally:
        for pid in pids:
            os.waitpid(pid, 0)
    for began, ended, most in zip(early, late, peak):
        figures.add("peak resident set over 60 s", most / 1024, None, f"{most} KiB", "MiB")
        figures.add("its growth after the first 10 s", (ended - began) / 1024, None,
                    f"{began} to {ended} KiB", "MiB")


def on_cpu_with_threads(pid):
    """Returns the CPU seconds that all threads of a process have taken so far."""
    return sum(on_cpu(f"{pid}/task/{tid}") for tid in os.listdir(f"/proc/{pid}/task"))


def forks():
    """Returns the number of processes and threads created since boot."""
    with open("/proc/stat", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("processes "))


SIDECAR = [
    {"name": "counts", "command": "stat", "all_cpus": True},
    {"name": "cpu", "command": "profile", "all_cpus": True, "freq": 99},
]


def measure_idle(figures, folder, options):
    """The CPU time and memory of a running session in which little happens. It also looks at the
    programs that others start, so their number is shown; and it keeps the symbols of each file that a
    sample of the last minute is in, which are shared memory. On a machine where compilers run they are
    more than all else, so only what is kept besides has a bound."""
    config, seconds = configure(folder, SIDECAR, interval_ms=10_000), 20
    with subprocess.Popen([NHMTAP, "run", config], stdout=subprocess.DEVNULL) as sidecar:
        time.sleep(12)
        for _ in range(options.rounds):
            before, woken, made = on_cpu_with_threads(sidecar.pid), status_of(sidecar.pid, "voluntary_ctxt_switches"), forks()
            time.sleep(seconds)
            used = on_cpu_with_threads(sidecar.pid) - before
            woken = status_of(sidecar.pid, "voluntary_ctxt_switches") - woken
            figures.add("an idle sidecar: share of a CPU", 100 * used / seconds, None,
                        f"woken {woken / seconds:.1f} times a second, beside {(forks() - made) / seconds:.1f} forks", "%")
            whole, symbols = status_of(sidecar.pid, "VmRSS"), status_of(sidecar.pid, "RssShmem")
            figures.add("its resident set", whole / 1024, None, f"at most {status_of(sidecar.pid, 'VmHWM') / 1024:.1f} MiB", "MiB")
            figures.add("its resident set without the symbols of files", (whole - symbols) / 1024, 24,
                        f"{symbols / 1024:.1f} MiB of symbols", "MiB")
        told = time.monotonic()
        sidecar.terminate()
        sidecar.wait()
        figures.add("from SIGTERM to its end", time.monotonic() - told, 1, "the last interval is written", "s")


CHURN = "while :; do /bin/true; /bin/ls > /dev/null; done"


def samples_in(data):
    """Returns the number of samples in perf.data. perf script would also give their times, but 6.1
    resolves the symbol of each first, and crashes for some files."""
    told = perf("report", "-i", data, "--stats")
    found = re.search(r"SAMPLE events:\s+(\d+)", told)
    if not found:
        raise PeerFailed(f"bench: perf report does not say how many samples there are: {told}")
    return int(found[1])


def measure_churn(figures, folder, options):
    """The cost of stacks of the whole machine at 99 Hz, read each second, while programs come and
    go on every CPU. Timers miss ticks if a CPU cannot handle them for longer than a period; this
    affects perf as well. The cost of ten minutes is extrapolated from the rate after the first
    seconds, in which files and kernel symbols are read."""
    begins = 10
    out, data = os.path.join(folder, "churn.json"), os.path.join(folder, "churn.data")
    with contextlib.ExitStack() as stack:
        stack.callback(os.sched_setaffinity, 0, os.sched_getaffinity(0))
        os.sched_setaffinity(0, range(os.cpu_count()))
        # Without -B, perf reads each file's build-id at the end, and 6.1 aborts for some ("buffer overflow detected").
        recording = subprocess.Popen(["perf", "record", "-q", "-B", "-e", "cpu-clock", "-F", "99", "-a", "-o", data,
                                      "--", "sleep", str(options.seconds)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(recording.wait)
        for _ in range(os.cpu_count()):
            churn = subprocess.Popen(["sh", "-c", CHURN])
            stack.callback(churn.wait)
            stack.callback(churn.kill)
        run = subprocess.Popen(nhmtap("profile", "-e", "cpu-clock", "-a", "-g", "-F", 99, "--by", "cgroup,symbol", "-I", 1000,
                                      "--duration", options.seconds, "-o", out), stdout=subprocess.DEVNULL)
        time.sleep(begins)
        beginning = on_cpu_with_threads(run.pid)
        if run.wait():
            sys.exit(f"bench: status {run.returncode} of the profile beside churn")
    end = records(out)[-1]
    samples, own = end["samples"], end["overhead"]
    cpu, seconds = own["cpu_time_ns"] / 1e9, end["duration_ns"] / 1e9
    rate = (cpu - beginning) / (seconds - begins)
    figures.add("beside programs that come and go for ten minutes: share of a CPU",
                100 * (cpu + rate * max(0, 600 - seconds)) / max(600, seconds), 1,
                f"{1e3 * cpu:.0f} ms in {seconds:.0f} s, of which {1e3 * beginning:.0f} in the first {begins}", "%")
    figures.add("peak resident set there", own["max_rss_bytes"] / 2**20, 64, "", "MiB")
    causes = ", ".join(f"{nr} {cause}" for cause, nr in samples["lost"].items())
    figures.add("samples lost there", 100 * sum(samples["lost"].values()) / samples["expected"], 0.1,
                f"{causes} of {samples['expected']}", "%")
    ticks = 99 * options.seconds * os.cpu_count()  # perf samples for a few ms longer, up to a tick or two a CPU
    missed = max(0, ticks - samples_in(data))
    figures.add("ticks that perf record has missed beside it", 100 * missed / ticks, None, f"{missed} of {ticks}", "%")


def measure_keys(figures, folder, options):
    """The CPU time of nhmtap's own process for ten thousand keys, read and written every 10 ms."""
    out = os.path.join(folder, "keys.json")
    for _ in range(options.rounds):
        Run(profile("-I", 10, "--top", 100, "--", PLACES, 10_000, 1_500_000), out)
        end = records(out)[-1]
        readings = len([r for r in records(out) if r["type"] == "profile" and r.get("part", 1) == 1])
        cpu, wall = end["overhead"]["cpu_time_ns"], end["duration_ns"]
        samples = end["samples"]
        figures.add("CPU time of 10,000 keys read every 10 ms", cpu / wall, None,
                    f"{cpu / readings / 1e6:.2f} ms each of {readings} readings", "")
        figures.add("samples lost to a table with 10,000 keys",
                    samples["lost"]["table_full"] / samples["expected"], None,
                    f"{samples['lost']['table_full']} of {samples['expected']}", "")
        figures.add("peak resident set with 10,000 keys", end["overhead"]["max_rss_bytes"] / 2**20,
                    None, "", "MiB")


def on_cpu(pid):
    """Returns the CPU seconds that a process or thread has taken so far."""
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
        return int(file.read().split()[0]) / 1e9


def measure_forgetting(figures, folder, options):
    """nhmtap's own CPU time for an interval with 100 active keys, before and after a million other
    keys."""
    def an_interval(tool):
        before, began = on_cpu(tool.pid), time.monotonic()
        time.sleep(2)
        return (on_cpu(tool.pid) - before) / ((time.monotonic() - began) * 100)

    for _ in range(options.rounds):
        with subprocess.Popen(profile("-I", 10, "-o", os.devnull, "-C", options.cpu, by="ip")) as tool, \
                subprocess.Popen([PLACES, "100"]) as active:
            time.sleep(0.5)
            first = an_interval(tool)
            active.send_signal(signal.SIGSTOP)
            Run([PLACES, "1000000", "1000000"])
            active.send_signal(signal.SIGCONT)
            time.sleep(0.5)
            later = an_interval(tool)
            active.kill()
            tool.terminate()
        figures.add("an interval with 100 active keys after a million / at first", later / first, 1.2,
                    f"{later * 1e6:.0f} / {first * 1e6:.0f} µs CPU")


@contextlib.contextmanager
def new_cgroups(nr):
    """Makes a cgroup with nr cgroups in it: c0, c1, … Returns its path below the mount."""
    path = f"/nhmtap-bench-{os.getpid()}"
    folders = [cgroups.mount() + path, *(f"{cgroups.mount()}{path}/c{i}" for i in range(nr))]
    for folder in folders:
        os.mkdir(folder)
    try:
        yield path
    finally:
        for folder in reversed(folders):
            cgroups.remove(folder)


def switch_cost(command, pair, switches):
    """Returns the CPU nanoseconds that counting adds to a switch of the pair, and the number of
    descriptors of the counting command."""
    without, counted = [pair.burst()], []
    with subprocess.Popen(command, stdout=subprocess.PIPE) as tool:
        tool.stdout.readline()  # the start record: it counts
        descriptors = len(os.listdir(f"/proc/{tool.pid}/fd"))
        for _ in range(5):
            counted.append(pair.burst())
        tool.terminate()
    without.append(pair.burst())
    return (min(counted) - min(without)) / switches, descriptors


# Cgroups given by a pattern are counted at switches, those given by name with an event each.
COUNTED_CGROUPS = {1: "c[0]", 3: "c[012]", 10: "c?", 100: "c?,c??", 1000: "c*"}


def measure_cgroups(figures, folder, options):
    """The cost of a switch between two cgroups of one CPU by the number of counted cgroups: with
    counts added up at each switch, and with events of each cgroup."""
    times, most = 10_000, max(COUNTED_CGROUPS)
    counting = nhmtap("stat", "-C", options.cpu, "-e", ",".join(SOFTWARE[:4]), "-I", 60_000, "--format", "json",
                      "--for-each-cgroup")
    with new_cgroups(most) as path, \
            contextlib.closing(Burster([PINGPONG, str(times), *(cgroups.mount() + f"{path}/c{i}" for i in (0, 1))])) as pair:
        for _ in range(options.rounds):
            added_up = {}
            for nr, patterns in COUNTED_CGROUPS.items():
                chosen = [",".join(f"{path}/{name}" for name in names)
                          for names in (patterns.split(","), [f"c{i}" for i in range(nr)])]
                ours, theirs = (switch_cost([*counting, which], pair, 2 * times) for which in chosen)
                added_up[nr] = ours
                figures.add(f"a switch between cgroups, {nr} counted: added up in BPF / events of each",
                            ours[0] / theirs[0], 1 if nr in (3, 10, 100) else None, f"{ours[0]:.0f} / {theirs[0]:.0f} ns")
                figures.add(f"descriptors for that, {nr} counted", ours[1] / theirs[1], None, f"{ours[1]} / {theirs[1]}")
            for i, (what, unit) in enumerate((("a switch, added up in BPF", " ns"), ("descriptors for that", ""))):
                few, many = added_up[1][i], added_up[most][i]
                figures.add(f"{what}, {most} counted / 1 counted", many / few, 1.2, f"{many:.0f} / {few:.0f}{unit}")


def measure_plan(figures, folder, options):
    """The time to parse, check and plan a list of 100 events on a Nehalem described by files."""
    nehalem = hosts.build(os.path.join(folder, "nehalem"), hosts.NEHALEM)
    for _ in range(options.rounds):
        said = subprocess.run([PLAN, nehalem], stdout=subprocess.PIPE, check=True, text=True).stdout
        figures.add("parse and plan 100 events", int(said) / 1e6, 2, "CPU time", unit="ms")


def compile_recorded(folder):
    """Returns a perf.data of clang compiling templates, where most samples are in clang's own
    code."""
    source, data = os.path.join(folder, "templates.cc"), os.path.join(folder, "perf.data")
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <algorithm>\n#include <map>\n#include <regex>\n#include <string>\n#include <vector>\n")
        for i in range(60):
            file.write(f"""std::map<std::string, std::vector<std::pair<int, std::string>>> f{i}(const std::string &s) {{
                std::regex r(s); std::map<std::string, std::vector<std::pair<int, std::string>>> m;
                for (int i = 0; i < {i} + 3; i++) m[s].emplace_back(i, s + std::to_string(i));
                std::sort(m[s].begin(), m[s].end()); return m; }}\n""")
    # Debian 12's perf sometimes aborts when it reads back its data. With -B it doesn't do so at the
    # end.
    perf("record", "-q", "-B", "--no-bpf-event", "-e", "cpu-clock:u", "-F", "5000", "-o", data,
         "clang++", "-O2", "-c", "-o", os.devnull, source)
    return data


PERF_RECORD_COMM, PERF_RECORD_FORK, PERF_RECORD_SAMPLE, PERF_RECORD_MMAP2 = 3, 7, 9, 10
OF_A_PROGRAM = {PERF_RECORD_COMM, PERF_RECORD_FORK, PERF_RECORD_SAMPLE, PERF_RECORD_MMAP2}
PROT_EXEC = 4


def keep_distinct(data, most):
    """Keeps the first `most` samples with distinct addresses in a perf.data, and the records about
    programs and mappings. Returns the addresses of the samples, and the mapped files: [(begin, end,
    offset, path)]."""
    with open(data, "rb") as file:
        old = file.read()
    header = list(struct.unpack_from("<8sQQQQQQQQ", old))
    begin, size = header[5], header[6]
    events, at, seen, mapped = bytearray(), begin, set(), []
    while at < begin + size:
        kind, _, length = struct.unpack_from("<IHH", old, at)
        if kind == PERF_RECORD_MMAP2:
            start, covers, offset, prot = struct.unpack_from("<QQQ24xI", old, at + 16)
            path = old[at + 72:at + length].split(b"\0")[0].decode()
            if prot & PROT_EXEC and path.startswith("/"):
                mapped.append((start, start + covers, offset, path))
        address = struct.unpack_from("<Q", old, at + 8) if kind == PERF_RECORD_SAMPLE else None
        if kind in OF_A_PROGRAM and (not address or (address not in seen and len(seen) < most)):
            events += old[at:at + length]
            seen |= {address} - {None}
        at += length
    header[6] = len(events)
    with open(data, "wb") as file:  # without the features, which describe the old data
        file.write(struct.pack("<8sQQQQQQQQ", *header) + bytes(32) + old[104:begin] + events)
    return [address for address, in seen], mapped


def places_of(addresses, mapped):
    """Returns a line "PATH OFFSET" for each address that lies in a file."""
    lines = []
    for address in addresses:
        for begin, end, offset, path in reversed(mapped):
            if begin <= address < end:
                lines.append(f"{path} {address - begin + offset:x}\n")
                break
    return lines


def cost(command, stdin=os.devnull):
    """Returns the CPU seconds and the peak resident bytes of a command."""
    with open(stdin, "rb") as file:
        done = subprocess.run([COST, *command], stdin=file, stdout=subprocess.DEVNULL, text=True, stderr=subprocess.PIPE)
    if done.returncode:
        failure = PeerFailed if command[0] == "perf" else SystemExit
        raise failure(f"bench: {' '.join(command)} failed: {done.stderr}")
    said = done.stderr.split()
    return int(said[-2]) / 1e9, int(said[-1])


def leave_cache(paths):
    """Drops the files' pages from the page cache, except those that are mapped."""
    for path in paths:
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


# Of some 40 ms, 4 are the starts of three processes, 5 the addresses, and most of the rest is memory that the kernel hands
# out and clears for symbols and strings. perf reads no .eh_frame, and has no second process. The functions of stripped
# files, 178,000 which .eh_frame tells apart, take a fifth of it: without them it is 31 ms, a fifth of perf's 157. To look
# for those alone that an address asks for would take a question to the worker for each.
# Nearly all of it is there with one address of each of the six files, too: 34 of 37 ms, with the files in the cache. Their
# tables of 9.6 MB are read, sorted and handed over to the process that names. Only to read them takes 1.4 ms, or 3 to 4 from
# the disk.
NAMES_MOST = {"cold": 0.6, "warm": 0.5}


def measure_names(figures, folder, options):
    """The cost of naming 10,000 distinct addresses of clang and its libraries, compared with
    perf."""
    data, places = compile_recorded(folder), os.path.join(folder, "places")
    lines = places_of(*keep_distinct(data, 10_000))
    with open(places, "w", encoding="utf-8") as file:
        file.writelines(lines)
    files = {line.split()[0] for line in lines}
    script = ["perf", "script", "-i", data, "-F", "ip,sym,symoff,dso"]
    for _ in range(options.rounds):
        costs = {}
        for state in ("cold", "warm"):
            for name, command in (("perf", script), ("ours", [NAMING, "1"])):
                if state == "cold":
                    leave_cache(files)
                costs[state, name] = cost(command, places)
            ours, theirs = costs[state, "ours"], costs[state, "perf"]
            figures.add(f"name {len(lines):,} addresses, files {state} / perf script", ours[0] / theirs[0], NAMES_MOST[state],
                        f"{ours[0] * 1e3:.0f} / {theirs[0] * 1e3:.0f} ms CPU")
        figures.add("peak memory of that / perf script", ours[1] / theirs[1], 1,
                    f"{ours[1] / 2**20:.1f} / {theirs[1] / 2**20:.1f} MiB")
        report = cost(["perf", "report", "-i", data, "--stdio"], places)
        figures.add("the same / perf report", ours[0] / report[0], 0.5,
                    f"{ours[0] * 1e3:.0f} / {report[0] * 1e3:.0f} ms CPU")
        again = (cost([NAMING, "11"], places)[0] - ours[0]) / 10
        figures.add("name them again / perf script", again / theirs[0], None,
                    f"{again * 1e9 / len(lines):.0f} ns an address")


# Run as activities of one CONFIG, and as separate commands.
TOGETHER = [
    {"name": "counts", "command": "stat", "event": "page-faults,context-switches"},
    {"name": "cpu", "command": "profile", "event": "cpu-clock", "freq": 99, "by": "symbol,comm", "top": 50},
    {"name": "memory", "command": "mem", "event": "page-faults", "count": 1, "by": "page,symbol", "top": 50},
]


def words_of(activity):
    return [activity["command"]] + [f"--{name}={value}" for name, value in activity.items()
                                    if name not in ("name", "command")]


def configure(folder, activities, of_all=(), **members):
    path = os.path.join(folder, "config.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"activities": [{**activity, **members} for activity in activities], **dict(of_all)}, file)
    return path


def until_first(command):
    """Returns the seconds until the first record."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.readline()
    seconds = time.monotonic() - began
    process.terminate()
    process.communicate()
    return seconds


def measure_together(figures, folder, options):
    """The cost of three activities on a busy program in one session, compared with three
    processes."""
    out = os.open(os.devnull, os.O_RDWR)
    busy = subprocess.Popen([FAULTS, str(1 << 40)], stdin=out, stdout=out, stderr=out)
    try:
        # Each activity reads its own tables: the more intervals, the smaller the shared part.
        for each in (1000, 100):
            config = configure(folder, TOGETHER, pid=str(busy.pid), interval_ms=each, interval_count=5000 // each)
            rest = ["-p", str(busy.pid), "-I", str(each), "--interval-count", str(5000 // each), "--format", "json"]
            alone = [nhmtap(*words_of(activity), *rest) for activity in TOGETHER]
            for _ in range(options.rounds):
                ours, theirs = cost(nhmtap("run", config)), [cost(command) for command in alone]
                cpu, memory = map(sum, zip(*theirs))
                name = f"stat, profile and mem, 5 s, every {each} ms"
                figures.add(f"{name}: one session / three processes", ours[0] / cpu, None,
                            f"{ours[0] * 1e3:.0f} / {cpu * 1e3:.0f} ms CPU")
                figures.add(f"peak memory of that, every {each} ms", ours[1] / memory, None if each == 1000 else 0.6,
                            f"{ours[1] / 2**20:.1f} / {memory / 2**20:.1f} MiB")
    finally:
        busy.kill()
        busy.wait()
        os.close(out)


def measure_late(figures, folder, options):
    """How much intervals of 20 ms deviate, by the records' durations: alone, and with eleven other
    activities, some of which read 10,000 keys."""
    own = {"name": "own", "command": "stat", "event": "task-clock", "interval_ms": 20}
    others = [{**TOGETHER[i % 3], "name": f"other{i}", "interval_ms": (100, 200, 500)[i % 3]} for i in range(11)]
    for _ in range(options.rounds):
        late = []
        for activities in ([own], [own, *others]):
            config, path = configure(folder, activities), os.path.join(folder, "late")
            Run([NHMTAP, "run", config, "--", PLACES, "10000", "1500000"], path)
            lasted = [r["duration_ns"] / 1e6 for r in records(path) if r["type"] == "count" and r["activity"] == "own"]
            late.append(statistics.quantiles([abs(ms - 20) for ms in lasted[:-1]], n=100)[-1])
        figures.add("an interval of 20 ms beside 11 activities: 99 % are no further from 20 ms than", late[1], None,
                    f"{late[0]:.2f} ms alone", "ms")


def measure_before(figures, folder, options):
    """The cost of a run of one activity, compared with another build, NHMTAP_BEFORE."""
    before = os.environ.get("NHMTAP_BEFORE")
    if not before:
        return
    for words in (["stat", "-e", "task-clock"], ["profile", "-e", "page-faults", "-c", "1"],
                  ["mem", "-e", "page-faults", "-c", "1"]):
        rest = [*words, "--format", "json", "-p", str(os.getpid())]
        commands = [[NHMTAP, *rest], [before, *rest]]
        for _ in range(options.rounds):
            each = [[], []]
            for _ in range(11):
                for command, values in zip(commands, each):
                    values.append(until_first(command))
            ours, theirs = map(statistics.median, each)
            figures.add(f"{words[0]}: start to the first record / before", ours / theirs, 1.05,
                        f"{ours * 1e3:.1f} / {theirs * 1e3:.1f} ms")
    command = [BURSTS, "1000"]
    sampling = profile("-o", os.devnull, "--", *command)
    variants = {"counting": lambda i: [AROUND, *command], "ours": lambda i: sampling,
                "before": lambda i: [before, *sampling[1:]]}
    for _ in range(options.rounds):
        beyond, _, counted = burst_costs(variants, 1000, 500)
        figures.add("a sample by pid and ip / before", beyond["ours"] / beyond["before"], 1.05,
                    f"{beyond['ours']:.0f} / {beyond['before']:.0f} ns over counting's {counted:.0f}")


def measure_session(figures, folder, options):
    """Several activities in one process."""
    measure_together(figures, folder, options)
    measure_late(figures, folder, options)
    measure_before(figures, folder, options)


def measure_report(figures, folder, options):
    """What a page of a long stream costs to make, and to read in a browser."""
    from browser import chromium  # only here: selenium is not needed for the rest
    stream, made = os.path.join(folder, "long.jsonl"), os.path.join(folder, "page.html")
    page.write_stream(stream, REPORTED_BYTES)
    with chromium(os.path.join(folder, "chromium.log")) as driver:
        for _ in range(options.rounds):
            cpu, peak = cost(nhmtap("report", "-o", made, stream))
            figures.add("report of 100 MB of records: CPU time", cpu, unit="s")
            figures.add("its peak resident set", peak / 2**20, 64, unit="MiB")
            figures.add("its page", os.path.getsize(made) / 1e6, 5, unit="MB")
            ready, frames = page.read_page(driver, made)
            figures.add("until the page is ready in Chromium", ready, 1, unit="s")
            figures.add("time of a frame while it scrolls, median", statistics.median(frames), 17, f"largest {max(frames):.0f} ms", unit="ms")


# Kinds of work.c with their turns, some 100 million instructions each.
WORKS = {"int": 12000, "memory": 8000, "float": 8000, "sort": 500}
FAMILIES = {"nothing": "", "instructions": "instructions:u", "cache events": "mem_inst_retired.loads:u,r10cb:u",
            "cycles": "cycles:u"}
# What counting may take, in the time of the same work with nothing counted.
GOALS = {"instructions": 1 / 0.9, "cache events": 1 / 0.4, "cycles": 1 / 0.33}


def without_hooks(build):
    """The emulator without what it does between and within instructions, built once for each version of it: the same Bochs."""
    tree, source = build + "/without-hooks", build + "/bochs-3.0"
    version = [f"{folder}/instrument/nhm/nhm_version.h" for folder in (tree, source)]
    if not os.path.exists(tree + "/bochs") or not filecmp.cmp(*version, shallow=False):
        print("bench: building the emulator without its hooks", file=sys.stderr)
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(source, tree, symlinks=True)
        subprocess.run(["make", "-C", tree, "all-clean"], capture_output=True, check=True)
        subprocess.run(["make", "-C", tree, "-j2", "CXX=g++ -DNHM_NO_HOOKS"], capture_output=True, check=True)
    return tree + "/bochs"


def measure_machine(figures, folder, options):
    """The speed of the emulated machine, by the CPU time that its process takes beyond that of a run without a turn, beside that of
    the emulator without hooks, and of cachegrind, which sees neither a kernel nor cycles."""
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "user", "machine"))
    import nehalem

    build = nehalem.build_folder()
    if not os.path.exists(build + "/nhm-bochs") or not shutil.which("valgrind"):
        print("bench: the machine's speed takes valgrind, and the machine, which make machine builds", file=sys.stderr)
        return
    with contextlib.ExitStack() as guests:
        guest = guests.enter_context(nehalem.Guest(nehalem.Machine(ips=0, add=(WORK,))))
        with unittest.mock.patch.dict(os.environ, NHM_BOCHS=without_hooks(build)):
            plain = guests.enter_context(nehalem.Guest(guest.machine))

        def seconds(events, kind, turns, of=guest):
            with of.fork() as fork:
                began = on_cpu(fork.emulator.pid)
                result = fork.run(f"{'perf stat -x, -e ' + events if events else ''} work {kind} {turns}", paranoid=-1)
                return on_cpu(fork.emulator.pid) - began, result.stderr

        def cachegrind(kind, turns):
            return Run(["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null", WORK, kind, str(turns)]).cpu, ""

        def start(take, *what):
            """On a busy host one alone is off by more than a work takes."""
            return statistics.median(take(*what)[0] for _ in range(3))

        starts = {family: start(seconds, events, "int", 0) for family, events in FAMILIES.items()}
        starts |= {"plain": start(seconds, "", "int", 0, plain), "cachegrind": start(cachegrind, "int", 0)}
        for kind, turns in WORKS.items():
            for _ in range(options.rounds):
                takes = {"cachegrind": cachegrind(kind, turns)[0] - starts["cachegrind"], "plain": seconds("", kind, turns, plain)[0] - starts["plain"]}
                for family, events in FAMILIES.items():
                    took, said = seconds(events, kind, turns)
                    takes[family] = took - starts[family]
                    if family == "instructions":
                        instructions = int(said.split(",")[0])
                speeds = {name: instructions / took / 1e6 for name, took in takes.items()}

                def compare(text, one, other, goal):
                    figures.add(f"machine, {kind}: {text}", takes[one] / takes[other], goal,
                                f"{speeds[one]:.0f} / {speeds[other]:.0f} million instructions in a second")

                for family, goal in GOALS.items():
                    compare(f"{family} counted / nothing counted", family, "nothing", goal)
                compare("nothing counted / without hooks", "nothing", "plain", 1 / 0.97)
                compare("nothing counted / in cachegrind", "nothing", "cachegrind", None)


MEASUREMENTS = {
    "samples": measure_samples,
    "programs": measure_programs,
    "loads": measure_loads,
    "stacks": measure_stacks,
    "perf": measure_perf,
    "stream": measure_stream,
    "rows": measure_rows,
    "reading": measure_reading,
    "start": measure_start,
    "functions": measure_functions,
    "intervals": measure_intervals,
    "outputs": measure_outputs,
    "dead": measure_dead,
    "scrape": measure_scrape,
    "forks": measure_forks,
    "memory": measure_memory,
    "idle": measure_idle,
    "churn": measure_churn,
    "keys": measure_keys,
    "forgetting": measure_forgetting,
    "cgroups": measure_cgroups,
    "plan": measure_plan,
    "names": measure_names,
    "session": measure_session,
    "unwind": measure_unwind,
    "report": measure_report,
    "machine": measure_machine,
}


# --- the whole ----------------------------------------------------------------------------------

def parse_arguments():
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, metavar="WHAT",
                        default=list(MEASUREMENTS), help=", ".join(MEASUREMENTS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)),
                        help="where everything runs (default: the last)")
    parser.add_argument("--seconds", type=int, default=60, help="how long churn is measured, more than 10 (default: 60)")
    parser.add_argument("--json", action="store_true", help="write records: a line about the run, and one a figure")
    return parser.parse_args()


def this_run(options):
    """What a run's figures are of."""
    git = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    version = subprocess.run([NHMTAP, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    return {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "machine": models[0] if models else None,
            "cpus": os.cpu_count(), "kernel": platform.release(), "version": version,
            "commit": git.stdout.strip() or None, "rounds": options.rounds}


def main():
    options = parse_arguments()
    missing = [name for name in ("perf",) if not shutil.which(name)]
    if missing:
        sys.exit(f"bench: compares with {', '.join(missing)}, which is not installed")
    os.sched_setaffinity(0, {options.cpu})
    figures, failed = Figures(), False
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder  # perf keeps its build-id cache there
        for name in options.only:
            if sys.stderr.isatty():
                print(f"\r\x1b[K{name}, {options.rounds} rounds …", end="", file=sys.stderr)
            try:
                MEASUREMENTS[name](figures, folder, options)
            except PeerFailed as error:
                print(error, file=sys.stderr)
                failed = True
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    result = figures.summed_up()
    if options.json:
        write_records(this_run(options), result, sys.stdout)
    else:
        print_table(result)
    return 1 if failed or any(figure["holds"] is False for figure in result) else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
