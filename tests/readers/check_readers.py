# SPDX-License-Identifier: GPL-2.0-only
"""Readers that nobody here wrote take what nhmtap writes, and have the records' sums. They are npm's: make check-readers."""
import base64
import collections
import copy
import functools
import http.server
import json
import os
import pathlib
import subprocess
import threading

import pytest
import speedscope as documents
import yaml
from puppet import command
from records import NHMTAP, Result, program
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

HERE = pathlib.Path(__file__).parent
MODULES = pathlib.Path(os.environ["NHMTAP_READERS"]) / "node_modules"
IMAGE = HERE / "../../user/packaging/image"
EVERY_FAULT = ["-e", "page-faults", "-c", "1"]
CALLS = [os.path.abspath(program("calls")), "graph=300", "deep=20,50", "plain=30"]

pytest_plugins = "browser"
pytestmark = pytest.mark.xdist_group("readers")


def node(script, given):
    done = subprocess.run(["node", HERE / script], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- axe-core ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The pages that nhmtap makes, of runs with samples, stacks, counts and times."""
    folder = tmp_path_factory.mktemp("pages")
    for name in "ab":
        subprocess.run([NHMTAP, "profile", "-g", "-I", "20", "-o", folder / f"{name}.jsonl", "--", *CALLS], check=True)
        subprocess.run([NHMTAP, "stat", "-I", "20", "-o", folder / f"counts-{name}.jsonl", "--", *command("spin=60", "exit=0")], check=True)
    for name, words in (("report", ["report", "a"]), ("counts", ["report", "counts-a"]), ("both", ["report", "a", "b"]),
                        ("both-counts", ["report", "counts-a", "counts-b"]), ("flame", ["flamegraph", "a"]), ("flames", ["flamegraph", "a", "b"])):
        subprocess.run([NHMTAP, words[0], "-o", folder / f"{name}.html", *(folder / f"{word}.jsonl" for word in words[1:])], check=True)
    return folder


def violations(driver):
    """What axe-core finds, each with the first place."""
    driver.execute_script((MODULES / "axe-core/axe.min.js").read_text(encoding="utf-8"))
    found = driver.execute_async_script("axe.run().then(arguments[0])")
    assert len(found["passes"]) > 5
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found["violations"]]


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("name", ["report", "counts", "both", "both-counts", "flame", "flames"])
def test_axe_finds_no_violation(driver, pages, name, colours, width):
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": colours}]})
    driver.set_window_size(width, 800)
    driver.get(f"file://{pages}/{name}.html")
    assert violations(driver) == []


def test_axe_finds_what_is_wrong(driver, pages):
    driver.get(f"file://{pages}/report.html")
    driver.execute_script("document.body.append(document.createElement('button'))")
    assert "button-name" in dict(violations(driver))


# --- speedscope -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def speedscope():
    """The URL of speedscope's own page, which has to be served."""
    handler = functools.partial(type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None}),
                                directory=MODULES / "speedscope/dist/release")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/index.html"
        server.shutdown()


def own_weights(driver, wanted):
    """The functions of the table, to which 3 leads, and their own weights, as soon as it has the wanted one."""
    driver.find_element(By.TAG_NAME, "body").send_keys("3")
    rows = driver.execute_script("return [...document.querySelectorAll('tr')].map(row => [...row.cells].map(cell => cell.innerText))")
    found = collections.Counter()  # functions of one name in several files have a row each
    for cells in rows:
        if len(cells) == 3 and cells[1].endswith("%)"):
            found[cells[2]] += int(cells[1].split()[0].replace(",", ""))
    return wanted in found and found


def touching(nested):
    """The numbers of the frames in touch(), which makes the faults and inlines nothing."""
    return {frame["id"] for record in Result(0, nested.read_text(), "").of("frames") for frame in record["frames"]
            if frame.get("symbol") == "touch"}


def test_speedscope_opens_a_profile_and_has_its_sums(driver, speedscope, nhmtap, tmp_path):
    """Its view "sandwich" is a table of the functions with their total and own weights."""
    nested, document = tmp_path / "nested", tmp_path / "x.speedscope.json"
    assert nhmtap("profile", "-g", *EVERY_FAULT, "-o", nested, "-o", f"speedscope={document}", "--", *CALLS).status == 0
    driver.set_window_size(1200, 900)
    driver.get(speedscope + "#localProfilePath=none")
    WebDriverWait(driver, 60).until(lambda d: d.execute_script("return typeof window.speedscope === 'object'"))
    driver.execute_script("window.speedscope.loadFileFromBase64('x.speedscope.json', arguments[0])", base64.b64encode(document.read_bytes()).decode())
    WebDriverWait(driver, 60).until(lambda d: d.title.endswith(" - speedscope"))
    touched = sum(entry["samples"] for record in Result(0, nested.read_text(), "").of("profile") for entry in record["entries"]
                  if entry["stack"][0] in touching(nested))
    expected = collections.Counter()
    for stack, weight in documents.stacks(documents.read(document), "samples"):
        expected[stack[-1]] += weight
    own = WebDriverWait(driver, 60).until(lambda d: own_weights(d, "touch"))
    assert own["touch"] == expected["touch"] == touched >= 900
    assert len(own) > 5 and {name: weight for name, weight in own.items() if weight != expected[name]} == {}


# --- OpenTelemetry ----------------------------------------------------------------------------------


def named(value):
    """All members' names."""
    if isinstance(value, dict):
        return set(value).union(*map(named, value.values()))
    return set().union(*map(named, value)) if isinstance(value, list) else set()


def test_opentelemetrys_messages_have_all_members_and_the_sums(nhmtap, tmp_path):
    nested, metrics = tmp_path / "nested", tmp_path / "metrics"
    assert nhmtap("stat", "-e", "page-faults,task-clock", "-I", "30", "-o", nested, "-o", f"otlp={metrics}", "--",
                  *command("faults=300", "spin=100", "faults=200", "exit=0")).status == 0
    counted, read_back = collections.Counter(), collections.Counter()
    for record in Result(0, nested.read_text(), "").of("count"):
        counted[record["event"]] += record["value"]
    for line in metrics.read_text().splitlines():
        read = node("decode.cjs", line)
        assert named(read) == named(json.loads(line)), "a member that the definitions lack is dropped"
        for metric in read["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]:
            for point in metric.get("sum", {}).get("dataPoints", ()):
                labels = {one["key"]: one["value"]["stringValue"] for one in point.get("attributes", ())}
                if metric["name"] == "nhmtap.events":
                    read_back[labels["event"]] += int(point.get("asInt", 0))
    assert counted["page-faults"] >= 500 and read_back == counted


# --- Kubernetes -------------------------------------------------------------------------------------


def manifests():
    return [one for name in ("daemonset.yaml", "sidecar.yaml") for one in yaml.safe_load_all((IMAGE / name).read_text(encoding="utf-8"))]


def test_kubernetes_own_schemas_take_the_manifests():
    objects = manifests()
    assert {one["kind"] for one in objects} == {"ConfigMap", "DaemonSet", "Pod"}
    assert node("validate.cjs", json.dumps(objects)) == [""] * len(objects)


@pytest.mark.parametrize("change", [
    lambda pod: pod["containers"][0]["securityContext"]["capabilities"].update(add="PERFMON"),
    lambda pod: pod["containers"][0].pop("name"),
    lambda pod: pod["containers"][0]["resources"]["limits"].update(memory=["64Mi"]),
    lambda pod: pod["volumes"][0].pop("name")])
def test_kubernetes_own_schemas_refuse_a_manifest_that_is_wrong(change):
    daemonset, = [copy.deepcopy(one) for one in manifests() if one["kind"] == "DaemonSet"]
    change(daemonset["spec"]["template"]["spec"])
    wrong, = node("validate.cjs", json.dumps([daemonset]))
    assert wrong
