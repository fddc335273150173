# SPDX-License-Identifier: GPL-2.0-only
"""--format flat: one entry or count a line. The sums equal those of the nested records."""
import collections
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from puppet import Puppet, command
from records import Result, parse, program
from sessions import DAY, Session, faults


@pytest.fixture
def both(nhmtap, tmp_path):
    """Runs nhmtap with two outputs: the nested records, and the flat lines of the same run."""
    def run(*arguments):
        nested, flat = tmp_path / "nested", tmp_path / "flat"
        result = nhmtap(arguments[0], "-o", nested, "-o", f"flat={flat}", *arguments[1:])
        assert result.status == 0, result.err
        return Result(0, nested.read_text(), ""), parse(flat.read_text())
    return run


def total(lines, **members):
    return sum(line.get("value", 0) for line in lines
               if all(line.get(name) == value for name, value in members.items()))


RUNS = {
    "stat": ["stat", "-a", "-e", "page-faults,cs,task-clock", "--per", "cpu"],
    "metrics": ["stat", "-e", "task-clock", "-M", "cpus_utilized"],
    "profile": ["profile", "-e", "page-faults", "-c", "1", "--by", "symbol,comm,pid"],
    "addresses": ["profile", "-e", "page-faults", "-c", "1", "--by", "ip,cgroup"],
    "top": ["profile", "-e", "page-faults", "-c", "1", "--by", "ip", "--top", "3"],
    "stacks": ["profile", "-g", "-e", "page-faults", "-c", "1"],
    "mem": ["mem", "-e", "page-faults", "-c", "1", "--by", "page,symbol,cpu", "--top", "5"],
    "stream": ["mem", "-e", "page-faults", "-c", "1", "--stream"],
    "samples": ["stream", "-e", "page-faults", "-c", "1"],
}


@pytest.mark.parametrize("which", RUNS)
def test_sums_are_those_of_the_nested_records(both, which):
    nested, flat = both(*RUNS[which], "--", *command("faults=500", "exit=0"))
    for event, cpu in {(record["event"], record.get("cpu")) for record in nested.of("count")}:
        assert total(flat, event=event, cpu=cpu) == sum(
            record["value"] for record in nested.of("count", event=event) if record.get("cpu") == cpu)
    for kind in ("profile", "mem"):
        whole = sum(r["samples"]["aggregated"] for r in nested.of(kind) if "samples" in r)
        assert total(flat) == whole or not nested.of(kind)
        lost = sum(sum(r["samples"]["lost"].values()) for r in nested.of(kind) if "samples" in r)
        assert sum(line.get("missed", 0) for line in flat) == lost
    assert {line["type"] for line in flat} == {"flat"}
    assert [line["seq"] for line in flat] == list(range(len(flat)))
    assert {line["run_id"] for line in flat} == {nested.records[0]["run_id"]}


@pytest.mark.parametrize("which", RUNS)
def test_nothing_is_nested_and_every_line_says_where_and_when(both, which):
    nested, flat = both(*RUNS[which], "--", *command("faults=50", "exit=0"))
    start = nested.one("start")
    for line in flat:
        assert not any(isinstance(value, (dict, list)) for value in line.values())
        assert line["host.name"] == start["resource"]["host.name"]
        assert line["activity"] == start["activity"]
        assert abs(line["time_unix_ms"] / 1000 - when(line["time"])) < 0.002


def when(text):
    """Seconds since 1970."""
    said = subprocess.run(["date", "-u", "-d", text, "+%s.%N"], check=True, capture_output=True, text=True)
    return float(said.stdout)


KEYS = ["ip", "pid,comm", "symbol,comm,pid", "line", "ip,cgroup", "stack,pid", "cpu"]


@pytest.mark.parametrize("keys", KEYS)
def test_lines_are_the_same_whether_entries_are_still_text_or_another_output_has_read_them(nhmtap, tmp_path, keys):
    """Outputs get a record one after the other, and table makes objects of its entries."""
    text, objects = tmp_path / "text", tmp_path / "objects"
    named = shutil.copy(program("doings"), tmp_path / "q\"\\\té,]}")
    result = nhmtap("profile", "-e", "page-faults", "-c", "1", "--by", keys, "--top", "40", "-o", f"flat={text}",
                    "-o", f"table={tmp_path}/table", "-o", f"flat={objects}", "--", named, "faults", "300")
    assert result.status == 0, result.err
    lines, others = parse(text.read_text()), parse(objects.read_text())
    assert [line | {"run_id": ""} for line in lines] == [line | {"run_id": ""} for line in others]
    assert [list(line) for line in lines] == [list(line) for line in others]
    assert len({len(path.read_text()) for path in (text, objects)}) == 1
    assert sum(line["value"] for line in lines) >= 300 and all("total" in line for line in lines)


def test_an_entry_has_its_keys_and_its_code_by_name(both):
    nested, flat = both("profile", "-e", "page-faults", "-c", "1", "--by", "symbol,comm,pid", "--",
                        *command("faults=500", "exit=0"))
    entries = nested.entries()
    assert len(flat) == len(entries)
    for line, entry in zip(flat, entries):
        assert (line["value"], line["comm"], line["pid"]) == (entry["samples"], entry["comm"], entry["pid"])
        assert line.get("symbol") == entry["code"].get("symbol")
        assert line.get("module") == entry["code"].get("module")
        assert line.get("code_offset") == entry["code"].get("offset")


def test_a_stack_is_its_functions_from_the_outermost_on(nhmtap, both):
    nested, flat = both("profile", "-g", "-e", "page-faults", "-c", "1", "--", program("calls"), "graph=500")
    frames = {frame["id"]: frame for r in nested.of("frames") for frame in r["frames"]}
    named, told, alone = collections.Counter(), collections.Counter(), collections.Counter()
    for entry in nested.entries():
        innermost = frames[entry["stack"][0]] if entry["stack"] else {}
        named[innermost.get("inlined", [innermost])[0].get("symbol")] += entry["samples"]
    for line in flat:
        told[line.get("stack", "").split(";")[-1]] += line["value"]
        alone[line.get("symbol")] += line["value"]
    assert {name: told[name] for name in named if name} == {name: named[name] for name in named if name}
    assert alone == named


def test_each_sample_of_a_stream_is_a_line_with_the_time_when_it_was_taken(both):
    """Its period is no value, because its event's line has the sum of them."""
    nested, flat = both("stream", "-e", "page-faults:u", "-c", "1", "--fields", "ip,pid,comm,symbol,period,addr,stack", "--",
                        program("calls"), "graph=500")
    samples, lines = nested.of("sample"), [line for line in flat if "period" in line]
    assert len(samples) == len(lines) >= 500
    for sample, line in zip(samples, lines):
        assert line["time"] == sample["sample_time"] and "value" not in line
        assert {name: line[name] for name in ("ip", "address", "pid", "comm", "period")}.items() <= sample.items()
        assert line.get("symbol") == sample.get("code", {}).get("symbol")
        names = [frame["symbol"] for frame in reversed(sample["stack"]) if "symbol" in frame and "inlined" not in frame]
        assert [name for name in line["stack"].split(";") if name in names] == names
    assert sum(line["period"] for line in lines) == total(flat) == nested.one("stream")["value"]


FIELDS = ["ip,pid,tid,cpu,comm", "symbol,period,addr,cgroup,container", "line,module,comm", "place,ip,regs",
          "stack,symbol,pid", "ip,page,offset,cacheline,phys"]


@pytest.mark.parametrize("fields", FIELDS)
def test_the_line_of_a_sample_has_all_members_of_the_sample_but_lists_and_its_code_one_by_one(both, fields):
    nested, flat = both("stream", "-e", "page-faults", "-c", "1", "--fields", fields, "--", *command("faults=50", "exit=0"))
    samples, lines = nested.of("sample"), [line for line in flat if "status" not in line]
    assert len(samples) == len(lines) >= 50
    for sample, line in zip(samples, lines):
        told = {name: value for name, value in sample.items() if not isinstance(value, (dict, list))}
        for member, value in sample.get("code", {}).items():
            if not isinstance(value, (dict, list)):
                told[member if member in ("symbol", "module") else f"code_{member}"] = value
        own = {"type", "schema_version", "time", "seq"}
        assert {name: line.get(name) for name in told.keys() - own - {"sample_time"}}.items() <= told.items()
        assert line.keys() - told.keys() - own <= {"time_unix_ms", "host.name", "stack", "symbol", "module"}
        assert line["time"] == sample["sample_time"]


def test_a_sample_has_its_own_container_instead_of_nhmtaps_and_only_once(tmp_path, cgroup):
    own, other = (pathlib.Path(cgroup[1]) / f"docker-{digit * 64}.scope" for digit in "ab")
    for folder in (own, other):
        folder.mkdir()
    subprocess.run(["sh", "-c", f"echo $$ > {own}/cgroup.procs; exec \"$@\"", "sh", os.environ["NHMTAP"], "stream", "-e",
                    "page-faults", "-c", "1", "--fields", "container", "-o", f"flat={tmp_path}/flat", "--",
                    "sh", "-c", f"true; echo $$ > {other}/cgroup.procs; exec true"], check=True)
    lines = [json.loads(line, object_pairs_hook=list) for line in (tmp_path / "flat").read_text().splitlines()]
    told = [[value for name, value in line if name == "container.id"] for line in lines]
    assert all(len(ids) == 1 for ids in told)
    assert {ids[0] for ids in told} == {"a" * 64, "b" * 64}


DEEP = """
#include <sys/mman.h>
__attribute__((noinline)) long %(name)s(long depth)
{
    if (!depth)
        return *(volatile char *)mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return %(name)s(depth - 1) + 1;
}
__attribute__((noinline)) void grow_stack(void)
{
    volatile char room[1 << 16];
    for (int i = 0; i < sizeof(room); i += 4096)
        room[i] = 1;
}
int main(void)
{
    grow_stack();
    return %(name)s(120) == 120 ? 0 : 1;
}
"""


def test_a_line_with_a_stack_that_is_too_long_for_it_keeps_the_innermost_functions(both, tmp_path):
    name = "descend_" + "further_" * 14
    source = tmp_path / "deep.c"
    source.write_text(DEEP % {"name": name})
    subprocess.run(["gcc", "-O0", "-fno-omit-frame-pointer", "-o", tmp_path / "deep", source], check=True)
    nested, flat = both("profile", "-g", "-e", "page-faults:u", "-c", "1", "--", tmp_path / "deep")
    assert total(flat) == sum(entry["samples"] for entry in nested.entries())
    deepest = [line for line in flat if line.get("stack", "").count(name) > 20]
    assert len(deepest) == 1
    line, = deepest
    assert line["truncated"] and set(line["stack"].split(";")) == {name} and line["symbol"] == name
    # 8 KiB less the rest of the line, and less room for one more function.
    assert 8192 - 1024 - len(name) < len(line["stack"]) < 8192


@pytest.mark.parametrize("words", [["stat", "-e", "page-faults,cs"], ["profile", "-e", "page-faults", "-c", "1", "--by", "pid"]],
                         ids=["stat", "profile"])
def test_the_total_of_a_series_grows_by_each_value(nhmtap, tmp_path, control, words):
    flat = tmp_path / "flat"
    with Puppet() as puppet:
        process = nhmtap.start(*words, "-I", DAY, control.option, "-o", f"flat={flat}", "-p", puppet.pid)
        for _ in range(5):
            control.do("ping")
            puppet.do("faults=10")
            control.do("snapshot")
        control.do("stop")
        process.communicate(timeout=60)
    so_far = collections.Counter()
    for line in parse(flat.read_text()):
        so_far[line["event"]] += line["value"]
        assert line["total"] == so_far[line["event"]]
    assert so_far["page-faults"] == 50


def test_a_session_tells_its_activities_apart(nhmtap, tmp_path):
    flat = tmp_path / "lines"
    with Puppet() as puppet:
        with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid)),
                                        faults("samples", "profile", pid=str(puppet.pid))],
                     outputs=[{}, {"path": str(flat), "format": "flat"}]) as session:
            puppet.do("faults=100")
            session.end()
    lines = parse(flat.read_text())
    assert total(lines, activity="counts") == total(lines, activity="samples") == 100
    assert total([line for line in lines if "total" in line], activity="samples") == 100


def test_a_container_is_told_by_its_cgroup(nhmtap, tmp_path, cgroup):
    name = "c0ffee" + "0123456789abcdef" * 4
    inner = pathlib.Path(cgroup[1]) / f"docker-{name[:64]}.scope"
    inner.mkdir()
    try:
        flat = tmp_path / "flat"
        nhmtap("profile", "-e", "page-faults", "-c", "1", "--by", "cgroup", "-o", f"flat={flat}", "--", "sh", "-c",
               f"echo $$ > {inner}/cgroup.procs; exec true")
        told = {line.get("container.id") for line in parse(flat.read_text())
                if inner.name in line.get("cgroup", "")}
        assert told == {name[:64]}
    finally:
        inner.rmdir()


def test_only_what_measures_has_the_format(nhmtap):
    for words in (["list"], ["doctor"], ["explain", "cs"]):
        result = nhmtap(*words, "--format", "flat")
        assert result.status == 1 and f"it is for commands that measure, not for {words[0]}" in result.err


def test_jq_sums_them_by_event(nhmtap, tmp_path):
    flat = tmp_path / "flat"
    nhmtap("profile", "-e", "page-faults", "-c", "1", "-o", f"flat={flat}", "--", *command("faults=300", "exit=0"))
    said = subprocess.run(["jq", "-s", "map(.value // 0) | add", flat], check=True, capture_output=True, text=True)
    assert int(said.stdout) == total([json.loads(line) for line in flat.read_text().splitlines()]) >= 300
