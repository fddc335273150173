# SPDX-License-Identifier: GPL-2.0-only
"""Twenty cgroups on two CPUs, counted with the counters of whole CPUs at each switch between them: equal to
what the programs' texts say, and to what events of each cgroup count at the same time."""
import known
import records

CGROUPS = 20
MMX, N = "r0210:u", known.numbers("float")["FP_COMP_OPS_EXE.MMX"]
# What both runs count: with MMX they take four general counters and a fixed one, and nothing takes turns.
INSTRUCTIONS, LOADS = "r00c0:u", "r010b:u"



def run(bench):
    """A process is moved while it waits: one that runs takes along what its CPU has counted since its last
    switch. The I-th runs float I times, on one CPU and the other in turns."""
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
    assert start["cgroups_counted"] == {"by": "switches"}
    end = by_switches[-1]["cgroup_switches"]
    assert end["seen"] > CGROUPS and end["missed"] == 0
    counts = [{(r["cgroup"].strip("/"), r["event"]): r["value"] for r in found if r["type"] == "count"}
              for found in (by_switches, by_events)]
    assert not [r for r in by_switches + by_events if r["type"] == "count" and r["status"] == "multiplexed"]
    for i in range(1, CGROUPS + 1):
        assert counts[0][f"group{i}", MMX] == i * N
        for event in (INSTRUCTIONS, LOADS):
            assert counts[0][f"group{i}", event] == counts[1][f"group{i}", event], (i, event)
