# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap top: the screen, of streams that are made here, so what it has to show is known."""
import fcntl
import json
import os
import pty
import random
import re
import select
import struct
import subprocess
import termios

import pytest
from records import NHMTAP
from terminal import Terminal
from test_show import HOSTILE, entries, stacks
from test_symbolize import profile, stream, text_of

FUNCTIONS = entries(small=10, large=30) + [{"comm": "other", "samples": 20, "period": 200, "code": {"symbol": "middle"}}]


def at(seconds):
    return f"2026-01-31T23:00:{seconds:02}.000000000Z"


def count(seconds, value):
    return {"type": "count", "event": "page-faults", "status": "counted", "value": value, "scaled": value, "enabled_ns": 1,
            "running_ns": 1, "start_time": at(seconds), "duration_ns": 1_000_000_000}


@pytest.fixture
def stored(tmp_path):
    """Returns a function that stores a stream of these records in a file."""
    def store(*records, text=None):
        path = tmp_path / "records.jsonl"
        path.write_text(text or text_of(*stream(*records)), encoding="utf-8")
        return path
    return store


def shows(*words):
    return lambda screen: all(word in screen for word in words)


def rows(screen):
    """The lines that begin with a number."""
    return [re.split(r" {2,}", line.strip()) for line in screen.splitlines() if re.match(r" *[\d,]+  ", line)]


def names(screen):
    return [row[-1].split()[0] for row in rows(screen)]


def choose(seen, pattern):
    """Waits until the cursor is on a row of this pattern."""
    def chosen(screen):
        reverse = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in screen.splitlines()[1:-1] if re.match(r"\x1b\[(0;)?7m", line)]
        return len(reverse) == 1 and re.search(pattern, reverse[0])
    seen.until(chosen, lambda: seen.screen("-e"))


def test_functions_are_in_the_order_of_their_samples_and_of_what_s_asks_for(stored):
    with Terminal(NHMTAP, "top", stored(profile(*FUNCTIONS))) as seen:
        screen = seen.until(shows("large", "middle", "small"))
        assert [row[0] for row in rows(screen)] == ["30", "20", "10"]
        assert names(screen) == ["large", "middle", "small"]
        seen.type("ss")  # total, samples
        seen.until(shows("by samples"))
        for order, sorted_ in (("symbol", ["large", "middle", "small"]), ("comm", ["large", "small", "middle"])):
            seen.type("s")
            seen.until(lambda screen, order=order, sorted_=sorted_: shows(f"by {order}")(screen) and names(screen) == sorted_)
        seen.type("q")
        seen.end()


def test_a_function_is_looked_into_by_enter_and_left_by_escape(stored):
    with Terminal(NHMTAP, "top", stored(*stacks(main__work=30, main__work__step=50, main__other__step=20))) as seen:
        seen.until(lambda screen: names(screen)[:1] == ["step"])
        seen.tmux("send-keys", "Enter")
        screen = seen.until(shows("function step", "callers", "callees"))
        callers = screen.split("callers", 1)[1]
        assert [row[0] for row in rows(callers)][:3] == ["70", "50", "50"] and "work" in callers and "other" in callers
        seen.tmux("send-keys", "Escape")
        seen.until(lambda screen: "function step" not in screen and names(screen)[:1] == ["step"])


def test_a_filter_is_a_text_or_a_condition(stored):
    with Terminal(NHMTAP, "top", stored(profile(*FUNCTIONS))) as seen:
        seen.until(shows("large", "middle", "small"))
        for typed, left in (("MID", ["middle"]), ("comm=demo", ["large", "small"]), ("symbol~^s", ["small"])):
            seen.type("/" + typed)
            seen.tmux("send-keys", "Enter")
            seen.until(lambda screen, left=left: names(screen) == left)
        for typed in ("nosuch", "comm=nosuch"):
            seen.type("/" + typed)
            seen.tmux("send-keys", "Enter")
            keys = shows("n N next", "Esc clear", "z freeze")
            seen.until(lambda screen: "no row is for the filter" in screen and not names(screen) and keys(screen.splitlines()[-1]))
        seen.type("/symbol~(")
        seen.tmux("send-keys", "Enter")
        seen.until(shows("Unmatched"))
        seen.tmux("send-keys", "Escape")
        seen.until(lambda screen: len(names(screen)) == 3)


CODE = """
#define PLACES "nop\\n.globl sampled_place\\nsampled_place: ud2\\nnop\\nhlt\\nud2"
__attribute__((noinline)) void sought(void)
{
	__asm__ volatile(PLACES);
}

int main(void)
{
	sought();
	return 0;
}
"""


@pytest.fixture(scope="module")
def sampled_place(tmp_path_factory):
    """A frame of the function sought(), at its first ud2."""
    path = tmp_path_factory.mktemp("code") / "program"
    path.with_suffix(".c").write_text(CODE)
    subprocess.run(["gcc", "-g", "-O1", "-o", path, path.with_suffix(".c")], check=True)
    symbols = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    return {"symbol": "sought", "module": str(path), "offset": hex(int(re.search(r"(\w+) T sampled_place", symbols)[1], 16))}


@pytest.mark.parametrize("way", ["code", "stack", "branch"])
def test_enter_shows_the_code_of_a_function_in_which_texts_are_found(stored, sampled_place, way):
    """The stack of the branch's sample ends in another function, where the interrupt came."""
    stack = way != "code"
    frames = {"type": "frames", "frames": [sampled_place, {"symbol": "main"}]}
    where = {"code": sampled_place} if way == "code" else {"stack": [0, 1]}
    others = [{"comm": "demo", "samples": 1, "period": 3, "code": {"symbol": "sorted"}}, *FUNCTIONS] if not stack else []
    sampled = profile({"comm": "demo", "samples": 7, "period": 70, **where}, *others)
    taken = {"type": "branch", "event": "taken", "start_time": at(1), "duration_ns": 1, "entries": [
        {"kind": "edge", "stack": [1], "from": sampled_place, "to": sampled_place, "count": 7, "period": 70, "comm": "demo"}]}
    records = [frames] * stack + [taken if way == "branch" else sampled] * 2
    with Terminal(NHMTAP, "top", stored(*records), rows=50, columns=100) as seen:
        seen.type("e/so")
        seen.tmux("send-keys", "Enter")
        seen.until(lambda screen: "Esc clear" in screen and set(names(screen)) == {"sought", *["sorted"] * (not stack)})
        seen.type("/sought")
        seen.tmux("send-keys", "Enter")
        seen.until(shows("n N next"))
        seen.tmux("send-keys", "Enter")
        screen = seen.until(shows("function sought", "sought of /", "program.c:", "branches   share" if way == "branch" else " samples   share"))
        assert re.findall(r"^ +(\d+) +100\.00% +0x\w+: +ud2", screen, re.M) == ["14"] and len(re.findall(": +ud2", screen)) == 2
        seen.type("/UD2")
        seen.tmux("send-keys", "Enter")
        choose(seen, r"^ *14 +100\.00% +0x\w+: +ud2")
        assert "hlt" in seen.screen()  # nothing is left out
        for key, found in (("n", r"^ +0x\w+: +ud2"), ("n", r"^ *14 +100"), ("N", r"^ +0x\w+: +ud2")):
            seen.type(key)
            choose(seen, found)
        seen.tmux("send-keys", "Escape")
        seen.until(lambda screen: "│ /sought" in screen and names(screen) == ["sought"])


def test_numbers_of_others_that_are_too_large_are_shown_as_the_largest(stored, sampled_place):
    """The largest number twice, and a whole that is less than its parts."""
    largest = 2 ** 63 - 1
    sampled = profile({"comm": "demo", "samples": largest - 1, "period": largest, "code": sampled_place},
                      {"comm": "demo", "samples": 1, "period": -largest, "code": {"symbol": "other"}})
    with Terminal(NHMTAP, "top", stored(sampled, sampled), rows=50, columns=100) as seen:
        seen.until(shows(f"\n{largest:,}  100.0%"))
        seen.tmux("send-keys", "Enter")
        screen = seen.until(shows("function sought", "ud2"))
        assert re.search(rf"^ *{largest} +100\.00% +0x\w+: +ud2", screen, re.M) and not re.search(r" -\d", screen)


def test_next_goes_to_rows_that_the_filter_is_for(stored):
    with Terminal(NHMTAP, "top", stored(profile(*FUNCTIONS))) as seen:
        seen.until(shows("large", "middle", "small"))
        seen.type("n")
        seen.until(shows("/ TEXT first"))
        seen.type("/comm=demo")
        seen.tmux("send-keys", "Enter")
        seen.until(lambda screen: names(screen) == ["large", "small"])
        for row in ("small", "large", "small"):
            seen.type("n")
            choose(seen, f"demo +{row}")
        seen.type("/nosuch")
        seen.tmux("send-keys", "Enter")
        seen.until(lambda screen: not names(screen))
        seen.type("n")
        seen.until(shows("no row has 'nosuch'"))


def test_counts_have_their_last_intervals_as_bars(stored):
    path = stored(*[count(i, 100 * i) for i in range(1, 9)])
    with Terminal(NHMTAP, "top", path) as seen:
        seen.type("e")
        row, = rows(seen.until(shows("▁▂▃▄▅▆▇█"[1:])))
        assert row[:2] == ["800", "3,600"] and "page-faults" in row and "▂▃▄▅▆▇██" in row
    with Terminal(NHMTAP, "top", path, LC_ALL="C", TERM="vt100") as seen:
        seen.type("e")
        screen = seen.until(shows("23456788"))
        assert screen.isascii()


def loads(seconds, **sources):
    """An interval of loads: SOURCE=(samples, power of two of their latency)."""
    found = [{"source": source, "samples": n, "period": n, "latency_sum_period": n << power, "latency_max": 1 << power,
              "latency_histogram_period": {str(1 << power): n}} for source, (n, power) in sources.items()]
    return {"type": "mem", "event": "loads", "start_time": at(seconds), "duration_ns": 1, "enabled_ns": 2, "running_ns": 1,
            "samples": {"expected": 30, "aggregated": 27, "lost": {"table_full": 3}}, "entries": found}


def test_loads_that_have_sources_but_no_entries_are_counted_and_those_of_single_samples_once(stored):
    less = {**loads(1, L3=(20, 5), DRAM=(10, 8)), "sources": loads(1, L3=(20, 5), DRAM=(10, 8))["entries"], "entries": []}
    samples = [{"type": "sample", "event": "loads", "sample_time": at(1), "comm": "demo", "source": "L3", "latency": 32, "period": 1}] * 7
    start, *rest = stream(*samples, less)
    with Terminal(NHMTAP, "top", stored(text=text_of({**start, "command": "mem"}, *rest)), columns=110, rows=30) as seen:
        seen.type("e3")
        screen = seen.until(lambda screen: shows("data sources", "100%")(screen) and rows(screen))
        assert "loads (mem): 30 samples" in screen
        assert [(row[0], row[-1]) for row in rows(screen)[:2]] == [("20", "L3"), ("10", "DRAM")]


def offcore(seconds):
    return {"type": "offcore", "start_time": at(seconds), "duration_ns": 1, "cells": [
        {"request": request, "response": response, "scaled": 10 * i + j, "bound": {"low": 0, "high": 99}}
        for i, request in enumerate(("read", "write")) for j, response in enumerate(("cache", "memory"))]}


def analysis(seconds):
    return {"type": "analysis", "start_time": at(seconds), "duration_ns": 1, "shares": [
        {"name": "stalled", "share": .6, "low": .5, "high": .7},
        {"name": "memory", "parent": "stalled", "share": .25, "low": .2, "high": .3}]}


def branches(seconds):
    return {"type": "branch", "event": "taken", "start_time": at(seconds), "duration_ns": 1, "entries": [
        {"kind": "edge", "count": 50, "mispredicted": 5, "from": {"symbol": "caller"}, "to": {"symbol": "called"}}]}


def test_each_kind_of_record_has_its_view(stored):
    path = stored(*[record for i in (1, 2) for record in (loads(i, L3=(20, 5), DRAM=(10, 8)), offcore(i), analysis(i), branches(i))])
    with Terminal(NHMTAP, "top", path, columns=110, rows=30) as seen:
        seen.type("e3")
        screen = seen.until(lambda screen: shows("data sources", "100%")(screen) and rows(screen))
        assert [[row[0], row[3], row[4], row[5], row[6]] for row in rows(screen)[:2]] == [
            ["40", "32", "32", "▁▁▁▁▁█▁▁▁", "L3"], ["20", "256", "256", "▁▁▁▁▁▁▁▁█", "DRAM"]]
        assert shows("counted 50.0% of the time", "6 of 60 expected samples are missing: table_full")(screen)
        seen.type("4")
        seen.until(lambda screen: re.search(r"request +cache +memory\nread +~0 +~2\nwrite +~20 +~22\n", screen))
        seen.type("5")
        screen = seen.until(shows("5 branches", "caller"))
        assert rows(screen)[0] == ["100", "100.0%", "3.7", "10.0%", "caller", "called"]
        seen.type("6")
        screen = seen.until(shows("6 analysis", "memory"))
        assert re.search(r"60\.0 +60\.0 +~ +50\.0 +70\.0 .* stalled\n *25\.0 +25\.0 +~ +20\.0 +30\.0 .*   memory", screen)
        seen.type("7")
        screen = seen.until(shows("7 health", "accounts"))
        assert rows(screen)[0] == ["60", "54", "6", "0", "50.0% of the time", "loads"]


@pytest.mark.parametrize("end, said", [(None, ""), ("end", "the stream has no end: it was cut"), ("line", "its last line is not whole")])
def test_how_a_stream_ends_is_told_when_all_of_it_has_been_shown(stored, end, said):
    text = text_of(*stream(profile(*FUNCTIONS, start=at(1)), profile(*FUNCTIONS, start=at(2)), profile(*FUNCTIONS, start=at(3)), count(3, 5)))
    lines = text.splitlines(keepends=True)
    path = stored(text={None: text, "end": "".join(lines[:-1]), "line": text[:-9]}[end])
    with Terminal(NHMTAP, "top", path, rows=30) as seen:
        seen.type("07")
        screen = seen.until(shows("PAUSED", "7 health", "accounts"))
        assert "no end" not in screen and rows(screen)[0][:2] == ["60", "60"]
        seen.type("e")
        screen = seen.until(shows("END", "100%", "page-faults"))
        assert (said or "no record is missing") in screen and ("no end" in screen) == bool(end)
        # Nothing is expected of an event that is only counted.
        assert re.search(r"\n +180 +180 +0 +0 +100.0% of the time  cpu-clock\n +100.0% of the time  page-faults\n", screen)


def test_the_end_of_a_pipe_is_told(tmp_path):
    (tmp_path / "records").write_text(text_of(*stream(profile(*FUNCTIONS))))
    with Terminal(f"cat {tmp_path}/records | {NHMTAP} top -") as seen:
        seen.until(shows("ENDED", "large"))


def test_time_can_be_frozen_and_gone_back_in(stored):
    path = stored(*[profile(*entries(**{f"part{i}": 10 + i}), start=at(i)) for i in range(1, 6)])
    with Terminal(NHMTAP, "top", path) as seen:
        seen.type("e")
        seen.until(lambda screen: len(names(screen)) == 5 and "100%" in screen)
        seen.type("hh")
        seen.until(lambda screen: sorted(names(screen)) == ["part1", "part2", "part3"])
        seen.type("l")
        seen.until(lambda screen: len(names(screen)) == 4 and "PAUSED" in screen)
        seen.type("0")
        seen.until(lambda screen: names(screen) == ["part1"])
        seen.type(">> ")
        seen.until(lambda screen: len(names(screen)) == 5 and shows("×4", "END")(screen))


def test_frozen_data_stay_while_others_come(tmp_path):
    records = stream(profile(*entries(first=10), start=at(1)), profile(*entries(second=20), start=at(2)))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with Terminal(f"cat {fifo} | {NHMTAP} top -") as seen, open(fifo, "w", encoding="utf-8") as writer:
        writer.write(text_of(*records[:2]))
        writer.flush()
        seen.until(lambda screen: names(screen) == ["first"] and "LIVE" in screen)
        seen.type("z")
        seen.until(shows("FROZEN"))
        writer.write(text_of(*records[2:]))
        writer.flush()
        screen = seen.until(shows("2 newer records"))
        assert names(screen) == ["first"]
        seen.tmux("send-keys", "Enter")
        seen.until(shows("function first"))
        seen.tmux("send-keys", "Escape")
        seen.type("z")
        seen.until(lambda screen: names(screen) == ["second", "first"])


@pytest.mark.parametrize("columns, lines", [(80, 24), (200, 50), (20, 4)])
def test_it_fits_the_terminal_and_its_footer_lists_the_keys(stored, columns, lines):
    with Terminal(NHMTAP, "top", stored(profile(*FUNCTIONS)), columns=columns, rows=lines) as seen:
        screen = seen.until(shows("q quit"))
        assert len(screen.splitlines()) == lines and "q quit" in screen.splitlines()[-1]
        if columns >= 80:
            assert shows("views", "Enter", "Esc", "/ filter", "s sort", "z freeze", "? help")(screen.splitlines()[-1])
        seen.resize(100, 30)
        seen.until(lambda screen: len(screen.splitlines()) == 30 and shows("q quit", "? help")(screen.splitlines()[-1]))
        seen.type("?")
        seen.until(shows("keys", "Enter", "freeze"))


@pytest.mark.parametrize("columns", [40, 80])
def test_sentences_are_broken_between_words_and_not_cut(stored, columns):
    words = [f"word{number}" for number in range(60)]
    path = stored(profile(*FUNCTIONS), {"type": "warning", "why": " ".join(words)})
    with Terminal(NHMTAP, "top", path, columns=columns, rows=50) as seen:
        seen.type("7")
        lines = [line.rstrip() for line in seen.until(shows("accounts", words[-1])).splitlines()]
        told = [line for line in lines if line.startswith("# word")]
        assert " ".join(line.removeprefix("# ") for line in told) == " ".join(words)
        seen.type("?")
        help_lines = seen.until(shows("this help", "can be trusted")).splitlines()
        assert max(map(len, help_lines)) <= columns


LONG = "std::map<std::string, std::vector<item>>::insert_or_assign<" + "int, " * 40 + "int>"


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
@pytest.mark.parametrize("columns, lines", [(60, 24), (80, 24), (200, 50)])
def test_each_view_fits_the_terminal_and_keeps_the_ends_of_its_names(stored, columns, lines, locale):
    """Names are shortened in the middle. Nothing is wrapped: the terminal joins the lines that it has wrapped."""
    long = {"comm": "a-long-command-n", "samples": 90, "period": 90, "code": {"symbol": LONG, "module": "/usr/lib/a/long/path/liblong.so.6"}}
    path = stored(*[record for i in (1, 2) for record in (profile(*FUNCTIONS, long, start=at(i)), count(i, 7), loads(i, L3=(20, 5)), offcore(i),
                                                           branches(i), analysis(i))])
    with Terminal(NHMTAP, "top", path, columns=columns, rows=lines, LC_ALL=locale, NO_COLOR="1") as seen:
        seen.type("e")
        for view, has in enumerate(("std::", "page-faults", "L3", "memory", "caller", "stalled", "accounts", "q quit"), 1):
            seen.type(str(view))
            seen.until(shows(f"│ {view} " if locale == "C.UTF-8" else f"| {view} ", has))
            screen = seen.screen("-J")
            assert len(screen.splitlines()) == lines and all(len(line.rstrip()) <= columns for line in screen.splitlines())
            assert locale != "C" or screen.isascii()
            if view == 1:
                row, = [line for line in screen.splitlines() if "std::" in line]
                assert re.search(r"a-long-command-n  std::.*[^.…](\.\.\.|…)[^.…].*\.so\.6\)$", row.rstrip())


def test_without_colours_none_are_used(stored):
    path = stored(profile(*FUNCTIONS))
    for settings, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "vt100"}, False)):
        with Terminal(NHMTAP, "top", path, **settings) as seen:
            seen.until(shows("large", "q quit"))
            assert bool(re.search(r"\x1b\[(\d+;)*3[0-7]m", seen.screen("-e"))) is coloured, settings


@pytest.mark.parametrize("name, why", [("dumb", "can't place text"), ("nosuch", "is not known")])
def test_a_terminal_that_cant_place_text_is_refused_in_words(stored, name, why):
    with Terminal(NHMTAP, "top", stored(profile(*FUNCTIONS)), TERM=name) as seen:
        assert shows(f"TERM={name}", why)(seen.end())


def test_records_from_a_terminal_are_refused():
    """They would be the keys, of which none would do anything."""
    with Terminal(NHMTAP, "top", "-") as seen:
        assert "stdin is a terminal" in seen.end()


def test_without_a_terminal_it_is_refused(stored):
    done = subprocess.run(["setsid", "-w", NHMTAP, "top", stored(profile(*FUNCTIONS))], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    assert done.returncode and "needs a terminal" in done.stderr and "nhmtap profile" in done.stderr


class Pty:
    """nhmtap top on a terminal of which every byte is seen. It does not wait for any screen."""

    def __init__(self, *arguments, **variables):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            os.environ.update({"TERM": "xterm", "LC_ALL": "C.UTF-8", **variables})
            os.execv(NHMTAP, [NHMTAP, "top", *map(str, arguments)])
        self.seen = b""

    def read(self, seconds=0):
        while select.select([self.fd], [], [], seconds)[0]:
            try:
                self.seen += os.read(self.fd, 65536)
            except OSError:  # it has ended
                return

    def until(self, text):
        while text not in self.seen:
            assert select.select([self.fd], [], [], 60)[0], self.seen
            self.seen += os.read(self.fd, 65536)

    def resize(self, columns, lines):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, keys):
        os.write(self.fd, keys)

    def end(self):
        while True:  # a program that blocks on writing would not end
            self.read(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)


COMBINED = "e" + "\u0301" * 50 + "寛" * 30


def test_hostile_names_never_reach_the_terminal(stored):
    path = stored(profile(*[{"comm": name[:200], "samples": 9, "period": 9, "code": {"symbol": name, "module": name}}
                            for name in (HOSTILE, COMBINED, "\u202eevil\u2066", "\x9b31m", "a\nb\tc")]),
                  {"type": "warning", "why": HOSTILE}, {**count(1, 5), "event": HOSTILE, "unit": HOSTILE})
    run = Pty(path)
    run.until(b"samples")
    for key in (b"\n", b"\x1b", b"2", b"7", b"/" + "\u202e".encode() + b"\n", b"\x1b"):
        run.read(0.2)
        run.type(key)
    run.read(0.3)
    run.type(b"q")
    assert run.end() == 0
    text = run.seen.decode(errors="replace")
    assert "\\x1b" in text or "\\u001b" in text
    for hostile in ("\x1b]", "\x07", "\u202e", "\u2066", "\u0301", "\x9b"):
        assert hostile not in text


WHOLE = text_of(*stream(*stacks(main__work=30, main__work__step=50), count(1, 5), profile(*FUNCTIONS)))


def test_a_stream_is_shown_up_to_where_it_is_cut(stored):
    """The first piece ends within a record, the second within a character's escape or a number."""
    first = WHOLE.index('"type":"count"')
    for cut in sorted({first, len(WHOLE) - 1, *random.Random(1).sample(range(first, len(WHOLE)), 4)}):
        run = Pty(stored(text=WHOLE[:cut]))
        run.until(b"step")
        run.type(b"q")
        assert run.end() == 0, cut


KEYS = [b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"j", b"k", b"h", b"l", b"s", b"w", b"z", b" ", b"?", b"\t", b"\n",
        b"\x1b", b"/", b"a", b"=", b"~", b"(", b"\x7f", b"0", b"e", b"<", b">", b"g", b"G", b"\x1b[A", b"\x1b[B", b"\x1b[C", b"\x1b[D",
        b"\x1b[5~", b"\x1b[6~", b"\xff", b"\xc3\xa9", b"\x00"]


@pytest.mark.parametrize("seed", range(2))
def test_no_keys_and_sizes_make_it_fail(stored, seed):
    chance = random.Random(f"{os.environ.get('NHMTAP_SEED', '')} {seed}")
    interval = [*stacks(main__work=30, main__work__step=50), count(1, 5), profile(*FUNCTIONS)]
    run = Pty(stored(*[{**record, "start_time": at(i)} for i in range(5) for record in interval],
                     {"type": "offcore", "start_time": at(6), "duration_ns": 1,
                      "cells": [{"request": "a", "response": "b", "scaled": 5}]}))
    run.until(b"quit")
    for _ in range(int(os.environ.get("NHMTAP_TOP_KEYS", "100"))):
        run.type(chance.choice(KEYS))
        if not chance.randrange(8):
            run.resize(chance.choice([1, 2, 20, 80, 200, 500]), chance.choice([1, 2, 4, 24, 50, 200]))
        run.read(0.01)
    run.read(0.1)
    run.type(b"\x1b")
    run.read(0.2)
    run.type(b"\x03")
    assert run.end() == 0


def test_what_is_no_record_is_refused_before_the_screen(stored):
    with Terminal(NHMTAP, "top", stored(text="{}\nhello\n" + json.dumps({"type": "start"}) + "\n")) as seen:
        assert "is no record" in seen.end()


def test_columns_that_are_empty_make_room_for_names_and_units(stored):
    """Exact counts have no bounds, and take no room for them in 80 columns."""
    counts = [{"type": "count", "event": "context-switches", "unit": "ns", "start_time": at(i), "duration_ns": 10 ** 9, "status": "counted",
               "value": 10 ** 8 + i, "scaled": 10 ** 8 + i, "enabled_ns": 1, "running_ns": 1} for i in range(20)]
    with Terminal(NHMTAP, "top", stored(*counts)) as seen:
        screen = seen.until(shows("END", "context-switches"))
        heading, row = next(pair for pair in zip(screen.splitlines(), screen.splitlines()[1:]) if "context-switches" in pair[1])
        assert heading.split() == ["last", "sum", "intervals", "unit", "name"] and row.split()[-2:] == ["ns", "context-switches"]
        seen.resize(140, 24)
        seen.until(shows("from  to"))
