# SPDX-License-Identifier: GPL-2.0-only
"""Why an event without samples has none, if they were lost: each cause of a loss has its own sentence. What can be
made to happen in a run is in live/test_no_samples.py."""
import subprocess

import pytest

from compiled import compiled


@pytest.fixture(scope="module")
def why(tmp_path_factory):
    folder = tmp_path_factory.mktemp("silence")
    compiled(folder, "silence")
    return lambda *account: subprocess.run([folder / "silence", *map(str, account)], text=True, stdout=subprocess.PIPE,
                                           check=True).stdout.strip()


@pytest.mark.parametrize("cause, table_full, stack_failed, missed, throttled, words", [
    ("handler_skipped", 5, 0, 0, 0, "all were lost: a table was full"),
    ("handler_skipped", 0, 5, 0, 0, "the kernel returned no stack"),
    ("handler_skipped", 0, 0, 5, 0, "the CPU was in another BPF program"),
    ("timer_missed", 0, 0, 5, 0, "its ticks came late"),
    ("pebs_unrecorded", 0, 0, 5, 0, "the CPU wrote no record of it"),
    ("pebs_drained", 0, 0, 5, 0, "none of the CPU's records"),
    ("pebs_collision", 0, 0, 5, 0, "none of the CPU's records"),
    ("handler_skipped", 0, 0, 0, 3, "the kernel paused it"),
    ("handler_skipped", 0, 0, 0, 0, "it occurred 5000 times, but on no CPU or thread the 1000 times"),
])
def test_samples_that_were_all_lost_say_to_what(why, cause, table_full, stack_failed, missed, throttled, words):
    assert words in why(cause, table_full, stack_failed, missed, throttled, 0, 0, 0)


@pytest.mark.parametrize("cause", ["handler_skipped", "pebs_unrecorded", "pebs_drained", "pebs_collision"])
def test_a_thread_may_have_been_switched_too_often_for_any_sample(why, cause):
    """What is left of a period is raised at each switch, of counters of the hardware, and not of those of a CPU."""
    words = "less than 32 times from one switch of its thread to the next"
    assert words in why(cause, 0, 0, 5, 0, 0, 1, 0)
    assert words not in why(cause, 0, 0, 5, 0, 0, 0, 0) and words not in why(cause, 0, 0, 5, 0, 0, 1, 1)


def test_samples_that_came_and_did_not_meet_the_condition_were_not_lost(why):
    assert why("handler_skipped", 0, 0, 5, 0, 100, 0, 0) == "none of its samples met the condition (--where)"
