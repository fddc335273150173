# SPDX-License-Identifier: GPL-2.0-only
"""Texts of events on machines that exist only as files: each gives a complete perf_event_attr, or a
refusal. Values come from perf_event_open(2) and linux/perf_event.h, the bits of config from the
formats of the kernel's Nehalem driver (hosts.py), and event codes from Intel's SDM, volume 3B,
chapter "Performance Monitoring Events"."""
import json
import hosts
import pytest
from hosts import ALL_CAPABILITIES, CAP_PERFMON, CAP_SYS_ADMIN, NEHALEM, OTHER_PMU, WITHOUT_PMU

HARDWARE, SOFTWARE, HW_CACHE, RAW = 0, 1, 3, 4


@pytest.fixture
def attr(explain, host):
    """The attr of one event on a Nehalem."""
    def run(text, *arguments):
        events = explain(host(NEHALEM), *arguments, text)
        assert len(events) == 1
        return events[0]["attr"]
    return run


@pytest.fixture
def refusal(nhmtap, host):
    """The status and the message with which explain refuses."""
    def run(text, *arguments, on=NEHALEM):
        result = nhmtap("explain", host(on), *arguments, text)
        assert result.out == ""
        sentence, *place = result.err.splitlines()
        assert sentence.startswith("nhmtap: ")
        assert sentence[-1] in ".?" and sentence[-2] not in ".?", "one mark ends a sentence"
        assert len(place) in (0, 2) and (not place or place[1].strip() == "^"), "a caret, if any"
        return result.status, result.err
    return run


def bits(attr, *names):
    return tuple(attr.get(name, 0) for name in names)


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, config", [
    ("cycles", 0), ("cpu-cycles", 0), ("instructions", 1), ("cache-references", 2),
    ("cache-misses", 3), ("branches", 4), ("branch-instructions", 4), ("bus-cycles", 6),
    ("stalled-cycles-frontend", 7), ("stalled-cycles-backend", 8), ("ref-cycles", 9)])
def test_a_hardware_name_is_the_kernels_generic_event(explain, host, name, config):
    # The driver of this machine names no events, so that only the generic name is left.
    files = {path: text for path, text in NEHALEM.items() if "/events/" not in path}
    attr = explain(host(files), name)[0]["attr"]
    assert (attr["type"], int(attr["config"], 16)) == (HARDWARE, config)


@pytest.mark.parametrize("name, config", [
    ("cpu-clock", 0), ("task-clock", 1), ("page-faults", 2), ("faults", 2),
    ("context-switches", 3), ("cs", 3), ("cpu-migrations", 4), ("migrations", 4),
    ("minor-faults", 5), ("major-faults", 6), ("alignment-faults", 7), ("emulation-faults", 8),
    ("dummy", 9), ("bpf-output", 10), ("cgroup-switches", 11)])
def test_a_software_name_works_without_a_pmu(explain, host, name, config):
    attr = explain(host(WITHOUT_PMU), name)[0]["attr"]
    assert (attr["type"], int(attr["config"], 16)) == (SOFTWARE, config)


@pytest.mark.parametrize("name, config", [
    # cache | operation << 8 | result << 16: perf_event_open(2)
    ("L1-dcache-loads", 0x0), ("L1-dcache-load-misses", 0x10000),
    ("L1-icache-load-misses", 0x10001), ("LLC-stores", 0x102), ("LLC-prefetch-misses", 0x10202),
    ("dTLB-store-misses", 0x10103),
    ("iTLB-loads", 0x4), ("branch-loads", 0x5), ("node-load-misses", 0x10006)])
def test_a_cache_name_is_cache_operation_and_result(attr, name, config):
    assert (attr(name)["type"], int(attr(name)["config"], 16)) == (HW_CACHE, config)


def test_case_does_not_count(attr):
    assert attr("Page-Faults")["config"] == "0x2"
    assert attr("l1-DCACHE-loads")["type"] == HW_CACHE
    assert attr("mem_load_retired.llc_miss")["config"] == "0x10cb"


# SDM 3B, "Non-Architectural Performance Events in the Processor Core" of Core i7: umask and event.
@pytest.mark.parametrize("name, config", [
    ("INST_RETIRED.ANY_P", 0x1c0), ("UOPS_RETIRED.ANY", 0x1c2),
    ("MEM_LOAD_RETIRED.LLC_MISS", 0x10cb), ("MEM_LOAD_RETIRED.L1D_HIT", 0x1cb),
    ("BR_MISP_EXEC.ANY", 0x7f89), ("ITLB_MISS_RETIRED", 0x20c8),
    ("L2_RQSTS.MISS", 0xaa24)])
def test_a_nehalem_name_is_its_event_and_umask(attr, name, config):
    assert attr(name)["type"] == RAW
    assert attr(name)["config"] == hex(config)


def test_a_nehalem_name_may_be_written_with_a_colon(attr):
    assert attr("INST_RETIRED:ANY_P")["config"] == "0x1c0"
    assert bits(attr("INST_RETIRED:ANY_P:u"), "exclude_user", "exclude_kernel") == (0, 1)


def test_a_latency_event_carries_its_threshold_in_config1(attr):
    found = attr("MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD_64:p")
    assert (found["config"], found["config1"], found["precise_ip"]) == ("0x100b", "0x40", 1)


def test_the_drivers_own_names_are_known(attr):
    found = attr("mem-loads:p")
    assert (found["type"], found["config"], found["config1"]) == (RAW, "0x100b", "0x3")


# --- raw codes and terms --------------------------------------------------------------------------


@pytest.mark.parametrize("text, config", [
    ("r1c0", "0x1c0"), ("r01C0", "0x1c0"), ("rFF", "0xff"),
    # cmask 0x10, inv, umask 1, event 0xc0: how SDM 18.8.1.1 counts cycles through INST_RETIRED
    ("r108001c0", "0x108001c0")])
def test_a_raw_code_is_config_itself(attr, text, config):
    assert (attr(text)["type"], attr(text)["config"]) == (RAW, config)


@pytest.mark.parametrize("terms, config, config1", [
    ("event=0xc0,umask=0x01", 0x1c0, None),
    ("umask=1,event=192", 0x1c0, None),
    ("event=0xc0", 0xc0, None),
    ("event=0x3c,edge", 1 << 18 | 0x3c, None),
    ("event=0x3c,edge=1", 1 << 18 | 0x3c, None),
    ("event=0x3c,edge=0", 0x3c, None),
    ("event=0x3c,any", 1 << 21 | 0x3c, None),
    ("event=0xc2,umask=1,cmask=16,inv", 16 << 24 | 1 << 23 | 0x1c2, None),
    ("event=0xc2,umask=0xff,cmask=0x1f,inv,any,edge",
     0x1f << 24 | 1 << 23 | 1 << 21 | 1 << 18 | 0xffc2, None),
    ("event=0xb7,umask=1,offcore_rsp=0x4711", 0x1b7, 0x4711),
    ("event=0x0b,umask=0x10,ldlat=30", 0x100b, 30),
    ("config=0x1c0", 0x1c0, None),
    ("config=0x1b7,config1=0xffff", 0x1b7, 0xffff),
    ("mem-loads", 0x100b, 3),
    ("mem-loads,ldlat=64", 0x100b, 64),
    ("event=0x1,event=0x2", 0x2, None),
])
def test_terms_lie_where_the_pmus_formats_say(attr, terms, config, config1):
    found = attr(f"cpu/{terms}/")
    assert found["type"] == RAW
    assert int(found["config"], 16) == config
    assert found.get("config1") == (hex(config1) if config1 else None)


@pytest.mark.parametrize("terms, note", [
    ("event=0x3c,event=0xc0", "event"), ("umask=2,event=0xc2,umask=1", "umask"), ("event=0xc2,inv,cmask=3,inv=0", "inv"),
    ("event=0xc2,event=0xc2", None), ("mem-loads,ldlat=64", None), ("event=0x1,event=0x3", None)])
def test_of_two_values_that_perf_would_mix_the_last_counts_and_that_is_said(explain, host, terms, note):
    event, *_ = explain(host(hosts.NEHALEM), f"cpu/{terms}/")
    assert event.get("note") == (note and f"of the values of {note} the last counts; perf mixes them")


def test_a_format_in_pieces_takes_the_values_low_bits_first(explain, host):
    pmu = hosts.pmu("pieces", 42, formats={"split": "config:0-3,32-35", "second": "config2:8-11"})
    found = explain(host(WITHOUT_PMU, pmu), "pieces/split=0xab,second=0x5/")[0]["attr"]
    assert (found["type"], found["config"], found["config2"]) == (42, "0xa0000000b", "0x500")


def test_an_alias_of_any_pmu_brings_its_unit(explain, host):
    pmu = hosts.pmu("power", 9, formats={"event": "config:0-7"},
                    events={"energy-pkg": "event=0x02", "energy-pkg.unit": "Joules",
                            "energy-pkg.scale": "2.3283064365386962890625e-10"})
    event = explain(host(WITHOUT_PMU, pmu), "power/energy-pkg/")[0]
    assert (event["attr"]["type"], event["attr"]["config"], event["unit"]) == (9, "0x2", "Joules")


def test_a_hybrid_machines_large_cores_stand_for_cpu(explain, host):
    pmu = hosts.pmu("cpu_core", 4, formats={"event": "config:0-7"}, max_precise=3)
    found = explain(host(WITHOUT_PMU, pmu), "cycles:P")[0]["attr"]
    assert found["precise_ip"] == 3


def test_a_name_may_be_given_to_an_event(explain, host):
    events = explain(host(NEHALEM), "cpu/event=0xc0,name=retired/u")
    assert events[0]["name"] == "retired"


def test_an_event_goes_by_the_users_own_spelling(explain, host):
    texts = ["cycles:u", "r01c0", "cpu/event=0xc0,umask=0x1/pp", "INST_RETIRED.ANY_P:k"]
    assert [event["name"] for event in explain(host(NEHALEM), ",".join(texts))] == texts


def test_an_event_of_the_table_carries_its_description(explain, host):
    assert "L3" in explain(host(NEHALEM), "MEM_LOAD_RETIRED.LLC_MISS")[0]["description"]


# --- modifiers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("modifiers, user, kernel, hypervisor", [
    ("u", 0, 1, 1), ("k", 1, 0, 1), ("uk", 0, 0, 1), ("uh", 0, 1, 0),
    ("ukh", 0, 0, 0)])
def test_privilege_modifiers_exclude_the_others(attr, modifiers, user, kernel, hypervisor):
    found = attr(f"cycles:{modifiers}")
    assert bits(found, "exclude_user", "exclude_kernel", "exclude_hv") == (user, kernel, hypervisor)


@pytest.mark.parametrize("side", ["u", "h"])
def test_a_side_on_which_nothing_happens_is_named_as_it_was_written(refusal, side):
    status, message = refusal(f"context-switches:{side}")
    assert status == 1 and f"leave out the modifier {side}" in message


def test_the_hypervisors_side_alone_counts_nothing_and_can_be_insisted_on(attr, refusal):
    # x86_pmu_hw_config() sets USR and OS from exclude_user and exclude_kernel, and has no bit for exclude_hv.
    status, message = refusal("cycles:h")
    assert status == 1 and "without u and k it would count nothing" in message
    assert bits(attr("cycles:h", "--force"), "exclude_user", "exclude_kernel", "exclude_hv") == (1, 1, 0)


def test_without_modifiers_only_guests_are_excluded(attr):
    assert bits(attr("cycles"), "exclude_user", "exclude_kernel", "exclude_hv",
                "exclude_guest", "exclude_host", "exclude_idle") == (0, 0, 0, 1, 0, 0)


@pytest.mark.parametrize("modifiers, guest, host_", [("G", 0, 1), ("H", 1, 0), ("GH", 0, 0)])
def test_guest_and_host_modifiers_exclude_the_other(attr, modifiers, guest, host_):
    assert bits(attr(f"cycles:{modifiers}"), "exclude_guest", "exclude_host") == (guest, host_)


@pytest.mark.parametrize("modifiers, level", [("", 0), ("p", 1), ("pp", 2), ("ppp", 3), ("P", 2)])
def test_each_p_is_a_level_of_precision_and_a_capital_one_the_most(attr, modifiers, level):
    assert attr(f"cpu/event=0xc0,umask=1/{modifiers}").get("precise_ip", 0) == level


def test_the_most_precision_of_a_machine_without_any_is_none(explain, host):
    assert "precise_ip" not in explain(host(WITHOUT_PMU), "cycles:P")[0]["attr"]


def test_idle_and_pinned_have_modifiers(attr):
    assert bits(attr("cycles:ID"), "exclude_idle", "pinned") == (1, 1)


def test_modifiers_follow_terms_with_or_without_a_colon(attr):
    assert attr("cpu/event=0xc0/u") == attr("cpu/event=0xc0/:u")


def test_the_modifiers_of_a_group_are_its_members(explain, host):
    events = explain(host(NEHALEM), "{cycles,instructions:p}:u")
    assert [event["attr"].get("exclude_kernel") for event in events] == [1, 1]
    assert [event["attr"].get("precise_ip") for event in events] == [None, 1]


# --- groups ---------------------------------------------------------------------------------------


def test_only_the_leader_of_a_group_is_disabled(explain, host):
    # A sibling that is disabled is left out when the kernel checks whether the group fits, and the
    # group then opens and never runs: collect_events(), arch/x86/events/core.c.
    events = explain(host(NEHALEM), "{cycles,instructions,branches},cs")
    attrs = [event["attr"] for event in events]
    assert [attr.get("disabled", 0) for attr in attrs] == [1, 0, 0, 1]
    assert [attr.get("enable_on_exec", 0) for attr in attrs] == [1, 0, 0, 1]
    assert [event.get("group") for event in events] == [0, 0, 0, None]


def test_two_groups_and_two_options_are_told_apart(explain, host):
    events = explain(host(NEHALEM), "-e", "{cycles,cs}", "-e", "{instructions,faults}", "-e",
                     "dummy")
    assert [event.get("group") for event in events] == [0, 0, 1, 1, None]


def test_spaces_between_events_do_not_count(explain, host):
    events = explain(host(NEHALEM), " { cycles , cs } , dummy ")
    assert [event["attr"]["config"] for event in events] == ["0x0", "0x3", "0x9"]


def test_every_member_that_is_set_has_a_reason(explain, host):
    for event in explain(host(NEHALEM), "-F", "99",
                         "{cpu/event=0xb7,umask=1,offcore_rsp=0x101/,r1c0:kpp}"):
        assert set(event["attr"]) - set(event["why"]) == set()
        assert all(event["why"].values())


# --- samples --------------------------------------------------------------------------------------


def test_a_period_is_a_period(attr):
    found = attr("cycles", "-c", "100003")
    assert (found["sample_period"], found.get("freq", 0)) == (100003, 0)


# The guide's section 3.5: a record is of the event after the overflow. Nehalem's driver refuses a period of 31
# (nhm_limit_period()); Westmere's and Sandy Bridge's (models 0x2c, 0x2a) take any, and the kernel raises 1 to 2
# (x86_perf_event_set_period()).
@pytest.mark.parametrize("model, event, asked, period, distance", [
    (0x1a, "cpu/event=0xc0/", 1009, 1009, 1009), (0x1a, "cpu/event=0xc0/p", 1009, 1008, 1009),
    (0x1a, "cpu/event=0xc0/pp", 1009, 1008, 1009), (0x1a, "cpu/mem-loads,ldlat=30/pp", 101, 100, 101),
    (0x1a, "cycles:pp", 10007, 10006, 10007), (0x1a, "cpu/event=0xc0,period=503/pp", 1009, 502, 503),
    (0x1a, "cpu/event=0xc0/pp", 33, 32, 33), (0x1a, "cpu/event=0xc0/pp", 32, 32, 33),
    (0x1a, "cpu/event=0xc0/", 32, 32, 32), (0x2c, "cpu/event=0xc0/pp", 32, 31, 32),
    (0x2a, "cpu/event=0xc5/pp", 3, 2, 3), (0x2a, "cpu/event=0xc5/pp", 2, 2, 3), (0x2a, "cpu/event=0xc4/", 1, 1, 2),
    (0x1a, "page-faults", 7, 7, 7),
])
def test_samples_are_as_far_apart_as_was_asked_though_a_precise_one_takes_an_event_more_than_the_kernels_period(
        explain, host, model, event, asked, period, distance):
    found, = explain(host(NEHALEM, {"proc/cpuinfo": hosts.cpuinfo(model=model)}), "-c", str(asked), event)
    assert (found["attr"]["sample_period"], found["sample_distance"]) == (period, distance)


def test_a_precise_period_is_not_shortened_below_what_the_driver_takes(refusal):
    status, why = refusal("cpu/event=0xc0/pp", "-c", "31")
    assert status == 1 and "a period of 31 is below 32" in why


def test_samples_of_a_frequency_have_no_fixed_distance(explain, host):
    found, = explain(host(NEHALEM), "-F", "99", "cycles:pp")
    assert "sample_distance" not in found


def test_a_frequency_is_a_frequency(attr):
    found = attr("cycles", "-F", "997")
    assert (found["sample_freq"], found["freq"]) == (997, 1)


def test_an_events_own_period_comes_before_the_options(attr):
    assert attr("cpu/event=0xc0,period=5000/", "-c", "77")["sample_period"] == 5000
    found = attr("cpu/event=0xc0,freq=50/", "-c", "77")
    assert (found["sample_freq"], found["freq"]) == (50, 1)


def test_every_sample_comes_by_the_program(attr):
    # intel_pmu_hw_config() batches PEBS records unless wakeup_events is set and watermark is not.
    found = attr("cpu/event=0xc0/pp", "-c", "1000")
    assert (found["wakeup_events"], found.get("watermark", 0)) == (1, 0)


def test_counting_takes_no_samples(attr):
    assert not {"sample_period", "sample_freq", "sample_type",
                "wakeup_events"} & set(attr("cycles"))


def test_the_default_of_a_profile_is_precise_cycles_where_there_are_any(explain, host):
    event, = explain(host(NEHALEM), "-F", "99")
    assert (event["attr"]["type"], event["attr"]["config"]) == (HARDWARE, "0x0")
    assert event["attr"]["precise_ip"] == 2


def test_the_default_of_a_profile_is_plain_cycles_without_precision(explain, host):
    files = NEHALEM | {f"{hosts.EVENT_SOURCE}/cpu/caps/max_precise": "0\n"}
    event, = explain(host(files), "-F", "99")
    assert (event["attr"]["type"], event["attr"].get("precise_ip", 0)) == (HARDWARE, 0)


# p4_hw_config() (NetBurst) ignores precise_ip: such an event opens, and takes ordinary samples.
@pytest.mark.parametrize("event", ["cycles:p", "instructions:pp", "r00c0:p", "cpu/event=0xc0/p"])
def test_precision_that_the_driver_does_not_claim_is_refused(nhmtap, host, event):
    files = OTHER_PMU | {f"{hosts.EVENT_SOURCE}/cpu/caps/max_precise": "0\n"}
    result = nhmtap("profile", host(files), "-e", event, "-c", "1000", "--", "true")
    error = result.one("error")
    assert result.status == 2 and error["errno"] == "EOPNOTSUPP"
    assert "caps/max_precise is 0" in error["why"]


def test_the_default_of_a_profile_is_a_clock_without_a_pmu(explain, host):
    event, = explain(host(WITHOUT_PMU), "-F", "99")
    assert (event["attr"]["type"], event["attr"]["config"]) == (SOFTWARE, "0x0")


def test_the_defaults_of_counting_leave_out_hardware_without_a_pmu(explain, host):
    assert {event["attr"]["type"] for event in explain(host(WITHOUT_PMU))} == {SOFTWARE}
    assert {event["attr"]["type"] for event in explain(host(NEHALEM))} == {HARDWARE, SOFTWARE}


def test_a_frequency_over_the_machines_limit_is_refused(refusal):
    slow = NEHALEM | {"proc/sys/kernel/perf_event_max_sample_rate": "1500\n"}
    status, words = refusal("cycles", "-F", "1501", on=slow)
    assert status == 2
    assert "perf_event_max_sample_rate is 1500" in words and "-F 1500" in words


def test_a_frequency_in_a_term_has_the_same_limit(refusal):
    slow = NEHALEM | {"proc/sys/kernel/perf_event_max_sample_rate": "1500\n"}
    status, words = refusal("cpu/event=0xc0,freq=1501/", "-F", "100", on=slow)
    assert (status, "max_sample_rate is 1500" in words) == (2, True)


def test_the_default_frequency_gives_way_to_the_machines_limit(nhmtap, host):
    slow = WITHOUT_PMU | {"proc/sys/kernel/perf_event_max_sample_rate": "1500\n"}
    start = nhmtap("profile", host(slow), "--by", "ip", "--", "true").one("start")
    assert start["events"][0]["attr"]["sample_freq"] == 1500


def test_a_period_and_a_frequency_contradict_each_other(refusal):
    status, words = refusal("cycles", "-F", "100", "-c", "100")
    assert status == 1 and "--count and --freq" in words


# --- privileges -----------------------------------------------------------------------------------


def unprivileged(level, capabilities=0):
    return NEHALEM | {"proc/self/status": hosts.status(capabilities),
                      "proc/sys/kernel/perf_event_paranoid": f"{level}\n"}


@pytest.mark.parametrize("level", [2, 3])
def test_without_privileges_the_kernels_side_is_left_out_and_the_name_says_so(explain, host, level):
    event, = explain(host(unprivileged(level)), "cycles")
    assert event["name"] == "cycles:u"
    assert bits(event["attr"], "exclude_user", "exclude_kernel", "exclude_hv") == (0, 1, 1)
    assert f"perf_event_paranoid is {level}" in event["why"]["exclude_kernel"]


@pytest.mark.parametrize("level, capabilities", [
    (1, 0), (0, 0), (-1, 0), (2, CAP_PERFMON), (2, CAP_SYS_ADMIN), (3, ALL_CAPABILITIES)])
def test_with_the_level_or_the_capability_the_kernels_side_is_counted(explain, host, level,
                                                                      capabilities):
    event, = explain(host(unprivileged(level, capabilities)), "cycles")
    assert event["name"] == "cycles"
    assert bits(event["attr"], "exclude_kernel", "exclude_hv") == (0, 0)


def test_what_was_asked_for_in_words_is_not_taken_back(explain, host):
    event, = explain(host(unprivileged(2)), "cycles:k")
    assert bits(event["attr"], "exclude_user", "exclude_kernel") == (1, 0)


# --- refusals of events ---------------------------------------------------------------------------


@pytest.mark.parametrize("wrong, right", [
    ("cycels", "cycles"), ("page-fault", "page-faults"), ("intsructions", "instructions"),
    ("context-switch", "context-switches"),
    ("MEM_LOAD_RETIRED.LLC_MIS", "MEM_LOAD_RETIRED.LLC_MISS"),
    ("INST_RETIRE", "INST_RETIRED.ANY_P")])
def test_the_nearest_names_are_told(refusal, wrong, right):
    status, words = refusal(wrong)
    assert status == 1
    assert f"'{wrong}'" in words
    assert right in words.split("did you mean")[1]


@pytest.mark.parametrize("other", ["zzzzqqqqxxxx", "foo", "ax"])
def test_a_name_like_no_other_has_no_nearest(refusal, other):
    """More than a third of the letters differ."""
    status, words = refusal(other)
    assert (status, "did you mean" in words) == (1, False)


def test_a_name_of_another_cpu_says_of_which(refusal):
    status, words = refusal("MEM_LOAD_RETIRED.LLC_MISS", on=WITHOUT_PMU)
    assert status == 2
    assert "nehalem-ep" in words and "model 143" in words and "cache-misses" in words


def test_a_nehalem_without_its_pmu_says_so(refusal):
    files = {path: text for path, text in NEHALEM.items() if hosts.EVENT_SOURCE not in path}
    status, words = refusal("INST_RETIRED.ANY_P", on=files)
    assert status == 2
    assert "no core PMU" in words and "cpu-clock" in words


def test_terms_without_the_pmu_say_so(refusal):
    status, words = refusal("cpu/event=0xc0/", on=WITHOUT_PMU)
    assert status == 2
    assert "no PMU 'cpu'" in words and "cpu-clock" in words
    status, words = refusal("uncore/clockticks/")
    assert status == 2 and "no PMU 'uncore'" in words


@pytest.mark.parametrize("text, what", [
    ("cpu/event=0x100/", "event has 8 bits; 0x100 does not fit"),
    ("cpu/cmask=256/", "the largest is 0xff"),
    ("cpu/edge=2/", "edge has 1 bit;"),
    ("cpu/ldlat=0x10000/", "the largest is 0xffff"),
    ("cpu/event=banana/", "'banana' is not a number"),
    ("cpu/event=/", "'' is not a number"),
    ("cpu/event=-1/", "'-1' is not a number"),
    ("cpu/event=0x10000000000000000/", "is not a number of up to 64 bits"),
    ("cpu/evnt=1/", "the PMU 'cpu' has no such term"),
    ("cpu/period=0/", "a period of 0 takes no samples"),
    ("cpu/period=often/", "'often' is not a number"), ("cpu/umask=any/", "'any' is not a number"),
    ("cpu/event=0xc0,colour=red/", "the PMU 'cpu' has no such term"), ("cpu/event=0xc0,metric-id=red/", "no such term"),
    ("cycles:pppp", "levels 0 to 3, and more are asked for"),
])
def test_a_term_that_cannot_be_is_refused(refusal, text, what):
    status, words = refusal(text)
    assert (status, what in words) == (1, True), words


def test_an_unknown_term_lists_those_that_the_pmu_has(refusal):
    _, words = refusal("cpu/evnt=1/")
    for term in ("event", "umask", "offcore_rsp", "ldlat", "period"):
        assert term in words.split("terms: ")[1]


@pytest.mark.parametrize("text, what", [
    ("", "name is missing"), ("cycles,", "name is missing"), (",cycles", "name is missing"),
    ("cycles,,cs", "name is missing"), ("{}", "name is missing"),
    ("{cycles", "'}' that ends the group"), ("{cycles,cs", "'}' that ends the group"),
    ("cycles}", "',' between two events"), ("cycles cs", "',' between two events"),
    ("{cycles,{cs}}", "missing"), ("{cycles,cs}:x", "no modifiers"),
    ("cycles:x", "'x' is no umask of cycles, and no modifier"), ("{cycles}:", "nothing behind the ':'"),
    ("cpu/event=1", "'/' that ends the terms"), ("cpu/event=1/x", "no modifiers"),
])
def test_bad_syntax_says_what_is_missing_where(refusal, text, what):
    status, words = refusal(text)
    assert (status, what in words) == (1, True), words


@pytest.mark.parametrize("text", ["r", "rxyz", "r11112222333344445"])
def test_a_raw_code_has_one_to_sixteen_digits(refusal, text):
    assert refusal(text)[0] == 1


@pytest.mark.parametrize("text, what", [
    ("r1000001c0", "bit 32 of config"), ("r101c0", "bit 16 of config"),
    ("cpu/config=0x4000c0/", "bit 22 of config"),
    ("cpu/event=0xb7,config2=1/", "bit 0 of config2")])
def test_a_bit_that_the_kernel_would_ignore_is_refused(refusal, text, what):
    # x86_pmu_event_init() masks config with X86_RAW_EVENT_MASK, without an error.
    status, words = refusal(text)
    assert (status, what in words) == (1, True), words


def test_bits_are_taken_as_they_are_where_the_pmu_tells_no_formats(explain, host):
    pmu = hosts.pmu("opaque", 42)
    assert explain(host(WITHOUT_PMU, pmu), "opaque/config=0x100000000/")[0]["attr"]["type"] == 42
    assert explain(host(WITHOUT_PMU), "r1000001c0")[0]["attr"]["config"] == "0x1000001c0"


def test_very_long_texts_are_refused_and_not_cut(refusal):
    assert refusal("x" * 200)[0] == 1
    assert refusal("cpu/" + "event=1," * 200 + "/")[0] == 1
    assert refusal("cs", *["-e", "page-faults"] * 400)[0] in (0, 1)


# --- refusals of the rest of the command line -----------------------------------------------------


@pytest.mark.parametrize("arguments, what", [
    (["stat"], "nothing to measure"),
    (["profile"], "nothing to measure"),
    (["stat", "-p", "1,x"], "'x' is no process id"),
    (["stat", "-p", "0"], "'0' is no process id"),
    (["stat", "-p", "-5"], "'-5' is no process id"),
    (["stat", "-p", "1,"], "'' is no process id"),
    (["stat", "-p", "99999999999"], "is no process id"),
    (["stat", "-a", "-C", "0"], "contradict"),
    (["stat", "-C", "x"], "no list of CPUs"),
    (["stat", "-C", "3-1"], "no list of CPUs"),
    (["stat", "-C", ""], "no list of CPUs"),
    (["stat", "-C", "0,"], "no list of CPUs"),
    (["stat", "-C", "99999999"], "no list of CPUs"),
    (["stat", "-r", "2", "-a"], "no command to run again"),
    (["profile", "--by", "ip,color", "--", "true"], "there is no key 'color'"),
    (["profile", "--by", "", "--", "true"], "there is no key ''"),
])
def test_a_bad_request_is_refused_in_words_and_in_records(nhmtap, host, arguments, what):
    result = nhmtap(arguments[0], host(WITHOUT_PMU), *arguments[1:])
    assert result.status == 1
    assert what in result.err
    assert [record["type"] for record in result.records] == ["error", "end"]
    assert what in result.one("error")["why"]
    assert result.one("end")["exit_status"] == 1


@pytest.mark.parametrize("arguments, what", [
    (["stat", "-I", "0"], "from 1 to"), (["stat", "-I", "ten"], "whole number"),
    (["stat", "-I", "-1"], "whole number"), (["stat", "-I", "1x"], "whole number"),
    (["profile", "-c", "0"], "from 1 to"), (["profile", "-F", "0"], "from 1 to"),
    (["profile", "-c", "9223372036854775808"], "to 9223372036854775807"),
    (["profile", "--top", "0"], "from 1 to"), (["stat", "-r", "0"], "from 1 to"),
    (["stat", "--duration", "0"], "more than 0"), (["stat", "--duration", "nan"], "more than 0"),
    (["stat", "--duration", "1s"], "seconds"),
    (["stat", "--format", "xml"], "formats: json, table"),
    (["stat", "--banana"], "no such option"), (["stat", "-Z"], "no such option"),
    (["stat", "-e"], "argument is missing"), (["stat", "--top", "3"], "no such option"),
    (["schema", "banana"], "types: "), (["banana"], "no such command"),
])
def test_a_bad_option_is_refused_before_anything_is_written(nhmtap, arguments, what):
    result = nhmtap(*arguments)
    assert (result.status, result.out) == (1, "")
    assert what in result.err


@pytest.mark.parametrize("arguments, remedy", [
    (["prfile"], "did you mean profile?"), (["record"], "use nhmtap profile"), (["banana"], "see nhmtap --help"),
    (["c2c"], "use nhmtap mem --shared"),
    (["stat", "--duraton", "1"], "did you mean --duration?"), (["profile", "--sort=x"], "use --by"),
    (["stat", "--timeout", "1"], "use --duration"), (["machine", "--timeout", "1"], "see nhmtap machine --help"),
    (["list", "--all-cgroups"], "see nhmtap list --help"), (["stat", "--all-cgroups"], "use -a --per cgroup"),
    (["stat", "--banana"], "see nhmtap stat --help"), (["stat", "-I"], "see nhmtap stat --help"),
    (["stat", "--inter", "5"], "did you mean --interval, --interval-count?"),
    (["stat", "--live=3"], "leave the value out"),
    (["profile", "-g", "fp", "--", "true"], "choose a way with --unwind"),
    (["profile", "--call-graph", "dwarf", "true"], "choose a way with --unwind"),
])
def test_a_command_or_option_that_does_not_exist_gets_what_may_be_meant(nhmtap, arguments, remedy):
    result = nhmtap(*arguments)
    assert (result.status, result.out) == (1, "") and remedy in result.err


@pytest.mark.parametrize("arguments, near, all_of", [
    (["profile", "--format", "tabel"], "table", "formats: json, table"), (["doctor", "--format", "jsn"], "json", "formats: json, table"),
    (["profile", "-o", "jsn=x"], "json", "a file of this name is ./jsn=x"), (["schema", "profiel"], "profile", "types: analysis"),
    (["profile", "--unwind", "tabels", "-g", "--", "true"], "tables", "it takes one of: auto, fp, tables"),
    (["stat", "--temporality", "deltta", "--", "true"], "delta", "it takes one of: delta, cumulative"),
    (["branch", "--sort", "cuont", "--", "true"], "count", "it takes one of: count, mispredicted"),
    (["doctor", "--need", "profle"], "profile", "facilities: software"), (["doctor", "--selftest", "--only", "walk"], "walks", "tests: counts"),
    (["explain", "--cpu", "nehalem-epp", "cycles"], "nehalem-ep, nehalem-ex", "there are architectural"),
    (["explain", "--cpu", "nehalem-ep", "cpu/evnt=1/"], "event", "terms: event, umask"),
    (["stream", "--fields", "tiem", "--", "true"], "time", "fields: time, ip"),
    (["mem", "--machine=ep,cpu=2", "--", "true"], "cpus", "it takes model, cpus"),
    (["offcore", "--machine=westmer", "--", "true"], "westmere, westmere-dp, westmere-ex", "models: ep"),
])
def test_a_word_that_is_none_of_those_there_are_gets_the_nearest_and_all_of_them(nhmtap, arguments, near, all_of):
    result = nhmtap(*arguments)
    assert result.status == 1 and f"did you mean {near}? " in result.err and all_of in result.err


@pytest.mark.parametrize("arguments, near, all_of", [
    (["stat", "--per", "soket", "-a"], "socket", "keys: cpu, core, socket"), (["profile", "--by", "comn", "--", "true"], "comm", "keys: ip, "),
    (["profile", "--by", "simbol", "--", "true"], "symbol", "keys: ip, "), (["branch", "--filter", "any_cal", "--", "true"], "any_call", "kinds: any,"),
])
def test_a_key_that_is_none_of_those_there_are_gets_the_nearest_and_all_of_them(nhmtap, host, arguments, near, all_of):
    error = nhmtap(*arguments[:1], host(WITHOUT_PMU), *arguments[1:]).one("error")
    assert error["remedy"].startswith(f"did you mean {near}? ") and all_of in error["remedy"]


@pytest.mark.parametrize("options", [("--side", "x"), ("--unwind", "perf")])
def test_a_word_that_is_near_to_none_is_not_said_to_be(nhmtap, options):
    result = nhmtap("mem", *options, "--", "true")
    assert result.status == 1 and "it takes one of: " in result.err and "did you mean" not in result.err


def test_a_command_may_be_called_as_a_value_of_perfs_call_graph_is(nhmtap, host):
    assert "--unwind" not in nhmtap("profile", host(WITHOUT_PMU), "-g", "--", "fp").err


def test_an_unknown_key_lists_those_that_there_are(nhmtap, host):
    error = nhmtap("profile", host(WITHOUT_PMU), "--by", "x", "--", "true").one("error")
    listed = error["remedy"].removeprefix("keys: ").split(", ")
    assert sorted(listed) == ["cgroup", "comm", "cpu", "ip", "line", "module", "pid", "place", "stack",
                              "symbol", "tid"]


@pytest.mark.parametrize("cpus, what", [("0,6", "CPU 6 is offline"), ("5-9", "CPU 5 is offline"),
                                        ("8", "CPU 8 does not exist")])
def test_a_cpu_that_is_not_there_is_named(nhmtap, host, cpus, what):
    machine = host(WITHOUT_PMU, {"sys/devices/system/cpu/online": "0-4\n"})
    result = nhmtap("stat", machine, "-C", cpus)
    assert result.status == 2
    assert what in result.err and "online are 0-4" in result.err
    assert result.one("error")["errno"] == "ENODEV"


def test_a_machine_whose_cpus_cannot_be_read_is_refused(nhmtap, host):
    result = nhmtap("stat", host(WITHOUT_PMU, {"sys/devices/system/cpu/online": None}), "--",
                    "true")
    assert result.status == 2
    assert result.one("error")["errno"] == "ENOENT"


def test_refused_plans_do_not_run_the_command(nhmtap, host, tmp_path):
    witness = tmp_path / "it-ran"
    assert nhmtap("stat", host(WITHOUT_PMU), "-e", "cycels", "--", "touch", witness).status == 1
    assert not witness.exists()


# --- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["stat", "profile", "explain", "schema"])
def test_every_command_lists_its_options(nhmtap, command):
    result = nhmtap(command, "--help")
    assert (result.status, result.err) == (0, "")
    assert "--help" in result.out and f"nhmtap {command}" in result.out


def test_help_fits_80_columns(nhmtap):
    commands = [command["name"] for command in json.loads(nhmtap("help", "--json").out)]
    for arguments in ([], *([command] for command in commands)):
        lines = nhmtap(*arguments, "--help").out.splitlines()
        assert [line for line in lines if len(line) > 80 and len(line.split()) > 1] == [], arguments  # a word is not broken


def test_help_goes_to_stdout_when_asked_for_and_to_stderr_when_not(nhmtap):
    assert (nhmtap("--help").status, nhmtap("--help").err) == (0, "")
    assert (nhmtap().status, nhmtap().out) == (1, "")
    assert nhmtap().err == nhmtap("--help").out


def test_what_explain_shows_does_not_depend_on_the_locale(nhmtap, host):
    machine = host(NEHALEM)
    spelled = [nhmtap("explain", machine, "cycles", env={"LC_ALL": locale}).out
               for locale in ("C", "de_DE.UTF-8")]
    assert spelled[0] == spelled[1]
