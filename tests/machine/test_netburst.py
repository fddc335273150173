# SPDX-License-Identifier: GPL-2.0-only
"""NetBurst: what its registers count, and what the kernel's driver makes of it. linux-p4-counts.md is the report of that."""
import pytest

import known
import records
from guests import KERNELS, NETBURST, nhmtap

INSTRUCTIONS = known.numbers("count")["INST_RETIRED.ANY_P"]
# SDM volume 3B, "Performance Monitoring (Processors Based on Intel NetBurst Microarchitecture)": instr_retired is event 2
# of CRU_ESCR0, by its first mask bit, of one thread's user side; IQ_CCCR0 selects that ESCR by 4, and is enabled by bit 12,
# with bits 17:16 set.
ESCR, CCCR, COUNTER = 0x3B8, 0x36C, 0x30C
USER_INSTRUCTIONS, OF_CRU_ESCR0 = 2 << 25 | 1 << 9 | 1 << 2, 3 << 16 | 4 << 13 | 1 << 12
OVERFLOW = 1 << 31


@pytest.fixture(params=KERNELS)
def netburst(request, machines):
    return machines(**NETBURST, kernel=request.param)


def retired(bench, program, first=0):
    """User instructions of a shell that runs a program, by the registers alone, from a count on: it and the CCCR."""
    said = bench.msr(f"{COUNTER:#x}={first:#x}", f"{ESCR:#x}={USER_INSTRUCTIONS:#x}", f"{CCCR:#x}={OF_CRU_ESCR0:#x}", f"!{program}",
                     f"{COUNTER:#x}", f"{CCCR:#x}", f"{CCCR:#x}=0")
    return [int(line[1], 16) for line in said[3:5]]


def test_the_registers_count_instructions(netburst):
    (one, status), (two, _) = retired(netburst, "count"), retired(netburst, "count; count")
    # The shell's own are the same, but for a fork.
    assert abs(two - one - INSTRUCTIONS) <= 0.05 * INSTRUCTIONS and not status & OVERFLOW


def test_a_counter_wraps_at_forty_bits_and_says_so(netburst):
    count, status = retired(netburst, "count", (1 << 40) - 0x100)
    assert INSTRUCTIONS - 0x100 <= count < 1 << 24 and status & OVERFLOW


def test_the_kernel_counts_from_where_the_counters_last_use_has_ended(netburst):
    """A mended kernel is noticed here: then kernel_miscounts() ends with it."""
    said = netburst.run("perf stat -x, -e instructions:u count", paranoid=-1).stderr
    # The counter's first use since the machine was switched on: it has begun at 0, and the kernel takes it for -(2^39 - 1).
    assert int(said.split(",")[0]) == INSTRUCTIONS + 2**39 - 1


def test_counts_are_refused_with_the_reason_and_software_events_are_not(netburst):
    error, *_ = nhmtap(netburst, "stat", "-e", "instructions:u", "--", "true", status=2)
    assert "NetBurst" in error["why"] and "p4_pmu_set_period" in error["source"] and "--force" in error["remedy"]
    found = nhmtap(netburst, "stat", "--", "true")
    assert {r["event"] for r in found if r["type"] == "count"} == {"task-clock", "context-switches", "cpu-migrations", "page-faults"}
    assert "instructions" not in found[-1]["overhead"]
    forced = nhmtap(netburst, "stat", "--force", "-e", "instructions:u", "--", "count")
    assert [r["event"] for r in forced if r["type"] == "count"] == ["instructions:u"]
    doctor = records.parse(netburst.run("nhmtap doctor --need stat").stdout)
    stat, = (r for r in doctor if r["type"] == "facility")
    assert not stat["works"] and "NetBurst" in stat["why"]
