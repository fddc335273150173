# SPDX-License-Identifier: GPL-2.0-only
"""coverage.py NAME SOURCE…: what the inputs of a fuzzer reach in its parsers, from `llvm-cov
export` on stdin. Prints one line per source: how many of its lines are reached, which functions no
input calls, and the first lines of the regions that no input reaches in the other functions."""
import collections
import json
import sys

CODE = 0  # the kind of a region that is neither a gap nor an expanded macro


def missed(functions):
    """{source: (functions that no input calls, first lines of unreached regions in the other
    functions)}"""
    never, lines = collections.defaultdict(set), collections.defaultdict(set)
    for function in functions:
        source = function["filenames"][0]
        if not function["count"]:
            never[source].add(function["name"].rpartition(":")[2])
            continue
        lines[source] |= {first for first, _, _, _, count, file, _, kind in function["regions"] if not count and not file and kind == CODE}
    return {source: (never[source], lines[source]) for source in never | lines}


def main():
    said, = json.load(sys.stdin)["data"]
    found = missed(said["functions"])
    summaries = {file["filename"]: file["summary"] for file in said["files"]}
    for source in sys.argv[2:]:
        lines = summaries[source]["lines"]
        never, partly = found[source]
        print(f"{sys.argv[1]}: {source}: {lines['covered']} of {lines['count']} lines, {lines['percent']:.0f} %" +
              (f"; never: {' '.join(sorted(never))}" if never else "") +
              (f"; nor from lines {' '.join(map(str, sorted(partly)))}" if partly else ""))


if __name__ == "__main__":
    main()
