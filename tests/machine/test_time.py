# SPDX-License-Identifier: GPL-2.0-only
"""The guest's time follows the modelled cycles: what is measured by the clock agrees with what is counted."""
import pytest

from guests import Bench, nhmtap


@pytest.fixture
def timed(booted):
    """A machine by its model's own clock, 2.93 GHz."""
    with booted(ips=0).fork() as fork:
        yield Bench(fork)


def rate(bench, command):
    found = nhmtap(bench, "stat", "-e", "task-clock,{cycles,ref-cycles,instructions}", "--", *command.split())
    clock, cycles, reference, instructions = (r["value"] for r in found if r["type"] == "count")
    assert cycles == reference
    return cycles / clock, cycles / instructions


def test_the_cycles_of_a_program_take_its_time(timed):
    for command in ("chase memory", "stride", "divide"):
        gigahertz, _ = rate(timed, command)
        # The clock of the task also runs while the kernel switches its counters on and off.
        assert gigahertz == pytest.approx(2.93, rel=0.05), command


def test_slow_instructions_take_longer(timed):
    assert rate(timed, "chase memory")[1] > 5


def test_the_clock_is_that_of_the_brand_string(timed):
    said = timed.say("grep -h -E 'MHz|model name' /proc/cpuinfo")
    assert "2.93GHz" in said
    assert float(said.split("MHz")[1].split()[1]) == pytest.approx(2930, abs=1)


def test_only_the_boot_has_time_pass_quickly_for_who_pauses(timed):
    assert 30000 <= int(timed.say("pauses 10000")) < 40000


def test_samples_by_time_and_by_cycles_agree(timed, tmp_path):
    """By cycles of the user's side alone, and by all of the task's time: the kernel's part of it is that of the handlers, some
    ten microseconds for a sample, and of the clock's ticks. With a sample in 4 ms both are far below a hundredth."""
    events = "-e cpu-clock/period=4000000/u -e cycles/period=11720000/u"  # ns; as many cycles at 2.93 GHz
    kinds = [kind for kind, *_ in timed.samples(events, "steady short", "event,ip", tmp_path)]
    by_time, by_cycles = (sum(kind.startswith(name) for kind in kinds) for name in ("cpu-clock", "cycles"))
    assert by_cycles > 40
    assert abs(by_time - by_cycles) <= 2  # one by the kernel's part, and one by where both begin
