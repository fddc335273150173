# SPDX-License-Identifier: GPL-2.0-only
"""Names of a thousand places in system programs, compared with binutils and LLVM."""
import glob
import os
import random
import re

import pytest

import naming
from naming import Names, addr2line, build_id, functions, llvm_symbolizer, offset_of, places, run

LIBC = next(iter(glob.glob("/lib/*/libc.so.6")))
PLACES = 1000


def spread(*files):
    """Random addresses in functions, the same in each run."""
    chance = random.Random(8)
    bodies = set()
    for path, option in files:
        for sizes in naming.symbols(path, option).values():
            bodies |= {(begin, size) for begin, size in sizes if size}
    bodies = sorted(bodies)
    return sorted({begin + chance.randrange(size) for begin, size in
                   (chance.choice(bodies) for _ in range(PLACES + 100))})


def aliases(*files):
    """The names at each address, {address: names}, and the addresses of each name."""
    at, of = {}, {}
    for path, option in files:
        for line in run("nm", "-C", option, path).splitlines():
            match = re.fullmatch(r"([0-9a-f]{16}) \w (.*)", line)
            if match:
                name = match[2].split("@")[0]
                at.setdefault(int(match[1], 16), set()).add(name)
                of.setdefault(name, set()).add(int(match[1], 16))
    return at, of


def plain(name):
    """The name without the suffix that a compiler adds for a part of a function."""
    name = re.sub(r"( \[clone [^]]*\])+$", "", name or "??")
    return re.sub(r"(\.(cold|part|isra|constprop)(\.\d+)?)+$", "", name)


def same_function(ours, theirs, at, of):
    """A function can have several names, and either tool may choose any of them."""
    names = {ours} | {name for address in of.get(ours, ()) for name in at[address]}
    return plain(theirs) in {plain(name) for name in names}


def agreeing(names_program, path, files, debug):
    """The number of places, and the number of those with the same functions as from addr2line."""
    addresses, (at, of) = spread(*files), aliases(*files)
    said = addr2line(debug, addresses)
    engine = Names(names_program, "-l")
    same = 0
    for address in addresses:
        ours = functions(engine.file(path, offset_of(path, address)))
        theirs = [function for function, _, _ in said[address]]
        same += len(ours) == len(theirs) and all(same_function(a, b, at, of) for a, b in zip(ours, theirs))
    engine.close()
    return len(addresses), same


@pytest.mark.parametrize("path", ["/bin/bash", "/usr/bin/python3"])
def test_exported_functions_are_named_as_addr2line_does(names_program, path):
    path = os.path.realpath(path)
    nr, same = agreeing(names_program, path, [(path, "-D")], path)
    assert nr >= PLACES
    assert same >= 0.99 * nr


@pytest.fixture(scope="session")
def libc_debug():
    number = build_id(LIBC)
    return f"/usr/lib/debug/.build-id/{number[:2]}/{number[2:]}.debug"


def test_functions_of_libc_and_what_is_inlined_in_them_are_named_as_addr2line_does(names_program, libc_debug):
    nr, same = agreeing(names_program, LIBC, [(LIBC, "-D"), (libc_debug, "-a")], libc_debug)
    assert nr >= PLACES
    assert same >= 0.99 * nr


def test_lines_of_libc_are_those_that_llvm_finds(names_program, libc_debug):
    """LLVM instead of addr2line: binutils 2.40 takes a wrong file from some tables of DWARF 5."""
    addresses = spread((LIBC, "-D"), (libc_debug, "-a"))
    said = llvm_symbolizer(libc_debug, addresses)
    engine = Names(names_program, "-l")
    same = 0
    for address in addresses:
        ours = places(engine.file(LIBC, offset_of(LIBC, address)))
        same += [(os.path.normpath(file), line) for file, line in ours] == \
            [(os.path.normpath(file), line) for file, line in said[address]]
    engine.close()
    assert len(addresses) >= PLACES
    assert same >= 0.99 * len(addresses)
