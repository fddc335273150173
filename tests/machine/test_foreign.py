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
    # 330,006 instructions in periods of 10,000 are 33 samples, one less or more at each end, and another one for each interruption;
    # at most 4 more, if the kernel's own part of a sample takes a tenth of a period.
    ("bpftrace", "instructions:10000", 0, "@begun: 1\n@between: 1\n@n: 35\n", {"instructions:10000": "pass"}),
    ("bpftrace", "instructions:10000", 0, "@between: 1\n@n: 31\n", {"instructions:10000": "fail"}),
    ("bpftrace", "instructions:10000", 0, "@between: 1\n@n: 39\n", {"instructions:10000": "fail"}),
    ("bpftrace", "instructions:10000", 0, "@n: 39\n@between: 9\n", {"instructions:10000": "pass"}),
    ("bpftrace", "cpu-cycles:10000", 0, "", {"cpu-cycles:10000": "fail"}),
])
def test_results_are_read_as_each_suite_says_them(suite, case, status, output, found):
    assert foreign_suites.SUITES[suite].read(foreign_suites.Case(case, ""), status, output) == found


LIKWIDS_OWN = 6500  # instructions beside a program that executes none


@pytest.mark.parametrize("more, verdict", [(0, "pass"), (60, "pass"), (-30, "pass"), (61, "fail"), (-31, "fail")])
def test_a_count_of_likwid_may_be_off_by_what_differs_between_programs_that_only_wait(more, verdict):
    """Beside these likwid itself takes 6500, 6530 and 6510."""
    counts = {"empty": LIKWIDS_OWN + 3, "late": LIKWIDS_OWN + 7 + 30, "later": LIKWIDS_OWN + 7 + 10,
              "count": LIKWIDS_OWN + foreign_suites.INSTRUCTIONS + more, "float": LIKWIDS_OWN}
    output = "".join(f"program {name}\nINSTR_RETIRED_ANY,FIXC0,{count}\n" for name, count in counts.items())
    assert foreign_suites.SUITES["likwid"].read(foreign_suites.Case("BRANCH", ""), 0, output) == {"BRANCH": verdict}


def test_a_command_that_takes_too_much_cpu_time_is_out_of_time(monkeypatch):
    monkeypatch.setattr(foreign, "LONGEST", 4)
    found, _ = foreign.run_case(foreign_suites.SUITES["perf"], foreign_suites.Case("endless", "while :; do :; done"))
    assert {name: outcome for name, (outcome, _) in found.items()} == {"endless": "out of time"}


def test_a_suite_is_built_again_if_its_commands_are_others(monkeypatch, tmp_path):
    def built(commands):
        monkeypatch.setitem(foreign_suites.SUITES, "papi", foreign_suites.SUITES["papi"]._replace(build=commands))
        foreign_suites.build("papi", str(tmp_path / "papi"))
        return sorted(name.name for name in (tmp_path / "papi").iterdir() if name.suffix == ".made")

    assert built("echo 1 > one.made") == ["one.made"]
    (tmp_path / "papi/one.made").write_text("kept")
    assert built("echo 1 > one.made") == ["one.made"]
    assert (tmp_path / "papi/one.made").read_text() == "kept"
    assert built("echo 2 > two.made") == ["two.made"]
