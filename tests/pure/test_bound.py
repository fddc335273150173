# SPDX-License-Identifier: GPL-2.0-only
"""The bounds of estimates by multiplexing. The programs here are simulated, so their true counts
are known."""
import math
import os
import random
import subprocess

import pytest

from records import HERE

USER = os.path.join(HERE, "..", "user")


@pytest.fixture(scope="session")
def bounds(tmp_path_factory):
    """A function that returns (low, high, number of readings) for each trial (list of readings)."""
    path = tmp_path_factory.mktemp("bound") / "bound"
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g",
                    "-Wno-unused-parameter", "-fsanitize=address,undefined",
                    "-fno-sanitize-recover=undefined", "-I", USER, "-o", path,
                    os.path.join(HERE, "pure", "bound.c"),
                    os.path.join(USER, "memory.c"),
                    os.path.join(USER, "metric", "bound.c"), "-lm"], check=True)

    def run(*trials, of="count"):
        text = "".join("".join(" ".join(map(str, row)) + "\n" for row in trial) + "\n"
                       for trial in trials)
        done = subprocess.run([path, of], input=text, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    return run


MS = 1_000_000


def by_turns(pace, turns, which):
    """Readings of an event that has its counter for 1 ms of every `turns` ms, and its true count.
    `pace` is the number of occurrences in each ms."""
    readings = [(n if i % turns == which else 0, MS, MS if i % turns == which else 0)
                for i, n in enumerate(pace)]
    # nhmtap reads every two turns of the kernel.
    pairs = [tuple(map(sum, zip(*readings[i:i + 2]))) for i in range(0, len(readings), 2)]
    return pairs, sum(pace)


def test_what_was_counted_all_the_time_needs_no_bound(bounds):
    assert bounds([(5, MS, MS)] * 3) == [(15, 15, 0)]


def test_a_steady_program_is_known_but_for_what_may_happen_unseen(bounds):
    # A thousand per ms, counted half of the time: three more occurrences would be scaled to six.
    readings, truth = by_turns([1000] * 100, 2, 0)
    (low, high, n), = bounds(readings)
    assert (low, high, n) == (pytest.approx(truth * 0.98 - 6), pytest.approx(truth * 1.02 + 6), 50)


def test_what_was_never_seen_may_have_happened_a_few_times(bounds):
    readings, _ = by_turns([0] * 100, 4, 1)
    (low, high, _), = bounds(readings)
    assert (low, high) == (0, pytest.approx(12))


def test_a_bound_is_never_below_what_was_counted(bounds):
    readings, _ = by_turns([1000 if i == 4 else 0 for i in range(100)], 4, 0)
    (low, high, _), = bounds(readings)
    assert low == 1000
    assert high > 4000


def test_a_few_readings_say_nothing(bounds):
    readings, _ = by_turns([1000] * 14, 2, 0)
    assert len(readings) == 7
    assert bounds(readings) == [(7000, math.inf, 0)]


def test_readings_in_which_an_event_had_no_counter_do_not_count(bounds):
    readings, _ = by_turns([1000] * 100, 20, 0)
    assert bounds(readings) == [(5000, math.inf, 0)]


def test_an_event_that_never_ran_is_unknown(bounds):
    assert bounds([(0, MS, 0)] * 20) == [(0, math.inf, 0)]


def test_the_more_readings_the_closer_the_bound(bounds):
    rng = random.Random(4)
    trials = [by_turns([rng.choice([10, 1000]) for _ in range(n)], 2, 0)[0] for n in (30, 120)]
    (low, high, _), (later_low, later_high, _) = bounds(*trials)
    assert (later_high - later_low) / 120 < (high - low) / 30


def test_a_long_run_keeps_no_more_than_64_readings(bounds):
    readings, truth = by_turns([1000] * 20000, 2, 0)
    (low, high, n), = bounds(readings)
    assert (low, high) == (pytest.approx(truth * 0.98 - 6), pytest.approx(truth * 1.02 + 6))
    assert 32 <= n <= 65


@pytest.mark.parametrize("turns", [2, 3, 5])
@pytest.mark.parametrize("phase_ms", [1, 4, 30])
def test_at_least_95_of_100_bounds_hold(bounds, turns, phase_ms):
    """Programs with phases in random order, whose paces differ by a factor of up to 100."""
    rng = random.Random(turns * 100 + phase_ms)
    trials, truths = [], []
    for _ in range(400):
        pace = []
        while len(pace) < 200:
            pace += [rng.choice([10, 100, 1000])] * rng.randint(1, 2 * phase_ms)
        readings, truth = by_turns(pace, turns, rng.randrange(turns))
        trials.append(readings)
        truths.append(truth)
    held = [low <= truth <= high for (low, high, _), truth in zip(bounds(*trials), truths)]
    assert sum(held) >= 0.95 * len(held)
    assert all(math.isfinite(high) for _, high, _ in bounds(*trials))


def test_bounds_are_of_use(bounds):
    """The bound of a program with many short phases is within 7 % of the true count."""
    rng = random.Random(7)
    readings, truth = by_turns([rng.choice([900, 1000, 1100]) for _ in range(400)], 3, 0)
    (low, high, _), = bounds(readings)
    assert truth * 0.93 < low < truth < high < truth * 1.07


def test_a_ratio_of_what_was_counted_together_is_known_better_than_its_parts(bounds):
    # The pace changes, but the ratio is always two to three.
    rng = random.Random(1)
    trial = [(2 * n, 2 * MS, MS, 3 * n, 2 * MS, MS)
             for n in (rng.choice([100, 10000]) for _ in range(60))]
    (low, high, n), = bounds(trial, of="ratio")
    assert n == 60
    assert low < 2 / 3 < high
    assert high - low < 0.001
    (low, high, _), = bounds([row[:3] for row in trial])
    assert (high - low) / high > 0.1


def test_a_ratio_to_what_was_never_counted_has_no_bound(bounds):
    with pytest.raises(ValueError, match="none"):
        bounds([(1, 2 * MS, MS, 0, 2 * MS, MS)] * 20, of="ratio")
