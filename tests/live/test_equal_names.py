# SPDX-License-Identifier: GPL-2.0-only
"""Events of one name, in any list: each count is a series of its own, with the number that its record has, in
every format of numbers."""
import json
import subprocess

import callers
import otlp
import pages
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from puppet import command
from records import NHMTAP, Result, parse, summed

import nhmtap as package

NAMES = st.sampled_from(["page-faults", "minor-faults", "task-clock", "context-switches", "software/config=2,name=x/",
                         "software/config=3,name=x/"])
GROUPS = st.lists(NAMES, min_size=1, max_size=3).map(lambda group: "{" + ",".join(group) + "}")
METRICS = st.lists(st.sampled_from(["page_faults_per_second", "cpus_utilized", "context_switches_per_second"]), max_size=2)
REPORTED = ("value", "scaled")


def key(labels):
    """A series of counts, by its name and which of this name it is."""
    return labels["event"], int(labels.get("nth", 1))


def points(line):
    """The points of a line of OTLP: {(metric, key): value}."""
    found = {}
    for metric in otlp.read(line).resource_metrics[0].scope_metrics[0].metrics:
        if metric.name == "nhmtap.events":
            for point in metric.sum.data_points:
                labels = {a.key: a.value.string_value or a.value.int_value for a in point.attributes}
                assert key(labels) not in found
                found[key(labels)] = point.as_int
    return found


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.one_of(NAMES, GROUPS), min_size=1, max_size=4), METRICS, st.booleans())
@example(["{page-faults,task-clock}", "{page-faults,context-switches}"], [], False)
@example(["page-faults"], ["page_faults_per_second"], True)
@example(["software/config=2,name=x/", "software/config=3,name=x/", "page-faults", "page-faults"], [], False)
def test_each_count_is_a_series_of_its_own_in_every_format(tmp_path, events, metrics, intervals):
    forms = ("json", "flat", "openmetrics", "prometheus", "otlp")
    done = subprocess.run([NHMTAP, "stat", "-e", ",".join(events), *(["-M", ",".join(metrics)] if metrics else []),
                           *(["-I", "20"] if intervals else []), *(f"--output={form}={tmp_path}/{form}" for form in forms), "--",
                           *command("faults=200", *["faults=10"] * 20, "exit=0")],
                          capture_output=True, text=True, check=True, timeout=240)
    text = {form: (tmp_path / form).read_text() for form in forms}
    counts = Result(done.returncode, text["json"], done.stderr).of("count")
    listed = [event["name"] for event in parse(text["json"])[0]["events"]]
    assert {key(record) for record in counts} == {(name, 1 + listed[:i].count(name)) for i, name in enumerate(listed)}

    # What isn't counted, as an ordinary user's context-switches, has no scaled value, and no series in a page.
    records = {name: summed((key(record), record[name]) for record in counts if name in record) for name in REPORTED}
    flat = [line for line in parse(text["flat"]) if "metric" not in line]
    assert summed((key(line), line["value"]) for line in flat) == records["value"]
    assert {key(line): line["total"] for line in flat} == records["value"]
    for form in ("openmetrics", "prometheus"):
        page = text[form]
        if form == "prometheus":
            assert pages.check(page)[0] == 0, pages.check(page)
            page += "" if page.endswith("# EOF\n") else "# EOF\n"
            samples = [line for line in page.splitlines() if line.startswith("nhmtap_events_total{")]
            assert len({line.rpartition(" ")[0] for line in samples}) == len(samples)
            continue
        samples = [s for f in pages.families(page).values() for s in f.samples if s.name == "nhmtap_events_total"]
        assert len({json.dumps(s.labels, sort_keys=True) for s in samples}) == len(samples)
        assert {key(s.labels): s.value for s in samples} == records["scaled"]
    assert summed(pair for line in text["otlp"].splitlines() for pair in points(line).items()) == {
        which: number for which, number in records["scaled"].items()}


@pytest.mark.parametrize("activity", ["profile", "mem"])
def test_samples_of_one_event_twice_are_two_series(nhmtap, tmp_path, activity):
    result = nhmtap(activity, "-e", "page-faults,page-faults", "-c", "1", "--by", "comm", "-o", f"json={tmp_path}/json",
                    "-o", f"flat={tmp_path}/flat", "-o", f"openmetrics={tmp_path}/page", "--series", "100", "--",
                    *command("faults=200", "exit=0"))
    assert result.status == 0, result.err
    records = Result(0, (tmp_path / "json").read_text(), "").of(activity)
    samples = {key(record): record["samples"]["aggregated"] for record in records}
    assert set(samples) == {("page-faults", 1), ("page-faults", 2)}
    flat = parse((tmp_path / "flat").read_text())
    assert summed((key(line), line.get("value", 0)) for line in flat) == samples
    for name in ("nhmtap_samples_total", f"nhmtap_{activity}_entries_total"):
        families = pages.families((tmp_path / "page").read_text())
        assert summed((key(s.labels), s.value) for f in families.values() for s in f.samples if s.name == name) == samples


def test_summaries_say_which_event_they_are_of(nhmtap):
    result = nhmtap("stat", "-r", "2", "-e", "page-faults,page-faults", "--", "true")
    name = callers.name_of("page-faults")
    assert [(r["event"], r.get("nth")) for r in result.of("summary")] == [(name, None), (name, 2)]


def test_the_package_finds_a_requested_event_beside_that_of_a_metric(monkeypatch):
    monkeypatch.setenv("NHMTAP", NHMTAP)
    name = callers.name_of("page-faults")
    run = package.stat(command("faults=200", "exit=0"), "page-faults", options=["-M", "page_faults_per_second"])
    first = next(r for r in run.records if r.get("event") == name)
    assert run[name] == first["value"] and "nth" not in first


def test_the_package_tells_two_events_of_one_name(monkeypatch):
    monkeypatch.setenv("NHMTAP", NHMTAP)
    run = package.stat(command("faults=200", "exit=0"), ["software/config=2,name=x/", "software/config=3,name=x/"])
    faults, switches = (r["value"] for r in run.records if r.get("event") == "x")
    assert run["x"] == faults > 200 and run["x (2)"] == switches
    assert list(run) == ["x", "x (2)"]
