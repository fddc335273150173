# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap mem on page faults, which have addresses but no latency and no source: the same BPF
program, keys and account as for load-latency records, on any machine."""
import collections
import ctypes
import os
import re
import select
import signal

import pytest
from puppet import Puppet, pinned, stop, wait_asleep
from records import held, program

FAULTS = ["-e", "page-faults:u", "-c", "1"]
N = 200
# Samples of a CPU's ring where there are few CPUs: RING_SAMPLES_MOST of bpf/shared.h.
RING = 1 << 16
PIDFD_GETFD = 438  # include/uapi/asm-generic/unistd.h


class Run:
    """A run of tests/programs/pages.c, and what the program printed about itself."""

    def __init__(self, nhmtap, tmp_path, *arguments, pages=N, how=lambda *command: command):
        self.result = nhmtap.into(tmp_path / "out", "mem", *FAULTS, *arguments, "--",
                                  *how(program("pages"), pages))
        self.base, self.start, self.stop = (int(word, 16) for word in self.result.said.split())
        self.addresses = [self.base + 4096 * k + 72 * (k % 32) for k in range(pages)]

    def entries(self):
        """The entries of the pages that it touched deliberately. Each entry has the ip among its keys."""
        return [e for e in self.result.entries("mem") if self.start <= int(e["ip"], 16) < self.stop]


@pytest.mark.parametrize("key, of", [
    ("page", lambda address: hex(address & ~4095)),
    ("cacheline", lambda address: hex(address & ~63)),
    ("offset", lambda address: address & 63),
])
def test_every_fault_is_found_at_its_address(nhmtap, tmp_path, key, of):
    run = Run(nhmtap, tmp_path, "--by", f"ip,{key}")
    found = collections.Counter()
    for entry in run.entries():
        found[entry[key]] += entry["samples"]
    assert found == collections.Counter(of(address) for address in run.addresses)


def test_the_samples_add_up_to_the_faults(nhmtap, tmp_path):
    run = Run(nhmtap, tmp_path, "--by", "ip")
    record = run.result.of("mem")[0]  # further parts have entries alone
    assert record["samples"]["aggregated"] == record["value"] == sum(
        entry["samples"] for entry in run.result.entries("mem"))
    assert sum(entry["samples"] for entry in run.entries()) == N


def test_what_was_not_measured_is_said_not_invented(nhmtap, tmp_path):
    # The kernel's stack must not be taken for a latency or a source: perf_sample_data.sample_flags.
    record = Run(nhmtap, tmp_path, "--by", "source").result.one("mem")
    source, = record["sources"]
    assert source["source"] == "unmeasured"
    latencies = {name: value for name, value in source.items() if name.startswith("latency_")}
    assert latencies == {"latency_sum": 0, "latency_sum_period": 0, "latency_max": 0, "latency_histogram": {},
                         "latency_histogram_period": {}}


@pytest.mark.parametrize("key", ["ip", "pid", "tid", "comm", "cpu", "cgroup", "cacheline", "offset",
                                 "page", "node", "tlb", "lock"])
def test_each_key_may_stand_alone_beside_the_source(nhmtap, tmp_path, key):
    result = Run(nhmtap, tmp_path, "--by", key).result
    assert set(result.one("start")["by"]) == {"source", key}
    values = {"samples", "period", "latency_sum", "latency_sum_period", "latency_max", "latency_histogram",
              "latency_histogram_period"}
    assert all(set(entry) == {"source", key} | values for entry in result.entries("mem"))


def test_a_full_table_is_counted(nhmtap, tmp_path):
    # More pages than a table has slots for (bpf/shared.h): each page is a key of its own.
    record = Run(nhmtap, tmp_path, "--by", "page", "--top", "1", pages=40000,
                 how=held).result.one("mem")
    assert record["samples"]["expected"] == record["value"]
    assert record["samples"]["lost"]["table_full"] >= 40000 - 2 * 8192


def test_keys_that_there_are_not_are_refused_with_those_that_there_are(nhmtap):
    result = nhmtap("mem", *FAULTS, "--by", "lien", "--", "true")
    assert result.status == 1
    assert "cacheline" in result.one("error")["remedy"]
    assert result.one("end")["reason"] == "refused"


@pytest.mark.parametrize("threshold", ["0", "2", "65536", "-3", "many"])
def test_thresholds_out_of_range_are_refused(nhmtap, threshold):
    result = nhmtap("mem", "--ldlat", threshold, "--", "true")
    assert result.status == 1
    assert "from 3 to 65535" in result.err


def test_a_target_that_ends_at_once_still_gives_an_account(nhmtap):
    result = nhmtap("mem", *FAULTS, "--", "true")
    assert result.status == 0
    assert result.one("end")["reason"] == "exited"
    record = result.of("mem")[0]  # further parts have entries alone
    assert record["samples"]["expected"] == record["value"]


def test_a_table_fits_a_terminal(nhmtap, tmp_path):
    out = tmp_path / "out"
    nhmtap("mem", *FAULTS, "--format", "table", "-o", out, "--", program("pages"), N)
    lines = out.read_text().splitlines()
    assert lines[1].split()[:2] == ["source", "samples"]
    assert lines[2].split()[0] == "unmeasured"
    # Functions are named below; their names alone may be longer than a line.
    assert re.search(r" 200 +[\d.]+% +unmeasured  pages  touch \(pages\)$", lines[4])
    assert max(len(line.partition("  pages  ")[0]) for line in lines) <= 80


def test_a_stream_has_every_sample_in_its_order(nhmtap, tmp_path):
    run = Run(nhmtap, tmp_path, "--stream", "--by", "ip")
    samples = run.result.of("sample")
    assert [r["address"] for r in samples if run.start <= int(r["ip"], 16) < run.stop] == \
        [hex(address) for address in run.addresses]
    assert [r["sample_time"] for r in samples] == sorted(r["sample_time"] for r in samples)
    assert all("latency" not in r and r["source"] == "unmeasured" for r in samples)
    # The tables have all of them too, by source alone.
    record, end = run.result.one("mem"), run.result.one("end")
    assert [set(e) & {"ip", "source"} for e in record["entries"]] == [{"source"}]
    assert end["stream"] == {"samples": len(samples), "ring_lost": 0}
    assert record["samples"]["aggregated"] == len(samples)


def test_samples_that_nobody_read_in_time_are_counted(nhmtap):
    with Puppet(before=pinned()) as puppet:
        process = nhmtap.attach("mem", *FAULTS, "--stream", "-p", puppet.pid)
        stop(process.pid)
        puppet.do(f"faults={RING + 5000}")
        process.send_signal(signal.SIGCONT)
        result = nhmtap.interrupt(process)
    end = result.one("end")
    # One of a ring's places is always being written.
    assert end["stream"]["ring_lost"] >= 5000 + 1
    assert end["stream"]["samples"] == len(result.of("sample"))
    # The pipe holds 1 MiB, and the queue for it 8.
    assert sum(end["stream"].values()) == end["samples"]["aggregated"]


def is_woken(pid):
    """Whether a BPF program has told the process that its memory fills: its ring of wakes (bpf/wake.bpf.h) can be read."""
    libc, process = ctypes.CDLL(None), os.pidfd_open(pid)
    maps = [int(fd) for fd in os.listdir(f"/proc/{pid}/fd") if os.readlink(f"/proc/{pid}/fd/{fd}") == "anon_inode:bpf-map"]
    copies = [libc.syscall(PIDFD_GETFD, process, fd, 0) for fd in maps]
    assert maps and min(copies) >= 0
    waiting = select.poll()
    for copy in copies:
        waiting.register(copy, select.POLLIN)
    woken = any(events & select.POLLIN for _, events in waiting.poll(0))
    for fd in (process, *copies):
        os.close(fd)
    return woken


def test_a_ring_that_fills_is_read_before_it_is_full(nhmtap):
    """It is also read every 20 ms. Whether it would be before that is seen while nhmtap is stopped."""
    with Puppet(before=pinned()) as puppet:
        process = nhmtap.attach("mem", *FAULTS, "--stream", "-p", puppet.pid)
        for _ in range(4):
            wait_asleep(process.pid)
            stop(process.pid)
            assert not is_woken(process.pid)
            puppet.do("faults=40000")
            assert is_woken(process.pid)
            process.send_signal(signal.SIGCONT)
            wait_asleep(process.pid)
        result = nhmtap.interrupt(process)
    end = result.one("end")
    assert end["samples"]["aggregated"] >= 4 * 40000
    assert end["stream"]["ring_lost"] == 0


def test_addresses_of_data_are_told_by_variable_and_offset(nhmtap, tmp_path):
    # What each page is, by construction: tests/programs/variables.c.
    mapped = tmp_path / "mapped"
    mapped.write_bytes(bytes(4 * 4096))
    result = nhmtap.into(tmp_path / "out", "mem", *FAULTS, "--by", "symbol,variable_offset", "--", program("variables"), mapped)
    own = os.path.realpath(program("variables"))
    found = collections.Counter()
    for entry in result.entries("mem"):
        if entry["code"].get("symbol") in ("store", "load") and entry["code"]["module"] == own:
            found[entry.get("variable"), entry.get("variable_offset"), entry["data_module"]] += entry["samples"]
    # Kernels from 6.6 on note the heap as other memory as long as it has not grown.
    anonymous = found.pop((None, None, "[anon]")) + found.pop((None, None, "[heap]"), 0)
    assert anonymous == 4 + 4
    expected = {(name, 4096 * k + 24 * (k + 1), own): 1 for name in ("zeros", "filled", "hidden") for k in range(4)}
    assert found == {**expected, ("constant", 24, own): 1, (None, None, "[stack]"): 4, (None, None, str(mapped)): 4}
    account = result.one("end")["names"]["data"]
    assert account["named"] + sum(account["unnamed"].values()) == result.of("mem")[0]["samples"]["aggregated"]
    assert account["named"] >= 13 and account["unnamed"]["no_variable"] >= 16


def test_a_variable_is_one_entry_without_its_offset(nhmtap, tmp_path):
    mapped = tmp_path / "mapped"
    mapped.write_bytes(bytes(4 * 4096))
    result = nhmtap.into(tmp_path / "out", "mem", *FAULTS, "--by", "variable", "--", program("variables"), mapped)
    assert result.one("start")["by"] == ["variable"]
    found = {e.get("variable"): e for e in result.entries("mem")}
    assert "code" not in found["zeros"] and "variable_offset" not in found["zeros"]
    assert [found[name]["samples"] for name in ("zeros", "filled", "constant")] == [4, 4, 1]


def test_what_an_existing_process_has_mapped_is_known_by_name(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("mem", *FAULTS, "--by", "ip,variable", "-p", puppet.pid)
        puppet.do("faults=20")
        result = nhmtap.interrupt(process)
    found = {e["data_module"]: e["samples"] for e in result.entries("mem") if puppet.touched(e["ip"])}
    assert found == {"[anon]": 20}


def test_a_stream_is_not_told_by_variables(nhmtap):
    result = nhmtap("mem", *FAULTS, "--stream", "--by", "variable", "--", "true")
    assert result.status == 1
    assert "address" in result.one("error")["why"]
