# SPDX-License-Identifier: GPL-2.0-only
"""What nhmtap itself costs, in instructions: none of the costs in costs.txt grows unnoticed."""
import warnings

import costs

ACCEPT = "If that is as it should be, accept it: make costs-accept writes tests/machine/costs.txt, which goes into the commit"


def test_no_cost_has_grown_by_more_than_two_percent():
    before = costs.baseline()
    with costs.Machines() as machines:
        now = machines.costs()
    assert now.keys() == before.keys(), f"costs.txt has other rows. {ACCEPT}"
    grown, shrunk = costs.differences(before, now)
    for later in (1, 2):  # what has really grown has grown wherever the clock ticks
        if grown:
            with costs.Machines(later) as machines:
                now |= machines.costs(names=[line.rpartition(": ")[0].rpartition(", ")[0] for line in grown])
            grown, _ = costs.differences(before, now)
    if costs.most()[1] is None:
        warnings.warn(f"the kernel's costs are not compared, since the machine's kernel is {costs.kernel()} now. {ACCEPT}")
    if shrunk:
        warnings.warn("\n".join(["these costs have shrunk:", *shrunk, ACCEPT]))
    assert not grown, "\n".join(["these costs have grown:", *grown, ACCEPT])


def test_what_grew_and_what_shrank_is_named_with_its_side(monkeypatch):
    monkeypatch.setattr(costs, "most", lambda: (costs.MOST, costs.MOST))
    before = {"a": (1000000, 1000000), "b": (5000, 0), "c": (10, 10)}
    now = {"a": (1019999, 1020001), "b": (4899, 30), "c": (40, 41)}
    assert costs.differences(before, now) == (["a, kernel: 1000000 -> 1020001 instructions (+2.0%)",
                                               "c, kernel: 10 -> 41 instructions (+310.0%)"],
                                              ["b, user: 5000 -> 4899 instructions (-2.0%)"])


def test_the_kernels_costs_are_not_compared_with_those_of_another_kernel(monkeypatch):
    before = {"a": (1000000, 1000000)}
    now = {"a": (1100001, 2000000)}
    monkeypatch.setattr(costs, "kernel", lambda: "linux-image-6.1.0-0-amd64 6.1.0-0")
    assert costs.differences(before, now) == (["a, user: 1000000 -> 1100001 instructions (+10.0%)"], [])
