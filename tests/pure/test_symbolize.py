# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap symbolize: names in stored streams of records."""
import json
import os
import re
import shutil
import subprocess

import pytest

from naming import addr2line, build_id, offset_of, run, symbols
from records import HERE, NHMTAP, Result

with open(os.path.join(HERE, "..", "schema", "VERSION"), encoding="utf-8") as version:
    SCHEMA_VERSION = version.read().strip()
BOOT = "/proc/sys/kernel/random/boot_id"
SOURCE = """
#include <stdio.h>
static inline __attribute__((always_inline)) int inner(int x) { return x + getchar(); }
__attribute__((noinline)) int outer(int x)
{
    return inner(x) * 2;
}
int main(int argc, char **argv) { return outer(argc); }
"""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    path = tmp_path_factory.mktemp("program") / "program"
    path.with_suffix(".c").write_text(SOURCE)
    run("gcc", "-O2", "-g", "-o", path, path.with_suffix(".c"))
    return path


def symbolize(text, *options):
    done = subprocess.run([NHMTAP, "symbolize", *map(str, options)], input=text, capture_output=True, text=True,
                          errors="surrogateescape", timeout=60, check=False)
    return Result(done.returncode, done.stdout, done.stderr)


def text_of(*records):
    return "".join(json.dumps(record, separators=(",", ":"), ensure_ascii=False) + "\n" for record in records)


def stream(*records, run_id="0" * 32, boot=None, by=("ip",)):
    """A whole stream with these records in it."""
    envelope = {"schema_version": SCHEMA_VERSION, "time": "2026-01-31T23:59:59.123456789Z", "run_id": run_id}
    host = {"cpu": {"vendor": "GenuineIntel", "family": 6, "model": 26, "stepping": 5, "model_name": "x"},
            "cpus_online": 1, "kernel": "6.1.0", **({"boot_id": boot} if boot else {})}
    start = {"type": "start", "version": "0.1.0", "command": "profile", "host": host, "target": {"cpus": "0"},
             "resource": {"host.name": "x", "host.arch": "amd64", "os.type": "linux", "process.pid": 1,
                          "process.executable.name": "nhmtap"}, "events": [event()], "by": list(by)}
    end = {"type": "end", "reason": "exited", "exit_status": 0, "duration_ns": 1,
           "overhead": {"cpu_time_ns": 1, "max_rss_bytes": 1}, "records": len(records) + 2}
    return [{"type": record["type"], **envelope, "seq": seq, **record}
            for seq, record in enumerate([start, *records, end])]


def event():
    return {"name": "cpu-clock", "attr": {"type": 1, "config": "0x0", "read_format": "0x0"}}


def profile(*entries, start="2026-01-31T23:59:59.000000000Z", **members):
    n = sum(entry["samples"] for entry in entries)
    whole = {"value": n, "enabled_ns": 1, "running_ns": 1,
             "samples": {"expected": n, "uncertainty": 0, "aggregated": n, "lost": {"table_full": 0}}}
    return {"type": "profile", "event": "cpu-clock", "start_time": start, "duration_ns": 1,
            **(whole if members.get("part", 1) == 1 else {}), "entries": list(entries), **members}


def entry(**members):
    return {**members, "samples": 1, "period": 1}


def place(path, address, **members):
    return {"module": str(path), "offset": f"{offset_of(path, address):#x}", **members}


def inside(path):
    """An address of outer() at which inner() and getchar() are inlined."""
    (begin, size), = symbols(path)["outer"]
    said = addr2line(path, range(begin, begin + size))
    return next(address for address, frames in said.items() if len(frames) == 3)


def named(path, address):
    """The place with the names from addr2line: each inlined function has the place of its call."""
    frames = addr2line(path, [address])[address]
    (begin, _), = symbols(path)[frames[-1][0]]
    inlined = [{"symbol": symbol, "call_file": file, "call_line": line}
               for (symbol, _, _), (_, file, line) in zip(frames, frames[1:])]
    return {**place(path, address), "build_id": build_id(path), "symbol": frames[-1][0],
            "symbol_offset": f"{address - begin:#x}", "file": frames[0][1], "line": frames[0][2],
            **({"inlined": inlined} if inlined else {})}


def test_a_place_is_named_with_its_line_and_what_is_inlined_there(compiled):
    address = inside(compiled)
    result = symbolize(text_of(*stream(profile(entry(code=place(compiled, address), comm="x")))))
    assert result.status == 0 and result.err == ""
    (got,) = result.entries()
    assert got == entry(comm="x", code=named(compiled, address))


def test_edges_are_named_at_both_ends(compiled):
    (begin, _), = symbols(compiled)["outer"]
    (main, _), = symbols(compiled)["main"]
    # A stack of two branches, and so one range.
    branch = {**profile(), "type": "branch", "stacks": {"by_depth": [0, 0, 1] + [0] * 14},
              "branches": {**dict.fromkeys(("mispredicted", "unresolved", "broken", "table_full"), 0),
                           "delivered": 2},
              "entries": [{"kind": "range", "from": place(compiled, main), "to": place(compiled, begin), "count": 1}]}
    (got,) = symbolize(text_of(*stream(branch, by=["range"]))).entries("branch")
    assert got["from"] == named(compiled, main)
    assert got["to"] == named(compiled, begin)


def test_a_frame_to_which_a_call_returns_is_named_as_the_call(compiled, tmp_path):
    (tmp_path / "a.S").write_text(""".globl main
.type main, @function
main: call end
.size main, . - main
.type end, @function
end: ret
.size end, . - end
""")
    path = tmp_path / "a"
    run("gcc", "-o", path, tmp_path / "a.S")
    (behind, _), = symbols(path)["end"]
    frames = {"type": "frames", "event": "cpu-clock", "start_time": "2026-01-31T23:59:59.000000000Z",
              "duration_ns": 1, "frames": [{"id": 0, **place(path, behind)},
                                           {"id": 1, **place(path, behind), "return": True}]}
    got = symbolize(text_of(*stream(frames))).one("frames")["frames"]
    assert [(frame["symbol"], frame["symbol_offset"]) for frame in got] == [("end", "0x0"), ("main", "0x5")]


def test_files_are_looked_for_below_a_folder(compiled, tmp_path):
    address = inside(compiled)
    (tmp_path / "opt").mkdir()
    shutil.copy(compiled, tmp_path / "opt/program")
    text = text_of(*stream(profile(entry(code={**place(compiled, address), "module": "/opt/program"}))))
    assert "symbol" not in symbolize(text).entries()[0]["code"]
    assert symbolize(text, "--symfs", tmp_path).entries()[0]["code"]["symbol"] == "outer"


def test_debug_files_are_looked_for_where_it_is_said(compiled, tmp_path):
    address = inside(compiled)
    number = build_id(compiled)
    folder = tmp_path / "debug/.build-id" / number[:2]
    folder.mkdir(parents=True)
    shutil.copy(compiled, folder / f"{number[2:]}.debug")
    stripped = tmp_path / "stripped"
    run("strip", "-o", stripped, compiled)
    text = text_of(*stream(profile(entry(code=place(stripped, address)))))
    assert "symbol" not in symbolize(text).entries()[0]["code"]
    got = symbolize(text, "--debug-dir", tmp_path / "debug").entries()[0]["code"]
    assert got == {**named(compiled, address), "module": str(stripped)}


def test_a_file_that_was_replaced_gives_no_name_and_says_so(compiled):
    code = place(compiled, inside(compiled), build_id="00" * 20)
    result = symbolize(text_of(*stream(profile(entry(code=code)))))
    assert result.entries()[0]["code"] == code
    assert "another build-id" in result.err


def test_what_has_a_name_keeps_it(compiled):
    code = {**place(compiled, inside(compiled)), "symbol": "mine"}
    text = text_of(*stream(profile(entry(code=code))))
    assert symbolize(text).out == text


# --- the kernel ---------------------------------------------------------------------------------------

def kernel_address():
    with open("/proc/kallsyms", encoding="utf-8") as file:
        return next(int(line.split()[0], 16) for line in file if line.split()[1:] == ["T", "schedule"])


def test_kernel_addresses_of_this_boot_are_named():
    address = kernel_address()
    with open(BOOT, encoding="utf-8") as file:
        text = text_of(*stream(profile(entry(ip=f"{address + 4:#x}")), boot=file.read().strip()))
    assert symbolize(text).entries()[0]["code"] == {
        "module": "[kernel]", "symbol": "schedule", "symbol_offset": "0x4", "address": f"{address + 4:#x}"}


@pytest.mark.parametrize("boot", [None, "2d3b1f7e-0000-4000-8000-000000000000"])
def test_kernel_addresses_of_another_boot_are_not(boot):
    text = text_of(*stream(profile(entry(ip=f"{kernel_address():#x}")), boot=boot))
    result = symbolize(text)
    assert result.out == text
    assert "another boot" in result.err


def test_kernel_addresses_of_another_boot_are_named_by_its_symbols(tmp_path):
    (tmp_path / "kallsyms").write_text("ffffffff81000000 T there\nffffffffc0000000 t helper\t[ext4]\n")
    text = text_of(*stream(profile(entry(ip="0xffffffff81000010"),
                                   entry(code={"module": "[kernel]", "address": "0xffffffffc0000001"}))))
    first, second = symbolize(text, "--kallsyms", tmp_path / "kallsyms").entries()
    assert (first["code"]["symbol"], first["code"]["module"]) == ("there", "[kernel]")
    assert (second["code"]["symbol"], second["code"]["module"]) == ("helper", "[ext4]")


# --- the stream ---------------------------------------------------------------------------------------

def test_records_without_code_pass_byte_for_byte(compiled):
    text = text_of(*stream(profile(entry(comm="\u2028ü", ip="0x401000")),
                           {"type": "sample", "event": "e", "sample_time": "2026-01-31T23:59:59.000000000Z",
                            "address": "0xffff888000000000", "period": 1, "source": "local_dram_exclusive"}))
    text = text.replace('"samples":1,', '"samples": 1,')  # symbolize would write it otherwise
    result = symbolize(text)
    assert result.out == text and result.err == ""


def many(path, n):
    (begin, size), = symbols(path)["outer"]
    return [entry(code=place(path, begin + i % size), comm=f"c{i}") for i in range(n)]


@pytest.mark.parametrize("n", [1, 20, 40, 200, 1000])
def test_lists_that_grow_are_cut_anew_and_lose_nothing(compiled, n):
    """parse() and check_stream() check length, seq, parts and sums."""
    entries = many(compiled, n)
    before = [entry(comm="before")]
    after = {**profile(entry(comm="after")), "start_time": "2026-01-31T23:59:59.500000000Z"}
    pieces = [entries[i:i + 40] for i in range(0, n, 40)]
    cut = [profile(*piece, **({"part": i + 1, "parts": len(pieces)} if len(pieces) > 1 else {}))
           for i, piece in enumerate(pieces)]
    cut[0].update(profile(*entries), entries=pieces[0])
    result = symbolize(text_of(*stream(profile(*before, start="2026-01-31T23:59:58.000000000Z"), *cut, after)))
    got = result.entries()
    assert [e["comm"] for e in got] == ["before", *(f"c{i}" for i in range(n)), "after"]
    assert all(e["code"]["symbol"] == "outer" for e in got[1:-1])
    assert len(result.records) >= len(cut) + 4


def test_streams_that_are_mixed_are_kept_apart(compiled):
    streams = [stream(profile(*many(compiled, 100)), run_id=letter * 32) for letter in "ab"]
    mixed = [record for pair in zip(*streams) for record in pair]
    lines = symbolize(text_of(*mixed)).out.splitlines(keepends=True)
    for letter in "ab":
        own = Result(0, "".join(line for line in lines if f'"run_id":"{letter * 32}"' in line), "")
        assert len(own.entries()) == 100
        assert len(own.records) > 3


@pytest.mark.parametrize("part", [{}, {"part": 1, "parts": 2}], ids=["whole", "waiting for a part"])
def test_runs_without_an_end_cost_time_in_proportion(part, tmp_path):
    """User time grows linearly: 8 times as many runs take about 8 times as long, not 64 times."""
    def cost(number):
        lines = [json.dumps({"type": "profile", "schema_version": "2.0.0", "time": "2026-01-31T23:59:59.123456789Z", "seq": 0,
                             "run_id": f"{i:032x}", "entries": [], **part}) + "\n" for i in range(number)]
        (tmp_path / "in").write_text("".join(lines), encoding="ascii")
        begin = os.times()
        done = subprocess.run([NHMTAP, "symbolize", tmp_path / "in"], capture_output=True, text=True, check=True)
        end = os.times()
        assert sorted(done.stdout.splitlines(keepends=True)) == lines
        return end.children_user - begin.children_user

    assert cost(32000) < 24 * max(cost(4000), 0.02)


def test_a_record_whose_other_parts_are_missing_passes_as_it_is(compiled):
    first, second, third = (profile(*many(compiled, 3), part=i, parts=3) for i in (1, 2, 3))
    records = stream(first, second, third)
    for missing in ({2}, {3}, {1}, {2, 3}):
        text = text_of(*(record for record in records if record.get("part") not in missing))
        assert symbolize(text).out == text


def test_lines_that_are_no_records_pass_and_are_counted(compiled):
    before, *records = stream(profile(entry(code=place(compiled, inside(compiled)))))
    rubbish = ["not json\n", "\n", "[1]\n", '{"type":"profile"}\n', '{"a":"\\u0000"}\n', "\udcff\udcfe\n", "{" * 3000 + "\n"]
    text = text_of(before) + "".join(rubbish) + text_of(*records) + "the end is cut o"
    result = symbolize(text)
    lines = result.out.splitlines(keepends=True)
    assert lines[1:len(rubbish) + 1] == rubbish
    assert lines[-1] == "the end is cut o"
    assert json.loads(lines[len(rubbish) + 1])["entries"][0]["code"]["symbol"] == "outer"
    assert "7 lines are no records" in result.err
    assert result.status == 0


def test_records_of_another_major_version_pass_and_are_counted(compiled):
    records = [{**record, "schema_version": "9.0.0"}
               for record in stream(profile(entry(code=place(compiled, inside(compiled)))))]
    result = symbolize(text_of(*records))
    assert result.out == text_of(*records)
    assert "3 records are of another version" in result.err


def test_a_file_is_read_as_stdin_is(compiled, tmp_path):
    (tmp_path / "in").write_text(text_of(*stream(profile(*many(compiled, 3)))))
    expected = symbolize((tmp_path / "in").read_text()).out
    assert symbolize("", tmp_path / "in").out == expected
    assert symbolize("", tmp_path / "in", "-o", tmp_path / "out").status == 0
    assert (tmp_path / "out").read_text() == expected


def test_the_file_that_is_read_is_not_written_over(compiled, tmp_path):
    text = text_of(*stream(profile(*many(compiled, 3))))
    (tmp_path / "in").write_text(text)
    os.link(tmp_path / "in", tmp_path / "same")
    result = symbolize("", tmp_path / "in", "-o", tmp_path / "same")
    assert result.status == 1 and "it is the file that is read" in result.err
    assert (tmp_path / "in").read_text() == text


def test_what_can_not_be_read_is_refused(tmp_path):
    for arguments in (["/nonexistent"], ["a", "b"]):
        result = symbolize("", *arguments)
        assert (result.status, result.out) == (1, "")
        assert result.err.startswith("nhmtap: ")


def test_names_come_while_the_stream_goes_on(compiled):
    start, first, *_ = text_of(*stream(profile(*many(compiled, 1)))).splitlines(keepends=True)
    with subprocess.Popen([NHMTAP, "symbolize"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write(start + first)
        process.stdin.flush()
        assert process.stdout.readline() == start
        assert '"symbol":"outer"' in process.stdout.readline()
        process.stdin.close()


def test_hostile_names_keep_records_within_their_length(tmp_path):
    names = ["x" * 5000, "\\x01" * 1500, '"' * 1900, "ü" * 1500]
    (tmp_path / "a.S").write_text("".join(
        f'.globl main\n.type "f{i}{name}", @function\n"f{i}{name}": nop\n.size "f{i}{name}", 1\n'.replace('"""', '"')
        for i, name in enumerate(n.replace('"', "q") for n in names)) + "main: ret\n")
    path = tmp_path / "a"
    run("gcc", "-o", path, tmp_path / "a.S")
    found = [address for name, ((address, _), *_) in symbols(path).items() if name[0] == "f" and name[1].isdigit()]
    assert len(found) == len(names)
    result = symbolize(text_of(*stream(profile(*(entry(code=place(path, address)) for address in found)))))
    assert all("symbol" in e["code"] or e["code"] == place(path, address)
               for e, address in zip(result.entries(), found))


def fails_in_the_middle(command, path, log):
    """Runs a command with the file as stdin, of which the second read fails."""
    with open(path, encoding="utf-8") as stdin:
        # LeakSanitizer is a tracer too, and a process can have only one.
        return subprocess.run(["strace", "-o", log, "-e", "trace=read", "-P", path, "-e", "inject=read:error=EIO:when=2",
                               NHMTAP, *command], stdin=stdin, capture_output=True, text=True, check=False,
                              env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}, timeout=60)


@pytest.mark.parametrize("command", ["symbolize", "flamegraph", "show", "report"])
def test_a_stream_that_can_not_be_read_to_its_end_is_told(command, compiled, tmp_path):
    (tmp_path / "in").write_text(text_of(*stream(*[profile(*many(compiled, 100))] * 200)))
    done = fails_in_the_middle([command], tmp_path / "in", tmp_path / "log")
    assert done.returncode == 3 and "reading the records" in done.stderr and "Input/output error" in done.stderr
    folder = os.open(tmp_path, os.O_RDONLY)
    done = subprocess.run([NHMTAP, command], stdin=folder, capture_output=True, text=True, check=False)
    os.close(folder)
    assert done.returncode == 3 and "Is a directory" in done.stderr


def test_a_line_of_any_length_passes_without_being_held(compiled, tmp_path):
    records = [text_of(record).encode() for record in stream(profile(*many(compiled, 3)))]
    with open(tmp_path / "out", "wb") as out:
        with subprocess.Popen([NHMTAP, "symbolize"], stdin=subprocess.PIPE, stdout=out, stderr=subprocess.PIPE) as going:
            going.stdin.write(records[0])
            for _ in range(400):
                going.stdin.write(b"x" * 1_000_000)
            with open(f"/proc/{going.pid}/status", encoding="utf-8") as status:
                peak = int(re.search(r"VmHWM:\s+(\d+)", status.read())[1])
            going.stdin.write(b"\n" + b"".join(records[1:]))
            going.stdin.close()
            err = going.stderr.read().decode()
    assert peak < 250_000  # KiB
    lines = (tmp_path / "out").read_bytes().splitlines(keepends=True)
    assert [len(line) for line in lines[:2]] == [len(records[0]), 400_000_001]
    assert len(lines) == len(records) + 1 and lines[-1] == records[-1]
    assert "1 lines are no records" in err
