# SPDX-License-Identifier: GPL-2.0-only
"""Small consumers take nhmtap's output unchanged, and get the same values from it as the records
have."""
import json
import os
import re
import subprocess

import pytest
from jsonschema import Draft202012Validator
from puppet import command
from records import Result, parse
from servers import Server, configured, until


@pytest.fixture
def flat(nhmtap, tmp_path):
    """The path of a file with the flat lines of a run, and the same run's nested records."""
    nested, lines = tmp_path / "nested", tmp_path / "flat"
    result = nhmtap("profile", "-e", "page-faults", "-c", "1", "--by", "symbol,comm", "-o", nested, "-o",
                    f"flat={lines}", "--", *command("faults=200", "exit=0"))
    assert result.status == 0
    return lines, Result(0, nested.read_text(), "")


def said(*words, **options):
    return subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True, **options).stdout


def test_jq_sums_up_what_a_function_has(flat):
    lines, nested = flat
    answer = json.loads(said("jq", "-s", 'group_by(.symbol) | map({(.[0].symbol // "?"): map(.value) | add}) | add',
                             str(lines)))
    entries = [entry for record in nested.of("profile") for entry in record["entries"]]
    own = sum(entry["samples"] for entry in entries if entry["code"].get("symbol") == "touch")
    assert sum(answer.values()) == sum(entry["samples"] for entry in entries)
    assert answer["touch"] == own >= 200


def test_miller_sums_up_what_a_program_has(flat):
    lines, nested = flat
    answer = json.loads(said("mlr", "--ijsonl", "--ojson", "stats1", "-a", "sum", "-f", "value", "-g", "comm",
                             str(lines)))
    sums = {}
    for record in nested.of("profile"):
        for entry in record["entries"]:
            sums[entry["comm"]] = sums.get(entry["comm"], 0) + entry["samples"]
    assert {row["comm"]: row["value_sum"] for row in answer} == sums


def test_rsyslog_takes_the_lines_from_a_socket(nhmtap, tmp_path):
    path, out, nested = tmp_path / "socket", tmp_path / "values", tmp_path / "nested"
    config = configured("rsyslog.conf", tmp_path, **{"/run/nhmtap/rsyslog.socket": path,
                                                     "/var/log/nhmtap.values": out})
    with Server(tmp_path, "rsyslogd", "-n", "-f", config, "-i", tmp_path / "pid") as server:
        until(path.exists, server)
        result = nhmtap("stat", "-e", "page-faults,cs", "-I", "20", "-o", nested, "-o", f"flat=unix:{path}", "--",
                        "sh", "-c", "sleep 0.1; sleep 0.1")
        assert result.status == 0
        counts = [r for r in parse(nested.read_text()) if r["type"] == "count"]
        values = until(lambda: out.exists() and len(out.read_text().splitlines()) >= len(counts)
                       and out.read_text().splitlines(), server)
    assert sorted(values) == sorted(f"{r['event']} {r['value']}" for r in counts)


# Starts a journal of its own, which goes away with the last program in its mount namespace.
JOURNAL = """
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/journal /run/systemd/journald.conf.d
printf '[Journal]\\nStorage=volatile\\nReadKMsg=no\\n' > /run/systemd/journald.conf.d/volatile.conf
/lib/systemd/systemd-journald &
trap "kill $!" EXIT
until [ -S /run/systemd/journal/stdout ]; do sleep 0.05; done
"$@" | systemd-cat --identifier=nhmtap
journalctl --sync
journalctl --identifier=nhmtap --output=cat
"""


def test_journald_takes_the_lines_from_systemd_cat(nhmtap, tmp_path):
    run = nhmtap.command("stat", "-e", "page-faults,cs", "-I", "20", "-o", tmp_path / "nested", "-o", "flat=-", "--",
                         "sh", "-c", "sleep 0.1; sleep 0.1")
    lines = said("unshare", "--mount", "sh", "-ec", JOURNAL, "-", *map(str, run), timeout=120).splitlines()
    counts = [r for r in parse((tmp_path / "nested").read_text()) if r["type"] == "count"]
    values = [line for line in map(json.loads, lines) if "value" in line]
    assert sum(line["value"] for line in values) == sum(r["value"] for r in counts) > 0
    assert len(values) == len(counts)


HERE = os.path.dirname(os.path.abspath(__file__))


def test_prometheus_takes_the_alerts_and_each_fires_for_what_it_is_meant_for():
    said("promtool", "check", "rules", f"{HERE}/alerts.yml")
    said("promtool", "test", "rules", f"{HERE}/alerts_test.yml")


def known_metrics(text):
    """Whether the metrics that a text names exist: their names without what their kinds and units add."""
    with open(f"{HERE}/../../user/output/meters.c", encoding="utf-8") as meters:
        known = meters.read()
    named = set(re.findall(r"nhmtap_([a-z]\w*)", text)) - {"build_info"}
    bare = {re.sub("_(seconds|bytes|ratio|cycles_bucket)$", "", name.removesuffix("_total")) for name in named}
    # An activity's entries are named after it.
    return len(bare), {name for name in bare if f'"{re.sub("^profile(?=_entries)", "%s", name)}"' not in known}


def test_the_alerts_are_about_metrics_that_there_are():
    with open(f"{HERE}/alerts.yml", encoding="utf-8") as alerts:
        number, missing = known_metrics(alerts.read())
    assert number > 6 and not missing


DASHBOARDS = ["grafana.json", "grafana_clickhouse.json"]


def dashboard(name=DASHBOARDS[0]):
    with open(f"{HERE}/{name}", encoding="utf-8") as file:
        return json.load(file)


def queries():
    """The dashboard's queries, as they are for all instances and activities."""
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield re.sub(r"\$__(rate_interval|range)", "5m", target["expr"].replace('="$job"', '="nhmtap"')).replace(
                "$instance", ".*").replace("$activity", ".*")


def test_the_dashboards_queries_are_of_metrics_that_there_are(tmp_path):
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries())]
    assert len(rules) > 15 and not any("$" in rule["expr"] for rule in rules)
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    said("promtool", "check", "rules", f"{tmp_path}/rules.yml")
    number, missing = known_metrics(" ".join(queries()))
    assert number > 12 and not missing


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_has_the_form_that_grafana_documents(name):
    with open(f"{HERE}/grafana.schema.json", encoding="utf-8") as file:
        schema = json.load(file)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(dashboard(name))
    for panel in dashboard(name)["panels"]:
        references = [target["refId"] for target in panel.get("targets", ())]
        assert len(set(references)) == len(references)
    declared = {variable["name"] for variable in dashboard(name)["templating"]["list"]}
    assert set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(dashboard(name)))) == declared


@pytest.mark.parametrize("name", DASHBOARDS)
def test_the_panels_have_places_and_numbers_of_their_own(name):
    panels, taken = dashboard(name)["panels"], set()
    assert len({panel["id"] for panel in panels}) == len(panels)
    for place in (panel["gridPos"] for panel in panels):
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24
        taken |= cells
