# SPDX-License-Identifier: GPL-2.0-only
"""Stacks of programs without frame pointers, unwound by tables. Each sample is a page fault of a
known call. nhmtap attaches before the programs make their calls, so the tables exist and the counts
are exact."""
import collections
import os
import re
import subprocess

import pytest

import chain
import hosts
from chain import Chain, is_whole
from fifos import open_fifo
from records import frames_of
from sessions import DAY, Session, until
from stacks import by_perf, named

EVERY_FAULT = ["-g", "--unwind", "tables", "-e", "page-faults", "-c", "1", "--by", "symbol,comm"]
TICKS = ["-g", "--unwind", "tables", "-e", "cpu-clock:u", "-F", "1000", "--by", "symbol,comm"]


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    return chain.build(tmp_path_factory.mktemp("chain"))


def of_chain(result):
    """{whether the chain is whole: samples} of the samples in the program's rounds, all of which are in
    leaf()."""
    found = collections.Counter()
    for names, samples in named(result).items():
        if "leaf" in names:
            found[is_whole(names)] += samples
    return found


def attached(nhmtap, running, options, *steps):
    process = nhmtap.attach("profile", *options, "-p", running.pid)
    for step in steps:
        running.do(step)
    return nhmtap.interrupt(process)


ENDS = ("whole", "truncated", "no_table", "no_row", "unreadable")


def account(result):
    """The number of stacks by how their unwinding ended, which adds up to all stacks."""
    told = [r["stacks"] for r in result.of("profile") if "stacks" in r]
    assert all(stacks["delivered"] == sum(stacks[end] for end in ENDS) for stacks in told)
    return {name: sum(stacks[name] for stacks in told) for name in ("delivered", "guessed", *ENDS)}


def test_a_chain_through_a_library_and_a_callback_is_whole_in_each_sample(nhmtap, program):
    with Chain(program) as running:
        result = attached(nhmtap, running, EVERY_FAULT, "rounds 1000")
    assert of_chain(result) == {True: 1000}
    assert len([names for names in named(result) if is_whole(names)]) == 1
    unwind = result.one("start")["unwind"]
    assert unwind["by"] == "tables" and unwind["tables"] >= 4 and unwind["bytes"] > 100000
    told = account(result)
    assert told["whole"] == told["delivered"] >= 1000 and told["guessed"] == 0


# Code whose table takes more than half of a session's smallest memory.
ROWS = """
.rept 80000
.cfi_startproc
push %rbp
.cfi_def_cfa_offset 16
pop %rbp
.cfi_def_cfa_offset 8
ret
.cfi_endproc
.endr
.section .note.GNU-stack,"",@progbits
"""
MEMORY = 1 << 20


class Small:
    """A session with the smallest memory, and two programs, each with a table of half of that."""

    def __init__(self, nhmtap, folder):
        rows = folder / "rows.S"
        rows.write_text(ROWS)
        self.nhmtap, self.folder = nhmtap, folder
        self.one, self.other = (chain.build(folder, rows, name=name) for name in ("one", "other"))
        # A session starts before tables that take long are made, as all do on a busy machine.
        assert any(nhmtap.into(folder / f"alone{i}", "profile", *EVERY_FAULT, "--", self.one)
                   .one("start")["unwind"]["bytes"] > MEMORY / 2 for i in range(20))

    def fifos(self, name):
        paths = [self.folder / f"{name}.{way}" for way in ("in", "out")]
        for path in paths:
            os.mkfifo(path)
        return paths

    def watch(self, script):
        return Session(self.nhmtap, self.folder, [
            {"name": "stacks", "command": "profile", "call_graph": True, "unwind": "tables", "event": "page-faults",
             "count": 1, "by": "symbol", "interval_ms": DAY}], "sh", "-c", script, limits={"names_bytes": MEMORY})


class Fed:
    """One of the programs, started by the session's shell with its FIFOs as input and output."""

    def __init__(self, fifos):
        self.told = open_fifo(fifos[0], "w")
        self.said = open_fifo(fifos[1], "r")
        assert self.said.readline() == "ready\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.told.close()
        self.said.close()

    def has_table(self, session):
        """Whether all stacks of a hundred rounds are whole."""
        session.do("snapshot")
        self.told.write("rounds 100\n")
        assert self.said.readline() == "done\n"
        session.do("snapshot")
        stacks = [r for r in session.until(bool) if r["type"] == "profile" and r.get("part", 1) == 1][-1]["stacks"]
        return stacks["whole"] == stacks["delivered"] >= 100


def test_a_table_that_had_to_make_room_is_made_again_when_its_file_is_mapped_again(nhmtap, tmp_path):
    small = Small(nhmtap, tmp_path)
    fifos = [small.fifos(name) for name in ("first", "second", "third")]
    # Tables that were used in the last two seconds stay. Uses are noted when a process begins, at
    # most once in a tenth of a second: /bin/true begins late enough.
    script = "sleep 3; ".join(f"{program} < {told} > {said}; sleep 0.5; /bin/true; "
                              for program, (told, said) in zip((small.one, small.other, small.one), fifos))
    with small.watch(script) as session:
        for pair in fifos:
            with Fed(pair) as program:
                until(lambda: program.has_table(session))
        session.end()


def test_a_table_that_found_no_room_is_made_once_there_is_some_though_its_file_is_not_mapped_again(nhmtap, tmp_path):
    small = Small(nhmtap, tmp_path)
    fifos = [small.fifos(name) for name in ("one", "other")]
    os.mkfifo(tmp_path / "step")
    programs = "".join(f"{program} < {told} > {said} & " for program, (told, said) in zip((small.one, small.other), fifos))
    with small.watch(f"{programs} while read step; do /bin/true; done < {tmp_path}/step") as session:
        with Fed(fifos[0]) as one, Fed(fifos[1]) as other, open_fifo(tmp_path / "step", "w") as step:
            until(lambda: one.has_table(session) or other.has_table(session))
            first, second = (one, other) if one.has_table(session) else (other, one)
            first.told.close()

            def second_has_one():
                step.write("\n")  # when a process begins, nhmtap looks for room
                return second.has_table(session)

            until(second_has_one)
        session.end()


def test_by_frame_pointers_it_is_not(nhmtap, program):
    with Chain(program) as running:
        result = attached(nhmtap, running, [*EVERY_FAULT, "--unwind", "fp"], "rounds 200")
    assert of_chain(result)[True] == 0
    assert result.one("start")["unwind"] == {"by": "fp"} and "whole" not in result.of("profile")[0]["stacks"]


@pytest.mark.parametrize("flags, static", [(["-no-pie"], False), (["-fno-pic"], True)], ids=["non-PIE", "static"])
def test_it_is_whole_in_programs_of_another_kind(nhmtap, tmp_path, flags, static):
    with Chain(chain.build(tmp_path, *flags, static=static)) as running:
        result = attached(nhmtap, running, EVERY_FAULT, "rounds 300")
    assert of_chain(result) == {True: 300}


def in_leaf(result):
    """{names from the outermost: samples} of samples in leaf(), called through the callback."""
    found = {names: samples for names, samples in named(result).items() if "leaf" in names}
    assert all(names[-len(chain.INNER):] == chain.INNER for names in found)
    return found


def test_it_is_whole_in_threads_and_children(nhmtap, program):
    for step, outermost in (("thread 300", "in_thread"), ("fork 300", "main")):
        with Chain(program) as running:
            result = attached(nhmtap, running, EVERY_FAULT, step)
        (names, samples), = in_leaf(result).items()
        assert samples == 300 and outermost in names
        at = names.index("rounds")
        assert 1 <= names.index(outermost) < at and names[at:at + len(chain.OUTER) - 1] == chain.OUTER[1:]
        assert not any(e.get("incomplete") for e in result.entries() if e["samples"] >= 300)


def test_it_goes_on_beyond_a_signal_in_what_that_interrupted(nhmtap, program):
    with Chain(program) as running:
        result = attached(nhmtap, running, EVERY_FAULT, "signals 300")
    found = in_leaf(result)
    assert sum(found.values()) == 300
    for names in found:
        # The signal arrives in a function that raise() calls. The handler returns to the C library.
        assert names.index("main") + 1 < names.index("on_signal") and any("raise" in name for name in names if name)
    frames = [f for r in result.of("frames") for f in r["frames"]]
    assert any("kill" in f.get("symbol", "") and "return" not in f for f in frames)


HANDLED = """
#include <signal.h>
#include <sys/mman.h>
#define PAGES 300

static volatile char *pages;

void on_signal(int number)
{
	for (int i = 0; i < PAGES; i++)
		pages[i * 4096] = number;
}

int main(void)
{
	pages = mmap(0, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise((void *)pages, PAGES * 4096, MADV_NOHUGEPAGE);
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
}
"""


def test_the_code_that_a_signals_handler_returns_to_is_named_though_nothing_called_it(nhmtap, tmp_path):
    """Its first instruction is what the handler returns to, and before it is another function, or nothing. A static program
    has its symbol: sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c of glibc."""
    path = tmp_path / "handled"
    subprocess.run(["gcc", "-O1", "-static", "-o", path, "-x", "c", "-"], input=HANDLED, text=True, check=True)
    result = nhmtap.into(tmp_path / "out", "profile", *EVERY_FAULT, "--", path)
    found = {names: samples for names, samples in named(result).items() if "on_signal" in names}
    assert 299 <= sum(found.values()) <= 302
    assert all(names[names.index("on_signal") - 1] == "__restore_rt" for names in found)


def test_it_goes_on_beyond_the_dynamic_linker_that_binds_a_function(nhmtap, tmp_path):
    """A resolver function (IFUNC) runs there at the first call. rbx leads to the linker's frame."""
    library, source = tmp_path / "libbound.c", tmp_path / "bound.c"
    library.write_text("""
#include <sys/mman.h>
static int chosen(int x) { return x; }
void *choose(void)
{
    *(volatile char *)mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) = 1;
    return chosen;
}
int bound(int x) __attribute__((ifunc("choose")));
""")
    source.write_text("""
#include <stdio.h>
int bound(int x);
int main(void) { puts("ready"); fflush(stdout); getchar(); int x = bound(1); puts("done"); return x - 1; }
""")
    subprocess.run(["gcc", *chain.FLAGS, "-shared", "-o", tmp_path / "libbound.so", library], check=True)
    subprocess.run(["gcc", *chain.FLAGS, "-Wl,-z,lazy", "-o", tmp_path / "bound", source, f"-Wl,-rpath,{tmp_path}",
                    tmp_path / "libbound.so"], check=True)
    with Chain(tmp_path / "bound") as running:
        result = attached(nhmtap, running, EVERY_FAULT, "go")
    names, = [names for names in named(result) if names[-1] == "choose"]
    assert names[0] == "_start" and names[-4] == "main"
    assert names[-3].startswith("_dl_runtime_resolve") and names[-2] == "_dl_fixup"


def test_samples_in_the_kernel_go_on_in_its_caller(nhmtap, program):
    """mmap() and munmap() of each round."""
    with Chain(program) as running:
        result = attached(nhmtap, running, ["-g", "--unwind", "tables", "-e", "cpu-clock", "-F", "5000", "--by",
                                            "symbol,comm"], "mmaps 300")
    told = account(result)
    assert told["whole"] >= 0.98 * told["delivered"] and told["delivered"] > 50
    ways = [names for names in named(result) if "rounds" in names and any("mmap" in name for name in names if name)]
    assert ways and all("main" in names for names in ways)


def test_the_code_of_the_vdso_is_walked(nhmtap, program):
    with Chain(program) as running:
        result = attached(nhmtap, running, TICKS, "vdso 300")
    told = account(result)
    assert told["whole"] >= 0.98 * told["delivered"] and told["delivered"] > 50
    assert any(names[-1] and "clock_gettime" in names[-1] for names in named(result))


def test_a_library_that_is_loaded_later_has_its_table_soon(nhmtap, tmp_path):
    """dlopen() of the library by a program that does not have it. The program continues until a stack through
    it is whole."""
    source = tmp_path / "late.c"
    source.write_text(chain.LIBRARY_SOURCE)
    subprocess.run(["gcc", *chain.FLAGS, "-shared", "-o", tmp_path / "liblate.so", source], check=True)
    main = tmp_path / "main.c"
    main.write_text(r"""
#include <dlfcn.h>
#include <stdio.h>
static volatile long sum;
static int compare(const void *a, const void *b) { for (int i = 0; i < 200000; i++) sum += i; return 0; }
int main(void)
{
    puts("ready"); fflush(stdout); getchar();
    void *library = dlopen("%s", RTLD_NOW);
    long (*call)(long) = (long (*)(long))dlsym(library, "lib0");
    *(void **)dlsym(library, "comparison") = (void *)compare;
    for (int i = 0; i < 5000; i++)
        call(1);
    puts("done");
    return 0;
}
""" % (tmp_path / "liblate.so"))
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-o", tmp_path / "main", main, "-ldl"], check=True)
    with Chain(tmp_path / "main") as running:
        result = attached(nhmtap, running, TICKS, "go")
    whole = sum(n for names, n in named(result).items() if "main" in names and "lib0" in names and "compare" in names)
    assert whole > 0.5 * account(result)["delivered"]


def test_children_that_live_50_ms_are_walked_from_their_first_sample(nhmtap, program):
    with Chain(program) as running:
        result = attached(nhmtap, running, TICKS, "forks 20")
    told = account(result)
    assert told["whole"] >= 0.95 * told["delivered"] and told["delivered"] > 100
    assert result.one("start")["unwind"]["follow"] == "programs"


def test_a_program_that_is_executed_has_no_frame_of_the_one_before(nhmtap, program, tmp_path):
    other = tmp_path / "other.c"
    other.write_text("""
#include <stdio.h>
static volatile long sum;
__attribute__((noinline)) static void alone(void) { for (long i = 0; i < 400000000; i++) sum += i; }
int main(void) { alone(); alone(); puts("done"); return 0; }
""")
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-o", tmp_path / "other", other], check=True)
    with Chain(program) as running:
        result = attached(nhmtap, running, TICKS, "spin 100", f"exec {tmp_path}/other")
    before, after = named(result, comm="chain"), named(result, comm="other")
    assert sum(before.values()) > 20 and sum(after.values()) > 100, (before, after)
    assert not any(name and name.startswith(("own", "lib", "back", "leaf", "rounds")) for names in after for name in names), after
    # Its own table is there once nhmtap has had a CPU for a moment.
    assert sum(n for names, n in after.items() if "alone" in names and "main" in names) > 20, after


def source_of(functions):
    return "#include <stdio.h>\n#include <stdlib.h>\n" + "".join(f"""
int f{i}(int x, char *s)
{{
    int t = 0;
    for (int i = 0; i < x; i++) {{
        t += s[i % 7] * {i};
        if (t > x * {i + 3})
            t -= printf("%d", t);
        else
            t ^= atoi(s);
    }}
    return t;
}}
""" for i in range(functions))


def test_a_compiler_that_lives_for_a_third_of_a_second_is_walked(nhmtap, tmp_path):
    """gcc executes the compiler, whose table is the largest, and is needed at once. If nhmtap gets
    no CPU in that time, or sanitizers slow it down, the compiler has to live longer."""
    shares = []
    for functions in (60, 60, 60, 120, 240, 480):
        (tmp_path / "source.c").write_text(source_of(functions))
        result = nhmtap.into(tmp_path / "out", "profile", "-g", "-e", "cpu-clock:u", "-F", "2000", "--by", "symbol,comm",
                             "--", "gcc", "-O2", "-c", "-o", tmp_path / "source.o", tmp_path / "source.c")
        entries = result.entries(comm="cc1")
        samples = sum(e["samples"] for e in entries)
        assert samples > 100
        shares.append(sum(e["samples"] for e in entries if "incomplete" not in e and "truncated" not in e) / samples)
        if shares[-1] >= 0.8:
            return
    pytest.fail(f"shares of whole stacks: {shares}")


def test_what_a_page_fault_touched_comes_with_its_whole_chain(nhmtap, program):
    with Chain(program) as running:
        process = nhmtap.attach("mem", "-g", "-e", "page-faults:u", "-c", "1", "--by", "symbol,comm,page", "-p", running.pid)
        running.do("rounds 300")
        result = nhmtap.interrupt(process)
    found = named(result, type="mem")
    assert sum(n for names, n in found.items() if is_whole(names)) == 300
    record = result.of("mem")[0]
    assert record["stacks"]["whole"] == record["stacks"]["delivered"] == record["samples"]["aggregated"]
    frames = frames_of(result.records, record)
    touched = {e["page"] for e in result.entries("mem") if frames[e["stack"][0]].get("symbol") == "leaf"}
    assert "0x0" not in touched and touched


# --- programs of the distribution ---------------------------------------------------------------------


def test_stacks_of_a_distributions_programs_reach_their_begin(nhmtap, tmp_path):
    (tmp_path / "data").write_bytes(os.urandom(1 << 23))
    text = tmp_path / "text"
    text.write_text("\n".join(str(i * 7919 % 1000003) for i in range(1000000)))
    script = ("import sys\nsys.stdin.readline()\ndef f(n):\n    return sorted(map(lambda x: x * x % 17, range(n)))\n"
              "import time\nwhile time.process_time() < 0.5: f(3000)\n")
    commands = {"python3": ["/usr/bin/python3", "-c", script], "xz": ["xz", "-c", "-6"],
                "sort": ["sort", "--parallel=4", "-n"]}
    inputs = {"python3": b"\n", "xz": (tmp_path / "data").read_bytes(), "sort": text.read_bytes()}
    for name, command in commands.items():
        running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        process = nhmtap.attach("profile", *TICKS, "-p", running.pid)
        running.stdin.write(inputs[name])
        running.stdin.close()
        running.wait()
        result = nhmtap.finish(process)
        told = account(result)
        assert told["whole"] >= 0.98 * told["delivered"] and told["delivered"] > 50, (name, told)
        assert told["guessed"] <= 0.02 * told["delivered"], (name, told)


def test_each_whole_stack_that_perf_makes_of_dwarf_is_one_of_ours(nhmtap, tmp_path):
    """Both sample each page fault of the same process, whose address space is not randomized."""
    script = ("import sys, json\nprint(json.dumps([1]), flush=True)\nsys.stdin.readline()\n"
              "json.dumps([[i] * 50 for i in range(1500)])\n")
    running = subprocess.Popen(["setarch", "-R", "/usr/bin/python3", "-c", script], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    assert running.stdout.readline() == b"[1]\n"
    process = nhmtap.attach("profile", "-g", "--unwind", "tables", "-e", "page-faults:u", "-c", "1", "--by",
                            "place,comm", "-p", running.pid)
    perf = subprocess.Popen(["perf", "record", "-q", "--buildid-mmap", "--call-graph", "dwarf,32768", "-e", "page-faults:u", "-c", "1",
                             "-m", "4096", "-o", tmp_path / "perf", "-p", str(running.pid), "--control", "fd:0,1"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    perf.stdin.write(b"ping\n")
    perf.stdin.flush()
    assert b"ack" in perf.stdout.read(5)
    running.stdin.write(b"\n")
    running.stdin.close()
    running.wait()
    running.stdout.close()
    result = nhmtap.finish(process)
    # perf ends with the process. If its input ended earlier, perf would fail.
    assert perf.wait() == 0
    perf.stdin.close()
    perf.stdout.close()
    ours = collections.Counter()
    for record in result.of("profile"):
        frames = frames_of(result.records, record)
        for entry in record["entries"]:
            # perf shows a caller by the last byte of its call.
            ours[tuple((f["module"], int(f["offset"], 16) - ("return" in f))
                       for f in (frames[i] for i in entry["stack"]) if "offset" in f)] += entry["samples"]
    theirs = by_perf(tmp_path / "perf", "python3")
    begin = ours.most_common(1)[0][0][-1]
    assert begin[0] == os.path.realpath("/usr/bin/python3")
    whole = {stack: n for stack, n in theirs.items() if stack[-1] == begin}
    assert len(whole) >= 2 and sum(whole.values()) > 0.9 * sum(theirs.values()) > 300
    assert not {stack: n for stack, n in whole.items() if stack not in ours}


# --- what is asked for -----------------------------------------------------------------------------------


def test_kernels_that_may_lock_up_refuse_tables(nhmtap, host):
    for version, refused in (("5.18.19", False), ("5.19.0", True), ("6.0.19", True), ("6.1.35", True), ("6.1.36", False),
                             ("6.2.16", True), ("6.3.9", True), ("6.3.10", False), ("6.4.0", False), ("6.18.44", False)):
        machine = host(hosts.NEHALEM, {"proc/sys/kernel/osrelease": f"{version}\n"})
        result = nhmtap("profile", machine, "-g", "--unwind", "tables", "-e", "page-faults", "--", "true")
        told = [r for r in result.of("error") if r["asked"] == "option --unwind 'tables'"]
        assert bool(told) == refused, version
        if refused:
            assert "lock up" in told[0]["why"] and "--unwind fp" in told[0]["remedy"] and result.status == 2
    debian = host(hosts.NEHALEM, {"proc/sys/kernel/osrelease": "6.1.0-9-amd64\n",
                                  "proc/sys/kernel/version": "#1 SMP PREEMPT_DYNAMIC Debian 6.1.27-1 (2023-05-08)\n"})
    result = nhmtap("profile", debian, "-g", "--unwind", "tables", "-e", "page-faults", "--", "true")
    assert "lock up" in result.one("error")["why"]


def test_unwind_without_stacks_is_refused(nhmtap):
    result = nhmtap("profile", "--unwind", "tables", "--", "true")
    assert result.status == 1 and result.one("error")["asked"] == "option --unwind"


def test_a_command_is_walked_by_tables_from_its_first_instruction_on(nhmtap, program, tmp_path):
    """So is every fault of the dynamic linker that loads the program. This is the default, and also
    holds when another program executes it."""
    script = tmp_path / "steps"
    script.write_text("rounds 100\n")
    for before in ((), ("taskset", "1"), ("sh", "-c", 'exec "$@"', "sh")):
        result = nhmtap.into(tmp_path / "out", "profile", "-g", "-e", "page-faults:u", "-c", "1", "--by", "symbol,comm",
                             "--", "sh", "-c", '"$@" < ' + str(script) + " > /dev/null; exit 0", "sh", *before, program)
        assert result.one("start")["unwind"]["by"] == "tables"
        found = named(result, comm="chain")
        assert sum(n for names, n in found.items() if is_whole(names)) == 100
        loading = {names: n for names, n in found.items() if "_dl_start" in names}
        assert sum(loading.values()) > 20 and all(names[0] == "_start" for names in loading)
        beside = [e for e in result.entries(comm="chain") if e.get("incomplete")]
        # _init() has no row, so its caller is unknown.
        assert sum(e["samples"] for e in beside) <= 2, beside


# --- code of other kinds ----------------------------------------------------------------------------------


JIT = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
static volatile int kept;
/* f(what): calls it, with a frame pointer and without. */
static const unsigned char with[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
static const unsigned char without[] = {0x48, 0x83, 0xec, 0x18, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x18, 0xc3};
static void *map(int flags) { return mmap(NULL, 4096, 3 | flags, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
__attribute__((noinline)) void fault(void) { *(volatile char *)map(0) = 1; }
__attribute__((noinline)) void by_frame(void (*code)(void (*)(void))) { code(fault); kept++; }
__attribute__((noinline)) void by_none(void (*code)(void (*)(void))) { code(fault); kept++; }
int main(void)
{
    char *code = map(PROT_EXEC);
    memcpy(code, with, sizeof(with));
    memcpy(code + 64, without, sizeof(without));
    puts("ready"); fflush(stdout); getchar();
    for (int i = 0; i < 100; i++) {
        by_frame((void (*)(void (*)(void)))code);
        by_none((void (*)(void (*)(void)))(code + 64));
    }
    puts("done");
    return 0;
}
"""


def test_code_made_at_run_time_is_walked_by_its_frame_pointers_and_said_to_be(nhmtap, tmp_path):
    (tmp_path / "jit.c").write_text(JIT)
    # by_frame() and main() have frame pointers. Otherwise the code would hide its caller.
    subprocess.run(["gcc", "-O2", "-fno-omit-frame-pointer", "-o", tmp_path / "jit", tmp_path / "jit.c"], check=True)
    with Chain(tmp_path / "jit") as running:
        result = attached(nhmtap, running, ["-g", "-e", "page-faults:u", "-c", "1", "--by", "symbol,comm"], "go")
    faults = [e for e in result.entries() if e["samples"] == 100]
    frames = frames_of(result.records, result.of("profile")[0])
    ways = {tuple(frames[i].get("symbol") for i in e["stack"]): e for e in faults}
    (by_frame, told), = [(way, e) for way, e in ways.items() if "by_frame" in way]
    assert by_frame[0] == "fault" and by_frame[1] is None and by_frame[2:4] == ("by_frame", "main")
    assert by_frame[-1] == "_start" and "incomplete" not in told
    assert [frames[i].get("guessed", False) for i in told["stack"]] == [i == 2 for i in range(len(by_frame))]


def test_the_stubs_that_call_a_library_are_walked(nhmtap, tmp_path):
    """The page of the stub is dropped before each call, so that each has a page fault there."""
    library, source = tmp_path / "libstub.c", tmp_path / "stub.c"
    library.write_text("void callee(void) { }")
    source.write_text("""
#include <stdio.h>
#include <sys/mman.h>
void callee(void);
extern char __executable_start;
/* Aligned, so that the stubs lie in pages before those of all functions. */
__attribute__((noinline, aligned(4096))) void caller(void)
{
    unsigned long begin = (unsigned long)&__executable_start, end = (unsigned long)caller & ~0xfffUL;

    madvise((void *)begin, end - begin, MADV_DONTNEED);
    callee();
    asm volatile("");
}
int main(void)
{
    puts("ready"); fflush(stdout); getchar();
    for (int i = 0; i < 200; i++)
        caller();
    puts("done");
    return 0;
}
""")
    subprocess.run(["gcc", *chain.FLAGS, "-shared", "-o", tmp_path / "libstub.so", library], check=True)
    subprocess.run(["gcc", *chain.FLAGS, "-Wl,-z,lazy", "-o", tmp_path / "stub", source, f"-Wl,-rpath,{tmp_path}",
                    tmp_path / "libstub.so"], check=True)
    with Chain(tmp_path / "stub") as running:
        result = attached(nhmtap, running, ["-g", "-e", "page-faults:u", "-c", "1", "--by", "place,comm"], "go")
    said = subprocess.run(["readelf", "-SW", tmp_path / "stub"], capture_output=True, text=True, check=True).stdout
    stubs = [(int(offset, 16), int(offset, 16) + int(size, 16))
             for offset, size in re.findall(r" \.plt\S* +PROGBITS +\w+ (\w+) (\w+)", said)]
    frames = frames_of(result.records, result.of("profile")[0])
    within = []
    for entry in result.entries():
        innermost = frames[entry["stack"][0]]
        if innermost.get("module") == str(tmp_path / "stub") and \
                any(begin <= int(innermost["offset"], 16) < end for begin, end in stubs):
            within.append(entry)
    # The stub, caller(), main(), two functions of the C library, and _start.
    assert sum(e["samples"] for e in within) >= 200
    assert not any("incomplete" in e for e in within) and {len(e["stack"]) for e in within} == {6}


# Each of the functions has a page fault or calls another one. f0, called by f1, has the most.
PAIRS = """
#include <stdio.h>
#include <sys/mman.h>
static volatile char *page;
#define CALLED(n) __attribute__((noinline)) static void f##n(int next) { if (next < 0) *page = 1, page += 4096; else called[next](-1); \\
    __asm__ volatile(""); }
static void (*called[24])(int);
%s
static void (*called[24])(int) = { %s };
int main(void)
{
    page = mmap(0, 24 * 30 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise((void *)page, 24 * 30 * 4096, MADV_NOHUGEPAGE);
    puts("ready"); fflush(stdout); getchar();
    for (int i = 0; i < 99; i++)
        called[1](0);
    for (int one = 0; one < 24; one++)
        for (int other = -1; other < 24; other++)
            called[one](other);
    puts("done");
    return 0;
}
"""


@pytest.mark.parametrize("options", [["-g"], ["-g", "--by", "symbol"], ["-g", "--by", "comm,line"]], ids=" ".join)
def test_stacks_of_the_same_few_functions_are_told_apart(nhmtap, tmp_path, options):
    """Where a hash of the numbers of their frames was the same, two of them were one, and the samples of both were told to
    have the frames of the first."""
    functions = [f"f{i}" for i in range(24)]
    (tmp_path / "pairs.c").write_text(PAIRS % ("".join(f"CALLED({i})\n" for i in range(24)), ", ".join(functions)))
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "pairs", tmp_path / "pairs.c"], check=True)
    with Chain(tmp_path / "pairs") as running:
        result = attached(nhmtap, running, [*options, "-e", "page-faults:u", "-c", "1"], "go")
    found = collections.Counter()
    for names, samples in named(result).items():
        if names[-1] in functions:
            found[names[names.index("main") + 1:]] += samples
    assert account(result)["whole"] >= 24 * 25 + 99
    assert found == {**{(one,): 1 for one in functions}, **{(one, other): 1 for one in functions for other in functions},
                     ("f1", "f0"): 100}
