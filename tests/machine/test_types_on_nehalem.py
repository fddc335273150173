# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap mem --by type on a program whose loads are known, on the emulated machine, from the host."""
import collections
import subprocess

import pytest
import records
from records import HERE


# By construction: structures.c. Each function's loads, in equal numbers.
LOADS = {
    "walk_list": {("struct node", "next"), ("struct node", "value")},
    "sum_array": {("struct item", "weight"), ("struct item", "count")},
    "find_all": {("struct entry*", None), ("struct entry", "key"), ("struct entry", "value")},
    "sum_tree": {("struct tree", "left"), ("struct tree", "right"), ("struct tree", "number")},
    "sum_globals": {("limits", "lower"), ("limits", "upper")},
}


@pytest.mark.parametrize("form", ["-gdwarf-5", "-gdwarf-4"])
def test_loads_through_pointers_have_the_types_and_fields_of_the_source(nhmtap, tmp_path, form):
    """What pop and ret load is no datum of the source. The period is one at which the kernel does not throttle."""
    program, out = tmp_path / "structures", tmp_path / "out"
    subprocess.run(["gcc", "-O2", form, "-o", program, f"{HERE}/programs/structures.c"], check=True)
    nhmtap("mem", "--machine", "--side", "u", "--ldlat", "3", "-c", "211", "--by", "symbol,type", "-o", out, "--",
           program, "10000")
    found = collections.defaultdict(collections.Counter)
    for record in records.parse(out.read_text()):
        assert not record.get("samples", {}).get("throttled")
        for entry in record.get("entries", []) if record["type"] == "mem" else []:
            if entry["code"].get("symbol") in LOADS and entry.get("untyped") != "no_operand":
                found[entry["code"]["symbol"]][entry.get("data_type"), entry.get("field")] += entry["samples"]
    typed = sum(n for of in found.values() for (name, _), n in of.items() if name)
    assert typed >= 0.9 * sum(of.total() for of in found.values())
    assert {function: {key for key in of if key[0]} for function, of in found.items()} == LOADS
