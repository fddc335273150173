# SPDX-License-Identifier: GPL-2.0-only
"""The command line: its inputs, its outputs and its failures."""
import glob
import os
import re
import signal
import subprocess
import sys
import time

import pytest

import known
import nehalem

RUN = nehalem.HERE + "/run"


def run(*arguments, **options):
    command = [sys.executable, RUN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def mannered(tmp_path_factory):
    """One boot for the tests of a well-behaved command."""
    folder = tmp_path_factory.mktemp("run")
    given = folder / "given"
    (given / "sub").mkdir(parents=True)
    (given / "sub" / "data").write_bytes(bytes(range(256)) * 1000)
    script = """
        echo "uid $(id -u)"; echo "late error" >&2; probe open
        mkdir d; cp /opt/given/sub/data d/data; echo hello > one; sleep 0.01; exit 42"""
    result = run(
        "--add", known.path("probe"), "--add", given, "--user", "nobody",
        "--out", f"d:{folder}/back", "--out", f"one:{folder}/one", script,
    )  # fmt: skip
    return folder, result


def test_the_commands_status_and_streams_come_out(mannered):
    _, result = mannered
    assert result.returncode == 42
    assert result.stderr == "late error\n"


def test_another_user_and_the_kernels_own_paranoia(mannered):
    # perf_event_paranoid is 3 with Debian's kernel: only root may use events.
    assert mannered[1].stdout == "uid 65534\nopen: Permission denied\n"


def test_files_go_in_and_come_back(mannered):
    folder, _ = mannered
    given = folder / "given" / "sub" / "data"
    assert (folder / "back" / "data").read_bytes() == given.read_bytes()
    assert (folder / "one").read_text() == "hello\n"


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path):
    result = run("--out", f"/nowhere:{tmp_path}/nowhere", "exit 3")
    assert result.returncode == 119
    assert "not there in the guest" in result.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--bogus", "true"], "unrecognized arguments: --bogus"),
        ([], "no COMMAND"),
        (["--cpus", "99", "true"], "1 to 16"),
        (["--cpus", "many", "true"], "invalid int value"),
        (["--threads", "3", "true"], "1 or 2"),
        (["--packages", "2", "--cpus", "3", "true"], "power of two"),
        (["--model", "z80", "true"], "invalid choice"),
        (["--add", "/nowhere", "true"], "/nowhere: no such file"),
        (["--out", "x", "true"], "GUESTPATH:HOSTPATH"),
        (["--here", "--out", "", "true"], "--out '': PATH wanted"),
        (["--date", "yesterday", "true"], "seconds, today or now"),
        (["--memory", "128", "true"], "--memory 128: "),
    ],
)
def test_a_wrong_option_is_named(arguments, words):
    result = run(*arguments)
    assert result.returncode == 120
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_the_least_memory_is_named_and_suffices():
    refused = run("--here", "--memory", "128", "true")
    least = int(re.search(r"--memory (\d+) is the least", refused.stderr)[1])
    assert run("--here", "--memory", str(least - 1), "true").returncode == refused.returncode == 120
    done = run("--here", "--no-snapshot", "--memory", str(least), "echo", "begun")
    assert (done.returncode, done.stdout, done.stderr) == (0, "begun\n", "")


def test_a_machine_that_is_not_built_is_said_to_be_missing(tmp_path):
    result = run("true", env=dict(os.environ, NHM_BUILD=str(tmp_path)))
    assert result.returncode == 121
    assert "make machine" in result.stderr


def test_a_root_without_proc_is_named():
    """As in a chroot that was not set up."""
    hidden = subprocess.run(["unshare", "-m", "sh", "-c", f"mount -t tmpfs none /proc; {RUN} --here true"], capture_output=True, text=True)
    assert (hidden.returncode, hidden.stdout) == (125, "")
    assert hidden.stderr.startswith("run: /proc is not mounted here") and "mount -t proc proc /proc" in hidden.stderr


@pytest.mark.parametrize("kernel", ["5.0", "/nowhere/vmlinuz", "/etc/passwd"])
def test_a_kernel_that_cannot_be_booted_is_named(kernel):
    result = run("--kernel", kernel, "true")
    assert result.returncode == 122
    assert kernel in result.stderr


def test_a_panic_shows_the_console():
    result = run("--cmdline", "rdinit=/nowhere root=/nowhere init=/nowhere", "true")
    assert result.returncode == 123
    assert "Kernel panic" in result.stderr


def test_a_panic_in_mid_command_shows_the_console_too(guest):
    with pytest.raises(nehalem.Panicked, match="Kernel panic"):
        guest.run("echo c > /proc/sysrq-trigger")
    assert not guest.guest.alive


def test_a_machine_that_ends_by_itself_leaves_no_result(guest):
    with pytest.raises(nehalem.Trouble, match="no result from the guest: reboot") as caught:
        guest.run("reboot -f")
    assert caught.value.status == 125
    assert not guest.guest.alive


def test_running_out_of_time(guest):
    with pytest.raises(nehalem.OutOfTime, match="stopped after 2 seconds"):
        guest.run("while :; do :; done", timeout=2)
    assert not guest.guest.alive


def test_running_out_of_time_in_the_boot():
    result = run("--no-snapshot", "--timeout", "1", "true")
    assert result.returncode == 124
    assert "boot" in result.stderr


def emulators_of(pid):
    """The emulators whose parent is the process `pid`."""
    found = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(stat) as f:
                before, after = f.read().rsplit(") ", 1)  # a name may have blanks and parentheses
                (number, name), parent = before.split(" (", 1), after.split()[1]
        except OSError:
            continue
        if int(parent) == pid and "nhm-bochs" in name:
            found.append(int(number))
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_emulator_and_no_folder_survives_its_caller(number, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = subprocess.Popen([sys.executable, RUN, "--no-snapshot", "sleep 1000"], stderr=subprocess.PIPE, text=True)
    emulator = nehalem.Process(wait_for(lambda: emulators_of(process.pid))[0])
    process.send_signal(number)
    said = process.communicate(timeout=240)[1]
    # It may be a zombie that its new parent has not reaped yet.
    assert emulator.poll(240) is not None
    assert wait_for(lambda: not os.listdir(tmp_path))
    assert said == ("" if number == signal.SIGKILL else f"run: {number.name}: the machine was ended before COMMAND began\n")


HELD = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import nehalem
guest = nehalem.Guest()
fork = guest.fork()
print(len(os.listdir(os.environ["TMPDIR"])), flush=True)
if sys.argv[2] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end, closed", [("killed", ""), ("whole", ""), ("whole", "<&-")])
def test_a_program_that_has_guests_leaves_no_folders(end, closed, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", HELD, nehalem.HERE, end]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGKILL if end == "killed" else 0, "2\n", "")
    assert wait_for(lambda: not os.listdir(tmp_path))


def test_a_folder_that_is_kept_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = subprocess.run([sys.executable, RUN, "--keep", "true"], capture_output=True, text=True, check=True)
    folder, = tmp_path.iterdir()
    assert done.stderr == f"run: folder kept: {folder}\n" and (folder / "console").exists()


def wait_for(what, seconds=240):
    end = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


def test_a_fork_ends_with_the_guest_that_it_came_from(guest):
    with guest.guest.fork() as fork:
        assert fork.run("echo here").stdout == "here\n"
        guest.guest.close()
        assert wait_for(lambda: not fork.alive)


def test_a_fork_knows_nothing_of_what_others_do(guest):
    script = "ls /run; perf stat -x, -e instructions:uk,cycles:uk,r10cb:uk chase l2"
    with guest.guest.fork() as one, guest.guest.fork() as other:
        first = one.run(script)
        guest.say("offcore writeback; echo > /run/left")
        second = other.run(script)
    assert "instructions" in first.stderr
    assert (first.stdout, first.stderr) == (second.stdout, second.stderr)


def test_a_command_leaves_nothing_behind_for_the_next(guest):
    guest.say("sleep 1000 & touch /tmp/left; echo started")
    said = guest.say("ls -A /tmp; ps | grep -c '[s]leep 1000' || true")
    assert said == "0\n"


def test_settings_end_with_their_command(guest):
    event = "cpu/event=0xb,umask=0x10,ldlat=100/up"
    all_of_them = guest.count(event, "chase memory", tag_all_loads=True)
    assert guest.count(event, "chase memory") < all_of_them / 8


def test_input_and_environment_reach_the_command(guest):
    script = "cat; echo $GREETING; echo $USER"
    result = guest.run(script, stdin=b"in\n", env=["GREETING=hi"], user="user")
    assert result.stdout == "in\nhi\nuser\n"


def state(path):
    """The time in a guest that has just booted with this program, its interrupts and its memory."""
    with nehalem.Guest(nehalem.Machine(memory=512, add=(path,), rounded=True)) as guest:
        return guest.run("cat /proc/timer_list /proc/interrupts /proc/vmstat /proc/buddyinfo").stdout


def test_dates_modes_and_a_few_bytes_more_of_a_program_do_not_change_the_boot(tmp_path):
    program = tmp_path / "probe"
    booted = []
    for date, mode, more in ((1234567890, 0o755, b""), (1879048191, 0o775, b"more")):
        with open(known.path("probe"), "rb") as f:
            program.write_bytes(f.read() + more)
        program.chmod(mode)
        os.utime(program, (date, date))
        booted.append(state(str(program)))
    assert "now at" in booted[0]
    assert booted[0] == booted[1]
