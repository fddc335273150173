# SPDX-License-Identifier: GPL-2.0-only
"""The form of the C files."""
import os
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def c_files():
    """All of them but the emulated machine's, which follow the emulator that they are part of."""
    for top in ("bpf", "user", "vmlinux", "tests"):
        for folder, folders, names in os.walk(os.path.join(ROOT, top)):
            folders[:] = [name for name in folders if os.path.join(folder, name) !=
                          os.path.join(ROOT, "tests", "machine")]
            yield from (os.path.join(folder, name) for name in names if name.endswith((".c", ".h")))


def test_all_c_files_are_as_make_format_leaves_them():
    version = subprocess.run(["clang-format", "--version"], capture_output=True, text=True, check=True).stdout
    if " 14." not in version:
        pytest.skip(f"clang-format 14 is missing, whose form this is: {version.strip()}")
    done = subprocess.run(["clang-format", "--dry-run", "-Werror", *c_files()], cwd=ROOT, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
