# SPDX-License-Identifier: GPL-2.0-only
"""Profiles of programs whose samples lie in known places."""
import os
import subprocess

import pytest
from puppet import Puppet, command, ids, touched
from records import program

EVERY_FAULT = ["-e", "page-faults", "-c", "1"]


def in_touch(result, **keys):
    """Samples in the puppet's function."""
    where = touched(result.said)
    return sum(entry["samples"] for entry in result.entries(**keys) if where(entry["ip"]))


def test_the_samples_of_a_function_that_alone_runs_lie_in_it(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", "-e", "cpu-clock:u", "-F", "4000", "--by",
                         "ip", "--", *command("spin=500", "exit=0"))
    total = sum(entry["samples"] for entry in result.entries())
    assert total > 100
    assert in_touch(result) >= 0.99 * total


def test_without_an_event_the_start_record_says_which_was_taken_and_why(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", "--", *command("spin=100", "exit=0"))
    start = result.one("start")
    assert [event["name"] for event in start["events"]] in (["cpu-clock"], ["cycles"], ["cycles:P"])
    assert "PMU" in start["default_event_why"]
    assert result.one("profile")["event"] == start["events"][0]["name"]
    assert start["by"] == ["symbol", "comm"]


def test_an_event_that_was_asked_for_needs_no_reason(nhmtap):
    assert "default_event_why" not in nhmtap("profile", "-e", "cs", "--", "true").one("start")


def test_every_fault_is_a_sample_at_its_instruction(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", "ip", "--",
                         *command("faults=5000", "exit=0"))
    # One more: the puppet makes it before it is ready.
    assert in_touch(result) == 5001


def test_a_period_takes_every_nth(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("profile", "-e", "page-faults", "-c", "10", "--by", "ip", "-p",
                                puppet.pid)
        puppet.do("faults=5000")
        result = nhmtap.interrupt(process)
    entry, = [entry for entry in result.entries() if puppet.touched(entry["ip"])]
    assert (entry["samples"], entry["period"]) == (500, 5000)


@pytest.mark.parametrize("key", ["pid", "tid", "comm", "cpu", "ip", "cgroup"])
def test_each_key_may_stand_alone(nhmtap, tmp_path, key):
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", key, "--",
                         *command("faults=100", "exit=0"))
    assert result.one("start")["by"] == [key]
    assert all(set(entry) == {key, "samples", "period"} for entry in result.entries())
    assert len({entry[key] for entry in result.entries()}) == len(result.entries())


def test_all_keys_may_stand_together_in_any_order(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by",
                         "cpu,tid,ip,cgroup,pid,comm", "--", *command("faults=100", "exit=0"))
    assert set(result.entries()[0]) == {"ip", "cgroup", "pid", "tid", "cpu", "comm", "samples",
                                        "period"}
    assert in_touch(result) == 101


def test_threads_are_told_apart_by_tid_and_are_one_by_pid(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", "pid,tid,ip", "--",
                         *command("faults=300", "thread=200", "thread=100", "exit=0"))
    pid, first, second = ids(result.said)
    assert in_touch(result, pid=pid) == 601
    assert [in_touch(result, tid=tid) for tid in (pid, first, second)] == [301, 200, 100]


def test_children_are_followed_and_told_apart_by_pid(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", "pid,ip", "--",
                         *command("faults=300", "fork=200", "fork=100", "exit=0"))
    assert [in_touch(result, pid=pid) for pid in ids(result.said)] == [301, 200, 100]


def test_grandchildren_are_followed(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", "ip", "--", "sh", "-c",
                         '"$@" & wait', "sh", *command("faults=300", "fork=200", "exit=0"))
    assert in_touch(result) == 501


def test_children_that_are_made_while_it_attaches_are_sampled(nhmtap, tmp_path):
    """Their events are copies of their parent's. A copy that was made before the program was attached
    would count and give no sample."""
    with subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"]) as shell:
        try:
            results = [nhmtap.into(tmp_path / f"out{i}", "profile", *EVERY_FAULT, "--by", "pid", "-p", shell.pid,
                                   "--duration", "0.05") for i in range(20)]
        finally:
            shell.kill()
    records = [result.of("profile")[0] for result in results]
    for record in records:
        # One of them may be about to fault at the end.
        assert record["samples"]["aggregated"] >= record["value"] - 2
    # On a busy machine the shell may not run in some of these times.
    assert sum(record["samples"]["aggregated"] for record in records) > 0


def test_a_thread_goes_by_its_own_name(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", "comm,ip", "--",
                         *command("name=" + b"marionette".hex(), "faults=200", "exit=0"))
    assert in_touch(result, comm="marionette") == 200
    assert in_touch(result, comm="puppet") == 1


def test_a_name_may_have_fifteen_bytes(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", "comm,ip", "--",
                         *command("name=" + b"fifteen-letters".hex(), "faults=200", "exit=0"))
    assert in_touch(result, comm="fifteen-letters") == 200


@pytest.mark.parametrize("which", [min, max])
def test_the_key_cpu_is_where_it_ran(nhmtap, tmp_path, which):
    cpu = which(os.sched_getaffinity(0))
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", "cpu,ip", "--",
                         "taskset", "-c", cpu, *command("faults=200", "exit=0"))
    assert in_touch(result, cpu=cpu) == in_touch(result) == 201


def test_the_key_cgroup_is_the_path_below_the_mount(nhmtap, tmp_path, cgroup):
    path, folder = cgroup
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", "cgroup,ip", "--", "sh",
                         "-c", f'echo $$ > {folder}/cgroup.procs; exec "$@"', "sh",
                         *command("faults=200", "exit=0"))
    assert in_touch(result, cgroup=path) == 201


def test_a_cgroup_that_has_gone_keeps_its_number(nhmtap, tmp_path, cgroup):
    _, folder = cgroup
    below = f"{folder}/gone"
    script = (f'mkdir {below}; number=$(stat -c %i {below}); echo "gone $number" >&2;'
              f'echo $$ > {below}/cgroup.procs; "$@";'
              f'echo $$ > {folder}/cgroup.procs; rmdir {below}')
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", "cgroup,ip", "--", "sh",
                         "-c", script, "sh", *command("faults=200", "exit=0"))
    number = result.err.split()[1]
    assert in_touch(result, cgroup=f"id:{number}") == 201


def test_entries_come_with_the_most_samples_first(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", "tid", "--",
                         *command("thread=300", "thread=3000", "thread=1000", "exit=0"))
    samples = [entry["samples"] for entry in result.entries()]
    assert samples == sorted(samples, reverse=True)
    assert samples[0] >= 3000 and len(samples) == 4


def test_top_keeps_the_largest_and_sums_up_the_rest(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", "-e", "page-faults", "-c", "2", "--by", "tid",
                         "--top", "2", "--",
                         *command("thread=300", "thread=3000", "thread=1000", "exit=0"))
    record = result.one("profile")
    _, large, middle = ids(result.said)[:3]
    assert [entry["tid"] for entry in record["entries"]] == [large, middle]
    assert record["rest"]["entries"] == 2  # the thread with 300, and the puppet
    assert record["rest"]["period"] == 2 * record["rest"]["samples"]
    assert record["rest"]["samples"] >= 150


def test_a_top_that_is_not_reached_leaves_no_rest(nhmtap):
    assert "rest" not in nhmtap("profile", *EVERY_FAULT, "--by", "comm", "--top", "1000", "--",
                                "true").one("profile")


@pytest.mark.parametrize("events, samples", [
    ("page-faults,minor-faults,dummy", {"page-faults": 1001, "minor-faults": 1001, "dummy": 0}),
    ("{page-faults,minor-faults}:u", {"page-faults:u": 1001, "minor-faults:u": 1001})])
def test_several_events_and_the_members_of_a_group_keep_their_samples_apart(nhmtap, tmp_path, events, samples):
    result = nhmtap.into(tmp_path / "out", "profile", "-e", events, "-c", "1", "--by", "ip", "--",
                         *command("faults=1000", "exit=0"))
    where = touched(result.said)
    for event, expected in samples.items():
        record = result.one("profile", event=event)
        assert sum(e["samples"] for e in record["entries"] if where(e["ip"])) == expected


def test_the_users_side_has_no_address_of_the_kernel(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", "-e", "page-faults:u", "-c", "1", "--by",
                         "ip", "--", *command("faults=1000", "exit=0"))
    assert in_touch(result) == 1001
    assert all(int(entry["ip"], 16) < 1 << 63 for entry in result.entries())


def test_the_kernels_side_has_no_address_of_the_user(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", "-e", "page-faults:k", "-c", "1", "--by",
                         "ip", "--", *command("faults=1000", "exit=0"))
    assert result.entries(), "execve(2) makes faults of its own when it copies the arguments"
    assert all(int(entry["ip"], 16) >= 1 << 63 for entry in result.entries())


def test_a_run_without_samples_has_a_profile_without_entries(nhmtap):
    record = nhmtap("profile", "-e", "dummy", "-c", "1", "--", "true").one("profile")
    assert (record["entries"], record["value"], record["samples"]["expected"]) == ([], 0, 0)


def test_a_program_that_execs_another_is_followed(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", "ip", "--", "sh", "-c",
                         'exec "$@"', "sh", *command("faults=300", "exit=0"))
    assert in_touch(result) == 301


def test_the_faults_program_faults_where_its_symbol_says(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--by", "ip", "--",
                         program("faults"), "2500")
    assert max(entry["samples"] for entry in result.entries()) == 2500
