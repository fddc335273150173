# SPDX-License-Identifier: GPL-2.0-only
"""Bytes that belong to no member, in what the kernel side shares with user space: none may carry what was on a stack.
tests/live/test_map_bytes.py looks at the bytes themselves."""
import holes

# Each lies in a map that the kernel zeroes when it makes it, and is written member by member from then on.
ZEROED = {
    ("tables", "table", "order"),  # slots begin at a cache line
    ("tables", "slot", "value"),  # and end at one
    ("stack_areas", "unwind_walk", "guessed"),  # how far a walk has come, which no record has
}


def test_the_bytes_of_no_member_are_those_that_are_known(tmp_path):
    assert {(part.map, part.struct, part.member) for part in holes.told(tmp_path) if part.what == "hole"} == ZEROED


def test_a_key_has_none_because_it_is_copied_whole_from_a_stack(tmp_path):
    """In a table it is a struct of this name, in a hash the map's own."""
    keys = [part for part in holes.told(tmp_path) if "key" in (part.side, part.struct)]
    assert {part.object for part in keys if part.map == "tables"} == {"branch", "branch_stacks", "mem", "profile"}
    assert not [part for part in keys if part.what == "hole"]
