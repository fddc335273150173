# SPDX-License-Identifier: GPL-2.0-only
"""The uncore counters, through Linux's own intel-uncore module."""
import pytest

import known

pytestmark = pytest.mark.modules("intel-uncore")


def uncore(bench, events, command, **settings):
    """Counts of the package while a command runs: {event: count}."""
    spelt = {f"uncore/{e}/": e for e in events}
    perf = f"perf stat -x, -o y -a -e {','.join(spelt)}"
    # perf's own lines are in the caches the second time.
    said = bench.say(f"{perf} true; {perf} {command}; cat y", **settings)
    found = {}
    for line in said.splitlines():
        for spelling, event in spelt.items():
            if f",{spelling}," in line:
                found[event] = int(line.split(",")[0])
    return found


READS, MISSES, HOME = "qmc_normal_reads_any", "event=0x9,umask=1", "qhl_request_local_reads"
HITS, WRITE_HITS = "event=0x8,umask=1", "event=0x8,umask=2"


def test_reads_of_memory_are_those_of_the_flushed_chain(any_kernel):
    loads = known.numbers("chase")["memory.loads"]
    counts = uncore(any_kernel, [READS, MISSES, HOME], "chase memory")
    # perf and the kernel run on the package as well.
    idle = uncore(any_kernel, [READS, MISSES, HOME], "true")
    for event in counts:
        assert loads - 2000 <= counts[event] - idle[event] <= loads + 8000, event


def test_reads_and_write_backs_that_the_llc_satisfies(guest):
    numbers = known.numbers("offcore")
    stores, cleared = numbers["writeback.stores"], numbers["writeback.cleared"]
    counts = uncore(guest, [HITS, WRITE_HITS], "offcore writeback")
    idle = uncore(guest, [HITS, WRITE_HITS], "true")
    # The program's own requests, and up to all of those for pages that Linux cleared and of perf's.
    # How many of the latter the LLC satisfies differs by run.
    for event in (HITS, WRITE_HITS):
        most = stores + 1.1 * cleared + 2 * idle[event]
        assert 0.95 * stores <= counts[event] <= most, event


def test_the_clock_ticks(guest):
    short, long = (uncore(guest, ["clockticks"], f"sleep {s}")["clockticks"] for s in (0.1, 1))
    # A tick is an instruction's time: 200 million a second.
    assert 160e6 <= long - short <= 200e6


def test_a_remote_package_is_asked_for_what_belongs_to_it(two_packages):
    loads = known.numbers("chase")["memory.loads"]
    # All memory belongs to package 1, where perf's -a also counts.
    event = "qhl_request_remote_reads"
    count = uncore(two_packages, [event], "taskset -c 0 chase memory", remote_from=0)[event]
    assert count >= loads
