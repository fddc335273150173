# SPDX-License-Identifier: GPL-2.0-only
"""Every query of the dashboard, answered by a real Prometheus, has what the records say. Pages of two runs, one of them on the
emulated Nehalem, are what it scraped: at first counters were 0, or were not there yet, and five minutes later what the page
says."""
import collections
import json
import os
import re
import shutil
import subprocess

import pytest
from asked import free_port
from otlp import Receiver
from puppet import Puppet
from records import NHMTAP, Tool, chosen, parse, summed
from servers import Server, get
from sessions import Session, faults, until
from test_pipelines import dashboard

MINUTES = 300  # of the page, in seconds
BEGIN = 1_800_000_000

ACTIVITIES = [
    {"name": "counts", "command": "stat", "event": ["instructions:u", "page-faults"]},
    {"name": "samples", "command": "profile", "event": ["instructions:u"], "count": 10007, "by": "symbol,comm"},
    {"name": "loads", "command": "mem", "ldlat": 3},
    {"name": "responses", "command": "offcore"},
    {"name": "causes", "command": "analyze"}]


@pytest.fixture(scope="module")
def on_nehalem(tmp_path_factory):
    """The records and the page of a session on the emulated machine."""
    folder = tmp_path_factory.mktemp("nehalem")
    (folder / "config").write_text(json.dumps({
        "activities": [{**activity, "all_cpus": True, "interval_ms": 300} for activity in ACTIVITIES],
        "outputs": [{"path": "records"}, {"path": "page", "format": "openmetrics", "series": 1000}]}))
    script = f"'{NHMTAP}' run config & p=$!; until [ -s page ]; do levels; done; levels; kill -TERM $p; wait $p"
    subprocess.run([NHMTAP, "machine", "--out", "records", "--out", "page", "--", "sh", "-c", script], cwd=folder, check=True,
                   env={**os.environ, "PATH": f"{os.environ['NHMTAP_PROGRAMS']}:{os.environ['PATH']}"}, stdin=subprocess.DEVNULL)
    return parse((folder / "records").read_text()), (folder / "page").read_text()


@pytest.fixture(scope="module")
def in_trouble(tmp_path_factory):
    """Those of a session of whose outputs one is rejected and refused, and one cannot be opened for a while."""
    folder = tmp_path_factory.mktemp("trouble")
    (folder / "sub").mkdir()
    page = folder / "sub" / "page"
    answers = [(200, {"Content-Type": "application/json"}, b'{"partialSuccess":{"rejectedDataPoints":"7"}}'), (403, {})]
    with Puppet() as puppet, Receiver(*answers) as receiver, Session(
            Tool(), folder, [faults("faults", "stat", pid=str(puppet.pid))],
            outputs=[{}, {"path": str(page), "format": "prometheus"}, {"path": receiver.url(), "format": "otlp"}]) as session:
        def count():
            puppet.do("faults=100")
            session.do("snapshot")
        until(lambda: count() or session.text().count('"type":"warning"') == 2)
        shutil.rmtree(folder / "sub")
        until(lambda: count() or '"type":"error"' in session.text())
        (folder / "sub").mkdir()
        session.hup()
        until(lambda: count() or page.exists())
        count()
        result = session.end()
    return result.records, page.read_text()


SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


# Counters of what comes in the course of a run.
LATER = ("nhmtap_missed_records", "nhmtap_warnings", "nhmtap_output_failures", "nhmtap_rejected_points", "nhmtap_profile_entries")


def scraped(*pages):
    """What Prometheus would have: series with a label for the page, as they begin, if they do, and as they are, in OpenMetrics."""
    families = {}
    for number, page in enumerate(pages):
        kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, re.M))
        for name, labels, value in filter(None, (match and match.groups() for match in map(SAMPLE.match, page.splitlines()))):
            family = next((n for n in (name, re.sub("_(total|bucket|sum|count|info)$", "", name)) if n in kinds), name)
            kind = kinds[family].replace("untyped", "gauge")
            family = family.removesuffix("_total")
            labels = ",".join(filter(None, [labels, f'instance="{number}"', 'job="nhmtap"']))
            begins = None if family in LATER else "0" if kind in ("counter", "histogram") else value
            families.setdefault(family, (kind, []))[1].append((name, labels, begins, value))
    lines = []
    for family, (kind, series) in families.items():
        lines.append(f"# TYPE {family} {kind}")
        for name, labels, begins, value in series:
            lines += [f"{name}{{{labels}}} {begins} {BEGIN}"] * (begins is not None) + [f"{name}{{{labels}}} {value} {BEGIN + MINUTES}"]
    return "\n".join([*lines, "# EOF", ""])


class Prometheus(Server):
    def __init__(self, folder):
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        (folder / "none.yml").write_text("global: {}\n")
        super().__init__(folder, "prometheus", f"--config.file={folder}/none.yml", f"--storage.tsdb.path={folder}/tsdb",
                         "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}")

    def is_ready(self):
        return get(f"{self.base}/-/ready")

    def ask(self, query):
        """{labels: value} when all was scraped."""
        answer = json.loads(get(f"{self.base}/api/v1/query", query=query, time=BEGIN + MINUTES))
        return {frozenset((name, text) for name, text in series["metric"].items() if name not in ("__name__", "job", "instance")):
                float(series["value"][1]) for series in answer["data"]["result"]}


@pytest.fixture(scope="module")
def answers(on_nehalem, in_trouble, tmp_path_factory):
    """What Prometheus answers to each query, by the panel's title and the query's letter."""
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "scraped").write_text(scraped(on_nehalem[1], in_trouble[1]))
    subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", "-q", folder / "scraped", folder / "tsdb"], check=True)
    with Prometheus(folder) as server:
        return {(panel["title"], target["refId"]): server.ask(
            re.sub(r"\$__(rate_interval|range)", f"{MINUTES}s", target["expr"]).replace("$job", "nhmtap").replace(
                "$instance", ".*").replace("$activity", ".*")) for panel in dashboard()["panels"] for target in panel.get("targets", ())}


def labelled(**labels):
    return frozenset((name, text) for name, text in labels.items() if text)


def a_second(sums):
    return {labels: value / MINUTES for labels, value in sums.items()}


def entries_of(found):
    for record in chosen(found, "profile"):
        rest = [{**record["rest"], "rest": True}] if "rest" in record else []
        for entry in [*record["entries"], *rest]:
            yield labelled(activity=record["activity"], event=record["event"], comm=entry.get("comm"),
                           symbol=entry.get("code", {}).get("symbol")), entry["period"]


def latencies(found):
    """{source: {first latency of a bucket: loads}}"""
    sums = collections.defaultdict(collections.Counter)
    for record in chosen(found, "mem"):
        for source in record.get("sources", ()):
            for first, loads in source["latency_histogram_period"].items():
                sums[source["source"]][int(first)] += loads
    return sums


BOUNDS = [2 ** power - 1 for power in range(1, 16)]


def quantile(buckets, share):
    """As Prometheus' documentation has it: a linear interpolation in the bucket."""
    wanted, before, low = share * sum(buckets.values()), 0, 0
    for bound in BOUNDS:
        upto = sum(loads for first, loads in buckets.items() if first <= bound)
        if upto >= wanted:
            return low + (bound - low) * (wanted - before) / (upto - before)
        before, low = upto, bound
    return None


def expected(nehalem, trouble):
    both = nehalem + trouble
    sampled = [r["samples"] for r in nehalem if r["type"] in ("profile", "mem") and "samples" in r]
    counted = [r for r in both if r["type"] == "count"]
    last = {(r["activity"], r["event"]): r for r in both if r["type"] in ("count", "profile", "mem") and "enabled_ns" in r}
    ratios = {labelled(activity=a, event=e): r["running_ns"] / r["enabled_ns"] for (a, e), r in last.items() if r["enabled_ns"]}
    shares = {}
    for record in chosen(nehalem, "analysis"):
        shares.update({share["name"]: share for share in record["shares"]})
    by_source = latencies(nehalem)
    all_loads = sum(by_source.values(), collections.Counter())
    rejected = [w for w in chosen(trouble, "warning") if w["cause"] == "rejected"]
    return {
        ("Samples lost", "A"): {labelled(): sum(sum(s["lost"].values()) for s in sampled) / sum(s["aggregated"] for s in sampled)},
        ("Records missed", "A"): {labelled(): sum(gap["records"] for gap in chosen(trouble, "gap"))},
        ("CONFIG as last asked for", "A"): {labelled(): 1},
        ("Events a second", "A"): a_second(summed((labelled(activity=r["activity"], event=r["event"]), r.get("scaled", 0)) for r in counted)),
        ("Time counted", "A"): ratios,
        ("Least time an event was counted", "A"): {labelled(): min(ratios.values())},
        ("Load latency, in core cycles", "A"): {labelled(le=f"{bound}.0"): sum(n for first, n in all_loads.items() if first <= bound)
                                                for bound in BOUNDS} | {labelled(le="+Inf"): all_loads.total()},
        ("Load latency by source, 95 % are faster", "A"): {labelled(source=name): quantile(buckets, 0.95) for name, buckets in by_source.items()},
        ("Off-core responses a second", "A"): a_second(summed((labelled(request=cell["request"], response=cell["response"]), cell.get("scaled", 0))
                                                              for r in chosen(nehalem, "offcore") for cell in r["cells"])),
        ("Warnings, failures and rejected points", "A"): summed((labelled(cause=w["cause"]), 1) for w in chosen(both, "warning")),
        ("Warnings, failures and rejected points", "B"): {labelled(output=e["output"], errno=e["errno"]): 1 for e in chosen(trouble, "error")},
        ("Warnings, failures and rejected points", "C"): summed((labelled(output=w["output"]), w["rejected"]) for w in rejected),
        ("Warnings, failures and rejected points", "D"): summed((labelled(activity=r["activity"], event=r["event"]), r["samples"]["throttled"])
                                                                for r in nehalem if r["type"] in ("profile", "mem") and "throttled" in r.get("samples", ())),
    }, shares


def differing(found, wanted):
    """What is not the same in both, to be read."""
    return [(" ".join(sorted("=".join(pair) for pair in labels)), found.get(labels), wanted.get(labels)) for labels in found.keys() | wanted
            if labels not in found or labels not in wanted or found[labels] != pytest.approx(wanted[labels], rel=1e-6)]


def test_each_query_has_the_values_of_the_records(on_nehalem, in_trouble, answers):
    wanted, shares = expected(on_nehalem[0], in_trouble[0])
    for place, values in wanted.items():
        assert values and differing(answers[place], values) == [], place
    functions, entries = answers["Functions and other keys", "A"], summed(entries_of(on_nehalem[0]))  # some of equal ones
    assert differing(functions, {labels: entries.get(labels, -1) for labels in functions}) == []
    assert sorted(functions.values()) == pytest.approx(sorted(entries.values())[-30:], rel=1e-6)
    for letter, member in zip("ABC", ("share", "low", "high")):
        found = {dict(labels)["name"]: value for labels, value in answers["Shares of the cycles", letter].items()}
        assert found == pytest.approx({name: share[member] for name, share in shares.items() if member in share}, rel=1e-6)
    own = [found[-1]["overhead"] for found in (on_nehalem[0], in_trouble[0])]
    assert 0 < sum(answers["CPU time", "A"].values()) * MINUTES <= sum(o["cpu_time_ns"] for o in own) / 1e9
    assert 0 < max(answers["Memory", "A"].values()) <= max(o["max_rss_bytes"] for o in own)
    # Whether targets answer is Prometheus' own knowledge: check_prometheus.py.
    assert set(answers) - set(wanted) == {("Functions and other keys", "A"), ("Targets that answer", "A"), ("CPU time", "A"), ("Memory", "A"),
                                          *(("Shares of the cycles", letter) for letter in "ABC")}
