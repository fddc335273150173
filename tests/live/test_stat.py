# SPDX-License-Identifier: GPL-2.0-only
"""Counts of programs that do known things a known number of times."""
import math
import os
import re
import statistics

import callers
import pytest
from puppet import Puppet, command, stat_of
from records import parse
from sessions import until


def counted(nhmtap, events, steps, *options):
    return stat_of(nhmtap, steps, "-e", events, *options)


def test_n_page_faults_are_n(nhmtap):
    assert counted(nhmtap, "page-faults", ["faults=1234"]).count("page-faults") == 1234


def test_no_page_faults_are_none(nhmtap):
    assert counted(nhmtap, "page-faults", ["faults=0"]).count("page-faults") == 0


def test_events_of_a_group_are_each_counted(nhmtap):
    result = counted(nhmtap, "{page-faults,minor-faults,major-faults}", ["faults=1234"])
    values = [result.count(name) for name in ("page-faults", "minor-faults", "major-faults")]
    assert values == [1234, 1234, 0]


def test_the_users_side_and_the_kernels_side_add_up(nhmtap):
    result = counted(nhmtap, "page-faults,page-faults:u,page-faults:k", ["faults=1234"])
    assert [result.count(f"page-faults{side}") for side in ("", ":u", ":k")] == [1234, 1234, 0]


def test_the_task_clock_is_the_time_that_the_task_ran(nhmtap):
    # The puppet spins by CLOCK_PROCESS_CPUTIME_ID, which it reads between rounds of some ms. Part of
    # each context switch belongs to that clock, but not to the event.
    result = counted(nhmtap, "task-clock", ["spin=200"])
    assert 190e6 <= result.count("task-clock") <= 400e6
    assert result.one("count")["unit"] == "ns"


def test_a_count_carries_the_times_without_which_it_says_little(nhmtap):
    record = counted(nhmtap, "page-faults", ["spin=50", "faults=10"]).one("count")
    assert record["status"] == "counted"
    # A task's event is enabled while the task runs.
    assert record["enabled_ns"] >= 49e6
    assert record["running_ns"] == record["enabled_ns"]
    assert record["scaled"] == record["value"] == 10


def test_children_and_threads_are_counted_too(nhmtap):
    """A thread or child makes a few faults of its own in addition to the requested ones."""
    result = counted(nhmtap, "page-faults", ["thread=1000", "fork=2000", "thread=3000"])
    assert 6000 <= result.count("page-faults") < 6000 + 200


def test_intervals_are_differences_that_add_up(nhmtap):
    result = counted(nhmtap, "page-faults", ["faults=1000", "spin=100", "faults=2000", "spin=100"],
                     "-I", "10")
    records = result.of("count")
    assert len(records) >= 10
    assert sum(record["value"] for record in records) == 3000
    assert max(record["value"] for record in records) <= 2000
    assert sum(1 for record in records if record["value"] == 0) >= 2
    assert result.one("start")["interval_ms"] == 10


def test_intervals_follow_each_other_without_a_gap(nhmtap, tmp_path):
    # Writing the records of this many events takes time, which belongs to an interval as well.
    result = nhmtap.into(tmp_path / "out", "stat", "-e", ",".join(["cs"] * 60), "-I", "100", "--",
                         *command("spin=400", "exit=0"))
    firsts = result.of("count")[::60]
    gaps = [(nanoseconds(after["start_time"]) - nanoseconds(before["start_time"])) % DAY
            - before["duration_ns"] for before, after in zip(firsts, firsts[1:])]
    # The median, because in some intervals much time may pass between reading the two clocks.
    assert len(gaps) >= 3
    assert abs(statistics.median(gaps)) < 1e6


DAY = 24 * 3600 * 10**9


def nanoseconds(time):
    hours, minutes, seconds, fraction = map(int, re.fullmatch(
        r".*T(..):(..):(..)\.(\d{9})Z", time).groups())
    return ((hours * 60 + minutes) * 60 + seconds) * 10**9 + fraction


def test_repeats_run_the_command_so_often(nhmtap, tmp_path):
    witness = tmp_path / "witness"
    result = nhmtap("stat", "-e", "page-faults", "-r", "4", "--", "sh", "-c",
                    f"echo x >> {witness}")
    assert witness.read_text() == "x\n" * 4
    assert [record["repeat"] for record in result.of("count")] == [1, 2, 3, 4]
    assert result.one("start")["repeats"] == 4


def test_repeats_end_with_their_mean_and_variance(nhmtap):
    result = nhmtap("stat", "-e", "page-faults", "-r", "5", "--", "sh", "-c",
                    "head -c $(($$ % 7 * 100000)) /dev/zero | sort > /dev/null")
    values = [record["value"] for record in result.of("count")]
    summary = result.one("summary")
    mean = sum(values) / 5
    variance = sum((value - mean) ** 2 for value in values) / 4
    assert (summary["executions"], summary["counted"]) == (5, 5)
    assert (summary["min"], summary["max"]) == (min(values), max(values))
    assert summary["mean"] == pytest.approx(mean)
    assert summary["variance"] == pytest.approx(variance, abs=1e-6)
    assert summary["stddev"] == pytest.approx(math.sqrt(variance), abs=1e-6)
    assert summary["stddev_of_mean"] == pytest.approx(math.sqrt(variance / 5), abs=1e-6)


def test_one_run_has_no_variance(nhmtap):
    summary = nhmtap("stat", "-e", "cs", "-r", "1", "--", "true").one("summary")
    assert summary["executions"] == 1
    assert not {"variance", "stddev", "stddev_of_mean"} & set(summary)


def test_repeats_that_count_the_same_say_so(nhmtap):
    """A time of the measured task is never twice the same to the nanosecond; a run of true has no major fault."""
    said = nhmtap("stat", "-e", "major-faults,task-clock", "-r", "3", "--format", "table", "--", "true").out.splitlines()
    assert any(line.split() == ["0", callers.name_of("major-faults"), "(identical", "in", "3", "runs)"] for line in said)
    assert any(f"{callers.name_of('task-clock')}  (mean of 3, standard deviation " in line for line in said)
    once = nhmtap("stat", "-e", "major-faults", "-r", "1", "--format", "table", "--", "true").out
    assert "identical" not in once


def test_a_duration_is_that_of_each_repeat(nhmtap):
    result = nhmtap("stat", "-e", "cs", "-r", "2", "--duration", "0.2", "--", "sleep", "1000")
    first, second = result.of("count")
    assert min(first["duration_ns"], second["duration_ns"]) >= 0.2e9
    assert result.one("summary")["executions"] == 2
    assert (result.one("end")["reason"], result.status) == ("duration", 128 + 15)


def test_without_repeats_there_is_no_summary(nhmtap):
    assert nhmtap("stat", "-e", "cs", "--", "true").of("summary") == []


def test_repeats_with_intervals_begin_each_execution_at_zero(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "stat", "-e", "page-faults", "-r", "3", "-I", "20", "--",
                         *command("faults=1000", "spin=100", "exit=0"))
    for repeat in (1, 2, 3):
        values = [record["value"] for record in result.of("count", repeat=repeat)]
        assert len(values) > 1
        assert 1000 <= sum(values) < 2000, "one execution's, and not what went before"
    assert result.one("summary")["min"] >= 1000


def test_the_last_executions_status_is_passed_on(nhmtap):
    assert nhmtap("stat", "-e", "cs", "-r", "2", "--", "sh", "-c", "exit 9").status == 9


def test_the_default_events_are_counted_wherever_they_can_be(nhmtap):
    result = nhmtap("stat", "--", "true")
    assert result.status == 0
    events = [record["event"] for record in result.of("count")]
    assert events[:4] == ["task-clock", "context-switches", "cpu-migrations", "page-faults"]
    assert "default events" in result.one("start")["default_event_why"]


def value_of(metric, formula_of):
    """The formula's value for the inputs in the record."""
    values = {entry["event"]: entry["value"] for entry in metric["inputs"]}
    return formula_of(values)


def test_without_options_each_count_says_what_it_means(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "stat", "--", *command("faults=1000", "exit=0"))
    formulas = {
        "cpus_utilized": ("task-clock", lambda of: of["task-clock"] / of["duration_time"]),
        "context_switches_per_second": ("context-switches",
                                        lambda of: of["context-switches"] / of["task-clock"] * 1e9),
        "migrations_per_second": ("cpu-migrations", lambda of: of["cpu-migrations"] / of["task-clock"] * 1e9),
        "page_faults_per_second": ("page-faults", lambda of: of["page-faults"] / of["task-clock"] * 1e9)}
    records = [r for r in result.records if r["type"] in ("count", "metric")]
    for name, (event, formula) in formulas.items():
        metric = result.one("metric", metric=name)
        before = records[records.index(metric) - 1]
        assert (metric["explains"], before["event"], before["explained_by"]) == (event, event, name)
        assert metric["value"] == pytest.approx(value_of(metric, formula))


def test_what_is_asked_for_by_name_is_all_that_is_told(nhmtap):
    for asked in (["-e", "task-clock"], ["-M", "cpus_utilized"], ["--expect", "page-faults>=0"]):
        result = nhmtap("stat", *asked, "--", "true")
        assert not [r for r in result.of("count") + result.of("metric") if "explains" in r or "explained_by" in r]


def test_the_table_has_the_meaning_beside_the_count_and_the_times_below(nhmtap):
    result = nhmtap("stat", "--format", "table", "--", *command("faults=1000", "exit=0"))
    assert re.search(r"^ +[\d,]+ ns +task-clock +# \d+\.\d{3} CPUs utilized$", result.out, re.M)
    assert re.search(r"^ +[\d,]+ +page-faults +# \d+\.\d{3} [KM] per second$", result.out, re.M)
    assert re.search(r"\n\n +\d+\.\d{6} s +elapsed\n +\d+\.\d{6} s +user\n +\d+\.\d{6} s +sys\n$", result.out)


@pytest.mark.parametrize("target", [["-a"], ["-C", "0"], ["-p", str(os.getpid())], ["-t", str(os.getpid())]])
def test_the_table_has_no_cpu_time_of_a_command_that_is_not_what_is_counted(nhmtap, target):
    # As perf stat: of what is counted, the CPU time is not known, and that of true would be taken for it.
    result = nhmtap("stat", *target, "-e", "page-faults", "--format", "table", "--", "true")
    assert re.search(r"\n\n +\d+\.\d{6} s +elapsed\n$", result.out)


def test_the_end_has_the_time_of_the_command_and_its_children(nhmtap):
    # The grandchild does the work. Its time becomes the command's when it is waited for. The task clock has
    # the same time except for the part before the exec.
    work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    result = nhmtap("stat", "-e", "task-clock", "--", "sh", "-c", f"sh -c '{work}'; :")
    spent = result.one("end")["command"]
    clock = result.count("task-clock")
    assert spent["user_ns"] + spent["system_ns"] == pytest.approx(clock, rel=0.1, abs=20_000_000)
    assert spent["elapsed_ns"] >= spent["user_ns"] * 0.9


def test_the_times_of_repeats_are_summed_up(nhmtap):
    result = nhmtap("stat", "-r", "3", "-e", "task-clock", "--", "sleep", "0.05")
    assert 150_000_000 <= result.one("end")["command"]["elapsed_ns"] <= result.one("end")["duration_ns"]


def test_a_process_that_goes_on_has_no_times(nhmtap):
    with Puppet() as puppet:
        result = nhmtap("stat", "-e", "task-clock", "--duration", "0.05", "-p", puppet.pid)
    assert "command" not in result.one("end")


def test_an_event_may_be_named_twice(nhmtap):
    result = counted(nhmtap, "page-faults,page-faults", ["faults=100"])
    assert [record["value"] for record in result.of("count")] == [100, 100]


def test_many_events_are_counted_at_once(nhmtap):
    result = counted(nhmtap, ",".join(["page-faults"] * 200), ["faults=100"])
    assert [record["value"] for record in result.of("count")] == [100] * 200


def test_counting_begins_with_the_command_itself(nhmtap):
    # The forked child waits in nhmtap's own code before it becomes the command. enable_on_exec leaves that
    # out, so only the exec'ed program is counted, as perf does.
    ours = nhmtap("stat", "-e", "page-faults:u", "--", "/bin/true").count("page-faults:u")
    again = nhmtap("stat", "-e", "page-faults:u", "--", "/bin/true").count("page-faults:u")
    assert abs(ours - again) < 20 and ours < 500


def test_an_execution_that_a_signal_ended_is_in_no_mean(nhmtap, tmp_path):
    """The third one has but begun."""
    script = f'echo x >> {tmp_path}/runs; [ $(wc -l < {tmp_path}/runs) = 3 ] || exit 0; echo > {tmp_path}/third; exec sleep 1000'
    process = nhmtap.start("stat", "-e", "page-faults", "-r", "5", "-o", tmp_path / "out", "--", "sh", "-c", script)
    until((tmp_path / "third").exists)
    process.terminate()
    assert process.wait(timeout=60) == 143
    found = parse((tmp_path / "out").read_text())
    values = [r["value"] for r in found if r["type"] == "count"]
    summary, = (r for r in found if r["type"] == "summary")
    assert len(values) == 3 and (summary["executions"], summary["counted"]) == (3, 2)
    assert (summary["min"], summary["max"]) == (min(values[:2]), max(values[:2]))
    assert summary["mean"] == pytest.approx(sum(values[:2]) / 2)
