# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap branch --trace: every branch of a thread, from the branch trace store. The branches that a
program takes are known from its text, and are also compared with perf record -e intel_bts//."""
import bisect
import collections
import itertools
import re
import subprocess

import pytest

import known
from records import Result, check_stream, of_type, parse
import test_branch_on_nehalem
from test_branch_on_nehalem import Edge, branch, edges

BUFFER = 4 << 20  # bytes, perf record's own
RECORD = 24       # of the guide's Figure 16


def trace(bench, command, options="", **settings):
    return branch(bench, f"--trace --filter u {options}", command, **settings)


def address(program, place):
    """The address of a place in a program. The programs have fixed addresses, so a place is known
    even if its file could not be looked up in time."""
    if set(place) == {"address"}:
        return int(place["address"], 16)
    return test_branch_on_nehalem.address(program, place)


def counts(result, program, member="count"):
    return test_branch_on_nehalem.counts(result, program, member, address)


def account(result):
    """The account of a trace with a single interval, which is also that of the run."""
    first = result.of("branch")[0]["trace"]
    assert first == result.one("end")["trace"]
    return first


def taken_by_graph():
    """{edge: how often}, by the text of graph.S."""
    at, n = known.addresses("graph"), known.numbers("graph")["N"]
    turns = list(known.sequence(n))
    ds = sum(d for d, _ in turns)
    back = {name: at[name] + length for name, length in  # after a call of 5 bytes, one of 3
            (("main_a", 5), ("a_b", 5), ("main_x", 3))}
    loop = at["coin_to"] + 2  # after dec %ecx
    return {
        Edge(at["main_a"], at["a"]): n, Edge(at["a_b"], at["b"]): n,
        Edge(at["b"], back["a_b"]): n, Edge(back["a_b"], back["main_a"]): n,
        Edge(at["main_x"], at["c"]): n - ds, Edge(at["c"] + 1, back["main_x"]): n - ds,
        Edge(at["main_x"], at["d"]): ds, Edge(at["d"] + 2, back["main_x"]): ds,
        Edge(at["coin"], at["coin_to"]): sum(jump for _, jump in turns),
        Edge(loop, at["main_a"] - 11): n - 1,  # before it: imul of 6 bytes, add of 5
    }


def test_every_branch_that_is_taken_is_counted_exactly(any_kernel):
    result = trace(any_kernel, "graph")
    assert counts(result, "graph") == taken_by_graph()
    assert account(result)["status"] == "complete"


def test_each_branch_of_a_trace_stands_for_itself_in_every_format(guest):
    taken = taken_by_graph()
    lines, flat, table = (guest.say(f"nhmtap branch --trace --filter u --format {name} -- graph") for name in ("json", "flat", "table"))
    record, = of_type(parse(lines), "branch")
    assert record["branches"]["period"] == record["branches"]["delivered"] == sum(e["count"] for e in record["entries"])
    assert all((e["period"], e["mispredicted_period"]) == (e["count"], e["mispredicted"]) for e in record["entries"])
    assert sorted((r["value"] for r in parse(flat) if r["from_module"].endswith("graph")), reverse=True) == sorted(taken.values(), reverse=True)
    shares = [float(share) for share in re.findall(r" (\d+\.\d)%  +\d+\.\d%.*graph.*->.*graph", table)]
    assert shares == pytest.approx(sorted((100 * n / sum(taken.values()) for n in taken.values()), reverse=True), abs=0.2)


def test_all_that_comes_besides_are_returns_from_the_kernel(guest):
    result = trace(guest, "graph")
    others = [e for r in result.of("branch") for e in r["entries"]
              if None in (address("graph", e["from"]), address("graph", e["to"]))]
    assert {e["from"]["module"] for e in others} == {"[kernel]"}
    assert sum(e["count"] for e in others) == (
        account(result)["records"] - sum(taken_by_graph().values()))


def test_ranges_of_a_trace_have_every_instruction_that_ran(guest):
    result = trace(guest, "graph", "--by range")
    at, n = known.addresses("graph"), known.numbers("graph")["N"]
    ranges = counts(result, "graph")
    # a runs from its beginning to its call, once a turn, unless an interrupt came in between.
    assert n - ranges[Edge(at["a"], at["a_b"])] <= result.of("branch")[0]["branches"]["broken"]
    assert n - ranges[Edge(at["a"], at["a_b"])] <= 10


def raw_records(bench, command, tmp_path):
    """The trace of perf record, by its raw dump: perf script leaves out the last record of each
    buffer."""
    bench.say(f"perf record -q --per-thread -e intel_bts//u -o x {command}", paranoid=-1)
    said = subprocess.run(["perf", "script", "-f", "-D", "-i", bench.fetch("x", tmp_path)],
                          capture_output=True, text=True, check=True).stdout
    found = re.findall(r"([0-9a-f]+) -> ([0-9a-f]+) (pred|miss)", re.sub(r"\x1b\[[0-9;]*m", "", said))
    return collections.Counter((Edge(int(a, 16), int(b, 16)), how) for a, b, how in found)


def test_edges_and_mispredictions_are_those_of_perf_record(any_kernel, tmp_path):
    result = trace(any_kernel, "graph")
    theirs = raw_records(any_kernel, "graph", tmp_path)
    ours, missed = counts(result, "graph"), counts(result, "graph", "mispredicted")
    assert {edge: theirs[edge, "pred"] + theirs[edge, "miss"] for edge in ours} == ours
    # Each run finds the predictor as the previous one has left it, and an interrupt may disturb the
    # return stack of 16; a run has four or five timer ticks.
    assert all(abs(theirs[edge, "miss"] - n) <= 5 * 16 for edge, n in missed.items())
    assert max(missed.values()) > 4000  # of 20000 tosses of a coin


def test_a_trace_longer_than_its_buffer_is_read_while_it_grows(any_kernel):
    result = trace(any_kernel, "paced")
    taken = known.numbers("paced")["TAKEN"]
    assert result.one("start")["trace_buffer_bytes"] == BUFFER < RECORD * taken
    assert counts(result, "paced") == {Edge(known.addresses("paced")["loop_jcc"],
                                            known.addresses("paced")["turn"]): taken}
    assert account(result)["status"] == "complete"


def test_a_buffer_that_was_full_is_told(guest):
    # kinds fills more than a buffer before the reader runs.
    result = trace(guest, "kinds")
    found, lost = counts(result, "kinds"), account(result)
    assert RECORD * known.numbers("kinds")["TAKEN"] > BUFFER
    assert lost["status"] == "interrupted" and lost["lost"]["buffer_full"] >= 1
    assert sum(found.values()) < known.numbers("kinds")["TAKEN"]
    assert set(found) <= edges("kinds", *(("jcc_taken", "after_jcc"), ("loop_jcc", "turn"),
                                          ("rel_call", "leaf"), ("ind_call", "other"),
                                          ("leaf_ret", "ind_call"), ("other_ret", "ind_jmp"),
                                          ("ind_jmp", "after_ind_jmp"), ("rel_jmp", "after_rel_jmp")))


def test_a_trace_that_has_stopped_goes_on_once_it_is_read(guest):
    done = guest.run("yes > /dev/null & nhmtap branch --trace --filter u --format json -t $! "
                     "--duration 0.3", paranoid=-1)
    assert done.status == 0, str(done)
    result = Result(done.status, done.stdout, done.stderr)
    assert account(result)["lost"]["buffer_full"] > 1
    assert account(result)["records"] * RECORD > 2 * BUFFER
    assert account(result)["untraced_ns"] <= account(result)["thread_ns"]


def test_a_stream_has_each_branch_in_its_order(guest):
    result = trace(guest, "true", "--stream")
    traced = result.of("traced")
    assert [t["number"] for t in traced] == list(range(account(result)["records"]))
    assert len({(t["pid"], t["tid"]) for t in traced}) == 1
    # The edges are the same, and are counted without the stream, which does not say where a function without a name begins.

    def place(code):
        return str({member: value for member, value in code.items() if member != "function_offset"})

    ours = collections.Counter((place(t["from"]), place(t["to"])) for t in traced)
    assert ours == collections.Counter({(place(e["from"]), place(e["to"])): e["count"]
                                        for r in result.of("branch") for e in r["entries"]})
    # Within a file, code runs forward from the target of a branch to the next branch. The kernel's
    # part is left out, and the return from it is a branch.
    pairs = [(a["to"], b["from"]) for a, b in zip(traced, traced[1:]) if "offset" in b["from"]]
    assert len(pairs) > 1000
    assert all(int(a["offset"], 16) <= int(b["offset"], 16) for a, b in pairs if "offset" in a)


def test_a_stream_tells_the_loss_at_its_place(guest):
    # kinds fills more than a buffer before the reader runs.
    result = trace(guest, "kinds", "--stream")
    end, lost, dropped = result.one("end"), result.of("lost"), sum(r["types"].get("traced", 0) for r in result.of("gap"))
    assert len(lost) == end["stream"]["gaps"] == end["trace"]["lost"]["buffer_full"] >= 1
    traced = result.of("traced")
    assert len(traced) == end["stream"]["branches"] and len(traced) + dropped == end["trace"]["records"]
    numbers = [t["number"] for t in traced]
    before, behind = [-1, *itertools.accumulate(numbers, max)], [*itertools.accumulate(reversed(numbers), min)][::-1]
    for record in lost:
        assert record["cause"] == "buffer_full" and record["tid"] == traced[0]["tid"]
        place = bisect.bisect(traced, record["seq"], key=lambda t: t["seq"])
        assert before[place] < record["number"] <= (behind[place] if place < len(traced) else float("inf"))


def test_intervals_sum_up_to_the_run(guest):
    result = trace(guest, "paced", "-I 50")
    firsts = [r for r in result.of("branch") if "trace" in r]
    assert len([r for r in firsts if r["trace"]["records"]]) > 1
    assert sum(counts(result, "paced").values()) == known.numbers("paced")["TAKEN"]
    whole = result.one("end")["trace"]
    for member in ("records", "thread_ns"):
        assert sum(r["trace"][member] for r in firsts) == whole[member]


def test_each_thread_has_a_trace_of_its_own(guest):
    done = guest.run("yes > /dev/null & yes > /dev/null & sleep 0.1; nhmtap branch --trace --filter u "
                     "--format json -p $(pidof yes | tr ' ' ,) --by edge,pid --duration 0.05",
                     paranoid=-1)
    assert done.status == 0, str(done)
    result = Result(done.status, done.stdout, done.stderr)
    entries = [e for r in result.of("branch") for e in r["entries"]]
    pids = result.one("start")["target"]["pids"]
    of = {pid: {str((e["from"], e["to"])) for e in entries if e["pid"] == pid} for pid in pids}
    assert {e["pid"] for e in entries} == set(pids) and len(pids) == 2
    assert len(of[pids[0]] & of[pids[1]]) > 3  # they do the same


def test_the_kernels_side_comes_where_it_is_asked_for(guest):
    result = branch(guest, "--trace --filter k", "true")
    to = {e["to"].get("module") for r in result.of("branch") for e in r["entries"]}
    assert to == {"[kernel]"}
    assert account(result)["records"] > 1000


def test_a_compilers_profile_has_exact_counts(guest):
    done = guest.run("nhmtap branch --trace --filter u --format autofdo -o x -- graph; cat x",
                     paranoid=-1)
    lines = done.stdout.splitlines()
    found = dict(re.fullmatch(r"(\w+->\w+):(\d+)", line).groups() for line in lines if "->" in line)
    assert {edge: int(n) for edge, n in found.items()} == {
        f"{a:x}->{b:x}": n for (a, b), n in taken_by_graph().items()}


# --- what refuses it ----------------------------------------------------------------------------------


def error(bench, command, **options):
    done = bench.run(command, **options)
    records = parse(done.stdout)
    check_stream(records)
    return records[0]


BESIDE = "nhmtap branch --trace --filter u --top 1 -p $$ --duration 100 > /dev/null & sleep 0.5; %s; kill %%1; wait"


@pytest.mark.parametrize("command", ["branch -e branches:u -c 1000", "profile -e r00c0:upp -c 1000"])
def test_beside_a_trace_nothing_else_has_the_last_branch_record(guest, command):
    refused = error(guest, BESIDE % f"nhmtap {command} --format json -- true", paranoid=-1)
    assert refused["errno"] == "EBUSY" and "another user traces branches" in refused["why"]


def test_beside_the_last_branch_record_there_is_no_trace(guest):
    lbr = BESIDE.replace("--trace --filter u", "-e branches:u -c 1000")
    refused = error(guest, lbr % "nhmtap branch --trace --format json -- true", paranoid=-1)
    assert refused["errno"] == "EBUSY" and "last branch record" in refused["why"]


def test_precise_samples_of_level_1_come_beside_a_trace(guest):
    done = guest.run(BESIDE % "nhmtap profile -e r00c0:up -c 1000 --format json -- kinds", paranoid=-1)
    records = parse(done.stdout)
    assert records[-1]["samples"]["aggregated"] > 300


def test_a_user_needs_level_1_and_no_bpf(guest):
    refused = error(guest, "nhmtap branch --trace --filter u --format json -- true", user="user",
                    paranoid=2)
    assert refused["errno"] == "EACCES"
    assert "branch traces need 1 or less" in refused["why"]
    done = guest.run("ulimit -l 128; nhmtap branch --trace --filter u --format json -- true",
                     user="user", paranoid=1)
    assert done.status == 0, str(done)
    records = parse(done.stdout)
    assert records[-1]["trace"]["records"] > 100
    # A user may lock so much memory for buffers: kernel.perf_event_mlock_kb, 516, and ulimit -l.
    assert records[0]["trace_buffer_bytes"] <= (516 + 128) << 10


def test_under_page_table_isolation_there_is_none(isolated):
    refused = error(isolated, "nhmtap branch --trace --format json -- true")
    assert "page-table isolation" in refused["why"] and "nopti" in refused["remedy"]
