#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""reached.py [--whole] FOLDER…: prints, by folders of the program, the lines and branches that were reached.

A FOLDER has the objects of a build with --coverage, and what its runs have left. gcov counts: a branch is one way out
of a condition. The process without rights that reads files of others can't write what it has reached, so confined/ is
reached more than it seems.

Of the files that account for what was measured, every branch has to be reached, or to be in unreached.txt with the
reason why it may not be. With --whole, which says that all tests were run, those are printed that are neither.

Exit status: 0; 1 if there are such.
"""
import collections
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LIST = os.path.join(os.path.dirname(HERE), "unreached.txt")
# Samples, counts, merges. Those that tests/pure builds by themselves are measured in each run of the tests.
PURE = ("user/record/samples.c", "user/analyze/account.c", "user/aggregation/pairs.c", "user/aggregation/remainder.c",
        "user/aggregation/stacks.c", "user/aggregation/sums.c")
ACCOUNTS = (*PURE, "user/aggregation/aggregation.c", "user/aggregation/rings.c", "user/aggregation/table_reader.c", "user/activity/tally.c",
            "user/record/bound.c", "user/record/chains.c", "user/record/entry.c", "user/record/fold.c")


def notes(folders):
    """The notes of all objects, and those that have no counts."""
    for folder in folders:
        for top, _, names in os.walk(folder):
            yield from (os.path.join(top, name) for name in names if name.endswith(".gcno"))


def files_of(note):
    """What gcov says of the source files of an object. Without a run it says that nothing was reached."""
    said = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout", note], capture_output=True,
                          text=True, check=True).stdout
    return json.loads(said)["files"] if said else []


def name_of(path):
    """The name of a source of the program, from the top of the tree; None for other files."""
    name = os.path.relpath(os.path.join(ROOT, path), ROOT)
    return name if name.startswith("user/") and name.endswith(".c") else None


def reached(folders):
    """{file: {line: [count, [count of each branch]]}}, summed up over the objects that have the line."""
    sums = collections.defaultdict(dict)
    for note in notes(folders):
        for file in files_of(note):
            if not (name := name_of(file["file"])):
                continue
            for line in file["lines"]:
                count, branches = line["count"], [branch["count"] for branch in line["branches"] if not branch["throw"]]
                before, known = sums[name].get(line["line_number"], (0, []))
                if len(known) == len(branches):
                    branches = [a + b for a, b in zip(known, branches)]
                sums[name][line["line_number"]] = (before + count, branches)
    return sums


# --- what the accounts lack -------------------------------------------------------------------------


def source_of(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read().split("\n")


def unreached(sums, files=ACCOUNTS):
    """{(file, text of a line): number of its branches that were not reached} in these files."""
    lacks = collections.Counter()
    for name in files:
        source = source_of(name)
        for number, (_, branches) in sums[name].items():
            if missing := branches.count(0):
                lacks[name, source[number - 1].strip()] += missing
    return lacks


def listed():
    """{(file, text of a line): (number of its branches, reason)}. In the list, lines that begin with '# ' say why the rows
    below them may not be reached."""
    rows, reason = {}, ""
    with open(LIST, encoding="utf-8") as file:
        for line in file.read().split("\n"):
            if line.startswith("# "):
                reason = line[2:]
            elif line:
                name, number, text = line.split(" ", 2)
                rows[name, text] = (int(number), reason)
    return rows


def beyond(lacks, rows):
    """Sentences on what is not reached for no known reason."""
    for (name, text), number in sorted(lacks.items()):
        allowed = rows.get((name, text), (0, ""))[0]
        if number > allowed:
            yield f"{name}: {number - allowed} branches are not reached, and no reason is listed: {text}"


# --- the whole --------------------------------------------------------------------------------------


def print_folders(sums):
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for name, lines in sums.items():
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


def main():
    folders = [word for word in sys.argv[1:] if word != "--whole"]
    sums = reached(folders)
    print_folders(sums)
    wrong = list(beyond(unreached(sums), listed())) if "--whole" in sys.argv else []
    print("\n".join(wrong))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
