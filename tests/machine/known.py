"""What is known of the programs in src/programs before they run.

A program's numbers stand in its comment, each derived there from the text of the
program: lines of "#: NAME = EXPRESSION" (or " *: " in C), where an expression may
use the names before it. Its addresses come from its symbol table.
"""
import functools
import os
import re
import subprocess

import nehalem

SOURCES = os.path.join(nehalem.HERE, "src/programs")
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
    """Name to (code, umask) of the events that the machine counts."""
    with open(TABLES) as f:
        rows = (line.split() for line in f)
        return {name: (int(code, 16), int(umask, 16)) for code, umask, name in rows}


def raw(event):
    """perf's spelling of an event in Intel's."""
    code, umask = events()[event]
    return f"r{umask:02x}{code:02x}"
