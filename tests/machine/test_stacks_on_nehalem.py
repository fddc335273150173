# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap profile -g with precise events, on a program whose calls are known, also compared with
perf.

The kernel takes the stack of a precise sample from the interrupt's registers, a few instructions
after the record's, and gives it to a BPF program only if both sides are in it (-EPROTO
otherwise)."""
import pytest

import known
import records
import stacks

PROGRAM = known.path("calls")
IN_GUEST = "/opt/calls"


def functions(found):
    """The same chains by the program's functions, from the outermost; others are left out."""
    return stacks.within(PROGRAM, {tuple((PROGRAM, at[1]) if isinstance(at, tuple) and at[0] == IN_GUEST
                                         else at for at in chain): n for chain, n in found.items()})


def profile(bench, event, command, period=1000):
    done = bench.run(f"nhmtap profile -g --by place,comm -e {event} -c {period} -- {command}", paranoid=-1)
    assert done.status == 0, str(done)
    result = records.Result(done.status, done.stdout, done.stderr)
    record = result.of("profile")[0]
    assert not any(record["samples"]["lost"].values())
    assert record["stacks"]["failed"] == record["stacks"]["table_full"] == 0
    return stacks.chains(result)


def perfs(bench, event, command, tmp_path, period=1000):
    bench.say(f"perf record -q -g -e {event} -c {period} -o x {command}", paranoid=-1)
    return stacks.by_perf(bench.fetch("x", tmp_path), "calls")


def test_precise_samples_fall_into_the_calls_as_instructions_do_and_as_perf_says(any_kernel, tmp_path):
    ours = functions(profile(any_kernel, "r01c0:upp", "calls"))
    theirs = functions(perfs(any_kernel, "r01c0:upp", "calls", tmp_path))
    ways = {way: ("_start", "main", way, "work") for way in ("left", "right")}
    for way, chain in ways.items():
        expected = known.numbers("calls")[f"{way}.instructions"] / 1000
        # Whether a sample is at one of the few instructions around a loop depends on where counting
        # started.
        assert ours[chain] == pytest.approx(expected, rel=0.1)
        assert ours[chain] == pytest.approx(theirs[chain], rel=0.1)
    assert sum(ours[chain] for chain in ways.values()) > 0.9 * sum(ours.values())


def test_a_precise_sample_in_the_kernel_has_the_frames_of_both_sides(any_kernel, tmp_path):
    command = "calls kernel"
    ours, theirs = (side(found) for found in (profile(any_kernel, "r01c0:pp", command, 2000),
                                              perfs(any_kernel, "r01c0:pp", command, tmp_path, 2000)))
    # The kernel's outermost frame is followed by ask and its callers.
    # In the few instructions that set up or remove a frame, its caller is missing from the stack.
    assert sum(ours["_start", "main", "ask"].values()) > 0.9 * sum(sum(n.values()) for n in ours.values())
    ours, theirs = ours["_start", "main", "ask"], theirs["_start", "main", "ask"]
    assert sum(ours.values()) > 100
    # The kernel is entered at the same places as in perf's stacks.
    assert ours.keys() & theirs.keys() and len(ours.keys() | theirs.keys()) <= 4


def side(found):
    """{the program's functions: {the kernel's outermost frame: samples}} of samples in the
    kernel after the entry code, which has no frames."""
    result = {}
    for chain, n in found.items():
        kernels = [at for at in chain if isinstance(at, int) and at >> 63]
        (names, *_) = [*functions({chain: 1}), None]
        if len(kernels) > 2 and names and names[-1] == "ask":
            outermost = result.setdefault(names, {})
            outermost[kernels[-1]] = outermost.get(kernels[-1], 0) + n
    return result
