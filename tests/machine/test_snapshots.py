# SPDX-License-Identifier: GPL-2.0-only
"""Machines that continue from a snapshot: they are those that booted, and nothing stays behind."""
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import types

import pytest

import known
import nehalem
import snapshots
from guests import TALLY

pytestmark = pytest.mark.xdist_group("snapshots")  # they share one
RUN = nehalem.HERE + "/run"
PROGRAM = nehalem.build_folder() + "/nhm-bochs"
# User's and kernel's, exact and modelled: cycles depend on caches, TLBs, predictor and every address.
EVENTS = "instructions:u,cycles:u,r010b:u,r20cb:u,r0149:u,instructions:k,cycles:k"
COMMAND = f"perf stat -x, -e {EVENTS} -- sh -c 'chase memory; seq 2000 | sort -r | md5sum'"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A folder of snapshots that these tests share."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def machine(**kind):
    return nehalem.Machine(add=(known.path("chase"),), **kind)


def counts(guest):
    result = guest.run(COMMAND, paranoid=-1)
    assert result.status == 0, result
    return result.stderr, result.stdout


@pytest.fixture(scope="module")
def snapshot(cache):
    """What is counted after a boot that leaves a snapshot, and the snapshot."""
    with nehalem.Guest(machine(), snapshot=True) as guest:
        assert not guest.from_snapshot
        with guest.fork() as other:
            forked = counts(other)
        return counts(guest), forked, snapshot_in(cache)


def snapshot_in(cache):
    """The one file of a cache."""
    (name,) = os.listdir(cache / "nhmtap/machine")
    return cache / "nhmtap/machine" / name


def store_of(cache):
    folder = cache / "nhmtap/machine"
    return sorted(os.listdir(folder)) if folder.exists() else []


# ------------------------------------------------------------------------ exactness


def test_counts_are_the_same_by_boot_snapshot_and_fork(snapshot):
    by_boot, by_fork, _ = snapshot
    assert by_fork == by_boot
    with nehalem.Guest(machine()) as plain:
        assert counts(plain) == by_boot
    for _ in range(3):
        with nehalem.Guest(machine(), snapshot=True) as guest:
            assert guest.from_snapshot
            with guest.fork() as other:
                assert counts(other) == by_boot
            assert counts(guest) == by_boot


def test_a_machine_of_several_processors_continues_from_a_snapshot(own_cache):
    said = []
    for _ in range(2):
        with nehalem.Guest(machine(cores=2, threads=2, model="westmere"), snapshot=True) as guest:
            said.append((guest.run("taskset 8 chase l2; cat /proc/uptime /proc/interrupts; nproc").stdout, guest.from_snapshot))
    assert [from_snapshot for _, from_snapshot in said] == [False, True]
    assert said[0][0] == said[1][0] and said[0][0].endswith("4\n")


# ------------------------------------------------------------------------ which one serves


def found(**kind):
    """Whether a snapshot serves this machine."""
    guest = types.SimpleNamespace(machine=machine(**kind), build=nehalem.build_folder(), program=lambda: PROGRAM)
    with snapshots.opened() as store:
        fd = snapshots.find(store, snapshots.key_of(guest, None))
        if fd is not None:
            os.close(fd)
        return fd is not None


@pytest.mark.parametrize("kind", [{"date": 1}, {"cores": 2}, {"memory": 1000}, {"cmdline": "a"}, {"model": "core2"}])
def test_another_machine_has_another_snapshot(snapshot, kind):
    assert found() and not found(**kind)


IN_A_SMALL_ONE = f"""
import nehalem
with nehalem.Guest(nehalem.Machine(memory=384, add=({known.path("tally")!r}, {known.path("chase")!r})), snapshot=True) as guest:
    print(guest.from_snapshot, guest.run("date +%s; {TALLY} chase l2", paranoid=-1).stdout)
"""


def test_a_snapshot_serves_a_host_of_another_processor_and_kernel(own_cache, monkeypatch):
    """Which the machine itself is: its processor has no AVX, and its kernel is of another version."""
    monkeypatch.setenv("PYTHONPATH", nehalem.HERE)
    command = [sys.executable, "-c", IN_A_SMALL_ONE]
    said = [subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
            for words in (command, command, [sys.executable, RUN, "--here", "--no-snapshot", "--", *command])]
    assert [one[0] for one in said] == ["False", "True", "True"]
    assert said[0][1:] == said[1][1:] == said[2][1:]
    assert len(said[0]) == 2 + 4 * 3 and all(map(int, said[0][1:])), said


def test_what_continues_on_another_kernel_asks_it_for_the_time(own_cache, tmp_path):
    """The process begins in the guest, whose kernel lends it functions for this, and continues here."""
    sources = [os.path.join(os.path.dirname(__file__), "continues.cc"), nehalem.HERE + "/src/nhm/nhm_snapshot.cc"]
    subprocess.run(["g++", "-O2", "-o", tmp_path / "continues", *sources], check=True)
    began = subprocess.run([sys.executable, RUN, "--here", "--out", tmp_path / "image", "--", "sh", "-c",
                            'grep -c vdso /proc/self/maps; exec 3<> "$0/image"; exec "$0/continues"', tmp_path],
                           capture_output=True, text=True, check=True)
    assert began.stdout == "1\n"
    before = int(time.time())
    with open(tmp_path / "image", "rb") as image:
        said = subprocess.run([nehalem.build_folder() + snapshots.RESTORER, str(image.fileno()), "1", "4321"], text=True,
                              pass_fds=[image.fileno()], stdout=subprocess.PIPE, check=True).stdout.split()
    assert said[:2] == ["4321", "1"] and said[5] == "1"
    assert all(before <= int(clock) <= time.time() for clock in said[2:5])


@contextlib.contextmanager
def spoiled(path, how):
    """A copy in the snapshot's place."""
    kept = path.with_name("kept")
    os.rename(path, kept)
    try:
        subprocess.run(["cp", "--sparse=always", kept, path], check=True)
        how(path)
        yield
    finally:
        os.replace(kept, path)


FAULTS = {
    "short": lambda path: os.truncate(path, os.path.getsize(path) - 1),
    "short of its half": lambda path: os.truncate(path, os.path.getsize(path) // 2),
    "empty": lambda path: os.truncate(path, 0),
    "longer": lambda path: os.truncate(path, os.path.getsize(path) + 1),
    "writable for others": lambda path: os.chmod(path, 0o666),
    "another user's": lambda path: os.chown(path, 65534, 65534),
    "a link": lambda path: (os.unlink(path), os.symlink("kept", path)),
    "a folder": lambda path: (os.unlink(path), os.mkdir(path), os.rmdir(path)),
    "text": lambda path: path.write_text("x" * 1000),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_is_not_whole_or_not_ones_own_is_refused(snapshot, fault):
    with spoiled(snapshot[2], FAULTS[fault]):
        assert not found()
    assert found()


def test_a_folder_that_others_may_write_to_is_not_used(snapshot):
    folder = snapshot[2].parent
    folder.chmod(0o777)
    try:
        with snapshots.opened() as store:
            assert store is None
    finally:
        folder.chmod(0o700)


def test_a_torn_snapshot_is_made_anew_and_so_is_one_whose_files_have_changed(own_cache, tmp_path):
    program = tmp_path / "true"
    shutil.copy(known.path("probe"), program)
    kind = nehalem.Machine(add=(str(program),))
    spoil = [lambda: None, lambda: os.truncate(snapshot_in(own_cache), 1 << 20), lambda: shutil.copy(known.path("fixed"), program)]
    began = []
    for change in spoil:
        change()
        with nehalem.Guest(kind, snapshot=True) as guest:
            began.append(guest.from_snapshot)
    with nehalem.Guest(kind, snapshot=True) as guest:
        began.append(guest.from_snapshot)
    assert began == [False, False, False, True]


def test_a_snapshot_serves_files_of_the_same_content(own_cache, tmp_path):
    """As a container's are, whose image was unpacked elsewhere."""
    program, other = tmp_path / "program", tmp_path / "other"
    shutil.copy(known.path("probe"), program)
    began = []
    for _ in range(2):
        with nehalem.Guest(nehalem.Machine(add=(str(program),)), snapshot=True) as guest:
            began.append(guest.from_snapshot)
        shutil.copy(program, other)
        os.replace(other, program)
    with open(program, "r+b") as file:
        file.seek(100)
        file.write(b"x")
    with nehalem.Guest(nehalem.Machine(add=(str(program),)), snapshot=True) as guest:
        began.append(guest.from_snapshot)
    assert began == [False, True, False]


def test_an_image_that_cannot_be_continued_from_boots(snapshot, monkeypatch):
    def destroy(path):
        with open(path, "r+b") as f:
            f.write(b"not it")

    with spoiled(snapshot[2], destroy), nehalem.Guest(machine(), snapshot=True) as guest:
        assert not guest.from_snapshot
        assert guest.run("echo here").stdout == "here\n"


# ------------------------------------------------------------------------ of a command that waits

# The run's number in the guest is the host's random one: a machine that continues has that of the run before.
WAITING = """
import os, sys
given = {}
exec(compile(open(sys.argv[3]).read(), sys.argv[3], "exec"), given)
said = open(sys.argv[1]).read(), sorted(os.listdir(sys.argv[2]))
port = given["Port"]()
port.wait()
port.wait()
print(open("/run/nhmtap-run", "rb").read().hex(), *said)
"""


def run_of(folder):
    """The run's number in the guest, and what the command has read. It sees no folder in which others make files meanwhile, as in
    the tree's or its parent: those for temporary files have only what leads to its words."""
    with subprocess.Popen([sys.executable, RUN, "--here", f"--forks={folder}/socket", "--", sys.executable, "-I", "-c", WAITING,
                           folder / "read", folder / "listed", folder / "port.py"], stdin=subprocess.PIPE, cwd="/") as server:
        while not (folder / "socket").exists() and server.poll() is None:
            time.sleep(0.01)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(folder / "socket"))
            client.sendall(b'["one", "two"]')
            client.shutdown(socket.SHUT_WR)
            said = b"".join(iter(lambda: client.recv(1 << 16), b"")).decode()
        server.stdin.close()
    (folder / "socket").unlink()
    return said.split("\n")[0].split(" ", 1)


def test_a_command_that_waits_is_continued_while_files_are_as_it_saw_them(own_cache, tmp_path):
    """Also from a machine that has itself continued: the second time that something is changed."""
    read, listed = tmp_path / "read", tmp_path / "listed"
    listed.mkdir()
    read.write_text("some")
    shutil.copy(os.path.join(nehalem.HERE, "../python/nhmtap/port.py"), tmp_path)
    runs = []
    for change in (lambda: None, lambda: read.write_text("other"), lambda: (listed / "file").touch(), lambda: (listed / "file").rename(listed / "name")):
        change()
        runs.append(run_of(tmp_path))
        (tmp_path / "unseen").touch()
        (listed / "passing").touch()
        (listed / "passing").unlink()
        assert run_of(tmp_path) == runs[-1]
    assert [said for _, said in runs] == ["some []", "other []", "other ['file']", "other ['name']"]
    assert len({number for number, _ in runs}) == 4
    assert store_of(own_cache) == [snapshot_in(own_cache).name]


# ------------------------------------------------------------------------ several, and ends


def test_two_at_once_leave_one_snapshot_and_are_alike(own_cache):
    said = []

    def start():
        with nehalem.Guest(nehalem.Machine(), snapshot=True) as guest:
            said.append((guest.run("cat /proc/uptime /proc/interrupts").stdout, guest.from_snapshot))

    for _ in range(2):
        threads = [threading.Thread(target=start) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [from_snapshot for _, from_snapshot in said] == [False, False, True, True]
    assert len({text for text, _ in said}) == 1
    assert store_of(own_cache) == [snapshot_in(own_cache).name]


@pytest.fixture
def small_disk(own_cache):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=50m", "none", own_cache], check=True)
    yield own_cache
    subprocess.run(["umount", "-l", own_cache], check=True)


@pytest.mark.parametrize("spare", [0, snapshots.SPARE])
def test_on_a_full_disk_a_machine_boots_and_leaves_nothing(small_disk, monkeypatch, spare):
    monkeypatch.setattr(snapshots, "SPARE", spare)
    with nehalem.Guest(nehalem.Machine(), snapshot=True) as guest:
        assert guest.run("echo here").stdout == "here\n"
    assert store_of(small_disk) == []
    assert os.statvfs(small_disk).f_bavail * 4096 > 49 << 20


def test_a_machine_that_has_no_room_for_its_files_says_where(small_disk, monkeypatch):
    subprocess.run(["mount", "-o", "remount,size=2m", small_disk], check=True)
    monkeypatch.setenv("TMPDIR", str(small_disk))
    with pytest.raises(nehalem.Trouble, match=f"its files in {small_disk}/nehalem.*: No space left on device; TMPDIR"):
        nehalem.Guest(nehalem.Machine())
    assert os.listdir(small_disk) == []


def write_and_die():
    """A process that is killed while it writes a snapshot."""
    pid = os.fork()
    if not pid:
        with snapshots.opened() as store, snapshots.fresh_file(store) as (fd, _, _):
            os.write(fd, b"x" * 100000)
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)


def test_a_kill_while_a_snapshot_is_written_leaves_nothing(own_cache):
    write_and_die()
    assert store_of(own_cache) == []


def test_what_a_kill_leaves_where_files_need_names_goes_with_the_next_snapshot(own_cache, monkeypatch):
    monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY)  # refused: a folder cannot be written
    write_and_die()
    assert len(store_of(own_cache)) == 1
    with snapshots.opened() as store, snapshots.fresh_file(store) as (_, name, nameless):
        snapshots.prune(store)
        assert not nameless and store_of(own_cache) == [name]
    assert store_of(own_cache) == []


def test_the_snapshots_that_were_used_least_recently_go(own_cache, monkeypatch):
    monkeypatch.setattr(snapshots, "LIMIT", 300000)
    with snapshots.opened() as store:
        for n in range(5):
            path = own_cache / f"nhmtap/machine/{n}.machine"
            path.write_bytes(b"x" * 100000)
            os.utime(path, (n, n))
        snapshots.prune(store)
    # 100 KB take 25 blocks of 4 KiB, so two of them fit.
    assert store_of(own_cache) == ["3.machine", "4.machine"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_machine_from_a_snapshot_survives_its_caller(snapshot, number):
    command = [sys.executable, RUN, "--add", known.path("chase"), "--date", str(machine().date), "--ips", str(machine().ips),
               "echo here; sleep 100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout.read(5) == b"here\n"
            with open(f"/proc/{process.pid}/task/{process.pid}/children") as f:
                lines = {int(child): pathlib.Path(f"/proc/{child}/cmdline").read_text() for child in f.read().split()}
            (emulator,) = (child for child, line in lines.items() if snapshots.RESTORER in line)  # the other one is the guard
            assert pathlib.Path(f"/proc/{emulator}/comm").read_text() == "nhm-bochs\n"
            emulator = nehalem.Process(emulator)
            process.send_signal(number)
            process.communicate()
        finally:
            process.kill()
    assert emulator.poll(240) is not None


def test_no_snapshot_is_neither_used_nor_left(own_cache):
    subprocess.run([sys.executable, RUN, "--no-snapshot", "true"], check=True)
    assert store_of(own_cache) == []


def test_the_callers_environment_is_not_in_a_snapshot(snapshot, own_cache, monkeypatch):
    monkeypatch.setenv("SECRET", "a-word-that-nobody-else-says")
    with nehalem.Guest(nehalem.Machine(), snapshot=True):
        pass
    assert b"-that-nobody-else-says" not in snapshot_in(own_cache).read_bytes()


def test_a_command_as_if_here_counts_the_same_by_boot_and_snapshot(own_cache):
    # The first one's output and errors are one file, as with a terminal; the next ones' are apart all the same.
    subprocess.run([sys.executable, RUN, "--here", "--", "true"], stderr=subprocess.STDOUT, stdout=subprocess.PIPE, check=True)
    said = []
    for option in ((), (), ("--no-snapshot",)):
        assert len(store_of(own_cache)) == 1
        command = [sys.executable, RUN, "--here", *option, "--", "sh", "-c", 'echo out; exec "$@"', "sh",
                   "perf", "stat", "-x,", "-e", EVENTS, known.path("chase"), "l2"]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        assert result.stdout == "out\n"
        said.append(result.stderr)
    assert said[1:] == said[:-1] and "cycles:u" in said[0]
