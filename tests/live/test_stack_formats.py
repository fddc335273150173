# SPDX-License-Identifier: GPL-2.0-only
"""Stacks in the formats of other tools, read back by independent readers."""
import collections
import os
import re
import shutil
import subprocess
import time

import otlp_profiles
import pytest
import pprof
import records
import remarks
from puppet import pinned
from records import held, program
from stacks import function

CALLS = os.path.abspath(program("calls"))
EVERY_FAULT = ["-e", "page-faults", "-c", "1"]
STEPS = ["graph=300", "deep=20,50", "kernel=100", "plain=30"]


def written(nhmtap, path, form, *options, steps=STEPS):
    result = nhmtap("profile", "-o", path, "--format", form, *options, "--", CALLS, *steps)
    assert result.status == 0, result.err
    return path


def calls():
    """The file offsets of all bytes of the program's call instructions, by objdump."""
    said = subprocess.run(["objdump", "-d", "-F", "--no-show-raw-insn", CALLS], capture_output=True,
                          text=True, check=True).stdout
    shift = int(re.search(r"^([0-9a-f]+) <main>", said, re.M)[1], 16) - int(
        re.search(r"<main> \(File Offset: (0x[0-9a-f]+)\)", said)[1], 16)
    places = [(int(at, 16), name) for at, name in re.findall(r"^ +([0-9a-f]+):\t(\w+)", said, re.M)]
    return {byte - shift for (at, name), (end, _) in zip(places, places[1:]) if name == "call"
            for byte in range(at, end)}


def test_pprof_has_callers_at_their_calls(nhmtap, tmp_path):
    profile = pprof.read(written(nhmtap, tmp_path / "x.pb.gz", "pprof", *EVERY_FAULT))
    mapping, = [m for m in profile.mapping if profile.string_table[m.filename] == CALLS]
    callers = {i for s in profile.sample if s.value[0] >= 30 for i in s.location_id[1:]}
    found = {x.address - mapping.memory_start for x in profile.location
             if x.id in callers and x.mapping_id == mapping.id}
    assert len(found) >= 6
    assert found <= calls()


def within(profile):
    """{functions of the program, outermost first: samples}, by nm."""
    texts, found = profile.string_table, collections.Counter()
    files = {m.id: (texts[m.filename], m.memory_start) for m in profile.mapping}
    places = {x.id: x for x in profile.location}
    for sample in profile.sample:
        chain = []
        for place in (places[i] for i in sample.location_id):
            name, start = files.get(place.mapping_id, ("", 0))
            if name == CALLS:
                chain.append(function(CALLS, place.address - start))
        if chain:
            found[tuple(reversed(chain))] += sample.value[0]
    return found


def test_pprof_has_each_way_through_the_calls(nhmtap, tmp_path):
    found = within(pprof.read(written(nhmtap, tmp_path / "x.pb.gz", "pprof", *EVERY_FAULT)))
    assert found["_start", "main", "graph", "left", "middle", "touch"] == 300
    assert found["_start", "main", "graph", "right", "middle", "touch"] == 600
    assert found["_start", "main", *["down"] * 20, "middle", "touch"] == 50
    assert found["_start", "main", "touch"] == 30


@pytest.mark.parametrize("options, kind, period", [
    (EVERY_FAULT, ("page-faults", "count"), 1),
    (["-e", "cpu-clock:u", "-c", "1000000"], ("cpu", "nanoseconds"), 1000000)])
def test_pprof_has_samples_and_what_they_stand_for(nhmtap, tmp_path, options, kind, period):
    profile = pprof.read(written(nhmtap, tmp_path / "x.pb.gz", "pprof", *options,
                                 steps=["graph=10", "spin=300"]))
    assert pprof.types(profile) == [("samples", "count"), kind]
    assert profile.period == period and len(profile.sample) > 1
    assert all(s.value[1] == period * s.value[0] for s in profile.sample)


def test_pprof_has_functions_files_and_lines(nhmtap, tmp_path):
    profile = pprof.read(written(nhmtap, tmp_path / "x.pb.gz", "pprof", *EVERY_FAULT))
    texts, functions = profile.string_table, {f.id: f for f in profile.function}
    mapping, = [m for m in profile.mapping if texts[m.filename] == CALLS]
    assert mapping.has_functions and mapping.has_filenames and mapping.has_line_numbers
    build_id = subprocess.run(["readelf", "-n", CALLS], capture_output=True, text=True, check=True).stdout
    assert texts[mapping.build_id] == re.search(r"Build ID: (\w+)", build_id)[1]
    for place in (x for x in profile.location if x.mapping_id == mapping.id):
        for line in place.line:
            found = functions[line.function_id]
            assert texts[found.name] == function(CALLS, place.address - mapping.memory_start)
    with open(os.path.join(os.path.dirname(__file__), "../programs/calls.c"), encoding="utf-8") as file:
        source = file.read().splitlines()
    lines = {source[line.line - 1].strip() for x in profile.location for line in x.line
             if texts[functions[line.function_id].name] in ("left", "right")}
    assert lines == {"middle(n);", "middle(2 * n);"}


# Touches each page from memory without a file, where code has no name: movb $1,(%rdi); ret.
ANONYMOUS = """
#include <string.h>
#include <sys/mman.h>
int main(void)
{
	char *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *pages = mmap(0, 100 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, "\\xc6\\x07\\x01\\xc3", 4);
	for (int i = 0; i < 100; i++)
		((void (*)(char *))code)(pages + (i << 12));
}
"""


def test_an_address_in_memory_without_a_file_is_in_the_range_of_its_mapping(nhmtap, tmp_path):
    """The readers check that of each address."""
    path = tmp_path / "anonymous"
    subprocess.run(["gcc", "-O1", "-x", "c", "-o", path, "-"], input=ANONYMOUS, text=True, check=True)
    result = nhmtap("profile", *EVERY_FAULT, "-o", f"pprof={tmp_path}/x.pb.gz", "-o", f"otlp-profiles-json={tmp_path}/x.json", "--", path)
    assert result.status == 0, result.err
    profile, message = pprof.read(tmp_path / "x.pb.gz"), otlp_profiles.read((tmp_path / "x.json").read_text())
    mapping, = [m.id for m in profile.mapping if profile.string_table[m.filename] == "[anon]"]
    place, = [x.id for x in profile.location if x.mapping_id == mapping]
    assert sum(s.value[0] for s in profile.sample if s.location_id[0] == place) == 100
    assert "[anon]" in {message.texts[m.filename_strindex] for m in message.dictionary.mapping_table}


def test_every_form_says_how_many_stacks_lack_their_outer_functions(nhmtap, tmp_path):
    """The code in memory has no unwind table, and no call instruction tells its caller's."""
    path, forms = tmp_path / "anonymous", [form for form in remarks.READERS if "otlp" not in form]  # it has numbers
    subprocess.run(["gcc", "-O1", "-x", "c", "-o", path, "-"], input=ANONYMOUS, text=True, check=True)
    result = nhmtap("profile", "-g", "--unwind", "tables", *EVERY_FAULT, *(f"--output={form}={tmp_path / form}" for form in forms),
                    "-o", f"json={tmp_path / 'json'}", "-o", "table=-", "--", path)
    assert result.status == 0, result.err
    stacks = records.Result(0, (tmp_path / "json").read_text(), "").one("profile", event="page-faults")["stacks"]
    assert stacks["no_table"] >= 100
    remark = (f"stacks of {stacks['no_table']} of {stacks['delivered']} samples end in code without an unwind table, "
              "without the outer functions")
    assert f"# {remark}" in result.out.splitlines()
    told = {form: [line for line in remarks.READERS[form](tmp_path / form) if remark in line] for form in forms}
    assert all(len(lines) == 1 for lines in told.values()), told


# Both are shown as "Shape::Shape()": the complete object's constructor, and the one of a base.
CONSTRUCTORS = """
#include <sys/mman.h>
void complete(volatile char *page) __asm__("_ZN5ShapeC1Ev");
void base(volatile char *page) __asm__("_ZN5ShapeC2Ev");
__attribute__((noinline)) void complete(volatile char *page) { *page = 1; __asm__ volatile(""); }
__attribute__((noinline)) void base(volatile char *page) { *page = 2; __asm__ volatile(""); }
int main(void)
{
	char *pages = mmap(0, 300 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(pages, 300 * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < 300; i++)
		(i < 100 ? complete : base)(pages + i * 4096);
	return 0;
}
"""


def test_pprof_keeps_functions_with_one_name_apart_by_their_mangled_names(nhmtap, tmp_path):
    subprocess.run(["gcc", "-O1", "-fno-omit-frame-pointer", "-fno-ipa-icf", "-o", tmp_path / "shapes", "-x", "c", "-"],
                   input=CONSTRUCTORS, text=True, check=True)
    result = nhmtap("profile", "-o", tmp_path / "x", "--format", "pprof", *EVERY_FAULT, "--", tmp_path / "shapes")
    assert result.status == 0, result.err
    profile = pprof.read(tmp_path / "x")
    texts = profile.string_table
    functions = {f.id: (texts[f.name], texts[f.system_name]) for f in profile.function}
    leaves = {x.id: functions[x.line[0].function_id] for x in profile.location if x.line}
    found = collections.Counter()
    for sample in profile.sample:
        found[leaves.get(sample.location_id[0])] += sample.value[0]
    assert found["Shape::Shape()", "_ZN5ShapeC1Ev"] == 100 and found["Shape::Shape()", "_ZN5ShapeC2Ev"] == 200
    assert ("main", "main") in functions.values()


# One function has a name, and what is before it has none.
HALF_NAMED = """
        .text
nameless:
        movb $1, (%rdi)
        ret
        .globl named
        .type named, @function
named:  movb $1, (%rdi)
        call nameless_of_page
        ret
        .size named, . - named
nameless_of_page:
        lea 4096(%rdi), %rdi
        jmp nameless
"""


def test_a_file_whose_code_has_names_only_in_part_has_one_mapping(nhmtap, tmp_path):
    """A place of code without a name comes with the file's build-id, a name without."""
    for source, text in (("half.s", HALF_NAMED), ("main.c", """
        #include <sys/mman.h>
        void named(char *);
        int main(void)
        {
            char *pages = mmap(0, 200 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            madvise(pages, 200 * 4096, MADV_NOHUGEPAGE);
            for (int i = 0; i < 100; i++) named(pages + i * 8192);
            return 0;
        }""")):
        (tmp_path / source).write_text(text)
    subprocess.run(["gcc", "-shared", "-Wl,--build-id", "-o", "libhalf.so", "half.s"], cwd=tmp_path, check=True)
    subprocess.run(["strip", "libhalf.so"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "-o", "half", "main.c", "libhalf.so", "-Wl,-rpath,$ORIGIN"], cwd=tmp_path, check=True)
    result = nhmtap("profile", "-o", f"pprof={tmp_path / 'x'}", "-o", f"otlp-profiles={tmp_path / 'y'}", "-e", "page-faults:u",
                    "-c", "1", "--by", "symbol", "--", tmp_path / "half")
    assert result.status == 0, result.err
    profile = pprof.read(tmp_path / "x")
    texts = profile.string_table
    mappings = {m.id: texts[m.filename] for m in profile.mapping}
    assert len(set(mappings.values())) == len(mappings), mappings
    library, = (m for m in profile.mapping if texts[m.filename].endswith("/libhalf.so"))
    assert re.fullmatch("[0-9a-f]{40}", texts[library.build_id])
    found = collections.Counter()
    for sample in profile.sample:
        location = next(x for x in profile.location if x.id == sample.location_id[0])
        found[location.mapping_id, bool(location.line)] += sample.value[0]
    assert found[library.id, True] >= 100 and found[library.id, False] >= 100
    dictionary = otlp_profiles.read((tmp_path / "y").read_bytes()).dictionary
    names = [dictionary.string_table[m.filename_strindex] for m in dictionary.mapping_table]
    assert len(set(names)) == len(names) and str(tmp_path / "libhalf.so") in names, names


def test_mangled_names_are_in_records_only_if_an_output_shows_them(nhmtap, tmp_path):
    subprocess.run(["gcc", "-O1", "-fno-omit-frame-pointer", "-fno-ipa-icf", "-o", tmp_path / "shapes", "-x", "c", "-"],
                   input=CONSTRUCTORS, text=True, check=True)
    for outputs, wanted in (([], set()), (["-o", f"pprof={tmp_path / 'y'}"], {"_ZN5ShapeC1Ev", "_ZN5ShapeC2Ev"})):
        result = nhmtap("profile", "-g", *EVERY_FAULT, "-o", tmp_path / "x", *outputs, "--", tmp_path / "shapes")
        assert result.status == 0, result.err
        frames = [f for r in records.parse((tmp_path / "x").read_text()) if r["type"] == "frames" for f in r["frames"]]
        assert {f["linkage_name"] for f in frames if "linkage_name" in f} >= wanted
        assert wanted or not any("linkage_name" in f for f in frames)


def test_pprof_has_the_program_as_its_first_mapping(nhmtap, tmp_path):
    """The first sample of a run is one of the dynamic linker."""
    profile = pprof.read(written(nhmtap, tmp_path / "x.pb.gz", "pprof", *EVERY_FAULT))
    assert profile.string_table[profile.mapping[0].filename] == CALLS and len(profile.mapping) > 1
    result = nhmtap("profile", "-o", tmp_path / "y", "--format", "pprof", *EVERY_FAULT, "--", "sh", "-c", f"exec {CALLS} graph=300")
    assert result.status == 0, result.err
    profile = pprof.read(tmp_path / "y")
    assert os.path.basename(profile.string_table[profile.mapping[0].filename]) == "calls"


def test_pprof_has_an_interpreter_as_its_first_mapping_though_its_file_has_another_name(nhmtap, tmp_path):
    """Beside it there is a program that has main(), which the interpreter has started."""
    (tmp_path / "shell9").symlink_to(shutil.copy("/bin/sh", tmp_path / "shell9.1"))
    result = nhmtap("profile", "-o", tmp_path / "x", "--format", "pprof", *EVERY_FAULT, "--", tmp_path / "shell9", "-c",
                    f"{CALLS} graph=300; true")
    assert result.status == 0, result.err
    profile = pprof.read(tmp_path / "x")
    assert os.path.basename(profile.string_table[profile.mapping[0].filename]) == "shell9.1"


def test_pprof_has_a_program_without_samples_as_its_first_mapping(nhmtap, tmp_path):
    """All samples are of the kernel's side."""
    profile = pprof.read(written(nhmtap, tmp_path / "x.pb.gz", "pprof", "-e", "page-faults:k", "-c", 1, "--by", "symbol"))
    names = [profile.string_table[mapping.filename] for mapping in profile.mapping]
    assert profile.sample and names[0] == CALLS and [mapping.id for mapping in profile.mapping] == [len(names), *range(1, len(names))]


@pytest.mark.parametrize("event, expected", [("cpu-clock", 1_000_000), ("page-faults", None)])
def test_pprof_with_a_frequency_has_the_period_that_a_sample_stands_for(nhmtap, tmp_path, event, expected):
    profile = pprof.read(written(nhmtap, tmp_path / "x.pb.gz", "pprof", "-e", event, "-F", "1000", steps=["graph=3000", "spin=200"]))
    samples, period = (sum(s.value[i] for s in profile.sample) for i in (0, 1))
    assert profile.period == (expected or period // samples) > 0


def test_pprof_says_when_and_how_long_it_was_and_whose_samples(nhmtap, tmp_path):
    before = time.time_ns()
    profile = pprof.read(written(nhmtap, tmp_path / "x.pb.gz", "pprof", *EVERY_FAULT, "--by", "comm,pid"))
    assert before <= profile.time_nanos <= profile.time_nanos + profile.duration_nanos <= time.time_ns()
    most = max(profile.sample, key=lambda s: s.value[0])
    found = pprof.labels(profile, most)
    assert found["comm"] == "calls" and found["pid"] > 1


def test_pprof_keeps_samples_without_a_stack_and_those_beyond_top(nhmtap, tmp_path):
    path = tmp_path / "x.pb.gz"
    # The stacks are so long that they fill their room while the table has a slot left for the samples without one.
    result = nhmtap("profile", "-o", path, "--format", "pprof", *EVERY_FAULT, "--top", "5", "--",
                    *held(*pinned(), CALLS, "tree=15,60"))
    assert result.status == 0
    profile = pprof.read(path)
    names = {x.id: [profile.string_table[profile.function[line.function_id - 1].name] for line in x.line]
             for x in profile.location}
    lost = {name[0]: s.value[0] for s in profile.sample for name in [names[s.location_id[0]]] if name}
    assert lost["[stack lost: table_full]"] > 10000 and lost["[others]"] > 1000
    assert sum(s.value[0] for s in profile.sample) >= 2 ** 15


def folded(path):
    """{frames from the outermost, beginning with the thread's comm: samples}."""
    found = collections.Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        chain, samples = line.rsplit(" ", 1)
        found[tuple(chain.split(";"))] += int(samples)
    return found


def test_folded_lines_begin_with_the_command_and_mark_the_kernel(nhmtap, tmp_path):
    found = folded(written(nhmtap, tmp_path / "x", "folded", *EVERY_FAULT))
    assert {chain[0] for chain in found} >= {"calls"}
    (chain, samples), = [(c, n) for c, n in found.items() if n == 100]
    marks = [name.endswith("_[k]") for name in chain]
    assert samples == 100 and any(marks) and marks == sorted(marks)


def fold(data):
    """The same from what perf recorded, as stackcollapse-perf.pl would write it."""
    said = subprocess.run(["perf", "script", "-i", data, "-F", "comm,ip,sym", "--no-inline"],
                          capture_output=True, text=True, check=True).stdout
    found = collections.Counter()
    for block in said.strip().split("\n\n"):
        comm, *lines = block.split("\n")
        frames = [line.split(maxsplit=1) for line in lines]
        found[comm.strip(), *(name + "_[k]" * (int(address, 16) >> 63)
                              for address, name in reversed(frames))] += 1
    return found


def test_folded_lines_are_those_of_perf_script(nhmtap, tmp_path):
    # Each step has exactly one caller. Which functions load the program differs slightly between runs.
    ours = folded(written(nhmtap, tmp_path / "x", "folded", *EVERY_FAULT, "--unwind", "fp"))
    subprocess.run(["perf", "record", "-q", "-m", "4096", "--buildid-mmap", "-g", *EVERY_FAULT, "-o", tmp_path / "perf", CALLS,
                    *STEPS], check=True, capture_output=True)
    theirs = {chain: n for chain, n in fold(tmp_path / "perf").items() if n >= 30}
    assert len(theirs) == 5
    assert {chain: n for chain, n in ours.items() if n >= 30} == theirs


def test_folded_lines_sum_up_to_all_samples(nhmtap, tmp_path):
    written(nhmtap, tmp_path / "x", "folded", *EVERY_FAULT, "--top", "3")
    found = folded(tmp_path / "x")
    assert found["[others]",] > 0 and sum(found.values()) > 1080
    assert len(found) == 4


def test_pages_that_were_touched_are_weighed_by_their_stacks_in_each_form(nhmtap, tmp_path):
    """mem on page faults. In pprof, period and latency are values, and the source is a label."""
    def touched(form, *options):
        result = nhmtap("mem", *EVERY_FAULT, "-g", "--by", "symbol,comm", "-o", tmp_path / form, "--format", form, *options, "--",
                        CALLS, "graph=300")
        assert result.status == 0, result.err
        return tmp_path / form
    profile = pprof.read(touched("pprof"))
    assert pprof.types(profile) == [("samples", "count"), ("page-faults", "count"), ("latency", "cycles")]
    texts = profile.string_table
    assert all(("source", "unmeasured") in {(texts[label.key], texts[label.str]) for label in s.label} for s in profile.sample)
    assert 300 in {s.value[0] for s in profile.sample}
    lines = dict(line.rsplit(" ", 1) for line in touched("folded").read_text().splitlines())
    ways = {way: int(n) for way, n in lines.items() if "graph;left;middle;touch" in way}
    assert sum(ways.values()) == 300
    with open(touched("json"), encoding="utf-8") as file:
        page = subprocess.run([records.NHMTAP, "flamegraph"], stdin=file, capture_output=True, text=True, check=True).stdout
    assert '"name":"page-faults (mem)","unit":"page-faults"' in page and '"touch"' in page


@pytest.mark.parametrize("command, forms", [(["stat"], ["table"]), (["mem", "-c", "1"], ["table"]),
                                            (["profile", "-c", "1"], ["table", "callgrind", "folded"])])
def test_no_events_name_ends_a_line_or_steers_a_terminal(nhmtap, tmp_path, command, forms):
    outputs = [word for form in forms for word in ("-o", f"{form}={tmp_path / form}")]
    assert nhmtap(*command, "-e", "software/config=2,name=a\x1b[31m\nb/u", *outputs, "--", "true").status == 0
    for form in forms:
        text = (tmp_path / form).read_text()
        assert "\x1b" not in text and not any(line.startswith("b") for line in text.splitlines()), text
    assert "a\\u001b[31m\\u000ab" in (tmp_path / "table").read_text()
