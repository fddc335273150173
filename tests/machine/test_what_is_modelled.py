# SPDX-License-Identifier: GPL-2.0-only
"""Divisions, lines that leave the second-level cache, and requests for ownership: how often, and what
they cost. And what is not modelled says so."""
import pytest

import known
from guests import nhmtap

DIVIDE = known.numbers("divide")
EVICT = known.numbers("evict")
IN_CIRCLES = EVICT["lines"] * EVICT["circles"]
FEW = EVICT["few.lines"] * EVICT["few.circles"]
CYCLES = "CPU_CLK_UNHALTED.THREAD_P"
# The kernel's own lines, in an interrupt or a page fault, replace some of the program's, and the other way round.
KERNELS = 300


def about(number):
    return pytest.approx(number, abs=KERNELS)


def test_arith_div_counts_divisions(guest):
    names = ("ARITH.DIV", "ARITH.CYCLES_DIV_BUSY", "ARITH.MUL")
    found = nhmtap(guest, "stat", "-e", ",".join(name + ":u" for name in names), "--", "divide")
    values = [r["value"] for r in found if r["type"] == "count"]
    assert values == [DIVIDE["divisions"], DIVIDE["ARITH.CYCLES_DIV_BUSY"], DIVIDE["ARITH.MUL"]]


def test_the_divider_is_counted_by_cycles(guest):
    busy = DIVIDE["ARITH.CYCLES_DIV_BUSY"]
    names = {"with": "cpu/event=0x14,umask=1,cmask=1/u", "more": "cpu/event=0x14,umask=1,cmask=2/u",
             "begin": "cpu/event=0x14,umask=1,cmask=1,edge=1/u", "without": "cpu/event=0x14,umask=1,cmask=1,inv=1/u"}
    found = guest.counts([*names.values(), CYCLES], "divide")
    assert found[names["with"]] == busy
    assert found[names["more"]] == 0
    assert found[names["begin"]] == DIVIDE["divisions"]
    assert found[names["without"]] == pytest.approx(found[CYCLES] - busy, abs=2000)  # of two runs


def test_a_division_takes_its_latency(guest):
    found = guest.counts([CYCLES, "INST_RETIRED.ANY_P", "RESOURCE_STALLS.ANY"], "divide")
    busy = DIVIDE["ARITH.CYCLES_DIV_BUSY"]
    # Beyond these: a few lines of code and data that are fetched, and mispredictions at both ends.
    assert 0 <= found[CYCLES] - found["INST_RETIRED.ANY_P"] - busy < 5000
    assert 0 <= found["RESOURCE_STALLS.ANY"] - busy < 2000


def test_what_is_decoded_is_what_retires(guest):
    found = guest.counts(["INST_RETIRED.ANY_P", "MACRO_INSTS.DECODED", "INST_QUEUE_WRITES"], "count")
    assert set(found.values()) == {known.numbers("count")["INST_RETIRED.ANY_P"]}
    found = guest.counts(["BR_INST_RETIRED.ALL_BRANCHES", "BR_INST_DECODED"], "count")
    assert len(set(found.values())) == 1


def test_loads_replace_clean_lines_and_those_that_stores_left(guest):
    found = guest.counts(["L2_LINES_OUT.DEMAND_CLEAN", "L2_LINES_OUT.DEMAND_DIRTY", "r0ff2:u", "r07f1:u"], "evict l")
    assert found["L2_LINES_OUT.DEMAND_DIRTY"] == about(EVICT["left"])
    assert found["L2_LINES_OUT.DEMAND_CLEAN"] == about(IN_CIRCLES - EVICT["left"])
    assert found["r0ff2:u"] == found["L2_LINES_OUT.DEMAND_CLEAN"] + found["L2_LINES_OUT.DEMAND_DIRTY"]
    assert found["r07f1:u"] == about(IN_CIRCLES)


def test_stores_ask_for_ownership_and_replace_modified_lines(guest):
    found = guest.counts(["L2_WRITE.RFO.I_STATE", "r0f27:u", "L2_LINES_OUT.DEMAND_DIRTY", "L1D_WB_L2.E_STATE"], "evict s")
    assert found["L2_WRITE.RFO.I_STATE"] == about(IN_CIRCLES)
    assert found["r0f27:u"] == about(found["L2_WRITE.RFO.I_STATE"])
    assert found["L2_LINES_OUT.DEMAND_DIRTY"] == about(IN_CIRCLES)
    assert found["L1D_WB_L2.E_STATE"] == about(IN_CIRCLES)


@pytest.mark.parametrize("kind", ["r", "m"])
def test_lines_that_the_second_level_has_modified_come_in_and_go_so_whatever_asks_for_them(guest, kind):
    """Intel's list has M_REPL for "modified lines brought into the L1 data cache", so by loads as well as by stores."""
    found = guest.counts(["L1D.REPL", "L1D.M_REPL", "L1D.M_EVICT"], f"evict {kind}")
    for count in found.values():  # the first stores may find their lines, which the kernel has just cleared
        assert FEW - KERNELS < count < FEW + EVICT["few.lines"] + KERNELS


def test_stores_that_the_second_level_serves_are_asked_of_modified_lines(guest):
    found = guest.counts(["L2_WRITE.RFO.M_STATE", "r0e27:u", "L2_WRITE.RFO.I_STATE", "L1D_WB_L2.M_STATE"], "evict r")
    assert found["L2_WRITE.RFO.M_STATE"] == about(FEW)
    assert found["r0e27:u"] == about(FEW)
    assert found["L2_WRITE.RFO.I_STATE"] < KERNELS
    assert found["L1D_WB_L2.M_STATE"] == about(FEW - EVICT["few.lines"])


def test_locked_accesses_ask_for_ownership_apart(guest):
    found = guest.counts(["L2_WRITE.LOCK.I_STATE", "rf027:u", "r0f27:u", "L2_LINES_OUT.DEMAND_DIRTY"], "evict k")
    assert found["L2_WRITE.LOCK.I_STATE"] == found["rf027:u"] == about(IN_CIRCLES)
    assert found["r0f27:u"] < KERNELS
    assert found["L2_LINES_OUT.DEMAND_DIRTY"] == about(IN_CIRCLES)


def test_the_prefetcher_replaces_lines_apart(guest):
    found = guest.counts(["L2_LINES_OUT.DEMAND_CLEAN", "L2_LINES_OUT.PREFETCH_CLEAN", "r0ff2:u", "r07f1:u"], "evict l",
                         prefetch=True)
    assert found["L2_LINES_OUT.PREFETCH_CLEAN"] > 10 * KERNELS
    assert found["r0ff2:u"] == about(found["r07f1:u"]) == about(IN_CIRCLES)


def test_transactions_are_the_sum_of_their_kinds(guest):
    kinds = [f"r{1 << bit:02x}f0:u" for bit in range(7)]
    found = guest.counts([*kinds, "r80f0:u"], "evict s")
    assert found["r80f0:u"] == pytest.approx(sum(found[k] for k in kinds), rel=0.01)  # of three runs
    assert found["r02f0:u"] == about(IN_CIRCLES)


# ------------------------------------------------------------------ what is not modelled says so


def test_an_event_that_is_not_modelled_is_not_counted_and_the_record_says_why(guest):
    found = nhmtap(guest, "stat", "-e", "{INST_RETIRED.ANY_P:u,ITLB_FLUSH:u},r0306:u,r03a2:u", "--", "count")
    exact, flush, unknown, part = (r for r in found if r["type"] == "count")
    assert (exact["status"], exact["value"]) == ("counted", known.numbers("count")["INST_RETIRED.ANY_P"])
    for record in (flush, unknown):
        assert (record["status"], record["why"]) == ("not_counted", "the emulated machine does not model it")
    # Of RESOURCE_STALLS it models ANY, and not LOAD.
    assert part["status"] == "counted"


def test_samples_of_an_event_that_is_not_modelled_are_told_of_once(guest):
    said = guest.run("nhmtap profile -c 100 -e ITLB_FLUSH:u -o y -- true", paranoid=-1).stderr
    assert [line for line in said.splitlines() if "ITLB_FLUSH" in line] == [
        "nhmtap: ITLB_FLUSH:u: no samples: the emulated machine does not model it"]


def test_only_a_part_of_an_umask_is_said_to_be_modelled(guest):
    said = guest.run("nhmtap stat -e r03a2:u -o y -- true", paranoid=-1).stderr
    assert "r03a2:u: the emulated machine models only umask 0x01 of its 0x03" in said


def test_a_metric_of_what_is_not_modelled_has_no_value(guest):
    found = nhmtap(guest, "stat", "-e", "SQ_FULL_STALL_CYCLES:u,cycles:u", "--", "count")
    assert [r["status"] for r in found if r["type"] == "count"] == ["not_counted", "counted"]


def notes_of(guest, events, command="true"):
    guest.guest.notes.clear()
    guest.say(f"perf stat -o y -e {events} {command}", paranoid=-1)
    return guest.guest.notes


def test_the_user_of_another_tool_is_told_once_for_each_command(guest):
    for _ in range(2):
        assert notes_of(guest, "rae:u,r01ae:u,r01c0:u,r01ae:k", "sh -c 'count; count'") == [
            "event 0xae umask 0x00 is not modelled: it counts 0",
            "event 0xae umask 0x01 (ITLB_FLUSH) is not modelled: it counts 0",
        ]
    assert notes_of(guest, "cpu/event=0xd1,umask=1,cmask=1,inv=1/u") == [
        "event 0xd1 umask 0x01 (UOPS_DECODED.STALL_CYCLES) is not modelled: it counts every cycle"]
    assert notes_of(guest, "r03a2:u") == [
        "event 0xa2 umask 0x03 (RESOURCE_STALLS.LOAD) is not modelled but for umask 0x01: it counts only that"]


def test_nothing_is_said_of_what_is_modelled(guest):
    for event in ("r01c0:u", "r0f27:u", "r07f1:u", "cycles:u,ref-cycles:u,instructions:u,branches:u,branch-misses:u",
                  "cache-misses:u,LLC-loads:u,dTLB-load-misses:u,stalled-cycles-frontend:u,stalled-cycles-backend:u"):
        assert notes_of(guest, event) == []


def test_each_row_of_the_emulators_table_is_said_to_be_modelled(guest):
    asks_for_more = {(0xB7, 0x01), (0xBB, 0x01), (0x0B, 0x10)}  # a value of another register
    rows = sorted(set(known.events().values()) - asks_for_more)
    names = ",".join(f"r{umask:02x}{code:02x}:u" for code, umask in rows)
    found = nhmtap(guest, "stat", "-e", names, "--", "true")
    assert not [r["event"] for r in found if r["type"] == "count" and "model" in r.get("why", "")]
