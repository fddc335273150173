# SPDX-License-Identifier: GPL-2.0-only
"""Last branch records that are deeper than Nehalem's: 32 entries since Skylake, up to 64 if they
are architectural. No test machine has one, so the BPF program runs in user space, on stacks made by
hand."""
import os
import subprocess

import pytest

from records import HERE

STACK, EDGE, RANGE = 0, 1, 3  # enum branch_kind


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """A function that returns the entries of a table after one stack of `depth` branches."""
    path = tmp_path_factory.mktemp("branches") / "deep_branches"
    top = os.path.join(HERE, "..")
    subprocess.run(["clang", "-std=gnu11", "-O1", "-g", "-w", "-D__TARGET_ARCH_x86", "-fsanitize=address,undefined",
                    "-fno-sanitize-recover=undefined", "-I", f"{top}/bpf", "-I", f"{top}/vmlinux", "-o", path,
                    os.path.join(HERE, "pure", "deep_branches.c")], check=True)

    def run(depth):
        said = subprocess.run([path, str(depth)], stdout=subprocess.PIPE, check=True, text=True).stdout
        return [tuple(map(int, line.split())) for line in said.splitlines()]
    return run


@pytest.mark.parametrize("depth", [0, 1, 4, 16, 17, 32, 64])
def test_all_branches_of_a_stack_are_taken_in(sample, depth):
    entries = sample(depth)
    assert [e for e in entries if e[0] == STACK] == [(STACK, depth, 0, 1)]
    assert {e for e in entries if e[0] == EDGE} == {(EDGE, 1000 - 2 * i, 1001 - 2 * i, 1) for i in range(depth)}
    # From the target of the older branch to the source of the newer one.
    assert {e for e in entries if e[0] == RANGE} == {
        (RANGE, 1001 - 2 * (i + 1), 1000 - 2 * i, 1) for i in range(depth - 1)}
    assert len(entries) == 1 + depth + max(0, depth - 1)
