# SPDX-License-Identifier: GPL-2.0-only
"""Metrics by name: which events they count, and which of these at the same time. By the guide
(section 3.1), there are four general counters, of which only the first two count L1D events, and
three fixed ones."""
import fnmatch
import json
import os

import pytest

from hosts import NEHALEM, WITHOUT_PMU, cpuinfo
from records import HERE

EVENTS = os.path.join(HERE, "..", "events")


def table(path):
    with open(os.path.join(EVENTS, path), encoding="utf-8") as file:
        return json.load(file)


NEHALEM_METRICS = [metric["name"] for metric in table("nehalem-ep/metrics.json")]
GENERIC_METRICS = [metric["name"] for metric in table("generic/metrics.json")]


@pytest.fixture
def groups(explain, host):
    """The events of metrics on a Nehalem, one list per group; an event without a group is a list by
    itself."""
    def run(metrics, *arguments, on=NEHALEM):
        found = {}
        for number, event in enumerate(explain(host(on), "-M", metrics, *arguments)):
            found.setdefault(event.get("group", f"alone {number}"), []).append(event["name"])
        return list(found.values())
    return run


@pytest.fixture
def refusal(nhmtap, host):
    def run(metrics, on=NEHALEM):
        result = nhmtap("explain", host(on), "-M", metrics)
        assert result.out == ""
        return result.status, result.err
    return run


# ---- expansion ----

@pytest.mark.parametrize("name", NEHALEM_METRICS)
def test_all_inputs_of_a_nehalem_metric_are_counted_together(groups, name):
    assert len(groups(name)) == 1


def test_metrics_of_the_same_inputs_share_their_group(groups):
    assert groups("ipc,cpi") == [["INST_RETIRED.ANY", "CPU_CLK_UNHALTED.THREAD"]]


def test_a_metric_joins_a_group_that_has_room(groups):
    assert groups("ipc,branch_share") == [
        ["INST_RETIRED.ANY", "CPU_CLK_UNHALTED.THREAD", "BR_INST_RETIRED.ALL_BRANCHES"]]


def test_what_does_not_fit_four_counters_is_another_group(groups):
    # Two events each, all of them on general counters; the third pair has no room.
    assert groups("branch_mispredict_ratio,l2_miss_ratio,l3_miss_ratio") == [
        ["BR_MISP_EXEC.ANY", "BR_INST_EXEC.ANY", "L2_RQSTS.MISS", "L2_RQSTS.REFERENCES"],
        ["LONGEST_LAT_CACHE.MISS", "LONGEST_LAT_CACHE.REFERENCE"]]


def test_fixed_counters_come_on_top_of_four_general_ones(groups):
    # INST_RETIRED.ANY and both clocks have their own counters.
    assert [len(group) for group in
            groups("branch_mispredict_ratio,l2_miss_ratio,ipc,clock_ratio")] == [7]


def test_events_that_only_two_counters_count_are_not_put_together_by_three(groups):
    # L1D_CACHE_LD (twice) and L1D.REPL: only counters 0 and 1.
    assert groups("l1d_load_miss_ratio,l1d_mpki") == [
        ["L1D_CACHE_LD.I_STATE", "L1D_CACHE_LD.MESI"], ["L1D.REPL", "INST_RETIRED.ANY"]]


def test_the_counter_that_the_watchdog_holds_is_left_to_it(groups):
    watched = NEHALEM | {"proc/sys/kernel/nmi_watchdog": "1\n"}
    # Four events of general counters, and cycles, whose fixed counter is the watchdog's.
    names = "l2_miss_ratio,starved_share"
    assert [len(group) for group in groups(names, on=NEHALEM)] == [5]
    assert [len(group) for group in groups(names, on=watched)] == [2, 3]


def test_two_values_of_one_offcore_register_take_turns(groups):
    ex = NEHALEM | {"proc/cpuinfo": cpuinfo(model=0x2e)}
    assert groups("remote_dram_share", on=ex) == [
        ["OFFCORE_RESPONSE.DEMAND_DATA_RD.REMOTE_DRAM"], ["OFFCORE_RESPONSE.DEMAND_DATA_RD.ANY_DRAM"]]


def test_events_stand_before_those_of_metrics(groups):
    assert groups("ipc", "-e", "page-faults,{cs,faults}") == [
        ["page-faults"], ["cs", "faults"], ["INST_RETIRED.ANY", "CPU_CLK_UNHALTED.THREAD"]]


def test_modifiers_of_a_metric_are_its_events(groups):
    assert groups("ipc:u") == [["INST_RETIRED.ANY:u", "CPU_CLK_UNHALTED.THREAD:u"]]


def test_a_metric_that_is_named_twice_is_counted_once(groups):
    assert groups("ipc,IPC,ipc") == groups("ipc")


def test_several_options_make_one_list(groups):
    assert groups("ipc", "-M", "cpi") == groups("ipc,cpi")


@pytest.mark.parametrize("name", GENERIC_METRICS)
def test_a_generic_metric_is_of_perfs_own_events(explain, host, name):
    events = explain(host(WITHOUT_PMU), "-M", name)
    assert {event["type"] for event in events} <= {"PERF_TYPE_SOFTWARE", "PERF_TYPE_HARDWARE"}


def test_the_cpus_own_metric_goes_before_a_generic_one_of_its_name(groups, explain, host):
    assert "ipc" in GENERIC_METRICS and "ipc" in NEHALEM_METRICS
    assert groups("ipc") == [["INST_RETIRED.ANY", "CPU_CLK_UNHALTED.THREAD"]]
    assert groups("ipc", on=WITHOUT_PMU) == [["instructions", "cycles"]]


# ---- patterns ----

@pytest.mark.parametrize("pattern, modifiers", [("l2_*", ""), ("L[12]d_*", ""), ("branch_*", ":u"), ("*", "")])
def test_a_pattern_is_all_metrics_that_it_fits(groups, pattern, modifiers):
    fits = [name + modifiers for name in NEHALEM_METRICS + [n for n in GENERIC_METRICS if n not in NEHALEM_METRICS]
            if fnmatch.fnmatchcase(name, pattern.lower())]
    assert len(fits) > 1 and groups(pattern + modifiers) == groups(",".join(fits))


def test_a_pattern_leaves_out_metrics_whose_events_the_machine_lacks(groups):
    assert groups("*_per_second", on=WITHOUT_PMU) == [
        ["page-faults", "task-clock", "context-switches", "cpu-migrations"]]


def test_what_a_pattern_fits_and_is_named_as_well_is_counted_once(groups):
    assert groups("ipc,ip*") == groups("ipc")


# ---- refusals ----

def test_an_unknown_metric_names_the_nearest(refusal):
    status, err = refusal("brnch_share")
    assert status == 1 and "'brnch_share'" in err and "did you mean branch_share?" in err


def test_a_metric_that_is_like_no_other_is_refused_all_the_same(refusal):
    status, err = refusal("zzzzzz")
    assert status == 1 and "there is no metric of this name" in err and "nhmtap list" in err


def test_a_pattern_that_fits_no_metric_is_refused(refusal):
    status, err = refusal("zz*")
    assert status == 1 and "metric 'zz*'" in err and "fits no metric" in err and "nhmtap list" in err


def test_a_pattern_whose_metrics_all_lack_their_events_says_why(refusal):
    status, err = refusal("branch_*", on=WITHOUT_PMU)
    assert status == 2 and "metric 'branch_*'" in err and "lacks the events" in err


def test_a_metric_of_another_cpu_says_whose_it_is(refusal):
    status, err = refusal("dtlb_walk_cycles_share")
    assert status == 2 and "westmere-ep" in err and "model 26" in err


def test_an_event_that_is_refused_says_for_which_metric(refusal):
    status, err = refusal("ipc:zz")
    assert status == 1 and "metric 'ipc'" in err and "INST_RETIRED.ANY:zz" in err


@pytest.mark.parametrize("text", ["", ",", "ipc,", ",ipc"])
def test_an_empty_name_is_none(refusal, text):
    assert refusal(text)[0] == 1


# ---- what list shows ----

def test_list_has_every_metric_with_unit_and_formula(nhmtap):
    result = nhmtap("list", "--cpu", "nehalem-ep", "--json")
    listed = {record["name"]: record for record in map(json.loads, result.out.splitlines())
              if "formula" in record}
    own = {metric["name"]: metric for metric in table("nehalem-ep/metrics.json")}
    assert listed.keys() == own.keys() | set(GENERIC_METRICS)
    for name, metric in own.items():
        assert (listed[name]["unit"], listed[name]["formula"]) == (metric["unit"], metric["formula"])
