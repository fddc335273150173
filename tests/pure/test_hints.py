# SPDX-License-Identifier: GPL-2.0-only
"""What a table says to try next: it can be done where the table was made."""
import json

import pytest
from compiled import compiled


@pytest.fixture(scope="module", name="hint")
def fixture_hint(tmp_path_factory):
    run = compiled(tmp_path_factory.mktemp("hints"), "hints")
    return lambda **start: run(json.dumps(start))


@pytest.mark.parametrize("cpu, command", [({"events": "nehalem-ep"}, "analyze"), ({"events": "netburst"}, "profile"), ({}, "profile")])
def test_analyze_follows_where_the_cpu_has_a_tree_of_shares(hint, cpu, command):
    """On any other CPU analyze is refused."""
    assert hint(command="stat", events=[{"name": "cycles:u"}], host={"cpu": cpu}).startswith(f"# next: nhmtap {command}")


def test_what_measures_goes_to_the_emulated_machine_again_and_what_reads_does_not(hint):
    """This host may have no such events; a stored file is here."""
    host = {"emulated": {"model": "westmere", "version": "1"}}
    assert hint(command="profile", by=["symbol"], host=host) == "# next: with --machine=westmere, nhmtap profile -g says who calls them\n"
    assert "with --machine=westmere,cpus=2, nhmtap profile -g" in hint(command="profile", by=["symbol"], host={**host, "cpus_online": 2})
    assert hint(command="profile", by=["stack"], host=host).startswith("# next: with -o FILE, nhmtap report FILE")


def loads(**samples):
    """What loads have found. The values are the kernel's of a Nehalem's codes 6 and 4 (ds.c, pebs_data_source)."""
    values = {"modified": "0x600800842", "l3": "0x600100842"}
    return {"type": "mem", "sources": [{"source": name, "data_src": values[name], "samples": n, "period": n} for name, n in samples.items()]}


@pytest.mark.parametrize("record, asked", [
    (loads(l3=80, modified=20), True), (loads(l3=999, modified=1), False), (loads(modified=2), False),
    ({"type": "shared_line"}, False), (loads(l3=5), False)])
def test_lines_that_cores_share_are_looked_for_where_loads_find_them_modified(hint, record, asked):
    """A few are chance; and records of --shared say it."""
    for command in ("mem", "show"):
        assert ("mem --shared" in hint(command=command, record=record)) is asked
