# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of analyze, on counts that are made up: what no emulated machine shows, such as overlap and causes
without an event, is known here by construction."""
import random

import pytest

from compiled import compiled

CAUSES = {"near": ("memory", 6, 6, 8), "middle": ("memory", 30, 36, 40), "far": ("memory", 140, 180, 220),
          "walks": ("memory", 14, 15, 40), "branches": ("paths", 6, 15, 17), "divisions": ("core", 0, 1, 1)}


@pytest.fixture(scope="module")
def accounts(tmp_path_factory):
    """A function that returns the accounts of trees: for each {share: (share, low, high, serial)} and the verdict."""
    program = compiled(tmp_path_factory.mktemp("accounts"), "accounts")

    def run(trees):
        said = program("".join("".join(line + "\n" for line in tree) + "\n" for tree in trees))
        made = []
        for block in said.strip().split("\n\n"):
            *shares, verdict = block.split("\n")
            rows = [line.split() for line in shares]
            made.append(({name: tuple(map(float, values)) if there == "1" else None
                          for name, there, *values in rows}, verdict.split()[1:]))
        assert len(made) == len(trees)
        return made
    return run


def tree(stalled, counts, withdrawn=(), unmodelled=(), causes=CAUSES):
    """The lines of a tree: `stalled` of all cycles, and this number of occurrences of each cause in a cycle."""
    def line(name, parent, formula=1, estimated=0, explained=0, cost=(1, 1, 1), there=1, none=0, value=0.0):
        return " ".join(map(str, (name, parent, formula, estimated, explained, *cost, there, none, value, value, value)))
    lines = [line("cycles", "-", value=1.0), line("retiring", "cycles", value=1 - stalled),
             line("stalled", "cycles", explained=1, value=stalled)]
    lines += [line(name, "stalled", formula=0) for name in sorted({parent for parent, *_ in causes.values()})]
    return lines + [line(name, parent, estimated=1, cost=cost, there=int(name not in {*withdrawn, *unmodelled}),
                         none=int(name in unmodelled), value=counts.get(name, 0.0))
                    for name, (parent, *cost) in causes.items()]


def one(accounts, *arguments, **options):
    return accounts([tree(*arguments, **options)])[0]


def test_a_cause_that_explains_all_stalls_is_the_verdict(accounts):
    shares, verdict = one(accounts, 0.9, {"far": 0.005})
    share, low, high, serial = shares["far"]
    assert (share, serial) == (0.9, 0.9) and low == pytest.approx(0.7) and high == 0.9
    assert shares["memory"] == pytest.approx((0.9, 0.7, 0.9, 0.9))
    assert verdict == ["far"]


def test_divisions_may_be_hidden_altogether_but_are_named(accounts):
    """The divider is busy for half of the cycles, which nothing else explains: so it may be the cause, or not."""
    shares, verdict = one(accounts, 0.5, {"divisions": 0.5})
    assert shares["divisions"] == (0.5, 0.0, 0.5, 0.5)
    assert {"divisions", "retiring", "unexplained"} <= set(verdict)


def test_what_is_less_than_another_at_least_is_not_the_largest(accounts):
    """Divisions may be hidden altogether, so all others may be more than they are at least. But retiring takes two fifths
    for certain, and what waits for memory less."""
    shares, verdict = one(accounts, 0.6, {"divisions": 0.45, "far": 0.0005})
    assert shares["retiring"][1] == pytest.approx(0.4) and shares["far"][2] < 0.2
    assert verdict[0] == "divisions" and {"retiring", "unexplained"} <= set(verdict) and "far" not in verdict


def test_what_is_less_than_the_rest_has_to_share_is_not_the_largest(accounts):
    """If divisions are hidden altogether, something without an event takes what stalls. Retiring takes a fifth, and is less
    than either."""
    shares, verdict = one(accounts, 0.8, {"divisions": 0.6})
    assert shares["divisions"][1] < shares["retiring"][2] < shares["divisions"][2]
    assert verdict == ["divisions", "unexplained"]


def test_where_nothing_retires_one_cause_may_be_all(accounts):
    shares, verdict = one(accounts, 1.0, {"far": 0.005})
    assert shares["far"][1:3] == pytest.approx((0.7, 1)) and verdict == ["far"]


def test_overlap_is_told_as_negative_and_takes_nothing_from_the_only_cause(accounts):
    shares, verdict = one(accounts, 0.6, {"far": 0.015})
    share, low, high, serial = shares["far"]
    assert (share, low, high) == pytest.approx((0.6, 0.6, 0.6)) and serial == pytest.approx(2.7)
    assert shares["unexplained"][0] == pytest.approx(0.6 - 2.7) and verdict == ["far"]


def test_two_causes_that_overlap_are_both_named(accounts):
    shares, verdict = one(accounts, 0.6, {"far": 0.003, "middle": 0.015})
    assert set(verdict) >= {"far", "middle"}
    assert shares["far"][1] == pytest.approx(0) and shares["middle"][1] == pytest.approx(0)


def test_stalls_without_a_counted_cause_are_unexplained(accounts):
    shares, verdict = one(accounts, 0.8, {"near": 0.01})
    assert shares["unexplained"][0] == pytest.approx(0.74) and verdict[0] == "unexplained"
    # Causes without an event take 0.72 at least, so they may have taken the rest as well.
    assert shares["near"][1] == 0


def test_what_is_withdrawn_may_be_all_that_stalls(accounts):
    shares, verdict = one(accounts, 0.9, {"far": 0.005}, withdrawn=["branches"])
    assert shares["branches"] is None and shares["paths"] is None
    assert shares["far"][1] == 0 and shares["far"][2] == 0.9
    assert verdict[0] == "far" and "branches" in verdict


def test_what_the_machine_does_not_model_takes_nothing(accounts):
    shares, verdict = one(accounts, 0.9, {"far": 0.005}, unmodelled=["branches", "divisions"])
    assert shares["branches"] is None and shares["far"][1] == pytest.approx(0.7) and verdict == ["far"]


def test_a_bound_below_nothing_is_as_far_below_as_the_highest_cost_takes_it(accounts):
    """A number of occurrences that is a difference of two estimates may be below 0 within its bounds."""
    lines = [line if not line.startswith("far") else line.removesuffix("0.0 0.0 0.0") + "0.0 -0.001 0.001"
             for line in tree(0.9, {})]
    shares, _ = accounts([lines])[0]
    assert shares["far"][1:3] == pytest.approx((-0.22, 0.22))


def test_without_the_stalls_nothing_is_accounted_for(accounts):
    lines = [line if not line.startswith("stalled") else line.replace(" 1 1 1 1 0 ", " 1 1 1 0 0 ")
             for line in tree(0.9, {"far": 0.005})]
    shares, verdict = accounts([lines])[0]
    assert [shares[name] for name in ("stalled", "memory", "far", "unexplained")] == [None] * 4
    assert verdict[0] == "retiring" and {"far", "branches"} < set(verdict)


def test_bounds_below_nothing_leave_nothing_to_take(accounts):
    lines = [line if not line.startswith("far") else line.removesuffix("0.0 0.0 0.0") + "0.0 -0.002 -0.001"
             for line in tree(0.9, {})]
    shares, _ = accounts([lines])[0]
    assert shares["far"][1:3] == pytest.approx((-0.44, 0))


def test_a_cost_that_was_measured_takes_the_place_of_the_known_one(accounts):
    """0.001 occurrences a cycle of 200 to 220 cycles each, usually 210."""
    lines = [line + " 0 200 210 220" * line.startswith("far") for line in tree(0.21, {"far": 0.001})]
    shares, verdict = accounts([lines])[0]
    share, low, high, serial = shares["far"]
    assert (share, serial) == pytest.approx((0.21, 0.21)) and low == pytest.approx(0.2) and high == pytest.approx(0.21)


def test_what_lies_beside_the_others_changes_nothing(accounts):
    lines = tree(0.6, {"far": 0.003})
    beside = "aside stalled 1 1 0 1 1 1 1 0 0.5 0.5 0.5 1 0 0 0"
    (alone, verdict), (shares, same) = accounts([lines, [*lines, beside]])
    assert shares.pop("aside")[0] == 0.5 and (shares, same) == (alone, verdict)


def test_without_a_share_to_explain_the_largest_is_the_verdict(accounts):
    shares, verdict = accounts([["cycles - 1 0 0 1 1 1 1 0 1 1 1", "busy cycles 1 0 0 1 1 1 1 0 0.7 0.7 0.7",
                                 "idle cycles 1 0 0 1 1 1 1 0 0.3 0.3 0.3", "sum orphans 0 0 0 1 1 1 0 0 0 0 0"]])[0]
    assert "unexplained" not in shares and verdict[0] == "busy" and "idle" not in verdict


def test_what_is_outside_of_what_is_explained_may_be_all_if_it_is_not_there(accounts):
    """`other` has no event, so it takes nothing; but it is no estimate, and may be more than all stalls together."""
    other = "other cycles 1 0 0 1 1 1 0 1 0 0 0"
    _, verdict = accounts([[*tree(0.9, {"far": 0.005}), other, "sum cycles 0 0 0 1 1 1 0 0 0 0 0"]])[0]
    assert verdict[0] == "far" and "other" in verdict


def test_of_nothing_there_is_no_verdict(accounts):
    shares, verdict = accounts([["cycles - 1 0 0 1 1 1 0 0 0 0 0"]])[0]
    assert shares == {"cycles": None} and verdict == []
    assert accounts([[]])[0] == ({}, [])


def random_costs(chance):
    return {name: chance.uniform(low, high) for name, (_, low, _, high) in CAUSES.items()}


def check(shares, true, verdict, stalled):
    for name, value in true.items():
        share, low, high, _ = shares[name]
        assert low - 1e-9 <= value <= high + 1e-9, (name, value, shares)
        assert low <= share <= high
    for parent in {parent for parent, *_ in CAUSES.values()}:
        value = sum(true[name] for name, (of, *_) in CAUSES.items() if of == parent)
        assert shares[parent][1] - 1e-9 <= value <= shares[parent][2] + 1e-9, (parent, value, shares)
    largest = max([*true.items(), ("retiring", 1 - stalled)], key=lambda item: item[1])[0]
    assert largest in verdict, (largest, verdict, shares)


def test_the_true_share_is_within_the_bounds_if_nothing_overlaps(accounts):
    """Any costs within their ranges, and any part of the stalls without an event."""
    chance, cases = random.Random(40), []
    for _ in range(2000):
        weights = [chance.random() ** 4 for _ in range(len(CAUSES) + 2)]
        parts = [weight / sum(weights) for weight in weights]
        true, costs = dict(zip(CAUSES, parts)), random_costs(chance)
        counts = {name: value / costs[name] for name, value in true.items() if costs[name]}
        cases.append((true, 1 - parts[-1], counts, parts[-2]))
    made = accounts([tree(stalled, counts) for _, stalled, counts, _ in cases])
    for (true, stalled, _, rest), (shares, verdict) in zip(cases, made):
        for name, value in true.items():
            assert shares[name][1] - 1e-9 <= value <= shares[name][2] + 1e-9, (name, value, shares)
        largest = max([*true.items(), ("retiring", 1 - stalled), ("unexplained", rest)], key=lambda item: item[1])[0]
        assert largest in verdict, (largest, verdict, shares)


def test_the_true_share_is_within_the_bounds_if_all_causes_are_counted(accounts):
    """Any overlap: each cause takes what its count says, or less, because it was hidden by others or by work."""
    chance, cases = random.Random(41), []
    for _ in range(2000):
        weights = [chance.random() ** 4 for _ in range(len(CAUSES) + 1)]
        parts = [weight / sum(weights) for weight in weights]
        true, costs = dict(zip(CAUSES, parts)), random_costs(chance)
        hidden = {name: chance.choice((1, chance.uniform(1, 5))) for name in CAUSES}
        counts = {name: hidden[name] * value / costs[name] for name, value in true.items() if costs[name]}
        cases.append((true, 1 - parts[-1], counts))
    made = accounts([tree(stalled, counts) for _, stalled, counts in cases])
    for (true, stalled, _), (shares, verdict) in zip(cases, made):
        check(shares, true, verdict, stalled)
