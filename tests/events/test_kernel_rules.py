# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's rules in the tables, against cases worked out from the source of Linux 6.1.

Of the events refused as precise, 0x010B to 0x01B7 were also refused on an emulated Nehalem.
"""

import pytest

from event_tables import CPUS, SANDYBRIDGES

# Contradictions that explain why the kernel refuses an event that the tables mark as precise.
EXPLAIN_REFUSED_PEBS = {"pebs-refused-by-the-kernel", "guide-only-events", "br-misp-retired"}


def first_rule(rules, config):
    return next((rule for rule in rules if config & rule["mask"] == rule["config"]), None)


@pytest.fixture
def may_be_precise(compiled):
    return lambda cpu, config: first_rule(compiled.list("precise_rule", cpu), config) is not None


@pytest.fixture
def place(compiled):
    """The general counters and the fixed counter that an event may use."""
    def find(cpu, config):
        rule = first_rule(compiled.list("placing_rule", cpu), config)
        return (rule["counters"], rule["fixed_counter"]) if rule else (0xF, -1)
    return find


@pytest.mark.parametrize("config", [
    0x100B, 0x200F, 0x010C, 0x00C0, 0x01C0, 0x01C2, 0x18001C2, 0x04C4, 0x02C5, 0x01C7, 0x20C8,
    0x10CB, 0x01F7, 0x108000C0, 0x003C], ids=hex)
def test_linux_takes_it_as_precise(config, may_be_precise):
    assert may_be_precise("nehalem-ep", config)


@pytest.mark.parametrize("config", [
    0x010B, 0x020B, 0x01C5, 0x04C5, 0x0151, 0x412E, 0x01B7, 0x108001C0, 0x010004C4, 0x2001C0],
    ids=hex)
def test_linux_refuses_it_as_precise(config, may_be_precise):
    assert not may_be_precise("nehalem-ep", config)


def test_westmere_may_take_any_mispredicted_branch_as_precise(may_be_precise):
    assert may_be_precise("westmere-ep", 0x04C5) and not may_be_precise("nehalem-ep", 0x04C5)


def test_each_precise_event_that_the_kernel_refuses_is_explained(cpu, compiled, may_be_precise):
    refused = {row["name"] for row in compiled.list("event", cpu)
               if row["precise"] and not may_be_precise(cpu, row["config"])}
    explained = {name for row in compiled.list("contradiction", cpu)
                 if row["id"] in EXPLAIN_REFUSED_PEBS for name in row["names"].split()}
    # The driver for Sandy Bridge accepts any event as precise.
    assert bool(refused) == (cpu not in SANDYBRIDGES) and refused <= explained


@pytest.mark.parametrize("config, counters, fixed", [
    (0x00C0, 0xF, 0), (0x003C, 0xF, 1), (0x0300, 0x0, 2),
    # A cmask, or INST_RETIRED.ANY_P's umask, takes the event off the fixed counter.
    (0x01C0, 0xF, -1), (0x10000C0, 0xF, -1),
    (0x0151, 0x3, -1), (0x0F40, 0x3, -1), (0x0248, 0x3, -1), (0x0163, 0x3, -1),
    (0x01B7, 0xF, -1), (0x100B, 0xF, -1), (0x014C, 0xF, -1), (0x0152, 0xF, -1)])
def test_nehalem_counts_it_on(config, counters, fixed, place):
    assert place("nehalem-ep", config) == (counters, fixed)


def test_westmere_counts_outstanding_requests_on_counter_0(place):
    assert place("westmere-ep", 0x0160) == place("westmere-ep", 0x01B3) == (0x1, -1)


def test_a_fixed_event_of_the_table_is_one_of_the_kernels(cpu, compiled, place):
    for event in compiled.list("event", cpu):
        if event["fixed_counter"] >= 0:
            assert place(cpu, event["config"])[1] == event["fixed_counter"], event["name"]


def test_every_default_period_opens(cpu, compiled):
    lowest = compiled.list("kernel", cpu)[0]["period"]
    assert all(event["period"] >= lowest for event in compiled.list("event", cpu))


def test_nehalems_lowest_period_is_32(compiled):
    assert {cpu: compiled.list("kernel", cpu)[0]["period"] for cpu in CPUS} == \
        {cpu: 32 if cpu.startswith("nehalem") else 1 for cpu in CPUS}


# intel/core.c: intel_perfmon_event_map, {nehalem,westmere}_hw_cache_event_ids and
# nehalem_hw_cache_extra_regs with their macros expanded.
@pytest.mark.parametrize("name, nehalem, westmere", [
    ("cycles", (0x3C, 0), (0x3C, 0)), ("cache-misses", (0x412E, 0), (0x412E, 0)),
    ("branch-misses", (0xC5, 0), (0xC5, 0)),
    ("stalled-cycles-frontend", (0x0180010E, 0), (0x0180010E, 0)),
    ("stalled-cycles-backend", (0x01803FB1, 0), (0x01803FB1, 0)),
    ("ref-cycles", (0x300, 0), (0x300, 0)),
    ("L1-dcache-load-misses", (0x151, 0), (0x151, 0)),
    # NHM_DMND_READ|NHM_L3_ACCESS: a request, three kinds of hit, four kinds of miss
    ("LLC-loads", (0x1B7, 0xF701), (0x1B7, 0xF701)),
    # NHM_DMND_WRITE is RFO|WB; NHM_L3_MISS is NON_DRAM|LOCAL_DRAM|REMOTE_DRAM|REMOTE_CACHE_FWD
    ("LLC-store-misses", (0x1B7, 0xF00A), (0x1B7, 0xF00A)),
    ("node-loads", (0x1B7, 0x7001), (0x1B7, 0x7001)),
    ("node-prefetch-misses", (0x1B7, 0x2030), (0x1B7, 0x2030)),
    ("dTLB-loads", (0xF40, 0), (0x10B, 0)), ("iTLB-load-misses", (0x20C8, 0), (0x185, 0))])
def test_a_generic_name_is_what_linux_counts_for_it(name, nehalem, westmere, compiled):
    for cpu in set(CPUS) - set(SANDYBRIDGES):
        expected = nehalem if cpu.startswith("nehalem") else westmere
        row, = (row for row in compiled.list("generic", cpu) if row["name"] == name)
        assert (row["config"], row["config1"]) == expected


# intel/core.c and intel/ds.c: intel_snb_pebs_event_constraints, intel_snb_event_constraints.
@pytest.mark.parametrize("config, counters", [
    (0x01C0, 0x2), (0x01CD, 0x8), (0x02CD, 0x8), (0x108001C2, 0xF), (0x018381D0, 0xF), (0x04D1, 0xF),
    (0x0151, 0xF), (0x01B7, 0xF), (0x1000151, None), (0x2001C2, None), (0x018001C2, None)],
    ids=lambda value: f"{value:#x}" if value else "refused")
@pytest.mark.parametrize("cpu", SANDYBRIDGES)
def test_sandy_bridge_takes_any_event_without_flags_as_precise(cpu, config, counters, compiled):
    rule = first_rule(compiled.list("precise_rule", cpu), config)
    assert (rule and rule["counters"]) == counters


@pytest.mark.parametrize("config, counters, fixed", [
    (0x00C0, 0xFF, 0), (0x003C, 0xFF, 1), (0x0300, 0x0, 2), (0x02A3, 0x4, -1), (0x06A3, 0x4, -1),
    (0x04A3, 0xF, -1), (0x05A3, 0xF, -1), (0x0148, 0x4, -1), (0x01C0, 0x2, -1), (0x02CD, 0x8, -1),
    (0x81D0, 0xF, -1), (0x01D3, 0xF, -1)], ids=lambda value: f"{value:#x}")
def test_sandy_bridge_counts_it_on(config, counters, fixed, compiled):
    rule = first_rule(compiled.list("placing_rule", "sandybridge"), config)
    assert (rule["counters"], rule["fixed_counter"]) == (counters, fixed)


# snb_hw_cache_event_ids and snb_hw_cache_extra_regs with their macros expanded.
@pytest.mark.parametrize("name, expected", [
    ("stalled-cycles-backend", (0x018001B1, 0)), ("L1-dcache-loads", (0xF1D0, 0)),
    ("LLC-loads", (0x1B7, 0x10081)), ("LLC-load-misses", (0x1B7, 0x3FFFC00081)),
    ("node-loads", (0x1B7, 0x1FFFC00081)), ("node-store-misses", (0x1B7, 0x1FFF800102)),
    ("dTLB-store-misses", (0x149, 0)), ("branch-load-misses", (0xC5, 0))])
@pytest.mark.parametrize("cpu", SANDYBRIDGES)
def test_a_generic_name_is_what_linux_counts_on_sandy_bridge(cpu, name, expected, compiled):
    row, = (row for row in compiled.list("generic", cpu) if row["name"] == name)
    assert (row["config"], row["config1"]) == expected


def test_each_erratum_that_an_event_names_is_described(cpu, compiled):
    named = {row["errata"] for row in compiled.list("event", cpu) if row["errata"]}
    assert named <= {row["name"] for row in compiled.list("erratum", cpu)}
