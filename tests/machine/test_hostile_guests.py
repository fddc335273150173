# SPDX-License-Identifier: GPL-2.0-only
"""What a command can do to its machine with root's rights there: the host's side ends with a status, says what happened,
stays as small as it was, and leaves nothing."""
import contextlib
import os
import re
import socket
import subprocess
import types

import pytest

import here
from test_here import Command, nehalem, wait_for

# Not caught by anything: no interrupt comes any more.
SPIN = "_start: mov $172, %eax; mov $3, %edi; syscall; cli; 1: jmp 1b"
SEND = """
_start: mov $172, %eax; mov $3, %edi; syscall
1: mov $bytes, %esi; mov $4096, %ecx; mov $0xCE2, %edx; rep outsb; mov $0xCE4, %edx; outb %al, %dx; jmp 1b
.lcomm bytes, 4096
"""
SOON = 4  # seconds


@pytest.fixture(scope="module")
def small():
    with nehalem.Guest(nehalem.Machine(tree=256, memory=320)) as guest:
        yield guest


@pytest.fixture
def run(small, tmp_path):
    """Runs a command as the machine's root, and sees that its folder is empty in the end."""

    def ended(*command, meanwhile=None, **options):
        started = Command(small, *command, user="root", folder=tmp_path, env={"TMPDIR": str(tmp_path)}, **options)
        if meanwhile:
            wait_for(lambda: meanwhile() or os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT))
        done = started.end()
        assert not list(tmp_path.glob("nehalem.*"))
        return done

    return ended


def test_a_command_that_forks_for_ever_is_ended(run):
    status, _, err = run("sh", "-c", "bomb() { bomb | bomb & }; bomb; exec sleep 1000000", timeout=SOON)
    assert status == 124 and f"stopped after {SOON} seconds" in err


def test_a_machine_that_spins_with_interrupts_off_is_ended(run, tmp_path):
    (tmp_path / "spin.s").write_text(f".globl _start\n{SPIN}\n")
    subprocess.run(["gcc", "-static", "-nostdlib", "-o", "spin", "spin.s"], cwd=tmp_path, check=True)
    status, _, err = run("./spin", timeout=SOON)
    assert status == 124 and f"stopped after {SOON} seconds" in err


def test_a_machine_that_panics_says_so(run):
    status, _, err = run("sh", "-c", "echo c > /proc/sysrq-trigger")
    assert status == 123 and "sysrq triggered crash" in err and "bootable" not in err and "restarted" not in err


def test_an_emulator_that_is_killed_is_told_with_the_signal():
    """As the host's kernel does when there is no memory left, or a limit of CPU time is reached."""
    with nehalem.Guest(nehalem.Machine(memory=320)) as guest:
        guest.emulator.kill()
        with pytest.raises(nehalem.Trouble, match=r"the emulator was ended by signal 9 \(Killed\)"):
            guest.run("true")
        assert not guest.alive


def test_a_full_disk_is_the_commands_own_trouble(run, tmp_path):
    status, out, err = run("sh", "-c", "cat /dev/zero > large; rm large; echo goes on > small; cat small")
    assert (status, out) == (0, "goes on\n") and "No space left on device" in err
    assert not list(tmp_path.iterdir())


def test_a_console_that_is_written_to_for_ever_takes_little_room_and_its_end_is_shown(run, tmp_path, monkeypatch):
    monkeypatch.setattr(here, "GLANCE", 0.1)
    monkeypatch.setattr(here, "MOST_HELD", 64 << 10)
    seen = []

    def look():
        seen.extend(path.stat() for path in tmp_path.glob("nehalem.*/console"))

    script = "n=0; while [ $n -lt 2000 ]; do echo $n: a line of a hundred characters and what else there is to say, of a hundred characters; n=$((n + 1)); done"
    status, _, err = run("sh", "-c", f"({script}) > /dev/console; echo c > /proc/sysrq-trigger", meanwhile=look)
    assert status == 123 and re.search(r"\n1[0-9]{3}: a line", err) and "sysrq triggered crash" in err and "\n10: a line" not in err
    assert seen[-1].st_size > 150000 and seen[-1].st_blocks * 512 < seen[-1].st_size - (60 << 10)


def test_files_that_nobody_asked_for_are_not_kept(run, tmp_path, monkeypatch):
    """Written to the port of the stream by which --out gets them."""
    monkeypatch.setattr(here, "GLANCE", 0.1)
    monkeypatch.setattr(here, "MOST_HELD", 1 << 20)
    (tmp_path / "send.s").write_text(f".globl _start\n{SEND}")
    subprocess.run(["gcc", "-static", "-nostdlib", "-o", "send", "send.s"], cwd=tmp_path, check=True)
    status, _, err = run("./send")
    assert status == 125 and "files that nobody asked for" in err


def test_input_that_is_asked_for_for_ever_and_not_taken_is_not_kept():
    """Nor is it remembered more than once that output was not taken. Words 1 and 6 are those of src/guest/here.c."""
    words, said = os.pipe()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with ours, theirs, here.Signals() as signals:
        with contextlib.suppress(BlockingIOError):  # until the guest's end is full
            while True:
                ours.send(bytes(1 << 16))
        carrier = here.Carrier(types.SimpleNamespace(statuses=words, requests=ours), None, None)
        carrier.outgoing = bytes(here.MOST_WAITING)
        os.write(said, b"=1\n=6\n" * 1000 + b"0\n")
        carrier.wanted = True
        assert carrier.follow(signals) == 0
    os.close(words)
    os.close(said)
    assert len(carrier.outgoing) == here.MOST_WAITING and len(carrier.lost) <= 1


def test_the_end_of_a_large_console_stays(tmp_path, monkeypatch):
    """What stood before a panic may be all that it had when it was emptied."""
    monkeypatch.setattr(here, "MOST_HELD", 1 << 20)
    (tmp_path / "console").write_bytes(b"".join(b"line %d\n" % n for n in range(200000)))
    size = (tmp_path / "console").stat().st_size
    carrier = here.Carrier(types.SimpleNamespace(folder=tmp_path), None, None)
    carrier.looked -= here.GLANCE
    carrier._look()
    now = (tmp_path / "console").stat()
    assert now.st_size == size and now.st_blocks * 512 < 128 << 10
    assert nehalem.Guest._tail(carrier.guest, "console")[-2:] == ["line 199998\n", "line 199999\n"]


def test_a_folder_larger_than_the_memory_is_not_fetched(small):
    with small.fork() as guest:
        assert guest.run("mkdir large; dd if=/dev/urandom of=large/file bs=1M count=4").status == 0
        assert guest.fetch("large").getmembers()[1].size == 4 << 20
        guest.machine = guest.machine.but(memory=2)
        with pytest.raises(nehalem.Trouble, match=r"the guest sent more than its memory holds \(2 MiB\); nothing of it was kept"):
            guest.fetch("large")
        assert not guest.alive and not os.path.exists(guest.folder)


def test_a_terabyte_of_output_is_not_kept_by_anybody(small):
    """The reader takes a part, waits, and goes away."""
    command = Command(small, "sh", "-c", "exec head -c 1T /dev/zero")

    def held():
        """KiB that are the emulator's alone."""
        with open(f"/proc/{command.pid}/task/{command.pid}/children", encoding="ascii") as f:
            children = f.read().split()
        return sum(int(line.split()[1]) for child in [command.pid, *children]
                   for line in open(f"/proc/{child}/status", encoding="ascii") if line.startswith("RssAnon"))

    def take(size):
        while size:
            size -= len(os.read(command.out, size))

    take(1 << 20)
    before = held()
    take(32 << 20)
    assert held() - before < 16 << 10
    os.close(command.out)
    wait_for(lambda: os.waitpid(command.pid, os.WNOHANG)[0])
