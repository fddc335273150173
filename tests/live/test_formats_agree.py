# SPDX-License-Identifier: GPL-2.0-only
"""Samples of any event, period, keys and intervals: every format has as many as the record, they stand for as much, and
the function that the program spends its faults in has the same weight in each."""
import glob
import json
import os
import re
import subprocess

import callgrind
import firefox
import otlp
import pages
import pprof
import speedscope
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from puppet import command
from records import NHMTAP, parse

EVENTS = st.sampled_from(["page-faults", "minor-faults:u", "page-faults:D", "{page-faults}:u", "software/config=2,name=x/",
                          "task-clock", "cpu-clock:u", "context-switches", "page-faults:p", "minor-faults/period=3,name=y/u"])
PACES = st.sampled_from([["-c", "1"], ["-c", "13"], ["-F", "999"], ["-c", "10007"], ["-c", "1", "--cpu-share", "50%"]])
KEYS = st.lists(st.sampled_from(["comm", "pid", "symbol", "ip", "cpu", "tid"]), max_size=2, unique=True)
STACKS = ("pprof", "speedscope", "firefox", "callgrind")  # a document each interval
HOT = "touch"  # of puppet.c


def of_record(found, kind):
    """(samples, what they stand for, what those in HOT stand for) of the records."""
    frames, total, period, hot = {}, 0, 0, 0
    for record in found:
        if record["type"] == "frames":
            if record.get("part", 1) == 1:
                frames = {}
            frames.update((f["id"], f.get("symbol")) for f in record["frames"])
        for entry in [*record["entries"], record.get("rest", {})] if record["type"] == kind else []:
            total += entry.get("samples", 0)
            period += entry.get("period", 0)
            hot += entry["period"] if entry.get("stack") and frames[entry["stack"][0]] == HOT else 0
    return total, period, hot


def of_pprof(path, _):
    profile = pprof.read(path)
    names = {f.id: profile.string_table[f.name] for f in profile.function}
    leaves = {place.id: names[place.line[0].function_id] for place in profile.location if place.line}
    return (*(sum(s.value[i] for s in profile.sample) for i in range(2)),
            sum(s.value[1] for s in profile.sample if s.location_id and leaves.get(s.location_id[0]) == HOT))


def of_speedscope(path, _):
    document = speedscope.read(path)
    samples, weights = document["profiles"][:2]  # mem has latencies, too
    return samples["endValue"], weights["endValue"], sum(
        weight for stack, weight in speedscope.stacks(document, weights["name"]) if stack and stack[-1] == HOT)


def of_firefox(path, _):
    document = firefox.read(path)
    clock = any(thread["samples"]["weightType"] == "tracing-ms" for thread in document["threads"])
    weights = [(round(weight * 1e6) if clock else weight, stack) for _, stack, weight in firefox.stacks(document)]
    return None, sum(weight for weight, _ in weights), sum(weight for weight, stack in weights if stack and stack[-1] == HOT)


def of_callgrind(path, _):
    _, summary, selves, _ = callgrind.read(path)
    return (*summary[:2], sum(costs[1] for f, lines in selves.items() if f.name == HOT for costs in lines.values()))


def of_folded(text, _):
    lines = [line.rsplit(" ", 1) for line in text.splitlines()]
    return None, sum(int(weight) for _, weight in lines), sum(int(weight) for stack, weight in lines if stack.endswith(f";{HOT}"))


def of_flat(text, _):
    lines = [line for line in map(json.loads, text.splitlines()) if "value" in line]
    return sum(line["samples"] for line in lines), sum(line["value"] for line in lines), None


def of_page(text, _):
    samples = (s for family in pages.families(text).values() for s in family.samples)
    return sum(s.value for s in samples if s.name == "nhmtap_samples_total"), None, None


def of_prometheus(text, _):
    assert pages.check(text)[0] == 0
    lines = [line for line in text.splitlines() if line.startswith("nhmtap_samples_total{")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines), None, None


def of_otlp(text, _):
    points = (otlp.points(otlp.read(line), "nhmtap.samples") for line in text.splitlines())
    return sum(point.as_int for line in points for _, point in line), None, None


READERS = {"pprof": of_pprof, "speedscope": of_speedscope, "firefox": of_firefox,
           "callgrind": of_callgrind, "folded": of_folded, "flat": of_flat,
           "openmetrics": of_page, "prometheus": of_prometheus, "otlp": of_otlp}


def of_flame_graph(records):
    text = subprocess.run([NHMTAP, "flamegraph"], input=records, capture_output=True, text=True, check=True).stdout
    graph, = json.loads(re.search(r'(\{"title":.*\})\s*</script>', text, re.S)[1].replace("\\u003c", "<"))["events"]
    return sum(weight for depth, weight in zip(graph["depth"], graph["weight"]) if depth == min(graph["depth"]))


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["profile", "mem"]), EVENTS, PACES, KEYS, st.booleans(), st.sampled_from([None, 1, 3]))
@example("profile", "page-faults", ["-c", "1"], [], False, None)
@example("mem", "minor-faults:u", ["-F", "999"], ["comm"], True, 1)
@example("profile", "task-clock", ["-c", "13"], ["pid"], False, 3)
def test_samples_have_the_same_numbers_in_every_format(tmp_path, activity, event, pace, keys, intervals, top):
    for path in glob.glob(f"{tmp_path}/*.*"):
        os.unlink(path)
    pace = pace if "period=" not in event else []
    done = subprocess.run(
        [NHMTAP, activity, "-e", event, *pace, "--by", ",".join(["stack", *keys]), *(["-I", "30"] if intervals else []),
         *(["--top", str(top)] if top else []), "-o", f"json={tmp_path}/x.json",
         *(f"--output={form}={tmp_path}/{'%t' if intervals and form in STACKS else 'x'}.{form}" for form in READERS), "--",
         *command("faults=300", "spin=40", "fork=50", "exit=0")], capture_output=True, text=True, timeout=240, check=False)
    if "--cpu-share" in pace and done.returncode == 1:
        assert "pprof" in done.stderr  # which says one period for all of its samples
        return
    assert done.returncode == 0, done.stderr
    with open(f"{tmp_path}/x.json", encoding="utf-8") as file:
        text = file.read()
    found = parse(text)
    expected = of_record(found, activity)
    assert expected[0] == sum(r["samples"]["aggregated"] for r in found if r["type"] == activity and "samples" in r)
    if event == "page-faults" and not top and "1" in pace and not intervals:  # names of an interval may come too late
        assert expected[2] >= 300
    for form in READERS:
        got = [None, None, None]
        for path in glob.glob(f"{tmp_path}/*.{form}"):
            what = path
            if form not in STACKS:
                with open(path, encoding="utf-8") as file:
                    what = file.read()
            got = [number if number is None else number + (before or 0) for number, before in zip(READERS[form](what, form), got)]
        assert all(number in (None, wanted) for number, wanted in zip(got, expected)), (form, got, expected)
    if expected[0]:
        assert of_flame_graph(text) == expected[1]
