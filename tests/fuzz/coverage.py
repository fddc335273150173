# SPDX-License-Identifier: GPL-2.0-only
"""coverage.py: what the inputs of a fuzzer reach, from what libFuzzer's -print_coverage=1 says on stdin. A line for each source
of the program that they enter: its edges that were taken, and its functions that none of them calls."""
import collections
import re
import sys

FUNCTION = re.compile(r"(?:UN)?COVERED_FUNC: hits: \d+ edges: (\d+)/(\d+) (\S+) \S*?(user/\S+\.c):\d+$")


def by_source(lines):
    """{source: [(taken, edges, function)]} of the sources that are entered."""
    found = collections.defaultdict(list)
    for taken, edges, function, source in (match.groups() for match in map(FUNCTION.match, lines) if match):
        found[source].append((int(taken), int(edges), function))
    return {source: functions for source, functions in found.items() if any(taken for taken, _, _ in functions)}


def main():
    for source, functions in sorted(by_source(sys.stdin).items()):
        taken, edges = (sum(function[i] for function in functions) for i in (0, 1))
        never = " ".join(sorted(name for reached, _, name in functions if not reached))
        print(f"{source}: {taken} of {edges} edges" + (f"; never: {never}" if never else ""))


if __name__ == "__main__":
    main()
