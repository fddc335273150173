"""Every event of Nehalem's tables is opened on the machine, plainly and precisely: the kernel takes what
nhmtap plans, and what the kernel refuses nhmtap has refused before, with a reason.

The encodings that the kernel is asked for come from the facts of tests/events, not from nhmtap."""
import csv
import os
import subprocess

import nehalem
import pytest
from guests import tool

FACTS = os.path.join(nehalem.HERE, "../events/facts/nehalem-ep.tsv")
# Fixed counters: the facts have Intel's code for them, 0x00, which perf_event_attr has no use for.
FIXED = {"0x00", "0x0"}


def facts():
    with open(FACTS, encoding="utf-8") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["code"] not in FIXED]


def encoding(row):
    """config and config1 of a row: guide, IA32_PERFEVTSELx and OFFCORE_RSP_0."""
    number = {name: int(row[name] or "0", 0) for name in ("code", "umask", "cmask", "inv", "edge", "any")}
    config = (number["code"] | number["umask"] << 8 | number["edge"] << 18 | number["any"] << 21 |
              number["inv"] << 23 | number["cmask"] << 24)
    return config, int(row["msr_value"] or "0", 0)


def only_reserved(row):
    """An off-core response of which this CPU has no bit: REMOTE_CACHE_HITM, guide Table 12."""
    return row["code"].upper() == "0XB7" and encoding(row)[1] & 0xff00 == 0x0800


def kernel_takes(guest, rows, precise):
    lines = "".join("%x %x %x\n" % (*encoding(row), precise) for row in rows)
    said = guest.say("openable", stdin=lines.encode(), paranoid=-1)
    answers = [int(line) == 0 for line in said.split()]
    assert len(answers) == len(rows)
    return dict(zip((row["name"] for row in rows), answers))


def nhmtap_takes(name, *options):
    done = subprocess.run([tool(), "explain", "--cpu", "nehalem-ep", *options, name],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert done.returncode in (0, 1), done.stderr
    assert done.returncode == 0 or "Next: " in done.stderr
    return done.returncode == 0


@pytest.mark.parametrize("precise", [0, 1], ids=["plainly", "precisely"])
def test_the_kernel_takes_an_event_exactly_where_nhmtap_plans_it(guest, precise):
    rows = facts()
    assert len(rows) > 550
    kernel = kernel_takes(guest, rows, precise)
    options, modifier = (["-c", "100003"], ":p") if precise else ([], "")
    for row in rows:
        name = row["name"]
        ours = nhmtap_takes(name + modifier, *options)
        if only_reserved(row):
            # The kernel would take it plainly, and it would count nothing.
            assert not ours and kernel[name] == (not precise), name
        else:
            assert ours == kernel[name], f"{name}: kernel {kernel[name]}, nhmtap {ours}"
