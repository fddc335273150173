# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap doctor --selftest on every model: it measures what is known of its program, and leaves out what the
model lacks."""
import subprocess

import pytest

import records
from guests import TABLES, tool

EVERYTHING = {"counts", "accesses", "precise", "records", "edges", "l1", "l2", "l3", "memory"}

# The kind of machine, and what can't be measured there.
MODELS = {
    "nehalem": ({}, {"stores"}),
    "lynnfield": ({"model": "lynnfield"}, {"stores"}),
    "nehalem-ex": ({"model": "ex"}, {"stores"}),
    "westmere": ({"model": "westmere"}, {"stores"}),
    "westmere-dp": ({"model": "westmere-dp", "packages": 2}, {"stores"}),
    "westmere-ex": ({"model": "westmere-ex"}, {"stores"}),
    "sandybridge": ({"model": "sandybridge"}, set()),
    "sandybridge-ep": ({"model": "sandybridge-ep"}, set()),
    # PEBS of format 0 has neither latency nor source, and records no calls.
    "core2": ({"model": "core2"}, {"accesses", "precise", "records", "l1", "l2", "l3", "memory", "stores"}),
    "unknown": ({"model": "unknown", "perfmon": "0x07300202,0x00,0x0603"},
                {"accesses", "precise", "records", "edges", "l1", "l2", "l3", "memory", "stores"}),
}
# One that has everything but stores, one that has those, and one without a table; the others repeat that.
FEW = {"nehalem", "sandybridge", "unknown"}


def has_table(model):
    """Which of a CPU's events counts each load once, its table knows."""
    table = TABLES.get(model, {"nehalem": "nehalem-ep", "lynnfield": "nehalem-ep"}.get(model, model))
    return not subprocess.run([tool(), "list", "--cpu", table], capture_output=True, check=False).returncode


@pytest.mark.parametrize("model", [pytest.param(model, marks=() if model in FEW else pytest.mark.thorough) for model in MODELS])
def test_what_is_measured_is_what_is_known(machines, model):
    kind, lacks = MODELS[model]
    if not has_table(model):
        lacks = lacks | {"accesses"}
    result = machines(**kind).run("/opt/nhmtap", "doctor", "--selftest", "--format", "json", paranoid=-1)
    found = records.parse(result.stdout)
    assert found, str(result)
    records.check_stream(found)
    tests = {record["name"]: record for record in found if record["type"] == "selftest"}
    assert set(tests) == EVERYTHING | {"stores"}
    assert {name for name, test in tests.items() if test["verdict"] == "left_out"} == lacks, tests
    assert [test for test in tests.values() if test["verdict"] == "failed"] == []
    assert result.status == 0
