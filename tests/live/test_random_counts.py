# SPDX-License-Identifier: GPL-2.0-only
"""Any list of events and metrics, counted for any target in any turns: each number of each format is the record's.

A seed chooses what is asked for. `NHMTAP_SEED=N NHMTAP_RUNS=1 make test T=tests/live/test_random_counts.py` repeats
one; `make search SEARCH="--only counts_in_formats"` tries others.
"""
import contextlib
import json
import math
import os
import random
import re
import shlex
import statistics
import subprocess
import traceback

import cgroups
import native
import otlp
import pages
import pytest
from prometheus_client.parser import text_string_to_metric_families as older_families
from puppet import Puppet, command
from records import NHMTAP, check_stream, parse
from test_clickhouse import check as check_clickhouse

SEED = int(os.environ.get("NHMTAP_SEED", "3500"))
RUNS = int(os.environ.get("NHMTAP_RUNS", "12"))
FORMS = ("json", "flat", "openmetrics", "prometheus", "otlp", "clickhouse", "table")

EVENTS = ["page-faults", "minor-faults", "major-faults", "faults", "task-clock", "cpu-clock", "context-switches", "cs", "migrations",
          "dummy", "alignment-faults", "software/config=2/", "software/config=0x6/", "cgroup-switches", "emulation-faults", "bpf-output"]
OF_THE_KERNEL = ("context-switches", "cs", "migrations", "cgroup-switches")  # on the user's side they are refused
METRICS = ["cpus_utilized", "page_faults_per_second", "context_switches_per_second", "migrations_per_second", "major_fault_share"]
# Metrics of a user's own, named as what nhmtap counts itself, or as each other on a page.
OWN_METRICS = {"events": "", "event_running": "ratio", "samples": "", "self_memory": "bytes", "self_cpu": "seconds", "build": "info",
               "warnings": "", "events_total": "total", "missed-records": "records", "self": "memory_bytes", "latency": "cycles",
               "a-b": "x", "a_b": "x", "a_b_x": "x", "mem_entries": "", "page-faults": "%"}
UNTOLD = ("time", "seq", "run_id", "type", "schema_version")


def own_tables(folder):
    (folder / "generic").mkdir(parents=True)
    (folder / "generic" / "metrics.json").write_text(json.dumps([
        {"name": name, "description": f"Made up {i}", "source": "reasoning", "unit": unit or "things", "formula": f"{i + 2} * page-faults"}
        for i, (name, unit) in enumerate(OWN_METRICS.items())]))
    return folder


class Asked:
    """What a seed asks for."""

    def __init__(self, seed, folder):
        self.rng, self.folder = random.Random(seed), folder

    def event(self):
        rng = self.rng
        name = rng.choice(EVENTS)
        if rng.random() < 0.25:
            given = f"name={rng.choice(['x', 'y', 'page-faults', 'task-clock', 'a.b'])}"
            name = name[:-1] + f",{given}/" if name.endswith("/") else name + f"/{given}/"
        modifier = rng.choice(["", "", "", "k", "uk", "b", "ku", *([] if name.startswith(OF_THE_KERNEL) else ["u"])])
        return name + (modifier if name.endswith("/") else f":{modifier}" if modifier else "")

    def events(self):
        rng, listed = self.rng, []
        for _ in range(rng.randint(1, 4)):
            again = rng.choice(listed) if listed and rng.random() < 0.3 else None
            members = [self.event() for _ in range(rng.randint(1, 3))]
            group = "{" + ",".join(members) + "}" + rng.choice(["", "", "", ":b", ":k", ":D"])
            listed.append(again or (group if rng.random() < 0.4 else members[0]))
        return ",".join(listed)

    def metrics(self):
        rng = self.rng
        names = rng.sample(METRICS, rng.randint(0, 2))
        if rng.random() < 0.4:
            names += rng.sample(list(OWN_METRICS), rng.randint(1, 4))
            return ["-M", ",".join(names), "--events-dir", str(self.folder / "tables")]
        return ["-M", ",".join(names + names[:1])] if names else []

    def target(self, puppet, cgroup):
        """(options, whether a command comes with it)."""
        rng, own = self.rng, cgroup
        pid = puppet.pid
        cpu = ["-C", str(min(os.sched_getaffinity(0)))]
        return rng.choice([
            ([], True), ([], True), (["-r", str(rng.randint(2, 4))], True),
            (["-p", f"{pid},{pid}"], False), (["-p", str(pid)], True), (["-t", f"{pid},{pid}"], False),
            (["-p", str(pid), "--per", "thread"], False), (["-G", f"{own},{own[1:]}/,/{own}"], False),
            (["-G", own], True), (["--for-each-cgroup", f"{own}/one,{own}/two"], False), (["-a", "--per", "cgroup", "-G", f"{own}/*"], False),
            (["-a"], False), (["-a", "--per", "cpu"], False), (cpu, True), (["-a", "--per", "socket", "-r", "2"], True),
            (["-a", "--per", "core"], False), (["-a", "--per-cpu", "-r", "3"], True)])

    def options(self):
        rng = self.rng
        return [*(["-I", str(rng.choice([5, 20, 40]))] if rng.random() < 0.4 else []),
                *(["--series", str(rng.choice([1, 3, 1000]))] if rng.random() < 0.4 else []),
                *(["--temporality", "cumulative"] if rng.random() < 0.3 else [])]


def run_of(seed, folder, cgroup):
    """Runs it. Returns the command, its result, and the text or bytes of each format."""
    asked = Asked(seed, folder)
    out = {form: folder / f"{seed}.{form}" for form in FORMS}
    with Puppet(workers=2) as puppet, Puppet(before=cgroups.inside(f"{cgroup}/one")) as one, Puppet(before=cgroups.inside(f"{cgroup}/two")) as two:
        target, commanded = asked.target(puppet, "/" + os.path.relpath(cgroup, cgroups.mount()))
        words = [NHMTAP, "stat", "-e", asked.events(), *asked.metrics(), *target, *asked.options(),
                 *(f"--output={form}={path}" for form, path in out.items())]
        if commanded:
            words += ["--", *command("faults=70", "spin=8", "fork=30", "thread=20", "exit=0")]
        else:
            words += ["--duration", "0.08"]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
            with contextlib.suppress(BrokenPipeError):
                for step, of in (("faults=90", puppet), ("worker=1,15", puppet), ("faults=11", one), ("faults=22", two), ("spin=3", puppet)):
                    of.do(step)
            _, error = run.communicate(timeout=240)
    return words, run.returncode, error, {
        form: (path.read_bytes() if form == "clickhouse" else path.read_text()) if path.exists() else "" for form, path in out.items()}


# --- what is expected, by the records alone ------------------------------------------------------------

def frozen(labels):
    return frozenset((name, str(value)) for name, value in labels.items())


FEW = {"activity", "event", "nth", "cpu", "node", "socket", "core", "explains"}
OWNERS = {"cgroup", "container.id", "container.runtime", "k8s.pod.uid", "systemd.unit"}
OTHERS = {"tid", "comm"}
NEVER_RAN = ("its target never ran", "nothing ran in its cgroups")  # then 0 is the count


def labels_of(record, series):
    """The labels of a record's series; None if they depend on how many series there are."""
    if series is not None and series < 100 and any(name in record for name in OWNERS | OTHERS):
        return None
    kept = FEW | OWNERS | (OTHERS if series is not None else set())
    return frozen({name: value for name, value in record.items() if name in kept})


def expected_of(found, series):
    """({labels: sum of counts}, {(metric, labels): {start of an interval: value, or None}}). Of several values in an interval
    with the same labels none is that of all, unless they are equal."""
    counts, gauges = {}, {}
    for record in found:
        labels = labels_of(record, series)
        if record["type"] == "count":
            if labels is None:
                labels = frozen({name: record[name] for name in ("event", "nth") if name in record})
            if "scaled" in record or record["why"] in NEVER_RAN:
                counts[labels] = counts.get(labels, 0) + record.get("scaled", 0)
        elif record["type"] == "metric" and labels is not None:
            values, value = gauges.setdefault((record["metric"], labels), {}), record.get("value")
            values[record["start_time"]] = value if values.get(record["start_time"], value) == value else None
    return counts, gauges


def projected(pairs, to):
    """Sums over what has the same labels but for those not in `to`."""
    found = {}
    for labels, value in pairs:
        own = frozenset(pair for pair in labels if to is None or pair[0] in to)
        found[own] = found.get(own, 0) + value
    return found


def same(got, wanted):
    return got.keys() == wanted.keys() and all(math.isclose(got[key], wanted[key], rel_tol=1e-13) for key in wanted)


def words_of(metric):
    """What begins the names of a metric's family."""
    return re.compile(r"nhmtap[._](metric_)?" + re.sub("[_-]", "[_-]", metric))


def check_series(counts, gauges, events, metrics, to):
    """`events`: pairs (labels, value) of an output; `metrics`: {name of the family: {labels: value}}."""
    assert len({labels for labels, _ in events}) == len(events)
    assert same(projected(events, to), counts), (projected(events, to), counts)
    if to is not None:
        return
    values = sorted((value, metric, labels) for (metric, labels), value in gauges.items() if value is not None)
    got = sorted((value, name, labels) for name, family in metrics.items() for labels, value in family.items())
    assert len(got) == len(values), (metrics, gauges)
    for value, metric, labels in values:
        assert any(math.isclose(value, number, rel_tol=1e-13) and labels == own and words_of(metric).match(name)
                   for number, name, own in got), (metric, labels, value, metrics)


OWN = re.compile(r"nhmtap[_.](events(_total)?|event_running(_ratio)?|self_(cpu(_seconds)?(_total)?|memory(_bytes)?)|build(_info)?|"
                 r"host_emulated(_info)?|samples.*|output_.*|warnings(_total)?)$")


def of_page(families):
    """(pairs of counts, metrics) of a page."""
    events, metrics = [], {}
    for family in families:
        for sample in family.samples:
            if sample.name == "nhmtap_events_total":
                events.append((frozen(sample.labels), sample.value))
            elif not OWN.match(sample.name):
                assert frozen(sample.labels) not in metrics.setdefault(sample.name, {})
                metrics[sample.name][frozen(sample.labels)] = sample.value
    return events, metrics


def of_otlp(text, cumulative):
    """The same of all lines of OTLP, of which cumulative ones hold what the ones before them held."""
    events, metrics = {}, {}
    for line in text.splitlines():
        data = otlp.read(line, 2 if cumulative else 1)
        again = type(data).FromString(data.SerializeToString())  # the protocol's other encoding says the same
        assert again == data
        lasting = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            for labels, point in otlp.points(data, metric.name):
                if metric.name == "nhmtap.events":
                    lasting[frozen(labels)] = point.as_int
                elif not OWN.match(metric.name):
                    metrics.setdefault(metric.name, {})[frozen(labels)] = point.as_double
        if cumulative:
            events = lasting
        else:
            events = {key: events.get(key, 0) + lasting.get(key, 0) for key in events.keys() | lasting.keys()}
    return list(events.items()), metrics


# --- each format ---------------------------------------------------------------------------------------

def check_flat(found, lines):
    told = [record for record in found if record["type"] in ("count", "metric")]
    assert len(lines) == len(told)
    totals = {}
    for record, line in zip(told, lines):
        for name, value in record.items():
            if name in UNTOLD or isinstance(value, (list, dict)) or name in ("start_time", "duration_ns", "resource"):
                continue
            assert line.get(name) == value, (name, line, record)
        assert line["interval_ms"] == pytest.approx(record["duration_ns"] / 1e6)
        if record["type"] == "count":
            key = frozen({name: record[name] for name in FEW | OWNERS | OTHERS if name in record})
            totals[key] = totals.get(key, 0) + record["value"]
            assert line["total"] == totals[key]


def keys_of(record):
    return frozen({name: value for name, value in record.items() if name in FEW | OWNERS | OTHERS | {"metric"}})


def check_summaries(found):
    """Of -r: what each execution counted, over its intervals, by Python's own statistics. (A metric of several intervals is no
    sum.)"""
    of = {}
    for record in found:
        if record["type"] in ("count", "metric"):
            value = record.get("scaled", 0 if record.get("why") in NEVER_RAN else None) if record["type"] == "count" else record.get("value")
            of.setdefault(keys_of(record), {}).setdefault(record.get("repeat"), []).append(value)
    for summary in (record for record in found if record["type"] == "summary"):
        executions = of[keys_of(summary)].values()
        if "metric" in summary and any(len(parts) > 1 for parts in executions):
            continue
        values = [sum(parts) for parts in executions if None not in parts]
        assert summary["counted"] == len(values)
        if values:
            assert summary["mean"] == pytest.approx(statistics.mean(values), rel=1e-12)
            assert (summary["min"], summary["max"]) == pytest.approx((min(values), max(values)), rel=1e-13)
        if len(values) > 1:
            assert summary["stddev"] == pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-9)


def check_table(found, text):
    """The numbers at the beginning of its lines are the counts', in order."""
    numbers = [word.replace(",", "") for word in re.findall(r"^\s*(?:\d+\.\d+ +)?([\d,]+)(?: ns)?  +[a-z#]", text, re.M)]
    wanted = [str(record["scaled"]) for record in found if record["type"] == "count" and "scaled" in record]
    rest = iter(numbers)
    assert all(number in rest for number in wanted), (wanted, numbers, text)


def check(words, text):
    found = parse(text["json"])
    check_stream(found)
    series = int(words[words.index("--series") + 1]) if "--series" in words else None
    counts, gauges = expected_of(found, series)
    shown = {key: list(values.values())[-1] for key, values in gauges.items()}
    bounded = any(labels_of(record, series) is None for record in found if record["type"] == "count")
    to = {"event", "nth"} if bounded else None
    flat = parse(text["flat"])
    check_flat(found, flat)
    assert len(check_clickhouse(flat, text["clickhouse"])) == len(list(native.rows(text["clickhouse"])))
    check_series(counts, shown, *of_page(pages.families(text["openmetrics"]).values()), to)
    assert pages.check(text["prometheus"])[0] in ((0, 3) if "--events-dir" in words else (0,)), pages.check(text["prometheus"])  # 3: of style
    check_series(counts, shown, *of_page(older_families(text["prometheus"])), to)
    last = {key: [value for value in values.values() if value is not None][-1:] for key, values in gauges.items()}
    check_series(counts, {key: value[0] for key, value in last.items() if value},
                 *of_otlp(text["otlp"], "cumulative" in words), to)
    check_summaries(found)
    if "-I" not in words and "--per" not in words and "--per-cpu" not in words and "--for-each-cgroup" not in words:
        check_table(found, text["table"])
    return sum(record["type"] == "count" for record in found)


@pytest.fixture(name="two_cgroups")
def fixture_two_cgroups(cgroup):
    for name in ("one", "two"):
        os.mkdir(f"{cgroup[1]}/{name}")
    return cgroup[1]


def test_each_number_of_each_format_is_the_records_for_any_list_of_events(tmp_path, two_cgroups):
    own_tables(tmp_path / "tables")
    counted, refused, wrong = 0, 0, []
    for seed in range(SEED, SEED + RUNS):
        words, status, error, text = run_of(seed, tmp_path, two_cgroups)
        if status == 1:  # what makes no sense is refused with its reason
            assert error.startswith("nhmtap: ") and parse(text["json"] or "\n"[1:]) is not None
            refused += 1
            continue
        try:
            assert status == 0
            counted += check(words, text) > 0
        except Exception:  # so that one seed doesn't hide the others
            wrong.append(f"NHMTAP_SEED={seed} NHMTAP_RUNS=1: {shlex.join(words)}\n{error}{traceback.format_exc()}")
    print(f"figures: lists of events: {counted} counted, {refused} refused")
    assert not wrong, "\n".join(wrong)
    assert counted >= RUNS / 2
