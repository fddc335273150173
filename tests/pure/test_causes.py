# SPDX-License-Identifier: GPL-2.0-only
"""The cause given for missing samples. From Sandy Bridge on, the kernel accepts every event as
precise, but an event that the hardware does not record gives no samples."""
import os
import subprocess

import pytest

from records import HERE

USER = os.path.join(HERE, "..", "user")


@pytest.fixture(scope="module")
def cause(tmp_path_factory):
    path = tmp_path_factory.mktemp("causes") / "causes"
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g",
                    "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-I", USER,
                    "-o", path, os.path.join(HERE, "pure", "causes.c"),
                    os.path.join(USER, "base/memory.c"),
                    os.path.join(USER, "record", "samples.c"), "-ljansson"], check=True)
    return lambda *account: subprocess.run([path], input=" ".join(map(str, account)), text=True,
                                           stdout=subprocess.PIPE, check=True).stdout.strip()


@pytest.mark.parametrize("count, period, runs, expected", [
    (95000, 1000, 0, "pebs_unrecorded"),
    (95000, 1000, 1, "pebs_drained"),
    # The first period was not finished, so nothing is missing.
    (999, 1000, 0, "pebs_drained"),
    (1000, 1000, 0, "pebs_drained"),
    (2000, 1000, 0, "pebs_unrecorded"),
])
def test_an_event_without_any_record_is_not_recorded(cause, count, period, runs, expected):
    assert cause(count, period, runs, 1) == expected
