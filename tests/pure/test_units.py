# SPDX-License-Identifier: GPL-2.0-only
"""Events of counters that Linux has no driver for, on a Xeon 7100 and 7400: the bits of their
registers, worked out from SDM volume 3B, 18.21, and what is refused before anything is written."""
import pytest
from hosts import MACHINE, cpuinfo
from records import parse
from test_doctor_facts import write_registers

CPU = "--cpu=xeon-7400"
SERIES = ("xeon-7100", "xeon-7400")
GBSQ, GSNPQ, FSB, CONTROL = (0x107CC, 0x107CD), (0x107CE, 0x107CF), (0x107D0, 0x107D1, 0x107D2, 0x107D3), 0x107D8
FREEZE, UNFREEZE, RESET = 1, 2, 4
NETBURST = [(0x371, 0)]  # its last CCCR


def bits(high, low, **values):
    """A field of the counter's register, and the names of its values. A single bit has no names."""
    return low, high, values or {"": 1}


# 18.21.2 to 18.21.4: the fields that both series have.
SNOOP = bits(46, 44, all=7, clean=1, hit=2, hitm=4)
GBSQ_FIELDS = {
    "flow": bits(37, 36, all=3, demand=1, prefetch=2), "type": bits(43, 38, all=0x3F), "snoop": SNOOP,
    "state": bits(53, 47, all=0x7F), "fill": bits(57, 56, any=0, fill=1, fill_only=2, evict=3), "cross_snoop": bits(58, 58)}
GSNPQ_FIELDS = {"type": bits(43, 38, all=0x3F), "snoop": SNOOP, "state": bits(53, 47, all=0x7F), "block_snoop": bits(57, 57)}
FSB_FIELDS = {"type": bits(37, 32, all=0x3F)} | {term: bits(bit, bit) for bit, term in enumerate(
    "clean hit hitm defer retry snoop_stall dbsy drdy bnr ioq_empty ioq_full ioq_active ww_data ww_issue wr_issue rw_issue "
    "other_dbsy other_drdy other_snoop_stall other_bnr".split(), 38)}
# The fields that differ. Each logical processor (two in each of two cores) has a bit, or each of
# three modules of two cores. Bit 37 is the central agent, and bit 36 of the 7100 the other
# symmetric agents.
LOGICAL = {"core0": 3, "core1": 12, "core0_thread0": 1, "core0_thread1": 2, "core1_thread0": 4, "core1_thread1": 8}
MODULES = {"module0": 1, "module1": 2, "module2": 4}
FIELDS = {
    ("xeon-7100", "gbsq"): GBSQ_FIELDS | {"agent": bits(35, 32, all=0xF, **LOGICAL),
                                          "core": bits(55, 54, any=0, this=1, other=2, both=3)},
    ("xeon-7400", "gbsq"): GBSQ_FIELDS | {"agent": bits(34, 32, all=7, **MODULES),
                                          "module": bits(55, 54, any=0, this=1, other=2, several=3)},
    # Bit 56 enables bits 55:54.
    ("xeon-7100", "gsnpq"): GSNPQ_FIELDS | {"agent": bits(37, 32, all=0x3F, symmetric=0x10, central=0x20, **LOGICAL),
                                            "core": bits(56, 54, any=0, one=4, this=5, other=6, both=7)},
    ("xeon-7400", "gsnpq"): GSNPQ_FIELDS | {"agent": bits(37, 32, all=0x27, central=0x20, **MODULES),
                                            "module": bits(56, 54, any=0, one=4, one_or_more=5, two_or_more=6, three=7)},
    ("xeon-7100", "fsb"): FSB_FIELDS, ("xeon-7400", "fsb"): FSB_FIELDS}
# An event selects everything by default, but one of the bus selects nothing, and has bit 58 set.
USUAL = {key: sum(values["all"] << low for low, _, values in fields.values() if "all" in values) if key[1] != "fsb" else 1 << 58
         for key, fields in FIELDS.items()}


@pytest.fixture
def explained(nhmtap):
    def run(*arguments):
        result = nhmtap("explain", *arguments)
        assert (result.status, result.err) == (0, "")
        return [record for record in parse(result.out) if record["type"] == "event"]
    return run


@pytest.fixture
def written(explained):
    """The register writes of each event, in order: [[(address, value)]]."""
    def run(*arguments):
        return [[(int(r["msr"], 16), int(r["value"], 16)) for r in record["registers"]] for record in explained(*arguments)]
    return run


def spelt(term, value):
    return f"{term}={value}" if value else term


@pytest.mark.parametrize("cpu, kind", FIELDS)
def test_each_value_of_each_field_is_the_bits_that_the_manual_gives_it(written, cpu, kind):
    fields, usual = FIELDS[cpu, kind], USUAL[cpu, kind]
    address = {"gbsq": GBSQ, "gsnpq": GSNPQ, "fsb": FSB}[kind][0]
    which = 1 << 16 + address - GBSQ[0]
    terms = {spelt(term, name): usual & ~((2 << high) - (1 << low)) | value << low
             for term, (low, high, values) in fields.items() for name, value in values.items()}
    said = written(f"--cpu={cpu}", *(f"l3bus/{kind},{term}/" for term in terms))
    assert dict(zip(terms, said, strict=True)) == {
        term: [(CONTROL, FREEZE | which), (address, value), (CONTROL, RESET | which), (CONTROL, UNFREEZE | which)]
        for term, value in terms.items()}


@pytest.mark.parametrize("cpu, kind", FIELDS)
def test_every_bit_of_the_registers_is_some_events(written, cpu, kind):
    """Every bit above the count, except the reserved bits and bit 59, which would keep the count
    from wrapping."""
    reserved = {("xeon-7400", "gbsq"): [35], ("xeon-7100", "gsnpq"): [58], ("xeon-7400", "gsnpq"): [58]}.get((cpu, kind), [])
    most = ",".join(f"{term}={(2 << high - low) - 1:#x}" for term, (low, high, _) in FIELDS[cpu, kind].items())
    assert written(f"--cpu={cpu}", f"l3bus/{kind},{most}/")[0][1][1] == sum(1 << bit for bit in range(32, 59) if bit not in reserved)


@pytest.mark.parametrize("cpu", SERIES)
def test_the_list_has_each_term_and_no_other(nhmtap, cpu):
    listed = [r for r in parse(nhmtap("list", f"--cpu={cpu}", "--json").out) if r["section"].startswith("l3bus")]
    assert [r["name"] for r in listed if r["name"].endswith("/")] == ["l3bus/gbsq/", "l3bus/gsnpq/", "l3bus/fsb/"]
    for kind in ("gbsq", "gsnpq", "fsb"):
        terms = [r["name"] for r in listed if r["section"].startswith(f"l3bus/{kind},")]
        assert sorted(terms) == sorted(spelt(term, name) for term, (_, _, values) in FIELDS[cpu, kind].items() for name in values)


@pytest.mark.parametrize("terms, same", [
    ("gbsq", "gbsq,snoop=all"), ("gbsq,snoop=hit+hitm", "gbsq,snoop=0x6"), ("gbsq,cross_snoop", "gbsq,cross_snoop=1"),
    ("gbsq,fill=evict,flow=demand", "gbsq,flow=1,fill=3"), ("fsb,other_bnr=1,clean", "fsb,clean,other_bnr"),
])
def test_values_may_be_joined_be_numbers_and_stand_in_any_order(written, terms, same):
    for cpu in SERIES:
        one, other = written(f"--cpu={cpu}", f"l3bus/{terms}/", f"l3bus/{same}/")
        assert one == other


def test_each_event_of_a_list_has_a_counter_of_its_own(written):
    events = ",".join(f"l3bus/{kind},{term}/" for kind, term in
                      [("fsb", "hit"), ("gbsq", "snoop=hit"), ("fsb", "hitm"), ("gsnpq", "snoop=hit"), ("gbsq", "snoop=hitm")])
    assert [writes[1][0] for writes in written(CPU, "-e", events)] == [FSB[0], GBSQ[0], FSB[1], GSNPQ[0], GBSQ[1]]


@pytest.mark.parametrize("cpu, first", [("xeon-7100", 18), ("xeon-7400", 2)])
def test_rdpmc_reads_the_eight_counters_by_numbers_that_follow_each_other(explained, cpu, first):
    events = ["gbsq,snoop=hit", "gbsq,snoop=hitm", "gsnpq,snoop=hit", "gsnpq,snoop=hitm", *(f"fsb,type={n}" for n in range(1, 5))]
    found = explained(f"--cpu={cpu}", "-e", ",".join(f"l3bus/{event}/" for event in events))
    assert [[r["rdpmc"] for r in record["registers"] if "rdpmc" in r] for record in found] == [[first + n] for n in range(8)]


# --- a CPU that has only events of --msr ----------------------------------------------------------


# Each sub-leaf of leaf 4 is a cache: its type is in EAX[4:0], its level in EAX[7:5].
TULSA = "   0x00000001 0x00: eax=0x00000f68 ebx=0x0 ecx=0x0 edx=0x0\n"
CACHES = "".join(f"   0x00000004 0x{n:02x}: eax={eax:#010x} ebx=0x0 ecx=0x0 edx=0x0\n" for n, eax in enumerate((0x4121, 0x4143)))
THIRD = "   0x00000004 0x02: eax=0x00004163 ebx=0x0 ecx=0x0 edx=0x0\n"
XEON_7100 = MACHINE | {"proc/cpuinfo": cpuinfo(family=15, model=6, stepping=8, name="Intel(R) Xeon(TM) CPU 7140M"),
                       "cpuid": TULSA + CACHES + THIRD, "sys/devices/system/cpu/online": "0\n"}


@pytest.fixture
def doctor(nhmtap, host):
    def run(*layers, registers=(*NETBURST, (CONTROL, 0))):
        root = host(*layers)
        write_registers(f"{root.removeprefix('--host-root=')}/dev/cpu/0/msr", dict(registers))
        return nhmtap("doctor", root, "--need", "units,registers")
    return run


def test_a_processor_of_these_models_with_a_third_level_cache_is_a_xeon_7100(nhmtap, host, doctor):
    assert nhmtap("explain", host(XEON_7100), "l3bus/gbsq,core=this/").status == 0
    found = doctor(XEON_7100)
    assert found.status == 0 and found.one("facility", name="units")["works"]
    cpu = found.records[0]["host"]["cpu"]
    assert cpu["units"] == ["netburst", "l3bus"] and "events" not in cpu


def test_one_without_it_is_a_netburst_that_has_no_such_registers(nhmtap, host, doctor):
    other = XEON_7100 | {"cpuid": TULSA + CACHES}
    assert "l3bus" in nhmtap("explain", host(other), "l3bus/gbsq/").err
    assert nhmtap("explain", host(other), "netburst/ioq_allocation,own/").status == 0
    found = doctor(other, registers=NETBURST)  # reading any other register would fail
    assert found.records[0]["host"]["cpu"]["units"] == ["netburst"] and found.one("facility", name="units")["works"]


def test_a_xeon_7100_has_netbursts_events_but_those_of_the_queue_that_it_lacks(nhmtap):
    def kinds(cpu):
        return {r["name"] for r in parse(nhmtap("list", f"--cpu={cpu}", "--json", "netburst/*/").out) if r["name"].endswith("/")}
    assert kinds("netburst") - kinds("xeon-7100") == {"netburst/ioq_allocation/", "netburst/ioq_active_entries/"}
    assert kinds("xeon-7100") < kinds("netburst")
    refused = nhmtap("explain", "--cpu=xeon-7100", "netburst/ioq_allocation,own/")
    assert refused.status == 1 and "did you mean bsq_allocation?" in refused.err
    unlike = nhmtap("explain", "--cpu=xeon-7100", "netburst/mew/")
    assert unlike.status == 1 and "nhmtap list netburst shows" in unlike.err
    both = "netburst/instr_retired,nbogusntag/,l3bus/gbsq,core=this/"
    found = [r for r in parse(nhmtap("explain", "--cpu=xeon-7100", "-e", both).out) if r["type"] == "event"]
    assert [r["event"]["scope"] for r in found] == ["core", "socket"]


def test_doctor_says_which_register_is_in_use_or_is_not_there(doctor):
    units = doctor(XEON_7100, registers=[*NETBURST, (CONTROL, 0), (FSB[3], 1 << 58)]).one("facility", name="units")
    assert not units["works"] and "MSR_EMON_L3_CTR_CTL7" in units["why"] and "somebody else" in units["why"]
    # The file ends before the control register, as if the processor had none.
    units = doctor(XEON_7100, registers=[*NETBURST, (FSB[3], 0)]).one("facility", name="units")
    assert not units["works"] and "MSR_EMON_L3_GL_CTL" in units["why"]


def test_what_is_known_of_such_a_cpu_is_told(nhmtap, host):
    refused = nhmtap("explain", "--cpu=xeon-7100", "INST_RETIRED.ANY")
    assert refused.status == 2 and "xeon-7100, whose table has events of --msr alone" in refused.err
    shown = nhmtap("doctor", host(XEON_7100), "--need", "software", "--format", "table").out
    assert "events of --msr alone" in shown


def test_perfs_own_names_and_raw_codes_are_taken_there_without_saying_what_they_do(explained):
    cycles, raw = explained("--cpu=xeon-7100", "cycles", "r01c0")
    assert "registers" not in cycles and "registers" not in raw


def test_sources_that_disagree_about_a_unit_are_quoted(nhmtap):
    event, copies, control = parse(nhmtap("explain", "--cpu=xeon-7100", "l3bus/gbsq/").out)
    assert event["disagreements"] == [copies["id"], control["id"]] == ["l3bus-copies", "l3bus-control"]
    event, = parse(nhmtap("explain", CPU, "l3bus/gbsq/").out)
    assert event["disagreements"] == []


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event, words", [
    ("l3bus//", ["say what 'l3bus' is to count", "gbsq, gsnpq, fsb"]),
    ("l3bus/snoop=hitm/", ["say what 'l3bus' is to count"]),
    ("l3bus/fsb/", ["selects nothing", "sdm"]),
    ("l3bus/gbsq,snop=hitm/", ["no such term", "cross_snoop"]),
    ("l3bus/gbsq,snoop=hitt/", ["no value 'hitt'", "clean, hit, hitm"]),
    ("l3bus/gbsq,snoop=hit+/", ["no value 'hit+'"]),
    ("l3bus/gbsq,snoop/", ["no value ''"]),
    ("l3bus/gbsq,snoop=8/", ["up to 0x7"]),
    ("l3bus/gbsq,cross_snoop=2/", ["up to 0x1"]),
    ("l3bus/gbsq/u", ["takes no modifiers"]),
    ("{l3bus/gbsq/,l3bus/gsnpq/}:k", ["takes no modifiers"]),
])
def test_what_the_registers_cannot_say_is_refused_at_its_place(nhmtap, event, words):
    result = nhmtap("explain", CPU, event)
    assert result.status == 1 and result.out == "" and "^" in result.err
    assert all(word in result.err for word in words), result.err


def test_a_name_may_be_given(nhmtap):
    record, = parse(nhmtap("explain", CPU, "l3bus/gbsq,snoop=hitm,name=stolen/").out)
    assert record["event"]["name"] == "stolen" and record["event"]["source"] == "msr"


def test_a_term_of_the_other_series_is_refused(nhmtap):
    for cpu, term in (("xeon-7100", "module"), ("xeon-7400", "core")):
        for kind in ("gbsq", "gsnpq"):
            assert "no such term" in nhmtap("explain", f"--cpu={cpu}", f"l3bus/{kind},{term}=any/").err


def test_other_cpus_have_no_such_unit(nhmtap):
    for cpu in ("core2", "nehalem-ep"):
        assert "l3bus" in nhmtap("explain", f"--cpu={cpu}", "l3bus/gbsq/").err
