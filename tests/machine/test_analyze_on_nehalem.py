# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap analyze on the emulated Nehalem: programs that one thing holds back, and mixtures of them. What a load costs
there is the machine's own number (user/machine/README.md), so that the share of a program's loads follows from its
text and the cycles that perf's event counts."""
import json
import os
import re
import subprocess

import pytest

import known
from records import PROGRAMS, check_stream, parse, parse_among

CHASE = known.numbers("chase")
# Cycles of a load beyond those of a hit in the first level.
COST = {"l2": 10 - 4, "llc": 38 - 4, "memory": 190 - 4}
SHARE = {"l2": "l2_bound", "llc": "l3_bound", "memory": "dram_bound"}


def analyze(guest, command, *options, before="true", status=0, where="--no-where"):
    """The records of an analysis of this line of a shell."""
    done = guest.run(f"{before} && nhmtap analyze -q {where} --format json {' '.join(options)} -- {command}")
    assert status in (None, done.status), str(done)
    records = parse_among(done.stdout)
    check_stream(records)
    return records


def merged(records):
    """The analysis, whose parts have more shares, with these by name."""
    parts = [record for record in records if record["type"] == "analysis"]
    return {**parts[0], "shares": {share["name"]: share for part in parts for share in part["shares"]}}


def verdict(analysis):
    return [one["name"] for one in analysis["verdict"]]


def cycles(guest, command):
    said = guest.say(f"nhmtap stat -r 3 -e cycles --format json -- {command}")
    return next(record["mean"] for record in map(json.loads, said.splitlines()) if record["type"] == "summary")


def loaded(level, whole):
    """The share that the loads of a chase take."""
    return CHASE[f"{level}.loads"] * COST[level] / whole


def test_code_of_more_pages_than_the_caches_hold_is_bound_by_its_fetches(guest):
    analysis = merged(analyze(guest, "codepages"))
    assert verdict(analysis)[0] == "fetch_beyond"
    # They overlap with nothing there, but most come from the third level, for less than the highest cost.
    assert analysis["shares"]["frontend_bound"]["share"] > 0.5


def test_unforeseeable_branches_are_the_largest_cause_of_stalls(guest):
    shares = merged(analyze(guest, "graph"))["shares"]
    causes = {name: share["share"] for name, share in shares.items() if "cost" in share and "share" in share}
    assert max(causes, key=causes.get) == "branch_mispredicts"
    assert shares["bad_speculation"]["share"] == pytest.approx(causes["branch_mispredicts"])


def test_the_parts_of_the_whole_add_up_to_it(guest):
    shares = merged(analyze(guest, "chase llc"))["shares"]
    assert shares["retiring"]["share"] + shares["stalled"]["share"] == pytest.approx(1)
    explained = sum(share.get("serial", share["share"]) for share in shares.values()
                    if "cost" in share and "share" in share)
    assert explained + shares["unexplained"]["share"] == pytest.approx(shares["stalled"]["share"])


def test_what_the_machine_does_not_model_is_not_taken_for_nothing(guest):
    shares = merged(analyze(guest, "count"))["shares"]
    assert "share" not in shares["machine_clears"]
    assert "the emulated machine" in shares["machine_clears"]["why"]


def test_sandy_bridges_slots_add_up(machines):
    analysis = merged(analyze(machines(model="sandybridge"), "sh -c 'graph && bound code'"))
    shares = {name: share["share"] for name, share in analysis["shares"].items() if not share.get("beside")}
    assert analysis["whole"] == "slots" and shares.pop("slots") == 1
    assert sum(shares.values()) == pytest.approx(1, abs=0.01) and min(shares.values()) > 0.02


def test_what_holds_up_a_sandy_bridges_back_end_is_named(machines):
    """Its places are those of all cycles, so the load has most of them, not nearly all."""
    parts = sampled(merged(analyze(machines(model="sandybridge"), "chase memory", where="--where 1")), "backend_bound")
    assert max(parts, key=parts.get) == "chase_site" and parts["chase_site"] > 0.5


def test_westmeres_walks_are_counted_in_cycles(machines):
    shares = merged(analyze(machines(model="westmere"), "stride"))["shares"]
    assert shares["dtlb_walk"]["events"] == ["DTLB_LOAD_MISSES.WALK_CYCLES"] and shares["dtlb_walk"]["share"] > 0
    assert shares["retiring"]["share"] + shares["stalled"]["share"] == pytest.approx(1)


def test_a_core_2s_two_counters_count_one_event_of_a_group_beside_the_cycles_or_two(core2):
    shares = {name: one["share"] for name, one in merged(analyze(core2, "chase memory"))["shares"].items() if "share" in one}
    assert shares["executing"] + shares["stalled"] == pytest.approx(1)


def test_the_load_that_misses_a_core_2s_second_level_is_named(core2):
    """It takes nearly all cycles. Of what is executed it is one instruction of seven: `turn` has four, which are as often."""
    analysis = merged(analyze(core2, "chase memory", where="--where 2"))
    assert sampled(analysis, "dram_bound")["chase_site"] >= 0.98
    assert "MEM_LOAD_RETIRED.L2_LINE_MISS" in analysis["shares"]["dram_bound"]["sampled"]["by"]
    parts = sampled(analysis, "executing")
    assert 3 < parts["turn"] / parts["chase_site"] < 5


def test_an_expectation_is_judged_by_the_bounds(guest):
    records = analyze(guest, "chase memory", "--expect", "'dram_bound>50%'", "--expect", "'memory_bound<20%'",
                      "--expect", "'dram_bound<85%'", status=4)
    assert [record["outcome"] for record in records if record["type"] == "expectation"] == ["met", "failed", "cannot_tell"]


@pytest.mark.parametrize("target", ["", "-a"])
def test_the_time_in_which_nothing_runs_is_told_beside_the_shares(guest, target):
    """The program takes some 3 ms."""
    waits = merged(analyze(guest, "sh -c 'chase memory; sleep 0.5'", target))["shares"]["halted"]
    works = merged(analyze(guest, "sh -c 'chase memory; chase memory; chase memory'", target))["shares"]["halted"]
    assert waits["beside"] and 0.8 < waits["low"] and waits["share"] > 0.9 and waits["meaning"].startswith("It waits")
    assert works["share"] < 0.5


def test_a_process_that_never_runs_is_halted_all_the_time(guest):
    records = analyze(guest, "", "-p $! --duration 0.1", before="sleep 100 & true")
    assert merged(records)["shares"]["halted"]["share"] == 1


def test_the_two_threads_of_a_core_are_told_apart(machines):
    records = analyze(machines(threads=2), "", "-a --per cpu --duration 0.3", before="(while :; do taskset 1 chase memory; done) & true")
    parts = [record for record in records if record["type"] == "analysis"]
    halted = {}
    for cpu in (0, 1):
        own = [record for record in parts if record["cpu"] == cpu]
        assert own[0]["cores_shared"]
        halted[cpu] = merged(own)["shares"]["halted"]["share"]
    assert halted[0] < 0.5 < halted[1]


FALSE = [{"name": "twice", "left": "2 * CPU_CLK_UNHALTED.THREAD", "right": "CPU_CLK_UNHALTED.THREAD", "percent": 2,
          "withdraws": "bad_speculation", "source": "reasoning"}]


def test_counts_that_disagree_withdraw_what_depends_on_them(guest):
    table = f"mkdir -p t/nehalem-ep && echo '{json.dumps(FALSE)}' > t/nehalem-ep/identities.json"
    analysis = merged(analyze(guest, "count", "--events-dir", "t", before=table))
    assert {one["name"] for one in analysis["identities"] if one["outcome"] == "disagrees"} == {"twice"}
    for name in ("bad_speculation", "branch_mispredicts"):
        assert "share" not in analysis["shares"][name] and "why" in analysis["shares"][name]
    # Nobody knows what it takes, so it may be all that stalls.
    assert analysis["shares"]["memory_bound"]["low"] == 0


def test_cpus_are_analyzed_by_interval_while_groups_take_turns(guest):
    records = analyze(guest, "sh -c 'while :; do chase llc; done'", "-a", "-I", "400", "--interval-count", "2", status=None)
    analyses = [record for record in records if record["type"] == "analysis" and record.get("part", 1) == 1]
    assert len(analyses) == 2 and all("start_time" in record for record in analyses)
    share = merged([record for record in records if record["type"] == "analysis"][-2:])["shares"]["l3_bound"]
    assert share["low"] <= share["share"] <= share["high"]


def test_who_holds_the_counters_of_an_analysis_in_a_session_is_named(guest):
    """The kernel schedules the events of CPUs before those of a program. Five of them take turns on the four general counters,
    of which none is left for a group that needs some."""
    five = ",".join(f"r{code}" for code in ("01c2", "00c4", "01cb", "02cb", "04cb"))
    config = {"activities": [{"name": "where", "command": "analyze", "interval_ms": 1000},
                             {"name": "whole", "command": "stat", "event": five, "all_cpus": True}]}
    said = guest.say(f"echo '{json.dumps(config)}' > c && nhmtap run c -- chase memory")
    records = parse_among(said)
    shares = merged([record for record in records if record["activity"] == "where"])["shares"]
    assert shares["retiring"]["why"] == "CPU_CLK_UNHALTED.THREAD was not counted: it never got a counter: the events are " \
                                        "more than the core has counters: they take turns, and its turn did not come; or " \
                                        "this session's whole, or others, hold the counters that it can use"


def test_shares_are_rows_and_gauges(guest):
    """In each format the numbers are those of the record."""
    said = guest.say("cd /tmp && nhmtap analyze -q --no-where -o json=j -o flat=f -o openmetrics=m -- chase llc && cat j f m")
    records = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    shares = merged([record for record in records if record["type"] == "analysis"])["shares"]
    measured = {name: (share["share"], share["low"], share["high"]) for name, share in shares.items() if "share" in share}
    assert {record["name"]: (record["value"], record["low"], record["high"]) for record in records
            if record["type"] == "flat" and "name" in record and "value" in record} == measured
    gauges = {(end, name): float(value) for end, name, value in
              re.findall(r'^\w*analysis_share(_low|_high|)_ratio\{[^}]*share="(\w+)"[^}]*\} (\S+)', said, re.M)}
    assert gauges == pytest.approx({(end, name): numbers[i] for name, numbers in measured.items()
                                    for i, end in enumerate(("", "_low", "_high"))})


# --- where ----------------------------------------------------------------------------------------

def sampled(analysis, name):
    """Of a share, the part of the samples that each place in the code has: its function, or those of an edge."""
    return {(place["symbol"], place["to"]["symbol"]) if "to" in place else place["symbol"]: place["share"]
            for place in analysis["shares"][name]["where"] if "symbol" in place}


def test_the_load_that_waits_for_memory_is_named(guest):
    analysis = merged(analyze(guest, "chase memory", where="--where 1"))
    assert sampled(analysis, "dram_bound")["chase_site"] >= 0.98
    assert "MEM_UNCORE_RETIRED.LOCAL_DRAM:pp" in analysis["shares"]["dram_bound"]["sampled"]["by"]
    assert [name for name, share in analysis["shares"].items() if "sampled" in share] == ["dram_bound"]


def test_code_whose_samples_come_too_densely_for_the_kernel_has_its_part(nhmtap):
    """Of the loads from memory, in_memory has 40,000, one after the other, and in_last_level one for each of the 16,384
    lines that the larger list displaced. A thousand samples of these come faster than the kernel takes samples. The divider,
    which is busy while the lists are made, and what retires come first."""
    result = nhmtap("analyze", "--machine", "-q", "-r", "2", "--where", "3", "--", os.path.abspath(f"{PROGRAMS}/levels"))
    share = merged(result.records)["shares"]["dram_bound"]
    part = {place["symbol"]: place["share"] for place in share["where"]}
    assert 1.8 < part["in_memory"] / part["in_last_level"] < 3.2
    assert share["sampled"]["samples"] >= 100 and "throttled" not in share["sampled"]


def test_what_is_found_by_cycles_has_one_sample_of_many_cycles(guest):
    """No precise event is of fetches, so their place is that of the cycles, however few the fetches are. Samples of every
    few cycles would be of the kernel's work for samples."""
    share = merged(analyze(guest, "codepages", where="--where 1"))["shares"]["fetch_beyond"]
    period = int(re.fullmatch("profile -e cycles --by line -c ([0-9]+)", share["sampled"]["by"])[1])
    assert period > 1000 and share["where"][0]["symbol"] == "turn" and share["where"][0]["share"] > 0.5


# Of a turn's 16 instructions, `small` has 2. Of the pages that `spread` loads from, one line each, the second-level TLB has all,
# the first-level TLB half at most, and the first-level cache all lines.
SMALL_AND_SPREAD = """
	.globl	_start, turn, small, spread
_start:	mov	$20000, %ecx
	jmp	turn
	.p2align 6
turn:	mov	%rdx, %rax
	shl	$13, %rax
	xor	%rax, %rdx
	mov	%rdx, %rax
	shr	$7, %rax
	xor	%rdx, %rax
	mov	%rax, %rdx
	shl	$17, %rdx
	xor	%rax, %rdx
	mov	%rdx, %rdi
	call	small
	add	%rax, %rsi
	sub	$1, %ecx
	jne	turn
	mov	$400, %ecx
	call	spread
	mov	$60, %eax
	xor	%edi, %edi
	syscall
	.p2align 6
small:	xor	%eax, %eax
	ret
	.p2align 6
spread:	lea	pages(%rip), %rbx
	mov	$128, %edx
1:	mov	(%rbx), %rax
	add	$4096 + 64, %rbx
	dec	%edx
	jnz	1b
	dec	%ecx
	jnz	spread
	ret
	.bss
	.p2align 12
pages:	.skip	130 * 4160
"""


def test_each_function_has_its_part_of_what_retires_and_of_hits_in_the_second_level_tlb(nhmtap, tmp_path):
    program, out = tmp_path / "parts", tmp_path / "out"
    subprocess.run(["gcc", "-nostdlib", "-static", "-x", "assembler", "-o", program, "-"], input=SMALL_AND_SPREAD, text=True, check=True)
    nhmtap("analyze", "--machine", "-q", "-r", "2", "--where", "2", "-o", out, "--", program)
    shares = merged(parse(out.read_text()))["shares"]
    parts = {name: {place.get("symbol"): place["share"] for place in shares[name]["where"]} for name in ("retiring", "dtlb_second")}
    assert 0.09 < parts["retiring"]["small"] / (parts["retiring"]["small"] + parts["retiring"]["turn"]) < 0.16
    assert parts["dtlb_second"]["spread"] > 0.95 and shares["dtlb_second"]["sampled"]["samples"] >= 100


def test_what_a_load_costs_is_measured_in_the_same_run(guest):
    """The machine serves a load in 10, 38 or 190 cycles, of which a load from the first level takes 4."""
    for level, cost in COST.items():
        analysis = merged(analyze(guest, f"chase {level}", where="--where 1"))
        share = analysis["shares"][SHARE[level]]
        # The bounds hold in 95 of 100 runs. In the others they miss by a part of their distance, which is small here.
        assert share["cost"]["samples"] >= 20 and share["cost"]["low"] - 1 <= cost <= share["cost"]["high"] + 1, level
        # A hit in the second level of the TLB, 7 cycles, may be in it.
        assert share["cost"]["high"] - share["cost"]["low"] < 8, level
        # The runs of stat are others, with a little more or less of the kernel.
        built = loaded(level, cycles(guest, f"chase {level}"))
        assert 0.98 * share["low"] <= built <= 1.02 * share["high"], level
        assert "0x10" in share["data"][0]["page"], level


def test_the_branches_that_nobody_can_foresee_are_named_by_their_edges(guest):
    """`coin`, and the call through a register, which goes to either of two functions."""
    edges = sampled(merged(analyze(guest, "graph", where="--where 2")), "branch_mispredicts")
    assert set(list(edges)[:3]) == {("coin", "coin_to"), ("main_x", "c"), ("main_x", "d")}


def test_branches_that_nobody_can_foresee_are_named_by_their_lines(nhmtap, tmp_path):
    """A call of `coins` has two branches, on two lines. Only the upper one is of a random bit."""
    (tmp_path / "coins.c").write_text("""
        static unsigned int number = 1, heads, all;
        __attribute__((noinline)) static void coins(int i)
        {
            number = number * 1664525 + 1013904223;
            if (number >> 31) __asm__ volatile("incl %0" : "+m"(heads));
            if (i >= 0) __asm__ volatile("incl %0" : "+m"(all));
        }
        int main(void) { for (int i = 0; i < 20000; i++) coins(i); }
    """)
    subprocess.run(["gcc", "-g", "-O1", "-fno-if-conversion", "coins.c", "-o", "coins"], check=True, cwd=tmp_path)
    result = nhmtap("analyze", "--machine", "-q", "-r", "2", "--where", "3", "--", str(tmp_path / "coins"))
    places = merged(result.records)["shares"]["branch_mispredicts"]["where"]
    assert (os.path.basename(places[0]["file"]), places[0]["to"]["symbol"]) == ("coins.c", "coins")
    # The others are of the program's start, most of them the kernel's.
    assert {place["line"] for place in places if place["symbol"] == "coins"} == {6}


def test_cpus_are_watched_as_long_again_to_find_the_code(guest):
    records = analyze(guest, "", "-a", "--duration", "0.2", before="(while :; do chase memory; done) & true",
                      where="--where 2", status=None)
    assert records[-1]["type"] == "end"
    share = merged(records)["shares"]["dram_bound"]
    assert share["where"][0]["symbol"] == "chase_site" and share["sampled"]["samples"] > 0


# The first execution only warms up. Here the second ends by itself, the third never does.
ENDLESS = ("echo 'echo x >> runs; [ $(wc -l < runs) -lt 3 ] && exec chase l2; echo > third; while :; do :; done' > nth")
WAIT = "while ! [ -e third ]; do usleep 1000; done; kill $!; wait $!"


def test_an_execution_that_a_signal_ended_is_in_no_share(guest):
    result = guest.run(f"{ENDLESS}; nhmtap analyze -q --expect 'stalled<99.9%' --expect 'itlb_walk<99%' -o out -- sh nth & "
                       f"{WAIT}; echo $?; cat out")
    status, records = result.stdout.split("\n", 1)
    found = parse(records)
    executions = {r["executions"] for r in found if r["type"] == "analysis" and "executions" in r}
    assert status == "143" and executions == {1}
    shares = merged(found)["shares"]
    assert (shares["stalled"]["low"], shares["stalled"]["high"]) == (0, 1)  # one execution has no spread
    assert shares["itlb_walk"]["why"] == "ITLB_MISSES.WALK_COMPLETED was not counted before a signal ended the run"
    assert {r["outcome"] for r in found if r["type"] == "expectation"} == {"cannot_tell"}


def test_executions_of_offcore_that_a_signal_ended_are_in_no_cell(guest):
    """Each execution counts another cell. The second is the last whole one."""
    result = guest.run(f"{ENDLESS}; nhmtap offcore -r auto --side u --request DEMAND_DATA_RD --response LOCAL_DRAM,UNCORE_HIT "
                       f"-o out -- sh nth & {WAIT}; cat out")
    record, = (r for r in parse(result.stdout) if r["type"] == "offcore")
    assert record["repeated"]["executions"] == 2
    assert [cell["executions"] for cell in record["cells"]] == [1, 1, 0]
    assert record["cells"][2]["why"] == "a signal ended the run before an execution had counted it"


def hot(annotation):
    """The place in the file that has most of the samples."""
    most = max((one for one in annotation["instructions"] if "samples" in one), key=lambda one: one["samples"])
    return int(most["offset"], 16), most


def in_file(symbol):
    """Where a symbol of chase is in its file: its code begins at a page, and so does the part of the file."""
    return known.addresses("chase")[symbol] % 0x1000


def test_the_code_of_the_largest_share_is_annotated_if_asked(guest):
    records = analyze(guest, "chase memory", "-r 2 --annotate", where="--where 1")
    annotation, = (record for record in records if record["type"] == "annotation")
    assert annotation["of_share"] == "dram_bound" and annotation["function"] == "chase_site"
    place, most = hot(annotation)
    assert place % 0x1000 == in_file("chase_site") and most["samples"] > 0.9 * annotation["sampled"]


def test_costs_and_annotations_tell_that_the_kernel_paused_their_sampling(guest):
    """With so low a limit, it pauses a run of the fewest samples, too. A load of such a chain costs 186 cycles there, and the
    table says from 143 to 217."""
    limit = "cd /proc/sys/kernel && echo 25 > perf_cpu_time_max_percent && echo 1000 > perf_event_max_sample_rate"
    records = analyze(guest, "sh -c 'for i in 1 2 3 4 5 6 7 8; do chase memory; done'", "-r 2 --annotate", before=limit,
                      where="--where 1")
    cost = merged(records)["shares"]["dram_bound"]["cost"]
    assert cost["throttled"] > 0 and cost["samples"] >= 20 and cost["low"] <= 143 and cost["high"] >= 217
    annotation, = (record for record in records if record["type"] == "annotation")
    assert any("the kernel paused the sampling" in why for why in annotation["why"])


# Why a share is not annotated.
UNANNOTATED = {
    "chase memory": ("dram_bound", "the code that has most of its samples has no name, in {program}"),
    "graph": ("branch_mispredicts", "it is found by branch, whose samples are not of instructions"),
}


@pytest.mark.parametrize("command", UNANNOTATED)
def test_a_share_whose_code_cannot_be_annotated_says_why(nhmtap, tmp_path, command):
    name, *arguments = command.split()
    program, out = tmp_path / name, tmp_path / "out"
    subprocess.run(["strip", "-o", program, known.path(name)], check=True)
    nhmtap("analyze", "--machine", "-q", "--annotate", "-r", "2", "-o", out, "--", program, *arguments)
    records = parse(out.read_text())
    share, why = UNANNOTATED[command]
    assert merged(records)["shares"][share]["sampled"]["unannotated"] == why.format(program=program)
    assert share not in {record["of_share"] for record in records if record["type"] == "annotation"}


def test_loads_are_annotated_with_their_latency_and_source(guest):
    said = guest.say("nhmtap mem -q -c 50 --annotate chase_site --format json -- chase memory")
    annotation = next(record for record in parse(said) if record["type"] == "annotation")
    place, most = hot(annotation)
    assert place % 0x1000 == in_file("chase_site")
    assert most["latency_mean"] == pytest.approx(190, abs=5)
    assert max(most["sources"], key=most["sources"].get).startswith("local_dram")
