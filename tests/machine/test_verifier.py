# SPDX-License-Identifier: GPL-2.0-only
"""How many instructions the kernel's verifier processes before a run can start."""
import pytest

from records import check_stream, parse

LIMIT = 1_000_000  # BPF_COMPLEXITY_LIMIT_INSNS, include/linux/bpf.h: a program that takes more is refused

# As many comparisons as there is room for, of which each may decide.
WHERE = " || ".join([*["(pid == 1 && comm != a)", "(cpu > 900 && period < 5)"] * 3, "tid == 7"])

# Every BPF program, with all keys of its entries and with the options that make it larger.
RUNS = ("profile --by pid,tid,comm,cpu,ip,cgroup",
        "profile -g --unwind fp",
        "profile -g",
        "profile -g -e page-faults --max-stack 255",
        "mem --by source,ip,pid,tid,comm,cpu,cgroup,cacheline,page,node",
        "mem -g --by source,page,offset,cgroup,pid,tid,cpu,comm",
        "mem --by ip --stream",
        f"mem --by ip --where '{WHERE}'",
        "stream --fields symbol,cgroup",
        f"stream --fields addr,latency --where '{WHERE}'",
        f"profile -g --unwind fp --where '{WHERE}'",
        "branch -c 100003 --by edge,range,pid,comm,cgroup",
        f"branch -c 100003 --by edge --where '{WHERE}'",
        "branch -c 100003 --by edge,range,pid,comm,cgroup,stack",
        "stat -a -I 1000 -e inst_retired.any,page-faults")


@pytest.mark.parametrize("run", RUNS)
def test_a_program_takes_little_of_what_the_verifier_allows(any_kernel, run):
    # The command's parent has the program open. Errors are ignored: it may close a descriptor
    # meanwhile.
    done = any_kernel.run(f"nhmtap {run} --format json -o x -- sh -c 'cat /proc/$PPID/fdinfo/* 2>/dev/null'; cat x >&2",
                          paranoid=-1)
    # A condition may let nothing through, which is said beside the records.
    check_stream(parse("".join(line for line in done.stderr.splitlines(True) if line.startswith("{"))))
    steps = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("verified_insns:")]
    walks = " -g" in run or "stack" in run
    # Two more programs follow forks and execs.
    assert len(steps) == (3 if walks and "fp" not in run else 1)
    # The verifier processes one by one the frames of a stack, the branches that are added in a call, and the comparisons of
    # a condition.
    one_by_one = walks or "where" in run or "branch" in run
    assert all(10 < n < LIMIT / (50 if one_by_one else 100) for n in steps), steps
