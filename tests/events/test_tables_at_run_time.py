# SPDX-License-Identifier: GPL-2.0-only
"""Tables that the program reads with --events-dir: they mean the same as the built-in tables, and
are merged with them."""

import json
import os
import shutil
import subprocess

import pytest

from event_tables import HERE, ROOT, Compiled
from hosts import TABLES
from hosts import CPUID, NEHALEM, WITHOUT_PMU, cpuinfo
from records import parse

USER = ROOT / "user"
PARTS = ["tables/tables", "tables/loader", "tables/rows", "tables/row_layout", "tables/checks", "tables/draft",
         "tables/formula", "tables/compose", "tables/names", "base/memory", "base/refusal", "base/guarded", "base/json_file",
         "base/list", "base/json_schema", "base/nearest", "base/copied", "base/apart", "base/packet", "base/local"]
CATS = {"name": "CATS.SEEN", "description": "A cat is seen", "code": "0xA0", "umask": "0x01",
        "period": 2000}
PURRS = {"name": "purrs", "formula": "1000 * CATS.SEEN / INST_RETIRED.ANY",
         "unit": "per 1000 instructions", "description": "Cats", "source": "reasoning"}
TABBY = {"name": "tabby", "title": "Tabby", "vendor": "GenuineIntel", "family": 6, "models": ["0x77"],
         "general_counters": 2, "fixed_counters": 0}


@pytest.fixture(scope="session")
def dump_folder(known_events_c):
    program = known_events_c.with_name("dump_folder")
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-Wall", "-I", USER,
                    "-o", program, HERE / "dump_folder.c", known_events_c,
                    *(USER / f"{part}.c" for part in PARTS), "-ljansson"], check=True)

    def dump(folder):
        return subprocess.run([program, ROOT / "events" / "schema.json", folder],
                              capture_output=True, text=True, check=True).stdout
    return dump


@pytest.fixture
def tables(tmp_path):
    """Writes a folder of tables and returns the argument that names it."""
    def write(**files):
        for name, content in files.items():
            file = tmp_path / "tables" / (name.replace("__", "/").replace("_", "-") + ".json")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(content), encoding="utf-8")
        return f"--events-dir={tmp_path / 'tables'}"
    return write


def topic(*events):
    return {"source": "reasoning", "events": list(events)}


# ---- the same tables, read twice ----

def test_a_folder_with_the_built_in_tables_gives_every_field_of_them(dump_folder, compiled):
    read = Compiled(dump_folder(ROOT / "events"))
    kinds = set(Compiled.FIELDS) - {"source"}
    for kind in kinds:
        for cpu in (*TABLES, "generic"):
            ours, theirs = read.list(kind, cpu), compiled.list(kind, cpu)
            assert sorted(map(repr, ours)) == sorted(map(repr, theirs)), (kind, cpu)
    assert len(read.list("event", "nehalem-ep")) > 250, "or there was nothing to compare"


def test_names_stand_in_the_order_of_the_lookup(dump_folder, compiled):
    read = Compiled(dump_folder(ROOT / "events"))
    for kind in ("event", "alias", "metric"):
        for cpu in TABLES:
            names = [row["name"] for row in read.list(kind, cpu)]
            assert names == [row["name"] for row in compiled.list(kind, cpu)]


def test_composites_follow_the_bits_of_a_folder_that_moves_them(dump_folder, compiled, tmp_path):
    # Westmere's offcore table over the built-in one of Nehalem: it swaps two bits of DRAM.
    shutil.copytree(ROOT / "events" / "westmere-ep", tmp_path / "nehalem-ep")
    for file in (tmp_path / "nehalem-ep").iterdir():
        if file.name != "offcore.json":
            file.unlink()
    read = Compiled(dump_folder(tmp_path)).by_name("response", "nehalem-ep")
    assert {name: row["bits"] for name, row in read.items()} == {
        name: row["bits"] for name, row in compiled.by_name("response", "westmere-ep").items()}


# ---- adding and replacing ----

def test_an_event_is_added_to_a_cpu_that_is_built_in(explain, host, tables):
    added, known = explain(host(NEHALEM), tables(nehalem_ep__cats=topic(CATS)),
                           "CATS.SEEN,UOPS_ISSUED.ANY")
    assert (added["attr"]["config"], added["description"]) == ("0x1a0", "A cat is seen")
    assert known["attr"]["config"] == "0x10e"


def test_an_event_of_the_same_name_takes_the_place_of_the_built_in_one(explain, host, tables):
    own = {**CATS, "name": "UOPS_ISSUED.ANY"}
    event, = explain(host(NEHALEM), tables(nehalem_ep__cats=topic(own)), "uops_issued.any")
    assert event["attr"]["config"] == "0x1a0"


def test_another_spelling_of_an_added_event_is_known(explain, host, tables):
    own = {**CATS, "aliases": {"reasoning": ["KITTENS"]}}
    event, = explain(host(NEHALEM), tables(nehalem_ep__cats=topic(own)), "KITTENS")
    assert event["attr"]["config"] == "0x1a0"


def test_a_folder_of_one_cpu_changes_no_other(nhmtap, host, tables):
    westmere = {"proc/cpuinfo": cpuinfo(model=0x25)}
    result = nhmtap("explain", host(NEHALEM, westmere), tables(nehalem_ep__cats=topic(CATS)),
                    "CATS.SEEN")
    assert result.status == 1 and "'CATS.SEEN'" in result.err


def test_a_cpu_that_is_not_built_in_is_added(explain, host, tables):
    machine = host(NEHALEM, {"proc/cpuinfo": cpuinfo(model=0x77)})
    event, = explain(machine, tables(cpus=[TABBY], tabby__cats=topic(CATS)), "CATS.SEEN")
    assert event["attr"]["config"] == "0x1a0"


def test_an_added_cpu_inherits_from_one_that_is_built_in(explain, host, tables):
    machine = host(NEHALEM, {"proc/cpuinfo": cpuinfo(model=0x77)})
    heir = {**TABBY, "inherits": "nehalem-ep", "general_counters": 4, "fixed_counters": 3}
    own, inherited = explain(machine, tables(cpus=[heir], tabby__cats=topic(CATS)),
                             "CATS.SEEN,UOPS_ISSUED.ANY")
    assert (own["attr"]["config"], inherited["attr"]["config"]) == ("0x1a0", "0x10e")


def test_a_metric_over_an_added_event_is_expanded(explain, host, tables):
    argument = tables(nehalem_ep__cats=topic(CATS), nehalem_ep__metrics=[PURRS])
    events = explain(host(NEHALEM), argument, "-M", "purrs")
    assert [event["name"] for event in events] == ["CATS.SEEN", "INST_RETIRED.ANY"]


def test_a_source_of_the_folder_may_be_quoted(explain, host, tables):
    own = {"key": "kennel", "title": "The kennel", "licence": "MIT", "used_for": "cats"}
    argument = tables(sources=[own], nehalem_ep__cats={"source": "kennel, page 2", "events": [CATS]})
    event, = explain(host(NEHALEM), argument, "CATS.SEEN")
    assert event["attr"]["config"] == "0x1a0"


def test_an_added_generic_metric_serves_a_machine_without_a_table(explain, host, tables):
    own = {**PURRS, "name": "flips", "formula": "context-switches / page-faults"}
    events = explain(host(WITHOUT_PMU), tables(generic__metrics=[own]), "-M", "flips")
    assert [event["name"] for event in events] == ["context-switches", "page-faults"]


# ---- faults that only the merge can have ----

@pytest.fixture
def refusal(nhmtap, host, tables):
    def run(**files):
        result = nhmtap("explain", host(NEHALEM), tables(**files), "cpu-clock")
        assert (result.status, result.out) == (1, "")
        return result.err
    return run


def test_an_encoding_that_is_built_in_is_to_be_an_alias(refusal):
    err = refusal(nehalem_ep__cats=topic({**CATS, "code": "0x0E"}))
    assert "nehalem-ep/cats.json: CATS.SEEN: is encoded exactly as UOPS_ISSUED.ANY" in err


def test_a_name_that_is_built_in_is_no_alias_of_another_event(refusal):
    err = refusal(nehalem_ep__cats=topic({**CATS, "aliases": {"reasoning": ["UOPS_ISSUED.ANY"]}}))
    assert "nehalem-ep/cats.json: CATS.SEEN: alias UOPS_ISSUED.ANY is already a name" in err


def test_a_period_below_the_built_in_lowest_is_refused(refusal):
    err = refusal(nehalem_ep__cats=topic({**CATS, "period": 31}))
    assert "nehalem-ep/cats.json: CATS.SEEN: \"period\" 31 is refused by the kernel" in err


def test_a_model_that_is_built_in_belongs_to_no_other_cpu(refusal):
    err = refusal(cpus=[{**TABBY, "models": ["0x1A"]}], tabby__cats=topic(CATS))
    assert "cpus.json: tabby: model 0x1A is already nehalem-ep" in err


def test_a_cpu_with_nothing_to_count_is_refused(refusal):
    assert "tabby: has neither events nor units" in refusal(cpus=[TABBY], tabby__metrics=[PURRS])


def test_a_cpu_with_events_and_no_counters_is_refused(refusal):
    heir = {**TABBY, "inherits": "nehalem-ep", "general_counters": 0}
    err = refusal(cpus=[heir], tabby__metrics=[{**PURRS, "formula": "UOPS_ISSUED.ANY / INST_RETIRED.ANY"}])
    assert "cpus.json: tabby: has events, but \"general_counters\" is 0" in err


# ---- counters that Linux has no driver for ----

def like(cpu, **members):
    return {"source": "reasoning", "units": [{"name": "l3bus", "like": cpu, **members}]}


UNITS_ALONE = {**TABBY, "general_counters": 0}
PAW = {"name": "paw", "title": "Agent_Select", "description": "whose paw", "low": 32, "high": 35, "usual": "all",
       "values": [{"name": "all", "value": "0xF"}, {"name": "left", "value": "0x5"}]}


def test_a_unit_is_like_that_of_a_cpu_that_is_built_in_but_for_what_it_says(nhmtap, host, tables):
    machine = host(NEHALEM, {"proc/cpuinfo": cpuinfo(model=0x77)})
    unit = like("xeon-7400", rdpmc=40, kinds=[{"name": "gbsq", "fields": [PAW]}])
    argument = tables(cpus=[UNITS_ALONE], tabby__msr=unit)
    ours, same = parse(nhmtap("explain", machine, argument, "l3bus/gbsq,paw=left/", "l3bus/fsb,hitm/").out)
    theirs, other = parse(nhmtap("explain", "--cpu=xeon-7400", "l3bus/gbsq/", "l3bus/fsb,hitm/").out)
    assert (ours["registers"][1]["rdpmc"], same["registers"][1]["rdpmc"]) == (40, 44)
    assert same["event"]["attr"]["config"] == other["event"]["attr"]["config"]
    assert int(ours["event"]["attr"]["config"], 16) == int(theirs["event"]["attr"]["config"], 16) & ~(7 << 32) | 5 << 32
    assert "no such term" in nhmtap("explain", machine, argument, "l3bus/gbsq,agent=all/").err


def test_a_cpu_of_units_alone_has_the_architectures_events_if_it_has_those(nhmtap, host, tables):
    machine = host(NEHALEM, CPUID, {"proc/cpuinfo": cpuinfo(model=0x77)})
    record, = parse(nhmtap("explain", machine, tables(cpus=[UNITS_ALONE], tabby__msr=like("xeon-7400")), "INST_RETIRED.ANY_P").out)
    assert record["cpu"] == "architectural" and record["event"]["attr"]["config"] == "0xc0"


@pytest.mark.parametrize("unit, message", [
    (like("siamese"), "is like that of \"siamese\", which does not stand before it"),
    (like("nehalem-ep"), "is like that of \"nehalem-ep\", which does not"),
    (like("xeon-7400", kinds=[{"name": "gbsq", "fields": [{**PAW, "name": "flow"}]}]), "gbsq: flow stands twice"),
    (like("xeon-7400", kinds=[{"name": "gbsq", "fields": [{**PAW, "high": 36}]}]), "are the count's, another field's or"),
    (like("xeon-7400", kinds=[{"name": "tails", "fields": [PAW]}]), "tails: \"description\" is missing"),
    ({"source": "reasoning", "units": [{"name": "catbus", "description": "Cats"}]}, "catbus: \"scope\" is missing"),
])
def test_a_unit_that_can_not_be_completed_is_refused(refusal, unit, message):
    assert message in refusal(cpus=[UNITS_ALONE], tabby__msr=unit)


def test_a_model_may_be_of_two_cpus_of_which_one_has_a_third_level_cache(explain, host, tables):
    third = "0x00000004 0x00: eax=0x00004163 ebx=0x0 ecx=0x0 edx=0x0\n"
    other = {**TABBY, "name": "siamese", "third_level_cache": True}
    argument = tables(cpus=[other, TABBY], tabby__cats=topic(CATS), siamese__cats=topic({**CATS, "code": "0xA1"}))
    configs = [explain(host(NEHALEM, {"proc/cpuinfo": cpuinfo(model=0x77), **more}), argument, "CATS.SEEN")[0]["attr"]["config"]
               for more in ({}, {"cpuid": third})]
    assert configs == ["0x1a0", "0x1a1"]


def test_a_generic_metric_of_an_unknown_event_is_refused(refusal):
    err = refusal(generic__metrics=[{**PURRS, "formula": "page-fault / task-clock"}])
    assert "generic/metrics.json: purrs: \"formula\" names page-fault, which perf does not count" in err


def test_a_folder_that_is_not_there_is_refused(nhmtap, tmp_path):
    result = nhmtap("explain", "--events-dir", tmp_path / "nowhere", "cpu-clock")
    assert result.status == 1
    assert "--events-dir" in result.err and os.strerror(2) in result.err


def test_a_run_refuses_bad_tables_in_its_stream_too(nhmtap, tables):
    result = nhmtap("stat", tables(nehalem_ep__cats=topic({**CATS, "colour": "grey"})), "--", "true")
    assert result.status == 1
    assert "unknown field \"colour\"" in result.one("error")["why"]


# ---- hostile folders ----

@pytest.mark.parametrize("file", ["nehalem-ep/mine.json", "cpus.json", "sources.json"])
@pytest.mark.parametrize("kind, why", [("pipe", "no regular file"), ("link", "no regular file"),
                                       ("folder", "no regular file"), ("huge", "larger")])
def test_what_is_no_plain_file_is_refused_and_not_waited_for(nhmtap, tmp_path, file, kind, why):
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_text("[]", encoding="ascii")
        os.truncate(path, 1 << 40)
    for command in (["explain", "--events-dir", tmp_path, "cpu-clock"],
                    ["stat", "-e", "page-faults", "--events-dir", tmp_path, "--", "true"]):
        said = nhmtap(*command, timeout=240)
        assert said.status == 1 and why in said.err and path.name in said.err


def test_reading_takes_time_in_proportion_to_what_is_read(nhmtap, tables):
    """User time grows linearly: 8 times as many events take about 8 times as long, not 64 times."""
    def cost(number):
        events = [{"name": f"MINE.N{i:05d}", "description": str(i), "code": f"0x{i % 255 + 1:02X}", "period": 2000,
                   "umask": f"0x{i // 255:02X}", "aliases": {"reasoning": [f"OTHER.N{i:05d}"]}} for i in range(number)]
        metrics = [{"name": f"m_{i}", "formula": f"MINE.N{i:05d} / MINE.N00000", "unit": "x", "description": "x",
                    "source": "reasoning"} for i in range(1, number)]
        folder = tables(cpus=[TABBY], tabby__mine=topic(*events), tabby__metrics=metrics)
        begin = os.times()
        assert nhmtap("explain", "--cpu", "tabby", folder, "MINE.N00001").status == 0
        end = os.times()
        return end.children_user - begin.children_user

    assert cost(8000) < 24 * max(cost(1000), 0.02)
