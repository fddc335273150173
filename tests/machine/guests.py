# SPDX-License-Identifier: GPL-2.0-only
"""Guests as the tests use them."""
import contextlib
import os
import subprocess

import known
import nehalem
import records
import variation

PROGRAMS = nehalem.build_folder() + "/programs"
# In the user's and the kernel's mode: instructions, and cycles, which depend on every address.
TALLY = "tally c0:0:0:0 3c:0:0:0 c0:0:0:1 3c:0:0:1 --"

# The first kernel, and the first model of each kind, are always tested; tests on further ones are
# marked thorough. `make check-kernels` asks for other kernels.
KERNELS = tuple(os.environ.get("NHM_KERNELS", "6.1 6.12").split())

# The Westmeres, the most common one first. The one of Core i3 and i5 has one package of two cores;
# the others have two packages. TABLES has the event table of each.
WESTMERES = {
    "westmere-dp": {"model": "westmere-dp", "packages": 2, "kernel": "6.12"},
    "westmere": {"model": "westmere", "cores": 2, "kernel": "6.1"},
    "westmere-ex": {"model": "westmere-ex", "packages": 2, "kernel": "6.1"},
}
# The Sandy Bridges: one package of two cores; two packages. The fixtures have the same names.
SANDYBRIDGES = {
    "sandybridge": {"model": "sandybridge", "cores": 2},
    "sandybridge-ep": {"model": "sandybridge-ep", "packages": 2, "kernel": "6.12"},
}
# CPUs without an event table, with a given CPUID.0AH. Version 1: core_pmu, without fixed counters,
# LBR and events for its debug store. Version 2, on a model that the kernel does not know: intel_pmu
# with two general and three fixed counters, without branches and branch misses. Version 3: four
# counters and all events.
FIRST = {"model": "core", "perfmon": "07300201,00000000,00000000"}
SECOND = {"model": "unknown", "perfmon": "07300202,00000060,00000603"}
THIRD = {"model": "unknown", "perfmon": "07280403,00000000,00000503"}
CORE2 = {"model": "core2", "kernel": "6.12"}
# CPUs with counters of the third-level cache and the bus: two cores (one module of the 7400); two
# packages.
XEONS = {"xeon_7400": {"model": "xeon-7400", "cores": 2}, "xeon_7100": {"model": "xeon-7100", "cores": 2}}
PAIRS_OF_XEONS = {"xeons_7400": {"model": "xeon-7400", "packages": 2, "kernel": "6.12"},
                  "xeons_7100": {"model": "xeon-7100", "packages": 2}}
NETBURST = {"model": "netburst"}
TABLES = {"westmere": "westmere-ep", "westmere-dp": "westmere-ep-dp", "westmere-ex": "westmere-ex"}


# perf record reads all of /proc/kallsyms several times, 4 seconds each in the
# guest, to find where the kernel's text begins. These lines are all it needs.
LITTLE_KALLSYMS = """
    head -c 20000 /proc/kallsyms | grep -E ' (_text|_stext)$' > /run/kallsyms
    mount --bind /run/kallsyms /proc/kallsyms
"""


# perf reads all of a processor's table of events before it opens one, which is half of its run
# time. The kernel's names are enough here, so perf is told that the processor is an Alder Lake:
# its table is the first in perf's list, and its events are of PMUs that do not exist here.
NO_TABLE = "PERF_CPUID=GenuineIntel-6-97-0"


class Bench:
    """A guest with the known programs, nhmtap if it is built, and perf.

    perf records in the guest, but `perf script` runs on the host, which
    saves most of the guest's work.
    """

    def __init__(self, guest):
        self.guest = guest

    def run(self, *command, user="root", paranoid=None, env=(), stdin=b"", timeout=900, **settings):
        """Runs a command; returns its status, stdout and stderr. The other keywords are
        those of nehalem.Settings."""
        return self.guest.run(
            *command,
            user=user,
            paranoid=paranoid,
            env=(NO_TABLE, *env),
            stdin=stdin,
            timeout=timeout,
            settings=nehalem.Settings(**settings),
        )

    def say(self, *command, **options):
        """The output of a command that has to succeed."""
        result = self.run(*command, **options)
        assert result.status == 0, str(result)
        return result.stdout

    def tally(self, events, command, **options):
        """Counts events together around a program; the Result of programs/tally.c."""
        spelt = (":".join(f"{part:x}" for part in known.attribute(e)) for e in events)
        return self.run(f"tally {' '.join(spelt)} -- {command}", paranoid=-1, **options)

    def counts(self, events, command, **options):
        """Counts of a program, never multiplexed: {event: count}. Events are in Intel's
        spelling, which counts at user level, or in perf's."""
        found = {}
        for group in known.groups(events):
            result = self.tally(group, command, **options)
            assert result.status == 0, str(result)
            for event, line in zip(group, result.stdout.splitlines()[-len(group):]):
                count, enabled, running = map(int, line.split())
                assert 0 < running == enabled, f"{event} did not run all the time: {result}"
                found[event] = count
        return found

    def count(self, event, command, **options):
        return self.counts([event], command, **options)[event]

    def perf_counts(self, events, command, options=""):
        """The counts of perf stat, in the form that counts() returns."""
        found = {}
        for group in known.groups(events):
            spelt = [spelling(e) for e in group]
            said = self.say(
                f"perf stat -x , -o y {options} -e {','.join(spelt)} {command} >&2; cat y",
                paranoid=-1,
            )
            lines = [line for line in said.splitlines() if line and line[0] in "0123456789<"]
            assert len(lines) == len(group), said
            for event, text, line in zip(group, spelt, lines):
                value, rest = line.split(f",,{text},")
                assert rest.split(",")[1] == "100.00", f"multiplexed: {line}"
                found[event] = int(value)
        return found

    def samples(self, options, command, fields, tmp_path, **settings):
        """The samples of perf record: for each, the fields that `perf script -F` prints."""
        self.say(f"perf record -q {options} -o x {command}", paranoid=-1, **settings)
        data = self.fetch("x", tmp_path)
        script = ["perf", "script", "--itrace=b", "-f", "-i", data, "-F", fields, "--ns"]
        said = subprocess.run(script, capture_output=True, text=True, check=True)
        return [
            line.split()
            for line in said.stdout.splitlines()
            if line.strip() and "trace error" not in line
        ]

    def put(self, path):
        """Copies a file into the guest, where it stays; returns its path there. A machine that is made with a file boots
        anew for each worker and each run that compiles it."""
        there = f"/run/{os.path.basename(path)}"
        with open(path, "rb") as file:
            self.say(f"cat > {there} && chmod 755 {there}", stdin=file.read())
        return there

    def fetch(self, path, tmp_path):
        """Brings one file of the last command to the host."""
        tar = self.guest.fetch(path)
        assert tar, f"{path} is not in the guest"
        to = f"{tmp_path}/{os.path.basename(path)}"
        with tar.extractfile(tar.getmembers()[0]) as f, open(to, "wb") as out:
            out.write(f.read())
        return to

    def msr(self, *steps, cpu=0):
        """Runs the msr program; returns the words of each line of its output."""
        said = self.say("msr", str(cpu), *steps)
        return [line.split() for line in said.splitlines()]


def spelling(event):
    """perf's spelling of an event. An event in Intel's spelling is counted at user level."""
    if event in known.events():
        return known.raw(event) + ":u"
    return event


def programs():
    found = sorted(os.listdir(PROGRAMS)) if os.path.isdir(PROGRAMS) else []
    return [f"{PROGRAMS}/{name}" for name in found]


def tool():
    """The path of nhmtap, or None if it is not built."""
    path = os.environ.get("NHMTAP") or os.path.join(nehalem.HERE, "../../build/nhmtap")
    return os.path.abspath(path) if os.access(path, os.X_OK) else None


def late_library(name):
    """HOSTPATH:GUESTPATH of a library that nhmtap loads with dlopen, so that ldd does not list it.
    Its path in the guest is the one on the host."""
    said = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    path = next(line.split()[-1] for line in said.splitlines() if line.split()[0].startswith(name))
    return f"{os.path.realpath(path)}:{path}"


def nhmtap(bench, *arguments, status=0, cpu=None, **options):
    """The records of a run. Each record is checked against its schema, and the stream against the
    rules for streams. cpu: pins nhmtap to this CPU, and the command it starts until that changes
    its affinity."""
    pinned = () if cpu is None else ("taskset", hex(1 << cpu))
    result = bench.run(*pinned, "/opt/nhmtap", *map(str, arguments), paranoid=-1, **options)
    assert result.status == status, str(result)
    found = records.parse(result.stdout)
    records.check_stream(found)
    return found


@contextlib.contextmanager
def forks(booted, test="several", **options):
    """Gives a function that forks unused guests; closes them at the end."""
    guests = []

    def get(**kind):
        base = booted(**options, **kind)
        guests.append(base.fork())
        booted.held[base.machine] += 1
        variation.stir(guests[-1], test)
        return Bench(guests[-1])

    get.guests = guests
    yield get
    for guest in guests:
        guest.close()
        booted.held[guest.machine] -= 1
