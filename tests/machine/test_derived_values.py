"""Metrics of programs whose counts follow from their text, on the emulated Nehalem."""
import json
import os
import re

import pytest

import known
import nehalem

EVENTS = os.path.join(nehalem.HERE, "../../events")
COUNT = known.numbers("count")
NAME = re.compile(r"[A-Z][A-Z0-9_.]*")


def table(cpu):
    with open(os.path.join(EVENTS, cpu, "metrics.json"), encoding="utf-8") as file:
        return json.load(file)


def derived(said):
    records = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return {record["metric"]: record for record in records if record["type"] == "metric"}


@pytest.fixture
def metrics(guest):
    """The metric records of a program by name."""
    def run(names, *arguments):
        return derived(guest.say("nhmtap", "stat", "-M", names, *arguments, "--", "count"))
    return run


def test_no_bound_of_a_share_is_beyond_all_of_it(guest):
    """The events take turns in a run that is too short to read them often. Nearly all cycles are stalled ones. The program takes
    2.8 ms: with turns of 4 ms, the first group had all of them in four of ten runs."""
    said = guest.say("echo 1 > /sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms; "
                     "nhmtap stat -q -M retire_stall_share,issue_stall_share,l1d_load_miss_ratio,l2_miss_ratio,branch_share,ipc "
                     "-e MEM_INST_RETIRED.LOADS,MEM_INST_RETIRED.STORES,L1I.READS,L1I.MISSES,cycles -- chase memory")
    metrics = derived(said)
    bounds = [metric["bound"] for metric in metrics.values() if metric["unit"] == "%" and "bound" in metric]
    assert bounds and all(bound["low"] <= bound["high"] <= 100 for bound in bounds)
    assert any(bound.get("capped") and bound["high"] == 100 for bound in bounds)
    assert "capped" not in metrics["ipc"].get("bound", {})


def test_stat_without_options_derives_what_perf_stat_prints(guest):
    said = guest.say("nhmtap", "stat", "--", "count")
    told = derived(said)
    assert {record["explains"]: name for name, record in told.items()} == {
        "task-clock": "cpus_utilized", "context-switches": "context_switches_per_second",
        "cpu-migrations": "migrations_per_second", "page-faults": "page_faults_per_second", "cycles": "ghz",
        "instructions": "ipc", "branches": "branches_per_second", "branch-misses": "branch_miss_ratio"}
    counts = {record["event"]: record["value"] for record in map(json.loads, said.splitlines())
              if record["type"] == "count"}
    assert told["ipc"]["value"] == pytest.approx(counts["instructions"] / counts["cycles"])
    assert told["branch_miss_ratio"]["value"] == pytest.approx(100 * counts["branch-misses"] / counts["branches"])
    assert counts["instructions"] >= COUNT["INST_RETIRED.ANY_P"]


def inputs(record):
    return {entry["event"]: entry["value"] for entry in record["inputs"]}


@pytest.mark.parametrize("name, value", [
    ("branch_share", 100 * COUNT["BR_INST_RETIRED.ALL_BRANCHES"] / COUNT["INST_RETIRED.ANY_P"]),
    ("load_share", 100 * COUNT["MEM_INST_RETIRED.LOADS"] / COUNT["INST_RETIRED.ANY_P"]),
    ("store_share", 100 * COUNT["MEM_INST_RETIRED.STORES"] / COUNT["INST_RETIRED.ANY_P"]),
    ("loads_per_store", 6 / 5),
])
def test_a_metric_is_what_the_programs_text_says(metrics, name, value):
    record = metrics(f"{name}:u")[f"{name}:u"]
    assert record["value"] == pytest.approx(value, rel=1e-12)
    assert (record["running_share"], record["together"]) == (1, True)


def test_each_input_is_what_perf_counts(metrics, guest):
    # Only counts that follow from the program are the same in two runs; those of caches and
    # predictors are not.
    found = inputs(metrics("branch_share:u")["branch_share:u"])
    assert found == {
        "BR_INST_RETIRED.ALL_BRANCHES:u": guest.count("BR_INST_RETIRED.ALL_BRANCHES", "count"),
        "INST_RETIRED.ANY:u": guest.count("INST_RETIRED.ANY_P", "count")}


def test_cycles_and_instructions_are_of_one_time(metrics):
    both = metrics("ipc:u,cpi:u")
    assert both["ipc:u"]["inputs"] == both["cpi:u"]["inputs"][::-1]
    assert both["ipc:u"]["value"] * both["cpi:u"]["value"] == pytest.approx(1)


def stalls(guest, command, latency=""):
    """A program's cycles without issue: those for lack of resources, and those for lack of
    micro-operations."""
    said = derived(guest.say(f"nhmtap stat -M starved_share:u -- {command}", latency=latency))["starved_share:u"]
    assert (said["running_share"], said["together"]) == (1, True)
    issue, room, cycles = (inputs(said)[event + ":u"] for event in
                           ("UOPS_ISSUED.STALL_CYCLES", "RESOURCE_STALLS.ANY", "CPU_CLK_UNHALTED.THREAD"))
    assert said["value"] == pytest.approx(100 * (issue - room) / cycles)
    return room, issue - room


@pytest.mark.parametrize("memory", [190, 290])
def test_a_chain_through_memory_waits_in_the_back_end(guest, memory):
    # Each load stalls it for the cycles of memory, less the four of any load. Page walks, one in 64
    # loads, are added to this. The front end delivers the chain's few instructions without delay.
    room, starved = stalls(guest, "chase memory", f"4,10,38,65,75,{memory},310,200")
    loads = known.numbers("chase")["memory.loads"]
    assert loads * (memory - 4) <= room <= 1.01 * loads * (memory - 4)
    assert starved <= 0.01 * room


def test_branches_that_nobody_can_foretell_starve_the_back_end(guest):
    # 17 cycles for each misprediction, and some for the first fetches of code. Of the data only the
    # first load from the table stalls.
    mispredicted = guest.count("BR_MISP_EXEC.ANY", "graph")
    room, starved = stalls(guest, "graph")
    assert mispredicted > known.numbers("graph")["N"] / 2
    assert starved == pytest.approx(17 * mispredicted, rel=0.02)
    assert room <= 1000


def test_every_metric_of_the_cpu_can_be_counted(guest):
    """Counted one after the other, each metric has a value, or its divisor is 0 for this
    program, or the machine does not model its events and says so."""
    names = " ".join(metric["name"] for metric in table("nehalem-ep"))
    found = derived(guest.say(f"for m in {names}; do nhmtap stat -M $m -C 0 -- count; done",
                              timeout=900))
    unmodelled = 0
    for metric in table("nehalem-ep"):
        record = found[metric["name"]]
        if "the emulated machine does not model it" in record.get("why", ""):
            assert "value" not in record
            unmodelled += 1
            continue
        assert record["running_share"] == 1 and record["together"], record
        values = inputs(record)
        assert values.keys() == set(NAME.findall(metric["formula"]))
        formula = NAME.sub(lambda name: f"values['{name[0]}']", metric["formula"])
        if "value" in record:
            assert record["value"] == pytest.approx(eval(formula, {"values": values}), rel=1e-9)
        else:
            assert record["why"].startswith("it would be divided by")
            with pytest.raises(ZeroDivisionError):
                eval(formula, {"values": values})
    assert unmodelled < len(table("nehalem-ep")) / 4


def test_all_metrics_at_once_share_the_counters_and_say_so(metrics):
    names = ",".join(metric["name"] for metric in table("nehalem-ep"))
    found = metrics(names, "-C", "0")
    assert len(found) == len(table("nehalem-ep"))
    assert all(record["together"] for record in found.values())
    assert all(record["running_share"] < 1 for record in found.values())


def test_a_metric_whose_counters_others_hold_is_absent_with_the_reason(guest):
    # Four pinned events hold all general counters of the CPU.
    held = ",".join(f"r{umask}c4:D" for umask in ("01", "02", "04", "10"))
    said = guest.say(
        f"nhmtap stat -C 0 -e {held} -o held & until [ -s held ]; do sleep 0.01; done; "
        "nhmtap stat -M branch_mispredict_ratio -C 0 -- count")
    record, = derived(said).values()
    assert "value" not in record
    assert record["why"].startswith("BR_MISP_EXEC.ANY was not counted: it never got a counter: others hold")
