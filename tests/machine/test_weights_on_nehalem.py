# SPDX-License-Identifier: GPL-2.0-only
"""What samples weigh. With a frequency they stand for unequal numbers of events; every output must show the shares
that the program has by construction, as it does with a fixed period."""
import json
import re

import pytest

import known
import otlp
import pages
import pprof
import records
import weights

pytest_plugins = "browser"
LOADS = known.numbers("uneven")
SHARE = LOADS["thick"] / (LOADS["thick"] + LOADS["thin"])
WAYS = {"period": ["-c", "1009"], "frequency": ["-F", "4000"], "share": ["-c", "1009", "--cpu-share", "10%", "-I", "20"]}
COMMANDS = {"profile": ["-e", "MEM_INST_RETIRED.LOADS:u"], "mem": ["--ldlat", "3", "--side", "u"], "branch": ["--filter", "any,u", "--by", "symbol"],
            "stream": ["-e", "MEM_INST_RETIRED.LOADS:u"]}
OF_ONE_INTERVAL = ("pprof", "otlp-profiles", "callgrind", "firefox", "speedscope")  # several are as many files in a folder


def from_table(text):
    """The share of each row. They are rounded: those of many small rows don't add up to what the rows stand for."""
    return [float(share) for share in re.findall(r"^ *[\d,]+ +([\d.]+)%", text, re.M)]


def written(guest, tmp_path, command, way):
    """The files of the formats that are written, and the folders of those that have one interval in a file."""
    forms = weights.OF_STREAMS if command == "stream" else (*weights.OF_FORMATS, "table")
    folders = OF_ONE_INTERVAL if way == "share" and command != "stream" else ()
    paths = {form: f"out.{form}" for form in forms}
    outputs = " ".join(f"-o {form}={path}{'/%t' if form in folders else ''}" for form, path in paths.items())
    options = " ".join([*COMMANDS[command], *WAYS[way], "-g", *weights.series(forms), outputs])
    guest.say(f"mkdir {' '.join(paths[form] for form in folders) or 'none'}; /opt/nhmtap {command} {options} -- uneven", paranoid=-1)
    with guest.guest.fetch(*paths.values()) as tar:
        tar.extractall(tmp_path)
    return {form: f"{tmp_path}/tmp/{path}" for form, path in paths.items()}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_output_has_the_shares_that_the_program_has(guest, tmp_path, driver, command, way):
    paths = written(guest, tmp_path, command, way)
    table = paths.pop("table", None)
    shares = weights.shares(paths, "thick", "thin", driver)
    if table and way != "share":  # there the intervals are several
        periods = [period for _, period in weights.OF_FORMATS["json"](paths["json"])]
        with open(table, encoding="utf-8") as file:
            rows = from_table(file.read())
        assert len(rows) > 1 and all(abs(share - 100 * period / sum(periods)) < 0.5 for share, period in zip(rows, periods)), rows
    assert all(abs(share - shares["json"]) < 0.01 for share in shares.values()), shares
    assert abs(shares["json"] - SHARE) < 0.04, shares


def test_the_function_that_stands_for_most_is_the_first(guest):
    found = records.parse(guest.say("/opt/nhmtap profile -e MEM_INST_RETIRED.LOADS:u -F 4000 --by symbol --top 1 --format json -- uneven",
                                    paranoid=-1))
    profile, = (r for r in found if r["type"] == "profile")
    (first,), rest = profile["entries"], profile["rest"]
    assert first["code"]["symbol"] == "thick" and first["period"] > rest["period"] and first["samples"] < rest["samples"]


def mean_of(pairs):
    """The mean latency by a list of (sum of latencies, number of loads)."""
    total, loads = map(sum, zip(*pairs))
    return total / loads


def means_by_json(text):
    record, = (r for r in records.parse(text) if r["type"] == "mem")
    for name in ("entries", "sources"):
        yield name, [(e["latency_sum_period"], sum(e["latency_histogram_period"].values())) for e in record[name]
                     if e["source"] == "l1_hit"]


def means_by_flat(text):
    rows = [json.loads(line) for line in text.splitlines()]
    return [(row["latency_sum_period"], row["value"]) for row in rows if row.get("source") == "l1_hit"]


def means_by_pprof(path):
    profile = pprof.read(path)
    texts = profile.string_table
    return [(s.value[2], s.value[1]) for s in profile.sample
            if ("source", "l1_hit") in {(texts[label.key], texts[label.str]) for label in s.label}]


def means_by_points(text):
    found = (otlp.points(otlp.read(line), "nhmtap.latency") for line in text.splitlines())
    return [(point.sum, point.count) for line in found for labels, point in line if labels["source"] == "l1_hit"]


@pytest.mark.parametrize("way, tolerance", [("period", 0.02), ("frequency", 0.1)])
def test_every_output_has_the_mean_latency_of_the_loads_and_not_of_the_samples(guest, tmp_path, way, tolerance):
    forms = ("json", "flat", "table", "pprof", "openmetrics", "otlp")
    guest.say(f"/opt/nhmtap mem --side u --ldlat 3 {' '.join(WAYS[way])} {' '.join(f'-o {form}=out.{form}' for form in forms)}"
              " --by stack -- uneven", paranoid=-1, tag_all_loads=True)
    texts = {}
    for form in forms:
        path = guest.fetch(f"out.{form}", tmp_path)
        if form != "pprof":
            with open(path, encoding="utf-8") as file:
                texts[form] = file.read()
    means = {name: mean_of(pairs) for name, pairs in means_by_json(texts["json"])}
    means["flat"] = mean_of(means_by_flat(texts["flat"]))
    means["pprof"] = mean_of(means_by_pprof(f"{tmp_path}/out.pprof"))
    means["openmetrics"] = mean_of([[pages.total(texts["openmetrics"], f"nhmtap_latency_cycles_{kind}", source="l1_hit")
                                     for kind in ("sum", "count")]])
    means["otlp"] = mean_of(means_by_points(texts["otlp"]))
    assert all(abs(mean - means["entries"]) < 0.001 for mean in means.values()), means
    table, = re.findall(r"^l1_hit .* (\d+) +[\d,]+ +\S+$", texts["table"], re.M)
    assert int(table) == round(means["entries"])
    cycles = LOADS["thick"] * LOADS["thick.cycles"] + LOADS["thin"] * LOADS["thin.cycles"]
    assert means["entries"] == pytest.approx(cycles / (LOADS["thick"] + LOADS["thin"]), rel=tolerance), means


def test_with_a_fixed_period_each_sum_and_bucket_is_the_samples_times_the_period(guest):
    found = records.parse(guest.say("/opt/nhmtap mem --side u --ldlat 3 -c 1009 --format json -- uneven", paranoid=-1,
                                    tag_all_loads=True))
    record, = (r for r in found if r["type"] == "mem")
    distance = found[0]["events"][0]["sample_distance"]
    for entry in record["entries"] + record["sources"]:
        assert entry["latency_sum_period"] == distance * entry["latency_sum"] > 0
        assert entry["latency_histogram_period"] == {bucket: distance * n for bucket, n in entry["latency_histogram"].items()}
