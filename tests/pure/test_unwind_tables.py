# SPDX-License-Identifier: GPL-2.0-only
"""Unwinding tables, compared with elfutils' libdw at the same addresses."""
import glob
import os
import re
import shutil
import subprocess

import pytest

import chain
import golang
from compiled import compiled
from naming import WORKER


@pytest.fixture(scope="module")
def rows_program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    compiled(folder, "rows", plain=True)
    return folder / "rows"


@pytest.fixture(scope="module")
def rows(rows_program):
    """rows(FILE, EVERY): the numbers that rows.c prints for a file."""
    def compare(path, every=1):
        said = subprocess.run([rows_program, path, str(every)], capture_output=True, text=True, check=False)
        numbers = dict(re.findall(r"([a-z]+) ([0-9]+)", said.stdout.splitlines()[-1]))
        assert said.returncode == 0, said.stdout
        return {name: int(number) for name, number in numbers.items()}
    return compare


def library(pattern):
    found = sorted(glob.glob(f"/usr/lib/x86_64-linux-gnu/{pattern}"))
    assert found, f"no {pattern} here"
    return os.path.realpath(found[-1])


@pytest.mark.parametrize("path, at_least", [
    (library("libc.so.6"), 20000), (os.path.realpath("/usr/bin/python3"), 50000),
    (library("libcrypto.so.*"), 50000), (library("ld-linux-x86-64.so.2"), 2000)],
    ids=["libc", "python3", "libcrypto", "ld.so"])
def test_each_row_of_a_file_is_what_libdw_says(rows, path, at_least):
    found = rows(path)
    assert found["rows"] > at_least and found["compared"] >= 2 * found["rows"] - 1
    assert found["other"] * 100 < found["rows"]  # rules that the format lacks
    assert found["bytes"] < 5 * found["rows"]


def test_rows_of_a_large_library_are_what_libdw_says(rows):
    found = rows(library("libLLVM*.so*"), 61)
    assert found["rows"] > 500000 and found["compared"] > 2 * found["rows"] // 61


ASSEMBLER = """
        .text
        .globl f
f:      .cfi_startproc
        push %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset 6, -16
        mov %rsp, %rbp
        .cfi_remember_state
        .cfi_def_cfa_register 6
        nop
        .cfi_restore_state
        nop
        .cfi_escape 0x0f, 3, 0x76, 0x78, 0x06   # CFA = *(rbp - 8)
        nop
        .cfi_def_cfa 10, 0                      # r10: not in the format
        nop
        .cfi_undefined 16
        nop
        .cfi_endproc
        .skip 200000
        .globl g
g:      .cfi_startproc simple
        .cfi_def_cfa 7, 8
        .cfi_offset 16, -8
        .skip 200000
        .cfi_register 6, 3
        nop
        .cfi_endproc
"""


def test_code_of_an_assembler_far_apart_is_what_libdw_says(rows, tmp_path):
    (tmp_path / "x.s").write_text(ASSEMBLER)
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,--no-ld-generated-unwind-info", "-o", tmp_path / "x.so",
                    tmp_path / "x.s"], check=True)
    found = rows(tmp_path / "x.so")
    # f has five rows after its first two, and g has two. Each page that a gap or a function reaches
    # into has its own row.
    assert 10 <= found["rows"] <= 16 and found["other"] == 1


# --- other sections than .eh_frame ----------------------------------------------------------------


def test_rows_of_debug_frame_are_what_libdw_says(rows, tmp_path):
    """Code without .eh_frame, but with debug information."""
    (tmp_path / "x.c").write_text(chain.LIBRARY_SOURCE)
    subprocess.run(["gcc", "-O2", "-g", "-fPIC", "-fomit-frame-pointer", "-fno-asynchronous-unwind-tables", "-shared", "-nostdlib",
                    "-o", tmp_path / "x.so", tmp_path / "x.c"], check=True)
    found = rows(tmp_path / "x.so", ".debug_frame")
    assert found["compared"] > 50 and found["different"] == 0 and found["other"] == 0


@pytest.mark.parametrize("flags, linking", [((), ""), (("-buildmode=pie",), ""), (("-buildmode=pie",), "-linkmode=external")],
                         ids=["fixed", "pie", "linked-by-ld"])
def test_rows_of_gos_functions_are_what_its_debug_frame_says(rows, tmp_path, flags, linking):
    found = rows(golang.build(tmp_path, *flags, f"-ldflags=-compressdwarf=false {linking}"), ".debug_frame")
    assert found["compared"] > 5000 and found["different"] == 0


# Functions as Go's assembler and compiler write them, and the table with their distances by hand. A distance and how
# many bytes it holds for: the difference to the one before, at first to -1, is doubled (or complemented, if below 0).
GO = """
        .text
        .globl _start
_start: nop
leaf:   nop
        ret
framed: sub $24, %rsp
        mov %rbp, 16(%rsp)
        lea 16(%rsp), %rbp
        nop
        add $24, %rsp
        ret
top:    nop
switch: nop
end:
        .section {section}, "a"
begin:  .long {magic}
        .byte 0, 0, 1, 8
        .quad 4, 0
        {text}
        .quad names - begin, 0, 0, lists - begin, table - begin
names:  .byte 0
n_other: .asciz "main.f"
n_system: .asciz "runtime.systemstack"
lists:  .byte 0
l_leaf: .byte 2, 2, 0
l_framed: .byte 2, 4, 48, 15, 47, 1, 0
        .balign 8
table:  {entry} leaf {base}, f_leaf - table, framed {base}, f_framed - table
        {entry} top {base}, f_top - table, switch {base}, f_switch - table, end {base}
        .macro function label, address, name, list, flags
\\label:  {entry} \\address {base}
        .long \\name - names, 0, 0, \\list - lists, 0, 0, 0, 0
        {lines}
        .byte 0, \\flags, 0, 0
        .endm
        function f_leaf, leaf, n_other, l_leaf, 0
        function f_framed, framed, n_other, l_framed, 0
        function f_top, top, n_other, l_leaf, 1
        function f_switch, switch, n_system, l_leaf, 6
        .section .go.buildinfo, "a"
        .byte 0
        .section .go.module, "aw"
        .fill 22, 8, 0
        {module}
"""
SINCE = {
    "1.16": {"magic": "0xfffffffa", "text": "", "entry": ".quad", "base": ""},
    "1.18": {"magic": "0xfffffff0", "text": ".quad _start"},
    "1.20": {"magic": "0xfffffff1", "text": ".quad _start", "lines": ".long 0"},
    "1.26": {"magic": "0xfffffff1", "text": ".quad 0", "lines": ".long 0", "module": ".quad _start"},
}


# Before Go 1.18, a table in a program that may lie anywhere has relocated addresses in all of its rows.
FORMS = [(since, way) for since in SINCE for way in ("-static", "-pie") if (since, way) != ("1.16", "-pie")]


@pytest.mark.parametrize("since, way", FORMS)
def test_each_form_of_gos_table_is_read(rows_program, tmp_path, since, way):
    parts = {"entry": ".long", "base": "- _start", "lines": "", "module": ".quad 0", **SINCE[since]}
    relocated = way == "-pie" and "_start" in parts["text"]
    section = '.data.rel.ro.gopclntab, "aw"' if relocated else '.gopclntab, "a"'  # ld makes .data.rel.ro of it
    (tmp_path / "x.s").write_text(GO.format(section=section, **parts))
    subprocess.run(["gcc", way, "-nostdlib", "-o", tmp_path / "x", tmp_path / "x.s"], check=True)
    said = subprocess.run(["nm", tmp_path / "x"], capture_output=True, text=True, check=True).stdout
    at = {name: int(address, 16) for address, _, name in map(str.split, said.splitlines())}
    asked = [at["leaf"], *(at["framed"] + i for i in (0, 4, 9, 15, 19)), at["top"], at["switch"]]
    told = subprocess.run([rows_program, tmp_path / "x", "at", *map("{:x}".format, asked)], capture_output=True, text=True, check=True)
    # By enum unwind_frame: 2 the outermost, 3 at rsp + a number, 10 at rbp, on another stack. Then the number, and
    # how rbp is found: by 0 it is unchanged, by 1 it is saved below the frame.
    assert told.stdout.splitlines() == ["3 8 0 0", "3 8 0 0", "3 32 0 0", "3 32 1 -16", "3 32 1 -16", "3 8 0 0", "2 0 0 0", "10 16 1 -16"]


# --- tables that are no longer needed -------------------------------------------------------------

@pytest.fixture
def tables(tmp_path):
    """tables("get", PATH): the answer of tests/pure/table_memory.c to this line."""
    compiled(tmp_path, "table_memory", *WORKER)
    with subprocess.Popen([tmp_path / "table_memory"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        def ask(*words):
            process.stdin.write(" ".join(map(str, words)) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())
        yield ask
        process.stdin.close()
        assert process.wait() == 0


def test_tables_of_programs_that_come_and_go_take_no_more_room_round_by_round(tables, tmp_path):
    rounds = []
    for turn in range(10):
        for i in range(5):
            copy = shutil.copy(library("ld-linux-x86-64.so.2"), tmp_path / f"copy{turn}{i}")
            tables("put", tables("get", copy))
        full = tables("note")
        tables("later", 61)
        rounds.append((full, tables("note")))
    assert rounds == [(rounds[0][0], 0)] * 10 and rounds[0][0] > 0


@pytest.mark.parametrize("why", ["mapped", "used"])
def test_a_table_that_is_needed_stays(tables, tmp_path, why):
    number = tables("get", library("ld-linux-x86-64.so.2"))
    if why == "used":
        tables("put", number)
    full = tables("note")
    for _ in range(5):
        tables("later", 50)
        if why == "used":
            tables("use", number)
        assert tables("note") == full
    if why == "mapped":
        tables("put", number)
    tables("later", 61)
    assert tables("note") == 0


def test_a_table_that_was_given_back_is_made_again_when_it_is_needed(tables):
    number = tables("get", library("ld-linux-x86-64.so.2"))
    full = tables("put", number)
    tables("later", 61)
    assert tables("note") == 0 < full
    assert tables("get", library("ld-linux-x86-64.so.2")) == number
    assert tables("note") == full
