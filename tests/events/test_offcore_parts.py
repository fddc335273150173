# SPDX-License-Identifier: GPL-2.0-only
"""The parts of OFFCORE_RESPONSE events: Table 12 of the guide."""

import pytest

from event_tables import CPUS, SANDYBRIDGES

TABLE_12 = ("DMND_DATA_RD", "DMND_RFO", "DMND_IFETCH", "WB", "PF_DATA_RD", "PF_RFO", "PF_IFETCH",
            "OTHER", "UNCORE_HIT", "OTHER_CORE_HIT_SNP", "OTHER_CORE_HITM", "REMOTE_CACHE_HITM",
            "REMOTE_CACHE_FWD", "REMOTE_DRAM", "LOCAL_DRAM", "IO_CSR_MMIO")
# libpfm4, intel_nhm_events.h: its composites, and a bit that the guide names differently.
LIBPFM4 = {"NON_DRAM": 0x8000, "ANY_IFETCH": 0x44, "ANY_REQUEST": 0xFF, "ANY_DATA_RD": 0x11,
           "ANY_RFO": 0x22, "ANY_CACHE_DRAM": 0x7F00, "ANY_DRAM": 0x6000, "ANY_LLC_MISS": 0xF800,
           "LOCAL_CACHE_DRAM": 0x4700, "REMOTE_CACHE_DRAM": 0x3800, "ANY_RESPONSE": 0xFF00}


@pytest.fixture
def bits(compiled):
    """The bits that a part or an alias means on a CPU."""
    def find(cpu, name):
        aliases = {row["name"]: row["of"] for row in compiled.list("offcore_alias", cpu)}
        parts = {**compiled.by_name("request", cpu), **compiled.by_name("response", cpu)}
        return parts[aliases.get(name, name)]["bits"]
    return find


@pytest.mark.parametrize("cpu", ["nehalem-ep", "nehalem-ex"])
@pytest.mark.parametrize("bit, name", enumerate(TABLE_12))
def test_a_name_of_table_12_means_its_bit(cpu, bit, name, bits):
    assert bits(cpu, name) == 1 << bit


@pytest.mark.parametrize("name", sorted(LIBPFM4))
def test_a_name_of_libpfm4_means_its_bits(name, bits):
    assert bits("nehalem-ep", name) == LIBPFM4[name]


def test_any_data_is_intels_and_not_libpfm4s(bits):
    assert bits("nehalem-ep", "ANY_DATA") == 0x11


def test_requests_are_low_bits_and_responses_high_ones(cpu, compiled):
    # SDM 18.9.5: bits 0 to 15, and from 16 on.
    low = 0xFFFF if cpu in SANDYBRIDGES else 0xFF
    assert all(row["bits"] & ~low == 0 != row["bits"] for row in compiled.list("request", cpu))
    assert all(row["bits"] & low == 0 != row["bits"] for row in compiled.list("response", cpu))


def test_single_bits_come_first_and_ascend(cpu, compiled):
    for kind in ("request", "response"):
        first = [row["bits"] for row in compiled.list(kind, cpu)][:8]
        assert first == sorted(first) and all(bin(value).count("1") == 1 for value in first)


def test_remote_hitm_is_reserved_before_westmere(compiled):
    reserved = {cpu: compiled.list("offcore", cpu)[0]["reserved"]
                for cpu in CPUS}
    assert reserved == {"nehalem-ep": 0x0800, "nehalem-ex": 0x0800, "westmere-ep": 0,
                        "westmere-ep-dp": 0, "westmere-ex": 0, "sandybridge": 0, "sandybridge-ep": 0}


# The bits of each share of nhmtap offcore, by enum offcore_kind. Westmere's memory bits are
# swapped; with two sockets, bit 12 is both local memory and the cache of another package.
@pytest.mark.parametrize("kind, of", [
    (1, {"nehalem-ep": 0x3800, "westmere-ep": 0x5800, "westmere-ep-dp": 0x2800, "westmere-ex": 0x3800}),
    (2, {"nehalem-ep": 0, "westmere-ep": 0, "westmere-ep-dp": 0x1000, "westmere-ex": 0}),
    (4, {"nehalem-ep": 0x0c00, "westmere-ep": 0x0c00, "westmere-ep-dp": 0x0c00, "westmere-ex": 0x0c00}),
    (8, {"nehalem-ep": 0x0070, "westmere-ep": 0x0070, "westmere-ep-dp": 0x0070, "westmere-ex": 0x0070}),
    (16, {"nehalem-ep": 0x8080, "westmere-ep": 0x8080, "westmere-ep-dp": 0x8080, "westmere-ex": 0x8080}),
])
def test_each_bit_is_of_the_kinds_that_its_name_says(compiled, kind, of):
    found = {cpu: sum(row["bits"] for part in ("request", "response")
                      for row in compiled.list(part, cpu) if row["kinds"] & kind) for cpu in of}
    assert found == of


def test_every_cpu_has_the_same_presets(cpu, compiled):
    assert [row["name"] for row in compiled.list("preset", cpu)] == \
        [row["name"] for row in compiled.list("preset", "nehalem-ep")] == \
        ["llc", "dram", "numa", "snoop", "all"]


def test_nehalem_has_one_register_and_westmere_two(compiled):
    assert [(row["name"], row["msr"]) for row in compiled.list("register", "nehalem-ep")] == \
        [("OFFCORE_RESPONSE", 0x1A6)]
    for cpu in ("westmere-ep", "westmere-ep-dp", "westmere-ex"):
        assert [(row["name"], row["msr"]) for row in compiled.list("register", cpu)] == \
            [("OFFCORE_RESPONSE", 0x1A6), ("OFFCORE_RESPONSE_1", 0x1A7)]
