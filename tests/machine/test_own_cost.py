# SPDX-License-Identifier: GPL-2.0-only
"""What it costs to write a record, in instructions of nhmtap itself."""
from records import parse

PROCESSES = "sh -c 'for i in $(seq 80); do (: & wait); done'"


def cost(guest, *options):
    """The instructions of a run, and the entries in its records."""
    command = " ".join(["nhmtap profile -e page-faults -c 1 --by pid,ip", *options, "-o all --", PROCESSES])
    said = guest.say(f"nhmtap stat -e instructions:u --format json -- {command}; cat all")
    records = parse("".join(f"{line}\n" for line in said.splitlines() if line.startswith("{")))
    counted, = (r["value"] for r in records if r["type"] == "count")
    return counted, sum(len(r["entries"]) for r in records if r["type"] == "profile")


def test_an_entry_is_written_for_some_hundred_instructions(guest):
    """Both runs read and sort all entries. 390 were measured; an entry made as a tree of objects took 10,200."""
    whole, entries = cost(guest)
    least, one = cost(guest, "--top 1")
    assert entries > 2000 and one == 1
    assert whole - least < 500 * entries
