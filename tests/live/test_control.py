# SPDX-License-Identifier: GPL-2.0-only
"""When counting begins, pauses and ends: --delay, --control, --interval-count."""
import os
import select
import signal

import pytest
from puppet import Puppet
from records import Result, program


def test_only_what_happens_while_it_is_enabled_counts(nhmtap, control):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", "-e", "page-faults", "-D", "-1", control.option,
                                "-p", puppet.pid)
        for switch, faults in (("ping", 1), ("enable", 100), ("disable", 10), ("enable", 1000)):
            control.do(switch)
            puppet.do(f"faults={faults}")
        control.do("stop")
        result = nhmtap.finish(process)
    assert result.count("page-faults") == 1100
    assert (result.status, result.one("end")["reason"]) == (0, "stopped")
    assert result.one("start")["delay_ms"] == -1


def test_a_snapshot_is_a_report_of_what_came_since_the_last_one(nhmtap, control):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", "-e", "page-faults", control.option, "-p", puppet.pid)
        for faults in (5, 50, 500):
            puppet.do(f"faults={faults}")
            control.do("snapshot")
        result = nhmtap.interrupt(process)
    assert [record["value"] for record in result.of("count")] == [5, 50, 500, 0]


def test_a_snapshot_is_written_before_it_is_acknowledged(nhmtap, control):
    process = nhmtap.attach("stat", "-e", "cs", "-a", control.option)
    control.do("snapshot")
    ready, _, _ = select.select([process.stdout], [], [], 0)
    assert ready
    nhmtap.interrupt(process)


def test_what_was_switched_off_all_the_time_says_so(nhmtap, control):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", "-e", "page-faults", "-D", "-1", control.option,
                                "-p", puppet.pid)
        puppet.do("faults=100")
        control.do("snapshot")
        result = nhmtap.interrupt(process)
    for record in result.of("count"):
        assert (record["status"], record["value"], record["enabled_ns"]) == ("not_counted", 0, 0)
        assert "switched off" in record["why"]
    assert len(result.of("count")) == 2


WAITING_SHELL = 'read go < "$0"; exec "$@"'


@pytest.mark.parametrize("enabled", [False, True])
def test_a_command_is_not_counted_from_its_exec_on(nhmtap, control, tmp_path, enabled):
    os.mkfifo(tmp_path / "go")
    process = nhmtap.start(
        "stat", "-e", "page-faults", "-D", "-1", control.option, "-o", tmp_path / "out", "--",
        "sh", "-c", WAITING_SHELL, tmp_path / "go", program("puppet"), "faults=1000", "exit=0")
    control.do("enable" if enabled else "ping")
    with open(os.open(tmp_path / "go", os.O_RDWR), "wb") as go:  # does not wait, as in Control
        go.write(b"go\n")
        go.flush()
        process.communicate(timeout=60)
    result = Result(process.returncode, (tmp_path / "out").read_text(), "")
    assert result.status == 0
    assert (result.count("page-faults") >= 1000) == enabled
    attr = result.one("start")["events"][0]["attr"]
    assert "enable_on_exec" not in attr and attr["disabled"] == 1


def test_nothing_is_counted_before_a_delay_is_over(nhmtap):
    record = nhmtap("stat", "-e", "page-faults", "-D", "3600000", "--", "true").one("count")
    assert record["status"] == "not_counted"
    assert "switched off" in record["why"]


def test_when_a_delay_is_over_counting_begins(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", "-e", "page-faults", "-D", "50", "-I", "20", "-p", puppet.pid)
        process.began += process.stdout.readline()  # the first interval's count
        puppet.do("faults=1000")
        result = nhmtap.interrupt(process)
    assert sum(record["value"] for record in result.of("count")) == 1000
    assert result.one("start")["delay_ms"] == 50
    assert sum(r["duration_ns"] for r in result.of("count")) <= result.one("end")["duration_ns"] - 50e6


def test_a_duration_is_counted_from_the_delays_end_on(nhmtap):
    result = nhmtap("stat", "-e", "cs", "-a", "-D", "100", "--duration", "0.2", "-I", "50")
    assert result.one("end")["reason"] == "duration"
    assert result.one("end")["duration_ns"] >= 0.3e9
    assert sum(record["duration_ns"] for record in result.of("count")) >= 0.2e9


def test_a_delay_of_nothing_is_none(nhmtap):
    start = nhmtap("stat", "-e", "cs", "-D", "0", "--", "true").one("start")
    assert "delay_ms" not in start
    assert start["events"][0]["attr"]["enable_on_exec"] == 1


def test_so_many_intervals_and_no_more(nhmtap):
    result = nhmtap("stat", "-e", "cs", "-a", "-I", "20", "--interval-count", "3")
    assert (result.status, result.one("end")["reason"]) == (0, "intervals")
    assert len(result.of("count")) == 3


def test_the_last_interval_ends_the_command(nhmtap):
    result = nhmtap("stat", "-e", "cs", "-I", "20", "--interval-count", "2", "--", "sleep", "100")
    assert (result.status, result.one("end")["reason"]) == (128 + signal.SIGTERM, "intervals")
    assert len(result.of("count")) == 2


def test_samples_obey_too_and_their_account_closes(nhmtap, control):
    with Puppet() as puppet:
        process = nhmtap.attach("profile", "-e", "page-faults", "-c", "1", "--by", "comm", "-D", "-1",
                                control.option, "-p", puppet.pid)
        puppet.do("faults=10")
        control.do("enable")
        puppet.do("faults=100")
        control.do("disable")
        puppet.do("faults=1000")
        control.do("snapshot")
        control.do("stop")
        result = nhmtap.finish(process)
    assert [r["samples"]["aggregated"] for r in result.of("profile")] == [100, 0]


def test_what_is_no_command_is_told_and_not_acknowledged(nhmtap, control):
    process = nhmtap.attach("stat", "-e", "cs", "-a", control.option)
    control.send("\nbanana\n" + "x" * 1000 + "\nping\n")
    assert control.acknowledged() == "ack\n"
    assert control.acknowledged(timeout=0) == ""
    result = nhmtap.interrupt(process)
    assert "there is no command 'banana'" in result.err


def test_several_commands_at_once_and_in_pieces_are_all_done(nhmtap, control):
    process = nhmtap.attach("stat", "-e", "cs", "-a", control.option)
    for piece in ("ping\nsnap", "shot\0di", "sable\nenable\n"):
        control.send(piece)
    assert "".join(control.acknowledged() for _ in range(4)) == "ack\n" * 4
    assert len(nhmtap.interrupt(process).of("count")) == 2


def test_descriptors_serve_as_well_and_a_writer_may_go(nhmtap):
    ours, theirs = os.pipe()[::-1]
    process = nhmtap.attach("stat", "-e", "cs", "-a", f"--control=fd:{theirs}", pass_fds=[theirs])
    os.close(theirs)
    os.write(ours, b"snapshot\n")
    os.close(ours)
    process.began += process.stdout.readline()
    result = nhmtap.interrupt(process)
    assert (len(result.of("count")), result.one("end")["reason"]) == (2, "interrupted")


@pytest.mark.parametrize("arguments, words", [
    (["--interval-count", "3"], "there are no intervals to be counted"),
    (["--delay", "-1"], "nothing would ever switch counting on"),
    (["--delay", "-2"], "it takes a whole number from 0"),
    (["--control", "fifo:/no/such"], "No such file"),
    (["--control", "fifo:/dev/null"], "that is no FIFO"),
    (["--control", "fd:77"], "Bad file descriptor"),
    (["--control", "fd:x"], "no number of a descriptor"),
    (["--control", "/dev/null"], "it begins with neither"),
    (["--control", "fd:0,0,0"], "more than two parts"),
])
def test_what_can_not_be_is_refused_before_anything_runs(nhmtap, tmp_path, arguments, words):
    result = nhmtap("stat", "-e", "cs", *arguments, "--", "touch", tmp_path / "ran")
    assert result.status == 1
    assert words in result.err
    assert not (tmp_path / "ran").exists()


def test_the_command_gets_none_of_its_descriptors(nhmtap, tmp_path):
    ends = [end for _ in range(2) for end in os.pipe()]
    for end in ends:
        os.set_inheritable(end, True)
    result = nhmtap.into(tmp_path / "out", "stat", "-e", "cs", f"--control=fd:{ends[0]},{ends[3]}", "--",
                         "sh", "-c", "ls /proc/$$/fd", pass_fds=(ends[0], ends[3]))
    for end in ends:
        os.close(end)
    assert result.status == 0
    assert not {str(ends[0]), str(ends[3])} & set(result.said.split())
