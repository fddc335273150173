# SPDX-License-Identifier: GPL-2.0-only
"""The records of documents that were cut into parts: user/output/documents.h. A document has 3 records."""
import pytest
from compiled import compiled


@pytest.fixture(scope="module", name="after")
def fixture_after(tmp_path_factory):
    run = compiled(tmp_path_factory.mktemp("parts"), "parts")
    return lambda *steps: tuple(map(int, run("".join(f"{step}\n" for step in steps)).split()))


def test_a_document_is_taken_with_its_last_part(after):
    assert after("add 0 0", "split", "take") == (3, 0)
    assert after("add 0 0", "split", "take", "take") == (0, 0)
    assert after("add 0 0", "split", "split", "take", "take") == (3, 0)


@pytest.mark.parametrize("steps", [
    ["add 0 0", "split", "add 150 1", "take"],  # the first part is being sent, the other one gives way
    ["add 0 0", "split", "split", "add 130 1", "take"],
    ["add 0 0", "split", "take", "add 120 0"],  # the first part was taken before
    ["add 0 0", "split", "add 100 0"],
])
def test_a_document_of_which_a_part_gives_way_to_another_is_dropped_and_counted(after, steps):
    assert after(*steps) == (3, 3)


def test_what_gives_way_behind_a_part_is_counted_once(after):
    assert after("add 0 0", "split", "add 0 1", "add 150 1", "take", "take") == (0, 6)
