# SPDX-License-Identifier: GPL-2.0-only
"""The format of the C and the Python files, and of the list of thorough tests."""
import configparser
import os
import pathlib
import re
import subprocess
import sys

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


def test_the_top_level_has_nothing_but_its_folders_and_files():
    """In what is committed: a log of somebody's tests gets there by `git add -A`."""
    if not os.path.exists(os.path.join(ROOT, ".git")):
        pytest.skip("this tree is not git's")
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {path.split("/")[0] for path in listed.splitlines() if not path.startswith(".")} == {
        "LICENSE", "Makefile", "README.md", "bpf", "events", "schema", "tests", "user", "vmlinux"}


def test_all_c_files_are_as_make_format_leaves_them():
    version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True, check=True).stdout
    if " 14." not in version:
        pytest.skip(f"clang-format 14 is missing, whose form this is: {version.strip()}")
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *c_files()], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


def test_headers_are_told_apart_by_their_files_not_by_names_of_guards():
    """Two headers with the same guard, in folders of their own, hid each other."""
    guarded = [path for path in c_files() if path.endswith(".h")
               and re.search(r"^#\s*ifndef (\w+)\n#\s*define \1$", pathlib.Path(path).read_text("utf-8"), re.M)]
    assert guarded == [], "write #pragma once instead of #ifndef and #define"


@pytest.fixture(scope="module")
def editorconfig():
    parser = configparser.ConfigParser()
    with open(os.path.join(ROOT, ".editorconfig"), encoding="utf-8") as file:
        parser.read_string("[top]\n" + file.read())
    return parser


def test_editors_are_told_the_line_length_and_indent_of_make_format(editorconfig):
    with open(os.path.join(ROOT, ".clang-format"), encoding="utf-8") as file:
        form = dict(line.rstrip("\n").split(": ", 1) for line in file if ": " in line and not line.startswith("#"))
    editors = editorconfig["*.{c,h}"]
    assert (editors["max_line_length"], editors["indent_size"]) == (form["ColumnLimit"], form["IndentWidth"])
    assert (editors["indent_style"], form["UseTab"]) == ("tab", "Always")


def python_files():
    for top in ("events", "tests", "user"):
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            yield from (os.path.join(folder, name) for name in names if name.endswith(".py"))


@pytest.mark.parametrize("tool", ["autopep8 --diff --exit-code", "pycodestyle --config=.pep8"])
def test_all_python_files_are_as_make_format_leaves_them(tool):
    done = subprocess.run([sys.executable, "-m", *tool.split(), *python_files()], cwd=ROOT, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout[:4000] + done.stderr


def test_editors_are_told_the_line_length_of_python_files(editorconfig):
    rules = configparser.ConfigParser()
    rules.read(os.path.join(ROOT, ".pep8"))
    assert editorconfig["*.py"]["max_line_length"] == rules["pycodestyle"]["max-line-length"]


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
