# SPDX-License-Identifier: GPL-2.0-only
"""Sides (modifiers u, k, h, G, H, I) of events of every kind of PMU: what the kernel would refuse, or ignore, is
refused or said. The expected answers are those of the kernel's sources, which the messages name."""
import os
import subprocess

import pytest
from hosts import NEHALEM, pmu, status
from records import NHMTAP, parse

ANYONE = status(capabilities=0)
TRACEFS = "sys/kernel/tracing"
TRACEPOINTS = {
    f"{TRACEFS}/events/sched/sched_switch/id": "372\n",
    f"{TRACEFS}/events/raw_syscalls/sys_enter/id": "443\n",
    f"{TRACEFS}/events/syscalls/sys_enter_read/id": "700\n",
    f"{TRACEFS}/events/mine/malloc/id": "1901\n",
    f"{TRACEFS}/events/mine/mallocs/id": "1902\n",
    f"{TRACEFS}/events/header_page": "not a folder\n",
    f"{TRACEFS}/uprobe_events": "p:mine/malloc /lib/libc.so.6:0x1000\nr:mine/other /lib/libc.so.6:0x1000\n",
}
PMUS = {}
for kind in (pmu("tracepoint", 2), pmu("breakpoint", 5), pmu("kprobe", 6), pmu("uprobe", 7),
             pmu("msr", 8, formats={"event": "config:0-63"}, events={"tsc": "event=0x00"}),
             pmu("power", 9, formats={"event": "config:0-7"}, events={"energy-pkg": "event=0x02"}),
             pmu("cstate_core", 10, formats={"event": "config:0-63"}, events={"c3-residency": "event=0x01"}),
             pmu("cstate_pkg", 11, formats={"event": "config:0-63"}, events={"c6-residency": "event=0x02"}),
             pmu("uncore", 12, formats={"event": "config:0-7"}, events={"clockticks": "event=0xff"})):
    PMUS |= kind
for shared in ("power", "cstate_core", "cstate_pkg", "uncore"):
    PMUS[f"sys/bus/event_source/devices/{shared}/cpumask"] = "0\n"
SIDELESS = ("msr/tsc/", "power/energy-pkg/", "cstate_core/c3-residency/", "cstate_pkg/c6-residency/",
            "uncore/clockticks/", "8:0:")


@pytest.fixture
def explained(nhmtap, host):
    def run(event, *options, machine=None):
        result = nhmtap("explain", "--format", "json", host(NEHALEM, PMUS, TRACEPOINTS, machine or {}), *options, event)
        return result.status, [record["event"] for record in parse(result.out) if record["type"] == "event"], result.err
    return run


@pytest.mark.parametrize("side", ["u", "k", "h", "uk", "G", "H", "I"])
@pytest.mark.parametrize("event", SIDELESS)
def test_a_counter_that_knows_no_sides_is_asked_for_none(explained, event, side):
    # event_has_any_exclude_flag(), include/linux/perf_event.h
    for options in ((), ("--force",)):
        code, _, error = explained(event + side, *options)
        assert code == 1 and "on all sides together" in error and "PERF_PMU_CAP_NO_EXCLUDE" in error
    assert explained(event.rstrip(":"))[0] == 0


def test_the_modifiers_of_a_group_are_those_of_a_counter_without_sides(explained):
    code, _, error = explained("{page-faults,msr/tsc/}:u")
    assert code == 1 and "on all sides together" in error


@pytest.mark.parametrize("side", ["", "u", "k", "uk"])
@pytest.mark.parametrize("number, name, of_user", [
    (372, "sched:sched_switch", False), (443, "raw_syscalls:sys_enter", False), (1902, "mine:mallocs", False),
    (700, "syscalls:sys_enter_read", True), (1901, "mine:malloc", True), (5000, None, False)])
def test_a_tracepoint_counts_on_the_side_where_it_is_passed(explained, number, name, of_user, side):
    # perf_tp_event_match(), kernel/events/core.c
    event = f"tracepoint/config={number}/{side}"
    code, records, error = explained(event)
    if side == "u" and not of_user:
        assert code == 1 and (name or "tracefs") in error and "on the user's side it would count nothing" in error
        code, records, error = explained(event, "--force")
        assert code == 0 and "passed in the kernel" in records[0]["not_counted"]
        return
    assert code == 0, error
    assert "not_counted" not in records[0]
    assert (f"counts all of {name}" in records[0].get("note", "")) == (of_user and side == "k")


@pytest.mark.parametrize("side, matters", [("", False), ("u", True), ("k", True), ("uk", False)])
def test_a_tracepoint_is_looked_for_only_where_its_side_matters(host, tmp_path, side, matters):
    """tracefs has a file for each of some two thousand."""
    subprocess.run(["strace", "-f", "-e", "trace=openat", "-o", tmp_path / "calls", NHMTAP, "explain", "--force", host(NEHALEM, PMUS, TRACEPOINTS),
                    f"tracepoint/config=372/{side}"], env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}, stdout=subprocess.DEVNULL, check=True)
    assert ("/sched_switch/id" in (tmp_path / "calls").read_text()) == matters


@pytest.mark.parametrize("number", [372, 700])
def test_a_tracepoint_on_neither_side_is_no_count_though_the_kernel_would_count_some(explained, number):
    # perf_tp_event_match() does not look at exclude_user, so that it counts what is passed on the user's side.
    code, _, error = explained(f"tracepoint/config={number}/h")
    assert code == 1 and "would count nothing" in error
    code, records, error = explained(f"tracepoint/config={number}/h", "--force")
    assert code == 0 and records[0]["not_counted"], error


def test_an_ordinary_users_tracepoint_is_not_believed_to_be_0(explained):
    machine = {"proc/self/status": ANYONE}
    code, records, _ = explained("tracepoint/config=372/", machine=machine)
    assert code == 0 and "which this user may not count" in records[0]["not_counted"]
    _, records, _ = explained("tracepoint/config=700/", machine=machine)
    assert "not_counted" not in records[0]


@pytest.mark.parametrize("event", ["page-faults", "context-switches", "task-clock", "tracepoint/config=372/"])
def test_guests_alone_are_not_asked_for_where_the_kernel_counts_on_the_host(explained, event):
    modified = f"{event}G" if event.endswith("/") else f"{event}:G"
    code, _, error = explained(modified)
    assert code == 1 and "G asks for guests alone" in error
    code, records, _ = explained(modified, "--force")
    assert code == 0 and "counts on the host" in records[0]["note"]
    assert explained(modified[:-1] + "GH")[0] == explained(modified[:-1] + "H")[0] == 0
    assert explained("cycles:G")[0] == 0  # intel_set_masks(): the PMU has it


def test_the_modifier_for_the_idle_task_says_what_the_kernel_does_with_it(explained):
    for event in ("page-faults:I", "cycles:I", "cpu-clock:I"):
        assert "counts the idle task all the same" in explained(event)[1][0]["note"]
    # perf_swevent_hrtimer()
    assert "idle task all the same" not in explained("cpu-clock:I", "-c", "1000000")[1][0]["note"]


@pytest.mark.parametrize("name", ["breakpoint", "kprobe", "uprobe"])
def test_a_pmu_that_takes_addresses_is_refused(explained, name):
    for event in (f"{name}/config=1/", f"{name}/config=1/u"):
        code, _, error = explained(event)
        assert code == 1 and "no term can give" in error


@pytest.mark.parametrize("command", ["profile", "mem", "stream"])
def test_samples_of_a_tracepoint_are_refused_with_what_takes_them(nhmtap, host, command):
    # perf_event_set_bpf_prog(), kernel/events/core.c: BPF_PROG_TYPE_TRACEPOINT alone
    for way in ("-c", "-F"):
        result = nhmtap(command, host(NEHALEM, PMUS, TRACEPOINTS), "-e", "tracepoint/config=372/", way, "7", "--", "true")
        assert result.status == 1 and "none of a tracepoint" in result.err and "Next: count it with nhmtap stat" in result.err
