# SPDX-License-Identifier: GPL-2.0-only
"""The architectural events and those of Core 2: bits of CPUID, generic names, precise events."""
import pytest


def test_each_event_of_the_architecture_has_its_bit_of_cpuid(compiled):
    # SDM 3B, "Architectural Performance Events": bits 0 to 6 of CPUID.0AH:EBX.
    order = [0x3C, 0xC0, 0x13C, 0x4F2E, 0x412E, 0xC4, 0xC5]
    bits = {row["architectural"]: row["config"] for row in compiled.list("event", "architectural")}
    assert {bit: config for bit, config in bits.items() if bit >= 0} == dict(enumerate(order))


@pytest.mark.parametrize("name, config", [
    ("cycles", 0x3C), ("branch-misses", 0xC5), ("bus-cycles", 0x13C), ("ref-cycles", 0x300),
    ("L1-dcache-load-misses", 0x140), ("L1-dcache-prefetches", 0x104E), ("LLC-loads", 0x4F29),
    ("LLC-store-misses", 0x412A), ("dTLB-load-misses", 0x208), ("iTLB-load-misses", 0x1282)])
def test_a_generic_name_is_what_linux_counts_on_core_2(name, config, compiled):
    # intel/core.c: core2_hw_cache_event_ids.
    row, = (row for row in compiled.list("generic", "core2") if row["name"] == name)
    assert row["config"] == config


def test_each_precise_event_of_core_2_is_one_of_the_drivers(compiled):
    # intel/ds.c: intel_core2_pebs_event_constraints.
    marked = {row["config"] for row in compiled.list("event", "core2") if row["precise"]}
    assert marked == {0xC0, 0xFEC1, 0xC5, 0x1FC7, 0x1CB, 0x2CB, 0x4CB, 0x8CB, 0x10CB}
    assert {row["counters"] for row in compiled.list("precise_rule", "core2")} == {1}
