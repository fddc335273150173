# SPDX-License-Identifier: GPL-2.0-only
"""The lists of words in messages: user/base/list.h."""
import pytest
from compiled import compiled


@pytest.fixture(scope="module")
def append(tmp_path_factory):
    run = compiled(tmp_path_factory.mktemp("appended"), "appended")
    return lambda size, *words: run("\n".join([str(size), *words, ""])).rstrip("\n")


def test_a_list_with_room_has_every_word(append):
    assert append(100) == ""
    assert append(100, "json") == "json"
    assert append(100, "json", "flat", "table") == "json, flat, table"


@pytest.mark.parametrize("size", range(4, 64))
def test_a_list_without_room_ends_in_dots_and_stays_in_its_buffer(append, size):
    words = [f"word{i}" for i in range(12)]
    shown = append(size, *words).split(", ")
    assert len(", ".join(shown)) < size
    assert shown[:-1] == words[:len(shown) - 1] and shown[-1] == "..."


def test_a_word_that_is_too_long_leaves_those_before_it(append):
    assert append(24, "json", "w" * 100, "flat") == "json, ..."
    assert append(24, "w" * 100, "flat") == "..."
