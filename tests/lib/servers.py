# SPDX-License-Identifier: GPL-2.0-only
"""Starts, queries and stops servers of other projects, such as databases, on the loopback
interface."""
import json
import os
import pathlib
import subprocess
import time
import urllib.parse
import urllib.request

from asked import free_port

PIPELINES = pathlib.Path(__file__).parents[1] / "pipelines"

CLICKHOUSE = """<yandex>
  <logger><level>warning</level><console>1</console></logger>
  <listen_host>127.0.0.1</listen_host><tcp_port>{tcp}</tcp_port><http_port>{http}</http_port>
  <interserver_http_port>{between}</interserver_http_port>
  <path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path><mark_cache_size>67108864</mark_cache_size>
  <users_config>{folder}/users.xml</users_config><default_profile>default</default_profile>
  <default_database>default</default_database>
</yandex>
"""
CLICKHOUSE_USERS = """<yandex>
  <profiles><default/></profiles><quotas><default/></quotas>
  <users><default><password/><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
  <quota>default</quota></default></users>
</yandex>
"""


def until(there, server=None, seconds=120):
    """Polls `there` until it returns a true value, and returns that. A failure shows the server's
    log."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = there()
        if found:
            return found
        assert not server or server.process.poll() is None, f"the server has ended: {server.said()}"
        time.sleep(0.05)
    raise AssertionError(f"it did not come: {server.said() if server else ''}")


def get(url, **parameters):
    """Returns the text of a page, or None if nobody answers yet."""
    query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
    try:
        with urllib.request.urlopen(url + query, timeout=240) as answer:
            return answer.read().decode()
    except OSError:
        return None


def instant(base, query):
    """Returns the values of an instant query to Prometheus' HTTP API."""
    answer = json.loads(get(f"{base}/api/v1/query", query=query) or '{"data": {"result": []}}')
    return [float(series["value"][1]) for series in answer["data"]["result"]]


def configured(name, folder, **instead):
    """Copies a configuration of tests/pipelines, or from a path, with the test's own paths and
    ports in place of the given texts. Returns the copy's path."""
    text = (PIPELINES / name).read_text()
    for old, new in instead.items():
        assert old in text, old
        text = text.replace(old, str(new))
    path = folder / pathlib.Path(name).name
    path.write_text(text)
    return path


class Server:
    """A process that runs during a with statement. Its output is in a file."""

    def __init__(self, folder, *command, **options):
        self.log = folder / f"{os.path.basename(str(command[0]))}.log"
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([*map(str, command)], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            cwd=folder, **options)

    def is_ready(self):
        return True

    def said(self):
        return self.log.read_text(encoding="utf-8", errors="replace")[-4000:]

    def __enter__(self):
        try:
            until(self.is_ready, self)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=240)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class ClickHouse(Server):
    """ClickHouse with the table of clickhouse.sql. before: a prefix for its commands, to run them
    elsewhere."""

    def __init__(self, folder, before=()):
        self.port, self.http, self.folder, self.before = free_port(), free_port(), folder, before
        (folder / "config.xml").write_text(CLICKHOUSE.format(tcp=self.port, http=self.http, between=free_port(),
                                                         folder=folder))
        (folder / "users.xml").write_text(CLICKHOUSE_USERS)
        self.start()

    def start(self):
        super().__init__(self.folder, *self.before, "clickhouse-server", f"--config-file={self.folder}/config.xml")

    def is_ready(self):
        return self.ask("SELECT 1", check=False) == "1\n"

    def __enter__(self):
        super().__enter__()
        self.ask((PIPELINES / "clickhouse.sql").read_text())
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def client(self, query):
        return [*self.before, "clickhouse-client", "--host", "127.0.0.1", "--port", str(self.port),
                "--input_format_skip_unknown_fields", "1", "--query", query]

    def ask(self, query, check=True, **options):
        with open(self.log, "a", encoding="utf-8") as log:
            answer = subprocess.run(self.client(query), stdout=subprocess.PIPE, stderr=log, check=False, text=True,
                                    **options)
        assert not check or answer.returncode == 0, self.said()
        return answer.stdout
