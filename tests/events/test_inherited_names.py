# SPDX-License-Identifier: GPL-2.0-only
"""Names that a CPU's table has from another CPU's. Those that Intel lists for the other one alone must be true on
this one as well: with several packages a response from "memory" comes from any of them."""
import json
import os
import re

import hosts
import pytest
from facts import perfmon

with open(os.path.join(hosts.EVENTS, "cpus.json"), encoding="utf-8") as stream:
    HEIRS = [(cpu["name"], cpu["inherits"]) for cpu in json.load(stream)
             if "inherits" in cpu and perfmon(cpu["name"]) and perfmon(cpu["inherits"])]
# These say of which package they are, or of which cache, on every CPU: their bits are its home's and L3's own.
TRUE_ANYWHERE = {"sandybridge-ep": {"LLC_HIT_M.HITM", "LLC_MISS_LOCAL.ANY_LLC_HIT", "LLC_MISS_LOCAL.DRAM"}}


def listed(cpu):
    """The responses, and the codes of the other events, of Intel's list."""
    rows = perfmon(cpu)
    responses = {row["name"].split(".", 2)[2] for row in rows
                 if row["name"].startswith("OFFCORE_RESPONSE") and row["name"].count(".") >= 2}
    return responses, {row["name"]: (row["code"], row["umask"]) for row in rows
                       if not row["name"].startswith("OFFCORE_RESPONSE")}


def test_heirs_are_looked_at():
    assert {"nehalem-ex", "westmere-ep", "westmere-ep-dp", "westmere-ex", "sandybridge-ep"} <= {heir for heir, _ in HEIRS}


@pytest.mark.parametrize("heir, ancestor", HEIRS)
def test_what_intel_lists_for_the_ancestor_alone_is_not_offered_unless_it_is_true(nhmtap, heir, ancestor):
    theirs, own = listed(ancestor), listed(heir)

    def offered(name):
        result = nhmtap("explain", "--cpu", heir, name)
        assert result.status in (0, 1, 2)
        return result.status == 0
    responses = {name for name in theirs[0] - own[0] if offered(f"OFFCORE_RESPONSE.DEMAND_DATA_RD.{name}")}
    # A name may be the heir's own, from another source; then its bits differ.
    responses -= {name for name in responses if bits(nhmtap, heir, name) != bits(nhmtap, ancestor, name)}
    assert responses == TRUE_ANYWHERE.get(heir, set())
    # An alias may stand for an event that Intel lists here by another name.
    offered_alone = {name for name, code in theirs[1].items()
                     if name not in own[1] and code not in own[1].values() and offered(name)}
    # On Westmere this is libpfm4's name for an event that Intel calls L1D_CACHE_PREFETCH_LOCK_FB_HIT.
    assert offered_alone == ({"L1D_CACHE_LOCK_FB_HIT"} if heir == "westmere-ep" else set())


def bits(nhmtap, cpu, response):
    text = nhmtap("explain", "--cpu", cpu, f"OFFCORE_RESPONSE.DEMAND_DATA_RD.{response}").out
    return re.findall(r'"config1": ?"(0x[0-9a-f]+)"', text)[:1]


def test_memory_of_an_ep_is_that_of_both_packages(nhmtap):
    """Bit 22 is this package's home, 23 to 30 the others' (kernel, SNB_LOCAL and SNB_REMOTE, intel/core.c)."""
    refused = nhmtap("explain", "--cpu", "sandybridge-ep", "OFFCORE_RESPONSE.DEMAND_DATA_RD.LLC_MISS.DRAM")
    assert refused.status != 0
    local, remote, both = (int(bits(nhmtap, "sandybridge-ep", f"LLC_MISS.{which}_DRAM")[0], 16)
                           for which in ("LOCAL", "REMOTE", "ANY"))
    assert (local >> 22 & 0x1ff, remote >> 22 & 0x1ff, both >> 22 & 0x1ff) == (1, 0x1fe, 0x1ff)
