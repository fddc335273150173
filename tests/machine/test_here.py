# SPDX-License-Identifier: GPL-2.0-only
"""A command in the guest as if it ran here: on the host's files, with its streams, signals and status."""
import contextlib
import fcntl
import hashlib
import io
import os
import pathlib
import pty
import re
import shlex
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import termios
import textwrap
import time
import traceback
import types

import pytest

import here
import nehalem
import stalling

RUN = nehalem.HERE + "/run"


@pytest.fixture(scope="module")
def tree():
    """A guest that sees the host's files, and is only forked from. It has addresses for as many of them as a command's."""
    with nehalem.Guest(nehalem.Machine(tree=4096)) as guest:
        yield guest


class Command:
    """A process of its own, which runs a command in a fork of a guest."""

    def __init__(self, guest, *command, stdin=None, folder="/", env=None, merged=False, close=(), **options):
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        self.pid = os.fork()
        if self.pid:
            os.close(out)
            os.close(err)
            return
        status = 99
        try:
            os.dup2(stdin if stdin is not None else os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(out, 1)
            os.dup2(out if merged else err, 2)
            for fd in (self.out, self.err, out, err, *close):
                os.close(fd)
            os.chdir(folder)
            os.environ.update(env or {})
            status = run_in(guest, command, options)
        except BaseException:
            traceback.print_exc()
        os._exit(status)

    def kill(self, number):
        os.kill(self.pid, number)

    def read(self, text):
        """What the command says, up to this text."""
        said = b""
        while not said.endswith(text):
            part = os.read(self.out, 1)
            assert part, said
            said += part
        return said

    def end(self):
        """Its status, output and errors."""
        said = [open(fd, "rb").read() for fd in (self.out, self.err)]
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return status, *(s.decode(errors="replace") for s in said)


class OnTerminal(Command):
    """The same on a terminal of its own."""

    def __init__(self, guest, *command, **options):
        self.pid, self.out = pty.fork()
        if self.pid:
            self.before = termios.tcgetattr(self.out)
            return
        status = 99
        try:
            status = run_in(guest, command, options)
        except BaseException:
            traceback.print_exc()
        os._exit(status)

    def type(self, text):
        os.write(self.out, text)

    def resize(self, rows, columns):
        fcntl.ioctl(self.out, termios.TIOCSWINSZ, struct.pack("<4H", rows, columns, 0, 0))

    def is_as_before(self):
        return termios.tcgetattr(self.out) == self.before

    def end(self):
        said = b""
        with contextlib.suppress(OSError):  # a terminal's way to end
            while part := os.read(self.out, 4096):
                said += part
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]), said.decode(errors="replace")


def run_in(guest, command, options):
    """What `run --here` does, with a fork in place of a boot."""
    guest.emulator = nehalem.Process(guest.emulator.pid)  # no child of this process
    terminal = here.Terminal([here.is_terminal(fd) for fd in range(3)])
    guard = here.Guard(terminal)
    try:
        other = guest.fork(open(1, "wb", closefd=False), open(2, "wb", closefd=False))
        guard.watch(other.folder)
        with other:
            return here.run(other, command, terminal, **options)
    except nehalem.Trouble as trouble:
        os.write(2, str(trouble).encode())
        return trouble.status
    finally:
        guard.dismiss()


@pytest.fixture
def start(tree):
    def started(*command, **options):
        return Command(tree, *command, **options)

    return started


@pytest.fixture
def run(start):
    def ended(*command, **options):
        return start(*command, **options).end()

    return ended


def wait_for(what, seconds=60, pause=0.02):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(pause)


# ---------------------------------------------------------------- files


def test_a_program_of_the_host_runs_on_the_hosts_files(run, tmp_path):
    (tmp_path / "lines").write_text("".join(f"{n}\n" for n in range(5000)))
    (tmp_path / "sum.py").write_text("import sqlite3, json; print(sum(map(int, open('lines'))))")
    status, out, err = run("/usr/bin/python3", "sum.py", folder=tmp_path)
    assert (status, out, err) == (0, f"{sum(range(5000))}\n", "")


def test_a_compiler_and_a_test_suite_run_and_leave_nothing_here(run, tmp_path):
    (tmp_path / "a.c").write_text("#include <stdio.h>\nint main(void) { return puts(\"compiled\") < 0; }\n")
    (tmp_path / "test_it.py").write_text(textwrap.dedent("""
        import subprocess
        def test_compiled(tmp_path):
            subprocess.run(["gcc", "-g", "-o", tmp_path / "a", "a.c"], check=True)
            assert subprocess.check_output([tmp_path / "a"]) == b"compiled\\n"
        """))
    status, out, _ = run("/usr/bin/python3", "-m", "pytest", "-q", "test_it.py", folder=tmp_path)
    assert status == 0 and "1 passed" in out
    assert sorted(os.listdir(tmp_path)) == ["a.c", "test_it.py"]


def test_files_are_the_same_byte_for_byte_with_their_dates_modes_and_links(run, tmp_path):
    sizes = [0, 1, 4095, 4096, 4097, 262144, 300001, 1 << 20]
    for n, size in enumerate(sizes):
        path = tmp_path / f"f{n}"
        path.write_bytes(os.urandom(size))
        os.chmod(path, 0o400 + n)
        os.utime(path, ns=(n, 1234567890_123456789 + n))
    (tmp_path / "short").symlink_to("f1")
    (tmp_path / "long").symlink_to("x" * 4090)
    script = "md5sum f? && stat -c '%n %s %a %y %u %F' * && readlink short long"
    env = dict(os.environ, TZ="UTC")
    expected = subprocess.run(script, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True)
    status, out, err = run("sh", "-c", script, folder=tmp_path, env=env)
    assert (status, err) == (0, "")
    assert out == expected.stdout


def test_names_behind_a_words_name_are_found_though_they_fill_their_blocks(run, tmp_path):
    """A block has 4096 bytes, and a name takes 12 more than its length: 32 of these fill two blocks, behind which the
    entry ".." is left over."""
    (tmp_path / "a").write_text("a\n")
    names = [f"b{n:02}" + "x" * 241 for n in range(32)]
    for name in names:
        (tmp_path / name).write_text(f"{name}\n")
    status, out, err = run("sh", "-c", "cat ./a b*", f"{tmp_path}/a", folder=tmp_path)
    assert (status, err) == (0, "")
    assert out.split() == ["a", *names]


def test_a_folder_of_thousands_of_files_is_complete(run, tmp_path):
    for n in range(3000):
        (tmp_path / f"{n * 7919 % 3001}-{'x' * (n % 90)}").touch()
    script = "import os; print(len(os.listdir())); print(all(os.path.exists(n) for n in os.listdir()))"
    assert run("/usr/bin/python3", "-c", script, folder=tmp_path)[1] == "3000\nTrue\n"


def test_a_file_that_shrinks_reads_as_zeros_and_is_named(start, tmp_path):
    path = tmp_path / "shrinks"
    path.write_bytes(b"x" * (4 << 20))
    reader, writer = os.pipe()
    script = "head -c 1 shrinks; echo; read go; tail -c 3 shrinks | od -An -c; stat -c %s shrinks"
    command = start("sh", "-c", script, stdin=reader, close=[writer], folder=tmp_path)
    command.read(b"x\n")
    os.truncate(path, 100)
    os.write(writer, b"go\n")
    os.close(writer)
    status, out, err = command.end()
    assert (status, out.split()) == (0, ["\\0", "\\0", "\\0", str(4 << 20)])
    assert err.count("\n") == 1 and f"{path}: changed on the host" in err


def test_a_file_that_is_replaced_is_read_as_it_was(start, tmp_path):
    path = tmp_path / "replaced"
    path.write_bytes(b"old\n" * (1 << 18))
    reader, writer = os.pipe()
    command = start("sh", "-c", "head -n 1 replaced; read go; tail -n 1 replaced", stdin=reader, close=[writer], folder=tmp_path)
    command.read(b"old\n")
    (tmp_path / "new").write_bytes(b"new\n" * (1 << 18))
    os.rename(tmp_path / "new", path)
    os.write(writer, b"go\n")
    os.close(writer)
    assert command.end() == (0, "old\n", "")


def test_what_is_no_file_has_its_kind_and_nobody_waits_for_it(run, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(str(tmp_path / "socket"))
        (tmp_path / "nowhere").symlink_to("/no/such/file")
        os.mknod(tmp_path / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        script = "stat -c '%F' fifo socket nowhere null; find . -type f; cat null; echo x > null"
        status, out, err = run("sh", "-c", script, folder=tmp_path)
    assert (status, err) == (0, "")
    assert out.splitlines() == ["fifo", "socket", "symbolic link", "character special file"]


def test_a_sparse_file_of_any_size_is_read_where_it_has_data(run, tmp_path):
    """A terabyte. How long its index is depends on what lies behind it, and the chunk with data takes up to a GiB of addresses."""
    with open(tmp_path / "sparse", "wb") as f:
        f.truncate(1 << 40)
        f.seek(1 << 39)
        f.write(b"middle")
    script = f"stat -c %s sparse; head -c 2 sparse | od -An -tx1; tail -c 2 sparse | od -An -tx1; tail -c +{(1 << 39) + 1} sparse | head -c 6"
    status, out, err = run("sh", "-c", script, folder=tmp_path)
    assert out.splitlines() == [str(1 << 40), " 00 00", " 00 00", "middle"], err


def test_attributes_of_files_and_the_rights_that_they_give_are_seen(run, tmp_path):
    shutil.copy("/bin/grep", tmp_path / "able")
    os.chmod(tmp_path / "able", 0o755)
    # Version 2, effective; permitted: bit 13, CAP_NET_RAW.
    os.setxattr(tmp_path / "able", "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
    os.setxattr(tmp_path / "able", "user.note", b"x" * 100)
    tmp_path.chmod(0o755)
    show = "import os; print(os.listxattr('able'), os.getxattr('able', 'user.note') == b'x' * 100)"
    status, out, err = run("sh", "-c", f'/usr/bin/python3 -c "{show}"; exec setpriv --reuid 65534 ./able CapEff /proc/self/status', folder=tmp_path)
    lines = out.splitlines()
    assert sorted(eval(lines[0].rpartition(" ")[0])) == ["security.capability", "user.note"] and lines[0].endswith(" True"), err
    assert int(lines[1].split()[1], 16) & 1 << 13


def test_a_folder_of_many_files_takes_few_addresses(run, tmp_path):
    """Of so many, inodes share pages: a page for each would be more than there are."""
    for n in range(200):
        (tmp_path / f"f{n:06}").write_text(str(n))
    for n in range(200, 150000):
        os.link(tmp_path / f"f{n % 5:06}", tmp_path / f"f{n:06}") if n % 5 else (tmp_path / f"f{n:06}").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").write_text("within\n")
    (tmp_path / "link").symlink_to("folder/x")
    script = "ls -f | wc -l; cat f000007 f149999 link; readlink link; stat -c %s f000200; echo more >> f000007; cat f000007"
    status, out, err = run("sh", "-c", script, folder=tmp_path)
    assert out == "150004\n74within\nfolder/x\n0\n7more\n", err


@pytest.fixture
def mount(tmp_path):
    """A file system whose server stops to answer when told, with one file."""
    (tmp_path / "served").write_text("served\n" * 9999)
    (tmp_path / "near").write_text("near\n")
    mount = stalling.Mount(tmp_path / "mount", tmp_path / "served")
    yield mount
    mount.kill()
    mount.unmount()


def test_files_of_a_server_are_read_and_one_that_does_not_answer_holds_nothing_up(run, mount, tmp_path):
    assert run("sh", "-c", "tail -n 1 mount/served && cat near", folder=tmp_path) == (0, "served\nnear\n", "")
    mount.stall("open")
    status, out, err = run("sh", "-c", "cat mount/served mount/served; cat near", folder=tmp_path)
    assert (status, out) == (0, "near\n")
    assert err.count("mount/served: the file system's server does not answer; the machine sees nothing of it") == 1
    mount.stall("none")


@pytest.mark.parametrize("end, said", [("halt -f", "all its processors are, with interrupts off"), ("poweroff -f", "Power down"),
                                       ("reboot -f", "the machine was restarted")])
def test_a_machine_that_stops_ends_and_says_so(run, end, said):
    status, _, err = run("busybox", *end.split(), user="root")
    assert status == 125 and said in err and "bootable" not in err


def test_root_of_the_machine_changes_nothing_here(run, tmp_path):
    """Not by the files' own device either: its pages are copies."""
    (tmp_path / "kept").write_text("kept\n")
    script = f"""
        echo changed > kept; mount -o remount,rw /; mknod disk b 254 0; echo x > disk
        dd if=/dev/zero of=/dev/pmem0 bs=4096 count=4000 conv=notrunc; sync; rm -rf {tmp_path}; mkdir {tmp_path}; ls -A {tmp_path}; echo done"""
    status, out, _ = run("sh", "-c", script, user="root", folder=tmp_path)
    assert (status, out) == (0, "done\n")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("kept", "kept\n")]


def test_dates_of_files_and_of_the_clock_move_no_count(run, tmp_path):
    """Of the user's instructions."""
    (tmp_path / "data").write_bytes(bytes(20000))
    shutil.copy("/usr/bin/sha256sum", tmp_path / "prog")

    def count(**options):
        err = run("perf", "stat", "-x,", "-e", "instructions:u", "./prog", "data", folder=tmp_path, user="root", **options)[2]
        return int(err.split(",")[0])

    before = count()
    assert before > 1000000
    os.utime(tmp_path / "data", ns=(0, 999_999_999))
    os.utime(tmp_path / "prog", ns=(0, 1600000000_000_000_000))
    assert count() == before
    assert count(surroundings=here.Surroundings(clock=1700000000)) == before


def test_what_others_make_beside_a_commands_files_moves_no_count(run):
    """Neither the user's nor the kernel's: what is beside them has no part in where they are and in how they are found. Not
    in /tmp, where there may be more names than fit into a block of a folder."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as top:
        folder = pathlib.Path(top) / "near"
        folder.mkdir()
        shutil.copy("/usr/bin/sort", folder / "prog")
        (folder / "data").write_text("".join(f"{n * 7919 % 10007}\n" for n in range(2000)))

        def count():
            events = "instructions:u,cycles:u,r010b:u,r01cb:u,instructions:k,cycles:k"
            return run("perf", "stat", "-x,", "-e", events, "./prog", "data", folder=folder, user="root")[2]

        before = count()
        assert len(before.splitlines()) == 6 and int(before.split(",")[0]) > 1000000
        for place in (folder, folder.parent):
            for n in range(40):
                (place / f"a{n}").write_text("other")
                (place / f"z{n}").mkdir()
            assert count() == before


def test_the_inode_of_a_file_stays_when_others_make_many_beside_it(run, tmp_path):
    """Caches of the guest's kernel depend on it. The working folder is read before those of the libraries."""
    folder = tmp_path / "near"
    folder.mkdir()
    (folder / "data").touch()

    def numbers():
        script = "stat -c '%i %n' data ..; ls -i /usr/lib/x86_64-linux-gnu /etc"
        return set(run("sh", "-c", script, "data", folder=folder)[1].splitlines())

    before = numbers()
    assert len(before) > 500
    for place in (folder, tmp_path):
        for n in range(1500):
            (place / f"a{n}").touch()
    assert not before ^ numbers()


# -------------------------------------------------------------- streams


def test_output_and_errors_come_apart_and_the_status_is_the_commands(run):
    assert run("sh", "-c", "echo one; echo two >&2; exit 7") == (7, "one\n", "two\n")


def test_output_and_errors_of_one_file_keep_their_order(run):
    script = "for n in 1 2 3 4 5; do echo out $n; echo err $n >&2; done"
    status, out, err = run("sh", "-c", script, merged=True)
    assert out == "".join(f"out {n}\nerr {n}\n" for n in range(1, 6))
    assert (status, err) == (0, "")


def test_a_note_of_the_machine_cuts_no_line_of_the_commands(run):
    """On a pipe of the errors alone, and where output and errors are one file. The events are not modelled."""
    script = ("printf 'one ' >&2; perf stat -o /dev/null -e r01ae:u true; echo line >&2; echo next >&2;"
              "printf 'without an end' >&2; perf stat -o /dev/null -e r03a2:u true")
    first = "machine: event 0xae umask 0x01 (ITLB_FLUSH) is not modelled: it counts 0"
    second = "machine: event 0xa2 umask 0x03 (RESOURCE_STALLS.LOAD) is not modelled but for umask 0x01: it counts only that"
    for merged in False, True:
        status, out, err = run("sh", "-c", script, user="root", merged=merged)
        lines = (out if merged else err).splitlines()
        assert (status, sorted(lines)) == (0, sorted([first, "one line", "next", "without an end", second]))
        assert lines.index("one line") < lines.index(first) < lines.index(second) == 4


@pytest.mark.parametrize("command, status", [(("/nowhere/x",), 127), (("/etc/passwd",), 126)])
def test_what_cannot_be_executed_has_a_shells_status(run, command, status):
    ended = run(*command)
    assert ended[0] == status and command[0] in ended[2]


def test_a_program_is_the_one_that_the_path_of_here_finds(run, tmp_path, monkeypatch):
    folders = [tmp_path / name for name in ("no_program", "a_folder", "right", "late")]
    for folder in folders:
        folder.mkdir()
    (folders[0] / "named").write_text("echo wrong\n")
    (folders[1] / "named").mkdir()
    for folder, text in zip(folders[2:], ("echo right $*\n", "echo late\n")):  # without #!, which a shell then takes
        (folder / "named").write_text(text)
        (folder / "named").chmod(0o755)
    monkeypatch.setenv("PATH", ":".join(map(str, folders)) + ":/usr/bin:/bin")
    assert here.place_of_program("named") == f"{folders[2]}/named"
    assert run("named", "one", "two") == (0, "right one two\n", "")
    assert run("nowhere", "one")[0] == 127


def test_a_servers_file_system_that_is_mounted_meanwhile_moves_no_count(run, tmp_path, monkeypatch):
    """Then the host's paths are looked up by a process that may be given up. They are the same."""
    def count():
        return run("perf", "stat", "-x,", "-e", "instructions:u,instructions:k", "true", folder=tmp_path)[2]

    before = count(), here.place_of_program("sh"), here.likely_paths(["sh"])
    monkeypatch.setattr(here, "has_foreign_mounts", lambda: True)
    assert (count(), here.place_of_program("sh"), here.likely_paths(["sh"])) == before and before[1]


@pytest.mark.parametrize("path", ["/nowhere", "/proc/self:/bin", "/dev/shm:/bin"])
def test_a_program_is_left_to_the_guest_where_its_files_are_others(path, monkeypatch):
    monkeypatch.setenv("PATH", path)
    assert here.place_of_program("sh") == here.place_of_program("/bin/sh") == ""


# A function in each of a page's parts, which jumps to one in the next part; what it returns is changed, and called again.
CHANGING = """
import ctypes, mmap
STEP, CODE = 61, 4096 * 2
page = mmap.mmap(-1, CODE, prot=7)
at = ctypes.addressof(ctypes.c_char.from_buffer(page))
places = range(0, CODE - 64, STEP)
call = {place: ctypes.CFUNCTYPE(ctypes.c_int)(at + place) for place in places}

def put(place, value):
    page[place:place + 6] = bytes((0xb8, *value.to_bytes(4, "little"), 0xc3))  # mov value, %eax; ret
    page[place + 8:place + 13] = bytes((0xe9, *(STEP - 13).to_bytes(4, "little")))  # jmp to the next one

for value in range(5):
    for place in places:
        put(place, value * 10000 + place)
        jump = ctypes.CFUNCTYPE(ctypes.c_int)(at + place + 8)
        assert call[place]() == value * 10000 + place
        if value and place + STEP in call:
            assert jump() == (value - 1) * 10000 + place + STEP
print("as it is")
"""


def test_code_that_changes_is_executed_as_it_is_now(run):
    assert run("/usr/bin/python3", "-c", CHANGING) == (0, "as it is\n", "")


@pytest.mark.parametrize("size", [0, 5, 70000, 1 << 20])
def test_a_pipe_is_read_to_its_end(start, size):
    reader, writer = os.pipe()
    command = start("wc", "-c", stdin=reader, close=[writer])
    os.close(reader)
    with open(writer, "wb") as f:
        f.write(b"x" * size)
    assert command.end()[1].strip() == str(size)


def test_a_file_is_read_from_where_it_stands(run, tmp_path):
    (tmp_path / "f").write_bytes(b"0123456789")
    fd = os.open(tmp_path / "f", os.O_RDONLY)
    os.lseek(fd, 4, os.SEEK_SET)
    assert run("sh", "-c", "cat; test -f /dev/stdin", stdin=fd) == (0, "456789", "")


def test_an_answer_can_depend_on_the_output(start):
    reader, writer = os.pipe()
    command = start("sh", "-c", "echo name?; read name; echo hello $name", stdin=reader, close=[writer])
    assert command.read(b"name?\n") == b"name?\n"
    os.write(writer, b"you\n")
    assert command.end()[1] == "hello you\n"
    os.close(writer)


def test_a_command_whose_output_nobody_reads_ends(start):
    command = start("sh", "-c", "yes; echo $? >&2")
    command.read(b"y\n")
    os.close(command.out)
    command.out = os.open("/dev/null", os.O_RDONLY)
    status, _, err = command.end()
    assert status == 0 and err.splitlines()[-1] == "141"  # SIGPIPE


# -------------------------------------------------------------- surroundings


def test_output_that_cannot_be_written_here_is_told():
    """/dev/full takes nothing."""
    script = f"exec {shlex.quote(sys.executable)} {shlex.quote(RUN)} --here -- echo lost > /dev/full"
    result = subprocess.run(["sh", "-c", script], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert (result.returncode, result.stderr) == (125, "run: standard output cannot be written here; what the command wrote to it is not complete\n")


def test_a_working_folder_that_is_gone_is_told(tmp_path):
    script = f"rmdir ../gone; exec {shlex.quote(sys.executable)} {shlex.quote(RUN)} --here -- pwd"
    (tmp_path / "gone").mkdir()
    result = subprocess.run(["sh", "-c", script], cwd=tmp_path / "gone", capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (125, "run: the working folder cannot be named: No such file or directory; change to one that is there\n")


def test_a_command_has_no_descriptors_but_its_streams(start, tmp_path):
    """ls has one for the folder."""
    (tmp_path / "input").write_text("")
    for stdin in (os.open("/dev/null", os.O_RDONLY), os.open(tmp_path / "input", os.O_RDONLY)):
        assert start("ls", "/proc/self/fd", stdin=stdin).end() == (0, "0\n1\n2\n3\n", "")


def test_folder_environment_user_and_mask_are_those_of_here(run, tmp_path):
    script = "pwd; id; umask; echo $ONE"
    expected = subprocess.run(script, shell=True, cwd=tmp_path, env=dict(os.environ, ONE="a b"), capture_output=True, text=True)
    assert run("sh", "-c", script, folder=tmp_path, env={"ONE": "a b"})[1] == expected.stdout


def test_the_clock_can_be_set(run):
    set_to = here.Surroundings(clock=4102444800)
    assert run("date", "-u", "+%Y", surroundings=set_to)[1] == "2100\n"


VARIES = "cat /proc/sys/kernel/random/uuid; echo $$; grep stack /proc/self/maps"


def test_numbers_vary_what_is_the_same_in_all_other_runs(run):
    """There are no random addresses in these: the stack ends where the address space does."""
    usual, again, one, one_again, other = (
        run("sh", "-c", VARIES, surroundings=here.Surroundings(number=n))[1].splitlines() for n in (None, None, 1, 1, 2))
    assert usual == again and one == one_again
    assert "-7ffffffff000 " in usual[2]
    assert all(len(set(line)) == 3 for line in zip(usual, one, other))


def test_what_the_guest_cannot_reach_is_not_named_to_it(run):
    assert run("sh", "-c", 'echo "$SSH_AUTH_SOCK|$DISPLAY"', env={"SSH_AUTH_SOCK": "/run/x", "DISPLAY": ":0"})[1] == "|\n"


def test_what_nhmtap_tells_the_driver_is_not_told_to_the_command(run):
    said = [run("sh", "-c", 'echo "$NHM_BUILD|$NHM_BUILD_FOUND"', env={"NHM_BUILD": "/b", **found})[1]
            for found in ({"NHM_BUILD_FOUND": "1"}, {})]
    assert said == ["|\n", "/b|\n"]


def test_a_variable_that_python_adds_is_not_the_callers():
    """In the C locale it sets LC_CTYPE (PEP 538), which programs read. A caller's own one stays."""
    said = [subprocess.run([sys.executable, "-ES", "-c", "import here; print(here.environment(None, ()))"], env=env, cwd=nehalem.HERE,
                           capture_output=True, text=True, check=True).stdout for env in ({}, {"LC_CTYPE": "C.UTF-8"})]
    assert said == ["[]\n", "['LC_CTYPE=C.UTF-8']\n"]


def test_perf_works_without_the_kernels_symbols(run):
    script = "wc -l < /proc/kallsyms; cd $(mktemp -d); perf record -q -o d true; perf script -i d -F comm | sort -u"
    status, out, err = run("sh", "-c", script, user="root", surroundings=here.Surroundings(few_symbols=True))
    assert (status, out.split()) == (0, ["2", "true"]), err


# Stops a program at its first instruction, and writes there as a debugger does for a breakpoint.
BREAKPOINT = """
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
	unsigned long word[2] = {0}, entry, before, at;
	pid_t pid = fork();
	FILE *auxv;
	char path[64];

	if (!pid)
		return ptrace(PTRACE_TRACEME, 0, 0, 0) || execl("/bin/true", "true", NULL);
	waitpid(pid, NULL, 0);
	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	for (auxv = fopen(path, "r"); word[0] != AT_ENTRY;)
		if (fread(word, sizeof(word), 1, auxv) != 1)
			return 1;
	at = (entry = word[1]) ^ 0x800; /* elsewhere in the page */
	before = ptrace(PTRACE_PEEKTEXT, pid, at, 0);
	ptrace(PTRACE_POKETEXT, pid, entry, ptrace(PTRACE_PEEKTEXT, pid, entry, 0) ^ 1);
	puts(ptrace(PTRACE_PEEKTEXT, pid, at, 0) == before ? "as it was" : "lost");
	ptrace(PTRACE_KILL, pid, 0, 0);
	return 0;
}"""


def test_a_breakpoint_leaves_the_rest_of_its_page_as_it_was_where_debuggers_are_expected(run, tmp_path):
    subprocess.run(["gcc", "-x", "c", "-o", tmp_path / "debugger", "-"], input=BREAKPOINT, text=True, check=True)
    assert run(str(tmp_path / "debugger"), surroundings=here.Surroundings(breakpoints=True)) == (0, "as it was\n", "")


UPROBE = """
tracing=/sys/kernel/tracing
echo "p:called {}:{}" > $tracing/uprobe_events
echo 1 > $tracing/events/uprobes/called/enable
{} 1 2 3
awk '{{print $2, $3}}' $tracing/uprobe_profile
"""


def test_a_uprobe_counts_the_calls_in_a_program_of_the_hosts_where_it_is_expected(run, tmp_path):
    program = tmp_path / "calls"
    text = "int called(int n) { return n; }\nint main(int n, char **words) { while (n--) called(n); return 0; }\n"
    subprocess.run(["gcc", "-static", "-x", "c", "-o", program, "-"], input=text, text=True, check=True)
    address = int(subprocess.run(f"nm {program} | grep ' called$'", shell=True, capture_output=True, text=True, check=True).stdout.split()[0], 16)
    script = UPROBE.format(program, hex(address - 0x400000), program)
    assert run("sh", "-c", script, user="root", surroundings=here.Surroundings(breakpoints=True)) == (0, "called 4\n", "")


def test_what_sets_breakpoints_is_known_by_its_name():
    words = {"gdb": True, "/usr/bin/gdb": True, "gdb-multiarch": True, "lldb-14": True, "/usr/sbin/funccount-bpfcc": True, "./gdb.py": False,
             "my-gdb": False, "gdbm": False}
    assert {word: here.sets_breakpoints(word) for word in words} == words


@pytest.mark.parametrize("kind", [{"kernel": "6.12", "cores": 2}, {"model": "netburst"}], ids=["6.12", "netburst"])
def test_other_machines_see_the_hosts_files_too(kind):
    with nehalem.Guest(nehalem.Machine(tree=1024, **kind)) as guest:
        status, out, err = Command(guest, "/usr/bin/python3", "-c", "print(open('/etc/passwd').read())").end()
    assert (status, err) == (0, "")
    assert out == pathlib.Path("/etc/passwd").read_text() + "\n"


@pytest.mark.parametrize("first", ["crc32c_generic", None])
def test_modules_are_loaded_after_those_that_they_need_and_none_that_is_not_there(tmp_path, first):
    """Linux 7.3 has no crc32c_generic."""
    for name, needs in {"erofs": "libcrc32c,netfs", "libcrc32c": "", "aaa": "erofs", **({first: ""} if first else {})}.items():
        (tmp_path / f"{name}.ko").write_bytes(b"\0name=x\0depends=" + needs.encode() + b"\0")
    assert nehalem.in_order(tmp_path) == [*([first] if first else []), "libcrc32c", "erofs", "aaa"]


def test_a_kernel_without_modules_is_refused(tmp_path):
    kernel = nehalem.build_folder() + "/kernel/6.1/vmlinuz"
    with pytest.raises(nehalem.NoKernel, match="needs its modules; take one of 6.1"):
        nehalem.Guest(nehalem.Machine(tree=1024, kernel=kernel))


def test_the_kernel_is_the_guests(run):
    status, out, _ = run("sh", "-c", "grep -m1 'model name' /proc/cpuinfo; ls /sys/bus/event_source/devices")
    assert status == 0 and "cpu\n" in out


# -------------------------------------------------------------- signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2])
def test_a_signal_reaches_the_command(start, number):
    command = start("sh", "-c", f"trap 'echo taken; exit 5' {int(number)}; echo ready; while :; do sleep 0.1; done")
    command.read(b"ready\n")
    command.kill(number)
    status, out, _ = command.end()
    assert (status, out) == (5, "taken\n")


def test_a_signal_that_ends_the_command_is_in_its_status(start):
    command = start("sh", "-c", "echo ready; exec sleep 1000000")
    command.read(b"ready\n")
    command.kill(signal.SIGTERM)
    assert command.end()[0] == 128 + signal.SIGTERM


@pytest.fixture
def ignoring():
    """Ignores a signal here, as nohup(1) does, and a shell for what it runs in the background."""
    before = {}

    def ignored(number):
        before[number] = signal.signal(number, signal.SIG_IGN)

    yield ignored
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_that_is_ignored_here_is_ignored_by_the_command(start, ignoring, number):
    ignoring(number)
    command = start("sh", "-c", f"kill -{int(number)} $$; echo ready; sleep 0.3; echo done")
    command.read(b"ready\n")
    command.kill(number)
    assert command.end()[:2] == (0, "done\n")


def test_a_signal_that_is_ignored_here_does_not_end_a_machine_that_boots(ignoring):
    numbers = signal.SIGHUP, signal.SIGINT, signal.SIGTERM
    for number in numbers:
        ignoring(number)
    nehalem.clean_up_on_signals()
    assert [signal.getsignal(number) for number in numbers] == [signal.SIG_IGN] * 3


def test_a_signal_reaches_a_command_that_writes_without_a_pause():
    """Its input has an end, so that the machine has no reason to ask for more of it."""
    command = [sys.executable, RUN, "--here", "--", "sh", "-c", "echo ready >&2; exec yes"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr.readline() == "ready\n"
        run.terminate()
        # Else its driver would say that the guest did not take the signal.
        assert (run.stderr.read(), run.wait()) == ("", 128 + signal.SIGTERM)


def test_a_third_signal_ends_a_machine_that_does_not_answer(start):
    command = start("sh", "-c", "trap '' INT; echo ready; while :; do echo; done")
    command.read(b"ready\n")
    # Nobody reads the output, so that the machine soon stands still and takes no signal.
    ended = []

    def has_ended():
        with contextlib.suppress(ProcessLookupError):
            command.kill(signal.SIGINT)
        ended[:] = os.waitpid(command.pid, os.WNOHANG)
        return ended[0]

    wait_for(has_ended, pause=0.3)
    assert os.waitstatus_to_exitcode(ended[1]) == 128 + signal.SIGINT


# -------------------------------------------------------------- a terminal


@pytest.fixture
def terminal(tree):
    def started(*command, **options):
        return OnTerminal(tree, *command, **options)

    return started


def test_a_terminal_is_a_terminal_of_the_same_size_with_what_is_typed(terminal):
    script = "stty size; tty; test -t 0 -a -t 1 -a -t 2 && echo three; echo name?; read name; echo hello $name"
    command = terminal("sh", "-c", script)
    command.read(b"name?\r\n")
    command.type(b"yoo\x7fu\r")
    status, said = command.end()
    assert status == 0
    assert "hello you\r\n" in said
    assert command.is_as_before()


def test_a_terminal_is_resized_while_the_command_runs(terminal):
    command = terminal("sh", "-c", "trap 'stty size; exit 3' WINCH; stty size; while :; do sleep 0.1; done")
    command.read(b"0 0\r\n")
    command.resize(33, 101)
    status, said = command.end()
    assert (status, said) == (3, "33 101\r\n")


def test_control_c_interrupts_the_command_on_a_terminal(terminal):
    command = terminal("sh", "-c", "echo ready; exec sleep 100000")
    command.read(b"ready\r\n")
    assert not command.is_as_before()
    command.type(b"\x03")
    assert command.end() == (128 + signal.SIGINT, "^C")
    assert command.is_as_before()


def test_the_end_of_a_terminals_input_is_seen(terminal):
    command = terminal("sh", "-c", "echo ready; cat; echo end")
    command.read(b"ready\r\n")
    command.type(b"x\r\x04")
    assert command.end() == (0, "x\r\nx\r\nend\r\n")


def test_a_stopped_command_stops_its_caller_and_both_go_on(terminal):
    command = terminal("sh", "-c", "echo ready; read x; echo $x")
    command.read(b"ready\r\n")
    command.type(b"\x1a")
    pid, status = os.waitpid(command.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert command.is_as_before()
    command.kill(signal.SIGCONT)
    command.type(b"on\r")
    status, said = command.end()
    assert status == 0 and said.endswith("on\r\n")


def test_a_caller_that_is_killed_leaves_the_terminal_as_it_was_and_nothing_else(terminal, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = terminal("sh", "-c", "echo ready; exec sleep 100000")
    command.read(b"ready\r\n")
    assert os.listdir(tmp_path)
    command.kill(signal.SIGKILL)
    os.waitpid(command.pid, 0)
    wait_for(command.is_as_before)
    wait_for(lambda: not os.listdir(tmp_path))


# -------------------------------------------------------------- the command line


in_one_worker = pytest.mark.xdist_group("bounded")


@pytest.fixture(scope="module")
def bounded():
    """One boot as an unprivileged user, with few addresses and some mounts. The folder is not
    pytest's, which other runs of pytest close."""
    with tempfile.TemporaryDirectory(prefix="bounded.") as closed:
        os.chmod(closed, 0o711)  # the user may enter it, but not list it
        folder = pathlib.Path(closed) / "open"
        yield folder, run_bounded(folder)


def run_bounded(folder):
    for path in (folder, *(folder / name for name in ("mount", "kernel", "many", "scratch"))):
        path.mkdir(mode=0o755)
    (folder / "secret").write_text("secret")
    os.chmod(folder / "secret", 0o600)
    os.chmod(folder / "scratch", 0o777)
    with open(folder / "huge", "wb") as f:
        for _ in range(80):
            f.write(b"x" * (1 << 20))
    script = """
        id -u; cat mount/inside; ls -A kernel | wc -l; cat fifo; stat -c %F null
        cat secret; stat -c %a secret
        stat -c %s huge; tail -c 5 huge; echo $?
        ls many | wc -l; cat many/9; echo still here"""
    machine = f"{sys.executable} {RUN} --here --tree-range 64 -- sh -c"
    outside = f"""
        cd {folder}; mount -t tmpfs none mount; echo inside > mount/inside; mount -t proc none kernel
        mount -t tmpfs none many; (cd many; seq 9000 | xargs touch)
        mkfifo fifo; echo over it > over; mount --bind over fifo; touch null; mount --bind /dev/null null
        exec setpriv --reuid 65534 --regid 65534 --clear-groups {machine} {shlex.quote(script)}"""
    env = dict(os.environ, TMPDIR=str(folder / "scratch"), HOME="/")
    command = ["unshare", "-m", "sh", "-c", outside]
    result = subprocess.run(command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    # The machine's notes are written whole, but a command that writes its line in parts may have one
    # between them.
    notes = re.findall(r"machine: .*\n", result.stderr)
    said = re.sub(r"machine: .*\n", "", result.stderr)
    return subprocess.CompletedProcess(command, result.returncode, result.stdout, "".join([said, *notes]))


@in_one_worker
def test_a_mount_is_seen_and_the_hosts_kernel_is_not(bounded):
    assert bounded[1].stdout.splitlines()[:3] == ["65534", "inside", "0"]


@in_one_worker
def test_a_file_that_is_mounted_over_one_of_another_kind_is_what_is_seen(bounded):
    """The folder lists the other's kind."""
    assert bounded[1].stdout.splitlines()[3:5] == ["over it", "character special file"]


def test_both_sides_of_the_machine_know_the_same_file_systems():
    source = pathlib.Path(here.__file__).with_name("src") / "nhm/nhm_host.cc"
    names, = re.findall(r"const char \*const foreign\[\] = \{(.*?)\};", source.read_text(), re.S)
    assert re.findall(r'"(\w+)"', names) == [name.decode() for name in here.FOREIGN]


@in_one_worker
def test_what_the_caller_may_not_read_the_guest_may_not_either(bounded):
    _, result = bounded
    assert result.stdout.splitlines()[5] == "600"
    assert "secret: Permission denied" in result.stderr


@in_one_worker
def test_a_file_beyond_the_range_is_named_and_cannot_be_read(bounded):
    folder, result = bounded
    assert result.stdout.splitlines()[6:8] == [str(80 << 20), "1"]
    assert "error reading 'huge': Input/output error" in result.stderr
    assert f"{folder}/huge: does not fit into what is left of the range" in result.stderr


@in_one_worker
def test_a_folder_beyond_the_range_is_named_and_the_machine_goes_on(bounded):
    folder, result = bounded
    assert result.stdout.splitlines()[8:] == ["9000", "still here"]
    assert f"{folder}/many: the range of addresses for the host's files (--tree-range 64) is used up" in result.stderr
    assert "many/9: Permission denied" in result.stderr
    assert (result.returncode, os.listdir(folder / "scratch")) == (0, [])


@in_one_worker
def test_root_of_the_machine_reads_no_more_than_its_caller_may():
    """An input/output error stands for what the guest's root cannot be refused otherwise; also if it is mapped."""
    with tempfile.TemporaryDirectory(prefix="refused.") as folder:
        os.chmod(folder, 0o755)
        for name, size in (("small", 6), ("large", 20 << 20)):
            with open(f"{folder}/{name}", "wb") as f:
                f.write(b"s" * size)
            os.chmod(f"{folder}/{name}", 0o600)
        script = """
            id -u; cat small; echo $?; tail -c 5 large; echo $?; cp small copy; echo $?
            /usr/bin/python3 -c 'import mmap; f = open("small"); print(mmap.mmap(f.fileno(), 0, prot=1)[0])'; echo $?"""
        command = [sys.executable, RUN, "--here", "--no-snapshot", "--user", "root", "--", "sh", "-c", script]
        result = subprocess.run(command, cwd=folder, user=65534, group=65534, extra_groups=[], env=dict(os.environ, HOME="/"),
                                capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert result.stdout.split() == ["0", "1", "1", "1", str(128 + signal.SIGBUS)], result.stderr
        assert "cat: small: Input/output error" in result.stderr
        assert f"{folder}/small: cannot be read on the host (Permission denied); the machine sees an input/output error" in result.stderr


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """One boot by the command line itself, for what remains of it."""
    folder = tmp_path_factory.mktemp("here")
    scratch = folder / "scratch"
    work = folder / "work"
    for path in (scratch, work / "kept", work / "anew", work / "other"):
        path.mkdir(parents=True)
    (work / "kept" / "old").write_text("old")
    (work / "kept" / "gone").write_text("gone")
    (work / "anew" / "old").write_text("old")
    (work / "link").symlink_to(work / "other")
    (work / "target").mkdir()
    (work / "folder").symlink_to("target")
    (work / "file").symlink_to("target/not yet")
    script = """
        echo new > kept/new; rm kept/gone; rm -r anew; mkdir anew; echo y > anew/y
        rm link; mkdir link; echo z > link/z
        echo through > folder/written; echo at its end > file
        echo lost > lost; echo one > one; echo colon > a:b; exit 9"""
    command = [sys.executable, RUN, "--here", "--out", "kept", "--out", "anew", "--out", "link", "--out", "one", "--out", "a:b",
               "--out", "folder", "--out", "file", "--", "sh", "-c", script]  # fmt: skip
    env = dict(os.environ, TMPDIR=str(scratch))
    result = subprocess.run(command, cwd=work, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return work, scratch, result


def test_out_keeps_what_was_written_and_nothing_else(whole):
    work, scratch, result = whole
    assert (result.returncode, result.stderr) == (9, "")
    files = {str(p.relative_to(work)): p.read_text() for p in work.rglob("*") if p.is_file()}
    assert files == {"kept/old": "old", "kept/new": "new\n", "anew/y": "y\n", "link/z": "z\n", "one": "one\n", "a:b": "colon\n",
                     "target/written": "through\n", "target/not yet": "at its end\n", "file": "at its end\n"}
    assert os.listdir(work / "other") == []  # not through the link that was there before
    assert (work / "folder").is_symlink() and (work / "file").is_symlink()
    assert os.listdir(scratch) == []


@pytest.mark.parametrize("before", [False, True])
def test_a_link_leads_no_file_of_out_elsewhere(tmp_path, before):
    """Root of the machine can send what it likes; here a link out of the folder, and a file below it. Or the link is here."""
    kept, elsewhere = tmp_path / "kept", tmp_path / "elsewhere"
    kept.mkdir()
    elsewhere.mkdir()
    link = tarfile.TarInfo(f"layer/upper{kept}/link")
    link.type, link.linkname = tarfile.SYMTYPE, str(elsewhere)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        if before:
            (kept / "link").symlink_to(elsewhere)
        else:
            tar.addfile(link)
        tar.addfile(tarfile.TarInfo(f"layer/upper{kept}/link/file"))
    with pytest.raises(nehalem.Trouble, match="link leads out"):
        here.write_all_back(sending(made), [str(kept)])
    assert not list(elsewhere.iterdir())


def sending(archive):
    """A guest of 3 MiB that sends this."""
    archive.seek(0)
    return types.SimpleNamespace(fetch=lambda *_, **__: tarfile.open(fileobj=archive, mode="r:"), _truncate=lambda _: None,
                                 _request=lambda *_, **__: None, _read=lambda _: b"", machine=nehalem.Machine(memory=3), sent_whole=True)


def no_link(*_, **__):
    raise PermissionError(1, "Operation not permitted")


def test_out_writes_no_more_than_the_machine_can_hold(tmp_path, monkeypatch):
    """A link takes the machine nothing, and as much as what it names on a file system without links."""
    monkeypatch.setattr(os, "link", no_link)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        first = tarfile.TarInfo(f"layer/upper{tmp_path}/file0")
        first.size = 1 << 20
        tar.addfile(first, io.BytesIO(bytes(first.size)))
        for n in range(1, 5):
            link = tarfile.TarInfo(f"layer/upper{tmp_path}/file{n}")
            link.type, link.linkname = tarfile.LNKTYPE, first.name
            tar.addfile(link)
    with pytest.raises(nehalem.Trouble, match=r"/file3: --out writes at most .*\(3 MiB\); the rest of this file, and what follows it, is missing"):
        here.write_all_back(sending(made), [str(tmp_path)])
    assert sorted((p.name, p.stat().st_size) for p in tmp_path.iterdir()) == [*((f"file{n}", 1 << 20) for n in range(3)), ("file3", 0)]


def archive_of(*files):
    """Of empty or zero-filled files, by name and size."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, size in files:
            member = tarfile.TarInfo(f"layer/upper{name}")
            member.size = size
            tar.addfile(member, io.BytesIO(bytes(size)))
    return made


def test_the_folders_of_a_file_of_out_are_made_too(tmp_path):
    here.write_all_back(sending(archive_of((tmp_path / "new/deep/file", 3))), [str(tmp_path / "new/deep/file")])
    assert (tmp_path / "new/deep/file").stat().st_size == 3


def test_a_shared_folder_stays_one(tmp_path):
    """The bits of /tmp, and of folders whose files are a group's, are kept; a file gets no other rights than those of its mode."""
    made = io.BytesIO()
    (tmp_path / "folder").mkdir()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, kind in (("folder", tarfile.DIRTYPE), ("file", tarfile.REGTYPE)):
            member = tarfile.TarInfo(f"layer/upper{tmp_path}/{name}")
            member.type, member.mode = kind, 0o7755
            tar.addfile(member)
    here.write_all_back(sending(made), [str(tmp_path)])
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("folder", "file")] == [0o3755, 0o755]


def test_the_room_is_for_all_of_out_together(tmp_path):
    guests = {str(tmp_path / name): sending(archive_of((tmp_path / name, 2 << 20))) for name in ("one", "two")}
    guest = sending(io.BytesIO())
    guest.fetch = lambda path, what: guests[path.removeprefix("/layer/upper")].fetch()
    with pytest.raises(nehalem.Trouble, match=r"/two: --out writes at most .*\(3 MiB\)"):
        here.write_all_back(guest, list(guests))
    assert (tmp_path / "one").stat().st_size == 2 << 20


def test_a_path_that_is_missing_keeps_no_other_one_from_being_written(tmp_path):
    guest = sending(io.BytesIO())
    archives = {f"/layer/upper{tmp_path}/there": tarfile.open(fileobj=io.BytesIO(archive_of((tmp_path / "there", 5)).getvalue()))}
    guest.fetch = lambda path, what: archives.get(path)
    with pytest.raises(nehalem.MissingFile, match="(?s)/first: the command left no such file.*/last: the command left no such file"):
        here.write_all_back(guest, [str(tmp_path / name) for name in ("first", "there", "last")])
    assert (tmp_path / "there").stat().st_size == 5


def test_a_signal_while_files_are_brought_back_is_told_with_what_is_missing(tmp_path):
    guest = sending(io.BytesIO())
    guest.fetch = lambda *_, **__: nehalem.die_with(signal.SIGTERM, None)
    with pytest.raises(here.Ended, match="SIGTERM: --out one was not written to its end; what follows it is missing") as ended:
        here.write_all_back(guest, ["one", "two"])
    assert ended.value.status == 128 + signal.SIGTERM


def test_a_file_that_cannot_be_written_here_is_named_with_the_reason(tmp_path):
    name = "n" * 300  # longer than file systems take
    with pytest.raises(nehalem.Trouble, match=f"/{name} cannot be written here .File name too long.; the rest is missing"):
        here.write_all_back(sending(archive_of((tmp_path / name, 1))), [str(tmp_path)])


def test_files_of_the_kernel_are_not_brought_back(tmp_path):
    """They would be written into the host's."""
    (tmp_path / "link").symlink_to("/proc/sys")
    (tmp_path / "itself").symlink_to("/proc/sys/kernel/hostname")
    for path in ("/sys", "/proc/sys/kernel/hostname", tmp_path / "link/kernel/hostname"):
        result = subprocess.run([sys.executable, RUN, "--here", "--out", path, "--", "true"], capture_output=True, text=True)
        assert (result.returncode, result.stdout) == (120, "") and "files of the kernel are not brought back" in result.stderr
    guest = sending(io.BytesIO())
    guest.fetch = lambda *_, **__: None
    with pytest.raises(nehalem.BadRequest, match="--out /proc/sys/kernel/hostname: files of the kernel are not brought back"):
        here.write_all_back(guest, [str(tmp_path / "itself")])


def test_what_the_guest_cannot_read_is_said_and_the_rest_is_brought_back(tmp_path):
    guest = sending(archive_of((tmp_path / "there", 5)))
    guest.sent_whole = False
    with pytest.raises(nehalem.Trouble, match=f"--out {tmp_path}: what could not be read in the guest is missing"):
        here.write_all_back(guest, [str(tmp_path)])
    assert (tmp_path / "there").stat().st_size == 5


def test_the_guests_part_names_a_file_that_it_cannot_read_and_sends_the_others():
    """It runs here as well as there."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for name, mode in (("closed", 0), ("open", 0o644)):
            with open(f"{folder}/{name}", "wb") as f:
                f.write(b"content")
            os.chmod(f"{folder}/{name}", mode)
        sent = subprocess.run([nehalem.build_folder() + "/here", "send", folder.lstrip("/")], capture_output=True, user=65534, group=65534,
                              extra_groups=[])
        assert (sent.returncode, sent.stderr.decode()) == (1, f"run: the guest: {folder}/closed: Permission denied\n")
        with tarfile.open(fileobj=io.BytesIO(sent.stdout)) as tar:
            assert [os.path.basename(member.name) for member in tar if member.isreg()] == ["open"]


def test_a_driver_and_a_guest_of_different_versions_say_so(tree, tmp_path, monkeypatch):
    """Each of the two may be the older one."""
    shutil.copy(nehalem.build_folder() + "/here", tmp_path)
    nehalem.check_form(str(tmp_path / "here"))
    content = (tmp_path / "here").read_bytes()
    (tmp_path / "here").write_bytes(content.replace(nehalem.ORDER, b"order 0\0"))
    with pytest.raises(nehalem.NotBuilt, match="here is of another version than this driver; `make machine` builds it"):
        nehalem.check_form(str(tmp_path / "here"))
    monkeypatch.setattr(nehalem, "ORDER", b"order 0\0")
    status, out, err = Command(tree, "true").end()
    assert (status, out) == (125, "") and err.startswith("run: the guest: its driver is of another version than the machine")


def test_a_working_folder_that_the_machine_lacks_is_told_as_a_failure_of_the_machine(run):
    """Its /dev is its own. Lines of failures begin alike."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        own = "No such file or directory; /proc, /sys, /dev and /run are the machine's own\n"
        assert run("true", folder=folder) == (125, "", f"run: the guest: {folder}: {own}")
        shutil.copy("/bin/true", folder)
        assert run(f"{folder}/true") == (127, "", f"{folder}/true: {own}")
    assert run("/nowhere/true") == (127, "", "/nowhere/true: No such file or directory\n")


@pytest.mark.parametrize("number", ["abc", "-1", "4294967296", "1.5"])
def test_a_wrong_number_of_the_environment_is_named_as_that(number):
    done = subprocess.run([sys.executable, RUN, "--here", "--", "true"], env=dict(os.environ, NHM_VARY=number), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (120, f"run: NHM_VARY={number}: a whole number from 0 to 4294967295 wanted; or unset it\n")


def test_out_keeps_holes_links_and_names_of_any_length(tmp_path):
    """The files with holes are larger than the machine's memory. What a file has is found by reading it here."""
    long = "/".join("n" * 60 for _ in range(4))
    script = f"""
        mkdir -p kept/{long}; cd kept; truncate -s 5G ends; echo x > both; echo y | dd of=both bs=1 seek=3G 2> /dev/null
        truncate -s 6G both; ln both other; ln -s {long}/{long} link; echo z > {long}/file; ln {long}/file {long}/again
        head -c 100000 /dev/urandom > plain; chmod 640 plain; sha256sum plain; touch empty; mkfifo fifo"""
    result = subprocess.run([sys.executable, RUN, "--here", "--out", "kept", "--", "sh", "-c", script], cwd=tmp_path,
                            capture_output=True, text=True, stdin=subprocess.DEVNULL)
    kept = tmp_path / "kept"
    assert (result.returncode, result.stderr) == (0, f"machine: --out {kept}/fifo: it is a FIFO or a device, and stays in the machine\n")
    sizes = {p.name: p.stat().st_size for p in kept.iterdir() if p.is_file()}
    assert sizes == {"ends": 5 << 30, "both": 6 << 30, "other": 6 << 30, "plain": 100000, "empty": 0}
    for name in ("both", "other"):
        with open(kept / name, "rb") as f:
            assert f.read(5) == b"x\n\0\0\0" and f.seek(3 << 30) and f.read(3) == b"y\n\0"
    assert sum(p.lstat().st_blocks for p in kept.rglob("*")) * 512 < 1 << 20
    assert os.readlink(kept / "link") == f"{long}/{long}"
    assert [(kept / long / name).read_text() for name in ("file", "again")] == ["z\n"] * 2
    assert (kept / "plain").stat().st_mode & 0o777 == 0o640
    assert result.stdout.split()[0] == hashlib.sha256((kept / "plain").read_bytes()).hexdigest()


CHANGES = r"""
    rm dangling; rm -r old; mkdir old; echo new > old/x; ln old/x old/y; ln -s x old/z; chmod 640 old/x
    mkdir -p e/f/g; echo hi > e/f/g/h; chmod 700 e/f; chmod 2755 e/f/g; chmod 1777 e
    mv 'with space' moved; echo more >> 'new
line'; rm "$(printf '\377bad')"; echo x > "$(printf '\376x')"
    truncate -s 1G hole; echo end >> hole; rm sparse; truncate -s 10 sparse; rm fifo; echo a file now > fifo
    ln -s /etc/passwd abs; mkdir other; ln -sfn other loop; echo alone > pair.new; mv pair.new pair
    chown 12:34 moved; touch -h -d '2001-02-03 04:05:06.123456789' moved abs e/f
    chmod 755 locked; echo new > locked/new; chmod 400 locked/new; chmod 500 locked
"""


def make_tree(folder):
    folder.mkdir()
    for name in ("old", "locked"):
        (folder / name).mkdir()
    for name in ("old/a", "with space", "new\nline", os.fsdecode(b"\377bad"), "pair"):
        (folder / name).write_text(f"{name}\n", errors="surrogateescape")
    os.link(folder / "old/a", folder / "old/b")
    os.link(folder / "pair", folder / "twin")
    os.truncate(os.open(folder / "sparse", os.O_CREAT | os.O_WRONLY), 5 << 30)
    os.mkfifo(folder / "fifo")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "loop").symlink_to(".")
    (folder / "locked").chmod(0o500)


def described(folder):
    """What is in it, with the dates that are set to the past."""
    for path in sorted(folder.rglob("*")):
        s = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() and s.st_size < 1 << 20 else None
        size = s.st_size if path.is_file() else None
        yield (str(path.relative_to(folder)), oct(s.st_mode), s.st_uid, s.st_gid, s.st_nlink, size, content,
               s.st_mtime_ns if s.st_mtime < 1e9 else None)  # fmt: skip


def test_out_leaves_the_tree_that_the_command_leaves_if_it_runs_here(tmp_path):
    for name in ("here", "there"):
        make_tree(tmp_path / name)
    subprocess.run(["/bin/sh", "-ec", CHANGES], cwd=tmp_path / "here", check=True)
    began = time.time()
    done = subprocess.run([sys.executable, RUN, "--here", "--out", ".", "--", "/bin/sh", "-ec", CHANGES], cwd=tmp_path / "there",
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(described(tmp_path / "there")) == list(described(tmp_path / "here"))
    assert began <= (tmp_path / "there/old/x").stat().st_mtime <= time.time()
    assert (tmp_path / "there/hole").stat().st_blocks < 1000


def test_out_writes_what_an_ordinary_user_may_write(tmp_path):
    """In a folder of others like /tmp: its files that he may write to stay theirs, a file of several names becomes one of
    its own, and one that he may only replace is replaced."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o1777)
        (folder / "shared").write_text("old")
        (folder / "shared").chmod(0o666)
        (folder / "one").write_text("old")
        (folder / "one").chmod(0o444)
        os.link(folder / "one", folder / "two")
        (folder / "locked").mkdir(0o555)
        for own in ("one", "locked"):
            os.chown(folder / own, 65534, 65534)
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as tar:
            for path, mode, kind in (("", 0o1777, tarfile.DIRTYPE), ("/shared", 0o666, tarfile.REGTYPE), ("/one", 0o444, tarfile.REGTYPE),
                                     ("/locked", 0o555, tarfile.DIRTYPE), ("/locked/new", 0o400, tarfile.REGTYPE)):  # fmt: skip
                member = tarfile.TarInfo(f"layer/upper{folder}{path}")
                member.mode, member.type, member.size = mode, kind, 3 if kind == tarfile.REGTYPE else 0
                tar.addfile(member, io.BytesIO(b"new"))
        pid = os.fork()
        if not pid:
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                here.write_all_back(sending(made), [str(folder)])
                os._exit(0)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        assert [(folder / n).read_text() for n in ("shared", "one", "two", "locked/new")] == ["new", "new", "old", "new"]
        modes = {n: (folder / n).stat() for n in (".", "shared", "one", "locked", "locked/new")}
        assert {n: (oct(s.st_mode & 0o7777), s.st_uid) for n, s in modes.items()} == {
            ".": ("0o1777", 0), "shared": ("0o666", 0), "one": ("0o444", 65534), "locked": ("0o555", 65534),
            "locked/new": ("0o400", 65534)}  # fmt: skip


def test_dates_by_the_guests_clock_become_those_of_here():
    """A second later than the run's beginning is that here too, but nothing is later than now. What the guest's clock did not
    give stays: a date that was set, or that the file had."""
    dates = here.Dates(1_800_000_000 * 10**9, 1_893_456_000 * 10**9)
    dates.now = 1_800_000_005 * 10**9
    for there, expected in (("1893456001.25", 1_800_000_001_250_000_000), ("1893456009", dates.now), ("981173106.123456789", 981173106123456789)):
        member = tarfile.TarInfo("x")
        member.pax_headers = {"mtime": there}
        assert dates.translated(member) == expected


def test_a_link_of_the_archive_is_to_no_file_elsewhere(tmp_path):
    """The folder of what it is to is a link that leads out by then."""
    out, secret = tmp_path / "out", tmp_path / "elsewhere/file"
    for folder in (out, secret.parent):
        folder.mkdir()
    secret.write_text("secret")
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, kind, target in (("d", tarfile.DIRTYPE, ""), ("d/file", tarfile.REGTYPE, ""), ("d", tarfile.SYMTYPE, str(secret.parent)),
                                   ("x", tarfile.LNKTYPE, f"layer/upper{out}/d/file"), ("x", tarfile.REGTYPE, "")):  # fmt: skip
            member = tarfile.TarInfo(f"layer/upper{out}/{name}")
            member.type, member.linkname = kind, target
            tar.addfile(member)
    with pytest.raises(nehalem.Trouble, match="a link leads out"):
        here.write_all_back(sending(made), [str(out)])
    assert secret.read_text() == "secret" and secret.stat().st_nlink == 1


@pytest.mark.parametrize("to", ["missing", "folder", "itself"])
def test_a_link_that_leads_to_no_file_of_the_archive_is_named(tmp_path, to):
    """Root of the machine can send links that tar does not make."""
    made = io.BytesIO()
    (tmp_path / "file").write_text("old")
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, kind, target in (("folder", tarfile.DIRTYPE, ""), ("itself", tarfile.SYMTYPE, "itself"), ("file", tarfile.LNKTYPE, to)):
            member = tarfile.TarInfo(f"layer/upper{tmp_path}/{name}")
            member.type, member.linkname = kind, f"layer/upper{tmp_path}/{target}" if kind == tarfile.LNKTYPE else target
            tar.addfile(member)
    with pytest.raises(nehalem.Trouble, match="/file: the guest sent a link to what is no file of its archive"):
        here.write_all_back(sending(made), [str(tmp_path)])
    assert (tmp_path / "file").read_text() == "old"


def test_a_fifo_or_device_stays_in_the_machine_and_is_named(tmp_path, capfd):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name, kind in (("fifo", tarfile.FIFOTYPE), ("null", tarfile.CHRTYPE), ("disk", tarfile.BLKTYPE), ("file", tarfile.REGTYPE)):
            member = tarfile.TarInfo(f"layer/upper{tmp_path}/{name}")
            member.type, member.devmajor, member.devminor = kind, 1, 3
            tar.addfile(member)
    here.write_all_back(sending(made), [str(tmp_path)])
    assert os.listdir(tmp_path) == ["file"]
    said = "machine: --out {}/{}: it is a FIFO or a device, and stays in the machine\n"
    assert capfd.readouterr().err == "".join(said.format(tmp_path, name) for name in ("fifo", "null", "disk"))


@pytest.mark.parametrize("member", ["GNU.sparse.map=x", "path=PLACE/a\0b", f"size={'9' * 40}"])
def test_members_that_python_does_not_check_are_named(tmp_path, member):
    name, _, value = member.partition("=")
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        one = tarfile.TarInfo(f"layer/upper{tmp_path}/file")
        one.pax_headers = {name: value.replace("PLACE", f"layer/upper{tmp_path}")}
        tar.addfile(one)
    with pytest.raises(nehalem.Trouble, match=r"--out .*: what the guest sent is no archive \(.+\); the rest is missing"):
        here.write_all_back(sending(made), [str(tmp_path)])


def test_what_is_no_archive_is_named_with_what_is_missing(tmp_path):
    with pytest.raises(nehalem.Trouble, match=r"--out .*: what the guest sent is no archive \(.+\); the rest is missing"):
        here.write_all_back(sending(io.BytesIO(b"x" * 2048)), [str(tmp_path)])
