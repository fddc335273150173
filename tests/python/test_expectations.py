# SPDX-License-Identifier: GPL-2.0-only
"""The pytest plugin: the marker expect, the fixture, and the outcome of tests. The tests run small
suites with the plugin, which cause page faults by touching new pages."""
import os
import re

import pytest
from records import PROGRAMS

from nhmtap.plugin import Expectation
from nhmtap.runs import Counts

pytest_plugins = "pytester"


def test_the_marker_is_registered(pytester, suite):
    said = pytester.runpytest_subprocess("-p", "nhmtap.plugin", "--markers").stdout.str()
    assert "@pytest.mark.expect(*expectations, repeat=1): measure the test's call phase" in said


@pytest.mark.parametrize("arguments, taken", [("", True), ("()", True), ("(cpus=2)", False), ("('westmere')", False)])
def test_the_marker_of_the_machine_takes_no_arguments(suite, arguments, taken):
    outcome = suite(f"@pytest.mark.nhmtap_machine{arguments}\ndef test_it(): pass\n")
    assert outcome.passed("test_it") == taken
    assert ("nhmtap_machine takes no arguments: all tests of a run share one machine" in outcome.text) != taken


def test_an_expectation_measures_the_call_phase(suite):
    outcome = suite("""
@pytest.fixture
def costly():
    touch(5000)
    yield
    touch(5000)

@pytest.mark.expect("page-faults>=1000", "page-faults<2000")
def test_it(costly):
    touch(1000)
""")
    assert outcome.passed("test_it")
    assert 1000 <= outcome.event("test_it", "page-faults")["median"] < 2000


def test_two_events_of_one_name_are_two_series(suite):
    """The third call measures the second event alone: it is the same series as that of no other."""
    outcome = suite(f"""
TWO = ["software/config=2,name=x/", "software/config=3,name=x/"]
COMMAND = [{os.path.join(PROGRAMS, 'puppet')!r}, "faults=5000", "exit=0"]

@pytest.mark.expect(repeat=3)
def test_it(nhmtap):
    assert nhmtap.stat(COMMAND, TWO)["x"] > 5000
    assert nhmtap.stat(COMMAND, TWO[1])["x"] < 5000
""")
    assert outcome.passed("test_it"), outcome.text
    runs = {event["event"]: event["runs"] for event in outcome.records[0]["events"]}
    assert {name: len(values) for name, values in runs.items()} == {"x": 3, "x (2)": 3, "x #2": 3}
    assert min(runs["x"]) > 5000 and max(runs["x (2)"] + runs["x #2"]) < 5000


def test_an_event_with_a_name_of_its_own_is_judged_by_its_own_count(suite):
    """Each touches 3000 pages. The second of one name is another event, unless it counts the same."""
    outcome = suite("""
FAULTS, SWITCHES = "software/config=2,name=x/", "software/config=3,name=x/"

@pytest.mark.expect(FAULTS + ">2000", SWITCHES + "<1000", FAULTS + "<1e6")
def test_two():
    touch(3000)

@pytest.mark.expect("software/config=3,name=page-faults/<1000", "page-faults>2000")
def test_the_name_of_another():
    touch(3000)

@pytest.mark.expect("page-faults>2000", "software/config=2,name=page-faults/>2000")
def test_one_in_two_spellings():
    touch(3000)

@pytest.mark.expect(FAULTS + "<1000")
def test_too_many():
    touch(3000)

def test_a_block(nhmtap):
    with nhmtap.measure(SWITCHES, FAULTS):
        touch(3000)
""")
    for name in ("test_two", "test_the_name_of_another", "test_one_in_two_spellings", "test_a_block"):
        assert outcome.passed(name), outcome.text
    assert "expected software/config=2,name=x/<1000: x " in outcome.failure("test_too_many")
    assert outcome.event("test_a_block", "x")["median"] < 1000 < 2000 < outcome.event("test_a_block", "x (2)")["median"]


def test_one_that_fails_says_the_value_and_the_limit(suite):
    outcome = suite("""
@pytest.mark.expect("page-faults<1000", "cs>=0")
def test_it(): touch(1000)
""")
    value = outcome.event("test_it", "page-faults")["median"]
    assert f"expected page-faults<1000: page-faults {value}" in outcome.failure("test_it")
    assert "plugin.py" not in outcome.text


def test_any_test_can_be_measured(suite):
    outcome = suite('''
import unittest

class TestCase(unittest.TestCase):
    @pytest.mark.expect("page-faults>=1000", repeat=2)
    def test_unittest(self): touch(1000)

@pytest.mark.parametrize("pages", [1000, 2000])
@pytest.mark.expect("page-faults>=1000", repeat=2)
def test_parameters(pages): touch(pages)

@pytest.mark.expect("page-faults>=1000")
class TestClass:
    def test_method(self): touch(1000)
''')
    assert outcome.passed() and len(outcome.cases) == 4
    assert {len(e["runs"]) for r in outcome.records for e in r["events"]} == {1, 2}


def test_a_doctest_can_be_measured_repeatedly(suite):
    outcome = suite('''
pages = 1000

def documented():
    """
    >>> touch(pages)
    >>> pages = 5
    """
''', "--doctest-modules", "--nhmtap-repeat=3", "-p", "measured")
    assert outcome.passed("test_it.documented")
    runs = outcome.event("test_it.documented", "page-faults")["runs"]
    assert len(runs) == 3 and min(runs) >= 1000


@pytest.fixture(autouse=True)
def measured(pytester):
    """A plugin that puts the marker on every test."""
    pytester.makepyfile(measured="""
import pytest

def pytest_itemcollected(item):
    item.add_marker(pytest.mark.expect("page-faults"))
""")


def test_a_name_alone_is_measured(suite):
    outcome = suite("@pytest.mark.expect('page-faults')\ndef test_it(): touch(1000)")
    assert outcome.passed("test_it")
    assert outcome.event("test_it", "page-faults")["median"] >= 1000


def test_metrics_can_be_expected(suite):
    outcome = suite("""
@pytest.mark.expect("cpus_utilized<1000", "page_faults_per_second>0", "cpus_utilized>0")
def test_it(): touch(1000)
""")
    assert outcome.passed("test_it")
    assert list(outcome.properties("test_it")) == ["nhmtap.cpus_utilized",
                                                   "nhmtap.page_faults_per_second"]


@pytest.mark.parametrize("text, words", [
    ("page-faults<many", "'many' in 'page-faults<many' is no number"),
    ("page-faults<>5", "there is no comparison <>"),
    ("page-faults<inf", "'inf' in 'page-faults<inf' is no number"),
    ("<5", "is no comparison with a number"),
    ("page-fautls<5", "did you mean page-faults"),
])
def test_a_mistake_in_an_expectation_fails_the_test_in_a_sentence(suite, text, words):
    outcome = suite(f"@pytest.mark.expect({text!r})\ndef test_it(): touch(1000)")
    assert words in outcome.failure("test_it")
    assert "plugin.py" not in outcome.text


def test_repeats_are_taken_together(suite):
    outcome = suite("""
pages = iter([1000, 5000, 1100])

@pytest.mark.expect("page-faults<1200", repeat=1)
@pytest.mark.expect("page-faults<5500", repeat=3)
def test_it(): touch(next(pages))
""")
    # repeat= of the nearest marker counts, and the expectations of all markers.
    runs = outcome.event("test_it", "page-faults")["runs"]
    assert len(runs) == 3
    assert "cannot tell whether page-faults<1200" in outcome.failure("test_it")
    assert f"page-faults {sorted(runs)[1]}, the median of 3" in outcome.failure("test_it")


def test_what_can_not_be_told_fails_with_its_bounds(suite):
    outcome = suite("""
pages = iter([5000, 1000])

@pytest.mark.expect("page-faults<3000", repeat=2)
def test_it(): touch(next(pages))
""")
    assert re.search(r"nhmtap: cannot tell whether page-faults<3000: .*\(between 10\d\d and 50\d\d\)",
                     outcome.failure("test_it"))
    assert "plugin.py" not in outcome.text


def test_what_can_not_be_told_is_measured_again(suite):
    outcome = suite("""
import itertools

pages = itertools.chain([5000], itertools.repeat(1000))

@pytest.mark.expect("page-faults<3000", repeat=2)
def test_it(): touch(next(pages))
""", "--nhmtap-rerun=7")
    # From nine values on, the bound of the median leaves out the largest; it was reached with ten.
    assert outcome.passed("test_it")
    assert len(outcome.event("test_it", "page-faults")["runs"]) == 10


def test_a_test_may_replace_what_the_measuring_needs(suite):
    outcome = suite("""
import select

@pytest.mark.expect("page-faults>=1000", repeat=2)
def test_it(monkeypatch):
    for name in ("read", "write", "close", "getpid", "pipe", "getcwd"):
        monkeypatch.setattr(os, name, lambda *_: 1 / 0)
    monkeypatch.setattr(select, "poll", None)
    for name in list(os.environ):
        if not name.startswith("PYTEST"):
            monkeypatch.delenv(name)
    touch(1000)

@pytest.mark.expect("cs>=0")
def test_in_a_folder_that_is_gone(tmp_path, monkeypatch):
    pass

@pytest.fixture(autouse=True)
def gone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
""")
    assert outcome.passed(), outcome.text


def test_an_own_failure_of_the_test_comes_first(suite):
    outcome = suite("""
@pytest.mark.expect("page-faults<0")
def test_it(): assert 1 == 2
@pytest.mark.expect("page-faults<0")
def test_skipped(): pytest.skip("no moon")
""")
    assert "assert 1 == 2" in outcome.failure("test_it")
    assert "expected" not in outcome.failure("test_it")
    assert "no moon" in outcome.skip("test_skipped")


UNCOUNTABLE = """
@pytest.mark.expect("r01c0>0")
def test_marked(): touch(1)

def test_fixture(nhmtap):
    nhmtap.stat(["true"], events=["r01c0"])

def test_block(nhmtap):
    with nhmtap.measure("r01c0"):
        pass

def test_handled(nhmtap):
    with pytest.raises(Exception, match="PMU"):
        nhmtap.stat(["true"], events=["r01c0"])
"""


@pytest.fixture
def no_pmu(pytester, monkeypatch):
    """A program that refuses the raw event as a machine without a PMU does."""
    program = pytester.path / "nhmtap"
    refusal = ('{"type":"error","asked":"event r01c0","why":"this machine has no core PMU",'
               '"remedy":"use cpu-clock","exit_status":2}\\n{"type":"end"}\\n')
    program.write_text(f"""#!/bin/sh
case "$*" in
*--version*) echo nhmtap 0.1.0; exit 0;;
*--control*) printf '{refusal}';;
*" -o "*) while [ "$1" != -o ]; do shift; done; printf '{refusal}' > "$2";;
esac
exit 2
""")
    program.chmod(0o755)
    return lambda: monkeypatch.setenv("NHMTAP", str(program))


def test_what_the_machine_lacks_is_a_skip_that_names_it(suite, no_pmu):
    no_pmu()
    outcome = suite(UNCOUNTABLE)
    for name in ("test_marked", "test_fixture", "test_block"):
        assert "nhmtap: event r01c0: this machine has no core PMU. Next: use cpu-clock" in \
            outcome.skip(name)
    assert outcome.passed("test_handled")
    assert "SKIPPED [1] test_it.py" in outcome.text


def test_strictly_it_is_a_failure(suite, no_pmu):
    no_pmu()
    outcome = suite(UNCOUNTABLE, "--nhmtap-strict")
    for name in ("test_marked", "test_fixture", "test_block"):
        assert "event r01c0: this machine has no core PMU. Next: " in outcome.failure(name)
    assert "inprocess.py" not in outcome.text and "program.py" not in outcome.text


def test_a_wrong_request_fails_with_nhmtaps_sentence(suite):
    outcome = suite("""
def test_it(nhmtap):
    nhmtap.stat(["true"], events=["page-fautls"])
""")
    assert "Refused: event 'page-fautls': there is no event of this name here" in \
        outcome.failure("test_it")
    assert '>       nhmtap.stat(["true"], events=["page-fautls"])' in outcome.failure("test_it")
    assert "runs.py" not in outcome.text and "plugin.py" not in outcome.text


def test_the_fixture_measures_commands_and_blocks(suite):
    outcome = suite(f"""
def test_it(nhmtap):
    run = nhmtap.stat([{os.path.abspath(PROGRAMS)!r} + "/puppet", "faults=1234", "exit=3"],
                      events=["page-faults"])
    assert run.status == 3
    assert run["page-faults"] >= 1234
    with nhmtap.measure("page-faults") as m:
        touch(3000)
    assert 3000 <= m["page-faults"].value < 4000
    assert nhmtap.find().origin == "NHMTAP"

def test_a_profile(nhmtap):
    profile = nhmtap.profile([{os.path.abspath(PROGRAMS)!r} + "/demo"])
    assert profile["large_loop"] > 0.3
    assert profile["large_loop"] < 0.95
    assert profile.share("no_such_function") < 0.1

def test_memory(nhmtap):
    mem = nhmtap.mem(["true"], "page-faults", ["-c", "1", "--by", "page"])
    assert mem.samples["aggregated"] == sum(e["samples"] for e in mem.entries) > 0
    assert mem["unmeasured"].value == 1
""")
    assert outcome.passed(), outcome.text
    assert outcome.event("test_it", "page-faults")["median"] >= 1234
    assert outcome.event("test_it", "page-faults #2")["median"] >= 3000


def test_an_assertion_shows_the_count(suite):
    outcome = suite("""
def test_it(nhmtap):
    assert nhmtap.stat(["true"], events=["page-faults"])["page-faults"] < 0
""")
    assert re.search(r"assert page-faults \d+ < 0", outcome.failure("test_it"))


def test_reports_reach_junit(suite):
    outcome = suite("""
pages = iter([1000, 2000])
@pytest.mark.expect("page-faults", repeat=2)
def test_it(): touch(next(pages))
""")
    properties = outcome.properties("test_it")
    assert 1500 <= float(properties["nhmtap.page-faults"]) < 2500
    assert 1000 <= int(properties["nhmtap.page-faults.low"]) < 1500
    assert 2000 <= int(properties["nhmtap.page-faults.high"]) < 2500


def test_the_terminal_has_a_table(suite):
    outcome = suite("""
@pytest.mark.expect("page-faults", "cs")
def test_one(): touch(1000)

@pytest.mark.expect("page-faults")
def test_other(): touch(1000)

def test_without(): pass
""")
    table = outcome.text[outcome.text.index("nhmtap: medians"):].splitlines()
    assert table[1].split() == ["page-faults", "cs"]
    assert re.fullmatch(r"test_it.py::test_one +1,\d{3} +\d+", table[2].rstrip())
    assert re.fullmatch(r"test_it.py::test_other +1,\d{3}", table[3].rstrip())
    assert re.search("in these, of the measuring itself: page-faults \\d", outcome.text)
    assert "test_without" not in "".join(table[1:5])


def test_names_of_events_may_have_operators_in_them():
    parse = Expectation.parse
    assert parse("cpu/event=0xc0,umask=1/u>5")[:4] == ("cpu/event=0xc0,umask=1/u>5",
                                                   "cpu/event=0xc0,umask=1/u", ">", 5)
    assert parse("cpu/event=0xc0/")[:4] == ("cpu/event=0xc0/", "cpu/event=0xc0/", "", 0)
    assert parse(" ipc >= 0.8 ")[1:4] == ("ipc", ">=", 0.8)


def test_a_limit_may_have_a_suffix():
    parse = Expectation.parse
    assert parse("page-faults<10k")[1:] == ("page-faults", "<", 10_000, False, False)
    assert parse("task-clock < 20 ms")[1:] == ("task-clock", "<", 20_000_000, True, False)
    assert parse("branch_miss_ratio<=5%")[1:] == ("branch_miss_ratio", "<=", 5, False, True)


@pytest.mark.parametrize("limit", ["10", "1e3", "0x10", "10k", "2M", "20ms", "1.5 s", "3us", "7 ns", "5%", "5 %", "1_000", "k", "10kk", "10 k k", "inf",
                                   "nan", "1e999", "", "5m", "-3", "+4", ".5", "5.", "0x", "0x1p9999", "٣"])
def test_the_marker_and_the_program_take_the_same_limits(nhmtap, limit):
    try:
        ours = bool(Expectation.parse(f"page-faults<{limit}").operator)
    except ValueError:
        ours = False
    done = nhmtap("stat", "--expect", f"page-faults<{limit}", "--", "true")
    unit = "is no time" in done.err or "no share in percent" in done.err
    assert ours == (unit or "is no number" not in done.err and done.status in (0, 4)), done.err


def test_a_time_is_expected_of_times_alone(suite):
    outcome = suite("""
@pytest.mark.expect("task-clock<100s", "page-faults<1ms")
def test_it(): touch(10)
""")
    assert "'page-faults<1ms': page-faults is no time" in outcome.failure("test_it")


def test_elapsed_is_the_time_that_a_test_takes_in_each_repeat(suite):
    """As for --expect; a sleep is at least as long as asked for."""
    outcome = suite("""
import time
@pytest.mark.expect("elapsed<100s", "page-faults<1e9", repeat=3)
def test_short(): touch(10)
@pytest.mark.expect("elapsed < 20ms", repeat=2)
def test_long():
    print("again")
    time.sleep(0.02)
@pytest.mark.expect("elapsed<2")
def test_bare(): pass
@pytest.mark.expect("page-faults<5%")
def test_share(): touch(10)
""")
    assert "expected elapsed < 20ms: elapsed " in outcome.failure("test_long") and "the median of 2" in outcome.failure("test_long")
    assert "'elapsed<2' has no unit of time: write ns, us, ms or s" in outcome.failure("test_bare")
    assert "page-faults is no share in percent" in outcome.failure("test_share")
    assert "1 passed" in outcome.text and "3 failed" in outcome.text
    assert "on , Linux" not in outcome.text, "where nothing was counted, nobody asked for the machine"


def test_a_name_finds_what_an_ordinary_user_may_measure_of_it():
    counts = Counts([{"type": "count", "event": "page-faults:u", "status": "counted", "value": 3, "scaled": 3},
                     {"type": "count", "event": "cpu/config=1/u", "status": "counted", "value": 4, "scaled": 4},
                     {"type": "count", "event": "cs:k", "status": "counted", "value": 5, "scaled": 5}])
    assert (counts["page-faults"].value, counts["Page-Faults:u"].value, counts["cpu/config=1/"].value) == (3, 3, 4)
    with pytest.raises(KeyError, match="cs was not measured"):
        counts["cs"]


def test_what_runs_no_test_starts_no_machine(suite, monkeypatch):
    monkeypatch.setenv("NHM_BUILD", str(suite.path))  # where there is none
    for option, shown in ("--setup-plan", "test_it.py::test_it (fixtures used: nhmtap, request)"), ("--collect-only", "<Function test_it>"):
        outcome = suite("def test_it(nhmtap): assert 0\n", "--nhmtap-machine", option)
        assert outcome.status == 0 and shown in outcome.text, outcome.text


def test_workers_report_the_same(suite):
    source = "\n".join(f"""
@pytest.mark.expect("page-faults", repeat=5)
def test_{i}(): touch({1000 + 200 * i})
""" for i in range(8))
    alone, together = suite(source, "-n0"), suite(source, "-n4")
    assert alone.passed() and together.passed()
    assert "nhmtap: medians" in together.text
    assert [r["test"] for r in alone.records] == [r["test"] for r in together.records]
    for i in range(8):
        for outcome in (alone, together):
            # Python itself occasionally needs a page. If the runs differ, the median has a range.
            median = outcome.event(f"test_{i}", "page-faults")["median"]
            value = median["value"] if isinstance(median, dict) else median
            assert 1000 + 200 * i <= value < 1200 + 200 * i


def test_tests_that_are_run_again_are_measured_again(suite):
    outcome = suite("""
pages = iter([3000, 1000])
@pytest.mark.expect("page-faults<2000")
def test_it(): touch(next(pages))
""", "--reruns=1")
    assert outcome.passed("test_it")
    runs = outcome.event("test_it", "page-faults")["runs"]
    assert len(runs) == 1
    assert outcome.properties("test_it") == {"nhmtap.page-faults": str(runs[0])}


def test_a_fixture_may_measure_as_well(suite):
    outcome = suite("""
@pytest.fixture
def prepared(nhmtap):
    with nhmtap.measure("page-faults"):
        touch(3000)

@pytest.mark.expect("cs>=0", repeat=3)
def test_it(prepared, nhmtap):
    with nhmtap.measure("page-faults"):
        touch(1000)
""")
    assert [len(outcome.event("test_it", e)["runs"]) for e in ("page-faults", "page-faults #2")] == [1, 3]
    assert outcome.event("test_it", "page-faults")["median"] >= 3000


def test_the_marker_and_the_fixture_may_measure_the_same_event(suite):
    outcome = suite("""
@pytest.mark.expect("PAGE-FAULTS>=3000", repeat=2)
def test_it(nhmtap):
    with nhmtap.measure("page-faults"):
        touch(1000)
    touch(2000)
""")
    assert outcome.passed("test_it")
    assert min(outcome.event("test_it", "PAGE-FAULTS")["runs"]) >= 3000
    assert 1000 <= min(outcome.event("test_it", "page-faults #2")["runs"]) < 2000


def test_what_a_test_starts_is_measured_with_it(suite):
    outcome = suite("""
import inspect, subprocess, sys, threading

@pytest.mark.expect("page-faults>=3000", "page-faults<6000")
def test_forks():
    pid = os.fork()
    if not pid:
        touch(3000)
        os._exit(0)
    os.waitpid(pid, 0)

@pytest.mark.expect("page-faults>=3000", "page-faults<6000")
def test_threads():
    threads = [threading.Thread(target=touch, args=(1000,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

@pytest.mark.expect("page-faults>=30000")
def test_execs():
    program = "import mmap\\n" + inspect.getsource(touch) + "touch(30000)"
    subprocess.run([sys.executable, "-S", "-c", program], check=True)
""")
    assert outcome.passed(), outcome.text


def test_a_failing_test_is_profiled(suite):
    outcome = suite("""
import time

@pytest.mark.expect("page-faults<0")
def test_it():
    end = time.process_time() + 0.3
    while time.process_time() < end:
        sum(range(10000))

def test_without():
    assert 1 == 2
""", "--nhmtap-profile-on-fail")
    assert "nhmtap profile" in outcome.text
    assert re.search(r"\d+\.\d %  \S+", outcome.text)
    page, = (suite.path / "report").glob("*.flamegraph.html")
    assert f"flame graph: {page}" in outcome.text
    assert page.read_text().count("test_it") == 0 and "<html" in page.read_text()
    assert len(outcome.event("test_it", "page-faults")["runs"]) == 1
