# SPDX-License-Identifier: GPL-2.0-only
"""Where loads find their data: chains whose length determines it, and lines that
another processor holds. The codes are those of the guide's Table 16, as Linux
converts them to data_src (arch/x86/events/intel/ds.c, pebs_data_source)."""
import collections

import pytest

import known

LOADS = "MEM_LOAD_RETIRED."
LATENCY = {"l1": 4, "l2": 10, "llc": 38, "memory": 190}
# What the TLB adds: 7 if the second level has the page; else a walk: 14, or the latency of the
# page-table entry if that is longer.
TLB = (0, 7, 14, 38, 190)


def mem_op(source):
    """The level and snoop bits of perf's data_src that Linux gives a code."""
    # PERF_MEM_LVL: HIT 2, MISS 4, L1 8, LFB 0x10, L2 0x20, L3 0x40, LOC_RAM 0x80,
    # REM_RAM1 0x100, REM_CCE1 0x400, UNC 0x2000; SNOOP: NONE 2, HIT 4, MISS 8, HITM 16.
    level = {
        0x0: 0x04,
        0x1: 0x0A,
        0x2: 0x12,
        0x3: 0x22,
        0x4: 0x42,
        0x5: 0x42,
        0x6: 0x42,
        0x8: 0x402,
        0xB: 0x102,
        0xC: 0x82,
        0xD: 0x102,
        0xF: 0x2002,
    }
    snoop = {0x4: 2, 0x5: 4, 0x6: 16, 0x8: 4, 0xB: 4, 0xC: 2 | 8, 0xD: 2 | 8, 0xF: 2}
    snoop |= {0x0: 1, 0x1: 2, 0x2: 2, 0x3: 2}
    return level[source] | snoop[source] << 14


def latency_samples(bench, command, site, tmp_path, threshold=3, **settings):
    """The samples at `site` of a program: [(address, weight, level and snoop bits)]."""
    rows = bench.samples(
        f"-c 40 -e cpu/event=0xb,umask=0x10,ldlat={threshold}/uP -d -W",
        command,
        "ip,addr,weight,data_src",
        tmp_path,
        **settings,
    )
    program = command.split()[0]
    at = known.addresses(program)[site]
    found = []
    for row in rows:
        # addr weight data_src |words... ip, in perf script's own order
        address, source, weight, ip = pick(row)
        if ip == at:
            found.append((address, weight, source >> 5 & 0x7FFFF))
    return found


def pick(row):
    """address, data_src, weight and ip of a line of perf script."""
    address, source = int(row[0], 16), int(row[1], 16)
    rest = [w for w in row[2:] if not w.startswith("|")]
    bare = [w for w in rest if all(c in "0123456789abcdef" for c in w)]
    return address, source, int(bare[-2]), int(bare[-1], 16)


@pytest.mark.parametrize("kind", ["l1", "l2", "llc", "memory"])
def test_a_chain_is_found_where_it_fits(guest, kind):
    event = LOADS + {
        "l1": "L1D_HIT",
        "l2": "L2_HIT",
        "llc": "LLC_UNSHARED_HIT",
        "memory": "LLC_MISS",
    }[kind]
    loads = known.numbers("chase")[kind + ".loads"]
    other = known.numbers("chase")["other_loads"]
    # A timer tick may evict a line, or change which level has it.
    assert 0.99 * loads <= guest.count(event, f"chase {kind}") <= loads + other


def test_every_load_of_the_flushed_chain_goes_to_memory(any_kernel):
    loads = known.numbers("chase")["memory.loads"]
    other = known.numbers("chase")["other_loads"]
    counts = any_kernel.counts(["MEM_INST_RETIRED.LOADS", LOADS + "LLC_MISS"], "chase memory")
    assert counts["MEM_INST_RETIRED.LOADS"] == loads + other
    assert loads <= counts[LOADS + "LLC_MISS"] <= loads + other


def test_the_sources_of_all_loads_add_up_to_the_loads(guest):
    sources = "L1D_HIT L2_HIT LLC_UNSHARED_HIT OTHER_CORE_L2_HIT_HITM LLC_MISS HIT_LFB".split()
    counts = guest.counts([LOADS + s for s in sources], "chase llc")
    numbers = known.numbers("chase")
    assert sum(counts.values()) == numbers["llc.loads"] + numbers["other_loads"]


@pytest.mark.parametrize("kind, source", [("l1", 1), ("l2", 3), ("llc", 4), ("memory", 12)])
def test_load_latency_says_which_load_where_and_how_long(guest, tmp_path, kind, source):
    samples = latency_samples(guest, f"chase {kind}", "chase_site", tmp_path)
    ring = known.addresses("chase")["ring"]
    lines = known.numbers("chase")[kind + ".lines"]
    links = {ring + 64 * k for k in range(lines)}
    assert len(samples) >= 10
    assert {a for a, _, _ in samples} <= links
    right = [s for s in samples if s[2] == mem_op(source)]
    assert len(right) >= 0.98 * len(samples)
    # The latency of the level and of the TLB, nothing else.
    assert {w for _, w, _ in right} <= {LATENCY[kind] + tlb for tlb in TLB}


def test_sampled_addresses_are_spread_over_the_whole_chain(guest, tmp_path):
    samples = latency_samples(guest, "chase memory", "chase_site", tmp_path)
    ring = known.addresses("chase")["ring"]
    quarters = collections.Counter((a - ring) // (16 * 4096) for a, _, _ in samples)
    # One load in 16 is tagged, and of these one in 40 is sampled: 51 of 32768.
    assert 40 <= len(samples) <= 62
    assert set(quarters) == {0, 1, 2, 3}
    assert min(quarters.values()) >= 3


@pytest.mark.parametrize("threshold, seen", [(189, True), (190, False)])
def test_only_loads_above_the_threshold_count(guest, threshold, seen):
    # A load of 190 cycles is above 189 and not above 190. Those that miss the TLB take longer:
    # the chain's 64 pages and the stack share its 64 entries, so they are few.
    count = guest.count(f"cpu/event=0xb,umask=0x10,ldlat={threshold}/up", "chase memory")
    tagged = known.numbers("chase")["memory.loads"] / 16
    assert (count > 0.9 * tagged) == seen
    assert seen or count < 0.2 * tagged


def test_a_line_on_its_way_is_found_in_a_fill_buffer(guest, tmp_path):
    samples = latency_samples(guest, "known f", "lfb_site", tmp_path, threshold=150)
    assert len(samples) >= 8
    assert {s for _, _, s in samples} == {mem_op(2)}


def test_a_load_behind_a_prefetch_waits_for_the_rest(guest, tmp_path):
    # 190 cycles, less one for the prefetch and each of the 50 nops after it.
    samples = latency_samples(guest, "known g", "pf_site", tmp_path, threshold=30)
    assert len(samples) >= 20
    assert {w for _, w, _ in samples} == {139}


def test_uncacheable_loads(guest, tmp_path):
    n = known.numbers("uncached")["loads"]
    assert guest.count("MEM_UNCORE_RETIRED.UNCACHEABLE", "uncached") == n
    samples = latency_samples(guest, "uncached", "uncached_site", tmp_path)
    assert len(samples) >= 10
    assert {s for _, _, s in samples} == {mem_op(0xF)}


def handover_samples(bench, command, tmp_path, **settings):
    """Samples with all loads tagged. If one load in 16 were tagged there would be 16 in a turn,
    and a period of 40 would never end: Linux rounds the rest of a period up to 32
    (nhm_limit_period) whenever the program is switched in."""
    site = "handover_load"
    samples = latency_samples(bench, command, site, tmp_path, 20, tag_all_loads=True, **settings)
    assert len(samples) >= known.numbers("handover")["taken"] / 40 / 2
    return samples


HANDOVERS = [
    # what, Table 16's code, the event that counts the same loads
    ("clean", 0x5, LOADS + "OTHER_CORE_L2_HIT_HITM"),
    ("dirty", 0x6, "MEM_UNCORE_RETIRED.OTHER_CORE_L2_HITM"),
]


@pytest.mark.parametrize("state, source, event", HANDOVERS)
def test_lines_of_another_core(two_cores, tmp_path, state, source, event):
    taken = known.numbers("handover")["taken"]
    command = f"handover 0 1 {state} read"
    # The start of the program, in glibc and in the kernel, hands over some lines too.
    assert taken <= two_cores.count(event, command) <= taken + 200
    samples = handover_samples(two_cores, command, tmp_path)
    assert mem_op(source) in {s for _, _, s in samples}
    # If the lines were clean, the first core's own loads (from memory) are among the samples.
    assert {s for _, _, s in samples} <= {mem_op(source), mem_op(0xC)}


def test_a_line_that_another_core_has_left_costs_a_snoop_all_the_same(two_cores, tmp_path):
    # The LLC gave the line to that core alone and snoops it. Table 16: "no modified copies were
    # found".
    numbers = known.numbers("handover")
    taken, command = numbers["taken"], "handover 0 1 left read"
    # The other lines' pages may have been cleared by the second core, if the program began there.
    assert taken <= two_cores.count(LOADS + "OTHER_CORE_L2_HIT_HITM", command) <= taken + numbers["others"] + 200
    samples = [s for s in handover_samples(two_cores, command, tmp_path) if s[2] != mem_op(0xC)]
    assert {s for _, _, s in samples} == {mem_op(0x5)}
    assert {w for _, w, _ in samples} <= {65 + tlb for tlb in TLB}


# All memory belongs to package 1.
PACKAGES = [
    # from, to, state, the codes of the first one's loads and the second one's
    (0, 1, "clean", {0xD, 0x8}),  # loaded at its home: the other package forwards it
    (1, 0, "clean", {0xC, 0xB}),  # loaded remotely: from memory, and both have it then
    (1, 0, "dirty", {0x0}),  # modified in the other package: no code for it before Westmere
    (0, 1, "dirty", {0x0}),
]


@pytest.mark.parametrize("here, there, state, sources", PACKAGES)
def test_lines_of_another_package(two_packages, tmp_path, here, there, state, sources):
    command = f"handover {here} {there} {state} read"
    samples = handover_samples(two_packages, command, tmp_path, remote_from=0)
    assert {s for _, _, s in samples} == {mem_op(s) for s in sources}
    # A line that the other package's cache forwards takes 200 cycles, less than from its memory
    # (310).
    assert {w for _, w, s in samples if s == mem_op(0x8)} <= {200 + tlb for tlb in TLB}


@pytest.mark.parametrize("cpu, event", [(0, "REMOTE_DRAM"), (1, "LOCAL_DRAM")])
def test_memory_is_local_to_the_package_it_belongs_to(two_packages, cpu, event):
    numbers = known.numbers("chase")
    command = f"taskset -c {cpu} chase memory"
    count = two_packages.count("MEM_UNCORE_RETIRED." + event, command, remote_from=0)
    assert numbers["memory.loads"] <= count <= numbers["memory.loads"] + 2000  # and taskset's own


@pytest.mark.parametrize("here, there, event", [(0, 1, "LOCAL_DRAM"), (1, 0, "REMOTE_DRAM")])
def test_a_line_modified_in_the_other_package_counts_as_memory_of_its_home(two_packages, here, there, event):
    # All memory belongs to package 1. Intel's Performance Analysis Guide: the line is written back.
    taken = known.numbers("handover")["taken"]
    count = two_packages.count("MEM_UNCORE_RETIRED." + event, f"handover {here} {there} dirty read", remote_from=0)
    assert taken <= count <= taken + 2000


def test_a_line_that_two_cores_write_in_turn(two_cores):
    modified = known.numbers("bounce")["modified"]
    events = ["MEM_UNCORE_RETIRED.OTHER_CORE_L2_HITM", LOADS + "OTHER_CORE_L2_HIT_HITM"]
    counts = two_cores.counts(events, "bounce 0 1")
    for event in events:
        assert 0.99 * modified <= counts[event] <= 1.01 * modified + 100


def test_page_strides_miss_the_second_level_tlb(any_kernel):
    loads = known.numbers("stride")["loads"]
    for event in (LOADS + "DTLB_MISS", "DTLB_LOAD_MISSES.WALK_COMPLETED"):
        assert loads <= any_kernel.count(event, "stride") <= loads + 10


@pytest.mark.parametrize("command, least, most", [("stride", 0.94, 1), ("stride apart", 0.8, 0.98)])
def test_a_page_walk_takes_as_long_as_the_pages_entry_is_away(guest, tmp_path, command, least, most):
    # 14 cycles if the second-level cache has the entry, 38 if the LLC has it: at most one walk in
    # 8, because the other seven find the line that this one brought. The number depends on the page
    # frames that the kernel chooses.
    samples = latency_samples(guest, command, "stride_site", tmp_path, tag_all_loads=True)
    levels = {mem_op(0x3): LATENCY["l2"], mem_op(0x4): LATENCY["llc"], mem_op(0xC): LATENCY["memory"]}
    walks = collections.Counter(weight - levels[source] for _, weight, source in samples if source in levels)
    assert set(walks) <= {14, 38, 190} and sum(walks.values()) >= 0.95 * len(samples) >= 300
    assert least <= walks[14] / sum(walks.values()) <= most


def test_two_threads_of_a_core_have_half_a_code_tlb_each(guest, siblings):
    # 128 entries hold all of the program's pages. Of 64 entries with four ways each set gets six
    # pages in turn, so no page is there when it is needed.
    numbers = known.numbers("codepages")
    assert guest.count("ITLB_MISSES.ANY", "codepages") <= 5 * numbers["PAGES"]  # again after a task switch
    assert siblings.count("ITLB_MISSES.ANY", "codepages") >= numbers["PAGES"] * numbers["TURNS"]


def test_large_pages_miss_the_tlb_once_each(guest):
    said = guest.say("probe pages", paranoid=-1)
    misses = {line.split()[0]: int(line.split()[2]) for line in said.splitlines()}
    assert 4096 <= misses["small"] <= 4200
    assert misses["large"] <= 40  # 8 large pages, and those of timer ticks
