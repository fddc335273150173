# SPDX-License-Identifier: GPL-2.0-only
"""Stacks of programs whose calls are known by construction, also compared with those of perf."""
import os
import subprocess

import pytest
from puppet import pinned, profile_while_stopped
from records import held, program
from stacks import by_perf, chains, named, within

CALLS = os.path.abspath(program("calls"))
EVERY_FAULT = ["-g", "-e", "page-faults", "-c", "1"]
STACK_WORDS = 1 << 17  # as in bpf/shared.h


def profile(nhmtap, tmp_path, options, *steps, before=()):
    return nhmtap.into(tmp_path / "out", "profile", *options, "--", *before, CALLS, *steps)


def profile_held(nhmtap, tmp_path, options, *steps):
    """Runs on one CPU, whose stacks are not emptied in the meantime."""
    return nhmtap.into(tmp_path / "out", "profile", *options, "--", *held(*pinned(), CALLS, *steps))


def stacks(result):
    return result.of("profile")[0]["stacks"]


def test_each_way_through_the_calls_has_its_samples(nhmtap, tmp_path):
    found = within(CALLS, chains(profile(nhmtap, tmp_path, EVERY_FAULT, "graph=300", "plain=50")))
    assert found["_start", "main", "graph", "left", "middle", "touch"] == 300
    assert found["_start", "main", "graph", "right", "middle", "touch"] == 600
    assert found["_start", "main", "touch"] == 50


def test_a_recursion_is_as_deep_as_it_is(nhmtap, tmp_path):
    found = within(CALLS, chains(profile(nhmtap, tmp_path, EVERY_FAULT, "deep=50,20")))
    assert found["_start", "main", *["down"] * 50, "middle", "touch"] == 20


def test_a_deeper_recursion_than_the_limit_is_cut_on_the_outside_and_says_so(nhmtap, tmp_path):
    result = profile(nhmtap, tmp_path, [*EVERY_FAULT, "--max-stack", "20"], "deep=50,1000")
    entry, = [e for e in result.entries() if e["samples"] >= 1000]
    assert (entry["truncated"], len(entry["stack"])) == (True, 20)
    assert within(CALLS, chains(result))[*["down"] * 18, "middle", "touch"] == 1000
    assert stacks(result)["truncated"] >= 1000


def test_the_default_depth_is_what_the_kernel_allows(nhmtap, tmp_path):
    with open("/proc/sys/kernel/perf_event_max_stack", encoding="ascii") as file:
        allowed = min(127, int(file.read()) - 2)
    for way, depth in (("fp", allowed), ("auto", 127)):
        result = profile(nhmtap, tmp_path, [*EVERY_FAULT, "--unwind", way], "deep=300,1000")
        assert result.one("start")["events"][0]["attr"]["sample_max_stack"] == depth
        entry, = [e for e in result.entries() if e["samples"] >= 1000]
        assert (entry["truncated"], len(entry["stack"])) == (True, depth)


def test_by_tables_a_stack_may_be_twice_as_deep(nhmtap, tmp_path):
    result = profile(nhmtap, tmp_path, [*EVERY_FAULT, "--max-stack", "255"], "deep=240,1000", "deep=300,500")
    found = within(CALLS, chains(result))
    assert found["_start", "main", *["down"] * 240, "middle", "touch"] == 1000
    assert found[*["down"] * 253, "middle", "touch"] == 500
    cut, = [e for e in result.entries() if e["samples"] == 500]
    assert cut["truncated"] and stacks(result)["truncated"] >= 500


def test_a_stack_within_the_limit_is_not_called_truncated(nhmtap, tmp_path):
    result = profile(nhmtap, tmp_path, EVERY_FAULT, "graph=1000")
    assert not any("truncated" in e for e in result.entries() if e["samples"] >= 1000)


def test_the_kernels_frames_come_before_those_of_its_caller(nhmtap, tmp_path):
    found = chains(profile(nhmtap, tmp_path, EVERY_FAULT, "kernel=500"))
    (chain, samples), *_ = found.most_common(1)
    assert samples == 500
    sides = ["k" if isinstance(at, int) and at >> 63 else "u" for at in chain]
    assert "".join(sides).strip("k").strip("u") == "" and {"k", "u"} == set(sides)
    assert within(CALLS, {chain: 1}) == {("_start", "main", "by_kernel"): 1}
    by_frames = chains(profile(nhmtap, tmp_path, [*EVERY_FAULT, "--unwind", "fp"], "kernel=500"))
    (chain, samples), *_ = by_frames.most_common(1)
    # The way leads through the C library, which has no frame pointers.
    assert samples == 500 and within(CALLS, {chain: 1}) == {("main",): 1}


@pytest.mark.parametrize("side, kernels", [("k", True), ("u", False)])
def test_the_side_of_the_event_is_the_side_of_the_frames(nhmtap, tmp_path, side, kernels):
    result = profile(nhmtap, tmp_path, ["-g", "-e", f"page-faults:{side}", "-c", "1"], "kernel=500",
                     "plain=500")
    found = chains(result)
    assert {at >> 63 == 1 if isinstance(at, int) else False for c in found for at in c} == {kernels}
    assert max(found.values()) == 500


def test_stack_is_a_key_beside_others(nhmtap, tmp_path):
    result = profile(nhmtap, tmp_path, ["-e", "page-faults", "-c", "1", "--by", "cpu,stack,ip,tid"],
                     "graph=100")
    assert result.one("start")["by"] == ["ip", "tid", "cpu", "stack"]
    entry = max(result.entries(), key=lambda e: e["samples"])
    assert {"stack", "ip", "tid", "cpu"} <= set(entry) and "comm" not in entry


def test_the_same_stack_of_two_processes_counts_once(nhmtap, tmp_path):
    both = ["sh", "-c", '"$@"; "$@"; exit 0', "sh"]
    result = profile(nhmtap, tmp_path, EVERY_FAULT, "graph=100", before=both)
    assert [e["samples"] for e in result.entries(comm="calls")][:2] == [400, 200]
    apart = profile(nhmtap, tmp_path, [*EVERY_FAULT, "--by", "pid"], "graph=100", before=both)
    often = apart.entries()[:4]
    assert [e["samples"] for e in often] == [200, 200, 100, 100]
    assert len({e["pid"] for e in often}) == 2


def test_frames_have_the_names_of_their_functions(nhmtap, tmp_path):
    result = profile(nhmtap, tmp_path, EVERY_FAULT, "graph=100", "kernel=50")
    found = named(result)
    way, = [chain for chain, n in found.items() if n == 200]
    assert way[-5:] == ("main", "graph", "right", "middle", "touch")
    way, = [chain for chain, n in found.items() if n == 50]
    assert "main" in way and "vfs_read" in way[way.index("main"):]


def test_a_frame_says_the_line_of_the_call_not_of_what_follows_it(nhmtap, tmp_path):
    result = profile(nhmtap, tmp_path, EVERY_FAULT, "graph=100")
    frames = [f for r in result.of("frames") for f in r["frames"] if f.get("module") == CALLS]
    lines = {(f["symbol"], f["line"]) for f in frames if f.get("return") and f["symbol"] in ("left", "right")}
    with open(os.path.join(os.path.dirname(__file__), "../programs/calls.c"), encoding="utf-8") as file:
        source = file.read().splitlines()
    assert {name: source[line - 1].strip() for name, line in lines} == {
        "left": "middle(n);", "right": "middle(2 * n);"}


@pytest.mark.parametrize("detail, members", [
    ("symbol", {"id", "symbol", "module"}), ("module", {"id", "module"}),
    ("place", {"id", "module", "offset", "build_id", "return"})])
def test_frames_are_told_apart_by_what_is_asked_for(nhmtap, tmp_path, detail, members):
    result = profile(nhmtap, tmp_path, [*EVERY_FAULT, "--by", f"{detail},comm"], "graph=100")
    frames = [f for r in result.of("frames") for f in r["frames"] if f.get("module") == CALLS]
    assert all(set(f) <= members for f in frames) and set().union(*frames) == members
    assert result.one("start")["by"] == [detail, "stack", "comm"]


def test_functions_that_are_called_from_several_lines_count_once_by_symbol(nhmtap, tmp_path):
    result = profile(nhmtap, tmp_path, [*EVERY_FAULT, "--by", "symbol"], "graph=100", "graph=100")
    found = named(result)
    assert sorted(found.values())[-2:] == [200, 400] and len([n for n in found.values() if n >= 100]) == 2


def test_intervals_define_their_own_frames_and_sum_up(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "-I", "20", "--", CALLS,
                         "graph=1000", "spin=200", "graph=1000")
    assert len(result.of("profile")) > 2
    found = within(CALLS, chains(result))
    assert found["_start", "main", "graph", "left", "middle", "touch"] == 2000


def test_many_long_stacks_still_make_lines_that_can_be_read(nhmtap, tmp_path):
    # Every stream is checked for lines of at most 8 KiB and for defined frames.
    result = profile(nhmtap, tmp_path, EVERY_FAULT, "tree=9", "deep=120,10")
    assert len(result.of("profile")) > 1
    found = within(CALLS, chains(result))
    ways = [chain for chain in found if chain[-1] == "touch" and len(chain) == 12]
    assert len(ways) == 2 ** 9 and all(found[way] == 1 for way in ways)


def test_stacks_that_find_no_room_are_counted_and_their_samples_kept(nhmtap, tmp_path):
    """The stacks are so long that they fill their room while four fifths of the table's slots are free: one is left for the
    samples without a stack."""
    result = profile_held(nhmtap, tmp_path, [*EVERY_FAULT, "--by", "comm"], "tree=15,60")
    full = stacks(result)["table_full"]
    # Each way is one sample: 75 calls, touch(), main() and its caller, and two more words.
    assert full >= 2 ** 15 - STACK_WORDS // (75 + 3 + 2)
    lost = [e for e in result.entries() if e.get("stack_lost")]
    assert {(*e["stack"], e["stack_lost"]) for e in lost} == {("table_full",)}
    assert sum(e["samples"] for e in lost) == full
    assert result.one("warning", of="stacks")["lost"] == full


def test_stacks_are_read_before_their_room_is_full(nhmtap):
    """Without intervals, only the BPF program wakes nhmtap. The stacks are so long that they fill
    their room while more than three quarters of the table's slots are free."""
    result = profile_while_stopped(nhmtap, [*EVERY_FAULT, "--unwind", "fp", "--by", "comm"], 3, CALLS, "tree=9,110")
    assert within(CALLS, chains(result)).total() >= 3 * 2 ** 9 > STACK_WORDS // (9 + 110)
    assert stacks(result)["table_full"] == 0


def test_a_stack_that_found_room_is_still_found_when_there_is_none_left(nhmtap, tmp_path):
    found = within(CALLS, chains(profile_held(nhmtap, tmp_path, EVERY_FAULT, "deep=90,10", "tree=15",
                                              "deep=90,500")))
    # It is longer than the stacks that fill the table. Not even another one of those has room.
    assert found["_start", "main", *["down"] * 90, "middle", "touch"] == 510


# --- perf's stacks, by frame pointers -------------------------------------------------------------


def test_perf_finds_the_same_stacks(nhmtap, tmp_path):
    steps = ["graph=200", "deep=40,30", "kernel=100", "plain=10"]
    ours = chains(profile(nhmtap, tmp_path, [*EVERY_FAULT, "--unwind", "fp"], *steps), comm="calls")
    subprocess.run(["perf", "record", "-q", "-m", "4096", "--buildid-mmap", "-g", "-e", "page-faults", "-c", "1", "-o",
                    tmp_path / "perf", CALLS, *steps], check=True, capture_output=True)
    theirs = by_perf(tmp_path / "perf", "calls")
    # How the program is loaded differs slightly between runs.
    often = {chain: n for chain, n in theirs.items() if n >= 10 and within(CALLS, {chain: 1})}
    assert len(often) == 5
    assert {chain: ours[chain] for chain in often} == often


def test_perf_finds_the_time_in_the_same_stacks(nhmtap, tmp_path):
    ours = within(CALLS, chains(profile(nhmtap, tmp_path, ["-g", "--unwind", "fp", "-e", "cpu-clock:u", "-F", "2000"],
                                        "spin=600")))
    subprocess.run(["perf", "record", "-q", "-m", "4096", "--buildid-mmap", "-g", "-e", "cpu-clock:u", "-F", "2000", "-o",
                    tmp_path / "perf", CALLS, "spin=600"], check=True, capture_output=True)
    theirs = within(CALLS, by_perf(tmp_path / "perf", "calls"))
    assert shares(ours) == pytest.approx(shares(theirs), abs=0.1)


def shares(found):
    """The share of the time in burn() by its caller."""
    spinning = {way: found["main", "spin", way, "burn"] for way in ("left_spin", "right_spin")}
    assert sum(spinning.values()) > 0.9 * sum(found.values()) > 100
    return {way: n / sum(spinning.values()) for way, n in spinning.items()}
