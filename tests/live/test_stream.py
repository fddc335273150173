# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap stream: every sample as a record. The samples are page faults, each of which is one with -c 1."""
import collections
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time

import callers
import pytest
from puppet import Puppet, command, pinned, stop
from records import Result, program
from running import reader_of
from sessions import Session, until

FAULTS = ["-e", "page-faults:u", "-c", "1"]
# Samples of a CPU's ring: RING_SAMPLES_MOST of bpf/shared.h.
RING = 1 << 16
ENVELOPE = {"type", "schema_version", "time", "run_id", "seq", "activity", "event", "sample_time"}
N = 200


def own(record):
    return set(record) - ENVELOPE


class Pages:
    """A run of tests/programs/pages.c, which faults at known addresses in one function, `touch`."""

    def __init__(self, nhmtap, tmp_path, *arguments):
        self.result = nhmtap.into(tmp_path / "out", "stream", *FAULTS, *arguments, "--", program("pages"), N)
        self.base, self.start, self.stop = (int(word, 16) for word in self.result.said.split())
        self.addresses = [hex(self.base + 4096 * k + 72 * (k % 32)) for k in range(N)]
        self.samples = self.result.of("sample")


def test_each_fault_is_a_record_at_its_address_and_in_its_function(nhmtap, tmp_path):
    run = Pages(nhmtap, tmp_path, "--fields", "addr,symbol,comm")
    assert [r["address"] for r in run.samples if r["code"].get("symbol") == "touch"] == run.addresses
    assert {r["comm"] for r in run.samples} == {"pages"}
    record, end = run.result.one("stream"), run.result.one("end")
    assert record["value"] == record["samples"]["aggregated"] == len(run.samples)
    assert end["stream"] == {"samples": len(run.samples), "ring_lost": 0}


@pytest.mark.parametrize("fields, members", [
    ("time", set()), ("ip", {"ip"}), ("symbol", {"code"}), ("line,cpu", {"code", "cpu"}), ("addr,period", {"address", "period"}),
    ("pid,tid,comm", {"pid", "tid", "comm"}), ("regs", {"registers"}), ("stack", {"stack"}), ("stack,place", {"stack", "code"}),
    ("source", {"source"}), ("cgroup", {"cgroup"}), ("offset,page", {"offset", "page"}),
])
def test_a_sample_has_the_fields_that_were_asked_for(nhmtap, tmp_path, fields, members):
    run = Pages(nhmtap, tmp_path, "--fields", fields)
    assert run.result.one("start")["fields"] == fields.split(",")
    assert len(run.samples) >= N and all(own(r) == members for r in run.samples)


@pytest.mark.parametrize("way", ["tables", "fp"])
def test_a_sample_has_its_stack(nhmtap, tmp_path, way):
    run = Pages(nhmtap, tmp_path, "--fields", "addr,stack,symbol", "--unwind", way)
    stacks = [[frame.get("symbol") for frame in r["stack"]] for r in run.samples if r["address"] in run.addresses]
    assert len(stacks) == N and all(stack[0] == "touch" for stack in stacks)
    assert way == "fp" or all(stack[1] == "main" for stack in stacks)
    assert all(r["stack"][0] == r["code"] for r in run.samples if r["address"] in run.addresses)


def test_stacks_are_no_deeper_than_asked_for(nhmtap, tmp_path):
    with Puppet() as puppet:
        process = nhmtap.attach("stream", *FAULTS, "--fields", "stack", "--max-stack", "3", "-I", "20", "-p", puppet.pid)
        for _ in range(5):
            puppet.do("faults=200")
        result = nhmtap.interrupt(process)
    samples = result.of("sample")
    assert sum(r["samples"]["aggregated"] for r in result.of("stream")) == len(samples) >= 1000
    assert all(1 <= len(r["stack"]) <= 3 for r in samples)
    assert all(r["truncated"] for r in samples if len(r["stack"]) == 3)


def test_a_line_leaves_out_outer_frames_that_it_has_no_room_for_and_other_formats_have_them(nhmtap, tmp_path):
    """120 frames of a file whose path has more than 100 bytes take more than 12 KB."""
    calls, lines, rows = tmp_path / ("long" * 25), tmp_path / "lines", tmp_path / "rows"
    shutil.copy(program("calls"), calls)
    result = nhmtap.into(lines, "stream", *FAULTS, "--fields", "stack", "-o", f"flat={rows}", "--", calls, "deep=118,50")
    deep = [r for r in result.of("sample") if [f.get("symbol") for f in r["stack"][:3]] == ["touch", "middle", "down"]]
    assert len(deep) == 50 and all(r["truncated"] and 30 < len(r["stack"]) < 100 for r in deep)
    sizes = [len(line) for line in lines.read_bytes().splitlines(keepends=True) if b'"touch"' in line]
    assert len(sizes) == 50 and all(7800 < size <= 8192 for size in sizes)
    whole = [json.loads(line)["stack"] for line in rows.read_text().splitlines() if '"stack"' in line]
    assert sum(stack.count(";down") == 118 and stack.endswith(";touch") for stack in whole) == 50


def test_registers_are_those_of_the_fault(nhmtap, tmp_path):
    """touch() stores through a register, so the address that faults is in one of them."""
    run = Pages(nhmtap, tmp_path, "--fields", "addr,ip,regs")
    touched = [r for r in run.samples if r["address"] in run.addresses]
    assert len(touched) == N and all(r["registers"]["ip"] == r["ip"] for r in run.samples)
    assert all(r["address"] in r["registers"].values() for r in touched)
    assert len({r["registers"]["sp"] for r in touched}) == 1


def test_branches_need_a_counter_of_the_cpu(nhmtap):
    error = nhmtap("stream", *FAULTS, "--fields", "branches", "--", "true").one("error")
    assert "branch" in error["asked"] + error["why"]


def test_names_are_those_of_a_profile(nhmtap, tmp_path):
    run = Pages(nhmtap, tmp_path, "--fields", "symbol")
    streamed = collections.Counter(r["code"].get("symbol") for r in run.samples)
    profile = nhmtap.into(tmp_path / "profile", "profile", *FAULTS, "--by", "symbol", "--", program("pages"), N)
    counted = {e["code"].get("symbol"): e["samples"] for e in profile.entries("profile")}
    assert streamed["touch"] == counted["touch"] == N


def test_the_default_says_who_where_and_what(nhmtap, tmp_path):
    run = Pages(nhmtap, tmp_path)
    assert all(own(r) == {"comm", "pid", "tid", "cpu", "ip", "code", "period"} for r in run.samples)


def test_samples_of_several_events_and_cpus_are_in_the_order_of_time(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "stream", "-e", "page-faults,context-switches", "-c", "1", "--fields", "cpu", "-a", "--",
                         *command("faults=500", "fork=10", "exit=0"))
    samples = result.of("sample")
    times = [r["sample_time"] for r in samples]
    assert times == sorted(times)
    assert {r["event"] for r in samples} == {"page-faults", "context-switches"}
    for record in result.of("stream"):
        assert record["samples"]["aggregated"] == sum(r["event"] == record["event"] for r in samples)


def test_intervals_have_accounts_of_their_own(nhmtap):
    with Puppet() as puppet:
        process = nhmtap.attach("stream", *FAULTS, "--fields", "addr", "-I", "20", "-p", puppet.pid)
        for _ in range(5):
            puppet.do("faults=100")
        result = nhmtap.interrupt(process)
    assert sum(r["samples"]["aggregated"] for r in result.of("stream")) == len(result.of("sample")) >= 500


def may_run_first():
    """CAP_SYS_NICE, include/uapi/linux/capability.h."""
    with open("/proc/self/status", encoding="ascii") as file:
        held = int(re.search(r"CapEff:\s*(\w+)", file.read())[1], 16)
    return held >> 23 & 1 and not callers.CALLER


@pytest.mark.parametrize("command, usual, read_first", [
    (["stream", *FAULTS], 0, True), (["mem", "--stream", *FAULTS], 0, True),
    (["profile", *FAULTS], 0, False), (["stream", *FAULTS], 3, False)])
def test_a_stream_is_read_before_others_run_and_its_command_runs_as_before(nhmtap, tmp_path, command, usual, read_first):
    """Otherwise the measured programs fill the rings while their reader waits for its turn. Who chose a priority keeps it."""
    out = nhmtap.into(tmp_path / "out", *command, "--", "sh", "-c", "ps -o ni= -p $PPID; nice", before=["nice", "-n", str(usual)]).said
    assert [int(word) for word in out.split()] == [-10 if read_first and may_run_first() else usual, usual]


def test_a_stream_that_comes_by_a_reload_is_read_before_others_run_as_long_as_it_is_there(nhmtap, tmp_path):
    with Puppet() as puppet:
        counts, stream = ({"name": command, "command": command, "event": "page-faults:u", "pid": str(puppet.pid), **more}
                          for command, more in (("stat", {}), ("stream", {"count": 1})))
        with Session(nhmtap, tmp_path, [counts]) as session:
            nice = [os.getpriority(os.PRIO_PROCESS, session.process.pid)]
            for activities in ([counts, stream], [counts], [stream]):
                session.reload(activities)
                nice.append(os.getpriority(os.PRIO_PROCESS, session.process.pid))
            session.end()
    raised = -10 if may_run_first() else 0
    assert nice == [0, raised, 0, raised]


def test_what_was_overwritten_is_told_at_its_place(nhmtap, tmp_path):
    beside = tmp_path / "beside"
    with Puppet(before=pinned()) as puppet:
        process = nhmtap.attach("stream", *FAULTS, "--fields", "addr", "-o", "-", "-o", beside, "-p", puppet.pid)
        puppet.do("faults=10")
        until(lambda: beside.read_text().count('"sample"') == 10)
        stop(process.pid)
        puppet.do(f"faults={RING + 1000}")
        process.send_signal(signal.SIGCONT)
        nhmtap.interrupt(process)
    result = Result(0, beside.read_text(), "")
    lost, samples = result.of("lost"), result.of("sample")
    assert sum(r["missing"] for r in lost) + len(samples) == result.one("end")["samples"]["aggregated"]
    assert lost[0]["missing"] >= 1000 and lost[0]["cause"] == "ring_full"
    before = [r for r in samples if r["seq"] < lost[0]["seq"]]
    after = [r for r in samples if r["seq"] > lost[0]["seq"]]
    assert before[-1]["sample_time"] <= lost[0]["since"] <= lost[0]["until"] <= after[0]["sample_time"]


def test_what_comes_too_fast_is_thinned_and_says_how_much(nhmtap, tmp_path):
    beside = tmp_path / "beside"
    with Puppet(before=pinned()) as puppet:
        process = nhmtap.attach("stream", "--adaptive", *FAULTS, "--fields", "addr", "-o", "-", "-o", beside, "-p", puppet.pid)
        for _ in range(3):
            told = beside.stat().st_size
            stop(process.pid)
            puppet.do(f"faults={RING // 2 + 5000}")  # more than half of a ring, and less than all
            process.send_signal(signal.SIGCONT)
            until(lambda told=told: '"every":' in beside.read_text()[told:])
        nhmtap.interrupt(process)
    result = Result(0, beside.read_text(), "")
    end, samples = result.one("end"), result.of("sample")
    seen = end["samples"]["aggregated"] - sum(r["missing"] for r in result.of("lost"))
    assert len(samples) + end["stream"]["left_out"] == seen >= RING
    kept = [sample.get("every", 1) for sample in samples]
    assert max(kept) > 1 and set(kept) <= {1 << n for n in range(17)} and abs(sum(kept) - seen) < max(kept)


def test_an_unknown_field_gets_the_nearest(nhmtap):
    result = nhmtap("stream", *FAULTS, "--fields", "time,sym", "--", "true")
    error = result.one("error")
    assert result.status == 1 and error["why"] == "there is no field 'sym'" and "symbol" in error["remedy"]


def test_it_is_an_activity_like_the_others(nhmtap, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"outputs": [{"path": str(tmp_path / "out")}], "activities": [
        {"name": "faults", "command": "stream", "event": "page-faults:u", "count": 1, "fields": "addr,symbol"},
        {"name": "sum", "command": "stat", "event": "page-faults:u"}]}))
    nhmtap("run", config, "--", program("pages"), N)
    result = Result(0, (tmp_path / "out").read_text(), "")
    assert len(result.of("sample")) == result.one("count")["value"]


def test_mems_stream_has_names_too(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "mem", *FAULTS, "--stream", "--by", "symbol", "--", program("pages"), N)
    assert sum(r["code"].get("symbol") == "touch" for r in result.of("sample")) == N


def test_a_line_each_for_people(nhmtap, tmp_path):
    out = tmp_path / "out"
    nhmtap("stream", *FAULTS, "--fields", "addr,symbol", "--format", "table", "-o", out, "--", program("pages"), N)
    lines = out.read_text().splitlines()
    assert sum(line.endswith(" touch (pages)") for line in lines) == N


def test_a_line_has_the_stack_for_people(nhmtap, tmp_path):
    out = tmp_path / "out"
    nhmtap("stream", *FAULTS, "--fields", "stack,regs", "--format", "table", "-o", out, "--", program("pages"), N)
    lines = out.read_text().splitlines()
    assert sum(" touch (pages) < main (pages)" in line and " sp=0x" in line for line in lines) == N


def test_places_get_their_names_later(nhmtap, tmp_path):
    run = Pages(nhmtap, tmp_path, "--fields", "addr,place")
    assert not any("symbol" in r["code"] for r in run.samples)
    named = Result(0, nhmtap("symbolize", tmp_path / "out").out, "").of("sample")
    assert [r["seq"] for r in named] == [r["seq"] for r in run.samples]
    assert [r["address"] for r in named if r["code"].get("symbol") == "touch"] == run.addresses


REMADE = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* For each line that it reads, code that was made at run time faults once. The line is the code's name from then on. */
int main(void)
{
	static const unsigned char code[] = {0xc6, 0x07, 0x01, 0xc3}; /* movb $1, (%rdi); ret */
	char *page = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), path[64];
	char *touched = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), line[64], known[64] = "";

	memcpy(page, code, sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, known)) {
			FILE *map = fopen(path, "a");

			fprintf(map, "%lx 4 %s", (unsigned long)page, line);
			fclose(map);
			strcpy(known, line);
		}
		madvise(touched, 4096, MADV_DONTNEED);
		((void (*)(char *))page)(touched);
	}
	unlink(path);
	return 0;
}
"""


def test_code_that_is_made_anew_at_an_address_has_its_new_name_soon(nhmtap, tmp_path):
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "remade", "-x", "c", "-"], input=REMADE, text=True, check=True)
    out = tmp_path / "out"
    with subprocess.Popen([tmp_path / "remade"], stdin=subprocess.PIPE, text=True, bufsize=1) as program_:
        run = nhmtap.attach("stream", *FAULTS, "--fields", "symbol", "-o", "-", "-o", out, "-p", program_.pid)

        def is_named(name):
            program_.stdin.write(f"{name}\n")
            return f'"symbol":"{name}"' in out.read_text()
        until(lambda: is_named("first"))
        until(lambda: is_named("second"))
        program_.stdin.close()
        program_.wait()
        assert nhmtap.interrupt(run).status == 0
    assert not os.path.exists(f"/tmp/perf-{program_.pid}.map")


class Slow:
    """A stream of the faults of two puppets. The file of one has been read, that of the other has not, and what reads files is
    stopped: a file that is slow to read."""

    def __init__(self, nhmtap, tmp_path, quick, slow, *arguments):
        self.quick, self.slow, self.out = quick, slow, tmp_path / "out"
        self.process = nhmtap.attach("stream", *FAULTS, *arguments, "-o", "-", "-o", self.out, "-p", f"{quick.pid},{slow.pid}")
        quick.do("faults=1")
        until(lambda: self.out.read_text().count('"touch"'))
        self.reader = reader_of(self.process)
        stop(self.reader)

    def wait_slept(self, times):
        """Waits until it has gone to sleep so many times from now on. It reads the rings every 20 ms."""
        slept = self.slept() + times
        while self.slept() < slept:
            time.sleep(0.001)

    def slept(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read(), re.M)[1])

    def read_on(self):
        with contextlib.suppress(ProcessLookupError):  # who waited for it has ended it
            os.kill(self.reader, signal.SIGCONT)

    def samples(self):
        """Those of the slow one, as far as they are written."""
        records = (json.loads(line) for line in self.out.read_text().splitlines(keepends=True) if line.endswith("\n"))
        return [r for r in records if r["type"] == "sample" and r["pid"] == self.slow.pid]


def unnamed(result):
    return {why: nr for why, nr in result.one("end")["names"]["unnamed"].items() if nr}


@pytest.fixture(name="copied")
def fixture_copied(tmp_path):
    """A puppet whose file is no other's, by its build-id neither."""
    path = tmp_path / "copied"
    subprocess.run(["objcopy", "--remove-section", ".note.gnu.build-id", program("puppet"), path], check=True)
    with Puppet(path=path) as puppet:
        yield puppet


@pytest.mark.parametrize("fields", [["symbol,pid"], ["stack,pid", "--unwind", "fp"]], ids=["symbol", "stack"])
def test_a_sample_behind_one_that_has_its_name_waits_no_longer_for_a_slow_file_than_another(nhmtap, tmp_path, copied, fields):
    """Both are read after a second, when neither may wait for the next reading any more. Who waits for the file in spite of that
    learns that its reader has failed."""
    with Puppet() as quick:
        run = Slow(nhmtap, tmp_path, quick, copied, "--fields", *fields)
        stop(run.process.pid)
        quick.do("faults=1")
        copied.do("faults=1")
        time.sleep(1.1)
        run.process.send_signal(signal.SIGCONT)
        until(run.samples)
        run.read_on()
        result = nhmtap.interrupt(run.process)
    assert set(unnamed(result)) == {"no_time"}


def names_at_the_end(nhmtap, tmp_path, quick, slow):
    run = Slow(nhmtap, tmp_path, quick, slow, "--fields", "symbol,pid")
    slow.do("faults=1")
    run.wait_slept(10)  # the sample has been taken out of its ring, and the next reading is not due yet
    stop(run.process.pid)
    run.process.send_signal(signal.SIGINT)
    quick.do("faults=9000")
    run.process.send_signal(signal.SIGCONT)
    time.sleep(0.1)
    run.read_on()
    return [r["code"].get("symbol") for r in run.samples()] if not unnamed(nhmtap.finish(run.process)) else []


def test_a_name_is_waited_for_at_the_end_even_if_there_are_many_samples_behind_it(nhmtap, tmp_path, copied):
    """More of them than may wait for a name: WAITING_MOST of user/activity/streaming.c. If SIGINT comes late, a reading before
    the end has them all, so some runs may have to be tried."""
    with Puppet() as quick:
        assert any(names_at_the_end(nhmtap, tmp_path, quick, copied) == ["touch"] for _ in range(5))
