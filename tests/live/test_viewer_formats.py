# SPDX-License-Identifier: GPL-2.0-only
"""Profiles in the formats of other tools' viewers, beside the records of the same run."""
import collections
import datetime
import os
import subprocess

import callgrind
import firefox
import pytest
import records
import speedscope
from records import program
from sessions import Session, faults

CALLS = os.path.abspath(program("calls"))
EVERY_FAULT = ["-e", "page-faults", "-c", "1"]
STEPS = ["graph=300", "deep=20,50", "kernel=100", "plain=30"]

# Names that would end a text, a line or a string, or turn the order of characters around.
HOSTILE = [b'quo"te', b"back\\slash", b"new\nline", b"tab\tin", b"<script>", "rtl\u202egnp".encode(), b"f" * 10000,
           b"semi;colon", b"fn=(1) x", b"* star", b"(2)", b"+3 -4", b"bad\xff\xfe utf-8"]


def run(nhmtap, folder, form, *options, command=(CALLS, *STEPS), name="profile", path=None):
    """Returns the records of a run and the path of the file in this format."""
    path = path or folder / f"x.{form}"
    result = nhmtap(name, "-g", "-o", f"json={folder / 'x.jsonl'}", "-o", f"{form}={path}", *options, "--", *command)
    assert result.status == 0, result.err
    return records.parse((folder / "x.jsonl").read_text()), path


def total(found, member, kind="profile"):
    """The sum of a member over all entries of the records and what is not in any entry."""
    parts = [r for r in found if r["type"] == kind]
    return sum(e.get(member, 0) for r in parts for e in [*r["entries"], r.get("rest", {})])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A program with a function for each hostile name. The i-th has i + 1 page faults. The names have the length of C's
    names, which they replace in the table of symbols."""
    folder = tmp_path_factory.mktemp("hostile")
    names = [f"f{i}".ljust(len(name), "_") for i, name in enumerate(HOSTILE)]
    source = ["#include <sys/mman.h>"]
    for i, name in enumerate(names):
        source.append(f"__attribute__((noinline)) void {name}(volatile char *p) {{ for (int i = 0; i <= {i}; i++) "
                      f'p[i * 4096] = {i}; __asm__ volatile(""); }}')
    pages = "mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)"
    source += ["int main(void) { char *p;",
               *[f"p = {pages}; madvise(p, 1 << 20, MADV_NOHUGEPAGE); {name}(p);" for name in names], "return 0; }"]
    subprocess.run(["gcc", "-O1", "-fno-omit-frame-pointer", "-fno-ipa-icf", "-o", folder / "hostile", "-x", "c", "-"],
                   input="\n".join(source), text=True, check=True)
    content = (folder / "hostile").read_bytes()
    for name, other in zip(names, HOSTILE):
        content = content.replace(b"\0" + name.encode() + b"\0", b"\0" + other + b"\0")
    (folder / "hostile").write_bytes(content)
    return folder / "hostile"


def check_ways(stacks):
    """Checks the ways through tests/programs/calls.c, by stacks with their weights."""
    ways = collections.Counter()
    for stack, weight in stacks:
        ways[stack[stack.index("main"):] if "main" in stack else stack[:1]] += weight
    assert ways["main", "graph", "left", "middle", "touch"] == 300
    assert ways["main", "graph", "right", "middle", "touch"] == 600
    assert ways["main", *["down"] * 20, "middle", "touch"] == 50


def check_hostile(stacks):
    """Checks the functions with hostile names that main calls. Returns their weight."""
    weights = collections.Counter()
    for stack, weight in stacks:
        if "main" in stack and len(stack) - 1 > stack.index("main"):
            weights[stack[stack.index("main") + 1]] += weight
    assert set(range(1, len(HOSTILE) + 1)) <= set(weights.values())
    assert weights['quo"te'] == 1 and weights["<script>"] == 5
    return sum(weights.values())


def test_speedscope_has_each_way_through_the_calls(nhmtap, tmp_path):
    found, path = run(nhmtap, tmp_path, "speedscope", *EVERY_FAULT)
    document = speedscope.read(path)
    assert document["name"] == CALLS and [p["name"] for p in document["profiles"]] == ["samples", "page-faults"]
    assert document["activeProfileIndex"] == 1 and document["profiles"][1]["endValue"] == total(found, "period")
    stacks = list(speedscope.stacks(document, "page-faults"))
    assert {stack[0] for stack, _ in stacks} == {"calls"}
    check_ways(stacks)


def test_speedscope_takes_hostile_names(nhmtap, tmp_path, hostile):
    found, path = run(nhmtap, tmp_path, "speedscope", *EVERY_FAULT, command=[hostile])
    assert check_hostile(speedscope.stacks(speedscope.read(path), "page-faults")) <= total(found, "period")


def test_speedscope_tells_the_rest_and_the_unit_of_a_clock(nhmtap, tmp_path):
    found, path = run(nhmtap, tmp_path, "speedscope", "-e", "cpu-clock:u", "-F", "999", "--by", "stack,comm", "--top", "1",
                      command=(CALLS, "spin=300"))
    document = speedscope.read(path)
    samples, clock = document["profiles"]
    assert (clock["name"], clock["unit"], samples["unit"]) == ("cpu", "nanoseconds", "none")
    assert clock["endValue"] == total(found, "period") and samples["endValue"] == total(found, "samples")
    assert len(clock["samples"]) <= 2


def test_each_interval_is_a_document_for_speedscope(nhmtap, tmp_path):
    found, _ = run(nhmtap, tmp_path, "speedscope", *EVERY_FAULT, "-I", "100",
                   command=(CALLS, "graph=10", "spin=300", "graph=20"), path=tmp_path / "%t.json")
    paths = list(tmp_path.glob("*.json"))
    assert len(paths) == len([r for r in found if r["type"] == "profile" and r.get("part", 1) == 1]) >= 2
    assert sum(speedscope.read(path)["profiles"][1]["endValue"] for path in paths) == total(found, "period") >= 90


def test_firefox_has_each_way_through_the_calls(nhmtap, tmp_path):
    found, path = run(nhmtap, tmp_path, "firefox", *EVERY_FAULT)
    document = firefox.read(path)
    assert document["meta"]["product"] == CALLS and [thread["name"] for thread in firefox.threads(document)] == ["calls"]
    stacks = [(stack, weight) for _, stack, weight in firefox.stacks(document)]
    assert sum(weight for _, weight in stacks) == total(found, "period")
    check_ways(stacks)


def test_firefox_takes_hostile_names(nhmtap, tmp_path, hostile):
    _, path = run(nhmtap, tmp_path, "firefox", *EVERY_FAULT, command=[hostile])
    check_hostile((stack, weight) for _, stack, weight in firefox.stacks(firefox.read(path)))


def test_firefox_has_threads_apart_and_the_time_of_a_clock(nhmtap, tmp_path):
    found, path = run(nhmtap, tmp_path, "firefox", "-e", "cpu-clock:u", "-F", "999", "--by", "stack,comm,pid,tid", "--top", "1",
                      command=(CALLS, "spin=300"))
    document = firefox.read(path)
    record, = [record for record in found if record["type"] == "profile"]
    threads = {(entry["comm"], str(entry["pid"]), entry["tid"]) for entry in record["entries"]}
    assert threads == {(t["name"].split("-")[0], t["pid"], t["tid"]) for t in firefox.threads(document) if t["name"] != "[others]"}
    weights = [weight for *_, weight in firefox.stacks(document)]
    assert sum(weights) == pytest.approx(total(found, "period") / 1e6)
    assert {thread["samples"]["weightType"] for thread in firefox.threads(document)} == {"tracing-ms"}
    assert max(max(thread["samples"]["time"]) for thread in firefox.threads(document)) <= record["duration_ns"] / 1e6


def test_firefox_has_intervals_at_their_times_and_what_was_counted_in_them(nhmtap, tmp_path):
    """Faults of main come before 600 ms without any, those below down() after them. Names are known after the first interval."""
    found, path = run(nhmtap, tmp_path, "firefox", *EVERY_FAULT, "-I", "100", command=(CALLS, "spin=300", "plain=30", "spin=900", "deep=20,50"))
    document = firefox.read(path)
    intervals = [record for record in found if record["type"] == "profile" and record.get("part", 1) == 1]
    began = min(firefox_time(record) for record in intervals)
    assert sum(weight for *_, weight in firefox.stacks(document)) == total(found, "period")
    assert firefox.counts(document) == {"page-faults": sum(record["value"] for record in intervals)}
    counter, = document["counters"]
    for record in intervals:
        ends = pytest.approx(firefox_time(record) - began + record["duration_ns"] / 1e6, abs=.01)
        assert record["value"] in [n for time, n in zip(counter["samples"]["time"], counter["samples"]["count"]) if time == ends]
    thread, = firefox.threads(document)
    times = {"main": [], "down": []}
    for time, (_, stack, _) in zip(thread["samples"]["time"], firefox.stacks(document)):
        if stack[-2:] == ("main", "touch") or "down" in stack:
            times["down" if "down" in stack else "main"].append(time)
    assert len(intervals) >= 4 and max(times["main"]) + 300 < min(times["down"])


def firefox_time(record):
    """The start of an interval in ms since 1970."""
    return datetime.datetime.fromisoformat(record["start_time"][:26] + "+00:00").timestamp() * 1000


def test_firefox_has_each_event_in_threads_and_a_counter_of_its_own(nhmtap, tmp_path):
    found, path = run(nhmtap, tmp_path, "firefox", "-e", "page-faults,task-clock:u", "-c", "7", command=(CALLS, "plain=300"))
    document = firefox.read(path)
    assert {thread["name"]: thread["samples"]["weightType"] for thread in firefox.threads(document)} == {
        "calls (task-clock:u)": "tracing-ms", "calls (page-faults)": "samples"}
    assert firefox.counts(document) == {r["event"]: r["value"] for r in found if r["type"] == "profile" and "value" in r}


def test_firefox_has_the_activities_of_a_session_in_one_document(nhmtap, tmp_path, puppet):
    activities = [faults("page-faults", "profile", by="stack", pid=str(puppet.pid)),
                  {"name": "counted", "command": "stat", "event": "minor-faults", "pid": str(puppet.pid)}]
    with Session(nhmtap, tmp_path, activities, outputs=[{}, {"format": "firefox", "path": str(tmp_path / "x.json")}]) as session:
        for _ in range(3):
            puppet.do("faults=10")
            session.do("snapshot")
        ended = session.end()
        assert ended.status == 0
    found = records.parse(ended.out)
    document = firefox.read(tmp_path / "x.json")
    assert sum(weight for *_, weight in firefox.stacks(document)) == total(found, "period") >= 30
    assert firefox.counts(document) == {
        "page-faults": sum(r["value"] for r in found if r["type"] == "profile" and "value" in r),
        "minor-faults": sum(r["value"] for r in found if r["type"] == "count")}


def test_firefox_has_single_samples_at_their_times_in_their_threads(nhmtap, tmp_path):
    found, path = run(nhmtap, tmp_path, "firefox", *EVERY_FAULT, name="stream")
    document = firefox.read(path)
    samples = [record for record in found if record["type"] == "sample"]
    at = lambda record: datetime.datetime.fromisoformat(record["sample_time"][:26] + "+00:00").timestamp() * 1000
    thread, = firefox.threads(document)
    assert thread["name"] == "calls-{0}/{0}".format(thread["pid"]) and int(thread["pid"]) == samples[0]["pid"]
    assert [time - thread["samples"]["time"][0] for time in thread["samples"]["time"]] == pytest.approx(
        [at(record) - at(samples[0]) for record in samples], abs=.01)
    check_ways((stack, weight) for _, stack, weight in firefox.stacks(document))


def test_each_activity_of_a_session_has_its_own_event(nhmtap, tmp_path, puppet):
    activities = [faults(event, "profile", event=event, by="stack", pid=str(puppet.pid))
                  for event in ("page-faults", "minor-faults")]
    output = {"format": "speedscope", "path": str(tmp_path / "%t.json")}
    with Session(nhmtap, tmp_path, activities, outputs=[{}, output]) as session:
        puppet.do("faults=10")
        session.do("snapshot")
        assert session.end().status == 0
    named = [speedscope.read(path)["profiles"][1]["name"] for path in tmp_path.glob("*Z.json")]
    assert set(named) == {"page-faults", "minor-faults"}


@pytest.fixture(scope="module")
def mutual(tmp_path_factory):
    """A program in which odd() and even() call each other: in their turns even() touches 2 pages and odd() 3, an inlined function 7."""
    source = """#include <sys/mman.h>
static __attribute__((noinline)) void touch(int n)
{
    volatile char *p = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)p, 1 << 20, MADV_NOHUGEPAGE);
    for (int i = 0; i < n; i++)
        p[i * 4096] = 1;
}
static inline __attribute__((always_inline)) void inlined(void) { touch(7); __asm__ volatile(""); }
void odd(int n);
void even(int n) { touch(2); if (n) odd(n - 1); __asm__ volatile(""); }
void odd(int n) { touch(3); if (n) even(n - 1); __asm__ volatile(""); }
int main(void) { even(9); inlined(); odd(2); return 0; }
"""
    folder = tmp_path_factory.mktemp("mutual")
    subprocess.run(["gcc", "-g", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-ipa-cp", "-fno-inline-small-functions",
                    "-o", folder / "mutual", "-x", "c", "-"], input=source, text=True, check=True)
    return folder / "mutual"


TWO_EVENTS = ["-e", "page-faults:u,minor-faults:u", "-c", "1"]


def test_functions_that_call_each_other_cost_what_is_below_them_once(nhmtap, tmp_path, mutual):
    """even(9) is 5 times 2 and 5 times 3 pages; the first 2 of these, and the first 3 of odd(2), are not below the other function."""
    _, path = run(nhmtap, tmp_path, "callgrind", *EVERY_FAULT, command=[mutual])
    _, inclusive = callgrind.annotated(path, "--inclusive=yes")
    _, _, selves, calls = callgrind.read(path)
    own = {name: sum(costs[1] for function, lines in selves.items() if function.name == name for costs in lines.values())
           + sum(costs[1] for (caller, _, _), costs in calls.items() if caller.name == name) for name in ("main", "even", "odd", "inlined", "touch")}
    assert own == {"main": 25 + 7 + 8, "even": 25 + 5, "odd": 23 + 8, "inlined": 7, "touch": 40}
    assert inclusive["even"] >= 25 + 5 and ("odd", "even") in {(caller.name, callee.name) for caller, _, callee in calls}


def test_callgrind_has_each_event_of_a_run_at_each_instruction(nhmtap, tmp_path, mutual):
    found, path = run(nhmtap, tmp_path, "callgrind", *TWO_EVENTS, command=[mutual])
    events, summary, selves, _ = callgrind.read(path)
    assert events == ["samples_of_page-faults:u", "page-faults:u", "samples_of_minor-faults:u", "minor-faults:u"]
    assert summary == [total([r for r in found if r.get("event") == event], member)
                       for event in ("page-faults:u", "minor-faults:u") for member in ("samples", "period")]
    touched, = (costs for function, lines in selves.items() if function.name == "touch" for costs in lines.values())
    assert touched == [40] * 4
    assert callgrind.annotated(path, "--show=minor-faults:u", "--sort=minor-faults:u")[1]["touch"] == 40
    symbols = subprocess.run(["nm", mutual], capture_output=True, text=True, check=True).stdout
    begin, = (int(line.split()[0], 16) for line in symbols.splitlines() if line.endswith(" touch"))
    with open(path, encoding="utf-8") as file:
        places = [int(line.split()[0], 16) for line in file if line.endswith(" 40 40 40 40\n")]
    assert any(begin < place < begin + 200 for place in places)


def test_speedscope_has_profiles_for_each_event_of_a_run(nhmtap, tmp_path):
    found, path = run(nhmtap, tmp_path, "speedscope", *TWO_EVENTS)
    document = speedscope.read(path)
    assert [p["name"] for p in document["profiles"]] == ["samples of page-faults:u", "page-faults:u", "samples of minor-faults:u", "minor-faults:u"]
    for event in ("page-faults:u", "minor-faults:u"):
        stacks = list(speedscope.stacks(document, event))
        assert sum(weight for _, weight in stacks) == total([r for r in found if r.get("event") == event], "period")
        check_ways(stacks)


def test_callgrind_annotate_finds_what_functions_cost(nhmtap, tmp_path):
    found, path = run(nhmtap, tmp_path, "callgrind", *EVERY_FAULT)
    totals, selves = callgrind.annotated(path)
    _, inclusive = callgrind.annotated(path, "--inclusive=yes")
    assert totals == total(found, "samples") == sum(selves.values())
    assert selves["touch"] >= 300 + 600 + 50 + 30
    assert inclusive["graph"] == 900 and inclusive["left"] == 300 and inclusive["right"] == 600


def test_callgrind_has_the_lines_of_calls_and_counts_recursion_once(nhmtap, tmp_path):
    found, path = run(nhmtap, tmp_path, "callgrind", *EVERY_FAULT)
    events, summary, _, calls = callgrind.read(path)
    assert events == ["samples", "page-faults"] and summary == [total(found, "samples"), total(found, "period")]
    with open(os.path.join(os.path.dirname(__file__), "../programs/calls.c"), encoding="utf-8") as file:
        source = file.read().splitlines()
    lines = {}
    for (caller, line, callee), costs in calls.items():
        if caller.module == CALLS and callee.name == "middle" and caller.name in ("left", "right"):
            lines[source[line - 1].strip()] = costs
    assert lines == {"middle(n);": [300, 300], "middle(2 * n);": [600, 600]}
    assert callgrind.annotated(path, "--inclusive=yes")[1]["down"] == 50
    assert any(caller.name == callee.name == "down" for caller, _, callee in calls)


def test_callgrind_takes_hostile_names(nhmtap, tmp_path, hostile):
    found, path = run(nhmtap, tmp_path, "callgrind", *EVERY_FAULT, command=[hostile])
    _, summary, selves, _ = callgrind.read(path)
    costs = {function.name: sum(x[1] for x in lines.values()) for function, lines in selves.items()
             if function.module == str(hostile)}
    assert summary[1] == total(found, "period")
    assert costs['quo"te'] == 1 and costs["<script>"] == 5 and costs["fn=(1) x"] == 9 and costs["(2)"] == 11
    assert set(range(1, len(HOSTILE) + 1)) <= set(costs.values())
    assert callgrind.annotated(path)[0] == total(found, "samples")
