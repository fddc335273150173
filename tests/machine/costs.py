# SPDX-License-Identifier: GPL-2.0-only
"""What nhmtap itself costs, in instructions, counted on the emulated machine by `tally`: the user's and the kernel's of
nhmtap and of the command that it starts.

    costs.py           prints the table, with what perf costs for the like
    costs.py --accept  writes costs.txt, with which test_costs.py compares

A start is a whole run that measures `true`. All other costs are differences of runs of two sizes, so what depends on
where the machine's clock ticks largely cancels out. Each run is made in a fork of one machine, which is always the same:
its date is constant, and programs have fixed places in it."""
import concurrent.futures
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path[:0] = [HERE, os.path.join(HERE, "../lib"), os.path.join(HERE, "../../user/machine")]

import nehalem
from guests import LITTLE_KALLSYMS, PROGRAMS, tool

SIDES = ("user", "kernel")
BASELINE = HERE + "/costs.txt"
MOST = 0.02  # by which a cost may differ from the baseline
MOST_ELSEWHERE = 0.1  # with another compiler, other libraries or another kernel than the baseline's, or of UNEVEN
SLACK = 30  # instructions by which a small one may
# What another build moves by more than that without a cause of its own: how often processes wait and are woken depends on
# where the clock ticks. costs.txt has "-" for it, and it is not compared.
VARY = {("mapping", "user"), ("sample of mem", "user"), *((name, "kernel") for name in (
    "thread", "process", "process of profile --by symbol", "start of stat -a, 1 CPU more", "interval of stat -a, 1 CPU",
    "interval of stat -a, 4 CPUs", "interval of stat -a, 16 CPUs", "interval of run, two activities", "interval of run, two activities, 16 CPUs",
    "entry in the kernel's table", "entry in json", "entry in pprof", "entry in folded", "entry in clickhouse", "entry in otlp",
    "entry in otlp-profiles", "entry in speedscope", "entry in firefox", "entry in callgrind", "entry in flat", "entry in json, by cgroup",
    "entry in json, of mem"))}
# Builds whose code there is the same differ so much, by where strings, BTF and the clock's ticks fall.
UNEVEN = {("start of mem", "user"), ("start of run, two activities", "user"), ("start of run, two activities", "kernel"),
          ("sample of mem", "kernel"), ("mapping", "kernel")}
WORKLOADS = os.environ.get("NHMTAP_PROGRAMS") or HERE + "/../../build/programs"
FOUR = "-e instructions,cycles,BR_INST_RETIRED.ALL_BRANCHES,UOPS_RETIRED.ANY"
PERFS_FOUR = "-e instructions,cycles,r4c4,r1c2"
FORMATS = ("json", "flat", "clickhouse", "openmetrics", "otlp", "otlp-profiles", "pprof", "folded", "speedscope", "firefox", "callgrind")
CHASING = (1, "chase")  # a machine with 1 CPU and this program
ALL_NAMES = "umount /proc/kallsyms; "  # the others see few of the kernel's names
CGROUPS = "for i in $(seq {N}); do mkdir /sys/fs/cgroup/g$i; done; "
CONFIG = '''{"activities": [{"name": "a", "command": "stat", "event": "page-faults"},
               {"name": "b", "command": "profile", "event": "page-faults"}]}'''
INTERVALS = """echo '{"activities": [
  {"name": "a", "command": "stat", "event": "instructions,cycles", "all_cpus": true, "interval_ms": 10, "interval_count": {N}},
  {"name": "b", "command": "profile", "event": "page-faults", "count": 1, "by": "pid", "all_cpus": true, "interval_ms": 10, "interval_count": {N}}],
 "outputs": [{"path": "x"}]}' > /run/intervals; nhmtap run -q /run/intervals"""


def start(rest, program="nhmtap", before=""):
    return ((1, f"{before}{program} {rest} -q -o x -- true"),)


def slope(command, few, many):
    """What one more of N costs."""
    return (1 / (many - few), command.replace("{N}", str(many))), (-1 / (many - few), command.replace("{N}", str(few)))


def without(runs, others):
    return (*runs, *((-share, command) for share, command in others))


def faults(rest, program="doings faults", few=200, many=1200):
    return slope(f"nhmtap {rest} -q -- {program} {{N}}", few, many)


def samples(command, loads, period):
    """What one more sample of chase's 100,000 loads or branches costs: the same run has fewer with a period ten times as
    long. Of loads, the processor looks at one in 16."""
    often, seldom = (f"{command.replace('{C}', str(c))} -- chase l1" for c in (period, 10 * period))
    nr = 100000 / (16 if loads else 1) / period * 0.9
    return (1 / nr, often), (-1 / nr, seldom)


def entries(output, words="profile", by="ip"):
    """With --top 1, all of them are there but are not written."""
    return without(faults(f"{words} -e page-faults:u -c 1 --by {by} --format {output} -o x"),
                   faults(f"{words} -e page-faults:u -c 1 --by {by} --top 1 --format {output} -o x"))


# {name: (CPUs, or these and further programs, nhmtap's runs, perf's)}: a run is its share in the sum, and a command.
COSTS = {
    "start of stat": (1, start("stat -e instructions"), ((1, "perf stat -e instructions -o x -- true"),)),
    "start of profile --by ip": (1, start("profile -e page-faults -c 1 --by ip"), ()),
    "start of profile --by symbol": (1, start("profile -e page-faults -c 1 --by symbol", before=ALL_NAMES),
                                     start("record -e page-faults -c 1", "perf", ALL_NAMES)),
    "start of mem": (1, start("mem"), start("mem -t load record", "perf")),
    "start of offcore": (1, start("offcore"), ()),
    "start of branch": (1, start("branch"), start("record -b", "perf")),
    "start of stream": (1, start("stream -e page-faults -c 1"), ()),
    "start of run, two activities": (1, ((1, "nhmtap run -q /run/config -- true"),), ()),
    "start of analyze": (1, start("analyze --once --no-where"), ()),
    "interval of stat -a, 1 CPU": (1, slope(f"nhmtap stat -a {FOUR} -I 10 --interval-count {{N}} -q -o x", 5, 55),
                                   slope(f"perf stat -a {PERFS_FOUR} -I 10 --interval-count {{N}} -o x", 5, 55)),
    "interval of stat -a, 4 CPUs": (4, slope(f"nhmtap stat -a {FOUR} -I 10 --interval-count {{N}} -q -o x", 5, 55),
                                    slope(f"perf stat -a {PERFS_FOUR} -I 10 --interval-count {{N}} -o x", 5, 55)),
    "interval of stat -a, 16 CPUs": (16, slope(f"nhmtap stat -a {FOUR} -I 10 --interval-count {{N}} -q -o x", 5, 55),
                                     slope(f"perf stat -a {PERFS_FOUR} -I 10 --interval-count {{N}} -o x", 5, 55)),
    "interval of run, two activities": (1, slope(INTERVALS, 5, 55), ()),
    "interval of run, two activities, 16 CPUs": (16, slope(INTERVALS, 5, 55), ()),
    "start of stat -a, 1 CPU more": (4, without(((1 / 3, f"nhmtap stat -a {FOUR} -q -o x -- true"),),
                                                ((1 / 3, f"nhmtap stat -C 0 {FOUR} -q -o x -- true"),)), ()),
    "thread": (1, without(slope(f"nhmtap stat {FOUR} -q -o x -- doings threads {{N}}", 10, 60), slope("doings threads {N}", 10, 60)),
               without(slope(f"perf stat {PERFS_FOUR} -o x -- doings threads {{N}}", 10, 60), slope("doings threads {N}", 10, 60))),
    "cgroup of stat -a --per cgroup": (1, slope(CGROUPS + f"nhmtap stat -a {FOUR} --per cgroup -q -o x -- true", 10, 50), ()),
    "sample of profile": (1, without(faults("profile -e page-faults:u -c 1 --by pid -o x"), slope("doings faults {N}", 200, 1200)),
                          without(slope("perf record -q -e page-faults:u -c 1 -o x -- doings faults {N}", 200, 1200),
                                  slope("doings faults {N}", 200, 1200))),
    # Of doings, each sample is in a function of its own, whose name is looked up; of faults, all are in one.
    "sample of stream": (1, without(faults("stream -e page-faults:u -c 1 -o x"), slope("doings faults {N}", 200, 1200)), ()),
    "sample of stream, of a known function": (1, without(faults("stream -e page-faults:u -c 1 -o x", "faults"), slope("faults {N}", 200, 1200)), ()),
    "sample of mem": (CHASING, samples("nhmtap mem --ldlat 3 -c {C} --by pid -q -o x", True, 50),
                      samples("perf record -q -e cpu/mem-loads,ldlat=3/Pu -d -W -c {C} -o x", True, 50)),
    "sample of branch": (CHASING, samples("nhmtap branch -e BR_INST_RETIRED.ALL_BRANCHES:u -c {C} -q -o x", False, 100),
                         samples("perf record -q -b -e r4c4:u -c {C} -o x", False, 100)),
    "entry in the kernel's table": (1, without(faults("profile -e page-faults:u -c 1 --by ip --top 1 -o x"),
                                               faults("profile -e page-faults:u -c 1 --by pid --top 1 -o x")), ()),
    "name": (1, without(faults("profile -e page-faults:u -c 1 --by symbol --top 1 -o x"),
                        faults("profile -e page-faults:u -c 1 --by ip --top 1 -o x")), ()),
    "mapping": (1, without(faults("profile -e page-faults:u -c 1 --by symbol -o x", "doings maps"), slope("doings maps {N}", 200, 1200)), ()),
    "process": (1, without(slope("nhmtap stat -e page-faults -q -o x -- puppet vforks={N},0", 50, 250), slope("puppet vforks={N},0", 50, 250)),
                without(slope("perf stat -e page-faults -o x -- puppet vforks={N},0", 50, 250), slope("puppet vforks={N},0", 50, 250))),
    "process of profile --by symbol": (1, without(slope("nhmtap profile -e page-faults:u -c 1 --by symbol -q -o x -- puppet vforks={N},0", 50, 250),
                                                  slope("puppet vforks={N},0", 50, 250)), ()),
    **{f"entry in {output}": (1, entries(output), ()) for output in FORMATS},
    "entry in json, by cgroup": (1, entries("json", by="cgroup,ip"), ()),
    "entry in json, of mem": (1, entries("json", "mem", "page"), ()),
}


class Machines:
    """One booted guest for each number of CPUs, of which each run gets a fork."""

    def __init__(self, later=0):
        """later: seconds by which the machine's date differs, and with it where its clock ticks."""
        self.guests, self.date = {}, 1700000000 + later

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for guest in self.guests.values():
            guest.close()

    def booted(self, cpus):
        if cpus not in self.guests:
            cores, *programs = cpus if isinstance(cpus, tuple) else (cpus,)
            add = (tool(), f"{PROGRAMS}/tally", f"{WORKLOADS}/doings", f"{WORKLOADS}/faults",
                   f"{WORKLOADS}/puppet", *(f"{PROGRAMS}/{name}" for name in programs))
            self.guests[cpus] = nehalem.Guest(nehalem.Machine(cores=cores, add=add, rounded=True, date=self.date))
            self.guests[cpus].run(LITTLE_KALLSYMS + "echo 0 > /proc/sys/kernel/randomize_va_space; cat > /run/config", stdin=CONFIG.encode(), paranoid=-1)
        return self.guests[cpus]

    def instructions(self, cpus, command):
        """The user's and the kernel's."""
        with self.booted(cpus).fork() as guest:
            before, _, measured = command.rpartition("; ")
            said = guest.run(f"{before}\ntally c0:0:0:4 c0:0:0:5 -- {measured}")
        lines = [line.split() for line in said.stdout.splitlines()[-2:]]
        assert said.status == 0 and all(0 < int(enabled) == int(running) for _, enabled, running in lines), str(said)
        return [int(count) for count, _, _ in lines]

    def costs(self, side=1, names=tuple(COSTS)):
        """{name: (user's, kernel's)} of nhmtap (1) or perf (2)."""
        wanted = {(COSTS[name][0], command) for name in names for _, command in COSTS[name][side]}
        for cpus in {cpus for cpus, _ in wanted}:
            self.booted(cpus)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            counted = dict(zip(wanted, pool.map(lambda run: self.instructions(*run), wanted)))
        return {name: tuple(round(sum(share * counted[COSTS[name][0], command][which] for share, command in COSTS[name][side]))
                            for which in (0, 1)) for name in names if COSTS[name][side]}


def toolchain():
    """What the costs of one source depend on."""
    versions = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")[0]
                for command in (["gcc", "--version"], ["clang", "--version"], ["ldd", "--version"], ["pkg-config", "--modversion", "libbpf"],
                                ["pkg-config", "--modversion", "jansson"])]
    return "; ".join(versions)


def kernel():
    """The package of the machines' kernel. Another point release of it moves a cost by up to 10 %."""
    with open(f"{nehalem.build_folder()}/kernel/{nehalem.Machine.kernel}/version", encoding="utf-8") as f:
        return " ".join(line.split(": ")[1].strip() for line in f)


def most():
    """By which the user's and the kernel's cost may differ here, None where they are not compared: what another kernel
    costs says nothing about nhmtap."""
    with open(BASELINE, encoding="utf-8") as f:
        made = f.readlines()
    same_kernel = f"# On {kernel()}\n" in made
    bound = MOST if same_kernel and f"# With {toolchain()}\n" in made else MOST_ELSEWHERE
    return bound, bound if same_kernel else None


def baseline():
    with open(BASELINE, encoding="utf-8") as f:
        rows = [line.rstrip("\n").rsplit("\t", 2) for line in f if not line.startswith("#")]
    return {name: tuple(None if text == "-" else int(text) for text in pair) for name, *pair in rows}


def accept(now):
    with open(BASELINE, "w", encoding="utf-8") as f:
        f.write("# Instructions of nhmtap by costs.py: what, the user's, the kernel's. make costs-accept writes this.\n")
        f.write(f"# With {toolchain()}\n# On {kernel()}\n")
        for name, pair in now.items():
            f.write("\t".join([name, *("-" if (name, side) in VARY else str(count) for side, count in zip(SIDES, pair))]) + "\n")


def differences(before, now):
    """A line for each cost that differs from the baseline: what has grown, what has shrunk."""
    grown, shrunk, bounds = [], [], most()
    for name, pair in now.items():
        for side, bound, new, old in zip(SIDES, bounds, pair, before.get(name, (0, 0))):
            if old is None or bound is None:
                continue
            allowed = MOST_ELSEWHERE if (name, side) in UNEVEN else bound
            if abs(new - old) > max(allowed * abs(old), SLACK):
                change = f"{(new - old) / old:+.1%}" if old else "new"
                (grown if new > old else shrunk).append(f"{name}, {side}: {old} -> {new} instructions ({change})")
    return grown, shrunk


def main():
    with Machines() as machines:
        now = machines.costs()
        if "--accept" in sys.argv:
            accept(now)
            return
        perf = machines.costs(2)
    print(f"{'instructions':34} {'user':>12} {'kernel':>12} {'perf user':>12} {'perf kernel':>12}")
    for name, (user, kernel) in now.items():
        print(f"{name:34} {user:12,} {kernel:12,}", *(f"{count:12,}" for count in perf.get(name, ())))
    for text in [line for lines in differences(baseline(), now) for line in lines]:
        print("differs from the baseline:", text)


if __name__ == "__main__":
    main()
