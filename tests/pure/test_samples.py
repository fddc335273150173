# SPDX-License-Identifier: GPL-2.0-only
"""The account of an event's samples. The readings are those of an event that was opened with a period: what
must come out is counted by hand, and stands in user/record/samples.h."""
import json

import pytest

from compiled import compiled


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("samples"), "samples")


@pytest.fixture
def accounts(run):
    """Returns the accounts of consecutive readings of one event."""
    return lambda *readings: [json.loads(line) for line in run("".join(
        " ".join(f"{name}={int(value)}" for name, value in reading.items()) + "\n" for reading in readings)).splitlines()]


@pytest.fixture
def account(accounts):
    return lambda **reading: accounts(reading)[0]


PERIOD = {"sample_period": 1000}


# 95 periods have ended. Each sample that came has run the program.
@pytest.mark.parametrize("runs, contexts, missed", [
    (95, 0, 0), (94, 0, 1), (90, 0, 5), (0, 0, 95),
    # So many periods may have begun in further counters, each without a sample: only what lacks beyond them is missed.
    (94, 1, 0), (94, 2, 0), (90, 2, 3), (90, 5, 0), (90, 6, 0), (0, 94, 1), (0, 95, 0), (0, 96, 0),
    # More came than the count tells: a counter of a child was read before its last sample.
    (96, 0, 0), (96, 3, 0),
])
def test_what_lacks_beyond_the_uncertainty_is_missed(account, runs, contexts, missed):
    samples = account(**PERIOD, count=95999, runs=runs, aggregated=runs, contexts=contexts)["all"]
    assert samples == {"expected": runs + missed, "uncertainty": contexts, "aggregated": runs,
                       "lost": {"table_full": 0, "handler_skipped": missed}}


def test_what_was_expected_is_what_is_there_and_what_was_lost(account):
    samples = account(**PERIOD, count=100_000, runs=97, aggregated=90, table_full=4, stack_failed=2, filtered=1)["all"]
    assert samples == {"expected": 90 + 4 + 2 + 3, "uncertainty": 0, "aggregated": 90, "filtered": 1,
                       "lost": {"table_full": 4, "handler_skipped": 3}}


def test_what_was_missed_once_stays_missed_and_is_new_once(accounts):
    """The second reading has fewer lacking samples, for more periods may have begun without one; the third more."""
    first, second, third = accounts(
        {**PERIOD, "count": 10_000, "runs": 6, "aggregated": 6}, {"count": 20_000, "runs": 17, "aggregated": 17, "contexts": 2},
        {"count": 30_000, "runs": 21, "aggregated": 21})
    assert [one["all"]["lost"]["handler_skipped"] for one in (first, second, third)] == [4, 4, 7]
    assert [one["new"]["lost"]["handler_skipped"] for one in (first, second, third)] == [4, 0, 3]
    assert [one["new"]["aggregated"] for one in (first, second, third)] == [6, 11, 4]
    assert [one["new"]["expected"] for one in (first, second, third)] == [10, 11, 7]
    assert [one["all"]["expected"] for one in (first, second, third)] == [10, 21, 28]


def test_each_number_of_an_interval_is_the_difference_of_two_accounts(accounts):
    known = {"count": 10_000, "runs": 9, "aggregated": 4, "table_full": 2, "stack_failed": 1, "filtered": 2, "throttled": 5, "contexts": 1}
    more = {"count": 40_000, "runs": 37, "aggregated": 20, "table_full": 7, "stack_failed": 4, "filtered": 6, "throttled": 8, "contexts": 2}
    _, then = accounts({**PERIOD, **known}, more)
    missed = 40 - 37 - 2
    assert then["new"] == {"expected": 16 + 5 + 3 + missed, "uncertainty": 2, "aggregated": 16, "filtered": 4, "throttled": 3,
                           "lost": {"table_full": 5, "handler_skipped": missed}}


def test_a_changed_period_counts_from_its_change(account):
    """30,000 occurrences gave 30 samples; of 10,000 more at a period of 2,500, four."""
    changed = {"sample_period": 2500, "count": 40_000, "count_before": 30_000, "samples_before": 30}
    assert account(**changed, runs=34, aggregated=34)["all"]["expected"] == 34
    assert account(**changed, runs=33, aggregated=33)["all"]["lost"] == {"table_full": 0, "handler_skipped": 1}


def test_a_period_that_varied_is_the_mean_of_what_the_samples_stand_for(account):
    """Ten samples stand for 5,000 of 8,000 occurrences: six samples lack."""
    varied = {"count": 8000, "runs": 10, "period": 5000, "aggregated": 10}
    assert account(**varied)["all"]["lost"]["handler_skipped"] == 6
    # Three occurrences of each were not counted: ten samples stand for 4,970 that were.
    assert account(**varied | {"beyond": 3, "count": 4970})["all"]["lost"]["handler_skipped"] == 0
    assert account(**varied | {"beyond": 3, "count": 9940})["all"]["lost"]["handler_skipped"] == 10


@pytest.mark.parametrize("period, unsampled", [(0, 8000), (5000, 3000), (7999, 1), (8000, None), (8001, None)])
def test_samples_that_stand_for_all_that_was_counted_leave_what_came_after_the_last_ones(account, period, unsampled):
    """Nothing is known to be missed: the next sample would stand for it. The count is read before the last sample."""
    runs = 10 if period else 0
    samples = account(count=8000, runs=runs, period=period, aggregated=runs, contexts=2, by_count=True)["all"]
    assert (samples["expected"], samples["uncertainty"], samples["lost"]["handler_skipped"]) == (runs, 2, 0)
    assert samples.get("unsampled") == unsampled


def test_of_an_interval_it_is_told_how_much_no_sample_stood_for_when_it_began(accounts):
    known = {"runs": 3, "aggregated": 3, "by_count": True}
    first, second, third = accounts({**known, "count": 8000, "period": 5000}, {"count": 9000, "period": 8500}, {"count": 9500, "period": 9500})
    assert [one["all"].get("unsampled_before") for one in (first, second, third)] == [None] * 3
    assert [(one["new"].get("unsampled"), one["new"].get("unsampled_before")) for one in (first, second, third)] == [
        (3000, None), (500, 3000), (None, 500)]


def test_without_a_sample_of_a_varying_period_nothing_is_known_to_be_missed(account):
    assert account(count=8000)["all"] == {"expected": 0, "uncertainty": 0, "aggregated": 0,
                                          "lost": {"table_full": 0, "handler_skipped": 0}}


@pytest.mark.parametrize("told, cause", [
    ({"clock": True}, "timer_missed"), ({"clock": True, "one_side": True}, "excluded"),
    ({}, "handler_skipped"), ({"one_side": True}, "handler_skipped"), ({"collides": True}, "handler_skipped"),
    ({"precise": True}, "pebs_drained"), ({"precise": True, "collides": True}, "pebs_collision"),
    ({"precise": True, "clock": True}, "timer_missed"),
    # From Sandy Bridge on, the kernel accepts every event as precise, but an event that the hardware
    # does not record gives no samples.
    ({"precise": True, "runs": 0}, "pebs_unrecorded"), ({"precise": True, "runs": 0, "collides": True}, "pebs_collision"),
    # The first period was not finished, so nothing is missing.
    ({"precise": True, "runs": 0, "count": 999}, "pebs_drained"), ({"precise": True, "runs": 0, "count": 1000}, "pebs_drained"),
    ({"precise": True, "runs": 0, "count": 2000}, "pebs_unrecorded"),
    ({"runs": 0}, "handler_skipped"),
])
def test_the_cause_is_the_first_that_applies(account, told, cause):
    shown = account(**{**PERIOD, "count": 95000, "runs": 1, "contexts": 1} | told)
    assert shown["cause"] == cause and cause in shown["all"]["lost"]


@pytest.mark.parametrize("told, uncounted", [
    ({}, 3 * 90), ({"beyond": 0}, 0),
    # What was missed took no record, so what is beyond its period is not known, unless the kernel drained it with others.
    ({"precise": True}, 3 * 95), ({"precise": True, "collides": True}, 3 * 90),
])
def test_what_the_counter_lacks_is_beyond_the_period_of_each_sample(account, told, uncounted):
    assert account(**{**PERIOD, "count": 95_000, "runs": 90, "aggregated": 90, "beyond": 3} | told)["uncounted"] == uncounted


@pytest.mark.parametrize("told, paused, at_least", [
    ({}, False, None), ({"stops": True}, False, None), ({"throttled": 2}, False, None), ({"stops": True, "throttled": 2}, True, True),
    ({"at_least": True}, False, True),
])
def test_a_value_is_the_least_there_was_if_the_kernel_stopped_the_counter(account, told, paused, at_least):
    shown = account(**PERIOD, count=1000, runs=1, aggregated=1, **told)
    assert (shown["paused"], shown["all"].get("at_least"), shown["all"].get("throttled")) == (paused, at_least, told.get("throttled"))
