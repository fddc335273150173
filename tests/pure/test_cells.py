# SPDX-License-Identifier: GPL-2.0-only
"""The bounds of a matrix's cells, from simulated readings."""
import pytest
from compiled import compiled

MS = 1_000_000


@pytest.fixture(scope="session")
def bounds(tmp_path_factory):
    """Returns a function that gives (low, high) of a sum and of a cell that it includes, from readings
    of both: (value, enabled, running) each."""
    run = compiled(tmp_path_factory.mktemp("cells"), "cells")
    return lambda readings: [tuple(map(float, line.split())) for line in run(
        "".join(" ".join(map(str, (*both[0], *both[1]))) + "\n" for both in readings)).splitlines()]


def readings(enabled, nr=40):
    """In each reading, one of the two has the counter for 1 ms. The sum counts a little more than the
    part. enabled: for how long the sum is enabled in each reading."""
    return [((110, enabled, MS), (0, 2 * MS, 0)) if i % 2 else
            ((0, enabled, 0), (40 + i % 4 * 65, 2 * MS, MS)) for i in range(nr)]


def test_a_cell_is_at_most_the_sum_that_includes_it(bounds):
    of_sum, of_part = bounds(readings(2 * MS))
    assert of_part[0] < of_part[1] == of_sum[1]


def test_a_sum_that_was_enabled_for_less_time_limits_no_cell(bounds):
    of_sum, of_part = bounds(readings(MS))
    assert of_part[1] > of_sum[1]
