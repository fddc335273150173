# SPDX-License-Identifier: GPL-2.0-only
"""Groups of events that have the counters alone from time to time: user/collection/solo.h."""
import itertools
import subprocess

import pytest

from compiled import compiled


@pytest.fixture(scope="module")
def solo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("solo")
    compiled(folder, "solo")

    def run(groups, turns):
        done = subprocess.run([folder / "solo", str(groups), str(turns)], stdout=subprocess.PIPE, text=True, check=True)
        alone, _, missed = done.stdout.partition("\n")
        return [int(group) for group in alone.split()], [int(ns) for ns in missed.split()]
    return run


@pytest.mark.parametrize("groups", [2, 3, 4, 5, 9])
def test_before_a_group_comes_again_each_of_the_others_does(solo, groups):
    alone = [group for group in solo(groups, 60 * groups)[0] if group >= 0]
    rounds = [sorted(alone[i:i + groups]) for i in range(0, len(alone) - groups, groups)]
    assert len(rounds) > 10 and all(each == list(range(groups)) for each in rounds)


@pytest.mark.parametrize("groups, most", [(2, 1), (3, 1), (4, 2), (9, 4)])
def test_after_half_of_the_groups_all_take_turns_again(solo, groups, most):
    rows = [len(list(row)) for shared, row in itertools.groupby(solo(groups, 200)[0], lambda group: group < 0)
            if not shared]
    assert set(rows[:-1]) == {most}


def test_what_has_no_other_to_share_with_is_never_alone(solo):
    assert solo(1, 20) == ([-1] * 20, [])


def test_time_that_the_others_have_missed_is_added_once(solo):
    assert solo(2, 5)[1] == [2, 2, 0]
