# SPDX-License-Identifier: GPL-2.0-only
"""The suites of check-foreign: how each is got and built, its cases, and how their results are read."""
import os
import re
import shutil
import subprocess
import sys
import typing

import kernel_source
import known

HERE = os.path.dirname(os.path.abspath(__file__))
SLOW_CLOCK = ("--ips", "20000000")  # for what works for seconds of the machine's clock


class Case(typing.NamedTuple):
    name: str
    command: str  # of the shell on the machine
    options: tuple = ()  # of nhmtap machine


class Suite(typing.NamedTuple):
    cases: typing.Callable  # (its folder): a list of Case
    read: typing.Callable  # (case, status, output): {name of a test: outcome}
    build: str = ""  # commands of the shell in its folder, once


# --- perf test, of Debian's linux-perf

PERF_OPTIONS = {
    # On one CPU nobody finds a lock taken whose owner does not sleep, and this test wants one that was. On two it found none.
    "kernel lock contention analysis test": ("--cpus", "4"),
    # They run perf many times, which reads all of the kernel's symbols each time, and none of them looks at one.
    **dict.fromkeys(("daemon operations", "perf record tests", "perf all metricgroups test", "perf all metrics test",
                     "perf all PMU test", "Check branch stack sampling"), ("--few-symbols",)),
}


def perf_cases(folder):
    """In /: perf takes its own folder of tests from the current one, if that has one of this name."""
    listed = subprocess.run(["perf", "test", "list"], cwd="/", stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [Case(name, f"cd /\nperf test -v {number}", PERF_OPTIONS.get(name, ()))
            for number, name in re.findall(r"^ *(\d+): (.*)$", listed, re.M) if ":" not in number]


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
cp -r $TOOLS/testing/selftests/* .
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


LIBPFM4_BY_SECONDS = {"self", "self_count", "self_pipe"}
# Samples are a hundred times as dense.
LIBPFM4_BUILD = """
$GET libpfm4
sed -i 's/2400000000/24000000/' perf_examples/notify_*.c
make
make -C tests
"""


def libpfm4_cases(folder):
    return [Case(name, f"cd {folder}\n{command}", SLOW_CLOCK if name in LIBPFM4_BY_SECONDS else ()) for name, (command, _) in LIBPFM4.items()]


def libpfm4_read(case, status, output):
    return {case.name: "pass" if status == 0 and re.search(LIBPFM4[case.name][1], output, re.M) else "fail"}


# --- PAPI's validation_tests and ctests, of Debian's source: its presets, compared with what the tests' own code does, and all else

# In `less` the tests have less to do: a tenth of the operations between a start and a stop, and an overflow for a tenth of the
# events; smaller matrices; buffers four times smaller, still larger than all caches. flops_validation compares two orders of loops, which
# differ where a column has more lines than the first-level cache: it has whole matrices, and a fiftieth of the product's rows.
# `less` is built without vectors: the presets of floating point and stores are judged by what the source says, and gcc 12 does two or
# four of these operations at once, which the processor counts as one.
PAPI_BUILD = """
$GET papi
cd src
./configure
make
make -C validation_tests
make -C ctests
cp -r . ../less
cd ../less
sed -i 's/NUM_FLOPS  20000000/NUM_FLOPS  2000000/; s/THRESHOLD   1000000/THRESHOLD   100000/' testlib/do_loops.h ctests/sdsc*.c
sed -i 's/1024 \\* 1024 \\* 16/1024 * 1024 * 4/' testlib/do_loops.c
sed -i 's/ROWS\t1000/ROWS\t200/; s/COLUMNS\t1000/COLUMNS\t200/' validation_tests/flops_testcode.c
sed -i 's/MATRIX_SIZE 512/MATRIX_SIZE 256/' validation_tests/matrix_multiply.c
sed -i 's/NUM_RUNS\t100/NUM_RUNS\t10/' validation_tests/papi_l?_dcm.c
sed -i 's/FLOPS 100000000/FLOPS 1000000/' ctests/profile_pthreads.c
for part in testlib validation_tests ctests; do make -C $part clean; done
for part in testlib validation_tests ctests; do make -C $part CC='gcc -fno-tree-vectorize'; done
cp ../src/validation_tests/flops_testcode.c validation_tests
sed -i 's|i < ROWS|i < ROWS / 50|' validation_tests/flops_testcode.c
make -C validation_tests CC='gcc -fno-tree-vectorize' flops_validation
"""


def in_part(part, names):
    return {f"{part}/{name}" for name in names.split()}


# They work until seconds of the machine's clock have passed, at least the two of do_stuff() (do_loops.c), or take turns by it.
PAPI_BY_SECONDS = in_part("ctests", """
    branches byte_profile child_overflow derived exec_overflow krentel_pthreads kufrin multiplex1 multiplex1_pthreads multiplex2
    overflow3_pthreads overflow_force_software overflow_pthreads profile_force_software profile_pthreads profile_twoevents
    multiplex3_pthreads reset_multiplex sdsc-mpx sdsc2-mpx sdsc2-mpx-noreset sdsc4-mpx sprofile system_child_overflow system_overflow thrspecific
""")
PAPI_LESS = in_part("ctests", """
    branches byte_profile kufrin multiplex1 multiplex1_pthreads multiplex2 overflow3_pthreads overflow_allcounters
    overflow_force_software profile_force_software profile_pthreads profile_twoevents pthread_hl reset_multiplex sdsc-mpx sdsc2-mpx
    memory multiplex3_pthreads sdsc2-mpx-noreset sdsc4-mpx second sprofile
""") | in_part("validation_tests", "flops_validation papi_dp_ops papi_fp_ops papi_l1_dcm papi_l2_dcm papi_ld_ins papi_sp_ops papi_sr_ins papi_tot_cyc")
PAPI_OPTIONS = dict.fromkeys(PAPI_BY_SECONDS, SLOW_CLOCK) | {
    # With a slower clock its two processes execute too little for the samples that it wants.
    "ctests/fork_overflow": ("--ips", "100000000"),
    **dict.fromkeys(in_part("ctests", "attach_cpu_sys_validate attach_cpu_validate"), ("--cpus", "2")),
}
# They try all native events, and libpfm4 has one for each of the kernel's tracepoints, of which there are thousands.
PAPI_WITHOUT_TRACEPOINTS = in_part("ctests", "all_native_events failed_events")
NO_TRACEPOINTS = "mount -t tmpfs none /sys/kernel/debug; mount -t tmpfs none /sys/kernel/tracing\n"


# This one compares times, also while it counts no cycles itself; where nothing does, an instruction takes one (user/machine/README.md).
PAPI_BY_CYCLES = in_part("validation_tests", "flops_validation")
COUNTING_CYCLES = "perf stat -a -e cycles -o /dev/null "


def papi_cases(folder):
    """Those of its run_tests.sh. It leaves out what only helps others, and what takes very long (run_tests_exclude.txt)."""
    with open(f"{folder}/src/run_tests_exclude.txt", encoding="utf-8") as f:
        excluded = {line.strip() for line in f}
    names = [f"{part}/{entry.name}" for part in ("validation_tests", "ctests") for entry in sorted(os.scandir(f"{folder}/src/{part}"), key=lambda e: e.name)
             if entry.is_file() and os.access(entry, os.X_OK) and not entry.name.endswith((".c", ".h"))]
    return [Case(name.removeprefix("validation_tests/"), (NO_TRACEPOINTS if name in PAPI_WITHOUT_TRACEPOINTS else "")
                 + f"cd {folder}/{'less' if name in PAPI_LESS else 'src'}\nPATH=./ctests:$PATH LD_LIBRARY_PATH=.:libpfm4/lib "
                 f"{COUNTING_CYCLES if name in PAPI_BY_CYCLES else ''}{name} TESTS_QUIET",
                 PAPI_OPTIONS.get(name, ()))
            for name in names if name not in excluded]


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
# likwid counts what it executes itself on the same CPU until it sees that the program has ended: how much depends on the digits of
# the times that it computes with. Programs that do nothing but end after a time, in seconds, show how much that is, and how far it
# differs; the others may be off by as much. What the programs execute: the system call's registers are set by 2 instructions, those
# of a sleep by 3.
WAITS = {"empty": None, "late": 0.0003, "later": 0.1}
OF_WAITS = {"INSTR_RETIRED_ANY": (3, 4), "BR_INST_RETIRED_ALL_BRANCHES": (1, 1)}  # to end, to sleep before


def waiting(name, seconds):
    """Commands that build a program that sleeps, if it is to, and ends."""
    sleep = "mov $35, %eax; lea 1f(%rip), %rdi; xor %esi, %esi; syscall; " if seconds else ""
    text = f".globl _start; _start: {sleep}mov $60, %eax; xor %edi, %edi; syscall; 1: .quad 0, {int((seconds or 0) * 1e9)}"
    return f"echo '{text}' | gcc -x assembler -nostdlib -static -o {name} -\n"


LIKWID_BUILD = f"cp {COUNT} {known.path('float')} .\n" + "".join(waiting(*item) for item in WAITS.items())


def likwid_cases(folder):
    groups = sorted(name[:-4] for name in os.listdir("/usr/share/likwid/perfgroups/nehalem"))
    programs = " ".join(["count", "float", *WAITS])
    return [Case(group, f"cd {folder}; for p in {programs}; do echo program $p; likwid-perfctr -f -M 0 -C 0 -g {group} -O ./$p || exit; done")
            for group in groups]


def likwid_read(case, status, output):
    parts = {part.split("\n", 1)[0]: {event: int(count) for event, count in re.findall(r"^(\w+),(?:FIXC|PMC|UPMC)\w+,(\d+)", part, re.M)}
             for part in output.split("program ")[1:]}
    if status != 0 or parts.keys() != {"count", "float", *WAITS} or not parts["empty"]:
        return {case.name: f"status {status}"}
    for event in parts["empty"].keys() & NUMBERS.keys():
        program, number = NUMBERS[event]
        to_end, to_sleep = OF_WAITS.get(event, (0, 0))
        own = [parts[name][event] - to_end - (to_sleep if seconds else 0) for name, seconds in WAITS.items()]
        differ = max(own) - min(own)
        if not min(own) - differ <= parts[program][event] - number <= max(own) + differ:
            return {case.name: "fail"}
    return {case.name: "pass"}


# --- bpftrace's hardware probes, of Debian's bpftrace

# {probe: (program, events of its user's side, or None where a model decides)}
BPFTRACE = {
    "instructions:10000": ("count", INSTRUCTIONS),
    "branch-instructions:4000": ("count", BRANCHES),
    "cpu-cycles:10000": ("count", None),
    "ref-cycles:10000": ("count", None),
    "frontend-stalls:1000": ("graph", None),
    "backend-stalls:10000": ("chase memory", None),
    "cache-references:1000": ("chase memory", None),
    "cache-misses:1000": ("chase memory", known.numbers("chase")["memory.loads"]),
    "branch-misses:100": ("graph", None),
    "bus-cycles:10000": ("count", None),
}
# What interrupts a program, but the samples themselves.
INTERRUPTIONS = "tracepoint:exceptions:page_fault_user,tracepoint:irq_vectors:local_timer_entry,tracepoint:raw_syscalls:sys_enter"


def bpftrace_cases(folder):
    """At the kernel's own limit of samples a tick, programs that take a fraction of one would find it used up."""
    cases = []
    for probe, (program, _) in BPFTRACE.items():
        comm, _, arguments = program.partition(" ")
        script = (f'hardware:{probe} /comm == "{comm}" && reg("ip") < 0x800000000000/ {{ @n = count(); @begun = 1; }} '
                  f'{INTERRUPTIONS} /comm == "{comm}" && @begun/ {{ @between = count(); }}')
        cases.append(Case(probe, "cd /proc/sys/kernel; echo 25 > perf_cpu_time_max_percent; echo 1000000 > perf_event_max_sample_rate\n"
                                 f"echo 0 > perf_cpu_time_max_percent\nbpftrace -e '{script}' -c '{known.path(comm)} {arguments}'"))
    return cases


def bpftrace_read(case, status, output):
    """The probe counts the kernel's side, too, and only samples of the user's side are looked at. Each interruption between two of
    these takes events of the period away, or adds to it, so that it moves the samples by less than one; so do the beginning and the
    end. What the kernel executes of a sample's own interrupt until it stops the counters (intel_pmu_handle_irq, its first lines) is
    counted as well: some hundred instructions, and here taken for at most a tenth of a period."""
    events, period = BPFTRACE[case.name][1], int(case.name.partition(":")[2])
    samples, between = (int(found[1]) if (found := re.search(rf"^@{name}: (\d+)", output, re.M)) else 0 for name in ("n", "between"))
    if status != 0 or not samples:
        return {case.name: "fail"}
    right = events is None or events / period - 1 - between < samples < events / (0.9 * period) + 1 + between
    return {case.name: "pass" if right else "fail"}


# --- V. Weaver's perf_event_tests, of GitHub

# Without vectors: l1-dcache-stores wants a store for each double, where gcc 12 stores two at once. breakpoint_overflow breaks at
# a function, which gcc 12 would not call but put in line. In `less` the tests have less to do: matrices of 256 instead of 512, and
# fewer repeats.
PERF_EVENT_TESTS_BUILD = """
git init -q perf_event_tests
cd perf_event_tests
git fetch -q --depth 1 https://github.com/deater/perf_event_tests.git cd135885e52f4fbecad0e66d36d15e9a73f6a56a
git checkout -q FETCH_HEAD
sed -i 's/^int test_function/__attribute__((noipa)) &/' tests/overflow/breakpoint_overflow.c
cp -r . ../less
make CC='gcc -fno-tree-vectorize'
cd ../less
sed -i 's/MATRIX_SIZE 512/MATRIX_SIZE 256/' lib/matrix_multiply.c
sed -i 's/num_runs=100/num_runs=10/' tests/generalized_events/branch-misses.c
sed -i 's/repeats=i\\*1000/repeats=i*100/' tests/rdpmc/rdpmc_pthreads.c
make CC='gcc -fno-tree-vectorize'
"""
PERF_EVENT_TESTS_LESS = {
    "generalized_events/branch-misses", "generalized_events/cycles", "corner_cases/context_switch_user_kernel",
    "corner_cases/multiple_active", "rdpmc/rdpmc_pthreads",
}
PERF_EVENT_TESTS_BEFORE = {
    # It opens one event more each time, until there are no more descriptors.
    "corner_cases/max_multiplex": "ulimit -n 128",
    "flags/flags_cgroup": "mkdir /sys/fs/cgroup/perf_event",
    "bugs/nmi_watchdog_group_leader": "echo 1 > /proc/sys/kernel/nmi_watchdog",
}
PERF_EVENT_TESTS_OPTIONS = {
    # They want at least 50 and 90 signals of overflows, and at most 200, where each thread's code makes ten, and there is a thread
    # for each CPU. With more threads than CPUs, signals would merge that wait for the first thread, which handles all of them.
    **dict.fromkeys(("openmp/openmp_overflow", "openmp/openmp_sample"), ("--packages", "2", "--cpus", "4", "--threads", "2")),
    **dict.fromkeys(("rdpmc/rdpmc_attach_cpu", "rdpmc/rdpmc_attach_global_cpu", "rdpmc/rdpmc_attach_other_cpu"), ("--cpus", "2")),
}


def perf_event_tests_cases(folder):
    """The tests that its own run_tests.sh runs."""
    with open(folder + "/perf_event_tests/run_tests.sh", encoding="utf-8") as f:
        names = re.findall(r"^\s*\$TESTS_DIR/(\S+)$", f.read(), re.M)
    return [Case(name, f"cd {folder}/{'less' if name in PERF_EVENT_TESTS_LESS else 'perf_event_tests'} && "
                       f"{PERF_EVENT_TESTS_BEFORE.get(name, ':')} && TESTS_QUIET=y tests/{name}",
                 PERF_EVENT_TESTS_OPTIONS.get(name, ())) for name in dict.fromkeys(names)]


SUITES = {
    "perf": Suite(perf_cases, perf_read),
    "selftests": Suite(selftests_cases, tap_read, SELFTESTS_BUILD),
    "libpfm4": Suite(libpfm4_cases, libpfm4_read, LIBPFM4_BUILD),
    "papi": Suite(papi_cases, last_word_read, PAPI_BUILD),
    "likwid": Suite(likwid_cases, likwid_read, LIKWID_BUILD),
    "bpftrace": Suite(bpftrace_cases, bpftrace_read),
    "perf_event_tests": Suite(perf_event_tests_cases, last_word_read, PERF_EVENT_TESTS_BUILD),
}


def build(name, folder):
    """Gets and builds a suite in its folder, once for each text of the commands that do so."""
    stamp = folder + "/.built"
    if os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as f:
            if f.read() == SUITES[name].build:
                return
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "NHMTAP"))}
    environment["GET"] = HERE + "/get-source"
    if name == "selftests":
        environment["TOOLS"] = kernel_source.tools()
    with open(folder + "/log", "w", encoding="utf-8") as log:
        done = subprocess.run(["sh", "-euc", SUITES[name].build], cwd=folder, env=environment,
                              stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
    if done.returncode:
        with open(folder + "/log", encoding="utf-8", errors="replace") as log:
            last = "".join(log.readlines()[-5:])
        sys.exit(f"{name} could not be got or built ({folder}/log):\n{last}")
    with open(stamp, "w", encoding="utf-8") as f:
        f.write(SUITES[name].build)
