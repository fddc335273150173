# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap mem --by type: types and fields, by page faults of programs whose every access is known, compiled as
most programs are."""
import collections
import os
import re
import subprocess

import pytest
from records import HERE, Result
from running import Running
from sessions import until

FAULTS = ["-e", "page-faults:u", "-c", "1"]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compiles a program of tests/programs; returns its path."""
    def compile_it(name, *options):
        path = tmp_path_factory.mktemp(name) / name
        subprocess.run(["gcc", "-O2", *options, "-o", path, f"{HERE}/programs/{name}.c"], check=True, cwd=path.parent)
        return path
    return compile_it


def faults(nhmtap, tmp_path, program, *functions, by="symbol,type", target=()):
    """The entries of faults in these functions, and the account of data."""
    result = nhmtap.into(tmp_path / "out", "mem", *FAULTS, *target, "--by", by, "--", program)
    entries = [e for e in result.entries("mem") if e["code"].get("symbol") in functions
               and e["code"]["module"] == str(program)]
    return entries, result.one("end")["names"]["data"]


def by_field(entries):
    found = collections.Counter()
    for entry in entries:
        found[entry.get("data_type"), entry.get("field"), entry.get("untyped")] += entry["samples"]
    return found


# By construction: fields.c. A union's members are at one place, and bit-fields in one unit, which is loaded
# before it is stored.
FIELDS = collections.Counter({
    ("struct whole", "first", None): 1,
    ("struct whole", "pairs[].low", None): 2,
    ("struct whole", "pairs[].high", None): 1,
    ("struct whole", "either.number|real", None): 1,
    ("struct whole", "few|more", None): 2,
    ("struct whole", "text", None): 1,
    ("struct whole", "list[]", None): 1,
    ("struct pair", "high", None): 3,
    ("unnamed", "member", None): 1,
    ("enum colour", None, None): 1,
    ("number[]", None, None): 4,
    ("struct pair*", None, None): 1,
    ("function*", None, None): 1,
    ("union both", "pair.high", None): 1,
    ("double", None, None): 1,
})


@pytest.mark.parametrize("form", ["-gdwarf-5", "-gdwarf-4", "-g -gsplit-dwarf", "-gdwarf-4 -gsplit-dwarf", "-g -fdebug-types-section",
                                  "-gdwarf-4 -fdebug-types-section", "-g -gsplit-dwarf -fdebug-types-section", "-gdwarf-4 -gsplit-dwarf -fdebug-types-section"])
def test_variables_have_the_types_and_fields_of_their_declarations(nhmtap, tmp_path, compiled, form):
    entries, account = faults(nhmtap, tmp_path, compiled("fields", *form.split()), "store", "main")
    assert by_field(entries) == FIELDS
    assert account["typed"] >= FIELDS.total()
    assert account["typed"] + sum(account["untyped"].values()) == account["named"] + sum(account["unnamed"].values())


def test_a_type_that_is_not_read_is_not_said_to_have_no_name(nhmtap, tmp_path, compiled):
    """Units of types are not read from a .dwp file."""
    program = compiled("fields", "-gdwarf-4", "-gsplit-dwarf", "-fdebug-types-section")
    subprocess.run("dwp -e fields -o fields.dwp && rm *.dwo", shell=True, check=True, cwd=program.parent)
    entries, _ = faults(nhmtap, tmp_path, program, "store", "main")
    assert sorted(e["data_type"] for e in entries if "data_type" in e) == ["double", "function*", "number[]", "struct (unknown)*"]


def test_variables_are_found_among_many_files_of_split_dwarf(nhmtap, tmp_path):
    """Only those files are opened that may have a variable: a request opens 16 at most, and there may be thousands."""
    names = [f"own_{i}" for i in range(40)]
    for name in names:
        (tmp_path / f"{name}.c").write_text(f"struct of_{name} {{ char pad[4096], last; }} {name}[2] __attribute__((aligned(4096)));\n"
                                            f"void store_{name}(long i) {{ {name}[i].last = 1; }}\n")
    (tmp_path / "main.c").write_text("".join(f"void store_{name}(long i);\n" for name in names) + "int main(int argc, char **argv)\n{\n" +
                                     "".join(f"\tstore_{name}(argc);\n" for name in names) + "\treturn 0;\n}\n")
    subprocess.run("gcc -O1 -g -gsplit-dwarf -c *.c && gcc -o many *.o", shell=True, check=True, cwd=tmp_path)
    entries, _ = faults(nhmtap, tmp_path, tmp_path / "many", *(f"store_{name}" for name in names), by="symbol,variable,type")
    assert sorted((e["variable"], e.get("data_type"), e.get("field")) for e in entries) == [
        (name, f"struct of_{name}", "last") for name in sorted(names)]


# A type whose parts are described at both ends of half a megabyte.
FAR = """
struct inner { long first, second; };
struct early { struct inner pad, inner; };
""" + "".join(f"struct between_{i} {{ int one, other; }} between_{i};\n" for i in range(5000)) + """
struct late { long pad; struct early early; } __attribute__((aligned(4096))) late[3];
__attribute__((noinline)) void store(long i) { late[i].early.inner.second = 1; }
int main(int argc, char **argv) { store(argc); return 0; }
"""


def test_fields_are_told_however_far_apart_their_types_are_described(nhmtap, tmp_path):
    (tmp_path / "far.c").write_text(FAR)
    subprocess.run(["gcc", "-O2", "-g", "-o", "far", "far.c"], check=True, cwd=tmp_path)
    entries, _ = faults(nhmtap, tmp_path, tmp_path / "far", "store")
    assert [(e["data_type"], e["field"]) for e in entries] == [("struct late", "early.inner.second")]


def test_types_in_a_run_of_everything_are_told_however_much_debug_information_a_program_has(nhmtap, tmp_path, compiled):
    (tmp_path / "much.s").write_text('.section .debug_loclists,"",@progbits\n.zero 20000000\n')
    entries, _ = faults(nhmtap, tmp_path, compiled("fields", "-g", tmp_path / "much.s"), "store", "main", target=["-a"])
    assert by_field(entries) == FIELDS


# By construction: objects.cc. Names of templates are as compilers write them.
OBJECTS = {
    "first_base": ("both", "id"),
    "second_base": ("both", "high"),
    "own_member": ("both", "weight"),
    "of_template": ("box<short, 7>", "value"),
    "of_union": ("either", "inside.mark"),
    "beside_bits": ("bits", "whole"),
    "bit_field": ("bits", "few|more"),
    "in_array": ("table", "items[].list[]"),
    "of_array": ("item", "kind"),
    "behind_pointer": ("item", "kind"),
    "by_unique": ("right", "high"),
    "by_shared": ("right", "high"),
    "any_member": None,
    "at_bytes": None,
    "by_index": ("right", "high"),
    "by_slice": ("right", "high"),
    "by_handle": ("right", "high"),
    "by_iterator": ("right", "high"),
    "behind_bytes": None,
    "of_bytes": ("char", None),
}


@pytest.mark.parametrize("compiler", ["g++ -O2", "clang++ -O2", "g++ -O1 -gdwarf-4", "g++ -O0", "clang++ -O0", "g++ -O2 -gsplit-dwarf",
                                      "clang++ -O2 -gsplit-dwarf -gdwarf-5", "g++ -O2 -gsplit-dwarf -gdwarf-4"])
def test_objects_of_cpp_have_the_types_and_members_of_their_classes(nhmtap, tmp_path, compiler):
    program = tmp_path / "objects"
    subprocess.run([*compiler.split(), "-g", "-o", program, f"{HERE}/programs/objects.cc"], check=True, cwd=tmp_path)
    entries, _ = faults(nhmtap, tmp_path, program, *OBJECTS)
    # Compilers may write struct or class.
    found = {e["code"]["symbol"]: (re.sub("^(struct|class|union) ", "", e["data_type"]).replace("short int", "short"), e.get("field"))
             if "data_type" in e else None for e in entries if e.get("untyped") != "undescribed"}
    assert found == OBJECTS


# By construction: variants.S.
VARIANTS = {
    "in_variant": ("struct Choice", "Some.__0.count", None),
    "which_variant": ("struct Choice", None, None),
    "from_frame": ("struct Leaf", "count", None),
    "apart": (None, None, "no_pointer"),
    "nameless": ("(unnamed)", None, None),
}


def test_data_that_compilers_of_c_do_not_describe_have_their_types(nhmtap, tmp_path):
    program = tmp_path / "variants"
    subprocess.run(["gcc", "-o", program, f"{HERE}/programs/variants.S"], check=True)
    entries, _ = faults(nhmtap, tmp_path, program, *VARIANTS)
    assert {e["code"]["symbol"]: (e.get("data_type"), e.get("field"), e.get("untyped")) for e in entries} == VARIANTS


# By construction: followed.c. A frame on pages of its own is touched first where a pointer is kept.
FOLLOWED = {
    "one_of_two_variables": {("struct wide", "second", None, None)},
    "one_of_two_kept": {("struct wide", "second", None, None), ("struct wide*", None, None, None)},
    "one_of_two_of_threads": {(None, None, None, "no_pointer")},
    "number_and_index": {(None, None, None, "no_pointer")},
    "one_of_two_numbers": {("struct pair", "low|high", None, None)},
    "byte_is_zero": {(None, None, None, "no_pointer")},
    "offset_of_32_bits": {(None, None, None, "no_pointer")},
    "offset_with_sign": {(None, None, None, "no_pointer")},
    "kept_and_changed": {(None, None, None, "stack")},
    "kept_and_written_over": {(None, None, None, "stack")},
    "kept_is_wider": {(None, None, None, "stack")},
    "kept_is_a_part": {(None, None, None, "stack")},
}


def test_no_more_is_told_than_the_code_before_says(nhmtap, tmp_path, compiled):
    entries, _ = faults(nhmtap, tmp_path, compiled("followed", "-g"), *FOLLOWED, by="symbol,variable,type")
    found = collections.defaultdict(set)
    for e in entries:
        found[e["code"]["symbol"]].add((e.get("data_type"), e.get("field"), e.get("variable"), e.get("untyped")))
    assert found == FOLLOWED


def test_data_without_debug_information_is_counted_as_such(nhmtap, tmp_path, compiled):
    entries, account = faults(nhmtap, tmp_path, compiled("fields"), "store", "main")
    assert by_field(entries) == {(None, None, "no_dwarf"): FIELDS.total()}
    assert account["untyped"]["no_dwarf"] >= FIELDS.total()


def test_each_reason_for_an_unknown_type_is_told(nhmtap, tmp_path, compiled):
    """By construction: untyped.c. Its functions have the names of the reasons."""
    result = nhmtap.into(tmp_path / "out", "mem", *FAULTS, "--by", "symbol,type", "--", compiled("untyped", "-g"))
    reasons = {"incomplete", "no_operand", "stack_operation", "stack", "no_register", "no_pointer", "no_code", "undescribed", "unknown"}
    found = {(e["code"]["symbol"], e.get("untyped")): e["samples"] for e in result.entries("mem")
             if e["code"].get("symbol") in reasons}
    assert found == {(reason, reason): 4 if reason == "stack_operation" else 1 for reason in reasons}
    account = result.one("end")["names"]["data"]["untyped"]
    assert account["no_variable"] == 1 and all(account[reason] for reason in reasons)


def test_only_a_class_whose_name_ends_so_is_an_iterator(nhmtap, tmp_path):
    """An iterator's pointer is to the type that it names, of which the pointer's own is the base. A pool's is what it says."""
    (tmp_path / "named.cc").write_text("""
#include <stdlib.h>
struct base { long value; };
struct derived : base { long more; };
#define NAMES { using node = derived; base *at; long more() const { node *own = (node *)at; return own->more; } }
struct iterator_pool NAMES;
struct pool_iterator NAMES;
template <class T> struct list_iterator { using node = T; base *at; long more() const { node *own = (node *)at; return own->more; } };
extern "C" __attribute__((noinline)) long pooled(iterator_pool pool) { return pool.at->value; }
extern "C" __attribute__((noinline)) long iterated(pool_iterator in) { return in.at->value; }
extern "C" __attribute__((noinline)) long listed(list_iterator<derived> in) { return in.at->value; }
int main()
{
    char *memory = (char *)malloc(1 << 20);
    iterator_pool pool = {(base *)(memory + 65536)};
    pool_iterator in = {(base *)(memory + 131072)};
    list_iterator<derived> list = {(base *)(memory + 262144)};
    return (pooled(pool) + iterated(in) + listed(list) + pool.more() + in.more() + list.more()) != 0;
}
""")
    subprocess.run(["g++", "-g", "-O2", "named.cc", "-o", "named"], check=True, cwd=tmp_path)
    entries, _ = faults(nhmtap, tmp_path, tmp_path / "named", "pooled", "iterated", "listed", by="symbol,type")
    assert {e["code"]["symbol"]: e.get("data_type") for e in entries} == {
        "pooled": "struct base", "iterated": "struct derived", "listed": "struct derived"}


def test_a_pointer_is_not_followed_through_any_number_of_choices(nhmtap, tmp_path):
    """Each conditional move chooses of two registers, which were chosen of two: 16 of them are 65,536 ways."""
    (tmp_path / "choices.c").write_text("""
#include <stdlib.h>
struct pair { long low, high; };
#define CHOOSE "cmovz %rcx, %rax; cmovz %rax, %rcx; "
#define FUNCTION(name, choices) __attribute__((naked)) void name(struct pair *at) \\
    { __asm__("mov %rdi, %rax; mov %rdi, %rcx; " choices "mov 8(%rax), %rdx; ret"); }
FUNCTION(two, CHOOSE)
FUNCTION(many, CHOOSE CHOOSE CHOOSE CHOOSE CHOOSE CHOOSE CHOOSE CHOOSE)
int main(void) { struct pair *pairs = malloc(1 << 20); two(pairs + 1000); many(pairs + 2000); }
""")
    subprocess.run(["gcc", "-g", "-O2", "choices.c", "-o", "choices"], check=True, cwd=tmp_path)
    entries, _ = faults(nhmtap, tmp_path, tmp_path / "choices", "two", "many", by="symbol,type")
    assert {e["code"]["symbol"]: e.get("field", e.get("untyped")) for e in entries} == {"two": "high", "many": "no_code"}


@pytest.mark.parametrize("compiler", ["gcc -O2", "gcc -O0", "clang -O2"])
def test_arrays_without_a_length_and_members_within_unions_are_told(nhmtap, tmp_path, compiler):
    """Elements of the open array are as far apart as two of the struct that it ends, which may be in no array itself."""
    (tmp_path / "ends.c").write_text("""
#include <stdlib.h>
struct item { short a; int b; };
struct open { int nr; struct item items[]; };
struct none { int nr; struct item items[0]; };
struct tagged { int kind; union { struct { long x, y; } point; struct { float red, green, blue; } colour; char text[16]; }; };
struct nameless { long head; union { struct { int low, high; }; double real; }; };
#define FUNCTION(name, of) __attribute__((noinline)) void name(struct of *to, long i) { __asm__ volatile("" :: "r"(i)); to->
FUNCTION(in_open, open) items[i].b = 1; }
FUNCTION(in_none, none) items[i].b = 1; }
FUNCTION(in_tagged, tagged) colour.blue = 1; }
FUNCTION(in_nameless, nameless) high = 1; }
int main(void)
{
    char *memory = malloc(1 << 20);
    in_open((void *)(memory + 65536), 3);
    in_none((void *)(memory + 131072), 3);
    in_tagged((void *)(memory + 262144), 0);
    in_nameless((void *)(memory + 524288), 0);
}
""")
    subprocess.run([*compiler.split(), "-g", "ends.c", "-o", "ends"], check=True, cwd=tmp_path)
    fields = {"in_open": ("struct open", "items[].b"), "in_none": ("struct none", "items[].b"),
              "in_tagged": ("struct tagged", "point.y|colour.blue|text[]"), "in_nameless": ("struct nameless", "high|real")}
    entries, _ = faults(nhmtap, tmp_path, tmp_path / "ends", *fields, by="symbol,type")
    assert {e["code"]["symbol"]: (e.get("data_type"), e.get("field")) for e in entries} == fields


def test_a_pointer_that_steps_through_an_array_leads_to_its_elements(nhmtap, tmp_path):
    """A loop with a call has the place in the array in a register that no variable describes."""
    (tmp_path / "steps.c").write_text("""
#include <stdlib.h>
struct page { long first, second; char rest[8176]; };
static struct page *list[4];
static struct { long number; struct page *list[4]; } inside;
__attribute__((noipa)) void use(long number) {}
__attribute__((noinline)) void walk(void) { for (int i = 0; i < 4; i++) use(list[i]->second); }
__attribute__((noinline)) void walk_inside(void) { for (int i = 0; i < 4; i++) use(inside.list[i]->first); }
int main(void)
{
    char *pages = aligned_alloc(8192, 8 * 8192);
    for (int i = 0; i < 4; i++) {
        list[i] = (struct page *)(pages + 8192 * i);
        inside.list[i] = list[i] + 4;
    }
    walk();
    walk_inside();
}
""")
    subprocess.run(["gcc", "-g", "-O2", "steps.c", "-o", "steps"], check=True, cwd=tmp_path)
    entries, _ = faults(nhmtap, tmp_path, tmp_path / "steps", "walk", "walk_inside", by="symbol,type")
    assert {(e["code"]["symbol"], e.get("data_type"), e.get("field"), e["samples"]) for e in entries} == {
        ("walk", "struct page", "second", 4), ("walk_inside", "struct page", "first", 4)}


# By construction: the code is the test's. `at` is in rdi, and any number in rsi. What is added to a pointer counts elements if it
# can be nothing but a multiple of their size, whether an instruction adds it, or an access itself does.
INDICES = {
    "any_number": ("mov %rsi, %rax; not %rax; not %rax; mov (%rdi,%rax), %rdx", "no_pointer"),
    "any_sum": ("lea 3(%rsi,%rsi,4), %rax; mov (%rdi,%rax), %rdx", "no_pointer"),
    "any_sum_apart": ("lea 3(%rsi,%rsi,4), %rax; add %rdi, %rax; mov (%rax), %rdx", "no_pointer"),
    "any_half": ("shr $1, %rsi; mov 8(%rdi,%rsi), %rdx", "no_pointer"),
    "any_half_behind": ("shr $1, %rsi; mov 8(%rsi,%rdi), %rdx", "no_pointer"),
    "half_elements": ("and $-2, %rsi; mov (%rdi,%rsi,8), %rdx", "no_pointer"),
    "elements": ("shl $4, %rsi; mov 8(%rdi,%rsi), %rdx", "high"),
    "elements_apart": ("shl $4, %rsi; add %rdi, %rsi; mov 8(%rsi), %rdx", "high"),
    "elements_behind": ("shl $4, %rsi; mov 8(%rsi,%rdi), %rdx", "high"),
    "next_element": ("add $1, %rsi; shl $4, %rsi; mov 8(%rdi,%rsi), %rdx", "high"),
    "element_before": ("lea -1(%rsi), %rsi; shl $4, %rsi; mov (%rdi,%rsi), %rdx", "low"),
    "product": ("imul $48, %rsi, %rsi; mov 8(%rdi,%rsi), %rdx", "high"),
    "twice": ("add %rsi, %rsi; mov (%rdi,%rsi,8), %rdx", "low"),
    "field_in_index": ("shl $4, %rsi; add $8, %rsi; mov (%rdi,%rsi), %rdx", "high"),
    "loop": ("xor %eax, %eax; 1: mov 8(%rdi,%rax), %rdx; add $16, %rax; cmp $4096, %rax; jne 1b", "high"),
    "loop_apart": ("xor %eax, %eax; 1: lea (%rdi,%rax), %rcx; mov 8(%rcx), %rdx; add $16, %rax; cmp $4096, %rax; jne 1b", "high"),
    "loop_from_field": ("mov $8, %eax; 1: mov (%rdi,%rax), %rdx; add $16, %rax; cmp $4104, %rax; jne 1b", "high"),
    "loop_of_bytes": ("xor %eax, %eax; 1: mov (%rdi,%rax), %rdx; add $3, %rax; cmp $4098, %rax; jne 1b", "no_pointer"),
    "loop_with_choice": ("xor %eax, %eax; 1: test %rsi, %rsi; je 2f; nop; 2: mov 8(%rdi,%rax), %rdx; add $16, %rax; "
                         "cmp $4096, %rax; jne 1b", "high"),
    "fork": ("shl $4, %rsi; test %rdx, %rdx; je 2f; test %rcx, %rcx; je 3f; nop; 2: nop; 3: mov 8(%rdi,%rsi), %rdx", "high"),
    "fork_that_adds": ("shl $4, %rsi; test %rdx, %rdx; je 2f; add $8, %rsi; 2: mov (%rdi,%rsi), %rdx", "no_pointer"),
    # Ways that meet, of which each writes the register that the address is from.
    "ways": ("test %rsi, %rsi; je 1f; mov %rdi, %rax; jmp 2f; 1: mov %rdi, %rcx; mov %rcx, %rax; 2: mov 8(%rax), %rdx", "high"),
    "ways_with_null": ("xor %eax, %eax; test %rsi, %rsi; je 1f; mov %rdi, %rax; 1: mov 8(%rax), %rdx", "high"),
    "ways_to_elements": ("mov %rdi, %rax; test %rsi, %rsi; je 1f; lea 16(%rdi), %rax; 1: mov 8(%rax), %rdx", "high"),
    "ways_to_fields": ("mov %rdi, %rax; test %rsi, %rsi; je 1f; lea 8(%rdi), %rax; 1: mov (%rax), %rdx", "no_pointer"),
    "way_from_a_number": ("mov %rdi, %rax; test %rsi, %rsi; jne 1f; mov $8, %eax; add %rsi, %rax; 1: mov (%rax), %rdx", "no_pointer"),
    "loop_over_the_stack": ("mov %rdi, %rax; jmp 2f; 1: mov -8(%rsp), %rax; add $16, %rax; 2: mov %rax, -8(%rsp); mov 8(%rax), %rdx; "
                            "cmp %rsp, %rax; ja 1b", "high"),
    "loop_that_exchanges": ("mov %rdi, %rax; mov %rdi, %rcx; 1: mov 8(%rax), %rdx; mov %rcx, %r8; mov %rax, %rcx; mov %r8, %rax; "
                            "cmp %rsp, %rax; ja 1b", "high"),
    "loop_of_other_loads": ("mov %rdi, %rax; 1: mov (%rax), %rdx; mov 8(%rax), %rax; cmp %rsp, %rax; ja 1b", "no_pointer"),
    "fork_from_behind": ("jmp 3f; 1: shl $4, %rsi; test %rdx, %rdx; je 2f; nop; 2: mov (%rdi,%rsi), %rdx; ret; "
                         "3: test %rcx, %rcx; jne 2b; jmp 1b", "no_pointer"),
}


def test_an_index_counts_elements_only_if_it_is_a_multiple_of_their_size(nhmtap, tmp_path):
    functions = "\n".join(f'__attribute__((naked)) void {name}(struct pair *at, long number) {{ __asm__("{code}; ret"); }}'
                          for name, (code, _) in INDICES.items())
    calls = "".join(f"{name}((struct pair *)(pages += 65536), 6); " for name in INDICES)
    (tmp_path / "indices.c").write_text(f"""
#include <stdlib.h>
struct pair {{ long low, high; }};
{functions}
int main(void) {{ char *pages = aligned_alloc(65536, {65536 * (len(INDICES) + 2)}); {calls} }}
""")
    subprocess.run(["gcc", "-g", "-O2", "indices.c", "-o", "indices"], check=True, cwd=tmp_path)
    entries, _ = faults(nhmtap, tmp_path, tmp_path / "indices", *INDICES, by="symbol,type")
    assert {e["code"]["symbol"]: e.get("field", e.get("untyped")) for e in entries} == {name: told for name, (_, told) in INDICES.items()}


def test_data_for_which_there_is_no_time_is_counted_as_such_until_its_file_is_read(nhmtap, tmp_path, compiled):
    """Opening it takes 2 seconds: twenty intervals."""
    program = compiled("fields", "-g")
    # LeakSanitizer is a tracer too, and a process can have only one.
    running = Running(nhmtap, tmp_path / "out", "mem", *FAULTS, "-I", "100", "--by", "symbol,type", "--", "sh", "-c",
                      f"while [ ! -e {tmp_path}/enough ]; do {program}; sleep 0.01; done",
                      before=["strace", "-f", "-o", os.devnull, "-P", program, "-e", "trace=openat", "-e", "inject=openat:delay_enter=2000000"],
                      env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})

    def told(records):
        """Why the program's data has no type, None if it has one, in the order of the intervals."""
        return [entry.get("untyped") for record in records if record["type"] == "mem" for entry in record["entries"]
                if entry["code"].get("module") == str(program) and ("data_type" in entry or entry["untyped"] == "no_time")]
    until(lambda: None in told(running.records()))
    (tmp_path / "enough").touch()
    said = nhmtap.finish(running.process)
    result = Result(said.status, running.path.read_text(encoding="utf-8"), said.err)
    assert told(result.records)[0] == "no_time"
    account = result.one("end")["names"]["data"]
    assert account["untyped"]["no_time"] > 0 < account["typed"]
    assert account["typed"] + sum(account["untyped"].values()) == account["named"] + sum(account["unnamed"].values())


def test_a_variable_and_its_type_are_told_together(nhmtap, tmp_path, compiled):
    entries, _ = faults(nhmtap, tmp_path, compiled("fields", "-g"), "store", "main", by="symbol,variable_offset,type")
    # pairs.high: each is the second page of its element.
    assert sorted((e["variable_offset"], e["data_type"], e["field"]) for e in entries if e.get("variable") == "pairs") == [
        (4096 + 8192 * i, "struct pair", "high") for i in range(3)]
