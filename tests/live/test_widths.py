# SPDX-License-Identifier: GPL-2.0-only
"""What people read fits the terminal, however wide it is, with UTF-8 and without, and nothing is lost on the way."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import termios
import unicodedata
from collections import Counter

import pytest

import hosts
from records import NHMTAP, program

WIDTHS = (60, 80, 100, 132, 200)
LOCALES = ("C.UTF-8", "C")
LONG = "std::map<std::string, std::vector<item>, compare<std::string>>::" + "insert_or_assign<int>(item const&, int)"


def at(seconds):
    return f"2026-01-01T00:00:{seconds:02d}.000000000Z"


def record(number, kind, **members):
    return {"type": kind, "schema_version": "3.5.0", "time": at(number), "run_id": "0" * 32, "seq": number, "activity": "a",
            **members}


def taken(nr):
    return {"expected": nr, "aggregated": nr, "lost": {}}


def interval(kind, **members):
    return record(0, kind, start_time=at(0), duration_ns=10 ** 9, **members)


LOADS = {"samples": 30, "period": 30, "latency_sum_period": 3000, "latency_max": 200, "latency_histogram_period": {"64": 30}}
BEGIN = record(0, "start", version="0.1.0", command="profile", target={"cpus": "0-7"}, host={"cpus_online": 8, "kernel": "6.1.0"},
               events=[])
STORED = [BEGIN,
          interval("count", event="MEM_LOAD_RETIRED.LLC_UNSHARED_HIT:u", status="multiplexed", value=123456789, scaled=234567890,
                   enabled_ns=2 * 10 ** 9, running_ns=10 ** 9, bound={"low": 234000000, "high": 235000000}),
          interval("profile", event="cycles", enabled_ns=1, running_ns=1, samples=taken(30), entries=[
              {"comm": "a-long-command-n", "code": {"symbol": LONG, "module": "/usr/lib/x86_64-linux-gnu/a/long/path/liblong.so.6"},
               "samples": 20, "period": 20},
              {"comm": "short", "code": {"symbol": "f", "module": "/bin/x"}, "samples": 10, "period": 10}]),
          interval("mem", event="load-latency", enabled_ns=1, running_ns=1, samples=taken(30), entries=[
              {"source": "local_dram_exclusive", "comm": "a-long-command-n", "variable": "a_variable_with_a_long_name",
               "data_module": "/usr/lib/x86_64-linux-gnu/liblong.so.6", "data_type": "struct with_a_rather_long_name",
               "field": "and.its.field", **LOADS}]),
          interval("offcore", cells=[
              {"request": request, "response": response, "scaled": 10 * i + j, "bound": {"low": 0, "high": 99}}
              for i, request in enumerate(("DEMAND_DATA_RD", "DEMAND_RFO")) for j, response in enumerate(("LLC_MISS", "LLC_HIT"))]),
          interval("branch", event="branches", enabled_ns=1, running_ns=1, samples=taken(1), entries=[
              {"kind": "edge", "count": 50, "mispredicted": 5, "from": {"symbol": LONG, "module": "/bin/x"},
               "to": {"symbol": "called", "module": "/bin/x"}}])]
SHARES = [{"name": "stalled", "share": .6, "low": .5, "high": .7},
          {"name": "memory_bound", "parent": "stalled", "share": .25, "low": .2, "high": .3,
           "sampled": {"by": "profile -e MEM_LOAD_RETIRED.LLC_MISS:pp --by line", "samples": 100},
           "where": [{"share": .9, "symbol": LONG, "module": "/bin/x", "file": "/a/long/path/to/the/source/file.cc", "line": 123}],
           "objects": [{"share": .8, "variable": "a_variable_with_a_long_name", "data_type": "struct with_a_rather_long_name",
                        "field": "and.its.field", "data_module": "/usr/lib/x86_64-linux-gnu/liblong.so.6"}]},
          {"name": "retiring", "share": .4, "low": .3, "high": .5}]
CONFIG = {"activities": [{"name": "a-profile", "command": "profile", "all_cpus": True, "freq": 99, "interval_ms": 1000},
                         {"name": "counts", "command": "stat", "all_cpus": True, "event": "page-faults", "interval_ms": 1000}]}


def files(folder):
    """Files for the commands that read some: their places by name."""
    for name, content in (("stored", STORED), ("again", STORED),
                          ("analysis", [BEGIN | {"command": "analyze"}, interval("analysis", shares=SHARES, verdict=[
                              {"name": "memory_bound"}])])):
        (folder / name).write_text("".join(json.dumps(one | {"seq": i}) + "\n" for i, one in enumerate(content)))
    (folder / "config").write_text(json.dumps(CONFIG))
    return {name: folder / name for name in ("stored", "again", "analysis", "config")}


# What they print is the same each time, as long as the machine is.
SAME = {
    "help": "help", "stat --help": "stat --help", "mem --help": "mem --help", "machine --help": "machine --help",
    "run --help": "run --help", "list": "list --cpu nehalem-ep", "list of some": "list --cpu nehalem-ep MEM*",
    "explain": "explain --cpu nehalem-ep MEM_LOAD_RETIRED.LLC_MISS:pp",
    "explain -e of a group": "explain --cpu nehalem-ep UOPS_RETIRED.STALL_CYCLES,BR_INST_RETIRED.ALL_BRANCHES:p",
    "doctor": "doctor {host}", "doctor -v": "doctor -v {host}", "show": "show -q {stored}", "show --diff": "show -q --diff {stored} {again}",
    "show --by": "show -q --by comm,module {stored}", "analyze": "analyze {analysis}",
}
# What these print changes, but not that it fits.
OTHER = {
    "stat": "stat -e page-faults,task-clock,context-switches -- true", "profile": "profile -e page-faults:u -c 1 -- {names} here=50",
    "profile -g": "profile -g -e page-faults:u -c 1 -- {names} here=50",
    "mem": "mem -e page-faults:u -c 1 --by comm,symbol,variable,type -- {names} here=50",
    "stream": "stream -e page-faults:u -c 1 -- {names} here=50", "machine --list": "machine --list",
    "run --check": "run --check {config}",
}


def on_terminal(words, columns, locale):
    """What a command writes to a terminal of this width: stdout and stderr."""
    ours, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    done = subprocess.Popen([NHMTAP, *words], stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.DEVNULL,
                            env=os.environ | {"LC_ALL": locale, "PAGER": "cat", "TERM": "xterm"})
    os.close(terminal)
    said = b""
    try:
        while part := os.read(ours, 1 << 16):
            said += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    done.wait()
    return said.decode().replace("\r\n", "\n")


def without_limits(words):
    """What it writes to a file for people, whose lines may have any width."""
    form = [] if words[0] in ("help", "show") or words[-1] == "--help" else ["--format", "table"]
    return subprocess.run([NHMTAP, words[0], *form, *words[1:]], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          env=os.environ | {"LC_ALL": "C.UTF-8"}).stdout.decode()


@pytest.fixture(scope="module")
def words_of(tmp_path_factory):
    folder = tmp_path_factory.mktemp("widths")
    known = files(folder) | {"names": program("names"), "host": "--host-root=" + hosts.build(folder / "host", hosts.NEHALEM)}
    return lambda command: command.format(**known).split()


def too_wide(said, columns):
    return [line for line in said.splitlines() if len(line) > columns]


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("command", [*SAME.values(), *OTHER.values()], ids=[*SAME, *OTHER])
def test_no_line_is_wider_than_the_terminal(words_of, command, columns, locale):
    said = on_terminal(words_of(command), columns, locale)
    assert said.strip() and too_wide(said, columns) == []
    assert locale != "C" or said.isascii()


def content(said):
    """The characters that are neither blanks nor the begin of a line of remarks."""
    return re.sub(r"^# |\s", "", said, flags=re.M)


def headings(said):
    """The words above the columns of the tables of `show`."""
    return [word for line in said.splitlines() if re.match(r" *(samples +share|branches +share|value +from|first +second) ", line) for word in line.split()]


NARROW = re.compile(r"^# too narrow for (.*)\n", re.M)


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("command", SAME.values(), ids=SAME)
def test_narrow_terminals_lose_only_middles_of_names_and_columns_that_they_tell_of(words_of, command, columns):
    words = words_of(command)
    whole, said = without_limits(words), on_terminal(words, columns, "C.UTF-8")
    told = [name for names in NARROW.findall(said) for name in names.split(", ")]
    # Columns in which the stored records have nothing make room without a word.
    assert Counter(headings(said) + told) <= Counter(headings(whole))
    assert set(Counter(headings(whole)) - Counter(headings(said) + told)) <= {"±", "unit", "from", "to"}
    if said.count("…") == whole.count("…") and not told:
        assert content(said) == content(whole)
        return
    assert too_wide(whole, columns), "nothing needed to be shortened"
    everything = content(whole)
    for line in NARROW.sub("", said).splitlines():
        assert all(content(piece) in everything for word in line.split() for piece in word.split("…")
                   if word != "#"), line


@pytest.mark.parametrize("command", ["stat", "machine"])
def test_the_help_of_each_option_begins_in_one_column(nhmtap, command):
    """Also of those that are wider than what is before that column: it stands in the next line then."""
    heads = re.findall(r"^((?:  -\w, |      )--\S+(?: \S+)?)(.*)$", nhmtap(command, "--help").out, re.M)
    assert {bool(text) for _, text in heads} == {True, False}
    assert {len(head + text) - len(text.lstrip()) for head, text in heads if text} == {27}


def columns_of(text):
    """By Unicode's annex 11, as terminals have them."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


# Chinese and emoji take two columns, what is drawn upon another letter none; one has to be read from the right.
NAMES = ["漢字の名前" * 8, "🦀🔥" * 20, "e\u0301" * 60, "שם ארוך " * 10, "\u202eevil\x1b[31m", "plain" * 12, "short"]
WIDE = [BEGIN,
        interval("profile", event="cycles", enabled_ns=1, running_ns=1, samples=taken(70), entries=[
            {"comm": name, "code": {"symbol": "same", "module": "/bin/x"}, "samples": 10, "period": 10} for name in NAMES]),
        interval("profile", event="faults", enabled_ns=1, running_ns=1, samples=taken(70), entries=[
            {"comm": "same", "code": {"symbol": name, "module": "/bin/x"}, "samples": 10, "period": 10} for name in NAMES]),
        interval("branch", event="branches", enabled_ns=1, running_ns=1, samples=taken(7), entries=[
            {"kind": "edge", "count": 50, "mispredicted": 5, "from": {"symbol": name}, "to": {"symbol": "same"}} for name in NAMES]),
        *(interval("count", event=name, status="counted", value=10 ** i, scaled=10 ** i, enabled_ns=1, running_ns=1) for i, name in enumerate(NAMES))]


@pytest.mark.parametrize("columns", (40, *WIDTHS))
@pytest.mark.parametrize("options", [(), ("--by", "comm,symbol"), ("--diff",)])
def test_names_whose_characters_are_wide_or_take_no_room_fit_and_leave_the_columns_aligned(tmp_path, options, columns):
    (tmp_path / "wide").write_text("".join(json.dumps(one | {"seq": i}) + "\n" for i, one in enumerate(WIDE)))
    said = on_terminal(["show", *options, tmp_path / "wide", *([tmp_path / "wide"] if "--diff" in options else [])], columns, "C.UTF-8")
    assert [line for line in said.splitlines() if columns_of(line) > columns] == []
    for table in said.split("\n\n"):
        behind = {columns_of(line[:line.index("same")]) for line in table.splitlines() if "same" in line and "comm" not in line}
        assert len(behind) <= 1, table
    assert said.count("same") >= 14 and "漢字" in said


UNCOUNTED = [BEGIN, interval("offcore", cells=[
    {"request": request, "response": response, "status": "not_counted", "why": "it never got a counter, because others hold all of those that it can use"}
    for request in ("DEMAND_DATA_RD", "DEMAND_IFETCH") for response in ("LOCAL_CACHE", "ANY_LLC_MISS")])]


@pytest.mark.parametrize("columns, why", [(45, "# too narrow for why"), (60, "it never"), (200, "all of those that it can use")])
def test_names_of_rows_come_before_the_reasons_why_they_have_no_number(tmp_path, columns, why):
    (tmp_path / "uncounted").write_text("".join(json.dumps(one | {"seq": i}) + "\n" for i, one in enumerate(UNCOUNTED)))
    said = on_terminal(["show", tmp_path / "uncounted"], columns, "C.UTF-8")
    assert re.findall(r"DEMAND_DATA_RD → ANY_LLC_MISS|DEMAND_IFETCH → LOCAL_CACHE", said) == ["DEMAND_DATA_RD → ANY_LLC_MISS", "DEMAND_IFETCH → LOCAL_CACHE"]
    assert why in said and too_wide(said, columns) == []
