# SPDX-License-Identifier: GPL-2.0-only
"""How counters and tables are read. The counters of a whole CPU are read together by a BPF
program that runs on that CPU, or by read(2) if the kernel refuses the program. Those of a thread
are not read while it sleeps. The counts are the same in every case. Tables are read when they
fill, and for records."""
import contextlib
import os
import re
import subprocess
import time

import pytest
from cgroups import inside
from puppet import Puppet, command, online, pinned, wait_asleep
from records import NHMTAP, parse, program
from running import Running

CPUS, ALL = sorted(os.sched_getaffinity(0)), online()

# Root without the capabilities that loading takes: counting needs CAP_PERFMON only.
NO_BPF = ["setpriv", "--bounding-set=-bpf,-sys_admin"]
WAYS = pytest.mark.parametrize("before", [[], NO_BPF], ids=["by a program", "by read(2)"])
# So many events that, without a BPF program, a thread visits each CPU to read them.
MANY = ["-e", ",".join(["page-faults"] * 20)]


@WAYS
@pytest.mark.parametrize("times", [1, 20])
def test_counts_of_each_cpu_are_what_was_done_there(nhmtap, cgroup, before, times):
    path, folder = cgroup
    with Puppet(before=inside(folder, *pinned(CPUS[0]))) as first, \
            Puppet(before=inside(folder, *pinned(CPUS[-1]))) as last:
        process = nhmtap.attach("stat", "-e", ",".join(["page-faults"] * times), "-I", "10", "-G", path,
                                "--per", "cpu", before=before)
        for _ in range(20):
            first.do("faults=200")
            last.do("faults=30")
        first.do("spin=30")
        last.do("faults=30")
        result = nhmtap.interrupt(process)
    done = {CPUS[0]: 20 * 200, CPUS[-1]: 21 * 30} if len(CPUS) > 1 else {CPUS[0]: 20 * 200 + 21 * 30}
    for cpu in ALL:
        records = result.of("count", cpu=cpu)
        intervals = len(records) // times
        sums = [sum(r["value"] for r in records[i::times]) for i in range(times)]
        assert (intervals > 1, sums) == (True, [done.get(cpu, 0)] * times)


@WAYS
def test_several_cgroups_on_several_cpus_are_not_mixed_up(nhmtap, cgroup, before):
    folders = [os.path.join(cgroup[1], name) for name in ("one", "two", "three")]
    with contextlib.ExitStack() as stack:
        puppets = {}
        for i, folder in enumerate(folders):
            os.mkdir(folder)
            stack.callback(os.rmdir, folder)
            for cpu in CPUS:
                puppets[i, cpu] = stack.enter_context(Puppet(before=inside(folder, *pinned(cpu))))
        paths = [f"{cgroup[0]}/{os.path.basename(folder)}" for folder in folders]
        process = nhmtap.attach("stat", "-e", "page-faults,minor-faults", "-I", "10", "--per", "cpu,cgroup",
                                "-G", ",".join(paths), before=before)
        for i, cpu in puppets:
            puppets[i, cpu].do(f"faults={100 * (i + 1) + cpu}")
        result = nhmtap.interrupt(process)
    for i, cpu in puppets:
        for event in ("page-faults", "minor-faults"):
            assert sum(r["value"] for r in result.of("count", cpu=cpu, cgroup=paths[i], event=event)) == \
                100 * (i + 1) + cpu


@WAYS
@pytest.mark.parametrize("events", ["page-faults", "{minor-faults,page-faults}"])
def test_a_cgroup_is_counted_whose_clock_the_kernel_let_go_on_while_nothing_ran(nhmtap, cgroup, before, events):
    path, folder = cgroup
    cpu = CPUS[-1]
    # See tests/programs/last_event.c. By read(2), only a reader on the CPU sees the clock go on.
    with Puppet(before=inside(folder, *pinned(cpu))) as puppet:
        subprocess.run([*inside(folder, *pinned(cpu)), program("last_event"), folder], check=True)
        process = nhmtap.attach("stat", "-e", events, "-I", "10", "--per", "cpu", "-G", path,
                                before=[*before, *pinned(cpu)], records=1 + len(ALL) * len(events.split(",")))
        puppet.do("faults=300")
        result = nhmtap.interrupt(process)
    records = result.of("count", cpu=cpu)
    assert sum(r["value"] for r in records if r["event"] == "page-faults") == 300
    # A software event waits for no counter.
    assert {(r["status"], r.get("why")) for r in records} <= {("counted", None), ("not_counted", "nothing ran in its cgroups")}
    assert all(r["enabled_ns"] == r["running_ns"] for r in records)


@WAYS
def test_no_event_runs_for_longer_in_its_own_cgroup_than_the_run(nhmtap, cgroup, before):
    # The first event of a cgroup that is enabled on a CPU, by a task of the cgroup: Linux 6.18 adds all time since
    # the cgroup's clock was last looked at, for a new cgroup that since the boot.
    path, folder = cgroup
    began = time.monotonic_ns()
    result = nhmtap("stat", "-e", "page-faults,minor-faults", "-I", "10", "--interval-count", "3", "--per", "cpu", "-G", path,
                    before=inside(folder, *pinned(CPUS[-1]), *before))
    took = time.monotonic_ns() - began
    for event in ("page-faults", "minor-faults"):
        records = result.of("count", cpu=CPUS[-1], event=event)
        assert len(records) == 3
        assert 0 < sum(r["running_ns"] for r in records) < took


@WAYS
def test_clocks_of_cpus_are_enabled_all_of_each_interval(nhmtap, before):
    result = nhmtap("stat", "-e", "cpu-clock,page-faults", "-a", "--per", "cpu", "-I", "50", "--interval-count",
                    "5", before=before)
    assert result.status == 0, result.err
    for cpu in ALL:
        for event in ("cpu-clock", "page-faults"):
            records = result.of("count", cpu=cpu, event=event)
            assert len(records) == 5
            assert all(r["status"] == "counted" and r["running_ns"] == r["enabled_ns"] for r in records)
            # They are enabled before the first interval begins, and disabled before the last one ends.
            assert sum(r["enabled_ns"] for r in records) > 0.99 * sum(r["duration_ns"] for r in records[:-1])


def test_a_pinned_event_is_read_as_the_others_are(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", "-e", "page-faults:D,page-faults", "-a", "-I", "10")
        puppet.do("faults=500")
        result = nhmtap.interrupt(process)
    pinned_sum, plain = (sum(r["value"] for r in result.of("count", event=event))
                         for event in ("page-faults:D", "page-faults"))
    assert pinned_sum >= 500 and plain >= 500


def traced(folder, calls, *arguments, before=()):
    """The calls of a run that strace saw: (tid, call), each descriptor with its file."""
    output = folder / "calls"
    # LeakSanitizer also needs to trace the process, and a process has only one tracer.
    subprocess.run([*before, "strace", "-f", "-y", "-e", f"trace={calls}", "-o", output, NHMTAP, *arguments], check=True,
                   env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}, stdin=subprocess.DEVNULL,
                   capture_output=True, timeout=240)
    lines = [line.split(maxsplit=1) for line in output.read_text(encoding="utf-8").splitlines()]
    return [(int(who), call) for who, call in lines if re.match(r"\w+\(", call)]


def test_an_interval_is_one_call_for_each_cpu(tmp_path):
    calls = traced(tmp_path, "bpf,read", "stat", *MANY, "-a", "-I", "10", "--interval-count", "20", "-o",
                   tmp_path / "records")
    runs = [i for i, (_, call) in enumerate(calls) if "BPF_PROG_TEST_RUN" in call]
    assert len(runs) == 20 * len(ALL)
    # Between them, the only reads are those of the timer.
    between = [call for _, call in calls[runs[0]:runs[-1]] if call.startswith("read(")]
    assert len(between) <= 20
    with open(tmp_path / "records", encoding="utf-8") as file:
        assert len([r for r in parse(file.read()) if r["type"] == "count"]) == 20 * 20


@WAYS
def test_nobody_is_moved_to_read(tmp_path, before):
    """The affinity of the main thread stays as it is, and so does the command's."""
    calls = traced(tmp_path, "sched_setaffinity,execve", "stat", *MANY, "-a", "-I", "10", "-o",
                   tmp_path / "records", "--", *command("spin=300"), before=before)
    main = calls[0][0]
    moved = {who for who, call in calls if call.startswith("sched_setaffinity")}
    commands = {who for who, call in calls if call.startswith("execve") and "puppet" in call and who != main}
    assert commands and main not in moved and not commands & moved
    assert bool(moved) == (before == NO_BPF and len(ALL) > 1)


def test_of_a_process_that_sleeps_one_event_is_read_twice(tmp_path):
    with Puppet() as puppet:
        calls = traced(tmp_path, "read", "stat", *MANY, "-p", str(puppet.pid), "-I", "10", "--interval-count",
                       "20", "-o", tmp_path / "records")
    counts = [call for _, call in calls if "[perf_event]" in call]
    # All of them are read the first and the last time, just after enabling and disabling. Before each reading one tells
    # whether the kernel may have taken the events away, which it does while the thread runs.
    assert len(counts) == 20 + 18 + 20 + 20


def test_a_process_that_wakes_up_between_is_counted_to_the_last_event(nhmtap):
    with Puppet(workers=2) as puppet:
        tids = [puppet.do(f"worker={n},0") for n in range(2)]
        process = nhmtap.attach("stat", *MANY, "-I", "5", "--per", "thread", "-p", puppet.pid)
        for n in range(1, 21):
            time.sleep(0.01 * (n % 3))
            puppet.do(f"worker={n % 2},{n}")
        result = nhmtap.interrupt(process)
    for worker, tid in enumerate(tids):
        records = result.of("count", tid=tid)
        done = sum(n for n in range(1, 21) if n % 2 == worker)
        assert [sum(r["value"] for r in records[i::20]) for i in range(20)] == [done] * 20


def test_children_of_a_process_that_sleeps_are_counted(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("stat", *MANY, "-I", "5", "-p", puppet.pid)
        for _ in range(5):
            puppet.do("fork=1000")
        wait_asleep(puppet.pid)  # events are switched off one after the other
        result = nhmtap.interrupt(process)
    # A child makes a few faults of its own in addition to the requested ones.
    sums = [sum(r["value"] for r in result.of("count")[i::20]) for i in range(20)]
    assert len(set(sums)) == 1 and 5000 <= sums[0] < 5000 + 5 * 200


def test_what_reads_counters_takes_no_samples_away(nhmtap, tmp_path):
    """While a BPF program runs, others on its CPU miss their samples: bpf_prog_active."""
    with Puppet() as puppet:
        sampling = nhmtap.attach("profile", "-e", "page-faults", "-c", "1", "--by", "pid", "-p", puppet.pid)
        reading = Running(nhmtap, tmp_path / "out", "stat", "-a", interval=5, events=MANY)
        done = 0
        while done < 100 or len(reading.records()) < 10 * 20:  # intervals of 20 events
            puppet.do("faults=1000")
            done += 1
        reading.end()
        result = nhmtap.interrupt(sampling)
    profiles = result.of("profile")
    assert sum(entry["samples"] for entry in result.entries()) == done * 1000
    assert sum(r["samples"]["expected"] for r in profiles) == done * 1000


def test_a_file_of_tables_is_read_in_blocks(tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "sources.json").write_text(f"[{' ' * 100000}]", encoding="ascii")
    reads = traced(tmp_path, "read", "explain", "--events-dir", tmp_path / "tables", "page-faults")
    assert len(reads) < 1000


def test_nothing_wakes_it_while_nothing_is_sampled(tmp_path):
    """Without names of the kernel's code: its notes of BPF programs, which other tests load meanwhile, would wake it."""
    with Puppet() as puppet:
        calls = traced(tmp_path, "epoll_pwait2", "profile", "-e", "page-faults", "-c", "1", "--by", "ip,pid", "-p", str(puppet.pid),
                       "--duration", "2", "-o", tmp_path / "records")
    assert 1 <= len(calls) <= 10, calls
