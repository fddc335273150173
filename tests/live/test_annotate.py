# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap profile --annotate: a program whose every page fault is of one instruction, and objdump's list of its code."""
import os
import re
import subprocess

import pytest

PAGES = 64
SOURCE = """
#include <sys/mman.h>

__attribute__((noinline)) void touch_pages(char *at)
{
	for (long i = 0; i < %d; i++)
		__asm__ volatile("touch_site: movb $1, (%%0)" : : "r"(at + 4096 * i) : "memory"); /* here */
}

int main(void)
{
	char *at = mmap(0, 4096 * %d, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(at, 4096 * %d, MADV_NOHUGEPAGE);
	touch_pages(at);
	return 0;
}
""" % (PAGES, PAGES, PAGES)


def build(folder, *flags, name="touch", source=SOURCE, compiler="gcc"):
    path = folder / f"{name}.{'c' if compiler == 'gcc' else 'cc'}"
    path.write_text(source)
    subprocess.run([compiler, "-O1", *flags, "-o", folder / name, path], check=True)
    return folder / name


@pytest.fixture(scope="module")
def touch(tmp_path_factory):
    return build(tmp_path_factory.mktemp("touch"), "-g")


def annotated(nhmtap, program, function="touch_pages", *options):
    result = nhmtap("profile", "-e", "page-faults:u", "-c", "1", "--annotate", function, *options, "--", program)
    assert result.status == 0, result.err
    return [record for record in result.records if record["type"] == "annotation"]


def disassembled(program, function="touch_pages"):
    """The function's instructions by objdump: address and mnemonic. A program's first segments are where they are in
    the file."""
    said = subprocess.run(["objdump", "-d", f"--disassemble={function}", "--no-show-raw-insn", program],
                          capture_output=True, text=True, check=True).stdout
    return [(int(address, 16), text) for address, text in re.findall(r"^ +([0-9a-f]+):\t(\S+)", said, re.M)]


def site(program):
    said = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"^([0-9a-f]+) . touch_site$", said, re.M)[1], 16)


def test_every_sample_is_at_the_instruction_that_faults(nhmtap, touch):
    annotation, = annotated(nhmtap, touch, "touch_pages")
    hot = {int(one["offset"], 16): one["samples"] for one in annotation["instructions"] if "samples" in one}
    assert hot == {site(touch): PAGES} and annotation["sampled"] == PAGES
    assert 0 < annotation["share"] <= 1 and "why" not in annotation


def test_the_instructions_are_those_that_objdump_lists(nhmtap, touch):
    annotation, = annotated(nhmtap, touch)
    ours = [(int(one["offset"], 16), one["instruction"].split()[0]) for one in annotation["instructions"]]
    theirs = disassembled(touch)
    # libcapstone writes the size of each operand at the mnemonic's end.
    assert [address for address, _ in ours] == [address for address, _ in theirs]
    assert all(mine == other or mine.rstrip("bwlq") == other.rstrip("bwlq") for (_, mine), (_, other) in zip(ours, theirs))


def test_each_instruction_has_its_line_and_the_lines_text(nhmtap, touch):
    annotation, = annotated(nhmtap, touch)
    hot, = [one for one in annotation["instructions"] if "samples" in one]
    lines = SOURCE.splitlines()
    assert "/* here */" in lines[hot["line"] - 1] and os.path.samefile(hot["file"], f"{touch}.c")
    for one in annotation["instructions"]:
        assert "source" not in one or one["source"] == lines[one["line"] - 1]


def test_the_table_has_the_source_above_the_instructions(nhmtap, touch):
    said = nhmtap("profile", "-e", "page-faults:u", "-c", "1", "--annotate", "touch_pages", "--format", "table", "--", touch).out
    lines = said.splitlines()
    at, = [i for i, line in enumerate(lines) if re.match(rf" +{PAGES} +100.00% ", line)]
    assert any("/* here */" in line for line in lines[:at]) and "movb" in lines[at]
    assert "\\u0009" not in said


def test_the_end_of_a_line_of_other_systems_is_no_part_of_it(nhmtap, tmp_path):
    annotation, = annotated(nhmtap, build(tmp_path, "-g", source=SOURCE.replace("\n", "\r\n")))
    shown = [one["source"] for one in annotation["instructions"] if "source" in one]
    assert shown and set(shown) <= set(SOURCE.splitlines())


def test_a_missing_source_is_told_and_the_instructions_stay(nhmtap, tmp_path):
    program = build(tmp_path, "-g")
    os.unlink(f"{program}.c")
    annotation, = annotated(nhmtap, program)
    assert annotation["sampled"] == PAGES and len(annotation["instructions"]) == len(disassembled(program))
    assert any(f"the source file {program}.c can't be read: there is no such file" in why for why in annotation["why"])


def test_a_source_that_changed_since_is_told(nhmtap, tmp_path):
    program = build(tmp_path, "-g")
    later = os.stat(program).st_mtime + 60
    os.utime(f"{program}.c", (later, later))
    annotation, = annotated(nhmtap, program)
    assert any("is newer than the program" in why for why in annotation["why"])


def test_a_program_without_debug_information_has_instructions_and_a_reason(nhmtap, tmp_path):
    annotation, = annotated(nhmtap, build(tmp_path))
    assert annotation["sampled"] == PAGES and all("line" not in one for one in annotation["instructions"])
    assert any("no debug information" in why for why in annotation["why"])


def test_lines_come_from_a_debug_file_beside_the_program(nhmtap, tmp_path):
    program = build(tmp_path, "-g")
    for command in (["objcopy", "--only-keep-debug", program, f"{program}.debug"], ["strip", program],
                    ["objcopy", f"--add-gnu-debuglink={program}.debug", program]):
        subprocess.run(command, check=True)
    annotation, = annotated(nhmtap, program)
    hot, = [one for one in annotation["instructions"] if "samples" in one]
    assert "/* here */" in hot["source"] and hot["samples"] == PAGES


def test_split_dwarf_has_its_lines_in_the_program(nhmtap, tmp_path):
    annotation, = annotated(nhmtap, build(tmp_path, "-g", "-gsplit-dwarf"))
    hot, = [one for one in annotation["instructions"] if "samples" in one]
    assert "/* here */" in hot["source"]


def test_what_only_another_user_may_read_is_not_shown(nhmtap, tmp_path):
    """A program that names somebody's file as its source does not make root show it."""
    program = build(tmp_path, "-g")
    os.chown(program, 12345, 12345)
    os.chmod(f"{program}.c", 0o600)
    annotation, = annotated(nhmtap, program)
    assert all("source" not in one for one in annotation["instructions"]) and "can't be read" in " ".join(annotation["why"])


def test_a_mangled_name_and_the_shown_one_are_the_same_function(nhmtap, tmp_path):
    source = SOURCE.replace("touch_pages", "of_class::touch_pages").replace(
        "__attribute__((noinline)) void of_class", "struct of_class { static void touch_pages(char *at); };\n\nvoid of_class")
    program = build(tmp_path, "-g", name="cplus", source=source.replace("mmap(0", "(char *)mmap(0"), compiler="g++")
    mangled = re.search(r"_ZN\S*touch_pages\S*", subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout)[0]
    shown, = annotated(nhmtap, program, "of_class::touch_pages(char*)")
    linked, = annotated(nhmtap, program, mangled)
    assert shown["sampled"] == linked["sampled"] == PAGES


def test_a_function_is_found_by_the_name_that_the_source_has_for_it(nhmtap, tmp_path):
    """Compilers add parameters, arguments of templates and what these return, and mark variants. of_class is no function."""
    source = SOURCE.replace("void touch_pages", "void real").replace("touch_pages(at)", """of_class::over(at); of_class::over((long *)at + 512);
\tof_class::any<char, std::pair<int, int>>(at + 8192); std::fill<int>(at + 12288); made(at + 16384); real(at)""")
    source = "#include <utility>\n" + source.replace("int main", """#define ONCE __attribute__((noinline)) static
struct of_class {
    ONCE void over(char *at) { *(volatile char *)at = 1; }
    ONCE void over(long *at) { *(volatile long *)at = 1; }
    template <class T, class U> ONCE void any(T *at) { *(volatile T *)at = 1; }
};
namespace std { template <class T> ONCE void fill(char *at) { *(volatile T *)at = 1; } }
extern "C" { void made(char *at) __asm__("made.constprop.0"); }
__attribute__((noinline)) void made(char *at) { *(volatile char *)at = 1; }
int main""").replace("mmap(0", "(char *)mmap(0")
    program = build(tmp_path, "-g", name="cplus", source=source, compiler="g++")
    for name, functions in (("of_class::over", 2), ("of_class::any", 1), ("std::fill", 1), ("made", 1), ("of_class::over(long*)", 1)):
        found = annotated(nhmtap, program, name)
        assert [one["sampled"] for one in found] == [1] * functions, name
    for name in ("of_class", "of_class::", "over", "int", "std::pair", "char"):
        assert [one["sampled"] for one in annotated(nhmtap, program, name)] == [0], name


def test_a_function_without_samples_is_told(nhmtap, touch):
    annotation, = annotated(nhmtap, touch, "nowhere")
    assert annotation["sampled"] == 0 and "no sample was in a function of this name" in annotation["why"][0]
    said = nhmtap("profile", "-e", "page-faults:u", "-c", "1", "--annotate", "nowhere", "--format", "table", "--", touch)
    assert "no sample was in a function of this name" in said.out


@pytest.mark.parametrize("options, why", [(["--by", "comm"], "it has keys of its own"), (["-g"], "told by their stacks")])
def test_other_keys_are_refused(nhmtap, touch, options, why):
    result = nhmtap("profile", "-e", "page-faults:u", "--annotate", "main", *options, "--", touch)
    assert result.status == 1 and why in result.records[0]["why"]


def test_stored_samples_are_annotated_too(nhmtap, touch, tmp_path):
    """The places are in the records, and the program still is where it was."""
    stored = tmp_path / "stored"
    assert nhmtap("profile", "-q", "--by", "place", "-e", "page-faults:u", "-c", "1", "-o", stored, "--", touch).status == 0
    shown = subprocess.run(nhmtap.command("show", "--annotate", "touch_pages", stored), capture_output=True, text=True, check=True).stdout
    place = re.search(rf"^ *(\d+) .*0x{site(touch):x}: ", shown, re.M)
    assert place and int(place[1]) == PAGES and "/* here */" in shown


@pytest.mark.parametrize("options, why", [
    (["--annotate", "main"], "there are no samples of places in the code"),
    (["--annotate", "main", "--by", "comm"], "by all samples of a function in one file"),
])
def test_stored_records_without_samples_of_code_say_why(nhmtap, tmp_path, options, why):
    stored = tmp_path / "stored"
    assert nhmtap("stat", "-q", "-e", "page-faults", "-o", stored, "--", "true").status == 0
    result = subprocess.run(nhmtap.command("show", *options, stored), capture_output=True, text=True, check=False)
    assert result.returncode == 1 and why in result.stderr
