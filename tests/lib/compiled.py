# SPDX-License-Identifier: GPL-2.0-only
"""Builds the small programs of tests/pure that test single files of user/, with gcc's
sanitizers."""
import os
import subprocess

from records import HERE

USER = os.path.join(HERE, "..", "user")


def compiled(folder, program, *sources, libraries=()):
    """Builds the program. Returns a function that runs it with a text as its input and returns its
    output."""
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g",
                    "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-I", USER,
                    "-o", folder / program, os.path.join(HERE, "pure", f"{program}.c"),
                    *(os.path.join(USER, source) for source in sources), *libraries], check=True)
    return lambda text: subprocess.run([folder / program], input=text, text=True, stdout=subprocess.PIPE,
                                       check=True).stdout
