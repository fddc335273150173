# SPDX-License-Identifier: GPL-2.0-only
"""Allocations that fail: no crash, a documented status, and records that are whole or none.

The n-th allocation of the whole process fails, in the program or in a library, for n from the first to
the last. NHMTAP_EVERY=1 tries every one; otherwise some of them are tried, and more by `make search`.
"""
import json
import os
import resource

import pytest
from attacked import EACH_COMMAND, SEED, Allocations, Attacked

TRIED = None if os.environ.get("NHMTAP_EVERY") else 24 if SEED else 9

pytestmark = pytest.mark.plain  # sanitizers allocate, too


@EACH_COMMAND
@pytest.mark.parametrize("which", ["once", "from then on"])
def test_without_memory_it_ends_with_a_message_and_whole_records(shim, tmp_path, command, which):
    allocations = Allocations(Attacked(tmp_path, command), shim("fail_alloc"))
    said, found = allocations.try_them(allocations.spread(TRIED), **({} if which == "once" else {"FAIL_ALL": "1"}))
    assert not found, "\n".join(found)
    assert said, "no allocation of the program's own was tried"


def test_the_end_record_says_that_there_was_no_memory(shim, tmp_path):
    attacked = Attacked(tmp_path, "stat")
    allocations = Allocations(attacked, shim("fail_alloc"))
    ends = []
    for place in allocations.spread(TRIED):
        allocations.run(FAIL_AT=str(place))
        ends += [r for r in attacked.records() if r["type"] == "end" and r["reason"] == "out_of_memory"]
    assert ends
    assert {end["exit_status"] for end in ends} == {2}


@pytest.mark.parametrize("mib", [16, 24, 32, 40, 48, 64])
def test_a_limit_of_address_space_lets_a_run_be_whole_or_refuses_it(nhmtap, tmp_path, mib):
    limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (mib << 20, mib << 20))
    result = nhmtap("profile", "-g", "-e", "page-faults", "-c", "1", "--by", "symbol", "-o", tmp_path / "out", "--", "true",
                    preexec_fn=limit)
    assert result.status in (0, 2)
    assert (result.status == 0) == (result.err == "")
    said = (tmp_path / "out").read_text(encoding="utf-8") if (tmp_path / "out").exists() else ""
    assert all(json.loads(line)["type"] for line in said.splitlines())
    assert result.status or json.loads(said.splitlines()[-1])["type"] == "end"
