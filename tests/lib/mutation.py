# SPDX-License-Identifier: GPL-2.0-only
"""Sources with one small fault each, and the tests that must notice it. mutants/ has those of the
program, machine/ those of the emulated machine; each knows how to build its own."""
import contextlib
import dataclasses
import os
import re
import subprocess
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    file: str  # below the folder of the sources
    old: str  # occurs exactly once in it
    new: str
    test: str  # that must notice it: "pure/test_plan.py::test_NAME"; several are separated by spaces

    @property
    def tests(self):
        return re.split(r" (?=[a-z]+/test_)", self.test)


def fail(words):
    print("mutants: " + words, file=sys.stderr)
    sys.exit(2)


def text_of(mutant, sources):
    """The text of the file with the fault, or None if it does not fit any more."""
    with open(os.path.join(sources, mutant.file), encoding="utf-8") as file:
        text = file.read()
    return text.replace(mutant.old, mutant.new) if text.count(mutant.old) == 1 and mutant.old != mutant.new else None


@contextlib.contextmanager
def in_place(mutant, sources, copy):
    """Puts the fault into the copy of the sources, and takes it out at the end."""
    text = text_of(mutant, sources)
    if text is None:
        fail(f"{mutant.name}: not found once in {mutant.file}: {mutant.old!r}")
    path = os.path.join(copy, mutant.file)
    with open(os.path.join(sources, mutant.file), encoding="utf-8") as file:
        whole = file.read()
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        yield
    finally:
        with open(path, "w", encoding="utf-8") as file:
            file.write(whole)


def misfits(mutants, sources):
    """What is wrong with the rows, as far as their files and tests tell."""
    names = [mutant.name for mutant in mutants]
    wrong = [f"{name}: twice" for name in set(names) if names.count(name) > 1]
    for mutant in mutants:
        if text_of(mutant, sources) is None:
            wrong.append(f"{mutant.name}: not found once in {mutant.file}: {mutant.old!r}")
        for test in mutant.tests:
            path, _, name = test.partition("::")
            with open(os.path.join(TESTS, path), encoding="utf-8") as file:
                if f"def {name.partition('[')[0]}(" not in file.read():
                    wrong.append(f"{mutant.name}: no such test: {test}")
    return wrong


def first_failure(tests, environment, folder=None):
    """The name of the first test that fails, or None."""
    said = subprocess.run([sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-rfE", "--tb=line", *tests],
                          env=os.environ | environment, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    if said.returncode not in (0, 1):
        fail(f"pytest ended with {said.returncode}: {said.stdout[-2000:]}{said.stderr[-500:]}")
    if "OutOfTime" in said.stdout and "the boot" in said.stdout:
        return None  # about this host, not about the fault
    lines = [line for line in said.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if said.returncode and not lines:
        fail("pytest names no test: " + said.stdout[-2000:])
    return lines[0].split(" ", 1)[1].split(" - ")[0].removeprefix("tests/") if lines else None


def chosen(mutants, names):
    if unknown := set(names) - {mutant.name for mutant in mutants}:
        fail("no such fault: " + " ".join(sorted(unknown)))
    return [mutant for mutant in mutants if mutant.name in names or not names]


def report(mutants, killers):
    """Prints how many were noticed. Returns the exit status."""
    survivors = [mutant.name for mutant, killer in zip(mutants, killers) if not killer]
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} faults were noticed")
    if survivors:
        print("survived: " + " ".join(survivors))
    return bool(survivors)


def say(mutant, killer, seconds):
    print(f"{'noticed ' if killer else 'SURVIVED'} {mutant.name:36} {seconds:5.0f} s  {killer or ''}", flush=True)
