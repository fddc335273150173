# SPDX-License-Identifier: GPL-2.0-only
"""Events on a side on which they don't happen. On which side the kernel counts its events: kernel/events/core.c,
___perf_sw_event() and its callers. Those of the scheduler bring its own registers, __perf_sw_event_sched()."""
import hosts
import pytest

BY_THE_CODE = ["page-faults", "faults", "minor-faults", "major-faults", "cpu-clock", "task-clock"]
BY_THE_SCHEDULER = ["context-switches", "cs", "cpu-migrations", "migrations", "cgroup-switches",
                    "software/config=3/", "software/config=4/", "software/config=11/"]
NEVER = ["alignment-faults", "emulation-faults", "dummy", "bpf-output"]
OF_THE_CORE = ["cycles", "r1c0", "LLC-load-misses", "cpu/event=0xc0/"]
WITH_SOFTWARE = {machine: files | hosts.pmu("software", 1)
                 for machine, files in {"nehalem": hosts.NEHALEM, "other": hosts.OTHER_PMU}.items()}


def level(number):
    return {"proc/sys/kernel/perf_event_paranoid": f"{number}\n"}


def spelled(event, side):
    return event + (side if event.endswith("/") else f":{side}") if side else event


@pytest.mark.parametrize("machine", WITH_SOFTWARE)
@pytest.mark.parametrize("event", [*BY_THE_CODE, *BY_THE_SCHEDULER, *NEVER, *OF_THE_CORE])
def test_a_side_that_is_asked_for_and_counts_nothing_is_refused(nhmtap, explain, host, machine, event):
    for side in "", "u", "k", "h", "uk", "uh", "kh", "ukh":
        missed = side == "h" or (event in BY_THE_SCHEDULER and side in ("u", "uh"))
        result = nhmtap("explain", host(WITH_SOFTWARE[machine]), spelled(event, side))
        assert result.status == (1 if missed else 0), (side, result.err)
        if missed:
            assert "would count nothing" in result.err and "Next: " in result.err
            assert explain(host(WITH_SOFTWARE[machine]), "--force", spelled(event, side))[0]["not_counted"]


@pytest.mark.parametrize("paranoid, capabilities", [(2, 0), (2, hosts.CAP_PERFMON), (1, 0), (0, 0), (-1, 0)])
@pytest.mark.parametrize("event", [*BY_THE_CODE, *BY_THE_SCHEDULER])
def test_a_side_that_is_left_out_for_want_of_rights_says_so(explain, host, event, paranoid, capabilities):
    facts = host(WITH_SOFTWARE["other"], level(paranoid), {"proc/self/status": hosts.status(capabilities)})
    found = explain(facts, event)[0]
    ordinary = paranoid == 2 and not capabilities
    assert found["attr"].get("exclude_kernel", 0) == ordinary
    assert ("not_counted" in found) == (ordinary and event in BY_THE_SCHEDULER)
    assert ("note" in found) == (ordinary and event.endswith("clock"))
    if "not_counted" in found:
        assert "kernel.perf_event_paranoid is 2" in found["not_counted"]
        assert "kernel.perf_event_paranoid=1" in found["not_counted"] and "CAP_PERFMON" in found["not_counted"]


def test_samples_of_a_clock_are_of_the_side_that_is_asked_for_and_need_no_remark(explain, host):
    assert "note" not in explain(host(WITH_SOFTWARE["other"]), "-F", "99", "cpu-clock:u")[0]


@pytest.mark.parametrize("command", ["stat", "profile"])
def test_every_command_refuses_it(nhmtap, host, command):
    result = nhmtap(command, host(WITH_SOFTWARE["other"]), "-e", "cs:u", "--", "true")
    assert result.status == 1 and "happens in the kernel alone, in its scheduler" in result.err
