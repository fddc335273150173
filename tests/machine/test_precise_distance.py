# SPDX-License-Identifier: GPL-2.0-only
"""How far apart samples are. The overflow of a counter arms PEBS, and the next event is recorded (the guide's
section 3.5) and not counted: the kernel's period is one less than what a precise sample stands for. Here samples are
as far apart as was asked, their periods and what was lost add up to what the program did, and at a distance without a
factor in common with a loop no instruction of it is left out."""
import collections
import json
import math
import subprocess

import pytest

import pprof
import records

TURNS = 4000
# A turn is 16 instructions, 12 of them loads and 3 branches.
PROGRAM = f"""
	.globl	_start, turn
_start:	lea	word(%rip), %rbx
	mov	${TURNS}, %ecx
turn:	.rept	12
	mov	(%rbx), %rax
	.endr
	jmp	1f
1:	jmp	2f
2:	dec	%ecx
	jnz	turn
	mov	$60, %eax
	xor	%edi, %edi
	syscall
	.data
word:	.quad	0
"""
# With those before and after the turns. The system call is a branch.
INSTRUCTIONS, LOADS, BRANCHES = 2 + 16 * TURNS + 3, 12 * TURNS, 3 * TURNS + 1
OF_A_TURN = {INSTRUCTIONS: 16, LOADS: 12, BRANCHES: 3}

# The most times that the kernel stops a counter in a run, which takes 6 ms.
STOPS = 3

LATENCY = "cpu/event=0xb,umask=0x10,ldlat=3/"
RETIRED, TAKEN = "INST_RETIRED.ANY_P:", "BR_INST_RETIRED.ALL_BRANCHES:"
KINDS = {
    "profile": [("profile --by ip", event + level, executed) for level in ("u", "up", "upp")
                for event, executed in ((RETIRED, INSTRUCTIONS), (TAKEN, BRANCHES))],
    "mem": [("mem --by ip", LATENCY + level, LOADS) for level in ("up", "upp")],
    "branch": [("branch --by edge", TAKEN + level, BRANCHES) for level in ("u", "up", "upp")],
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("even") / "even"
    subprocess.run(["gcc", "-nostdlib", "-static", "-x", "assembler", "-o", path, "-"], input=PROGRAM, text=True,
                   check=True)
    return path.read_bytes()


def run(bench, program, commands):
    """The records of several runs."""
    lines = [f"nhmtap {command} --format json -o {i} -- ./even >&2 && cat {i} && echo" for i, command in enumerate(commands)]
    # By default the kernel stops an event after 400 samples in one of its ticks. It takes another rate only while
    # it watches the time that interrupts take.
    rate = "echo 25 > perf_cpu_time_max_percent; echo 1000000 > perf_event_max_sample_rate; echo 0 > perf_cpu_time_max_percent"
    done = bench.run(f"(cd /proc/sys/kernel && {rate}); cat > even; chmod +x even; " + "; ".join(lines), paranoid=-1, stdin=program, tag_all_loads=True)
    assert done.status == 0, str(done)
    found = [records.parse(text + "\n") for text in done.stdout.rstrip().split("\n\n")]
    for stream in found:
        records.check_stream(stream)
    return found


def closes(stream, executed, distance):
    """Checks the account of a run."""
    start, end = stream[0], stream[-1]
    whole = [r for r in stream if r["type"] == start["command"]]
    assert start["events"][0]["sample_distance"] == distance
    assert sum(r.get("value", 0) for r in whole) == executed
    account = end["samples"]
    assert not any(account["lost"].values()) and account["uncertainty"] == 1
    # In some alignments a period is begun anew, and the sample that it would have given is the account's uncertainty.
    assert account["expected"] == account["aggregated"]
    assert 0 <= executed // distance - account["aggregated"] <= account["uncertainty"]
    if start["command"] != "branch":
        entries = [e for r in whole for e in r["entries"]]
        assert all(e["period"] == e["samples"] * distance for e in entries)
        assert sum(e["samples"] for e in entries) == account["aggregated"]


def is_even(stream, executed, distance):
    """Checks that samples reach as many of a turn's instructions as they can, each as often. Where the
    kernel stops the counter while a record is due (at its tick, 4 ms apart, or a switch), the record
    is of an event later: the samples go on an instruction further. If they don't reach all, they
    are of others from then on; if they do, one has a sample more and another one less."""
    of_a_turn = OF_A_TURN[executed]
    found = collections.Counter()
    for record in stream:
        for entry in record.get("entries", ()):
            found[entry["ip"]] += entry["samples"]
    usual = [n for n in found.values() if n > 1]
    reached = of_a_turn // math.gcd(of_a_turn, distance)
    if reached < of_a_turn:
        assert reached <= len(usual) <= 2 * reached
    else:
        assert len(usual) == reached and max(usual) - min(usual) <= 1 + STOPS


@pytest.mark.parametrize("asked, distance", [(32, 33), (100, 100), (500, 500), (501, 501), (1009, 1009)])
@pytest.mark.parametrize("kind", KINDS)
def test_periods_add_up_to_what_was_executed_and_samples_are_evenly_spread(guest, program, kind, asked, distance):
    # Nehalem's driver refuses periods below 32: precise samples are at least 33 apart.
    runs = [run for run in KINDS[kind] if asked > 32 or run[1].endswith("p")]
    streams = run(guest, program, [f"{command} -e {event} -c {asked}" for command, event, _ in runs])
    for stream, (_, _, executed) in zip(streams, runs, strict=True):
        closes(stream, executed, distance)
        if kind != "branch":
            is_even(stream, executed, distance)


def test_samples_of_a_frequency_stand_for_the_period_that_the_driver_raised_too(guest, program):
    # The kernel's period begins at 1 and stays below 32 then, which samples tell and the driver raises.
    stream, = run(guest, program, [f"profile --by ip -e {TAKEN}upp -F 20000"])
    record, = [r for r in stream if r["type"] == "profile"]
    assert record["value"] == BRANCHES and not any(record["samples"]["lost"].values())
    assert all(entry["period"] == 33 * entry["samples"] for entry in record["entries"])
    # At a tick the kernel may begin the period anew (perf_adjust_period(), kernel/events/core.c): what was counted of it
    # gets no sample then. The run is too short for two ticks.
    assert 0 <= BRANCHES - sum(entry["period"] for entry in record["entries"]) < 2 * 33


def test_a_count_of_cycles_is_said_to_be_the_least_where_records_may_take_several(guest):
    # In a chain of loads from memory most cycles are those of stalls: a record is of the end of one.
    command = "--format json -- chase memory | grep -v '\"type\":\"frames\"'"
    counted, *profiles = [[json.loads(line) for line in guest.say(f"nhmtap {run} {command}", paranoid=-1).splitlines()]
                          for run in ("stat -e cycles:u", "profile --by comm -c 101 -e cycles:upp", "profile --by comm -c 1009 -e INST_RETIRED.ANY_P:upp")]
    cycles, = (r["value"] for r in counted if r["type"] == "count")
    for stream, least in zip(profiles, (True, False)):
        accounts = [r["samples"] for r in stream if r["type"] in ("profile", "end")]
        assert all(account.get("at_least", False) == least for account in accounts) and len(accounts) == 2
        assert ("several may occur at once" in stream[0]["events"][0].get("note", "")) == least
    value, = (r["value"] for r in profiles[0] if r["type"] == "profile")
    assert value < 0.7 * cycles


@pytest.mark.parametrize("event, least", [("cycles:pp", True), ("cpu/event=0x3c/p", True), ("UOPS_RETIRED.ANY:pp", True),
                                          ("cpu/event=0xc0,cmask=16,inv/pp", True), ("r01c7:pp", True),
                                          ("instructions:pp", False), ("r01cb:pp", False), ("cycles", False)])
def test_explain_says_which_events_records_may_take_several_of(guest, event, least):
    said = guest.say(f"nhmtap explain --format json -c 1009 '{event}'")
    rules = [rule["rule"] for line in said.splitlines() for rule in json.loads(line).get("rules", ())]
    assert rules and any("least values" in rule for rule in rules) == least


def test_pprofs_period_and_that_of_a_streams_samples_are_the_distance(guest, program, tmp_path):
    stream, _ = run(guest, program, [f"mem --stream -e {LATENCY}upp -c 1009",
                                     f"profile -o pprof=profile.pb.gz -e {RETIRED}upp -c 1009"])
    samples = [record for record in stream if record["type"] == "sample"]
    assert [sample["period"] for sample in samples] == [1009] * (LOADS // 1009)
    profile = pprof.read(guest.fetch("profile.pb.gz", tmp_path))
    assert profile.period == 1009
    weights = [i for i, kind in enumerate(profile.sample_type) if profile.string_table[kind.type].startswith(RETIRED)]
    assert [sum(sample.value[i] for sample in profile.sample) for i in weights] == [INSTRUCTIONS // 1009 * 1009]


@pytest.mark.parametrize("asked, distance", [(1, 3), (2, 3), (3, 3), (101, 101)])
def test_the_same_on_a_sandy_bridge_whose_driver_refuses_no_period(sandybridge, program, asked, distance):
    # x86_perf_event_set_period() raises periods to 2.
    stream, = run(sandybridge, program, [f"profile --by ip -e BR_INST_RETIRED.CONDITIONAL:upp -c {asked}"])
    closes(stream, TURNS, distance)


def test_the_same_on_a_core_2(core2, program):
    stream, = run(core2, program, ["profile --by ip -e r00c0:upp -c 1009"])
    closes(stream, INSTRUCTIONS, 1009)
    is_even(stream, INSTRUCTIONS, 1009)


def test_the_same_on_a_westmere(westmere, program):
    stream, = run(westmere, program, ["profile --by ip -e INST_RETIRED.ANY_P:upp -c 33"])
    closes(stream, INSTRUCTIONS, 33)
    is_even(stream, INSTRUCTIONS, 33)
