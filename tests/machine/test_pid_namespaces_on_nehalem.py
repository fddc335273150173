# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap in a pid namespace of the guest: each kernel accepts the BPF programs that number tasks as
the namespace does."""
import pytest

import known
import records

# MMX operations: only the program itself executes any.
EVENT, N = "r0210:u", known.numbers("float")["FP_COMP_OPS_EXE.MMX"]
INSIDE = "unshare -p -f --mount-proc"


def entries(bench, command, kind):
    activity, rest = command.split(" ", 1)
    done = bench.run(f"{INSIDE} nhmtap {activity} -o x {rest} > said && cat x", paranoid=-1)
    result = records.Result(done.status, done.stdout, done.stderr)
    assert (done.status, result.err) == (0, ""), str(done)
    found = result.entries(kind)
    assert found and all(e["pid"] for e in found if e.get("comm") not in (None, "swapper/0"))
    return result, found


@pytest.mark.parametrize("deeper", ["", "unshare -p -f "], ids=["its own", "a deeper one"])
def test_a_program_has_the_namespaces_number_and_its_names(any_kernel, deeper):
    result, found = entries(any_kernel, f"profile --by module,pid,tid,comm -e {EVENT} -c 100 -- {deeper}float", "profile")
    mine = [e for e in found if e["comm"] == "float"]
    assert sum(e["samples"] for e in mine) == pytest.approx(N / 100, abs=1)
    assert {(e["code"]["module"].rpartition("/")[2], e["pid"], e["tid"]) for e in mine} == {
        ("float", mine[0]["pid"], mine[0]["pid"])}
    command = result.one("end")["command"]["pid"]
    assert mine[0]["pid"] == command + 1 if deeper else command
    assert result.one("end")["names"]["unnamed"]["no_pid"] == 0


@pytest.mark.parametrize("kind, command", [
    ("profile", "profile -g --by pid,comm -e r01c0:u -c 10000 -- calls"),
    ("mem", "mem --by pid,comm -c 100 -- stride"),
    ("branch", "branch --by edge,pid,comm -c 1003 -- branches"),
])
def test_every_program_is_verified_in_a_namespace_and_numbers_tasks_as_it_does(any_kernel, kind, command):
    result, found = entries(any_kernel, command, kind)
    own = {e["pid"] for e in found if e.get("comm") == command.split()[-1]}
    assert own == {result.one("end")["command"]["pid"]}
