# SPDX-License-Identifier: GPL-2.0-only
"""A reader of Callgrind's format, written from its specification in valgrind's manual. It takes numbered names and
checks that each number has one name."""
import collections
import re
import subprocess

Function = collections.namedtuple("Function", "module file name")


def read(path):
    """Returns (events, summary, {function: {line: costs}}, {(caller, line, callee): costs}): sums over the instructions of a line."""
    with open(path, encoding="utf-8", newline="\n") as file:
        lines = file.read().split("\n")
    assert lines[0] == "# callgrind format" and lines.pop() == ""
    names, head, at, callee, called, told = {}, {}, {}, {}, False, set()
    selves, calls = collections.defaultdict(dict), {}
    for line in lines[1:]:
        numbered = re.fullmatch(r"(ob|fl|fn|cob|cfi|cfn)=\((\d+)\)(?: (.*))?", line)
        if numbered:
            what, number, name = numbered.groups()
            kind = {"cob": "ob", "cfi": "fl", "cfn": "fn"}.get(what, what)
            assert name is None or (kind, number) not in names
            if name is not None:
                names[kind, number] = name
            (callee if what[0] == "c" else at)[kind] = (number, names[kind, number])
        elif re.fullmatch(r"calls=\d+ 0x0 0", line):
            called = True
        elif re.fullmatch(r"0x[\da-f]+( \d+)+", line):
            instruction, place, *costs = (int(number, 0) for number in line.split(" "))
            key, other = (tuple(x.get(kind) for kind in ("ob", "fl", "fn")) for x in (at, callee))
            assert (key, instruction, place, called and other) not in told and len(costs) == len(head["events"].split())
            told.add((key, instruction, place, called and other))
            found = selves[key] if not called else calls
            key = place if not called else (key, place, other)
            found[key] = [one + more for one, more in zip(found.get(key, [0] * len(costs)), costs)]
            called = False
        elif line:
            name, _, value = line.partition(": ")
            if name == "desc":
                assert re.fullmatch("[^:]+: .+", value) and not at
                continue
            assert name in ("version", "creator", "cmd", "positions", "events", "summary") and not at
            head[name] = value
    assert head["version"] == "1" and head["positions"] == "instr line"
    summary = [int(x) for x in head["summary"].split()]
    every = [costs for lines in selves.values() for costs in lines.values()]
    assert summary == [sum(costs[i] for costs in every) for i in range(len(summary))]
    return (head["events"].split(), summary, {named(f): x for f, x in selves.items()},
            {(named(f), line, named(g)): x for (f, line, g), x in calls.items()})


def named(function):
    return Function(*(name for _, name in function))


def annotated(path, *options):
    """What callgrind_annotate says of the functions: (totals, {function's name: costs}). It warns of nothing."""
    said = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", *options, path], capture_output=True,
                          check=True)
    assert b"malformed" not in said.stderr, said.stderr
    found, totals = collections.Counter(), None
    for line in said.stdout.decode(errors="replace").splitlines():
        costs = re.findall(r"([\d,]+|\.) \(\s*[\d.]+%\)|(?<=\s)(\.)(?=\s)", line)
        if not costs:
            continue
        first = int((costs[0][0] or "0").replace(",", ""))
        if "PROGRAM TOTALS" in line:
            totals = first
        elif ":" in line:
            found[re.sub(r" \[[^]]*\]$", "", line).rpartition(":")[2]] += first
    return totals, found
