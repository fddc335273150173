# SPDX-License-Identifier: GPL-2.0-only
"""Names of code in ELF files, compared with what binutils and LLVM print for the same files."""
import os
import random
import re
import shutil
import struct
import subprocess
import time

import pytest

import golang
import manysymbols
from naming import Names, addr2line, build_id, functions, llvm_symbolizer, offset_of, places, run, segments, symbols

SOURCE = """
#include <stdio.h>
#include "inlined.h"
static __attribute__((noinline)) int hidden(int x) { return putchar(x); }
__attribute__((noinline)) int outer(int x)
{
    int sum = 0;
    for (int i = 0; i < x; i++)
        sum += middle(i) + hidden(i);
    return sum;
}
int main(int argc, char **argv) { return outer(argc); }
"""
HEADER = """
static inline __attribute__((always_inline)) int inner(int x)
{
    return x * 3 + getchar();
}
static inline __attribute__((always_inline)) int middle(int x)
{
    return inner(x) ^
           inner(x + 1);
}
"""


@pytest.fixture
def engine(names_program):
    """Starts an engine with options. All engines end with the test, and must exit successfully."""
    engines = []

    def start(*options):
        engines.append(Names(names_program, *options))
        return engines[-1]
    yield start
    for each in engines:
        each.close()


@pytest.fixture
def compiled(tmp_path):
    """Compiles the program with options, and returns its path: compiled("-static")."""
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "inlined.h").write_text(HEADER)
    (tmp_path / "program.c").write_text(SOURCE)

    def make(*options, name="program"):
        run("gcc", "-O2", "-g", "-Iheaders", *options, "-o", tmp_path / name, "program.c", cwd=tmp_path)
        return tmp_path / name
    return make


def instructions(path, *names):
    """The addresses of all instructions of these functions."""
    found = []
    for name in names:
        (begin, size), = symbols(path)[name]
        listing = run("objdump", "-d", f"--start-address={begin:#x}", f"--stop-address={begin + size:#x}", path)
        found += [int(match[1], 16) for match in re.finditer(r"^\s+([0-9a-f]+):\t", listing, re.M)]
    return found


def normal(frames):
    return [(function, os.path.normpath(file), line) for function, file, line in frames]


# --- symbols, lines, inlined functions ----------------------------------------------------------------

@pytest.mark.parametrize("options", [
    [], ["-gdwarf-4"], ["-no-pie"], ["-static"], ["-static-pie"], ["-gz=zlib"], ["-O0"],
    ["-shared", "-fPIC"], ["-ffunction-sections", "-Wl,--gc-sections"],
], ids=" ".join)
def test_every_instruction_is_named_as_addr2line_does(engine, compiled, options):
    path = compiled(*options)
    addresses = instructions(path, "outer", "hidden", "main")
    expected = addr2line(path, addresses)
    assert any(len(frames) >= 3 for frames in expected.values())
    ask = engine("-l").file
    for address in addresses:
        name = ask(path, offset_of(path, address))
        assert normal([(frame["symbol"], *place) for frame, place in zip(name["frames"], places(name))]) == \
            normal(expected[address])


def frames_of(name):
    return normal([(frame["symbol"], *place) for frame, place in zip(name["frames"], places(name))])


# A unit whose functions are together has its ranges counted from their begin, and one with "main" or -ffunction-sections
# does not, as these are in several sections.
TOGETHER = """
#include "inlined.h"
__attribute__((noinline)) int outer(int x)
{
    int sum = 0;
    for (int i = 0; i < x; i++)
        sum += middle(i);
    return sum;
}
__attribute__((noinline)) int hidden(int x) { return putchar(x); }
"""


def build_split(folder, compiler, options, split):
    """A program of two units, of which the first is in one piece."""
    (folder / "together.c").write_text("#include <stdio.h>\n" + TOGETHER)
    (folder / "rest.c").write_text('#include <stdio.h>\n#include "inlined.h"\nint outer(int), hidden(int);\n'
                                   "int main(int argc, char **argv) { return outer(argc) + hidden(middle(argc)); }\n")
    for unit in ("together", "rest"):
        run(compiler, "-O2", "-g", "-Iheaders", *options, *split, "-c", "-o", f"{unit}.o", f"{unit}.c", cwd=folder)
    run(compiler, "-o", "program", "together.o", "rest.o", cwd=folder)
    return folder / "program"


LLVM_PACKAGE, BINUTILS_PACKAGE = (["llvm-dwp", "-e", "program", "-o", "program.dwp"],
                                  ["dwp", "-e", "program", "-o", "program.dwp"])
SPLIT = {
    "GCC, DWARF 4": ("gcc", ["-gdwarf-4"], None),
    "GCC, DWARF 5": ("gcc", ["-gdwarf-5"], None),
    "GCC, a section each, compressed": ("gcc", ["-gdwarf-5", "-ffunction-sections", "-gz=zlib"], None),
    "clang, DWARF 4": ("clang", ["-gdwarf-4"], None),
    "clang, DWARF 5": ("clang", ["-gdwarf-5"], None),
    "clang, DWARF 5, packed": ("clang", ["-gdwarf-5"], LLVM_PACKAGE),
    "clang, DWARF 4, packed": ("clang", ["-gdwarf-4"], LLVM_PACKAGE),
    "GCC, DWARF 4, packed": ("gcc", ["-gdwarf-4"], BINUTILS_PACKAGE),
}


@pytest.mark.parametrize("which", SPLIT)
def test_split_dwarf_names_the_same_as_what_is_in_the_program(engine, compiled, tmp_path, which):
    """The expected names are those of the same code with ordinary DWARF, by addr2line."""
    compiler, options, package = SPLIT[which]
    whole = shutil.copy(build_split(tmp_path, compiler, options, []), tmp_path / "whole")
    path = build_split(tmp_path, compiler, options, ["-gsplit-dwarf"])
    if package:
        run(*package, cwd=tmp_path)
        for file in tmp_path.glob("*.dwo"):
            file.unlink()
    addresses = instructions(path, "outer", "hidden", "main")
    assert addresses == instructions(whole, "outer", "hidden", "main")
    expected = addr2line(whole, addresses)
    assert any(len(frames) >= 3 for frames in expected.values())
    ask = engine("-l").file
    for address in addresses:
        assert frames_of(ask(path, offset_of(path, address))) == normal(expected[address])


@pytest.mark.parametrize("change", ["gone", "of another build", "beside the program"])
def test_split_dwarf_is_taken_only_if_it_is_the_programs_own(engine, compiled, tmp_path, change):
    (tmp_path / "built").mkdir()
    (tmp_path / "run").mkdir()
    shutil.copytree(tmp_path / "headers", tmp_path / "built" / "headers")
    path = build_split(tmp_path / "built", "gcc", [], ["-gsplit-dwarf"])
    addresses = instructions(path, "outer")
    moved = shutil.copy(path, tmp_path / "run" / "program")

    def depth(path):
        ask = engine("-l").file
        return max(len(ask(path, offset_of(path, address))["frames"]) for address in addresses)

    assert depth(path) == 4  # getchar in inner in middle in outer
    for file in (tmp_path / "built").glob("*.dwo"):
        shutil.move(file, tmp_path / ("run" if change == "beside the program" else "built") / file.name)
        if change == "gone":
            file.unlink()
    if change == "of another build":
        build_split(tmp_path / "built", "gcc", ["-DOTHER", "-O1"], ["-gsplit-dwarf"])
    assert depth(moved) == (4 if change == "beside the program" else 1)


def enlarge(path, compressed):
    """Adds three million bytes of debug information, which take more memory than MEMORY allows if they are uncompressed."""
    (path.parent / "pad").write_bytes(bytes(3_000_000))
    run("objcopy", "--add-section", f".debug_pad={path.parent / 'pad'}", path)
    if compressed:
        run("objcopy", "--compress-debug-sections=zlib", path)


MEMORY = "-b", "2000000"
LARGE = "is larger than what the memory for names allows"
WHERE = ["program", "debug file", ".dwp", ".dwo", "shared by programs"]


def with_large(tmp_path, compiled, where):
    """Returns a program, the addresses in its function outer, and its files that are to have much debug information."""
    if where in (".dwp", ".dwo"):
        path = build_split(tmp_path, *(("clang", ["-gdwarf-5"]) if where == ".dwp" else ("gcc", [])), ["-gsplit-dwarf"])
        large = list(tmp_path.glob("*.dwo"))
        if where == ".dwp":
            run(*LLVM_PACKAGE, cwd=tmp_path)
            for file in large:
                file.unlink()
            large = [tmp_path / "program.dwp"]
    else:
        path = compiled()
        large = [path]
    addresses = instructions(path, "outer")
    if where == "debug file":
        large = [tmp_path / "program.debug"]
        run("objcopy", "--only-keep-debug", path, *large)
        run("strip", path)
        run("objcopy", f"--add-gnu-debuglink={large[0]}", path)
    if where == "shared by programs":
        large = [tmp_path / "shared.debug"]
        run("dwz", "-m", "shared.debug", "program", shutil.copy(path, tmp_path / "other"), cwd=tmp_path)
    return path, addresses, large


@pytest.mark.parametrize("where", WHERE)
def test_debug_information_that_takes_too_much_memory_is_told_from_what_is_not_found(engine, compiled, tmp_path, where):
    """Compressed, it can't be taken from where it is in the file."""
    path, addresses, large = with_large(tmp_path, compiled, where)
    asked = path, offset_of(path, addresses[0])
    assert LARGE not in engine("-l", *MEMORY).file(*asked).get("lines_why", "")
    for file in large:
        enlarge(file, True)
    name = engine("-l", *MEMORY).file(*asked)
    assert functions(name)[-1] == "outer"
    assert LARGE in name["lines_why"]
    assert {".dwp": ".dwp", ".dwo": ".dwo", "shared by programs": "dwz"}.get(where, "debug information") in name["lines_why"]


@pytest.mark.parametrize("where", WHERE)
def test_debug_information_larger_than_the_memory_for_names_names_as_much_as_before(engine, compiled, tmp_path, where):
    path, addresses, large = with_large(tmp_path, compiled, where)

    def names():
        ask = engine("-l", *MEMORY).file
        return [ask(path, offset_of(path, address)) for address in addresses]
    before = names()
    assert max(len(name["frames"]) for name in before) >= 3
    for file in large:
        enlarge(file, False)
        assert file.stat().st_size > 3_000_000
    assert names() == before


def test_debug_information_that_is_cut_while_it_is_read_takes_only_its_own_lines(engine, compiled, tmp_path):
    """Of one so large, the reader has a mapping, and dies with it."""
    intact = compiled(name="intact")
    cut, addresses, (large,) = with_large(tmp_path, compiled, "debug file")
    enlarge(large, False)
    ask = engine("-l", *MEMORY).file
    other = intact, offset_of(intact, instructions(intact, "outer")[0])
    whole = ask(*other)
    assert ask(cut, offset_of(cut, addresses[0]))["frames"][-1]["line"]
    os.truncate(large, 0)
    name = ask(cut, offset_of(cut, symbols(intact)["main"][0][0]))
    assert functions(name) == ["main"] and not name["frames"][0]["line"]
    assert name["lines_why"] == "the reader of files has failed on it"
    assert whole["frames"][-1]["line"] and ask(*other) == whole


def test_lines_of_many_units_are_right_in_memory_for_few(engine, tmp_path):
    """Those that DWARF was made of. A unit's line table has 18,000 bytes, and 3,000 rows, for which 100 bytes each are counted."""
    nr, each = 60_000, 3_000
    path, chance = tmp_path / "program", random.Random(7)
    manysymbols.write(path, nr, bytes(24), b"\0", debug=manysymbols.dwarf(nr, b"function_%d", each, 1))
    ask = engine("-l", *MEMORY).file
    for number in chance.sample(range(nr), 100):
        name = ask(path, manysymbols.slot(number) - manysymbols.BASE + 4)
        assert frames_of(name) == [(f"function_{number}", f"/built/unit_{number // each}.c", manysymbols.line(number))]


WITHIN = {
    "c": """
        #include <stdio.h>
        static inline __attribute__((always_inline)) unsigned mix(unsigned sum, unsigned i) { return (sum ^ i) * 7 + getchar(); }
        __attribute__((noinline)) unsigned apply(unsigned (*f)(unsigned), unsigned n) { return f(n) + f(n + 1); }
        __attribute__((noinline)) unsigned sum_up(unsigned n) {
            unsigned sum = 0;
            #pragma omp parallel for reduction(+:sum)
            for (unsigned i = 0; i < n; i++) sum += mix(sum, i);
            return sum; }
        __attribute__((noinline)) unsigned around(unsigned n) {
            volatile unsigned base = n;
            { unsigned within(unsigned i) { return mix(base, i); }
              return apply(within, n); } }
        int main(int n, char **words) { return sum_up(n) + around(n); }""",
    "cc": """
        #include <cstdio>
        template <typename F> __attribute__((noinline)) int twice(F f, int n) { return f(n) + f(n + 1); }
        static inline __attribute__((always_inline)) int mix(int a, int b) { return a * 7 + b + getchar(); }
        __attribute__((noinline)) int around(int n) {
            struct local { int base; __attribute__((noinline)) int add(int i) { return mix(base, i); } } one{n};
            auto lambda = [&](int i) __attribute__((noinline)) { return mix(one.add(i), n); };
            return twice(lambda, n); }
        int main(int n, char **) { return around(n); }""",
}


@pytest.mark.parametrize("language", WITHIN)
def test_a_function_within_a_function_is_named_with_what_is_inlined_in_it(engine, tmp_path, language):
    """Bodies of OpenMP, nested functions of GNU C, methods of local classes, lambdas."""
    source, path = tmp_path / f"within.{language}", tmp_path / "within"
    source.write_text(WITHIN[language])
    run("g++" if language == "cc" else "gcc", "-O2", "-g", "-fopenmp", "-o", path, source)
    named = [name for name in symbols(path) if "within" in name or "_fn" in name or "local" in name or "EUl" in name]
    assert len(named) >= 2, symbols(path)
    addresses = instructions(path, *named)
    # LLVM instead of addr2line, which gives an inlined function the name of a clone around it.
    expected = llvm_symbolizer(path, addresses)
    assert any(len(frames) >= 2 for frames in expected.values())
    ask = engine("-l").file
    for address in addresses:
        name = ask(path, offset_of(path, address))
        assert [line for _, line in places(name)] == [line for _, line in expected[address]]
        if len(name["frames"]) == 2:
            assert functions(name)[0].startswith(("mix", "getchar"))


def test_the_offset_is_that_in_the_function(engine, compiled):
    path = compiled()
    (begin, _), = symbols(path)["outer"]
    for address in instructions(path, "outer"):
        assert engine_frame(engine, path, address)["offset"] == address - begin


def engine_frame(engine, path, address, *options):
    return engine(*options).file(path, offset_of(path, address))["frames"][-1]


def test_lines_are_looked_for_only_where_they_are_asked_for(engine, compiled):
    path = compiled()
    for address in instructions(path, "outer"):
        name = engine().file(path, offset_of(path, address))
        assert functions(name) == ["outer"]
        assert places(name) == [("", 0)]


def test_a_name_tells_the_build_id(engine, compiled):
    path = compiled()
    (begin, _), = symbols(path)["outer"]
    assert engine().file(path, offset_of(path, begin))["build_id"] == build_id(path)


def test_a_stripped_program_has_the_names_that_it_exports(engine, compiled):
    path = compiled("-rdynamic")
    (outer, _), = symbols(path)["outer"]
    (hidden, _), = symbols(path)["hidden"]
    run("strip", path)
    names = engine("-l")
    assert functions(names.file(path, offset_of(path, outer))) == ["outer"]
    assert names.file(path, offset_of(path, hidden)) == {
        "build_id": build_id(path), "frames": [], "why": "no symbol is there", "function_offset": 0}


def frame_ranges(path):
    """[(first address, the one after the last)] of the functions in .eh_frame, as readelf reads it."""
    said = run("readelf", "--debug-dump=frames", path)
    return [(int(begin, 16), int(end, 16)) for begin, end in re.findall(r" FDE .* pc=([0-9a-f]+)\.\.([0-9a-f]+)", said)]


@pytest.mark.parametrize("options", [[], ["-no-pie"], ["-static-pie"], ["-shared", "-fPIC"], ["-O0", "-rdynamic"]], ids=" ".join)
def test_functions_of_a_stripped_program_are_told_by_where_they_begin(engine, compiled, options):
    path = compiled(*options)
    own = [symbols(path)[name][0] for name in ("main", "outer", "hidden")]
    ranges = [(begin, begin + size) for begin, size in own] + frame_ranges(path)
    run("strip", path)
    names, told = engine("-l"), 0
    for begin, end in ranges:
        for address in (begin, (begin + end) // 2, end - 1):
            name = names.file(path, offset_of(path, address))
            # What is exported has its name, and so have the entries of the linkage table.
            assert name["frames"] or name["function_offset"] == address - begin, (hex(begin), hex(address), name)
            told += "function_offset" in name
    assert told >= 3
    assert "function_offset" not in names.file(path, offset_of(path, max(end for _, end in ranges)))


def test_functions_of_a_long_eh_frame_are_told_around_one_with_many_rows(engine, tmp_path):
    # 120 KB of entries, and between them one of 200 KB: the section is read in pieces of 64 KiB.
    function, size, before, rows, behind = ".cfi_startproc\n.fill {}, 1, 0x90\n.cfi_endproc\n", 16, 3000, 40_000, 2000
    (tmp_path / "long.s").write_text(f"""
        .globl _start\n.type _start, @function\n.size _start, 16\n_start:
        .rept {before}\n{function.format(size)}.endr
        .cfi_startproc\n.rept {rows}\nnop\n.cfi_adjust_cfa_offset 8\n.endr\n.cfi_endproc
        .rept {behind}\n{function.format(size)}.endr""")
    path = tmp_path / "long"
    run("gcc", "-nostdlib", "-static", "-o", path, tmp_path / "long.s")
    (begin, _), = symbols(path)["_start"]
    run("strip", path)
    begins = [*range(0, before * size, size), before * size, *range(before * size + rows, before * size + rows + behind * size, size)]
    names = engine()
    for at, end in zip(begins, [*begins[1:], begins[-1] + size]):
        assert names.file(path, offset_of(path, begin + end - 1))["function_offset"] == end - 1 - at, (at, end)


def test_entries_of_a_64_bit_length_are_told_around_the_ends_of_pieces(engine, tmp_path):
    # The first piece of 64 KiB ends within the length of one of them, which are of 32 bytes behind a first of 24.
    count, size = 8000, 16
    entry = ".long 0xffffffff\n.quad 20\n.long . - frames\n.long code + {at} - .\n.long {size}\n.fill 8, 1, 0\n"
    (tmp_path / "wide.s").write_text(f"""
        .globl _start\n.type _start, @function\n.size _start, {size}\n_start:\ncode: .fill {count * size}, 1, 0x90
        .section .eh_frame, "a", @progbits
        frames: .long 20, 0\n.byte 1\n.asciz "zR"\n.byte 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0
        {"".join(entry.format(at=at, size=size) for at in range(0, count * size, size))}""")
    path = tmp_path / "wide"
    run("gcc", "-nostdlib", "-static", "-Wl,--no-eh-frame-hdr", "-o", path, tmp_path / "wide.s")
    (begin, _), = symbols(path)["_start"]
    run("strip", path)
    names = engine()
    for at in range(size // 2, count * size, size):
        assert names.file(path, offset_of(path, begin + at)).get("function_offset") == size // 2, at


def test_an_eh_frame_that_is_too_long_for_the_memory_is_left_out(engine, tmp_path):
    # Zeros in it cost a file with holes nothing. With 1 MiB of memory, parts of 256 KiB are read, and sections of 1 MiB.
    (tmp_path / "long.s").write_text("""
        .globl _start\n.type _start, @function\n.size _start, 16\n_start:\ncode: .fill 16, 1, 0x90
        .section .eh_frame, "a", @progbits
        frames: .long 20, 0\n.byte 1\n.asciz "zR"\n.byte 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0
        .zero 3 << 20
        .long 20\n.long . - frames\n.long code - .\n.long 16\n.fill 8, 1, 0""")
    path = tmp_path / "long"
    run("gcc", "-nostdlib", "-static", "-Wl,--no-eh-frame-hdr", "-o", path, tmp_path / "long.s")
    (begin, _), = symbols(path)["_start"]
    run("strip", path)
    told = [engine("-b", memory << 20).file(path, offset_of(path, begin + 8)).get("function_offset") for memory in (4, 1)]
    assert told == [8, None]


def test_functions_of_a_stripped_32_bit_program_are_told_by_where_they_begin(engine, tmp_path):
    (tmp_path / "n.c").write_text("""
        __attribute__((noinline)) int outer(int x) { volatile int y = x; return y + 1; }
        void _start(void) { outer(1); for (;;); }""")
    path = tmp_path / "n"
    run("gcc", "-m32", "-O2", "-nostdlib", "-static", "-fno-pic", "-no-pie", "-fasynchronous-unwind-tables", "-o", path,
        tmp_path / "n.c")
    (begin, size), = symbols(path)["outer"]
    run("strip", path)
    names = engine()
    assert [names.file(path, offset_of(path, address))["function_offset"] for address in range(begin, begin + size)] == \
        list(range(size))


GENERIC = """
package main

type list[T any] struct{ held []T }

//go:noinline
func (l *list[T]) each(call func(T) int) (sum int) {
	for _, one := range l.held {
		sum += call(one)
	}
	return
}

func main() {
	println((&list[string]{[]string{"a", "bc"}}).each(func(s string) int { return len(s) }))
}
"""


@pytest.mark.parametrize("flags", [(), ("-buildmode=pie", "-ldflags=-linkmode=external")],
                         ids=["fixed", "linked-by-ld"])
def test_functions_of_a_stripped_go_program_have_the_names_that_its_symbols_had(engine, tmp_path, flags):
    program = golang.build(tmp_path, *flags, source=GENERIC)
    known = {}
    for line in run("go", "tool", "nm", program).splitlines():
        match = re.fullmatch(r" *([0-9a-f]+) [tT] ((main|runtime|internal/\S+)\..*)", line)
        if match:
            known[int(match[1], 16)] = match[2]
    run("strip", program)
    assert "no symbols" in subprocess.run(["nm", program], capture_output=True, text=True).stderr
    names, compared = engine(), set()
    for address, name in known.items():
        if name in ("runtime.text", "runtime.etext"):  # the linker's, which have no code of their own
            continue
        # Go's runtime leaves out which registers a function is called with, and up to Go 1.20 types that a generic one
        # was made for.
        whole = re.sub(r"\.abi(0|internal)$", "", name)
        name = re.sub(r"\[.*\]", "[...]", whole)
        frame = names.file(program, offset_of(program, address))["frames"][-1]
        assert frame["symbol"] in (name, whole) and frame["offset"] == 0
        compared.add(name)
    assert len(compared) > 900 and {"main.main", "main.main.func1", "main.(*list[...]).each", "runtime.asmcgocall"} <= compared


@pytest.mark.parametrize("flags", [(), ("-buildmode=pie", "-ldflags=-linkmode=external")],
                         ids=["fixed", "linked-by-ld"])
def test_lines_of_a_stripped_go_program_are_those_that_its_debug_information_had(engine, tmp_path, flags):
    program, stripped = golang.build(tmp_path, *flags, source=GENERIC), str(tmp_path / "stripped")
    run("strip", "-o", stripped, program)
    bodies = sorted(body for name, found in symbols(program).items()
                    if re.match(r"(main|runtime|strconv|sync)\.", name) for body in found if body[1])
    chance = random.Random(5)
    addresses = sorted({begin + chance.randrange(size) for begin, size in (chance.choice(bodies) for _ in range(600))})
    said, names, same = addr2line(program, addresses), engine("-l"), 0
    for address in addresses:
        ours = places(names.file(stripped, offset_of(stripped, address)))
        # What is inlined has its own line; of its callers' lines the table has none.
        same += len(ours) == 1 and normal([("", *ours[0])]) == normal([("", *said[address][0][1:])])
    assert len(addresses) > 500 and same >= 0.99 * len(addresses)


def test_what_is_between_functions_has_no_name(engine, compiled):
    path = compiled()
    begin = min(begin for begin, _ in symbols(path)["main"])
    ends = sorted(b + size for sizes in symbols(path).values() for b, size in sizes)
    begins = {b for sizes in symbols(path).values() for b, size in sizes}
    padding = [end for end in ends if end > begin and end not in begins][0]
    assert engine().file(path, offset_of(path, padding))["frames"] == []


def test_what_is_no_code_says_so(engine, compiled):
    path = compiled()
    assert engine().file(path, 0)["why"] == "no code of the file is there"


CALLS = ("strcpy", "strlen", "putchar", "atoi")
CALLING = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int (*volatile taken)(const char *) = atoi;
char *calls_strcpy(char *a, char *b) { return strcpy(a, b); }
size_t calls_strlen(char *a) { return strlen(a); }
int calls_putchar(void) { return putchar('.'); }
int calls_atoi(char *a) { return atoi(a); }
int main(int argc, char **argv) { calls_strlen(argv[0]); return taken(argv[0]); }
"""


@pytest.mark.parametrize("options, section", [
    ("-Wl,-z,lazy", ".plt"), ("-Wl,-z,now", ".plt"), ("-no-pie", ".plt"), ("-fuse-ld=lld", ".plt"),
    ("-Wl,-z,lazy,-z,ibtplt -fcf-protection=full", ".plt.sec"), ("-fuse-ld=lld -Wl,-z,retpolineplt", ".plt"),
    ("-fuse-ld=lld -Wl,-z,retpolineplt,-z,now", ".plt"), ("-static", "strcpy strlen"),
    ("-static-pie", "strcpy strlen")])
def test_entries_of_the_linkage_table_are_named_after_what_they_call(engine, tmp_path, options, section):
    """In a static program, only functions of which the C library has several for different CPUs have entries."""
    path = tmp_path / "calling"
    run("gcc", "-O0", "-fno-builtin", *options.split(), "-x", "c", "-", "-o", path, input=CALLING)
    assert not section.startswith(".") or f" {section} " in run("readelf", "-SW", path)
    code = run("objdump", "-d", "-w", path)
    for name in CALLS if section.startswith(".") else section.split():
        calling = code[code.index(f"<calls_{name}>:"):]
        called = int(re.search(r"call +([0-9a-f]+)", calling)[1], 16)
        for address in (called, called + 6):
            assert functions(engine().file(path, offset_of(path, address))) == [f"{name}@plt"]


def test_entries_of_functions_whose_address_is_taken_as_well_are_named(engine, tmp_path):
    path = tmp_path / "taken"
    run("gcc", "-O0", "-fno-builtin", "-shared", "-fPIC", "-x", "c", "-", "-o", path, input="""
        int far(int); int (*taken(void))(int) { return far; } int calls_far(void) { return far(1); }""")
    assert " .plt.got " in run("readelf", "-SW", path)
    (address,) = re.findall(r"^([0-9a-f]+) <far@plt>:", run("objdump", "-d", path), re.M)
    assert functions(engine().file(path, offset_of(path, int(address, 16)))) == ["far@plt"]


def test_entries_of_32_bit_programs_are_named(engine, tmp_path):
    path = tmp_path / "narrow.so"
    run("clang", "-m32", "-fuse-ld=lld", "-shared", "-nostdlib", "-fPIC", "-x", "c", "-", "-o", path,
        input="int first(int); int second(int); int calls(int a) { return first(a) + second(a); }")
    entries = re.findall(r"^([0-9a-f]+) <(\w+@plt)>:", run("objdump", "-d", path), re.M)
    assert {name for _, name in entries} == {"first@plt", "second@plt"}
    for address, name in entries:
        assert functions(engine().file(path, offset_of(path, int(address, 16)))) == [name]


def test_of_names_at_one_address_the_best_known_is_shown(engine, tmp_path):
    (tmp_path / "a.c").write_text("""
        void __work(void) { __asm__("nop"); }
        void work(void) __attribute__((weak, alias("__work")));
        void doing(void) __attribute__((alias("__work")));
        int main(void) { __work(); }""")
    run("gcc", "-O0", "-o", tmp_path / "a", tmp_path / "a.c")
    (address, _), = symbols(tmp_path / "a")["doing"]
    assert functions(engine().file(tmp_path / "a", offset_of(tmp_path / "a", address))) == ["doing"]


def test_a_label_in_a_function_of_assembly_does_not_hide_it(engine, tmp_path):
    (tmp_path / "a.S").write_text(""".globl main
.type main, @function
main: nop
inside: nop
ret
.size main, . - main
unsized: nop
nop
.type around, @function
around: nop
.type within, @function
within: nop
.size within, . - within
nop
.size around, . - around
.skip 16, 0x90
""")
    path = tmp_path / "a"
    run("gcc", "-o", path, tmp_path / "a.S")
    (begin, size), = symbols(path)["main"]
    ask = engine().file
    assert functions(ask(path, offset_of(path, begin + 1))) == ["main"]
    assert functions(ask(path, offset_of(path, begin + size + 1))) == ["unsized"]
    (around, length), = symbols(path)["around"]
    assert length == 3
    assert [functions(ask(path, offset_of(path, around + i))) for i in range(5)] == [
        ["around"], ["within"], ["around"], [], []]


# --- mangled names ------------------------------------------------------------------------------------

def test_templates_of_cxx_are_named_as_cxxfilt_does(engine, tmp_path):
    (tmp_path / "t.cc").write_text("""
        #include <map>
        #include <string>
        #include <vector>
        namespace deep { template <typename T, int N> struct box {
            __attribute__((noinline)) T take(const std::map<std::string, std::vector<T>> &m) {
                T sum = N; for (auto &e : m) for (auto v : e.second) sum += v; return sum; } }; }
        int main(int argc, char **) {
            std::map<std::string, std::vector<int>> m; m["x"].push_back(argc);
            auto f = [&](long x) __attribute__((noinline)) { return x + argc; };
            return deep::box<int, 7>().take(m) + f(2); }""")
    path = tmp_path / "t"
    run("g++", "-O1", "-g", "-o", path, tmp_path / "t.cc")
    mangled = {name: address for name, ((address, _), *_) in symbols(path).items() if name.startswith("_Z")}
    plain = dict(zip(mangled, run("c++filt", input="\n".join(mangled)).splitlines()))
    assert any("deep::box<int, 7>::take(std::map<" in name for name in plain.values())
    ask = engine().file
    for name, address in mangled.items():
        shown = functions(ask(path, offset_of(path, address)))[0]
        assert shown in [plain[other] for other, at in mangled.items() if at == address]


@pytest.mark.parametrize("symbol, shown", [
    ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
    ("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
     "<Test + 'static as foo::Bar<Test>>::bar"),
    ("_RNvC6_123foo3bar", "123foo::bar"),
    ("_RINvNtC3std3mem8align_ofjE", "std::mem::align_of::<usize>"),
    # Of rustc 1.95, from a module módulo with types Größe<T> and 大小, and a tuple of it.
    ("_ZN1t19_$ufc$n$uef$code_fn17h3b830db1bce85138E", "t::ünïcode_fn"),
    ("_ZN75_$LT$u..m$uf3$dulo..Gr$uf6$$udf$e$LT$T$GT$$u20$as$u20$u..m$uf3$dulo..Tr$GT$5touch17h114225b54b817076E",
     "<u::módulo::Größe<T> as u::módulo::Tr>::touch"),
    ("_ZN94_$LT$$LP$u..m$uf3$dulo..$u5927$$u5c0f$$C$$RF$$u5b$u8$u5d$$RP$$u20$as$u20$u..m$uf3$dulo..Tr$GT$5touch17hc1df237b2ad33aa7E",
     "<(u::módulo::大小,&[u8]) as u::módulo::Tr>::touch"),
    ("_ZN1t9_$u1f600$17h3b830db1bce85138E", "t::😀"), ("_ZN1t14_$ufc$$ud800$$17h3b830db1bce85138E", "t::ü$ud800$$"),
    ("_ZN", "_ZN"), ("plain", "plain"), ("_Znwm", "operator new(unsigned long)"),
])
def test_mangled_names_are_shown_as_in_the_source(engine, tmp_path, symbol, shown):
    """The names of Rust are from RFC 2603 and, in the older mangling, from tests of rustc and
    binutils."""
    (tmp_path / "kallsyms").write_text(f"ffffffff81000000 T {symbol}\n")
    assert functions(engine("-k", tmp_path / "kallsyms", "-m", "/dev/null").kernel(0xffffffff81000000)) == [shown]


@pytest.mark.parametrize("symbol, shown", [
    ("realpath@@GLIBC_2.3", "realpath"), ("realpath@GLIBC_2.2.5", "realpath"), ("_Znwm@@GLIBCXX_3.4", "operator new(unsigned long)"),
    ("*Array(Int32)@Enumerable(T)#each", "*Array(Int32)@Enumerable(T)#each"), ("@scope/name", "@scope/name"),
    ("main.(*T).m@v1", "main.(*T).m@v1"), ("ends@", "ends@"), ("three@@@V1", "three@@@V1"),
])
def test_only_what_looks_like_a_version_is_cut_from_an_elf_symbol(engine, compiled, symbol, shown):
    path = compiled()
    (begin, _), = symbols(path)["outer"]
    run("objcopy", f"--redefine-sym=outer={symbol}", path)
    assert functions(engine().file(path, offset_of(path, begin))) == [shown]


def test_a_symbol_with_an_empty_name_is_none(engine, compiled):
    """objcopy cannot make one, so the name's first byte is removed from the file."""
    path = compiled("-g0")
    (begin, _), = symbols(path)["outer"]
    run("objcopy", "--redefine-sym=outer=OUTER_IS_EMPTY", path)
    content = path.read_bytes()
    assert content.count(b"\0OUTER_IS_EMPTY\0") == 1
    path.write_bytes(content.replace(b"\0OUTER_IS_EMPTY\0", b"\0\0UTER_IS_EMPTY\0"))
    name = engine("-l").file(path, offset_of(path, begin))
    assert "symbol" not in name["frames"][0] if name["frames"] else name["why"]


@pytest.mark.parametrize("symbol", ["@scope/name:run", "Program.f@10", "realpath@@GLIBC_2.3", "*A@B#c", "a@b@c"])
def test_names_that_are_not_of_an_elf_file_keep_what_follows_an_at_sign(engine, tmp_path, symbol):
    (tmp_path / "perf-1.map").write_text(f"1000 100 {symbol}\n")
    assert functions(engine().jit(tmp_path / "perf-1.map", 0x1010)) == [symbol]
    (tmp_path / "kallsyms").write_text(f"ffffffff81000000 T {symbol}\n")
    assert functions(engine("-k", tmp_path / "kallsyms", "-m", "/dev/null").kernel(0xffffffff81000000)) == [symbol]


def test_a_mangled_name_that_stands_for_gigabytes_is_cut(engine, tmp_path):
    pairs = "".join(f"S{'' if n == 0 else chr(ord('0') + n - 1)}_S{'' if n == 0 else chr(ord('0') + n - 1)}_E"
                    for n in range(9))
    bomb = "_Z1fI1aE" + "St4pairI" * 9 + "1aE" + pairs
    for symbol in (bomb, "_Z1fv" + "1a" * 4000, "_Z" + "N" * 20000, "x" * 5000):
        (tmp_path / "kallsyms").write_text(f"ffffffff81000000 T {symbol}\n")
        shown, = functions(engine("-k", tmp_path / "kallsyms", "-m", "/dev/null").kernel(0xffffffff81000000))
        assert len(shown.encode()) <= 2048
        assert shown == symbol or shown.endswith("…")


# --- debug files --------------------------------------------------------------------------------------

@pytest.fixture
def split(compiled, tmp_path):
    """The stripped program, its debug file, and the names it had before: [(offset, frames), …]."""
    path = compiled()
    debug = tmp_path / "program.debug"
    expected = [(offset_of(path, address), normal(frames)) for address, frames in
                addr2line(path, instructions(path, "outer", "hidden")).items()]
    run("objcopy", "--only-keep-debug", path, debug)
    run("strip", path)
    return path, debug, expected


def named_so(engine, path, expected):
    for offset, frames in expected:
        name = engine.file(path, offset)
        got = normal([(frame["symbol"], *place) for frame, place in zip(name["frames"], places(name))])
        if got != frames:
            return False
    return True


def test_a_debug_link_is_followed(engine, split):
    path, debug, expected = split
    assert not named_so(engine("-l"), path, expected)
    run("objcopy", f"--add-gnu-debuglink={debug}", path)
    assert named_so(engine("-l"), path, expected)


@pytest.mark.parametrize("folder", [".debug", "debug-files"])
def test_a_debug_link_is_also_looked_for_where_gdb_does(engine, split, tmp_path, folder):
    path, debug, expected = split
    run("objcopy", f"--add-gnu-debuglink={debug}", path)
    target = tmp_path / ".debug" if folder == ".debug" else tmp_path / folder / str(tmp_path)[1:]
    target.mkdir(parents=True)
    debug.rename(target / debug.name)
    assert named_so(engine("-l", "-d", tmp_path / "debug-files"), path, expected)


def test_a_debug_link_with_another_checksum_is_not_followed(engine, split):
    path, debug, expected = split
    run("objcopy", f"--add-gnu-debuglink={debug}", path)
    run("objcopy", "--remove-section=.note.gnu.build-id", debug)  # it would be enough
    assert not named_so(engine("-l"), path, expected)


def test_a_debug_file_is_found_by_build_id(engine, split, tmp_path):
    path, debug, expected = split
    number = build_id(path)
    folder = tmp_path / "debug" / ".build-id" / number[:2]
    folder.mkdir(parents=True)
    shutil.copy(debug, folder / f"{number[2:]}.debug")
    assert named_so(engine("-l", "-d", tmp_path / "debug"), path, expected)


def test_a_debug_file_with_another_build_id_is_not_taken(engine, split, compiled, tmp_path):
    path, debug, expected = split
    number = build_id(path)
    folder = tmp_path / "debug" / ".build-id" / number[:2]
    folder.mkdir(parents=True)
    shutil.copy(compiled("-DOTHER", "-Os", name="other"), folder / f"{number[2:]}.debug")
    assert engine("-l", "-d", tmp_path / "debug").file(path, expected[0][0])["frames"] == []


def test_a_debug_file_that_the_programs_owner_may_not_read_is_not_taken(engine, split):
    """Otherwise a program could refer to any file whose checksum or build-id its author knows."""
    path, debug, expected = split
    run("objcopy", f"--add-gnu-debuglink={debug}", path)
    debug.chmod(0o600)
    assert named_so(engine("-l"), path, expected), "they are of one owner"
    os.chown(path, 65534, 65534)
    assert not named_so(engine("-l"), path, expected)
    debug.chmod(0o644)
    assert named_so(engine("-l"), path, expected)


@pytest.mark.parametrize("variable, below", [("DEBUGINFOD_CACHE_PATH", ""), ("HOME", ".cache/debuginfod_client")])
def test_debug_files_that_were_fetched_before_are_found(names_program, split, tmp_path, monkeypatch, variable, below):
    path, debug, expected = split
    for name in ("DEBUGINFOD_CACHE_PATH", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, str(tmp_path / "home"))
    folder = tmp_path / "home" / below / build_id(path)
    folder.mkdir(parents=True)
    shutil.move(debug, folder / "debuginfo")
    names = Names(names_program, "-l")
    assert named_so(names, path, expected)
    names.close()


def test_files_and_debug_files_are_looked_for_below_a_root(engine, split, tmp_path):
    path, debug, expected = split
    number = build_id(path)
    root = tmp_path / "root"
    folder = root / "usr/lib/debug/.build-id" / number[:2]
    folder.mkdir(parents=True)
    (root / "bin").mkdir()
    shutil.move(path, root / "bin/moved")
    shutil.copy(debug, folder / f"{number[2:]}.debug")
    (root / "bin/link").symlink_to("/bin/moved")  # absolute: from the root's top
    names = engine("-l", "-s", root)
    assert named_so(names, "/bin/moved", expected)
    assert named_so(names, "/bin/link", expected)


def test_compressed_symbols_inside_the_file_are_read(engine, compiled, tmp_path):
    path = compiled("-rdynamic")
    hidden, outer = symbols(path)["hidden"][0][0], symbols(path)["outer"][0][0]
    offsets = [offset_of(path, hidden), offset_of(path, outer)]
    run("objcopy", "-S", "--keep-symbol=hidden", path, tmp_path / "mini")
    run("xz", tmp_path / "mini")
    run("strip", path)
    run("objcopy", "--add-section", f".gnu_debugdata={tmp_path / 'mini.xz'}", path)
    ask = engine().file
    assert [functions(ask(path, offset)) for offset in offsets] == [["hidden"], ["outer"]]


# --- which file ---------------------------------------------------------------------------------------

def test_a_file_with_another_build_id_is_not_the_one_asked_for(engine, compiled):
    path = compiled()
    offset = offset_of(path, symbols(path)["outer"][0][0])
    names = engine()
    assert names.file(path, offset, "00" * 20)["why"] == "the file that is there now has another build-id"
    assert functions(names.file(path, offset, build_id(path).upper())) == ["outer"]


def test_a_file_that_is_known_by_its_build_id_is_named_when_it_is_gone(engine, compiled):
    path = compiled()
    offset, number = offset_of(path, symbols(path)["outer"][0][0]), build_id(path)
    names = engine()
    assert functions(names.file(path, offset, number)) == ["outer"]
    path.unlink()
    assert functions(names.file(path, offset + 1, number)) == ["outer"]
    assert names.file(path, offset)["why"] == "there is no such file"


def test_a_file_that_was_replaced_is_read_again(engine, tmp_path):
    path = tmp_path / "program"
    names = engine()
    for function in ("first", "second"):
        (tmp_path / "p.c").write_text(f"int {function}(void) {{ return 0; }} int main(void) {{ return {function}(); }}")
        run("gcc", "-O0", "-Wl,--build-id=none", "-o", tmp_path / "new", tmp_path / "p.c")
        os.rename(tmp_path / "new", path)
        address = symbols(path)[function][0][0]
        assert functions(names.file(path, offset_of(path, address))) == [function]


def test_a_deleted_program_is_named_by_its_process(engine, compiled):
    path = compiled()
    offset = offset_of(path, symbols(path)["outer"][0][0])
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        path.unlink()
        mapped = []
        while not mapped:  # Popen returns a moment before the program is mapped
            with open(f"/proc/{process.pid}/maps", encoding="utf-8") as maps:
                mapped = [line.split()[0] for line in maps if "r-xp" in line and "(deleted)" in line]
        low, high = (int(end, 16) for end in mapped[0].split("-"))
        names = engine()
        for way in ("exe", f"map_files/{low:x}-{high:x}"):
            assert functions(names.file(f"/proc/{process.pid}/{way}", offset)) == ["outer"]
        process.kill()


def test_what_can_not_be_read_says_why(engine, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "text").write_text("text")
    (tmp_path / "empty").write_text("")
    names = engine()
    assert names.file(tmp_path / "none", 0)["why"] == "there is no such file"
    assert names.file(tmp_path / "pipe", 0)["why"] == "it is no regular file"
    assert names.file(tmp_path, 0)["why"] == "it is no regular file"
    for file in ("text", "empty"):
        assert names.file(tmp_path / file, 0)["why"] == "the file is no ELF file"


def test_the_vdso_is_named(engine, tmp_path):
    with open("/proc/self/maps", encoding="utf-8") as maps:
        low, high = next((int(end, 16) for end in line.split()[0].split("-")) for line in maps if "[vdso]" in line)
    with open("/proc/self/mem", "rb") as memory:
        memory.seek(low)
        (tmp_path / "vdso").write_bytes(memory.read(high - low))
    found = symbols(tmp_path / "vdso", "-D")
    assert "__vdso_clock_gettime" in found
    names = engine()
    for name, ((address, _), *_) in found.items():
        same = [other for other, ((at, _), *_) in found.items() if at == address]
        assert functions(names.file("[vdso]", offset_of(tmp_path / "vdso", address)))[0] in same


# --- the kernel ---------------------------------------------------------------------------------------

KALLSYMS = """0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T startup_64
ffffffff81001000 t helper
ffffffff81001000 T helper_for_all
ffffffff81002000 T last_of_the_kernel
ffffffff81003000 T _etext
ffffffff82000000 D some_data
ffffffffc0001000 t mod_first\t[ext4]
ffffffffc0001800 t mod_last\t[ext4]
ffffffffc0009000 t bpf_prog_1234_f\t[bpf]
ffffffffc000e000 t bpf_prog_5678_g\t[bpf]
ffffffffc0210000 t kprobe_insn_page\t[__builtin__kprobes]
"""
MODULES = "ext4 8192 1 - Live 0xffffffffc0000000\nother 4096 0 - Live 0xffffffffc0004000\n"


@pytest.fixture
def kernel(engine, tmp_path):
    (tmp_path / "kallsyms").write_text(KALLSYMS)
    (tmp_path / "modules").write_text(MODULES)
    return engine("-k", tmp_path / "kallsyms", "-m", tmp_path / "modules").kernel


@pytest.mark.parametrize("address, module, symbol, offset", [
    (0xffffffff81001000, "[kernel]", "helper_for_all", 0),
    (0xffffffff81001fff, "[kernel]", "helper_for_all", 0xfff),
    (0xffffffff81002fff, "[kernel]", "last_of_the_kernel", 0xfff),
    (0xffffffffc0001010, "[ext4]", "mod_first", 0x10),
    (0xffffffffc0001fff, "[ext4]", "mod_last", 0x7ff),
    (0xffffffffc0009001, "[bpf]", "bpf_prog_1234_f", 1),
    (0xffffffffc000dfff, "[bpf]", "bpf_prog_1234_f", 0x4fff),
    (0xffffffffc000e000, "[bpf]", "bpf_prog_5678_g", 0),
    (0xffffffffc0020e00, "[bpf]", "bpf_prog_5678_g", 0x12e00),
])
def test_a_kernel_address_is_named_with_its_module(kernel, address, module, symbol, offset):
    name = kernel(address)
    assert name["module"] == module
    assert [(frame["symbol"], frame["offset"]) for frame in name["frames"]] == [(symbol, offset)]


@pytest.mark.parametrize("case", ["ordered", "modules", "shuffled"])
def test_the_kernels_symbols_are_found_in_whatever_order_and_spelling_they_come(engine, tmp_path, case):
    """The kernel writes its own symbols in order, and those of modules and of BPF programs behind them as they come."""
    def called(address):  # names of all lengths: the text is looked at in blocks
        return f"f_{address:x}" + "x" * (address // 64 % 50)
    rng = random.Random(case)
    at = [0xffffffff81000000 + 64 * n for n in rng.sample(range(1 << 14), 400)]
    core, others = sorted(at[:300]), at[300:] if case == "ordered" else [rng.randrange(0xffffffffc0000000, 0xffffffffc0100000) for _ in range(100)]
    lines = [(address, "") for address in core] + [(address, "\t[mod]") for address in others]
    lines = {"ordered": sorted, "modules": list, "shuffled": lambda list: rng.sample(list, len(list))}[case](lines)
    spelled = [rng.choice(("{:016x}", "{:016X}", "{:x}", "0x{:x}")) if case == "shuffled" else "{:016x}" for _ in lines]
    text = [f"{form.format(address)} t {called(address)}{module}" for form, (address, module) in zip(spelled, lines)]
    text[7:7] = ["", "f", "ffffffff8100", "ffffffff81000001 d some_data", "fffffffg81000000 t none", "ffffffff810000:0 t none",
                 "ffffffff8100000g t none"]
    end = max(address for address, _ in lines if address < 0xffffffffc0000000)
    (tmp_path / "kallsyms").write_text("\n".join([f"ffffffff81000000 T _stext\n{end:016x} T _etext", *text]))
    kernel = engine("-k", tmp_path / "kallsyms", "-m", "/dev/null").kernel
    for address, module in rng.sample(lines, 60):
        if address != end:
            assert functions(kernel(address)) == [called(address)] and kernel(address)["module"] == (module.strip() or "[kernel]")
    below = sorted(address for address, _ in lines)
    for low, high in zip(below, below[1:]):
        if high < end and rng.random() < 0.2:
            assert functions(kernel(high - 1)) == [called(low)]


@pytest.mark.parametrize("address", [0xffffffff80ffffff, 0xffffffffc0002000, 0xffffffffc0004000, 0xffffffffc020e000, 0xffffffffc0211000],
                         ids=hex)
def test_a_kernel_address_outside_of_all_has_no_name(kernel, address):
    assert kernel(address) == {"frames": [], "why": "no symbol is there"}


def test_a_module_that_is_loaded_later_is_found_though_another_was_at_its_address(engine, tmp_path):
    """The counts of a module's users change all the time. That is no reason to read the symbols again."""
    kallsyms, modules = tmp_path / "kallsyms", tmp_path / "modules"
    kallsyms.write_text("ffffffff81000000 T _stext\nffffffff81008000 T _etext\nffffffffc0001000 t old_code\t[old]\n")
    modules.write_text("old 4096 1 - Live 0xffffffffc0001000\n")
    names = engine("-k", kallsyms, "-m", modules)
    assert functions(names.kernel(0xffffffffc0001010)) == ["old_code"]
    kallsyms.write_text("ffffffff81000000 T _stext\nffffffff81008000 T _etext\nffffffffc0001000 t new_code\t[new]\n")
    modules.write_text("old 4096 7 new, Live 0xffffffffc0001000\n")
    names.later(2)
    assert functions(names.kernel(0xffffffffc0001010)) == ["old_code"]
    modules.write_text("new 4096 1 - Live 0xffffffffc0001000\n")
    names.later(2)
    name = names.kernel(0xffffffffc0001010)
    assert (functions(name), name["module"]) == (["new_code"], "[new]")


def test_a_module_that_is_loaded_just_after_the_last_look_is_found(engine, tmp_path):
    kallsyms, modules = tmp_path / "kallsyms", tmp_path / "modules"
    kernel = "ffffffff81000000 T _stext\nffffffff81008000 T _etext\n"
    kallsyms.write_text(kernel)
    modules.write_text("")
    names = engine("-k", kallsyms, "-m", modules)
    for number in range(5):
        assert names.kernel(0xffffffffc0001010)["frames"] == []
        kallsyms.write_text(f"{kernel}ffffffffc0001000 t code_{number}\t[module]\n")
        modules.write_text(f"module {4096 + number} 1 - Live 0xffffffffc0001000\n")
        names.later(0.1)
        assert functions(names.kernel(0xffffffffc0001010)) == [f"code_{number}"]
        kallsyms.write_text(kernel)
        modules.write_text("")
        names.later(0.1)


def test_hidden_kernel_addresses_say_what_hides_them(engine, tmp_path):
    (tmp_path / "kallsyms").write_text("0000000000000000 T _stext\n0000000000000000 t helper\t[ext4]\n")
    why = engine("-k", tmp_path / "kallsyms", "-m", "/dev/null").kernel(0xffffffff81000000)["why"]
    assert "kernel.kptr_restrict" in why


def test_kernel_addresses_that_are_no_longer_hidden_are_named(engine, tmp_path):
    """As after `sysctl kernel.kptr_restrict=0`, in a session that goes on."""
    kallsyms = tmp_path / "kallsyms"
    kallsyms.write_text("0000000000000000 T _stext\n0000000000000000 t helper\n")
    names = engine("-k", kallsyms, "-m", "/dev/null")
    assert names.kernel(0xffffffff81001000)["frames"] == []
    kallsyms.write_text(KALLSYMS)
    names.later(61)
    assert functions(names.kernel(0xffffffff81001000)) == ["helper_for_all"]


def test_a_module_that_is_loaded_anew_at_its_old_address_has_its_new_names(engine, tmp_path):
    """/proc/modules is the same then: name, size and address are. Its folder in sysfs is a new one."""
    kallsyms, modules, folder = tmp_path / "kallsyms", tmp_path / "modules", tmp_path / "module"
    kallsyms.write_text("ffffffff81000000 T _stext\nffffffffc0001000 t old_code\t[driver]\n")
    modules.write_text("driver 4096 1 - Live 0xffffffffc0001000\n")
    (folder / "driver").mkdir(parents=True)
    names = engine("-k", kallsyms, "-m", modules, "-M", folder)
    assert functions(names.kernel(0xffffffffc0001010)) == ["old_code"]
    (folder / "driver").rename(folder / "before")  # so that its number isn't used again
    (folder / "driver").mkdir()
    kallsyms.write_text("ffffffff81000000 T _stext\nffffffffc0001000 t new_code\t[driver]\n")
    names.later(2)
    assert functions(names.kernel(0xffffffffc0001010)) == ["new_code"]


# --- run-time compilers -------------------------------------------------------------------------------

def test_compiled_code_is_named_by_its_map(engine, tmp_path):
    path = tmp_path / "perf-1.map"
    path.write_text("1000 100 LazyCompile:*one two.js:3\n2000 10 old\n2008 20 new\nrubbish\n3000 zz x\n2000 4 newest\n"
                    "ffffffffffffff00 200 wraps\n")
    names = engine()
    for address, expected in ((0x1000, "LazyCompile:*one two.js:3"), (0x10ff, "LazyCompile:*one two.js:3"),
                              (0x2000, "newest"), (0x2003, "newest"), (0x2008, "new"), (0x2027, "new")):
        assert functions(names.jit(path, address)) == [expected]
    for address in (0xfff, 0x1100, 0x2004, 0x2028, 0x3000):  # the beginning of the old code is gone
        assert names.jit(path, address)["frames"] == []


@pytest.mark.parametrize("before", [b"\0" * 5000, b"800 100 a\0b\n", b"800 100 \xff\xfe\n", b"800 100\n\n\r\n\0\n", b"800 100 x\n" + b"y" * 70000 + b"\n"],
                         ids=["cut off and written on", "a zero in a name", "no UTF-8", "empty lines", "a long line"])
def test_what_is_no_text_in_a_map_costs_no_other_line(engine, tmp_path, before):
    path = tmp_path / "perf-1.map"
    path.write_bytes(before + b"1000 100 compiled\n2000 100 last\n")
    names = engine()
    assert [functions(names.jit(path, address)) for address in (0x1000, 0x2000)] == [["compiled"], ["last"]]


MAP = "1000 100 compiled\n"


def refused(name):
    return name["frames"] == [] and name.get("refused") and name["why"]


def test_a_map_that_is_a_link_is_refused(engine, tmp_path):
    (tmp_path / "else").write_text(MAP)
    (tmp_path / "perf-1.map").symlink_to(tmp_path / "else")
    assert refused(engine().jit(tmp_path / "perf-1.map", 0x1000)) == "a link leads to the file"


def test_a_map_that_is_no_regular_file_is_refused_and_not_opened(engine, tmp_path):
    """If nhmtap had the FIFO open for reading, opening it for writing would succeed."""
    os.mkfifo(tmp_path / "perf-1.map")
    assert refused(engine().jit(tmp_path / "perf-1.map", 0x1000)) == "it is no regular file"
    with pytest.raises(OSError, match="No such device"):  # ENXIO: nobody has it open for reading
        os.open(tmp_path / "perf-1.map", os.O_WRONLY | os.O_NONBLOCK)


@pytest.mark.parametrize("owner, mode, taken", [(0, 0o600, True), (65534, 0o644, False), (65534, 0o600, False)])
def test_a_map_has_to_be_the_users_own(engine, tmp_path, owner, mode, taken):
    path = tmp_path / "perf-1.map"
    path.write_text(MAP)
    os.chown(path, owner, owner)
    path.chmod(mode)
    name = engine().jit(path, 0x1000)
    assert functions(name) == ["compiled"] if taken else refused(name) == "the file is another user's"


def test_a_map_larger_than_what_is_kept_finds_no_room(engine, tmp_path):
    path = tmp_path / "perf-1.map"
    path.write_text(MAP)
    os.truncate(path, 1 << 40)
    name = engine().jit(path, 0x1000)
    assert name["frames"] == [] and name["no_room"] and "refused" not in name
    assert name["why"] == "the memory for names has no room for its symbols"


def test_a_line_of_a_map_counts_when_it_is_whole(engine, tmp_path):
    """Programs that buffer what they write stop in the middle of a name, for as long as they compile nothing more."""
    path = tmp_path / "perf-1.map"
    path.write_text("1000 1 first\n" * 100 + "2000 100 handle_req")
    names = engine()
    assert names.jit(path, 0x2000)["frames"] == []
    names.later(3600)
    assert names.jit(path, 0x2000)["frames"] == []
    with path.open("a", encoding="utf-8") as file:
        file.write("uest\n3000 100 handle_ans")
    names.later(3600)
    assert functions(names.jit(path, 0x2000)) == ["handle_request"]
    assert names.jit(path, 0x3000)["frames"] == []


@pytest.mark.parametrize("lines, ended", [(2, False), (2, True), (200, True)], ids=["written by hand", "its process has ended", "larger than a buffer"])
@pytest.mark.parametrize("read_before", [False, True])
def test_a_last_line_of_a_map_needs_no_line_feed_if_nothing_follows(engine, tmp_path, lines, ended, read_before):
    """A map that was read in the second in which it was written is read again, though it is the same."""
    path = tmp_path / "perf-1.map"
    path.write_text("\n".join(["1000 1 first"] * (lines - 1) + ["2000 100 last"]))
    os.utime(path, (time.time() + 3600,) * 2)  # however long it takes until it is read
    names = engine()
    if read_before:
        assert names.jit(path, 0x2000)["frames"] == []
    names.later(1800 if ended else 7200)  # so that it may be read again, however long that took
    assert functions(names.jit(path, 0x2000, ended=ended)) == ["last"]


def test_a_map_that_is_older_than_the_process_is_anothers(engine, tmp_path):
    """Each container has a process 1, and their /tmp may be one volume."""
    path = tmp_path / "perf-1.map"
    path.write_text(MAP)
    os.utime(path, (5000, 5000))
    names = engine()
    assert functions(names.jit(path, 0x1000, 4999)) == functions(names.jit(path, 0x1000, 5001)) == ["compiled"]
    assert names.jit(path, 0x1000, 5002) == {"frames": [], "why": "the map is older than the process"}
    os.utime(path, (0, 0))  # a file system that tells no times
    names.later(3600)
    assert functions(names.jit(path, 0x1000, 5002)) == ["compiled"]
    with path.open("a", encoding="utf-8") as file:
        file.write("2000 100 second\n")
    names.later(3600)
    assert functions(names.jit(path, 0x2000, 5002)) == ["second"]


def test_a_large_map_that_grows_is_read_again_in_a_share_of_the_time(engine, tmp_path):
    """Its lines take longer to read, a few times, than the twentieth part of the second that is allowed at once."""
    path = tmp_path / "perf-1.map"
    path.write_text("".join(f"{address:x} 10 function_of_a_name_as_long_as_others_{address}\n" for address in range(1 << 20, 13 << 20, 64)))
    names = engine()
    for number in range(50):
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{number:x}00 10 late{number}\n")
        name = names.jit(path, number * 256)
        if name.get("why"):
            break
    assert name["why"] == "the map has changed and is not read again yet" and name["later"]
    assert functions(names.jit(path, 1 << 20)) == [f"function_of_a_name_as_long_as_others_{1 << 20}"]
    names.later(3600)
    assert functions(names.jit(path, number * 256)) == [f"late{number}"]


def test_code_that_is_compiled_later_is_found(engine, tmp_path):
    path = tmp_path / "perf-1.map"
    path.write_text("1000 100 first\n")
    names = engine()
    assert names.jit(path, 0x2000)["frames"] == []
    with path.open("a", encoding="utf-8") as file:
        file.write("2000 100 second\n")
    names.later(3600)
    assert functions(names.jit(path, 0x2000)) == ["second"]
    assert functions(names.jit(path, 0x1000)) == ["first"]


# --- memory -------------------------------------------------------------------------------------------

def test_memory_keeps_within_its_limit_and_names_stay_the_same(engine, compiled, tmp_path):
    paths = []
    for i in range(12):
        paths.append(compiled(f"-DI={i}", f"-Wl,--build-id=0x{i + 10:040x}", name=f"p{i}"))
    offsets = [offset_of(paths[0], address) for address in instructions(paths[0], "outer")]
    all_in, bounded = engine("-l"), engine("-l", "-b", 200000)
    for path in paths * 2:
        for offset in offsets:
            assert bounded.file(path, offset) == all_in.file(path, offset)
            assert bounded.memory() <= 200000
    assert all_in.memory() > 200000


def test_what_finds_no_room_is_left_out_where_files_are_read_sparingly(engine, compiled):
    paths = [compiled(f"-DI={i}", f"-Wl,--build-id=0x{i + 10:040x}", name=f"p{i}") for i in range(12)]
    offset = offset_of(paths[0], instructions(paths[0], "outer")[0])
    all_in = engine("-l")
    known = [all_in.file(path, offset) for path in paths]
    limit = all_in.memory() // 2
    bounded = engine("-l", "-r", "-b", limit)
    for path in paths:
        bounded.file(path, offset)
    found = [bounded.file(path, offset) for path in paths]
    assert bounded.memory() <= limit
    left_out = [name for name in found if not name["frames"]]
    assert 0 < len(left_out) < len(paths)
    assert {name["why"] for name in left_out} == {"the memory for names has no room for its symbols"}
    assert all(name["no_room"] for name in left_out)
    # The other names are the same as without a limit, and they stay.
    assert all(name == all_of for name, all_of in zip(found, known) if name["frames"])
    assert found == [bounded.file(path, offset) for path in paths]


def test_what_found_no_room_is_read_again_later_under_its_build_id_as_well(engine, compiled):
    paths = [compiled(f"-DI={i}", f"-Wl,--build-id=0x{i + 10:040x}", name=f"p{i}") for i in range(12)]
    offset = offset_of(paths[0], instructions(paths[0], "outer")[0])
    all_in = engine("-l")
    known = [all_in.file(path, offset) for path in paths]
    bounded = engine("-l", "-r", "-b", all_in.memory() // 2)

    def ask(path):
        return bounded.file(path, offset, build_id(path))
    for path in paths:
        ask(path)
    found = [ask(path) for path in paths]
    which = next(i for i, name in enumerate(found) if not name["frames"])
    bounded.later(10)  # what was unused for so long makes room for others
    assert ask(paths[which]) == known[which]


def test_programs_that_come_and_go_take_no_more_memory_round_by_round(engine, compiled, tmp_path):
    path = compiled()
    offset = offset_of(path, symbols(path)["outer"][0][0])
    names, rounds = engine("-l"), []
    for turn in range(10):
        for i in range(10):
            copy = shutil.copy(path, tmp_path / f"copy{turn}{i}")
            assert functions(names.file(copy, offset))[-1] == "outer"
        names.later(61)
        names.forget(60)
        rounds.append(names.memory())
    assert len(set(rounds)) == 1, rounds


def test_what_is_in_use_stays_and_is_not_read_again(engine, compiled, tmp_path):
    path = compiled()
    offset = offset_of(path, symbols(path)["outer"][0][0])
    names = engine("-l")
    number = build_id(path)
    known = names.file(path, offset, number)
    path.rename(tmp_path / "gone")
    for _ in range(10):
        names.later(50)
        names.forget(60)
        assert names.file(path, offset, number) == known
    names.later(61)
    names.forget(60)
    assert names.file(path, offset, number)["why"] == "there is no such file"


def test_places_of_a_program_that_goes_on_are_forgotten_and_have_the_same_names_again(engine, compiled):
    path = compiled()
    offsets = [offset_of(path, address) for address in instructions(path, "outer")]
    names = engine("-l")
    known, rounds = [names.file(path, offset) for offset in offsets], []
    for at in range(2, len(offsets), 2):  # others in each round
        names.later(61)
        names.file(path, offsets[0])
        names.forget(60)
        for offset, same in zip(offsets[at - 2:at], known[at - 2:at]):
            assert names.file(path, offset) == same
        rounds.append(names.memory())
    assert len(rounds) > 5 and max(rounds) <= rounds[0], rounds


def test_many_paths_of_one_program_take_no_more_memory_than_some(engine, compiled, tmp_path):
    path = compiled()
    offset = offset_of(path, symbols(path)["outer"][0][0])
    names, memory = engine("-l"), {}
    for i in range(100):
        link = tmp_path / f"link{i:03}"
        link.symlink_to(path)
        assert functions(names.file(link, offset)) == ["outer"]
        memory[i] = names.memory()
    assert memory[99] == memory[20] > memory[0]


def test_a_file_larger_than_the_limit_keeps_its_names_and_the_limit(engine, compiled):
    path = compiled("-static")
    offset = offset_of(path, symbols(path)["outer"][0][0])
    names = engine("-b", 50000)
    assert functions(names.file(path, offset)) == ["outer"]
    assert names.memory() <= 50000


def test_a_limit_too_small_for_anything_costs_names_not_the_limit(engine, compiled):
    path = compiled("-static")
    offset = offset_of(path, symbols(path)["outer"][0][0])
    names = engine("-b", 400)
    name = names.file(path, offset)
    assert name["frames"] == [] and name["why"] == "the memory for names has no room for its symbols" and name["no_room"]


@pytest.mark.parametrize("limit", [1_000_000, 100_000, 60_000, 30_000], ids=str)
def test_functions_of_a_stripped_file_that_find_no_room_are_not_said_to_be_none(engine, tmp_path, limit):
    """9,000 functions: the limits leave room for all, too little for their list, for a piece of .eh_frame, and for its length."""
    function = ".cfi_startproc\n.fill 16, 1, 0x90\n.cfi_endproc\n"
    (tmp_path / "many.s").write_text(f".globl _start\n.type _start, @function\n_start:\n.rept 9000\n{function}.endr\n.size _start, 16")
    path = tmp_path / "many"
    run("gcc", "-nostdlib", "-static", "-o", path, tmp_path / "many.s")
    (begin, _), = symbols(path)["_start"]
    run("strip", path)
    names = engine("-b", limit)
    told = [names.file(path, offset_of(path, begin + 16 * i + 3)) for i in range(0, 9000, 100)]
    left_out = [name for name in told if "function_offset" not in name]
    assert bool(left_out) == (limit < 1_000_000)
    assert {(name["why"], name["no_room"]) for name in left_out} <= {("the memory for names has no room for its symbols", True)}


@pytest.mark.parametrize("limit", [300_000, 100_000, 4000], ids=str)
@pytest.mark.parametrize("options", [["-static"], ["-static", "-m32"]], ids=" ".join)
def test_names_from_a_table_too_large_to_be_kept_are_those_of_the_whole_table(engine, compiled, limit, options):
    """In libc's are aliases, weak and local functions, labels of assembly, functions chosen at start, and gaps."""
    if "-m32" in options and not os.path.exists("/usr/lib32/libc.a"):
        options = ["-static", "-Wl,--sort-section=name"]
    path = compiled(*options)
    whole, bounded = engine(), engine("-b", limit)
    places = set()
    for (begin, size), *_ in symbols(path).values():
        places.update((begin, begin + size // 2, begin + max(size, 1) - 1, begin + size, begin + size + 5))
    (offset, begin, size), = segments(path)
    places = sorted(place for place in places if begin <= place < begin + size)
    assert len(places) > 4000
    known = [whole.file(path, place - begin + offset) for place in places[::2]]
    assert [bounded.file(path, place - begin + offset) for place in places[::2]] == known
    assert sum(bool(name["frames"]) for name in known) > 1500
    assert bounded.memory() <= 300_000


def test_labels_and_unsized_functions_of_a_table_too_large_end_as_those_of_the_whole_table(engine, tmp_path):
    """All kinds of symbols at random places, overlapping, in random order of the table. Labels have places of their own."""
    chance = random.Random(36)
    for seed in range(5):
        path, strings, entries = tmp_path / f"program{seed}", bytearray(b"\0"), [bytes(24)]
        for number in range(700):
            name = chance.choice(("", "_", "__")) + f"name{number}" * chance.choice((1, 2))
            kind, size = chance.choice((0, 2, 2, 10)), chance.choice((0, 0, 8, 16, 40, 400, 7000 if number < 9 else 24))
            at = manysymbols.slot(0) + 8 * chance.randrange(500) + (0 if kind or size else 4)
            entries.append(manysymbols.symbol(len(strings), at, size, kind, chance.randrange(3)))
            strings += name.encode() + b"\0"
        manysymbols.write(path, 300, b"".join(entries), bytes(strings))
        whole, bounded = engine(), engine("-b", 20000)
        offsets = range(manysymbols.TEXT + 16 * 8, manysymbols.TEXT + 16 * 300, 4)
        known = [whole.file(path, offset) for offset in offsets]
        assert [bounded.file(path, offset) for offset in offsets] == known
        assert len({str(name) for name in known}) > 200


def test_functions_of_a_table_too_large_end_where_one_begins_that_it_lacks(engine, tmp_path):
    """A library without .symtab: a third of its functions have no size, and each fifth is only in .eh_frame."""
    count, size = 10_000, 16
    lines = [f"""{"" if number % 5 == 4 else f".globl f{number}"}
f{number}: .cfi_startproc
.fill {size}, 1, 0x90
.cfi_endproc
.type f{number}, @function
{f".size f{number}, {size}" if number % 3 else ""}
""" for number in range(count)]
    (tmp_path / "library.s").write_text("".join(lines))
    path = tmp_path / "library.so"
    run("gcc", "-shared", "-nostdlib", "-o", path, tmp_path / "library.s")
    first = offset_of(path, int(re.search(r"^([0-9a-f]+) T f0$", run("nm", path), re.M)[1], 16))
    run("strip", path)
    for memory in (8_000_000, 700_000):  # the latter keeps an index
        names = engine("-b", memory)
        for number in range(0, count, 7):
            for at in (0, size - 1):
                name = names.file(path, first + number * size + at)
                if number % 5 == 4:
                    assert not name["frames"] and name["function_offset"] == at, number
                else:
                    assert [(frame["symbol"], frame["offset"]) for frame in name["frames"]] == [(f"f{number}", at)]
        assert names.memory() < memory


# --- broken files -------------------------------------------------------------------------------------

def mutants(original):
    """Damaged copies of a file: cut short, with changed bits, with extreme numbers, with wrong
    section headers, and with random bytes."""
    size, chance = len(original), random.Random(8)
    for i in range(60):
        yield original[:size * i // 60]
    for place in list(range(64)) + [chance.randrange(size) for _ in range(300)]:
        yield original[:place] + bytes([original[place] ^ 1 << chance.randrange(8)]) + original[place + 1:]
    for _ in range(200):
        place, width = chance.randrange(size - 8), chance.choice((1, 2, 4, 8))
        value = chance.choice((0, 1, 0x7f, 0x80, 2 ** (8 * width) - 1, 2 ** (8 * width - 1)))
        yield original[:place] + (value & (2 ** (8 * width) - 1)).to_bytes(width, "little") + original[place + width:]
    headers, = struct.unpack_from("<Q", original, 40)
    count, = struct.unpack_from("<H", original, 60)
    for section in range(count):  # every section: wrong offset, size, type or link
        at = headers + 64 * section
        for field, value in ((24, size - 1), (24, 2 ** 63), (32, 2 ** 63), (32, 2 ** 31), (4, 2), (4, 11), (40, 0xffff)):
            if at + field + 8 <= size:
                width = 4 if field in (4, 40) else 8
                yield original[:at + field] + value.to_bytes(width, "little") + original[at + field + width:]
        begin, length = struct.unpack_from("<QQ", original, at + 24)
        if 0 < begin + length <= size:  # texts without a terminator
            yield original[:begin + length - 1] + b"A" + original[begin + length:]
    start = original.find(b".shstrtab")
    for _ in range(150):  # DWARF: a few random bytes
        place = chance.randrange(size // 3, start)
        yield original[:place] + chance.randbytes(chance.randrange(1, 24)) + original[place + 24:]


def test_broken_tables_too_large_to_be_kept_do_no_harm(engine, tmp_path):
    """Symbols with random bytes, section headers with extreme numbers, and files that were cut short."""
    chance, strings, entries = random.Random(43), bytearray(b"\0"), [bytes(24)]
    for number in range(600):
        entries.append(manysymbols.symbol(len(strings), manysymbols.slot(0) + 8 * chance.randrange(500), 16))
        strings += f"name{number}".encode() + b"\0"
    manysymbols.write(tmp_path / "whole", 300, b"".join(entries), bytes(strings))
    whole, names, found = (tmp_path / "whole").read_bytes(), engine("-b", 16000), []
    table, headers = whole.find(entries[1]), struct.unpack_from("<Q", whole, 40)[0]
    for number in range(240):
        broken = bytearray(whole)
        if number % 3 == 0:
            for _ in range(20):
                broken[table + chance.randrange(600 * 24)] = chance.randrange(256)
        elif number % 3 == 1:
            at = headers + 64 * chance.randrange(1, 5) + chance.choice((4, 24, 32, 40, 56))
            broken[at:at + 4] = chance.choice((0, 1, 23, 2 ** 31, 2 ** 32 - 1, len(whole) - 1)).to_bytes(4, "little")
        else:
            del broken[chance.randrange(len(broken)):]
        (tmp_path / f"broken{number}").write_bytes(broken)
        found += [names.file(tmp_path / f"broken{number}", offset) for offset in (0x1080, 0x1404, 0x1ff0)]
    assert not any("failed" in name for name in found)  # the worker has not ended
    assert sum(bool(name["frames"]) for name in found) > 200


@pytest.mark.parametrize("options", [["-gdwarf-5"], ["-gdwarf-4", "-rdynamic"], ["-gz=zlib"]], ids=" ".join)
def test_broken_files_do_no_harm(engine, compiled, tmp_path, options):
    path = compiled(*options)
    original = path.read_bytes()
    offsets = [offset_of(path, address) for address in instructions(path, "outer")][::7]
    names = engine("-l")
    broken = 0
    for mutant in mutants(original):
        (tmp_path / "new").write_bytes(mutant)
        os.rename(tmp_path / "new", tmp_path / "mutant")
        for offset in offsets:
            broken += not names.file(tmp_path / "mutant", offset)["frames"]
    assert broken > 100  # they were broken indeed
    assert functions(names.file(path, offsets[0]))[-1] == "outer"


# --- malicious DWARF ------------------------------------------------------------------------------

ABBREVIATIONS = """
.section .debug_abbrev,"",@progbits
.Labbreviations:
.uleb128 1; .uleb128 0x11; .byte 1                                     # compile unit with children:
.uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 0x10; .uleb128 0x17; .uleb128 0; .uleb128 0
.uleb128 2; .uleb128 0x2e; .byte 1                                     # subprogram: name, low, high
.uleb128 0x3; .uleb128 8; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 0; .uleb128 0
.uleb128 3; .uleb128 0x1d; .byte 1                                     # inlined: abstract origin, low, high
.uleb128 0x31; .uleb128 0x13; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .uleb128 0; .uleb128 0
.uleb128 4; .uleb128 0x0b; .byte 1; .uleb128 0; .uleb128 0             # block with children
.uleb128 5; .uleb128 0x0b; .byte 0; .uleb128 0; .uleb128 0             # block without
.uleb128 6; .uleb128 0x0b; .byte 1; .uleb128 0x1; .uleb128 0x13; .uleb128 0; .uleb128 0  # with a sibling
.uleb128 7; .uleb128 0x1d; .byte 0; .uleb128 0x55; .uleb128 0x17; .uleb128 0; .uleb128 0 # inlined: ranges
.byte 0
"""
CODE = """
.globl outer
.type outer, @function
outer: .skip 64, 0x90
.Louter_end: .size outer, . - outer
.globl _start
_start: ret
"""


def repeated(text, times):
    return f".rept {times}\n{text}\n.endr\n"


def unit(inside):
    """A compilation unit with outer(), which has `inside` in it."""
    return f"""
.section .debug_info,"",@progbits
9: .long 8f - 7f
7: .value 4; .long .Labbreviations; .byte 8
.uleb128 1; .quad outer; .quad .Louter_end - outer; .long 0
.uleb128 2; .asciz "outer"; .quad outer; .quad .Louter_end - outer
{inside}
.byte 0
.byte 0
8:
"""


INLINED_BY_ITSELF = "1: .uleb128 3; .long 1b - 9b; .quad outer; .quad 8"
RANGES = '.section .debug_ranges,"",@progbits\n' + repeated(".quad 1, 2", 50000) + ".quad 0, 0\n"
HARM = {
    "a function that is inlined from itself": unit(INLINED_BY_ITSELF + "; .byte 0"),
    "functions inlined as deep as the file goes":
        unit(repeated(INLINED_BY_ITSELF, 20000) + repeated(".byte 0", 20000)),
    "blocks as deep as the file goes": unit(repeated(".uleb128 4", 200000) + repeated(".byte 0", 200000)),
    "a million blocks below many": unit(repeated(".uleb128 4", 900) + repeated(".uleb128 5", 1000000) +
                                        repeated(".byte 0", 900)),
    "a sibling that is itself": unit("1: .uleb128 6; .long 1b - 9b; .byte 0"),
    "a sibling that came before": unit(".uleb128 5\n1: .uleb128 5; .uleb128 6; .long 1b - 9b; .byte 0"),
    "a hundred thousand units": repeated(unit(""), 100000),
    "a long list of ranges that all have": unit(repeated(".uleb128 7; .long 0", 20000)) + RANGES,
}


@pytest.mark.parametrize("harm", HARM)
def test_dwarf_that_was_written_to_do_harm_costs_lines_but_not_the_function(engine, tmp_path, harm):
    (tmp_path / "harm.S").write_text(CODE + ABBREVIATIONS + HARM[harm])
    path = tmp_path / "harm"
    run("gcc", "-nostdlib", "-static", "-o", path, tmp_path / "harm.S")
    (begin, _), = symbols(path)["outer"]
    names = engine("-l")
    for address in range(begin, begin + 16):
        assert functions(names.file(path, offset_of(path, address)))[-1] == "outer"
    assert names.memory() < 256 << 20


@pytest.mark.parametrize("link", ["absolute", "beside", "above"])
def test_parts_that_programs_share_are_found(engine, compiled, tmp_path, link):
    """dwz moves what two programs have in common to a separate file."""
    path, other = compiled(), compiled("-DOTHER", name="other")
    addresses = instructions(path, "outer")
    expected = {address: normal(frames) for address, frames in addr2line(path, addresses).items()}
    names = {"absolute": str(tmp_path / "shared.debug"), "beside": "shared.debug", "above": f"../{tmp_path.name}/shared.debug"}
    run("dwz", "-m", tmp_path / "shared.debug", "-M", names[link], path, other)
    assert ".gnu_debugaltlink" in run("readelf", "-SW", path)
    names = engine("-l")
    for address in addresses:
        name = names.file(path, offset_of(path, address))
        assert normal([(frame["symbol"], *place) for frame, place in zip(name["frames"], places(name))]) == \
            expected[address]


def test_programs_of_32_bits_are_named(engine, tmp_path):
    (tmp_path / "n.c").write_text("""
        static inline __attribute__((always_inline)) int inner(int x) { volatile int y = x; return y * 3; }
        __attribute__((noinline)) int outer(int x) { return inner(x) + 1; }
        void _start(void) { outer(1); for (;;); }""")
    path = tmp_path / "n"
    run("gcc", "-m32", "-O2", "-g", "-nostdlib", "-static", "-fno-pic", "-no-pie", "-o", path, tmp_path / "n.c")
    addresses = instructions(path, "outer")
    said = addr2line(path, addresses)
    assert any(len(frames) == 2 for frames in said.values())
    names = engine("-l")
    for address in addresses:
        name = names.file(path, offset_of(path, address))
        assert [(frame["symbol"], *place) for frame, place in zip(name["frames"], places(name))] == said[address]
