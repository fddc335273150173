# SPDX-License-Identifier: GPL-2.0-only
"""Names of data sources on a CPU without a table of them: they come from the kernel's fields."""
import pytest

from compiled import compiled


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """What sources.c prints for each value: source, words, TLB, lock, marks."""
    run = compiled(tmp_path_factory.mktemp("sources"), "sources")
    return {what: said for what, *said in (line.split("\t") for line in run("").splitlines())}


@pytest.mark.parametrize("what, source, perf", [
    ("snb 1", "l1_hit", "L1 hit, no snoop"),
    ("snb 1 locked", "l1_hit", "L1 hit, no snoop"),
    ("snb 1 walked", "l1_hit", "L1 hit, no snoop"),
    ("snb 0", "l3_miss", "L3 miss"),
    ("snb 7", "l3_hit_snoop_hitm", "L3 hit, snoop hit modified"),
    ("snb 5", "l3_hit_snoop_miss", "L3 hit, snoop miss"),
    ("snb b", "remote_ram_hit_snoop_hit", "remote RAM hit, snoop hit"),
    ("snb c", "local_ram_hit", "local RAM hit, no snoop or snoop miss"),
    ("snb f", "uncached_hit", "uncached hit, no snoop"),
    ("snb store hit", "store_l1_hit", "store: L1 hit"),
    ("snb store miss", "store_l1_miss", "store: L1 miss"),
    ("skl 8 pmem", "pmem_hit_snoop_hit", "persistent memory hit, snoop hit"),
    ("skl b", "remote_ram_hit", "remote RAM hit, no snoop"),
    ("skl c", "remote_cache_hit_forwarded", "remote any cache hit, forwarded"),
    ("skl d", "remote_cache_hit_snoop_hitm", "remote any cache hit, snoop hit modified"),
    ("ibs far cache", "remote_cache_hit_hops_1", "remote any cache hit"),
    ("nothing", "unmeasured", ""),
    ("not available", "unmeasured", ""),
    ("no level", "0x22", ""),
])
def test_a_source_is_named_by_level_and_snoop(named, what, source, perf):
    assert named[what][:2] == [source, perf]


@pytest.mark.parametrize("what, tlb, lock", [
    ("snb 1", "hit", "none"),
    ("snb 1 locked", "hit", "locked"),
    ("snb 1 walked", "stlb_miss", "none"),
    ("snb store hit", "hit", "none"),
    ("snb store miss", "stlb_miss", "locked"),
    ("not available", "unknown", "unknown"),
])
def test_the_access_is_told_apart_from_its_source(named, what, tlb, lock):
    assert named[what][2:4] == [tlb, lock]


def test_lines_of_other_cores_are_told_from_memory(named):
    marks = {what: said[4] for what, said in named.items() if said[4]}
    # m: modified, o: in another core's cache. Memory is neither, even if the line is shared.
    assert marks == {"snb 7": "mo", "skl c": "o", "skl d": "mo"}
