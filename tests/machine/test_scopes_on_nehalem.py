# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap stat by CPU, core, package and node, and by cgroup: what is counted where, and how
often."""
import pytest

import known
import records

pytestmark = pytest.mark.modules("intel-uncore", "intel-cstate")

# MMX operations: only the program itself executes any, so the counts are exact.
MMX, N = "r0210:u", known.numbers("float")["FP_COMP_OPS_EXE.MMX"]


def stat(bench, arguments, command, **settings):
    result = bench.run(f"nhmtap stat -o x {arguments} -- {command} && cat x", paranoid=-1,
                       **settings)
    assert result.status == 0, str(result)
    found = records.parse(result.stdout)
    records.check_stream(found)
    return found


def values(found, event, *keys):
    """{keys' values: count} of an event."""
    return {tuple(r[key] for key in keys): r["value"] for r in found
            if r["type"] == "count" and r["event"] == event}


def test_each_core_has_its_threads_and_each_shared_counter_counts_once(siblings):
    events = f"{MMX},cstate_core/c3-residency/,cstate_pkg/c3-residency/,uncore/clockticks/,msr/smi/"
    found = stat(siblings, f"-a --per core,cpu -e {events}",
                 "sh -c 'taskset -c 1 float; taskset -c 2 float; taskset -c 3 float'")
    # CPUs 0 and 1 are one core, 2 and 3 the other: test_threads.py.
    on_cpus = values(found, MMX, "socket", "core", "cpu")
    assert sorted((cpu, count) for (_, _, cpu), count in on_cpus.items()) == [
        (0, 0), (1, N), (2, N), (3, N)]
    cores = {}
    for socket, core, cpu in on_cpus:
        cores.setdefault((socket, core), set()).add(cpu)
    assert sorted(map(sorted, cores.values())) == [[0, 1], [2, 3]]
    masks = siblings.say("cd /sys/bus/event_source/devices; cat cstate_core/cpumask "
                         "cstate_pkg/cpumask uncore/cpumask").split()
    assert masks == ["0,2", "0", "0"]
    # An event that is counted for several CPUs is only in the rows of the CPUs that count for them.
    for event, cpus in [("cstate_core/c3-residency/", {0, 2}), ("cstate_pkg/c3-residency/", {0}),
                        ("uncore/clockticks/", {0}), ("msr/smi/", {0, 1, 2, 3})]:
        assert {cpu for cpu, in values(found, event, "cpu")} == cpus, event
    start, = [r for r in found if r["type"] == "start"]
    assert [(e.get("scope"), e.get("cpus")) for e in start["events"]] == [
        (None, None), ("core", "0,2"), ("socket", "0"), ("socket", "0"), ("cpu", None)]


def test_a_core_sums_up_its_threads(siblings):
    found = stat(siblings, f"-a --per core -e {MMX},msr/tsc/",
                 "sh -c 'taskset -c 0 float; taskset -c 1 float; taskset -c 2 float'")
    assert sorted(values(found, MMX, "socket", "core").values()) == [N, 2 * N]
    tsc = [r for r in found if r["type"] == "count" and r["event"] == "msr/tsc/"]
    # The clocks of all CPUs ran equally long.
    assert max(r["value"] for r in tsc) == pytest.approx(min(r["value"] for r in tsc), rel=0.05)


def test_each_package_has_its_uncore_counters(two_packages):
    loads = known.numbers("chase")["memory.loads"]
    event = "uncore/qhl_request_remote_reads/"
    # All memory belongs to package 1, so its counters have what the program on package 0 reads.
    found = stat(two_packages, f"-a --per socket,node -e {event},{MMX}",
                 "sh -c 'taskset -c 0 chase memory; taskset -c 1 float'", remote_from=0)
    reads = values(found, event, "socket")
    assert reads[1,] >= loads
    assert reads[0,] < loads / 10
    assert values(found, MMX, "socket") == {(0,): 0, (1,): N}
    whole = stat(two_packages, f"-a -e {event}", "taskset -c 0 chase memory", remote_from=0)
    count, = values(whole, event).values()
    # Each package is counted only once.
    assert loads <= count < 2 * loads


READS, HITS, WRITES = "uncore/qmc_normal_reads_any/", "uncore/event=0x8,umask=1/", "uncore/event=0x8,umask=2/"


def perf_values(said, events):
    """The counts of these events in the output of perf stat -x@."""
    lines = [line.split("@") for line in said.splitlines() if "@" in line]
    return {event: int(next(f[0] for f in lines if f[2] == event)) for event in events}


@pytest.mark.parametrize("events, command, least, most", [
    ((READS,), "chase memory", known.numbers("chase")["memory.loads"], 1.5),
    ((HITS, WRITES), "offcore writeback", 0.95 * known.numbers("offcore")["writeback.stores"], 3),
])
def test_perf_sees_what_we_see_in_the_same_run(guest, events, command, least, most):
    """nhmtap runs perf, which runs nhmtap, which runs the program. Each counts all that the inner
    ones do. The difference between two of them is the start and the end of the inner one."""
    spelt = ",".join(events)
    said = guest.say(
        f"nhmtap stat -a -e {spelt} -o a -- perf stat -x@ -a -e {spelt} -o b "
        f"nhmtap stat -a -e {spelt} -o c -- {command} && cat a && echo == && cat b && echo == && cat c",
        paranoid=-1)
    outer, perf, inner = said.split("==\n")
    outer, inner = (records.parse(text) for text in (outer, inner))
    for event in events:
        ours = values(inner, event)[()]
        assert least <= ours <= perf_values(perf, events)[event] <= values(outer, event)[()]
        assert ours <= most * least


IN_CGROUPS = """
    for c in a b; do mkdir -p /sys/fs/cgroup/$c; done
    cat > in <<'END'
echo $$ > /sys/fs/cgroup/$1/cgroup.procs; shift; exec "$@"
END
"""


def test_offcore_requests_are_those_of_each_cgroup(guest):
    said = guest.say(
        IN_CGROUPS + "nhmtap offcore --for-each-cgroup a,/b --request DEMAND_DATA_RD --response LOCAL_DRAM "
        "--side u -o x -- sh -c 'sh in a offcore data; sh in b true' && cat x", paranoid=-1)
    found = {r["cgroup"]: r["cells"][0] for r in records.parse(said) if r["type"] == "offcore"}
    n = known.numbers("offcore")["data.requests"]
    # The counts include the shell's own requests.
    assert n <= found["a"]["value"] <= n + 3000
    assert found["/b"]["value"] <= 3000


@pytest.mark.parametrize("command, program, number", [
    ("mem -c 100 --side u --by comm", "chase memory", "memory.loads"),
    ("branch -c 100 -e BR_INST_RETIRED.ALL_BRANCHES:u --by edge,comm", "count",
     "BR_INST_RETIRED.ALL_BRANCHES"),
])
def test_samples_are_those_of_a_cgroup(guest, command, program, number):
    said = guest.say(
        IN_CGROUPS + f"nhmtap {command} -G a -o x -- sh -c 'sh in a {program}; sh in b {program}' && "
        "cat x", paranoid=-1, tag_all_loads=True)
    n = known.numbers(program.split()[0])[number]
    sampled = [r for r in records.parse(said) if r["type"] == command.split()[0]]
    # What the shell does before it executes the program is included; the program in b is not.
    assert 0.99 * n <= sampled[0]["value"] < 2 * n
    comms = {e["comm"] for r in sampled for e in r["entries"]}
    assert program.split()[0] in comms and comms <= {program.split()[0], "sh"}
