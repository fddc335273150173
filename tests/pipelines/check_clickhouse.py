# SPDX-License-Identifier: GPL-2.0-only
"""ClickHouse takes flat lines as rows."""
import json
import subprocess

import pytest
from asked import free_port
from puppet import command
from records import Result
from servers import HERE, Server, until

CONFIG = """<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host><tcp_port>{tcp}</tcp_port><http_port>{http}</http_port>
  <interserver_http_port>{between}</interserver_http_port>
  <path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><mark_cache_size>67108864</mark_cache_size>
  <users_config>{folder}/users.xml</users_config><default_profile>default</default_profile>
  <default_database>default</default_database>
</yandex>
"""
USERS = """<yandex>
  <profiles><default/></profiles><quotas><default/></quotas>
  <users><default><password/><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
  <quota>default</quota></default></users>
</yandex>
"""


class ClickHouse(Server):
    def __init__(self, folder):
        self.port = free_port()
        (folder / "config.xml").write_text(CONFIG.format(tcp=self.port, http=free_port(), between=free_port(),
                                                         folder=folder))
        (folder / "users.xml").write_text(USERS)
        super().__init__(folder, "clickhouse-server", f"--config-file={folder}/config.xml")
        until(lambda: self.ask("SELECT 1", check=False) == "1\n", self.process)
        self.ask((HERE / "clickhouse.sql").read_text())

    def client(self, query):
        return ["clickhouse-client", "--host", "127.0.0.1", "--port", str(self.port),
                "--input_format_skip_unknown_fields", "1", "--query", query]

    def ask(self, query, check=True, **options):
        return subprocess.run(self.client(query), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=check,
                              text=True, **options).stdout


@pytest.fixture
def clickhouse(tmp_path):
    with ClickHouse(tmp_path) as one:
        yield one


def test_the_samples_of_a_profile_are_those_of_its_end_record(nhmtap, tmp_path, clickhouse):
    nested = tmp_path / "nested"
    run = nhmtap.command("profile", "-e", "page-faults", "-c", "1", "-o", nested, "-o", f"flat={tmp_path}/flat", "--",
                         *command("faults=500", "exit=0"))
    subprocess.run(run, stdout=subprocess.DEVNULL, check=True)
    for _ in range(2):  # what is delivered twice counts once
        with open(tmp_path / "flat", encoding="utf-8") as lines:
            clickhouse.ask("INSERT INTO nhmtap FORMAT JSONEachRow", stdin=lines)
    end = Result(0, nested.read_text(), "").one("end")
    answer, = json.loads(clickhouse.ask("SELECT sum(value) AS samples FROM nhmtap FINAL FORMAT JSON"))["data"]
    assert answer["samples"] == end["samples"]["aggregated"] >= 500
    rows = clickhouse.ask((HERE / "functions.sql").read_text()).splitlines()
    assert rows and rows == sorted(rows, key=lambda row: -float(row.split("\t")[2]))
