# SPDX-License-Identifier: GPL-2.0-only
"""The controller that keeps a session to its share of a CPU, run on simulated sessions: a tick is
100 ms, and the cost of samples is proportional to their rate."""
from collections import namedtuple

import pytest
from compiled import compiled
from hypothesis import given, settings
from hypothesis import strategies as st

TICK = 100_000_000
ALLOWED = 0.01
MOST = 65536

Tick = namedtuple("Tick", "own samples factor because exceeded")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("share"), "share")


@pytest.fixture(scope="module")
def session(program):
    """Runs the controller. Each tick has the CPU time of nhmtap itself and that of samples at the
    requested rate, as shares of a CPU."""
    def run(ticks, allowed=ALLOWED, window_ms=1000, most=MOST):
        lines = [f"share {allowed} {window_ms} {most}"]
        lines += [f"{TICK} {round(own * TICK)} {round(samples * TICK)}" for own, samples in ticks]
        found = [line.split() for line in program("\n".join(lines) + "\n").splitlines()]
        return [Tick(own, int(taken) / TICK, float(factor), because, exceeded == "1")
                for (own, _), (taken, factor, because, exceeded) in zip(ticks, found)]
    return run


def changes(ticks):
    return [(a.factor, b.factor) for a, b in zip(ticks, ticks[1:]) if a.factor != b.factor]


def used(ticks):
    return sum(t.own + t.samples for t in ticks) / len(ticks)


def test_what_is_cheap_enough_stays_as_it_was_asked_for(session):
    ticks = session([(0.003, 0.006)] * 50)
    assert {(t.factor, t.because, t.exceeded) for t in ticks} == {(1, "asked", False)}


def test_what_is_too_dear_fits_after_a_tick_and_stays(session):
    ticks = session([(0.001, 0.2)] * 100)
    assert ticks[0].factor > 1 and ticks[0].because == "too_dear"
    assert all(t.own + t.samples <= ALLOWED for t in ticks[1:])
    assert not changes(ticks[2:]), "a steady load needs one decision"
    # Samples are not rarer than necessary.
    assert ticks[-1].own + ticks[-1].samples >= 0.7 * ALLOWED


def test_when_there_is_room_the_period_goes_back_by_steps_to_what_was_asked(session):
    ticks = session([(0.001, 0.2)] * 20 + [(0.001, 0.004)] * 100)
    steps = changes(ticks[1:])
    assert all(after < before <= 2.001 * after for before, after in steps)
    assert {t.because for t in ticks[-5:]} == {"asked"} and ticks[-1].factor == 1
    assert "room" in {t.because for t in ticks}
    assert all(t.own + t.samples <= ALLOWED for t in ticks[1:])


def test_a_little_more_and_less_around_the_goal_changes_nothing(session):
    settled = [(0.001, 0.2)] * 20
    ticks = session(settled + [(0.001, 0.2 * factor) for factor in (1.1, 0.9, 1.05, 0.95, 1.0) * 10])
    assert not changes(ticks[20:])


def test_the_burst_of_an_interval_s_records_is_a_mean_over_the_interval(session):
    """10 ms in every 2 s is half of what is allowed."""
    ticks = session([(0.1 if i % 20 == 19 else 0, 0.002) for i in range(200)], window_ms=2000)
    assert {t.factor for t in ticks} == {1}


def test_the_beginning_is_not_taken_for_what_comes_always(session):
    """8 ms at once, in a window of a second."""
    assert {t.factor for t in session([(0.08, 0)] + [(0.0005, 0.001)] * 30)} == {1}


def test_where_fewer_samples_help_nhmtap_itself_there_are_fewer(session):
    """Its own cost is proportional to the number of entries, which is that of samples here."""
    own, factors = 0.04, [1.0]
    for _ in range(80):
        ticks = session([(own / factor, 0.0005) for factor in factors])
        factors.append(ticks[-1].factor)
    assert factors[-1] >= 4 and own / factors[-1] <= ALLOWED
    assert not any(t.exceeded for t in ticks[-10:])


def test_where_fewer_samples_do_not_help_they_are_left_and_that_is_told(session):
    ticks = session([(0.02, 0.0005)] * 100)
    assert ticks[-1].factor == 2, "it was tried once"
    assert ticks[-1].exceeded and not any(t.exceeded for t in ticks[:9])


def test_without_samples_nothing_is_changed_and_the_excess_is_told(session):
    ticks = session([(0.02, 0)] * 30, most=1)
    assert {t.factor for t in ticks} == {1} and ticks[-1].exceeded


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 0.006), st.floats(0, 1)), min_size=1, max_size=60),
       st.floats(0, 0.006), st.floats(0, 20))
def test_whatever_came_before_a_steady_load_is_kept_to_the_share(session, before, own, samples):
    ticks = session(before + [(own, samples)] * 60)
    assert all(1 <= t.factor <= MOST for t in ticks)
    # After a second, the windows no longer include what came before.
    assert used(ticks[-40:]) <= ALLOWED * 1.000001


@pytest.mark.parametrize("text, share", [
    ("1%", 0.01), ("0.5%", 0.005), (".5%", 0.005), ("100%", 1), ("250%", 2.5), ("0.01%", 0.0001), ("1000%", 10),
    ("", 0), ("%", 0), ("1", 0), ("0%", 0), ("0.001%", 0), ("1001%", 0), ("1 %", 0), ("-1%", 0), ("1e3%", 0),
    ("nan%", 0), ("0x1%", 0), ("1%%", 0), ("1.2.3%", 0), ("9" * 150 + "%", 0),
])
def test_a_share_is_a_number_of_percent(program, text, share):
    assert float(program(f"text {text}\n")) == pytest.approx(share)
