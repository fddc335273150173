# SPDX-License-Identifier: GPL-2.0-only
"""Which files a command will map, read from its program: the same as from ldd, and no harm from a
malformed program."""
import os
import random
import re
import shutil
import subprocess

import pytest

from compiled import compiled


@pytest.fixture(scope="module", name="needed")
def files_that_a_command_needs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("needed")
    compiled(folder, "needed")

    def ask(*command):
        return set(subprocess.run([folder / "needed", *command], capture_output=True, text=True, check=True).stdout.splitlines())
    return ask


def said_by_ldd(path):
    said = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    return {os.path.realpath(found) for found in re.findall(r"(/\S+) \(0x", said)} | {os.path.realpath(path)}


@pytest.mark.parametrize("name", ["/usr/bin/python3", "clang", "true"])
def test_a_programs_libraries_are_those_that_the_dynamic_linker_finds(needed, name):
    path = shutil.which(name)
    assert needed(path) == said_by_ldd(path)


def test_a_script_needs_its_interpreter_and_an_argument_its_own(needed, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/env sort\n")
    script.chmod(0o755)
    both = said_by_ldd(shutil.which("env")) | said_by_ldd(shutil.which("sort"))
    assert needed(str(script)) == needed("env", "sort") == both


def test_a_program_of_any_bytes_is_read_without_harm(needed, tmp_path):
    """Each field of its headers and of its dynamic section is set to ones, and to random bytes."""
    with open("/bin/true", "rb") as file:
        good = file.read()
    chance, paths = random.Random(1), []
    headers = 64 + 13 * 56
    dynamic = int(re.search(r"DYNAMIC\s+0x(\w+)", subprocess.run(
        ["readelf", "-lW", "/bin/true"], capture_output=True, text=True, check=True).stdout)[1], 16)
    for i, at in enumerate([*range(4, headers, 8), *range(dynamic, dynamic + 32 * 16, 8)]):
        for kind, value in ("ones", b"\xff" * 8), ("any", chance.randbytes(8)):
            path = tmp_path / f"{kind}{i}"
            path.write_bytes(good[:at] + value + good[at + 8:])
            path.chmod(0o755)
            paths.append(str(path))
    found = set()
    for first in range(0, len(paths), 15):
        found |= needed(*paths[first:first + 15])
    assert found & set(paths) and os.path.realpath("/lib64/ld-linux-x86-64.so.2") in found


def test_a_library_that_is_no_file_is_not_opened(needed, tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "empty.c").write_text("int main(void) { return 0; }\n")
    program = tmp_path / "program"
    subprocess.run(["gcc", "-o", program, tmp_path / "empty.c", f"-Wl,--dynamic-linker={fifo}"], check=True)
    assert str(program) in needed(str(program)) and str(fifo) not in needed(str(program))
