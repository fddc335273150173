# SPDX-License-Identifier: GPL-2.0-only
"""Padding in the structs that the kernel side shares with user space: it must not leak old contents
of a stack. tests/live/test_map_bytes.py checks the bytes themselves."""
import holes

# Each is in a map that the kernel zeroes at creation and that is then written member by member.
ZEROED = {
    ("tables", "table", "order"),  # slots begin at a cache line
    ("tables", "slot", "value"),  # and end at one
    ("stack_areas", "unwind_walk", "guessed"),  # the state of a walk, which is in no record
}


def test_the_bytes_of_no_member_are_those_that_are_known(tmp_path):
    assert {(part.map, part.struct, part.member) for part in holes.told(tmp_path) if part.what == "hole"} == ZEROED


def test_a_key_has_none_because_it_is_copied_whole_from_a_stack(tmp_path):
    """In a table, the key is a struct with this name; in a hash, it is the map's key."""
    keys = [part for part in holes.told(tmp_path) if "key" in (part.side, part.struct)]
    assert {part.object for part in keys if part.map == "tables"} == {"branch", "branch_stacks", "mem", "profile"}
    assert not [part for part in keys if part.what == "hole"]
