# SPDX-License-Identifier: GPL-2.0-only
"""The list of tests that `make test` leaves to CI: thorough.txt."""
import os


def rows():
    """Returns the beginnings of these tests' names: "live/test_stat.py::test_NAME"."""
    with open(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "thorough.txt"), encoding="ascii") as file:
        return tuple(line for line in file.read().splitlines() if line and not line.startswith("#"))
