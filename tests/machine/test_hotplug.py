# SPDX-License-Identifier: GPL-2.0-only
"""CPUs that go offline in a run, and come back. The kernel removes the events of a CPU that goes
offline, and does not bring them back (perf_event_exit_cpu_context())."""
import io
import itertools
import json
import os

import pytest

import known
import records
from guests import forks
from soak import TWINS, accounted, activities, table_full

pytestmark = pytest.mark.xdist_group("two_cores")  # the machine is shared with other tests

# MMX operations: only the program itself executes any, so the counts are exact.
EVENT, N = "r0210:u", known.numbers("float")["FP_COMP_OPS_EXE.MMX"]
CPU1 = "/sys/devices/system/cpu/cpu1/online"

RUNS = {
    "rows": f"stat -a --per cpu -I 400 -e {EVENT}",
    "sum": f"stat -a -I 400 -e {EVENT} -M cpus_utilized",
    "whole": f"stat -C 1 -e {EVENT}",
    "samples": f"profile -a -e {EVENT} -c 100 --by cpu,comm",
    "uncore": "stat -a -I 400 -e uncore/clockticks/",
}

# Runs float once before, twice while CPU 1 is offline, and three times when it is back. Then CPU 1
# goes offline and online at once, and float runs once more.
SCRIPT = f"""
    {"".join(f"nhmtap {arguments} -o {name} & pids=$pids' '$!;" for name, arguments in RUNS.items())}
    for name in {" ".join(RUNS)}; do until grep -q start $name; do sleep 0.1; done; done
    on_1() {{ taskset -c 1 float; }}
    on_1; sleep 0.7
    echo 0 > {CPU1}; sleep 1; float; float
    echo 1 > {CPU1}; sleep 0.1; on_1; on_1; on_1; sleep 0.7
    echo 0 > {CPU1}; echo 1 > {CPU1}; sleep 0.1; on_1; sleep 0.7
    kill -TERM $pids; wait
    for name in {" ".join(RUNS)}; do cat $name; done
"""


def streams_of(machine, script, names):
    """The records of each run."""
    found = io.StringIO(machine.say(script))
    streams, lines = {}, []
    for line in found:
        lines.append(line)
        if '"type":"end"' in line:
            streams[list(names)[len(streams)]] = records.parse("".join(lines))
            lines = []
    for stream in streams.values():
        records.check_stream(stream)
    return streams


@pytest.fixture(scope="module")
def runs(booted):
    with forks(booted, modules=("intel-uncore",)) as machines:
        return streams_of(machines(cores=2), SCRIPT, RUNS)


def of(stream, kind, **members):
    return [r for r in stream if r["type"] == kind
            and all(r.get(name) == value for name, value in members.items())]


def missing(counts):
    """The missing CPUs of each interval, without repetitions."""
    return [said for said, _ in itertools.groupby(r.get("cpus_missing") for r in counts)]


GONE_TWICE = [None, "1", None, "1", None]


@pytest.mark.parametrize("name", ["rows", "sum", "samples"])
def test_what_goes_and_comes_is_told(runs, name):
    told = [(r["change"], r["cpu"]) for r in of(runs[name], "hotplug")]
    assert told == [("offline", 1), ("online", 1)] * 2


def test_a_cpu_that_comes_back_is_counted_again_to_the_last_event(runs):
    assert sum(r["value"] for r in of(runs["rows"], "count", cpu=1)) == (1 + 3 + 1) * N
    assert sum(r["value"] for r in of(runs["rows"], "count", cpu=0)) == 2 * N


def test_intervals_that_lack_a_cpu_say_so_and_those_of_another_do_not(runs):
    assert missing(of(runs["rows"], "count", cpu=1)) == GONE_TWICE
    assert missing(of(runs["rows"], "count", cpu=0)) == [None]


def test_a_cpu_that_is_away_is_not_counted_and_the_reason_is_said(runs):
    away = of(runs["rows"], "count", cpu=1, status="not_counted")
    assert away
    assert {r["why"] for r in away} == {"its CPU was offline"}


def test_the_sum_of_all_cpus_goes_on_and_says_that_one_was_missing(runs):
    assert sum(r["value"] for r in of(runs["sum"], "count", event=EVENT)) == 7 * N
    assert missing(of(runs["sum"], "count", event=EVENT)) == GONE_TWICE
    assert missing(of(runs["sum"], "metric")) == GONE_TWICE


def test_a_run_of_one_interval_keeps_what_was_counted_before(runs):
    count, = of(runs["whole"], "count")
    assert (count["value"], count["cpus_missing"]) == ((1 + 3 + 1) * N, "1")


def test_samples_come_from_a_cpu_that_is_back(runs):
    profile, = of(runs["samples"], "profile")
    mine = {e["cpu"]: e["samples"] for e in profile["entries"] if e["comm"] == "float"}
    # A counter starts again with the CPU, each time with a whole period.
    assert mine[1] == pytest.approx(5 * N / 100, abs=3)
    assert profile["cpus_missing"] == "1"


def test_an_uncore_counter_stays_with_its_package(runs):
    # CPU 0 counts for the package, and never goes offline.
    counts = of(runs["uncore"], "count")
    assert all(r["status"] == "counted" and r["value"] > 0 for r in counts)


# The first run sees the CPU go offline, the second starts while it is offline. Each program has
# ended when its names are looked up: its mappings are known from the kernel's records alone.
NAMED = {name: f"profile -a -e {EVENT} -c 100 -I 200 --by module,comm" for name in ("before", "meanwhile")}
NAMED_SCRIPT = f"""
    begin() {{ nhmtap {NAMED["before"]} -o $1 & pids="$pids $!"; until grep -q start $1; do sleep 0.1; done; }}
    begin before
    taskset -c 1 float
    echo 0 > {CPU1}; until grep -q offline before; do sleep 0.1; done
    begin meanwhile
    echo 1 > {CPU1}; for name in before meanwhile; do until grep -q '"online"' $name; do sleep 0.1; done; done
    for i in 1 2 3; do taskset -c 1 float; done; sleep 0.5
    kill -TERM $pids; wait
    cat before meanwhile
"""


@pytest.fixture(scope="module")
def named(booted):
    with forks(booted) as machines:
        return streams_of(machines(cores=2), NAMED_SCRIPT, NAMED)


@pytest.mark.parametrize("name, programs", [("before", 4), ("meanwhile", 3)])
def test_programs_that_begin_on_a_cpu_that_has_come_are_named(named, name, programs):
    found = {}
    for entry in [e for r in of(named[name], "profile") for e in r["entries"] if e["comm"] == "float"]:
        module = entry["code"]["module"].rpartition("/")[2]
        found[module] = found.get(module, 0) + entry["samples"]
    assert found == {"float": pytest.approx(programs * N / 100, abs=programs)}
    names = of(named[name], "end")[0]["names"]
    assert (names["notes_lost"], names["unnamed"]["no_mapping"]) == (0, 0)


# `make soak` cannot do this to its host: CPU 1 goes offline and online in each turn of a session in
# which several activities measure the same, while programs and cgroups come and go and CONFIG is
# read again. After a CPU came online nothing runs in the cgroup until each activity reports it.
# `make soak-machine` has more turns.
TURNS = int(os.environ.get("NHMTAP_SOAK_TURNS", "2"))
CGROUP = "/sys/fs/cgroup/soak"
COUNTS = {"name": "mmx", "command": "stat", "event": EVENT, "interval_ms": 500, "cgroup": "/soak", "all_cpus": True}


def soak_config(turn):
    return json.dumps({"activities": [*activities("/soak", turn), COUNTS], "outputs": [{"path": "all"}],
                       "control": "fifo:ctl,ack"})


SOAK_SCRIPT = f"""
    mkdir {CGROUP}; mkfifo ctl ack; exec 3<>ctl 4<>ack
    {"".join(f"echo '{soak_config(turn)}' > config{turn};" for turn in range(3))}
    obey() {{ echo $1 >&3; read answer <&4; }}
    held() {{ echo "held $(ls -l /proc/$pid/fd | grep -c anon_inode) $(sed -n 's/VmRSS:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/$pid/status)" >> held; }}
    told() {{ until [ $(grep -c '"change":"'$1 all) -ge $2 ]; do sleep 0.1; done; }}
    inside() {{ sh -c 'echo 0 > '$1'/cgroup.procs; for i in 1 2 3 4; do taskset -c '$2' sh -c :; done; taskset -c '$2' float'; }}
    cp config0 config
    nhmtap run config & pid=$!
    obey ping; held
    for turn in $(seq {TURNS}); do
        inside {CGROUP} 0 & one=$!; inside {CGROUP} 1; wait $one
        echo 0 > {CPU1}; told offline $(($turn * {len(activities("", 0)) + 1}))
        mkdir {CGROUP}/inner; inside {CGROUP}/inner 0; rmdir {CGROUP}/inner
        echo 1 > {CPU1}; told online $(($turn * {len(activities("", 0)) + 1}))
        cp config$(($turn % 3)) config; kill -HUP $pid; obey ping
        inside {CGROUP} 1; held
    done
    obey snapshot; kill -TERM $pid; wait $pid; echo status $?; rmdir {CGROUP}; cat held; echo =; cat all
"""


def test_a_session_stays_true_while_a_cpu_goes_and_comes(booted):
    with forks(booted) as machines:
        said = machines(cores=2).say(SOAK_SCRIPT, timeout=600 + 60 * TURNS)
    words, found = said.split("=\n", 1)
    found = records.parse(found)
    records.check_stream(found)
    assert "status 0" in words
    sums = {name: accounted(found, name) for name in TWINS}
    assert len(set(sums.values())) == 1 and sums["counts"], sums
    assert sum(r["value"] for r in found if r["type"] == "count" and r["activity"] == "mmx") == TURNS * 4 * N
    assert all(table_full(found, name) < 0.01 for name in TWINS[1:])
    held = [tuple(map(int, line.split()[1:])) for line in words.splitlines() if line.startswith("held")]
    print("descriptors and KiB, turn by turn:", held)
    # Descriptors of events, BPF objects and watches. Files of programs are open while a process
    # maps them.
    assert len({descriptors for descriptors, _ in held[1:]}) == 1, held
    # The names of a turn's programs may take 2 MiB for a while.
    assert held[-1][1] <= 1.05 * held[len(held) // 2][1] + 2048, held


# A session begins while CPU 1 is offline and the highest frequency of samples is low. SIGHUP then adds what needs both,
# and an activity that was refused is tried again.
LATER = {"before": [{"name": "first", "command": "stat", "event": EVENT, "interval_ms": 86400000, "all_cpus": True},
                    {"name": "again", "command": "profile", "event": "cpu-clock", "freq": 5000, "interval_ms": 86400000,
                     "all_cpus": True, "retry": True}]}
LATER["after"] = LATER["before"] + [
    {"name": "rows", "command": "stat", "event": EVENT, "interval_ms": 86400000, "all_cpus": True, "per": "cpu"},
    {"name": "one", "command": "stat", "event": EVENT, "interval_ms": 86400000, "cpu": "1"},
    {"name": "often", "command": "profile", "event": "cpu-clock", "freq": 4000, "interval_ms": 86400000, "all_cpus": True}]
LATER_SCRIPT = f"""
    most() {{ echo 25 > /proc/sys/kernel/perf_cpu_time_max_percent; echo $1 > /proc/sys/kernel/perf_event_max_sample_rate; }}
    echo 0 > {CPU1}; most 1000
    {"".join(f"echo '{json.dumps(dict(activities=asked, outputs=[dict(path='all')]))}' > {name};"
             for name, asked in LATER.items())}
    begun() {{ until grep '"type":"start"' all | grep -q '"activity":"'$1'"'; do sleep 0.1; done; }}
    cp before config; nhmtap run config & pid=$!; begun first
    echo 1 > {CPU1}; most 20000
    begun again
    cp after config; kill -HUP $pid; begun often
    taskset -c 1 float
    kill -TERM $pid; wait; cat all
"""


def test_what_begins_later_in_a_session_finds_the_machine_as_it_is_then(booted):
    with forks(booted) as machines:
        found = records.parse(machines(cores=2).say(LATER_SCRIPT))
    records.check_stream(found)
    assert {r["activity"] for r in of(found, "error")} == {"again"}
    counts = {name: {r.get("cpu", "all"): r["value"] for r in of(found, "count", activity=name)} for name in ("rows", "one")}
    assert counts["rows"] == {0: 0, 1: N} and sum(counts["one"].values()) == N
    assert {r["host"]["cpus_online"] for r in of(found, "start", activity="rows")} == {2}
