# SPDX-License-Identifier: GPL-2.0-only
"""The limit on the memory of a session."""
import json
import os
import subprocess

import pytest

import puppet
import cgroups
import memory
from memory import USUAL
from puppet import Puppet, online
from records import Result, program
from sessions import until

MIB = 1 << 20


def parts(result):
    limits = result.one("start")["limits"]
    assert set(limits["made_smaller_from"]) <= set(limits["parts"])
    for part, had in limits["made_smaller_from"].items():
        assert limits["parts"][part] < had
    return limits


def with_little(nhmtap, into, *arguments, spare):
    """Runs nhmtap with so many MiB more than it asks for."""
    options, command = arguments[:arguments.index("--")], arguments[arguments.index("--"):]
    return nhmtap.into(into, *options, "--memory", f"{memory.needed(nhmtap, *options) + spare}M", "--format", "json", *command)


def summed_up(result):
    """The samples of all entries, and of those that are only summed up."""
    rest = next(r["rest"]["samples"] for r in result.of("profile") if "rest" in r)
    return sum(entry["samples"] for entry in result.entries()) + rest


@pytest.mark.plain  # a sanitizer's memory would count too
def test_stacks_of_everything_live_in_little_memory_and_the_start_says_what_was_made_smaller(nhmtap):
    little = memory.little(nhmtap)
    result = nhmtap("profile", "-a", "-g", "-I", "300", "--interval-count", "3", "--memory", f"{little}M", "--format", "json")
    assert result.status == 0
    limits = parts(result)
    assert limits["memory"] == little * MIB >= sum(limits["parts"].values())
    assert set(limits["made_smaller_from"]) == {"names", "queues", "entries", "unwinding"}
    assert limits["parts"]["unwinding"] == 0
    assert result.one("start")["unwind"] == {"by": "fp", "why": "the limit of memory leaves no room for their tables"}
    assert len(result.of("profile")) >= 3
    # The peak includes what BPF programs write, as it is mapped.
    assert result.one("end")["overhead"]["max_rss_bytes"] <= little * MIB


def test_what_does_not_fit_is_refused_with_the_sum(nhmtap):
    little = memory.little(nhmtap)
    result = nhmtap("profile", "-a", "-g", "--unwind", "tables", "--duration", "0.1", "--memory", f"{little}M", "--format", "json")
    assert result.status == 2
    why = result.one("error")["why"]
    words = why.partition(" are needed: ")
    least, listed = float(words[0].split()[2]), dict(part.rsplit(" ", 1) for part in words[2].split(", "))
    assert set(listed) == {"program", "tables", "unwinding", "names", "queues", "entries"}
    assert least > little and abs(sum(map(float, listed.values())) - least) < 0.5
    assert result.one("error")["remedy"]


def test_keys_beyond_the_limit_are_summed_up(nhmtap, tmp_path):
    """Each key has one page fault, at an address of its own."""
    result = with_little(nhmtap, tmp_path / "out", "profile", "-e", "page-faults:u", "-c", "1", "--by", "ip", "--", program("ips"), "20000",
                         spare=1)
    most = result.one("start")["limits"]["parts"]["entries"] // 2048
    samples = next(r["samples"] for r in result.of("profile") if "samples" in r)  # the first part has it
    assert len(result.entries()) <= most < 20000
    assert samples["aggregated"] + samples["lost"]["table_full"] == samples["expected"] >= 20000
    assert summed_up(result) == samples["aggregated"] and samples["lost"]["table_full"] < 10000
    assert result.one("warning", cause="keys_summed_up")["keys"] > most / 2


def kept_within_64_mib(result, most):
    """Checks that a run without --memory kept at most so many entries, that all samples are in them or in the rest,
    and that the record says why."""
    samples = next(r["samples"] for r in result.of("profile") if "samples" in r)
    assert 1000 < len(result.entries()) <= most
    assert summed_up(result) == samples["aggregated"]
    assert samples["aggregated"] + sum(samples["lost"].values()) == samples["expected"]
    assert result.one("warning", cause="keys_summed_up")["remedy"]
    assert result.one("end")["overhead"]["max_rss_bytes"] <= USUAL * MIB


@pytest.mark.plain  # a sanitizer's memory would count too
@pytest.mark.parametrize("by, most", [("ip", 12288), ("symbol", 12288), ("ip,pid,comm,cgroup", 12288), ("stack", 4096)])
def test_a_run_without_end_of_new_addresses_takes_64_mib_and_has_the_largest(nhmtap, tmp_path, by, most):
    """200,000 instructions fault once each. One instruction of the other program faults 3,000 times; it runs first, so that
    its entry is one of the oldest."""
    result = nhmtap.into(tmp_path / "out", "profile", "-e", "page-faults:u", "-c", "1", "--by", by, "--format", "json", "--",
                         "nice", "-n", "10", "sh", "-c", f"{program('pages')} 3000; {program('ips')} 200000")
    kept_within_64_mib(result, most)
    assert result.one("end")["samples"]["expected"] >= 203000
    # While another test is in bpf(), the kernel delivers no samples on its CPU.
    lost = sum(result.one("end")["samples"]["lost"].values())
    # Its first stacks may have been walked before there was a table.
    assert 2990 - lost <= sum(entry["samples"] for entry in result.entries() if entry["samples"] > 10) < 3200


@pytest.mark.plain
@pytest.mark.parametrize("what", [["--shared"], ["--by", "cacheline,symbol,pid,tid,comm,cgroup"]])
def test_entries_with_histograms_take_64_mib_however_many_there_could_be(nhmtap, tmp_path, what):
    """Each process has entries of its own for each page that it touches."""
    result = nhmtap.into(tmp_path / "out", "mem", *what, "-e", "page-faults:u", "-c", "1", "--format", "json", "--",
                         "nice", "-n", "10", *puppet.command("vforks=2500,16"))
    first = next(r for r in result.of("mem") if "samples" in r)
    entries = [e for r in result.of("mem") for e in r["entries"]]
    assert 1000 < len(entries) <= 3072
    assert sum(e["samples"] for e in entries) + first["rest"]["samples"] == first["samples"]["aggregated"]
    assert first["samples"]["aggregated"] + sum(first["samples"]["lost"].values()) == first["samples"]["expected"] >= 40000
    assert result.one("warning", cause="keys_summed_up")["keys"] > 10000
    assert result.one("end")["overhead"]["max_rss_bytes"] <= USUAL * MIB


@pytest.mark.plain
def test_several_activities_without_end_of_new_addresses_take_64_mib_together(nhmtap, tmp_path):
    config, out = tmp_path / "config", tmp_path / "out"
    sampled = {"event": "page-faults:u", "count": 1, "all_cpus": True, "interval_ms": 86400000, "top": 1000000}
    keys = ["ip", "ip,pid", "symbol,ip", "ip,comm"]
    config.write_text(json.dumps({"outputs": [{"path": str(out)}], "activities": [
        {"name": by.replace(",", "-"), "command": "profile", "by": by, **sampled} for by in keys]}))
    process = nhmtap.start("run", config)
    until(lambda: out.exists() and out.read_text().count('"type":"start"') > len(keys))
    subprocess.run(["nice", "-n", "10", program("ips"), "100000"], check=True, stdout=subprocess.DEVNULL)
    done = nhmtap.interrupt(process)
    result = Result(done.status, out.read_text(), done.err)
    # In addition, each activity has tables of its own that the kernel writes.
    tables = len(keys) * memory.possible_cpus() * (9 << 19)
    assert result.one("end", activity="session")["overhead"]["max_rss_bytes"] <= 32 * MIB + tables
    for by in keys:
        parts = [r for r in result.of("profile") if r["activity"] == by.replace(",", "-")]
        entries = [e for r in parts for e in r["entries"]]
        assert 1000 < len(entries) <= 12288 // len(keys)
        account = next(r["samples"] for r in parts if "samples" in r)
        rest = sum(r["rest"]["samples"] for r in parts if "rest" in r)
        assert sum(e["samples"] for e in entries) + rest == account["aggregated"]
        assert account["aggregated"] + sum(account["lost"].values()) == account["expected"] >= 100000


NESTED = r"""
#include <stdlib.h>
#include <sys/mman.h>

/* As much debug information as a program of some 100,000 lines has. */
__asm__(".pushsection .debug_loclists\n.zero 5000000\n.popsection");

__attribute__((noinline)) void touch(volatile char *at)
{
	*at = 1;
}

int main(void)
{
	char *pages = mmap(NULL, 100 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(pages, 100 * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < 100; i++)
		touch(pages + i * 4096);
	return 0;
}
"""


@pytest.fixture
def detailed(tmp_path):
    """Sixteen programs with 80 MB of debug information together. That of every other one is compressed: it must be read whole."""
    (tmp_path / "program.c").write_text(NESTED)
    programs = [tmp_path / f"program{i}" for i in range(16)]
    for i, path in enumerate(programs):
        subprocess.run(["gcc", "-g", *["-gz"] * (i % 2), "-O1", f"-Wl,--build-id=0x{i + 16:040x}", "-o", path, tmp_path / "program.c"], check=True)
    return [str(path) for path in programs]


def lacks_lines_but_no_names(result, programs):
    names = result.one("end")["names"]
    assert "memory for names" in names["lines_why"] and names["unnamed"]["no_room"] == names["unnamed"]["failed"] == 0
    # Each function has its name, with lines or without, unless others had so many keys that the smaller ones were summed up.
    named = {frame["module"] for record in result.records for frame in record.get("frames", ())
             if frame.get("symbol") == "touch" and frame.get("module")}
    return named >= set(programs) or any("rest" in record for record in result.records)


@pytest.mark.plain
@pytest.mark.parametrize("what", [["profile", "-g"], ["mem", "--by", "stack,page"]], ids=" ".join)
def test_a_run_of_everything_takes_64_mib_whatever_debug_information_programs_have(nhmtap, tmp_path, detailed, what):
    """Beside 64 MiB for two CPUs, each further one has tables of its own (mem: 10 MiB)."""
    with memory.measured(f"nhmtap-test-{os.getpid()}") as (folder, most):
        result = nhmtap.into(tmp_path / "out", *what, "-a", "-e", "page-faults:u", "-c", "1", "--format", "json", "--",
                             "sh", "-c", f"echo $$ > {os.path.dirname(folder)}/cgroup.procs; " + "; ".join(detailed),
                             before=cgroups.inside(folder))
        assert most() <= USUAL * MIB
    assert lacks_lines_but_no_names(result, detailed)


@pytest.mark.plain
def test_a_stream_of_everything_takes_64_mib_whatever_debug_information_programs_have(nhmtap, detailed):
    """By lines, which take more than stacks. What it writes is in no file, whose pages would count."""
    with memory.measured(f"nhmtap-test-{os.getpid()}") as (folder, most):
        result = nhmtap("stream", "-a", "-e", "page-faults:u", "-c", "1", "--fields", "line", "--format", "json", "--",
                        "sh", "-c", f"echo $$ > {os.path.dirname(folder)}/cgroup.procs; " + "; ".join(detailed * 2),
                        before=cgroups.inside(folder))
        assert most() <= USUAL * MIB
    names = result.one("end")["names"]
    assert "memory for names" in names["lines_why"] and names["unnamed"]["no_room"] == names["unnamed"]["failed"] == 0
    # Others may have made samples faster than they can be written.
    named = {code["module"] for code in (record["code"] for record in result.of("sample")) if code.get("symbol") == "touch"}
    assert named >= set(detailed) or result.one("end")["stream"]["ring_lost"]


@pytest.mark.plain
def test_in_a_small_cgroup_names_take_as_little_as_in_a_run_of_everything(nhmtap, tmp_path, detailed):
    with memory.measured(f"nhmtap-test-{os.getpid()}") as (folder, most):
        memory.allow(folder, USUAL * MIB)
        result = nhmtap.into(tmp_path / "out", "profile", "-g", "-e", "page-faults:u", "-c", "1", "--format", "json", "--",
                             "sh", "-c", "; ".join(detailed), before=cgroups.inside(folder))
    assert result.status == 0 and lacks_lines_but_no_names(result, detailed)


def test_tables_of_everything_say_that_lines_have_no_room_and_what_gives_them_some(nhmtap, tmp_path, cgroup):
    (tmp_path / "program.c").write_text(NESTED.replace("5000000", "9000000"))
    program = tmp_path / "program"
    subprocess.run(["gcc", "-g", "-gz", "-O1", "-o", program, tmp_path / "program.c"], check=True)

    def said(*limit):
        """Whether a remark is on the lines, in the table, in that of the stored run and on its page, and whether there are lines."""
        assert nhmtap("profile", "-G", cgroup[0], "-e", "page-faults:u", "-c", "1", "--by", "line", *limit, "-o", f"table={tmp_path}/table",
                      "-o", f"json={tmp_path}/json", "--", *cgroups.inside(cgroup[1]), program).status == 0
        remark = "debug information is larger than what the memory for names allows (--memory raises it)"
        assert nhmtap("report", tmp_path / "json", "-o", tmp_path / "page").status == 0
        table, page = ((tmp_path / name).read_text() for name in ("table", "page"))
        return remark in table, remark in nhmtap("show", tmp_path / "json").out, remark in page, "touch program.c:" in table
    assert said() == (True, True, True, False)
    assert said("--memory", "256M") == (False, False, False, True)


def test_where_no_output_has_an_end_it_is_said_on_stderr_that_inlined_functions_have_no_room(nhmtap, tmp_path, cgroup):
    (tmp_path / "program.c").write_text(NESTED.replace("5000000", "9000000"))
    program = tmp_path / "program"
    subprocess.run(["gcc", "-g", "-gz", "-O1", "-o", program, tmp_path / "program.c"], check=True)

    def said(*outputs):
        result = nhmtap("profile", "-G", cgroup[0], "-g", "-e", "page-faults:u", "-c", "1", *outputs, "--", *cgroups.inside(cgroup[1]), program)
        assert result.status == 0
        return "nhmtap: some code lacks source lines or inlined functions: debug information is larger" in result.err
    assert said("-o", f"folded={tmp_path}/folded", "-o", f"pprof={tmp_path}/pprof")
    assert not said("-o", f"folded={tmp_path}/folded", "-o", f"json={tmp_path}/json")


N = 6000

# For each key, a command that makes page faults with so many different values of it.
WITHOUT_END = {
    "pid": puppet.command(f"vforks={N},1"),
    "tid": puppet.command(*["thread=1"] * N),
    "comm": puppet.command(*(step for i in range(N) for step in (f"name={f'{i:05}'.encode().hex()}", "faults=1"))),
    "ip": [program("ips"), N],
    "page": [program("pages"), N],
    "cacheline": [program("pages"), N],
    "symbol,pid": puppet.command(f"vforks={N},1"),
    "module,tid": puppet.command(*["thread=1"] * N),
}


@pytest.mark.parametrize("command, key", [(command, key) for command in ("profile", "mem") for key in WITHOUT_END
                                          if command == "mem" or key not in ("page", "cacheline")])
def test_of_keys_without_end_the_smaller_ones_are_summed_up_and_the_account_closes(nhmtap, tmp_path, command, key):
    """records.py checks that entries and rest are the samples, and that mem's sources are as many."""
    result = with_little(nhmtap, tmp_path / "out", command, "-e", "page-faults:u", "-c", "1", "--by", key, "--", *WITHOUT_END[key], spare=1)
    first = result.of(command)[0]
    assert first["samples"]["expected"] == first["value"] >= N
    most = result.one("start")["limits"]["parts"]["entries"] // 2048
    assert len([e for r in result.of(command) for e in r["entries"]]) <= most < N
    assert first["rest"]["entries"] and result.one("warning", cause="keys_summed_up")["keys"] > most / 4


@pytest.mark.plain
def test_processes_that_have_ended_take_no_memory(nhmtap, tmp_path):
    """Each process has entries of its own. The functions and the stacks of all of them together are few."""
    def run(by):
        return nhmtap.into(tmp_path / by, "profile", "-e", "page-faults:u", "-c", "1", "--by", by, "--format", "json", "--",
                           "nice", "-n", "10", "sh", "-c", f"for i in $(seq 800); do {program('pages')} 64; done > /dev/null")

    kept_within_64_mib(run("symbol,pid,ip"), 12288)
    result = run("comm,symbol")
    assert not result.of("warning", cause="keys_summed_up")
    touched = [e for e in result.entries() if e["code"].get("symbol") == "touch" and e["comm"] == "pages"]
    end = result.one("end")
    assert 800 * 64 - sum(end["samples"]["lost"].values()) <= sum(e["samples"] for e in touched) <= 800 * 64
    assert result.one("end")["overhead"]["max_rss_bytes"] <= USUAL * MIB
    result = run("stack")
    first = sum(entry["samples"] for entry in result.entries() if entry["samples"] > 1000)
    assert first >= 0.9 * 800 * 64 - sum(result.one("end")["samples"]["lost"].values())


def test_samples_of_a_stack_that_is_there_already_need_no_room(nhmtap):
    """The first of two CPUs' tables has more keys than are kept: one stack under many names."""
    if len(online()) < 2:
        pytest.skip("there is one CPU")
    first, second = online()[:2]
    with Puppet() as puppet:
        process = nhmtap.attach("profile", "-g", "-e", "page-faults:u", "-c", "1", "--memory", f"{memory.little(nhmtap)}M", "--format", "json",
                                "-p", puppet.pid)
        most = json.loads(process.began)["limits"]["parts"]["entries"] // 2048
        os.sched_setaffinity(puppet.pid, {first})
        puppet.do("faults=100")
        for i in range(most):
            puppet.do(f"name={str(i).encode().hex()}")
            puppet.do("faults=1")
        puppet.do(f"name={b'puppet'.hex()}")
        os.sched_setaffinity(puppet.pid, {second})
        puppet.do("faults=1000")
        result = nhmtap.interrupt(process)
    record = next(r for r in result.of("profile") if "samples" in r)
    samples = record["samples"]
    # The page of the code itself may be one more fault.
    assert 1100 <= result.entries()[0]["samples"] <= 1101
    assert len(result.entries()) <= most and record["rest"]["samples"]
    assert summed_up(result) == samples["aggregated"] == samples["expected"]


@pytest.mark.parametrize("size", ["", "M", "0", "1", "64m", "1MB", "-1M", "1.5G", "99999999999999999999G", "1000K"])
def test_what_is_no_size_is_refused(nhmtap, size):
    result = nhmtap("stat", "--memory", size, "--duration", "0.01")
    assert result.status == 1 and "--memory" in result.err and "K, M or G" in result.err


def test_the_least_size_is_a_size_though_nothing_fits_into_it(nhmtap):
    for size in ("1024K", "1M"):
        result = nhmtap("stat", "-a", "--memory", size, "--duration", "0.01")
        assert result.status == 2 and "are needed" in result.err and "K, M or G" not in result.err


def test_a_config_has_the_same_limit_for_all_of_its_activities(nhmtap, tmp_path):
    config, out = tmp_path / "config", tmp_path / "out"
    config.write_text(json.dumps({
        "activities": [{"name": name, "command": "profile", "all_cpus": True, "by": "pid", "duration_s": 0.2} for name in "ab"],
        "outputs": [{"path": str(out), "queue_bytes": 100000}, {"path": str(tmp_path / "other")}],
        "limits": {"memory": f"{memory.little(nhmtap)}M"}}))
    result = nhmtap("run", config)
    assert result.status == 0
    starts = [r for r in map(json.loads, out.read_text().splitlines()) if r["type"] == "start" and "limits" in r]
    assert [r["activity"] for r in starts] == ["a", "b"]
    limits = starts[0]["limits"]
    # A queue that was asked for keeps its size.
    assert limits["parts"]["queues"] > 100000 and "names" not in limits["parts"]
    os.remove(config)
