# SPDX-License-Identifier: GPL-2.0-only
"""Two threads of a core: what they share, and AnyThr."""
import pytest

import known


def test_linux_sees_two_threads_of_each_core(siblings):
    said = siblings.say("cat /sys/devices/system/cpu/cpu*/topology/thread_siblings_list")
    assert said.split() == ["0-1", "0-1", "2-3", "2-3"]


def test_linux_sees_two_packages(two_packages):
    said = two_packages.say("cat /sys/devices/system/cpu/cpu*/topology/physical_package_id")
    assert said.split() == ["0", "1"]


def test_threads_of_a_core_bounce_no_lines(siblings):
    # They share their caches, so the program bounces only lines that it brings along from the
    # core where it started.
    modified = known.numbers("bounce")["modified"]
    event = "MEM_UNCORE_RETIRED.OTHER_CORE_L2_HITM"
    assert siblings.count(event, "bounce 0 1") <= modified / 20


def with_and_without_any_thread(bench, cpu):
    """CPU 0's counts with and without AnyThr, in one run, while the program runs on another CPU."""
    said = bench.say(
        "perf stat -x, -o y -C 0 -e cpu/event=0xc0,umask=1,any=1/u,cpu/event=0xc0,umask=1/u "
        f"taskset -c {cpu} count; cat y",
        paranoid=-1,
    )
    return [int(line.split(",")[0]) for line in said.splitlines() if "umask" in line]


def test_any_thread_counts_the_sibling_and_nobody_else(siblings):
    n = known.numbers("count")["INST_RETIRED.ANY_P"]
    # perf itself may run on either CPU; the program has three times its instructions.
    (sibling, _), (stranger, _) = (with_and_without_any_thread(siblings, cpu) for cpu in (1, 2))
    assert sibling >= n
    assert stranger < sibling - n // 2


def test_an_event_beside_one_with_any_thread_does_not_count_the_sibling(siblings):
    n = known.numbers("count")["INST_RETIRED.ANY_P"]
    _, own = with_and_without_any_thread(siblings, 1)
    assert own < n // 2


SHARED = [("OFFCORE_RSP_0", 0x1A6), ("LBR_SELECT", 0x1C8), ("PEBS_LD_LAT_THRESHOLD", 0x3F6)]


@pytest.mark.parametrize("name, register", SHARED)
def test_a_shared_register_has_one_value_a_core(siblings, name, register):
    siblings.msr(f"{register:#x}=0x55", cpu=0)
    values = [int(siblings.msr(f"{register:#x}", cpu=cpu)[0][1], 16) for cpu in range(4)]
    siblings.msr(f"{register:#x}=0", cpu=0)
    assert values[:2] == [0x55, 0x55]
    assert 0x55 not in values[2:]


@pytest.mark.parametrize("name, register", [("PerfEvtSel1", 0x187), ("IA32_PMC1", 0xC2)])
def test_counters_belong_to_a_thread(siblings, name, register):
    siblings.msr(f"{register:#x}=0x55", cpu=0)
    other = int(siblings.msr(f"{register:#x}", cpu=1)[0][1], 16)
    siblings.msr(f"{register:#x}=0", cpu=0)
    assert other != 0x55


def meanwhile(bench, first, second):
    """The counts, as perf stat prints them, of CPU 0's event, and of CPU 1's, which is opened and
    closed while the first one is open."""
    said = bench.say(
        "mkfifo open done\n"
        f"perf stat -x, -o a -C 0 -e {first} sh -c 'echo > open; cat done' & cat open\n"
        f"perf stat -x, -o b -C 1 -e {second} true; echo > done; wait; cat a b"
    )
    return [line.split(",")[0] for line in said.splitlines() if "umask" in line]


OFFCORE = "cpu/event=0xb7,umask=1,offcore_rsp={:#x}/"
LATENCY = "cpu/event=0xb,umask=0x10,ldlat={}/P"


@pytest.mark.parametrize("event, values", [(OFFCORE, (0x4001, 0x4002)), (LATENCY, (100, 200))])
def test_siblings_cannot_use_two_values_of_a_shared_register(siblings, event, values):
    # Linux lets the second event wait until the first is closed, so it never runs.
    first, second = meanwhile(siblings, *map(event.format, values))
    assert first.isdigit()
    assert second == "<not counted>"


def test_siblings_can_use_the_same_value(siblings):
    first, second = meanwhile(siblings, OFFCORE.format(0x4001), OFFCORE.format(0x4001))
    assert first.isdigit() and second.isdigit()


def test_two_cores_can_use_two_values(two_cores):
    first, second = meanwhile(two_cores, OFFCORE.format(0x4001), OFFCORE.format(0x4002))
    assert first.isdigit() and second.isdigit()
