# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts of doctor --selftest: a measurement that is not what the program's code says has failed. The numbers of
user/selftest/known.S are counted by hand: 100,000 turns, 1,950,009 instructions."""
import json

import pytest

from compiled import compiled

INSTRUCTIONS = 6 + 19 * 100_000 + 100_000 // 2 + 3
TURNS = "its events took turns, because there are not enough free counters for all of them"


@pytest.fixture(scope="module")
def verdict(tmp_path_factory):
    run = compiled(tmp_path_factory.mktemp("judges"), "judges")
    return lambda judge, *records, **asked: run(json.dumps({"judge": judge, "records": records, **asked}) + "\n").strip()


def count(event, value, status="counted"):
    return {"type": "count", "event": event, "value": value, "status": status}


@pytest.mark.parametrize("value, status, said", [
    (1000, "counted", "right"), (1010, "counted", "right"), (999, "counted", "wrong"), (1011, "counted", "wrong"),
    (1000, "not_counted", "wrong"), (1005, "multiplexed", "wrong: " + TURNS)])
def test_a_count_has_to_be_within_its_bounds_and_whole(verdict, value, status, said):
    assert verdict("counts", count("other:u", 5), count("loads:u", value, status), events=[["loads", 1000, 1010]]) == said


def test_each_event_has_to_be_right(verdict):
    events = [["loads", 10, 11], ["stores", 20, 21]]
    assert verdict("counts", count("loads", 10), count("stores", 21), events=events) == "right"
    assert verdict("counts", count("loads", 9), count("stores", 20), events=events) == "wrong"
    assert verdict("counts", count("loads", 10), count("stores", 22), events=events) == "wrong"
    assert verdict("counts", count("loads", 10), events=events) == "wrong"


@pytest.mark.parametrize("cycles, retiring, said", [
    (INSTRUCTIONS, INSTRUCTIONS // 2, "right"), (16 * INSTRUCTIONS, INSTRUCTIONS // 16, "right"),
    (16 * INSTRUCTIONS + 1, INSTRUCTIONS, "wrong"), (INSTRUCTIONS, INSTRUCTIONS // 16 - 1, "wrong"),
    (2 * INSTRUCTIONS, INSTRUCTIONS + INSTRUCTIONS // 1000, "wrong"), (INSTRUCTIONS // 2, INSTRUCTIONS, "wrong")])
def test_cycles_in_which_instructions_retire_are_some_of_all(verdict, cycles, retiring, said):
    assert verdict("masks", count("a", cycles), count("b", retiring), events=[["a", 0, 0], ["b", 0, 0]]) == said


@pytest.mark.parametrize("idle, begun, said", [(1000, 1000, "right"), (1000, 0, "wrong"), (1000, 1000 + INSTRUCTIONS // 10_000, "right"),
                                               (1000, 1001 + INSTRUCTIONS // 10_000, "wrong")])
def test_between_two_runs_is_a_cycle(verdict, idle, begun, said):
    assert verdict("beginnings", count("a", idle), count("b", begun), events=[["a", 0, 0], ["b", 0, 0]]) == said


@pytest.mark.parametrize("cycles, idle, back_end, said", [
    (100, 50, 25, "right"), (100, 100, 100, "right"), (100, 49, 49, "wrong"), (100, 50, 24, "wrong"), (100, 101, 90, "wrong"),
    (100, 90, 101, "wrong")])
def test_a_chain_of_loads_stalls(verdict, cycles, idle, back_end, said):
    events = [["a", 0, 0], ["b", 0, 0], ["c", 0, 0]]
    assert verdict("stalls", count("a", cycles), count("b", idle), count("c", back_end), events=events) == said


def profile(*entries):
    return {"type": "profile", "entries": [{"ip": ip, "samples": samples} for ip, samples in entries]}


# 1,950,009 instructions at a period of 9,973: 195 samples.
@pytest.mark.parametrize("samples, said", [(195, "right"), (192, "right"), (198, "right"), (191, "wrong"), (199, "wrong"), (0, "wrong")])
def test_a_period_gives_so_many_samples(verdict, samples, said):
    assert verdict("period", profile(("0x10", samples)), profile()) == said


@pytest.mark.parametrize("here, elsewhere, said", [(99, 1, "right"), (98, 2, "wrong"), (50, 0, "right"), (49, 0, "wrong"), (0, 100, "wrong")])
def test_samples_lie_where_the_code_has_it(verdict, here, elsewhere, said):
    assert verdict("places", profile(("0x10", here)), profile(("0x14", elsewhere)), place="0x10") == said


def cells(*values, status="counted"):
    return {"type": "offcore", "cells": [{"response": name, "value": value, "status": status} for name, value in values]}


@pytest.mark.parametrize("values, elsewhere, said", [
    ((1000, 0, 1000), False, "right"), ((500, 100, 620), False, "right"), ((499, 0, 499), False, "wrong"), ((2000, 0, 2000), False, "wrong"),
    ((1000, 250, 1250), False, "wrong"), ((1000, 249, 1250), False, "right"), ((1000, 0, 899), False, "wrong"), ((1000, 0, 900), False, "right"),
    ((500, 500, 1000), True, "right")])
def test_most_requests_have_the_response_that_the_code_asks_for(verdict, values, elsewhere, said):
    named = list(zip(("first", "other", "all"), values))
    assert verdict("responses", {"type": "start"}, cells(*named), requests=1000, elsewhere=elsewhere) == said
    assert verdict("responses", cells(*named, status="multiplexed"), requests=1000, elsewhere=elsewhere) == "wrong"


def test_without_a_counter_for_itself_nothing_is_said(verdict):
    assert verdict("counts", count("loads", 10, "multiplexed"), events=[["loads", 10, 11]]) == "wrong: " + TURNS
