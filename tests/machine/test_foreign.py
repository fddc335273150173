# SPDX-License-Identifier: GPL-2.0-only
"""The small part of check-foreign that takes seconds and no network: the kernel's selftests of perf_events and some of
`perf test`, and how results are compared with the tables."""
import os
import subprocess

import pytest

import foreign
import foreign_suites

# Those of `perf test` that open events of the PMU, sample or read counters by themselves, and end within seconds.
OF_PERF = ("mmap interface tests", "PERF_RECORD_* events & perf_sample fields", "Number of exit events of a simple workload",
           "Session topology", "Convert perf time to TSC", "Sigtrap", "Breakpoint accounting")
DEBIANS = subprocess.run(["perf", "--version"], capture_output=True, text=True, check=False).stdout.startswith("perf version 6.1.")


def differing(name, folder, wanted=None):
    """What differs from a suite's table, of the wanted cases or of all, and the names of the tests that ran."""
    cases = [case for case in foreign_suites.SUITES[name].cases(folder) if wanted is None or case.name in wanted]
    rows = {n: row for n, row in foreign.table(name).items() if wanted is None or any(n == w or n.startswith(w + ": ") for w in wanted)}
    assert wanted is None or {case.name for case in cases} == set(wanted)
    seen = foreign.run(foreign_suites.SUITES[name], cases, 2, lambda *_: None)
    return foreign.differences(rows, seen), seen


@pytest.mark.skipif(not DEBIANS, reason="the table is about the perf of Debian 12")
def test_what_perf_tests_of_the_pmu_comes_out_as_its_table_says():
    different, seen = differing("perf", "", OF_PERF)
    assert not different, "\n".join(different)
    assert len(seen) >= len(OF_PERF)


@pytest.mark.skipif(not DEBIANS, reason="the table is about the kernel of Debian 12")
def test_the_kernels_selftests_of_perf_events_come_out_as_their_table_says(tmp_path):
    folder = str(tmp_path / "selftests")
    foreign_suites.build("selftests", folder)
    different, seen = differing("selftests", folder)
    assert not different, "\n".join(different)
    assert "remove_on_exec.exec_stress" in seen and "sigtrap_threads.signal_stress" in seen


TABLE = {"good": foreign.Row("pass"), "bad": foreign.Row("fail", "kernel", "why"), "long": foreign.Row("left", "time", "why")}


@pytest.mark.parametrize("seen, said", [
    ({"good": ("pass", ""), "bad": ("fail", "")}, []),
    ({"good": ("fail", "a\nlast"), "bad": ("fail", "")}, ["good: fail, but the table has: pass\n    a\n    last\n"]),
    ({"good": ("pass", ""), "bad": ("pass", "")}, ["bad: pass, but the table has: fail\n"]),
    ({"good": ("pass", ""), "bad": ("fail", ""), "new": ("pass", "")}, ["new: pass, but the table has: no row\n"]),
    ({"good": ("pass", "")}, ["bad: no test, but the table has: fail\n"]),
    ({"good": ("pass", ""), "bad": ("fail", ""), "long": ("pass", "")}, ["long: pass, but the table has: left\n"]),
])
def test_each_difference_from_a_table_is_said_in_both_directions(seen, said):
    assert foreign.differences(TABLE, seen) == said


@pytest.mark.parametrize("name", foreign_suites.SUITES)
def test_each_test_that_does_not_pass_has_a_rule_and_a_reason_and_none_is_ours(name):
    rows = foreign.table(name)
    assert rows
    for test, row in rows.items():
        if row.outcome == "pass":
            assert row == foreign.Row("pass"), test
        else:
            assert row.rule in foreign.RULES and row.rule != "ours" and len(row.reason.split()) > 3, test
            assert (row.rule == "time") == (row.outcome == "left"), test


def test_make_runs_all_suites():
    with open(os.path.join(foreign.HERE, "foreign.mk"), encoding="utf-8") as f:
        assert f"FOREIGN := {' '.join(foreign_suites.SUITES)}\n" in f.read()


@pytest.mark.parametrize("suite, case, status, output, found", [
    ("perf", "Watchpoint", 0, " 23: Watchpoint   :\n 23.1: Read Only Watchpoint   :\n--- start ---\nx\nWatchpoint subtest 1: Skip\n"
     " 23.2: Write Only Watchpoint   :\nWatchpoint subtest 2: FAILED!\n",
     {"Watchpoint: Read Only Watchpoint": "skip", "Watchpoint: Write Only Watchpoint": "fail"}),
    ("perf", "Sigtrap", 0, " 73: Sigtrap   :\n---- end ----\nSigtrap: Ok\n", {"Sigtrap": "pass"}),
    ("perf", "Sigtrap", 125, "run: halted\n", {"Sigtrap": "status 125"}),
    ("selftests", "t", 1, "1..3\nok 1 a.b\nnot ok 2 a.c\nok 3 a.d # SKIP no such file\n", {"a.b": "pass", "a.c": "fail", "a.d": "skip"}),
    ("selftests", "t", 139, "ok 1 a.b\n", {"t": "status 139"}),
    ("papi", "zero", 0, "PASSED\n", {"zero": "pass"}),
    ("papi", "zero", 0, "PASSED with WARNING\n", {"zero": "pass"}),
    ("papi", "zero", 1, "FAILED!!!\nLine # 12 Error: no\n", {"zero": "fail"}),
    ("perf_event_tests", "a/b", 1, "Testing it...     KNOWN KERNEL BUG\n", {"a/b": "fail"}),
    ("perf_event_tests", "a/b", 0, "Testing it...     PASSED\n", {"a/b": "pass"}),
    ("perf_event_tests", "a/b", 1, "Error opening\n", {"a/b": "status 1"}),
    ("libpfm4", "syst_count", 0, "CPU0   G0  1 2 INST_RETIRED:ANY_P\n", {"syst_count": "pass"}),
    ("libpfm4", "syst_count", 1, "CPU0   G0  1 2 INST_RETIRED:ANY_P\n", {"syst_count": "fail"}),
])
def test_results_are_read_as_each_suite_says_them(suite, case, status, output, found):
    assert foreign_suites.SUITES[suite].read(foreign_suites.Case(case, ""), status, output) == found
