# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap mem --by type on a program whose loads are known, on the emulated machine, from the host."""
import collections
import os
import subprocess

import golang
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

# By construction: places.c again. A local variable has its function's name before its own. Where an index is left out,
# so is the offset.
VARIABLES = {
    "sum_local": {("sum_local::local", 0), ("sum_local::local", 8)},
    "sum_list": {("sum_list::list", None)},
    "sum_argument": {("sum_argument::argument", 0), ("sum_argument::argument", 16)},
    "sum_thread": {("own", 0), ("own_list", None), ("own_node", 0)},
    "sum_numbers": {("sum_numbers::number", 0)},
}

# By construction: copies.c.
COPIES = {
    "sum_exported": {("exported", 0, "low"), ("exported", 8, "high")},
    "sum_own": {("own", 0, "low"), ("own_list", 12, None)},
    "sum_initial": {("initial", 8, "high")},
    "sum_behind": {("initial", 0, "low")},
}

# By construction: containers.cc. What a function loads in its loop, and from what the container itself is. Names of templates
# end where their arguments begin. A node keeps its data in bytes.
CONTAINERS = {
    "sum_map": {("_Rb_tree_node", "_M_storage._M_storage[]"), ("pair", "first"), ("pair", "second.low"), ("map", "_M_t._M_impl")},
    "find_map": {("_Rb_tree_node", "_M_storage._M_storage[]"), ("_Rb_tree_node", "_M_left|_M_right"), ("_Rb_tree_node", "_M_left"),
                 ("_Rb_tree_node", "_M_right"), ("map", "_M_t._M_impl")},
    "sum_vector": {("point", "low"), ("point", "high"), ("vector", "_M_impl._M_start"), ("vector", "_M_impl._M_finish")},
    "sum_list": {("_List_node", "_M_storage._M_storage[]"), ("_List_node", "_M_next"), ("point", "low"), ("point", "high"),
                 ("list", "_M_impl._M_node._M_next")},
}

# By construction: structures.c. Each function's loads, in equal numbers.
LOADS = {
    "walk_list": {("struct node", "next"), ("struct node", "value")},
    "sum_array": {("struct item", "weight"), ("struct item", "count")},
    "find_all": {("struct entry*", None), ("struct entry", "key"), ("struct entry", "value")},
    "sum_tree": {("struct tree", "left"), ("struct tree", "right"), ("struct tree", "number")},
    "sum_globals": {("limits", "lower"), ("limits", "upper")},
}

# By construction: structures.go, but for what a compiler keeps on the stack at will. Each function that needs much stack looks
# whether its goroutine has it.
GO = {
    "main.walkList": {("main.node", "next"), ("main.node", "value")},
    "main.sumTree": {("main.tree", "left"), ("main.tree", "right"), ("main.tree", "key"), ("main.tree", "count"),
                     ("runtime.g", "stackguard0")},
    "main.sumItems": {("main.item", "weight"), ("main.item", "count")},
    "main.(*table).find": {("main.table", "slots.len"), ("main.table", "slots.array"), ("main.table", "mask"), ("*main.item", None),
                           ("main.item", "weight")},
    "main.areas": {("runtime.iface", "tab"), ("runtime.iface", "data"), ("runtime.itab", "fun[]"), ("[]main.shape", "len")},
    "main.assert": {("main.node", "value"), ("runtime.g", "stackguard0")},
}


# By default the kernel stops an event after 400 samples in one of its ticks, and how many of the loads there are tagged depends
# on the alignment of the guest. It takes another rate only while it watches the time that interrupts take.
UNTHROTTLED = ("cd /proc/sys/kernel && echo 25 > perf_cpu_time_max_percent && echo 10000000 > perf_event_max_sample_rate"
               ' && echo 0 > perf_cpu_time_max_percent && exec "$@"')


def entries_of(nhmtap, tmp_path, program, functions, by="symbol,type", period=211):
    """The entries of the loads of these functions. What pop and ret load is no datum of the source. The kernel throttles
    none of them. Only some loads are tagged for their latency: of so many, each function has eight
    samples or more, so that hardly one is without any by chance."""
    out = tmp_path / "out"
    nhmtap("mem", "--machine", "--side", "u", "--ldlat", "3", "-c", str(period), "--by", by, "-o", out,
           "--", "sh", "-c", UNTHROTTLED, "sh", program, "30000")
    found = records.parse(out.read_text())
    assert not any(record.get("samples", {}).get("throttled") for record in found)
    return [entry for record in found if record["type"] == "mem" for entry in record.get("entries", [])
            if entry["code"].get("symbol") in functions and entry.get("untyped") != "stack_operation"]


def loads(nhmtap, tmp_path, program, functions, **options):
    """The samples of each type and field that the functions load from."""
    found = collections.defaultdict(collections.Counter)
    for entry in entries_of(nhmtap, tmp_path, program, functions, **options):
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


# Without optimization each variable is on the stack: the counters of the loops, and the pointers; and so is what compilers
# keep there for themselves.
OWN = {("long", None), ("int", None), *((f"struct {name}*", None) for name in ("pair", "node", "large", "item", "entry", "tree", "table"))}


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_without_optimization_variables_on_the_stack_have_their_types(nhmtap, tmp_path, compiler):
    program = tmp_path / "places"
    subprocess.run([compiler, "-O0", "-g", "-o", program, f"{HERE}/programs/places.c"], check=True)
    found = loads(nhmtap, tmp_path, program, PLACES)
    assert part_typed(found) >= 0.9
    assert all(names <= PLACES[function] | OWN for function, names in types(found).items()) and set(found) == set(PLACES)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_without_optimization_loads_through_pointers_have_the_types_of_the_source(nhmtap, tmp_path, compiler):
    program = tmp_path / "structures"
    subprocess.run([compiler, "-O0", "-g", "-w", "-o", program, f"{HERE}/programs/structures.c"], check=True)
    expected = {**LOADS, "find": LOADS["find_all"] | {("struct table", "slots")}}
    # Most loads are from the stack, and so fast that a shorter period takes long here.
    found = loads(nhmtap, tmp_path, program, expected, period=599)
    assert part_typed(found) >= 0.9
    assert all(names <= expected[function] | OWN for function, names in types(found).items()) and set(found) == set(expected)


@pytest.mark.parametrize("compiler", ["g++ -O2", "clang++ -O2 -fno-unroll-loops"])
def test_loads_in_containers_have_the_types_of_their_nodes(nhmtap, tmp_path, compiler):
    program = tmp_path / "containers"
    subprocess.run([*compiler.split(), "-g", "-o", program, f"{HERE}/programs/containers.cc"], check=True)
    found = loads(nhmtap, tmp_path, program, CONTAINERS)
    assert part_typed(found) >= 0.9
    assert {function: {(name.split(" ")[-1] if "<" not in name else name.split("<")[0].split(" ")[-1], field) for name, field in keys} - CONTAINERS[function]
            for function, keys in types(found).items()} == {function: set() for function in CONTAINERS}


def test_loads_of_a_program_of_go_have_the_types_of_its_source(nhmtap, tmp_path):
    """Calls keep no register: what assert() loads through its callee's second result has no type that is told."""
    with open(f"{HERE}/programs/structures.go", encoding="utf-8") as f:
        program = golang.build(tmp_path, source=f.read())
    found = loads(nhmtap, tmp_path, program, GO, period=503)
    assert part_typed(found) >= 0.8
    kept = {("*main.tree", None), ("*main.node", None), ("*runtime.iface", None)}
    assert {function: names - kept for function, names in types(found).items()} == GO


def test_variables_on_the_stack_and_of_threads_are_named_by_the_instruction(nhmtap, tmp_path):
    program = tmp_path / "places"
    subprocess.run(["gcc", "-O2", "-g", "-o", program, f"{HERE}/programs/places.c"], check=True)
    found = collections.defaultdict(set)
    for entry in entries_of(nhmtap, tmp_path, program, VARIABLES, by="symbol,variable_offset,type"):
        if "variable" in entry and entry["data_module"] != str(program):
            found[entry["code"]["symbol"]].add((entry["variable"], entry.get("variable_offset")))
    assert all(names <= VARIABLES[function] for function, names in found.items()) and set(found) == set(VARIABLES)


@pytest.mark.parametrize("options", ["gcc", "gcc -mtls-dialect=gnu2", "gcc -fno-plt -gdwarf-4", "gcc -fuse-ld=lld", "clang",
                                     "clang -gsplit-dwarf"])
def test_threads_variables_of_libraries_are_found_by_the_slots_of_the_dynamic_linker(nhmtap, tmp_path, options):
    for form in (f"{options} -DLIBRARY -fPIC -shared -o libcopies.so", "gcc -DREST -o copies"):
        subprocess.run([*form.split(), "-O2", "-g", f"{HERE}/programs/copies.c",
                        *([] if "LIBRARY" in form else ["-L.", "-lcopies", "-Wl,-rpath,$ORIGIN"])], check=True, cwd=tmp_path)
    found = collections.defaultdict(set)
    for entry in entries_of(nhmtap, tmp_path, tmp_path / "copies", COPIES, by="symbol,variable_offset,type"):
        # The slots themselves are no data of the source.
        if not entry["data_module"].endswith("libcopies.so"):
            found[entry["code"]["symbol"]].add((entry.get("variable"), entry.get("variable_offset"), entry.get("field")))
    assert found and all(names <= COPIES[function] for function, names in found.items()) and set(found) == set(COPIES)


def test_the_kernels_data_is_counted_as_such(nhmtap, tmp_path):
    """Every load of the kernel's own side is from its memory, but for those that copy from and to a program's."""
    out = tmp_path / "out"
    nhmtap("mem", "--machine", "--side", "k", "--ldlat", "3", "-c", "211", "--by", "type", "-o", out, "--", "true")
    counted, = [record["names"]["data"] for record in records.parse(out.read_text()) if record["type"] == "end"]
    assert counted["untyped"]["kernel"] == counted["unnamed"]["kernel"] > 0.9 * (counted["named"] + sum(counted["unnamed"].values()))


def test_analyze_names_the_fields_that_a_program_waits_for(nhmtap, tmp_path):
    """The walks of structures.c miss the first two levels by construction: no two items share a line, and all of them are
    larger than the second. Which of an item's fields is loaded first waits, and the others find the line."""
    program, out = tmp_path / "structures", tmp_path / "out"
    subprocess.run(["gcc", "-O2", "-g", "-o", program, f"{HERE}/programs/structures.c"], check=True)
    nhmtap("analyze", "--machine", "-q", "--where", "1", "-r", "2", "-o", out, "--", program, "20000")
    share, = [share for record in records.parse(out.read_text()) for share in record.get("shares", [])
              if share["name"] == "l3_bound"]
    fields = {tuple(key) for keys in LOADS.values() for key in keys}
    # The dynamic linker looks at symbols of the C library.
    named = {(one["data_type"], one.get("field")): one["share"] for one in share["objects"]
             if "data_type" in one and os.path.basename(one["data_module"]) != "libc.so.6"}
    assert set(named) <= fields and ("struct entry", "key") in named and sum(named.values()) >= 0.9
