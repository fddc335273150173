# SPDX-License-Identifier: GPL-2.0-only
"""How long is waited for what a process has mapped, where one doesn't answer and where it answers again."""
import pytest
from compiled import compiled

SLICES = 5  # of 50 ms: the late answer comes in the last one


@pytest.fixture(scope="module", name="steps")
def fixture_steps(tmp_path_factory):
    program = compiled(tmp_path_factory.mktemp("patience"), "patience")
    return {line.rsplit(None, 2)[0]: line.split()[-2:] for line in program("").splitlines()}


def test_a_process_that_answers_is_found(steps):
    assert steps["answers"][0] == "found"


def test_the_first_that_does_not_answer_is_waited_for_longer_than_the_next(steps):
    (stuck, longer), (stuck_too, shorter) = steps["stuck"], steps["stuck too"]
    assert stuck == stuck_too == "unknown"
    assert int(shorter) < SLICES < int(longer)
    assert steps["another"][0] == "found"  # by another helper


def test_a_late_answer_is_waited_for_again_once_no_other_is_missing(steps):
    found, waits = steps["late"]
    assert found == "found" and int(waits) >= SLICES
