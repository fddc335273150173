# SPDX-License-Identifier: GPL-2.0-only
"""Two files' code at the same address, one after the other, in a run without intervals: each has its own
branches. And more keys than are kept: the others are summed up."""
import subprocess

import pytest

from records import Result

# Maps the code of two files at one address, in turn, and calls it. Waits, so that no sample of one of
# them is taken while the other is mapped, and the kernel's notes can be read.
TWICE = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	void *at = (void *)0x700000000000;

	for (int i = 0; i < 2; i++) {
		int fd = open(argv[1 + 3 * i], O_RDONLY);
		char *code = mmap(at, 65536, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);

		nanosleep(&(struct timespec){0, 100000000}, NULL);
		((void (*)(long))(code + strtol(argv[2 + 3 * i], NULL, 0)))(atol(argv[3 + 3 * i]));
		nanosleep(&(struct timespec){0, 400000000}, NULL);
		munmap(code, 65536);
	}
	return 0;
}
"""

# Takes one branch to itself for each turn but the last.
LOOP = ".globl {0}\n.type {0}, @function\n{0}: dec %rdi\n jnz {0}\n ret\n.size {0}, . - {0}\n"

TURNS = {"first": 30000, "second": 50000}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The program and the two libraries as a tar file, and the program's arguments."""
    folder = tmp_path_factory.mktemp("reused")
    subprocess.run(["gcc", "-O1", "-static", "-x", "c", "-o", folder / "twice", "-"], input=TWICE, text=True, check=True)
    arguments = []
    for name, turns in TURNS.items():
        subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,-z,noseparate-code", "-x", "assembler", "-o", folder / f"{name}.so", "-"],
                       input=LOOP.format(name), text=True, check=True)
        said = subprocess.run(["nm", folder / f"{name}.so"], capture_output=True, text=True, check=True).stdout
        at = next(line.split()[0] for line in said.splitlines() if line.endswith(f" T {name}"))
        arguments += [f"{name}.so", f"0x{at}", str(turns)]
    tar = subprocess.run(["tar", "-C", folder, "-c", "twice", "first.so", "second.so"], capture_output=True, check=True).stdout
    return tar, " ".join(arguments)


def run(guest, archive, options):
    tar, arguments = archive
    done = guest.run(f"tar x; nhmtap branch --format json {options} -- ./twice {arguments}", stdin=tar, paranoid=-1)
    assert done.status == 0, str(done)
    return Result(done.status, done.stdout, done.stderr)


def by_module(result):
    """How often each file's loop was taken."""
    found = dict.fromkeys(TURNS, 0)
    for entry in (e for record in result.of("branch") for e in record["entries"]):
        for name in TURNS:
            if entry["from"].get("module", "").endswith(f"/{name}.so"):
                found[name] += entry["count"]
    return found


@pytest.mark.parametrize("by", ["edge", "function", "symbol,pid"])
def test_samples_have_the_code_that_was_there(guest, archive, by):
    result = run(guest, archive, f"-e branches:u -c 101 --filter cond --by {by}")
    found = by_module(result)
    for name, turns in TURNS.items():
        assert 0.9 * turns / 101 * 16 <= found[name] <= 1.1 * turns / 101 * 16, found


def test_a_trace_has_the_code_that_was_there(guest, archive):
    result = run(guest, archive, "--trace --filter u --by edge")
    found = by_module(result)
    # The call and the return are one of each; the return leads from the file.
    assert found == {name: turns for name, turns in TURNS.items()}


def test_a_stream_of_a_trace_has_the_code_that_was_there(guest, archive):
    result = run(guest, archive, "--trace --stream --filter u --by edge")
    found = dict.fromkeys(TURNS, 0)
    for record in result.of("traced"):
        for name in TURNS:
            found[name] += record["from"].get("module", "").endswith(f"/{name}.so")
    unwritten = sum(r.get("records", 0) for r in result.of("gap"))
    assert all(turns - unwritten <= found[name] <= turns for name, turns in TURNS.items()), (found, unwritten)
