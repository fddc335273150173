# SPDX-License-Identifier: GPL-2.0-only
"""NetBurst's events, which ESCRs and CCCRs select: the bits of their registers, worked out from SDM
volume 3B and compared with libpfm4 and the kernel; which counters a list gets, and what is refused
before anything is written."""
import json
import pathlib

import pytest
from facts import read_tsv
from records import parse

ROOT = pathlib.Path(__file__).parents[2]
CPU = "--cpu=netburst"
# Bits of ESCRs and CCCRs.
T0, T1, TAG_ENABLE = 3 << 2, 3, 1 << 4
EXTENDED, ENABLE, COMPARE, COMPLEMENT, EDGE, CASCADE, ALWAYS = 1 << 11, 1 << 12, 1 << 18, 1 << 19, 1 << 24, 1 << 30, 3 << 16
CRU_ESCR0, CRU_ESCR1, CRU_ESCR2, TBPU_ESCR0, FIRM_ESCR0 = 0x3B8, 0x3B9, 0x3CC, 0x3C2, 0x3A4


def counter(number):
    return 0x300 + number


def cccr(number):
    return 0x360 + number


def select(number):
    return number << 13 | ALWAYS


def escr(code, masks, rest=T0):
    return code << 25 | masks << 9 | rest


@pytest.fixture
def written(nhmtap):
    """The register writes of each event, in order: [[(address, value)]]."""
    def run(*arguments):
        result = nhmtap("explain", CPU, *arguments)
        assert (result.status, result.err) == (0, "")
        return [[(int(r["msr"], 16), int(r["value"], 16)) for r in record["registers"]] for record in parse(result.out)]
    return run


def test_the_manuals_example_is_its_value(written):
    """Its example of extended cascading has 04000603H in MSR_CRU_ESCR0: instructions of the second
    thread that retire, tagged or not."""
    (_, (address, value), _, _), = written("netburst/instr_retired,nbogusntag,nbogustag,t0=none,t1=all/")
    assert (address, value) == (CRU_ESCR0, 0x04000603)


@pytest.mark.parametrize("terms, number, address, selection, filtered", [
    ("instr_retired,nbogusntag", 12, CRU_ESCR0, escr(2, 1), select(4)),
    ("instr_retired,nbogusntag,t0=usr", 12, CRU_ESCR0, escr(2, 1, 1 << 2), select(4)),
    ("instr_retired,nbogusntag,t0=os,t1=usr", 12, CRU_ESCR0, escr(2, 1, 1 << 3 | 1), select(4)),
    ("uops_retired,nbogus,bogus,threshold=2", 12, CRU_ESCR0, escr(1, 3), select(4) | COMPARE | 2 << 20),
    ("uops_retired,nbogus,complement,edge,threshold=0xf", 12, CRU_ESCR0, escr(1, 1), select(4) | COMPARE | COMPLEMENT | EDGE | 0xF << 20),
    ("uops_retired,nbogus,compare", 12, CRU_ESCR0, escr(1, 1), select(4) | COMPARE),
    ("machine_clear,clear,edge", 12, CRU_ESCR2, escr(2, 1), select(5) | COMPARE | EDGE),
    ("machine_clear,moclear,smclear", 12, CRU_ESCR2, escr(2, 1 << 2 | 1 << 6), select(5)),
    ("retired_branch_type,call,return", 4, TBPU_ESCR0, escr(4, 1 << 2 | 1 << 3), select(2)),
    ("x87_fp_uop,all,tag=4", 8, FIRM_ESCR0, escr(4, 1 << 15, T0 | TAG_ENABLE | 4 << 5), select(1)),
    ("uop_type,tagloads,tag_enable", 12, 0x3BC, escr(2, 1 << 1, T0 | TAG_ENABLE), select(2)),
    ("bsq_allocation,req_type=writeback,req_len=eight,mem_type=wb,req_cache_type", 0, 0x3A0, escr(5, 3 | 3 << 2 | 6 << 11 | 1 << 7), select(7)),
    ("ioq_active_entries,type=0x1f,own", 2, 0x3A3, escr(0x1A, 0x1F | 1 << 13), select(6)),
])
def test_a_term_is_the_bits_that_the_manual_gives_it(written, terms, number, address, selection, filtered):
    assert written(f"netburst/{terms}/") == [[(cccr(number), filtered), (address, selection), (counter(number), 0),
                                              (cccr(number), filtered | ENABLE)]]


def test_a_counter_that_is_to_overflow_begins_so_far_below(written):
    first, second = written("-e", "netburst/instr_retired,nbogusntag,overflow=1000/,netburst/uops_retired,nbogus,cascade/")
    assert first == [(cccr(12), select(4)), (CRU_ESCR0, escr(2, 1)), (counter(12), (1 << 40) - 1000), (cccr(12), select(4) | ENABLE)]
    # The second counter is enabled only by the overflow of the first.
    assert second == [(cccr(14), select(4) | CASCADE), (CRU_ESCR1, escr(1, 1)), (counter(14), 0)]


RETIRED, COMPLETED, BRANCH = "instr_retired,nbogusntag", "instr_completed,nbogus", "branch_retired,mmtp"
STALLS = ["resource_stall,sbfull", "uop_type,tagloads"]


@pytest.mark.parametrize("events, starts", [
    # The counter of the event that overflows and those of the events that cascade after it, each
    # with its bit 30, or 11 for extended cascading. In each group, counters 0 and 2 can start each
    # other, and so can 1 and 3. Counters 14 and 15 can also start 16 and 17. By extended cascading,
    # 16 can start 12 and 17, and 17 can start 15 and 16.
    ([f"{RETIRED},overflow=9", f"{COMPLETED},cascade"], [(12, 0), (14, CASCADE)]),
    ([f"{RETIRED},overflow=9", f"{COMPLETED},cascade,overflow=9", f"{BRANCH},cascade"], [(12, 0), (14, CASCADE), (16, CASCADE)]),
    ([f"{RETIRED},overflow=9", f"{COMPLETED},cascade", f"{BRANCH},cascade"], [(16, 0), (17, EXTENDED), (12, EXTENDED)]),
    ([*STALLS, f"{RETIRED},overflow=9", f"{COMPLETED},cascade", f"{BRANCH},cascade"], [(17, 0), (16, EXTENDED), (15, EXTENDED)]),
    (["retired_branch_type,call,overflow=9", "tc_misc,flush,cascade"], [(4, 0), (6, CASCADE)]),
])
def test_counters_cascade_as_the_manual_couples_them(written, events, starts):
    found = written("-e", ",".join(f"netburst/{e}/" for e in events))[-len(starts):]
    assert [(writes[0][0] - cccr(0), writes[0][1] & (CASCADE | EXTENDED)) for writes in found] == starts
    # nhmtap enables only the first counter.
    assert [writes[-1][1] & ENABLE for writes in found if writes[-1][0] == writes[0][0]] == [ENABLE]


def test_the_manuals_example_of_extended_cascading_is_its_value(written):
    """It has 04038800H in MSR_IQ_CCCR0, with bit 26 for an interrupt: it counts instructions after
    counter 16 has overflowed."""
    (starter, *_), (follower, *_), _ = written("-e", "netburst/execution_event,nbogus0,overflow=4096/,"
                                               "netburst/instr_retired,nbogusntag,nbogustag,t0=none,t1=all,cascade/,"
                                               "netburst/mispred_branch_retired,nbogus,cascade/")
    assert starter[0] == cccr(16) and follower == (cccr(12), 0x04038800 & ~(1 << 26))


def test_a_replay_metric_writes_its_two_registers(written):
    (_, _, first, second, _, _), = written("netburst/replay_event,nbogus,metric=dtlb_store_miss/")
    assert (first, second) == ((0x3F1, 1 << 24 | 1 << 2), (0x3F2, 2))


def placed(written, *events):
    return [(writes[0][0] - cccr(0), writes[1][0]) for writes in written("-e", ",".join(f"netburst/{e}/" for e in events))]


def test_events_get_counters_and_escrs_of_their_own(written):
    assert placed(written, "instr_retired,nbogusntag", "uops_retired,nbogus", "branch_retired,mmtp", "machine_clear,clear") == \
        [(12, 0x3B8), (14, 0x3B9), (13, 0x3CC), (15, 0x3CD)]
    # Counter 1 must not be used. An event that has only one ESCR gets it, whatever comes before it.
    assert placed(written, "bsq_cache_reference,rd_2ndl_miss", "bsq_allocation,req_io_type") == [(2, 0x3A1), (0, 0x3A0)]
    # The first event moves to another of its counters, so that the last one gets a counter.
    assert placed(written, "page_walk_type,dtmiss", "bnr,bit0", "snoop,bit2") == [(2, 0x3AD), (0, 0x3A2), (3, 0x3A3)]


def test_all_four_groups_hold_as_many_events_as_they_have_counters(written):
    events = ["bpu_fetch_request,tcmiss", "bpu_fetch_request,tcmiss", "mob_load_replay,no_sta",  # BPU except counter 1
              "tc_misc,flush", "tc_misc,flush", "tc_ms_xfer,cisc", "tc_ms_xfer,cisc",
              "x87_fp_uop,all", "x87_fp_uop,all", "memory_cancel,64k_conf", "memory_cancel,64k_conf",
              "instr_retired,nbogusntag", "instr_retired,nbogusntag", "branch_retired,mmtp", "branch_retired,mmtp",
              "resource_stall,sbfull", "resource_stall,sbfull"]
    numbers = [number for number, _ in placed(written, *events)]
    assert sorted(numbers) == [n for n in range(18) if n != 1]


def facts():
    return {row["name"]: row for row in read_tsv("netburst.tsv")}


# Spellings of libpfm4 that are fields of several bits here, or have other names.
FIELDS = {"TYPE_BIT": "type", "REQ_TYPE": "req_type", "REQ_LEN": "req_len", "MEM_TYPE": "mem_type"}
OTHERWISE = {"uops_type": "uop_type"}
# events/netburst/contradictions.json: libpfm4 repeats bit 4.
BITS = {("b2b_cycles", "BIT5"): 5, ("b2b_cycles", "BIT6"): 6}


def term(event, mask):
    stem, number = mask[:-1], mask[-1]
    if stem in FIELDS:
        return f"{FIELDS[stem]}={1 << int(number):#x}"
    return "nbogus" if (event, mask) == ("mispred_branch_retired", "BOGUS") else mask.lower()


def test_every_mask_bit_is_libpfm4s(written):
    rows = [(name, row, *mask.split("=")) for name, row in facts().items() for mask in row["masks"].split()]
    metric = {"replay_event": ",metric=split_load"}
    events = [f"netburst/{OTHERWISE.get(name, name)},{term(name, mask)}{metric.get(name, '')}/" for name, _, mask, _ in rows]
    assert len(facts()) == 46 and len(events) == 171
    for (name, row, mask, bit), writes in zip(rows, written(*events), strict=True):
        bit = BITS.get((name, mask), int(bit))
        assert writes[1][1] == escr(int(row["code"], 16), 1 << bit), (name, mask)
        assert writes[-1][1] == select(int(row["select"])) | ENABLE, (name, mask)


REPLAYED = {"L1_LD_MISS": "l1_load_miss", "BR_MSP": "tagged_mispred_branch", "SP_ST_RET": "split_store"}


def test_libpfm4s_spelling_of_every_mask_is_the_same_event(written):
    rows = [(name, *mask.split("=")) for name, row in facts().items() for mask in row["masks"].split()]
    theirs = [f"netburst_p::{name}:{mask}" + (":SP_LD_RET" if name == "replay_event" else "") for name, mask, _ in rows]
    ours = [f"netburst/{OTHERWISE.get(name, name)},{term(name, mask)}" + (",metric=split_load/" if name == "replay_event" else "/")
            for name, mask, _ in rows]
    assert written(*theirs) == written(*ours)


@pytest.mark.parametrize("theirs, ours", [
    ("netburst_p::IOQ_allocation:TYPE_BIT0:OWN:TYPE_BIT2:k", "ioq_allocation,type=5,own,t0=os"),
    ("UOPS_RETIRED:NBOGUS:thr=3:BOGUS:E=1:u=1:k=0", "uops_retired,nbogus,bogus,threshold=3,edge,t0=usr"),
    ("uops_retired:NBOGUS:cmpl=0:thr=0:e=0:uk", "uops_retired,nbogus"),
    ("packed_SP_uop:ALL:TAG0:TAG3", "packed_sp_uop,all,tag=9"),
    ("tc_ms_xfer", "tc_ms_xfer,cisc"),
    *((f"replay_event:BOGUS:{name}", f"replay_event,bogus,metric={metric}") for name, metric in REPLAYED.items()),
])
def test_libpfm4s_modifiers_are_terms(written, theirs, ours):
    assert written(theirs) == written(f"netburst/{ours}/")


def test_libpfm4s_own_cases_give_its_registers(nhmtap, written):
    cases = [row.values() for row in read_tsv("libpfm4-cases.tsv") if row["event"].startswith("netburst")]
    assert len(cases) == 7
    for text, codes in cases:
        if codes == "refused":
            assert "up to 0xf" in nhmtap("explain", CPU, text).err
            continue
        selection, control = (int(code, 16) for code in codes.split(","))
        (_, (_, value), _, (_, enabled)), = written(text)
        # T1_OS and T1_USR are the second thread's; this machine's cores have one.
        assert (value, enabled) == (selection & ~T1, control), text
        event, = parse(nhmtap("explain", CPU, text).out)
        assert "libpfm4 encodes the levels of a second thread" in event["event"]["note"]


@pytest.mark.parametrize("text, words", [
    ("netburst_p::uops_retired:NOPE", "no such term"), ("uops_retired:", "no such term"),
    ("uops_retired:NBOGUS:u=2", "u=2"), ("netburst::uops_retired", "selects nothing of its event"),
    ("uops_retired:NBOGUS:u=0:k=0", "no level of no thread"), ("netburst_p::nothing:NBOGUS", "no event of this name")])
def test_what_libpfm4s_spelling_cannot_mean_is_refused(nhmtap, text, words):
    assert words in nhmtap("explain", CPU, text).err


def test_escrs_and_counters_are_the_kernels(nhmtap):
    table = {kind["name"]: kind for kind in json.loads((ROOT / "events/netburst/escr.json").read_text("utf-8"))["kinds"]}
    for name, row in facts().items():
        ours = [(e["name"].removeprefix("MSR_"), e["counters"]) for e in table[OTHERWISE.get(name, name)]["escrs"]]
        theirs = [(e, [int(c) for c in numbers.split(",")]) for e, numbers in
                  zip(row["kernel_escrs"].split(), row["kernel_counters"].split("/"), strict=True)]
        if name == "retired_mispred_branch_type":  # contradictions.json
            theirs[1] = ("TBPU_ESCR1", theirs[1][1])
        for e, numbers in theirs:
            assert set(numbers) <= set(dict(ours)[e]), (name, e)


@pytest.mark.parametrize("event, words", [
    ("netburst/instr_retired/", ["selects nothing of its event", "instr_retired,nbogusntag"]),
    ("netburst/instr_retired,nbogusntag,t0=none/", ["no level of no thread", "t0=all"]),
    ("netburst/instr_retired,nbogusntag,threshold=16/", ["up to 0xf"]),
    ("netburst/instr_retired,mmtp/", ["no such term", "bogustag", "cascade, overflow"]),
    ("netburst/instr_retired,nbogusntag,overflow=0/", ["1 to 0xffffffffff"]),
    ("netburst/instr_retired,nbogusntag,overflow=0x10000000000/", ["1 to 0xffffffffff"]),
    ("netburst/instr_retired,nbogusntag,metric=split_load/", ["no such term"]),
    ("netburst/replay_event,nbogus/", ["what a metric marks", "metric=l1_load_miss"]),
    ("netburst/replay_event,nbogus,metric=split/", ["no such metric", "split_load, split_store"]),
    ("netburst/instr_retired,nbogusntag/u", ["takes no modifiers"]),
])
def test_what_the_registers_cannot_say_is_refused_at_its_place(nhmtap, event, words):
    result = nhmtap("explain", CPU, event)
    assert result.status == 1 and result.out == "" and "^" in result.err
    assert all(word in result.err for word in words), result.err


@pytest.mark.parametrize("events, words", [
    (["instr_retired,nbogusntag", "uops_retired,nbogus", "instr_completed,nbogus"],
     ["instr_completed", "MSR_CRU_ESCR0 with 12 13 16, or MSR_CRU_ESCR1 with 14 15 17", "another run"]),
    (["ioq_active_entries,own", "bnr,bit0", "snoop,bit2"], ["'netburst/snoop", "leave nothing"]),
    (["instr_retired,nbogusntag", "uops_retired,nbogus,cascade"], ["no event before it overflows", "overflow=N"]),
    (["instr_retired,nbogusntag,overflow=9", "x87_fp_uop,all,cascade"], ["are coupled", "same group"]),
    (["retired_branch_type,call,overflow=9", "tc_misc,flush,cascade", "tc_ms_xfer,cisc,cascade"], ["tc_ms_xfer", "are coupled"]),
    (["instr_retired,nbogusntag,overflow=9", "uops_retired,nbogus,cascade", "branch_retired,mmtp,cascade", "machine_clear,clear,cascade"],
     ["machine_clear", "are coupled"]),
    (["replay_event,nbogus,metric=split_load", "replay_event,bogus,metric=split_load"], ["has a metric too"]),
])
def test_what_the_counters_cannot_do_together_is_refused(nhmtap, events, words):
    result = nhmtap("explain", CPU, "-e", ",".join(f"netburst/{e}/" for e in events))
    assert result.status == 1 and result.out == "" and all(word in result.err for word in words), result.err


def test_the_list_has_each_event_and_term(nhmtap):
    listed = [r for r in parse(nhmtap("list", CPU, "--json").out) if "netburst" in r["section"]]
    kinds = {r["name"].split("/")[1] for r in listed if r["name"].endswith("/")}
    assert kinds == {OTHERWISE.get(name, name) for name in facts()}
    terms = {r["name"] for r in listed if r["section"] == "netburst/…/, terms of all its events"}
    assert {"cascade", "overflow=N", "tag", "t0=usr", "t1=all", "threshold", "edge", "complement"} <= terms
    assert sum(r["name"].startswith("metric=") for r in listed) == 9
