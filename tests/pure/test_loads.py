# SPDX-License-Identifier: GPL-2.0-only
"""What nhmtap mem and nhmtap offcore refuse before anything is opened, on machines that exist only as files."""
import itertools
import json

import pytest
from hosts import EVENT_SOURCE, NEHALEM, OTHER_PMU, WITHOUT_PMU, cpuinfo

PRECISE = f"{EVENT_SOURCE}/cpu/caps/max_precise"
EVENTS = f"{EVENT_SOURCE}/cpu/events"


def refusal(nhmtap, status, *arguments):
    """The error record of a run that could not start; an end record still follows it."""
    result = nhmtap(*arguments)
    assert result.status == status, result.out
    assert result.one("end")["reason"] == "refused"
    return result.one("error")


@pytest.mark.parametrize("machine, why", [
    ([WITHOUT_PMU], "no core PMU"),
    ([NEHALEM, {PRECISE: "0\n"}], "PEBS"),
    ([NEHALEM, {f"{EVENTS}/mem-loads": None}], "no event of them (mem-loads)"),
])
def test_loads_need_pebs_and_a_driver_that_has_an_event_of_them(nhmtap, host, machine, why):
    error = refusal(nhmtap, 2, "mem", host(*machine), "--", "true")
    assert why in error["why"]
    assert "-e page-faults" in error["remedy"]


@pytest.mark.parametrize("arguments", [
    ("--ldlat", "50", "-e", "r10cb:pp"),
    ("--side", "u", "-e", "r10cb:pp"),
    ("--stores", "-e", "r10cb:pp"),
    ("--loads", "-e", "r10cb:pp"),
    ("--stores", "--ldlat", "50"),
    ("--shared", "--by", "ip"),
    ("--shared", "--stream"),
    ("-c", "100", "-F", "100"),
])
def test_options_that_exclude_each_other(nhmtap, host, arguments):
    error = refusal(nhmtap, 1, "mem", host(NEHALEM), *arguments, "--", "true")
    assert error["asked"].startswith("options ")


def test_a_cpu_without_a_table_takes_its_drivers_event_of_loads(nhmtap, host):
    """The real machine has no such PMU, so the error names the event that would be opened."""
    machine = [NEHALEM, {"proc/cpuinfo": cpuinfo(model=143), f"{EVENTS}/mem-loads": "event=0xcd,umask=0x1,ldlat=3"}]
    error = refusal(nhmtap, 2, "mem", host(*machine), "--ldlat", "50", "--", "true")
    assert error["asked"].startswith("event 'load-latency")


@pytest.mark.parametrize("threshold, taken", [(2, False), (3, True), (65535, True), (65536, False)])
def test_a_threshold_is_taken_up_to_its_bounds(nhmtap, host, threshold, taken):
    """One that is taken comes as far as the event, which this machine lacks."""
    result = nhmtap("mem", host(NEHALEM), "--ldlat", threshold, "--", "true")
    if taken:
        assert result.status == 2 and result.one("error")["asked"].startswith("event '")
    else:
        assert result.status == 1 and "from 3 to 65535" in result.err + result.out


def test_stores_need_an_event_of_the_driver(nhmtap, host):
    error = refusal(nhmtap, 2, "mem", host(NEHALEM), "--stores", "--", "true")
    assert "no event of them (mem-stores)" in error["why"]


def test_a_pmu_without_a_threshold_has_no_ldlat(nhmtap, host):
    machine = [OTHER_PMU, {f"{EVENT_SOURCE}/cpu/format/ldlat": None}]
    assert "no term ldlat" in refusal(nhmtap, 2, "mem", host(*machine), "--ldlat", "50", "--", "true")["why"]


def test_what_only_counts_beside_another_event_is_not_sampled_alone(nhmtap, host):
    machine = [OTHER_PMU, {f"{EVENTS}/mem-loads-aux": "event=0x03,umask=0x82"}]
    error = refusal(nhmtap, 1, "mem", host(*machine), "-e", "cpu/mem-loads-aux/", "--", "true")
    assert "takes no samples itself" in error["why"]


def test_explain_gives_a_companion_no_period_as_profile_does(nhmtap, host):
    """It counts, and enables its group: the samples are the other event's (in mem's attr as strace sees it, too)."""
    machine = [OTHER_PMU, {f"{EVENTS}/mem-loads-aux": "event=0x03,umask=0x82"}]
    told = nhmtap("explain", host(*machine), "-c", "1000", "-e", "{cpu/mem-loads-aux/,cpu/event=0xcd,umask=0x1,ldlat=30/pp}").out.splitlines()
    assert [json.loads(line)["event"]["attr"].get("sample_period", 0) for line in told] == [0, 1000]


@pytest.mark.parametrize("key", ["tlb", "ip,lock"])
def test_what_a_record_does_not_tell_is_no_key(nhmtap, host, key):
    error = refusal(nhmtap, 1, "mem", host(NEHALEM), "--by", key, "--", "true")
    assert "no TLB and no lock bits" in error["why"]


def test_two_thresholds_are_refused_on_siblings(nhmtap, host):
    threads = {f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": "0,4\n" for cpu in (0, 4)}
    events = ",".join(f"cpu/event=0xb,umask=0x10,ldlat={n}/pp" for n in (30, 60))
    error = refusal(nhmtap, 1, "mem", host(NEHALEM, threads), "-C", "0,4", "-e", events)
    assert "load-latency threshold" in error["why"]


REQUESTS = ("DEMAND_DATA_RD", "DEMAND_RFO", "DEMAND_IFETCH", "COREWB", "PF_DATA_RD", "PF_RFO", "PF_IFETCH")


@pytest.mark.parametrize("arguments, why", [
    # Table 12: bit 11 is not supported; without a response bit nothing is counted.
    (("--request", "DEMAND_DATA_RD", "--response", "REMOTE_CACHE_HITM"), "reserved"),
    (("--request", "STORES"), "no request"),
    (("--response", "L4"), "no response"),
    (("--response", ""), "response is missing"),
    (("--request", "DEMAND_RFO:LOCAL_DRAM"), "no name"),
    (("--request", ",".join(map("|".join, itertools.islice(itertools.combinations(REQUESTS, 2), 17)))), "more than 16"),
    (("--preset", "everything"), "no such preset"),
])
def test_cells_that_there_are_not(nhmtap, host, arguments, why):
    assert why in refusal(nhmtap, 1, "offcore", host(NEHALEM), *arguments, "--", "true")["why"]


def test_one_value_for_both_threads_of_a_core_is_no_matrix(nhmtap, host):
    threads = {f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": "0,4\n" for cpu in (0, 4)}
    error = refusal(nhmtap, 1, "offcore", host(NEHALEM, threads), "-C", "0,4")
    assert "off-core register" in error["why"]


def test_a_cpu_apart_needs_cpus(nhmtap, host):
    assert "-C CPUS" in refusal(nhmtap, 1, "offcore", host(NEHALEM), "--per-cpu", "--", "true")["remedy"]


def test_off_core_requests_need_a_pmu(nhmtap, host):
    refusal(nhmtap, 2, "offcore", host(WITHOUT_PMU), "--", "true")


def test_a_preset_names_its_cells(nhmtap, host):
    """The real machine has no such PMU, so the error names the event that would be opened first."""
    error = refusal(nhmtap, 2, "offcore", host(NEHALEM), "--preset", "numa", "--", "true")
    assert error["asked"] == "event 'ANY_DATA.LOCAL_CACHE'"
