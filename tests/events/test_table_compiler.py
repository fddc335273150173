# SPDX-License-Identifier: GPL-2.0-only
"""Which tables the compiler and --events-dir refuse, with which message, and what the compiler
writes."""

import json
import os
import subprocess

import pytest

from event_tables import ROOT, WARNINGS, compile_tables
from hosts import NEHALEM

EVENT = {"name": "CATS.SEEN", "description": "A cat is seen", "code": "0xA0", "umask": "0x01",
         "period": 2000}
LATENCY = {"name": "MEM_INST_RETIRED.SLOW", "description": "A slow load retires", "code": "0x0B",
           "umask": "0x10", "threshold": 3, "period": 2000}
CPU = {"name": "tabby", "title": "Tabby", "vendor": "GenuineIntel", "family": 6, "models": ["0x77"],
       "general_counters": 4, "fixed_counters": 3,
       "load_latency": {"code": "0x0B", "umask": "0x10", "least": 3, "most": 65535, "source": "reasoning"}}
SOURCE = {"key": "perfmon", "title": "perfmon", "licence": "BSD", "used_for": "facts"}
OFFCORE = {
    "source": "perfmon 1", "period": 2000,
    "registers": [{"name": "OFFCORE", "code": "0xB7", "umask": "0x01", "msr": "0x1A6"}],
    "requests": [{"name": "READ", "description": "Reads", "bit": 0, "kinds": ["prefetch"]},
                 {"name": "WRITE", "description": "Writes", "bit": 1},
                 {"name": "ANY", "description": "Both", "of": ["READ", "WRITE"]}],
    "responses": [{"name": "HIT", "description": "A hit", "bit": 8}],
    "presets": [{"name": "cats", "requests": "READ,WRITE", "responses": "HIT"}],
}
LBR = [{"filter": "any", "records": "0x1FC"},
       {"filter": "call", "why": "Cats don't call", "source": "perfmon", "remedy": "whistle"}]
CONTRADICTION = {"id": "cats", "subject": "Cats", "says": {"perfmon": "yes"}, "we_do": "look",
                 "why": "to see"}
METRIC = {"name": "cat_rate", "formula": "CATS.SEEN / 2", "unit": "cats", "description": "Cats",
          "source": "perfmon"}
WHOLE = {"name": "naps", "description": "Sleep", "formula": "CATS.SEEN", "source": "perfmon"}
DREAM = {**WHOLE, "name": "dreams", "parent": "naps", "cost": {"low": 1, "usual": 2, "high": 3}}
SAME = {"name": "same", "left": "CATS.SEEN", "right": "2 * CATS.SEEN", "percent": 1, "withdraws": "naps,dreams",
        "source": "perfmon"}
KERNEL = {"source": "perfmon", "lowest_period": 32, "precise": [{"code": "0xA0"}],
          "fixed": [{"code": "0xC0", "umask": "0x00", "fixed_counter": 0}],
          "counters": [{"codes": ["0xA0"], "counters": [0, 1]}],
          "generic": [{"name": "cycles", "code": "0x3C", "umask": "0x00"}],
          "errata": [{"name": "CAT1", "description": "Cats are counted twice"}]}
KIND = {"name": "paws", "description": "Paws", "counters": [{"name": "MSR_PAW", "msr": "0x107CC"}],
        "fields": [{"name": "which", "title": "Which_Paw", "low": 32, "high": 33, "description": "which of them",
                    "usual": "all", "values": [{"name": "all", "value": "0x3"}]}]}
UNIT = {"name": "catbus", "description": "Cats in the bus", "scope": "package", "count_bits": 32, "wraps_in_ms": 100,
        "control": {"name": "MSR_CAT", "msr": "0x107D8", "freeze": 0, "unfreeze": 1, "reset": 2, "select": 16, "status": 48},
        "kinds": [KIND]}
COUNTERS = [{"name": f"MSR_CAT_COUNTER{n}", "msr": f"0x30{n}", "cccr": f"MSR_CAT_CCCR{n}", "cccr_msr": f"0x36{n}",
             "after": [{"counter": 1 - n}]} for n in (0, 1)]
TAIL = {"name": "tail", "title": "Tail", "low": 0, "high": 1, "description": "what it does"}
SOUND = {"name": "sound", "title": "Sound", "code": "0x3F", "select": 7, "description": "Sounds",
         "escrs": [{"name": "MSR_CAT_ESCR0", "msr": "0x3A0", "counters": [0, 1]}], "masks": [TAIL]}
ESCR = {"source": "perfmon", "name": "catnap", "description": "Sleeping cats", "scope": "core", "count_bits": 40, "wraps_in_ms": 100,
        "counters": COUNTERS, "fields": [{**TAIL, "name": "edge", "low": 24, "high": 24}], "kinds": [SOUND]}
DATA_SOURCES = [{"code": f"0x{code:X}", "name": f"code_{code}", "description": "Somewhere",
                 "perf_data_src": "0x1", "perf": "somewhere"} for code in range(16)]


class Folder:
    """A small correct set of tables. Each test spoils it with one fault."""

    def __init__(self, path):
        self.path = path / "tables"
        self.output = path / "out.c"
        self.write("sources.json", [SOURCE])
        self.write("cpus.json", [CPU])
        self.write("tabby/cats.json", {"source": "perfmon 1", "events": [EVENT]})

    def write(self, name, content):
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")

    def events(self, *events):
        self.write("tabby/cats.json", {"source": "perfmon 1", "events": list(events)})

    def compile(self, *options):
        return compile_tables(self.path, self.output, *options)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


@pytest.fixture
def read(folder, nhmtap, host):
    """Reads the tables with the program."""
    return lambda: nhmtap("explain", host(NEHALEM), "--events-dir", folder.path, "cpu-clock")


@pytest.fixture
def refused(folder, refused_by_compiler, read):
    """Expects the compiler and the program to refuse the tables with all of these words."""
    def check(*words):
        refused_by_compiler(*words)
        done = read()
        assert (done.status, done.out) == (1, "")
        for word in words:
            assert word in done.err, done.err
    return check


@pytest.fixture
def refused_by_compiler(folder):
    """Expects the compiler to refuse the tables with all of these words, without output."""
    def check(*words):
        done = folder.compile()
        assert done.returncode == 1
        assert "Sanitizer" not in done.stderr
        for word in words:
            assert word in done.stderr, done.stderr
        assert not folder.output.exists()
    return check


def test_tables_that_are_right_are_accepted(folder, read):
    folder.events(EVENT, LATENCY)
    folder.write("tabby/offcore.json", OFFCORE)
    folder.write("tabby/metrics.json", [METRIC, {**METRIC, "name": "reads",
                                                 "formula": "OFFCORE.ANY.HIT"}])
    folder.write("generic/metrics.json", [{**METRIC, "formula": "page-faults / duration_time"}])
    folder.write("tabby/contradictions.json", [CONTRADICTION])
    folder.write("tabby/data_source.json", DATA_SOURCES)
    folder.write("tabby/lbr.json", LBR)
    folder.write("tabby/accounting.json", [WHOLE, DREAM])
    folder.write("tabby/identities.json", [SAME])
    folder.write("tabby/kernel.json", KERNEL)
    folder.write("tabby/msr.json", {"source": "perfmon", "units": [UNIT]})
    assert (folder.compile().stderr, folder.compile().returncode) == ("", 0)
    assert (read().err, read().status) == ("", 0)


# ---- faults in an event: what is changed, and what the message must contain ----

EVENT_FAULTS = {
    "an unknown field": ({"colour": "grey"}, "unknown field \"colour\"; known: "),
    "a field with a typo": ({"umsk": "0x01"}, "unknown field \"umsk\"; did you mean umask"),
    "a missing field": ({"umask": None}, "\"umask\" is missing"),
    "a name in lower case": ({"name": "cats.seen"}, "\"name\" must be a name like INST_RETIRED"),
    "a name with a slash": ({"name": "CATS.A/B"}, "\"name\" must be a name like"),
    "a number for a code": ({"code": 160}, "\"code\" must be a number like 0xC0, not 160"),
    "a code of three digits": ({"code": "0x1A0"}, "\"code\" must be a number like 0xC0"),
    "an umask of one digit": ({"umask": "0x1"}, "\"umask\" must be a number like 0xC0"),
    "a code in lower case": ({"code": "0xa0"}, "\"code\" must be a number like 0xC0"),
    "a cmask with reserved bits": ({"cmask": 32}, "\"cmask\" must be a number from 1 to 31"),
    "a cmask of zero": ({"cmask": 0}, "\"cmask\" must be a number from 1 to 31"),
    "a cmask that is true": ({"cmask": True}, "\"cmask\" must be a number from 1 to 31"),
    "inv without cmask": ({"inv": True}, "\"inv\" means nothing without \"cmask\""),
    "a flag that is false": ({"edge": False}, "\"edge\" must be true, or left out, not false"),
    "any with PEBS": ({"any": True, "pebs": "can"}, "refuses \"any\" in a PEBS event"),
    "PEBS that is neither can nor only": ({"pebs": "yes"}, "\"pebs\" must be one of can, only"),
    "a counter that does not exist": ({"counters": [4]}, "counter 4 does not exist: tabby has 4"),
    "counters out of order": ({"counters": [1, 0]}, "\"counters\" must ascend"),
    "a counter twice": ({"counters": [1, 1]}, "\"counters\" has an entry twice"),
    "a counter that is no number": ({"counters": ["1"]}, "\"counters\" entry 1 must be a number"),
    "no counter at all": ({"counters": []}, "no counter can count it"),
    "a fixed counter that does not exist": ({"fixed_counter": 3}, "fixed counter 3 does not exist"),
    "code 0x00 without a fixed counter": ({"code": "0x00"}, "code 0x00 is only perf's name"),
    "a threshold on another code": ({"threshold": 3}, "\"threshold\" belongs to the event"),
    "a period of zero": ({"period": 0}, "\"period\" must be a number from 1"),
    "a description of two lines": ({"description": "A\nB"}, "\"description\" must be one line"),
    "a description with a line break": ({"description": "A\n"}, "\"description\" must be one line"),
    "no description": ({"description": ""}, "\"description\" must be one line"),
    "a description that is too long": ({"description": "x" * 161}, "of at most 160 characters"),
    "a source that is not listed": ({"source": "hearsay"}, "quotes \"hearsay\", which is no key"),
    "an alias of a source that is not listed": ({"aliases": {"hearsay": ["KITTENS"]}},
                                                "quotes \"hearsay\", which is no key"),
    "an alias that is no list": ({"aliases": {"perfmon": "KITTENS"}},
                                 "\"aliases\" \"perfmon\" must be a list of 1 or more entries, not \"KITTENS\""),
    "an alias that is no name": ({"aliases": {"perfmon": ["a kitten"]}},
                                 "\"aliases\" \"perfmon\" entry 1 must be a name like"),
    "aliases that are no object": ({"aliases": ["KITTENS"]}, "\"aliases\" must be an object"),
    "aliases that are empty": ({"aliases": {}}, "\"aliases\" is empty"),
    "an alias that is its own name": ({"aliases": {"perfmon": ["CATS.SEEN"]}},
                                      "alias CATS.SEEN is already a name of CATS.SEEN"),
}


@pytest.mark.parametrize("fault", EVENT_FAULTS)
def test_an_event_is_refused_for(fault, folder, refused):
    change, message = EVENT_FAULTS[fault]
    event = {key: value for key, value in {**EVENT, **change}.items() if value is not None}
    folder.events(event)
    refused(f"tabby/cats.json: {event['name']}: ", message)


def test_a_threshold_belongs_to_nothing_where_the_cpu_has_no_load_latency(folder, refused):
    folder.write("cpus.json", [{key: value for key, value in CPU.items() if key != "load_latency"}])
    folder.events(LATENCY)
    refused("tabby/cats.json: MEM_INST_RETIRED.SLOW: ", "\"threshold\" belongs to")


@pytest.mark.parametrize("parts", [{"requests": "READ,PURR"}, {"responses": "PURR"}])
def test_a_preset_of_parts_that_there_are_not_is_refused(folder, refused, parts):
    folder.write("tabby/offcore.json", {**OFFCORE, "presets": [{**OFFCORE["presets"][0], **parts}]})
    refused("tabby/offcore.json: cats: ", "names PURR, which does not exist")


def test_a_composite_is_of_no_kind_of_its_own(folder, refused):
    composite = {**OFFCORE["requests"][2], "kinds": ["remote"]}
    folder.write("tabby/offcore.json", {**OFFCORE, "requests": [*OFFCORE["requests"][:2], composite]})
    refused("tabby/offcore.json: ")


@pytest.mark.parametrize("entry", [{"filter": "any"}, {**LBR[1], "records": "0x001"},
                                   {"filter": "call", "why": "Cats don't call"}])
def test_a_kind_of_branch_is_recorded_or_there_is_a_reason(folder, refused, entry):
    folder.write("tabby/lbr.json", [entry])
    refused("tabby/lbr.json: ")


@pytest.mark.parametrize("part, change, message", [
    ("fields", {"low": 31}, "the count's, another field's or no field's"),
    ("fields", {"high": 31}, "the count's, another field's or no field's"),
    ("fields", {"usual": "none"}, "has no value none"),
    ("fields", {"values": [{"name": "all", "value": "0x4"}]}, "which=all does not fit"),
    ("kind", {"always": "0x1"}, "bits of the count"),
    ("kind", {"always": "0x100000000"}, "the count's, another field's or no field's"),
    ("unit", {"control": {**UNIT["control"], "status": 63}, "kinds": [KIND, {**KIND, "name": "tails"}]}, "no bits for 2 counters"),
    ("unit", {"scope": "house"}, "must be one of thread, core, package"),
    ("unit", {"kinds": [KIND, KIND]}, "stands twice"),
])
def test_a_unit_whose_bits_contradict_each_other_is_refused(folder, refused, part, change, message):
    kind = {**KIND, "fields": [{**KIND["fields"][0], **(change if part == "fields" else {})}], **(change if part == "kind" else {})}
    unit = {**UNIT, "kinds": [kind], **(change if part == "unit" else {})}
    folder.write("tabby/msr.json", {"source": "perfmon", "units": [unit]})
    refused("tabby/msr.json: ", message)


@pytest.mark.parametrize("change, message", [
    ({"counters": [COUNTERS[0], {**COUNTERS[1], "after": [{"counter": 1}]}]}, "MSR_CAT_COUNTER1: is started by counter 1, which it is itself"),
    ({"counters": [COUNTERS[0]]}, "MSR_CAT_COUNTER0: is started by counter 1, which does not exist"),
    ({"counters": [COUNTERS[1]] * 33}, "more than 32 counters"),
    ({"counters": [{k: v for k, v in COUNTERS[0].items() if k != "after"}]}, "sound: MSR_CAT_ESCR0 has counters that do not exist"),
    ({"kinds": [{**SOUND, "masks": [{**TAIL, "high": 16}]}]}, "the bits of tail"),
    ({"kinds": [{**SOUND, "masks": [TAIL, {**TAIL, "name": "paw"}]}]}, "the bits of paw"),
    ({"kinds": [{**SOUND, "metrics": [{"name": "loud", "description": "Loud ones", "enable": "0x1", "matrix": "0x1"}]}]}, "two registers"),
    ({"kinds": [SOUND, SOUND]}, "stands twice"),
    *(({"fields": [{**TAIL, "low": bit, "high": bit}]}, "the bits of tail") for bit in (12, 13, 17, 31, 41, 57, 62)),
])
def test_a_unit_whose_escrs_and_counters_contradict_each_other_is_refused(folder, refused, change, message):
    folder.write("tabby/escr.json", {**ESCR, **change})
    refused("tabby/escr.json: ", message)


def test_a_unit_of_escrs_is_accepted(folder, read):
    folder.write("tabby/escr.json", ESCR)
    assert folder.compile().returncode == 0 and read().status == 0


def test_load_latency_is_refused_without_a_threshold(folder, refused):
    folder.events({key: value for key, value in LATENCY.items() if key != "threshold"})
    refused("tabby/cats.json: MEM_INST_RETIRED.SLOW: ", "\"threshold\" belongs to")


def test_load_latency_is_refused_with_cmask(folder, refused):
    folder.events({**LATENCY, "cmask": 1})
    refused("load latency allows neither \"cmask\" nor \"inv\"")


def test_a_name_is_refused_when_it_stands_twice(folder, refused):
    folder.events(EVENT, {**EVENT, "umask": "0x02"})
    refused("tabby/cats.json: CATS.SEEN: stands twice")


def test_a_name_is_refused_when_another_topic_has_it(folder, refused):
    folder.write("tabby/dogs.json", {"source": "perfmon", "events": [{**EVENT, "umask": "0x02"}]})
    refused("tabby/dogs.json: CATS.SEEN: stands in tabby/cats.json too")


def test_an_encoding_is_refused_when_it_stands_twice(folder, refused):
    folder.events(EVENT, {**EVENT, "name": "CATS.HEARD"})
    refused("CATS.HEARD: is encoded exactly as CATS.SEEN")


def test_an_alias_is_refused_when_it_is_an_event(folder, refused):
    folder.events(EVENT, {**EVENT, "name": "DOGS", "umask": "0x02",
                          "aliases": {"perfmon": ["CATS.SEEN"]}})
    refused("tabby/cats.json: DOGS: alias CATS.SEEN is already a name of CATS.SEEN")


def test_an_alias_is_refused_when_two_events_have_it(folder, refused):
    folder.events({**EVENT, "aliases": {"perfmon": ["PETS"]}},
                  {**EVENT, "name": "DOGS", "umask": "0x02", "aliases": {"perfmon": ["PETS"]}})
    refused("tabby/cats.json: DOGS: alias PETS is already a name of CATS.SEEN")


def test_a_field_is_refused_when_it_stands_twice(folder, refused):
    folder.write("tabby/cats.json", '{"source": "perfmon", "source": "perfmon", "events": []}')
    refused("tabby/cats.json: field \"source\" stands twice")


def test_a_file_that_is_not_json_is_refused(folder, refused):
    folder.write("tabby/cats.json", "{")
    refused("tabby/cats.json: ", "line 1")


def test_a_topic_that_is_a_list_is_refused(folder, refused):
    folder.write("tabby/cats.json", [EVENT])
    refused("tabby/cats.json: must be an object, not [")


def test_a_topic_with_an_unknown_field_is_refused(folder, refused):
    folder.write("tabby/cats.json", {"source": "perfmon", "events": [EVENT], "colour": "grey"})
    refused("tabby/cats.json: unknown field \"colour\"")


def test_an_event_that_is_no_object_is_refused(folder, refused):
    folder.events("CATS.SEEN")
    refused("tabby/cats.json: \"events\" entry 1 must be an object, not \"CATS.SEEN\"")


# ---- faults in cpus.json ----

@pytest.mark.parametrize("change, message", [
    ({"models": ["26"]}, "\"models\" entry 1 must be a number like 0xC0"),
    ({"models": []}, "\"models\" must be a list of 1 or more entries, not []"),
    ({"accesses": {"loads": "CATS.SEEN", "stores": "CATS.FED"}}, "\"accesses\" names CATS.FED, which is no event of the CPU"),
    ({"inherits": "siamese"}, "inherits \"siamese\", which does not stand before it"),
    ({"without": {"events": ["DOGS"]}}, "is without DOGS, which it does not inherit"),
    ({"without": {"kinds": ["dogs/bark"]}}, "is without dogs/bark, which it does not inherit"),
    ({"without": {"kittens": ["DOGS"]}}, "\"without\" \"kittens\" must be one of events, metrics"),
    ({"colour": "grey"}, "unknown field \"colour\""),
    ({"general_counters": 9}, "\"general_counters\" must be a number from 0 to 8"),
    ({"models": None, "third_level_cache": True}, "\"third_level_cache\" means nothing without \"models\""),
])
def test_a_cpu_is_refused_for(change, message, folder, refused):
    folder.write("cpus.json", [{key: value for key, value in {**CPU, **change}.items() if value is not None}])
    refused("cpus.json: tabby: ", message)


def test_a_cpu_without_a_folder_is_refused(folder, refused):
    folder.write("cpus.json", [CPU, {**CPU, "name": "siamese", "models": ["0x78"]}])
    refused("cpus.json: siamese: has no folder siamese/")


def test_a_folder_without_a_cpu_is_refused(folder, refused):
    folder.write("siamese/cats.json", {"source": "perfmon", "events": [EVENT]})
    refused("siamese: is a folder of no CPU")


def test_a_model_of_two_cpus_is_refused(folder, refused):
    folder.write("cpus.json", [CPU, {**CPU, "name": "siamese"}])
    folder.write("siamese/cats.json", {"source": "perfmon", "events": [EVENT]})
    refused("cpus.json: siamese: model 0x77 is already tabby")


# ---- faults in offcore.json ----

@pytest.mark.parametrize("part, message", [
    ({"name": "X", "description": "X"}, "needs either \"bit\" or \"of\""),
    ({"name": "X", "description": "X", "bit": 2, "of": ["READ", "WRITE"]}, "needs either"),
    ({"name": "X", "description": "X", "bit": 8}, "a bit of requests is below those of responses"),
    ({"name": "X", "description": "X", "bit": 0}, "bit 0 is already READ"),
    ({"name": "X", "description": "X", "of": ["READ", "SLEEP"]}, "SLEEP, which does not exist"),
    ({"name": "X", "description": "X", "of": ["READ", "X"]}, "is composed of itself"),
    ({"name": "READ", "description": "X", "bit": 3}, "stands twice"),
    ({"name": "X", "description": "X", "bit": 3, "aliases": {"perfmon": ["READ"]}},
     "alias READ is already a name of READ"),
])
def test_an_offcore_request_is_refused_for(part, message, folder, refused):
    folder.write("tabby/offcore.json", {**OFFCORE, "requests": [*OFFCORE["requests"], part]})
    refused(f"tabby/offcore.json: {part['name']}: ", message)


def test_an_offcore_response_is_refused_as_an_event(folder, refused):
    folder.write("tabby/offcore.json", OFFCORE)
    folder.events({**EVENT, "name": "OFFCORE.READ.HIT"})
    refused("OFFCORE.READ.HIT: is composed from offcore.json")


def test_offcore_responses_need_a_source(folder, refused):
    folder.write("tabby/offcore.json", {key: OFFCORE[key] for key in OFFCORE if key != "source"})
    refused("tabby/offcore.json: \"source\" is missing")


# ---- faults in the other tables ----

@pytest.mark.parametrize("formula, message", [
    ("DOGS.SEEN / 2", "names DOGS.SEEN, which tabby does not count"),
    ("CATS.SEEN /", "lacks an event or number"),
    ("(CATS.SEEN", "lacks a closing parenthesis"),
    ("CATS.SEEN CATS.SEEN", "does not end at"),
    ("CATS.SEEN ** 2", "lacks an event or number"),
    ("__import__", "has something that is no event, number or operator"),
    ("1 + 1", "names no event"),
])
def test_a_formula_is_refused(formula, message, folder, refused):
    folder.write("tabby/metrics.json", [{**METRIC, "formula": formula}])
    refused("tabby/metrics.json: cat_rate: ", message)


@pytest.mark.parametrize("formula, message", [
    ("page-faults /", "lacks an event or number"),
    ("duration_time / 1000", "names no event"),
    ("x" * 1001, "\"formula\" must be one line of at most 1000 characters"),
])
def test_a_generic_formula_is_refused(formula, message, folder, refused):
    folder.write("generic/metrics.json", [{**METRIC, "formula": formula}])
    refused("generic/metrics.json: cat_rate: ", message)


def test_a_metric_that_stands_twice_is_refused(folder, refused):
    folder.write("tabby/metrics.json", [METRIC, METRIC])
    refused("tabby/metrics.json: cat_rate: stands twice")


@pytest.mark.parametrize("shares, message", [
    ([WHOLE, {**DREAM, "parent": "day"}], "dreams: \"parent\" names day, which does not exist"),
    ([WHOLE, {**DREAM, "parent": "dreams"}], "dreams: \"parent\" leads back to it"),
    ([{**DREAM, "parent": "dreams"}], "dreams: \"parent\" leads back to it"),
    ([WHOLE, {**WHOLE, "name": "days"}], "has 2 shares without a \"parent\", and must have one"),
    ([{**WHOLE, "formula": "DOGS"}], "naps: \"formula\" names DOGS, which tabby does not count"),
    ([WHOLE, {key: value for key, value in DREAM.items() if key != "formula"}], "dreams: has neither \"formula\" nor parts"),
    ([WHOLE, {**DREAM, "cost": {"low": 3, "usual": 2, "high": 3}}], "dreams: \"cost\" must rise from low to usual to high"),
])
def test_a_tree_of_shares_is_refused_for(shares, message, folder, refused):
    folder.write("tabby/accounting.json", shares)
    refused("tabby/accounting.json: ", message)


@pytest.mark.parametrize("change, message", [
    ({"left": "DOGS"}, "\"left\" names DOGS, which tabby does not count"),
    ({"right": "CATS.SEEN +"}, "\"right\" lacks an event or number"),
    ({"withdraws": "naps,days"}, "\"withdraws\" names days, which does not exist"),
])
def test_an_identity_is_refused_for(change, message, folder, refused):
    folder.write("tabby/accounting.json", [WHOLE, DREAM])
    folder.write("tabby/identities.json", [{**SAME, **change}])
    refused("tabby/identities.json: same: ", message)


def test_data_sources_are_refused_unless_all_sixteen_are_there(folder, refused):
    folder.write("tabby/data_source.json", DATA_SOURCES[:-1])
    refused("tabby/data_source.json: has 15 of the 16 codes")


def test_a_period_that_the_kernel_refuses_is_refused(folder, refused):
    folder.events({**EVENT, "period": 31})
    folder.write("tabby/kernel.json", KERNEL)
    refused("tabby/cats.json: CATS.SEEN: \"period\" 31 is refused by the kernel", "at least 32")


@pytest.mark.parametrize("table, entry, message", [
    ("precise", {"code": "0xA0", "colour": "grey"}, "unknown field \"colour\""),
    ("precise", {"umask": "0x01"}, "\"umask\" means nothing without \"code\""),
    ("fixed", {"code": "0xA0", "umask": "0x00", "fixed_counter": 3}, "fixed counter 3 does not"),
    ("counters", {"codes": ["0xA0"], "counters": [4]}, "counter 4 does not exist"),
    ("counters", {"codes": ["A0"], "counters": [0]}, "\"codes\" entry 1 must be a number like"),
])
def test_a_rule_of_the_kernel_is_refused_for(table, entry, message, folder, refused):
    folder.write("tabby/kernel.json", {**KERNEL, table: [entry]})
    refused(f"tabby/kernel.json: \"{table}\" entry 1: ", message)


@pytest.mark.parametrize("table, entry, message", [
    ("generic", {"name": "cycles", "code": "0x3C"}, "cycles: \"umask\" is missing"),
    ("generic", {"name": "CATS.P", "code": "0x3C", "umask": "0x00"}, "\"name\" must be a name like"),
    ("errata", {"name": "CAT1"}, "CAT1: \"description\" is missing"),
])
def test_what_the_kernel_has_a_name_for_is_refused_by_it(table, entry, message, folder, refused):
    folder.write("tabby/kernel.json", {**KERNEL, table: [entry]})
    refused("tabby/kernel.json: ", message)


def test_a_contradiction_without_a_reason_is_refused(folder, refused):
    folder.write("tabby/contradictions.json",
                 [{key: CONTRADICTION[key] for key in CONTRADICTION if key != "why"}])
    refused("tabby/contradictions.json: cats: \"why\" is missing")


def test_a_contradiction_that_quotes_an_unknown_source_is_refused(folder, refused):
    folder.write("tabby/contradictions.json", [{**CONTRADICTION, "says": {"hearsay": "yes"}}])
    refused("tabby/contradictions.json: cats: ", "hearsay")


# ---- inheritance ----

def test_an_inherited_event_is_replaced_by_one_of_the_same_name(folder):
    folder.write("cpus.json", [CPU, {**CPU, "name": "siamese", "models": ["0x78"],
                                     "inherits": "tabby"}])
    folder.write("siamese/cats.json", {"source": "perfmon", "events": [{**EVENT, "umask": "0x08"}]})
    assert folder.compile().returncode == 0
    written = folder.output.read_text("utf-8")
    assert written.count(".config = 0x1a0,") == 1 and written.count(".config = 0x8a0,") == 1


def test_a_metric_is_refused_when_its_event_is_not_inherited(folder, refused):
    folder.write("tabby/metrics.json", [METRIC])
    folder.write("cpus.json", [CPU, {**CPU, "name": "siamese", "models": ["0x78"],
                                     "inherits": "tabby", "without": {"events": ["CATS.SEEN"]}}])
    folder.write("siamese/dogs.json", {"source": "perfmon", "events": [{**EVENT, "name": "DOGS"}]})
    refused("siamese/metrics.json: cat_rate: ", "which siamese does not count")


# ---- what it writes ----

def test_the_same_tables_give_the_same_file(known_events_c, tmp_path):
    assert compile_tables(ROOT / "events", tmp_path / "again.c").returncode == 0
    assert (tmp_path / "again.c").read_bytes() == known_events_c.read_bytes()


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_file_compiles_without_a_warning(compiler, known_events_c, tmp_path):
    subprocess.run([compiler, *WARNINGS, "-I", ROOT / "user", "-c", known_events_c,
                    "-o", tmp_path / "known_events.o"], check=True)


def test_quotes_and_letters_beyond_ascii_reach_the_compiler(folder, tmp_path):
    folder.events({**EVENT, "description": "A \"cät\" is seen: \\ ✓"})
    assert folder.compile().returncode == 0
    subprocess.run(["gcc", *WARNINGS, "-I", ROOT / "user", "-c", folder.output,
                    "-o", tmp_path / "out.o"], check=True)
    assert "A \"cät\" is seen: \\ ✓".encode() in (tmp_path / "out.o").read_bytes()


def test_the_depfile_makes_a_changed_or_a_new_table_count(folder):
    depfile = folder.output.with_suffix(".d")
    assert folder.compile("--depfile", depfile).returncode == 0
    makefile = folder.output.with_name("Makefile")
    makefile.write_text(f"{folder.output}:\n\t@echo made again\n-include {depfile}\n")

    def make():
        quiet = {"MAKEFLAGS": ""}  # it may have -s from the make that runs the tests
        return subprocess.run(["make", "-f", makefile, "--no-print-directory"], env=os.environ | quiet,
                              capture_output=True, text=True, check=True).stdout

    assert "up to date" in make()
    folder.events({**EVENT, "umask": "0x08"})
    assert make() == "made again\n"
    assert folder.compile("--depfile", depfile).returncode == 0
    assert "up to date" in make()
    folder.write("tabby/dogs.json", {"source": "perfmon", "events": [{**EVENT, "name": "DOGS"}]})
    assert make() == "made again\n"
    assert folder.compile("--depfile", depfile).returncode == 0
    (folder.path / "tabby" / "dogs.json").unlink()
    assert make() == "made again\n"
