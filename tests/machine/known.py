# SPDX-License-Identifier: GPL-2.0-only
"""What is known of the programs in programs/ before they run.

A program's comment derives its numbers from its text, in lines of
"#: NAME = EXPRESSION" (or " *: " in C). An expression may use the names before it.
A program's addresses come from its symbol table.
"""
import functools
import os
import re
import subprocess

import nehalem

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
TABLES = os.path.join(nehalem.HERE, "events-modelled.txt")


def path(program):
    return f"{nehalem.build_folder()}/programs/{program}"


@functools.cache
def numbers(program):
    """The numbers in a program's comment, by name."""
    found = {}
    for end in (".S", ".c"):
        if os.path.exists(f"{SOURCES}/{program}{end}"):
            with open(f"{SOURCES}/{program}{end}") as f:
                text = f.read()
    for name, expression in re.findall(r"^(?:#| \*): ([\w.]+) = (.*)$", text, re.M):
        plain = {k: v for k, v in found.items() if "." not in k}
        found[name] = eval(expression, {"__builtins__": {}}, plain)
    return found


@functools.cache
def addresses(program):
    """A program's symbols."""
    said = subprocess.run(["nm", path(program)], capture_output=True, text=True, check=True)
    lines = (line.split() for line in said.stdout.splitlines())
    return {name: int(value, 16) for value, _, name in (x for x in lines if len(x) == 3)}


@functools.cache
def events():
    """{name: (code, umask)} of the events that the machine counts."""
    with open(TABLES) as f:
        rows = (line.split() for line in f)
        return {name: (int(code, 16), int(umask, 16)) for code, umask, name in rows}


def raw(event):
    """perf's spelling of one of Intel's events."""
    code, umask = events()[event]
    return f"r{umask:02x}{code:02x}"


def attribute(event):
    """An event in Intel's spelling or in perf's (`rUUEE`, `cpu/.../`, modifiers) as fields of
    perf_event_attr: config, config1, precise_ip, and the levels as tally takes them."""
    if event in events():
        code, umask = events()[event]
        return umask << 8 | code, 0, 0, 0
    body, _, modifiers = event.rpartition("/" if "/" in event else ":")
    named = body.partition("/")[2]
    if named:
        terms = dict(term.partition("=")[::2] for term in named.split(","))
    else:
        terms = {"event": body[1:]} if body else {"event": event[1:]}
        terms["event"] = "0x" + terms["event"]
        modifiers = modifiers if body else ""
    places = {"event": 0, "umask": 8, "edge": 18, "any": 21, "inv": 23, "cmask": 24}
    number = {name: int(value or "1", 0) for name, value in terms.items()}
    config = sum(number[name] << place for name, place in places.items() if name in number)
    config1 = number.get("offcore_rsp", number.get("ldlat", 0))
    kernel = 2 if not set(modifiers) & set("uk") or {"u", "k"} <= set(modifiers) else "uk".index(
        (set(modifiers) & set("uk")).pop()
    )
    return config, config1, modifiers.lower().count("p"), kernel


def groups(wanted):
    """Groups of events that fit on the counters at once: 4, at most 2 of them L1D events."""
    first_two = {0x40, 0x41, 0x42, 0x43, 0x48, 0x4E, 0x51, 0x63}
    group, limited = [], 0
    for event in wanted:
        narrow = attribute(event)[0] & 0xFF in first_two
        if len(group) == 4 or (narrow and limited == 2):
            yield group
            group, limited = [], 0
        group.append(event)
        limited += narrow
    if group:
        yield group


def numbers_of_graph(n):
    """The pseudo-random numbers that graph.S and bound.S branch on."""
    x = 305419896
    for _ in range(n):
        x = (x * 1103515245 + 12345) % 2**32
        yield x


def sequence(n):
    """The random bits that graph.S branches on: (c or d, jump or not)."""
    for x in numbers_of_graph(n):
        yield x >> 30 & 1, x >> 29 & 1
