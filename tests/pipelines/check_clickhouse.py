# SPDX-License-Identifier: GPL-2.0-only
"""ClickHouse takes flat lines as rows, and blocks of columns."""
import collections
import functools
import json
import re
import subprocess
import time

import manual
import native
import pytest
from puppet import command
from records import Result
from servers import PIPELINES, ClickHouse
from sessions import DAY, Session, faults, until
from test_pipelines import DASHBOARDS, dashboard


@pytest.fixture
def clickhouse(tmp_path):
    with ClickHouse(tmp_path) as one:
        one.ask((PIPELINES / "clickhouse_samples.sql").read_text())
        yield one


def url(clickhouse, table="nhmtap_samples"):
    return f"http://127.0.0.1:{clickhouse.http}/?query=INSERT+INTO+{table}+FORMAT+Native"


def answer_to(clickhouse, query):
    """The one row that a query returns."""
    row, = json.loads(clickhouse.ask(f"{query} FORMAT JSON"))["data"]
    return {name: float(value) for name, value in row.items()}


def summed(nested):
    """{symbol: samples} of a stored profile with a period of 1, "" for code without a name."""
    found = collections.Counter()
    for entry in Result(0, nested.read_text(), "").entries():
        found[entry["code"].get("symbol", "")] += entry["samples"]
    return found


def test_the_samples_of_a_profile_are_those_of_its_end_record(nhmtap, tmp_path, clickhouse):
    nested = tmp_path / "nested"
    run = nhmtap.command("profile", "-e", "page-faults", "-c", "1", "-o", nested, "-o", f"flat={tmp_path}/flat", "--",
                         *command("faults=500", "exit=0"))
    subprocess.run(run, stdout=subprocess.DEVNULL, check=True)
    for _ in range(2):  # lines that are delivered twice count once
        with open(tmp_path / "flat", encoding="utf-8") as lines:
            clickhouse.ask("INSERT INTO nhmtap FORMAT JSONEachRow", stdin=lines)
    end = Result(0, nested.read_text(), "").one("end")
    answer = answer_to(clickhouse, "SELECT sum(value) AS samples FROM nhmtap FINAL")
    assert answer["samples"] == end["samples"]["aggregated"] >= 500
    rows = clickhouse.ask((PIPELINES / "functions.sql").read_text()).splitlines()
    assert rows and rows == sorted(rows, key=lambda row: -float(row.split("\t")[2]))
    query = re.search(r"^    SELECT.*\n    .*$", manual.text_of("nhmtap.md"), re.M).group()
    told = [row.split("\t") for row in clickhouse.ask(query).splitlines()]
    assert [float(weight) for _, weight in told] == [n for _, n in summed(nested).most_common(20)]


SAMPLES = ["stream", "-e", "page-faults,context-switches", "-c", "1", "--fields", "ip,symbol,line,pid,tid,comm,cpu,period,addr,cgroup"]
SUMS = "SELECT sum(period) AS periods, sum(value) AS counts, sum(missed) AS missed, count() AS rows FROM nhmtap_samples FINAL"


def check_sums(clickhouse, nested):
    result = Result(0, nested.read_text(), "")
    samples, streams = result.of("sample"), result.of("stream")
    assert answer_to(clickhouse, SUMS) == {
        "periods": sum(r["period"] for r in samples), "counts": sum(r["value"] for r in streams), "missed": 0,
        "rows": len(samples) + len(streams)}
    return samples


def test_a_file_of_blocks_is_what_the_stream_was(nhmtap, tmp_path, clickhouse):
    nested, blocks = tmp_path / "nested", tmp_path / "blocks"
    done = nhmtap(SAMPLES[0], "-o", nested, "-o", f"clickhouse={blocks}", *SAMPLES[1:], "--", *command("faults=3000", "exit=0"))
    assert done.status == 0, done.err
    for _ in range(2):
        with open(blocks, "rb") as file:
            subprocess.run(clickhouse.client("INSERT INTO nhmtap_samples FORMAT Native"), stdin=file, check=True)
    samples = check_sums(clickhouse, nested)
    # Each row, as ClickHouse writes it in text.
    names = ["event", "ip", "address", "pid", "tid", "comm", "cpu", "period", "symbol", "module", "cgroup", "time_unix_ns"]
    columns = ", ".join(f"`{name}`" for name in names)
    told = json.loads(clickhouse.ask(f"SELECT {columns} FROM nhmtap_samples FINAL WHERE period > 0 ORDER BY seq "
                                     "FORMAT JSONCompact"))["data"]
    assert len(told) == len(samples)
    for row, sample in zip(told, samples):
        row, code = dict(zip(names, row)), sample["code"]
        assert (row["event"], int(row["ip"]), int(row["address"])) == (
            sample["event"], int(sample["ip"], 16), int(sample["address"], 16))
        assert (row["symbol"], row["module"]) == (code.get("symbol", ""), code.get("module", ""))
        assert {name: row[name] for name in ("pid", "tid", "comm", "cpu", "cgroup")}.items() <= sample.items()
        assert f"{int(row['time_unix_ns']) % 10**9:09}Z" == sample["sample_time"].rpartition(".")[2]


def test_what_is_sent_by_http_is_what_the_stream_was(nhmtap, tmp_path, clickhouse):
    nested = tmp_path / "nested"
    done = nhmtap(SAMPLES[0], "-o", nested, "-o", f"clickhouse={url(clickhouse)}", *SAMPLES[1:], "--",
                  *command("faults=30000", "exit=0"))
    assert done.status == 0, done.err
    check_sums(clickhouse, nested)


def test_the_table_of_flat_lines_takes_blocks_of_entries_and_of_counts(nhmtap, tmp_path, clickhouse):
    for words in (["stat", "-e", "page-faults,task-clock", "-M", "cpus_utilized"], ["profile", "-e", "page-faults", "-c", "1"]):
        nested = tmp_path / words[0]
        done = nhmtap(words[0], "-o", nested, "-o", f"clickhouse={url(clickhouse, 'nhmtap')}", *words[1:], "--",
                      *command("faults=500", "exit=0"))
        assert done.status == 0, done.err
    counted = answer_to(clickhouse, "SELECT sum(value) AS value FROM nhmtap WHERE activity = 'stat' AND event = 'page-faults'")
    assert counted["value"] == Result(0, (tmp_path / "stat").read_text(), "").one("count", event="page-faults")["value"]
    sampled = answer_to(clickhouse, "SELECT sum(value) AS value FROM nhmtap WHERE activity = 'profile'")
    assert sampled["value"] == Result(0, (tmp_path / "profile").read_text(), "").one("end")["samples"]["aggregated"]


def test_a_server_that_is_killed_and_comes_back_has_each_row_once(nhmtap, tmp_path, clickhouse, puppet):
    with Session(nhmtap, tmp_path, [faults("each", "profile", pid=str(puppet.pid), by="pid", interval_ms=DAY)],
                 outputs=[{}, {"format": "clickhouse", "path": url(clickhouse)}]) as session:
        for number in (10, 20, 30, 40):
            if number == 20:
                clickhouse.kill()
            if number == 40:
                clickhouse.start()
                until(clickhouse.is_ready)
            puppet.do(f"faults={number}")
            session.do("snapshot")
            if number == 10:
                until(lambda: answer_to(clickhouse, "SELECT count() AS rows FROM nhmtap_samples")["rows"] > 0)
        session.end()
    told = answer_to(clickhouse, "SELECT sum(value) AS value, sum(missed) AS missed FROM nhmtap_samples FINAL")
    assert told == {"value": 100, "missed": 0}


@pytest.mark.parametrize("name", [b'"\\\n\t', "é…\U0001f600".encode(), b"\xff\xfe", b";|`'"], ids=repr)
def test_hostile_texts_come_back_as_they_are(nhmtap, tmp_path, clickhouse, puppet, name):
    blocks = tmp_path / "blocks"
    with Session(nhmtap, tmp_path, [faults("each", "profile", pid=str(puppet.pid), by="comm")],
                 outputs=[{}, {"format": "clickhouse", "path": str(blocks)}]) as session:
        puppet.do(f"name={name.hex()}")
        puppet.do("faults=10")
        session.end()
    with open(blocks, "rb") as file:
        subprocess.run(clickhouse.client("INSERT INTO nhmtap_samples FORMAT Native"), stdin=file, check=True)
    told = clickhouse.ask("SELECT hex(comm) FROM nhmtap_samples WHERE value > 0 ORDER BY seq").split()
    assert [bytes.fromhex(text).decode() for text in told] == [
        row["comm"] for row in native.rows(blocks.read_bytes()) if row["value"] > 0]
    assert name.decode(errors="replace") in [bytes.fromhex(text).decode() for text in told]


HOURS = 3600  # of a point of a panel, in seconds


def answers_of(clickhouse, begin, **values):
    """{title of a panel: its rows}, with what Grafana would put in place of macros and variables."""
    instead = {"$__fromTime": f"toDateTime({begin})", "$__toTime": f"toDateTime({begin + 86400})", "$__interval_s": str(HOURS),
               **{f"${{{name}:singlequote}}": ",".join(f"'{value}'" for value in some) for name, some in values.items()}}
    queries = {panel["title"]: target["rawSql"] for panel in dashboard(DASHBOARDS[1])["panels"] for target in panel.get("targets", ())}
    return {title: json.loads(clickhouse.ask(functools.reduce(lambda text, old: text.replace(old, instead[old]), instead, query)
                                             + " FORMAT JSON"))["data"] for title, query in queries.items()}


def added_up(rows, value, *names):
    """The sums of a column of rows, by others that are not empty."""
    found = collections.Counter()
    for row in rows:
        found[tuple(row[name] for name in names)] += float(row[value])
    return found


def test_each_query_of_the_dashboard_has_the_values_of_the_records(nhmtap, tmp_path, clickhouse, puppet):
    begin, flat = int(time.time()), tmp_path / "flat"
    with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid), interval_ms=DAY),
                                    faults("samples", "profile", pid=str(puppet.pid), by="symbol,comm,cgroup", interval_ms=DAY)],
                 outputs=[{}, {"format": "flat", "path": str(flat)}]) as session:
        for number in (10, 20, 30):
            puppet.do(f"faults={number}")
            session.do("snapshot")
        result = session.end()
    rows = [json.loads(line) for line in flat.read_text().splitlines()]
    host = rows[0]["host.name"]
    missing = {**rows[0], "run_id": "another", "activity": "counts", "event": "page-faults", "lost": "queue_full", "missed": 7}
    missing.pop("value", None)
    for row in rows + [missing]:
        clickhouse.ask("INSERT INTO nhmtap FORMAT JSONEachRow", input=json.dumps(row))
    answers = answers_of(clickhouse, begin, host=[host, "other"], activity=["counts", "samples"])
    periods = collections.Counter()
    for entry in result.entries():
        periods[entry["comm"], entry["code"].get("symbol", ""), entry["code"].get("module", "")] += entry["period"]
    counted = sum(r["value"] for r in result.of("count"))
    assert counted == periods.total() == 60
    assert added_up(answers["Events a second"], "events", "activity", "event") == pytest.approx(
        {("counts", "page-faults"): 60 / HOURS, ("samples", "page-faults"): 60 / HOURS})
    assert added_up(answers["Functions"], "events", "comm", "symbol", "module") == periods
    cgroups = added_up(answers["Containers and cgroups"], "events", "activity", "cgroup")
    assert cgroups == {("samples", entry["cgroup"]): 60 for entry in result.entries()}
    assert [(row["cause"], float(row["missed"])) for row in answers["What is missing"]] == [("queue_full", 7)]
    told, = answers["Hosts"]
    assert (told["host.name"], int(told["rows"]), int(told["runs"])) == (host, len(rows) + 1, 2)
    assert answers_of(clickhouse, begin, host=["other"], activity=["counts"])["Events a second"] == []
    assert answers_of(clickhouse, begin + 86400, host=[host], activity=["counts"])["Hosts"] == []
