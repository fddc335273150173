# SPDX-License-Identifier: GPL-2.0-only
"""What branch requests from the last branch record, and what it refuses, on a simulated Nehalem.

Sources: branch_sample_type in perf_event.h; nhm_lbr_sel_map (arch/x86/events/intel/lbr.c) and
precise_br_compat() (arch/x86/events/core.c) of Linux 6.1; Intel's guide, Table 19."""
import json

import pytest

from hosts import EVENT_SOURCE, NEHALEM, OTHER_PMU

BRANCH_STACK = 1 << 11  # PERF_SAMPLE_BRANCH_STACK
USER, KERNEL = 1, 2


@pytest.fixture
def refused(nhmtap, host):
    """The error record of a branch command that is refused before anything is opened."""
    def run(*arguments):
        result = nhmtap("branch", host(NEHALEM), *arguments, "--", "true")
        assert result.status == 1
        return result.one("error")
    return run


# The bits of branch_sample_type, and those of LBR_SELECT by nhm_lbr_sel_map, where a set bit
# filters branches out (bit 0: those in ring 0). Jumps are recorded with calls and with returns
# because of an erratum.
@pytest.mark.parametrize("kinds, bits, lbr_select", [
    ("any,u", 1 << 3 | USER, 0x01), ("any_call,u", 1 << 4 | USER, 0x25),
    ("any_ret,u", 1 << 5 | USER, 0x1d), ("ind_call,u", 1 << 6 | USER, 0x1ad),
    ("cond,u", 1 << 10 | USER, 0x1f9), ("ind_jmp,u", 1 << 12 | USER, 0x1bd),
    ("any,k", 1 << 3 | KERNEL, 0x02), ("any", 1 << 3, 0x00)])
def test_explain_shows_the_filter_and_the_lbr_select_that_the_kernel_makes_of_it(
        nhmtap, host, kinds, bits, lbr_select):
    result = nhmtap("explain", host(NEHALEM), "--format", "json", "-c", 1000, "--filter", kinds,
                    "BR_INST_RETIRED.ALL_BRANCHES")
    assert result.status == 0, result.err
    record = json.loads(result.out.splitlines()[0])
    assert int(record["event"]["attr"]["branch_sample_type"], 16) == bits
    assert int(record["event"]["attr"]["sample_type"], 16) & BRANCH_STACK
    (register,) = [r for r in record["registers"] if r["name"] == "LBR_SELECT"]
    assert int(register["value"], 16) == lbr_select


@pytest.mark.parametrize("kinds, words", [
    ("any_call", "erratum"), ("any_ret", "erratum"), ("ind_call", "erratum")])
def test_what_the_kernel_filters_in_software_is_said(explain, host, kinds, words):
    (event,) = explain(host(NEHALEM), "-c", "1000", "--filter", kinds, "branches")
    why = event["why"]["branch_sample_type"]
    assert words in why and "the kernel drops them" in why


@pytest.mark.parametrize("kind, why, remedy", [
    ("call", "every stack is empty", "any_call"), ("abort_tx", "no transactions", "leave it out"),
    ("stack", "EOPNOTSUPP", "any_call"), ("calls", "no kind of branch", "any_call")])
def test_a_filter_that_the_cpu_has_not_is_refused_with_the_reason_and_the_alternative(
        refused, kind, why, remedy):
    error = refused("--filter", kind)
    assert why in error["why"]
    assert remedy in error["remedy"]


def test_sides_alone_are_no_filter(refused):
    assert refused("--filter", "u")["remedy"].endswith("any,u")


@pytest.mark.parametrize("kinds", ["any_call", "any,k"])
def test_precise_samples_of_level_2_need_the_record_for_themselves(refused, kinds):
    error = refused("-e", "BR_INST_RETIRED.ALL_BRANCHES:upp", "-c", 1000, "--filter", kinds)
    assert error["errno"] == "EOPNOTSUPP" and "precise_ip 2" in error["why"]
    assert "precise_br_compat" in error["source"]


def test_events_of_one_group_have_one_filter(refused):
    error = refused("-e", "{branches:u,instructions:k}", "-c", 1000)
    assert "one branch filter" in error["why"]


def test_code_between_branches_is_straight_only_if_all_branches_are_there(refused):
    assert "straight" in refused("--by", "range", "--filter", "cond")["why"]


@pytest.mark.parametrize("by", ["pid", "comm,cgroup"])
def test_keys_need_something_to_be_keys_of(refused, by):
    assert refused("--by", by)["remedy"] == f"for branches: --by edge,{by}"


def test_a_key_that_is_not_there_is_refused_with_those_that_are(refused):
    remedy = refused("--by", "edge,side")["remedy"]
    assert remedy == "keys: edge, range, pid, cgroup, comm, function, callpair, line, symbol"


@pytest.mark.parametrize("arguments", [["--by", "edge"], ["-I", 100], ["--top", 5], ["-a"], ["-p", "1,2"]])
def test_a_compilers_profile_is_one_and_whole(nhmtap, host, arguments):
    result = nhmtap("branch", host(NEHALEM), "--format", "autofdo", *arguments, "--", "true")
    assert result.status == 1 and result.out == ""
    assert "autofdo" in result.err and "whole" in result.err


@pytest.mark.parametrize("kind, bit", [("call", 13), ("in_tx", 8), ("ind_jmp", 12)])
def test_a_cpu_without_a_table_is_not_judged_by_nehalems_rules(explain, host, kind, bit):
    event, = explain(host(OTHER_PMU), "-c", "1000", "--filter", kind + ",u", "branches")
    assert int(event["attr"]["branch_sample_type"], 16) == 1 << bit | USER
    assert "erratum" not in event["why"]["branch_sample_type"]


def test_kinds_are_listed_as_the_cpu_has_them(nhmtap, host, refused):
    assert "call," not in refused("--filter", "calls")["remedy"].replace("any_call,", "").replace("ind_call,", "")
    other = nhmtap("branch", host(OTHER_PMU), "--filter", "calls", "--", "true").one("error")
    assert ", call, " in other["remedy"]


# core_pmu (architectural perfmon 1) and p4_pmu open such an event; its samples have no branches.
def test_a_driver_without_a_record_is_believed(nhmtap, host):
    result = nhmtap("branch", host(OTHER_PMU, {f"{EVENT_SOURCE}/cpu/caps/branches": None}), "--", "true")
    assert result.status == 2
    assert "caps/branches" in result.one("error")["why"]


@pytest.mark.parametrize("kinds, side", [("any,u", "u"), ("any_call,k", "k"), ("any,u,k", ""), ("any", "")])
def test_the_default_event_is_of_the_side_that_the_filter_leaves(nhmtap, host, tmp_path, kinds, side):
    """A sample on the other side would have the branches that were there before, and weigh them by what that side took."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"activities": [{"name": "b", "command": "branch", "filter": kinds, "all_cpus": True}]}))
    result = nhmtap("run", "--check", host(NEHALEM), config)
    assert result.status == 0, result.err
    event, = next(record["events"] for record in result.records if record.get("activity") == "b" and "events" in record)
    assert (event["attr"].get("exclude_kernel", 0), event["attr"].get("exclude_user", 0)) == (side == "u", side == "k")
