# SPDX-License-Identifier: GPL-2.0-only
"""Entries of tables are merged as dictionaries would merge them, and nothing is lost when only the largest are kept."""
import collections
import random

import pytest

from compiled import compiled


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("merges"), "merges")


def rows(line):
    return [tuple(map(int, row.split(","))) for row in line.split()]


def entries(rng, number):
    """Keys (kind, stack, address, source, pid) and values (samples, period, maximum)."""
    for _ in range(number):
        yield ((rng.randrange(2), rng.choice((0, 1, 2, 10, 11, 12, 23)), rng.randrange(4), rng.randrange(3), rng.randrange(20)),
               (rng.randrange(1, 9), rng.randrange(1, 1000), rng.randrange(100)))


def merged(pairs):
    sums = {}
    for key, (samples, period, maximum) in pairs:
        before = sums.get(key, (0, 0, 0))
        sums[key] = (before[0] + samples, before[1] + period, max(before[2], maximum))
    return sums


def lines(pairs):
    return "".join("+ " + " ".join(map(str, key + values)) + "\n" for key, values in pairs)


@pytest.mark.parametrize("seed, number", [(1, 0), (2, 1), (3, 50), (4, 3000)])
def test_the_values_of_a_key_are_added_and_the_largest_is_kept_of_a_maximum(run, seed, number):
    pairs = list(entries(random.Random(seed), number))
    shown = rows(run(lines(pairs) + "sums\n"))
    assert {row[:5]: row[5:] for row in shown} == merged(pairs) and len(shown) == len(merged(pairs))


@pytest.mark.parametrize("seed, most", [(5, 10), (6, 1), (7, 0), (8, 100000)])
def test_the_heaviest_are_kept_and_the_others_are_summed_up_by_kind_address_and_source(run, seed, most):
    pairs = list(entries(random.Random(seed), 2000))
    sums = merged(pairs)
    kept, apart, _, none = map(rows, run(lines(pairs) + f"keep {most}\nsums\napart\nclear\nsums\napart\n").split("\n")[:4])
    kept = {row[:5]: row[5:] for row in kept}
    assert len(kept) == min(most, len(sums)) and kept.items() <= sums.items()
    others = {key: value for key, value in sums.items() if key not in kept}
    if kept and others:
        assert min(value[1] for value in kept.values()) >= max(value[1] for value in others.values())
    # Of branches (kind 1), the address is not told apart.
    expected, numbers = {}, collections.Counter()
    for (kind, _, address, source, _), value in others.items():
        key = (kind, 0, 0 if kind else address, source, 0)
        expected |= merged([(key, expected.get(key, (0, 0, 0))), (key, value)])
        numbers[key] += 1
    assert {row[:5]: row[5:8] for row in apart} == expected
    assert {row[:5]: row[8] for row in apart} == dict(numbers)
    assert not none


def test_equal_weights_are_kept_in_the_order_in_which_they_came(run):
    pairs = [((0, 0, 1, 0, pid), (1, 7, 0)) for pid in (5, 3, 9, 1)]
    assert [row[4] for row in rows(run(lines(pairs) + "keep 2\nsums\n"))] == [5, 3]


@pytest.mark.parametrize("without, apart", [
    ("1 1 1 1", {(0, 0, 0, 0, 0, 15, 150, 9, 3)}),  # nothing that is to be told apart
    ("0 1 1 0", {(0, 0, 0, 1, 0, 3, 30, 7, 2), (1, 0, 0, 2, 0, 12, 120, 9, 1)}),
    ("1 1 0 0", {(0, 0, 0, 1, 0, 3, 30, 7, 2), (0, 0, 0, 2, 0, 12, 120, 9, 1)}),
])
def test_keys_without_some_members_are_told_apart_by_the_others(run, without, apart):
    pairs = [((0, 0, 4, 1, 1), (1, 10, 7)), ((0, 0, 5, 1, 2), (2, 20, 5)), ((1, 0, 6, 2, 3), (12, 120, 9))]
    said = run(f"without {without}\n{lines(pairs)}keep 0\napart\nclear\nsums\n").split("\n")
    assert set(rows(said[0])) == apart and not said[1]


def test_the_heaviest_are_kept_without_stacks(run):
    pairs = [((0, 0, 4, 1, 1), (1, 10, 7)), ((0, 0, 5, 1, 2), (2, 20, 5)), ((0, 0, 6, 2, 3), (12, 15, 9))]
    assert rows(run(f"without 0 1 0 0\n{lines(pairs)}keep 2\nsums\n")) == [(0, 0, 5, 1, 2, 2, 20, 5), (0, 0, 6, 2, 3, 12, 15, 9)]


def test_what_was_cleared_begins_anew(run):
    first, second = lines([((0, 10, 1, 1, 1), (5, 50, 500))]), lines([((0, 10, 1, 1, 1), (1, 2, 3))])
    assert rows(run(first + "clear\n" + second + "sums\n")) == [(0, 10, 1, 1, 1, 1, 2, 3)]


def test_pairs_are_counted_as_a_dictionary_counts_them(run):
    rng, counts = random.Random(9), collections.defaultdict(lambda: [0, 0])
    steps = []
    for _ in range(20000):
        pair, which = (rng.choice((rng.randrange(4000), 1 << 40)), rng.randrange(3)), rng.randrange(2)
        counts[pair][which] += 1
        steps.append(f"pair {pair[0]} {pair[1]} {which}\n")
    many, few, none, again = run("".join(steps) + "pairs\nforget\npair 1 2 0\npair 1 2 1\npair 2 1 0\npairs\nforget\npairs\nforget\n"
                                 "pair 3 3 1\npairs\n").splitlines()
    shown = many.split()
    assert {row[:2]: list(row[2:]) for row in rows(" ".join(shown[:-1]))} == counts and int(shown[-1]) == len(counts)
    assert sorted(few.split()) == sorted(["1,2,1,1", "2,1,1,0", "2"])
    assert none == "0" and again.split() == ["3,3,0,1", "1"]


# A stack's number here: its end, ten times how it was guessed; see merges.c. STACK_CUT is 2, STACK_NO_TABLE 3.
@pytest.mark.parametrize("stack, told", [
    (1, {"failed": 1}), (2, {"full": 1}),
    (101, {"delivered": 1, "end1": 1}), (100, {"delivered": 1, "end0": 1}), (102, {"delivered": 1, "end2": 1}),
    (103, {"delivered": 1, "end3": 1}), (105, {"delivered": 1, "end5": 1}),
    # As many frames as were asked for: where the end is not told, it is cut.
    (2100, {"delivered": 1, "end2": 1}), (2103, {"delivered": 1, "end2": 1}), (2101, {"delivered": 1, "end1": 1}),
    # Guessed: all, or those that are marked; none is marked in 111.
    (121, {"delivered": 1, "end1": 1, "guessed": 1}), (111, {"delivered": 1, "end1": 1}),
    (1111, {"delivered": 1, "end1": 1, "guessed": 1}), (1101, {"delivered": 1, "end1": 1}),
])
def test_samples_count_by_what_became_of_their_stack(run, stack, told):
    words = dict(zip(("delivered", "failed", "full", "guessed", *(f"end{end}" for end in range(6))),
                     map(int, run(f"stack {stack} 21\nstacks\n").split())))
    assert {name: number for name, number in words.items() if number} == {name: 42 for name in told}
