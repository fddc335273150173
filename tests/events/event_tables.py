# SPDX-License-Identifier: GPL-2.0-only
"""How to compile and read the tables."""

import os
import subprocess
from collections import defaultdict
from pathlib import Path

from hosts import CPUS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
COMPILER = Path(os.environ.get("NHMTAP_BUILD", ROOT / "build")) / "compile-tables"
SANDYBRIDGES = tuple(cpu for cpu in CPUS if cpu.startswith("sandybridge"))
WARNINGS = ("-std=gnu11", "-Wall", "-Wextra", "-Werror")


def compile_tables(tables, output, *options):
    return subprocess.run([COMPILER, tables, "-o", output, *options], capture_output=True, text=True)


def numbers(mask):
    return [bit for bit in range(32) if mask >> bit & 1]


class Compiled:
    """The rows that dump.c prints, by kind and CPU."""

    FIELDS = {
        "cpu": "name vendor general_counters fixed_counters",
        "model": "cpu family model",
        "event": "cpu name config config1 period counters fixed_counter precise architectural errata topic "
                 "source description",
        "alias": "cpu name of source",
        "offcore": "cpu reserved period source",
        "register": "cpu name config msr counters",
        "request": "cpu name bits kinds description",
        "response": "cpu name bits kinds description",
        "preset": "cpu name requests responses",
        "offcore_alias": "cpu name of source",
        "data_source": "cpu code reserved name perf_data_src perf",
        "branch_kind": "cpu name records note why",
        "kernel": "cpu period source",
        "precise_rule": "cpu mask config counters fixed_counter",
        "placing_rule": "cpu mask config counters fixed_counter",
        "generic": "cpu name config config1",
        "erratum": "cpu name all_events",
        "unit": "cpu name scope count_bits wraps_in_ms rdpmc control control_msr freeze unfreeze reset select status "
                "source description",
        "unit_kind": "cpu unit name always msrs description",
        "unit_field": "cpu unit kind name title low high usual values description",
        "contradiction": "cpu id subject we_do why names says",
        "metric": "cpu name formula unit",
        "share": "cpu name parent formula beside unmodelled",
        "identity": "cpu name left right",
        "source": "key title",
    }
    NUMBERS = {"mask", "config", "config1", "period", "counters", "fixed_counter", "precise", "architectural",
               "bits", "kinds", "records", "msr", "family", "model", "reserved", "code", "perf_data_src",
               "general_counters", "fixed_counters", "beside", "unmodelled"}

    def __init__(self, text):
        self.rows = defaultdict(list)
        for line in text.splitlines():
            kind, *values = line.split("\t")
            names = self.FIELDS[kind].split()
            assert len(values) == len(names), line
            row = {name: int(value, 0) if name in self.NUMBERS else value
                   for name, value in zip(names, values)}
            self.rows[kind, values[0]].append(row)

    def list(self, kind, cpu):
        return self.rows[kind, cpu]

    def by_name(self, kind, cpu):
        return {row["name"]: row for row in self.rows[kind, cpu]}
