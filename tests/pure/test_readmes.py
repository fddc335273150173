# SPDX-License-Identifier: GPL-2.0-only
"""The files that READMEs point to exist."""
import glob
import os
import re

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ["user", "tests"]


def text_of(folder):
    with open(os.path.join(ROOT, folder, "README.md"), encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_files_that_it_names_exist(folder):
    named = re.findall(r"`([a-z_]+/[\w./]*|[a-z_.]+\.(?:py|c|h|md))`", text_of(folder))
    assert len(named) >= 10
    for name in named:
        assert any(glob.glob(os.path.join(ROOT, top, name.replace("NAME", "*"))) for top in
                   ("", folder, "user/collection", "user/output", "tests/lib", "tests/live")), name


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_tests_that_it_names_exist(folder):
    sources = [path for path in glob.glob(os.path.join(ROOT, "tests", "*", "test_*.py"))]
    defined = {name for path in sources for name in re.findall(r"^def (test_\w+)", open(path, encoding="utf-8").read(), re.M)}
    named = set(re.findall(r"\[`(test_\w+)`\]", text_of(folder)))
    assert named <= defined and (named or folder == "tests")


def test_the_map_names_every_folder_of_the_program():
    folders = {name for name in os.listdir(os.path.join(ROOT, "user"))
               if os.path.isdir(os.path.join(ROOT, "user", name)) and not name.startswith("__")}
    missing = {name for name in folders if f"`{name}/" not in text_of("user")}
    assert not missing
