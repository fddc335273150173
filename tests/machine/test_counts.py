# SPDX-License-Identifier: GPL-2.0-only
"""Counters: programs whose counts follow from their text."""
import pytest

import known
from guests import Bench


@pytest.mark.parametrize("program", ["count", "divide", "float", "graph", "kinds", "pairs", "repeat", "straight", "linked"])
def test_each_number_in_the_program_is_what_perf_counts(any_kernel, program):
    expected = {k: v for k, v in known.numbers(program).items() if "." in k}
    assert any_kernel.counts(list(expected), program) == expected


@pytest.mark.parametrize("counting", ["", "perf stat -x, -o y -e instructions:u"], ids=["uncounted", "counted"])
@pytest.mark.parametrize("ips", [200000000, 0], ids=["clock_of_instructions", "clock_of_cycles"])
def test_string_instructions_leave_what_a_loop_leaves_and_take_the_same_time_at_once_and_one_by_one(booted, ips, counting):
    """The emulator does many iterations at once, but not while a breakpoint is set in the processor."""
    with booted(ips=ips).fork() as fork:
        at_once, one_by_one = (Bench(fork).say(f"{counting} blocks {how}") for how in ("", "slowly"))
    assert len(at_once.splitlines()) > 500 and "wrong" not in at_once
    assert at_once == one_by_one


@pytest.mark.parametrize("shape", [{}, {"cores": 2}, {"cores": 2, "threads": 2}], ids=["one", "two_cores", "siblings"])
def test_a_breakpoint_of_code_is_met_once_for_each_execution_on_each_processor(machines, shape):
    """A repeated instruction that was interrupted goes on with RF set, which holds the breakpoint off (Intel's manual,
    volume 3, on RFLAGS.RF)."""
    guest = machines(**shape)
    for cpu in range(shape.get("cores", 1) * shape.get("threads", 1)):
        assert guest.say(f"taskset -c {cpu} stops").split() == ["called", "100", "repeated", "1"]


def test_fixed_counter_and_programmable_counter_agree(any_kernel):
    # Only 0x00C0 uses the fixed counter; with umask 1 the event uses a programmable one.
    counts = any_kernel.counts(["r00c0:u", "r01c0:u"], "count")
    assert set(counts.values()) == {known.numbers("count")["INST_RETIRED.ANY_P"]}


def test_sampling_does_not_change_a_count(guest):
    said = guest.say(
        "perf record -q -c 10007 -e cycles:u -o x "
        "perf stat -x, -o y -e instructions:u count; cat y",
        paranoid=-1,
    )
    assert f"\n{known.numbers('count')['INST_RETIRED.ANY_P']},," in said


def test_kernel_level_adds_to_user_level(guest):
    user = known.numbers("count")["INST_RETIRED.ANY_P"]
    assert user < guest.count("r01c0:uk", "count") < 4 * user


def test_edge_detection_counts_runs_of_branches(guest):
    # Consecutive branches are one run. The runs of a turn are: call, return and the
    # second call; its return, after a nop; jz and jmp, or jz and, after a nop, jmp;
    # jnz. After the last turn there is the system call. A line of code that is fetched
    # for the first time takes its cycles in the middle of a run: at most 3 lines.
    n = known.numbers("count")["N"]
    runs = n // 2 * 4 + n // 2 * 5 + 1
    assert runs <= guest.count("cpu/event=0xc4,umask=4,edge=1,cmask=1/u", "count") <= runs + 3


def test_cmask_counts_instructions_of_at_least_so_many_uops(guest):
    # An instruction is one uop, one with a store two, one with a load and a store
    # three. In a turn only add (%mem) has three.
    assert guest.count("cpu/event=0xc2,umask=1,cmask=3/u", "count") == known.numbers("count")["N"]


def test_an_event_that_never_happens_reads_zero(guest):
    assert guest.count("r0106:u", "count") == 0


def test_a_fork_and_another_boot_count_the_same_down_to_the_kernel(booted):
    script = "perf stat -x, -e instructions:uk,cycles:uk,r10cb:uk,r7f89:uk chase l2"
    with booted().fork() as fork, booted.boot(fork.machine, anew=True) as second:
        second.run("insmod /lib/modules/msr.ko")
        counted = Bench(fork).run(script).stderr
        assert "instructions" in counted
        assert Bench(second).run(script).stderr == counted


def test_rdpmc_reads_the_fixed_counters(guest):
    # Instructions and cycles differ where loads miss; RDPMC has to know which it reads.
    guest.say("echo 2 > /sys/bus/event_source/devices/cpu/rdpmc")  # for everybody
    said = guest.say("perf stat -o y -e instructions:u,cycles:u,ref-cycles:u fixed", paranoid=-1)
    rows = (line.split() for line in said.splitlines() if line.startswith("rdpmc "))
    read = {int(counter): int(value) for _, counter, value in rows}
    assert read[1] > 10 * read[0] > 0
    assert read[1] == pytest.approx(read[2], rel=0.1)


def test_rdpmc_counts_around_a_loop(guest):
    said = guest.say("probe rdpmc", paranoid=-1)
    # 1000001: mov and 500000 turns of two; the rest is rdpmc and the code around it.
    assert 1000001 <= int(said.split("counted ")[1].split()[0]) <= 1000010


def test_cgroup_event_counts_the_group_only(guest):
    said = guest.say(
        """mkdir -p /sys/fs/cgroup/a
        perf stat -x, -o y -a -e instructions:u -G a -- \
            sh -c 'echo $$ > /sys/fs/cgroup/a/cgroup.procs; exec count'
        cat y""",
        paranoid=-1,
    )
    expected = known.numbers("count")["INST_RETIRED.ANY_P"]
    count = int(next(line for line in said.splitlines() if "instr" in line).split(",")[0])
    assert expected <= count <= expected + 20000  # the shell's own, after it has joined


COMPLAINTS = "dmesg | grep -E 'Uhhuh|irq loop stuck|unchecked MSR|BUG:|WARNING'"


def test_kernel_complains_about_nothing(any_kernel):
    any_kernel.counts(["INST_RETIRED.ANY_P", "MEM_LOAD_RETIRED.LLC_MISS"], "chase memory")
    assert any_kernel.run(COMPLAINTS).stdout == ""


def test_kernel_complains_about_nothing_on_two_cores(two_cores):
    two_cores.counts(["INST_RETIRED.ANY_P", "MEM_LOAD_RETIRED.LLC_MISS"], "bounce 0 1")
    assert two_cores.run(COMPLAINTS).stdout == ""
