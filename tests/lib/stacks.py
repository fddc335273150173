# SPDX-License-Identifier: GPL-2.0-only
"""Stacks of nhmtap's records and of perf in a form that tests can compare."""
import collections
import functools
import re
import subprocess

from records import frames_of


def place(frame):
    """Returns a frame as (file, offset), or its address if it is in no file."""
    if "offset" in frame:
        return frame["module"], int(frame["offset"], 16)
    return int(frame["address"], 16)


def chains(result, of=place, type="profile", count="samples", **members):
    """Returns {stack: samples} of the entries with these members. A stack is a tuple of places, or
    of what `of` returns for a frame, from the innermost outwards."""
    found = collections.Counter()
    for record in result.of(type):
        frames = frames_of(result.records, record)
        for entry in record["entries"]:
            if all(entry.get(name) == value for name, value in members.items()):
                found[tuple(of(frames[i]) for i in entry["stack"])] += entry[count]
    return found


def named(result, **members):
    """Returns {names of the frames, from the outermost: samples}."""
    found = chains(result, of=lambda frame: frame.get("symbol"), **members)
    return collections.Counter({chain[::-1]: samples for chain, samples in found.items()})


@functools.cache
def code(program):
    """Returns the functions of a program by nm and readelf: (offset in the file, size, name)."""
    said = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True)
    offset, address = (int(x, 16) for x in
                       re.search(r"LOAD +(0x\w+) (0x\w+) .* R E ", said.stdout).groups())
    said = subprocess.run(["nm", "-Sn", program], capture_output=True, text=True, check=True)
    rows = [line.split() for line in said.stdout.splitlines()]
    rows = [row for row in rows if row[-2] in "tT"]
    # A function without a size ends before the next one.
    return [(int(row[0], 16) - address + offset,
             int(row[1], 16) if len(row) == 4 else int(after[0], 16) - int(row[0], 16) - 1, row[-1])
            for row, after in zip(rows, [*rows[1:], rows[-1]])]


def function(program, offset):
    """Returns the function that an offset lies in. The end counts as inside: a last call returns to
    it."""
    return next((name for start, size, name in code(program) if start < offset <= start + size
                 or offset == start), None)


def within(program, found):
    """Returns the same chains as names of a program's functions, outermost first, without the
    frames and the chains outside of the program."""
    named = collections.Counter()
    for chain, samples in found.items():
        names = [function(program, at[1]) for at in chain if isinstance(at, tuple) and at[0] == program]
        if names:
            named[tuple(reversed(names))] += samples
    return named


def by_perf(data, comm):
    """Returns {places from the innermost outwards: samples} of what perf recorded of a command."""
    said = subprocess.run(["perf", "script", "-f", "-i", data, "-F", "comm,ip,sym,dso", "--no-inline"],
                          capture_output=True, text=True, check=True, errors="replace").stdout
    found = collections.Counter()
    for block in said.split("\n\n"):
        name, *lines = block.strip("\n").split("\n")
        if name.strip() != comm:
            continue
        chain = []
        for line in lines:
            address, dso = re.match(r"\s*([0-9a-f]+) .*\((.*?)\)$", line).groups()
            address = int(address, 16)
            chain.append(address if address >> 63 or dso == "[unknown]" else (dso, address))
        found[tuple(chain)] += 1
    return found
