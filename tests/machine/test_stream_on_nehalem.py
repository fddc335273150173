# SPDX-License-Identifier: GPL-2.0-only
"""Loads one by one, with their latencies, and conditions on them."""
import collections

import pytest

import known
from records import check_stream, parse_among

CHASE = known.numbers("chase")
LOADS = "-e cpu/mem-loads,ldlat=5/pp -c 97"


def run(guest, command):
    records = parse_among(guest.say(command))
    check_stream(records)
    return records


def of(records, kind):
    return [record for record in records if record["type"] == kind]


def test_each_load_of_a_chain_has_its_latency_and_its_function(guest):
    records = run(guest, f"nhmtap stream {LOADS} --fields addr,latency,source,symbol --format json -- chase llc")
    chain = [r for r in of(records, "sample") if r["code"].get("symbol") == "chase_site"]
    # A load waits 38 cycles for the third level, and 7 for the second level of the TLB.
    assert len(chain) >= 20 and {r["latency"] for r in chain} <= {38, 45} and {r["source"] for r in chain} == {"l3_hit"}
    turns = CHASE["llc.loads"] // CHASE["llc.lines"]
    times = collections.Counter(r["address"] for r in chain)
    assert max(times.values()) <= turns, "each turn loads from a line once"
    assert not any(int(address, 16) % 64 for address in times)


@pytest.mark.parametrize("command", ["profile --by symbol", "mem", "stream --fields latency"])
def test_a_condition_and_its_opposite_are_the_whole(guest, command):
    """The program runs in each kernel's verifier, with as many comparisons as there is room for."""
    condition = " || ".join(["cpu == 77"] * 14 + ["period > 1000000", "comm == nobody"][:1] + ["pid > 0 "])
    both = []
    for text in (condition, f"!({condition})"):
        event = LOADS if command != "profile --by symbol" else "-e page-faults:u -c 1"
        records = run(guest, f"nhmtap {command} {event} --where '{text}' --format json -- chase llc")
        both.append(of(records, "end")[0]["samples"])
    assert both[0]["aggregated"] > 0 and "filtered" not in both[0]
    assert both[1]["aggregated"] == 0 and both[1]["filtered"] > 0


@pytest.mark.parametrize("command", [
    "profile -e page-faults:u -c 1 --by comm", "profile -e instructions:u -c 10007 --by comm", "mem -e page-faults:u -c 1 --by comm",
    "branch -e branches:u -c 1009 --by edge,comm", "stream -e page-faults:u -c 1 --fields comm"])
def test_a_program_is_chosen_by_a_name_of_any_length(any_kernel, command):
    for name in ("a", "seven77", "eight888", "nine99999", "fifteen15letter"):
        any_kernel.say(f"cp $(command -v chase) /run/{name}")
        found = []
        for text in (f'comm=="{name}"', f'comm!="{name}"', f'comm=="{name[:-1]}z"'):
            found += of(run(any_kernel, f"nhmtap {command} --where '{text}' --format json -- /run/{name} l2"), "end")
        its, others, of_another = (record["samples"] for record in found)
        assert its["aggregated"] > 5 and "filtered" not in its, name
        assert others["aggregated"] == of_another["aggregated"] == 0 and others["filtered"] > 5 < of_another["filtered"], name


def test_loads_are_chosen_by_their_latency_and_source(guest):
    samples = {}
    for text in ("source==l3_hit && latency>=38", "source!=l3_hit || latency<38"):
        records = run(guest, f"nhmtap stream {LOADS} --fields latency,source --where '{text}' --format json -- chase llc")
        samples[text] = of(records, "sample")
    hits, others = samples.values()
    assert len(hits) >= 20 and all(r["source"] == "l3_hit" and r["latency"] >= 38 for r in hits)
    assert all(r["source"] != "l3_hit" or r["latency"] < 38 for r in others)


def test_a_condition_may_be_on_what_is_not_shown(guest):
    numbers = []
    for fields in ("ip,latency", "ip"):
        records = run(guest, f"nhmtap stream {LOADS} --fields {fields} --where 'latency>=38' --format json -- chase llc")
        numbers.append(len([r for r in of(records, "sample") if r["ip"] == hex(known.addresses("chase")["chase_site"])]))
        assert all(("latency" in r) == ("latency" in fields) for r in of(records, "sample"))
    # Where the first sample lies moves one at each end.
    assert min(numbers) >= 20 and abs(numbers[0] - numbers[1]) <= 2


def test_a_sample_has_the_branches_before_it(guest):
    """In graph, a calls b at the label a_b, and b returns there."""
    records = run(guest, "nhmtap stream -e branches:u -c 997 --fields ip,branches,symbol --format json -- graph")
    samples = [r for r in of(records, "sample") if r["branches"]]
    assert len(samples) >= 20 and max(len(r["branches"]) for r in samples) == 16
    pairs = {(b["from"].get("symbol"), b["to"].get("symbol")) for r in samples for b in r["branches"]}
    assert {("a_b", "b"), ("b", "a_b")} <= pairs
    assert {b["mispredicted"] for r in samples for b in r["branches"]} == {False, True}


def test_a_load_has_its_physical_address(machines):
    """From Linux 6.3 on."""
    records = run(machines(kernel="6.12"), f"nhmtap stream {LOADS} --fields addr,phys,phys_page,stack --format json -- chase llc")
    samples = [r for r in of(records, "sample") if r["physical_address"] != "0x0"]
    assert len(samples) >= 20
    for r in samples:
        physical, address = int(r["physical_address"], 16), int(r["address"], 16)
        assert physical & ~4095 == int(r["phys_page"], 16) and physical & 4095 == address & 4095
    assert any(r["stack"] for r in samples)
