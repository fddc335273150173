# SPDX-License-Identifier: GPL-2.0-only
"""What nhmtap top shows, as lines of its model: without a terminal, a process, or time that passes. The model is built with
sanitizers."""
import json
import os
import random
import re
import subprocess

import pytest
from compiled import compiled
from test_show import HOSTILE, entries, stacks
from test_symbolize import profile
from test_top import analysis, at, branches, count, loads, offcore

PLAIN, TITLE, COLUMNS, REMARK, BAR, CHOSEN = range(6)
ENTER, ESCAPE, ERASE = 10, 27, 127
UP, DOWN, LEFT, RIGHT, PAGE_UP, PAGE_DOWN, HOME, END = range(0x110000, 0x110008)
SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The path of the program."""
    folder = tmp_path_factory.mktemp("top")
    compiled(folder, "top")
    return folder / "top"


@pytest.fixture
def screens(built):
    """Returns a function that gives the screens that these commands draw: lists of (style, text)."""
    def run(*commands, live=False):
        done = subprocess.run([built, *(["live"] if live else [])], input="\n".join(commands) + "\n", capture_output=True,
                              text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr[-3000:]
        drawn = done.stdout.split("\n--\n")[:-1]
        return [[(int(line.split(" ", 1)[0]), line.split(" ", 1)[1]) for line in screen.splitlines()] for screen in drawn]
    return run


def take(*records):
    return ["take " + json.dumps({"schema_version": "3.5.0", **record}) for record in records]


def key(*keys):
    return [f"key {one}" for one in keys]


def text_of(screen):
    return "\n".join(text for _, text in screen)


def names(screen):
    """The last words of rows that begin with a number, before the file of the code."""
    return [re.split(r" {2,}", text.strip())[-1].split()[0] for style, text in screen[1:-1]
            if style in (PLAIN, CHOSEN) and re.match(r" *[\d,]+  ", text)]


def chosen(screen):
    row, = [text for style, text in screen if style == CHOSEN]
    return row


FUNCTIONS = [*entries(small=10, large=30), {"comm": "other", "samples": 20, "period": 200, "code": {"symbol": "middle"}}]
EVERYTHING = [record for i in (1, 2) for record in (profile(*FUNCTIONS, start=at(i)), count(i, 7), loads(i, L3=(20, 5)), offcore(i),
                                                    branches(i), analysis(i))]


def test_a_profile_and_a_stream_of_one_event_are_apart_in_each_view(screens):
    """The account of single samples is in records of their intervals."""
    sample = {"type": "sample", "event": "cpu-clock", "sample_time": at(1), "comm": "demo", "every": 8, "period": 10, "code": {"symbol": "large"}}
    interval = {key: value for key, value in profile({"samples": 8}, start=at(1)).items() if key != "entries"}
    drawn = screens(*take({**profile(*FUNCTIONS, start=at(1)), "activity": "hot"}, {**sample, "activity": "single"},
                          {**interval, "type": "stream", "activity": "single"},
                          {**count(1, 5), "activity": "c"}, {**count(1, 7), "activity": "d"}),
                    "size 120 40", "tick 1", "draw", "keys 2", "draw", "keys 7", "draw", live=True)
    assert "cpu-clock, activity hot: 60 samples" in text_of(drawn[0]) and "cpu-clock, activity single: 8 samples" in text_of(drawn[0])
    assert re.findall(r"^ +(\d) +\1 .*page-faults, activity (\w)", text_of(drawn[1]), re.M) == [("5", "c"), ("7", "d")]
    assert re.findall(r"^ +(\d+) +\1 .* cpu-clock, activity (\w+)", text_of(drawn[2]), re.M) == [("60", "hot"), ("8", "single")]
    assert len(re.findall("page-faults, activity [cd]", text_of(drawn[2]))) == 2


@pytest.mark.parametrize("of, name", [({}, "1 functions"), ({"latency": 200, "source": "local_dram"}, "3 data sources")])
def test_single_samples_alone_open_the_view_that_shows_them(screens, of, name):
    screen, = screens(*take({"type": "sample", "event": "e", "activity": "single", "sample_time": at(1), "comm": "demo", **of}),
                      "tick 1", "size 120 40", "draw", live=True)
    assert f"│ {name} │" in screen[0][1] and re.search("^ *1 +100.0%.*(demo|local_dram)", text_of(screen), re.M)


@pytest.mark.parametrize("view, name, has", [
    (1, "functions", ["large", "middle", "small"]), (2, "counts", ["page-faults"]), (3, "data sources", ["L3"]),
    (4, "off-core", ["request", "memory"]), (5, "branches", ["caller", "called"]), (6, "analysis", ["stalled"]),
    (7, "health", ["accounts", "loads", "page-faults"]), (8, "messages", ["said"])])
def test_each_view_has_its_records_and_no_others(screens, view, name, has):
    screen, = screens(*take(*EVERYTHING), "say said", "tick 1", "key 101", "size 120 40", f"keys {view}", "draw", live=True)
    assert f"│ {view} {name} │" in screen[0][1] and all(word in text_of(screen) for word in has)
    others = {"large": 1, "page-faults": 2, "request": 4, "caller": 5, "stalled": 6, "said": 8}
    assert not [word for word, of in others.items() if word in text_of(screen[1:-1]) and of != view and (word, view) != ("page-faults", 7)]


@pytest.mark.parametrize("times, by, order", [(0, "share", ["large", "middle", "small"]), (3, "symbol", ["large", "middle", "small"]),
                                              (4, "comm", ["large", "small", "middle"])])
def test_s_sorts_by_the_next_order(screens, times, by, order):
    screen, = screens(*take(profile(*FUNCTIONS)), "tick 1", "keys " + "s" * times, "draw", live=True)
    assert f"by {by}" in screen[0][1] and names(screen) == order


def test_a_filter_holds_for_records_that_come_later_and_escape_ends_it(screens):
    first, later, ended = screens(*take(profile(*FUNCTIONS)), "tick 1", "keys /symbol~^(s|n)", *key(ENTER), "draw",
                                  *take(profile(*entries(new=40, older=3), start=at(2))), "tick 2", "draw", *key(ESCAPE), "draw", live=True)
    assert names(first) == ["small"] and names(later) == ["new", "small"]
    assert names(ended) == ["new", "large", "middle", "small", "older"]


def test_what_is_typed_is_erased_by_whole_characters(screens):
    screen, = screens(*take(profile(*FUNCTIONS)), "tick 1", "keys /aé", *key(ERASE), "draw", live=True)
    assert screen[-1][1].startswith(" /a_ ")


def test_frozen_data_stay_and_can_be_looked_into_while_others_come(screens):
    frozen, inside, back, live = screens(
        *take(*stacks(main__work=30, main__work__step=50)), "tick 1", "keys z", *take(*stacks(main__other=500)), "tick 2", "draw",
        *key(ENTER), "draw", *key(ESCAPE), "draw", "keys z", "tick 3", "draw", live=True)
    assert "FROZEN, 2 newer records" in frozen[0][1] and names(frozen)[:2] == ["step", "work"] and "other" not in names(frozen)
    assert "function step" in text_of(inside) and "callers" in text_of(inside) and "500" not in text_of(inside)
    assert names(back) == names(frozen) and "LIVE" in live[0][1] and names(live)[0] == "other"


def test_drilling_down_keeps_the_place_in_the_list(screens):
    records = take(profile(*entries(**{f"f{i:02}": 100 - i for i in range(50)})))
    before, inside, after = screens(*records, "tick 1", *key(*[DOWN] * 30), "draw", *key(ENTER), "draw", *key(ESCAPE), "draw", live=True)
    assert "f30" in chosen(before) and "function f30" in text_of(inside) and after == before


def test_a_function_of_several_events_has_the_name_of_each_at_its_tables(screens):
    faults = [{**record, "event": "page-faults"} for record in stacks(main__work=7)]
    inside, alone = (screens(*take(*stacks(main__work=30), *more), "tick 1", *key(ENTER), "size 100 60", "draw", live=True)[0]
                     for more in (faults, []))
    for of in ("lines of the function that samples are on", "callers"):
        assert re.findall(rf"^{of}: ([a-z-]+): (\d+) samples", text_of(inside), re.M) == [("cpu-clock", "30"), ("page-faults", "7")]
        assert re.search(f"^{of} *$", text_of(alone), re.M)


def test_the_cursor_stays_within_the_list(screens):
    top, bottom = screens(*take(profile(*FUNCTIONS)), "tick 1", *key(UP, PAGE_UP, UP, HOME, UP), "draw", *key(END, DOWN, PAGE_DOWN), "draw",
                          live=True)
    assert [style for style, _ in top].count(CHOSEN) == 1 == [style for style, _ in bottom].count(CHOSEN)
    assert "small" in chosen(bottom)


def parts(nr):
    return take(*[profile(*entries(**{f"part{i}": 10 + i}), start=at(i)) for i in range(1, nr + 1)])


def test_a_replay_goes_at_the_pace_of_its_records(screens):
    """Records are a second apart. The first one is shown at once; at the fourfold pace a second of the stream takes a quarter."""
    drawn = screens(*parts(5), "ended x", f"tick {SECOND}", "draw", f"tick {2 * SECOND - 1000}", "draw", f"tick {2 * SECOND}", "draw",
                    "keys >>", f"tick {2 * SECOND + SECOND // 4}", "draw", f"tick {9 * SECOND}", "draw")
    assert [len(names(screen)) for screen in drawn] == [1, 1, 2, 3, 5]
    assert "PLAYING" in drawn[0][0][1] and "×4" in drawn[3][0][1] and "END" in drawn[4][0][1]


def test_a_replay_is_sought_by_intervals_and_waits_there(screens):
    drawn = screens(*parts(5), f"tick {SECOND}", "keys e", "draw", *key(LEFT, LEFT), "draw", *key(RIGHT), "draw", f"tick {99 * SECOND}", "draw",
                    "keys 0", "draw")
    assert [len(names(screen)) for screen in drawn] == [5, 3, 4, 4, 1] and "PAUSED" in drawn[3][0][1]


def test_a_screen_is_drawn_again_only_if_something_has_changed(screens):
    """The size is asked for each time. Key 0 is one that has no meaning, as that of a terminal whose size has changed and is as before."""
    ticks = [line for ns in range(1, 9) for line in ("size 80 24", f"look {ns}")]
    for live in (False, True):
        first, wider, again = screens(*take(profile(*FUNCTIONS)), "ended x", *ticks, "size 90 24", "look 10", *ticks[-1:], *key(0), "look 11",
                                      "look 12", live=live)
        assert len(first[0][1]) == 80 and len(wider[0][1]) == len(again[0][1]) == 90


def test_a_window_has_its_last_seconds_alone(screens):
    records = take(profile(*entries(old=90), start=at(1)), profile(*entries(recent=20), start=at(40)), profile(*entries(new=10), start=at(55)))
    drawn = screens(*records, "tick 1", "draw", "keys w", "draw", "keys w", "draw", live=True)
    assert [names(screen) for screen in drawn] == [["old", "recent", "new"], ["old", "recent", "new"], ["new"]]
    assert "last 10 s" in drawn[2][0][1]


KEYS = [*b"12345678jkhlswz ?\tnN/a=~!(e0<>gG,m", ENTER, ESCAPE, ERASE, 0, 255, 0xc3, 0xa9, UP, DOWN, LEFT, RIGHT, PAGE_UP, PAGE_DOWN, HOME, END]
HOSTILE_ROWS = [{"comm": HOSTILE[:100], "samples": 3, "period": 3, "code": {"symbol": HOSTILE, "module": HOSTILE}}]


@pytest.mark.parametrize("live", [False, True])
def test_after_any_keys_sizes_and_records_each_line_is_as_wide_as_the_screen(screens, live):
    """1,000 keys and sizes, or NHMTAP_TOP_KEYS."""
    chance = random.Random(f"{os.environ.get('NHMTAP_SEED', '')} {live}")
    pool = take(*EVERYTHING, *stacks(main__work=30, main__work__step=50), profile(*HOSTILE_ROWS, start=at(4)), {"type": "warning", "why": HOSTILE})
    commands, sizes, size, now = pool[:], [], (80, 24), 1
    for _ in range(int(os.environ.get("NHMTAP_TOP_KEYS", "1000"))):
        now += chance.choice([1, SECOND // 3, 2 * SECOND])
        commands += key(chance.choice(KEYS)) + [f"tick {now}"]
        if not chance.randrange(8):
            size = chance.choice([0, 1, 20, 21, 80, 200, 500]), chance.choice([0, 1, 4, 5, 24, 50, 200])
            commands.append(f"size {size[0]} {size[1]}")
        if not chance.randrange(8):
            commands.append(chance.choice(pool))
        if not chance.randrange(50):
            commands.append(f"take {chance.choice(pool)[5:][:chance.randrange(60)]}")
        commands.append("draw")
        sizes.append((max(size[0], 20), max(size[1], 4)))
    drawn = screens(*commands, live=live)
    assert len(drawn) == len(sizes)
    for screen, (columns, lines) in zip(drawn, sizes):
        assert len(screen) == lines and {len(text) for _, text in screen} == {columns}, screen
        assert screen[0][0] == screen[-1][0] == BAR and [style for style, _ in screen].count(CHOSEN) <= 1
