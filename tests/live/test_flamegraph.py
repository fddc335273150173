# SPDX-License-Identifier: GPL-2.0-only
"""The page that flamegraph makes, used in a browser with clicks and keys."""
import json
import os
import random
import re
import subprocess

import pytest
from records import NHMTAP, program, validator
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

pytest_plugins = "browser"
pytestmark = pytest.mark.xdist_group("browser")

HOSTILE = "</script><script>document.title='broken'</script><!--\"'&;\\"


def frame(i, symbol, kernel=False, **more):
    where = {"module": "[kernel]", "address": f"0xffffffff8100{i:04x}"} if kernel else {
        "module": "/opt/server", "offset": hex(0x1000 + i)}
    return {"id": i, "symbol": symbol, **where, **more}


FRAMES = [frame(0, "main"), frame(1, "parse"), frame(2, "render"), frame(3, "draw<Shape>"),
          frame(4, "entry_SYSCALL_64", kernel=True), frame(5, "vfs_write", kernel=True),
          frame(6, HOSTILE), {"id": 7, "module": "/usr/lib/libx.so", "offset": "0x1234"}]
# Innermost first, as in records.
ENTRIES = [([1, 0], 400), ([3, 2, 0], 300), ([5, 4, 2, 0], 200), ([6, 0], 60), ([7, 0], 40)]


def records(event="cpu-clock", entries=ENTRIES, frames=FRAMES):
    """A stream with the members that flamegraph reads."""
    of = {"event": event, "schema_version": "1.0.0", "run_id": "0" * 32, "seq": 1,
          "time": "2026-01-31T23:59:59.123456789Z", "start_time": "2026-01-31T23:59:58.123456789Z",
          "duration_ns": 1000000000}
    total = sum(n for _, n in entries)
    found = [{**of, "type": "frames", "frames": frames},
             {**of, "type": "profile", "value": total, "enabled_ns": 1, "running_ns": 1,
              "samples": {"expected": total + 7, "uncertainty": 1, "aggregated": total,
                          "lost": {"table_full": 7}},
              "stacks": {"delivered": total, "truncated": 0, "failed": 0, "table_full": 0},
              "entries": [{"stack": stack, "comm": "server", "samples": n, "period": n}
                          for stack, n in entries]}]
    for record in found:
        validator(record["type"]).validate(record)
    return found


def text_of(*streams):
    return "".join(json.dumps({**record, "seq": seq}) + "\n" for seq, record in enumerate(r for s in streams for r in s))


def page(*streams, options=()):
    return subprocess.run([NHMTAP, "flamegraph", *options], input=text_of(*streams), capture_output=True,
                          text=True, check=True).stdout


class Page:
    """A page in the browser."""

    def __init__(self, driver, path):
        self.driver = driver
        driver.get(f"file://{path}")

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def frames(self):
        """What is drawn: {name: (left, width) as shares of the graph}."""
        return {name.split(",")[0]: (left, width) for name, left, width in self.js("""
            const graph = document.getElementById("graph").getBoundingClientRect();
            return [...document.querySelectorAll(".frame")].map(f => {
              const at = f.getBoundingClientRect();
              return [f.getAttribute("aria-label"), (at.left - graph.left) / graph.width, at.width / graph.width];
            });""")}

    def find(self, name):
        return next(f for f in self.driver.find_elements(By.CLASS_NAME, "frame")
                    if f.get_attribute("aria-label").startswith(name + ","))

    def focused(self):
        return self.js("return document.activeElement.getAttribute('aria-label') || "
                       "document.activeElement.id").split(",")[0]

    def press(self, *keys):
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def text(self, id_):
        return self.driver.find_element(By.ID, id_).text


@pytest.fixture
def opened(driver, tmp_path):
    def run(*streams, options=()):
        path = tmp_path / "flame.html"
        path.write_text(page(*(streams or [records()]), options=options), encoding="utf-8")
        return Page(driver, path)
    return run


@pytest.fixture
def compared(driver, tmp_path):
    """The difference of two streams."""
    def run(before, now):
        for name, stream in (("before.jsonl", before), ("now.jsonl", now)):
            (tmp_path / name).write_text(text_of(stream), encoding="utf-8")
        done = subprocess.run([NHMTAP, "flamegraph", "-o", tmp_path / "x.html", tmp_path / "before.jsonl",
                               tmp_path / "now.jsonl"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return Page(driver, tmp_path / "x.html")
    return run


def test_each_function_is_as_wide_as_its_share_of_the_samples(opened):
    found = opened().frames()
    assert {name: round(width, 2) for name, (_, width) in found.items() if not name.startswith("<")} == {
        "all": 1, "server": 1, "main": 1, "parse": .4, "render": .5, "draw<Shape>": .3,
        "entry_SYSCALL_64": .2, "vfs_write": .2, "libx.so+0x1234": .04}


def test_a_callee_lies_below_its_caller_and_within_it(opened):
    opened_page = opened()
    found = opened_page.frames()
    (left, width), (inner, narrow) = found["render"], found["draw<Shape>"]
    assert left - 1e-3 <= inner and inner + narrow <= left + width + 1e-3
    tops = [opened_page.find(name).location["y"] for name in ("main", "render", "entry_SYSCALL_64", "vfs_write")]
    assert tops == sorted(tops) and len(set(tops)) == 4


def test_a_click_zooms_and_a_click_above_goes_back(opened):
    flame = opened()
    flame.find("render").click()
    found = flame.frames()
    assert {name: round(found[name][1], 2) for name in ("all", "main", "render", "draw<Shape>")} == {
        "all": 1, "main": 1, "render": 1, "draw<Shape>": .6}
    assert "parse" not in found
    flame.find("main").click()
    assert round(flame.frames()["parse"][1], 2) == .4


def test_pointing_at_a_frame_moves_nothing(opened):
    flame = opened(records(frames=[frame(0, "main"), frame(1, "very_" * 200 + "long"), *FRAMES[2:]]))
    before = flame.find("render").location
    flame.js("for (const e of document.querySelectorAll('.frame')) "
             "e.dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))")
    flame.find("very_" * 200 + "long").click()
    flame.driver.find_element(By.ID, "reset").click()
    assert flame.find("render").location == before


def test_reset_shows_all_again(opened):
    flame = opened()
    reset = flame.driver.find_element(By.ID, "reset")
    assert not reset.is_enabled()
    flame.find("vfs_write").click()
    reset.click()
    assert round(flame.frames()["parse"][1], 2) == .4 and not reset.is_enabled()


def test_the_keyboard_alone_walks_zooms_and_comes_back(opened):
    flame = opened()
    flame.driver.find_element(By.ID, "theme").send_keys(Keys.TAB)
    assert flame.focused() == "all"
    flame.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
    assert flame.focused() == "main"
    flame.press(Keys.ARROW_DOWN)
    assert flame.focused() == "render"  # the widest
    flame.press(Keys.ARROW_LEFT)
    assert flame.focused() == "parse"
    flame.press(Keys.ARROW_RIGHT, Keys.ENTER)
    assert flame.focused() == "render" and round(flame.frames()["render"][1], 2) == 1
    flame.press(Keys.ESCAPE)
    assert flame.focused() == "render" and "parse" in flame.frames()
    flame.press(Keys.ARROW_UP)
    assert flame.focused() == "main"
    flame.press(Keys.ESCAPE, Keys.ESCAPE, Keys.HOME)
    assert flame.focused() == "all"


def test_what_has_the_focus_can_be_seen(opened):
    flame = opened()
    flame.driver.find_element(By.ID, "theme").send_keys(Keys.TAB)
    style = flame.js("const s = getComputedStyle(document.activeElement);"
                     "return [s.outlineStyle, parseFloat(s.outlineWidth)]")
    assert style[0] == "solid" and style[1] >= 2


def test_every_control_has_a_name_and_is_reached_by_tab(opened):
    flame = opened()
    flame.js("document.activeElement.blur()")
    reached = []
    for _ in range(8):
        flame.press(Keys.TAB)
        reached.append(flame.js("""const e = document.activeElement;
            return e.getAttribute("aria-label") || e.textContent"""))
        if reached[-1].startswith("Functions"):
            break
    assert [name.split(",")[0] for name in reached] == [
        "Search functions", "Light or dark", "all", "Functions by their own samples"]


def test_what_has_the_focus_is_not_under_the_details(opened):
    flame = opened(records(entries=[([i % 2 for i in range(120)], 5)]))
    flame.find("all").click()
    rooms = flame.js("""return Array.from({length: 120}, () => {
          document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true}));
          return document.getElementById("details").getBoundingClientRect().top -
                 document.activeElement.getBoundingClientRect().bottom;
        });""")
    assert min(rooms) >= 0


def test_only_one_frame_is_a_stop_of_tab(opened):
    flame = opened()
    flame.find("render").click()
    stops = flame.js("return [...document.querySelectorAll('.frame')].filter(f => f.tabIndex === 0).length")
    assert stops == 1


def test_a_search_marks_what_it_finds_and_says_how_much_that_is(opened):
    flame = opened()
    flame.driver.find_element(By.TAG_NAME, "body").send_keys("/")
    assert flame.focused().startswith("Search")
    flame.press("parse|^vfs")
    found = flame.js("return [...document.querySelectorAll('.found')].map(f => f.getAttribute('aria-label'))")
    assert sorted(name.split(",")[0] for name in found) == ["parse", "vfs_write"]
    assert flame.text("matched") == "60.0 % in 2 frames"
    flame.press(Keys.ENTER)
    assert flame.focused() == "parse"
    flame.driver.find_element(By.ID, "search").send_keys(Keys.ESCAPE)
    assert flame.text("matched") == "" and not flame.driver.find_elements(By.CLASS_NAME, "found")


def test_what_is_inlined_lies_below_what_it_is_inlined_in(opened):
    inlining = frame(0, "outer", file="/src/a.c", line=7,
                     inlined=[{"symbol": "inner", "call_file": "/src/b.c", "call_line": 12}])
    flame = opened(records(entries=[([0], 5)], frames=[inlining]))
    assert flame.find("outer").location["y"] < flame.find("inner").location["y"]
    assert "inlined" in flame.find("inner").get_attribute("aria-label")
    flame.find("inner").click()
    assert "/src/a.c" in flame.text("details") and "inlined" in flame.text("details")


def test_addresses_of_which_nothing_is_known_count_together(opened):
    lost = [{"id": i, "address": hex(0x7000 + i)} for i in range(3)]
    assert set(opened(records(entries=[([i], 5) for i in range(3)], frames=lost)).frames()) == {
        "all", "server", "[unknown]"}


def test_a_recursion_that_is_found_counts_once(opened):
    flame = opened(records(entries=[([1, 1, 1, 0], 50), ([0], 50)]))
    flame.driver.find_element(By.ID, "search").send_keys("parse")
    assert flame.text("matched") == "50.0 % in 3 frames"


def test_an_expression_that_is_none_is_told_and_harms_nothing(opened):
    flame = opened()
    search = flame.driver.find_element(By.ID, "search")
    search.send_keys("(")
    assert search.get_attribute("aria-invalid") == "true" and len(flame.frames()) > 5


def test_details_say_samples_share_and_where_the_code_is_from(opened):
    flame = opened()
    flame.find("draw<Shape>").click()
    said = flame.text("details")
    assert "draw<Shape>" in said and "300 ns, 30.0 % of all" in said and "/opt/server" in said


def test_functions_are_listed_by_their_own_samples_and_found_by_a_click(opened):
    flame = opened()
    flame.driver.find_element(By.CSS_SELECTOR, "#list summary").click()
    rows = [row.text for row in flame.driver.find_elements(By.CSS_SELECTOR, "#rows tr")]
    assert rows[:2] == ["400 40.0 % 40.0 % parse", "300 30.0 % 30.0 % draw<Shape>"]
    flame.driver.find_element(By.CSS_SELECTOR, "#rows tr:nth-child(2) button").click()
    assert flame.text("matched") == "30.0 % in 1 frames"


def test_several_events_are_chosen_between(opened):
    flame = opened(records(), records("page-faults", [([2, 0], 9)]))
    event = flame.driver.find_element(By.ID, "event")
    assert event.is_displayed() and event.text.split() == ["cpu-clock", "page-faults"]
    event.send_keys("page")
    assert set(flame.frames()) == {"all", "server", "main", "render"}


def test_intervals_add_up(opened):
    assert "2,000 ns" in opened(records(), records()).text("summary")


def test_samples_that_were_lost_are_told(opened):
    assert "7 more samples were lost" in opened().text("summary")


def test_names_of_any_kind_stay_names(opened):
    flame = opened()
    assert "broken" not in flame.driver.title
    assert flame.find(HOSTILE)
    assert flame.js("return document.scripts.length") == 2


def test_no_error_is_logged_and_nothing_is_loaded(opened):
    flame = opened()
    flame.find("render").click()
    assert flame.driver.get_log("browser") == []
    assert flame.js("return performance.getEntriesByType('resource').length") == 0
    asked = [json.loads(row["message"])["message"] for row in flame.driver.get_log("performance")]
    urls = {row["params"]["request"]["url"] for row in asked if row["method"] == "Network.requestWillBeSent"}
    assert all(url.startswith(("file:///", "data:")) for url in urls)


def test_the_page_names_no_other_place():
    text = page(records())
    assert "http:" not in text and "https:" not in text and "//" not in text.replace("</", "")
    assert "default-src 'none'" in text


CONTRAST = """
const parse = c => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
const light = c => parse(c).map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
return [...document.querySelectorAll(".frame, #summary, #details, .legend, h1")].map(e => {
  let back = e;
  while (getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)") back = back.parentElement;
  const [a, b] = [light(getComputedStyle(e).color), light(getComputedStyle(back).backgroundColor)];
  return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
});"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read_in_both_themes(opened, theme):
    flame = opened(records(entries=[([i, 0], 10) for i in range(60)],
                           frames=[frame(i, f"{'abcdefgh'[i % 8]}{i * 7919}", kernel=i % 3 == 1)
                                   for i in range(60)]))
    flame.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                 {"features": [{"name": "prefers-color-scheme", "value": theme}]})
    try:
        ratios = flame.js(CONTRAST)
        dark = flame.js("return getComputedStyle(document.body).backgroundColor") == "rgb(23, 22, 20)"
    finally:
        flame.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert dark == (theme == "dark")
    assert len(ratios) > 60 and min(ratios) >= 4.5  # WCAG 2, 1.4.3


def test_the_theme_can_be_changed_by_hand(opened):
    flame = opened()
    before = flame.js("return getComputedStyle(document.body).backgroundColor")
    flame.driver.find_element(By.ID, "theme").click()
    assert flame.js("return getComputedStyle(document.body).backgroundColor") != before


def test_a_run_becomes_a_page(nhmtap, driver, tmp_path):
    calls = os.path.abspath(program("calls"))
    nhmtap("profile", "-g", "-e", "page-faults", "-c", "1", "-o", tmp_path / "x", "--", calls, "graph=500",
           "spin=60")
    with open(tmp_path / "x", encoding="utf-8") as file:
        subprocess.run([NHMTAP, "flamegraph", "-o", tmp_path / "x.html"], stdin=file, check=True)
    flame = Page(driver, tmp_path / "x.html")
    assert flame.driver.title == "Flame graph of calls"
    total = int(flame.text("summary").split(" · ")[1].split()[0].replace(",", ""))
    assert 1500 <= total <= 1700
    assert {1000, 500} <= {int(f.get_attribute("aria-label").split(", ")[1].split()[0].replace(",", ""))
                           for f in driver.find_elements(By.CLASS_NAME, "frame")}


def change_of(flame, name):
    return flame.find(name).get_attribute("aria-label").rsplit(", ", 1)[1].split(",")[0]


def hue_of(flame, name):
    """The colour that a reader sees: red, blue or grey."""
    red, green, blue = flame.js("""const c = getComputedStyle(arguments[0]).backgroundColor;
        return c.match(/[\\d.]+/g).slice(0, 3).map(Number)""", flame.find(name))
    return "grey" if max(red, green, blue) - min(red, green, blue) < 20 else "red" if red > blue else "blue"


BEFORE = [([1, 0], 4000), ([2, 0], 3000), ([5, 4, 0], 2000), ([7, 0], 1000)]
NOW = [([1, 0], 4040), ([2, 0], 4500), ([5, 4, 0], 960), ([3, 0], 500)]


def test_a_difference_shows_what_became_more_and_less_and_what_did_not_change(compared):
    flame = compared(records(entries=BEFORE), records(entries=NOW))
    assert {name: hue_of(flame, name) for name in ("parse", "render", "vfs_write", "draw<Shape>", "libx.so+0x1234")} == {
        "parse": "grey", "render": "red", "vfs_write": "blue", "draw<Shape>": "red", "libx.so+0x1234": "blue"}
    assert "30.0 % before, 45.0 % now, +15.0 points, more" in flame.find("render").get_attribute("aria-label")
    assert "20.0 % before, 9.6 % now, −10.4 points, less" in flame.find("vfs_write").get_attribute("aria-label")
    assert "within the bounds" in flame.find("parse").get_attribute("aria-label")
    assert "10,000 ns before, 10,000 now" in flame.text("summary")
    assert "now.jsonl against before.jsonl" in flame.driver.title


def whole(program, entries):
    """A stream of a whole run of a command."""
    of = {"schema_version": "1.0.0", "run_id": "0" * 32}
    body = records(entries=entries)
    for entry in body[1]["entries"]:
        entry["comm"] = program[:15]
    return [{**of, "type": "start", "command": "profile", "target": {"process.command_args": [f"/opt/{program}", "x"]}}, *body,
            {**of, "type": "end", "reason": "exited", "command": {"exit_code": 0}}]


# One function became slower by half, another one took what it took.
SLOWER = [([1, 0], 6000), ([2, 0], 3000), ([5, 4, 0], 2000), ([7, 0], 1000)]


def test_whole_runs_are_compared_by_amounts(compared):
    flame = compared(whole("server", BEFORE), whole("server", SLOWER))
    assert {name: hue_of(flame, name) for name in ("parse", "render", "vfs_write", "libx.so+0x1234")} == {
        "parse": "red", "render": "grey", "vfs_write": "grey", "libx.so+0x1234": "grey"}
    assert "4,000 before, 6,000 now, +50.0 %, more" in flame.find("parse").get_attribute("aria-label")
    assert "10,000 ns before, 12,000 now, +20.0 %" in flame.text("summary")
    assert round(flame.frames()["parse"][1], 3) == round(5000 / 11000, 3)


def test_the_reader_chooses_between_amounts_and_shares(compared):
    flame = compared(whole("server", BEFORE), whole("server", SLOWER))
    Select(flame.driver.find_element(By.ID, "compare")).select_by_visible_text("shares")
    assert {hue_of(flame, name) for name in ("render", "vfs_write")} == {"blue"}
    assert "40.0 % before, 50.0 % now, +10.0 points, more" in flame.find("parse").get_attribute("aria-label")
    Select(flame.driver.find_element(By.ID, "compare")).select_by_visible_text("amounts")
    assert {hue_of(flame, name) for name in ("render", "vfs_write")} == {"grey"}


def test_two_builds_of_a_program_are_compared_whatever_their_files_are_called(compared):
    flame = compared(whole("server-of-yesterday", BEFORE), whole("server.new", BEFORE))
    assert {hue_of(flame, name) for name in ("parse", "render", "vfs_write", "server-of-yeste")} == {"grey"}
    assert "server.new" not in flame.frames()


def test_what_is_only_in_one_stream_is_as_wide_as_half_its_share(compared):
    found = compared(records(entries=BEFORE), records(entries=NOW)).frames()
    assert round(found["libx.so+0x1234"][1], 3) == .05 and round(found["draw<Shape>"][1], 3) == .025
    assert round(found["render"][1], 3) == .375


def test_streams_of_other_lengths_are_compared_by_shares(compared):
    flame = compared(records(entries=BEFORE), records(entries=[(stack, 3 * n) for stack, n in BEFORE]))
    assert {hue_of(flame, name) for name in ("parse", "render", "vfs_write", "libx.so+0x1234")} == {"grey"}


def test_too_few_samples_show_no_difference(compared):
    flame = compared(records(entries=[([1, 0], 10), ([2, 0], 10)]), records(entries=[([1, 0], 13), ([2, 0], 7)]))
    assert hue_of(flame, "parse") == hue_of(flame, "render") == "grey"


# Samples of functions before and now; the first ones are within the bounds of 95 %.
PAIRS = {"f0": (400, 404), "f1": (100, 127), "f2": (3, 0), "f3": (100, 130), "f4": (1000, 1090), "f5": (12, 3), "f6": (0, 4)}


def test_what_is_grey_is_within_the_bounds_that_report_and_show_have(compared, tmp_path):
    """Two counts n and m of samples differ by more than 1.96 √(n + m) in one of 20 cases."""
    frames = [{"id": i, "symbol": name, "module": "/opt/server", "offset": hex(i)} for i, name in enumerate(PAIRS)]
    runs = [whole("server", [])[:1] + records(entries=[([i], pair[which]) for i, pair in enumerate(PAIRS.values()) if pair[which]], frames=frames) +
            whole("server", [])[-1:] for which in (0, 1)]
    flame = compared(*runs)
    differ = {name for name, (n, m) in PAIRS.items() if abs(n - m) > 1.96 * (n + m) ** .5}
    assert differ == {"f3", "f4", "f5", "f6"}
    assert {name for name in PAIRS if hue_of(flame, name) != "grey"} == differ
    shown = subprocess.run([NHMTAP, "show", "--diff", tmp_path / "before.jsonl", tmp_path / "now.jsonl"], capture_output=True, text=True, check=True).stdout
    assert {line.split()[-1] for line in shown.splitlines() if re.search(r" f\d$", line) and "~" not in line} == differ


def test_functions_that_changed_are_listed_by_how_much(compared):
    flame = compared(records(entries=BEFORE), records(entries=NOW))
    flame.driver.find_element(By.CSS_SELECTOR, "#list summary").click()
    rows = [row.text for row in flame.driver.find_elements(By.CSS_SELECTOR, "#rows tr")]
    assert rows[0] == "30.0 % 45.0 % +15.0 points render" and rows[1] == "20.0 % 9.6 % −10.4 points vfs_write"
    assert not any("parse" in row for row in rows)


def test_what_had_no_name_yet_is_not_compared_and_makes_no_difference(compared):
    """400 of parse's samples were recorded as two places in its file, of which one calls a library: parse may have them,
    and not render, which has 600 more, nor the library below it. What another file lacks is compared."""
    late = [{"id": 8, "module": "/opt/server", "offset": "0x10"}, {"id": 9, "module": "/opt/server", "offset": "0x20"},
            {"id": 10, "symbol": "memcpy", "module": "/usr/lib/libc.so"}, {"id": 11, "module": "/opt/server", "offset": "0x30"}]
    before = [([1, 0], 1000), ([8, 0], 300), ([10, 9, 0], 100), ([2, 0], 1000), ([10, 2, 0], 1000), ([7, 0], 1000)]
    now = [([1, 0], 1350), ([2, 0], 1600), ([10, 2, 0], 1050), ([11, 0], 50)]
    flame = compared(whole("server", [])[:1] + records(entries=before, frames=FRAMES + late) + whole("server", [])[-1:],
                     whole("server", [])[:1] + records(entries=now, frames=FRAMES + late) + whole("server", [])[-1:])
    assert {name: hue_of(flame, name) for name in ("parse", "render", "main", "libx.so+0x1234")} == {
        "parse": "grey", "render": "red", "main": "blue", "libx.so+0x1234": "blue"}
    boxes = [f.get_attribute("aria-label") for f in flame.driver.find_elements(By.CLASS_NAME, "frame")]
    assert [box for box in boxes if box.startswith("server (names not read yet)") or "server+0x" in box] == [
        "server (names not read yet), 400 before, 50 now, not compared"]
    assert "9.1 % before and 1.2 % now are of functions whose names were not read yet" in flame.text("summary")
    flame.driver.find_element(By.CSS_SELECTOR, "#list summary").click()
    assert {row.text.split()[-1] for row in flame.driver.find_elements(By.CSS_SELECTOR, "#rows tr")} == {"render", "libx.so+0x1234"}


def test_places_in_a_file_without_any_names_are_compared(compared):
    places = [{"id": i, "module": "/opt/stripped", "offset": hex(i)} for i in range(3)]
    flame = compared(records(entries=[([1], 100), ([2], 100)], frames=places), records(entries=[([1], 900), ([2], 100)], frames=places))
    assert hue_of(flame, "stripped+0x1") == "red" and "not read yet" not in flame.text("summary")


def test_reversed_each_function_lies_above_its_callers(opened):
    flame = opened(options=["--reverse"])
    found = flame.frames()
    assert round(found["parse"][1], 2) == .4 and round(found["draw<Shape>"][1], 2) == .3
    tops = [flame.find(name).location["y"] for name in ("all", "vfs_write", "entry_SYSCALL_64")]
    assert tops == sorted(tops) and len(set(tops)) == 3


def test_reversed_what_is_inlined_lies_above_what_it_is_inlined_in(opened):
    inlining = frame(0, "outer", file="/src/a.c", line=7,
                     inlined=[{"symbol": "inner", "call_file": "/src/b.c", "call_line": 12}])
    flame = opened(records(entries=[([0], 5)], frames=[inlining]), options=["--reverse"])
    assert flame.find("inner").location["y"] < flame.find("outer").location["y"]


def test_a_title_of_ones_own(opened):
    assert opened(options=["--title", "Tuesday <b>"]).driver.title == "Tuesday <b>"


def interval(second, entries):
    of = records(entries=entries)
    # A fraction of a second may have any number of digits.
    of[1]["start_time"] = f"2026-01-31T23:59:{50 + second:02d}" + {0: ".000000000Z", 2: ".5Z", 4: ""}[second]
    return of


@pytest.mark.parametrize("options, left", [
    (["--from", "2"], {"render", "draw<Shape>"}), (["--to", "2"], {"parse"}),
    (["--from", "2", "--to", "4"], {"render"}), (["--from", "2.3", "--to", "2.6"], {"render"})])
def test_a_part_of_the_time_has_the_intervals_that_begin_in_it(opened, options, left):
    flame = opened(interval(0, [([1, 0], 10)]), interval(2, [([2, 0], 10)]), interval(4, [([3, 0], 10)]),
                   options=options)
    assert set(flame.frames()) & {"parse", "render", "draw<Shape>"} == left


def test_a_part_without_intervals_is_refused(tmp_path):
    done = subprocess.run([NHMTAP, "flamegraph", "--from", "9"], input=text_of(records()), capture_output=True,
                          text=True, check=False)
    assert done.returncode == 1 and "none of the 1 intervals begins in this part" in done.stderr
    done = subprocess.run([NHMTAP, "flamegraph", "--from", "3", "--to", "2"], input=text_of(records()),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "no time between them" in done.stderr
    done = subprocess.run([NHMTAP, "flamegraph", tmp_path / "none"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "it can't be read: No such file" in done.stderr


def many_stacks(stacks, functions=3000, depth=24):
    """A stream with this many different stacks."""
    frames = [frame(i, f"function_{i:04d}_of_a_program_with_names_of_usual_length") for i in range(functions)]
    chance = random.Random(1)
    entries = [([chance.randrange(functions) for _ in range(chance.randrange(1, depth - 4))] +
                [i % functions, i % 60, i // functions % 40, 0], 1 + chance.randrange(9)) for i in range(stacks)]
    return [{"type": "frames", "frames": frames},
            *({"type": "profile", "event": "cycles", "start_time": "2026-01-31T23:59:58.123456789Z",
               "entries": [{"stack": stack, "comm": "server", "samples": n} for stack, n in entries[i:i + 1000]]}
              for i in range(0, stacks, 1000))]


def test_of_a_hundred_thousand_stacks_the_page_draws_what_can_be_seen(opened):
    """The time depends on the machine, but the number of drawn frames does not."""
    flame = opened()
    path = flame.driver.current_url[len("file://"):]
    with open(path, "w", encoding="utf-8") as file:
        file.write(page(many_stacks(100000)))
    flame.driver.refresh()
    assert int(flame.text("summary").split(" · ")[1].split()[0].replace(",", "")) > 400000
    drawn = len(flame.driver.find_elements(By.CLASS_NAME, "frame"))
    assert 1000 < drawn <= 4100


def test_a_picture_of_it_is_not_empty(opened, tmp_path):
    flame = opened()
    assert flame.driver.save_screenshot(str(tmp_path / "page.png"))
    flame.driver.get("about:blank")
    assert flame.driver.save_screenshot(str(tmp_path / "blank.png"))
    assert (tmp_path / "page.png").stat().st_size > 2 * (tmp_path / "blank.png").stat().st_size


@pytest.mark.parametrize("text, why", [("", "no stacks"), ("{}\n", "no stacks"), ("x\n", "line 1"),
                                       ('{"type":"end"}\n[\n', "line 2")])
def test_what_has_no_stacks_is_refused(text, why):
    done = subprocess.run([NHMTAP, "flamegraph"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and why in done.stderr and done.stdout == ""


@pytest.mark.parametrize("change, why", [
    (lambda lines: lines[::-1], "line 2 of stdin: its seq 2 does not follow seq 3 of the line before"),
    (lambda lines: lines + lines[:1], "line 5 of stdin: its seq 0 does not follow seq 3"),
    (lambda lines: [line.replace('"1.0.0"', '"99.0.0"') for line in lines], "line 1 of stdin: its schema_version is 99.0.0"),
])
def test_records_that_would_make_a_wrong_graph_are_refused(change, why):
    lines = change(text_of(records(), records()).splitlines(True))
    done = subprocess.run([NHMTAP, "flamegraph"], input="".join(lines), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "") and why in done.stderr
