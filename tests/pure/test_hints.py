# SPDX-License-Identifier: GPL-2.0-only
"""What a table says to try next: it can be done where the table was made."""
import json

import pytest
from compiled import compiled


@pytest.fixture(scope="module", name="hint")
def fixture_hint(tmp_path_factory):
    run = compiled(tmp_path_factory.mktemp("hints"), "hints", "output/hints.c", "output/text.c", "base/memory.c", "base/visible.c",
                   "base/refusal.c", libraries=["-ljansson"])
    return lambda **start: run(json.dumps(start))


@pytest.mark.parametrize("cpu, command", [({"events": "nehalem-ep"}, "analyze"), ({"events": "netburst"}, "profile"), ({}, "profile")])
def test_analyze_follows_where_the_cpu_has_a_tree_of_shares(hint, cpu, command):
    """On any other CPU analyze is refused."""
    assert hint(command="stat", events=[{"name": "cycles:u"}], host={"cpu": cpu}).startswith(f"# next: nhmtap {command}")


def test_what_measures_goes_to_the_emulated_machine_again_and_what_reads_does_not(hint):
    """This host may have no such events; a stored file is here."""
    host = {"emulated": {"model": "westmere", "version": "1"}}
    assert hint(command="profile", by=["symbol"], host=host) == "# next: with --machine=westmere, nhmtap profile -g says who calls them\n"
    assert hint(command="profile", by=["stack"], host=host).startswith("# next: with -o FILE, nhmtap report FILE")
