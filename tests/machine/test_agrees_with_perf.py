"""nhmtap and perf in the same guest, on both kernels: two programs, one driver, the same numbers."""
import known
import pytest
from records import check_stream, parse

EVENTS = ["INST_RETIRED.ANY_P", "BR_INST_RETIRED.ALL_BRANCHES", "MEM_INST_RETIRED.LOADS",
          "MEM_INST_RETIRED.STORES"]


def records(guest, command, **options):
    said = guest.say("nhmtap " + command, paranoid=-1, **options)
    found = parse(said)
    check_stream(found)
    return found


def nhmtap_counts(guest, events, command):
    found = records(guest, f"stat -e '{','.join(events)}' -- {command}")
    counts = {r["event"]: r for r in found if r["type"] == "count"}
    assert all(r["status"] == "counted" for r in counts.values())
    return [counts[event]["value"] for event in events]


@pytest.mark.parametrize("mode", ["l", "m", "c", "s"])
def test_counts_are_equal_to_the_last_instruction(any_kernel, mode):
    ours = nhmtap_counts(any_kernel, [event + ":u" for event in EVENTS], f"known {mode}")
    theirs = any_kernel.perf_counts(EVENTS, f"known {mode}")
    assert ours == [theirs[event] for event in EVENTS]


def test_a_loop_of_two_million_instructions_is_counted_as_such(any_kernel):
    # known l: 1,000,000 x (dec, jnz), and a few instructions around them.
    instructions, branches = nhmtap_counts(any_kernel, ["instructions:u", "branches:u"], "known l")
    assert 2_000_000 <= instructions < 2_000_100
    assert 1_000_000 <= branches < 1_000_050


def test_precise_samples_fall_on_the_instructions_that_perf_finds(any_kernel, tmp_path):
    period = 1000
    profile, = [r for r in records(any_kernel, f"profile -e INST_RETIRED.ANY_P:upp -c {period} "
                                   "--by ip -- known l") if r["type"] == "profile"]
    ours = {int(e["ip"], 16): e["samples"] for e in profile["entries"]}
    theirs = {}
    for ip, in any_kernel.samples(f"-c {period} -e r01c0:upp", "known l", "ip", tmp_path):
        theirs[int(ip, 16)] = theirs.get(int(ip, 16), 0) + 1
    # Where in the period the program begins depends on what ran before it: a sample may fall on the
    # loop's other instruction.
    assert set(ours) == set(theirs)
    assert all(abs(ours[ip] - theirs[ip]) <= 2 for ip in ours)
    # Every instruction of the run stands behind some sample, but for the last period's.
    samples = profile["samples"]
    assert samples["expected"] == samples["aggregated"] + sum(samples["lost"].values())
    assert 2_000_000 // period - 2 <= samples["aggregated"] <= 2_000_100 // period
    site = known.addresses("known")["loop_site"]
    assert set(ours) <= {site, site + 2, site + 3}


def test_a_default_profile_samples_cycles_precisely(any_kernel):
    found = records(any_kernel, "profile -- known l")
    start = found[0]
    assert start["events"][0]["name"] == "cycles:P"
    assert start["events"][0]["attr"]["precise_ip"] == 2
    assert "precisely" in start["default_event_why"]
    assert found[-1]["samples"]["aggregated"] > 0
