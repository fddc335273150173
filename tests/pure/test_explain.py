# SPDX-License-Identifier: GPL-2.0-only
"""The registers that an event programs, against the guide's tables and worked examples ("guide") and
the values that the Nehalem driver of Linux 6.1 writes, as observed or by its source ("kernel")."""
import hosts
import pytest
from hosts import CPUS, NEHALEM, TABLES, WITHOUT_PMU
from records import parse

EP = "--cpu=nehalem-ep"
# IA32_PERFEVTSELx, guide, Table 10.
USR, OS, EDGE, INT, ANY, EN, INV = (1 << bit for bit in (16, 17, 18, 20, 21, 22, 23))


@pytest.fixture
def records(nhmtap):
    """All records that explain writes."""
    def run(*arguments):
        result = nhmtap("explain", *arguments)
        assert (result.status, result.err) == (0, "")
        return parse(result.out)
    return run


@pytest.fixture
def record(records):
    """The record of one event, on a Nehalem-EP unless another machine is named."""
    def run(text, *arguments):
        found = [r for r in records(*(arguments or (EP,)), text) if r["type"] == "event"]
        assert len(found) == 1
        return found[0]
    return run


@pytest.fixture
def registers(record):
    """{name: value} of an event."""
    def run(text, *arguments):
        found = record(text, EP, *arguments)["registers"]
        assert len({register["name"] for register in found}) == len(found)
        return {register["name"]: int(register["value"], 16) for register in found}
    return run


@pytest.fixture
def fields(record):
    """{field: (bits, value)} of one of an event's registers."""
    def run(name, text, *arguments):
        found, = (r for r in record(text, EP, *arguments)["registers"] if r["name"] == name)
        return {field["name"]: (field["bits"], field["value"]) for field in found["fields"]}
    return run


@pytest.fixture
def refusal(nhmtap):
    def run(*arguments):
        result = nhmtap("explain", *arguments)
        assert result.out == ""
        return result.status, result.err
    return run


# --- IA32_PERFEVTSELx -----------------------------------------------------------------------------


def test_the_guides_off_core_example_but_for_the_interrupt_that_the_kernel_adds(registers):
    # Table 13: PerfEvtSel0 = 0x4301B7, for user and supervisor code; OFFCORE_RSP_0 = 0x17.
    found = registers("cpu/event=0xb7,umask=0x01,offcore_rsp=0x17/", "--force")
    assert found["IA32_PERFEVTSELx"] == 0x4301B7 | INT
    assert found["OFFCORE_RSP_0"] == 0x17


def test_every_field_of_the_selection_register_stands_where_the_guide_has_it(fields):
    assert fields("IA32_PERFEVTSELx", "cpu/event=0xc2,umask=0x03,cmask=16,inv,edge,any/u") == {
        "EVTSEL": ("7:0", 0xC2), "EVTMSK": ("15:8", 3), "USR": ("16", 1), "OS": ("17", 0),
        "E": ("18", 1), "INT": ("20", 1), "AnyThr": ("21", 1), "EN": ("22", 1), "INV": ("23", 1),
        "CMASK": ("31:24", 16)}


@pytest.mark.parametrize("text, value", [
    ("INST_RETIRED.ANY_P", 0x1C0 | USR | OS), ("INST_RETIRED.ANY_P:u", 0x1C0 | USR),
    ("INST_RETIRED.ANY_P:k", 0x1C0 | OS), ("r1c0:uk", 0x1C0 | USR | OS),
    ("cpu/event=0xc2,umask=1,cmask=16,inv/u", 0x100001C2 | INV | USR),
    ("cpu/event=0x3c,edge/k", 0x3C | EDGE | OS),
    # kernel: "AnyThread works: 0x7301a2"
    ("cpu/event=0xa2,umask=1,any/", 0x7301A2)])
def test_a_count_selects_its_sides_and_interrupts(registers, text, value):
    assert registers(text)["IA32_PERFEVTSELx"] == value | INT | EN


def test_its_address_is_the_first_counters_plus_the_counter(record):
    register = record("INST_RETIRED.ANY_P")["registers"][0]
    # guide, Table 26: PerfEvtSel0 to 3 are 0x186 to 0x189
    assert (register["msr"], register["counter"]) == ("0x186", "address")


# --- fixed counters -------------------------------------------------------------------------------


@pytest.mark.parametrize("text, value", [
    # guide, Tables 8 and 9: four bits per counter: 1 ring 0, 2 rings 1 to 3, 4 AnyThr, 8 INT
    ("instructions", 0xB), ("instructions:u", 0xA), ("instructions:k", 0x9), ("cycles", 0xB0),
    ("INST_RETIRED.ANY:u", 0xA), ("CPU_CLK_UNHALTED.THREAD:k", 0x90), ("ref-cycles", 0xB00),
    ("CPU_CLK_UNHALTED.REF:u", 0xA00),
    # kernel: any on a fixed counter is 0xf
    ("cpu/event=0xc0,any/", 0xF)])
def test_a_fixed_counter_has_its_four_bits_of_one_register(record, text, value):
    register = record(text)["registers"][0]
    assert (register["name"], register["msr"]) == ("IA32_FIXED_CTR_CTRL", "0x38d")
    assert int(register["value"], 16) == value
    assert int(register["mask"], 16) in (0xF, 0xF0, 0xF00)
    assert value & ~int(register["mask"], 16) == 0


@pytest.mark.parametrize("text", ["r1c0", "cpu/event=0xc0,cmask=1/", "cpu/event=0x3c,edge/",
                                  "cpu/event=0x3c,cmask=2,inv/", "instructions:p", "cycles:pp"])
def test_what_a_fixed_counter_cannot_do_goes_to_a_general_one(record, text):
    found = record(text)
    assert found["registers"][0]["name"] == "IA32_PERFEVTSELx"
    assert "fixed" not in found["counters"] and found["counters"]["general"] == [0, 1, 2, 3]


def test_reference_cycles_have_no_general_counter(record):
    assert record("ref-cycles")["counters"]["general"] == []
    assert record("ref-cycles")["counters"]["fixed"] == 2
    assert record("cycles")["counters"]["general"] == [0, 1, 2, 3]


# --- PEBS -----------------------------------------------------------------------------------------


def test_a_precise_event_leaves_the_interrupt_to_the_pebs_buffer(registers, record):
    # kernel: intel_pmu_pebs_enable() clears INT and sets the counter's bit
    assert registers("INST_RETIRED.ANY_P:p") == {
        "IA32_PERFEVTSELx": 0x4301C0, "IA32_PERF_GLOBAL_CTRL": 0x70000000F, "IA32_PEBS_ENABLE": 1}
    register, = (r for r in record("INST_RETIRED.ANY_P:p")["registers"]
                 if r["name"] == "IA32_PEBS_ENABLE")
    assert (register["msr"], register["counter"]) == ("0x3f1", "bits")


@pytest.mark.parametrize("text", ["cycles:p", "cpu/event=0x3c/p", "CPU_CLK_UNHALTED.THREAD:p"])
def test_precise_cycles_are_instructions_of_which_fewer_than_sixteen_retire(registers, text):
    assert registers(text)["IA32_PERFEVTSELx"] == 0x108000C0 | USR | OS | EN


def test_the_guides_load_latency_example(registers):
    # 3.7: "to enable load latency on counter zero … 0x00000001.00000001"
    found = registers("cpu/event=0x0b,umask=0x10,ldlat=64/p")
    assert found["IA32_PEBS_ENABLE"] == 0x0000000100000001
    assert found["PEBS_LD_LAT_THRESHOLD"] == 64
    assert found["IA32_PERFEVTSELx"] & 0xFFFF == 0x100B


def test_a_count_of_slow_loads_has_a_threshold_and_no_pebs(registers):
    found = registers("cpu/event=0x0b,umask=0x10,ldlat=3/")
    assert found["PEBS_LD_LAT_THRESHOLD"] == 3 and "IA32_PEBS_ENABLE" not in found


@pytest.mark.parametrize("text, level, word", [
    ("r1c0", 0, "not asked for"), ("r1c0:p", 1, "next instruction"), ("r1c0:pp", 2, "EXACT_IP")])
def test_each_level_says_what_its_samples_are(record, text, level, word):
    precise = record(text)["precise"]
    assert precise["level"] == level and word in precise["means"]
    assert ("record" in precise) == (level > 0)


@pytest.mark.parametrize("text, by_table, accepted", [
    ("MEM_INST_RETIRED.LOADS", "can", False), ("INST_RETIRED.ANY_P", "can", True),
    ("L1D.REPL", "never", False), ("MEM_LOAD_RETIRED.L2_HIT", "can", True)])
def test_the_hardware_can_what_the_kernel_may_refuse(record, text, by_table, accepted):
    precise = record(text)["precise"]
    assert (precise["by_table"], precise["accepted"]) == (by_table, accepted)


def test_only_a_precise_event_is_sampled_without_being_told(record):
    assert "sample_freq" not in record("r1c0")["event"]["attr"]
    assert record("r1c0:p")["event"]["attr"]["sample_freq"] > 0
    assert record("r1c0", EP, "-c", "5000")["event"]["attr"]["sample_period"] == 5000


# --- off-core responses ---------------------------------------------------------------------------


def test_off_core_bits_have_the_guides_names(fields):
    # Table 12, from bit 0
    names = """DMND_DATA_RD DMND_RFO DMND_IFETCH WB PF_DATA_RD PF_RFO PF_IFETCH OTHER UNCORE_HIT
        OTHER_CORE_HIT_SNP OTHER_CORE_HITM REMOTE_CACHE_HITM REMOTE_CACHE_FWD REMOTE_DRAM LOCAL_DRAM
        IO_CSR_MMIO""".split()
    found = fields("OFFCORE_RSP_0", "cpu/event=0xb7,umask=1,offcore_rsp=0x4701/")
    assert found == {name: (str(bit), 0x4701 >> bit & 1) for bit, name in enumerate(names)}


@pytest.mark.parametrize("text, value", [
    # kernel: nehalem_hw_cache_extra_regs with its macros expanded
    ("LLC-loads", 0xF701), ("LLC-load-misses:u", 0xF001), ("LLC-stores", 0xF70A),
    ("node-loads", 0x7001), ("node-prefetch-misses", 0x2030)])
def test_a_cache_event_of_the_kernel_is_an_off_core_response(registers, text, value):
    found = registers(text)
    assert found["IA32_PERFEVTSELx"] & 0xFFFF == 0x1B7
    assert found["OFFCORE_RSP_0"] == value


def test_westmere_has_a_second_off_core_register_and_nehalem_has_not(record):
    text = "cpu/event=0xbb,umask=1,offcore_rsp=0x4001/"
    registers = record(text, "--cpu=westmere-ep")["registers"]
    assert ("OFFCORE_RSP_1", "0x1a7") in [(r["name"], r["msr"]) for r in registers]
    registers = record("r1bb", EP, "--force")["registers"]
    assert not [r for r in registers if r["name"].startswith("OFFCORE")]


# --- branches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("filter_, value", [
    # kernel: LBR_SELECT as the driver was observed to write it, for the user's side
    ("any", 0x1), ("any_call", 0x25), ("any_ret", 0x1D), ("ind_call", 0x1AD), ("cond", 0x1F9),
    ("ind_jmp", 0x1BD)])
def test_a_filter_leaves_out_what_was_not_asked_for(registers, filter_, value):
    assert registers("cycles:u", "--filter", f"{filter_},u")["LBR_SELECT"] == value
    # A filter without a side has the sides of its event.
    assert registers("cycles:u", "--filter", filter_)["LBR_SELECT"] == value


def test_all_branches_of_both_sides_leave_nothing_out(registers):
    assert registers("cycles", "--filter", "any")["LBR_SELECT"] == 0
    assert registers("r1c0:pp")["LBR_SELECT"] == 0
    assert registers("r1c0:upp")["LBR_SELECT"] == 1
    assert registers("r1c0:kpp")["LBR_SELECT"] == 2


def test_the_lbr_runs_and_freezes_on_an_interrupt(fields, registers):
    # guide, Table 4
    assert fields("IA32_DEBUGCTL", "cycles", "--filter", "any") \
        == {"LBR": ("0", 1), "FRZ_LBRS_ON_PMI": ("11", 1)}
    assert "IA32_DEBUGCTL" not in registers("r1c0:p")


def test_each_suppressing_bit_has_the_guides_name(fields):
    # Table 19
    names = ["CPL_EQ_0", "CPL_NEQ_0", "JCC", "NEAR_REL_CALL", "NEAR_IND_CALL", "NEAR_RET",
             "NEAR_IND_JMP", "NEAR_REL_JMP", "FAR_BRANCH"]
    found = fields("LBR_SELECT", "cycles:u", "--filter", "any_call")
    assert found == {name: (str(bit), 0x25 >> bit & 1) for bit, name in enumerate(names)}


@pytest.mark.parametrize("arguments, words", [
    (("cycles", "--filter", "call"), "every stack is empty"), (("cycles", "--filter", "u"), "no kind"),
    (("cycles", "--filter", "any,,u"), "no kind of branch"), (("cycles", "--filter", ""), "no kind"),
    (("cycles:pp", "--filter", "any_call"), "needs the LBR for all"),
    (("cycles:pp", "--filter", "any,u"), "own sides")])
def test_a_filter_that_would_count_nothing_or_be_refused_is_refused(refusal, arguments, words):
    status, sentence = refusal(EP, *arguments)
    assert status == 1 and words in sentence


# --- global control -------------------------------------------------------------------------------


def test_the_kernel_switches_all_counters_on_globally(fields):
    # guide, Table 5; kernel: intel_ctrl
    assert fields("IA32_PERF_GLOBAL_CTRL", "r1c0") == {
        **{f"EN_PC{n}": (str(n), 1) for n in range(4)},
        **{f"EN_FC{n}": (str(32 + n), 1) for n in range(3)}}


def test_of_guests_only_the_hosts_switch_is_not_known(fields):
    # kernel: intel_set_masks() takes the counter's bit out while the host runs
    assert fields("IA32_PERF_GLOBAL_CTRL", "r1c0:G") == {f"EN_FC{n}": (str(32 + n), 1) for n in range(3)}


# --- counters, errata, disagreements --------------------------------------------------------------


@pytest.mark.parametrize("text, verdict", [
    # Table A-1 of the SDM has L1D.REPL on counters 0 and 1 alone; PEBS takes BR_INST_RETIRED, and not 0x51.
    ("L1D.REPL", "Counts on general counters 0, 1; samples come some instructions late, precise ones (:pp) are "
     "refused. Errata, below: AAK100, AAP53."),
    ("INST_RETIRED.ANY", "Counts on fixed counter 0 or general counters 0, 1, 2, 3; samples come some instructions "
     "late, with :pp they name the one that counted. Errata, below: AAK100, AAP53."),
    ("MEM_LOAD_RETIRED.LLC_MISS:p", "Counts on general counters 0, 1, 2, 3; samples name the next instruction. "
     "Errata, below: AAK100, AAP53."),
    ("MEM_LOAD_RETIRED.LLC_MISS:pp", "samples name the instruction itself."),
    # x86_pmu_max_precise() in arch/x86/events/core.c is 2: Ivy Bridge is the first that has pebs_prec_dist.
    ("cycles:ppp", "Counts on general counters 0, 1, 2, 3; the kernel refuses :ppp."),
    ("branch-misses", "Errata, below: AAJ80, AAK100, AAP53."),
])
def test_a_table_begins_with_what_the_event_is_good_for(nhmtap, text, verdict):
    result = nhmtap("explain", EP, "--format", "table", text)
    assert verdict in " ".join(result.out.split("perf_event_attr", 1)[0].split())


@pytest.mark.parametrize("text, general, by_table", [
    ("L1D.REPL", [0, 1], [0, 1]), ("UOPS_ISSUED.ANY", [0, 1, 2, 3], [0, 1, 2, 3]),
    # perfmon puts these on one counter, the kernel on any
    ("MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD_64", [0, 1, 2, 3], [3]),
    ("OFFCORE_RESPONSE.DEMAND_DATA_RD.LOCAL_DRAM", [0, 1, 2, 3], [2])])
def test_counters_by_the_kernel_and_by_the_table(record, text, general, by_table):
    counters = record(text)["counters"]
    assert (counters["general"], counters["by_table"]) == (general, by_table)


def test_errata_are_those_of_the_event_and_those_of_all(record):
    def names(text):
        return {erratum["name"] for erratum in record(text)["errata"]}
    assert names("BR_MISP_RETIRED.NEAR_CALL") == {"AAJ80", "AAK100, AAP53"}
    assert names("r2c5") == {"AAJ80", "AAK100, AAP53"}
    assert names("INST_RETIRED.ANY_P") == {"AAK100, AAP53"}


@pytest.mark.parametrize("text, there, elsewhere", [
    ("OFFCORE_RESPONSE.DEMAND_DATA_RD.LOCAL_DRAM", {"offcore-rsp-1", "offcore-bit-11", "counter-limits"},
     {"data-source-codes"}),
    ("MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD_64:p",
     {"load-latency-threshold", "load-latency-cmask", "data-source-codes", "counter-limits"},
     {"short-periods", "lbr-select-calls"}),
    ("MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD_4096:p", {"short-periods"}, {"offcore-rsp-1"}),
    ("cpu/event=0x0b,umask=0x10,ldlat=77/p", {"load-latency-threshold"}, {"short-periods"}),
    ("r1c0", {"inst-retired-umask"}, {"fixed-counter-encoding"}),
    ("INST_RETIRED.ANY", {"inst-retired-umask", "fixed-counter-encoding"}, set()),
    ("r1c0:pp", {"lbr-mispredict-bit", "lbr-select-calls"}, set()),
    ("UOPS_ISSUED.ANY", set(), {"inst-retired-umask"})])
def test_disagreements_are_those_about_the_event(record, text, there, elsewhere):
    found = set(record(text)["disagreements"])
    assert there <= found and not elsewhere & found


def test_what_events_refer_to_is_told_once(records):
    found = records(EP, "r1c0", "INST_RETIRED.ANY_P:u", "mem-loads:p", "mem-loads:up")
    told = [r["id"] for r in found if r["type"] == "disagreement"]
    referred = {name for r in found if r["type"] == "event" for name in r["disagreements"]}
    assert sorted(told) == sorted(referred)
    assert [r["type"] for r in found].count("data_sources") == 1


def test_load_latency_comes_with_the_codes_of_its_records(records):
    codes, = (r["codes"] for r in records(EP, "mem-loads:p") if r["type"] == "data_sources")
    # kernel: pebs_data_source[] after intel_pmu_pebs_data_source_nhm(), as read in samples
    assert [code["data_src"] for code in codes] == """0x600080082 0x200100142 0x1800100242 0x400100442
        0x600100842 0x600200842 0x600800842 0x600800842 0x2600208042 0x2600808042 0x1a00201042
        0x2600202042 0x1a00501042 0x3a00502042 0x1e00120042 0x1e00140042""".split()
    assert not [r for r in records(EP, "r1c0:p") if r["type"] == "data_sources"]


# --- generic names --------------------------------------------------------------------------------


def test_the_machines_own_driver_knows_best_what_a_generic_name_counts(record, host):
    # hosts.NEHALEM's sysfs has the AAJ80 workaround in events/branch-misses
    encoding = record("branch-misses", host(NEHALEM))["encoding"]
    assert encoding["config"] == "0x7f89" and "sysfs" in encoding["source"]
    assert encoding["names"] == ["BR_MISP_EXEC.ANY"]


def test_of_a_machine_that_is_not_there_the_doubt_is_told(record):
    found = record("branch-misses")
    assert found["encoding"]["config"] == "0xc5" and "0x7F89" in found["encoding"]["note"]
    assert "AAJ80" in {erratum["name"] for erratum in found["errata"]}


def test_a_raw_code_is_called_by_its_names(record):
    assert record("r10cb")["encoding"]["names"] == ["MEM_LOAD_RETIRED.LLC_MISS"]
    assert record("r5bc0")["encoding"]["names"] == []


# --- machines and arguments -----------------------------------------------------------------------


def test_another_cpu_is_explained_on_any_machine(record, host):
    for machine in (host(WITHOUT_PMU), host(NEHALEM), host(hosts.MACHINE, {"proc/cpuinfo": ""})):
        found = record("L1D.REPL:u", machine, "--cpu", "Nehalem-EX")
        assert found["cpu"] == "nehalem-ex"
        assert found["event"]["attr"]["config"] == "0x151"


def test_another_cpu_lacks_what_it_lacks(refusal):
    status, sentence = refusal("--cpu", "nehalem-ex", "MEM_UNCORE_RETIRED.LOCAL_DRAM")
    assert status != 0 and "MEM_UNCORE_RETIRED.LOCAL_DRAM" in sentence


def test_rights_on_this_machine_do_not_shape_another(record, host):
    machine = host(NEHALEM, {"proc/self/status": hosts.status(0),
                             "proc/sys/kernel/perf_event_paranoid": "3\n"})
    assert "exclude_kernel" in record("r1c0", machine)["event"]["attr"]
    assert "exclude_kernel" not in record("r1c0", machine, EP)["event"]["attr"]


def test_an_unknown_cpu_is_refused_with_those_there_are(refusal):
    status, sentence = refusal("--cpu", "pentium", "cycles")
    assert status == 1
    for name in TABLES:
        assert name in sentence


def test_software_events_have_no_registers(record):
    assert record("page-faults").keys() == {"type", "schema_version", "event"}


def test_a_machine_without_a_table_shows_what_the_kernel_is_asked_for(record, host):
    found = record("cpu-clock", host(WITHOUT_PMU))
    assert found.keys() == {"type", "schema_version", "event"}


def test_events_come_in_the_order_of_the_arguments_and_options_may_stand_behind(records):
    found = records("cycles", "{r1c0,r2c0}:u", EP, "page-faults")
    assert [r["event"]["name"] for r in found if r["type"] == "event"] \
        == ["cycles", "r1c0:u", "r2c0:u", "page-faults"]


@pytest.mark.parametrize("text", ["mem-loads:upp", "cpu//", "cpu/period=1000/", "r0"])
def test_every_reason_is_told_and_every_member_has_one(record, text):
    event = record(text, EP, "-F", "99", "--filter", "any,u")["event"]
    assert event["attr"].keys() <= event["why"].keys()


@pytest.fixture(params=CPUS)
def all_records(request, nhmtap, records):
    """The records of every event of a CPU's table, with :pp for the precise ones."""
    cpu = f"--cpu={request.param}"
    listed = [r for r in parse(nhmtap("list", cpu).out) if r.get("default_period")]
    return records(cpu, "--force", *(r["name"] + (":pp" if r["precise"] else "") for r in listed))


def test_every_event_of_a_table_can_be_explained_within_a_line(all_records):
    # parse() checks that each line has at most 8 KiB and follows the schema.
    events = [r for r in all_records if r["type"] == "event"]
    assert len(events) > 200
    for event in events:
        for register in event["registers"]:
            fields = [(int(f["bits"].split(":")[-1]), f["value"]) for f in register["fields"]]
            assert fields == sorted(fields, key=lambda field: field[0])
            assert sum(value << low for low, value in fields) == int(register["value"], 16)


def test_a_name_becomes_an_encoding_and_the_encoding_that_name_again(all_records):
    for event in [r for r in all_records if r["type"] == "event"]:
        name = event["event"]["name"].removesuffix(":pp")
        # Precise cycles are another event to the kernel: 0x003c becomes 0x108000c0.
        if event["encoding"]["config"] == event["event"]["attr"]["config"]:
            assert name in event["encoding"]["names"]


# --- for people -----------------------------------------------------------------------------------


def test_people_get_the_same_within_the_width_of_a_screen(nhmtap):
    text = nhmtap("explain", EP, "--format", "table", "MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD_64:pp",
                  "OFFCORE_RESPONSE.DEMAND_DATA_RD.LOCAL_DRAM", "cycles", "page-faults").out
    for line in text.splitlines():
        assert len(line) <= 80 and line == line.rstrip()
    for word in ("perf_event_attr", "config1", "IA32_PERFEVTSELx", "0x100000001 << x", "PEBS_EN_CTRx",
                 "OFFCORE_RSP_0", "LOCAL_DRAM", "IA32_FIXED_CTR_CTRL", "AAK100", "sources disagree"):
        assert word in text


def test_a_name_cannot_steer_the_terminal(nhmtap):
    text = nhmtap("explain", EP, "--format", "table", "cpu/event=0xc0,name=a\x1b[2Jb/").out
    assert "\x1b" not in text and "a\\u001b[2Jb" in text


@pytest.mark.parametrize("wrong, right", [("event=0xc0 umask=1", " event=0xc0 , umask=1 "),
                                          ("event=0xc0, umask=1 inv=1", "event=0xc0, umask=1 ,inv=1")])
def test_what_a_blank_separates_is_not_left_out(nhmtap, wrong, right):
    """perf calls it an error, too. A blank beside a comma is none."""
    result = nhmtap("explain", EP, f"cpu/{wrong}/")
    assert result.status == 1 and "is not a number" in result.err
    assert nhmtap("explain", EP, f"cpu/{right}/").status == 0
