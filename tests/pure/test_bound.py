# SPDX-License-Identifier: GPL-2.0-only
"""The bounds of estimates by multiplexing. The programs here are simulated, so their true counts
are known."""
import math
import random
import subprocess

import pytest

from compiled import compiled


@pytest.fixture(scope="session")
def bounds(tmp_path_factory):
    """A function that returns (low, high, number of readings) for each trial (list of readings). turn
    and pace: a turn of the kernel, and the highest pace; without them, only readings count."""
    folder = tmp_path_factory.mktemp("bound")
    compiled(folder, "bound")

    def run(*trials, of="count", turn=None, pace=None, absences=False):
        text = "".join("".join(" ".join(map(str, row)) + "\n" for row in trial) + "\n"
                       for trial in trials)
        options = [] if turn is None else [str(turn), str(pace)]
        done = subprocess.run([folder / "bound", of, *options], input=text, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        rows = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
        return [row[3] for row in rows] if absences else [row[:3] for row in rows]
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


@pytest.mark.parametrize("nr", [1, 7, 8])
def test_a_count_of_a_few_readings_is_bounded_by_what_a_core_is_capable_of(bounds, nr):
    """Nothing happens while the event has its counter; all the time else it has its highest pace."""
    (low, high, used), = bounds([(0, 2 * MS, MS)] * nr, turn=MS, pace=2)
    assert low == 0 and used == (nr if nr == 8 else 0)
    assert (2 * nr * MS if nr < 8 else 0) < high < 2 * 2.1 * nr * MS


def few(rng, pace):
    """Readings of two events that share a counter, too few to say anything, and the two true counts."""
    readings, truth = [], [0, 0]
    first = rng.randrange(2)
    for i in range(rng.randint(2, 7)):
        counts = [[rng.randrange(pace * MS) if rng.random() < .7 else 0 for _ in "ab"] for _ in "12"]
        readings.append([number for event in (0, 1) for number in (counts[event == first][event], 2 * MS, MS)])
        truth = [truth[event] + counts[0][event] + counts[1][event] for event in (0, 1)]
    return readings, truth


@pytest.mark.parametrize("of, true", [("ratio", lambda a, b: a / b), ("share", lambda a, b: a / (a + b))])
def test_a_metric_of_a_few_readings_is_bounded_by_what_its_counts_are_bounded_by(bounds, of, true):
    rng = random.Random(of)
    trials, truths = zip(*(few(rng, 2) for _ in range(300)))
    counts = [list(bounds(*[[row[3 * event:3 * event + 3] for row in trial] for trial in trials], turn=MS, pace=2))
              for event in (0, 1)]
    found = bounds(*trials, of=of, turn=MS, pace=2)
    for (low, high, used), truth, (low_a, high_a, _), (low_b, high_b, _) in zip(found, truths, *counts, strict=True):
        if math.isnan(low):
            continue  # nothing was seen of what it is divided by
        assert used == 0
        assert low == pytest.approx(true(low_a, high_b), rel=1e-5, abs=1e-6)
        known = low_b if of == "ratio" else low_a + low_b
        assert high == (pytest.approx(true(high_a, low_b), rel=1e-5) if known else math.inf)
        assert not truth[0] + truth[1] or low <= true(*truth) <= high
    assert sum(math.isfinite(high) for _, high, _ in found) > 200


def test_a_metric_whose_divisor_may_be_nothing_has_no_bound(bounds):
    """The first is 4 to 8 million and the second 5 to 9, so that what one has more than the other may be 0."""
    assert bounds([(MS, 2 * MS, MS, MS + MS // 4, 2 * MS, MS)] * 4, of="excess", turn=MS, pace=1) == [
        (-math.inf, math.inf, 0)]


def test_no_spread_is_wider_than_what_a_core_is_capable_of(bounds):
    readings = [(1000 * MS * (i == 3), 2 * MS, MS) for i in range(10)]
    (_, high, used), = bounds(readings, turn=MS, pace=1)
    assert used == 10 and high < 1000 * MS + 21 * MS


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
    (low, high, n), = bounds([(1, 2 * MS, MS, 0, 2 * MS, MS)] * 20, of="ratio")
    assert math.isnan(low) and math.isnan(high) and n == 0


# --- what no reading shows ----------------------------------------------------------------------
#
# A machine that can load once in a ns. The time is divided into steps of a quarter of a ms.

STEP = MS // 4
TURN = 4 * MS
PACE = 1.0


class Turns:
    """Groups that take turns on a CPU. Each process inherits the order of its parent, and the kernel's
    timer moves the one that runs on."""

    def __init__(self, groups, rng):
        self.groups, self.rng = groups, rng
        self.timer = rng.randrange(TURN // STEP)
        self.parent = rng.randrange(groups)
        self.now, self.counts, self.rows = None, [0, 0, 0], []
        self.steps, self.truth = 0, 0

    def fork(self):
        self.now = self.parent

    def step(self, loads, child=False):
        if self.now is None:
            self.now = self.parent
        runs = (self.now if child else self.parent) == 0
        self.truth += loads
        self.counts[0] += loads if runs else 0
        self.counts[1] += STEP
        self.counts[2] += STEP if runs else 0
        self.steps += 1
        if (self.steps + self.timer) % (TURN // STEP) == 0:
            if child:
                self.now = (self.now + 1) % self.groups
            else:
                self.parent = (self.parent + 1) % self.groups
        if self.steps % (2 * TURN // STEP) == 0:
            self.rows.append(tuple(self.counts))
            self.counts = [0, 0, 0]

    def readings(self):
        return self.rows + [tuple(self.counts)]


def alone(paces):
    """A shape of one process. paces(rng): loads per ns in each step."""
    def run(turns, rng):
        for pace in paces(rng):
            turns.step(int(pace * STEP))
    return run


def burst(ms, total=300, background=0.0, number=1):
    def paces(rng):
        steps = [background] * (total * 4)
        for _ in range(number):
            length = max(int(ms * 4) // number, 1)
            begin = rng.randrange(len(steps) - length)
            steps[begin:begin + length] = [0.33] * length
        return steps
    return alone(paces)


def tails(rng):
    """Phases whose lengths, and whose paces, have heavy tails."""
    steps = []
    while len(steps) < 1200:
        steps += [min(0.001 * rng.paretovariate(0.7), 0.33)] * min(int(rng.paretovariate(0.8)), 400)
    return steps[:1200]


def periods(ms):
    """Loads in a third of each period, and the period's length varies by a tenth."""
    def paces(rng):
        steps = []
        while len(steps) < 1200:
            length = max(3, round(ms * 4 * rng.uniform(0.9, 1.1)))
            steps += [0.3] * (length // 3) + [0.001] * (length - length // 3)
        return steps[:1200]
    return alone(paces)


def children(most_ms):
    """Children of 1 ms to most_ms, each with loads at the beginning, in the middle or at the end."""
    def run(turns, rng):
        while turns.steps < 1200:
            length = rng.randint(4, 4 * most_ms)
            loading = rng.randint(0, length)
            begin = rng.randint(0, length - loading)
            turns.fork()
            for i in range(length):
                turns.step(int(0.3 * STEP) if begin <= i < begin + loading else 0, child=True)
            turns.step(100)
    return run


def same_children(turns, rng):
    """Children that load while they start only, which is what each turn of the same group sees."""
    while turns.steps < 1200:
        turns.fork()
        for i in range(rng.randint(5, 14)):
            turns.step(int(0.3 * STEP) if i < 2 else 0, child=True)
        turns.step(100)


def steady(pace):
    return alone(lambda rng: [pace * rng.uniform(0.98, 1.02) for _ in range(1200)])


SHAPES = {
    "a burst of 3 ms": burst(3), "of 1 ms": burst(1), "of 6 ms": burst(6), "of 9 ms": burst(9), "of 18 ms": burst(18),
    "on a background": burst(3, background=0.002), "bursts": burst(4, number=8), "tails": alone(tails),
    "periods of 5 ms": periods(5), "of 10 ms": periods(10), "of 17 ms": periods(17), "of 40 ms": periods(40),
    "children of 3 ms": children(3), "children of 20 ms": children(20), "children of 100 ms": children(100),
    "children alike": same_children, "steady": steady(0.1), "rare": steady(0.0001),
}


def trials(shape, groups, number):
    rng = random.Random(f"{shape} {groups}")
    for _ in range(number):
        turns = Turns(groups, rng)
        SHAPES[shape](turns, rng)
        yield turns.readings(), turns.truth


@pytest.mark.parametrize("groups", [2, 3, 6])
@pytest.mark.parametrize("shape", SHAPES)
def test_at_least_95_of_100_bounds_hold_whatever_was_not_seen(bounds, shape, groups):
    """With the kernel's turns alone. Periods that are multiples of theirs, groups * 4 ms, are not among them:
    without the mixing below, nothing would tell these from what they seem to be."""
    readings, truths = zip(*trials(shape, groups, 120))
    rows = bounds(*readings, turn=TURN, pace=PACE)
    held = [low <= truth <= high for (low, high, _), truth in zip(rows, truths)]
    assert sum(held) >= 0.95 * len(held)
    # Most have an upper bound, unless processes are too short for the groups to take turns in them.
    assert sum(math.isfinite(high) for _, high, _ in rows) >= (0.4 if "children" in shape else 1) * len(rows)


class MixedTurns:
    """Turns of a CPU's groups whose order is mixed (user/collection/solo.h): from time to time one of them has the
    counters alone. The kernel lets the first that is enabled have them, and puts it behind the others at the end of
    its turn."""

    def __init__(self, groups, rng, mixed=True):
        first = rng.randrange(groups)
        self.order = [(first + i) % groups for i in range(groups)]
        self.rng, self.mixed, self.alone, self.pack, self.in_a_row = rng, mixed, None, [], 0
        self.timer, self.span = rng.randrange(TURN // STEP), 2 * TURN // STEP
        self.counts, self.rows, self.steps, self.look, self.truth = [0, 0, 0], [], 0, self.span, 0

    def step(self, loads):
        now = self.order[0] if self.alone is None else self.alone
        self.truth += loads
        self.counts[0] += loads * (now == 0)
        self.counts[1] += STEP
        self.counts[2] += STEP * (now == 0)
        self.steps += 1
        if (self.steps + self.timer) % (TURN // STEP) == 0:
            self.order.remove(now)
            self.order.append(now)
        if self.steps >= self.look:
            self.read()

    def read(self):
        self.rows.append(tuple(self.counts))
        self.counts = [0, 0, 0]
        if self.steps >= 64 * self.span:
            self.span *= 2  # readings are merged
        if self.mixed and self.in_a_row < max(1, len(self.order) // 2):
            self.pack = self.pack or self.rng.sample(self.order, len(self.order))
            self.alone = self.pack.pop()
            self.in_a_row += 1
        else:
            self.alone, self.in_a_row = None, 0
        about = self.span if self.alone is None else 0.75 * TURN / STEP
        self.look = self.steps + round(about * self.rng.uniform(0.75, 1.25))

    def readings(self):
        return self.rows + [tuple(self.counts)]


def in_step(period_ms, loading_ms, total_ms=300, background=0.001):
    """Loads in a part of each period."""
    def paces(rng):
        begin = rng.uniform(0, period_ms)
        return [0.3 if (begin + i / 4) % period_ms < loading_ms else background for i in range(total_ms * 4)]
    return alone(paces)


def held_in_step(bounds, shapes, groups, number, mixed=True):
    rng, trials = random.Random(groups), []
    for shape in shapes:
        for _ in range(number):
            trials.append(MixedTurns(groups, rng, mixed))
            shape(trials[-1], rng)
    rows = bounds(*(turns.readings() for turns in trials), turn=TURN, pace=PACE)
    return sum(low <= turns.truth <= high for (low, high, _), turns in zip(rows, trials)) / len(trials)


@pytest.mark.parametrize("longer", [0.5, 1, 1.02, 1.15, 2])
@pytest.mark.parametrize("groups", [2, 3, 4, 6])
def test_at_least_95_of_100_bounds_hold_of_programs_in_step_with_the_turns(bounds, groups, longer):
    """The period of the program is that of all groups' turns, or nearly, or a multiple of it."""
    period = longer * groups * 4
    shapes = [in_step(period, share * period) for share in (0.15, 0.34, 0.6)]
    assert held_in_step(bounds, shapes, groups, 40) >= 0.95
    # In the kernel's own order, each turn sees the same part of the program.
    assert longer != 1 or held_in_step(bounds, shapes, groups, 40, mixed=False) < 0.6


def test_bounds_hold_of_bursts_whose_distance_is_a_multiple_of_that_of_the_turns(bounds):
    """300 ms, which are 25 rounds of three groups; bursts of 3 ms and of a whole turn."""
    assert held_in_step(bounds, [in_step(300, 3, 3000, 0), in_step(300, 4, 3000, 0)], 3, 20) >= 0.95


def test_mixing_costs_no_counting_and_leaves_a_steady_program_as_well_known(bounds):
    rng, widths = random.Random(5), {}
    for mixed in (False, True):
        trials = [MixedTurns(2, rng, mixed) for _ in range(30)]
        for turns in trials:
            steady(0.1)(turns, rng)
        rows = bounds(*(turns.readings() for turns in trials), turn=TURN, pace=PACE)
        widths[mixed] = sum(high - low for low, high, _ in rows)
        assert sum(row[2] for turns in trials for row in turns.readings()) == pytest.approx(
            sum(row[1] for turns in trials for row in turns.readings()) / 2, rel=0.05)
    assert widths[True] < 1.25 * widths[False]


def test_what_no_reading_showed_may_have_been_a_burst_at_full_pace(bounds):
    """Three groups: phases of the program that all fall into absences of 8 ms take 11 ms in 19 of 20 cases.
    With bursts of 5 ms, for example, one has a chance of (8 - 5) / 12, so two are unseen in one of 16 cases."""
    readings, truth = next((readings, truth) for readings, truth in trials("a burst of 3 ms", 3, 100)
                           if not sum(value for value, _, _ in readings))
    (low, high, _), = bounds(readings, turn=TURN, pace=PACE)
    assert low == 0 < truth < high
    assert high == pytest.approx(11 * MS * PACE, rel=0.03)


def test_the_time_without_a_counter_is_that_between_two_turns_or_longer_if_it_was_seen_to_be(bounds):
    turns = Turns(3, random.Random(1))
    SHAPES["steady"](turns, random.Random(2))
    of_turns, = bounds(turns.readings(), turn=TURN, pace=PACE, absences=True)
    assert of_turns == pytest.approx(8 * MS, rel=0.1)
    readings = turns.readings()
    readings[10:14] = [(0, 8 * MS, 0)] * 4
    assert bounds(readings, turn=TURN, pace=PACE, absences=True)[0] >= 32 * MS


def test_no_time_without_a_counter_is_longer_than_all_of_it(bounds):
    """The event had its counter for a tenth of a turn, and then for 20 ms no more."""
    readings = [(0, 8 * MS, TURN // 10), (0, 8 * MS, 0), (0, 4 * MS, 0)]
    assert bounds(readings, turn=TURN, pace=PACE, absences=True) == [20 * MS - TURN // 10]


def test_the_longer_a_steady_program_runs_the_less_can_have_gone_unseen(bounds):
    """A tenth of the highest pace; three groups. The 11 ms that may have gone unseen are 4 % of 300 ms, and of
    3 s, 4 per mill; 2 % are for the kernel's switching."""
    for total, least, most in ((1200, 0.93, 1.4), (12000, 0.97, 1.07)):
        turns = Turns(3, random.Random(3))
        for _ in range(total):
            turns.step(STEP // 10)
        (low, high, _), = bounds(turns.readings(), turn=TURN, pace=PACE)
        assert least * turns.truth < low < turns.truth < high < most * turns.truth
