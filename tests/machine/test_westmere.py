# SPDX-License-Identifier: GPL-2.0-only
"""The tests of Nehalem on each Westmere: sources, latencies, off-core bits, LBR, page walks. All
events of their tables, and their registers, are tested by test_every_event and
test_explain_registers."""
import pytest

import known
import records
import test_branch_on_nehalem
import test_mem_on_nehalem
from guests import TABLES, nhmtap
from test_doctor_on_nehalem import OF_THE_CORE, doctor
from test_offcore_matrix import matrix

N = known.numbers("chase")
AFAR = {"remote_from": 0}  # all memory belongs to package 1, which need not have processors

# The responses for a line from local memory, from remote memory, and for a clean one of the other
# package.
BITS = {"westmere": ("LOCAL_DRAM", "REMOTE_DRAM", "REMOTE_CACHE_HIT"),
        "westmere-dp": ("LOCAL_DRAM_AND_REMOTE_CACHE_HIT", "REMOTE_DRAM",
                        "LOCAL_DRAM_AND_REMOTE_CACHE_HIT"),
        "westmere-ex": ("LOCAL_DRAM", "REMOTE_DRAM", "REMOTE_CACHE_HIT")}


def test_its_table_is_found_by_its_signature_and_every_facility_of_the_core_works(westmere):
    findings = doctor(westmere, "--need", ",".join(OF_THE_CORE))
    assert findings.works() == set(OF_THE_CORE) and findings.status == 0
    start, = (r for r in findings.records if r["type"] == "start")
    assert start["host"]["cpu"]["events"] == TABLES[westmere.model]
    # CPUID dumps of 20652, 206C1 and 206C2: branch misses are there, bus cycles are not.
    there = findings.of("processor")["perfmon"]["events"]
    assert [name for name in there if not there[name]] == ["reference_cycles"]


def test_by_repeating_two_cells_are_counted_at_once(westmere):
    """A Westmere has two off-core registers: half as many executions, and each cell is exact."""
    n = known.numbers("offcore")["data.requests"]
    here, afar, _ = BITS[westmere.model]
    record, cells = matrix(westmere, "taskset -c 0 offcore data", ["DEMAND_DATA_RD", "DEMAND_RFO"], [here, afar],
                           "-r", "auto")
    assert (record["repeated"]["executions"], record["repeated"]["cells_at_once"]) == (5, 2)
    for (request, response), cell in cells.items():
        assert cell["status"] == "counted" and cell["executions"] >= 1
        there = request in ("DEMAND_DATA_RD", "all") and response in (here, "all")
        # taskset has a few requests of its own.
        assert (n <= cell["value"] <= n + 2000) if there else cell["value"] <= 2000, (request, response, cell)


@pytest.mark.parametrize("kind, source, bucket, least", [
    ("l1", "l1_hit", "4", 4), ("l2", "l2_hit", "8", 10), ("llc", "l3_hit", "32", 38),
    ("memory", "local_dram_exclusive", "128", 190),
])
def test_a_chain_is_found_where_it_fits(westmere, kind, source, bucket, least):
    record, _ = test_mem_on_nehalem.loads(westmere, f"taskset -c 0 chase {kind}", "-c", "1000",
                                          "--ldlat", "3")
    first = record["sources"][0]
    assert record["status"] == "counted"
    assert first["source"] == source and first["codes"] and first["description"]
    loads = N[kind + ".loads"]
    assert first["samples"] >= 0.98 * loads / 1001 - 1
    assert first["latency_histogram"][bucket] >= 0.98 * first["samples"]
    assert first["latency_sum"] >= least * first["samples"]


# What CPU 1 finds for lines that CPU 0 has, in the same package or, with their home at CPU 1, in
# another one. No Nehalem has a code for modified lines of another package.
SOURCES = {("westmere", "dirty"): "l3_hit_other_core_modified",
           ("westmere", "clean"): "l3_hit_other_core_clean",
           ("westmere-dp", "dirty"): "remote_cache_modified",
           ("westmere-dp", "clean"): "remote_cache_clean",
           ("westmere-ex", "dirty"): "remote_cache_modified",
           ("westmere-ex", "clean"): "remote_cache_clean"}


@pytest.mark.parametrize("state", ["dirty", "clean"])
def test_lines_of_another_core_are_told_by_where_and_how_it_has_them(westmere, state):
    home = {} if westmere.model == "westmere" else AFAR
    _, entries = test_mem_on_nehalem.loads(westmere, f"handover 0 1 {state} read", "--ldlat", "20", "-c",
                                           "40", "--by", "ip,cpu", **home)
    site = hex(known.addresses("handover")["handover_load"])
    taken = test_mem_on_nehalem.tally([e for e in entries if (e["ip"], e["cpu"]) == (site, 1)], "source")
    assert set(taken) == {SOURCES[westmere.model, state]}
    assert sum(taken.values()) >= known.numbers("handover")["taken"] / 40 / 2


def test_what_the_records_have_no_bits_for_is_refused(westmere):
    # The kernel calls every access a TLB hit; stride misses the TLB on every load.
    error, _ = nhmtap(westmere, "mem", "--side", "u", "--by", "tlb", "--", "stride", status=1)
    assert "no TLB and no lock bits" in error["why"]


@pytest.mark.parametrize("home, share", [({}, 0), (AFAR, 1)])
def test_the_remote_share_is_that_of_the_other_package(westmere, home, share):
    local, remote, _ = BITS[westmere.model]
    record, cells = matrix(westmere, "taskset -c 0 steady short", ["DEMAND_DATA_RD"], [local, remote],
                           **home)
    values = [cells["DEMAND_DATA_RD", name]["value"] for name in (local, remote)]
    assert (values[1] > 100 * values[0]) == bool(share)
    assert (values[0] > 100 * values[1]) != bool(share)
    if local == "LOCAL_DRAM":
        assert abs(record["remote_share"] - share) <= 0.01
    else:  # one bit stands for both
        assert "remote_share" not in record


@pytest.mark.parametrize("state", ["dirty", "clean"])
def test_lines_of_the_other_package_answer_under_their_bit(westmere, state):
    taken = known.numbers("handover")["taken"]
    response = "REMOTE_CACHE_HITM" if state == "dirty" else BITS[westmere.model][2]
    if westmere.model == "westmere":
        response = "LLC_HIT_OTHER_CORE_HIT" + ("M" if state == "dirty" else "")
    _, cells = matrix(westmere, f"handover 0 1 {state} read", ["DEMAND_DATA_RD"], [response], **AFAR)
    cell, = cells.values()
    assert taken <= cell["value"] <= taken + 400


def test_a_group_holds_two_off_core_values_and_no_third(westmere):
    reads = known.numbers("chase")["memory.loads"]
    events = [f"cpu/event=0xb7,umask=0x1,offcore_rsp={value:#x}/u" for value in (0xff02, 0xff01, 0xff04)]

    def taken(some):
        """Whether the kernel takes them as a group."""
        said = westmere.say("perf stat -x , -e '{%s}' true 2>&1" % ",".join(some), paranoid=-1)
        return "not supported" not in said and "not counted" not in said

    assert taken(events[:2]) and not taken(events)
    found = nhmtap(westmere, "stat", "-e", "{%s}" % ",".join(events[:2]), "--", "chase", "memory")
    counts = [r for r in found if r["type"] == "count"]
    assert all(r["running_ns"] == r["enabled_ns"] for r in counts)
    assert counts[0]["value"] < reads / 10  # ownership of lines, each by its own register
    assert reads <= counts[1]["value"] <= reads + 1000
    error, _ = nhmtap(westmere, "stat", "-e", "{%s}" % ",".join(events), "--", "true", status=1)
    assert "no more than two off-core registers" in error["why"]


def test_page_walks_are_counted_with_their_cycles(westmere):
    loads, lines = (known.numbers("stride")[name] for name in ("loads", "entries.lines"))
    found = nhmtap(westmere, "stat", "-e",
                   "{DTLB_MISSES.WALK_COMPLETED:u,DTLB_MISSES.WALK_CYCLES:u,DTLB_LOAD_MISSES.WALK_CYCLES:u}",
                   "--", "stride")
    completed, cycles, of_loads = (r["value"] for r in found if r["type"] == "count")
    assert completed >= loads + 4096  # the pages' first stores
    # 14 cycles each, except that the lines of page-table entries come from memory once: the kernel
    # has evicted them when it cleared the pages.
    from_memory = 1.2 * (190 - 14) * lines
    assert 14 * completed <= cycles <= 14 * completed + from_memory
    assert 14 * loads <= of_loads <= 14 * loads + from_memory


def test_every_metric_of_its_table_has_a_value(westmere):
    listed = records.parse(westmere.say("/opt/nhmtap list --json"))
    metrics = [r["name"] for r in listed if r.get("formula") and r.get("cpu")]
    assert len(metrics) >= 18
    found = nhmtap(westmere, "stat", "-M", ",".join(metrics), "--", "chase", "memory")
    assert {r["metric"] for r in found if r["type"] == "metric"} >= set(metrics)


@pytest.mark.parametrize("kinds, expected", [test_branch_on_nehalem.KINDS[0], test_branch_on_nehalem.KINDS[1]])
def test_the_lbr_records_the_edges_that_the_filter_lets_through(westmere, kinds, expected):
    found = test_branch_on_nehalem.branch(westmere, f"-e branches:u -c 1009 --filter {kinds}", "kinds")
    assert set(test_branch_on_nehalem.counts(found, "kinds")) == \
        test_branch_on_nehalem.edges("kinds", *expected)


def test_any_mispredicted_branch_is_sampled_precisely(westmere):
    found = nhmtap(westmere, "profile", "-e", "BR_MISP_RETIRED.ALL_BRANCHES:upp", "-c", "97", "--", "graph")
    record, *_ = (r for r in found if r["type"] == "profile")
    # A precise sample stands for one occurrence more than the period.
    assert record["samples"]["aggregated"] > 10
    assert abs(record["samples"]["aggregated"] * 98 - record["value"]) <= 3 * 98
