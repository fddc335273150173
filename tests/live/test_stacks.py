# SPDX-License-Identifier: GPL-2.0-only
"""Stacks of programs whose calls are known by construction, and perf's of the same runs."""
import collections
import os
import subprocess

import pytest
from records import program
from stacks import by_perf, chains, within

CALLS = os.path.abspath(program("calls"))
EVERY_FAULT = ["-g", "-e", "page-faults", "-c", "1"]
STACK_WORDS = 1 << 18  # of bpf/shared.h


def profile(nhmtap, tmp_path, options, *steps, before=()):
    """At the end the program stays for a while, to be looked at."""
    return nhmtap.into(tmp_path / "out", "profile", *options, "--", *before, CALLS, *steps, "spin=60")


def stacks(result):
    return result.of("profile")[0]["stacks"]


def test_each_way_through_the_calls_has_its_samples(nhmtap, tmp_path):
    found = within(CALLS, chains(profile(nhmtap, tmp_path, EVERY_FAULT, "graph=300", "plain=50")))
    assert found["main", "graph", "left", "middle", "touch"] == 300
    assert found["main", "graph", "right", "middle", "touch"] == 600
    assert found["main", "touch"] == 50


def test_a_recursion_is_as_deep_as_it_is(nhmtap, tmp_path):
    found = within(CALLS, chains(profile(nhmtap, tmp_path, EVERY_FAULT, "deep=50,20")))
    assert found["main", *["down"] * 50, "middle", "touch"] == 20


def test_a_deeper_recursion_than_the_limit_is_cut_on_the_outside_and_says_so(nhmtap, tmp_path):
    result = profile(nhmtap, tmp_path, [*EVERY_FAULT, "--max-stack", "20"], "deep=50,1000")
    entry, = [e for e in result.entries() if e["samples"] >= 1000]
    assert (entry["truncated"], len(entry["stack"])) == (True, 20)
    assert within(CALLS, chains(result))[*["down"] * 18, "middle", "touch"] == 1000
    assert stacks(result)["truncated"] >= 1000


def test_the_default_depth_is_what_the_kernel_allows(nhmtap, tmp_path):
    with open("/proc/sys/kernel/perf_event_max_stack", encoding="ascii") as file:
        depth = min(127, int(file.read()) - 2)
    result = profile(nhmtap, tmp_path, EVERY_FAULT, "deep=300,1000")
    assert result.one("start")["events"][0]["attr"]["sample_max_stack"] == depth
    entry, = [e for e in result.entries() if e["samples"] >= 1000]
    assert (entry["truncated"], len(entry["stack"])) == (True, depth)


def test_a_stack_within_the_limit_is_not_called_truncated(nhmtap, tmp_path):
    result = profile(nhmtap, tmp_path, EVERY_FAULT, "graph=1000")
    assert not any("truncated" in e for e in result.entries() if e["samples"] >= 1000)


def test_the_kernels_frames_come_before_those_of_its_caller(nhmtap, tmp_path):
    found = chains(profile(nhmtap, tmp_path, EVERY_FAULT, "kernel=500"))
    (chain, samples), *_ = found.most_common(1)
    assert samples == 500
    sides = ["k" if isinstance(at, int) and at >> 63 else "u" for at in chain]
    assert "".join(sides).strip("k").strip("u") == "" and {"k", "u"} == set(sides)
    assert within(CALLS, {chain: 1}) == {("main",): 1}  # by way of the C library, which has no frames


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
    both = ["sh", "-c", '"$@" & "$@"; wait', "sh"]
    found = chains(profile(nhmtap, tmp_path, EVERY_FAULT, "graph=100", before=both))
    assert within(CALLS, found)["main", "graph", "right", "middle", "touch"] == 400
    assert sorted(found.values())[-2:] == [200, 400]
    apart = profile(nhmtap, tmp_path, [*EVERY_FAULT, "--by", "pid"], "graph=100", before=both)
    often = [e for e in apart.entries() if e["samples"] >= 100]
    assert sorted(e["samples"] for e in often) == [100, 100, 200, 200]
    assert len({e["pid"] for e in often}) == 2


def test_intervals_define_their_own_frames_and_sum_up(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "-I", "20", "--", CALLS,
                         "graph=1000", "spin=200", "graph=1000")
    assert len(result.of("profile")) > 2
    found = within(CALLS, chains(result))
    assert found["main", "graph", "left", "middle", "touch"] == 2000


def test_many_long_stacks_still_make_lines_that_can_be_read(nhmtap, tmp_path):
    # That no line is longer than 8 KiB, and all frames are defined, is checked of every stream.
    result = profile(nhmtap, tmp_path, EVERY_FAULT, "tree=9", "deep=120,10")
    assert len(result.of("profile")) > 1
    found = within(CALLS, chains(result))
    ways = [chain for chain in found if chain[-1] == "touch" and len(chain) == 11]
    assert len(ways) == 2 ** 9 and all(found[way] == 1 for way in ways)


def test_stacks_that_find_no_room_are_counted_and_their_samples_kept(nhmtap, tmp_path):
    pinned = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    result = profile(nhmtap, tmp_path, [*EVERY_FAULT, "--by", "comm"], "tree=15", before=pinned)
    full = stacks(result)["table_full"]
    # Each way is one sample: 15 calls, touch(), main() and what calls it, and two words more.
    assert full >= 2 ** 15 - STACK_WORDS // (15 + 3 + 2)
    entry, = [e for e in result.entries() if e.get("stack_lost")]
    assert (entry["stack"], entry["stack_lost"], entry["samples"]) == ([], "table_full", full)


def test_a_stack_that_found_room_is_still_found_when_there_is_none_left(nhmtap, tmp_path):
    pinned = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    found = within(CALLS, chains(profile(nhmtap, tmp_path, EVERY_FAULT, "graph=10", "tree=15", "graph=500",
                                         before=pinned)))
    # The call of the last step comes from the same place as that of the first.
    assert found["main", "graph", "left", "middle", "touch"] == 510


# --- perf's ---------------------------------------------------------------------------------------


def test_perf_finds_the_same_stacks(nhmtap, tmp_path):
    steps = ["graph=200", "deep=40,30", "kernel=100", "plain=10"]
    ours = chains(profile(nhmtap, tmp_path, EVERY_FAULT, *steps), comm="calls")
    subprocess.run(["perf", "record", "-q", "-g", "-e", "page-faults", "-c", "1", "-o",
                    tmp_path / "perf", CALLS, *steps], check=True, capture_output=True)
    theirs = by_perf(tmp_path / "perf", "calls")
    # How the program is loaded differs a little from run to run.
    often = {chain: n for chain, n in theirs.items() if n >= 10}
    assert len(often) == 5
    assert {chain: ours[chain] for chain in often} == often


def test_perf_finds_the_time_in_the_same_stacks(nhmtap, tmp_path):
    ours = within(CALLS, chains(profile(nhmtap, tmp_path, ["-g", "-e", "cpu-clock:u", "-F", "2000"],
                                        "spin=600")))
    subprocess.run(["perf", "record", "-q", "-g", "-e", "cpu-clock:u", "-F", "2000", "-o",
                    tmp_path / "perf", CALLS, "spin=600"], check=True, capture_output=True)
    theirs = within(CALLS, by_perf(tmp_path / "perf", "calls"))
    assert shares(ours) == pytest.approx(shares(theirs), abs=0.1)


def shares(found):
    """Of the time in burn(), by whom it was called."""
    spinning = {way: found["main", "spin", way, "burn"] for way in ("left_spin", "right_spin")}
    assert sum(spinning.values()) > 0.9 * sum(found.values()) > 100
    return {way: n / sum(spinning.values()) for way, n in spinning.items()}
