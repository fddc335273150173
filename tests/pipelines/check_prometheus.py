# SPDX-License-Identifier: GPL-2.0-only
"""Prometheus, node exporter and VictoriaMetrics scrape nhmtap's counts, or nhmtap pushes these to
them."""
import re

import manual
import pytest
from asked import free_port
from browser import chromium
from PIL import Image
from puppet import Puppet
from selenium.webdriver.common.by import By
from test_pipelines import queries
from servers import PIPELINES, Server, configured, get, instant, until
from sessions import Session, faults

EVENTS = 'nhmtap_events_total{activity="counts"}'


@pytest.fixture
def puppet():
    with Puppet() as one:
        yield one


def counting(nhmtap, folder, puppet, port, *outputs):
    folder.mkdir(exist_ok=True)
    return Session(nhmtap, folder, [faults("counts", "stat", pid=str(puppet.pid))],
                   listen=f"tcp:127.0.0.1:{port}", outputs=[{}, {"path": "listen", "format": "openmetrics"}, *outputs])


def scraping(tmp_path, port, node=1):
    return configured("prometheus.yml", tmp_path, **{"127.0.0.1:9464": f"127.0.0.1:{port}", "15s": "200ms",
                                                     "127.0.0.1:9100": f"127.0.0.1:{node}"})


class Prometheus(Server):
    def __init__(self, folder, port, node=1):
        own = free_port()
        self.base = f"http://127.0.0.1:{own}"
        super().__init__(folder, "prometheus", f"--config.file={scraping(folder, port, node)}",
                         f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address=127.0.0.1:{own}",
                         f"--web.console.templates={PIPELINES}")

    def is_ready(self):
        return get(f"{self.base}/-/ready")


class VictoriaMetrics(Server):
    def __init__(self, folder, *options):
        own = free_port()
        self.base = f"http://127.0.0.1:{own}"
        super().__init__(folder, "victoria-metrics", f"-storageDataPath={folder}/data",
                         f"-httpListenAddr=127.0.0.1:{own}", "-search.latencyOffset=0s", "-memory.allowedBytes=128MB",
                         *options)

    def is_ready(self):
        return get(f"{self.base}/health")


def test_prometheus_has_the_counts_and_sees_a_restart_as_a_reset(nhmtap, tmp_path, puppet):
    port = free_port()
    with Prometheus(tmp_path, port) as server:
        for which, number in (("first", 300), ("second", 200)):
            with counting(nhmtap, tmp_path / which, puppet, port) as session:
                puppet.do(f"faults={number}")
                session.do("snapshot")
                until(lambda: instant(server.base, EVENTS) == [float(number)], server)
                session.process.kill()
                session.process.wait()
        assert instant(server.base, f"resets({EVENTS}[10m])") == [1]


def test_a_console_shows_the_count_of_a_known_workload(nhmtap, tmp_path, puppet):
    port = free_port()
    with Prometheus(tmp_path, port) as server, counting(nhmtap, tmp_path / "run", puppet, port) as session:
        puppet.do("faults=4321")
        session.do("snapshot")
        until(lambda: instant(server.base, EVENTS) == [4321.0], server)
        with chromium(tmp_path / "driver.log") as browser:
            browser.get(f"{server.base}/consoles/nhmtap.html")
            row, = [row.text for row in browser.find_elements(By.TAG_NAME, "tr") if "page-faults" in row.text]
            number, = [cell for cell in browser.find_elements(By.CLASS_NAME, "number") if cell.text == "4321"]
            browser.save_screenshot(str(tmp_path / "console.png"))
            place, size = number.location, number.size
        # The number is visible: its area in the screenshot has more than one colour.
        picture = Image.open(tmp_path / "console.png").convert("L").crop(
            (place["x"], place["y"], place["x"] + size["width"], place["y"] + size["height"]))
        assert f"127.0.0.1:{port} counts page-faults 4321" in row
        assert picture.getextrema()[1] - picture.getextrema()[0] > 100


def test_prometheus_answers_each_query_of_the_dashboard(nhmtap, tmp_path, puppet):
    port = free_port()
    with Prometheus(tmp_path, port) as server, counting(nhmtap, tmp_path / "run", puppet, port) as session:
        puppet.do("faults=500")
        session.do("snapshot")
        until(lambda: instant(server.base, EVENTS) == [500.0], server)
        answers = {query: instant(server.base, query) for query in queries()}
    assert answers['sum(up{job="nhmtap"})'] == [1.0]
    assert [value for query, value in answers.items() if query.startswith("min(nhmtap_event_running_ratio")] == [[1.0]]


def test_the_manuals_query_finds_the_heaviest_functions(nhmtap, tmp_path, puppet):
    port = free_port()
    query = re.search(r"^    (topk.*)$", manual.text_of("nhmtap.md"), re.M).group(1)
    with Prometheus(tmp_path, port) as server, Session(
            nhmtap, tmp_path, [faults("profile", "profile", pid=str(puppet.pid), by="symbol")], listen=f"tcp:127.0.0.1:{port}",
            outputs=[{}, {"path": "listen", "format": "openmetrics", "series": 1000}]) as session:
        puppet.do("faults=500")
        session.do("snapshot")
        until(lambda: instant(server.base, query), server)
        puppet.do("faults=5000")
        session.do("snapshot")
        until(lambda: max(instant(server.base, query)) >= 5000, server)


def page_with(url, value):
    page = get(url) or ""
    found = any(line.startswith("nhmtap_events_total{") and line.endswith(f" {value}") for line in page.splitlines())
    return page if found else None


def test_node_exporter_passes_on_what_a_file_says(nhmtap, tmp_path, puppet):
    folder, port, node = tmp_path / "textfile", free_port(), free_port()
    folder.mkdir()
    with Server(tmp_path, "prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
                f"--collector.textfile.directory={folder}", f"--web.listen-address=127.0.0.1:{node}") as exporter:
        with counting(nhmtap, tmp_path / "run", puppet, port,
                      {"format": "prometheus", "path": f"{folder}/nhmtap.prom"}) as session:
            puppet.do("faults=300")
            session.do("snapshot")
            page = until(lambda: page_with(f"http://127.0.0.1:{node}/metrics", 300), exporter)
    assert "node_textfile_scrape_error 0" in page


def test_victoriametrics_scrapes_counts_whose_rate_is_the_streams(nhmtap, tmp_path, puppet):
    port = free_port()
    with counting(nhmtap, tmp_path / "run", puppet, port) as session:
        session.do("snapshot")
        with VictoriaMetrics(tmp_path, f"-promscrape.config={scraping(tmp_path, port)}") as server:
            until(lambda: instant(server.base, EVENTS), server)
            for number in (1000, 2000, 3000):
                puppet.do("faults=1000")
                session.do("snapshot")
                until(lambda: instant(server.base, EVENTS) == [number], server)
            session.end()
            # VictoriaMetrics answers with scraped values only after a delay.
            for query in (f"increase({EVENTS}[1h])", f"rate({EVENTS}[1h]) * (tlast_over_time({EVENTS}[1h])"
                                                     f" - tfirst_over_time({EVENTS}[1h]))"):
                until(lambda: instant(server.base, query) == [pytest.approx(3000, rel=0.01)], server)


def test_victoriametrics_takes_what_is_sent_to_it(nhmtap, tmp_path, puppet):
    with VictoriaMetrics(tmp_path) as server:
        with counting(nhmtap, tmp_path / "run", puppet, free_port(),
                      {"format": "prometheus", "path": f"{server.base}/api/v1/import/prometheus"}) as session:
            puppet.do("faults=300")
            session.do("snapshot")
            until(lambda: instant(server.base, EVENTS) == [300.0], server)
            session.end()
