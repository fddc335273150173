# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap doctor --selftest on every model: it measures what is known of its program, and leaves out what the
model lacks."""
import pytest

import mutants
import mutation
import records
from guests import FIRST, SANDYBRIDGES, SECOND, WESTMERES

# The tests that need load latency in PEBS records, an off-core register, or a table of the CPU's
# events.
LATENCY = {"l1", "l2", "l3", "memory", "fills", "threshold", "modified", "clean"}
OFFCORE = {"from_memory", "from_l3", "write_backs"}
TABLE = {"accesses", "doubles", "splits", "filter", "walks", "stalls", *OFFCORE}
CALLS = {"precise", "records", "mispredicted"}
ACCESS_BITS = {"translations", "stores"}
EVERYTHING = {"counts", "masks", "beginnings", "reading", "period", "unforeseen", "edges", "frozen", "trace", "uncore",
              *LATENCY, *TABLE, *CALLS, *ACCESS_BITS}
TWO_CORES = {"modified", "clean"}
NEHALEM = ACCESS_BITS | {"splits", "mispredicted"}
WESTMERE = ACCESS_BITS | {"splits"}
SANDYBRIDGE = {"doubles", "uncore"}

# The kind of machine, and what cannot be measured there.
MODELS = {
    "nehalem": ({"cores": 2}, NEHALEM),
    "lynnfield": ({"model": "lynnfield"}, NEHALEM | TWO_CORES),
    "nehalem-ex": ({"model": "ex"}, NEHALEM | TWO_CORES | {"uncore"}),
    "westmere": (WESTMERES["westmere"], WESTMERE),
    "westmere-dp": (WESTMERES["westmere-dp"], WESTMERE | TWO_CORES),
    "westmere-ex": ({"model": "westmere-ex"}, WESTMERE | TWO_CORES | {"uncore"}),
    "sandybridge": (SANDYBRIDGES["sandybridge"], SANDYBRIDGE),
    "sandybridge-ep": ({"model": "sandybridge-ep"}, SANDYBRIDGE | TWO_CORES),
    # PEBS of format 0 has neither latency nor source, and records no calls.
    "core2": ({"model": "core2"}, LATENCY | CALLS | ACCESS_BITS | TABLE - {"doubles"} | {"uncore"}),
    "unknown": (dict(SECOND, perfmon="0x07300202,0x00,0x0603"),
                LATENCY | CALLS | ACCESS_BITS | TABLE | {"edges", "frozen", "uncore"}),
}


@pytest.mark.modules("intel-uncore")
@pytest.mark.parametrize("model", MODELS)
def test_what_is_measured_is_what_is_known(machines, model):
    kind, lacks = MODELS[model]
    result = machines(**kind).run("/opt/nhmtap", "doctor", "--selftest", "--format", "json", paranoid=-1)
    found = records.parse(result.stdout)
    assert found, str(result)
    records.check_stream(found)
    tests = {record["name"]: record for record in found if record["type"] == "selftest"}
    assert set(tests) == EVERYTHING
    assert {name for name, test in tests.items() if test["verdict"] == "left_out"} == lacks, tests
    assert [test for test in tests.values() if test["verdict"] == "failed"] == []
    assert result.status == 0


@pytest.mark.modules("intel-uncore")
def test_two_counters_that_are_not_fixed_are_enough_and_traces_that_the_kernel_loses_are_left_out(machines):
    result = machines(**FIRST).run("/opt/nhmtap", "doctor", "--selftest", "--format", "json", paranoid=-1)
    tests = {record["name"]: record for record in records.parse(result.stdout) if record["type"] == "selftest"}
    assert [name for name in ("counts", "masks", "beginnings", "period") if tests[name]["verdict"] != "passed"] == []
    # The kernel loses all but the 2,730 branches that the buffer holds, so nhmtap refuses to trace there.
    assert tests["trace"]["verdict"] == "left_out" and "does not empty the buffer" in tests["trace"]["why"]
    assert [test for test in tests.values() if test["verdict"] == "failed"] == []


@pytest.mark.modules("intel-uncore")
def test_nothing_is_said_of_counts_that_took_turns(machines):
    result = machines(**FIRST).run("sh", "-c", """
        /opt/nhmtap stat -a -e instructions:D --duration 60 -o /dev/null & sleep 1
        /opt/nhmtap doctor --selftest --only masks --format json; kill $!; wait""", paranoid=-1)
    test, = (record for record in records.parse(result.stdout) if record["type"] == "selftest")
    assert test["verdict"] == "left_out" and "took turns" in test["why"]


def test_each_fault_of_the_machine_still_fits_its_file_and_its_test():
    assert mutation.misfits(mutants.MUTANTS, mutants.SOURCES) == []


def test_every_fault_of_the_machine_concerns_a_test_or_says_why_none():
    assert [m.name for m in mutants.MUTANTS if bool(m.selftest) == bool(m.unseen)] == []
    for mutant in mutants.MUTANTS:
        test, _, model = mutant.selftest.partition("@")
        assert not test or test in EVERYTHING - MODELS[model or "nehalem"][1], mutant.name
