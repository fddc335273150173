# SPDX-License-Identifier: GPL-2.0-only
"""The format of the C files, and of the list of thorough tests."""
import os
import re
import subprocess

import pytest
import search
import thorough

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def c_files():
    """All C files except those of the emulated machine, which follow the style of the emulator."""
    for top in ("bpf", "user", "vmlinux", "tests"):
        for folder, folders, names in os.walk(os.path.join(ROOT, top)):
            folders[:] = [name for name in folders if os.path.relpath(os.path.join(folder, name), ROOT)
                          not in ("user/machine", "tests/machine")]
            yield from (os.path.join(folder, name) for name in names if name.endswith((".c", ".h")))


def test_all_c_files_are_as_make_format_leaves_them():
    version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True, check=True).stdout
    if " 14." not in version:
        pytest.skip(f"clang-format 14 is missing, whose form this is: {version.strip()}")
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *c_files()], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


def test_each_row_of_the_list_of_thorough_tests_is_that_of_a_test():
    for row in thorough.rows():
        path, _, name = row.partition("::")
        with open(os.path.join(ROOT, "tests", path), encoding="utf-8") as file:
            assert not name or f"def {name.partition('[')[0]}(" in file.read(), row


def test_each_search_runs_tests_and_targets_that_exist():
    with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as file:
        targets = re.findall(r"^([a-z-]+):", file.read() + "\nfuzz:", re.M)
    for command in search.SEARCHES.values():
        assert re.search(r"\{make\} ([a-z]+)", command)[1] in targets
        for path in re.findall(r" T='(\S+)", command):
            assert os.path.exists(os.path.join(ROOT, path.rstrip("'"))), path
