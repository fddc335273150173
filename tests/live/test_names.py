# SPDX-License-Identifier: GPL-2.0-only
"""Names of code in programs with known functions. Each page fault is a sample at an instruction of the
function that the program reports."""
import collections
import contextlib
import datetime
import functools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import cgroups
import hosts
import jitdump
import manysymbols
import memory
import pprof
import pytest
from naming import offset_of, symbols
from puppet import Puppet, stop, wait_asleep
from records import NHMTAP, Result, parse, program
from running import Running
from sessions import DAY, Control, until

FAULTS = ["-e", "page-faults:u", "-c", "1"]
NAMES = program("names")


def code(result):
    """{(symbol, module): samples}. The symbol is None where there is no name."""
    found = {}
    for entry in result.entries():
        at = entry["code"].get("symbol"), entry["code"].get("module")
        found[at] = found.get(at, 0) + entry["samples"]
    return found


def by_symbol(nhmtap, tmp_path, *command, options=(), by="symbol", **settings):
    return nhmtap.into(tmp_path / "out", "profile", *FAULTS, "--by", by, *options, "--", *command, **settings)


@pytest.fixture
def copy(tmp_path):
    """A copy of the program that the test may delete."""
    return str(shutil.copy(NAMES, tmp_path / "copy"))


def other_program(path):
    """Replaces the file with another one, which has a different build-id and different functions."""
    source = "void other(volatile char *p) { *p = 1; } int main(void) { char c; other(&c); return 0; }"
    subprocess.run(["gcc", "-x", "c", "-", "-o", f"{path}.new"], input=source, text=True, check=True)
    os.rename(f"{path}.new", path)


def library(path):
    source = "void late(volatile char *p) { *p = 1; }"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", path], input=source, text=True, check=True)
    return path


def test_a_program_that_ends_at_once_is_named(nhmtap, tmp_path):
    result = by_symbol(nhmtap, tmp_path, NAMES, "here=300")
    assert code(result)["here", NAMES] == 300
    assert result.one("start")["by"] == ["symbol"]
    names = result.one("end")["names"]
    assert names["unnamed"]["no_mapping"] == names["unnamed"]["no_file"] == 0
    assert names["notes_lost"] == names["mappings_dropped"] == 0
    assert names["named"] + sum(names["unnamed"].values()) == result.one("end")["samples"]["aggregated"]


def test_a_program_that_another_executes_is_named(nhmtap, tmp_path):
    chain = f"exec env sh -c 'exec {NAMES} here=200'"
    assert code(by_symbol(nhmtap, tmp_path, "sh", "-c", chain))["here", NAMES] == 200


def test_what_ran_before_an_exec_keeps_its_own_names(nhmtap, tmp_path, copy):
    chain = f"{NAMES} here=200; exec {copy} here=100"
    found = code(by_symbol(nhmtap, tmp_path, "sh", "-c", chain))
    assert (found["here", NAMES], found["here", copy]) == (200, 100)


def test_a_child_has_what_its_parent_had_mapped(nhmtap, tmp_path):
    assert code(by_symbol(nhmtap, tmp_path, NAMES, "child=200", "child=100"))["here", NAMES] == 300


def test_many_short_programs_side_by_side_are_all_named(nhmtap, tmp_path):
    many = f"for i in $(seq 50); do {NAMES} here=20 > /dev/null & done; wait"
    assert code(by_symbol(nhmtap, tmp_path, "sh", "-c", many))["here", NAMES] == 1000


def test_a_library_that_is_loaded_late_is_named(nhmtap, tmp_path):
    late = str(library(tmp_path / "late.so"))
    found = code(by_symbol(nhmtap, tmp_path, NAMES, "here=100", f"late={late},200"))
    assert (found["here", NAMES], found["late", late]) == (100, 200)


def of_one_that_was_there_before(nhmtap, path, change=lambda: None):
    """Profiles a program that has begun, after a change."""
    with subprocess.Popen([path, "wait", "here=200"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        process.stdout.readline()
        change()
        run = nhmtap.attach("profile", *FAULTS, "--by", "symbol", "-p", process.pid)
        process.stdin.write("\n")
        process.stdin.close()
        return code(nhmtap.finish(run))


def test_a_process_that_was_there_before_is_named(nhmtap):
    assert of_one_that_was_there_before(nhmtap, NAMES)["here", NAMES] == 200


def test_of_whole_cpus_processes_are_named_that_were_there_before_and_that_come(nhmtap, tmp_path, copy):
    # Both are copies, because another test may run the program at the same time.
    there = shutil.copy(NAMES, tmp_path / "there")
    with subprocess.Popen([there, "wait", "here=200"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        process.stdout.readline()
        run = nhmtap.attach("profile", *FAULTS, "--by", "symbol,comm", "-a")
        process.stdin.write("\n")
        process.stdin.close()
        process.wait()
        subprocess.run([copy, "here=300"], check=True, stdout=subprocess.DEVNULL)
        result = nhmtap.interrupt(run)
    found = code(result)
    assert (found["here", str(there)], found["here", copy]) == (200, 300)


def test_a_program_that_was_deleted_before_anybody_looked_is_named(nhmtap, copy):
    assert of_one_that_was_there_before(nhmtap, copy, lambda: os.unlink(copy))["here", copy] == 200


def test_a_program_that_was_replaced_goes_by_its_own_names(nhmtap, copy):
    found = of_one_that_was_there_before(nhmtap, copy, lambda: other_program(copy))
    assert found["here", copy] == 200 and ("other", copy) not in found


def while_it_waits(nhmtap, tmp_path, script, wanted):
    """Profiles a script in which a program takes 200 page faults and then waits for "$0", a FIFO,
    until the records have 200 samples of `wanted`, (symbol, module). An interval may end between
    the faults. Naming may take half an interval, so intervals of a day are ended early. Returns the
    number of samples and the output of the program."""
    fifo, out = str(tmp_path / "fifo"), tmp_path / "out"
    os.mkfifo(fifo)
    deadline = time.monotonic() + 60
    found = {}
    with contextlib.closing(Control(tmp_path)) as control, open(os.open(fifo, os.O_RDWR), "wb"):  # does not wait for the other end
        run = nhmtap.start("profile", *FAULTS, "--by", "symbol", "-I", DAY, control.option, "-o", out, "--",
                           "unshare", "-m", "sh", "-c", script, fifo)
        while found.get(wanted, 0) < 200 and run.poll() is None and time.monotonic() < deadline:
            control.send("snapshot\n")
            control.acknowledged(timeout=1)
            said = out.read_text(encoding="utf-8") if out.exists() else ""
            found = code(Records([json.loads(line) for line in said.splitlines(True) if line[-1] == "\n"]))
    return found.get(wanted), nhmtap.finish(run).out


class Records(list):
    """The records so far of a stream that goes on."""

    def entries(self):
        return [e for record in self if record["type"] == "profile" for e in record["entries"]]


def test_a_program_that_deletes_itself_is_named(nhmtap, tmp_path, copy):
    script = f'exec {copy} unlink={copy} here=200 wait < "$0"'
    assert while_it_waits(nhmtap, tmp_path, script, ("here", copy))[0] == 200
    assert not os.path.exists(copy)


def test_of_a_program_that_nothing_is_left_of_the_place_is_told(nhmtap, copy):
    run = nhmtap.attach("profile", *FAULTS, "--by", "symbol", "-a")
    stop(run.pid)  # otherwise it would hold the file open
    subprocess.run([copy, f"unlink={copy}", "here=200"], check=True, stdout=subprocess.DEVNULL)
    run.send_signal(signal.SIGCONT)
    result = nhmtap.interrupt(run)
    entry = max((e for e in result.entries() if e["code"].get("module") == copy), key=lambda e: e["samples"])
    assert entry["samples"] == 200 and set(entry["code"]) == {"module", "offset", "build_id"}
    assert result.one("end")["names"]["unnamed"]["no_file"] >= 200


def files_of(process):
    """The files that a process holds open."""
    folder, files = f"/proc/{process.pid}/fd", set()
    for fd in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            files.add(os.readlink(os.path.join(folder, fd)))
    return files


# For each line of stdin, maps a file with code, and another one after so many milliseconds.
MAPS_TWO = """
import mmap, sys, time
maps = []
for line in sys.stdin:
    first, second, ms = line.split()
    for path, then in ((first, float(ms)), (second, 0)):
        with open(path, "rb") as file:
            maps.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC))
        end = time.monotonic() + then / 1000
        while time.monotonic() < end:
            pass
    print("mapped", flush=True)
"""


def test_a_file_is_known_even_if_it_was_mapped_while_notes_were_read(nhmtap, tmp_path):
    """Notes that are still too new then must be read later, even if no others follow."""
    with subprocess.Popen([sys.executable, "-c", MAPS_TWO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        run = Running(nhmtap, tmp_path / "out", "profile", "-c", "1000000", "-p", process.pid, "--by", "symbol", interval=600000)
        for i in range(40):
            first, second = (str(shutil.copy(NAMES, tmp_path / f"{which}{i}")) for which in ("first", "second"))
            process.stdin.write(f"{first} {second} {i / 10}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "mapped\n"
            until(lambda: second in files_of(run.process))
        process.stdin.close()
    run.end()


def test_a_program_is_let_go_of_though_nobody_told_of_its_end(nhmtap, tmp_path, cgroup, copy):
    """While nhmtap is stopped, cgroups' notes fill the rings of all CPUs, and the program ends."""
    run = Running(nhmtap, tmp_path / "out", "profile", "-c", "1", "-a", "--by", "symbol", interval=50)
    with subprocess.Popen([copy, "wait"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as waiting:
        until(lambda: copy in files_of(run.process))
        stop(run.process.pid)
        cpus = os.sched_getaffinity(0)
        for cpu in cpus:
            os.sched_setaffinity(0, [cpu])
            for i in range(2000):
                os.mkdir(f"{cgroup[1]}/{'x' * 200}{i}")
                os.rmdir(f"{cgroup[1]}/{'x' * 200}{i}")
        os.sched_setaffinity(0, cpus)
        waiting.kill()
        waiting.wait()
        os.kill(run.process.pid, signal.SIGCONT)
        until(lambda: copy not in files_of(run.process))
    assert run.end().one("end")["names"]["notes_lost"] > 0


def test_a_path_is_that_of_the_processs_own_mount_namespace(nhmtap, tmp_path):
    """Outside of that namespace a different program has the path."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    shutil.copy(NAMES, inside / "program")
    other_program(outside / "program")
    script = f'mount --bind {inside} {outside} && exec {outside}/program here=200 wait < "$0"'
    assert while_it_waits(nhmtap, tmp_path, script, ("here", str(outside / "program")))[0] == 200


@pytest.fixture
def root(tmp_path):
    """A root folder that holds only a static program, which waits at its end."""
    folder = tmp_path / "root"
    folder.mkdir()
    source = """#include <sys/mman.h>
        #include <unistd.h>
        void alone(volatile char *p) { *p = 1; }
        int main(void) {
            char *p = mmap(0, 200 * 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), c;
            madvise(p, 200 * 4096, MADV_NOHUGEPAGE);
            for (int i = 0; i < 200; i++) alone(p + i * 4096);
            return read(0, &c, 1);
        }"""
    subprocess.run(["gcc", "-static", "-x", "c", "-", "-o", folder / "alone"], input=source, text=True, check=True)
    return folder


def test_a_program_in_a_root_of_its_own_is_named(nhmtap, tmp_path, root):
    script = f'mount --bind {root} {root} && exec chroot {root} /alone < "$0"'
    assert while_it_waits(nhmtap, tmp_path, script, ("alone", "/alone"))[0] == 200


def test_what_ran_before_a_process_entered_its_root_is_named(nhmtap, tmp_path, root):
    """The program chroot has the loader's and the C library's code from outside."""
    while_it_waits(nhmtap, tmp_path, f'exec chroot {root} /alone < "$0"', ("alone", "/alone"))
    result = Result(0, (tmp_path / "out").read_text(encoding="utf-8"), "")
    assert result.one("end")["names"]["named"] >= 200 and result.one("end")["names"]["unnamed"]["no_file"] == 0


def test_a_program_in_a_container_is_named(nhmtap, tmp_path, root):
    subprocess.run(["runc", "spec"], cwd=tmp_path, check=True)
    bundle = tmp_path / "config.json"
    spec = json.loads(bundle.read_text(encoding="utf-8"))
    spec["process"].update(terminal=False, args=["/alone"])
    spec["root"]["path"] = str(root)
    bundle.write_text(json.dumps(spec), encoding="utf-8")
    script = f'exec runc --root {tmp_path}/state run -b {tmp_path} nhmtap-{os.getpid()} < "$0"'
    assert while_it_waits(nhmtap, tmp_path, script, ("alone", "/alone"))[0] == 200


def test_while_a_file_is_read_its_code_goes_by_its_place_and_no_interval_waits(nhmtap, tmp_path, copy):
    """Opening it takes 2 seconds: twenty intervals."""
    # LeakSanitizer is a tracer too, and a process can have only one.
    running = Running(nhmtap, tmp_path / "out", "profile", "-c", 1, "--by", "symbol", "--", "sh", "-c",
                      f"while [ ! -e {tmp_path}/enough ]; do {copy} here=50; sleep 0.01; done",
                      before=["strace", "-f", "-o", os.devnull, "-P", copy, "-e", "trace=openat", "-e", "inject=openat:delay_enter=2000000"],
                      env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})

    def told(records):
        """Whether each interval has a name for the program's entry with the most samples, which is that of here()."""
        intervals = collections.defaultdict(list)
        for record in records:
            if record["type"] == "profile":
                intervals[record["start_time"]] += [e for e in record["entries"] if e["code"].get("module") == copy]
        tops = [max(entries, key=lambda e: e["samples"], default=None) for entries in intervals.values()]
        return ["symbol" in top["code"] for top in tops if top]
    # On a busy machine, later intervals may run out of time for names too.
    until(lambda: told(running.records()).count(True) > 1)
    (tmp_path / "enough").touch()
    said = nhmtap.finish(running.process)
    result = Result(said.status, running.path.read_text(encoding="utf-8"), said.err)
    assert told(result.records)[:2] == [False, False]
    assert result.one("end")["names"]["unnamed"]["no_time"] > 0


@pytest.mark.parametrize("call, why", [("seccomp,prctl", "seccomp is refused"), ("clone3", "can't be started")])
def test_where_the_process_that_reads_files_is_refused_code_goes_by_its_place_and_the_end_says_why(tmp_path, call, why):
    out = tmp_path / "out"
    # libseccomp tries both calls. clone3() starts threads too, and clone() the command.
    # LeakSanitizer is a tracer too, and a process can have only one.
    subprocess.run(["strace", "-f", "-o", os.devnull, "-e", f"trace={call}", "-e", f"inject={call}:error=EPERM", NHMTAP,
                    "profile", *FAULTS, "--by", "symbol", "-o", out, "--", NAMES, "here=50"],
                   env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}, capture_output=True, check=True)
    result = Result(0, out.read_text(encoding="utf-8"), "")
    names = result.one("end")["names"]
    assert why in names["failed_why"] and names["unnamed"]["failed"] >= 50
    assert {symbol for symbol, module in code(result) if module == NAMES} == {None}


# Without a C library, which Debian has only for 64 bits. The vdso's time() writes to a new page each time.
VDSO_OF_32_BITS = """
#include <linux/elf.h>

static long call(long number, long a, long b, long c, long d)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(-1) : "memory");
	return result;
}

static int is_time(const char *name)
{
	const char *time = "__vdso_time";

	while (*time && *time == *name)
		time++, name++;
	return *time == *name;
}

static void *find_time(unsigned long vdso)
{
	const Elf32_Ehdr *header = (void *)vdso;
	const Elf32_Shdr *sections = (void *)(vdso + header->e_shoff);

	for (int i = 0; i < header->e_shnum; i++) {
		const Elf32_Sym *symbols = (void *)(vdso + sections[i].sh_offset);
		const char *names = (void *)(vdso + sections[sections[i].sh_link].sh_offset);

		for (unsigned j = 0; sections[i].sh_type == SHT_DYNSYM && j < sections[i].sh_size / sizeof(*symbols); j++)
			if (is_time(names + symbols[j].st_name))
				return (void *)(vdso + symbols[j].st_value);
	}
	return 0;
}

__attribute__((used)) static void run(unsigned long *stack)
{
	char *pages = (char *)call(192, 0, 200 * 4096, 3, 0x22); /* mmap2, read and write, private and anonymous */
	long (*time)(long *) = 0;

	call(219, (long)pages, 200 * 4096, 15, 0); /* madvise, MADV_NOHUGEPAGE */
	while (*stack++)
		;
	while (*stack++)
		;
	for (; stack[0]; stack += 2)
		if (stack[0] == 33) /* AT_SYSINFO_EHDR */
			time = find_time(stack[1]);
	for (int i = 0; time && i < 200; i++)
		time((long *)(pages + i * 4096));
	call(3, 0, (long)pages, 1, 0); /* read: the vdso can be copied only while its process exists */
	call(1, 0, 0, 0, 0);
}

__asm__(".globl _start\\n_start: mov %esp, %eax\\n add $4, %eax\\n and $-16, %esp\\n sub $12, %esp\\n push %eax\\n call run\\n");
"""


@pytest.mark.parametrize("own", [False, True], ids=["unknown before", "beside one of 64 bits"])
def test_the_vdso_of_a_32_bit_program_is_named_by_its_own_symbols(nhmtap, tmp_path, own):
    subprocess.run(["gcc", "-m32", "-nostdlib", "-static", "-no-pie", "-O1", "-fno-stack-protector",
                    "-I/usr/include/x86_64-linux-gnu", "-o", tmp_path / "low", "-x", "c", "-"],
                   input=VDSO_OF_32_BITS, text=True, check=True)
    script = f"""{f'{NAMES} clock=20;' if own else ''} {tmp_path / 'low'} < "$0" """
    samples, _ = while_it_waits(nhmtap, tmp_path, script, ("__vdso_time", "[vdso32]"))
    assert 200 <= samples <= 202  # a process's first look at the vdso's own code, too, is a page fault


def test_code_that_was_made_at_run_time_goes_by_its_map(nhmtap, tmp_path):
    result = by_symbol(nhmtap, tmp_path, NAMES, "jit=200")
    os.unlink(f"/tmp/perf-{result.said.split()[1]}.map")
    assert code(result)["jitted", "[anon]"] == 200


def dumped(nhmtap, tmp_path, wrong="nothing"):
    """The samples by symbol of code that is in a jitdump file."""
    made = nhmtap.into(tmp_path / "out", "profile", "-e", "page-faults:u", "-c", "1", "--by", "symbol", "--",
                       sys.executable, jitdump.__file__, tmp_path, wrong, 200, 100)
    assert made.status == 0, made.err
    found = collections.Counter()
    for entry in made.entries():
        if entry["code"].get("module") == "[anon]":
            found[entry["code"].get("symbol")] += entry["samples"]
    return found


def test_lines_of_code_that_was_made_at_run_time_go_by_its_jitdump(nhmtap, tmp_path):
    """The code faults at its first instruction. What is moved keeps its lines."""
    made = nhmtap.into(tmp_path / "out", "profile", "-e", "page-faults:u", "-c", "1", "--by", "line", "--",
                       sys.executable, jitdump.__file__, tmp_path, "nothing", 200, 100)
    assert made.status == 0, made.err
    found = collections.Counter()
    for entry in made.entries():
        if entry["code"].get("module") == "[anon]":
            found[tuple(entry["code"].get(member) for member in ("symbol", "file", "line"))] += entry["samples"]
    assert found == {("late", "/src/late.js", 70): 200, ("early", "/src/early.js", 7): 100}


def test_code_that_was_made_at_run_time_goes_by_its_jitdump(nhmtap, tmp_path):
    assert dumped(nhmtap, tmp_path) == {"late": 200, "early": 100}


# Makes code without a map, runs it 200 times when told, and again before it ends.
WITHOUT_MAP = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
import jitdump
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
code = libc.mmap(None, jitdump.PAGE, 7, 0x22, -1, 0)
ctypes.memmove(code, jitdump.TOUCH, len(jitdump.TOUCH))
pages = libc.mmap(None, 200 * jitdump.PAGE, 3, 0x22, -1, 0)
libc.madvise(ctypes.c_void_p(pages), 200 * jitdump.PAGE, 15)  # MADV_NOHUGEPAGE
input()
for i in range(200):
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code)(pages + i * jitdump.PAGE)
input()
"""


@pytest.mark.parametrize("of", ["its own time", "another time"])
def test_a_map_that_another_process_of_this_number_has_left_names_nothing(nhmtap, of):
    with subprocess.Popen([sys.executable, "-c", WITHOUT_MAP, os.path.dirname(jitdump.__file__)], stdin=subprocess.PIPE) as process:
        path = pathlib.Path(f"/tmp/perf-{process.pid}.map")
        path.write_text("1000 7fffffff0000 everything\n", encoding="ascii")
        if of == "another time":
            os.utime(path, (time.time() - 3600,) * 2)
        run = nhmtap.attach("profile", *FAULTS, "--by", "symbol", "-p", process.pid)
        process.stdin.write(b"\n")
        process.stdin.flush()
        wait_asleep(process.pid)
        result = nhmtap.interrupt(run)
        process.communicate(b"\n")
        path.unlink()
    assert code(result)[None if of == "another time" else "everything", "[anon]"] >= 200


def test_a_map_that_a_process_left_without_a_last_line_feed_names_its_last_line(nhmtap, tmp_path):
    """It is as long as a buffer, which might have been written in the middle of a name while the process ran."""
    map_of = 'with open(f"/tmp/perf-{os.getpid()}.map", "w") as file: file.write("\\n".join(["1 1 other"] * 1000 + [f"{code:x} 4 handle"]))'
    result = by_symbol(nhmtap, tmp_path, sys.executable, "-c",
                       WITHOUT_MAP.replace("input()\n", f"import os; print(os.getpid())\n{map_of}\n", 1).replace("input()\n", ""),
                       os.path.dirname(jitdump.__file__))
    os.unlink(f"/tmp/perf-{int(result.said)}.map")
    assert {symbol: samples for (symbol, module), samples in code(result).items() if module == "[anon]"} == {"handle": 200}


def test_a_map_that_is_another_users_does_not_hide_the_jitdump(nhmtap, tmp_path):
    """Anybody may make a file of that name in /tmp, and old ones stay there."""
    found = dumped(nhmtap, tmp_path, "a map in the way")
    command = Result(0, (tmp_path / "out").read_text(encoding="utf-8"), "").one("end")["command"]
    os.unlink(f"/tmp/perf-{command['pid']}.map")
    assert found == {"late": 200, "early": 100}


@pytest.mark.parametrize("wrong", ["order", "empty", "short"])
def test_a_jitdump_that_is_wrong_names_nothing(nhmtap, tmp_path, wrong):
    assert dumped(nhmtap, tmp_path, wrong) == {None: 300}


# A child inherits code at two pages, runs it, and then makes a dump of its own for a third page, or executes something.
INHERITED = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[1])
import jitdump
folder, names, then = sys.argv[2:5]
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
code = libc.mmap(None, 3 * jitdump.PAGE, 7, 0x22, -1, 0)
kept = []

def run(page, times):
    pages = libc.mmap(None, times * jitdump.PAGE, 3, 0x22, -1, 0)
    libc.madvise(ctypes.c_void_p(pages), times * jitdump.PAGE, 15)  # MADV_NOHUGEPAGE
    for i in range(times):
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code + page * jitdump.PAGE)(pages + i * jitdump.PAGE)

def dump(*loads):
    path = os.path.join(folder, f"jit-{os.getpid()}.dump")
    with open(path, "wb") as file:
        file.write(b"".join([jitdump.header(), *loads]))
    kept.append(open(path))
    libc.mmap(None, jitdump.PAGE, 5, 2, kept[-1].fileno(), 0)

for page in range(3):
    ctypes.memmove(code + page * jitdump.PAGE, jitdump.TOUCH, len(jitdump.TOUCH))
if names == "dump":
    dump(*(jitdump.load(code + page * jitdump.PAGE, page, f"of_parent{page}") for page in range(2)))
else:
    with open(f"/tmp/perf-{os.getpid()}.map", "w") as file:
        file.writelines(f"{code + page * jitdump.PAGE:x} 4 of_parent{page}\\n" for page in range(2))
print(os.getpid(), flush=True)
run(0, 100)
if os.fork():
    sys.exit(os.wait()[1])
run(1, 50)
if then == "dump":
    dump(jitdump.load(code + 2 * jitdump.PAGE, 0, "of_child"))
    run(2, 20)
    run(1, 30)
else:
    run(1, 30)
    os.execvp("true", ["true"])
"""


@pytest.mark.parametrize("names, then", [("dump", "dump"), ("dump", "exec"), ("map", "dump"), ("map", "exec")])
def test_inherited_code_has_its_names_whatever_the_child_does_afterwards(nhmtap, tmp_path, names, then):
    result = by_symbol(nhmtap, tmp_path, sys.executable, "-c", INHERITED, os.path.dirname(jitdump.__file__), tmp_path, names, then)
    if names == "map":
        os.unlink(f"/tmp/perf-{result.said.split()[0]}.map")
    found = {symbol: samples for (symbol, module), samples in code(result).items() if module == "[anon]"}
    assert found == {"of_parent0": 100, "of_parent1": 80, **({"of_child": 20} if then == "dump" else {})}


EXECUTED_AGAIN = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CODE ((unsigned char *)0x10000000)

static void make(const char *name)
{
	char path[64];
	FILE *map;

	mmap(CODE, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memcpy(CODE, "\\xc6\\x07\\x01\\xc3", 4); /* movb $1,(%rdi); ret */
	if (!*name)
		return;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	fprintf(map, "%lx 4 %s\\n", (long)CODE, name);
	fclose(map);
	puts(path);
	fflush(stdout);
}

static void run(int times)
{
	char *pages = mmap(0, times * 4096L, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(pages, times * 4096L, MADV_NOHUGEPAGE);
	for (int i = 0; i < times; i++)
		((void (*)(char *))CODE)(pages + i * 4096L);
}

int main(int argc, char **argv)
{
	make(argv[1]);
	nanosleep(&(struct timespec){0, 400000000}, NULL);
	run(500);
	if (argc < 3)
		return 0;
	if (!fork()) {
		run(300);
		nanosleep(&(struct timespec){0, 400000000}, NULL);
		execl(argv[0], argv[0], argv[2], NULL);
	}
	wait(NULL);
	return 0;
}
"""


@pytest.mark.parametrize("further", ["after", ""])  # the map of the program that is executed; none
def test_inherited_code_has_not_the_name_of_what_was_made_after_an_exec_at_its_address(nhmtap, tmp_path, further):
    command = [built(tmp_path / "main", EXECUTED_AGAIN), "before", further]
    result = apart(lambda: nhmtap.into(tmp_path / "out", "profile", "-e", "page-faults:u", "-c", 1, "--by", "symbol,pid", "--", *command))
    for path in result.said.split():
        os.unlink(path)
    made = sorted((entry["samples"], entry["code"].get("symbol", "")) for record in result.of("profile")
                  for entry in record["entries"] if entry["code"].get("module") == "[anon]")
    assert made == [(300, "before"), (500, further), (500, "before")] or made == [(300, "before"), (500, "before"), (500, further)]


def test_inherited_code_goes_by_the_map_of_the_process_that_made_it(nhmtap, tmp_path):
    """The child and its child write no map, as the workers of a server that forks."""
    result = by_symbol(nhmtap, tmp_path, NAMES, "jit=50", "heir=200")
    os.unlink(f"/tmp/perf-{result.said.split()[1]}.map")
    assert code(result)["jitted", "[anon]"] == 450


def test_a_map_is_looked_for_by_the_pid_and_in_the_tmp_of_its_own_namespaces(nhmtap, tmp_path):
    script = f"""mount --bind {os.path.dirname(NAMES)} /mnt; exec 3< "$0"
        unshare -p -f sh -c 'mount -t tmpfs none /tmp; /mnt/names jit=200 wait <&3'"""
    samples, said = while_it_waits(nhmtap, tmp_path, script, ("jitted", "[anon]"))
    assert samples == 200 and int(said.split()[1]) < 10, "a small pid: its namespace is new"


@pytest.mark.parametrize("kind", ["secret", "device"])
def test_a_map_that_leads_to_what_its_process_may_not_read_is_refused_and_counted(nhmtap, tmp_path, kind):
    """The program runs as another user, in a user namespace with its own /tmp, where
    fs.protected_symlinks has no effect. It waits at its end, because its /tmp can be found only
    while it exists."""
    secret = tmp_path / "secret"
    secret.write_text("7e0000000000 100 ROOT_ONLY\n", encoding="ascii")
    secret.chmod(0o600)
    leads_to = {"secret": secret, "device": "/dev/null"}[kind]
    script = f"""mount --bind {os.path.dirname(NAMES)} /mnt; exec 3< "$0"
        exec setpriv --reuid 65534 --regid 65534 --clear-groups unshare -Urm \\
            sh -c 'mount -t tmpfs none /tmp; /mnt/names linked={leads_to},200 wait <&3'"""
    assert while_it_waits(nhmtap, tmp_path, script, (None, "[anon]"))[0] == 200
    said = (tmp_path / "out").read_text(encoding="utf-8")
    unnamed = Result(0, said, "").one("end")["names"]["unnamed"]
    # Other code may have no name for lack of time as well.
    assert 0 < unnamed["refused"] <= 200 <= unnamed["refused"] + unnamed["no_time"] and "ROOT_ONLY" not in said


def test_the_kernels_gift_to_processes_is_named(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", "-e", "cpu-clock:u", "-F", "4000", "--by", "symbol",
                         "--", NAMES, "clock=500")
    found = [e["code"] for e in result.entries() if e["code"].get("module") == "[vdso]"]
    assert any("clock_gettime" in at.get("symbol", "") or "vdso" in at.get("symbol", "") for at in found)


# bpf_get_prog_name(), kernel/bpf/core.c: the tag of the program, and its name if it has one.
BPF_PROGRAM = re.compile(r"bpf_prog_[0-9a-f]{16}(_\w+)?")


def kallsyms():
    with open("/proc/kallsyms", encoding="utf-8") as file:
        return {line.split()[2] for line in file}


def test_the_kernels_code_is_named_by_its_own_symbols(nhmtap, tmp_path):
    """BPF programs, those of other tests too, may have gone before the test looks."""
    result = nhmtap.into(tmp_path / "out", "profile", "-e", "cpu-clock:k", "-F", "4000", "--by", "symbol",
                         "--", "sh", "-c", '"$0" child=3000 child=3000 child=3000; echo | "$1" gone', NAMES, program("bpfcode"))
    found, known = {(e["code"]["module"], e["code"].get("symbol")) for e in result.entries()}, kallsyms()
    unknown = {(module, symbol) for module, symbol in found if not (module.startswith("[") and symbol in known)}
    programs = {symbol for module, symbol in unknown if module == "[bpf]" and BPF_PROGRAM.fullmatch(symbol or "")}
    assert len(found) > len(unknown) == len(programs) and any(symbol.endswith("_gone") for symbol in programs), unknown


@pytest.mark.parametrize("scope", ["command", "machine"])
def test_a_bpf_program_that_is_loaded_later_is_named_by_itself(nhmtap, tmp_path, scope):
    """Both are loaded after the kernel's symbols were read; the second when the first has gone."""
    out, fifo = tmp_path / "out", tmp_path / "fifo"
    os.mkfifo(fifo)
    run = nhmtap.start("profile", *(["-a"] if scope == "machine" else []), "-e", "cpu-clock:k", "-F", "1000", "--by", "symbol",
                       "-I", "200", "-o", out, "--", "sh", "-c", f'exec {program("bpfcode")} first second < "$0"', fifo)

    def intervals():
        return out.read_text(encoding="utf-8").count('"profile"') if out.exists() else 0
    with open(os.open(fifo, os.O_RDWR), "w", encoding="ascii", buffering=1) as lines:
        for _ in range(2):
            before = intervals()
            until(lambda: intervals() > before)
            lines.write("\n")
        assert nhmtap.finish(run).status == 0
    found = {}
    for (symbol, module), samples in code(Result(0, out.read_text(encoding="utf-8"), "")).items():
        if module == "[bpf]":
            found[symbol.rpartition("_")[2]] = found.get(symbol.rpartition("_")[2], 0) + samples
    assert found["first"] >= 100 and found["second"] >= 100


@pytest.mark.parametrize("scope", ["machine", "command"])
def test_bpf_programs_at_one_address_one_after_the_other_have_their_own_samples(nhmtap, tmp_path, scope):
    """Where others listen on a CPU, the kernel's notes of such code are longer than what it has written of them."""
    early, turns = ["early"] * 2, ["first", "second", "third", "second", "fourth"]  # kallsyms is read meanwhile
    others = [nhmtap.attach("profile", "-a", "-e", "cpu-clock", "-F", "10", "--by", "symbol") for _ in range(2)]
    result = nhmtap.into(tmp_path / "out", "profile", *(["-a"] if scope == "machine" else []), "-e", "cpu-clock:k", "-F", "1000",
                         "--by", "symbol", "--", program("bpfcode"), *early, *turns, input="\n" * len(early + turns))
    assert result.status == 0, result.err
    for other in others:
        nhmtap.interrupt(other)
    found = collections.Counter()
    for (symbol, module), samples in code(result).items():
        found[symbol.rpartition("_")[2] if module == "[bpf]" and symbol else None] += samples
    # Each turn takes 300 samples. Until the note of the next one is read, its samples go to the one before.
    assert all(found[turn] >= 50 for turn in turns), found
    assert result.one("end")["names"]["unnamed"]["no_symbol"] == 0


def test_a_bpf_program_that_goes_while_the_kernels_symbols_are_read_is_named(nhmtap, host, tmp_path):
    """It was there before nhmtap, so no note of its coming was seen."""
    root = host(hosts.WITHOUT_PMU, {f"sys/devices/system/cpu/{name}": open(f"/sys/devices/system/cpu/{name}").read()
                                    for name in ("online", "possible")})
    kernel = open("/proc/kallsyms").read()
    symbols_now = os.path.join(root.partition("=")[2], "proc/kallsyms")
    with subprocess.Popen([program("bpfcode"), "leaving", "again", "again"], text=True, bufsize=1, stdin=subprocess.PIPE) as running:
        def ran_ms():
            with open(f"/proc/{running.pid}/stat", encoding="ascii") as file:
                return sum(map(int, file.read().rpartition(")")[2].split()[11:13])) * 1000 // os.sysconf("SC_CLK_TCK")
        running.stdin.write("\n")
        until(lambda: ran_ms() >= 250)
        os.mkfifo(symbols_now)
        run = nhmtap.attach("profile", root, "-a", "-e", "cpu-clock:k", "-F", "1000", "--by", "symbol")
        running.stdin.write("\n")
        until(lambda: ran_ms() >= 500)
        run.send_signal(signal.SIGINT)
        until(lambda: re.search(r"^ShdPnd:\t0+$", open(f"/proc/{run.pid}/status").read(), re.M))
        with open(symbols_now, "w", encoding="ascii") as file:  # opened once nhmtap reads it
            wait_asleep(run.pid)
            running.stdin.close()
            assert running.wait() == 0
            file.write("".join(line for line in kernel.splitlines(True) if not line.endswith("[bpf]\n")))
    found = code(nhmtap.finish(run))
    assert sum(samples for (symbol, module), samples in found.items() if symbol and symbol.endswith("_leaving")) >= 100, found


def test_where_the_kernel_hides_its_symbols_that_is_said(nhmtap, host, tmp_path):
    """With kernel.kptr_restrict, all addresses are 0."""
    def real(path):
        with open(f"/{path}", encoding="utf-8") as file:
            return file.read()
    hidden = {"proc/kallsyms": "0000000000000000 T _stext\n0000000000000000 T do_syscall_64\n",
              "sys/devices/system/cpu/online": real("sys/devices/system/cpu/online"),
              "sys/devices/system/cpu/possible": real("sys/devices/system/cpu/possible")}
    result = nhmtap.into(tmp_path / "out", "profile", host(hosts.WITHOUT_PMU, hidden), "-e", "cpu-clock:k",
                         "-F", "4000", "--by", "symbol", "--", NAMES, "child=3000", "child=3000")
    found = [e["code"] for e in result.entries()]
    assert found and all("symbol" not in at and int(at["address"], 16) >> 63 for at in found)
    names = result.one("end")["names"]
    assert names["named"] == 0 and names["unnamed"]["no_symbol"] > 0
    assert "kptr_restrict" in names["kernel_why"]


def test_what_has_no_name_is_told_so_that_it_can_be_named_later(nhmtap, tmp_path, copy):
    subprocess.run(["strip", copy], check=True)
    result = by_symbol(nhmtap, tmp_path, copy, "here=200")
    entry = max((e for e in result.entries() if e["code"]["module"] == copy), key=lambda e: e["samples"])
    assert entry["samples"] == 200 and "symbol" not in entry["code"]
    said = subprocess.run(["objdump", "-h", NAMES], capture_output=True, text=True, check=True).stdout
    address, offset = (int(word, 16) for word in re.search(
        r"\.text +\w+ +(\w+) +\w+ +(\w+)", said).groups())
    said = subprocess.run(["addr2line", "-f", "-e", NAMES, hex(
        int(entry["code"]["offset"], 16) - offset + address)], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[0] == "here"
    notes = subprocess.run(["readelf", "-n", NAMES], capture_output=True, text=True, check=True).stdout
    assert entry["code"]["build_id"] == re.search(r"Build ID: (\w+)", notes)[1]
    assert result.one("end")["names"]["unnamed"]["no_symbol"] >= 200


STRIPPED = """
#include <sys/mman.h>
static __attribute__((noinline)) void touch(char *page, int where)
{
    if (where % 3 == 0) page[1] = 1;
    else if (where % 3 == 1) page[2] = 2;
    else page[3] = 3;
}
static __attribute__((noinline)) int walk(char *pages)
{
    for (int i = 0; i < 300; i++) touch(pages + i * 4096, i);
    return pages[1];
}
int main(void)
{
    char *pages = mmap(0, 300 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, 300 * 4096, MADV_NOHUGEPAGE);
    return walk(pages) - 1;
}
"""


@pytest.fixture
def stripped(tmp_path):
    """A stripped program, and the offsets of its functions, from its symbols and headers."""
    run = functools.partial(subprocess.run, check=True, capture_output=True, text=True, cwd=tmp_path)
    run(["gcc", "-O1", "-fno-inline", "-fno-omit-frame-pointer", "-x", "c", "-o", "whole", "-"], input=STRIPPED)
    run(["strip", "-o", "program", "whole"])
    offsets = {name: offset_of(tmp_path / "whole", symbols(tmp_path / "whole")[name][0][0]) for name in ("touch", "walk", "main")}
    return str(tmp_path / "program"), offsets


def test_samples_of_a_stripped_function_are_one_entry_that_can_be_named_later(nhmtap, tmp_path, stripped):
    path, offsets = stripped
    result = by_symbol(nhmtap, tmp_path, path)
    entry, = (e for e in result.entries() if e["code"]["module"] == path and e["samples"] >= 100)
    assert entry["samples"] == 300
    assert int(entry["code"]["offset"], 16) == int(entry["code"]["function_offset"], 16) == offsets["touch"]
    assert f"[program+{offsets['touch']:#x}]" in nhmtap("show", tmp_path / "out").out
    code = entry["code"]["build_id"]
    folder = tmp_path / "debug/.build-id" / code[:2]
    folder.mkdir(parents=True)
    shutil.copy(tmp_path / "whole", folder / f"{code[2:]}.debug")
    named = parse(nhmtap("symbolize", "--debug-dir", tmp_path / "debug", tmp_path / "out").out)
    entry, = (e for record in named if record["type"] == "profile" for e in record["entries"] if e["samples"] == 300)
    assert entry["code"]["symbol"] == "touch" and not {"function_offset", "symbol_offset"} & set(entry["code"])


# The symbol has no size, and what follows it no name.
UNSIZED = """
    .globl exported\n.type exported, @function
exported:
    movb $1, (%rdi)\nadd $4096, %rdi\ndec %rsi\njnz exported\nret
    .globl hidden\n.hidden hidden\n.type hidden, @function
hidden:
    .cfi_startproc
1:  movb $1, (%rdi)\nadd $4096, %rdi\ndec %rsi\njnz 1b\nret
    .cfi_endproc
"""


def test_a_symbol_without_a_size_ends_where_a_function_without_a_name_begins(nhmtap, tmp_path):
    (tmp_path / "unsized.s").write_text(UNSIZED)
    (tmp_path / "main.c").write_text("""
        #include <sys/mman.h>
        void exported(char *page, long nr), hidden(char *page, long nr);
        int main(void)
        {
            char *pages = mmap(0, 500 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            madvise(pages, 500 * 4096, MADV_NOHUGEPAGE);
            exported(pages, 200);
            hidden(pages + 200 * 4096, 300);
        }""")
    path = str(tmp_path / "program")
    subprocess.run(["gcc", "-rdynamic", "-s", "-o", path, tmp_path / "main.c", tmp_path / "unsized.s"], check=True)
    entries = [e for e in by_symbol(nhmtap, tmp_path, path).entries() if e["code"]["module"] == path]
    assert {e["code"].get("symbol"): e["samples"] for e in entries if e["samples"] >= 200} == {"exported": 200, None: 300}


def test_instructions_of_a_stripped_function_are_told_apart_where_lines_are_asked_for(nhmtap, tmp_path, stripped):
    path, offsets = stripped
    result = by_symbol(nhmtap, tmp_path, path, by="line")
    found = [e["code"] for e in result.entries() if e["code"].get("function_offset") == hex(offsets["touch"])
             if e["samples"] == 100]
    assert len({code["offset"] for code in found}) == 3


@pytest.mark.parametrize("by", ["stack", "symbol"])
def test_stacks_of_stripped_functions_are_one_way_each(nhmtap, tmp_path, stripped, by):
    path, offsets = stripped
    result = nhmtap("profile", "-g", *FAULTS, "--by", by, "-o", f"folded={tmp_path / 'folded'}", "-o",
                    f"pprof={tmp_path / 'pprof'}", "-o", f"json={tmp_path / 'json'}", "--", path)
    assert result.status == 0, result.err
    ways = {}
    for line in (tmp_path / "folded").read_text().splitlines():
        way, count = line.rsplit(" ", 1)
        ways[tuple(way.split(";")[-3:])] = ways.get(tuple(way.split(";")[-3:]), 0) + int(count)
    assert ways[tuple(f"[program+{offsets[name]:#x}]" for name in ("main", "walk", "touch"))] == 300
    profile = pprof.read(tmp_path / "pprof")
    names = {f.id: profile.string_table[f.name] for f in profile.function}
    assert {f"[program+{offset:#x}]" for offset in offsets.values()} <= set(names.values())
    # What calls is named by the call, not by what follows it.
    named = parse(nhmtap("symbolize", "--symfs", whole_root(tmp_path, path), tmp_path / "json").out)
    assert {frame.get("symbol") for record in named if record["type"] == "frames" for frame in record["frames"]
            if frame.get("module") == path} >= {"main", "walk", "touch"}


def whole_root(tmp_path, path):
    """A root below which the program is not stripped."""
    at = tmp_path / "root" / path.lstrip("/")
    at.parent.mkdir(parents=True)
    shutil.copy(tmp_path / "whole", at)
    return tmp_path / "root"


def test_lines_are_those_of_the_source(nhmtap, tmp_path):
    result = by_symbol(nhmtap, tmp_path, NAMES, "here=200", by="line")
    entry, = [e for e in result.entries() if e["code"].get("symbol") == "here"]
    source = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "programs/names.c")
    with open(source, encoding="utf-8") as file:
        assert file.read().splitlines()[entry["code"]["line"] - 1].strip() == "*page = 1;"
    assert entry["code"]["file"].endswith("tests/programs/names.c") and entry["samples"] == 200


TOUCH = """#include <sys/mman.h>
static inline __attribute__((always_inline)) void touch(volatile char *page)
{
	*page = 1;
}
int main(void)
{
	char *pages = mmap(0, 300 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (long i = 0; i < 200; i++)
		touch(pages + (i << 12));
	for (long i = 200; i < 300; i++)
		*(volatile char *)(pages + (i << 12)) = 1;
}
"""


@pytest.fixture
def touch(tmp_path):
    """Touches 200 pages in a function that is inlined, and 100 in main."""
    (tmp_path / "touch.c").write_text(TOUCH)
    subprocess.run(["gcc", "-O1", "-g", "-o", tmp_path / "touch", tmp_path / "touch.c"], check=True)
    return tmp_path / "touch"


def test_a_table_by_lines_names_the_function_that_a_line_is_in_and_what_it_is_inlined_in(nhmtap, touch):
    result = nhmtap("profile", *FAULTS, "--by", "line", "--format", "table", "--", touch)
    assert re.search(r"^ +200 .*  touch touch\.c:4 in main \(touch\)$", result.out, re.M), result.out
    assert re.search(r"^ +100 .*  main touch\.c:12 \(touch\)$", result.out, re.M), result.out


def test_a_table_of_stacks_has_a_line_for_each_function_that_is_inlined(nhmtap, touch):
    """As folded stacks have. The lines of one function are one row."""
    out = nhmtap("profile", *FAULTS, "-g", "--format", "table", "--", touch).out
    assert re.search(r"^ +200 .*  touch\n +touch \(inlined\)\n +main\n", out, re.M), out
    assert re.search(r"^ +100 .*  touch\n +main\n", out, re.M), out


def test_modules_add_up_all_of_their_code(nhmtap, tmp_path):
    result = by_symbol(nhmtap, tmp_path, NAMES, "here=200", by="module")
    modules = {e["code"]["module"]: e["samples"] for e in result.entries()}
    assert len(modules) == len(result.entries())
    assert modules[NAMES] >= 200 and all(set(e["code"]) == {"module"} for e in result.entries())


def test_places_are_offsets_in_files(nhmtap, tmp_path):
    result = by_symbol(nhmtap, tmp_path, NAMES, "here=200", by="place")
    assert max(e["samples"] for e in result.entries() if e["code"]["module"] == NAMES) == 200
    assert all({"module", "offset", "build_id"} <= set(e["code"]) for e in result.entries())


def test_names_stand_beside_other_keys(nhmtap, tmp_path):
    result = by_symbol(nhmtap, tmp_path, NAMES, "here=200", "child=100", by="symbol,pid,comm")
    assert result.one("start")["by"] == ["symbol", "pid", "comm"]
    here = [e for e in result.entries() if e["code"].get("symbol") == "here"]
    assert sorted(e["samples"] for e in here) == [100, 200]
    assert len({e["pid"] for e in here}) == 2 and {e["comm"] for e in here} == {"names"}


def test_an_address_may_stand_beside_its_name(nhmtap, tmp_path):
    result = by_symbol(nhmtap, tmp_path, NAMES, "here=200", by="symbol,ip")
    entry, = [e for e in result.entries() if e["code"].get("symbol") == "here"]
    assert entry["samples"] == 200 and int(entry["ip"], 16) > 4096


def test_loads_are_named_as_well(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "mem", "-e", "page-faults:u", "-c", "1", "--by", "symbol,offset",
                         "--", NAMES, "here=200")
    entry, = [e for e in result.entries("mem") if e["code"].get("symbol") == "here"]
    assert (entry["samples"], entry["offset"]) == (200, 0)


def test_each_interval_has_its_own_entries_and_none_is_lost(nhmtap, tmp_path):
    steps = [step for i in range(8) for step in ("here=50", "clock=40")]
    result = by_symbol(nhmtap, tmp_path, NAMES, *steps, options=["-I", "50"])
    assert len({r["start_time"] for r in result.of("profile")}) > 2
    # On a busy machine the file may be read too late for an interval, which then has places instead
    # of names. It has been read by the next one.
    named, no_time = code(result)["here", NAMES], result.one("end")["names"]["unnamed"]["no_time"]
    assert 0 < named <= 400 <= named + no_time


def test_however_short_an_interval_is_each_sample_counts_as_named_or_not(nhmtap, tmp_path):
    steps = [step for i in range(8) for step in ("here=50", "clock=10")]
    result = by_symbol(nhmtap, tmp_path, NAMES, *steps, options=["-I", "1"])
    end = result.one("end")
    assert end["names"]["named"] + sum(end["names"]["unnamed"].values()) == end["samples"]["aggregated"]
    assert sum(e["samples"] for e in result.entries() if e["code"].get("module") == NAMES) >= 400


def test_the_table_shows_functions(nhmtap):
    said = nhmtap("profile", *FAULTS, "--by", "symbol", "--format", "table", "--", NAMES, "here=200").out
    assert re.search(r"^ +200 +[\d.]+% +here \(names\)$", said, re.M)


def same(ours, theirs):
    """perf omits parameters and result of C++ functions, and adds the version to symbols of C."""
    return ours == theirs.partition("@")[0] or theirs + "(" in ours


# Both see the same addresses, because setarch -R switches their randomization off.
def test_names_are_those_of_perf_script(nhmtap, tmp_path):
    command = ["setarch", "-R", "clang", "-O2", "-x", "c", "-c", __file__.replace("live/test_names.py",
               "programs/names.c"), "-o", tmp_path / "names.o"]
    data = tmp_path / "data"
    subprocess.run(["perf", "record", "-q", "-m", "4096", "--buildid-mmap", "-e", "page-faults:u", "-c", "1", "-o", data,
                    "--", *command], check=True)
    script = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym"], capture_output=True, text=True,
                            check=True).stdout
    theirs = {}
    for line in script.splitlines():
        if line.strip():
            address, _, name = line.strip().partition(" ")
            theirs[int(address, 16)] = name
    ours = {int(e["ip"], 16): e["code"].get("symbol", "[unknown]")
            for e in by_symbol(nhmtap, tmp_path, *map(str, command), by="symbol,ip").entries()}
    both = set(ours) & set(theirs)
    different = {hex(at): (ours[at], theirs[at]) for at in both if not same(ours[at], theirs[at])}
    assert len(both) > 500, (len(ours), len(theirs))
    assert len(different) <= 0.01 * len(both), different


@pytest.mark.parametrize("name", ["two\nlines", "ends (deleted)", "two\nlines (deleted)", "one\\012line"])
@pytest.mark.parametrize("attached", [True, False])
def test_a_module_has_its_files_own_name(nhmtap, tmp_path, name, attached):
    """The kernel's list of mappings has a newline as \\012, its notes do not; and it appends " (deleted)"."""
    path = shutil.copy(NAMES, tmp_path / name)
    options = ["profile", *FAULTS, "--by", "module"]
    if attached:
        with subprocess.Popen([path, "wait", "here=50"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            running = nhmtap.attach(*options, "-p", process.pid)
            process.communicate("\n")
            result = nhmtap.interrupt(running)
    else:
        result = nhmtap.into(tmp_path / "out", *options, "--", path, "here=50")
    assert sum(entry["samples"] for entry in result.entries() if entry["code"]["module"] == str(path)) >= 50


# Runs a copy of a program that is in memory only, as loaders of encrypted or downloaded programs do.
FROM_MEMORY = """
import os, sys
name, path, *arguments = sys.argv[1:]
memory = os.memfd_create(name)
with open(path, "rb") as program, os.fdopen(os.dup(memory), "wb") as copy:
    copy.write(program.read())
os.execve(memory, [path, *arguments], os.environ)
"""


@pytest.mark.parametrize("name", ["", "of (deleted)", "a/b;c"])
def test_a_running_program_that_is_in_no_file_system_is_named(nhmtap, name):
    with Puppet(before=[sys.executable, "-c", FROM_MEMORY, name]) as puppet:
        run = nhmtap.attach("profile", *FAULTS, "--by", "symbol", "-p", puppet.pid)
        puppet.do("faults=200")
        result = nhmtap.interrupt(run)
    assert sum(entry["samples"] for entry in result.entries() if entry["code"].get("symbol") == "touch" and
               entry["code"]["module"] == f"/memfd:{name}") == 200


# Without a C library, which Debian has only for 64 bits.
FAULTS_OF_32_BITS = """
__attribute__((used)) static void fault(void)
{
	static volatile char pages[64 * 4096];
	long done;

	for (;;) {
		__asm__ volatile("int $0x80" : "=a"(done) : "a"(219), "b"(pages), "c"(sizeof(pages)), "d"(4) : "memory"); /* madvise, MADV_DONTNEED */
		for (unsigned long i = 0; i < sizeof(pages); i += 4096)
			pages[i] = 1;
	}
}

__asm__(".globl _start\\n_start: call fault\\n");
"""


@pytest.mark.parametrize("where", ["a file", "memory"])
def test_a_running_program_of_32_bits_is_named_and_has_its_build_id(nhmtap, tmp_path, where):
    path = tmp_path / "low"
    subprocess.run(["gcc", "-m32", "-nostdlib", "-static", "-no-pie", "-O1", "-Wl,-z,separate-code,--build-id", "-o", path,
                    "-x", "c", "-"], input=FAULTS_OF_32_BITS, text=True, check=True)
    notes = subprocess.run(["readelf", "-n", path], stdout=subprocess.PIPE, text=True, check=True).stdout
    command = [path] if where == "a file" else [sys.executable, "-c", FROM_MEMORY, "low", path]
    with subprocess.Popen(command) as faulting, contextlib.ExitStack() as stack:
        stack.callback(faulting.kill)
        until(lambda: os.readlink(f"/proc/{faulting.pid}/exe").partition(" ")[0].endswith("low"))
        result = nhmtap("profile", *FAULTS, "-g", "-p", faulting.pid, "--duration", 0.2)
    assert {(frame.get("symbol"), frame.get("module"), frame.get("build_id"))
            for record in result.of("frames") for frame in record["frames"]} == {
                ("fault", str(path) if where == "a file" else "/memfd:low", re.search(r"Build ID: (\w+)", notes)[1])}


REUSED = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

int main(int argc, char **argv)
{
	void *at[2];

	for (int i = 0; i < 2; i++) {
		void *library = dlopen(argv[1 + i], RTLD_NOW);
		void (*work)(int, int) = dlsym(library, i ? "second" : "first");

		at[i] = work;
		if (!i && argc > 5) {
			puts("there");
			fflush(stdout);
			getchar();
		}
		nanosleep(&(struct timespec){0, 400000000}, NULL);
		work(atoi(argv[3 + i]), 0);
		nanosleep(&(struct timespec){0, i ? 100000000 : 400000000}, NULL);
		dlclose(library);
	}
	printf("%d\\n", at[0] == at[1]);
}
"""

PLUGIN = """
#include <sys/mman.h>

void NAME(int nr, int unused)
{
	volatile char *pages = mmap(0, nr * 4096UL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)pages, nr * 4096UL, MADV_NOHUGEPAGE);
	for (int i = 0; i < nr; i++)
		pages[i * 4096UL] = 1;
	munmap((void *)pages, nr * 4096UL);
}
"""


def built(path, source, *flags):
    subprocess.run(["gcc", "-O1", "-x", "c", "-o", path, "-", *flags], input=source, text=True, check=True)
    return path


def plugins(folder, *flags):
    return [built(folder / f"{name}.so", PLUGIN.replace("NAME", name), "-shared", "-fPIC", *flags) for name in ("first", "second")]


def apart(run):
    """A run that has named the samples of a first library, 300, before the 500 of a second one came to its address. On a busy
    host it may be late. Then all of them are told to be ambiguous."""
    for _ in range(10):
        result = run()
        names = result.one("end")["names"]
        if names["ambiguous"] + names.get("data", {"ambiguous": 0})["ambiguous"] < 700:
            return result
    return pytest.fail("each of ten runs was late")


def test_libraries_at_the_same_address_one_after_the_other_have_their_own_samples(nhmtap, tmp_path):
    command = [built(tmp_path / "main", REUSED, "-ldl"), *plugins(tmp_path), 300, 500]
    result = apart(lambda: nhmtap.into(tmp_path / "out", "profile", "-e", "page-faults:u", "-c", 1, "--by", "symbol", "--", *command))
    assert result.said == "1\n"
    samples = {entry["code"].get("symbol"): entry["samples"] for record in result.of("profile")
               for entry in record["entries"]}
    assert 300 <= samples["first"] < 310 and 500 <= samples["second"] < 510


IN_TURNS = """
#include <dlfcn.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	for (int i = 0; i < 6; i++) {
		void *library = dlopen(argv[1 + i % 2], RTLD_NOW);
		void (*work)(int, int) = dlsym(library, i % 2 ? "second" : "first");

		work(atoi(argv[3 + i % 2]), 0);
		dlclose(library);
	}
}
"""


def test_single_samples_are_of_the_library_that_was_there_then(nhmtap, tmp_path):
    """Nothing lies between two libraries but the kernel's notes."""
    command = [built(tmp_path / "main", IN_TURNS, "-ldl"), *plugins(tmp_path), 300, 500]
    result = nhmtap.into(tmp_path / "out", "stream", "-e", "page-faults:u", "-c", 1, "--", *command)
    samples = collections.Counter(record["code"].get("symbol") for record in result.of("sample"))
    assert 900 <= samples["first"] < 930 and 1500 <= samples["second"] < 1530
    assert result.one("end")["names"]["ambiguous"] == 0


def test_a_library_that_was_there_before_the_run_has_its_own_samples_too(nhmtap, tmp_path):
    command = [built(tmp_path / "main", REUSED, "-ldl"), *plugins(tmp_path), "300", "500", "wait"]

    def attached():
        with subprocess.Popen(command, text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == "there\n"
            run = nhmtap.attach("profile", *FAULTS, "--by", "symbol", "-p", process.pid)
            process.stdin.write("\n")
            assert process.stdout.readline() == "1\n"
            return nhmtap.interrupt(run)

    found = code(apart(attached))
    assert 300 <= found["first", str(tmp_path / "first.so")] < 310 and 500 <= found["second", str(tmp_path / "second.so")] < 510


BETWEEN = """
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static const unsigned char code[] = {0xc6, 0x07, 0x01, 0xc3}; /* movb $1, (%rdi); ret */
	struct timespec pause = {0, 400000000};
	void *library = dlopen(argv[1], RTLD_NOW);
	char *page = (char *)((unsigned long)dlsym(library, "first") & -4096UL), *pages, path[64];
	void (*second)(int, int);
	FILE *map;

	dlclose(library);
	page = mmap(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	memcpy(page, code, sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	fprintf(map, "%lx 4 made\\n", (unsigned long)page);
	fclose(map);
	pages = mmap(0, 300 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(pages, 300 * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < 300; i++)
		((void (*)(char *))page)(pages + i * 4096);
	nanosleep(&pause, NULL);
	munmap(page, 4096);
	second = dlsym(dlopen(argv[2], RTLD_NOW), "second");
	nanosleep(&pause, NULL);
	second(500, 0);
	nanosleep(&pause, NULL);
	nanosleep(&pause, NULL);
	printf("%d\\n", page == (char *)((unsigned long)second & -4096UL));
}
"""


def test_code_made_at_run_time_and_a_library_at_the_same_address_have_their_own_samples(nhmtap, tmp_path):
    """The library is there for longer."""
    result = nhmtap.into(tmp_path / "out", "profile", *FAULTS, "--by", "symbol", "--",
                         built(tmp_path / "main", BETWEEN, "-ldl"), *plugins(tmp_path))
    os.unlink(f"/tmp/perf-{result.one('end')['command']['pid']}.map")
    assert result.said == "1\n"
    found = code(result)
    assert 300 <= found["made", "[anon]"] < 310 and 500 <= found["second", str(tmp_path / "second.so")] < 510


WITH_DATA = """
char NAME_of[600 * 4096] = {1};

void NAME(int nr, int unused)
{
	for (int i = 0; i < nr; i++)
		((volatile char *)NAME_of)[i * 4096] = 1;
}
"""


@pytest.mark.parametrize("by", ["variable", "variable,symbol"])
def test_data_of_libraries_at_the_same_address_one_after_the_other_have_their_own_samples(nhmtap, tmp_path, by):
    """The first page of each may have been written to by the dynamic linker."""
    libraries = [built(tmp_path / f"{name}.so", WITH_DATA.replace("NAME", name), "-shared", "-fPIC") for name in ("first", "second")]
    main = built(tmp_path / "main", REUSED, "-ldl")
    result = apart(lambda: nhmtap.into(tmp_path / "out", "mem", *FAULTS, "--by", by, "--", main, *libraries, 300, 500))
    assert result.said == "1\n"
    samples = {entry["variable"]: entry["samples"] for entry in result.entries("mem") if "variable" in entry}
    assert 299 <= samples["first_of"] <= 300 and 499 <= samples["second_of"] <= 500


OVERTAKEN = """
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

int main(int argc, char **argv)
{
	void (*first)(int, int);
	void *library;

	puts("there");
	fflush(stdout);
	getchar();
	library = dlopen(argv[1], RTLD_NOW);
	first = dlsym(library, "first");
	first(300, 0);
	nanosleep(&(struct timespec){0, 500000000}, NULL); /* it is there for longer than the second one */
	dlclose(library);
	library = dlopen(argv[2], RTLD_NOW);
	printf("%d\\n", first == dlsym(library, "second"));
	fflush(stdout);
	getchar();
}
"""


def overtaken(nhmtap, tmp_path, libraries, *arguments):
    """A run that stands still while the second library takes the place of the first."""
    main = built(tmp_path / "main", OVERTAKEN, "-ldl")
    with subprocess.Popen([main, *libraries], text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == "there\n"
        run = nhmtap.attach(*arguments, "-p", process.pid)
        stop(run.pid)
        process.stdin.write("\n")
        assert process.stdout.readline() == "1\n"
        run.send_signal(signal.SIGCONT)
        result = nhmtap.interrupt(run)
        process.stdin.write("\n")
    return result


@pytest.mark.parametrize("flags", [["-Wl,--build-id"], ["-Wl,--build-id=none"]], ids=["with a build-id", "without one"])
def test_a_library_goes_by_its_own_file_if_another_has_its_place_before_its_note_is_read(nhmtap, tmp_path, flags):
    result = overtaken(nhmtap, tmp_path, plugins(tmp_path, *flags), "profile", *FAULTS, "--by", "symbol")
    assert 300 <= code(result)["first", str(tmp_path / "first.so")] < 310


def test_data_whose_library_is_not_certain_go_by_the_one_that_was_there_longer_and_are_told(nhmtap, tmp_path):
    libraries = [built(tmp_path / f"{name}.so", WITH_DATA.replace("NAME", name), "-shared", "-fPIC") for name in ("first", "second")]
    table = tmp_path / "table"
    result = overtaken(nhmtap, tmp_path, libraries, "mem", *FAULTS, "--by", "variable", "-o", "json=-", "-o", f"table={table}")
    samples = {entry.get("variable"): entry["samples"] for entry in result.entries("mem")}
    data = result.one("end")["names"]["data"]
    assert 299 <= samples["first_of"] <= 300 and "second_of" not in samples
    assert data["ambiguous"] >= samples["first_of"]
    total = data["named"] + sum(data["unnamed"].values())
    assert (f"# {data['ambiguous']:,} of {total:,} data addresses had several files there, one after the other: each goes by "
            "the one that was there longest") in table.read_text()


def test_lines_of_many_units_do_not_cost_the_file_its_names(nhmtap, tmp_path):
    """The units that are sampled take more memory together than names may have."""
    nr, each, path = 200_000, 5000, tmp_path / "program"
    called = random.Random(45).sample(range(nr), 100)
    large_program(path, nr, called, 0, manysymbols.dwarf(nr, LONG_NAME, each, 0))
    result = nhmtap.into(tmp_path / "out", "profile", "-e", "page-faults:u", "-c", "1", "--by", "line", "--memory", "40M", "--", path)
    lines = {(entry["code"].get("symbol"), entry["code"].get("line")) for record in result.of("profile") for entry in record["entries"]}
    assert {((LONG_NAME % number).decode(), manysymbols.line(number)) for number in called} <= lines


FUNCTIONS_OF_A_UNIT = 1000


@pytest.mark.plain
@pytest.mark.thorough
@pytest.mark.parametrize("options", [[], ["--memory", "64M"]], ids=["by the cgroup", "by --memory"])
def test_lines_of_a_program_with_300_mb_of_dwarf_are_right_in_a_cgroup_of_64_mib(nhmtap, tmp_path, options):
    """Those that DWARF was made of: 2 million functions in 2,000 units."""
    nr, path = 2_000_000, tmp_path / "program"
    called = random.Random(44).sample(range(nr), 100)
    debug = manysymbols.dwarf(nr, LONG_NAME, FUNCTIONS_OF_A_UNIT, 3)
    assert sum(map(len, debug.values())) > 240e6
    large_program(path, nr, called, 0, debug)
    with memory.measured(f"nhmtap-lines-{os.getpid()}") as (folder, _):
        memory.allow(folder, 64 << 20)
        result = nhmtap.into(tmp_path / "out", "profile", "-e", "page-faults:u", "-c", "1", "--by", "line", *options, "--", path,
                             before=cgroups.inside(folder))
    assert result.status == 0 and result.one("end")["names"].get("lines_why") is None
    began, ended = (datetime.datetime.fromisoformat(result.of(kind)[0]["time"][:26]) for kind in ("start", "profile"))
    print(f"figures: 300 MB of DWARF: lines after {round((ended - began) / datetime.timedelta(milliseconds=1))} ms")
    found = {(code.get("symbol"), code.get("file"), code.get("line"))
             for record in result.of("profile") for code in (entry["code"] for entry in record["entries"])}
    assert {((LONG_NAME % number).decode(), f"/built/unit_{number // FUNCTIONS_OF_A_UNIT}.c", manysymbols.line(number))
            for number in called} <= found


def test_a_table_says_how_much_of_its_code_has_no_name_and_why(nhmtap, tmp_path):
    bare = tmp_path / "bare"
    subprocess.run(["strip", "-o", bare, program("puppet")], check=True)
    command = ["profile", "-e", "page-faults:u", "-c", "1", "-o", tmp_path / "records", "-o", "table=-", "--"]
    result = nhmtap(*command, bare, "faults=2000")
    names = parse((tmp_path / "records").read_text())[-1]["names"]
    total = names["named"] + sum(names["unnamed"].values())
    assert names["unnamed"]["no_symbol"] >= 2000
    assert (f"# {names['unnamed']['no_symbol']:,} of {total:,} code addresses have no function name: the file has no "
            "symbol there (its debug package may have one), or the code was made at run time and no perf map or jitdump names it") in result.out.splitlines()
    assert "no function name" not in nhmtap(*command, program("puppet"), "faults=2000").out


TURNS = """
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char *code = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < 2000; i++) {
		int file = open(argv[1 + i % 2], O_RDONLY);

		mmap(code, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0);
		madvise(page, 4096, MADV_DONTNEED);
		((void (*)(char *))code)(page);
		munmap(code, 4096);
		close(file);
	}
	return 0;
}
"""


LONG_NAME = b"a_name_as_long_as_others_%d"


def large_program(path, nr, called=(), before=0, debug=None):
    """Writes a program with functions in random order of its table, with as many strings before theirs, and with DWARF."""
    strings, entries = bytearray(b"\0" * (before + 1)), []
    for number in range(nr):
        entries.append(manysymbols.symbol(len(strings), manysymbols.slot(number), manysymbols.SLOT))
        strings += LONG_NAME % number + b"\0"
    random.Random(nr).shuffle(entries)
    manysymbols.write(path, nr, bytes(24) + b"".join(entries), bytes(strings), called, debug)


def test_symbols_that_find_no_room_are_told_from_those_that_there_are_not(nhmtap, tmp_path):
    """Of 28 MiB for all, names may have some 10; each program takes some 2 MB of them. They are asked for by turns: functions
    that were called as often follow each other."""
    programs = [tmp_path / f"program{i}" for i in range(12)]
    for path in programs:
        large_program(path, 28_000, [number for number in range(10) for _ in range(number + 1)])
    options = ["-e", "page-faults:u", "-c", "1", "--by", "symbol", "-o", f"table={tmp_path}/table", "--memory", "28M"]
    result = nhmtap.into(tmp_path / "out", "profile", *options, "--", "sh", "-c", "; ".join(map(str, programs)))
    unnamed = result.one("end")["names"]["unnamed"]
    places = {str(path): code(result).get((None, str(path)), 0) for path in programs}
    assert unnamed["no_room"] >= 55 > unnamed["no_symbol"] and sum(places.values()) >= 55
    assert "the memory for names has no room for the file's symbols (--memory raises it" in (tmp_path / "table").read_text()


def names_what_it_calls(nhmtap, folder, nr, strings, *options, **where):
    """Runs a program that calls 100 of its functions once each, whose names are therefore known."""
    path = folder / "program"
    called = random.Random(43).sample(range(nr), 100)
    large_program(path, nr, called, strings)
    result = nhmtap.into(folder / "out", "profile", "-e", "page-faults:u", "-c", "1", "--by", "symbol", *options, "--", path, **where)
    found = code(result)
    assert all(found[f"a_name_as_long_as_others_{number}", str(path)] >= 1 for number in called)
    assert sum(result.one("end")["names"]["unnamed"].values()) <= 3  # the kernel's own faults at the start
    return path, result


def test_names_of_a_table_larger_than_the_memory_for_names_are_right(nhmtap, tmp_path):
    names_what_it_calls(nhmtap, tmp_path, 100_000, 8_000_000, "--memory", "28M")


@pytest.mark.plain
@pytest.mark.thorough
@pytest.mark.parametrize("options", [[], ["--memory", "64M"]], ids=["by the cgroup", "by --memory"])
def test_two_million_symbols_in_half_a_gigabyte_are_named_in_a_cgroup_of_64_mib(nhmtap, tmp_path, options):
    with memory.measured(f"nhmtap-names-{os.getpid()}") as (folder, _):
        memory.allow(folder, 64 << 20)
        path, result = names_what_it_calls(nhmtap, tmp_path, 2_000_000, 355_000_000, *options, before=cgroups.inside(folder))
    assert result.status == 0 and path.stat().st_size > 498e6
    began, ended = (datetime.datetime.fromisoformat(result.of(kind)[0]["time"][:26]) for kind in ("start", "profile"))
    print(f"figures: a program of 500 MB: named after {round((ended - began) / datetime.timedelta(milliseconds=1))} ms")


def test_a_table_says_how_much_of_its_code_may_be_anothers(nhmtap, tmp_path):
    """Two files are mapped at one address by turns, faster than tables can be read."""
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "turns", "-x", "c", "-"], input=TURNS, text=True, check=True)
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"\xc6\x07\x01\xc3" + name.encode())  # movb $1, (%rdi); ret
    command = ["profile", "-e", "page-faults:u", "-c", "1", "-o", tmp_path / "records", "-o", "table=-", "--"]
    result = nhmtap(*command, tmp_path / "turns", tmp_path / "one", tmp_path / "two")
    names = parse((tmp_path / "records").read_text())[-1]["names"]
    total = names["named"] + sum(names["unnamed"].values())
    assert names["ambiguous"] > 0.01 * total
    assert (f"# {names['ambiguous']:,} of {total:,} code addresses had several files there, one after the other: each goes by "
            "the one that was there longest") in result.out.splitlines()
    assert "one after the other" not in nhmtap(*command, program("puppet"), "faults=2000").out
    assert "one after the other" not in result.err


def test_where_no_output_has_an_end_that_code_may_be_anothers_is_said_on_stderr(nhmtap, tmp_path):
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "turns", "-x", "c", "-"], input=TURNS, text=True, check=True)
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"\xc6\x07\x01\xc3" + name.encode())
    command = ["profile", "-e", "page-faults:u", "-c", "1", "-o", f"folded={tmp_path / 'stacks'}",
               "-o", f"openmetrics={tmp_path / 'metrics'}", "--"]
    said = nhmtap(*command, tmp_path / "turns", tmp_path / "one", tmp_path / "two").err
    assert re.search(r"^nhmtap: [\d,]+ of [\d,]+ code addresses had several files there", said, re.M)
    assert "several files" not in nhmtap(*command, program("puppet"), "faults=2000").err
