# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap analyze of stored records: counts that are made up, so that each share is known."""
import json
import subprocess

import pytest
from records import NHMTAP, parse

CYCLES, STALLED, L2, DRAM = ("CPU_CLK_UNHALTED.THREAD", "UOPS_RETIRED.STALL_CYCLES", "MEM_LOAD_RETIRED.L2_HIT",
                             "MEM_UNCORE_RETIRED.LOCAL_DRAM")
# As the documents encode them: guide, Table. The kernel numbers its own event of cycles 0.
ATTRS = {CYCLES: {"type": 4, "config": "0x3c"}, STALLED: {"type": 4, "config": "0x18001c2"},
         L2: {"type": 4, "config": "0x2cb"}, DRAM: {"type": 4, "config": "0x200f"}, "cycles": {"type": 0, "config": "0x0"}}
NEHALEM = {"vendor": "GenuineIntel", "family": 6, "model": 26, "stepping": 5, "model_name": "Intel(R) Xeon(R) CPU X5570"}


RESOURCE = {"host.name": "there", "host.arch": "amd64", "os.type": "linux", "process.pid": 1, "process.executable.name": "nhmtap"}


def record(number, **members):
    return {"schema_version": "3.5.0", "time": f"2026-01-01T00:00:0{number}Z", "run_id": "0" * 32, "seq": number,
            "activity": "stat", **members}


def stream(tmp_path, name, counts, cpu=None, side="", keys=({},)):
    """A file of records: of events with their counts, or (count, low, high)."""
    sides = {"": {}, ":u": {"exclude_kernel": 1}}[side]
    events = [{"name": event + side, "type": "PERF_TYPE_RAW", "attr": {"read_format": "0x3"} | ATTRS[event] | sides} for event in counts]
    records = [record(0, type="start", version="0.1.0", command="stat", resource=RESOURCE, target={"cpus": "0-7"},
                      host={"cpu": cpu or NEHALEM, "cpus_online": 8, "kernel": "6.1.0"}, events=events)]
    for of in keys:
        for event, count in counts.items():
            value, *bound = count if isinstance(count, tuple) else (count,)
            records.append(record(len(records), type="count", event=event + side, status="counted", scaled=value,
                                  start_time="2026-01-01T00:00:00Z", duration_ns=10 ** 9,
                                  **of, **({"bound": {"low": bound[0], "high": bound[1]}} if bound else {})))
    path = tmp_path / name
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    return path


def analysis(result):
    assert result.status == 0, result.err
    parts = [one for one in result.records if one["type"] == "analysis"]
    return {**parts[0], "shares": {share["name"]: share for part in parts for share in part["shares"]}}


COUNTS = {CYCLES: 1000, STALLED: 600, L2: 40}
RESOURCES = "RESOURCE_STALLS.ANY"
ATTRS |= {RESOURCES: {"type": 4, "config": "0x1a2"}}
# The sources of loads, and the instructions that load.
SOURCES = {f"MEM_LOAD_RETIRED.{name}": umask for name, umask in {"L1D_HIT": 1, "LLC_UNSHARED_HIT": 4, "OTHER_CORE_L2_HIT_HITM": 8,
                                                                 "LLC_MISS": 16, "HIT_LFB": 64}.items()}
LOADS = "MEM_INST_RETIRED.LOADS"
ATTRS |= {name: {"type": 4, "config": hex(umask << 8 | 0xCB)} for name, umask in SOURCES.items()} | {LOADS: {"type": 4, "config": "0x10b"}}


@pytest.mark.parametrize("ended", [True, False])
def test_a_stream_whose_start_is_in_parts_is_said_to_be_cut_only_if_it_is(nhmtap, tmp_path, ended):
    """As the start of analyze is, whose events are many."""
    path = stream(tmp_path, "a", COUNTS)
    start, *counts = (json.loads(line) for line in path.read_text().splitlines())
    events = start.pop("events")
    whole = [start | {"part": i + 1, "parts": len(events), "events": [event]} for i, event in enumerate(events)] + counts
    whole += [record(0, type="end", reason="exited", duration_ns=1, exit_status=0)] * ended
    path.write_text("".join(json.dumps(one | {"seq": i}) + "\n" for i, one in enumerate(whole)))
    assert ("the stream has no end" in nhmtap("analyze", path).err) == (not ended)


def test_counts_make_the_shares_whose_events_they_have(nhmtap, tmp_path):
    shares = analysis(nhmtap("analyze", stream(tmp_path, "a", COUNTS)))["shares"]
    assert (shares["stalled"]["share"], shares["retiring"]["share"]) == pytest.approx((0.6, 0.4))
    # 40 loads at 6 cycles each: the cost of the table.
    assert shares["l2_bound"]["serial" if "serial" in shares["l2_bound"] else "share"] == pytest.approx(0.24)
    assert "not counted in these records" in shares["dram_bound"]["why"]


@pytest.mark.parametrize("loads, outcome", [(340, "agrees"), (60, "agrees"), (500, "disagrees")])
def test_an_instruction_may_have_several_loads_but_no_load_is_without_a_source(nhmtap, tmp_path, loads, outcome):
    """A repeated string instruction retires once, and all of its loads have a source."""
    counts = COUNTS | dict.fromkeys(SOURCES, 0) | {"MEM_LOAD_RETIRED.L1D_HIT": 300, LOADS: loads}
    found = analysis(nhmtap("analyze", stream(tmp_path, "a", counts)))
    assert {one["name"]: one["outcome"] for one in found["identities"]}["loads_by_source"] == outcome
    assert ("share" in found["shares"]["l2_bound"]) == (outcome == "agrees")


def test_records_come_from_stdin_and_other_names_of_an_event_are_the_same(nhmtap, tmp_path):
    path = stream(tmp_path, "a", {"cycles": 1000, STALLED: 250})
    with open(path, encoding="utf-8") as file:
        said = subprocess.run([NHMTAP, "analyze"], stdin=file, capture_output=True, text=True, check=True).stdout
    assert next(share for one in parse(said) for share in one.get("shares", ())
                if share["name"] == "stalled")["share"] == pytest.approx(0.25)


def test_an_event_that_was_counted_under_two_names_is_not_added_up(nhmtap, tmp_path):
    ATTRS["again"] = ATTRS[STALLED]
    path = stream(tmp_path, "a", {"cycles": 1000, CYCLES: 1000, STALLED: 250, "again": 250})
    assert analysis(nhmtap("analyze", path))["shares"]["stalled"]["share"] == pytest.approx(0.25)


def test_counts_of_one_side_are_told_as_such(nhmtap, tmp_path):
    found = analysis(nhmtap("analyze", stream(tmp_path, "a", COUNTS, side=":u")))
    assert found["side"] == "user" and found["shares"]["stalled"]["share"] == pytest.approx(0.6)


def test_the_bounds_of_counts_are_those_of_shares(nhmtap, tmp_path):
    path = stream(tmp_path, "a", {CYCLES: 1000, STALLED: (500, 400, 700)})
    stalled = analysis(nhmtap("analyze", path))["shares"]["stalled"]
    assert stalled["low"] <= 0.4 and stalled["high"] >= 0.7


def test_intervals_are_added_up(nhmtap, tmp_path):
    path = stream(tmp_path, "a", COUNTS)
    start, *counts = map(json.loads, path.read_text().splitlines())
    later = [one | {"seq": one["seq"] + 3, "start_time": "2026-01-01T00:00:01Z", "scaled": 3 * one["scaled"]} for one in counts]
    later[1]["scaled"] = 0
    path.write_text("".join(json.dumps(one) + "\n" for one in [start, *counts, *later]))
    assert analysis(nhmtap("analyze", path))["shares"]["stalled"]["share"] == pytest.approx(600 / 4000)


def test_each_row_has_an_account(nhmtap, tmp_path):
    result = nhmtap("analyze", stream(tmp_path, "a", COUNTS, keys=({"cpu": 0}, {"cpu": 1})))
    assert [one["cpu"] for one in result.records if one["type"] == "analysis" and one.get("part", 1) == 1] == [0, 1]


@pytest.mark.parametrize("stalled, changed", [(610, True), ((610, 590, 630), False), ((700, 620, 780), True)])
def test_a_difference_within_the_bounds_is_no_change(nhmtap, tmp_path, stalled, changed):
    before = stream(tmp_path, "a", COUNTS)
    now = stream(tmp_path, "b", COUNTS | {STALLED: stalled})
    share = analysis(nhmtap("analyze", before, now))["shares"]["stalled"]
    assert share["before"]["share"] == pytest.approx(0.6) and share["changed"] == changed
    said = nhmtap("analyze", "--format", "table", before, now).out
    assert ("stalled" in said.split("Changed by more than the bounds:")[-1] if changed
            else "No share has changed by more than the bounds" in said)


def test_an_analysis_that_was_stored_is_told_as_it_was(nhmtap, tmp_path):
    path, stored = stream(tmp_path, "a", COUNTS), tmp_path / "stored"
    stored.write_text(nhmtap("analyze", path).out)
    once, twice = nhmtap("analyze", path), nhmtap("analyze", stored)
    assert analysis(once)["shares"] == analysis(twice)["shares"] and analysis(once)["verdict"] == analysis(twice)["verdict"]


def test_of_several_intervals_of_an_analysis_the_mean_is_told(nhmtap, tmp_path):
    halves = [nhmtap("analyze", stream(tmp_path, name, COUNTS | {STALLED: stalled})).records
              for name, stalled in (("a", 200), ("b", 800))]
    path = tmp_path / "both"
    start = halves[0][0] | {"run_id": "1" * 32, "seq": 0}
    records = [start] + [one | {"run_id": "1" * 32, "seq": i, "start_time": f"2026-01-01T00:00:0{half}Z", "duration_ns": 10 ** 9}
                         for half in range(2) for i, one in enumerate(halves[half][1:-1], 1 + half * len(halves[0]))]
    path.write_text("".join(json.dumps(one) + "\n" for one in records))
    found = analysis(nhmtap("analyze", path))
    assert found["shares"]["stalled"]["share"] == pytest.approx(0.5) and found["duration_ns"] == 2 * 10 ** 9


def test_a_verdict_of_several_intervals_keeps_what_is_not_measured_and_may_be_the_largest(nhmtap, tmp_path):
    """What stalls may be the loads from DRAM alone, which nobody has counted: in each interval, and so in both."""
    halves = [nhmtap("analyze", stream(tmp_path, name, COUNTS | {STALLED: stalled})).records
              for name, stalled in (("a", 500), ("b", 700))]
    path = tmp_path / "both"
    records = [one | {"start_time": f"2026-01-01T00:00:0{half}Z", "duration_ns": 10 ** 9} for half in range(2) for one in halves[half][half:-1]]
    path.write_text("".join(json.dumps(one | {"run_id": "1" * 32, "seq": seq}) + "\n" for seq, one in enumerate(records)))
    verdicts = [analysis(nhmtap("analyze", file))["verdict"] for file in (tmp_path / "a", tmp_path / "b", path)]
    for verdict in verdicts:
        assert {"retiring", "dram_bound", "unexplained"} <= {one["name"] for one in verdict}
    meanings = [{one["name"]: one.get("meaning") for one in verdict}["dram_bound"] for verdict in verdicts]
    assert meanings[0] == meanings[2]
    # A share that is measured can't be more than it was: loads from L2 take at most 0.24 of the cycles.
    assert "l2_bound" not in {one["name"] for one in verdicts[2]}


@pytest.mark.parametrize("limit, status", [("stalled<70%", 0), ("stalled<50%", 4), ("dram_bound<5%", 3)])
def test_an_expectation_is_judged_by_stored_records(nhmtap, tmp_path, limit, status):
    result = nhmtap("analyze", "--expect", limit, stream(tmp_path, "a", COUNTS))
    assert result.status == status, result.err


@pytest.mark.parametrize("limit", ["stalled<0.7", "stalled<70", "stalled<70ms"])
def test_a_limit_of_stored_shares_without_percent_is_refused(nhmtap, tmp_path, limit):
    assert "is in percent" in said(nhmtap("analyze", "--expect", limit, stream(tmp_path, "a", COUNTS)), 1)


def said(result, status):
    assert result.status == status and not result.out
    return result.err


def test_what_makes_no_account_is_refused_with_the_reason(nhmtap, tmp_path):
    unknown = stream(tmp_path, "a", COUNTS, cpu=NEHALEM | {"model": 143, "model_name": "Xeon Platinum"})
    assert "no tree of shares for the CPU of these records, Xeon Platinum" in said(nhmtap("analyze", unknown), 2)
    partial = stream(tmp_path, "b", {STALLED: 5})
    assert f"no count of {CYCLES}" in said(nhmtap("analyze", partial), 1)
    empty = tmp_path / "empty"
    empty.write_text("")
    assert "no counts" in said(nhmtap("analyze", empty), 1)
    good = stream(tmp_path, "c", COUNTS)
    assert "compares the records of two files" in said(nhmtap("analyze", good, good, good), 1)
    for option in (["--repeat", "3"], ["--once"], ["--where", "1"], ["--annotate"], ["--interval", "100"]):
        assert f"option {option[0]}: the records of a file are measured already" in said(nhmtap("analyze", *option, good), 1)


@pytest.mark.parametrize("missing", ["records.jsonl", "no/such"])
def test_a_name_that_is_neither_a_file_nor_a_command_is_a_file_that_is_missing(nhmtap, missing):
    result = nhmtap("analyze", missing)
    assert result.status == 1 and f"file '{missing}': it can't be read: No such file or directory" in result.err


@pytest.mark.parametrize("before", ["", "\ufeff", "\n"])
def test_a_file_that_can_not_be_run_is_records_also_compressed_or_after_blank_lines(nhmtap, tmp_path, before):
    path = stream(tmp_path, "a", COUNTS)
    plain = nhmtap("analyze", "--format", "json", path).out
    path.write_text(before + path.read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run(["zstd", "-q", path], check=True)
    for given in (path, f"{path}.zst"):
        result = nhmtap("analyze", "--format", "json", given)
        assert result.status == 0 and len(result.out.splitlines()) == len(plain.splitlines())


def test_an_analysis_without_shares_is_none(nhmtap, tmp_path):
    path = tmp_path / "cut.jsonl"
    path.write_text(json.dumps(record(0, type="analysis", whole="cycles")) + "\n")
    result = nhmtap("analyze", path)
    assert result.status == 1 and "these records have no counts" in result.err


def test_an_option_behind_the_files_is_no_third_file(nhmtap, tmp_path):
    path = stream(tmp_path, "a", COUNTS)
    assert "--expect': it stands behind the files" in said(nhmtap("analyze", path, path, "--expect", "stalled<5%"), 1)


def test_what_to_try_next_goes_to_the_machine_that_was_measured(nhmtap, tmp_path):
    path = stream(tmp_path, "a", {CYCLES: 1000, STALLED: 100})
    assert "next: nhmtap profile -e" in nhmtap("analyze", "--format", "table", path).out
    host = json.loads(path.read_text().splitlines()[0])["host"]
    emulated = {**host, "emulated": {"model": "ep", "version": "1"}, "cpus_online": 2}
    path.write_text(path.read_text().replace(json.dumps(host), json.dumps(emulated)))
    assert "next: nhmtap profile --machine=ep,cpus=2 -e" in nhmtap("analyze", "--format", "table", path).out


def screen_of(nhmtap, tmp_path, *shares, **members):
    """What people read of an analysis with these shares of all cycles."""
    whole = {"name": "cycles", "description": "All", "share": 1, "low": 1, "high": 1}
    path = stream(tmp_path, "a", {})
    with open(path, "a") as f:
        f.write(json.dumps(record(1, type="analysis", start_time="2026-01-01T00:00:00Z", duration_ns=1, whole="cycles",
                                  identities=[], shares=[whole, *shares], **{"verdict": [], **members})) + "\n")
    return nhmtap("analyze", "-q", "--format", "table", path).out


@pytest.mark.parametrize("low, told", [(0.7, True), (0.4, False)])
def test_what_is_beside_the_shares_is_explained_if_it_is_surely_more_than_half(nhmtap, tmp_path, low, told):
    screen = screen_of(nhmtap, tmp_path, {
        "name": "kernel", "description": "Of the cycles, those in the kernel", "parent": "cycles", "beside": True, "share": 0.8, "low": low,
        "high": 0.9, "meaning": "The kernel works for the program", "locate": "profile -e cycles:k -g"})
    assert ("More than half, beside these:\n  kernel: Of the cycles, those in the kernel. The kernel works for the program.\n"
            "    next: nhmtap profile -e cycles:k -g\n" in screen) == told == ("The kernel works" in screen)


@pytest.mark.parametrize("by, said", [
    ("profile -e MEM_LOAD_RETIRED.L2_HIT:pp --by line -c 9", None), ("branch --sort mispredicted --by line", None),
    ("profile -e ARITH.CYCLES_DIV_BUSY --by line -c 9", "the event is not precise: what it is of comes just before these places"),
    ("profile -e cycles:pp --by line -c 9", "no event tells the code of this share: these places have the cycles"),
    ("profile -e cycles --by line -c 9", "no event tells the code of this share: these places have the cycles")])
def test_places_that_are_not_those_of_the_share_itself_are_said_to_be_others(nhmtap, tmp_path, by, said):
    screen = screen_of(nhmtap, tmp_path, {"name": "divider", "description": "Divisions", "parent": "cycles", "share": 0.8, "low": 0.8, "high": 0.9,
                                          "sampled": {"by": by, "samples": 1}, "where": [{"symbol": "norm", "share": 1}]})
    heading, *lines = screen[screen.index("where divider is"):].splitlines()
    assert by in heading and lines == [*([f"  {said}"] if said else []), "   100.0%  norm"]


SHARES = [{"name": name, "description": name, "parent": "cycles", "share": 0.1, "low": 0, "high": 1} for name in "abcdef"]


@pytest.mark.parametrize("members, told", [({}, True), ({"executions": 3}, False)])
def test_a_time_that_was_too_short_for_a_verdict_is_told_with_the_way_out(nhmtap, tmp_path, members, told):
    verdict = [{"name": share["name"]} for share in SHARES]
    screen = screen_of(nhmtap, tmp_path, *SHARES, verdict=verdict, **members)
    assert "by their bounds, 6 shares may be it" in screen and ("without --once" in screen) == told


def test_a_reason_why_events_were_not_counted_is_told_once(nhmtap, tmp_path):
    absent = [{"name": name, "description": name, "parent": "cycles", "why": f"{event} was not counted: {why}"}
              for name, event, why in (("a", "E1", "they take turns"), ("b", "E2", "they take turns"), ("c", "E3", "it has no counter"))]
    lines = screen_of(nhmtap, tmp_path, *absent).splitlines()
    assert [line.split("absent: ")[1] for line in lines if "absent: " in line] == [
        "E1 was not counted: they take turns", "E2 was not counted either", "E3 was not counted: it has no counter"]


def test_a_share_that_is_a_part_of_itself_is_told_and_no_crash(nhmtap, tmp_path):
    screen = screen_of(nhmtap, tmp_path, {"name": "cycles", "description": "All", "parent": "cycles", "share": 1, "low": 1, "high": 1})
    assert "where the cycles go" in screen


def test_what_changed_is_shown_as_the_tree_has_it(nhmtap, tmp_path):
    """What is beside the shares is below them, and each part below what it is a part of: unexplained is the last of the records."""
    counts = COUNTS | {RESOURCES: 100}
    said = nhmtap("analyze", "-q", "--format", "table", stream(tmp_path, "a", counts), stream(tmp_path, "b", counts | {STALLED: 700})).out
    names = [line.split()[0] for line in said[said.index("retiring"):said.index("\nChanged")].splitlines()]
    assert names == ["retiring", "stalled", "memory_bound", "l2_bound", "unexplained", "beside:", "resource_stalls", "not"]
