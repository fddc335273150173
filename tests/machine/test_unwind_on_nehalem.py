# SPDX-License-Identifier: GPL-2.0-only
"""Stacks walked by tables on the emulated Nehalem, of a program without frame pointers whose calls
are known. The stack of a precise sample is walked from the registers of the interrupt, which comes
after the sampled instruction."""
import subprocess

import pytest

import chain
import records
import stacks

# Runs in the guest. The program is told to make its calls after nhmtap has attached to it.
SCRIPT = """
cat > chain; chmod +x chain; mkfifo in; : > said
./chain < in > said & pid=$!
exec 3> in
until grep -q ready said; do usleep 10000; done
nhmtap {command} -g --unwind tables --format json -o x {options} -p $pid 3>&- & tool=$!
until [ -s x ]; do usleep 10000; done
echo "{step}" >&3
exec 3>&-
wait $tool
nhmtap flamegraph x > page
cat x >&2
grep -o '"unit":"[^"]*"' page
"""


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    with open(chain.build(tmp_path_factory.mktemp("chain"), static=True), "rb") as file:
        return file.read()


def run(bench, program, command, options, step):
    done = bench.run(SCRIPT.format(command=command, options=options, step=step), paranoid=-1, stdin=program)
    assert done.stderr.startswith("{"), str(done)[:3000]
    result = records.Result(0, done.stderr, "")
    result.units = done.stdout
    assert result.one("start")["unwind"]["follow"] == "programs"
    return result


def profile(bench, program, options, step):
    result = run(bench, program, "profile", f"--by symbol,comm {options}", step)
    return stacks.named(result), result.of("profile")[0]["stacks"]


BEFORE = {after: before for names in (chain.OUTER, chain.INNER) for before, after in zip(names, names[1:])}


def is_possible(names):
    """Whether the program can have these calls: each of its functions has only one caller."""
    within = names[names.index("main"):] if "main" in names else ()
    return (names[0] == "_start" and bool(within)
            and all(BEFORE.get(after, before) == before for before, after in zip(within, within[1:])
                    if after not in ("own0", "rounds")))


def test_each_page_fault_has_its_whole_chain(any_kernel, program):
    found, told = profile(any_kernel, program, "-e page-faults:u -c 1", "rounds 100")
    assert sum(n for names, n in found.items() if chain.is_whole(names)) == 100
    assert told["whole"] == told["delivered"] and told["guessed"] == 0


@pytest.mark.parametrize("event", ["r01c0:u", "r01c0:up", "r01c0:upp"])
def test_samples_of_each_precision_are_chains_that_the_program_can_have(any_kernel, program, event):
    found, told = profile(any_kernel, program, f"-e {event} -c 743", "calls 2000")
    impossible = {names: n for names, n in found.items() if not is_possible(names)}
    deep = sum(n for names, n in found.items() if ("compare", "back0") in zip(names, names[1:]))
    assert sum(found.values()) > 500 and deep > 50
    # In the first samples a page of the stack may not be present and so cannot be read.
    assert sum(impossible.values()) <= 0.02 * sum(found.values()), impossible
    assert told["whole"] >= 0.98 * told["delivered"]


def test_loads_have_the_stacks_that_led_to_them(any_kernel, program):
    """Precise samples of level 2, with the data source of each load."""
    result = run(any_kernel, program, "mem", "--by symbol,comm --ldlat 3 --side u -c 37", "calls 2000")
    found, record = stacks.named(result, type="mem"), result.of("mem")[0]
    impossible = {names: n for names, n in found.items() if not is_possible(names)}
    deep = sum(n for names, n in found.items() if "back0" in names)
    assert sum(found.values()) == record["stacks"]["delivered"] == record["samples"]["aggregated"] > 200
    assert result.units == '"unit":"load-latency"\n'
    assert deep > 20 and sum(impossible.values()) <= 0.02 * sum(found.values()), impossible
    assert all(e["source"] != "unmeasured" and e["latency_sum"] > 0 for e in result.entries("mem"))


def test_branches_have_the_stacks_of_the_samples_that_they_came_with(any_kernel, program):
    result = run(any_kernel, program, "branch", "--by callpair,comm --filter any_call,u -e r00c4:u -c 193", "calls 2000")
    found, record = stacks.named(result, type="branch", count="count"), result.of("branch")[0]
    impossible = {names: n for names, n in found.items() if not is_possible(names)}
    assert sum(found.values()) == record["branches"]["delivered"] > 5000
    assert record["call_stacks"]["delivered"] == record["samples"]["aggregated"] > 500
    assert sum(impossible.values()) <= 0.02 * sum(found.values()), impossible
    pairs = {(e["from"].get("symbol"), e["to"].get("symbol")) for e in result.entries("branch")}
    known = {(before, after) for before, after in pairs if after in BEFORE and after != "own0"}
    assert result.units == '"unit":"r00c4:u"\n'
    assert len(known) > 15 and all(BEFORE[after] == before for before, after in known)


# Debian's kernels run programs of 32 bits. The host's kernel may not.
PROGRAM_OF_32_BITS = r"""
static char pages[300][4096] __attribute__((aligned(4096)));
__attribute__((noinline, noclone)) void leaf(int i) { *(volatile char *)pages[i] = 1; asm volatile(""); }
__attribute__((noinline, noclone)) void middle(int i) { leaf(i); asm volatile(""); }
__attribute__((noinline, noclone)) void outer(void) { for (int i = 0; i < 300; i++) middle(i); asm volatile(""); }
void begin(void) { outer(); asm volatile("int $0x80" :: "a"(1), "b"(0)); }
asm(".globl _start\n_start: xor %ebp, %ebp\ncall begin\n.type _start, @function\n.size _start, . - _start");
"""


def test_a_program_of_32_bits_is_walked_by_the_kernel(any_kernel, tmp_path):
    (tmp_path / "small.c").write_text(PROGRAM_OF_32_BITS)
    subprocess.run(["gcc", "-m32", "-O2", "-fno-omit-frame-pointer", "-fno-pic", "-nostdlib", "-static", "-o",
                    tmp_path / "small", tmp_path / "small.c"], check=True)
    done = any_kernel.run("cat > small; chmod +x small; nhmtap profile -g -e page-faults:u -c 1 --by symbol,comm --format json "
                          "-- ./small", paranoid=-1, stdin=(tmp_path / "small").read_bytes())
    assert done.status == 0, str(done)
    found = stacks.named(records.Result(0, done.stdout, ""))
    assert found["_start", "begin", "outer", "middle", "leaf"] == 300
