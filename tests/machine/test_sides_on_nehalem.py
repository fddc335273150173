# SPDX-License-Identifier: GPL-2.0-only
"""Software events on each side, for each user, at each level of perf_event_paranoid, around a program that knows
on which side it makes them happen: a count is right, or it's none and says why."""
import known
import pytest
from records import check_stream, parse

SIDES = known.numbers("sides")
LEAST = {  # by the program's text, on the user's side and on the kernel's
    "context-switches": {"u": 0, "k": SIDES["naps"]},
    "cpu-migrations": {"u": 0, "k": SIDES["moves"] - 1},  # it may begin on CPU 0
    "page-faults": {"u": SIDES["faults"], "k": SIDES["faults"]},
    "minor-faults": {"u": SIDES["faults"], "k": SIDES["faults"]},
}
# What happens when the program makes none of it: nothing, so that a count of 0 is right; or it never counts.
NEVER = {"alignment-faults", "emulation-faults", "dummy", "bpf-output"}
SCHEDULER = {"context-switches", "cpu-migrations", "cgroup-switches"}
CLOCKS = {"task-clock", "cpu-clock"}
EVENTS = (*LEAST, "major-faults", "cgroup-switches", *sorted(NEVER), *sorted(CLOCKS))
CALLERS = (("root", 2), ("user", 2), ("user", 1), ("user", 0))


def stat(bench, user, level, options, events):
    result = bench.run(f"nhmtap stat {options} --format json -e {','.join(events)} -- sides", user=user, paranoid=level)
    found = parse(result.stdout)
    check_stream(found)
    return result, found


@pytest.mark.parametrize("side", ["", "u", "k", "uk", "h"])
@pytest.mark.parametrize("user, level", CALLERS)
def test_a_software_event_is_counted_on_the_sides_asked_for_or_says_why_not(two_cores, user, level, side):
    names = [f"{event}:{side}" if side else event for event in EVENTS]
    result, found = stat(two_cores, user, level, "--force", names)
    ordinary = user != "root" and level == 2
    if ordinary and "k" in side:
        assert result.status == 2 and "the kernel's side needs 1 or less" in result.stderr
        return
    assert result.status == 0, result.stderr
    counts = {r["event"].partition(":")[0]: r for r in found if r["type"] == "count"}
    described = {e["name"].partition(":")[0]: e for e in found[0]["events"]}
    sides = side or ("u" if ordinary else "uk")
    assert set(counts) == set(EVENTS)
    for event, count in counts.items():
        nowhere = side == "h" or event in NEVER or (event in SCHEDULER and "k" not in sides)
        if nowhere:
            assert (count["status"], count["value"]) == ("not_counted", 0), count
            assert count["why"] == described[event]["not_counted"]
            assert count["why"] in result.stderr
            continue
        assert count["status"] == "counted", count
        assert count["value"] >= sum(LEAST.get(event, {}).get(s, 0) for s in sides), count
        assert event not in CLOCKS or ("both sides" in described[event].get("note", "")) == (len(sides) == 1)
    if ordinary and not side:
        assert "sysctl kernel.perf_event_paranoid=1, or give CAP_PERFMON" in counts["context-switches"]["why"]


@pytest.mark.parametrize("event", sorted(SCHEDULER))
def test_an_expectation_of_what_happens_on_the_other_side_can_not_be_told(two_cores, event):
    for user, level, status, outcome in (("user", 2, 3, "cannot_tell"), ("user", 1, 0, "met"), ("root", 2, 0, "met")):
        result = two_cores.run(f"nhmtap stat --format json --expect '{event}<1000000' -- sides", user=user,
                               paranoid=level)
        expected = [r for r in parse(result.stdout) if r["type"] == "expectation"]
        assert result.status == status and [r["outcome"] for r in expected] == [outcome], result.stdout


def test_a_metric_of_what_happens_on_the_other_side_has_the_reason_of_its_event(two_cores):
    result = two_cores.run("nhmtap stat --format json -M context_switches_per_second -- sides", user="user", paranoid=2)
    found = parse(result.stdout)
    metric, = (r for r in found if r["type"] == "metric")
    switches, = (r for r in found if r["type"] == "count" and r["event"].startswith("context-switches"))
    assert "value" not in metric and "CAP_PERFMON" in switches["why"]
    assert metric["why"] == f"context-switches was not counted: {switches['why']}"


def test_the_users_side_of_a_clock_is_as_long_as_both(two_cores):
    # Counted together, so that one clock is compared with itself: cpu_clock_event_update() asks for no side.
    result, found = stat(two_cores, "root", 2, "", ["{task-clock:u,task-clock:k,task-clock}"])
    assert result.status == 0
    values = [r["value"] for r in found if r["type"] == "count"]
    assert max(values) < 1.01 * min(values)
    assert result.stderr.count("counts its time on both sides, whichever are asked for") == 2


TRACEPOINTS = {  # times that the program passes them, at least; whether they are on the user's side
    "syscalls:sys_enter_clock_nanosleep": (SIDES["naps"], True),
    "raw_syscalls:sys_enter": (SIDES["naps"] + SIDES["faults"] + SIDES["moves"], False),
    "sched:sched_switch": (SIDES["naps"], False),
}


@pytest.mark.parametrize("name", TRACEPOINTS)
def test_a_tracepoint_counts_on_each_side_what_perf_counts_or_says_why_not(two_cores, name):
    least, of_user = TRACEPOINTS[name]
    path = name.replace(":", "/")
    number = int(two_cores.run(f"cat /sys/kernel/tracing/events/{path}/id").stdout)
    for side in ("", "u", "k"):
        result, found = stat(two_cores, "root", 2, "--force", [f"tracepoint/config={number}/{side}"])
        count = next(r for r in found if r["type"] == "count")
        perfs = two_cores.run(f"perf stat -x, -e {name}{':' + side if side else ''} -- sides").stderr.split(",")
        if side == "u" and not of_user:
            assert (count["status"], count["value"], int(perfs[0])) == ("not_counted", 0, 0), count
            assert f"({name})" in count["why"] and count["why"] in result.stderr
            continue
        assert count["status"] == "counted" and count["value"] >= least and int(perfs[0]) >= least
        assert count["value"] == int(perfs[0]) or name.startswith("sched")
    expected = two_cores.run(f"nhmtap stat --force --format json --expect 'tracepoint/config={number}/u<1' -- sides")
    outcome, = (r["outcome"] for r in parse(expected.stdout) if r["type"] == "expectation")
    assert outcome == ("failed" if of_user else "cannot_tell")


@pytest.mark.parametrize("side", ["u", "k", "h", "G", "H", "I"])
def test_every_pmu_that_the_kernel_has_counts_the_side_or_says_why_not(two_cores, side):
    listed = two_cores.run("cd /sys/bus/event_source/devices; ls -d */events/*").stdout.split()
    events = {name.replace("/events/", "/") for name in listed if "." not in name and "mem-loads" not in name}
    assert any(event.startswith("msr/") for event in events)
    for event in sorted(events):
        result = two_cores.run(f"nhmtap stat --format json -e {event}/{side} -- true")
        assert result.status == (1 if event.startswith("msr/") or side == "h" else 0), result.stderr
        why = "on all sides together" if event.startswith("msr/") else "without u and k"
        assert not result.status or why in result.stderr


@pytest.mark.parametrize("command", ["profile -c 1000", "profile -F 99", "mem -c 1000", "stream -c 1000"])
def test_an_event_of_a_pmu_that_takes_no_samples_is_refused_with_the_way_to_count_it(two_cores, command):
    result = two_cores.run(f"nhmtap {command} -e msr/tsc/ -- true")
    assert result.status == 2 and "its PMU counts, and takes no samples. Next: count it with nhmtap stat" in result.stderr
