# SPDX-License-Identifier: GPL-2.0-only
"""Architectural perfmon of versions that no Nehalem has, on a CPU without a table: what nhmtap says of the
machine is what works there. CPUID.0AH is given by hand; the kernel's drivers are its own."""
import pytest

import nehalem
import records
from test_doctor_on_nehalem import doctor

# Version 1: core_pmu, which knows no fixed counters, no LBR and no event for its debug store.
FIRST = {"model": "core", "perfmon": "07300201,00000000,00000000"}
# Version 2 of a model that the kernel does not know: intel_pmu, two general and three fixed counters; no branches and no branch misses.
SECOND = {"model": "unknown", "perfmon": "07300202,00000060,00000603"}


@pytest.fixture
def perfmon_1(machines):
    return machines(**FIRST)


@pytest.fixture
def perfmon_2(machines):
    return machines(**SECOND)


def nhmtap(bench, *arguments, status=0):
    result = bench.run("/opt/nhmtap", *map(str, arguments), paranoid=-1)
    assert result.status == status, str(result)
    found = records.parse(result.stdout)
    records.check_stream(found)
    return found


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
    # The guide is not about this CPU.
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


def test_the_first_stepping_has_bus_cycles_and_the_later_ones_have_not(booted):
    # CPUID.0AH EBX of InstLatx64's dumps: 0x40 on 106A4, 0x44 on 106A5.
    with booted.boot(nehalem.Machine(model="ep-c0")) as guest:
        first = guest.run("dmesg | grep -c 'bus cycles. unavailable'; dmesg | grep -c AAJ80; perf stat -x, -e bus-cycles true")
    assert first.stdout.split() == ["0", "1"]
    assert "not supported" not in first.stderr and "bus-cycles" in first.stderr
