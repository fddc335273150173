# SPDX-License-Identifier: GPL-2.0-only
"""The callers of functions that keep no frame pointer, in code that .eh_frame says nothing about."""
import collections
import subprocess

import pytest

import golang
from stacks import named

TICKS = ["-g", "-e", "cpu-clock:u", "-F", "1000", "--by", "symbol,comm"]


def told(result):
    """The account of the stacks, summed up over the records' parts."""
    found = collections.Counter()
    for record in result.of("profile"):
        found.update(record.get("stacks", {}))
    return found


# --- Go ---------------------------------------------------------------------------------------------


def without_abi(names):
    return tuple((name or "").removesuffix(".abi0") for name in names)


@pytest.mark.parametrize("flags", [(), ("-buildmode=pie",), ("-buildmode=pie", "-ldflags=-linkmode=external")],
                         ids=["fixed", "pie", "linked-by-ld"])
def test_a_go_programs_innermost_function_has_its_whole_chain(nhmtap, tmp_path, flags):
    for options in ((), ("--unwind", "tables")):
        result = nhmtap.into(tmp_path / "out", "profile", *TICKS, *options, "--", golang.build(tmp_path, *flags), "1000000")
        found = collections.Counter()
        for names, samples in named(result, comm="known").items():
            names = without_abi(names)
            # A signal of Go's runtime may have interrupted it.
            found[names[:names.index("main.bottom") + 1] if "main.bottom" in names else None] += samples
        assert found[golang.CHAIN] > 100 and set(found) <= {golang.CHAIN, None} and found[None] <= 0.2 * sum(found.values())
        account = told(result)
        assert account["whole"] >= 0.98 * account["delivered"] and account["guessed"] <= 0.02 * account["delivered"], account


SWITCHES = """
package main

import (
	"runtime"
	"time"
)

var kept [][]byte

//go:noinline
func clock(n int) {
	for i := 0; i < n; i++ {
		time.Now()
	}
}

//go:noinline
func collect(n int) {
	for i := 0; i < n; i++ {
		runtime.GC()
	}
}

func main() {
	for i := 0; i < 20000; i++ {
		kept = append(kept, make([]byte, 64))
	}
	clock(3000000)
	collect(100)
}
"""


def test_calls_that_go_runs_on_another_stack_lead_back_to_their_callers(nhmtap, tmp_path):
    """It reads the clock on the thread's own stack, and so does the garbage collector its work."""
    result = nhmtap.into(tmp_path / "out", "profile", *TICKS, "--", golang.build(tmp_path, source=SWITCHES))
    found = {without_abi(names): samples for names, samples in named(result, comm="known").items()}
    clock = sum(samples for names, samples in found.items() if names[:4] == ("runtime.goexit", "runtime.main", "main.main", "main.clock"))
    # Most of it is done by the collector's own goroutines.
    through = [names for names in found if names[0] == "runtime.goexit" and "runtime.systemstack" in names]
    assert clock > 20 and through, found
    assert all(names[:3] == ("runtime.goexit", "runtime.main", "main.main") for names in found
               if "main.collect" in names or "main.clock" in names)
    account = told(result)
    assert account["whole"] >= 0.98 * account["delivered"] and account["guessed"] <= 0.02 * account["delivered"], account


# --- no row at all ----------------------------------------------------------------------------------

# Each function that is called has no row and no frame, and nearly all of the time is spent there. by_...() and main()
# have frame pointers.
LEAVES = r"""
#include <stdio.h>
#define LEAF(name) __attribute__((noinline)) long name(long x) \
    { for (int i = 0; i < 3000; i++) x = x * 6364136223846793005 + i; return x; }
#define CALLER(name, call) __attribute__((noinline)) long name(long x) { return call(x) + 1; }

LEAF(leaf_before)
long leaf_of_library(long), leaf_in_assembler(long), framed(long), deeper(long), jumps(long);
long (*volatile before)(long);
long (*volatile after)(long);
CALLER(by_call, leaf_before)
CALLER(by_pointer_to_before, before)
CALLER(by_pointer_to_after, after)
CALLER(by_stub, leaf_of_library)
CALLER(to_assembler, leaf_in_assembler)
CALLER(to_framed, framed)
CALLER(to_deeper, deeper)
CALLER(to_jump, jumps)
LEAF(leaf_after)

int main(int argc, char **argv)
{
    long x = argc;

    before = leaf_before;
    after = leaf_after;
    for (int i = 0; i < 40000; i++) {
        x += by_call(x) + by_pointer_to_before(x) + by_pointer_to_after(x) + by_stub(x) + to_assembler(x) + to_framed(x);
        x += to_deeper(x) + to_jump(x);
    }
    printf("%ld\n", x);
    return 0;
}
"""

ASSEMBLER = """
        .text
        .macro loop
        mov $3000, %ecx
0:      imul $77, %rdi
        dec %ecx
        jnz 0b
        mov %rdi, %rax
        .endm
        .globl leaf_in_assembler, framed, deeper, jumps
        .type leaf_in_assembler, @function
leaf_in_assembler:
        loop
        ret
        .size leaf_in_assembler, . - leaf_in_assembler
        .type framed, @function
framed: push %rbp                       # its frame is its saved %rbp and a return address that it never uses
        mov %rsp, %rbp
        lea of_call(%rip), %rax
        push %rax
        loop
        leave
        ret
        .size framed, . - framed
        .type deeper, @function
deeper: push %rbp
        mov %rsp, %rbp
        call inner
of_call:
        pop %rbp
        ret
        .size deeper, . - deeper
        .type inner, @function
inner:  push %rbp
        mov %rsp, %rbp
        loop
        pop %rbp
        ret
        .size inner, . - inner
        .type jumps, @function
jumps:  jmp leaf_in_assembler           # which returns to the caller of this function
        .size jumps, . - jumps
        .section .note.GNU-stack, "", @progbits
"""

LEAF_OF_LIBRARY = """
long leaf_of_library(long x) { for (int i = 0; i < 3000; i++) x = x * 6364136223846793005 + i; return x; }
"""

CALLS = {("main", "by_call", "leaf_before"), ("main", "by_pointer_to_before", "leaf_before"),
         ("main", "by_pointer_to_after", "leaf_after"), ("main", "by_stub", "leaf_of_library"),
         ("main", "to_assembler", "leaf_in_assembler"), ("main", "to_framed", "framed"),
         ("main", "to_deeper", "deeper", "inner"), ("main", "to_jump", "leaf_in_assembler")}
SELDOM = {("main", "to_jump", "jumps")}  # for one instruction


@pytest.mark.parametrize("debug", [False, True], ids=["no-row", "debug_frame"])
def test_functions_without_a_frame_have_their_callers_and_others_no_caller_twice(nhmtap, tmp_path, debug):
    flags = ["gcc", "-O2", "-fno-omit-frame-pointer", "-momit-leaf-frame-pointer", "-fno-asynchronous-unwind-tables",
             "-fno-optimize-sibling-calls", "-fno-toplevel-reorder", "-fno-ipa-icf", "-fcf-protection=none", *(["-g"] if debug else [])]
    for name, text in (("leaves.c", LEAVES), ("leaves.s", ASSEMBLER), ("library.c", LEAF_OF_LIBRARY)):
        (tmp_path / name).write_text(text)
    subprocess.run([*flags, "-fPIC", "-shared", "-o", tmp_path / "library.so", tmp_path / "library.c"], check=True)
    subprocess.run([*flags, "-o", tmp_path / "leaves", tmp_path / "leaves.c", tmp_path / "leaves.s", tmp_path / "library.so",
                    f"-Wl,-rpath,{tmp_path}"], check=True)
    result = nhmtap.into(tmp_path / "out", "profile", *TICKS, "--", tmp_path / "leaves")
    found = collections.Counter()
    for names, samples in named(result, comm="leaves").items():
        if "main" in names:
            assert names[0] == "_start"
            found[names[names.index("main"):]] += samples
    wrong = {names: n for names, n in found.items() if not any(names == calls[:len(names)] for calls in CALLS | SELDOM)}
    assert not wrong and all(found[calls] > 10 for calls in CALLS), (wrong, found)
    assert sum(found.values()) >= 0.98 * sum(named(result, comm="leaves").values())
