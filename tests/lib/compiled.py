# SPDX-License-Identifier: GPL-2.0-only
"""Builds the small programs of tests/pure that test single files of user/, with gcc's sanitizers, or for
`make coverage` as the program is built there."""
import fcntl
import functools
import hashlib
import glob
import itertools
import os
import pathlib
import subprocess

from records import HERE, sanitized

ROOT = os.path.join(HERE, "..")
USER = os.path.join(ROOT, "user")
BUILD = os.environ["NHMTAP_BUILD"]
NUMBERS = itertools.count()
SANITIZED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", '-DNHMTAP_VERSION="0"', '-DSCHEMA_VERSION="0"', '-DLIBSECCOMP_SONAME="libseccomp.so.2"',
         *(f"-I{folder}" for folder in (USER, os.path.join(ROOT, "bpf"), os.path.join(ROOT, "events"), os.path.join(BUILD, "gen")))]
WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"]
LIBRARIES = ["-Wl,--as-needed", *(f"-l{name}" for name in ("bpf", "jansson", "dw", "elf", "lzma", "z", "iberty", "m"))]


def checked(program):
    """Flags of gcc. NHMTAP_COVERAGE is the folder for what the runs reach."""
    coverage = os.environ.get("NHMTAP_COVERAGE")
    if not coverage:
        return SANITIZED
    notes = os.path.join(coverage, "pure", f"{program}-{os.getpid()}-{next(NUMBERS)}")
    os.makedirs(notes)
    return ["-O0", "--coverage", "-dumpdir", notes + "/"]


@functools.cache
def has_objects(plain):
    """Whether the build has objects with the sanitizers of these programs, or for a plain one without."""
    return sanitized() != plain and not os.environ.get("NHMTAP_COVERAGE")


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


def part(source, plain=False):
    """The object of a file of user/ that serves, if the build has one: to compile it again takes most of the time."""
    made = os.path.join(os.environ["NHMTAP_BUILD"], "user", os.path.splitext(source)[0] + ".o")
    return made if has_objects(plain) and is_current(made) else None


def symbols(objects):
    """Returns {object: (the names that it has for others, those that it needs)}."""
    found = {path: (set(), set()) for path in objects}
    said = subprocess.run(["nm", "-A", *objects], capture_output=True, text=True, check=True).stdout
    for line in said.splitlines():
        path, _, symbol = line.partition(":")
        *_, kind, name = symbol.split()
        if kind in "TDBRU":
            found[path][kind == "U"].add(name)
    return found


@functools.cache
def built():
    """symbols() of the build's objects. NAME_without.o, which has what NAME.o has, is left out."""
    return symbols([path for path in glob.glob(f"{BUILD}/user/**/*.o", recursive=True) if not path.endswith("_without.o")])


@functools.cache
def owners():
    """{name: the file of user/ that has it}, by the build's objects."""
    return {name: f"{os.path.relpath(path, os.path.join(BUILD, 'user'))[:-2]}.c" for path, (has, _) in built().items() for name in has}


def make_once(folder, of, make):
    """Returns a file, below a folder of pytest's: the first worker that wants one `of` these values calls make(path) for all
    of its run, because the tests of a module run in several workers."""
    shared = next((above.parent for above in (folder, *folder.parents) if above.name.startswith("popen-")), folder)
    made = shared / f"made-{hashlib.sha256(repr(of).encode()).hexdigest()[:16]}"
    with open(f"{made}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            make(f"{made}.new")
            os.rename(f"{made}.new", made)
    return made


def link(path, program, also, plain):
    """Builds a program from its file in tests/pure, from the files of user/ in `also`, and from what these need: as of an
    archive, a file is taken for a name that no former one has, so the program may have functions of its own instead."""
    flags = [*FLAGS, *(["-O2"] if plain else checked(program))]
    objects, has, needs, taken = [], set(), set(), set()

    def compile_once(source, *more):
        command = ["gcc", *flags, *more, "-c", source, "-o"]
        return str(make_once(pathlib.Path(path).parent, command, lambda made: subprocess.run([*command, made], check=True, cwd=ROOT)))

    def take(made):
        objects.append(made)
        defined, undefined = built().get(made) or symbols([made])[made]
        has.update(defined)
        needs.update(undefined)

    def missing():
        return {owners()[name] for name in needs - has if name in owners()} - taken

    take(compile_once(os.path.join(HERE, "pure", f"{program}.c"), *WARNINGS))
    wanted = set(also) or missing()
    while wanted:
        for source in sorted(wanted):
            take(part(source, plain) or compile_once(os.path.join(USER, source)))
        taken |= wanted
        wanted = missing()
    subprocess.run(["gcc", *flags, "-o", path, *objects, *LIBRARIES], check=True)


def compiled(folder, program, *also, plain=False):
    """Builds the program of tests/pure in the folder: see link(). Returns a function that runs it with a text as its input
    and returns its output. plain: without sanitizers, which would make it slow."""
    os.link(make_once(folder, (program, also, plain), lambda path: link(path, program, also, plain)), folder / program)
    return lambda text: subprocess.run([folder / program], input=text, text=True, stdout=subprocess.PIPE,
                                       check=True).stdout
