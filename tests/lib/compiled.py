# SPDX-License-Identifier: GPL-2.0-only
"""Builds the small programs of tests/pure that test single files of user/, with gcc's sanitizers, or for
`make coverage` as the program is built there."""
import itertools
import os
import subprocess

from records import HERE

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


def compiled(folder, program, *sources, flags=(), libraries=()):
    """Builds the program, in the tree's folder. Returns a function that runs it with a text as its input and
    returns its output."""
    main = folder / f"main_{program}.c"  # gcc calls its notes so, and may not mix them up with a file of user/
    main.symlink_to(os.path.join(HERE, "pure", f"{program}.c"))
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g",
                    *checked(program), *flags, "-I", USER, "-o", folder / program, main,
                    *(os.path.join(USER, source) for source in sources), *libraries], check=True,
                   cwd=os.path.join(HERE, ".."))
    return lambda text: subprocess.run([folder / program], input=text, text=True, stdout=subprocess.PIPE,
                                       check=True).stdout
