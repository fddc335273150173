# SPDX-License-Identifier: GPL-2.0-only
"""A measured program whose file is on a file system that stops to answer (stalling_server.py): what waits for
that can't be interrupted, so nothing that intervals, the end or SIGTERM need may wait for it."""
import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import threading

import pytest
from records import Result
from running import reader_of
from sessions import until, write
from stalling import Mount

OPERATIONS = ["lookup", "getattr", "open", "read"]
MOMENTS = ["start", "interval", "end"]
WAYS = {"by symbol": ["--by", "symbol"], "by module": ["--by", "module"], "stacks": ["-g"]}
WHY = "its file system does not answer"

SOURCE = """
#include <unistd.h>
static __attribute__((noinline)) void in_a_stalled_file(void)
{
	for (volatile long i = 0;; i++)
		;
}
int main(void)
{
	write(1, "x", 1);
	in_a_stalled_file();
}
"""


@pytest.fixture(scope="module", name="spinning")
def fixture_spinning(tmp_path_factory):
    path = tmp_path_factory.mktemp("spinning") / "spinning"
    subprocess.run(["gcc", "-O1", "-g", "-x", "c", "-o", path, "-"], input=SOURCE, text=True, check=True)
    return path


class Stalling(Mount):
    def __init__(self, folder, file):
        super().__init__(folder, file)
        self.program = subprocess.Popen([folder / file.name], stdout=subprocess.PIPE)
        assert self.program.stdout.read(1)

    def end(self):
        self.server.kill()
        self.program.kill()
        self.program.wait()
        super().end()


@pytest.fixture(name="stalling")
def fixture_stalling(tmp_path, spinning):
    stalling = Stalling(tmp_path / "stalling", spinning)
    yield stalling
    stalling.end()


def follow(nhmtap, stalling, operation, moment, arguments):
    """Stalls at this moment. Returns the records, after SIGTERM has ended nhmtap."""
    if moment == "start":
        stalling.stall(operation)
    process = nhmtap.start(*arguments)
    lines, profiles = [], 0
    while profiles < 4:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        lines.append(line)
        if json.loads(line)["type"] != "profile":
            continue
        profiles += 1
        if profiles == 1 and moment == "interval":
            stalling.stall(operation)
    if moment == "end":
        stalling.stall(operation)
    return terminate(process, lines)


def terminate(process, lines):
    """Ends nhmtap, of which these lines were read. Returns all its records."""
    # The end takes some 0.5 s. If something waited for the file system, it would never come.
    hung = threading.Timer(240, process.kill)
    hung.start()
    process.send_signal(signal.SIGTERM)
    rest, err = process.stdout.read(), process.stderr.read()
    process.wait()
    hung.cancel()
    return Result(process.returncode, "".join(lines) + rest, err)


def check_named(nhmtap, pid, symbol):
    """Checks that the code that a process runs in gets its name, as soon as the file system has answered."""
    process = nhmtap.start("profile", "-p", pid, "-F", 199, "--by", "symbol", "-I", 100)
    lines = []
    while not lines or f'"symbol":"{symbol}"' not in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1], process.stderr.read()
    check(terminate(process, lines))


def check(result):
    assert result.status == 0, result.err
    end = result.records[-1]
    assert end["type"] == "end"
    return end


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_intervals_go_on_and_sigterm_ends_it(nhmtap, stalling, operation, moment):
    """The module's path is known in any case: it is in the kernel's list of mappings."""
    result = follow(nhmtap, stalling, operation, moment,
                    ["profile", "-p", stalling.program.pid, "-F", 199, "--by", "symbol", "-I", 100])
    end = check(result)
    modules = {entry["code"].get("module") for record in result.records for entry in record.get("entries", [])}
    assert str(stalling.folder / "spinning") in modules
    if moment == "start" and operation in ("getattr", "open"):  # the rest is in the kernel's cache
        assert end["names"]["unnamed"]["failed"] and end["names"]["failed_why"] == WHY


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("way", ["by module", "stacks"])
def test_whatever_is_asked_for(nhmtap, stalling, way, moment):
    check(follow(nhmtap, stalling, "all", moment,
                 ["profile", "-p", stalling.program.pid, "-F", 199, *WAYS[way], "-I", 100]))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_session_too(nhmtap, stalling, tmp_path, moment):
    config = write(tmp_path / "config.json", [{"name": "spinning", "command": "profile", "event": "cpu-clock",
                                               "freq": 199, "by": "symbol", "all_cpus": True, "interval_ms": 100}])
    check(follow(nhmtap, stalling, "all", moment, ["run", config]))


def test_a_duration_holds(nhmtap, stalling):
    stalling.stall("all")
    result = nhmtap("profile", "-a", "-F", 199, "--by", "symbol", "-I", 200, "--duration", 1)
    check(result)
    assert [record["type"] for record in result.records].count("profile") >= 2  # on a busy machine, of some intervals together


def test_a_file_system_that_answers_is_read(nhmtap, stalling):
    check_named(nhmtap, stalling.program.pid, "in_a_stalled_file")


# Of 32 bits, without a C library, which Debian has only for 64 bits. It maps its standard input, tells where, waits
# for a byte, and maps a page again and again.
MAPPING = """
static long call(long number, long a, long b, long c, long d, long e)
{
	long result;

	__asm__ volatile("push %%ebp; xor %%ebp, %%ebp; int $0x80; pop %%ebp"
			 : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e) : "memory");
	return result;
}

__attribute__((used)) static void run(void)
{
	long mapped = call(192, 0, 4096, 5, 2, 0); /* mmap2: read and execute, private */
	long millisecond[2] = {0, 1000000};

	call(4, 2, (long)&mapped, 4, 0, 0);
	call(3, 1, (long)&mapped, 1, 0, 0);
	for (;;) {
		call(91, call(192, 0, 4096, 3, 0x22, -1), 4096, 0, 0, 0); /* munmap */
		call(162, (long)millisecond, 0, 0, 0, 0); /* nanosleep */
	}
}

__asm__(".globl _start\\n_start: and $-16, %esp\\n call run\\n");
"""

READING = "import os, sys; os.pread(os.open(f'/proc/{sys.argv[1]}/mem', os.O_RDONLY), 1, int(sys.argv[2]))"


@contextlib.contextmanager
def locked(folder, name):
    """A process whose memory is locked: another one reads a page of it, for which the file system is waited for, and
    it waits to map something itself. Any other who wants to know what it has mapped waits behind that."""
    path = folder / "mapping"
    (folder / name).write_bytes(bytes(4096))
    mount = Mount(folder / "stalling", folder / name)
    subprocess.run(["gcc", "-m32", "-nostdlib", "-static", "-no-pie", "-O1", "-fno-stack-protector", "-o", path,
                    "-x", "c", "-"], input=MAPPING, text=True, check=True)
    (goes, going), (tells, told) = os.pipe(), os.pipe()
    started = []
    mount.stall("read")  # before it is mapped: a session of another test may read it then
    try:
        with open(mount.folder / name, "rb") as file:
            started.append(subprocess.Popen([path], stdin=file, stdout=goes, stderr=told))
        process, = started
        mapped = int.from_bytes(os.read(tells, 4), "little")
        started.append(subprocess.Popen([sys.executable, "-c", READING, str(process.pid), str(mapped)]))
        until(mount.is_waited_for)
        os.write(going, b"x")
        until(lambda: open(f"/proc/{process.pid}/stat", encoding="ascii").read().split()[2] == "D")
        yield process
    finally:
        mount.end()
        for one in started:
            one.kill()
            one.wait()
        for end in (goes, going, tells, told):
            os.close(end)


@pytest.mark.parametrize("name", ["plain", "two\nlines"])
@pytest.mark.parametrize("which", ["-p", "-a"])
def test_a_process_whose_memory_is_locked_keeps_nothing_waiting(nhmtap, tmp_path, which, name):
    """Its vdso would be read from its memory, and a name with a line feed from its mapping's link."""
    with locked(tmp_path, name) as process:
        run = nhmtap.start("profile", *([which, process.pid] if which == "-p" else [which]), "-F", 199, "--by", "symbol",
                           "-I", 100)
        lines = [run.stdout.readline() for _ in range(4)]
        assert all(lines), run.stderr.read()
        check(terminate(run, lines))


class Layered(Mount):
    """The program is in an overlay, of which one layer is the mount. It is mounted for all, or for the program."""

    def __init__(self, folder, file, before):
        super().__init__(folder, file)
        self.overlay, other = folder.with_name("overlay"), folder.with_name("other")
        self.overlay.mkdir()
        other.mkdir()
        script = 'mount -t overlay -o "lowerdir=$1:$2" overlay "$3"; exec "$3/$4"'
        self.program = subprocess.Popen([*before, "sh", "-ec", script, "sh", folder, other, self.overlay, file.name],
                                        stdout=subprocess.PIPE)
        assert self.program.stdout.read(1)

    def end(self):
        self.server.kill()
        self.program.kill()
        self.program.wait()
        subprocess.run(["umount", "-l", self.overlay], stderr=subprocess.DEVNULL, check=False)
        super().end()


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("before", [[], ["unshare", "-m"]], ids=["here", "in a mount namespace"])
def test_a_layer_of_an_overlay_that_stalls_keeps_nothing_waiting(nhmtap, tmp_path, spinning, before, moment):
    """With a file that was opened for reading, close(2) waits for the layer, and so does the end of a process."""
    layered = Layered(tmp_path / "lay er", spinning, before)
    try:
        check(follow(nhmtap, layered, "all", moment,
                     ["profile", "-p", layered.program.pid, "-F", 199, "--by", "symbol", "-I", 100]))
    finally:
        layered.end()


def test_layers_that_answer_are_read(nhmtap, tmp_path, spinning):
    layered = Layered(tmp_path / "layer", spinning, ["unshare", "-m"])
    try:
        check_named(nhmtap, layered.program.pid, "in_a_stalled_file")
    finally:
        layered.end()


# Its /tmp is the mount, and it runs code of its own making at 0x7000000: inc %rax; jmp back.
COMPILED = r"""
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None)
libc.unshare(0x00020000)
libc.mount(b"none", b"/", None, 0x4000 | 1 << 18, None)
libc.mount(sys.argv[1].encode(), b"/tmp", None, 4096, None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap(ctypes.c_void_p(0x7000000), 4096, 7, 0x32, -1, 0)
ctypes.memmove(0x7000000, b"\x48\xff\xc0\xeb\xfb", 5)
os.write(1, b"x")
ctypes.CFUNCTYPE(None)(0x7000000)()
"""


class Compiled(Mount):
    def __init__(self, folder):
        super().__init__(folder)
        self.program = subprocess.Popen([sys.executable, "-c", COMPILED, folder], stdout=subprocess.PIPE)
        assert self.program.stdout.read(1)
        (folder / f"perf-{self.program.pid}.map").write_text("7000000 100 made_at_run_time\n")

    def end(self):
        self.server.kill()
        self.program.kill()
        self.program.wait()
        super().end()


@pytest.fixture(name="compiled")
def fixture_compiled(tmp_path):
    compiled = Compiled(tmp_path / "mount")
    yield compiled
    compiled.end()


def test_a_map_of_a_compiler_on_such_a_file_system_is_read(nhmtap, compiled):
    check_named(nhmtap, compiled.program.pid, "made_at_run_time")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("operation", [*OPERATIONS, "all"])
def test_a_map_of_a_compiler_that_stalls_keeps_nothing_waiting(nhmtap, compiled, operation, moment):
    check(follow(nhmtap, compiled, operation, moment,
                 ["profile", "-p", compiled.program.pid, "-F", 199, "--by", "symbol", "-I", 100]))


PTRACE_ATTACH, WALL = 16, 0x40000000  # linux/ptrace.h, linux/wait.h


def test_a_debugger_that_holds_the_reader_of_files_keeps_nothing_waiting(nhmtap, spinning):
    """A stopped reader gives no answer. If it is killed, its parent can't wait for it before its debugger has."""
    process = nhmtap.start("profile", "-a", "-F", 199, "--by", "symbol", "-I", 100, "--top", 5)
    until(lambda: reader_of(process))
    reader = reader_of(process)
    assert not ctypes.CDLL(None).ptrace(PTRACE_ATTACH, reader, None, None)
    lines = []
    with subprocess.Popen([spinning], stdout=subprocess.PIPE) as program:
        assert program.stdout.read(1)
        while len([line for line in lines if '"type":"profile"' in line]) < 5:
            lines.append(process.stdout.readline())
            assert lines[-1], process.stderr.read()
        result = terminate(process, lines)
        program.kill()
    os.waitpid(reader, WALL)
    check(result)
