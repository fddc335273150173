# SPDX-License-Identifier: GPL-2.0-only
"""Linux 5.10 is too old for BPF functions with pointer arguments: counting works, and the rest is
refused with the reason."""
import pytest

import known
import records
from guests import nhmtap

COUNTED = {"INST_RETIRED.ANY_P", "BR_INST_RETIRED.ALL_BRANCHES", "MEM_INST_RETIRED.LOADS"}


@pytest.fixture
def old(machines):
    return machines(kernel="5.10")


def test_it_counts_as_the_programs_text_says(old):
    numbers = known.numbers("count")
    found = nhmtap(old, "stat", "-e", ",".join(f"{event}:u" for event in COUNTED & numbers.keys()), "--", "count")
    counts = {r["event"].partition(":")[0]: r["value"] for r in found if r["type"] == "count"}
    assert len(counts) >= 2 and counts == {event: numbers[event] for event in counts}


@pytest.mark.parametrize("command", ["profile", "profile -g", "mem", "branch"])
def test_what_is_aggregated_in_the_kernel_is_refused_by_its_version(old, command):
    error = next(r for r in nhmtap(old, *command.split(), "--", "count", status=2) if r["type"] == "error")
    assert "from 5.12 on; this is 5.10." in error["why"] and "newer kernel" in error["remedy"]


def test_doctor_says_so_once_for_all_of_them(old):
    result = old.run("nhmtap doctor --format json", paranoid=-1)
    found = records.parse(result.stdout)
    records.check_stream(found)
    reason, = (r for d in found if d["type"] == "diagnosis" for r in d["reasons"] if "5.12" in r["why"])
    assert {"bpf", "sample", "profile", "mem", "branch"} <= set(reason["stops"])
