# SPDX-License-Identifier: GPL-2.0-only
"""The suites of check-foreign: how each is got and built, its cases, and how their results are read."""
import functools
import os
import re
import shutil
import subprocess
import sys
import typing

import known

HERE = os.path.dirname(os.path.abspath(__file__))


class Case(typing.NamedTuple):
    name: str
    command: str  # of the shell on the machine
    options: tuple = ()  # of nhmtap machine


class Suite(typing.NamedTuple):
    cases: typing.Callable  # (its folder): a list of Case
    read: typing.Callable  # (case, status, output): {name of a test: outcome}
    build: str = ""  # commands of the shell in its folder, once


# --- perf test, of Debian's linux-perf

def perf_cases(folder):
    """In /: perf takes its own folder of tests from the current one, if that has one of this name."""
    listed = subprocess.run(["perf", "test", "list"], cwd="/", stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [Case(name, f"cd /\nperf test -v {number}") for number, name in re.findall(r"^ *(\d+): (.*)$", listed, re.M) if ":" not in number]


PERF = {"Ok": "pass", "Skip": "skip", "FAILED!": "fail"}


def perf_read(case, status, output):
    """With -v: ` 4: NAME :`, or with subtests ` 4.1: SUBTEST :`, then what the test says, and `NAME: Ok` or `NAME subtest 1: Ok`."""
    found, name = {}, case.name
    for line in output.splitlines():
        if sub := re.match(r" *\d+\.\d+: (.*?) *:$", line):
            name = f"{case.name}: {sub[1]}"
        elif end := re.match(re.escape(case.name) + r"(?: subtest \d+)?: (Ok|Skip|FAILED!)", line):
            found[name] = PERF[end[1]]
    return found or {case.name: f"status {status}"}


# --- the kernel's own selftests of perf_events, of the installed linux-source

# As upstream's Makefile compiles them, without -O: sigtrap_threads reads a plain variable that a signal handler changes.
SELFTESTS_BUILD = """
tarball=$(ls /usr/src/linux-source-*.tar.xz | sort -V | tail -1)
tar xf $tarball --strip-components=4 --wildcards '*/tools/testing/selftests/perf_events/*' '*/tools/testing/selftests/kselftest*.h'
cd perf_events
for test in *.c; do gcc -Wl,-no-as-needed -Wall -o ${test%.c} $test -lpthread; done
"""


def selftests_cases(folder):
    """With two CPUs: exec_stress gives 30 spinning children 100 ms, and must see all of them execute. One CPU lets 25 of them
    run, 4 ms each; the others keep the event's file open, and its signal comes after the test has taken the handler away."""
    names = sorted(name[:-2] for name in os.listdir(folder + "/perf_events") if name.endswith(".c"))
    return [Case(name, f"{folder}/perf_events/{name}", ("--cpus", "2")) for name in names]


def tap_read(case, status, output):
    found = {name: "fail" if no else "skip" if skip else "pass"
             for no, name, skip in re.findall(r"^(not )?ok \d+ (?:- )?(\S+)(.*# SKIP)?", output, re.M)}
    return found if status in (0, 1) and found else {case.name: f"status {status}"}


# --- libpfm4's examples and its validation, of Debian's source

# `count` is the tests' own program, whose numbers follow from its text.
COUNT = known.path("count")
INSTRUCTIONS = known.numbers("count")["INST_RETIRED.ANY_P"]
BRANCHES = known.numbers("count")["BR_INST_RETIRED.ALL_BRANCHES"]
LIBPFM4 = {  # name of a test: (command, what it must say)
    "validate": ("tests/validate", "All tests passed"),
    "showevtinfo": ("examples/showevtinfo MEM_INST_RETIRED", r"PMU name : nhm \(Intel Nehalem\)"),
    "check_events": ("examples/check_events nhm::MEM_INST_RETIRED:LATENCY_ABOVE_THRESHOLD:ldlat=64", r"Codes\s+: 0x53100b"),
    "evt2raw": ("perf_examples/evt2raw nhm::L1I:MISSES", "^r280$"),
    "task": (f"perf_examples/task -e INST_RETIRED:ANY_P:u,BR_INST_RETIRED:ALL_BRANCHES:u {COUNT}",
             rf" {INSTRUCTIONS} INST_RETIRED:ANY_P:u(?s:.*) {BRANCHES} BR_INST_RETIRED:ALL_BRANCHES:u"),
    "task_cpu": (f"perf_examples/task_cpu -e INST_RETIRED:ANY_P:u {COUNT}", rf"CPU0 +{INSTRUCTIONS} INST_RETIRED:ANY_P:u"),
    "task_smpl": (f"perf_examples/task_smpl -e INST_RETIRED:ANY_P:u:precise=2:period=10000 {COUNT}",
                  rf"{INSTRUCTIONS // 10000} samples collected"),
    "branch_smpl": (f"perf_examples/branch_smpl -e BR_INST_RETIRED:ALL_BRANCHES:u:period=10000 {COUNT}",
                    rf"{BRANCHES // 10000} samples collected"),
    "self_basic": ("perf_examples/self_basic", r"count=[1-9]"),
    "self_pipe": ("perf_examples/self_pipe -c 0 -d 1 -e INST_RETIRED:ANY_P:u", r"[1-9]\d* INST_RETIRED:ANY_P:u$"),
    "syst": ("perf_examples/syst -c 0 -d 1 -e INST_RETIRED:ANY_P", r"CPU0 .*[1-9].* INST_RETIRED:ANY_P"),
    "syst_count": ("perf_examples/syst_count -c 0 -d 1 -e INST_RETIRED:ANY_P", r"CPU0 .*[1-9].* INST_RETIRED:ANY_P"),
    "task_attach_timeout": ("sleep 100 & perf_examples/task_attach_timeout -d 1 -e INST_RETIRED:ANY_P $!", r"INST_RETIRED:ANY_P"),
    "bts_smpl": (f"perf_examples/x86/bts_smpl {COUNT}", r"samples collected"),
    "self": ("perf_examples/self", r"Final counts"),
    "self_count": ("perf_examples/self_count", r"cycles:u"),
    "notify_self": ("perf_examples/notify_self", r"Notification:19"),
    "notify_group": ("perf_examples/notify_group", r"Notification"),
    "self_smpl_multi": ("perf_examples/self_smpl_multi -t 1", r"mismatch = 0"),
}


def said_cases(rows, folder):
    return [Case(name, f"cd {folder}\n{command}") for name, (command, _) in rows.items()]


def libpfm4_read(case, status, output):
    return {case.name: "pass" if status == 0 and re.search(LIBPFM4[case.name][1], output, re.M) else "fail"}


# --- PAPI's validation_tests, of Debian's source: its presets, compared with what the tests' own code does

PAPI_HELPERS = {"memleak_check"}  # run_tests_exclude.txt


def papi_cases(folder):
    names = [name for name in sorted(os.listdir(f"{folder}/src/validation_tests"))
             if os.access(f"{folder}/src/validation_tests/{name}", os.X_OK) and name not in PAPI_HELPERS]
    return [Case(name, f"cd {folder}/src\nLD_LIBRARY_PATH=.:libpfm4/lib validation_tests/{name} TESTS_QUIET") for name in names]


GOOD = {"PASSED", "YES", "KERNEL OK", "NEW BEHAVIOR"}


def last_word_read(case, status, output):
    """Of a program that ends by saying PASSED, SKIPPED, or what else is wrong: PAPI's in a line of their own, the others' behind "..."."""
    words = re.findall(r"^(?:.*\.\.\.)? *([A-Z]{2,}(?: [A-Z]+)*)(?: with WARNING|!!!| \(.*\))? *$", output, re.M)
    if not words:
        return {case.name: f"status {status}"}
    return {case.name: "pass" if words[-1] in GOOD else "skip" if words[-1] == "SKIPPED" else "fail"}


# --- likwid-perfctr with each of its groups for the Nehalem, of Debian's likwid

NUMBERS = {**{k.replace(".", "_"): ("count", v) for k, v in known.numbers("count").items() if "." in k},
           **{k.replace(".", "_"): ("float", v) for k, v in known.numbers("float").items() if "." in k},
           "INSTR_RETIRED_ANY": ("count", INSTRUCTIONS)}
# `empty` executes these; the difference is free of what likwid itself adds before and after.
OF_EMPTY = {"INSTR_RETIRED_ANY": 3, "BR_INST_RETIRED_ALL_BRANCHES": 1}
# What it executes on the same CPU while it waits: 111 instructions were seen beside `count`, with 27 branches, 26 loads, 11 stores.
BESIDE = {"INSTR_RETIRED_ANY": 200, "BR_INST_RETIRED_ALL_BRANCHES": 50, "MEM_INST_RETIRED_LOADS": 50, "MEM_INST_RETIRED_STORES": 50}
LIKWID_BUILD = f"""
printf '.globl _start\\n_start: mov $60, %%eax\\nxor %%edi, %%edi\\nsyscall\\n' | gcc -x assembler -nostdlib -static -o empty -
cp {COUNT} {known.path('float')} .
"""


def likwid_cases(folder):
    groups = sorted(name[:-4] for name in os.listdir("/usr/share/likwid/perfgroups/nehalem"))
    return [Case(group, f"cd {folder}; for p in count float empty; do echo program $p; likwid-perfctr -f -M 0 -C 0 -g {group} -O ./$p || exit; done")
            for group in groups]


def likwid_read(case, status, output):
    parts = {part.split("\n", 1)[0]: dict(re.findall(r"^(\w+),(?:FIXC|PMC|UPMC)\w+,(\d+)", part, re.M)) for part in output.split("program ")[1:]}
    if status != 0 or len(parts) != 3 or not parts["empty"]:
        return {case.name: f"status {status}"}
    for event in parts["empty"].keys() & NUMBERS.keys():
        program, number = NUMBERS[event]
        more = int(parts[program][event]) - int(parts["empty"][event]) - (number - OF_EMPTY.get(event, 0))
        if not 0 <= more <= BESIDE.get(event, 0):
            return {case.name: "fail"}
    return {case.name: "pass"}


# --- bpftrace's hardware probes, of Debian's bpftrace

# {probe: (program, samples of its user's side, or None where a model decides)}
BPFTRACE = {
    "instructions:10000": ("count", INSTRUCTIONS // 10000),
    "branch-instructions:10000": ("count", BRANCHES // 10000),
    "cpu-cycles:10000": ("count", None),
    "ref-cycles:10000": ("count", None),
    "frontend-stalls:1000": ("graph", None),
    "backend-stalls:10000": ("chase memory", None),
    "cache-references:1000": ("chase memory", None),
    "cache-misses:1000": ("chase memory", 32768 // 1000),
    "branch-misses:100": ("graph", None),
    "bus-cycles:10000": ("count", None),
}


def bpftrace_cases(folder):
    """At the kernel's own limit of samples a tick, programs that take a fraction of one would find it used up."""
    return [Case(probe, "cd /proc/sys/kernel; echo 25 > perf_cpu_time_max_percent; echo 1000000 > perf_event_max_sample_rate\n"
                        "echo 0 > perf_cpu_time_max_percent\n"
                        f"bpftrace -e 'hardware:{probe} /comm == \"{program.split()[0]}\" && reg(\"ip\") < 0x800000000000/ {{ @n = count(); }}'"
                        f" -c '{known.path(program.split()[0])} {program.partition(' ')[2]}'")
            for probe, (program, _) in BPFTRACE.items()]


def bpftrace_read(case, status, output):
    """The probe counts the kernel's side, too. Each page fault of the program moves the next sample's place in it."""
    expected, counted = BPFTRACE[case.name][1], re.search(r"^@n: (\d+)", output, re.M)
    right = status == 0 and counted and (abs(int(counted[1]) - expected) <= 5 if expected else int(counted[1]) > 0)
    return {case.name: "pass" if right else "fail"}


# --- V. Weaver's perf_event_tests, of GitHub

# Without vectors: l1-dcache-stores wants a store for each double, where gcc 12 stores two at once.
PERF_EVENT_TESTS_BUILD = """
git init -q perf_event_tests
cd perf_event_tests
git fetch -q --depth 1 https://github.com/deater/perf_event_tests.git cd135885e52f4fbecad0e66d36d15e9a73f6a56a
git checkout -q FETCH_HEAD
make CC='gcc -fno-tree-vectorize'
"""


def perf_event_tests_cases(folder):
    """The tests that its own run_tests.sh runs."""
    with open(folder + "/perf_event_tests/run_tests.sh", encoding="utf-8") as f:
        names = re.findall(r"^\s*\$TESTS_DIR/(\S+)$", f.read(), re.M)
    return [Case(name, f"cd {folder}/perf_event_tests && TESTS_QUIET=y tests/{name}") for name in dict.fromkeys(names)]


SUITES = {
    "perf": Suite(perf_cases, perf_read),
    "selftests": Suite(selftests_cases, tap_read, SELFTESTS_BUILD),
    "libpfm4": Suite(functools.partial(said_cases, LIBPFM4), libpfm4_read, "$GET libpfm4\nmake\nmake -C tests"),
    "papi": Suite(papi_cases, last_word_read, "$GET papi\ncd src\n./configure\nmake\nmake -C validation_tests"),
    "likwid": Suite(likwid_cases, likwid_read, LIKWID_BUILD),
    "bpftrace": Suite(bpftrace_cases, bpftrace_read),
    "perf_event_tests": Suite(perf_event_tests_cases, last_word_read,
                              PERF_EVENT_TESTS_BUILD),
}


def build(name, folder):
    """Gets and builds a suite once in its folder."""
    stamp = folder + "/.built"
    if os.path.exists(stamp):
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(folder + "/log", "w", encoding="utf-8") as log:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "NHMTAP"))}
        done = subprocess.run(["sh", "-euc", SUITES[name].build], cwd=folder, env={**environment, "GET": HERE + "/get-source"},
                              stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
    if done.returncode:
        with open(folder + "/log", encoding="utf-8", errors="replace") as log:
            last = "".join(log.readlines()[-5:])
        sys.exit(f"{name} could not be got or built ({folder}/log):\n{last}")
    with open(stamp, "w", encoding="utf-8"):
        pass
