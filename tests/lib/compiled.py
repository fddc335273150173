# SPDX-License-Identifier: GPL-2.0-only
"""Builds the small programs of tests/pure that test single files of user/, with gcc's sanitizers, or for
`make coverage` as the program is built there."""
import fcntl
import functools
import hashlib
import itertools
import os
import subprocess

from records import HERE, sanitized

USER = os.path.join(HERE, "..", "user")
NUMBERS = itertools.count()
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


def checked(program):
    """Flags of gcc. NHMTAP_COVERAGE is the folder for what the runs reach."""
    coverage = os.environ.get("NHMTAP_COVERAGE")
    if not coverage:
        return SANITIZED
    notes = os.path.join(coverage, "pure", f"{program}-{os.getpid()}-{next(NUMBERS)}")
    os.makedirs(notes)
    return ["-O0", "--coverage", "-dumpdir", notes + "/"]


@functools.cache
def has_objects():
    """Whether the build has objects with the sanitizers of these programs."""
    return sanitized() and not os.environ.get("NHMTAP_COVERAGE")


def is_current(made):
    """Whether an object is there and none of the files that it was made of has changed since. make sees to that, but pytest
    may be run by hand."""
    notes = f"{os.path.splitext(made)[0]}.d"
    if not os.path.exists(made) or not os.path.exists(notes):
        return False
    with open(notes, encoding="utf-8") as file:
        of = file.read().replace("\\\n", " ").partition("\n")[0].partition(":")[2].split()
    then = os.stat(made).st_mtime
    places = [os.path.join(HERE, "..", path) for path in of]
    return all(os.path.exists(path) and os.stat(path).st_mtime <= then for path in places)


def part(source):
    """A file of user/ for gcc, or its object if the build has one that serves: to compile it again takes most of the time."""
    made = os.path.join(os.environ["NHMTAP_BUILD"], "user", os.path.splitext(source)[0] + ".o")
    return made if has_objects() and is_current(made) else os.path.join(USER, source)


def once(path, of, make):
    """Has a program at a path, below a folder of pytest's: the first worker that wants one `of` these values calls
    make(path) for all of its run, because the tests of a module run in several workers."""
    shared = next((parent.parent for parent in path.parents if parent.name.startswith("popen-")), path.parent)
    made = shared / f"made-{hashlib.sha256(repr(of).encode()).hexdigest()[:16]}"
    with open(f"{made}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            make(f"{made}.new")
            os.rename(f"{made}.new", made)
    os.link(made, path)


def compiled(folder, program, *sources, flags=(), libraries=()):
    """Builds the program, in the tree's folder. Returns a function that runs it with a text as its input and
    returns its output."""
    def make(path):
        main = folder / f"main_{program}.c"  # gcc calls its notes so, and may not mix them up with a file of user/
        main.symlink_to(os.path.join(HERE, "pure", f"{program}.c"))
        subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g",
                        *checked(program), *flags, "-I", USER, "-o", path, main,
                        *map(part, sources), *libraries], check=True,
                       cwd=os.path.join(HERE, ".."))

    once(folder / program, (program, sources, flags, libraries), make)
    return lambda text: subprocess.run([folder / program], input=text, text=True, stdout=subprocess.PIPE,
                                       check=True).stdout
