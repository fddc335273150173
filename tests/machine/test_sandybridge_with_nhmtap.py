# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap on Sandy Bridge: its table, stores by their sources, locks and TLB misses, groups, off-core
responses, direct calls alone in the LBR, and the microcode that PEBS needs."""
import nehalem

import known
import records
import test_branch_on_nehalem
from guests import nhmtap, tool
from records import of_type
from test_doctor_on_nehalem import OF_THE_CORE, doctor

STORES = known.numbers("stores")
TURN_NS = 4e6  # of Debian's kernels, with 250 ticks a second


def test_its_table_is_found_and_every_facility_of_the_core_works(sandybridge):
    findings = doctor(sandybridge, "--need", ",".join(OF_THE_CORE))
    assert findings.works() == set(OF_THE_CORE) and findings.status == 0
    assert of_type(findings.records, "start")[0]["host"]["cpu"]["events"] == "sandybridge"
    counters = findings.of("counters")
    assert (counters["general_free"], counters["fixed_free"]) == (8, 3)


def test_stores_are_told_by_hit_lock_and_tlb_miss(sandybridge):
    found = nhmtap(sandybridge, "mem", "-e", "cpu/mem-stores/upp", "-c", 1000, "--by", "ip,source,tlb,lock", "--",
                   "stores", "p")
    record, = of_type(found, "mem")
    at = known.addresses("stores")
    expected = STORES["plain.stores"] // 1001
    assert expected - 1 <= record["samples"]["aggregated"] <= expected
    assert {(e["ip"], e["lock"]) for e in record["entries"]} == {
        (hex(at["plain_store"]), "none"), (hex(at["locked_store"]), "locked")}
    assert {e["tlb"] for e in record["entries"]} == {"hit"}
    assert {e["source"] for e in record["entries"]} == {"store_l1_hit", "store_l1_miss"}
    found = nhmtap(sandybridge, "mem", "--stores", "--side", "u", "-c", 997, "--by", "ip,tlb", "--", "stores", "t")
    entries = [e for e in of_type(found, "mem")[0]["entries"] if e["ip"] == hex(at["page_store"])]
    assert {e["tlb"] for e in entries} == {"stlb_miss"}
    assert sum(e["samples"] for e in entries) >= STORES["tlb.stores"] // 998 - 1


def test_loads_and_stores_take_turns_on_their_one_counter(sandybridge):
    """Both need counter 3, so only one of them runs at a time. Each turn of the program loads from
    a line that it has flushed and stores to another one. It has no other loads and stores."""
    found = nhmtap(sandybridge, "mem", "--loads", "--stores", "--side", "u", "-c", 400, "--by", "ip,cacheline", "--",
                   "steady", "short", tag_all_loads=True)
    at, turns = known.addresses("steady"), known.numbers("steady")["turns"] // 4
    loads, stores = of_type(found, "mem")
    for record, where, line, source in ((loads, "steady_load", at["buffer"], "local_dram_exclusive"),
                                        (stores, "steady_store", at["buffer"] + 4096, "store_l1_miss")):
        assert {(e["cacheline"], e["source"]) for e in record["entries"]} == {(hex(line), source)}
        # The kernel goes back from the next instruction to the one that counted by means of the
        # LBR. This fails for a sample before the first branch after a context switch, which clears
        # the LBR.
        elsewhere = sum(e["samples"] for e in record["entries"] if e["ip"] != hex(at[where]))
        assert elsewhere <= 0.001 * record["samples"]["aggregated"], record["entries"]
    enabled = loads["enabled_ns"]
    assert 0.98 * enabled <= loads["running_ns"] + stores["running_ns"] <= 1.001 * enabled
    for record, other in (loads, stores), (stores, loads):
        assert record["status"] == "multiplexed"
        assert record["why"] == f"'{other['event']}' can only use the same counter: they take turns"
        # The counter's overflow arms PEBS, and the next occurrence is recorded. A turn that ends
        # between the two loses this sample.
        assert sum(record["samples"]["lost"].values()) <= record["running_ns"] / TURN_NS + 1
        # A precise sample stands for one occurrence more than the period.
        assert abs(record["samples"]["aggregated"] * 401 / turns - record["running_ns"] / enabled) <= 0.02


def of_line(found, address):
    """The record of a shared line, and its accesses: {(access, CPU, offset, ip)}."""
    line, = (r for r in of_type(found, "shared_line") if r["cacheline"] == hex(address))
    return line, {(e["access"], e["cpu"], e["offset"], int(e["ip"], 16)) for e in line["entries"]}


def test_words_that_share_a_line_are_shown_with_who_reads_and_who_writes_which(sandybridge):
    # Every nth of all loads would be in step with the threads' turns; the tagged loads, one in 16,
    # are not.
    found = nhmtap(sandybridge, "mem", "--shared", "--side", "u", "--ldlat", 20, "-c", 33, "--", "apart", 0, 1)
    at, numbers = known.addresses("apart"), known.numbers("apart")
    line, accesses = of_line(found, at["words"])
    expected = {(kind, cpu, numbers[f"{side}_offset"], at[f"{side}_{kind}"])
                for cpu, side in enumerate(("left", "right")) for kind in ("load", "store")}
    assert expected <= accesses
    # A record that the driver reads only after the other event got the counter is taken for that
    # event's.
    others = [e for e in line["entries"] if (e["access"], e["cpu"], e["offset"], int(e["ip"], 16)) not in expected]
    assert sum(e["samples"] for e in others) <= 0.05 * (line["loads"] + line["stores"])
    assert (line["threads"], line["readers"], line["writers"], line["cpus"]) == (2, 2, 2, 2)
    assert (line["offsets"], line["offsets_in_common"]) == (2, 0)
    # All loads but the very first find the other thread's store.
    assert line["modified"] >= line["loads"] - 1 > 0 and line["stores"] > 0
    assert line["loads"] + line["stores"] == sum(e["samples"] for e in line["entries"])


def test_a_word_that_two_threads_write_in_turn_has_both_as_readers_and_as_writers(sandybridge):
    found = nhmtap(sandybridge, "mem", "--shared", "--side", "u", "--ldlat", 20, "-c", 33, "--", "bounce", 0, 1)
    line, accesses = of_line(found, known.addresses("bounce")["line"])
    assert {access[:3] for access in accesses} == {(kind, cpu, 0) for kind in ("load", "store") for cpu in (0, 1)}
    assert (line["readers"], line["writers"], line["offsets_in_common"]) == (2, 2, 1)


def test_a_chain_of_loads_is_found_in_memory_by_its_own_table(sandybridge):
    record, = of_type(nhmtap(sandybridge, "mem", "-c", 100, "--", "chase", "memory"), "mem")
    first = record["sources"][0]
    assert (first["source"], first["codes"]) == ("local_dram_exclusive", ["0xc"])
    assert first["latency_max"] >= 190


def test_a_page_stride_is_a_tlb_miss_on_each_load(sandybridge):
    record, = of_type(nhmtap(sandybridge, "mem", "-c", 20, "--side", "u", "--by", "ip,tlb", "--ldlat", "3", "--", "stride"), "mem")
    site = hex(known.addresses("stride")["stride_site"])
    assert {e["tlb"] for e in record["entries"] if e["ip"] == site} == {"stlb_miss"}


def test_eight_events_are_counted_at_once_where_a_thread_has_its_core(sandybridge):
    events = ["BR_INST_RETIRED.CONDITIONAL", "BR_INST_RETIRED.NEAR_CALL", "BR_INST_RETIRED.NEAR_RETURN",
              "BR_INST_RETIRED.NOT_TAKEN", "BR_INST_RETIRED.NEAR_TAKEN", "UOPS_ISSUED.ANY", "UOPS_RETIRED.ALL",
              "L1D.REPLACEMENT"]
    group = "{" + ",".join(f"{event}:u" for event in events) + "}"
    counts = of_type(nhmtap(sandybridge, "stat", "-e", group, "--", "count"), "count")
    assert len(counts) == 8 and all(r["status"] == "counted" for r in counts)
    ninth = group[:-1] + ",ICACHE.MISSES:u}"
    error, _ = nhmtap(sandybridge, "stat", "-e", ninth, "--", "true", status=1)
    assert "8 general" in error["remedy"]


def test_of_events_that_need_half_the_counters_a_third_is_refused(sandybridge_threads):
    events = [f"MEM_UOPS_RETIRED.{name}:u" for name in ("ALL_LOADS", "ALL_STORES", "LOCK_LOADS")]
    counts = of_type(nhmtap(sandybridge_threads, "stat", "-e", "{%s}" % ",".join(events[:2]), "--", "stores", "p"), "count")
    assert [r["value"] for r in counts][1] == STORES["plain.stores"]
    assert all(r["enabled_ns"] == r["running_ns"] for r in counts)
    error, _ = nhmtap(sandybridge_threads, "stat", "-e", "{%s}" % ",".join(events), "--", "true", status=1)
    assert "no counter is left for MEM_UOPS_RETIRED.LOCK_LOADS:u" in error["why"] and "4 general" in error["remedy"]


def test_off_core_responses_are_told_by_who_had_the_line(sandybridge):
    found = nhmtap(sandybridge, "offcore", "--request", "DEMAND_DATA_RD", "--response", "LLC_MISS.DRAM", "--side", "u",
                   "--", "chase", "memory")
    cell, = of_type(found, "offcore")[0]["cells"]
    loads = known.numbers("chase")["memory.loads"]
    assert loads <= cell["value"] <= loads + 200
    assert cell["offcore_rsp"] == "0x300400001"


def test_the_remote_share_is_that_of_the_other_package(sandybridge_ep):
    for home, share in ((2**64 - 1, 0), (0, 1)):
        found = nhmtap(sandybridge_ep, "offcore", "--request", "DEMAND_DATA_RD", "--response",
                       "LLC_MISS.LOCAL_DRAM,LLC_MISS.REMOTE_DRAM", "--", "taskset", "-c", "0", "steady", "short",
                       remote_from=home)
        record, = of_type(found, "offcore")
        assert abs(record["remote_share"] - share) <= 0.01


def test_a_supplier_without_a_snoop_takes_all_snoops_if_it_is_named_and_is_refused_as_a_number(sandybridge):
    found = nhmtap(sandybridge, "stat", "-e", "OFFCORE_RESPONSE:DMND_DATA_RD:L3_MISS:u", "--", "chase", "memory")
    loads = known.numbers("chase")["memory.loads"]
    assert loads <= of_type(found, "count")[0]["value"] <= loads + 200
    assert "all snoops are taken, as libpfm4 does it" in of_type(found, "start")[0]["events"][0]["note"]
    error, _ = nhmtap(sandybridge, "stat", "-e", "OFFCORE_RESPONSE:0x400001", "--", "true", status=1)
    assert "no snoop bit, so it counts nothing" in error["why"]


def test_direct_calls_alone_can_be_recorded(sandybridge):
    found = test_branch_on_nehalem.branch(sandybridge, "-e branches:u -c 1009 --filter call", "kinds")
    # Nehalem's driver has no such filter.
    assert set(test_branch_on_nehalem.counts(found, "kinds")) == \
        test_branch_on_nehalem.edges("kinds", ("rel_call", "leaf"))


def test_every_metric_of_its_table_has_a_value(sandybridge):
    listed = records.parse(sandybridge.say("/opt/nhmtap list --json"))
    metrics = [r["name"] for r in listed if r.get("formula") and r.get("cpu")]
    assert len(metrics) >= 15
    found = nhmtap(sandybridge, "stat", "-M", ",".join(metrics), "--", "chase", "memory")
    assert {r["metric"] for r in of_type(found, "metric")} >= set(metrics)


def test_doctor_tells_what_microcode_and_firmware_take_away(booted):
    """Early microcode takes away precise samples. Firmware that keeps fixed counters 1 and 2, as on
    a real X5650, takes away these."""
    machine = nehalem.Machine(model="sandybridge", microcode=0x27, firmware=0x330, memory=512, add=(tool(),),
                              rounded=True)
    with booted.boot(machine) as guest:
        said = guest.run("/opt/nhmtap", "doctor", "--format", "json", "--need", "precise,fixed,stat", paranoid=-1)
    precise, fixed, stat = (next(r for r in records.parse(said.stdout) if r["type"] == "facility" and r["name"] == name)
                            for name in ("precise", "fixed", "stat"))
    assert not precise["works"]
    assert "0x27" in precise["why"] and "0x28" in precise["why"]
    assert not fixed["works"] and stat["works"]
    assert "fixed counters 1, 2 in use when Linux started (MSR 0x38d is 0x330" in fixed["why"]
