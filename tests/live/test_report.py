# SPDX-License-Identifier: GPL-2.0-only
"""The page that report makes, used in a browser. The streams are made here, so what it has to show is known."""
import base64
import hashlib
import json
import math
import os
import re
import subprocess
import sys

import pytest
from records import NHMTAP
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

pytest_plugins = "browser"
pytestmark = pytest.mark.xdist_group("browser")

HOSTILE = "</script><script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">\u202egnp'\"&"
NAMES = ["main", "early", "late", HOSTILE, "y" * 10000]


def record(kind, second=0, **members):
    return {"type": kind, "schema_version": "3.5.0", "run_id": "0" * 32, "time": "2026-01-31T23:59:59.000000000Z",
            **({"start_time": f"2026-01-31T23:00:{second:02}.000000000Z", "duration_ns": 1000000000} if second is not None else {}),
            **members}


def start(**host):
    return record("start", None, command="profile", version="0.1.0", resource={"host.name": "here"}, target={"process.command_args": ["demo", HOSTILE]},
                  host={"cpu": {"model_name": "X5570"}, "kernel": "6.1.0", **host})


def end():
    return record("end", None, reason="exited", command={"pid": 1})


def stacks(second, lost=0, **counts):
    entries = [{"stack": [i for i, name in enumerate(NAMES) if name == inner or inner == f"n{i}"][:1] + [0], "comm": "demo",
                "samples": n, "period": n} for inner, n in counts.items()]
    total = sum(counts.values())
    return [record("frames", second, event="cpu-clock", frames=[{"id": i, "symbol": name, "module": "/opt/demo"} for i, name in enumerate(NAMES)]),
            record("profile", second, event="cpu-clock", value=total, enabled_ns=1, running_ns=1, entries=entries,
                   samples={"expected": total + lost, "aggregated": total, "lost": {"table_full": lost}})]


def count(second, name, value, **members):
    return record("count", second, event=name, status="counted", value=value, scaled=value, enabled_ns=1, running_ns=1, **members)


def bounded(value, by):
    return {"bound": {"level": .95, "low": value - by, "high": value + by, "readings": 9}}


def loads(second):
    source = {"source": "local_dram", "samples": 8, "period": 80, "latency_sum_period": 16000, "latency_max": 300,
              "latency_histogram_period": {"128": 60, "256": 20}}
    return record("mem", second, event="load-latency", value=80, enabled_ns=1, running_ns=1, sources=[source], entries=[],
                  samples={"expected": 8, "aggregated": 8, "lost": {}})


EVERYTHING = [
    start(emulated={"model": "ep", "version": "abc"}), *stacks(0, early=90, late=10), *stacks(1, lost=20, late=70, n3=20, n4=10),
    *(count(second, "loads", 100 * second) for second in range(4)), loads(0), loads(1),
    record("shared_line", 0, event="load-latency", cacheline="0x1000", loads=5, stores=4, period=90, modified=3, readers=2, writers=1,
           entries=[{"access": "load", "code": {"symbol": HOSTILE}, "samples": 1}]),
    record("offcore", 0, cells=[{"request": "DEMAND_DATA_RD", "response": "LLC_MISS", "status": "counted", "value": 1234, "scaled": 1234}]),
    record("branch", 0, event="branches", value=7, enabled_ns=1, running_ns=1, samples={"expected": 1, "aggregated": 1, "lost": {}},
           entries=[{"kind": "edge", "from": {"symbol": "loop"}, "to": {"symbol": HOSTILE}, "count": 7, "period": 70,
                     "mispredicted": 1, "mispredicted_period": 7}]),
    record("analysis", 0, whole="cycles", verdict=[{"name": "memory_bound"}], shares=[
        {"name": "cycles", "description": "all", "share": 1.0, "low": 1.0, "high": 1.0},
        {"name": "memory_bound", "description": "waits", "parent": "cycles", "share": .5, "low": .25, "high": .75}]),
    end()]

# An analysis in two parts, as most are: what a share is a part of is in the first, what is its part in the second.
IN_PARTS = [
    record("analysis", 0, whole="cycles", part=1, parts=2, verdict=[{"name": "dram_bound"}], shares=[
        {"name": "cycles", "share": 1.0, "low": 1.0, "high": 1.0},
        {"name": "stalled", "parent": "cycles", "share": .9, "low": .9, "high": .9},
        {"name": "memory_bound", "parent": "stalled", "share": .7, "low": .5, "high": .8}]),
    record("analysis", 0, whole="cycles", part=2, parts=2, shares=[
        {"name": "dram_bound", "parent": "memory_bound", "share": .6, "low": .5, "high": .7, "where": [
            {"symbol": "chase", "module": "/opt/demo", "file": "/src/chase.c", "line": 7, "share": .75}, {"symbol": HOSTILE, "share": .25}]},
        {"name": "branch_mispredicts", "parent": "stalled", "share": .1, "low": .1, "high": .1, "where": [
            {"symbol": "turn", "share": 1.0, "to": {"symbol": "end"}}]}])]


def text_of(records):
    return "".join(json.dumps({**record, "seq": seq}) + "\n" for seq, record in enumerate(records))


def page(folder, *streams):
    paths = []
    for nr, stream in enumerate(streams):
        paths.append(folder / f"{'ab'[nr]}.jsonl")
        paths[-1].write_text(stream if isinstance(stream, str) else text_of(stream))
    done = subprocess.run([NHMTAP, "report", "-o", folder / "page.html", *paths], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return folder / "page.html"


@pytest.fixture
def opened(driver, tmp_path):
    def run(*streams):
        driver.get("about:blank")
        driver.get_log("browser")
        driver.get(f"file://{page(tmp_path, *(streams or [EVERYTHING]))}")
        return driver
    return run


def section(driver, name):
    return driver.find_element(By.ID, name).text


def rows(driver, name):
    return driver.execute_script("""return [...document.querySelectorAll("#" + arguments[0] + " tbody tr")].map(
        row => [row.className, ...[...row.cells].map(cell => cell.textContent)])""", name)


def shares(driver):
    return {row[-1]: row[1] for row in rows(driver, "functions")}


def test_a_branch_is_of_the_function_that_it_leaves_and_not_of_where_its_stack_ends(opened):
    """The first stack ends in the function whose branch it is, the second where the interrupt came, a function without a branch."""
    entries = [{"kind": "edge", "comm": "demo", "stack": stack, "from": {"symbol": name}, "to": {"symbol": name}, "count": n, "period": n}
               for stack, name, n in (([1, 0], "work", 70), ([2, 1, 0], "other", 30))]
    driver = opened([start(), record("frames", event="taken", frames=[{"id": i, "symbol": name} for i, name in enumerate(("main", "work", "step"))]),
                     record("branch", event="taken", value=100, enabled_ns=1, running_ns=1, entries=entries,
                            samples={"expected": 2, "aggregated": 2, "lost": {}}), end()])
    found = {row[-1]: (row[1], row[3]) for row in rows(driver, "functions")}
    assert found.pop("demo") == ("0.0 %", "100.0 %")  # the owner
    assert found == {"work": ("70.0 %", "100.0 %"), "other": ("30.0 %", "30.0 %"), "main": ("0.0 %", "100.0 %"), "step": ("0.0 %", "30.0 %")}


def test_everything_that_the_records_have_is_on_the_page(opened):
    driver = opened()
    assert "emulated (ep, version abc)" in section(driver, "what") and "X5570" in section(driver, "what")
    assert "20 of 220 expected samples are missing (9.1 %): table_full 20" in section(driver, "trust")
    assert ["", "600", "loads"] in rows(driver, "counts")
    assert ["", "16", "100.0 %", "200", "300", "local_dram"] in rows(driver, "latency")
    assert ["", "0x1000", "5", "4", "3", "2", "1", "0"] == rows(driver, "lines")[0][:8]
    assert ["", "DEMAND_DATA_RD", "1.234 K"] in rows(driver, "offcore")
    assert ["", "7", "10.0 %", "loop"] == rows(driver, "branches")[0][:4]
    assert "50.0 %" in section(driver, "cycles") and "25.0 to 75.0" in section(driver, "cycles") and "The largest is memory_bound" in section(driver, "cycles")
    assert len(driver.find_elements(By.CSS_SELECTOR, "#latency rect.cell")) == 4
    assert len(driver.find_elements(By.CSS_SELECTOR, "#counts path.line")) == 1


def test_counts_of_one_event_stay_apart(opened):
    counts = [count(second, "page-faults", 10 * nth, nth=nth) for second in (0, 1) for nth in (1, 2)]
    driver = opened([start(), *counts, end()])
    assert {(row[-1], row[1]) for row in rows(driver, "counts")} == {("page-faults 1", "20"), ("page-faults 2", "40")}


def test_functions_and_the_flame_graph_are_those_of_the_chosen_time(opened):
    driver = opened()
    assert (shares(driver)["early"], shares(driver)["late"]) == ("45.0 %", "40.0 %")
    slider = driver.find_element(By.ID, "from")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert "early" not in shares(driver) and shares(driver)["late"] == "70.0 %"
    drawn = [frame.get_attribute("aria-label") for frame in driver.find_elements(By.CLASS_NAME, "frame")]
    assert "late, 70.0 %" in drawn and not any(name.startswith("early") for name in drawn)
    driver.find_element(By.ID, "all").click()
    assert shares(driver)["early"] == "45.0 %"


def test_the_flame_graph_is_used_by_keys_and_clicks(opened):
    driver = opened()
    focused = lambda: driver.execute_script("return document.activeElement.getAttribute('aria-label')")
    driver.find_element(By.CSS_SELECTOR, ".frame[tabindex='0']").send_keys(Keys.ARROW_DOWN)
    driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    assert focused().startswith("</script>")
    driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert focused().startswith("early")
    driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert focused().startswith("late")
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    frames = [frame.get_attribute("aria-label").split(",")[0] for frame in driver.find_elements(By.CLASS_NAME, "frame")]
    assert frames == ["all", "demo", "main", "late"] and focused().startswith("late")
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert len(driver.find_elements(By.CLASS_NAME, "frame")) == 7


def test_names_run_nothing_and_are_shown(opened):
    driver = opened()
    assert driver.title != "broken" and HOSTILE.replace("\u202e", r"\u202e") in shares(driver)
    assert r"\u202e" in driver.title
    assert "\u202e" not in driver.find_element(By.TAG_NAME, "main").text
    assert any(name.startswith("yyy") and name.endswith("…") and len(name) < 400 for name in shares(driver))
    assert driver.execute_script("return document.images.length") == 0
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
    driver.execute_script("""const made = document.createElement("script"); made.textContent = "document.title = 'broken'"; document.body.append(made);""")
    assert driver.title != "broken", "the policy lets no other script run"


def labelled(driver, label):
    """The cells of the rows of a table, by its label."""
    return driver.execute_script("""return [...document.querySelectorAll(`[aria-label="${arguments[0]}"] tbody tr`)].map(
        row => [...row.cells].map(cell => cell.textContent))""", label)


def test_shares_in_several_parts_are_one_tree_and_have_their_places(opened):
    seen = opened([start(), *IN_PARTS, end()])
    depths = {row[0].strip("\u00a0"): row[0].count("\u00a0") // 4 for row in labelled(seen, "Shares of the cycles")}
    assert depths == {"cycles": 0, "stalled": 1, "memory_bound": 2, "dram_bound": 3, "branch_mispredicts": 2}
    chase, hostile, turn = labelled(seen, "Code of the shares")
    assert chase == ["dram_bound", "75.0 %", "chase (demo) chase.c:7", ""] and turn == ["branch_mispredicts", "100.0 %", "turn", "end"]
    assert hostile[:2] == ["dram_bound", "25.0 %"] and "<script>" in hostile[2]
    both = opened([start(), *IN_PARTS, end()], [start(), *IN_PARTS, end()])
    assert [row[1] for row in labelled(both, "Code of the shares")] == [*"AAABBB"]


def test_what_only_one_of_two_streams_has_is_no_empty_table_of_the_other(opened):
    seen = opened([start(), loads(0), end()], [start(), count(0, "loads", 7), end()])
    section = seen.find_element("id", "latency")
    assert len(section.find_elements("css selector", "table")) == 1
    assert section.text.count("None in these records.") == 1


def test_the_page_asks_for_nothing(opened):
    driver = opened()
    driver.get_log("performance")
    driver.refresh()
    asked = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = [one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"]
    assert all(url.startswith(("file://", "data:")) for url in urls)


def test_two_streams_are_compared_and_what_is_within_bounds_is_grey(opened):
    first = [start(), *stacks(0, early=400, late=100), count(0, "loads", 100, **bounded(100, 10)), count(0, "faults", 5), end()]
    second = [start(), *stacks(0, early=404, late=200), count(0, "loads", 105, **bounded(105, 10)), count(0, "faults", 6), end()]
    driver = opened(first, second)
    found = {row[-1]: row for row in rows(driver, "functions")}
    assert found["early"][0] == "same" and found["early"][3] == "+1.0 %" and float(found["early"][5]) > .5
    assert found["late"][0] == "" and found["late"][3] == "+100.0 %" and found["late"][5] == "< 0.001"
    counts = {row[-1]: row for row in rows(driver, "counts")}
    assert counts["loads"][0] == "same" and counts["loads"][5:8] == ["+5.0 %", "14.1", "0.488"]
    assert counts["faults"][0] == "" and counts["faults"][7] == "exact"


def two_sided(z):
    """The part of a normal distribution beyond z standard deviations, on both sides."""
    return math.erfc(abs(z) / math.sqrt(2))


def near(shown, p):
    """As far as three decimals tell."""
    return p < .0011 if shown == "< 0.001" else abs(float(shown) - p) < .002


PAIRS = {"f0": (400, 404), "f1": (100, 130), "f2": (100, 120), "f3": (1000, 1090), "f4": (12, 3), "f5": (0, 4), "f6": (3, 0), "f7": (50, 50)}


def of_pairs(which, last=None):
    entries = [{"comm": "demo", "samples": pair[which], "period": 1000 * pair[which], "code": {"symbol": name, "module": "/opt/demo"}}
               for name, pair in PAIRS.items() if pair[which]]
    total = sum(entry["samples"] for entry in entries)
    return [start(), record("profile", 0, event="cpu-clock", value=1000 * total, enabled_ns=1, running_ns=1, entries=entries,
                            samples={"expected": total, "aggregated": total, "lost": {}}), *([end()] if last is None else [last])]


def test_the_bounds_and_the_chance_of_amounts_are_those_of_two_poisson_counts(opened):
    found = {row[-1]: row for row in rows(opened(of_pairs(0), of_pairs(1)), "functions")}
    for name, (first, second) in PAIRS.items():
        grey, *_, change, bound, p, _ = found[name]
        z = (second - first) / math.sqrt(first + second)
        assert near(p, two_sided(z)) and (grey == "same") == (two_sided(z) > .05), (name, p, two_sided(z))
        if first:
            assert change == f"{100 * (second - first) / first:+.1f} %".replace("+0.0", "0.0"), name
            assert float(bound) == pytest.approx(196 * math.sqrt(first + second) / first, abs=.051)


def test_the_chance_of_shares_is_that_of_two_proportions(opened):
    """Neither stream is a whole run, so shares are compared. The bounds are to the farther ends of Wilson's intervals: the
    chance is up to a third larger than the z-test's, and not smaller."""
    stopped = record("end", None, reason="duration")
    found = {row[-1]: row for row in rows(opened(of_pairs(0, stopped), of_pairs(1, stopped)), "functions")}
    totals = [sum(pair[which] for pair in PAIRS.values()) for which in (0, 1)]
    for name, pair in PAIRS.items():
        if min(pair) < 10:
            continue
        shares = [pair[which] / totals[which] for which in (0, 1)]
        pooled = sum(pair) / sum(totals)
        z = (shares[1] - shares[0]) / math.sqrt(pooled * (1 - pooled) * sum(1 / total for total in totals))
        grey, *_, points, _, p, _ = found[name]
        assert points == f"{100 * (shares[1] - shares[0]):+.1f}".replace("+0.0", "0.0"), name
        exact = two_sided(z)
        assert exact - .005 < float(p) < 1.3 * exact + .01 and (grey == "same") == (float(p) > .05), (name, p, exact)


def places(second, **counts):
    """Samples of functions by their names, and of /opt/demo's code by places as long as its names were not read."""
    code = {"module": "/opt/demo"}
    return record("profile", second, event="cpu-clock", value=sum(counts.values()), enabled_ns=1, running_ns=1,
                  entries=[{"comm": "demo", "samples": n, "period": n,
                            "code": {**code, "offset": name} if name.startswith("0x") else {**code, "symbol": name}} for name, n in counts.items()],
                  samples={"expected": sum(counts.values()), "aggregated": sum(counts.values()), "lost": {}})


def test_what_had_no_name_yet_is_not_compared_and_makes_no_difference(opened):
    driver = opened([start(), places(0, **{"0x10": 200, "0x20": 200}), places(1, early=400, late=100), end()],
                    [start(), places(0, early=800, late=100), places(1, late=600), end()])
    found = {row[-1]: row for row in rows(driver, "functions")}
    assert set(found) == {"early", "late"}
    assert found["early"][0] == "same" and found["early"][3] == "+100.0 %" and float(found["early"][4]) > 100 and found["early"][5] == "1.000"
    assert found["late"][0] == "" and found["late"][5] == "< 0.001", "600 more are not the 400"
    assert "44.4 % of A and 0.0 % of B are of functions whose names were not read yet" in section(driver, "functions")


def test_late_names_of_one_file_put_functions_of_others_in_no_doubt_however_many_files_there_are(opened):
    """1,100 files have one function each, which has a sample, and are read before the file whose names are late."""
    many = record("profile", 0, event="cpu-clock", value=1100, enabled_ns=1, running_ns=1, entries=[
        {"comm": "demo", "samples": 1, "period": 1, "code": {"module": f"/opt/lib{i}.so", "symbol": f"f{i}"}} for i in range(1100)],
        samples={"expected": 1100, "aggregated": 1100, "lost": {}})
    other = record("profile", 2, event="cpu-clock", value=400, enabled_ns=1, running_ns=1, samples={"expected": 400, "aggregated": 400, "lost": {}},
                   entries=[{"comm": "demo", "samples": 400, "period": 400, "code": {"module": "/opt/other", "symbol": "other"}}])
    twice = {**other, "entries": [{**other["entries"][0], "samples": 800, "period": 800}]}
    driver = opened([start(), many, places(1, **{"0x10": 200, "0x20": 200}), other, end()], [start(), many, places(1, early=400), twice, end()])
    found = {row[-1]: row for row in rows(driver, "functions")}
    assert not any("+0x" in name for name in found)
    assert found["early"][0] == "same", "these may be the 400"
    assert found["other"][0] == "" and found["other"][3] == "+100.0 %" and float(found["other"][4]) < 20 and found["other"][5] == "< 0.001"


def test_late_names_of_many_files_make_no_large_page(tmp_path):
    """nhmtap-report(1): at most 5 MB, however large the records are."""
    def of(**code):
        return [record("profile", i, event="cpu-clock", value=1, enabled_ns=1, running_ns=1, samples={"expected": 1, "aggregated": 1, "lost": {}},
                       entries=[{"comm": "demo", "samples": 1, "period": 1, "code": {"module": f"/opt/{i}" + 4000 * "x", **code}}])
                for i in range(1500)]
    assert os.path.getsize(page(tmp_path, [start(), *of(symbol="main"), end()], [start(), *of(offset="0x10"), end()])) < 5e6


def test_late_names_put_a_function_in_doubt_that_has_the_name_of_one_of_another_file(opened):
    """Both files have a main(), one of which has only places in the second stream."""
    frames = record("frames", 0, event="cpu-clock", frames=[
        {"id": 0, "symbol": "main", "module": "/opt/demo"}, {"id": 1, "symbol": "main", "module": "/opt/other"},
        {"id": 2, "module": "/opt/other", "offset": "0x10"}])

    def of(*ids):
        return record("profile", 0, event="cpu-clock", value=800, enabled_ns=1, running_ns=1, samples={"expected": 800, "aggregated": 800, "lost": {}},
                      entries=[{"stack": [i], "comm": "demo", "samples": 400, "period": 400} for i in ids])
    driver = opened([start(), frames, of(0, 1), end()], [start(), frames, of(0, 2), end()])
    found = {row[-1]: row for row in rows(driver, "functions")}
    assert set(found) == {"main"} and found["main"][0] == "same" and found["main"][3] == "-50.0 %"


def test_functions_that_are_known_by_their_bounds_are_not_compared_with_places(opened):
    """A stripped file has an unwind table, which is read late as names are."""
    bounded_code = {**places(0, **{"0x30": 400})["entries"][0], "code": {"module": "/opt/demo", "offset": "0x30", "function_offset": "0x10"}}
    known = {**places(0, **{"0x30": 400}), "entries": [bounded_code]}
    driver = opened([start(), places(0, **{"0x20": 400}), end()], [start(), known, end()])
    assert {row[-1]: row[0] for row in rows(driver, "functions")} == {"[demo+0x10]": "same"}


def test_places_in_a_file_without_any_names_are_compared(opened):
    driver = opened([start(), places(0, **{"0x10": 100, "0x20": 100}), end()], [start(), places(0, **{"0x10": 300, "0x20": 100}), end()])
    found = {row[-1]: row for row in rows(driver, "functions")}
    assert found["demo+0x10"][0] == "" and found["demo+0x10"][3] == "+200.0 %" and found["demo+0x20"][0] == "same"


def test_an_event_that_one_stream_has_not_sampled_has_no_difference(opened):
    driver = opened([start(), *stacks(0, early=400), end()], [start(), count(0, "faults", 6), end()])
    assert rows(driver, "functions")[0] == ["", "100.0 %", "not sampled", "early"]


def test_addresses_without_a_name_are_told_of_each_stream(opened):
    lacking = {**end(), "names": {"named": 1, "unnamed": {"no_time": 3}}}
    driver = opened([start(), *stacks(0, early=90), end()], [start(), *stacks(0, early=90), lacking])
    first, second = section(driver, "trust").split("b.jsonl")
    assert "3 of 4 code addresses had no function name when they were recorded: there was no time left" in second
    assert "no function name" not in first


def test_a_comparison_leaves_out_what_neither_stream_has_samples_of(opened):
    driver = opened([start(), *stacks(0, early=90), end()], [start(), *stacks(0, early=100), end()])
    assert [row[-1] for row in rows(driver, "functions")] == ["early"]  # main only calls it


def test_frames_have_the_colours_of_the_page_that_flamegraph_makes(opened, tmp_path):
    """The kernel's are blue, the program's are yellow to red, and what is no code is grey."""
    frames = [{"id": 0, "symbol": "main", "module": "/opt/demo"}, {"id": 1, "symbol": "work", "module": "/opt/demo"},
              {"id": 2, "symbol": "vfs_write", "module": "[kernel]", "address": "0xffffffff81001234"}]
    stream = [start(), record("frames", 0, event="cpu-clock", frames=frames),
              record("profile", 0, event="cpu-clock", value=3, enabled_ns=1, running_ns=1, samples={"expected": 3, "aggregated": 3, "lost": {}},
                     entries=[{"stack": [2, 1, 0], "comm": "demo", "samples": 2, "period": 2},
                              {"stack": [1, 0], "comm": "demo", "samples": 1, "period": 1}]), end()]
    colours = """return Object.fromEntries([...document.querySelectorAll(".frame")].map(
        frame => [frame.getAttribute("aria-label").split(",")[0], getComputedStyle(frame).backgroundColor]))"""
    driver = opened(stream)
    assert "vfs_write, kernel, 66.7 %" in [frame.get_attribute("aria-label") for frame in driver.find_elements(By.CLASS_NAME, "frame")]
    found = driver.execute_script(colours)
    for name, hue in {"vfs_write": "blue", "main": "red", "work": "red", "demo": "grey", "all": "grey"}.items():
        red, _, blue = components = [int(part) for part in re.findall(r"\d+", found[name])]
        assert hue == ("grey" if max(components) - min(components) < 20 else "red" if red > blue else "blue"), name
    done = subprocess.run([NHMTAP, "flamegraph", "-o", tmp_path / "flame.html", tmp_path / "a.jsonl"], check=False)
    assert done.returncode == 0
    driver.get(f"file://{tmp_path}/flame.html")
    assert driver.execute_script(colours) == found


def test_the_page_begins_with_an_event_that_has_stacks_and_leaves_out_empty_columns(opened):
    driver = opened([start(), loads(0), *stacks(0, early=90), count(0, "loads", 7), end()])
    assert driver.find_element(By.CSS_SELECTOR, "#flame .frame") and shares(driver)["early"] == "100.0 %"
    headings = [th.text for th in driver.find_elements(By.CSS_SELECTOR, "#counts th")]
    assert headings == ["value", "name"]


def test_activities_of_a_session_are_listed_with_the_command_once(opened):
    session = {**start(), "command": "run", "target": {}}
    driver = opened([session, start(), {**start(), "command": "mem"}, *stacks(0, early=9), end()])
    what = section(driver, "what")
    assert "nhmtap profile; nhmtap mem" in what and what.count("demo") == 1


def test_single_samples_are_on_the_page(opened):
    samples = [record("sample", None, event="page-faults", sample_time=f"2026-01-31T23:00:{n:02}.000000000Z", comm="demo",
                      stack=[{"symbol": "early" if n < 3 else "late"}, {"symbol": "main"}], period=1) for n in range(4)]
    driver = opened([start(), *samples, end()])
    assert (shares(driver)["early"], shares(driver)["late"]) == ("75.0 %", "25.0 %")


def test_light_and_dark_can_be_switched(opened):
    driver = opened()
    colour = lambda: driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    before = colour()
    driver.find_element(By.ID, "theme").click()
    assert colour() != before
    schemes = [driver.execute_script("return getComputedStyle(document.documentElement).colorScheme")]
    driver.find_element(By.ID, "theme").click()
    schemes.append(driver.execute_script("return getComputedStyle(document.documentElement).colorScheme"))
    assert sorted(schemes) == ["dark", "light"], "scrollbars and fields go with the page"


def test_a_count_that_is_always_0_has_0_at_its_chart(opened):
    driver = opened([start(), *(count(second, name, value) for second in range(3) for name, value in (("faults", 0), ("loads", 5))), end()])
    assert [label.text for label in driver.find_elements(By.CSS_SELECTOR, "#counts svg text")] == ["0", "5"]


@pytest.mark.parametrize("command, called", [("run", "activities"), ("profile", "further runs")])
def test_activities_of_a_session_are_no_further_runs(opened, command, called):
    first, second = {**start(), "command": command}, {**start(), "command": "mem", "activity": "loads"}
    cells = opened([first, second, *stacks(0, early=9), end()]).find_elements(By.CSS_SELECTOR, "#what tr")
    assert f"{called} nhmtap mem" in [row.text for row in cells]


def test_sources_of_loads_are_in_the_order_of_their_shares(opened):
    few, many = ({**loads(0)["sources"][0], "source": name, "samples": n, "period": n} for name, n in (("few", 10), ("many", 30)))
    driver = opened([start(), {**loads(0), "sources": [few, many]}, end()])
    assert [row[-1] for row in rows(driver, "latency")] == ["many", "few"]
    assert [figure.text.split(":")[0] for figure in driver.find_elements(By.CSS_SELECTOR, "#latency figcaption")] == ["many", "few"]


def test_everything_that_is_used_has_a_name_and_headings_are_in_order(opened):
    driver = opened()
    assert driver.execute_script("""return [...document.querySelectorAll("button, select, input, svg[role=img], [role=tree], [role=group]")].filter(
        of => !of.getAttribute("aria-label") && !of.textContent.trim()).length""") == 0
    levels = driver.execute_script("return [...document.querySelectorAll('h1,h2,h3')].map(of => +of.tagName[1])")
    assert levels[0] == 1 and all(after - before <= 1 for before, after in zip(levels, levels[1:]))
    driver = opened(EVERYTHING, EVERYTHING)
    empty, landmarks = driver.execute_script("""return [[...document.querySelectorAll("th")].filter(of => !of.textContent.trim()).length,
        [...document.querySelectorAll("nav, section, [role=region]")].map(
            of => of.getAttribute("aria-label") || document.getElementById(of.getAttribute("aria-labelledby")).textContent)]""")
    assert empty == 0 and len(set(landmarks)) == len(landmarks)


@pytest.mark.parametrize("width", [360, 800, 1200])
def test_headings_are_not_broken_within_a_word(opened, driver, width):
    size = driver.get_window_size()
    driver.set_window_size(width, size["height"])
    try:
        opened(EVERYTHING, EVERYTHING)
        assert driver.execute_script("""return [...document.querySelectorAll("th")].filter(of => {
            const range = document.createRange(); range.selectNodeContents(of);
            return range.getClientRects().length > of.textContent.split(" ").length; }).map(of => of.textContent)""") == []
    finally:
        driver.set_window_size(size["width"], size["height"])


@pytest.mark.parametrize("width", [360, 600, 800, 1200])
def test_the_page_is_as_wide_as_the_window(opened, driver, width):
    """Tables and names that are wider have scrollbars of their own, or are broken."""
    size = driver.get_window_size()
    driver.set_window_size(width, size["height"])
    try:
        for streams in ([EVERYTHING], [EVERYTHING, EVERYTHING]):
            opened(*streams)
            page, window = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
            assert page <= window
    finally:
        driver.set_window_size(size["width"], size["height"])


def test_a_dark_page_is_printed_light(opened):
    driver = opened()
    colour = "return getComputedStyle(document.body).backgroundColor"
    driver.execute_script("document.documentElement.dataset.theme = 'dark'")
    dark = driver.execute_script(colour)
    try:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        assert min(map(int, re.findall(r"\d+", driver.execute_script(colour)))) > 240 > 60 > max(map(int, re.findall(r"\d+", dark)))
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_no_table_is_cut_on_paper(opened, driver):
    """A sheet of A4 has 700 pixels between usual margins, and no scrollbars."""
    try:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 700, "height": 900, "deviceScaleFactor": 1, "mobile": False})
        opened(EVERYTHING, EVERYTHING)
        assert driver.execute_script("""return [...document.querySelectorAll("table")].filter(
            of => of.getBoundingClientRect().right > 700 || getComputedStyle(of.parentElement).overflowX === "auto").length""") == 0
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_stream_that_is_cut_is_shown_and_told(opened):
    text = text_of(EVERYTHING)
    driver = opened(text[:text.index('"shared_line"')])
    assert "The stream has no end" in section(driver, "trust") and shares(driver)["early"] == "45.0 %"


def test_the_policy_has_the_hashes_of_the_script_and_of_the_style():
    """After a change of the page: put in the hashes that this test computes."""
    with open(os.path.join(os.path.dirname(__file__), "../../user/view/report.html"), encoding="utf-8") as file:
        text = file.read()
    for name, of in (("script-src", re.findall("<script>(.*?)</script>", text, re.S)[-1]), ("style-src", re.search("<style>(.*?)</style>", text, re.S)[1])):
        assert f"{name} 'sha256-{base64.b64encode(hashlib.sha256(of.encode()).digest()).decode()}'" in text


def test_a_page_of_many_functions_and_intervals_is_bounded(tmp_path, driver):
    """40 intervals of 1,500 stacks with names of their own: 60,000 nodes would take more than twice the room."""
    stream = [start()]
    for second in range(40):
        names = [f"function_{second}_{i}_" + "n" * 60 for i in range(1500)]
        frames = [{"id": i, "symbol": name, "module": "/opt/demo"} for i, name in enumerate(names)]
        stream += [record("frames", second, event="cpu-clock", frames=frames),
                   record("profile", second, event="cpu-clock",
                          entries=[{"stack": [i], "comm": "demo", "samples": 1 + i % 9, "period": 1 + i % 9} for i in range(1500)],
                          samples={"expected": 1, "aggregated": 1, "lost": {}})]
    path = page(tmp_path, [*stream, end()])
    assert path.stat().st_size < 5_000_000
    driver.get(f"file://{path}")
    assert "function_" in section(driver, "functions")


def many_stacks(intervals):
    """Each interval has 1500 functions of its own, and one that all have."""
    yield start()
    for second in range(intervals):
        frames = [{"id": i, "symbol": f"function_{second}_{i}" if i else "hot", "module": "/opt/demo"} for i in range(1501)]
        yield record("frames", second % 60, event="cpu-clock", frames=frames)
        yield record("profile", second % 60, event="cpu-clock",
                     entries=[{"stack": [i], "comm": "demo", "samples": 1 if i else 500, "period": 1 if i else 500} for i in range(1501)],
                     samples={"expected": 2000, "aggregated": 2000, "lost": {}})


# A process begins with the largest resident set of the one that starts it (exec_mmap(), fs/exec.c), so that is a small one.
STARTER = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def peak_of(command):
    """The largest resident set of a command in KiB."""
    done = subprocess.run([sys.executable, "-S", "-c", STARTER, *command], stdout=subprocess.PIPE, text=True, check=True)
    return int(done.stdout)


@pytest.mark.plain  # sanitizers allocate, too
def test_a_stream_of_ever_new_stacks_takes_no_more_memory_and_keeps_its_sums(tmp_path):
    """100,000 stacks are more than are kept; 300,000 would take three times as much without a bound. What is small becomes a
    part of its caller, here the command, and the page says so."""
    peaks = []
    for intervals in (67, 200):
        (tmp_path / "a.jsonl").write_text(text_of(many_stacks(intervals)))
        peaks.append(peak_of([NHMTAP, "report", "-o", tmp_path / "page.html", tmp_path / "a.jsonl"]))
    assert peaks[1] < 1.3 * peaks[0], peaks
    data = json.loads(re.search(r'\{"streams":.*\}(?=</script>)', (tmp_path / "page.html").read_text(), re.S)[0])
    event, = data["streams"][0]["events"]
    weight = lambda i: sum(event["lines"][i][1::2])
    assert sum(map(weight, range(len(event["lines"])))) == 200 * 2000 == event["total"] and event["least"] > 0
    hot, = [i for i, name in enumerate(event["names"]) if data["streams"][0]["texts"][name] == "hot"]
    assert weight(hot) == 200 * 500


@pytest.mark.parametrize("text, why", [("", "no counts and no samples"), ("{}\n", "no counts"), ("x\n", "line 1 of stdin")])
def test_what_is_no_stream_makes_no_page(text, why):
    done = subprocess.run([NHMTAP, "report"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "") and why in done.stderr
