# SPDX-License-Identifier: GPL-2.0-only
"""A PMU that lies is found while it is used. What is read from the machine's events is changed on its way."""
import json

import pytest

# 400 ms of the guest's time: a count is judged after 200. Loads from memory cost the emulator more.
BUSY = "sh -c 'i=0; while [ $i -lt 6000 ]; do i=$((i + 1)); done'"
# Each turn takes 4 ms.
LONG = "sh -c 'i=0; while [ $i -lt 100 ]; do chase memory; i=$((i + 1)); done'"


@pytest.fixture
def lying(guest, shim):
    """A function that returns the warnings of this command of nhmtap and what it says, while counts are multiplied by
    `lie`."""
    path = guest.put(shim("lie_in_counts"))

    def run(lie, *options, command=BUSY):
        done = guest.run(f"LD_PRELOAD={path} LIE={lie} nhmtap {' '.join(options)} --format json -- {command}")
        records = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert records[-1]["type"] == "end", str(done)
        return [record for record in records if record["type"] == "warning"], str(done)
    return run


@pytest.mark.parametrize("lie, why", [(0, "it counted only 0"), (1e6, "faster than any processor")])
def test_counts_that_can_not_be_true_are_told_once_of_each_event(lying, lie, why):
    warnings, said = lying(lie, "stat", "-e", "cycles,instructions,branches")
    assert [warning["event"] for warning in warnings] == ["cycles", "instructions"]
    assert all(warning["cause"] == "implausible" and why in warning["why"] for warning in warnings)
    assert said.count("it can't be true") == 2


def test_a_profile_of_an_event_that_stands_still_says_so(lying):
    warnings, said = lying(0, "profile", "-e", "cycles", "-c", "100003")
    assert [warning["cause"] for warning in warnings] == ["implausible"] and "can't be true" in said


@pytest.mark.parametrize("options", [("-r", "2"), ("--once",)])
def test_an_analysis_of_cycles_that_can_not_be_true_says_so_once(lying, options):
    """The groups of its events each count cycles."""
    warnings, said = lying(1e6, "analyze", "--no-where", *options, command=LONG.replace("100", "10") if "-r" in options else LONG)
    assert [(warning["event"], warning["cause"]) for warning in warnings] == [("CPU_CLK_UNHALTED.THREAD", "implausible")]
    assert said.count("it can't be true") == 1


def test_counters_of_busy_cpus_that_are_switched_off_are_found_within_an_interval(guest):
    """Something else writes to IA32_FIXED_CTR_CTRL. CPUs may be halted, but the kernel says that these were not idle."""
    turns = "i=0; while [ $i -lt 120 ]; do chase memory; i=$((i + 1)); done"
    said = guest.say(f"nhmtap stat -q -a -e cycles,instructions -I 250 --format json -- sh -c 'msr 0 0x38d=0; {turns}'")
    records = [json.loads(line) for line in said.splitlines() if line.startswith('{"type":')]
    kinds = [record.get("cause", record["type"]) for record in records]
    first = next(i for i, record in enumerate(records) if record.get("event") == "cycles" and record["value"] == 0)
    assert kinds[first:first + 4] == ["count", "count", "implausible", "implausible"] and kinds.count("implausible") == 2
    assert all("in the" in record["why"] for record in records if record["type"] == "warning")


def test_counters_of_idle_cpus_may_be_switched_off(guest):
    said = guest.say("nhmtap stat -q -a -e cycles,instructions -I 250 --format json -- sh -c 'msr 0 0x38d=0; sleep 2'")
    assert "implausible" not in said


@pytest.mark.parametrize("options", [("stat", "-e", "cycles,instructions,cycles:u,instructions:k"), ("stat", "-I", "50"),
                                     ("stat", "-a", "-I", "50"), ("profile", "-I", "100"), ("analyze", "--no-where", "--once"),
                                     ("analyze", "--no-where", "-a", "-I", "300")])
def test_the_machines_own_counts_are_believed(lying, options):
    warnings, said = lying(1, *options, command="sh -c 'sleep 0.3; chase memory; sleep 0.3; chase l2; chase memory; sleep 0.3'")
    assert not warnings and "can't be true" not in said


# Each time suffices to notice where counts of different stretches are compared.
@pytest.mark.parametrize("target", ["-a --duration 1.5", "--once --duration 2.5 -p $!"])
def test_counts_of_groups_that_take_turns_are_not_doubted(guest, target):
    """Cycles are counted in every group by the fixed counter, and in one by a general counter, for a part of the time."""
    said = guest.say(f"(while :; do chase memory; done) & nhmtap analyze -q --no-where --format json {target}; kill $!")
    records = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    shares = {share["name"]: share for record in records if record["type"] == "analysis" for share in record["shares"]}
    assert shares["dram_bound"]["share"] > 0.5 and not [record for record in records if record["type"] == "warning"]
