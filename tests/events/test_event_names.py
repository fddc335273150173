# SPDX-License-Identifier: GPL-2.0-only
"""Names: their order, their other spellings, and the names that are left out on purpose."""

import pytest

# Guide, Appendix A: event, code, and the umask of each sub-event; without the print's line breaks.
APPENDIX_A = {
    ("MEM_INST_RETIRED", 0x0B): {"LOADS": 0x01, "STORES": 0x02, "LATENCY_ABOVE_THRESHOLD": 0x10},
    ("MEM_STORE_RETIRED", 0x0C): {"STORE_MISS_IN_LAST_LEVEL_DTLB": 0x01, "DROPPED_EVENTS": 0x02},
    ("MEM_UNCORE_EVENT_RETIRED", 0x0F): {
        "LLC_DATA_MISS": 0x01, "OTHER_CORE_L2_HIT": 0x02, "OTHER_CORE_L2_HITM": 0x04,
        "REMOTE_CACHE_HIT": 0x08, "REMOTE_CACHE_HITM": 0x10, "LOCAL_DRAM": 0x20,
        "NON_LOCAL_DRAM": 0x40, "IO": 0x80},
    ("INST_RETIRED", 0xC0): {"ALL": 0x01, "FP": 0x02, "MMX": 0x04},
    # Printed as PAGE_A/D_ASSISTS. A slash ends an event on perf's command line.
    ("OTHER_ASSISTS", 0xC1): {"PAGE_AD_ASSISTS": 0x01},
    ("UOPS_RETIRED", 0xC2): {"ALL_EXECUTED": 0x01, "RETIRE_SLOTS": 0x02, "MACRO_FUSED": 0x04},
    ("BR_INST_RETIRED", 0xC4): {"CONDITIONAL": 0x01, "NEAR_CALL": 0x02, "ALL_BRANCHES": 0x04},
    ("BR_MISP_RETIRED", 0xC5): {"CONDITIONAL": 0x01, "NEAR_CALL": 0x02, "ALL_BRANCHES": 0x04},
    ("SSEX_UOPS_RETIRED", 0xC7): {
        "PACKED_SINGLE": 0x01, "SCALAR_SINGLE": 0x02, "PACKED_DOUBLE": 0x04,
        "SCALAR_DOUBLE": 0x08, "VECTOR_INTEGER": 0x10},
    ("ITLB_MISS_RETIRED", 0xC8): {"ITLB_MISS": 0x20},
    ("MEM_LOAD_RETIRED", 0xCB): {
        "LOAD_HIT_L1": 0x01, "LOAD_HIT_L2_MLC": 0x02, "LOAD_HIT_L3_LLC": 0x04,
        "LOAD_HIT_OTHER_PM_PKG_L2": 0x08, "LLC_MISS": 0x10, "DROPPED_EVENTS": 0x20,
        "LOAD_HIT_LFB_BUT_MISSED_IN_L1": 0x40, "LOAD_MISS_IN_LAST_LEVEL_DTLB": 0x80},
    ("BR_CND_MISPREDICTION", 0xEB): {"BIMODAL": 0x10},
    ("FP_ASSISTS", 0xF7): {"ALL": 0x01, "OUTPUT": 0x02, "INPUT": 0x04},
}
GUIDE_NAMES = {f"{event}.{sub}": code | umask << 8
               for (event, code), subs in APPENDIX_A.items() for sub, umask in subs.items()}

# The guide gives these umasks a meaning that every later source contradicts (mem-uncore-retired).
GUIDE_NAMES_LEFT_OUT = {
    "MEM_UNCORE_EVENT_RETIRED.LLC_DATA_MISS", "MEM_UNCORE_EVENT_RETIRED.OTHER_CORE_L2_HIT",
    "MEM_UNCORE_EVENT_RETIRED.OTHER_CORE_L2_HITM", "MEM_UNCORE_EVENT_RETIRED.REMOTE_CACHE_HITM",
    "MEM_UNCORE_EVENT_RETIRED.NON_LOCAL_DRAM",
}

# libpfm4 and Intel encode these names differently; each is listed as a contradiction.
LIBPFM4_ENCODES_OTHERWISE = {
    "BR_INST_RETIRED.ALL_BRANCHES": "br-inst-retired-all-branches",
    "INST_RETIRED.ANY_P": "inst-retired-umask",
    "MACRO_INSTS.FUSIONS_DECODED": "fusions-decoded",
}


@pytest.fixture
def resolve(compiled):
    """The event that a name or an alias means on a CPU, or None."""
    def find(cpu, name):
        aliases = {row["name"]: row["of"] for row in compiled.list("alias", cpu)}
        return compiled.by_name("event", cpu).get(aliases.get(name, name))
    return find


def test_appendix_a_has_44_events():
    assert len(GUIDE_NAMES) == 44


@pytest.mark.parametrize("name", sorted(GUIDE_NAMES.keys() - GUIDE_NAMES_LEFT_OUT))
def test_a_name_of_the_guide_means_its_encoding(name, resolve):
    event = resolve("nehalem-ep", name)
    assert event is not None and event["config"] == GUIDE_NAMES[name] and event["precise"] > 0


@pytest.mark.parametrize("name", sorted(GUIDE_NAMES_LEFT_OUT))
def test_a_name_left_out_is_explained_by_a_contradiction(name, compiled, resolve):
    assert resolve("nehalem-ep", name) is None
    assert any(name in row["names"].split() for row in compiled.list("contradiction", "nehalem-ep"))


def test_a_name_of_libpfm4_means_its_encoding_where_the_table_has_it(libpfm4, compiled, resolve):
    encodings = {row["config"] for row in compiled.list("event", "nehalem-ep")}
    wrong = {}
    for row in libpfm4:
        if row["name"] in LIBPFM4_ENCODES_OTHERWISE or row["config"] not in encodings:
            continue
        event = resolve("nehalem-ep", row["name"])
        if event is None or event["config"] != row["config"]:
            wrong[row["name"]] = hex(row["config"])
    assert wrong == {}


@pytest.mark.parametrize("name", sorted(LIBPFM4_ENCODES_OTHERWISE))
def test_a_name_that_libpfm4_encodes_otherwise_is_a_contradiction(name, libpfm4, compiled, resolve):
    theirs = next(row["config"] for row in libpfm4 if row["name"] == name)
    assert resolve("nehalem-ep", name)["config"] != theirs
    ids = {row["id"]: row for row in compiled.list("contradiction", "nehalem-ep")}
    assert name in ids[LIBPFM4_ENCODES_OTHERWISE[name]]["names"].split()


def test_events_and_aliases_are_sorted_as_strcasecmp_sorts(cpu, compiled):
    for kind in ("event", "alias", "offcore_alias"):
        names = [row["name"] for row in compiled.list(kind, cpu)]
        assert names == sorted(names, key=str.lower) and len(names) == len(set(names))


def test_an_alias_stands_for_an_event_and_hides_none(cpu, compiled):
    events = compiled.by_name("event", cpu)
    for alias in compiled.list("alias", cpu):
        assert alias["of"] in events and alias["name"] not in events


def test_no_two_events_of_a_cpu_are_described_alike(cpu, compiled):
    descriptions = [row["description"] for row in compiled.list("event", cpu)]
    assert [text for text in set(descriptions) if descriptions.count(text) > 1] == []


def test_every_event_names_a_known_source(cpu, compiled):
    keys = {row["key"] for kind, key in list(compiled.rows) if kind == "source"
            for row in compiled.rows[kind, key]}
    assert {row["source"].split()[0] for row in compiled.list("event", cpu)} <= keys
