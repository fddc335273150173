# SPDX-License-Identifier: GPL-2.0-only
"""Names in the ELF files and debug information of others: empty, long, of any bytes. Every record fits its
schema and has at most 8 KiB, which `parse` checks, and no sample is lost."""
import subprocess

import pytest
from records import Result

NAME = b"the_function_that_is_measured"
SOURCE = r"""
#include <sys/mman.h>
#line 1 "%s"
__attribute__((noinline)) int the_function_that_is_measured(int n)
{
	for (int i = 0; i < n; i++) {
		char *at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		*at = 1;
		munmap(at, 4096);
	}
	return 0;
}
int main(void) { return the_function_that_is_measured(500); }
"""


def build(folder, file="a.c"):
    (folder / "a.c").write_text(SOURCE % file)
    subprocess.run(["gcc", "-g", "-O1", "-o", folder / "a", folder / "a.c"], check=True)
    return folder / "a"


def patched(folder, name):
    """The program with other bytes in place of the name, in its symbols and its debug information."""
    path = build(folder)
    path.write_bytes(path.read_bytes().replace(NAME, name.ljust(len(NAME), b"\0")))
    return path


def renamed(folder, name):
    path = build(folder)
    (folder / "names").write_bytes(NAME + b" " + name + b"\n")
    subprocess.run(["objcopy", f"--redefine-syms={folder / 'names'}", path], check=True)
    return path


def renamed_file(folder, name):
    return build(folder, name.decode("latin-1"))


HOSTILE = {
    "no name": (patched, b""), "a newline": (patched, b"a\n\t\"\\"), "no UTF-8": (patched, b"\xff\xed\xa0\x80\xc3"),
    "half of a mangled name": (patched, b"_ZN9"), "64 KiB": (renamed, b"a" * 65536), "1 MiB": (renamed, b"a" * (1 << 20)),
    "64 KiB mangled": (renamed, b"_ZN" + b"3abc" * 16000 + b"Ev"), "control characters": (renamed, b"a" + b"\x01" * 3000),
    "a file of 64 KiB": (renamed_file, b"f" * 65536), "a folder of 4 KiB": (renamed_file, b"/" + b"f/" * 2040 + b"a.c"),
}


@pytest.mark.parametrize("by", [["-g"], ["--by", "symbol,line"]], ids=["stacks", "lines"])
@pytest.mark.parametrize("which", HOSTILE)
def test_a_name_of_any_kind_leaves_records_valid_and_complete(nhmtap, tmp_path, which, by):
    make, name = HOSTILE[which]
    result = nhmtap("profile", "-e", "page-faults:u", "-c", "1", *by, "-o", tmp_path / "out", "-o", f"pprof={tmp_path / 'pprof'}",
                    "-o", f"folded={tmp_path / 'folded'}" if by == ["-g"] else f"flat={tmp_path / 'flat'}", "--",
                    make(tmp_path, name))
    assert result.status == 0, result.err
    records = Result(0, (tmp_path / "out").read_text(encoding="utf-8"), "")
    assert sum(r["samples"]["aggregated"] for r in records.of("profile") if "samples" in r) >= 500
    named = nhmtap("symbolize", tmp_path / "out")
    assert named.status == 0 and len(named.records) >= len(records.records) - 1
