# SPDX-License-Identifier: GPL-2.0-only
"""The Python module: counts of a command, for assertions."""
import os
import sys

import hosts
import pytest
from puppet import command
from records import HERE, NHMTAP, check_stream, validator

sys.path.insert(0, os.path.join(HERE, "..", "user", "python"))
import nhmtap as module  # noqa: E402, the folder is on the path only now


@pytest.fixture
def stat(monkeypatch):
    monkeypatch.setenv("NHMTAP", os.path.abspath(NHMTAP))

    def run(*arguments, **options):
        done = module.stat(*arguments, **options)
        for record in done.records:
            validator(record["type"]).validate(record)
        check_stream(done.records)
        return done
    return run


def test_counts_of_a_command_are_compared_with_numbers(stat):
    faults = stat(command("faults=1234", "exit=0"), events=["page-faults"])["page-faults"]
    assert faults > 1233
    assert faults >= 1234
    assert not faults < 1234
    assert faults < 2000
    assert faults <= 2000.0
    assert faults != 1233
    assert faults == faults.value == float(faults)


def test_a_comparison_that_fails_shows_the_count(stat):
    run = stat(["true"], events="page-faults")
    with pytest.raises(AssertionError, match=r"page-faults \d+"):
        assert run["page-faults"] < 0


def test_metrics_are_there_by_their_names(stat):
    run = stat(["true"], metrics=["cpus_utilized"])
    assert set(run) == {"cpus_utilized", "task-clock"}
    assert 0 < run["cpus_utilized"].value < 3
    assert run["cpus_utilized"] > 0


def test_without_names_the_default_events_are_counted(stat):
    assert {"task-clock", "page-faults"} <= set(stat(["true"]))


@pytest.mark.parametrize("script, status", [("exit 0", 0), ("exit 9", 9), ("kill -9 $$", -9)])
def test_the_commands_status_is_as_subprocess_has_it(stat, script, status):
    assert stat(["sh", "-c", script], events=["cs"]).status == status


def test_what_the_command_writes_is_its_own(stat):
    run = stat(["sh", "-c", "cat; echo words >&2"], events=["cs"], capture_output=True, text=True,
               input="in")
    assert (run.stdout, run.stderr) == ("in", "words\n")


def test_an_event_that_is_not_there_is_refused_with_the_reason():
    with pytest.raises(module.Refused, match="did you mean page-faults") as refused:
        module.stat(["true"], events=["page-fautls"], program=NHMTAP)
    assert refused.value.record["type"] == "error"


def test_a_command_that_is_not_there_is_refused_too(stat):
    with pytest.raises(module.Refused, match="there is no such program"):
        stat(["/no/such/program"], events=["cs"])


def test_several_counts_of_an_event_are_all_given(stat):
    run = stat(["true"], events=["page-faults"], options=["-r", "3"])
    assert len(run.all("page-faults")) == 3
    with pytest.raises(LookupError, match="3 times"):
        run["page-faults"]


def test_a_timeout_is_subprocess_own(stat):
    with pytest.raises(Exception, match="timed out"):
        stat(["sleep", "100"], events=["cs"], timeout=0.5)


def test_switches_that_an_ordinary_user_can_not_count_are_not_told_as_none(stat, tmp_path):
    root = hosts.build(tmp_path / "host", hosts.WITHOUT_PMU | {"proc/sys/kernel/perf_event_paranoid": "2\n",
                                                              "proc/self/status": hosts.status(0)})
    run = stat(["sleep", "0.01"], events=["context-switches", "page-faults"], options=[f"--host-root={root}"])
    assert run["page-faults:u"] > 0
    with pytest.raises(module.CannotTell, match="happens in the kernel alone.*perf_event_paranoid=1"):
        run["context-switches:u"] < 1


# --- estimates: counts of software events never are -----------------------------------------------


def estimated(low=90, high=110):
    bound = {"level": 0.95, "readings": 12} | {
        side: value for side, value in (("low", low), ("high", high)) if value is not None}
    return module.Measured("loads", {"bound": bound}, 100)


def test_an_estimate_compares_with_what_is_outside_of_its_bound():
    assert estimated() < 111
    assert not estimated() < 90
    assert estimated() > 89
    assert not estimated() > 110
    assert estimated() <= 110
    assert estimated() >= 90
    assert estimated() != 111
    assert not estimated() == 89


@pytest.mark.parametrize("compare", [
    lambda m: m < 110, lambda m: m > 90, lambda m: m <= 109, lambda m: m >= 91,
    lambda m: m == 100, lambda m: m != 100])
def test_an_estimate_does_not_answer_what_it_can_not_tell(compare):
    with pytest.raises(module.CannotTell, match="loads 100 .between 90 and 110"):
        compare(estimated())


def test_a_side_that_is_not_known_is_without_end():
    assert estimated(high=None) > 89
    with pytest.raises(module.CannotTell, match="between 90 and [?]"):
        estimated(high=None) < 1e300


def test_what_was_not_counted_compares_with_nothing():
    absent = module.Measured("ipc", {"why": "cycles was not counted"}, None)
    for compare in (lambda: absent < 1, lambda: absent == 1, lambda: float(absent)):
        with pytest.raises(module.CannotTell, match="cycles was not counted"):
            compare()
