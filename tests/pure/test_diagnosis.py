# SPDX-License-Identifier: GPL-2.0-only
"""The summary of what doctor has found: each reason once, and the remedies by the size of the change that they
need. Remedies are in the program's words; their order is that of the issue they solve, by hand."""
import json
import random

import pytest

from compiled import compiled

# In ascending order: nhmtap's own options, a setting, the user, the boot parameters, the virtual machine, a
# kernel, the hardware. If a remedy offers several, the smallest counts.
REMEDIES = [
    "use cpu-clock, or QEMU -cpu host,pmu=on",
    "boot with intel_pmu=on, or sysctl kernel.nmi_watchdog=0",
    "run as root, or boot with lockdown=none",
    "boot with nopti, or run a kernel without it",
    "start QEMU with -cpu host, or run it on the hardware",
    "run a kernel with CONFIG_X, or use other hardware",
    "run it on the hardware",
]


@pytest.fixture(scope="module")
def diagnose(tmp_path_factory):
    run = compiled(tmp_path_factory.mktemp("diagnosis"), "diagnosis")
    return lambda findings: json.loads(run(json.dumps(findings)))


def stopped(name, why, remedy=None):
    return {"type": "facility", "name": name, "works": False, "why": why, **({"remedy": remedy} if remedy else {})}


@pytest.mark.parametrize("seed", range(5))
def test_the_smallest_change_that_helps_comes_first(diagnose, seed):
    findings = [stopped(f"f{i}", f"why {i}", remedy) for i, remedy in enumerate(REMEDIES)]
    random.Random(seed).shuffle(findings)
    assert [remedy["remedy"] for remedy in diagnose(findings)["remedies"]] == REMEDIES


def test_a_reason_comes_once_with_all_that_it_stops_and_the_one_that_stops_most_first(diagnose):
    found = diagnose([stopped("a", "one"), {"type": "facility", "name": "works", "works": True}, stopped("b", "two", "use x"),
                      stopped("c", "two", "use x"), stopped("never", "three"), {"type": "counters", "why": "two", "remedy": "use y"},
                      {"type": "permission", "name": "silent"}])
    assert found["works"] == ["works"]
    assert found["reasons"] == [{"why": "two", "stops": ["b", "c", "counters"], "possible": True},
                                {"why": "one", "stops": ["a"], "possible": True}, {"why": "three", "stops": ["never"], "possible": False}]
    assert found["remedies"] == [{"remedy": "use x", "mends": ["b", "c"]}, {"remedy": "use y", "mends": ["counters"]}]
