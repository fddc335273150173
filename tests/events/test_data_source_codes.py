# SPDX-License-Identifier: GPL-2.0-only
"""The codes of a load-latency record: Table 16 of the guide, and the values that Linux gives
them."""

import subprocess

import pytest

from event_tables import CPUS, HERE, SANDYBRIDGES, WARNINGS


@pytest.fixture(scope="module")
def linux_values(tmp_path_factory):
    program = tmp_path_factory.mktemp("data_sources") / "data_sources"
    subprocess.run(["gcc", *WARNINGS, "-o", program, HERE / "data_sources.c"], check=True)
    text = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    return {int(code): int(value, 0) for code, value in map(str.split, text.splitlines())}


# From Sandy Bridge on, Linux does not call intel_pmu_pebs_data_source_nhm(), which changes these
# three codes: L3 hit, with a snoop that missed, hit, or hit a modified line (from bit 19 on).
SINCE_SANDY_BRIDGE = {5: 0x600000842 | 8 << 19, 6: 0x600000842 | 4 << 19, 7: 0x600000842 | 16 << 19}


def test_every_code_has_the_value_that_linux_makes_of_it(cpu, compiled, linux_values):
    expected = {**linux_values, **(SINCE_SANDY_BRIDGE if cpu in SANDYBRIDGES else {})}
    assert {row["code"]: row["perf_data_src"] for row in compiled.list("data_source", cpu)} == expected


def test_only_codes_6_and_7_of_nehalem_and_westmere_share_a_value(cpu, compiled):
    codes = {}
    for row in compiled.list("data_source", cpu):
        codes.setdefault(row["perf_data_src"], []).append(row["code"])
    assert [shared for shared in codes.values() if len(shared) > 1] == \
        ([] if cpu in SANDYBRIDGES else [[6, 7]])


def test_the_codes_that_table_16_reserves_are_marked(compiled):
    reserved = {cpu: [row["code"] for row in compiled.list("data_source", cpu) if row["reserved"]]
                for cpu in CPUS}
    assert reserved == {"nehalem-ep": [0x7, 0x9, 0xE], "nehalem-ex": [0x7, 0x9, 0xE],
                        "westmere-ep": [0x7, 0xE], "westmere-ep-dp": [0x7, 0xE],
                        "westmere-ex": [0x7, 0xE], "sandybridge": [0xE], "sandybridge-ep": [0xE]}


def test_names_are_distinct_and_codes_in_order(cpu, compiled):
    rows = compiled.list("data_source", cpu)
    assert [row["code"] for row in rows] == list(range(16))
    assert len({row["name"] for row in rows}) == 16
