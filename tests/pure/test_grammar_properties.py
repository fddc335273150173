# SPDX-License-Identifier: GPL-2.0-only
"""Any text as a list of events gives a plan in which every member has a reason, or a refusal with a
message. The texts are made of pieces of the grammar, so most are nearly valid."""
import json
import subprocess

import hosts
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from records import NHMTAP, parse

NAMES = st.sampled_from([
    "cycles", "instructions", "page-faults", "cs", "cpu-clock", "LLC-loads", "r01c0", "r1", "rzz",
    "INST_RETIRED.ANY_P", "mem_load_retired:l1d_hit|l2_hit", "MEM_LOAD_RETIRED.L1D_HIT|NO", "mem-loads",
    "OFFCORE_RESPONSE:ANY_DATA:ANY_DRAM", "OFFCORE_RESPONSE_0.ANY_DATA|PF_RFO.LOCAL_DRAM",
    "OFFCORE_RESPONSE::", "MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD_64", "cpu", "uncore", "ü", "", "-"])
NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 1 << 66), st.just("x"), st.just("-1"),
                    st.just("")).map(str)
TERMS = st.lists(
    st.tuples(st.sampled_from(["event", "umask", "cmask", "inv", "edge", "any", "pc", "offcore_rsp",
                               "ldlat", "period", "freq", "name", "config", "config1", "nonsense"]),
              st.one_of(st.none(), NUMBERS)).map(
                  lambda term: term[0] if term[1] is None else f"{term[0]}={term[1]}"),
    max_size=4).map(",".join)
MODIFIERS = st.sampled_from(["", ":u", ":k", ":ukh", ":p", ":pp", ":P", ":pppp", ":D", ":", ":?", "u",
                             ":c=2", ":e:i=1:t", ":u=0:k=1", ":0x3", ":ldlat=9:u", ":C=999", ":e=2", ":i:i"])
EVENTS = st.one_of(st.tuples(NAMES, MODIFIERS).map("".join),
                   st.tuples(NAMES, TERMS, MODIFIERS).map(lambda e: f"{e[0]}/{e[1]}/{e[2].lstrip(':')}"))
LISTS = st.lists(st.one_of(EVENTS, st.lists(EVENTS, max_size=6).map(
    lambda events: "{" + ", ".join(events) + "}")), min_size=1, max_size=4).map(",".join)
TEXTS = st.one_of(LISTS, st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"),
                                 max_size=40))


@pytest.fixture(scope="module")
def nehalem(tmp_path_factory):
    return hosts.build(tmp_path_factory.mktemp("nehalem"), hosts.NEHALEM)


def explain(root, *arguments):
    return subprocess.run([NHMTAP, "explain", f"--host-root={root}", *arguments], capture_output=True,
                          timeout=240)


@settings(max_examples=250, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, force=st.booleans(), period=st.one_of(st.none(), st.integers(1, 100000)))
def test_every_text_gives_a_justified_plan_or_a_refusal(nehalem, text, force, period):
    arguments = (["--force"] if force else []) + (["-c", str(period)] if period else [])
    done = explain(nehalem, *arguments, "--", text)
    assert done.returncode in (0, 1, 2), done.stderr
    if done.returncode:
        assert done.stdout == b"" and done.stderr.startswith(b"nhmtap: ")
        return
    for event in [r["event"] for r in parse(done.stdout.decode()) if r["type"] == "event"]:
        assert not set(event["attr"]) - set(event["why"]), "a member without a reason"


CODES = st.integers(0, (1 << 32) - 1)


@settings(max_examples=250, deadline=None)
@given(code=st.one_of(CODES, CODES.map(lambda code: code & 0x1fa4ffff)), extra=st.integers(0, (1 << 17) - 1))
def test_every_raw_code_that_is_planned_keeps_its_bits(nehalem, code, extra):
    terms = f"cpu/config={code:#x}" + (f",config1={extra:#x}/" if extra else "/")
    done = explain(nehalem, terms)
    assert done.returncode in (0, 1)
    if done.returncode:
        return
    attr = json.loads(done.stdout.splitlines()[0])["event"]["attr"]
    assert (int(attr["config"], 16), int(attr.get("config1", "0"), 16)) == (code, extra)
    # No bit is set that the guide reserves in IA32_PERFEVTSELx or that the kernel drops.
    assert not code & (1 << 16 | 1 << 17 | 1 << 19 | 1 << 20 | 1 << 22 | 7 << 29)
