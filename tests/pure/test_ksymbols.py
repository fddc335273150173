# SPDX-License-Identifier: GPL-2.0-only
"""Whose an address was, of code that the kernel makes and unmakes. Notes of two CPUs may be read in the wrong order: the
older one is written behind the reader's back, while it looks at the other CPU's ring."""
import itertools
import subprocess

import pytest

from compiled import compiled

NOTES = ["new=first,1000,10", "gone=first,1000,20", "new=second,1100,30", "gone=second,1100,40", "new=third,1000,50"]
# At 1150 was the first for 10, the second for 10 and the third since then.
OWNERS = {(1050, 0): "third?", (1150, 51): "third", (1300, 0): "second"}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ksymbols")
    compiled(folder, "ksymbols")
    return lambda *words: subprocess.run([folder / "ksymbols", *words], text=True, stdout=subprocess.PIPE, check=True).stdout.split()


@pytest.mark.parametrize("swapped", [None, *range(len(NOTES) - 1)])
def test_two_notes_in_the_wrong_order_change_nothing(asked, swapped):
    notes = list(NOTES)
    if swapped is not None:
        notes[swapped:swapped + 2] = reversed(notes[swapped:swapped + 2])
    finds = [f"find={address},{since}" for address, since in OWNERS]
    assert asked(*notes, *finds) == list(OWNERS.values())


@pytest.mark.parametrize("missing", itertools.combinations(range(1, 4), 2))
def test_code_whose_notes_are_lost_ends_when_other_code_comes(asked, missing):
    notes = [note for i, note in enumerate(NOTES) if i not in missing]
    assert asked(*notes, "find=1050,45", "find=1050,51") == ["third", "third"]


def test_code_that_goes_and_was_not_seen_to_come_was_there_from_the_beginning(asked):
    assert asked("gone=early,1000,20", "new=late,1000,30", "find=1000,0", "find=1000,19", "find=1000,20") == ["late?", "late?", "late"]
    assert asked("gone=early,1000,20", "find=1000,0", "find=1000,20") == ["early", "-"]
