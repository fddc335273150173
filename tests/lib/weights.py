# SPDX-License-Identifier: GPL-2.0-only
"""What functions weigh in each output of one run: for every format a reader of its file, and for every command that shows
stored records one that asks it. Each returns {function: its own weight}, in events, or as a share of all in percent where
an output tells no more. What has no name is "?", and a branch is its origin's. A path is a file, or a folder of one file for
each interval."""
import collections
import functools
import json
import os
import re
import subprocess

import callgrind
import firefox
import native
import otlp
import otlp_profiles
import pages
import pprof
import records
import speedscope
from prometheus_client.parser import text_string_to_metric_families
from records import NHMTAP, summed
from selenium.webdriver.common.by import By
from terminal import Terminal


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def shown(*command):
    return subprocess.run([NHMTAP, *command], capture_output=True, text=True, check=True).stdout


def origin(name):
    """The function that a branch leaves, of "FROM -> TO"."""
    return name.split(" -> ")[0]


def json_pairs(path):
    frames = {}
    for record in records.parse(text(path)):
        if record["type"] == "frames":
            if record.get("part", 1) == 1:
                frames = {}
            frames.update((f["id"], f.get("symbol", "?")) for f in record["frames"])
        if record["type"] == "sample":
            yield record.get("code", {}).get("symbol", "?"), record["period"]
        for entry in record.get("entries", ()):
            if record["type"] == "branch":
                yield entry["from"].get("symbol", "?"), entry["period"]
            elif record["type"] in ("profile", "mem"):
                yield frames.get((entry.get("stack") or [None])[0], "?"), entry["period"]


def weight_of(row):
    """Of what each row of a format stands for: a stream's rows are its samples, and the event's count in the end, as value."""
    return row.get("period") or row["value"]


def weighed(rows):
    """Those that have a weight; of a stream, its samples."""
    return [row for row in rows if row.get("period")] or [row for row in rows if "value" in row]


def flat_pairs(path):
    for line in weighed(list(map(json.loads, text(path).splitlines()))):
        yield line.get("from_symbol" if "kind" in line else "symbol", "?"), weight_of(line)


def folded_pairs(path):
    for line in text(path).splitlines():
        stack, weight = line.rsplit(" ", 1)
        yield origin(stack.split(";")[-1]), int(weight)


def clickhouse_pairs(path):
    with open(path, "rb") as file:
        for row in weighed([row for row in native.rows(file.read()) if row["event"] and not row.get("lost")]):
            yield row.get("from_symbol" if row.get("kind") else "symbol") or "?", weight_of(row)


def points_pairs(points):
    """Of (labels, value) of what entries stand for, with --series for all of them."""
    for labels, value in points:
        yield labels.get("from_symbol" if "kind" in labels else "symbol", "?"), round(value)


def openmetrics_pairs(path):
    return points_pairs((sample.labels, sample.value) for family in pages.families(text(path)).values() for sample in family.samples
                        if family.name.endswith("_entries"))


def prometheus_pairs(path):
    return points_pairs((sample.labels, sample.value) for family in text_string_to_metric_families(text(path))
                        for sample in family.samples if family.name.endswith("_entries"))


def otlp_metrics_pairs(path):
    for line in text(path).splitlines():
        data = otlp.read(line)
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            if metric.name.endswith("_entries"):
                yield from points_pairs((labels, point.as_int) for labels, point in otlp.points(data, metric.name))


NUMBERS = {"samples", "latency", "branches", "mispredicted", "mispredicted_period"}  # what formats have beside events


def pprof_pairs(path):
    profile = pprof.read(path)
    event, = (i for i, measure in enumerate(profile.sample_type) if profile.string_table[measure.type] not in NUMBERS)
    functions = {f.id: origin(profile.string_table[f.name]) for f in profile.function}
    leaves = {x.id: functions[x.line[0].function_id] if x.line else "?" for x in profile.location}
    for sample in profile.sample:
        yield leaves.get((list(sample.location_id) or [0])[0], "?"), sample.value[event]


def otlp_pairs(path):
    with open(path, "rb") as file:
        message = otlp_profiles.read(file.read())
    for profile in message.profiles:
        if message.type(profile)[0] not in NUMBERS:
            yield from ((origin((message.stack(sample) or "?")[-1]), sample.values[0]) for sample in profile.samples)


def callgrind_pairs(path):
    events, _, selves, _ = callgrind.read(path)
    event, = (i for i, name in enumerate(events) if name not in NUMBERS)
    for function, lines in selves.items():
        yield origin(function.name), sum(costs[event] for costs in lines.values())


def firefox_pairs(path):
    for _, stack, weight in firefox.stacks(firefox.read(path)):
        yield origin(stack[-1]) if stack else "?", weight


def speedscope_pairs(path):
    document = speedscope.read(path)
    event, = (p["name"] for p in document["profiles"] if p["name"] not in NUMBERS)
    for stack, weight in speedscope.stacks(document, event):
        yield origin(stack[-1]) if stack else "?", weight


def flame_pairs(path):
    """Own weights of the nodes of a flame graph that is made of records."""
    page = subprocess.run([NHMTAP, "flamegraph"], input=text(path), capture_output=True, text=True, check=True).stdout
    data = json.loads(re.search(r'(\{"title":.*\})\s*</script>', page, re.S)[1].replace("\\u003c", "<"))
    graph, = data["events"]
    for i, (depth, code, weight) in enumerate(zip(graph["depth"], graph["code"], graph["weight"])):
        below = 0
        for deeper, more in zip(graph["depth"][i + 1:], graph["weight"][i + 1:]):
            if deeper <= depth:
                break
            below += more if deeper == depth + 1 else 0
        yield data["texts"][data["codes"][code][0]].split(" -> ")[0], weight - below


ROW = re.compile(r"^ *[\d,]+ +([\d.]+)%.* ([\w.@]+)(?: \([^()]*\))?$", re.M)  # samples, share, …, function (module)


def rows(said):
    """What a table of functions, or of branches, says; mem's follows that of its sources. None: it is not there, or not yet."""
    _, *functions = re.split(r"^ *(?:samples|branches) .*(?:symbol|code| to)$", said, flags=re.M)
    return [(name, float(share)) for share, name in ROW.findall("".join(functions[-1:]))]


def show_pairs(path):
    return rows(shown("show", "--by", "symbol", path))


def top_pairs(path):
    with Terminal(NHMTAP, "top", path, columns=120) as seen:
        seen.type(">>>>>>")
        screen = seen.still(lambda shown: " END " in shown and rows(shown))
        seen.type("q")
    return rows(screen)


def report_pairs(path, driver):
    page = f"{path}.page.html"
    shown("report", "-o", page, path)
    driver.get(f"file://{page}")
    for row in driver.find_elements(By.CSS_SELECTOR, "#functions tbody tr"):
        cells = [cell.get_attribute("textContent") for cell in row.find_elements(By.TAG_NAME, "td")]
        yield cells[-1], float(cells[0].rstrip(" %"))


# What reads a file of the format of this name, and what reads the records.
OF_FORMATS = {"json": json_pairs, "flat": flat_pairs, "folded": folded_pairs, "pprof": pprof_pairs, "otlp-profiles": otlp_pairs,
              "callgrind": callgrind_pairs, "firefox": firefox_pairs, "speedscope": speedscope_pairs, "clickhouse": clickhouse_pairs,
              "openmetrics": openmetrics_pairs, "prometheus": prometheus_pairs, "otlp": otlp_metrics_pairs}
OF_STREAMS = ("json", "flat", "clickhouse", "firefox")  # the formats that have a stream's samples
WITH_KINDS = ("json", "flat", "clickhouse", "openmetrics", "prometheus", "otlp")  # that have ranges beside edges, and tell which is which
OF_METRICS = ("openmetrics", "prometheus", "otlp")
OF_COMMANDS = {"flamegraph": flame_pairs, "show": show_pairs, "top": top_pairs}


def series(forms):
    """The options with which those of metrics have functions. Others refuse them."""
    return ["--series", "100000"] if set(forms) & set(OF_METRICS) else []


@functools.cache
def pairs(form, path):
    """Of a file of a format, or of all files in a folder, which stay as they are."""
    files = sorted(entry.path for entry in os.scandir(path)) if os.path.isdir(path) else [path]
    assert files
    return [pair for file in files for pair in OF_FORMATS[form](file)]


def shares(paths, thick, thin, driver, named=0.9):
    """{output: the share of the first of two functions in what both weigh}, of paths by their formats. driver: browser.py's. named:
    what both have of the whole, at least."""
    found = {form: summed(pairs(form, path)) for form, path in paths.items()}
    found |= {name: summed(read(paths["json"])) for name, read in OF_COMMANDS.items()}
    found["report"] = summed(report_pairs(paths["json"], driver))
    found = {name: collections.Counter(sums) for name, sums in found.items()}
    for name, weights in found.items():
        assert weights[thick] + weights[thin] > named * sum(weights.values()) > 0, (name, weights.most_common(9))
    return {name: weights[thick] / (weights[thick] + weights[thin]) for name, weights in found.items()}
