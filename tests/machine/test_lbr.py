# SPDX-License-Identifier: GPL-2.0-only
"""The last branch record and the branch trace store."""
import collections

import pytest

import known

# The branches of `branches` while the LBR is on, and the LBR_SELECT bit (the
# guide's Table 19) that suppresses each.
FAR, JCC, REL_CALL, IND_CALL, RET, IND_JMP, REL_JMP = (
    1 << 8,
    1 << 2,
    1 << 3,
    1 << 4,
    1 << 5,
    1 << 6,
    1 << 7,
)
LBR_SELECT = 0x1C8
RING_0, OTHER_RINGS = 1, 2
SEQUENCE = [
    (FAR, "kernel", "enter"),
    (JCC, "jcc", "after_jcc"),
    (REL_CALL, "rel_call", "leaf"),
    (RET, "ret", None),
    (IND_CALL, "ind_call", "leaf"),
    (RET, "ret", None),
    (IND_JMP, "ind_jmp", "after_ind_jmp"),
    (REL_JMP, "rel_jmp", "after_rel_jmp"),
]


def recorded(bench, select):
    return [line.split() for line in bench.say(f"branches {select:#x}").splitlines()]


@pytest.mark.parametrize("filter_bit", [0, FAR, JCC, REL_CALL, IND_CALL, RET, IND_JMP, REL_JMP])
def test_each_filter_bit_keeps_out_its_kind_and_no_other(guest, filter_bit):
    found = recorded(guest, RING_0 | filter_bit)
    expected = [(a, b) for kind, a, b in SEQUENCE if kind != filter_bit]
    assert [row[0] for row in found] == [a for a, _ in expected]
    assert all(b in (None, row[1]) for row, (_, b) in zip(found, expected))


def test_the_user_level_filter_leaves_the_kernels_branches(guest):
    found = recorded(guest, OTHER_RINGS)
    assert len(found) == 16
    assert {row[1] for row in found} == {"kernel"}


def test_all_filters_leave_nothing(guest):
    assert recorded(guest, 0x1FF) == []


@pytest.mark.parametrize(
    "branch_filter, sites",
    [
        ("any_call", {("main_a", "a"), ("a_b", "b"), ("main_x", "c"), ("main_x", "d")}),
        ("ind_call", {("main_x", "c"), ("main_x", "d")}),
    ],
)
def test_edges_of_a_known_call_graph(any_kernel, tmp_path, branch_filter, sites):
    edges = edge_counts(any_kernel, branch_filter, tmp_path)
    at = known.addresses("graph")
    assert set(edges) == {(at[a], at[b]) for a, b in sites}


def edge_counts(bench, branch_filter, tmp_path):
    rows = bench.samples(
        f"-c 2003 -e branches:u -j {branch_filter},u", "graph", "brstack", tmp_path
    )
    found = collections.Counter()
    for row in rows:
        for entry in row:
            a, b = entry.split("/")[:2]
            found[int(a, 16), int(b, 16)] += 1
    return found


def test_edges_come_in_the_shares_of_the_code(guest, tmp_path):
    # Each turn has main_a, a_b and main_x once; a stack of 16 has 5 of each, and a sixth of one.
    edges = edge_counts(guest, "any_call", tmp_path)
    at = known.addresses("graph")
    total = sum(edges.values())
    assert total >= 16 * 50
    for a, b in (("main_a", "a"), ("a_b", "b")):
        assert 0.30 * total <= edges[at[a], at[b]] <= 0.37 * total
    # c or d by a bit of a sequence, half of the time each.
    c, d = edges[at["main_x"], at["c"]], edges[at["main_x"], at["d"]]
    assert 0.30 * total <= c + d <= 0.37 * total
    assert 0.35 <= c / (c + d) <= 0.65


def test_indirect_calls_are_mispredicted_when_their_target_changes(any_kernel):
    targets = [0] + [t for t, _ in known.sequence(known.numbers("graph")["N"])]
    changes = sum(a != b for a, b in zip(targets, targets[1:]))
    count = any_kernel.count("BR_MISP_EXEC.INDIRECT_NEAR_CALL", "graph")
    # The very first call has no previous target.
    assert changes <= count <= changes + 1


def test_returns_are_foretold(guest):
    # Calls are nested two deep, so the return stack of 16 predicts every return.
    n = known.numbers("graph")["BR_INST_EXEC.RETURN_NEAR"]
    counts = guest.counts(["BR_INST_EXEC.RETURN_NEAR", "BR_MISP_EXEC.RETURN_NEAR"], "graph")
    assert counts["BR_INST_EXEC.RETURN_NEAR"] == n
    assert counts["BR_MISP_EXEC.RETURN_NEAR"] <= 4


def test_half_of_the_coin_tosses_are_mispredicted(guest, tmp_path):
    n = known.numbers("graph")["N"]
    # 20000 unpredictable tosses: 10000 mispredictions and 4 standard deviations of 71; the loop's
    # own jump is mispredicted at its start and its end.
    count = guest.count("BR_MISP_EXEC.COND", "graph")
    assert n / 2 - 300 <= count <= n / 2 + 300


def test_mispredicted_entries_are_where_the_code_cannot_be_foretold(guest, tmp_path):
    rows = guest.samples("-c 503 -e branches:u -j any,u", "graph", "brstack", tmp_path)
    at = known.addresses("graph")
    flags = collections.Counter()
    for row in rows:
        for entry in row:
            a, _, flag = entry.split("/")[:3]
            flags[int(a, 16), flag] += 1
    assert flags[at["main_a"], "M"] == flags[at["a_b"], "M"] == 0
    for site in ("main_x", "coin"):
        right, wrong = flags[at[site], "P"], flags[at[site], "M"]
        assert 0.35 <= wrong / (right + wrong) <= 0.65, site


def test_a_bpf_program_reads_the_branch_stack(any_kernel):
    said = any_kernel.say("bpfcheck lbr", paranoid=-1)
    # 20000 turns of 6 branches (jmp, call, ret, the loop's own) at a period of 1000.
    calls = int(said.split(": ")[1].split()[0])
    assert calls >= 50
    newest, to = said.splitlines()[0].split("newest ")[1].split(" -> ")
    from_, target = said.splitlines()[1].split("call at ")[1].split(" to ")
    assert (newest, to) == (from_, target)


def test_branch_trace_store_has_every_call(guest, tmp_path):
    guest.msr(f"{LBR_SELECT:#x}={REL_CALL:#x}")  # suppresses relative calls in the LBR alone
    # Only calls: perf script identifies other branches by their instructions, which it cannot read
    # here.
    rows = guest.samples("--per-thread -c 1 -e intel_bts//u", "graph", "ip,addr", tmp_path)
    at = known.addresses("graph")
    n = known.numbers("graph")["N"]
    edges = collections.Counter((int(row[0], 16), int(row[-1], 16)) for row in rows)
    # Linux drops a record or two between two buffers.
    assert n - 5 <= edges[at["main_a"], at["a"]] <= n
    assert n - 5 <= edges[at["a_b"], at["b"]] <= n
