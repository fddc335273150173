# SPDX-License-Identifier: GPL-2.0-only
"""What list finds, and where. tests/events checks the encodings of the names."""
import json
import pathlib

import hosts
import pytest
from facts import perfmon
from hosts import CPUS, NEHALEM, WITHOUT_PMU
from records import parse
from trees import ROOT

EP = "--cpu=nehalem-ep"


@pytest.fixture
def listed(nhmtap):
    """The records that list writes."""
    def run(*arguments):
        result = nhmtap("list", *arguments)
        assert (result.status, result.err) == (0, "")
        return parse(result.out)
    return run


@pytest.fixture
def names(listed):
    return lambda *arguments: [record["name"] for record in listed(*arguments)]


def events(records):
    """The events of the CPU's table, without perf's own names and parts of names."""
    return {record["name"]: record for record in records if "default_period" in record}


# --- CPUs ---------------------------------------------------------------------------------------------


# Processors and their display models by Intel's product lists.
@pytest.mark.parametrize("name, family, model", [
    ("X5570", 6, 0x1A), ("w3520", 6, 0x1A), ("E5504", 6, 0x1A), ("i7-920", 6, 0x1A), ("i7-860", 6, 0x1A),
    ("i5-750", 6, 0x1A), ("X3440", 6, 0x1A), ("i7-975", 6, 0x1A),
    ("X7560", 6, 0x2E), ("E7520", 6, 0x2E), ("X6550", 6, 0x2E),
    ("i5-650", 6, 0x25), ("i3-540", 6, 0x25), ("L3406", 6, 0x25),
    ("X5670", 6, 0x2C), ("E5645", 6, 0x2C), ("i7-970", 6, 0x2C), ("i7-980X", 6, 0x2C), ("W3690", 6, 0x2C),
    ("E7-4870", 6, 0x2F), ("i7-2600K", 6, 0x2A), ("i5-2500", 6, 0x2A), ("E3-1230", 6, 0x2A),
    ("E5-2670", 6, 0x2D), ("E5-1650", 6, 0x2D), ("i7-3930K", 6, 0x2D), ("E5-2687W", 6, 0x2D),
    ("Q6600", 6, 0x0F), ("E8400", 6, 0x0F), ("X5460", 6, 0x0F), ("X7460", 6, 0x1D), ("7140M", 15, 0x06),
    ("Intel(R) Xeon(R) CPU           X5570  @ 2.93GHz", 6, 0x1A),
    ("Intel(R) Xeon(R) CPU E5-2670 0 @ 2.60GHz", 6, 0x2D), ("Intel(R) Core(TM)2 Quad CPU    Q6600  @ 2.40GHz", 6, 0x0F),
    ("nehalem", 6, 0x1A), ("NHM", 6, 0x1A), ("jaketown", 6, 0x2D),
])
def test_a_cpu_may_be_named_as_its_processors_are_sold(listed, name, family, model):
    rows = json.loads(pathlib.Path(ROOT, "events", "cpus.json").read_text("utf-8"))
    wanted = next(row for row in rows if row.get("family") == family
                  and f"0x{model:02X}" in row["models"] and bool(row.get("third_level_cache")) == (name == "7140M"))
    assert listed("--cpu", name) == listed("--cpu", wanted["name"])


@pytest.mark.parametrize("name", ["E5-2670 v2", "Intel(R) Xeon(R) CPU E3-1230 v3 @ 3.30GHz", "i7-3770", "i7-12700", "E5-2620v4",
                                  "", " ", "i7", "Xeon", "[", "*"])
def test_processors_of_other_cpus_are_not_taken_for_one_of_these(nhmtap, name):
    result = nhmtap("list", "--cpu", name)
    assert result.status == 1 and "there is no table of this CPU" in result.err


# --- patterns -------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", [
    "MEM_LOAD_RETIRED.L2_HIT", "mem_load_retired.l2_hit", "retired.L2_h",
    "LOAD_HIT_L2_MLC",       # the guide's spelling of it
    "found its line in L2",  # its description
    "MEM_LOAD*L2_HIT", "mem_load_retired.l[12]_hit", "*HIT_L2_ML?"])
def test_an_event_is_found_by_any_part_of_what_it_is_called(names, pattern):
    assert "MEM_LOAD_RETIRED.L2_HIT" in names(EP, pattern)


def test_of_several_words_each_is_found_anywhere_in_a_text(names):
    found = names(EP, "cache miss")
    assert "cache-misses" in found and found == names(EP, " MISS  cache")
    assert set(found) <= set(names(EP, "cache")) & set(names(EP, "miss"))


def test_a_glob_is_for_the_whole_and_other_text_for_a_part(names):
    assert names(EP, "INST_RET*ANY") == ["INST_RETIRED.ANY"]
    assert {"INST_RETIRED.ANY", "INST_RETIRED.ANY_P"} <= set(names(EP, "INST_RETIRED.ANY"))
    assert "INST_RETIRED.ANY_P" not in names(EP, "INST_RETIRED.AN[A-Z]")


def test_a_topic_is_found_whole(listed):
    found = listed(EP, "virtual-memory")
    assert "ITLB_MISS_RETIRED" in [record["name"] for record in found]
    assert {record["section"] for record in found} == {"virtual-memory"}


def test_what_nothing_matches_is_refused_with_what_comes_near(nhmtap):
    result = nhmtap("list", EP, "INST_RETIRED.ANYP")
    assert (result.status, result.out) == (1, "")
    assert "INST_RETIRED.ANY_P" in result.err


def test_only_one_pattern_is_taken(nhmtap):
    result = nhmtap("list", EP, "a", "b")
    assert (result.status, result.out) == (1, "")


# --- contents -------------------------------------------------------------------------------------


@pytest.mark.parametrize("cpu", CPUS)
def test_every_event_that_intel_lists_for_a_cpu_is_there(listed, cpu):
    facts = {row["name"] for row in perfmon(cpu)}
    found = listed(f"--cpu={cpu}")
    spelled = {name for record in found for name in (record["name"], *record.get("aliases", ()))}
    # Off-core responses are listed by their parts.
    assert {name for name in facts if not name.startswith("OFFCORE_RESPONSE")} <= spelled


def test_the_ex_lacks_what_perfmon_says_it_lacks(names, nhmtap):
    assert names(EP, "MEM_UNCORE_RETIRED")
    assert nhmtap("list", "--cpu=nehalem-ex", "MEM_UNCORE_RETIRED").status == 1


def test_a_machine_shows_its_own_table_and_its_drivers_names(listed, host):
    found = listed(host(NEHALEM))
    assert "L1D.REPL" in events(found)
    drivers = {record["name"]: record.get("terms") for record in found
               if record["section"] == "named by drivers"}
    assert drivers["cpu/mem-loads/"] == "event=0x0b,umask=0x10,ldlat=3"


def test_every_driver_is_asked(listed, host):
    power = hosts.pmu("power", 9, events={"energy-pkg": "event=0x02"})
    assert [record["terms"] for record in listed(host(WITHOUT_PMU, power), "energy")] == ["event=0x02"]


def test_without_a_pmu_there_are_software_and_what_is_derived_from_it(listed, host):
    found = listed(host(WITHOUT_PMU))
    assert {record["section"] for record in found} == {"software", "metrics, for -M"}
    assert {"page-faults", "cpu-clock", "context-switches"} <= {record["name"] for record in found}


def test_an_unknown_cpu_is_refused(nhmtap):
    result = nhmtap("list", "--cpu=pentium")
    assert result.status == 1 and "nehalem-ex" in result.err


def test_generic_names_say_what_the_cpu_counts_for_them(listed):
    found = {record["name"]: record for record in listed(EP)}
    assert found["cache-misses"]["config"] == "0x412e"  # intel_perfmon_event_map
    assert (found["LLC-load-misses"]["config"], found["LLC-load-misses"]["config1"]) == ("0x1b7", "0xf001")
    assert found["cycles"]["aliases"] == ["cpu-cycles"] and found["cycles"]["fixed_counter"] == 1


def test_off_core_responses_are_listed_by_their_parts(listed):
    found = {(record["section"], record["name"]): record for record in listed(EP, "OFFCORE_RESPONSE")}
    # guide, Table 12
    assert found["OFFCORE_RESPONSE, requests", "DEMAND_DATA_RD"]["config1"] == "0x1"
    assert found["OFFCORE_RESPONSE, responses", "LOCAL_DRAM"]["config1"] == "0x4000"


# --- --precise ------------------------------------------------------------------------------------

# intel_nehalem_pebs_event_constraints, arch/x86/events/intel/ds.c of Linux 6.1, as conditions.
FLAGS = 0xFF000000 | 1 << 18 | 1 << 19 | 1 << 21 | 1 << 23


def linux_takes_it_precisely(config):
    code, select = config & 0xFF, config & 0xFFFF
    if code == 0xC2 or config & (FLAGS | 0xFFFF) == 0x108000C0:
        return True
    return not config & FLAGS and (code in (0x0F, 0xC0, 0xC4, 0xC7, 0xCB, 0xF7)
                                   or select in (0x100B, 0x010C, 0x02C5, 0x20C8, 0x003C))


def test_precise_lists_what_linux_takes_and_no_more(listed):
    everything, precise = events(listed(EP)), events(listed(EP, "--precise"))
    expected = {name for name, record in everything.items()
                if linux_takes_it_precisely(int(record["config"], 16))}
    assert precise.keys() == expected
    assert "MEM_INST_RETIRED.LOADS" not in precise and "INST_RETIRED.ANY_P" in precise


def test_precise_goes_with_a_pattern(names):
    assert set(names(EP, "--precise", "L2_HIT")) >= {"MEM_LOAD_RETIRED.L2_HIT"}
    assert "L2_RQSTS.LD_HIT" not in names(EP, "--precise", "L2")


# --- forms ----------------------------------------------------------------------------------------


def test_json_is_a_record_a_line_and_the_default_of_a_pipe(nhmtap):
    assert nhmtap("list", EP).out == nhmtap("list", EP, "--json").out \
        == nhmtap("list", EP, "--format", "json").out


def test_people_get_sections_within_the_width_of_a_screen(nhmtap):
    lines = nhmtap("list", EP, "--format", "table").out.splitlines()
    assert all(len(line) <= 80 and line == line.rstrip() for line in lines)
    headings = [line for line in lines if line and not line.startswith(" ")]
    assert len(set(headings)) == len(headings)
    assert {"software", "hardware", "cache", "pipeline", "OFFCORE_RESPONSE, responses"} <= set(headings)
    assert any(line.startswith("  INST_RETIRED.ANY_P ") and "[p]" in line for line in lines)
