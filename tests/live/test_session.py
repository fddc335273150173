# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap run CONFIG: several activities at the same time, in one process."""
import collections
import json
import os
import signal
import subprocess

import hosts
import pytest
from puppet import Puppet, command, touched
from records import NHMTAP, Result, check_stream, parse, program
from sessions import DAY, Session, faults, seen, until, write

N = 1000


@pytest.fixture
def session(nhmtap, tmp_path):
    """Starts a session. It is killed if it still runs when the test ends."""
    made = []

    def begin(activities, *words, **options):
        made.append(Session(nhmtap, tmp_path, activities, *words, **options))
        return made[-1]
    yield begin
    for one in made:
        one.__exit__()


def three(**options):
    """The three ways to see page faults."""
    return [faults("counts", "stat", **options),
            faults("samples", "profile", by="ip", **options),
            faults("addresses", "mem", by="ip", **options)]


NAMES = ["counts", "samples", "addresses"]


def by_ip(result, kind, **members):
    """{ip: samples} of profile or mem records."""
    found = collections.Counter()
    for record in result.of(kind, **members):
        for entry in record["entries"]:
            found[entry["ip"]] += entry["samples"]
    return found


def names_of(records):
    return [r["activity"] for r in records if r["type"] == "start"]


# --- what each gives ------------------------------------------------------------------------------

def test_activities_on_a_process_give_together_what_each_gives_alone(nhmtap, session, puppet):
    alone = {}
    for kind in ("profile", "mem"):
        process = nhmtap.attach(kind, "-e", "page-faults", "-c", 1, "--by", "ip", "-p", puppet.pid)
        puppet.do(f"faults={N}")
        alone[kind] = by_ip(nhmtap.interrupt(process), kind)
    one = session(three(pid=str(puppet.pid)))
    puppet.do(f"faults={N}")
    result = one.end()
    assert {name: seen(result, name) for name in NAMES} == dict.fromkeys(NAMES, N)
    for kind, expected in alone.items():
        assert by_ip(result, kind) == expected
        assert sum(expected.values()) == N and all(map(puppet.touched, expected))
    assert result.one("count")["value"] == N


def test_activities_on_a_command_give_together_what_each_gives_alone(nhmtap, tmp_path):
    config = write(tmp_path / "config", {"activities": three(), "outputs": [{"path": str(tmp_path / "out")}]})
    done = nhmtap("run", config, "--", *command(f"faults={N}", "exit=7"))
    result = Result(done.status, (tmp_path / "out").read_text(), done.err)
    within = touched(done.out)
    for kind in ("profile", "mem"):
        own = sum(n for ip, n in by_ip(result, kind).items() if within(ip))
        assert N <= own <= N + 2  # the page of the function itself may be one more
    # All three begin at the exec and end with the command.
    assert len({seen(result, name) for name in NAMES}) == 1
    assert result.status == result.records[-1]["exit_status"] == result.records[-1]["command"]["exit_code"] == 7
    assert {r["reason"] for r in result.of("end")} == {"exited"}


def test_each_activity_has_its_own_interval(session, puppet):
    paces = {"a": 20, "b": 30, "c": 50, "d": 70}
    kinds = dict(zip(paces, ("stat", "profile", "mem", "stat")))
    one = session([faults(name, kinds[name], pid=str(puppet.pid), interval_ms=ms) for name, ms in paces.items()])
    steps = 0

    def all_have_three(records):
        nonlocal steps
        steps += 1
        puppet.do("faults=10")
        found = collections.Counter(r["activity"] for r in records if r["type"] in ("count", "profile", "mem"))
        return all(found[name] >= 3 for name in paces)
    one.until(all_have_three)
    result = one.end()
    for name, ms in paces.items():
        assert result.one("start", activity=name)["interval_ms"] == ms
        assert seen(result, name) == 10 * steps
        # Each interval begins where the one before ended, so together they cover the whole run.
        parts = [r for r in result.records if r["activity"] == name and "duration_ns" in r]
        assert parts[-1]["type"] == "end"
        assert 0 <= parts[-1]["duration_ns"] - sum(r["duration_ns"] for r in parts[:-1])


def test_an_activity_that_is_not_asked_for_more_reports_every_ten_seconds(nhmtap, tmp_path):
    path = write(tmp_path / "config", [{"name": "a", "command": "stat", "event": "page-faults", "cpu": "0"},
                                       {"name": "b", "command": "profile", "event": "cpu-clock", "cpu": "0"}])
    checked = nhmtap("run", "--check", path)
    assert [r.get("interval_ms") for r in checked.of("start")] == [None, 10000, 10000]
    assert checked.one("start", activity="b")["events"][0]["attr"]["sample_freq"] == 99


def test_a_one_shot_run_has_the_commands_name_in_every_record(nhmtap):
    for words in (["stat", "-e", "page-faults"], ["profile", "-e", "page-faults", "-c", "1"],
                  ["mem", "-e", "page-faults", "-c", "1"]):
        assert {r["activity"] for r in nhmtap(*words, "--", "true").records} == {words[0]}


# --- the start, and what can't start --------------------------------------------------------------

def test_the_sessions_own_records_say_what_it_is_asked_for(session):
    one = session(three(cpu="0"), resource={"service.name": "shop"})
    result = one.end()
    first = result.records[0]
    assert (first["activity"], first["command"], first["config"]) == ("session", "run", str(one.config))
    assert first["activities"] == [{"name": name, "command": kind} for name, kind in
                                   zip(NAMES, ("stat", "profile", "mem"))]
    assert {r["resource"]["service.name"] for r in result.of("start")} == {"shop"}
    last = result.records[-1]
    assert last["activity"] == "session" and last["overhead"]["cpu_time_ns"] > 0


def gone():
    """The id of a process that has ended."""
    with Puppet() as one:
        pid = one.pid
    return str(pid)


def test_an_activity_that_cannot_start_is_told_and_the_others_go_on(session, puppet):
    one = session([faults("lost", "stat", pid=gone()), *three(pid=str(puppet.pid))])
    puppet.do(f"faults={N}")
    result = one.end()
    error = result.one("error")
    assert error["activity"] == "lost" and error["why"]
    assert {r["activity"] for r in result.of("start")} == {"session", *NAMES}
    assert {name: seen(result, name) for name in NAMES} == dict.fromkeys(NAMES, N)
    assert result.status == 0


@pytest.mark.skipif(os.path.exists("/sys/bus/event_source/devices/cpu"), reason="this machine has a PMU")
def test_an_event_that_this_machine_has_not_takes_no_other_activity_with_it(session, puppet):
    one = session([{"name": "cycles", "command": "profile", "event": "cycles", "pid": str(puppet.pid)},
                   *three(pid=str(puppet.pid))])
    puppet.do(f"faults={N}")
    result = one.end()
    assert result.one("error")["activity"] == "cycles"
    assert {name: seen(result, name) for name in NAMES} == dict.fromkeys(NAMES, N)


def test_where_no_activity_can_start_the_session_ends(nhmtap, tmp_path):
    done = nhmtap("run", write(tmp_path / "config", [faults("lost", "stat", pid=gone())]))
    assert done.status == done.records[-1]["exit_status"] != 0
    assert done.of("error", activity="lost") and done.records[-1]["reason"] == "refused"


def test_with_retry_an_activity_is_tried_again_until_it_can_start(session, tmp_path, cgroup):
    """Its cgroup does not exist at first."""
    path, folder = cgroup
    os.rmdir(folder)
    one = session([faults("group", "stat", cgroup=path, retry=True), faults("counts", "stat", cpu="0")])
    one.until(lambda records: [r for r in records if r["type"] == "error"])
    assert "group" not in names_of(one.until(lambda records: True))
    os.mkdir(folder)
    one.until(lambda records: "group" in names_of(records))
    move = f"echo $$ > {folder}/cgroup.procs && exec {program('puppet')} faults={N} exit=0"
    subprocess.run(["sh", "-c", move], check=True, stdout=subprocess.DEVNULL)
    result = one.end()
    assert seen(result, "group") >= N
    assert all(r["activity"] == "group" for r in result.of("error"))


def test_without_retry_it_is_not_tried_again(session, tmp_path, cgroup):
    path, folder = cgroup
    os.rmdir(folder)
    one = session([faults("group", "stat", cgroup=path), faults("again", "stat", cgroup=path, retry=True),
                   faults("counts", "stat", cpu="0")])
    os.mkdir(folder)
    # Waiting activities are tried in order, so the first one would have begun by then.
    one.until(lambda records: "again" in names_of(records))
    result = one.end()
    assert len(result.of("error", activity="group")) == 1
    assert not result.of("start", activity="group")


def test_the_session_waits_for_one_that_is_tried_again_when_the_others_have_ended(session, cgroup):
    path, folder = cgroup
    os.rmdir(folder)
    one = session([faults("group", "stat", cgroup=path, retry=True), faults("counts", "stat", cpu="0")])
    one.do("stop counts")
    os.mkdir(folder)
    one.until(lambda records: "group" in names_of(records))
    assert one.end().records[-1]["reason"] == "terminated"


def test_stop_ends_a_session_in_which_one_waits_to_be_tried_again(session):
    one = session([faults("lost", "stat", pid=gone(), retry=True), faults("counts", "stat", cpu="0")])
    one.control.send("stop\n")
    result = one.wait()
    assert (result.status, result.records[-1]["reason"]) == (0, "stopped")


def test_an_activity_with_retry_that_has_had_enough_ends_the_session_with_it(session):
    one = session([faults("counts", "stat", cpu="0", interval_ms=10, interval_count=2, retry=True)])
    result = one.wait()
    assert (result.status, result.records[-1]["reason"]) == (0, "intervals")


def test_the_end_of_its_process_ends_an_activity_and_not_the_others(session):
    with Puppet() as stays:
        with Puppet() as goes:
            one = session([faults("goes", "stat", pid=str(goes.pid)), faults("stays", "stat", pid=str(stays.pid))])
            goes.do("faults=10")
        one.until(lambda records: [r for r in records if r["type"] == "end"])
        stays.do("faults=100")
        result = one.end()
    assert [(r["activity"], r["reason"]) for r in result.of("end")] == [
        ("goes", "exited"), ("stays", "terminated"), ("session", "terminated")]
    assert (seen(result, "goes"), seen(result, "stays")) == (10, 100)


# --- HUP ------------------------------------------------------------------------------------------

def test_the_same_entry_goes_on_over_hup_without_a_gap(session, puppet):
    one = session(three(pid=str(puppet.pid)))
    puppet.process.stdin.write("faults=7\n" * 200)  # it makes the faults while CONFIG is read again
    puppet.process.stdin.flush()
    for _ in range(3):
        one.reload(list(reversed(three(pid=str(puppet.pid)))))
    for _ in range(200):
        puppet.process.stdout.readline()
    result = one.end()
    for name in NAMES:
        assert seen(result, name) == 1400
        assert len(result.of("start", activity=name)) == len(result.of("end", activity=name)) == 1
    assert not result.of("error")


def test_hup_ends_what_is_gone_begins_what_is_new_and_lets_the_rest_go_on(session, puppet):
    pid = str(puppet.pid)
    one = session([faults("same", "stat", pid=pid), faults("changed", "stat", pid=pid),
                   faults("gone", "profile", pid=pid)])
    puppet.do("faults=10")
    one.reload([faults("same", "stat", pid=pid), faults("changed", "stat", pid=pid, interval_ms=DAY // 2),
                faults("new", "mem", pid=pid)])
    puppet.do("faults=100")
    result = one.end()
    assert {name: seen(result, name) for name in ("same", "changed", "gone", "new")} == {
        "same": 110, "changed": 110, "gone": 10, "new": 100}
    assert [r["value"] for r in result.of("count", activity="changed")] == [10, 100]
    assert [(r["type"], r["reason"]) if r["type"] == "end" else (r["type"], r.get("interval_ms"))
            for r in result.records if r["activity"] == "changed" and r["type"] in ("start", "end")] == [
        ("start", DAY), ("end", "reloaded"), ("start", DAY // 2), ("end", "terminated")]
    assert result.one("end", activity="gone")["reason"] == "reloaded"
    assert result.one("end", activity="same")["reason"] == "terminated"


@pytest.mark.parametrize("text, told", [("{", "line 1, column 1"), ('{"activities": []}', "CONFIG, /activities")],
                         ids=["no JSON", "no CONFIG"])
def test_a_file_that_is_no_config_at_hup_is_told_and_changes_nothing(session, puppet, text, told):
    check_refused_at_hup(session, puppet, lambda one: write(one.config, text), told)


ANOTHER = {"name": "x", "command": "stat", "cpu": "0"}


@pytest.mark.parametrize("activity, members, told", [
    ({"event": "page-faultz"}, {}, "CONFIG, /activities/0: event 'page-faultz'"),
    ({}, {"outputs": [{"path": "/nowhere/x"}]}, "CONFIG, /outputs/0/path"),
    ({}, {"resource": {"rack": "7"}}, "CONFIG, /resource"),
    ({}, {"control": "fifo:/nowhere/x"}, "CONFIG, /control"),
    ({}, {"heartbeat_s": 60}, "CONFIG, /heartbeat_s"),
], ids=["no such event", "no such folder", "another resource", "another control", "another heartbeat"])
def test_a_bad_file_at_hup_is_told_and_changes_nothing(session, puppet, activity, members, told):
    check_refused_at_hup(session, puppet, lambda one: one.write([{**ANOTHER, **activity}], **members), told)


def check_refused_at_hup(session, puppet, spoil, told):
    one = session(three(pid=str(puppet.pid)))
    puppet.do("faults=10")
    spoil(one)
    one.hup()
    puppet.do("faults=100")
    result = one.end()
    error = result.one("error")
    assert error["activity"] == "session" and told in error["asked"] and error["why"]
    assert {name: seen(result, name) for name in NAMES} == dict.fromkeys(NAMES, 110)
    assert {r["reason"] for r in result.of("end")} == {"terminated"}


def test_a_file_that_is_gone_at_hup_changes_nothing(session, puppet):
    one = session(three(pid=str(puppet.pid)))
    one.config.unlink()
    one.hup()
    puppet.do("faults=10")
    result = one.end()
    assert "reading CONFIG" in result.one("error")["asked"]
    assert {name: seen(result, name) for name in NAMES} == dict.fromkeys(NAMES, 10)


def test_the_last_good_file_counts_after_a_bad_one(session, puppet):
    one = session(three(pid=str(puppet.pid)))
    write(one.config, "{")
    one.hup()
    one.reload(three(pid=str(puppet.pid))[:1])
    puppet.do("faults=10")
    result = one.end()
    assert seen(result, "counts") == 10
    assert {r["activity"] for r in result.of("end", reason="reloaded")} == set(NAMES[1:])


def test_files_that_were_renamed_are_opened_anew_and_nothing_is_lost(session, puppet, tmp_path):
    """As logrotate does."""
    log, rotated = tmp_path / "log", tmp_path / "log.1"
    outputs = [{"path": str(log)}]
    one = session([faults("counts", "stat", pid=str(puppet.pid), interval_ms=10)], outputs=outputs)
    for _ in range(10):
        puppet.do("faults=10")
    log.rename(rotated)
    for _ in range(10):  # goes to the renamed file until HUP
        puppet.do("faults=10")
    one.hup()
    for _ in range(10):
        puppet.do("faults=10")
    one.end(path=log)
    result = Result(0, rotated.read_text() + log.read_text(), "")
    assert seen(result, "counts") == 300
    assert json.loads(rotated.read_text().splitlines()[-1])["activity"] == "counts"


def test_outputs_that_hup_changes_have_whole_streams_on_both_sides(session, puppet, tmp_path):
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    activities = three(pid=str(puppet.pid))
    one = session(activities, outputs=[{"path": str(first)}])
    puppet.do("faults=10")
    one.do("snapshot")
    one.reload(activities, outputs=[{"path": str(second)}, {"path": str(third), "activities": ["counts"]}])
    puppet.do("faults=100")
    results = [one.end(path=second), *(Result(0, path.read_text(), "") for path in (first, third))]
    for result, n in zip(results, (100, 10, 100)):
        assert seen(result, "counts") == n
    assert [seen(result, "samples") for result in results] == [100, 10, 0]
    assert [result.records[-1]["reason"] for result in results] == ["terminated", "reloaded", "terminated"]
    assert names_of(results[0].records) == ["session", *NAMES]
    assert len({r["run_id"] for result in results for r in result.records}) == 1


def test_an_output_that_cannot_be_opened_at_hup_changes_none(session, puppet, tmp_path):
    log = tmp_path / "log"
    activities = three(pid=str(puppet.pid))
    one = session(activities, outputs=[{"path": str(log)}])
    one.reload(activities, outputs=[{"path": str(tmp_path / "other")}, {"path": str(tmp_path / "none" / "x")}])
    puppet.do("faults=10")
    result = one.end(path=log)
    assert "/outputs/1/path" in result.one("error")["asked"]
    assert {name: seen(result, name) for name in NAMES} == dict.fromkeys(NAMES, 10)


# --- ends -----------------------------------------------------------------------------------------

@pytest.mark.parametrize("by, reason", [(signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupted")])
def test_a_signal_ends_all_with_every_end_record(session, by, reason):
    result = session(three(cpu="0")).end(by)
    assert [(r["activity"], r["reason"]) for r in result.of("end")] == [
        (name, reason) for name in (*NAMES, "session")]
    assert result.status == 0


IGNORES = "trap '' INT TERM; echo $$; while :; do sleep 1; done"


def test_a_second_signal_ends_a_session_whose_command_does_not(session, tmp_path):
    one = session([faults("counts", "stat", cpu="0")], "sh", "-c", IGNORES, outputs=[{"path": str(tmp_path / "log")}])
    while not one.text():
        one.do("ping")
    one.process.send_signal(signal.SIGTERM)
    until(lambda: one.process.poll() is not None or one.process.send_signal(signal.SIGINT))  # soon after the first, it is the same
    os.kill(int(one.text()), signal.SIGKILL)
    assert one.process.returncode in (128 + signal.SIGTERM, 128 + signal.SIGINT)


# --- control --------------------------------------------------------------------------------------

def test_control_addresses_one_activity_by_its_name(session, puppet):
    one = session(three(pid=str(puppet.pid)))
    puppet.do("faults=1")
    one.do("disable counts")
    puppet.do("faults=10")
    one.do("enable counts")
    one.do("disable samples")
    puppet.do("faults=100")
    one.do("stop addresses")
    puppet.do("faults=1000")
    result = one.end()
    assert {name: seen(result, name) for name in NAMES} == {"counts": 1101, "samples": 11, "addresses": 111}
    assert [r["reason"] for r in result.of("end")] == ["stopped", *["terminated"] * 3]


def test_control_without_a_name_addresses_all(session, puppet):
    one = session(three(pid=str(puppet.pid)))
    for line, n in (("disable", 1), ("enable", 10), ("snapshot", 100)):
        puppet.do(f"faults={n}")
        one.do(line)
    puppet.do("faults=1000")
    one.control.send("stop\n")
    result = one.wait()
    assert {name: seen(result, name) for name in NAMES} == dict.fromkeys(NAMES, 1101)
    assert [r["value"] for r in result.of("count")] == [101, 1000]
    assert {r["reason"] for r in result.of("end")} == {"stopped"}


def test_a_name_that_no_activity_has_is_told_and_not_acknowledged(session):
    one = session([faults("counts", "stat", cpu="0")])
    one.control.send("snapshot nobody\nping\n")
    while "nobody" not in one.said():
        assert one.process.poll() is None
    assert os.read(one.control.ack, 100) == b"ack\n"  # the ping's alone
    assert not one.end().of("error")


# --- outputs --------------------------------------------------------------------------------------

def without(record, *members):
    return {name: value for name, value in record.items() if name not in members}


def test_two_outputs_have_the_same_records(session, puppet, tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    one = session(three(pid=str(puppet.pid)), outputs=[{"path": str(path)} for path in paths])
    puppet.do(f"faults={N}")
    first = one.end(path=paths[0])
    second = Result(0, paths[1].read_text(), "")
    assert [without(r, "time") for r in first.records] == [without(r, "time") for r in second.records]
    assert seen(first, "samples") == N


def test_an_output_may_have_the_records_of_some_activities_alone(session, puppet, tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    one = session(three(pid=str(puppet.pid)), outputs=[
        {"path": str(paths[0]), "activities": ["counts"]},
        {"path": str(paths[1]), "activities": ["addresses", "samples"]}])
    puppet.do(f"faults={N}")
    first = one.end(path=paths[0])
    second = Result(0, paths[1].read_text(), "")
    assert {r["activity"] for r in first.records} == {"session", "counts"}
    assert {r["activity"] for r in second.records} == {"session", "samples", "addresses"}
    assert seen(first, "counts") == seen(second, "samples") == seen(second, "addresses") == N


def test_a_table_may_stand_beside_json(session, puppet, tmp_path):
    log, table = tmp_path / "log", tmp_path / "table"
    one = session(three(pid=str(puppet.pid)), outputs=[
        {"path": str(log)}, {"path": str(table), "format": "table"}])
    puppet.do("faults=1234")
    result = one.end(path=log)
    assert seen(result, "counts") == 1234
    shown = table.read_text()
    assert "page-faults" in shown and "1,234" in shown or "1234" in shown


def test_a_table_names_the_activity_of_each_line(session, puppet, tmp_path):
    table = tmp_path / "table"
    one = session([faults("first", "stat", pid=str(puppet.pid)), faults("second", "stat", pid=str(puppet.pid)),
                   faults("third", "profile", pid=str(puppet.pid))], outputs=[{}, {"path": str(table), "format": "table"}])
    puppet.do("faults=1234")
    one.end()
    lines = [line.split() for line in table.read_text().splitlines()]
    assert [words[1] for words in lines if words[-1:] == ["page-faults"]] == ["first", "second"]
    assert [words[1] for words in lines if "page-faults:" in words] == ["third"]


# --- checking -------------------------------------------------------------------------------------

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def test_check_needs_no_privileges_and_opens_nothing(nhmtap, tmp_path):
    path = write(tmp_path / "config", three(all_cpus=True))
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    trace = tmp_path / "trace"
    done = nhmtap("run", "--check", path, before=[
        "strace", "-f", "-o", trace, "-e", "trace=perf_event_open,bpf", *NOBODY],
        env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})  # a process has only one tracer
    assert done.status == 0, done.err
    assert "perf_event_open" not in trace.read_text() and "bpf(" not in trace.read_text()
    assert names_of(done.records) == ["session", *NAMES]
    assert all(r["events"][0]["name"].startswith("page-faults") for r in done.of("start")[1:])
    assert done.records[-1]["reason"] == "checked"


@pytest.mark.parametrize("members, status", [
    ({"cpu": "4095"}, 2), ({"cgroup": "/nosuch"}, 2), ({"all_cpus": True, "event": "nosuch_pmu/event=1/"}, 2),
    ({"cpu": "0", "event": "nosuch"}, 1), ({"pid": "4194304"}, 0), ({"tid": "4194304"}, 0),
])
def test_the_status_of_check_tells_a_mistake_from_what_the_machine_lacks(nhmtap, tmp_path, members, status):
    """No process has the last number, and processes are not looked for."""
    path = write(tmp_path / "config", [{"name": "a", "command": "stat", "event": "page-faults", **members}])
    assert nhmtap("run", "--check", path).status == status


def test_check_runs_no_command_and_writes_no_file(nhmtap, tmp_path):
    path = write(tmp_path / "config", {"activities": three(), "outputs": [{"path": str(tmp_path / "log")}]})
    done = nhmtap("run", "--check", path, "--", "touch", tmp_path / "touched")
    assert done.status == 0
    assert done.one("start", activity="counts")["target"]["process.command_args"][0] == "touch"
    assert not (tmp_path / "log").exists() and not (tmp_path / "touched").exists()


# --- streams that were stored ---------------------------------------------------------------------

STORED = os.path.join(os.path.dirname(__file__), "stored")


def symbolized(nhmtap, path):
    done = nhmtap("symbolize", path)
    assert done.status == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def drawn(path):
    with open(path, encoding="utf-8") as file:
        return subprocess.run([NHMTAP, "flamegraph"], stdin=file, capture_output=True, text=True, check=True).stdout


def test_streams_of_version_1_are_still_read(nhmtap):
    stored = os.path.join(STORED, "profile-1.0.0.jsonl")
    with open(stored, encoding="utf-8") as file:
        before = [json.loads(line) for line in file]
    assert {r["schema_version"] for r in before} == {"1.0.0"} and "activity" not in before[0]
    after = symbolized(nhmtap, stored)
    assert [r["type"] for r in after] == [r["type"] for r in before]
    samples = sum(e["samples"] for r in before if r["type"] == "profile" for e in r["entries"])
    assert samples == sum(e["samples"] for r in after if r["type"] == "profile" for e in r["entries"]) > 0
    assert "touch" in drawn(stored)


def test_streams_of_several_activities_are_read_too(nhmtap, session, puppet, tmp_path):
    one = session([faults("stacks", "profile", call_graph=True, by="stack", pid=str(puppet.pid)),
                   faults("places", "profile", by="place", pid=str(puppet.pid)),
                   faults("counts", "stat", pid=str(puppet.pid))])
    puppet.do(f"faults={N}")
    result = one.end()
    stored = tmp_path / "stored"
    stored.write_text(result.out)
    done = nhmtap("symbolize", stored)
    after = parse(done.out)
    check_stream(after)
    assert [r["activity"] for r in after] == [r["activity"] for r in result.records]
    assert sum(e["samples"] for r in after if r["type"] == "profile" and r["activity"] == "places"
               for e in r["entries"] if e.get("code", {}).get("symbol")) >= N
    assert "touch" in drawn(stored)


# --- activities that take turns, and many at once -------------------------------------------------

def test_what_a_core_has_but_one_of_is_taken_in_turns_and_check_says_so(nhmtap, tmp_path, host):
    """On a Nehalem that exists only as files."""
    offcore = {"command": "offcore", "side": "u", "response": "LOCAL_DRAM", "all_cpus": True}
    activities = [
        {"name": "reads", **offcore, "request": "DEMAND_DATA_RD"},
        {"name": "stores", **offcore, "request": "DEMAND_RFO"},
        {"name": "near", "command": "mem", "side": "u", "ldlat": 30, "cpu": "0"},
        {"name": "far", "command": "mem", "side": "u", "ldlat": 60, "cpu": "0"},
        {"name": "calls", "command": "branch", "event": "branches:u", "filter": "any_call", "cpu": "0"},
        {"name": "elsewhere", "command": "branch", "event": "branches:u", "filter": "any_ret", "cpu": "7"},
        faults("faults", "stat", cpu="0"),
    ]
    done = nhmtap("run", host(hosts.NEHALEM), "--check", write(tmp_path / "c", activities))
    assert done.status == 0, done.err
    turns = {r["activity"]: {t["what"]: t["with"] for t in r.get("takes_turns", [])} for r in done.of("start")}
    assert {name: taken.get("offcore_rsp") for name, taken in turns.items() if "offcore_rsp" in taken} == {
        "reads": ["stores"], "stores": ["reads"]}
    assert {name: taken["load_latency"] for name, taken in turns.items() if "load_latency" in taken} == {
        "near": ["far"], "far": ["near"]}
    # Any branch record serves to correct precise samples. CPU 7 has its own.
    assert {name: taken["branch_filter"] for name, taken in turns.items() if "branch_filter" in taken} == {
        "near": ["calls"], "far": ["calls"], "calls": ["near", "far"]}
    assert turns["faults"] == {}
    reason = done.one("start", activity="near")["takes_turns"][0]["why"]
    assert "threshold" in reason


@pytest.mark.parametrize("model, names, taken", [
    (26, "ab", {"a": ["b"], "b": ["a"]}),  # Nehalem: one register
    (37, "ab", {}), (37, "abc", {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]})])  # Westmere: two
def test_values_take_turns_where_they_are_more_than_the_registers(nhmtap, tmp_path, host, model, names, taken):
    values = {"a": 0x4001, "b": 0x4002, "c": 0x4004}
    activities = [{"name": name, "command": "stat", "all_cpus": True,
                   "event": f"cpu/event=0xb7,umask=1,offcore_rsp={values[name]:#x}/u"} for name in names]
    done = nhmtap("run", host(hosts.NEHALEM, {"proc/cpuinfo": hosts.cpuinfo(model=model)}), "--check",
                  write(tmp_path / "c", activities))
    assert done.status == 0, done.err
    assert {r["activity"]: t["with"] for r in done.of("start") for t in r.get("takes_turns", [])
            if t["what"] == "offcore_rsp"} == taken


def test_a_trace_may_be_asked_for_without_a_pace(nhmtap, tmp_path, host):
    """The defaults of a session do not conflict with the options."""
    bts = hosts.pmu("intel_bts", 9)
    trace = {"name": "trace", "command": "branch", "trace": True, "filter": "u", "pid": str(os.getpid())}
    done = nhmtap("run", host(hosts.NEHALEM, bts), "--check", write(tmp_path / "c", [trace]))
    assert "--freq" not in done.err, done.err


def test_twelve_activities_account_for_all_while_processes_come_and_go(session, tmp_path):
    """Whole CPUs, four intervals, each kind of activity: every stream closes, by check_stream."""
    kinds = ("stat", "profile", "mem")
    paces = (50, 70, 110, 230)
    activities = [faults(f"{kind}-{ms}", kind, all_cpus=True, interval_ms=ms,
                         **({} if kind == "stat" else {"by": "comm,symbol"})) for kind in kinds for ms in paces]
    one = session(activities)
    with Puppet() as puppet:
        for _ in range(40):
            puppet.do("fork=50")
            puppet.do("vforks=5,10")
            subprocess.run(["sh", "-c", "true & true & true & wait"], check=True)
        # Each has reported at least twice, however busy the machine is.
        one.until(lambda records: all(
            len({r["start_time"] for r in records if r["activity"] == a["name"] and "start_time" in r}) >= 2
            for a in activities))
        result = one.end()
    assert not result.of("error")
    assert len(result.of("end")) == 13
    for activity in activities:
        assert seen(result, activity["name"]) >= 40 * (50 + 50)
        ours = [r for r in result.records if r["activity"] == activity["name"]]
        lasted = {r["start_time"]: r["duration_ns"] for r in ours if "start_time" in r}
        assert 0 <= ours[-1]["duration_ns"] - sum(lasted.values())


def test_what_came_while_the_session_stood_still_is_in_its_next_interval(session, puppet):
    one = session([faults("counts", "stat", pid=str(puppet.pid), interval_ms=100)])
    one.until(lambda records: len([r for r in records if r["type"] == "count"]) >= 2)
    one.process.send_signal(signal.SIGSTOP)
    puppet.do(f"faults={N}")
    one.process.send_signal(signal.SIGCONT)
    one.until(lambda records: sum(r["value"] for r in records if r["type"] == "count") >= N)
    result = one.end()
    assert seen(result, "counts") == N
