# SPDX-License-Identifier: GPL-2.0-only
"""What others publish about CPUs: the tables in tests/events/facts."""

import csv
from pathlib import Path

FACTS = Path(__file__).parents[1] / "events" / "facts"


def read_tsv(name):
    with open(FACTS / name, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


def perfmon(cpu):
    """The events that perfmon lists for a CPU; none if it doesn't know the CPU."""
    return [row for row in read_tsv("perfmon.tsv") if cpu in row["cpus"].split(",")]
