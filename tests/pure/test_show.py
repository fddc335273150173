# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap show: tables of stored records. The streams are made here, so the shares are known."""
import json
import random
import re
import subprocess

import pytest
from records import NHMTAP
from test_symbolize import SCHEMA_VERSION, entry, event, profile, stream, text_of

HOSTILE = "\x1b]0;title\x07\u202egnp\n<script>" + "x" * 10000


def run(command, text, *options):
    return subprocess.run([NHMTAP, command, *map(str, options)], input=text, capture_output=True, text=True, timeout=60,
                          check=False)


def show(text, *options):
    return run("show", text, *options)


def rows(text, *options):
    """The rows of the only table as lists of cells, which are apart by two blanks."""
    done = show(text, *options)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    table = done.stdout.split("\n\n")[1]
    lines = [line for line in table.splitlines()[1:] if not line.startswith("#")]
    return [re.split(r" {2,}", line.strip()) for line in lines[1:]]


def code(symbol, module="/opt/demo"):
    return {"symbol": symbol, "module": module}


def entries(**symbols):
    return [{"comm": "demo", "samples": n, "period": 10 * n, "code": code(symbol)} for symbol, n in symbols.items()]


def frames(*names):
    return {"type": "frames", "event": "cpu-clock", "start_time": "2026-01-31T23:59:59.000000000Z", "duration_ns": 1,
            "frames": [{"id": i, "symbol": name, "module": "/opt/demo", "offset": hex(16 * i)} for i, name in enumerate(names)]}


NAMES = ["main", "work", "step", "other"]


def stacks(**counts):
    """An interval of stacks: their functions, the outermost first, are joined by "__"."""
    found = profile(*[{"stack": [NAMES.index(name) for name in reversed(way.split("__"))], "comm": "demo",
                       "samples": n, "period": n} for way, n in counts.items()])
    total = sum(counts.values())
    return [frames(*NAMES), {**found, "stacks": {"delivered": total, "truncated": 0, "failed": 0, "table_full": 0}}]


WAYS = {"main__work": 30, "main__work__step": 50, "main__other__step": 15, "main": 5}


def test_intervals_are_summed_up_and_the_largest_comes_first():
    text = text_of(*stream(profile(*entries(small=10, large=20)), profile(*entries(large=50, small=20))))
    assert [(row[0], row[1], row[-1]) for row in rows(text)] == [("70", "70.0%", "large (demo)"), ("30", "30.0%", "small (demo)")]


def test_what_records_say_of_themselves_begins_no_line_of_its_own():
    forged = "\n    99  99.0%  forged"
    start, warning, sampled, end = stream({"type": "warning", "why": f"w{forged}"}, profile(*entries(large=70)))
    start["command"] += forged
    start["target"] = {"process.command_args": [f"a{forged}"], "process.pid": 1}
    start["host"] = {**start["host"], "kernel": forged, "cpu": {**start["host"]["cpu"], "model_name": forged}}
    start["host"]["emulated"] = {"model": forged, "version": forged}
    heading = show(text_of(start, warning, sampled, end)).stdout.split("\n\n")[0]
    assert all(line.startswith("# ") for line in heading.splitlines()) and heading.count(r"\u000a    99  99.0%  forged") == 7


def test_a_share_has_the_error_of_its_number_of_samples():
    """The farther ends of Wilson's intervals: published tables have 21.9 % to 39.6 % for 30 in 100, and 34.2 % to 100 % for 2 in 2.
    Two samples that have nearly all of the weight are worth as much as two alone."""
    found = rows(text_of(*stream(profile(*entries(large=70, small=30)))))
    assert [row[2] for row in found] == ["9.6", "9.6"]
    found = rows(text_of(*stream(profile(*entries(all=2)))))
    assert [row[:3] for row in found] == [["2", "100.0%", "65.8"]]
    heavy, light = {"comm": "a", "samples": 2, "period": 999}, {"comm": "b", "samples": 1, "period": 1}
    found = rows(text_of(*stream(profile(heavy, light))))
    assert [row[1] for row in found] == ["99.9%", "0.1%"] and [float(row[2]) for row in found] == [pytest.approx(65.7, abs=.3)] * 2


def test_weights_are_periods_not_samples():
    one, other = {"comm": "a", "samples": 1, "period": 900}, {"comm": "b", "samples": 9, "period": 100}
    assert [row[:2] for row in rows(text_of(*stream(profile(one, other))))] == [["1", "90.0%"], ["9", "10.0%"]]


@pytest.mark.parametrize("name, attr, by, said", [
    ("branch-misses:u", {"type": 0}, ["line"], "nhmtap branch --by line"), ("LLC-loads", {"type": 3}, ["ip"], "nhmtap mem --by line"),
    ("L1D.REPL", {"type": 4}, ["comm", "line"], "with :pp"), ("branch-misses", {"type": 0}, ["symbol"], ""),
    ("r2c4:pp", {"type": 4, "precise_ip": 2}, ["line"], ""), ("page-faults", {"type": 1}, ["line"], "")])
def test_lines_of_samples_that_come_late_are_told_with_what_names_the_right_ones(name, attr, by, said):
    """Events of the processor's counters interrupt it some instructions later, unless they are precise."""
    start, *rest = stream(profile(*entries(all=2)))
    told = [line for line in show(text_of({**start, "by": by, "events": [{"name": name, "attr": attr}]}, *rest)).stdout.splitlines()
            if "instructions behind" in line]
    assert len(told) == bool(said)
    assert not said or told[0].startswith(f"# {name}: ") and said in told[0]


def test_lines_of_branches_do_not_come_late_whatever_brought_their_records():
    start, *rest = stream(profile(*entries(all=2)))
    start = {**start, "command": "branch", "by": ["line"], "events": [{"name": "branch-misses", "attr": {"type": 0}}]}
    assert "instructions behind" not in show(text_of(start, *rest)).stdout


def test_names_keep_what_separates_functions_in_folded_lines():
    """Rust's arrays have a semicolon: [u8; 4]."""
    name = "<[u8; 4] as demo::Sum>::sum"
    text = text_of(*stream(profile(*entries(**{name: 7, "b": 1}))))
    assert [row[-1] for row in rows(text, "--by", "symbol")] == [name, "b"]
    assert [row[-1] for row in rows(text, "--by", "symbol", "--filter", f"symbol={name}")] == [name]


def test_a_line_that_is_too_long_is_told_by_its_number():
    start, *rest = stream(profile(*entries(a=1)))
    done = show(text_of(start) + json.dumps({"type": "x" * 5_000_000}) + "\n" + text_of(*rest))
    assert done.returncode == 1 and "line 2 of stdin: it is no record: it is too long" in done.stderr


def test_samples_by_lines_have_a_row_for_each_line_also_of_functions_that_are_inlined():
    """The line is where the processor was; the function is the one that the line is in. Another line calls the inlined one."""
    def at(line, call):
        return {"comm": "demo", "samples": line, "period": line, "code": {**code("main"), "file": "/src/d.c", "line": line, "inlined": [
            {"symbol": "score", "call_file": "/src/d.c", "call_line": call}]}}
    text = text_of(*stream(profile(at(40, 9), at(20, 9), at(40, 10))))
    assert [(row[0], row[-2:]) for row in rows(text)] == [("80", ["score (demo)", "d.c:40"]), ("20", ["score (demo)", "d.c:20"])]
    assert [(row[0], row[-1]) for row in rows(text, "--by", "line")] == [("80", "d.c:40"), ("20", "d.c:20")]
    assert [(row[0], row[-1]) for row in rows(text, "--by", "code")] == [("100", "score (demo)")]


def test_branches_by_lines_have_a_row_for_each_line_in_show_and_report():
    def branch(number, line):
        return {"kind": "line", "count": number, "period": number, "from": {**code("f"), "file": "/src/d.c", "line": line},
                "to": {**code("g"), "file": "/src/d.c", "line": line + 1}}
    taken = {**profile(entry(), start="2026-01-31T23:59:59.000000000Z"), "type": "branch", "event": "taken",
             "entries": [branch(5, 4), branch(4, 9)]}
    text = text_of(*stream(taken))
    expected = [("5", "f (demo) d.c:4", "g (demo) d.c:5"), ("4", "f (demo) d.c:9", "g (demo) d.c:10")]
    assert [(row[0], *row[-2:]) for row in rows(text)] == expected
    report = json.loads(re.search(r'type="application/json">(.*?)</script>', run("report", text).stdout, re.S)[1])["streams"][0]
    assert [(str(int(row["count"])), row["from"], row["to"]) for row in report["branches"]] == expected


@pytest.mark.parametrize("conditions, why", [("nosuch=1", "no such key"), ("comm=other", "no stack that passes the filter has")])
def test_ways_that_a_filter_leaves_out_are_refused_for_the_filter(conditions, why):
    done = show(text_of(*stream(*stacks(**WAYS))), "--callers", "step", "--filter", conditions)
    assert done.returncode == 1 and why in done.stderr


@pytest.mark.parametrize("command", ["show", "report", "flamegraph", "symbolize"])
def test_a_dash_is_stdin(command):
    text = text_of(*stream(*stacks(**WAYS)))
    asked, alone = run(command, text, "-"), run(command, text)
    assert (asked.returncode, asked.stderr) == (0, "") and len(asked.stdout) == pytest.approx(len(alone.stdout), abs=20)


def test_rows_are_grouped_and_sorted_as_asked():
    text = text_of(*stream(profile(*entries(b=10, a=20), {"comm": "x", "samples": 70, "period": 700, "code": code("a")})))
    assert [(row[0], row[-1]) for row in rows(text, "--by", "symbol")] == [("90", "a"), ("10", "b")]
    assert [row[-2:] for row in rows(text, "--by", "comm,sym", "--sort", "symbol")] == [["x", "a"], ["demo", "a"], ["demo", "b"]]


@pytest.mark.parametrize("condition, left", [
    ("symbol=a", "a"), ("symbol!=a", "b c,d"), ("symbol~^[ab]$", "a b"), ("symbol!~^[ab]$", "c,d"), ("symbol=c,d", "c,d"),
    ("comm=demo,symbol~[abc],symbol!=b", "a c,d"), ("module~demo", "a b c,d"), ("comm=x", "")])
def test_a_filter_leaves_the_rows_that_meet_all_conditions(condition, left):
    found = rows(text_of(*stream(profile(*entries(**{"a": 3, "b": 2, "c,d": 1})))), "--by", "symbol", "--filter", condition)
    assert " ".join(row[-1] for row in found) == left


@pytest.mark.parametrize("options", [(), ("--children",)])
def test_a_filter_that_no_row_passes_is_told_with_the_way_to_see_what_there_is(options):
    text = text_of(*stream(*stacks(**WAYS)))
    beyond = "" if options else ", with --children also what only calls others"
    told = f"# no row passes the filter; nhmtap show --by symbol lists what there is{beyond}\n"
    assert told in show(text, *options, "--filter", "symbol=nosuch").stdout
    assert "no row passes" not in show(text, *options, "--filter", "symbol=main").stdout


def inlined_entries():
    """Of outer, in which middle is inlined, and deep in that: each has a line of its own."""
    chain = [{"symbol": "deep", "call_file": "/src/a.c", "call_line": 4}, {"symbol": "middle", "call_file": "/src/a.c", "call_line": 5}]
    return [{"comm": "demo", "samples": n, "period": n,
             "code": {"symbol": "outer", "module": "/opt/demo", "file": "/src/a.c", "line": line, **({"inlined": inlined} if inlined else {})}}
            for n, line, inlined in ((70, 3, chain), (20, 4, chain[1:]), (10, 5, []))]


def test_by_lines_the_function_is_the_one_that_the_line_is_in():
    text = text_of(*stream(profile(*inlined_entries())))
    assert [(row[0], *row[-2:]) for row in rows(text)] == [("70", "deep (demo)", "a.c:3"), ("20", "middle (demo)", "a.c:4"), ("10", "outer (demo)", "a.c:5")]
    assert [(row[0], row[-1]) for row in rows(text, "--by", "symbol")] == [("70", "deep"), ("20", "middle"), ("10", "outer")]
    assert [row[0] for row in rows(text, "--filter", "symbol=deep")] == ["70"]


def test_where_inlined_functions_would_have_names_is_told_if_these_records_have_none():
    told = "inlined functions have names in what profile -g or --by line records"
    flat, lines = text_of(*stream(profile(*entries(outer=3)))), text_of(*stream(profile(*inlined_entries())))
    assert told in show(flat, "--filter", "symbol=deep").stdout and told not in show(flat, "--filter", "comm=x").stdout
    assert "no row passes" in show(lines, "--filter", "symbol=x").stdout and told not in show(lines, "--filter", "symbol=x").stdout


def test_small_rows_are_summed_up():
    text = text_of(*stream(profile(*entries(large=90, b=6, c=4))))
    done = show(text, "--percent-limit", "10")
    assert "large" in done.stdout and "(b" not in done.stdout and "# 10 samples (10.0%) in 2 rows more" in done.stdout
    assert "# 10 samples (10.0%) in 2 rows more" in show(text, "--top", "1").stdout


def test_children_have_what_they_call_once():
    text = text_of(*stream(*stacks(**WAYS, main__work__work=100)))
    found = {row[-1]: (row[1], row[3]) for row in rows(text, "--children", "--by", "symbol")}
    assert found == {"main": ("100.0%", "2.5%"), "work": ("90.0%", "65.0%"), "step": ("32.5%", "32.5%"), "other": ("7.5%", "0.0%")}


def test_callers_and_callees_are_the_ways_to_a_function_and_from_it():
    text = text_of(*stream(*stacks(**WAYS)))
    assert [(row[0], row[-1]) for row in rows(text, "--callers", "step")] == [
        ("65", "step"), ("50", "work"), ("50", "main"), ("15", "other"), ("15", "main")]
    assert [(row[0], row[-1]) for row in rows(text, "--callees", "main")] == [
        ("100", "main"), ("80", "work"), ("50", "step"), ("15", "other"), ("15", "step")]


def branch(stack, function, times):
    place = {"symbol": function, "module": "/opt/demo"}
    return {"kind": "edge", "stack": [NAMES.index(name) for name in reversed(stack.split("__"))], "comm": "demo", "from": place,
            "to": place, "count": times, "period": 10 * times, "mispredicted": 0, "mispredicted_period": 0}


# The first stack ends in the function whose branch it is, the second where the interrupt came, a function without a branch.
BRANCHES = [frames(*NAMES), {"type": "branch", "event": "taken", "start_time": "2026-01-31T23:59:59.000000000Z", "duration_ns": 1,
                             "entries": [branch("main__work", "work", 70), branch("main__work__step", "other", 30)]}]


def test_a_branch_is_of_the_function_that_it_leaves_and_not_of_where_its_stack_ends():
    text = text_of(*stream(*BRANCHES))
    assert [(row[0], row[1], row[-1]) for row in rows(text, "--by", "symbol")] == [("70", "70.0%", "work"), ("30", "30.0%", "other")]
    found = {row[-1]: (row[1], row[3]) for row in rows(text, "--children", "--by", "symbol")}
    assert found == {"main": ("100.0%", "0.0%"), "work": ("100.0%", "70.0%"), "step": ("30.0%", "0.0%"), "other": ("30.0%", "30.0%")}
    assert [(row[0], row[-1]) for row in rows(text, "--callees", "main")] == [
        ("100", "main"), ("100", "work"), ("30", "step"), ("30", "other")]
    assert [(row[0], row[-1]) for row in rows(text, "--callers", "other")] == [
        ("30", "other"), ("30", "step"), ("30", "work"), ("30", "main")]
    assert [(row[0], row[-1]) for row in rows(text, "--by", "symbol", "--filter", "symbol=other")] == [("30", "other")]


def straight(stack, function, times):
    edge = branch(stack, function, times)
    return {name: "range" if name == "kind" else value for name, value in edge.items() if not name.startswith("mispredicted")}


# In two parts, of which the second has nothing but ranges.
WITH_RANGES = [frames(*NAMES),
               {**BRANCHES[1], "part": 1, "parts": 2, "entries": [straight("main__work", "step", 60), *BRANCHES[1]["entries"]],
                "samples": {"expected": 9, "uncertainty": 1, "aggregated": 9, "lost": {}},
                "rest": {"kind": "edge", "entries": 7, "count": 100, "period": 1000, "mispredicted": 0, "mispredicted_period": 0},
                "rest_of_ranges": {"kind": "range", "entries": 5, "count": 50, "period": 500}},
               {**BRANCHES[1], "part": 2, "parts": 2, "entries": [straight("main__work__step", "other", 90)]}]


def test_ranges_and_branches_are_shares_of_two_wholes():
    said = show(text_of(*stream(*WITH_RANGES)), "--by", "symbol").stdout
    branches, ranges = said.split("taken (branch), kind range")
    assert "taken (branch), kind edge" in branches
    assert [row[:2] + row[-1:] for row in map(str.split, branches.splitlines()) if row[-1:] in (["work"], ["other"])] == [
        ["70", "35.0%", "work"], ["30", "15.0%", "other"]]
    assert [row[:2] + row[-1:] for row in map(str.split, ranges.splitlines()) if row[-1:] in (["step"], ["other"])] == [
        ["90", "45.0%", "other"], ["60", "30.0%", "step"]]


def test_what_is_beyond_the_ranges_of_an_earlier_record_is_of_their_whole():
    """Records before 3.2.0 had no rest_of_ranges, and no kind in rest."""
    record = {**WITH_RANGES[2], "rest": {"entries": 7, "count": 10, "period": 100}}
    assert [row[:2] for row in rows(text_of(*stream(frames(*NAMES), {name: value for name, value in record.items() if name[:4] != "part"})),
                                    "--by", "symbol")] == [["90", "90.0%"]]


def test_a_flame_graph_of_branches_has_a_graph_of_its_own_for_ranges():
    page = subprocess.run([NHMTAP, "flamegraph"], input=text_of(*stream(*WITH_RANGES)), capture_output=True, text=True, check=True).stdout
    data = drawn(page)
    assert {graph["name"]: graph["weight"][0] for graph in data["events"]} == {
        "taken (branch)": 2000, "taken (branch), kind range": 2000}


def test_two_streams_are_compared_and_what_chance_makes_is_marked(tmp_path):
    """Whole runs of a command, so amounts are compared: 400 against 100 samples is no chance, 101 against 100 is."""
    for name, large in (("a", 100), ("b", 400)):
        whole = stream(profile(*entries(large=large, same=100 + (name == "b"))))
        whole[-1]["command"] = {"pid": 1}
        (tmp_path / name).write_text(text_of(*whole))
    done = show("", "--diff", tmp_path / "a", tmp_path / "b")
    lines = [line.split() for line in done.stdout.splitlines() if line.endswith(("large", "same"))]
    assert lines[0][:3] == ["50.0%", "79.8%", "+300.0%"] and "~" not in lines[0]
    assert lines[1][2:5] == ["+1.0%", "27.8", "~"]


def compared(tmp_path, first, second, *options):
    """The rows of whole runs of these entries, and the remarks."""
    for name, found in (("a", first), ("b", second)):
        whole = stream(*map(lambda one: profile(*one), found))
        whole[-1]["command"] = {"pid": 1}
        (tmp_path / name).write_text(text_of(*whole))
    lines = show("", "--diff", *options, tmp_path / "a", tmp_path / "b").stdout.splitlines()
    rows_of = {line.split()[-1]: line.split() for line in lines if "%" in line and "#" not in line}
    return rows_of, " ".join(line for line in lines if line.startswith("#"))


def places(module="/opt/demo", **counts):
    return [{"comm": "demo", "samples": n, "period": 10 * n, "code": {"module": module, "offset": offset}} for offset, n in counts.items()]


@pytest.mark.parametrize("options", [[], ["--by", "symbol"], ["--filter", "symbol~^(early|late)$"]])
def test_what_had_no_name_yet_is_not_compared_and_makes_no_difference(tmp_path, options):
    """The first interval of the first run has places instead of names, which were read afterwards."""
    found, remarks = compared(tmp_path, [places(**{"0x10": 200, "0x20": 200}), entries(early=400, late=100)],
                              [entries(early=800, late=100), entries(late=600)], *options)
    assert set(found) == {"early", "late"}
    assert found["early"][2] == "+100.0%" and found["early"][4] == "~", "the other 400 may be of it"
    assert "~" not in found["late"], "600 more are not the 400"
    assert "400 samples (44.4%) of the first and 0 (0.0%) of the second are of functions whose names were not read yet" in remarks


def test_a_sample_with_several_late_names_in_its_stack_counts_once(tmp_path):
    late = [{**stacks(main__work__step=100)[0], "frames": [{name: frame[name] for name in ("id", "module", "offset")}
                      for frame in frames(*NAMES)["frames"]]}, stacks(main__work__step=100)[1]]
    for name, found in (("a", [*late, *stacks(main__work__step=100)]), ("b", stacks(main__work__step=200))):
        whole = stream(*found)
        whole[-1]["command"] = {"pid": 1}
        (tmp_path / name).write_text(text_of(*whole))
    for options in [], ["--children"]:
        said = show("", "--diff", *options, tmp_path / "a", tmp_path / "b").stdout
        assert "# 100 samples (50.0%) of the first and 0 (0.0%) of the second are of functions whose names" in said
        assert {line.split()[3] for line in said.splitlines() if "+100.0%" in line} == {"133.9"}, "100 late ones, and 33.9 by sampling"


def test_late_names_of_one_file_put_functions_of_others_in_no_doubt(tmp_path):
    other = {"comm": "demo", "samples": 100, "period": 1000, "code": code("other", "/opt/other")}
    found, _ = compared(tmp_path, [[*places(**{"0x10": 400}), *entries(early=400), other]],
                        [[*entries(early=800), {**other, "samples": 200, "period": 2000}]])
    assert found["early"][4] == "~" and found["other"][2] == "+100.0%" and "~" not in found["other"]


def test_functions_that_are_known_by_their_bounds_are_not_compared_with_places(tmp_path):
    """A stripped file has an unwind table, which is read late as names are."""
    known = [{**entry, "code": {**entry["code"], "function_offset": "0x10"}} for entry in places(**{"0x30": 400})]
    found, remarks = compared(tmp_path, [places(**{"0x20": 400})], [known])
    assert set(found) == {"[demo+0x10]"} and "~" in found["[demo+0x10]"], found
    assert "400 samples (100.0%) of the first" in remarks


def test_places_in_a_file_without_any_names_are_compared(tmp_path):
    found, remarks = compared(tmp_path, [places(**{"0x10": 100, "0x20": 100})], [places(**{"0x10": 300, "0x20": 100})])
    assert found["demo+0x10"][2] == "+200.0%" and "~" not in found["demo+0x10"] and "names were not read" not in remarks


def test_code_in_no_file_is_compared_though_some_of_it_has_names(tmp_path):
    """A run-time compiler has named one function, and never names the other code."""
    def made(nr):
        return [*places("[anon]", **{"0x10": nr}), {"comm": "demo", "samples": 100, "period": 1000, "code": code("compiled", "[anon]")}]

    found, remarks = compared(tmp_path, [made(100)], [made(400)])
    assert found["[anon]+0x10"][2] == "+300.0%" and "names were not read" not in remarks and "sampling alone" in remarks


def count(name, value, **members):
    return {"type": "count", "event": name, "start_time": "2026-01-31T23:59:59.000000000Z", "duration_ns": 1, "status": "counted",
            "value": value, "enabled_ns": 1, "running_ns": 1, "scaled": value, **members}


def test_counts_are_added_with_their_bounds():
    bound = {"level": .95, "low": 90.0, "high": 120.0, "readings": 9}
    text = text_of(*stream(count("loads", 100, status="multiplexed", bound=bound), count("faults", 5),
                           count("loads", 100, status="multiplexed", bound=bound), count("faults", 5)))
    assert rows(text) == [["200", "~", "180", "240", "loads"], ["10", "faults"]]


def test_shares_in_several_parts_are_one_tree():
    """As most analyses are: a line of JSON has 8 KiB at most. The second interval begins anew."""
    first = [{"name": "cycles"}, {"name": "stalled", "parent": "cycles"}, {"name": "memory_bound", "parent": "stalled"}]
    second = [{"name": "dram_bound", "parent": "memory_bound"}, {"name": "divider", "parent": "stalled"}]
    parts = [{"type": "analysis", "whole": "cycles", "part": part, "parts": 2, "shares": [{**share, "share": .5, "low": .5, "high": .5} for share in shares]}
             for part, shares in ((1, first), (2, second))]
    said = show(text_of(*stream(*parts, *parts))).stdout
    indents = {line.split()[-1]: len(re.search(r"%( +)", line)[1]) for line in said.splitlines() if "%" in line}
    least = indents["cycles"]
    assert {name: (indent - least) // 2 for name, indent in indents.items()} == {
        "cycles": 0, "stalled": 1, "memory_bound": 2, "dram_bound": 3, "divider": 2}


def of(activity, *records):
    """The same records of an activity."""
    return [{**record, "activity": activity} for record in records]


TWICE = [*of("a", profile(*entries(f=30, g=10)), count("faults", 5)), *of("b", profile(*entries(f=8)), count("faults", 7))]


def drawn(page):
    """The data of a page with a flame graph."""
    return json.loads(re.search(r'(\{"title":.*\})\s*</script>', page, re.S)[1].replace("\\u003c", "<"))


def report_of(text):
    """The data of a page of one stream."""
    return json.loads(re.search(r'type="application/json">(.*?)</script>', run("report", text).stdout, re.S)[1])["streams"][0]


@pytest.mark.parametrize("second", ["profile", "stream"])
def test_what_two_activities_have_measured_is_not_added_up(second):
    """A profile and a profile or a stream of one event, and two counts of another. A single sample stands for `every`."""
    sample = {"type": "sample", "event": "cpu-clock", "sample_time": "2026-01-31T23:59:59.000000001Z", "comm": "demo", "every": 8, "period": 10,
              "code": code("f")}
    records = TWICE if second == "profile" else [*TWICE[:2], *of("b", sample, TWICE[3])]
    text = text_of(*stream(*records))
    done = show(text).stdout
    assert "cpu-clock, activity a: 40 samples" in done and "cpu-clock, activity b: 8 samples" in done
    assert [line.split() for line in done.splitlines() if "faults" in line] == [
        ["5", "faults,", "activity", "a"], ["7", "faults,", "activity", "b"]]
    report = report_of(text)
    assert {event["name"]: event["total"] for event in report["events"]} == {"cpu-clock, activity a": 400, "cpu-clock, activity b": 80}
    assert {figure["name"]: figure["value"] for figure in report["figures"]} == {"faults, activity a": 5, "faults, activity b": 7}


def test_a_flame_graph_has_a_graph_for_each_activity():
    page = run("flamegraph", text_of(*stream(*of("a", *stacks(main=40)), *of("b", *stacks(main=8))))).stdout
    assert {graph["name"]: graph["weight"][0] for graph in drawn(page)["events"]} == {"cpu-clock, activity a": 40, "cpu-clock, activity b": 8}


def test_activities_are_compared_by_their_names_and_the_only_one_with_the_only_one(tmp_path):
    """The second stream has them the other way round; then only one, whose name is another; then also one of the same name."""
    for name, records in (("a", TWICE[:2]), ("both", TWICE), ("round", TWICE[2:] + TWICE[:2]), ("c", of("c", *TWICE[:2])),
                          ("late", of("c", *TWICE[2:]) + TWICE[:2])):
        begin, *others = stream(*records)
        starts = [{**begin, "activity": name, "seq": nr} for nr, name in enumerate(dict.fromkeys(record["activity"] for record in records))]
        (tmp_path / name).write_text(text_of(*[{**record, "seq": nr} for nr, record in enumerate([*starts, *others])]))
    for first, second, rows_of, tables in (
            ("both", "round", [["5", "5"], ["7", "7"]], ["activity a: 40 samples in 0.000 s; second: 40", "activity b: 8 samples in 0.000 s; second: 8"]),
            ("a", "c", [["5", "5"]], ["cpu-clock: 40 samples in 0.000 s; second: 40"]),
            ("a", "late", [["5", "5"], ["-", "7"]], ["activity a: 40 samples in 0.000 s; second: 40", "activity c: 0 samples; second: 8"])):
        done = show("", "--diff", tmp_path / first, tmp_path / second).stdout
        assert [line.split()[:2] for line in done.splitlines() if "faults" in line] == rows_of, done
        assert all(table in done for table in tables), done


@pytest.mark.parametrize("apart", ["cgroup", "event"])
def test_counts_whose_names_differ_at_the_end_of_a_long_text_are_apart(apart):
    """The paths of containers in containers share their first 150 bytes. A name has a character wherever it could be cut."""
    names = [f"/docker/{'a' * 64}/kubelet/kubepods/burstable/pod{'é' * 80}/{end * 64}" for end in "12"]
    text = text_of(*stream(*[count("faults", 5 + nr, **{apart: name}) for nr, name in enumerate(names * 2)]))
    found = rows(text)
    assert [(row[0], row[-1].split()[-1]) for row in found] == [("12", names[0]), ("14", names[1])]
    report = json.loads(re.search(r'type="application/json">(.*?)</script>', run("report", text).stdout, re.S)[1])["streams"][0]
    assert [(figure["value"], figure["name"][-64:]) for figure in report["figures"]] == [(12, "1" * 64), (14, "2" * 64)]


def test_a_difference_of_counts_within_their_bounds_is_marked(tmp_path):
    for name, value in (("a", 100), ("b", 110)):
        bound = {"level": .95, "low": value - 10.0, "high": value + 10.0, "readings": 9}
        (tmp_path / name).write_text(text_of(*stream(count("loads", value, bound=bound), count("faults", value))))
    done = show("", "--diff", tmp_path / "a", tmp_path / "b")
    assert re.search(r"100 +110 +\+10\.0% +-10\.0 +\+30\.0 +~ +loads", done.stdout)
    assert re.search(r"100 +110 +\+10\.0% +\+10\.0 +\+10\.0 +faults", done.stdout)


def test_what_is_missing_is_told():
    lossy = profile(*entries(large=90))
    lossy["samples"] = {"expected": 100, "uncertainty": 0, "aggregated": 90, "lost": {"table_full": 10}}
    gap = {"type": "gap", "cause": "queue_full", "since": "2026-01-31T23:59:59.000000000Z",
           "until": "2026-01-31T23:59:59.000000000Z", "records": 7}
    out = show(text_of(*stream(lossy, gap))).stdout
    assert "# 10 of 100 expected samples are missing: table_full" in out and "# 7 records are missing" in out


def test_addresses_without_a_name_are_told_with_the_reason():
    unnamed = {"no_time": 17, "no_file": 1, "no_symbol": 0}
    told = show(text_of(*stream(*stacks(**WAYS), {"type": "end", "reason": "exited", "names": {"named": 200, "unnamed": unnamed}}))).stdout
    assert ("# 17 of 218 code addresses had no function name when they were recorded: there was no time left to read the file "
            "(nhmtap symbolize may add names)") in told
    assert "1 of 218" not in told  # fewer than one in a hundred


def test_more_addresses_without_a_name_than_there_are_numbers_are_told_too():
    unnamed = {"no_time": 2 ** 63 - 1, "no_file": 2 ** 63 - 1, "no_symbol": 9}
    told = show(text_of(*stream(*stacks(**WAYS), {"type": "end", "reason": "exited", "names": {"named": 200, "unnamed": unnamed}}))).stdout
    most = f"{2 ** 63 - 1:,}"
    for why in ("there was no time left to read the file (nhmtap symbolize may add names)", "the file is gone, or is not visible from here"):
        assert f"# {most} of {most} code addresses had no function name when they were recorded: {why}" in told
    assert "# 9 of" not in told


def test_a_long_reason_is_cut_between_characters():
    """Half a character would leave a line that is no text."""
    why = "x" + "é" * 600
    names = {"named": 1, "unnamed": {"failed": 100}, "failed_why": why, "kernel_why": why, "lines_why": why}
    told = show(text_of(*stream(*stacks(**WAYS), {"type": "end", "reason": "exited", "names": names}))).stdout
    for begin in ("100 of 101 code addresses had no function name when they were recorded", "the kernel's code has no function names",
                  "some code lacks source lines or inlined functions"):
        assert f"# {begin}: x{'é' * 499}\n" in told


def test_a_stream_cut_anywhere_is_shown_up_to_there():
    text = text_of(*stream(*stacks(**WAYS), *stacks(main=1000)))
    ends = [i + 1 for i, byte in enumerate(text) if byte == "\n"]
    for at in random.Random(3).sample(range(ends[2], len(text) - 1), 40):
        done = show(text[:at], "--by", "symbol")
        assert done.returncode == 0 and "the stream has no end" in done.stdout, at
        assert ("1,100 samples" if at >= ends[4] - 1 else "100 samples") in done.stdout, at


def test_names_of_any_bytes_control_no_terminal_and_stay_on_their_line():
    done = show(text_of(*stream(profile({"comm": HOSTILE, "samples": 1, "period": 1, "code": code(HOSTILE)}))))
    assert done.returncode == 0 and not set("\x1b\x07\u202e") & set(done.stdout)
    assert r"\u001b]0;title\u0007\u202egnp\u000a<" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 1000


@pytest.mark.parametrize("options, why, remedy", [
    (["--by", "pid"], "option --by pid: the records have no such key; they have comm, code, symbol", "nhmtap profile --by"),
    (["--filter", "pid=3"], "option --filter pid: the records have no such key", "nhmtap profile --by"),
    (["--filter", "comm"], "a condition is a key, an operator and a text", "symbol~REGEX"),
    (["--filter", "comm~("], "Unmatched", "symbol~REGEX"),
    (["--sort", "comm,dso"], "option --sort comm,dso: rows are sorted by", "--by groups rows by keys"),
    (["--percent-limit", "x"], "no number from 0 to 100", "0.5"),
    (["--children"], "there are no stacks", "nhmtap profile -g"),
    (["--callers", "main"], "there are no stacks", "nhmtap profile -g"),
    (["--callers", "a", "--callees", "b"], "a table of their own", "one of these"),
    (["--diff"], "two files", "nhmtap show --diff A B"),
])
def test_what_the_records_do_not_have_is_refused(options, why, remedy):
    done = show(text_of(*stream(profile(*entries(a=1)))), *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert why in done.stderr and remedy in done.stderr


def test_a_function_that_is_in_no_stack_is_refused_with_similar_ones():
    done = show(text_of(*stream(*stacks(**WAYS))), "--callers", "wrok")
    assert done.returncode == 1 and "no stack has a function of this name" in done.stderr and "work" in done.stderr


@pytest.mark.parametrize("text, why", [("", "no counts and no samples"), ("{}\n", "no counts"), ("x\n", "line 1 of stdin: it is no record"),
                                       ('{"type":"end"}\n[\n', "line 2"), ('{"schema_version":"99.0.0"}\n', "up to " + SCHEMA_VERSION)])
def test_what_is_no_stream_is_refused(text, why):
    done = show(text)
    assert (done.returncode, done.stdout) == (1, "") and why in done.stderr


@pytest.mark.parametrize("command, none", [("show", "no counts and no samples"), ("report", "no counts and no samples"), ("flamegraph", "no stacks")])
@pytest.mark.parametrize("left, early", [(None, False), (1, True), (40, True)])
def test_a_stream_that_ends_before_its_first_samples_is_said_to_have_none_and_to_be_cut(command, none, left, early):
    """Whole, after its first line, and within that line."""
    text = text_of(*stream())
    text = text if left is None else text.splitlines(True)[0] if left == 1 else text[:left]
    done = run(command, text)
    assert done.returncode == 1 and f"there are {none} in these records" in done.stderr
    assert ("the stream has no end" in done.stderr and "it was cut" in done.stderr) == early
    assert ("its last line is not whole" in done.stderr) == (left == 40)


@pytest.mark.parametrize("command", ["show", "report", "flamegraph"])
def test_the_records_of_a_run_that_was_refused_say_why_it_was(command):
    _, end = stream()
    error = {**end, "type": "error", "asked": "event 'x'", "why": "there is no event of this name"}
    done = run(command, text_of(error, {**end, "seq": 2, "reason": "refused"}))
    assert done.returncode == 1 and "in these records, but an error: event 'x': there is no event of this name. Next: " in done.stderr
    assert "give it what" not in done.stderr


@pytest.mark.parametrize("layout, why, remedy", [(lambda records: json.dumps(records) + "\n", "an array", "jq -c '.[]'"),
                                                 (lambda records: json.dumps(records), "an array", "jq -c '.[]'"),
                                                 (lambda records: json.dumps(records, indent=1), "not whole", "jq -c '.[]'"),
                                                 (lambda records: json.dumps(records[0], indent=1) + "\n", "not whole", "jq -c ."),
                                                 (lambda records: "".join(map(json.dumps, records)), "more than one record", "jq -c .")])
def test_records_in_another_layout_are_refused_with_what_undoes_it(layout, why, remedy):
    done = show(layout(stream(*stacks(**WAYS))))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"line 1 of stdin: it is {why}, and each line has to be one record. Next: {remedy} " in done.stderr


@pytest.mark.parametrize("command", ["show", "report", "analyze"])
@pytest.mark.parametrize("pack, what, remedy", [
    (["gzip"], "compressed with gzip", "zcat"), (["zstd"], "compressed with zstd", "FILE.zst"), (["xz"], "compressed with xz", "xzcat"),
    (["sed", "1i PERFILE2h"], "perf's data", "perf report"), (["cat", "/bin/true"], "a program", "nhmtap profile -o FILE")])
def test_files_of_other_kinds_are_named_with_what_reads_them(tmp_path, command, pack, what, remedy):
    packed = subprocess.run(pack, input=text_of(*stream(*stacks(**WAYS))).encode(), capture_output=True, check=True).stdout
    (tmp_path / "x").write_bytes(packed)
    done = subprocess.run([NHMTAP, command, tmp_path / "x"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "") and f"/x: it is {what}. Next: " in done.stderr and remedy in done.stderr


@pytest.mark.parametrize("command", ["show", "flamegraph", "symbolize"])
def test_a_byte_order_mark_and_blank_lines_are_nothing_as_to_jq(command):
    text = text_of(*stream(*stacks(**WAYS)))
    strange = "\ufeff" + "\n \t\r\n".join(text.splitlines(True)) + "\n"
    plain, done = (run(command, given) for given in (text, strange))
    assert done.returncode == 0 and done.stderr == plain.stderr
    assert [line for line in done.stdout.splitlines() if line.strip()] == [line for line in plain.stdout.splitlines() if line.strip()]


def changed(value, chance):
    """The value with one of its parts replaced by something that does not belong there."""
    strange = [None, True, -1, 1e300, 2 ** 63 - 1, "", "x", [], {}, [{}], {"a": []}, HOSTILE]
    if isinstance(value, dict) and value and ("seq" in value or chance.random() < .8):
        name = chance.choice(list(value))
        return {**value, name: changed(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < .8:
        at = chance.randrange(len(value))
        return [*value[:at], changed(value[at], chance), *value[at + 1:]]
    return chance.choice(strange)


def test_records_of_any_shape_do_no_harm(tmp_path):
    """A process for each would take long, so a file has many runs."""
    chance = random.Random(41)
    whole = [*stream(*stacks(**WAYS), count("loads", 3), profile(*entries(a=1)))]
    for options in ([], ["--children"], ["--callers", "step"], ["--filter", "symbol~a", "--by", "comm,code,line,place"]):
        text = "".join(text_of({**changed(record, chance), "type": record["type"], "run_id": f"{i:032}",
                                "schema_version": SCHEMA_VERSION, "seq": 1})
                       for i in range(300) for record in [chance.choice(whole)])
        done = show(text, *options)
        assert done.returncode in (0, 1), done.stderr
        assert done.returncode == 0 or "Next:" in done.stderr


def test_an_event_of_the_start_record_needs_no_samples():
    empty = {**profile(), "no_samples": "the clock never ticked"}
    assert event()["name"] in show(text_of(*stream(empty))).stdout
    assert "# no samples: the clock never ticked" in show(text_of(*stream(empty))).stdout


def test_help_names_every_option():
    told = json.loads(subprocess.run([NHMTAP, "help", "--json"], capture_output=True, text=True, check=True).stdout)
    names = {option["name"] for command in told if command["name"] == "show" for option in command["options"]}
    assert {"by", "sort", "filter", "percent-limit", "children", "callers", "callees", "diff"} <= names


def test_a_record_without_stacks_has_its_own_share_as_its_total():
    alone = {**profile(*entries(alone=10)), "event": "other"}
    out = show(text_of(*stream(*stacks(**WAYS), alone)), "--children", "--by", "symbol").stdout
    assert re.search(r"^ *10 +100\.0% +[\d.]+ +100\.0% +[\d.]+ +alone$", out, re.M), out


def single(way, comm="demo", **members):
    """A sample of nhmtap stream in these functions, the outermost first."""
    stack = [code(name) for name in reversed(way.split("__"))]
    return {"type": "sample", "event": "page-faults", "sample_time": "2026-01-31T23:59:59.000000000Z", "pid": 7, "tid": 7, "cpu": 0,
            "ip": "0x1", "comm": comm, "code": stack[0], "stack": stack, **members}


def test_single_samples_are_summed_up(tmp_path):
    """One of them stands for three, since two were left out."""
    text = text_of(*stream(*[single("main__work", period=2)] * 5, single("main__other", period=2), single("main__work__step", every=3, period=4)))
    found = {row[-1].split()[0]: (row[0], row[1]) for row in rows(text)}
    assert found == {"work": ("5", "41.7%"), "step": ("3", "50.0%"), "other": ("1", "8.3%")}
    assert [(row[0], row[-1]) for row in rows(text, "--by", "pid")] == [("9", "7")]
    callers = show(text, "--callers", "step").stdout
    assert re.search(r"50.0%.* step", callers) and "work" in callers and "other" not in callers


def test_the_latencies_of_single_loads_are_those_of_mem():
    text = text_of(*stream(*[single("main__work", event="loads", source="l3_hit", latency=n, period=1) for n in (40, 44, 48)],
                           single("main__work", event="loads", source="local_dram", latency=300, period=1)))
    done = show(text)
    assert re.search(r"^loads \(mem\): 4 samples", done.stdout, re.M), done.stdout
    assert re.search(r"^ *3 +75.0% .*\b44\b.*\b48\b.*l3_hit", done.stdout, re.M), done.stdout
    assert re.search(r"^ *1 +25.0% .*\b300\b.*local_dram", done.stdout, re.M), done.stdout


@pytest.mark.parametrize("options", [(), ("--by", "symbol"), ("--by", "code")])
def test_functions_are_sorted_by_their_names_whatever_column_has_them(options):
    text = text_of(*stream(profile(*entries(b=50, c=20, a=30))))
    assert [row[-1][0] for row in rows(text, *options, "--sort", "symbol")] == ["a", "b", "c"]


def test_branches_are_sorted_by_those_that_were_mispredicted():
    edges = [{"kind": "edge", "count": n, "mispredicted": missed, "period": 100 * n, "mispredicted_period": 100 * missed,
              "from": code(name), "to": code(name)} for name, n, missed in (("often", 90, 2), ("badly", 10, 9), ("never", 50, 0))]
    branches = {"type": "branch", "event": "taken", "start_time": "2026-01-31T23:59:59.000000000Z", "duration_ns": 1, "entries": edges}
    text = text_of(*stream(branches))
    assert [row[-1].split()[0] for row in rows(text, "--sort", "mispredicted")] == ["badly", "often", "never"]
    assert [row[-1].split()[0] for row in rows(text)] == ["often", "never", "badly"]


def test_what_groups_samples_is_refused_where_there_are_none():
    counted = {"type": "count", "event": "faults", "status": "counted", "value": 5, "scaled": 5, "enabled_ns": 1, "running_ns": 1,
               "start_time": "2026-01-31T23:59:59.000000000Z", "duration_ns": 1}
    done = show(text_of(*stream(counted)), "--by", "comm")
    assert done.returncode == 1 and "option --by comm: there are no samples in these records" in done.stderr


def sums_of_loads(**sources):
    """An interval of loads by source, each of which has a sample's latency for all: SOURCE=(samples, cycles)."""
    found = [{"source": source, "samples": n, "period": n, "latency_sum_period": n * cycles, "latency_max": cycles,
              "latency_histogram_period": {str(1 << cycles.bit_length() - 1): n}} for source, (n, cycles) in sources.items()]
    return {**profile(*found), "type": "mem", "event": "loads", "sources": found}


def test_samples_that_a_record_has_summed_up_count_once(tmp_path):
    """mem --stream writes each sample, and the sums of all."""
    samples = [single("main", event="loads", source="l3_hit", latency=40, period=1)] * 3
    start, *rest = stream(*samples, sums_of_loads(l3_hit=(3, 40)))
    text = text_of({**start, "command": "mem"}, *rest)
    assert re.search(r"^loads \(mem\): 3 samples", show(text).stdout, re.M)
    assert [(row[0], row[-1]) for row in rows(text)] == [("3", "l3_hit")]
    event, = report_of(text)["events"]
    assert (event["total"], event["aggregated"]) == (3, 3)


def test_loads_without_entries_are_shown_by_their_sources():
    """As after jq -c 'del(.entries)'."""
    kept = sums_of_loads(l3_hit=(30, 40), local_dram=(10, 200))
    for less in ({**kept, "entries": []}, {name: value for name, value in kept.items() if name != "entries"}):
        text = text_of(*stream(less))
        assert re.search(r"^loads \(mem\): 40 samples", show(text).stdout, re.M)
        assert [(row[0], row[1], row[3], row[-1]) for row in rows(text)] == [("30", "75.0%", "40", "l3_hit"), ("10", "25.0%", "200", "local_dram")]


@pytest.mark.parametrize("latency, period, every", [(2 ** 62, 2 ** 62, 2 ** 62), (1, -5, -7), (-1, 0, 0)])
def test_single_samples_with_any_numbers_are_shown(latency, period, every):
    assert show(text_of(*stream(single("main", latency=latency, period=period, every=every)))).returncode == 0


def test_records_of_no_counts_say_what_shows_them():
    done = show(text_of(*stream()))
    assert done.returncode == 1 and "no counts and no samples" in done.stderr and "--format table" in done.stderr
