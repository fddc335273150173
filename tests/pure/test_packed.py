# SPDX-License-Identifier: GPL-2.0-only
"""The thread that compresses an output takes what comes while it waits for the time of a frame, and waits for the rest of a
record without looking for it again and again. (A writer that has no room in a pipe ends within a record.)"""
import pytest
from compiled import compiled

FRAME_MS = 200


@pytest.fixture(scope="module")
def waits(tmp_path_factory):
    """The waits after the first part of a record: whether the pipe is watched, and up to how many ms."""
    program = compiled(tmp_path_factory.mktemp("packed"), "packed")
    return lambda text: [(watched == "watched", int(ms)) for watched, ms in map(str.split, program(text).splitlines())]


@pytest.mark.parametrize("text", ['{"half":\\\n', '{"seq":0}\n{"half":\\\n'], ids=["a part", "a record and a part"])
def test_the_rest_of_a_record_is_awaited_with_patience(waits, text):
    seen = waits(text)
    assert len(seen) >= 4
    assert all(watched and FRAME_MS / 2 < ms <= FRAME_MS + 1 for watched, ms in seen), seen
