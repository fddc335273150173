#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""reached.py FOLDER: prints, by folders of the program, the lines and branches that were reached.

FOLDER has the objects of a build with --coverage, and what its runs have left. gcov counts: a branch is
one way out of a condition. The process without rights that reads files of others can't write what it has
reached, so confined/ is reached more than it seems.
"""
import collections
import json
import os
import subprocess
import sys


def notes(folder):
    """The notes of all objects, and those that have no counts."""
    for top, _, names in os.walk(folder):
        yield from (os.path.join(top, name) for name in names if name.endswith(".gcno"))


def files_of(note):
    """What gcov says of the source files of an object. Without a run it says that nothing was reached."""
    said = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout", note], capture_output=True,
                          text=True, check=True).stdout
    return json.loads(said)["files"] if said else []


def reached(folder):
    """{file: {line: [count, [count of each branch]]}}, summed up over the objects that have the line."""
    sums = collections.defaultdict(dict)
    for note in notes(folder):
        for file in files_of(note):
            name = os.path.normpath(file["file"])
            if not name.startswith("user/") or not name.endswith(".c"):
                continue
            for line in file["lines"]:
                sums[name][line["line_number"]] = (line["count"], [branch["count"] for branch in line["branches"]
                                                                   if not branch["throw"]])
    return sums


def main():
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for name, lines in reached(sys.argv[1]).items():
        for count, branches in lines.values():
            for key in (os.path.dirname(name), "all"):
                row = rows[key]
                row[0] += count > 0
                row[1] += 1
                row[2] += sum(branch > 0 for branch in branches)
                row[3] += len(branches)
    print(f"{'folder':22} {'lines':>15} {'':>7} {'branches':>15}")
    for name, (lines, all_lines, branches, all_branches) in sorted(rows.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"{name:22} {lines:7,} {all_lines:7,} {lines / all_lines:7.1%} {branches:7,} {all_branches:7,} {branches / (all_branches or 1):7.1%}")


if __name__ == "__main__":
    main()
