# SPDX-License-Identifier: GPL-2.0-only
"""Events of counters that Linux has no driver for, on a Xeon 7400: their registers bit by bit, by hand from SDM volume
3B, 18.21, and what is refused before anything is written."""
import pytest
from records import parse

CPU = "--cpu=xeon-7400"
GBSQ, GSNPQ, FSB, CONTROL = (0x107CC, 0x107CD), (0x107CE, 0x107CF), (0x107D0, 0x107D1, 0x107D2, 0x107D3), 0x107D8
FREEZE, UNFREEZE, RESET = 1, 2, 4


@pytest.fixture
def written(nhmtap):
    """[(address, value)] of what an event writes, in that order."""
    def run(*arguments):
        result = nhmtap("explain", CPU, *arguments)
        assert (result.status, result.err) == (0, "")
        return [[(int(r["msr"], 16), int(r["value"], 16)) for r in record["registers"]] for record in parse(result.out)]
    return run


def field(value, low):
    return value << low


# Agent_Select 34:32, Data_Flow 37:36, Type_Match 43:38, Snoop_Match 46:44, L3_State 53:47: all, where nothing is said.
ANY_REQUEST = field(7, 32) | field(3, 36) | field(0x3F, 38) | field(7, 44) | field(0x7F, 47)
# Agent_Match 37:32: three modules, and bit 37, the central agent.
ANY_SNOOP = field(0x27, 32) | field(0x3F, 38) | field(7, 44) | field(0x7F, 47)


@pytest.mark.parametrize("terms, address, value", [
    ("gbsq", GBSQ[0], ANY_REQUEST),
    ("gbsq,snoop=hitm", GBSQ[0], ANY_REQUEST & ~field(7, 44) | field(4, 44)),
    ("gbsq,snoop=hit+hitm", GBSQ[0], ANY_REQUEST & ~field(7, 44) | field(6, 44)),
    ("gbsq,snoop=0x6", GBSQ[0], ANY_REQUEST & ~field(7, 44) | field(6, 44)),
    ("gbsq,agent=module1,flow=demand", GBSQ[0], ANY_REQUEST & ~field(7, 32) & ~field(3, 36) | field(2, 32) | field(1, 36)),
    ("gbsq,fill=evict,cross_snoop,module=other", GBSQ[0], ANY_REQUEST | field(3, 56) | field(1, 58) | field(2, 54)),
    ("gsnpq", GSNPQ[0], ANY_SNOOP),
    ("gsnpq,agent=central,snoop=clean", GSNPQ[0], ANY_SNOOP & ~field(0x3F, 32) & ~field(7, 44) | field(0x20, 32) | field(1, 44)),
    # Core_Select 56:54, of which bit 56 enables it; Block_Snoop 57.
    ("gsnpq,module=this,block_snoop", GSNPQ[0], ANY_SNOOP | field(5, 54) | field(1, 57)),
    # Bit 58 is always 1.
    ("fsb,type=all", FSB[0], field(1, 58) | field(0x3F, 32)),
    ("fsb,hitm", FSB[0], field(1, 58) | field(1, 40)),
    ("fsb,other_bnr=1,clean", FSB[0], field(1, 58) | field(1, 57) | field(1, 38)),
])
def test_a_term_is_the_bits_that_the_manual_gives_it(written, terms, address, value):
    which = 1 << 16 + (GBSQ + GSNPQ + FSB).index(address)
    assert written(f"l3bus/{terms}/") == [[(CONTROL, FREEZE | which), (address, value), (CONTROL, RESET | which),
                                           (CONTROL, UNFREEZE | which)]]


def test_each_event_of_a_list_has_a_counter_of_its_own(written):
    events = ",".join(f"l3bus/{kind},{term}/" for kind, term in
                      [("fsb", "hit"), ("gbsq", "snoop=hit"), ("fsb", "hitm"), ("gsnpq", "snoop=hit"), ("gbsq", "snoop=hitm")])
    assert [writes[1][0] for writes in written("-e", events)] == [FSB[0], GBSQ[0], FSB[1], GSNPQ[0], GBSQ[1]]


def test_every_bit_of_the_registers_is_some_events(written):
    """Above the count, but for bit 59, which would keep it from wrapping, and the reserved bits above."""
    for terms, reserved in (("gbsq,agent=0x7,module=0x3,fill=0x3,cross_snoop", [35]),
                            ("gsnpq,agent=0x3f,module=0x7,block_snoop", [58]),
                            ("fsb,type=all," + ",".join("clean hit hitm defer retry snoop_stall dbsy drdy bnr ioq_empty ioq_full "
                                                        "ioq_active ww_data ww_issue wr_issue rw_issue other_dbsy other_drdy "
                                                        "other_snoop_stall other_bnr".split()), [])):
        value = written(f"l3bus/{terms}/")[0][1][1]
        assert value == sum(1 << bit for bit in range(32, 59) if bit not in reserved)


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


def test_other_cpus_have_no_such_unit(nhmtap):
    for cpu in ("core2", "nehalem-ep"):
        assert "l3bus" in nhmtap("explain", f"--cpu={cpu}", "l3bus/gbsq/").err


def test_the_list_has_each_term_and_each_term_can_be_explained(nhmtap):
    listed = [r for r in parse(nhmtap("list", CPU, "--json").out) if "l3bus" in r["section"]]
    kinds = [r["name"] for r in listed if r["name"].endswith("/")]
    assert kinds == ["l3bus/gbsq/", "l3bus/gsnpq/", "l3bus/fsb/"]
    spelt = [f'{r["section"].split(",")[0]},{r["name"]}/' for r in listed if not r["name"].endswith("/")]
    assert len(spelt) > 40
    assert nhmtap("explain", CPU, *spelt).status == 0
