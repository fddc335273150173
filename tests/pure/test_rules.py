# SPDX-License-Identifier: GPL-2.0-only
"""Requests that nhmtap refuses on a Nehalem, each with the rule, its source and a remedy. The rules
come from Intel's guide to the Nehalem PMU (the tables are named in the tests) and from the kernel's
Nehalem driver, arch/x86/events/intel/core.c and ds.c of Linux 6.1."""
import pytest
from hosts import CAP_PERFMON, CPUID, NEHALEM, status
from records import parse

LATENCY = "cpu/event=0xb,umask=0x10,ldlat=30/"


def topology(*cores):
    """Files that say which CPUs are the threads of one core."""
    return {f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list":
            ",".join(map(str, core)) + "\n" for core in cores for cpu in core}


@pytest.fixture
def explained(nhmtap, host):
    """Runs explain on a Nehalem."""
    def run(*arguments, on=NEHALEM):
        return nhmtap("explain", host(on), *arguments)
    return run


def refused(result, *words):
    assert result.status in (1, 2) and result.out == ""
    for word in words:
        assert word in result.err
    assert "Next: " in result.err, "a refusal says what to do"
    assert "(" in result.err, "a rule says where it comes from"


@pytest.mark.parametrize("event, words", [
    ("cpu/event=0xc0,pc/", ["pin control", "X86_RAW_EVENT_MASK"]),
    ("r800c0", ["pin control"]),
    ("cpu/event=0xc0,cmask=32/", ["cmask=32", "above those of 31", "guide"]),
    ("rff0001c0", ["cmask=255"]),
    ("cpu/event=0xc0,offcore_rsp=0x101/", ["config1=0x101", "no register of this event"]),
    ("cpu/event=0xbb,umask=0x1/", ["one off-core register"]),
    ("cpu/event=0xb7,umask=0x1,offcore_rsp=0x10101/", ["beyond 15", "Table 12"]),
    ("cpu/event=0xb7,umask=0x1,offcore_rsp=0x17/", ["no response bit", "Table 12"]),
    ("cpu/event=0xb7,umask=0x1,offcore_rsp=0x700/", ["no request bit", "Table 12"]),
    ("cpu/event=0xb7,umask=0x1/", ["counts nothing"]),
    ("cpu/event=0xb7,umask=0x1,offcore_rsp=0x801/", ["reserved on this CPU", "Table 12"]),
    ("cpu/event=0xb,umask=0x10/", ["threshold is missing", "Table 17"]),
    ("cpu/event=0xb,umask=0x10,ldlat=2/", ["ldlat=2", "3 to 65535"]),
    ("cpu/event=0xb,umask=0x10,ldlat=30,cmask=1/", ["cmask and inv are undefined"]),
    ("cpu/event=0xb,umask=0x10,ldlat=30,inv/", ["cmask and inv are undefined"]),
    ("cpu/event=0xc0,umask=0x1,any/p", ["any (both threads"]),
    ("{%s,cpu/event=0xb,umask=0x10,ldlat=60/}" % LATENCY, ["already has", "one load-latency"]),
    ("{OFFCORE_RESPONSE.ANY_DATA.ANY_DRAM,OFFCORE_RESPONSE.ANY_RFO.ANY_DRAM}",
     ["already has", "one off-core register"]),
    # The kernel counts both by the off-core register: nehalem_hw_cache_extra_regs.
    ("{LLC-loads,LLC-stores}", ["already has", "one off-core register"]),
])
def test_a_request_that_breaks_a_rule_is_refused_with_rule_and_source(explained, event, words):
    refused(explained(event), *words)


# By the driver's PEBS constraints, these are EINVAL.
@pytest.mark.parametrize("event", [
    "MEM_INST_RETIRED.LOADS", "MEM_INST_RETIRED.STORES", "cpu/event=0xc5,umask=0x1/",
    "cpu/event=0xc5,umask=0x4/", "cpu/event=0x51,umask=0x1/", "LONGEST_LAT_CACHE.MISS",
    "OFFCORE_RESPONSE.ANY_DATA.ANY_DRAM", "cache-misses", "branch-misses"])
def test_what_the_driver_does_not_sample_precisely_is_refused_first(explained, event):
    text = event + ("p" if event.endswith("/") else ":p")
    refused(explained("-c", 1000, text), "precise", "constraint tables of Nehalem")


@pytest.mark.parametrize("event", [
    "INST_RETIRED.ANY_P:pp", "cycles:pp", "instructions:p", "branches:pp", "UOPS_RETIRED.ANY:p",
    "MEM_LOAD_RETIRED.LLC_MISS:pp", LATENCY + "pp", "BR_INST_RETIRED.ALL_BRANCHES:pp",
    "cpu/event=0xc2,umask=0x1,cmask=1,inv/pp"])
def test_what_the_driver_samples_precisely_is_planned(explained, event):
    assert explained("-c", 1000, event).status == 0


def test_a_precise_count_is_refused_because_counting_takes_no_samples(nhmtap, host):
    result = nhmtap("stat", host(NEHALEM), "-e", "cycles:p", "--", "true")
    assert result.status == 1
    assert "counting takes none" in result.one("error")["why"]
    assert result.one("error")["source"]


@pytest.mark.parametrize("period, status_", [(31, 1), (32, 0)])
def test_the_least_period_of_a_nehalem_is_32(explained, period, status_):
    result = explained("-c", period, "instructions")
    assert result.status == status_
    if status_:
        refused(result, "below 32", "nhm_limit_period")


def test_a_software_event_may_have_a_short_period_all_the_same(explained):
    assert explained("-c", 1, "page-faults").status == 0


def test_force_insists_on_what_counts_nothing(explained):
    event = "cpu/event=0xb7,umask=0x1,offcore_rsp=0x17/"
    assert explained("--force", event).status == 0
    assert explained("--force", "cpu/event=0xb,umask=0x10,ldlat=2/").status == 0


def test_force_does_not_insist_on_what_the_kernel_refuses(explained):
    refused(explained("--force", "-c", 1000, "cache-misses:p"), "precise")


def test_any_thread_takes_the_rights_to_whole_cpus(explained):
    ordinary = NEHALEM | {"proc/self/status": status(capabilities=0)}
    refused(explained("cpu/event=0x3c,any/u", on=ordinary), "paranoid is 2", "CAP_PERFMON")
    able = NEHALEM | {"proc/self/status": status(capabilities=CAP_PERFMON)}
    assert explained("cpu/event=0x3c,any/u", on=able).status == 0


def test_a_name_that_the_kernel_takes_away_by_cpuid_is_refused_with_its_bit_and_not_listed(nhmtap, host):
    # EBX of a Xeon X5550 is 0x44: no bus cycles, and no branch misses because of an erratum. For
    # branch misses the driver has another event, which it names in sysfs (intel_nehalem_quirk()).
    machine = host(NEHALEM, CPUID)
    refused(nhmtap("explain", machine, "bus-cycles"), "bit 2 of CPUID.0AH:EBX")
    event, *_ = parse(nhmtap("explain", machine, "branch-misses").out)
    assert event["encoding"]["config"] == "0x7f89"
    listed = {record["name"] for record in parse(nhmtap("list", machine, "--json").out)}
    assert "branch-misses" in listed and "bus-cycles" not in listed
    assert nhmtap("explain", host(NEHALEM), "bus-cycles").status == 0


# --- groups -----------------------------------------------------------------------------------------

GENERAL = ["UOPS_ISSUED.ANY", "UOPS_RETIRED.ANY", "BR_INST_EXEC.ANY", "BR_MISP_EXEC.ANY", "L2_RQSTS.MISS"]


def group(*events):
    return "{" + ",".join(events) + "}"


def test_a_group_has_four_general_counters(explained):
    assert explained(group(*GENERAL[:4])).status == 0
    refused(explained(group(*GENERAL)), "no counter is left for L2_RQSTS.MISS", "general 0")


def test_fixed_counters_come_on_top(explained):
    # 0x00c0 and 0x003c have their own fixed counters: intel_nehalem_event_constraints.
    assert explained(group("instructions", "cycles", *GENERAL[:4])).status == 0
    # INST_RETIRED.ANY_P is 0x01c0, which has none.
    refused(explained(group("INST_RETIRED.ANY_P", *GENERAL[:4])), "no counter is left")


def test_a_fixed_event_moves_to_a_general_counter_when_its_own_is_taken(explained):
    assert explained(group("instructions", "instructions:u", "cycles", "cycles:u")).status == 0


def test_two_of_the_events_for_counters_0_and_1_fit_and_a_third_does_not(explained):
    pair = ["L1D.REPL", "L1D.M_EVICT"]  # 0x51: counters 0 and 1 only
    assert explained(group(*pair)).status == 0
    refused(explained(group(*pair, "L1D_CACHE_LD.MESI")), "no counter is left")


def test_general_events_make_way_for_those_that_are_choosy(explained):
    assert explained(group(*GENERAL[:2], "L1D.REPL", "L1D.M_EVICT")).status == 0


def test_software_events_take_no_counter(explained):
    assert explained(group(*GENERAL[:4], "page-faults", "task-clock")).status == 0


def test_events_outside_of_a_group_take_turns(explained):
    assert explained(",".join(GENERAL)).status == 0


def test_equal_offcore_values_share_the_register(explained):
    one = "OFFCORE_RESPONSE.ANY_DATA.ANY_DRAM"
    assert explained(group(one + ":u", one + ":k")).status == 0


def test_two_offcore_values_on_both_threads_of_a_core_are_refused(nhmtap, host):
    two = "OFFCORE_RESPONSE.ANY_DATA.ANY_DRAM,OFFCORE_RESPONSE.ANY_RFO.ANY_DRAM"
    machine = host(NEHALEM, topology((0, 4), (1, 5), (2, 6), (3, 7)))
    result = nhmtap("stat", machine, "-C", "0-7", "-e", two)
    assert result.status == 1
    assert "both of its threads" in result.one("error")["why"]


# CPU numbers of real machines. With two X5550 (from hwloc's archive), CPUs 0 to 3 are the cores of
# one package and 4 to 7 those of the other. With two X5650 (from a boot log), odd CPUs are in the
# second package. On both, the siblings follow all the cores.
X5550 = [(cpu, cpu + 8) for cpu in range(8)]
X5650 = [(cpu, cpu + 12) for cpu in range(12)]


@pytest.mark.parametrize("cores", [X5550, X5650], ids=["two X5550", "two X5650"])
def test_siblings_are_those_that_the_kernel_names_however_it_numbers_them(nhmtap, host, cores):
    two = "OFFCORE_RESPONSE.ANY_DATA.ANY_DRAM,OFFCORE_RESPONSE.ANY_RFO.ANY_DRAM"
    everywhere = f"0-{2 * len(cores) - 1}\n"
    machine = host(NEHALEM, topology(*cores), {f"sys/devices/system/cpu/{name}": everywhere
                                               for name in ("online", "possible")})
    firsts = ",".join(str(first) for first, _ in cores)
    for cpus, shared in (("0,1", False), (firsts, False), (f"0,{cores[0][1]}", True), (f"{firsts},{cores[-1][1]}", True)):
        error = nhmtap("stat", machine, "-C", cpus, "-e", two, "--", "true").one("error")
        assert ("both of its threads" in error["why"]) == shared, (cpus, error)


# --- composed names -------------------------------------------------------------------------------


@pytest.mark.parametrize("text, config1", [
    # Bits of guide Table 12: DMND_DATA_RD 0, PF_DATA_RD 4; REMOTE_DRAM 13, LOCAL_DRAM 14.
    ("OFFCORE_RESPONSE_0:DMND_DATA_RD|PF_DATA_RD:LOCAL_DRAM|REMOTE_DRAM", 0x6011),
    ("offcore_response.dmnd_data_rd.local_dram", 0x4001),
    ("OFFCORE_RESPONSE:DMND_RFO:UNCORE_HIT", 0x0102),
])
def test_an_offcore_response_is_composed_of_request_and_response(explain, host, text, config1):
    event, = explain(host(NEHALEM), text)
    assert event["attr"]["config"] == "0x1b7"
    assert event["attr"]["config1"] == hex(config1)
    assert event["description"]


@pytest.mark.parametrize("text, words", [
    ("OFFCORE_RESPONSE:DMND_DATA_RDD:LOCAL_DRAM", ["no request", "DEMAND_DATA_RD"]),
    ("OFFCORE_RESPONSE:ANY_DATA:LOCAL_DRUM", ["no response", "LOCAL_DRAM"]),
    ("OFFCORE_RESPONSE:ANY_DATA|:ANY_DRAM", ["request or response is missing"]),
    ("OFFCORE_RESPONSE:ANY_DATA:ANY_DRAM:MORE", ["'MORE' is no request and no response"]),
])
def test_a_wrong_piece_of_an_offcore_response_is_named(nhmtap, host, text, words):
    result = nhmtap("explain", host(NEHALEM), text)
    assert result.status == 1
    for word in words:
        assert word in result.err


def test_umasks_of_one_event_are_combined(explain, host):
    # MEM_LOAD_RETIRED is 0xcb; L1D_HIT 01, L2_HIT 02, LLC_MISS 10: SDM 3B.
    for separator in ".:":
        event, = explain(host(NEHALEM), f"MEM_LOAD_RETIRED{separator}L1D_HIT|L2_HIT|LLC_MISS:u")
        assert event["attr"]["config"] == "0x13cb"
        assert event["attr"]["exclude_kernel"] == 1


@pytest.mark.parametrize("text, word", [
    ("MEM_LOAD_RETIRED.L1D_HIT|NONSENSE", "NONSENSE is no umask"),
    ("UOPS_ISSUED.ANY|STALL_CYCLES", "counts in another way"),  # cmask and inv against none
    ("MEM_INST_RETIRED.LOADS|LATENCY_ABOVE_THRESHOLD_64", "stands for itself"),
])
def test_umasks_that_do_not_go_together_are_refused(nhmtap, host, text, word):
    result = nhmtap("explain", host(NEHALEM), text)
    assert result.status == 1
    assert word in result.err


def caret(result):
    """The text and the place in it at which the caret points."""
    _, text, mark = result.err.splitlines()
    return text[2:], mark.index("^") - 2


@pytest.mark.parametrize("text, wrong", [
    ("cycles,instrctions,cs", "instrctions"),
    ("cycles, {cs,nope}", "nope"),
    ("cpu/event=0xc0,umsk=1/", "umsk"),
    ("cpu/event=0xc0, umask=0x100/", "umask=0x100"),
    ("OFFCORE_RESPONSE:ANY_DATA:LOCAL_DRUM", "LOCAL_DRUM"),
    ("MEM_LOAD_RETIRED.L1D_HIT|L9_HIT", "L9_HIT"),
])
def test_a_caret_points_at_the_mistake(nhmtap, host, text, wrong):
    shown, column = caret(nhmtap("explain", host(NEHALEM), text))
    assert shown == text
    assert text[column:].startswith(wrong)


def test_the_guides_names_are_aliases(explain, host):
    # Guide, Appendix A: MEM_LOAD_RETIRED with LOAD_HIT_L1 is SDM's L1D_HIT.
    event, = explain(host(NEHALEM), "MEM_LOAD_RETIRED.LOAD_HIT_L1")
    assert event["attr"]["config"] == "0x1cb"


@pytest.mark.parametrize("threshold, status", [(2, 1), (3, 0), (65535, 0), (65536, 1)])
def test_a_latency_is_taken_up_to_its_bounds(explained, threshold, status):
    assert explained(f"cpu/event=0xb,umask=0x10,ldlat={threshold}/").status == status
