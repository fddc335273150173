# SPDX-License-Identifier: GPL-2.0-only
"""Profiles for the Firefox Profiler from made samples, counts and loads: what is where in time, and what becomes of it if there
is too much. Times are in ns since 1970 where they are given, and in ms since the first one in a profile."""
import collections

import firefox
import pytest
from compiled import compiled

BEGAN = 1_800_000_000_000_000_000
MS = 1_000_000


@pytest.fixture(scope="module")
def gathered(tmp_path_factory):
    """Returns a function that makes a profile from lines: see firefox.c."""
    folder = tmp_path_factory.mktemp("firefox")
    run = compiled(folder, "firefox")

    def gather(lines):
        (folder / "profile.json").write_text(run("".join(line + "\n" for line in lines)), encoding="utf-8")
        return firefox.read(folder / "profile.json")
    return gather


def at(since, until):
    return f"at {BEGAN + since * MS} {BEGAN + until * MS}"


def weights(document):
    """{(thread, innermost function): weight}."""
    sums = collections.Counter()
    for thread, stack, weight in firefox.stacks(document):
        sums[thread, stack[-1]] += weight
    return sums


def test_stacks_of_an_interval_are_laid_out_over_it_by_their_weights(gathered):
    document = gathered([at(0, 100), "sample a 30 f", "sample a 10 g", at(200, 300), "sample a 5 f"])
    thread, = firefox.threads(document)
    assert thread["samples"]["time"] == [0, 75, 200] and thread["samples"]["weight"] == [30, 10, 5]
    assert document["meta"]["startTime"] == BEGAN / MS


def test_a_counter_is_0_where_an_interval_begins_that_does_not_follow_the_one_before(gathered):
    document = gathered([at(0, 100), "count x 7", at(100, 200), "count x 8", at(500, 600), "count x 9"])
    samples = document["counters"][0]["samples"]
    assert list(zip(samples["time"], samples["count"])) == [(0, 0), (100, 7), (200, 8), (500, 0), (600, 9)]


def test_the_loads_of_each_source_are_markers_with_a_track_of_their_own(gathered):
    document = gathered([at(0, 100), "loads l3_hit 4 40 2000 90", "loads local_dram 1 10 3000 300", at(150, 150), "loads l3_hit 1 1 44 44"])
    assert firefox.loads(document) == [
        ("l3_hit", 0, 100, {"type": "loads: l3_hit", "mean": 50, "max": 90, "samples": 4, "loads": 40}),
        ("l3_hit", 150, None, {"type": "loads: l3_hit", "mean": 44, "max": 44, "samples": 1, "loads": 1}),
        ("local_dram", 0, 100, {"type": "loads: local_dram", "mean": 300, "max": 300, "samples": 1, "loads": 10})]
    assert {schema["name"]: schema["graphs"][0]["key"] for schema in document["meta"]["markerSchema"]} == {
        "loads: l3_hit": "mean", "loads: local_dram": "mean"}


def test_too_many_intervals_become_longer_ones_with_the_same_sums(gathered):
    """70,000 intervals of 1 ms with two samples, a count and loads each: more than twice what is kept apart."""
    nr = 70_000
    lines = [line for i in range(nr) for line in (at(i, i + 1), "sample a 1 f", f"sample {'ab'[i % 2]} 2 g", "count x 3",
                                                  f"loads dram 1 2 {2 * (i % 10)} {i}")]
    document = gathered(lines)
    assert weights(document) == {("a", "f"): nr, ("a", "g"): nr, ("b", "g"): nr}
    assert firefox.counts(document) == {"x": 3 * nr}
    loads = [data for *_, data in firefox.loads(document)]
    assert sum(data["samples"] for data in loads) == nr and max(data["max"] for data in loads) == nr - 1
    assert sum(data["mean"] * data["loads"] for data in loads) == pytest.approx(2 * 4.5 * nr)
    rows = sum(thread["samples"]["length"] for thread in document["threads"]) + len(loads) + len(document["counters"][0]["samples"]["time"])
    assert rows < 1.1 * 2 ** 17
    assert document["threads"][0]["samples"]["time"][-1] > nr - 10 and document["counters"][0]["samples"]["time"][-1] == nr


def test_stacks_that_have_no_room_are_summed_up(gathered):
    nr = 2 ** 17 + 1000
    document = gathered([at(0, 1000), *(f"sample a 1 f{i}" for i in range(nr)), "sample a 5 f7"])
    sums = weights(document)
    assert sums["a", "f7"] == 1 and sums["a", "f9"] == 1 and sums["a", "[others]"] == 1000 + 5 and sum(sums.values()) == nr + 5


def test_threads_without_end_share_one_and_the_first_ones_stay(gathered):
    """As the processes of a day that come and go."""
    document = gathered([line for i in range(100) for line in (
        at(i, i + 1), "sample first 2 f", *(f"sample t{i}.{k} 1 f" for k in range(100)))])
    sums = weights(document)
    assert len(firefox.threads(document)) == 1025
    assert sums["first", "f"] == 200 and sums["[others]", "f"] == sum(sums.values()) - 200 - 1023 == 10000 - 1023
