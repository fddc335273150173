# SPDX-License-Identifier: GPL-2.0-only
"""Twenty cgroups on two CPUs, counted by reading the counters of whole CPUs at each switch between
cgroups. The counts equal those of the programs' texts, and those of the cgroups' own events at the
same time."""
import known
import records

CGROUPS = 20
MMX, N = "r0210:u", known.numbers("float")["FP_COMP_OPS_EXE.MMX"]
# What both runs count: with MMX they take four general counters and a fixed one, so nothing is
# multiplexed.
INSTRUCTIONS, LOADS = "r00c0:u", "r010b:u"


def run(bench):
    """The I-th process runs float I times, on the two CPUs in turn. It is moved to its cgroup while
    it waits: a running process takes along what its CPU has counted since the last switch."""
    names = ",".join(f"group{i}" for i in range(1, CGROUPS + 1))
    done = bench.run(f"""
        rm -rf /tmp/go* /tmp/pids /tmp/switches /tmp/events
        cd /sys/fs/cgroup
        for i in $(seq {CGROUPS}); do
            mkdir -p group$i
            mkfifo /tmp/go$i
            sh -c 'read x < /tmp/go'$i'; for n in $(seq '$i'); do taskset -c $((n % 2)) float; done' &
            echo $! >> /tmp/pids
        done
        sleep 2
        i=0
        for pid in $(cat /tmp/pids); do i=$((i + 1)); echo $pid > group$i/cgroup.procs; done
        nhmtap stat -o /tmp/switches --format json -e {MMX},{INSTRUCTIONS},{LOADS} -a --per cgroup -- sh -c '
            nhmtap stat -o /tmp/events --format json -e {INSTRUCTIONS},{LOADS} --for-each-cgroup {names} & counting=$!
            sleep 4
            for i in $(seq {CGROUPS}); do echo go > /tmp/go$i; done
            while cat /sys/fs/cgroup/group*/cgroup.procs | grep -q .; do sleep 1; done
            kill $counting
            wait'
        cat /tmp/switches; echo =; cat /tmp/events
        rmdir group*""", paranoid=-1)
    assert done.status == 0, str(done)
    return [records.parse(text) for text in done.stdout.split("=\n")]


def test_each_has_what_its_programs_executed_to_the_last_digit(two_cores):
    by_switches, by_events = run(two_cores)
    start = next(r for r in by_switches if r["type"] == "start")
    assert start["cgroups_counted"]["by"] == "switches"
    end = by_switches[-1]["cgroup_switches"]
    assert end["seen"] > CGROUPS and end["missed"] == 0
    counts = [{(r["cgroup"].strip("/"), r["event"]): r["value"] for r in found if r["type"] == "count"}
              for found in (by_switches, by_events)]
    assert not [r for r in by_switches + by_events if r["type"] == "count" and r["status"] == "multiplexed"]
    for i in range(1, CGROUPS + 1):
        assert counts[0][f"group{i}", MMX] == i * N
        for event in (INSTRUCTIONS, LOADS):
            assert counts[0][f"group{i}", event] == counts[1][f"group{i}", event], (i, event)


def test_what_was_counted_around_switches_that_were_missed_is_told_apart(two_cores):
    """A process is inside bpf() nearly all the time. With full preemption the others run meanwhile,
    and the kernel runs no BPF program on that CPU then. No MMX instruction is lost, and none is
    counted for a wrong cgroup."""
    times = 15
    with open(records.program("bpfcalls"), "rb") as file:
        calls = file.read()
    done = two_cores.run(f"""
        cat > bpfcalls
        chmod +x bpfcalls
        mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
        echo full > /sys/kernel/debug/sched/preempt
        cat > in <<-'.'
            mkdir -p /sys/fs/cgroup/$1
            echo $$ > /sys/fs/cgroup/$1/cgroup.procs
            exec taskset -c 0 sh -c "$2"
.
        cat > all <<-'.'
            sh in calls 'exec ./bpfcalls 100000 2097152' & calls=$!
            sleep 0.5
            sh in a 'for i in $(seq {times}); do float; done' & a=$!
            sh in b 'for i in $(seq {times}); do float; done'
            wait $a
            kill $calls
            wait $calls
            true
.
        nhmtap stat -o out --format json -e {MMX} -a --per cgroup -- perf stat -x , -o perf -a -e cgroup-switches -- sh all
        rmdir /sys/fs/cgroup/a /sys/fs/cgroup/b /sys/fs/cgroup/calls
        cat out; echo =; tail -n 1 perf""", paranoid=-1, stdin=calls)
    assert done.status == 0, str(done)
    said, perf = done.stdout.split("=\n")
    found = records.parse(said)
    counts = {r["cgroup"].strip("/"): r["value"] for r in found if r["type"] == "count"}
    switches = found[-1]["cgroup_switches"]
    # Each shell moves itself into its cgroup. A move from a cgroup that is not known is told as a switch that was missed.
    assert switches["missed"] and 0 <= switches["seen"] - int(perf.split(",")[0]) <= 3
    assert counts["a"] <= times * N and counts["b"] <= times * N and counts["(missed)"]
    assert counts["a"] + counts["b"] + counts["(missed)"] == 2 * times * N
    assert not set(counts.values()) - {counts["a"], counts["b"], counts["(missed)"], 0}


def test_events_that_take_turns_are_scaled_visibly(two_cores):
    """Five events for four counters."""
    events = [MMX, LOADS, "r020b:u", "r01c4:u", "r00c5:u"]
    found = records.parse(two_cores.say(f"""
        nhmtap stat --format json -e {",".join(events)} -a --per cgroup -- sh -c '
            mkdir /sys/fs/cgroup/turns
            echo $$ > /sys/fs/cgroup/turns/cgroup.procs
            for i in 1 2 3 4 5 6 7 8 9 10; do float; done
            echo $$ > /sys/fs/cgroup/cgroup.procs'
        rmdir /sys/fs/cgroup/turns""", paranoid=-1))
    counts = {r["event"]: r for r in found if r["type"] == "count" and r["cgroup"] == "/turns"}
    assert set(counts) == set(events)
    shared = [r for r in counts.values() if r["status"] == "multiplexed"]
    assert shared
    for record in shared:
        assert record["running_ns"] < record["enabled_ns"]
        assert abs(record["scaled"] - record["value"] * record["enabled_ns"] / record["running_ns"]) <= 1
