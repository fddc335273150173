# SPDX-License-Identifier: GPL-2.0-only
"""What can be measured where, on machines that exist only as files: targets, keys of --per, and
counters that are shared by several CPUs."""
import pytest
from hosts import EVENT_SOURCE, NEHALEM, pmu

# drivers/… of Linux 6.1: uncore_nhm.c, rapl.c, cstate.c, msr.c on two packages of four CPUs.
NEIGHBOURS = (
    pmu("uncore", 12, formats={"event": "config:0-7", "umask": "config:8-15", "edge": "config:18"},
        events={"clockticks": "event=0xff", "qmc_normal_reads_any": "event=0x2c,umask=0x7"})
    | pmu("power", 13, formats={"event": "config:0-7"}, events={"energy-pkg": "event=0x02"})
    | pmu("cstate_core", 14, formats={"event": "config:0-63"}, events={"c3-residency": "event=0x01"})
    | pmu("msr", 15, formats={"event": "config:0-63"}, events={"smi": "event=0x04", "tsc": "event=0x00"})
    | {f"{EVENT_SOURCE}/{name}/cpumask": text for name, text in [
        ("uncore", "0,4\n"), ("power", "0,4\n"), ("cstate_core", "0-1,4-5\n")]})
CGROUPS = {"proc/self/mounts": "cgroup2 /cg cgroup2 rw 0 0\n", "cg/cgroup.procs": "",
           "cg/web/cgroup.procs": "", "cg/web/blue/cgroup.procs": "", "cg/website/cgroup.procs": ""}
VERSION_1 = {"proc/self/mounts": "cgroup2 /cg cgroup2 rw 0 0\n"
             "cgroup /cg1 cgroup rw,net_cls,perf_event 0 0\n"}


@pytest.fixture
def refusal(nhmtap, host):
    """The error record of a run that could not start, with its exit status."""
    def run(*arguments, machine=()):
        result = nhmtap("stat", host(NEHALEM, NEIGHBOURS, CGROUPS, *machine), *arguments)
        assert result.one("end")["reason"] == "refused"
        error = result.one("error")
        assert error["remedy"]
        return result.status, error
    return run


@pytest.mark.parametrize("arguments, why, remedy", [
    (["--per", "socket", "--", "true"], "wherever they run", "-a or -C CPUS"),
    (["--per", "cpu,core", "-p", "1"], "wherever they run", "-a or -C CPUS"),
    (["--per", "cgroup", "-p", "1"], "no cgroups to tell apart", "--for-each-cgroup"),
    (["--per", "thread", "--", "true"], "begins with one thread", "-t TID"),
    (["--per", "thread", "-a"], "whatever thread runs there", "-p PID"),
    (["--per", "die", "-a"], "no such key", "cpu, core, socket, node, thread, cgroup"),
    (["-t", "12x"], "'12x' is no thread id", "thread ids with ','"),
    (["-t", "1", "-p", "1"], "one target", "one of them"),
    (["-G", "/web", "-p", "1"], "one target", "one of them"),
    (["-G", "/web", "--for-each-cgroup", "/web"], "one target", "one of them"),
    (["-t", "1", "-C", "0"], "can't tell", "taskset"),
    (["-p", "1", "-a"], "can't tell", "taskset"),
    (["-G", "/web,/web/blue"], "counted twice", "--for-each-cgroup"),
    (["-G", "/web,/web/x/..//./blue/"], "counted twice", "--for-each-cgroup"),
    (["-G", "/web/blue,/w*"], "belongs to '/w*' too", "--for-each-cgroup"),
    (["-G", "/,"], "name is missing", "/ is the root"),
    (["-G", "web,"], "name is missing", "/ is the root"),
])
def test_targets_that_make_no_sense(refusal, arguments, why, remedy):
    status, error = refusal(*arguments)
    assert status == 1
    assert why in error["why"]
    assert remedy in error["remedy"]


@pytest.mark.parametrize("option", ["-G", "--for-each-cgroup"])
@pytest.mark.parametrize("machine, name, why, remedy", [
    ({}, "/nowhere", "no cgroup /cg/nowhere", "find /cg -type d"),
    ({}, "/cg/nowhere", "no cgroup /cg/nowhere", "find /cg -type d"),
    (VERSION_1, "/web", "version 1, at /cg1", "cgroup_no_v1=perf_event"),
    ({"proc/self/mounts": "proc /proc proc rw 0 0\n"}, "/web", "no cgroup hierarchy of version 2",
     "mount -t cgroup2"),
    ({"proc/self/mounts": None}, "/web", "no cgroup hierarchy of version 2", "mount -t cgroup2"),
])
def test_cgroups_that_cannot_be_counted(refusal, option, machine, name, why, remedy):
    status, error = refusal(option, name, machine=[machine])
    assert status == 2
    assert why in error["why"]
    assert remedy in error["remedy"]


def test_a_cgroup_beside_another_is_not_in_it(refusal):
    _, error = refusal("-G", "/web,/website,/nowhere")
    assert "/cg/nowhere" in error["why"]


def test_nodes_are_not_told_apart_where_the_kernel_knows_none(refusal):
    status, error = refusal("--per", "node", "-a")
    assert status == 2
    assert "NUMA" in error["why"]


@pytest.mark.parametrize("arguments, why, remedy", [
    (["uncore/clockticks/", "--", "true"], "not belong to a process: a package has one", "-a -- COMMAND"),
    (["uncore/clockticks/", "-p", "1"], "not belong to a process", "-a --duration"),
    (["uncore/clockticks/", "-t", "1"], "not belong to a process", "-a --duration"),
    (["uncore/clockticks/", "-G", "/web"], "not belong to a cgroup", "-a --duration"),
    (["uncore/clockticks/", "-G", "/web", "--", "true"], "not belong to a cgroup", "-a -- COMMAND"),
    (["power/energy-pkg/", "--", "true"], "a package has one", "-a -- COMMAND"),
    (["cstate_core/c3-residency/", "--", "true"], "a core has one", "-a -- COMMAND"),
    (["uncore/clockticks/", "-C", "1-3"], "CPUs 0,4 count for the others", "-C 0,4, or -a"),
    (["{cycles,uncore/clockticks/}", "-a"], "different PMUs", "out of the braces"),
    (["{uncore/clockticks/,page-faults}", "-a"], "different PMUs", "out of the braces"),
    (["{uncore/clockticks/,power/energy-pkg/}", "-a"], "different PMUs", "out of the braces"),
])
def test_shared_counters_where_they_count_nothing(refusal, arguments, why, remedy):
    status, error = refusal("-e", *arguments)
    assert status == 1
    assert why in error["why"]
    assert remedy in error["remedy"]


def test_shared_counters_take_no_samples(nhmtap, host):
    result = nhmtap("profile", host(NEHALEM, NEIGHBOURS), "-a", "-c", "1000", "-e", "uncore/clockticks/")
    assert result.status == 1
    assert "no interrupt" in result.one("error")["why"]


@pytest.mark.parametrize("event, scope, cpus", [
    ("uncore/qmc_normal_reads_any/", "socket", "0,4"),
    ("power/energy-pkg/", "socket", "0,4"),
    ("cstate_core/c3-residency/", "core", "0-1,4-5"),
    ("msr/smi/", "cpu", None),
    ("cycles", None, None),
    ("page-faults", None, None),
])
def test_an_event_says_how_far_its_counter_reaches(explain, host, event, scope, cpus):
    record, = explain(host(NEHALEM, NEIGHBOURS), event)
    assert (record.get("scope"), record.get("cpus")) == (scope, cpus)
    assert ("scope_why" in record) == (scope is not None)
    # A counter of CPUs is not inherited by processes.
    assert ("inherit" in record["attr"]) == (cpus is None)


@pytest.mark.parametrize("event", ["uncore/clockticks/", "power/energy-pkg/", "msr/tsc/"])
def test_counters_without_sides_are_asked_for_none(explain, host, event):
    # PERF_PMU_CAP_NO_EXCLUDE: any exclude_… is EINVAL.
    record, = explain(host(NEHALEM, NEIGHBOURS), event)
    assert not [field for field in record["attr"] if field.startswith("exclude_")]
