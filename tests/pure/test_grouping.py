# SPDX-License-Identifier: GPL-2.0-only
"""Lists with more events than counters: which events are counted together, and on which counters.
By the guide (section 3.1, Tables 2 and 3), there are four general counters, of which L1D events can
use the first two, and three fixed counters for one event each."""
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hosts import NEHALEM, OTHER_PMU
from records import parse

WATCHED = NEHALEM | {"proc/sys/kernel/nmi_watchdog": "1\n"}
# Six events that only general counters count.
GENERAL = ["r010b", "r020b", "r04c4", "r01c4", "r00c5", "r02c0"]


@pytest.fixture
def planned(nhmtap, host):
    """The events of a list after -e, as stat would count them."""
    def run(events, on=NEHALEM):
        result = nhmtap("explain", host(on), "-e", events)
        assert result.status == 0, result.err
        return [record["event"] for record in parse(result.out) if record["type"] == "event"]
    return run


@pytest.fixture
def together(planned):
    """The names of the events, one list per group; an event without a group is a list by itself."""
    def run(events, on=NEHALEM):
        found = {}
        for number, event in enumerate(planned(events, on)):
            found.setdefault(event.get("group", f"alone {number}"), []).append(event["name"])
        return list(found.values())
    return run


def test_a_list_that_fits_the_counters_is_left_as_it_is(together):
    events = GENERAL[:4] + ["instructions", "cycles", "ref-cycles"]
    assert together(",".join(events)) == [[name] for name in events]


def test_a_longer_one_makes_groups_of_as_many_as_fit(together):
    assert together(",".join(GENERAL)) == [GENERAL[:4], GENERAL[4:]]


def test_fixed_counters_come_on_top_of_general_ones(together):
    events = [*GENERAL[:2], "instructions", *GENERAL[2:4], "cycles", *GENERAL[4:]]
    assert together(",".join(events)) == [events[:6], events[6:]]


def test_the_order_of_the_list_stays(planned):
    events = ["cycles", *GENERAL, "instructions", *reversed(GENERAL)]
    assert [event["name"] for event in planned(",".join(events))] == events


def test_two_of_the_first_level_cache_are_all_that_a_group_has_of_it(together):
    l1d = ["L1D.REPL", "L1D_CACHE_LD.MESI", "L1D_CACHE_LD.I_STATE"]
    assert together(",".join(l1d)) == [l1d[:2], l1d[2:]]


def test_one_value_of_the_off_core_register_is_all_that_a_group_has(together):
    responses = [f"cpu/event=0xb7,umask=1,offcore_rsp={value:#x}/" for value in (0x4001, 0x4002)]
    assert together(",".join(responses)) == [[name] for name in responses]
    twice = [responses[0], responses[0], responses[1]]
    assert together(",".join(twice)) == [[responses[0]] * 2, [responses[1]]]


def test_a_cache_event_that_needs_the_off_core_register_is_not_put_where_it_has_another_value(together):
    # perf's LLC events are off-core responses to the kernel: nehalem_hw_cache_extra_regs.
    other = "cpu/event=0xb7,umask=1,offcore_rsp=0x4001/"
    assert together(",".join([other, "LLC-load-misses", *GENERAL[:4]])) == [
        [other], ["LLC-load-misses", *GENERAL[:3]], GENERAL[3:4]]


def test_the_two_extra_registers_are_nothing_to_each_other(together):
    both = ["cpu/event=0xb7,umask=1,offcore_rsp=0x4001/", "cpu/event=0xb,umask=0x10,ldlat=30/"]
    assert together(",".join([*both, *GENERAL[:4]])) == [[*both, *GENERAL[:2]], GENERAL[2:4]]


# Events of each kind that the kernel has a separate placing rule for.
KINDS = [*GENERAL, "instructions", "cycles", "ref-cycles", "page-faults", "L1D.REPL", "L1D_CACHE_LD.MESI",
         "LLC-loads", "LLC-load-misses", "LLC-store-misses", "OFFCORE_RESPONSE:ANY_DATA:ANY_DRAM",
         "OFFCORE_RESPONSE:DEMAND_RFO:LOCAL_CACHE", "cpu/event=0xb,umask=0x10,ldlat=30/",
         "cpu/event=0xb,umask=0x10,ldlat=60/"]


@settings(max_examples=150, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=40))
def test_no_list_without_groups_is_refused_for_the_groups_that_are_made_of_it(planned, events):
    assert [event["name"] for event in planned(",".join(events))] == events


def test_groups_of_the_users_stay_as_they_are_written(together):
    assert together("{r010b,r020b},{r04c4,r01c4},r00c5,r02c0") == [
        ["r010b", "r020b"], ["r04c4", "r01c4"], ["r00c5", "r02c0"]]


def test_software_events_take_turns_with_nobody(together):
    assert together("r010b,r020b,page-faults,r04c4,r01c4,r00c5") == [
        ["r010b", "r020b"], ["page-faults"], ["r04c4", "r01c4", "r00c5"]]


def test_the_watchdogs_counter_is_left_to_it(together, planned):
    events = [*GENERAL[:4], "cycles"]
    assert together(",".join(events)) == [[name] for name in events]
    assert together(",".join(events), on=WATCHED) == [GENERAL[:4], ["cycles"]]
    assert {e["counter"].split()[0] for e in planned("cycles,r010b", on=WATCHED)} == {"general"}


def test_of_a_cpu_that_is_not_known_nothing_is_supposed(together):
    assert together(",".join(GENERAL), on=OTHER_PMU) == [[name] for name in GENERAL]


def test_fixed_counters_are_used_where_that_frees_a_general_one(planned):
    counters = {e["name"]: e["counter"] for e in planned("cycles,instructions,ref-cycles,r01c0")}
    assert (counters["instructions"], counters["cycles"], counters["ref-cycles"]) == (
        "fixed 0", "fixed 1", "fixed 2")
    assert counters["r01c0"].startswith("general")  # Only 0x00c0 is the fixed counter's.


def test_no_two_of_a_group_are_on_one_counter_and_each_on_one_that_it_can_take(planned):
    events = planned(",".join(["L1D.REPL", *GENERAL, "cycles", "L1D_CACHE_LD.MESI", *GENERAL[:3]]))
    groups = {}
    for event in events:
        groups.setdefault(event["group"], []).append(event["counter"])
    for counters in groups.values():
        assert len(set(counters)) == len(counters)
        assert set(counters) <= {"fixed 1", *(f"general {n}" for n in range(4))}
    for event in events:
        if event["name"].startswith("L1D"):
            assert event["counter"] in ("general 0", "general 1")


def test_software_events_have_no_counter(planned):
    assert "counter" not in planned("page-faults")[0]


def test_a_group_that_can_not_run_beside_the_watchdog_is_refused_with_the_way_out(nhmtap, host):
    group = "{" + ",".join([*GENERAL[:4], "cycles"]) + "}"
    assert nhmtap("explain", host(NEHALEM), group).status == 0
    refused = nhmtap("explain", host(WATCHED), group)
    assert refused.status == 2
    assert "watchdog counts cycles on fixed 1" in refused.err
    assert "sysctl kernel.nmi_watchdog=0" in refused.err
    assert nhmtap("explain", host(WATCHED), "--force", group).status == 0


def test_a_group_that_does_not_fit_is_refused_with_what_is_where(nhmtap, host):
    refused = nhmtap("explain", host(NEHALEM), "{" + ",".join(GENERAL[:5]) + "}")
    assert refused.status == 1
    for name in GENERAL[:4]:
        assert f"{name} on general" in refused.err
    assert "no counter is left for r00c5" in refused.err


# --- modifiers of perf's that concern groups ----------------------------------------------------------


def test_a_pinned_event_is_in_no_group_and_the_groups_leave_it_its_counter(together):
    # Two of the four general counters are left.
    pinned = [f"{name}:D" for name in GENERAL[:2]]
    rest = GENERAL[2:]
    assert together(",".join(pinned + rest)) == [[name] for name in pinned] + [rest[:2], rest[2:]]


def test_pinned_events_too_many_leave_nothing_to_others_and_are_not_refused(together):
    names = [f"{name}:D" for name in GENERAL[:5]] + GENERAL[5:]
    assert together(",".join(names)) == [[name] for name in names]


def test_a_pinned_group_has_its_counters_as_a_whole(together):
    others = ["r01c0", *GENERAL[3:]]
    groups = together("{" + ",".join(GENERAL[:3]) + "}:D," + ",".join(others))
    assert groups == [[f"{name}:D" for name in GENERAL[:3]]] + [[name] for name in others]


def test_a_weak_group_that_does_not_fit_is_taken_apart_and_says_so(planned):
    fits, over = planned("{" + ",".join(GENERAL[:4]) + "}:W"), planned("{" + ",".join(GENERAL) + "}:W")
    assert all(event["group"] == 0 and "note" not in event for event in fits)
    assert all("was taken apart" in event["note"] for event in over)
    assert [event["group"] for event in over] == [0] * 4 + [1] * 2


def test_samples_of_a_leader_alone_are_refused_where_samples_are_taken(nhmtap, host):
    text = "{cpu-clock,page-faults}:S"
    assert nhmtap("explain", host(NEHALEM), text).status == 0
    refused = nhmtap("explain", host(NEHALEM), "-F", "100", text)
    assert refused.status == 1 and "modifier S" in refused.err
