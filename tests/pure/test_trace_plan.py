# SPDX-License-Identifier: GPL-2.0-only
"""What branch --trace requests from the branch trace store and what it refuses, on simulated
machines.

Sources: arch/x86/events/intel/bts.c and perf_mmap() (kernel/events/core.c) of Linux 6.1; Intel's guide,
IA32_DEBUGCTL."""
import pytest

from hosts import MACHINE, NEHALEM, WITHOUT_PMU, cpuinfo, pmu

BTS = pmu("intel_bts", 8)


@pytest.fixture
def refused(nhmtap, host):
    """The error record of a trace that is refused before anything is opened."""
    def run(*arguments, machine=NEHALEM | BTS, expected=1):
        result = nhmtap("branch", host(machine), "--trace", *arguments, "--", "true")
        assert result.status == expected
        return result.one("error")
    return run


@pytest.mark.parametrize("arguments, why, remedy", [
    (["-a"], "neither a time nor a process", "-p PID"),
    (["-G", "/"], "neither a time nor a process", "-p PID"),
    (["-C", 1], "neither a time nor a process", "-p PID"),
    (["-e", "branches"], "EBUSY", "leave out"),
    (["-e", "BR_INST_RETIRED.ALL_BRANCHES:pp"], "precisely", "leave out"),
    (["-c", 100], "every branch", "leave it out"),
    (["-F", 100], "every branch", "leave it out"),
    (["--by", "edge,cgroup"], "in which cgroup", "--by edge,pid,comm"),
    (["--by", "pid"], "names no branches", "--by edge,pid")])
def test_what_a_trace_has_not_is_refused(refused, arguments, why, remedy):
    error = refused(*arguments)
    assert why in error["why"] and remedy in error["remedy"]


@pytest.mark.parametrize("kinds", ["any_call", "cond,u", "ind_jmp,k", "any,any_ret"])
def test_kinds_of_branches_can_not_be_chosen(refused, kinds):
    error = refused("--filter", kinds)
    assert "no kinds of branches" in error["why"]
    assert "BTS_OFF_OS" in error["source"]


def test_a_filter_that_branch_has_not_a_trace_has_not_either(refused):
    assert "no kind of branch" in refused("--filter", "calls")["why"]


@pytest.mark.parametrize("machine, why, remedy", [
    (NEHALEM | {"sys/devices/system/cpu/vulnerabilities/meltdown": "Mitigation: PTI\n"},
     "page-table isolation", "nopti"),
    (NEHALEM, "CPU, or this kernel, has no branch trace store", "LBR"),
    (MACHINE | {"proc/cpuinfo": cpuinfo(vendor="AuthenticAMD")}, "only Intel's CPUs", "Intel's"),
    (WITHOUT_PMU | {"proc/cpuinfo": cpuinfo() + "flags\t\t: fpu hypervisor\n"},
     "virtual machine has no branch trace store", "host itself")])
def test_without_the_branch_trace_store_the_reason_and_the_way_out_are_named(
        refused, machine, why, remedy):
    error = refused(machine=machine, expected=2)
    assert "there is no PMU 'intel_bts'" in error["why"]
    assert why in error["why"] and remedy in error["remedy"]


def test_branches_of_samples_do_not_stream(nhmtap, host):
    error = nhmtap("branch", host(NEHALEM), "--stream", "--", "true").one("error")
    assert "--trace --stream" in error["remedy"]
