# SPDX-License-Identifier: GPL-2.0-only
"""Metrics: the values of their formulas, and whether the counters can hold their events at once."""

import re
from itertools import permutations
from math import isfinite

import pytest

from event_tables import numbers

NAME = re.compile(r"[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*")

# These metrics need two values of one offcore register, so their events take turns.
TAKE_TURNS = {("nehalem-ex", "remote_dram_share")}


def value(formula, counts):
    """The value of a formula. The table compiler has checked that it is only arithmetic."""
    return eval(NAME.sub(lambda match: f"counts[{match.group()!r}]", formula), {"counts": counts})


def event_of(compiled, cpu, name):
    events = compiled.by_name("event", cpu)
    return events[name] if name in events else compiled.by_name("register", cpu)[name.split(".")[0]]


def fit_together(compiled, cpu, names):
    """Whether each event can have its own counter at the same time."""
    general = []
    for name in names:
        event = event_of(compiled, cpu, name)
        if event.get("fixed_counter", -1) < 0 or event["counters"]:
            general.append(numbers(event["counters"]))
    return any(all(counter in allowed for counter, allowed in zip(order, general))
               for order in permutations(range(4), len(general)))


def test_nehalem_has_at_least_twenty_metrics(compiled):
    assert len(compiled.list("metric", "nehalem-ep")) >= 20


def test_every_metric_is_a_number_when_its_events_count(cpu, compiled):
    for metric in compiled.list("metric", cpu):
        counts = {name: 1000 + index for index, name in enumerate(NAME.findall(metric["formula"]))}
        assert isfinite(value(metric["formula"], counts)), metric["name"]


def test_the_events_of_a_metric_fit_the_counters_at_once(cpu, compiled):
    for metric in compiled.list("metric", cpu):
        names = dict.fromkeys(NAME.findall(metric["formula"]))
        offcore = [name for name in names if name.startswith("OFFCORE_RESPONSE")]
        if (cpu, metric["name"]) in TAKE_TURNS:
            assert len(offcore) == 2
        else:
            registers = len(compiled.list("register", cpu))
            assert fit_together(compiled, cpu, names) and len(offcore) <= registers, metric["name"]


@pytest.mark.parametrize("name, counts, expected", [
    ("ipc", {"INST_RETIRED.ANY": 300, "CPU_CLK_UNHALTED.THREAD": 200}, 1.5),
    ("cpi", {"INST_RETIRED.ANY": 300, "CPU_CLK_UNHALTED.THREAD": 600}, 2),
    ("branch_mispredict_ratio", {"BR_MISP_EXEC.ANY": 5, "BR_INST_EXEC.ANY": 100}, 5),
    ("l1d_load_miss_ratio", {"L1D_CACHE_LD.I_STATE": 3, "L1D_CACHE_LD.MESI": 60}, 5),
    ("l2_mpki", {"L2_RQSTS.MISS": 20, "INST_RETIRED.ANY": 10000}, 2),
    ("l3_bytes_per_cycle", {"LONGEST_LAT_CACHE.MISS": 10, "CPU_CLK_UNHALTED.THREAD": 320}, 2),
    ("remote_dram_share",
     {"MEM_UNCORE_RETIRED.REMOTE_DRAM": 25, "MEM_UNCORE_RETIRED.LOCAL_DRAM": 75}, 25),
    ("starved_share", {"UOPS_ISSUED.STALL_CYCLES": 50, "RESOURCE_STALLS.ANY": 20,
                       "CPU_CLK_UNHALTED.THREAD": 100}, 30),
    ("wasted_uop_share",
     {"UOPS_ISSUED.ANY": 90, "UOPS_ISSUED.FUSED": 10, "UOPS_RETIRED.ANY": 80}, 20),
])
def test_a_metric_of_known_counts_has_the_value_of_hand(name, counts, expected, compiled):
    formula = compiled.by_name("metric", "nehalem-ep")[name]["formula"]
    assert value(formula, counts) == pytest.approx(expected)


def test_a_share_is_in_percent_and_a_pki_per_1000_instructions(cpu, compiled):
    for metric in compiled.list("metric", cpu):
        in_percent = metric["name"].endswith(("_share", "_ratio", "_estimate"))
        if in_percent and metric["name"] != "clock_ratio":
            assert metric["unit"] == "%" and metric["formula"].startswith("100 * "), metric["name"]
        if metric["name"].endswith("pki"):
            assert metric["unit"] == "per 1000 instructions", metric["name"]
            assert metric["formula"].startswith("1000 * "), metric["name"]
            assert metric["formula"].endswith("/ INST_RETIRED.ANY"), metric["name"]
