# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap offcore on programs with known requests: the right cells have them, and the others have none."""
import json
import os
import random

import pytest

import known
import native
import otlp
import pages
import records
from guests import nhmtap

TURNS = known.numbers("steady")["turns"]
SLACK = 80  # the requests of a program's own start; see test_offcore.py
REQUESTS = ["DEMAND_DATA_RD", "DEMAND_RFO", "DEMAND_IFETCH"]
RESPONSES = ["LOCAL_DRAM", "REMOTE_DRAM", "LLC_HIT_NO_OTHER_CORE"]


def offcore(bench, command, *arguments, **options):
    return nhmtap(bench, "offcore", "--side", "u", *arguments, "--", *command.split(), **options)


def matrix(bench, command, requests, responses, *arguments, **options):
    """The record, and its cells by request and response."""
    found = offcore(bench, command, "--request", ",".join(requests), "--response", ",".join(responses),
                    *arguments, **options)
    record, = [r for r in found if r["type"] == "offcore"]
    return record, {(c["request"], c["response"]): c for c in record["cells"]}


@pytest.mark.parametrize("command, request_type", zip(["data", "rfo", "code"], REQUESTS))
def test_requests_are_in_their_cell_and_in_no_other(guest, command, request_type):
    n = known.numbers("offcore")[command + ".requests"]
    for row in REQUESTS:
        for column in RESPONSES:
            _, cells = matrix(guest, f"offcore {command}", [row], [column])
            cell = cells[row, column]
            assert cell["status"] == "counted"
            if (row, column) == (request_type, "LOCAL_DRAM"):
                assert n <= cell["value"] <= n + SLACK
                assert cell["bytes"] == 64 * cell["value"]
            else:
                assert cell["value"] <= SLACK, (row, column)


def test_what_is_asked_for_twice_or_by_two_names_is_one_line_of_the_matrix(guest):
    record, cells = matrix(guest, "offcore rfo", ["DEMAND_RFO", "DMND_RFO", "demand_rfo"], ["LOCAL_DRAM", "LOCAL_DRAM"], "-r", "auto")
    assert [(c["request"], c["response"]) for c in record["cells"]] == [("DEMAND_RFO", "LOCAL_DRAM")] == list(cells)
    assert cells["DEMAND_RFO", "LOCAL_DRAM"]["value"] >= known.numbers("offcore")["rfo.requests"]


def in_formats(guest, tmp_path, options):
    """{(request, response): its cell}, and {format: {(request, response): what it has}}, of a run on two requests and responses."""
    forms = ("json", "flat", "clickhouse", "openmetrics", "otlp")
    guest.say(f"nhmtap offcore --side u --request {','.join(REQUESTS[:2])} --response {','.join(RESPONSES[:2])} {options} "
              f"{' '.join(f'-o {form}=out.{form}' for form in forms)} -- steady short", paranoid=-1)
    texts = {}
    for form in forms:
        with open(guest.fetch(f"out.{form}", tmp_path), "rb") as file:
            texts[form] = file.read()
    record, = (r for r in records.parse(texts["json"].decode()) if r["type"] == "offcore")
    lines = texts["otlp"].decode().splitlines()
    found = {
        "flat": [(row, row.get("scaled")) for row in map(json.loads, texts["flat"].splitlines()) if "request" in row],
        "clickhouse": [(row, row["scaled"]) for row in native.rows(texts["clickhouse"]) if row["request"] and row["status"] != "not_counted"],
        "openmetrics": [(s.labels, s.value) for family in pages.families(texts["openmetrics"].decode()).values() for s in family.samples
                        if s.name == "nhmtap_offcore_responses_total"],
        "otlp": [(labels, point.as_int) for line in lines for labels, point in otlp.points(otlp.read(line), "nhmtap.offcore_responses")],
    }
    return ({(c["request"], c["response"]): c for c in record["cells"]},
            {form: {(of["request"], of["response"]): value for of, value in pairs if value is not None} for form, pairs in found.items()})


@pytest.mark.parametrize("options", ["", "-r 3"])
def test_every_format_has_what_a_cell_stands_for_and_no_number_of_one_that_was_not_counted(guest, tmp_path, options):
    """In turns a cell's count is a part of that; of three executions each counts one of nine cells."""
    cells, found = in_formats(guest, tmp_path, options)
    counted = {of: cell["scaled"] for of, cell in cells.items() if cell["status"] != "not_counted"}
    assert len(cells) == 9 and len(counted) == (3 if options else 9)
    assert options or any(cell["value"] < cell["scaled"] / 2 for cell in cells.values())
    assert found == dict.fromkeys(found, counted)
    assert all("no execution was left for it" in cell["why"] for of, cell in cells.items() if of not in counted)


def test_sixteen_cells_in_turns_are_each_near_the_truth(guest):
    found = offcore(guest, "steady", "--request", ",".join(REQUESTS), "--response",
                    ",".join(RESPONSES))
    start, = [r for r in found if r["type"] == "start"]
    cells = {(c["request"], c["response"]): c for r in found if r["type"] == "offcore" for c in r["cells"]}
    assert len(cells) == 16
    turn = start["pass_ms"] * 1e6 / len(cells)
    truth = {cell: 0 for cell in cells}
    for row, n in [("DEMAND_DATA_RD", TURNS), ("DEMAND_RFO", TURNS), ("all", 2 * TURNS)]:
        truth[row, "LOCAL_DRAM"] = truth[row, "all"] = n
    for name, cell in cells.items():
        assert cell["status"] == "multiplexed"
        scale = cell["enabled_ns"] / cell["running_ns"]
        # The kernel does not share the time evenly; a cell with few turns may be off by a part of
        # one.
        turns = cell["running_ns"] / turn
        allowed = 0.05 if turns >= 4 else 0.2 / turns
        assert abs(cell["scaled"] - truth[name]) <= allowed * truth[name] + SLACK * scale, (name, cell)
    # One register: never two at a time.
    enabled = max(c["enabled_ns"] for c in cells.values())
    assert 0.9 * enabled <= sum(c["running_ns"] for c in cells.values()) <= 1.01 * enabled


def test_cells_take_turns_along_the_diagonals(guest):
    found = offcore(guest, "offcore data", "--request", ",".join(REQUESTS), "--response",
                    ",".join(RESPONSES))
    names = [e["name"] for r in found if r["type"] == "start" for e in r["events"]]
    rows, columns = [*REQUESTS, "all"], [*RESPONSES, "all"]
    assert names == [f"{rows[i]}.{columns[(i + k) % 4]}" for k in range(4) for i in range(4)]


def test_by_repeating_the_matrix_of_a_program_is_exact(guest):
    """Each execution counts a different cell, from its beginning to its end."""
    found = offcore(guest, "offcore data", "-r", "auto", "--request", ",".join(REQUESTS), "--response",
                    ",".join(RESPONSES))
    record, = [r for r in found if r["type"] == "offcore"]
    assert record["repeated"]["executions"] == len(record["cells"]) == 16
    instructions = record["repeated"]["instructions"]
    assert instructions["executions"] == 16 and instructions["max"] <= 1.01 * instructions["min"]
    n = known.numbers("offcore")["data.requests"]
    for cell in record["cells"]:
        assert (cell["status"], cell["executions"], "bound" in cell) == ("counted", 1, False)
        there = cell["request"] in ("DEMAND_DATA_RD", "all") and cell["response"] in ("LOCAL_DRAM", "all")
        assert (n <= cell["value"] <= n + SLACK) if there else cell["value"] <= SLACK, cell
    assert record["remote_share"] <= SLACK / n and "remote_share_bound" not in record


def test_what_no_execution_counted_is_not_known_and_the_spread_of_the_others_is_told(guest):
    found = offcore(guest, "offcore data", "-r", "6", "--request", "DEMAND_DATA_RD", "--response",
                    "LOCAL_DRAM,REMOTE_DRAM")
    record, = [r for r in found if r["type"] == "offcore"]
    assert [c["executions"] for c in record["cells"]] == [2, 2, 2]
    first = record["cells"][0]
    assert first["min"] <= first["value"] <= first["max"] and first["stddev"] >= 0
    found = offcore(guest, "offcore data", "-r", "2", "--request", "DEMAND_DATA_RD", "--response",
                    "LOCAL_DRAM,REMOTE_DRAM")
    record, = [r for r in found if r["type"] == "offcore"]
    assert sorted((c["executions"], c["status"]) for c in record["cells"]) == [
        (0, "not_counted"), (1, "counted"), (1, "counted")]


def test_a_run_too_short_for_turns_knows_nothing_and_says_so(guest):
    """No cell is reported as about zero: each was not counted, or the truth is within its bound."""
    n = known.numbers("offcore")["rfo.requests"]
    truth = {(row, column): n * (row in ("DEMAND_RFO", "all") and column in ("LOCAL_DRAM", "all"))
             for row in [*REQUESTS, "all"] for column in [*RESPONSES, "all"]}
    _, cells = matrix(guest, "offcore rfo", REQUESTS, RESPONSES)
    assert set(cells) == set(truth)
    for name, cell in cells.items():
        if cell["status"] == "multiplexed":
            assert cell["bound"]["low"] <= truth[name] + SLACK, (name, cell)
            assert truth[name] <= cell["bound"]["high"], (name, cell)
        elif cell["status"] == "counted":  # the first, if the program ended before its turn did
            assert truth[name] <= cell["value"] <= truth[name] + SLACK
    assert "not_counted" in {cell["status"] for cell in cells.values()} or any(
        cell.get("bound", {}).get("readings") == 0 for cell in cells.values())


RUNS = int(os.environ.get("NHMTAP_RUNS", "12"))
TURN_OF_1_MS = "echo 1 > /sys/bus/event_source/devices/cpu/perf_event_mux_interval_ms; "


def phases(seed):
    """A command of phases whose order and lengths differ each time, and its requests."""
    chance = random.Random(seed)
    numbers = known.numbers("offcore")
    parts = ["steady short"] + ["offcore data"] * chance.randrange(8) + ["offcore rfo"] * chance.randrange(8)
    chance.shuffle(parts)
    data = parts.count("offcore data") * numbers["data.requests"] + TURNS // 4
    rfo = parts.count("offcore rfo") * numbers["rfo.requests"] + TURNS // 4
    return "; ".join(parts), data, rfo, len(parts)


def test_the_truth_is_in_the_bounds_of_at_least_95_of_100_runs(guest):
    """For programs with phases. NHMTAP_RUNS=100 makes a hundred runs."""
    held, known_high, shares = [], 0, []
    for seed in range(RUNS):
        command, data, rfo, parts = phases(seed)
        said = guest.say(f"{TURN_OF_1_MS} nhmtap offcore --side u --request DEMAND_DATA_RD,DEMAND_RFO "
                         f"--response LOCAL_DRAM,REMOTE_DRAM -- sh -c '{command}'", paranoid=-1)
        record, = [r for r in records.parse(said) if r["type"] == "offcore"]
        truth = {"DEMAND_DATA_RD": data, "DEMAND_RFO": rfo, "all": data + rfo}
        slack = SLACK * (parts + 2)
        for cell in record["cells"]:
            true = truth[cell["request"]] * (cell["response"] != "REMOTE_DRAM")
            bound = cell["bound"]
            held.append(bound["low"] <= true + slack and true <= bound.get("high", float("inf")))
            known_high += "high" in bound
        bound = record["remote_share_bound"]
        shares.append(bound["low"] <= slack / (data + rfo))
    assert sum(held) >= 0.95 * len(held), [i for i, ok in enumerate(held) if not ok]
    assert sum(shares) >= 0.95 * len(shares)
    # Most have turns enough to say something.
    assert known_high >= len(held) // 2


def test_a_sum_is_one_value_of_the_register(guest):
    found = offcore(guest, "offcore data", "--request", "DEMAND_DATA_RD,DEMAND_RFO", "--response",
                    "LOCAL_DRAM,REMOTE_DRAM")
    values = {(c["request"], c["response"]): c["offcore_rsp"] for r in found if r["type"] == "offcore"
              for c in r["cells"]}
    # Table 12: requests are bits 0 and 1, responses bits 14 and 13.
    assert values["all", "LOCAL_DRAM"] == "0x4003"
    assert values["DEMAND_RFO", "all"] == "0x6002"
    assert values["all", "all"] == "0x6003"


@pytest.mark.parametrize("cpu, share", [(0, 1), (1, 0)])
def test_the_remote_share_is_that_of_the_other_package(two_packages, cpu, share):
    record, _ = matrix(two_packages, f"taskset -c {cpu} steady short", ["DEMAND_DATA_RD"],
                       ["LOCAL_DRAM", "REMOTE_DRAM"], remote_from=0)
    assert abs(record["remote_share"] - share) <= 0.01


def test_the_prefetch_share_is_what_the_prefetcher_brings(guest):
    # Of each page's 64 lines the prefetcher leaves the first 3 to the loads.
    numbers = known.numbers("offcore")
    record, cells = matrix(guest, "offcore long-ahead", ["DEMAND_DATA_RD", "PF_DATA_RD"],
                           ["LOCAL_DRAM"], prefetch=True)
    left = numbers["ahead.left"] / numbers["ahead.requests"]
    assert {c["status"] for c in cells.values()} == {"multiplexed"}
    assert abs(record["prefetch_share"] - (1 - left)) <= 0.01
    without, _ = matrix(guest, "offcore long-ahead", ["DEMAND_DATA_RD", "PF_DATA_RD"], ["LOCAL_DRAM"])
    assert without["prefetch_share"] <= 0.001


def test_lines_that_another_core_has_modified_are_in_their_cell(two_cores):
    # One cell at a time: the program is too short for turns.
    found = {}
    for response in ["LLC_HIT_OTHER_CORE_HITM", "LLC_HIT_NO_OTHER_CORE"]:
        _, cells = matrix(two_cores, "bounce 0 1", ["DEMAND_DATA_RD"], [response])
        found[response] = cells["DEMAND_DATA_RD", response]["value"]
    modified = known.numbers("bounce")["modified"]
    assert 0.95 * modified <= found["LLC_HIT_OTHER_CORE_HITM"] <= 1.05 * modified
    assert found["LLC_HIT_NO_OTHER_CORE"] <= 0.05 * modified


def test_the_same_as_perf(guest):
    _, cells = matrix(guest, "offcore data", ["DEMAND_DATA_RD"], ["LOCAL_DRAM"])
    theirs = guest.perf_counts(["cpu/event=0xb7,umask=1,offcore_rsp=0x4001/u"], "offcore data")
    (cell,), (perfs,) = cells.values(), theirs.values()
    # The program's own start finds lines that earlier runs have left in the caches.
    assert min(cell["value"], perfs) >= known.numbers("offcore")["data.requests"] and abs(cell["value"] - perfs) <= SLACK


def test_each_cpu_by_itself(two_cores):
    result = two_cores.run("nhmtap offcore --side u -a --per-cpu --request DEMAND_DATA_RD --response "
                           "LOCAL_DRAM -- taskset -c 1 offcore data", paranoid=-1)
    assert result.status == 0, str(result)
    found = {r["cpu"]: r["cells"][0]["value"] for r in records.parse(result.stdout)
             if r["type"] == "offcore"}
    n = known.numbers("offcore")["data.requests"]
    assert n <= found[1] <= n + 2000  # and what starts it
    assert found[0] <= 2000


def test_each_cgroup_by_itself(guest):
    result = guest.run("cd /sys/fs/cgroup; mkdir -p one other; nhmtap offcore --side u --format json "
                       "--for-each-cgroup one,other --request DEMAND_DATA_RD --response LOCAL_DRAM -- "
                       "sh -c 'echo $$ > one/cgroup.procs; exec offcore data'", paranoid=-1)
    assert result.status == 0, str(result)
    found = {r["cgroup"]: r["cells"][0] for r in records.parse(result.stdout) if r["type"] == "offcore"}
    n = known.numbers("offcore")["data.requests"]
    assert n <= found["one"]["value"] <= n + 2000  # and what starts it
    assert (found["other"]["value"], found["other"]["status"]) == (0, "not_counted")
