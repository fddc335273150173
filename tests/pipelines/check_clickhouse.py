# SPDX-License-Identifier: GPL-2.0-only
"""ClickHouse takes flat lines as rows."""
import json
import subprocess

import pytest
from puppet import command
from records import Result
from servers import PIPELINES, ClickHouse


@pytest.fixture
def clickhouse(tmp_path):
    with ClickHouse(tmp_path) as one:
        yield one


def test_the_samples_of_a_profile_are_those_of_its_end_record(nhmtap, tmp_path, clickhouse):
    nested = tmp_path / "nested"
    run = nhmtap.command("profile", "-e", "page-faults", "-c", "1", "-o", nested, "-o", f"flat={tmp_path}/flat", "--",
                         *command("faults=500", "exit=0"))
    subprocess.run(run, stdout=subprocess.DEVNULL, check=True)
    for _ in range(2):  # lines that are delivered twice count once
        with open(tmp_path / "flat", encoding="utf-8") as lines:
            clickhouse.ask("INSERT INTO nhmtap FORMAT JSONEachRow", stdin=lines)
    end = Result(0, nested.read_text(), "").one("end")
    answer, = json.loads(clickhouse.ask("SELECT sum(value) AS samples FROM nhmtap FINAL FORMAT JSON"))["data"]
    assert answer["samples"] == end["samples"]["aggregated"] >= 500
    rows = clickhouse.ask((PIPELINES / "functions.sql").read_text()).splitlines()
    assert rows and rows == sorted(rows, key=lambda row: -float(row.split("\t")[2]))
