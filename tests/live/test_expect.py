# SPDX-License-Identifier: GPL-2.0-only
"""--expect: the outcome of an expectation, and the exit status. A program makes a given number of page
faults."""
import json
import re

import pytest
from puppet import Puppet
from records import program

FAULTS = 1234


def expecting(nhmtap, *expectations, more=()):
    """A run in which a puppet makes 1234 page faults."""
    with Puppet() as puppet:
        process = nhmtap.attach("stat", *[f"--expect={text}" for text in expectations], *more,
                                "-p", puppet.pid)
        puppet.do(f"faults={FAULTS}")
        return nhmtap.interrupt(process)


@pytest.mark.parametrize("comparison, outcome, status", [
    ("<1235", "met", 0), ("<1234", "failed", 4), ("<=1234", "met", 0), ("<=1233", "failed", 4),
    (">1233", "met", 0), (">1234", "failed", 4), (">=1234", "met", 0), (">=1235", "failed", 4),
    ("==1234", "met", 0), ("==1233", "failed", 4), (" < 1.3e3", "met", 0),
])
def test_an_expectation_compares_the_count(nhmtap, comparison, outcome, status):
    result = expecting(nhmtap, "page-faults" + comparison)
    record = result.one("expectation")
    assert (record["outcome"], result.status) == (outcome, status)
    assert record["expectation"] == "page-faults" + comparison
    assert (record["event"], record["value"]) == ("page-faults", FAULTS)
    assert record["bound"] == {"level": 1, "low": FAULTS, "high": FAULTS}
    assert result.one("end")["exit_status"] == status


def test_what_is_expected_of_is_counted_without_being_asked_for(nhmtap):
    result = expecting(nhmtap, "page-faults>0", "minor-faults>0")
    assert [event["name"] for event in result.one("start")["events"]] == ["page-faults", "minor-faults"]


def test_what_is_counted_anyway_is_not_counted_twice(nhmtap):
    result = expecting(nhmtap, "page-faults>0", "PAGE-FAULTS>0", "cs>=0",
                       more=["-e", "{page-faults,cs}"])
    assert [event["name"] for event in result.one("start")["events"]] == ["page-faults", "cs"]
    assert [record["outcome"] for record in result.of("expectation")] == ["met"] * 3


def test_one_that_fails_among_many_decides(nhmtap):
    result = expecting(nhmtap, "page-faults>0", "page-faults<5", "minor-faults==1234")
    assert [record["outcome"] for record in result.of("expectation")] == ["met", "failed", "met"]
    assert result.status == 4


def test_a_metric_may_be_expected_something_of(nhmtap):
    result = expecting(nhmtap, "page_faults_per_second>0")
    record = result.one("expectation")
    assert record["value"] == result.one("metric")["value"]
    assert record["unit"] == result.one("metric")["unit"]
    assert (record["metric"], record["outcome"]) == ("page_faults_per_second", "met")


def test_a_metric_that_is_asked_for_and_expected_something_of_is_derived_once(nhmtap):
    result = expecting(nhmtap, "cpus_utilized<1000", more=["-M", "cpus_utilized"])
    assert len(result.of("metric")) == 1


def test_what_can_not_be_derived_can_not_be_told(nhmtap):
    with Puppet() as puppet:  # which sleeps all the time
        process = nhmtap.attach("stat", "--expect", "page_faults_per_second<1", "-p", puppet.pid)
        result = nhmtap.interrupt(process)
    record = result.one("expectation")
    assert (record["outcome"], result.status) == ("cannot_tell", 3)
    assert "value" not in record
    assert "its target never ran" in record["why"]


def test_what_never_ran_can_not_be_told(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", "--expect", "page-faults<1", "-p", puppet.pid)
        result = nhmtap.interrupt(process)
    assert (result.one("expectation")["outcome"], result.status) == ("cannot_tell", 3)


def test_a_failed_one_weighs_more_than_one_that_can_not_be_told(nhmtap, tmp_path):
    (tmp_path / "generic").mkdir()
    (tmp_path / "generic" / "metrics.json").write_text(json.dumps([
        {"name": "nothing", "formula": "page-faults / (0 * page-faults)", "unit": "things",
         "description": "Divides by zero", "source": "reasoning"}]))
    result = expecting(nhmtap, "page-faults<0", "nothing>0", more=["--events-dir", tmp_path])
    assert [record["outcome"] for record in result.of("expectation")] == ["failed", "cannot_tell"]
    assert result.status == 4


def test_the_commands_own_failure_comes_first(nhmtap):
    result = nhmtap("stat", "--expect", "page-faults<0", "--", "sh", "-c", "exit 9")
    assert (result.one("expectation")["outcome"], result.status) == ("failed", 9)


def test_the_commands_success_does_not_hide_a_failed_expectation(nhmtap):
    assert nhmtap("stat", "--expect", "page-faults<0", "--", "true").status == 4


def test_intervals_are_expected_nothing_of(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", "--expect", "page-faults==300", "-I", "20", "-p", puppet.pid)
        for _ in range(3):
            puppet.do("faults=100")
            puppet.do("spin=50")
        result = nhmtap.interrupt(process)
    assert len(result.of("count")) > 3
    assert (result.one("expectation")["value"], result.status) == (300, 0)


def test_each_execution_has_to_be_as_expected(nhmtap, tmp_path):
    script = (f"echo x >> {tmp_path}/n; [ $(wc -l < {tmp_path}/n) != 2 ] || "
              f"{program('puppet')} faults=5000 exit=0")
    result = nhmtap.into(tmp_path / "out", "stat", "-r", "3", "--expect", "page-faults<3000", "--",
                         "sh", "-c", script)
    assert [record["repeat"] for record in result.of("expectation")] == [1, 2, 3]
    assert [record["outcome"] for record in result.of("expectation")] == ["met", "failed", "met"]
    assert result.status == 4


def test_the_table_says_what_was_not_as_expected(nhmtap):
    result = nhmtap("stat", "--format", "table", "--expect", "page-faults<0", "--expect",
                    "page-faults>0", "--", "true")
    assert "NOT AS EXPECTED        page-faults<0: " in result.out
    assert "    as expected        page-faults>0: " in result.out


def test_a_table_shows_the_decimals_of_what_was_expected(nhmtap, tmp_path):
    """Without them, 1,000 would not be as expected where up to 1000 is."""
    result = nhmtap.into(tmp_path / "out", "stat", "-o", "table=-", "--expect", "page_faults_per_second<=1000", "--",
                         program("puppet"), "faults=100", "spin=20", "exit=0")
    value = result.one("expectation")["value"]
    assert 1000 < value < 1e6 and f"page_faults_per_second<=1000: {value:.3f} per second" in result.said


@pytest.mark.parametrize("text, words", [
    ("page-faults", "it compares nothing"), ("page-faults=3", "there is no such comparison"),
    ("page-faults<", "there is no number"), ("page-faults<x", "there is no number"),
    ("page-faults<3x", "there is no number"), ("page-faults<nan", "there is no number"),
    ("page-faults<inf", "there is no number"), ("<3", "it names nothing"),
    ("  >3", "it names nothing"), ("cs,cs>3", "it names several events"),
    ("page-fautls>3", "did you mean page-faults?"),
    ("cpus_utilised>3", "did you mean the metric cpus_utilized?"),
])
def test_what_is_no_expectation_is_refused_before_anything_runs(nhmtap, tmp_path, text, words):
    result = nhmtap("stat", "--expect", text, "--", "touch", tmp_path / "ran")
    assert result.status == 1
    assert words in result.err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("text, limit", [("page-faults<10k", 10_000), ("page-faults<1.5 M", 1_500_000),
                                         ("task-clock<20ms", 20_000_000), ("task-clock<3 s", 3_000_000_000)])
def test_a_limit_may_have_a_suffix(nhmtap, text, limit):
    result = nhmtap("stat", "--expect", text, "--", "true")
    assert (result.one("expectation")["limit"], result.status) == (limit, 0)


@pytest.mark.parametrize("text, words", [
    ("page-faults<1ms", "'page-faults' is no time: it is a number"),
    ("cpus_utilized<1s", "'cpus_utilized' is no time: it is in CPUs"),
    ("page-faults<1kk", "there is no number"), ("page-faults<1 k k", "there is no number"),
    ("task-clock<s", "there is no number"),
])
def test_a_suffix_that_does_not_suit_is_refused(nhmtap, text, words):
    result = nhmtap("stat", "--expect", text, "--", "true")
    assert result.status == 1 and words in result.err


@pytest.mark.parametrize("name", ["elapsed", "Elapsed", "duration_time"])
@pytest.mark.parametrize("comparison, outcome, status", [("<60s", "met", 0), (">= 60000 ms", "failed", 4),
                                                         ("<1us", "failed", 4)])
def test_the_elapsed_time_is_that_of_the_command(nhmtap, name, comparison, outcome, status):
    result = nhmtap("stat", "--expect", name + comparison, "--", "sleep", "0.01")
    record = result.one("expectation")
    assert (record["metric"], record["outcome"], record["unit"]) == (name, outcome, "ns")
    assert result.status == status
    assert record["value"] == result.one("end")["command"]["elapsed_ns"] >= 10_000_000
    assert record["bound"] == {"level": 1, "low": record["value"], "high": record["value"]}
    assert "task-clock" in [count["event"] for count in result.of("count")]  # the default events


def test_the_elapsed_time_of_each_execution_is_expected_once(nhmtap):
    result = nhmtap("stat", "-r", "3", "-e", "page-faults", "-a", "--per", "cpu", "--expect", "elapsed>10ms",
                    "--", "sleep", "0.01")
    assert [(r["repeat"], r["outcome"]) for r in result.of("expectation")] == [(n, "met") for n in (1, 2, 3)]
    assert sum(r["value"] for r in result.of("expectation")) == result.one("end")["command"]["elapsed_ns"]
    assert {count["event"] for count in result.of("count")} == {"page-faults"}


def test_without_a_command_the_elapsed_time_is_that_of_the_counting(nhmtap):
    result = expecting(nhmtap, "elapsed<60s", more=["-e", "page-faults"])
    assert (result.one("expectation")["outcome"], result.status) == ("met", 0)
    assert result.one("expectation")["value"] == result.one("count")["duration_ns"]


@pytest.mark.parametrize("text, words", [
    ("elapsed<2", "its limit has no unit of time"), ("duration_time<2M", "'elapsed<2s'"),
    ("elapsed<2%", "its limit has no unit of time"), ("elapsed:u<2s", "it is no event, but read from a clock"),
    ("user_time<2s", "--expect takes 'elapsed<2s'"),
])
def test_an_elapsed_time_that_is_no_time_is_refused(nhmtap, text, words):
    result = nhmtap("stat", "--expect", text, "--", "true")
    assert result.status == 1 and words in result.err


def test_an_event_that_was_given_the_name_of_the_elapsed_time_is_meant(nhmtap):
    result = nhmtap("stat", "-e", "page-faults/name=elapsed/", "--expect", "elapsed>0", "--", "true")
    record = result.one("expectation")
    assert (result.status, record["event"], record["value"]) == (0, "elapsed", result.one("count")["value"])


def test_a_table_has_the_unit_of_what_was_expected(nhmtap):
    result = nhmtap("stat", "--format", "table", "--expect", "elapsed>60s", "--", "true")
    assert re.search(r"NOT AS EXPECTED +elapsed>60s: [\d,]+ ns$", result.out, re.MULTILINE)


def test_what_was_not_as_expected_is_said_on_stderr(nhmtap):
    result = nhmtap("stat", "-r", "2", "--expect", "page-faults<0", "--expect", "page-faults>0", "--", "true")
    told = [line for line in result.err.splitlines() if "expected" in line]
    assert [line.split(": ")[1] for line in told] == ["expected page-faults<0"] * 2
    assert [int(line.split(": ")[2]) for line in told] == [r["value"] for r in result.of("expectation")][::2]
    assert "expected" not in nhmtap("stat", "-q", "--expect", "page-faults<0", "--", "true").err


def test_what_cannot_be_told_is_said_on_stderr_with_the_row(nhmtap):
    result = nhmtap("stat", "-C", "0", "--per", "cpu", "--expect", "context-switches:u<1", "--force", "--",
                    "true")
    why = result.one("expectation")["why"]
    assert f"nhmtap: CPU 0: cannot tell whether context-switches:u<1: {why}" in result.err


def test_terms_of_a_pmu_are_no_comparison(nhmtap):
    result = nhmtap("stat", "--expect", "nopmu/config=0x2,umask=1/>=1", "--", "true")
    assert result.status == 2  # this machine has no such PMU
    assert "has no PMU 'nopmu'" in result.err


@pytest.mark.parametrize("second, status", [("task-clock/name=x/", 1), ("software/config=2,name=X/k", 1), ("faults/name=x/", 0)])
def test_an_expectation_of_a_name_that_several_events_have_is_refused_unless_they_count_the_same(nhmtap, second, status):
    result = nhmtap("stat", "-e", f"page-faults/name=x/,{second}", "--expect", "x<100000", "--", "true")
    assert result.status == status, result.err
    assert status == 0 or "events that count different things have this name. Next: give each a name of its own" in result.err


@pytest.mark.parametrize("side, words", [("u", "the user's side was asked for"), ("h", "the hypervisor's side was asked for")])
def test_what_the_side_asked_for_has_nothing_of_can_not_be_told_and_the_side_is_named(nhmtap, side, words):
    result = nhmtap("stat", "--force", "--expect", f"context-switches:{side}<1", "--", "true")
    assert result.one("expectation")["outcome"] == "cannot_tell" and words in result.one("expectation")["why"]
