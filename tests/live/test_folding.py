# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel has made of the BPF programs that handle samples: the code that each sample runs
through."""
import json

import pytest

from records import program

# A program whose main function has so much stack gets memory of its own for it, which is rarely in
# the cache: BPF_PRIV_STACK_MIN_SIZE, kernel/bpf/verifier.c of Linux 6.13 and later, which rounds up
# to 16.
PRIVATE_STACK = 64

# The command's parent has the programs open, and links to them.
LOADED = f"sed -n 's/^prog_id:\t*//p' /proc/$PPID/fdinfo/* | sort -u | xargs -n 1 {program('loaded')}"


def loaded(nhmtap, tmp_path, *words):
    """Returns what "loaded" says of each program that a run has loaded."""
    result = nhmtap(*words, "-e", "page-faults", "-c", "1", "-o", tmp_path / "records", "--", "sh", "-c", LOADED)
    assert result.status == 0, result.err
    programs = [json.loads(line) for line in result.out.splitlines()]
    assert programs
    return programs


@pytest.mark.parametrize("words", ["profile --by pid,ip", "profile --by pid,tid,comm,cpu,ip,cgroup", "profile -g --unwind fp",
                                   "mem --by source", "mem --by ip,pid,cacheline,page,comm --stream"])
def test_a_program_of_samples_does_not_load_what_is_constant_in_a_run(nhmtap, tmp_path, words):
    assert [one["loads"] for one in loaded(nhmtap, tmp_path, *words.split())] == [0]


def test_the_stack_of_profiles_program_is_the_kernels(nhmtap, tmp_path):
    assert [one["stack"] <= PRIVATE_STACK - 16 for one in loaded(nhmtap, tmp_path, "profile", "--by", "pid,ip")] == [True]
