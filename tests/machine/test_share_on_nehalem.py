# SPDX-License-Identifier: GPL-2.0-only
"""--cpu-share with events of the PMU: the period changes during the run, and nothing is miscounted.
What the share saves is measured where time is instructions and one CPU does all the work. steady
runs for 0.43 s of the guest's time."""
import json

import pytest

import guests
import known
import records

TURNS = known.numbers("steady")["turns"]
# From steady's text, without an argument: six instructions before the turns (jb is taken), seven in
# each, three after.
INSTRUCTIONS = 6 + 7 * TURNS + 3
# jb, jnz of each turn, and the system call.
BRANCHES = 1 + TURNS + 1


@pytest.mark.parametrize("event, asked, executed", [("r04c4:u", 6000, BRANCHES), ("r01c0:upp", 40000, INSTRUCTIONS)],
                         ids=["interrupt", "PEBS"])
def test_counts_stay_exact_and_samples_weigh_what_they_stand_for_though_the_period_rises(guest, event, asked, executed):
    found = guests.nhmtap(guest, "profile", "-e", event, "-c", asked, "--by", "comm", "-I", "200", "--cpu-share", "1%",
                          "--format", "json", "--", "steady")
    profiles = [r for r in found if r["type"] == "profile"]
    shares = [r["share"] for r in profiles]
    assert found[0]["limits"]["cpu_share"] == {"allowed": 0.01, "kept_by": "period"}
    changes, longest = sum(share["changes"] for share in shares), max(share["sample_period"] for share in shares)
    assert changes and longest > 2 * asked and "too_dear" in {share["because"] for share in shares}
    samples = sum(r["samples"]["aggregated"] for r in profiles)
    assert sum(r["samples"]["expected"] for r in profiles) == samples
    counted = sum(r["value"] for r in profiles)
    assert counted == executed
    # The difference was counted towards the next sample at each change, and at the end.
    weighed = sum(e["period"] for r in profiles for e in r["entries"])
    assert 0 <= counted - weighed <= (changes + 1) * longest


def test_a_program_is_slowed_by_no_more_than_the_share_after_the_third_interval(guest):
    """First measures how much the samples slow the program without a share."""
    found = guest.say("""
        steadies="steady; steady; steady; steady; steady"
        beside() {
            nhmtap profile -a -e r01c0 -c 9000 --by comm -I 300 -o records --format json "$@" & measuring=$!
            until [ -e records ] && [ $(grep -c '"type":"profile"' records) -ge 3 ]; do steady short; done
            nhmtap stat -e cs --format json -- sh -c "$steadies"
            kill $measuring
            wait
        }
        nhmtap stat -e cs --format json -- sh -c "$steadies"
        beside
        rm records
        beside --cpu-share 1%
        cat records""", paranoid=-1)
    ends = [r for r in map(json.loads, found.splitlines()) if r["type"] == "end"]
    alone, dear, kept = (end["command"]["elapsed_ns"] for end in ends[:3])
    assert 1 - alone / dear > 0.1
    assert 1 - alone / kept <= 1.2 * 0.01
    shares = [r["share"]["used"] for r in records.parse(found) if r["type"] == "profile"]
    # The last interval may be too short.
    assert shares[0] > 0.012 >= max(shares[3:-1])
