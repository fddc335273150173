# SPDX-License-Identifier: GPL-2.0-only
"""Counters that a program reads itself, without a system call: the example, and nhmtap's own cost."""
import json

import known


def test_what_rdpmc_reads_lies_between_two_reads_and_is_of_the_loop(any_kernel):
    said = [line.split() for line in any_kernel.say("selfread", paranoid=2, user="user").splitlines()]
    (_, first), (_, rdpmc), (_, last), (_, loop) = said
    assert [name for name, _ in said] == ["read", "rdpmc", "read", "loop"]
    turns = known.numbers("selfread")["turns"]
    # dec and jnz in each; around them the reading of the page and of the counter.
    assert 2 * turns < int(loop) < 2 * turns + 100
    assert int(first) + int(loop) <= int(rdpmc) <= int(last) < int(rdpmc) + 1000


def test_without_the_permission_it_says_so(guest):
    result = guest.run("selfread", paranoid=3, user="user")
    assert (result.status, result.stdout) == (2, "")
    assert "Permission denied" in result.stderr


def test_every_run_tells_its_own_instructions(guest):
    # perf counts everything: COMMAND, and what nhmtap does before and after it counts itself.
    said = guest.say("perf stat -x, -o y -e instructions nhmtap stat -e instructions:u -- count; cat y",
                     paranoid=-1)
    end, = [json.loads(line) for line in said.splitlines() if '"type":"end"' in line]
    whole, = [int(line.split(",")[0]) for line in said.splitlines() if ",instructions" in line]
    cost = end["overhead"]
    assert cost["instructions_of"] == "user and kernel"
    command = known.numbers("count")["INST_RETIRED.ANY_P"]
    assert 0.1 * (whole - command) < cost["instructions"] < whole - command


def test_one_who_may_not_count_the_kernel_is_told_the_users_side(guest):
    said = guest.say("nhmtap stat -e instructions:u -- count", paranoid=2, user="user")
    assert json.loads(said.splitlines()[-1])["overhead"]["instructions_of"] == "user"
