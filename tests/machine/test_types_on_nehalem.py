# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap mem --by type on a program whose loads are known, on the emulated machine, from the host."""
import collections
import subprocess

import pytest
import records
from records import HERE


# By construction: places.c, but for what a compiler keeps on the stack at will.
PLACES = {
    "sum_local": {("struct pair", "low"), ("struct pair", "high")},
    "sum_list": {("struct item", "count"), ("struct item", "weight")},
    "sum_argument": {("struct large", "pair.low"), ("struct large", "more")},
    "through": {("struct pair", "low"), ("struct pair", "high")},
    "sum_thread": {("struct pair", "low"), ("int[]", None), ("struct node*", None), ("struct node", "value")},
    "give": {("struct node**", None), ("struct node*", None)},
    "sum_returned": {("struct node", "value")},
    "sum_numbers": {("long", None)},
    "sum_moved": {("int[]", None)},
}

# By construction: structures.c. Each function's loads, in equal numbers.
LOADS = {
    "walk_list": {("struct node", "next"), ("struct node", "value")},
    "sum_array": {("struct item", "weight"), ("struct item", "count")},
    "find_all": {("struct entry*", None), ("struct entry", "key"), ("struct entry", "value")},
    "sum_tree": {("struct tree", "left"), ("struct tree", "right"), ("struct tree", "number")},
    "sum_globals": {("limits", "lower"), ("limits", "upper")},
}


def loads(nhmtap, tmp_path, program, functions):
    """The samples of each type and field that the functions load from. What pop and ret load is no datum of the
    source. The period is one at which the kernel does not throttle."""
    out = tmp_path / "out"
    nhmtap("mem", "--machine", "--side", "u", "--ldlat", "3", "-c", "211", "--by", "symbol,type", "-o", out, "--",
           program, "10000")
    found = collections.defaultdict(collections.Counter)
    for record in records.parse(out.read_text()):
        assert not record.get("samples", {}).get("throttled")
        for entry in record.get("entries", []) if record["type"] == "mem" else []:
            if entry["code"].get("symbol") in functions and entry.get("untyped") != "no_operand":
                name = entry.get("data_type", "").replace("long int", "long")
                found[entry["code"]["symbol"]][name or None, entry.get("field")] += entry["samples"]
    return found


def part_typed(found):
    return sum(n for of in found.values() for (name, _), n in of.items() if name) / sum(of.total() for of in found.values())


def types(found):
    return {function: {key for key in of if key[0]} for function, of in found.items()}


@pytest.mark.parametrize("form", ["-gdwarf-5", "-gdwarf-4"])
def test_loads_through_pointers_have_the_types_and_fields_of_the_source(nhmtap, tmp_path, form):
    program = tmp_path / "structures"
    subprocess.run(["gcc", "-O2", form, "-o", program, f"{HERE}/programs/structures.c"], check=True)
    found = loads(nhmtap, tmp_path, program, LOADS)
    assert part_typed(found) >= 0.9 and types(found) == LOADS


@pytest.mark.parametrize("compiler", ["gcc -O2", "gcc -O2 -gdwarf-4", "gcc -O2 -fno-omit-frame-pointer -static", "clang -O2 -fno-unroll-loops"])
def test_loads_from_the_stack_of_threads_and_of_what_is_returned_have_the_types_of_the_source(nhmtap, tmp_path, compiler):
    """Unrolled loops would have indices that don't count from the begin of an array; these are not believed."""
    program = tmp_path / "places"
    subprocess.run([*compiler.split(), "-g", "-o", program, f"{HERE}/programs/places.c"], check=True)
    found = loads(nhmtap, tmp_path, program, PLACES)
    assert part_typed(found) >= 0.9
    assert all(names <= PLACES[function] for function, names in types(found).items()) and set(found) == set(PLACES)


@pytest.mark.parametrize("compiler, least", [("gcc", 0.9), ("clang", 0.8)])
def test_without_optimization_variables_on_the_stack_have_their_types(nhmtap, tmp_path, compiler, least):
    """Each variable is there then: the counters of the loops, and the pointers. clang keeps addresses of its own on the
    stack as well, which no variable describes: one in eight of the loads of sum_argument."""
    own = {("long", None), ("struct pair*", None), ("struct node*", None)}
    program = tmp_path / "places"
    subprocess.run([compiler, "-O0", "-g", "-o", program, f"{HERE}/programs/places.c"], check=True)
    found = loads(nhmtap, tmp_path, program, PLACES)
    assert part_typed(found) >= least
    assert all(names <= PLACES[function] | own for function, names in types(found).items()) and set(found) == set(PLACES)


def test_analyze_names_the_fields_that_a_program_waits_for(nhmtap, tmp_path):
    """The walks of structures.c miss the first two levels by construction: no two items share a line, and all of them are
    larger than the second. Which of an item's fields is loaded first waits, and the others find the line."""
    program, out = tmp_path / "structures", tmp_path / "out"
    subprocess.run(["gcc", "-O2", "-g", "-o", program, f"{HERE}/programs/structures.c"], check=True)
    nhmtap("analyze", "--machine", "-q", "--where", "1", "-r", "2", "-o", out, "--", program, "20000")
    share, = [share for record in records.parse(out.read_text()) for share in record.get("shares", [])
              if share["name"] == "l3_bound"]
    fields = {tuple(key) for keys in LOADS.values() for key in keys}
    named = {(one["data_type"], one.get("field")): one["share"] for one in share["objects"] if "data_type" in one}
    assert set(named) <= fields and ("struct entry", "key") in named and sum(named.values()) >= 0.9
