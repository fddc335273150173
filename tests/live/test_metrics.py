# SPDX-License-Identifier: GPL-2.0-only
"""Metrics over software events of programs with known behaviour."""
import json

import pytest
from puppet import Puppet, command, stat_of


@pytest.fixture
def own(tmp_path):
    """Defines metrics over perf's own events, and returns the argument that adds them."""
    def define(**formulas):
        folder = tmp_path / "tables" / "generic"
        folder.mkdir(parents=True)
        (folder / "metrics.json").write_text(json.dumps([
            {"name": name, "formula": formula, "unit": "things", "description": f"Of {name}",
             "source": "reasoning"} for name, formula in formulas.items()]))
        return f"--events-dir={folder.parent}"
    return define


def derived(nhmtap, metrics, steps, *options):
    return stat_of(nhmtap, steps, "-M", metrics, *options)


def inputs(metric):
    return {entry["event"]: entry.get("value") for entry in metric["inputs"]}


@pytest.mark.parametrize("formula, value", [
    ("page-faults", 1000),
    ("(page-faults + 2) * 3 - page-faults / 4", 2756),
    ("100 * major-faults / page-faults", 0),
    ("minor-faults / page-faults", 1),
    ("0 - page-faults", -1000),
    ("page-faults / 3", 1000 / 3),
])
def test_a_metric_of_a_thousand_faults_has_the_value_of_hand(nhmtap, own, formula, value):
    record = derived(nhmtap, "mine", ["faults=1000"], own(mine=formula)).one("metric")
    assert record["value"] == pytest.approx(value, rel=1e-14)
    assert (record["metric"], record["unit"], record["formula"]) == ("mine", "things", formula)
    assert record["description"] == "Of mine"


def test_a_metric_shows_its_inputs_and_how_far_they_can_be_trusted(nhmtap):
    result = derived(nhmtap, "page_faults_per_second", ["spin=20", "faults=1000"])
    record = result.one("metric")
    assert inputs(record) == {"page-faults": 1000, "task-clock": result.count("task-clock")}
    assert (record["running_share"], record["together"]) == (1, True)
    assert {entry["running_share"] for entry in record["inputs"]} == {1}
    assert record["value"] == pytest.approx(1000e9 / result.count("task-clock"))


def test_a_rate_is_over_the_intervals_own_length(nhmtap):
    result = derived(nhmtap, "cpus_utilized", ["spin=50"])
    record = result.one("metric")
    assert inputs(record)["duration_time"] == record["duration_ns"]
    assert record["value"] == pytest.approx(result.count("task-clock") / record["duration_ns"])
    assert 0 < record["value"] <= 1.01, "one thread is on one CPU"


def test_a_metric_of_a_target_that_did_not_run_is_absent_with_the_reason(nhmtap):
    record = derived(nhmtap, "page_faults_per_second", []).one("metric")
    assert "value" not in record
    assert record["why"] == "page-faults was not counted: its target never ran"
    assert record["running_share"] == 0
    assert inputs(record) == {"page-faults": None, "task-clock": None}


def test_a_division_by_zero_is_no_value_but_a_reason(nhmtap, own):
    record = derived(nhmtap, "mine", ["faults=10"],
                     own(mine="page-faults / (2 * major-faults)")).one("metric")
    assert "value" not in record
    assert record["why"] == "it would be divided by (2 * major-faults), which is 0"
    assert inputs(record) == {"page-faults": 10, "major-faults": 0}, "these were counted"


def test_one_metric_without_a_value_takes_none_from_the_others(nhmtap, own):
    argument = own(bad="1 / major-faults", good="2 * page-faults")
    result = derived(nhmtap, "bad,good", ["faults=10"], argument)
    assert "why" in result.one("metric", metric="bad")
    assert result.one("metric", metric="good")["value"] == 20


def test_metrics_come_behind_the_counts_of_their_interval(nhmtap):
    result = derived(nhmtap, "page_faults_per_second", ["faults=10"], "-e", "cs")
    assert [record["type"] for record in result.records] == [
        "start", "count", "count", "count", "metric", "end"]


def test_each_interval_has_metrics_of_its_own(nhmtap, own):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", "-M", "mine", own(mine="page-faults"), "-I", "20",
                                "-p", puppet.pid)
        for _ in range(5):
            puppet.do("faults=200")
            puppet.do("spin=30")
        result = nhmtap.interrupt(process)
    metrics, counts = result.of("metric"), result.of("count")
    assert len(metrics) == len(counts) > 1
    for metric, count in zip(metrics, counts):
        assert (metric["start_time"], metric["duration_ns"]) == (
            count["start_time"], count["duration_ns"])
        assert metric.get("value", 0) == count["value"]
    assert sum(metric.get("value", 0) for metric in metrics) == 1000


def test_repeats_end_with_the_mean_of_a_metric(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "stat", "-M", "cpus_utilized,major_fault_share", "-r",
                         "3", "--", *command("spin=20", "exit=0"))
    values = [record["value"] for record in result.of("metric", metric="cpus_utilized")]
    summary = result.one("summary", metric="cpus_utilized")
    assert [record["repeat"] for record in result.of("metric", metric="cpus_utilized")] == [1, 2, 3]
    assert (summary["executions"], summary["counted"], summary["unit"]) == (3, 3, "CPUs")
    assert summary["mean"] == pytest.approx(sum(values) / 3)
    assert (summary["min"], summary["max"]) == pytest.approx((min(values), max(values)))
    assert len(result.of("summary")) == 2 + 3, "one a metric, one an event"


def test_a_summary_of_intervals_is_of_whole_executions(nhmtap, own, tmp_path):
    result = nhmtap.into(tmp_path / "out", "stat", own(mine="page-faults"), "-M", "mine", "-r", "2",
                         "-I", "20", "--", *command("faults=1000", "spin=100", "exit=0"))
    assert len(result.of("metric")) > 2
    assert result.one("summary", metric="mine")["min"] >= 1000


def test_a_summary_counts_only_the_executions_that_had_a_value(nhmtap, own):
    result = nhmtap("stat", own(mine="1 / alignment-faults"), "-M", "mine", "-r", "2", "--", "true")
    summary = result.one("summary", metric="mine")
    assert (summary["executions"], summary["counted"]) == (2, 0) and "mean" not in summary


def test_the_users_side_of_a_metric_is_that_of_its_events(nhmtap):
    record = derived(nhmtap, "page_faults_per_second:u", ["faults=1000"]).one("metric")
    assert record["metric"] == "page_faults_per_second:u"
    assert inputs(record)["page-faults:u"] == 1000


def test_a_table_says_the_metric_with_its_unit_or_the_reason(nhmtap, own):
    argument = own(mine="2 * page-faults", bad="1 / (faults - page-faults)")
    out = nhmtap("stat", argument, "-M", "mine,bad", "--format", "table", "--", "true").out
    words = [line.split() for line in out.splitlines()]
    faults = next(line[0] for line in words if line[1:] == ["page-faults"])
    assert [f"{2 * int(faults.replace(',', ''))}.000", "mine,", "things"] in words
    assert "absent bad, things: it would be divided by (faults - page-faults), which is 0".split() in words


def test_an_unknown_metric_ends_the_run_before_the_command(nhmtap, tmp_path):
    witness = tmp_path / "witness"
    result = nhmtap("stat", "-M", "cpus_utilised", "--", "touch", witness)
    assert result.status == 1
    assert "did you mean cpus_utilized" in result.one("error")["remedy"]
    assert not witness.exists()
