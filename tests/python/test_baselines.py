# SPDX-License-Identifier: GPL-2.0-only
"""Baselines are saved, compared with and merged; which differences count as a change."""
import json
import re
import subprocess

import pytest
from suites import validate

from nhmtap import Measured, baseline, over_repeats

pytest_plugins = "pytester"

# It touches $PAGES pages; repeats differ by up to $NOISE pages.
TEST = """
import itertools

pages, noise = int(os.environ["PAGES"]), int(os.environ.get("NOISE", 0))
extra = itertools.cycle([0, noise, noise // 2])

@pytest.mark.expect("page-faults")
def test_it(): touch(pages + next(extra))

def test_block(nhmtap):
    with nhmtap.measure("page-faults"):
        touch(100)
"""
FAIL = ("--nhmtap-compare=base.json", "--nhmtap-fail=page-faults:1%")


@pytest.fixture
def pages(suite, monkeypatch):
    """Runs the test with a number of pages."""
    def run(number, *options, noise=0):
        monkeypatch.setenv("PAGES", str(number))
        monkeypatch.setenv("NOISE", str(noise))
        return suite(TEST, *options)
    run.path = suite.path
    run.file = suite.path / "base.json"
    return run


def saved(pages, number=10000, **more):
    outcome = pages(number, "--nhmtap-save=base.json", **more)
    assert outcome.passed()
    data = json.loads(pages.file.read_text())
    validate("baseline", data)
    return data


def test_a_baseline_has_each_test_machine_and_event(pages):
    header, *entries = saved(pages)
    assert header == {"type": "baselines", "schema_version": "1.0.0"}
    assert [(e["test"], e["event"]) for e in entries] == [
        ("test_it.py::test_block", "page-faults"), ("test_it.py::test_it", "page-faults")]
    release = subprocess.run(["uname", "-r"], capture_output=True, text=True, check=True).stdout.strip()
    assert {e["kernel"] for e in entries} == {release}
    assert all(len(e["runs"]) == 5 for e in entries)
    assert min(entries[1]["runs"]) >= 10000


def test_no_change_passes(pages):
    saved(pages)
    outcome = pages(10000, *FAIL)
    assert outcome.passed()
    assert abs(outcome.event("test_it", "page-faults")["change"]) < 0.01


def test_a_fifth_more_fails(pages):
    saved(pages)
    outcome = pages(12000, *FAIL)
    assert re.search(r"page-faults rose by \d+\.\d\d %, the limit is 1 %: 120\d\d.* against the "
                     r"baseline's 100\d\d", outcome.failure("test_it"))
    assert outcome.passed("test_block")
    record = outcome.event("test_it", "page-faults")
    assert (record["outcome"], record["real"]) == ("failed", True)
    assert record["change"] == pytest.approx(0.2, abs=0.005)
    assert re.search(r"test_it.py::test_it +~?12,0\d\d \+\d\d\.\d% \^", outcome.text)
    assert re.search(r"\+\d\d\.\d %", outcome.properties("test_it")["nhmtap.page-faults.change"])


def test_on_a_terminal_there_are_arrows_and_colours(pages, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")
    saved(pages)
    red, yellow = "\033[31m", "\033[33m"
    text = pages(12000, *FAIL, "--color=yes").text
    assert re.search(re.escape(red) + r" +~?12,0\d\d \+\d\d\.\d% ↑", text)
    assert re.search(re.escape(yellow) + r" +~?8,0\d\d -\d\d\.\d% ↓", pages(8000, *FAIL, "--color=yes").text)


def test_a_little_more_than_the_limit_fails_too(pages):
    saved(pages)
    assert outcome_of(pages(10150, *FAIL)) == "failed"


def test_less_than_the_limit_passes(pages):
    saved(pages)
    assert outcome_of(pages(10050, *FAIL)) == "rose"


def outcome_of(run):
    return run.event("test_it", "page-faults")["outcome"]


def test_noise_does_not_fail(pages):
    saved(pages, noise=1000)
    outcome = pages(10400, *FAIL, noise=1000)  # the median is 4 % more, the bounds overlap
    assert outcome.passed()
    assert outcome_of(outcome) == "same"
    assert re.search(r"test_it.py::test_it +~10,\d{3} \+\d\.\d% =", outcome.text)


def test_a_fall_fails_only_where_it_is_asked_for(pages):
    saved(pages)
    assert outcome_of(pages(8000, *FAIL)) == "fell"
    assert outcome_of(pages(8000, FAIL[0], "--nhmtap-fail=page-faults:-1%")) == "failed"
    assert outcome_of(pages(12000, FAIL[0], "--nhmtap-fail=page-faults:-1%")) == "rose"
    assert outcome_of(pages(12000, FAIL[0], "--nhmtap-fail=PAGE-FAULTS:+-1%")) == "failed"


def test_the_limit_is_of_its_event(pages):
    saved(pages)
    assert outcome_of(pages(12000, FAIL[0], "--nhmtap-fail=minor-faults:1%")) == "rose"
    assert outcome_of(pages(12000, FAIL[0])) == "rose"


def test_another_machine_has_no_baseline_here(pages):
    data = saved(pages)
    for entry in data[1:]:
        entry["cpu"] = "another"
    pages.file.write_text(json.dumps(data))
    outcome = pages(12000, *FAIL)
    assert outcome.passed()
    assert outcome_of(outcome) == "no_baseline"
    assert re.search(r"test_it.py::test_it +~?12,0\d\d new", outcome.text)


def test_saving_keeps_what_is_of_other_tests_and_machines(pages):
    data = saved(pages)
    others = [dict(data[1], test="test_a.py::test_gone"), dict(data[1], cpu="another")]
    pages.file.write_text(json.dumps(data + others))
    again = saved(pages, 500)
    assert all(other in again for other in others)
    assert len(again) == len(data) + 2
    assert [e["runs"][0] // 100 for e in again[1:] if e["test"].endswith("::test_it")
            and e["cpu"] != "another"] == [5]


def test_a_failing_test_makes_no_baseline(suite):
    suite("@pytest.mark.expect('page-faults<0')\ndef test_it(): pass", "--nhmtap-save=base.json")
    assert json.loads((suite.path / "base.json").read_text())[1:] == []


def test_workers_save_one_file(suite):
    source = "\n".join(f"@pytest.mark.expect('page-faults')\ndef test_{i}(): touch(100)"
                       for i in range(12))
    suite(source, "--nhmtap-save=base.json", "-n4")
    entries = json.loads((suite.path / "base.json").read_text())[1:]
    assert sorted(e["test"] for e in entries) == sorted(f"test_it.py::test_{i}" for i in range(12))
    compared = suite(source, "--nhmtap-compare=base.json", "--nhmtap-fail=page-faults:50%", "-n4")
    assert compared.passed()
    assert {e["outcome"] for r in compared.records for e in r["events"]} <= {"same", "rose", "fell"}


def test_git_merges_what_two_have_added(tmp_path):
    def git(*arguments):
        return subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.org",
                               *arguments], cwd=tmp_path, check=True, capture_output=True)

    def add(name):
        baseline.save(tmp_path / "base.json", {baseline.Key(name, "cpu", "kernel", "cs"): [1, 2]})
    git("init", "-q", "-b", "main")
    for name in ("b", "f", "k"):
        add(name)
    git("add", ".")
    git("commit", "-qm", "base")
    git("checkout", "-qb", "theirs")
    add("d")
    git("commit", "-qam", "theirs")
    git("checkout", "-q", "main")
    add("h")
    add("z")
    git("commit", "-qam", "ours")
    git("merge", "-q", "theirs")
    assert [key.test for key in baseline.load(tmp_path / "base.json")] == ["b", "d", "f", "h", "k", "z"]
    validate("baseline", json.loads((tmp_path / "base.json").read_text()))


@pytest.mark.parametrize("options, words", [
    (["--nhmtap-fail=page-faults:1%"], "--nhmtap-fail needs --nhmtap-compare"),
    (["--nhmtap-compare=base.json", "--nhmtap-fail=page-faults"], "is not EVENT:PERCENT%"),
    (["--nhmtap-compare=base.json", "--nhmtap-fail=page-faults:x%"], "could not convert"),
    (["--nhmtap-compare=none.json"], "No such file"),
    (["--nhmtap-compare=bad.json"], "bad.json holds no baselines of version 1"),
    (["--nhmtap-save=bad.json"], "bad.json holds no baselines of version 1"),
    (["--nhmtap-repeat=0"], "invalid"),
    (["--nhmtap-json=none/tests.jsonl"], "none/tests.jsonl: there is no such folder"),
    (["--nhmtap-json=."], ". is a folder"),
    (["--nhmtap-save=/dev/full"], "/dev/full is no regular file"),
])
def test_a_mistake_in_the_options_is_told_before_any_test(suite, pytester, options, words):
    (pytester.path / "bad.json").write_text("{}")
    baseline.save(pytester.path / "base.json", {})
    pytester.makepyfile("def test_it(): pass")
    done = pytester.runpytest_subprocess("-p", "nhmtap.plugin", *options)
    assert words in done.stdout.str() + done.stderr.str()
    assert done.ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("options, words", [
    (["--nhmtap-save=gone/base.json"], "--nhmtap-save=gone/base.json was not written: No such file or directory"),
    (["--nhmtap-json=/dev/full"], "--nhmtap-json=/dev/full was not written: No space left on device"),
])
@pytest.mark.parametrize("workers", [[], ["-n2"]])
def test_a_file_that_cannot_be_written_is_told_in_the_summary(suite, pytester, options, words, workers):
    (pytester.path / "gone").mkdir()
    pytester.makepyfile("""
        import os, pytest
        @pytest.mark.expect("page-faults>=0")
        def test_it():
            if os.path.exists("gone"):
                os.rmdir("gone")
    """)
    done = pytester.runpytest_subprocess("-p", "nhmtap.plugin", *options, *workers)
    text = done.stdout.str() + done.stderr.str()
    assert words in text and "Traceback" not in text and "INTERNALERROR" not in text
    done.assert_outcomes(passed=1)
    assert done.ret == pytest.ExitCode.USAGE_ERROR


# --- the arithmetic of repeated measurements ------------------------------------------------------


def counted(*values):
    return [Measured("cs", {}, value) for value in values]


def estimated(value, low, high):
    return Measured("cs", {"bound": {"low": low, "high": high}}, value)


def test_the_median_of_few_repeats_lies_between_the_least_and_the_most():
    median = over_repeats(counted(5, 1, 9))
    assert (median.value, median.low, median.high) == (5, 1, 9)
    assert median.record["bound"]["level"] == 0.75


@pytest.mark.parametrize("n, rank, level", [
    (5, 1, 0.9375), (6, 1, 0.96875), (8, 1, 0.9921875), (9, 2, 0.9609375), (20, 6, 0.9586105)])
def test_of_many_repeats_the_bound_leaves_the_outer_ones_out(n, rank, level):
    # The ranks are from tables for the sign test.
    median = over_repeats(counted(*range(1, n + 1)))
    assert (median.low, median.high) == (rank, n + 1 - rank)
    assert median.record["bound"]["level"] == pytest.approx(level)


def test_repeats_that_agree_are_exact_and_one_is_itself():
    assert over_repeats(counted(7, 7, 7)).exact
    one = estimated(5, 4, 6)
    assert over_repeats([one]) is one


def test_the_bounds_of_estimates_are_in_that_of_their_median():
    median = over_repeats([estimated(5, 2, 8), estimated(6, 5, None), estimated(7, 6, 9)])
    assert (median.value, median.low, median.high) == (6, 2, None)


def test_without_a_value_there_is_no_median():
    missing = Measured("cs", {"why": "counted by none"}, None)
    assert over_repeats([*counted(1), missing]) is missing


@pytest.mark.parametrize("new, old, share, real", [
    (counted(101, 101), counted(100, 100), 0.01, True),
    (counted(100, 102), counted(99, 101), 0.01, False),
    (counted(0), counted(0), 0, False),
    ([estimated(120, 90, 150)], counted(100), 0.2, False),
    ([estimated(120, 110, None)], counted(100), 0.2, True),
    (counted(5), counted(0), float("inf"), True),
])
def test_a_change_is_real_where_the_bounds_do_not_overlap(new, old, share, real):
    change = baseline.compare(new, old)
    assert (change.share, change.real) == (pytest.approx(share), real)


def test_an_estimate_is_saved_with_its_bound():
    for measured in (estimated(5, 4, 6), estimated(5, 4, None), *counted(5)):
        packed = baseline.unpack("cs", baseline.pack(measured))
        assert (packed.value, packed.low, packed.high) == (measured.value, measured.low, measured.high)
