# SPDX-License-Identifier: GPL-2.0-only
"""Versions of architectural perfmon that no Nehalem has, on a CPU without an event table: it has
architectural events only, and what nhmtap says of the machine is what works there. The tests set
CPUID.0AH; the kernel's drivers are stock."""
import pytest

import known
import nehalem
import records
from guests import FIRST, SECOND, THIRD, nhmtap
from test_doctor_on_nehalem import doctor


@pytest.fixture
def perfmon_1(machines):
    return machines(**FIRST)


@pytest.fixture
def perfmon_2(machines):
    return machines(**SECOND)


@pytest.fixture
def perfmon_3(machines):
    return machines(**THIRD)


def test_profile_takes_plain_cycles_where_the_driver_refuses_precise_ones(perfmon_1):
    found = nhmtap(perfmon_1, "profile", "--", "count")
    start, = (r for r in found if r["type"] == "start")
    event, = start["events"]
    assert event["name"] == "cycles" and "precise_ip" not in event["attr"]
    assert "does not sample them precisely" in start["default_event_why"]
    profile, *_ = (r for r in found if r["type"] == "profile")
    assert profile["samples"]["aggregated"] > 0


def test_doctor_says_what_there_is_of_version_1(perfmon_1):
    findings = doctor(perfmon_1)
    counters = findings.of("counters")
    assert (counters["general_free"], counters["fixed_free"]) == (2, 0)
    works = findings.works()
    assert {"stat", "sample", "profile", "kernel", "system"} <= works
    assert not {"branch", "precise", "mem", "fixed"} & works
    assert "caps/branches" in findings.of("facility", "branch")["why"]
    # The guide does not apply to this CPU.
    assert not [r for r in findings.records if "guide" in r]


def test_branch_is_refused_where_samples_would_come_without_branches(perfmon_1):
    error, _ = nhmtap(perfmon_1, "branch", "--", "true", status=2)
    assert "caps/branches" in error["why"]


def test_free_counters_are_counted_where_an_event_is_missing(perfmon_2):
    findings = doctor(perfmon_2, "--need", "stat")
    there = findings.of("processor")["perfmon"]["events"]
    assert [name for name in there if not there[name]] == ["branches_retired", "branch_misses_retired"]
    counters = findings.of("counters")
    assert (counters["general_free"], counters["fixed_free"]) == (2, 3)


def test_counting_both_threads_is_refused_with_the_version_that_has_it(perfmon_2):
    anythread = doctor(perfmon_2, "--need", "anythread").of("facility", "anythread")
    assert not anythread["works"] and "perfmon version 3" in anythread["why"]


# On two general counters these take two groups; with version 3 some of them use fixed counters.
FOUR = "INST_RETIRED.ANY:u,BR_INST_RETIRED.ALL_BRANCHES:u,BR_MISP_RETIRED.ALL_BRANCHES:u,CPU_CLK_UNHALTED.THREAD:u"


def counted(found):
    return {r["event"]: r for r in found if r["type"] == "count"}


def test_a_list_that_does_not_fit_is_counted_in_groups_that_do(perfmon_1):
    start, *_ = nhmtap(perfmon_1, "stat", "-e", FOUR, "--", "count")
    assert [event["group"] for event in start["events"]] == [0, 0, 1, 1]


def test_a_group_of_one_event_more_than_counters_is_refused(perfmon_1):
    numbers = known.numbers("count")
    fits = "{INST_RETIRED.ANY:u,BR_INST_RETIRED.ALL_BRANCHES:u}"
    found = counted(nhmtap(perfmon_1, "stat", "-e", fits, "--", "count"))
    assert found["INST_RETIRED.ANY:u"]["value"] == numbers["INST_RETIRED.ANY_P"]
    assert found["BR_INST_RETIRED.ALL_BRANCHES:u"]["value"] == numbers["BR_INST_RETIRED.ALL_BRANCHES"]
    error, *_ = nhmtap(perfmon_1, "stat", "-e", "{" + FOUR.rsplit(",", 1)[0] + "}", "--", "count", status=1)
    assert "2 general and 0 fixed" in error["remedy"]


def test_fixed_counters_count_beside_the_general_ones(perfmon_3):
    numbers = known.numbers("count")
    found = counted(nhmtap(perfmon_3, "stat", "-e", "{" + FOUR + ",ref-cycles,LONGEST_LAT_CACHE.MISS:u,"
                           "LONGEST_LAT_CACHE.REFERENCE:u}", "--", "count"))
    assert found["INST_RETIRED.ANY:u"]["value"] == numbers["INST_RETIRED.ANY_P"]
    assert all(record["status"] == "counted" for record in found.values()) and found["ref-cycles"]["value"] > 0


def test_a_metric_goes_by_intels_names(perfmon_1):
    found = nhmtap(perfmon_1, "stat", "-M", "ipc,branch_share", "--", "count")
    assert {r["metric"]: r["unit"] for r in found if r["type"] == "metric"} == \
        {"ipc": "instructions per cycle", "branch_share": "%"}


def test_what_is_counted_by_itself_is_what_cpuid_has(perfmon_2):
    found = nhmtap(perfmon_2, "stat", "--", "count")
    assert list(counted(found)) == ["task-clock", "context-switches", "cpu-migrations", "page-faults", "cycles", "instructions"]
    assert "without those that this CPU lacks" in found[0]["default_event_why"]


def test_an_event_that_cpuid_lacks_is_refused_with_its_bit_and_not_listed(perfmon_2):
    for name, bit in (("BR_INST_RETIRED.ALL_BRANCHES", 5), ("BR_MISP_RETIRED.ALL_BRANCHES", 6)):
        error, *_ = nhmtap(perfmon_2, "stat", "-e", name, "--", "true", status=2)
        assert f"bit {bit} of CPUID.0AH:EBX" in error["why"]
    listed = {record["name"] for record in records.parse(perfmon_2.say("nhmtap list --json"))
              if record.get("cpu") == "architectural"}
    assert "LONGEST_LAT_CACHE.MISS" in listed and not [name for name in listed if name.startswith("BR_")]


def test_reference_cycles_are_refused_without_a_third_fixed_counter(perfmon_1):
    for name in ("ref-cycles", "CPU_CLK_UNHALTED.REF_TSC"):
        error, *_ = nhmtap(perfmon_1, "stat", "-e", name, "--", "true", status=2)
        assert "only fixed counter 2 counts it, and this CPU has 0" in error["why"]


def test_both_threads_are_counted_from_version_3_on(perfmon_2, perfmon_3):
    error, *_ = nhmtap(perfmon_2, "stat", "-e", "cpu/event=0x3c,any/", "-C", 0, "--", "true", status=1)
    assert "version 3" in error["why"]
    found = nhmtap(perfmon_3, "stat", "-e", "cpu/event=0x3c,any/", "-C", 0, "--", "true")
    assert all(record["value"] > 0 for record in counted(found).values())


def test_a_period_beyond_32_bits_is_taken_as_the_kernel_takes_it(perfmon_3):
    # The counters are written in 32 bits; the kernel counts such a period in pieces (x86_perf_event_set_period()).
    found = nhmtap(perfmon_3, "profile", "-e", "INST_RETIRED.ANY:u", "-c", 1 << 31, "--", "count")
    assert found[0]["events"][0]["attr"]["sample_period"] == 1 << 31


def test_the_first_stepping_has_bus_cycles_and_the_later_ones_have_not(booted):
    # CPUID.0AH EBX of InstLatx64's dumps: 0x40 on 106A4, 0x44 on 106A5.
    with booted.boot(nehalem.Machine(model="ep-c0")) as guest:
        first = guest.run("dmesg | grep -c 'bus cycles. unavailable'; dmesg | grep -c AAJ80; perf stat -x, -e bus-cycles true")
    assert first.stdout.split() == ["0", "1"]
    assert "not supported" not in first.stderr and "bus-cycles" in first.stderr
