# SPDX-License-Identifier: GPL-2.0-only
"""How runs end: the command's status, signals, time, and outputs that fail."""
import fcntl
import json
import os
import shlex
import signal
import subprocess
import termios
import time

import pytest
from fifos import open_fifo
from puppet import Puppet, command
from records import NHMTAP, Result, parse
from sessions import is_blocked, until

SHELL = ["--", "sh", "-c"]


# --- the command's end ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [0, 1, 2, 3, 77, 255])
def test_a_childs_exit_status_is_passed_on(nhmtap, status):
    result = nhmtap("stat", "-e", "cs", *SHELL, f"exit {status}")
    assert result.status == status
    end = result.one("end")
    assert (end["reason"], end["exit_status"]) == ("exited", status)
    assert end["command"]["exit_code"] == status


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGPIPE])
def test_a_child_killed_by_a_signal_gives_128_plus_its_number(nhmtap, number):
    result = nhmtap("stat", "-e", "cs", *SHELL, f"ulimit -c 0; kill -{int(number)} $$")
    assert result.status == 128 + number
    assert result.one("end")["command"]["signal"] == number


@pytest.mark.parametrize("command_", ["stat", "profile"])
def test_a_command_that_is_not_there_gives_127(nhmtap, command_):
    result = nhmtap(command_, "-e", "cs", "--", "/no/such/program")
    assert result.status == 127
    assert [record["type"] for record in result.records] == ["error", "end"]
    error = result.one("error")
    assert (error["errno"], error["exit_status"]) == ("ENOENT", 127)
    assert "'/no/such/program'" in error["asked"] and "no such program" in error["why"]
    assert "no such program" in result.err


def test_a_command_is_looked_for_in_path(nhmtap):
    assert nhmtap("stat", "-e", "cs", "--", "true", env={"PATH": "/bin:/usr/bin"}).status == 0
    assert nhmtap("stat", "-e", "cs", "--", "true", env={"PATH": "/no/such/folder"}).status == 127


def test_a_command_that_is_no_program_gives_126(nhmtap, tmp_path):
    (tmp_path / "data").write_text("not a program")
    result = nhmtap("stat", "-e", "cs", "--", tmp_path / "data")
    assert result.status == 126
    assert result.one("error")["errno"] == "EACCES"
    assert "chmod +x" in result.err


def test_a_script_that_names_no_interpreter_is_the_shells(nhmtap, tmp_path):
    # As execvp(3) does.
    (tmp_path / "script").write_text("exit 6\n")
    (tmp_path / "script").chmod(0o755)
    assert nhmtap("stat", "-e", "cs", "--", tmp_path / "script").status == 6


def test_repeats_stop_at_a_command_that_cannot_run(nhmtap, tmp_path):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nrm {program}\n")
    program.chmod(0o755)
    result = nhmtap("stat", "-e", "cs", "-r", "3", "--", program)
    assert result.status == 127
    assert len(result.of("count")) == 1 and len(result.of("error")) == 1


# --- signals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("command_", ["stat", "profile"])
@pytest.mark.parametrize("number, reason", [(signal.SIGTERM, "terminated"),
                                            (signal.SIGINT, "interrupted")])
def test_a_signal_ends_the_run_with_its_last_interval(nhmtap, command_, number, reason):
    with Puppet() as puppet:
        options = ["-c", "1"] if command_ == "profile" else []
        process = nhmtap.attach(command_, "-e", "page-faults", *options, "-I", "60000", "-p",
                                puppet.pid)
        puppet.do("faults=500")
        process.send_signal(number)
        result = nhmtap.finish(process)
    assert (result.status, result.err) == (0, "")
    assert result.one("count" if command_ == "stat" else "profile")["value"] == 500
    assert result.one("end")["reason"] == reason


def test_a_signal_is_passed_on_to_the_command_whose_status_is_passed_on(nhmtap):
    process = nhmtap.attach("stat", "-e", "cs", *SHELL,
                            "trap 'exit 5' TERM; echo trapped >&2; while :; do sleep 0.05; done")
    assert process.stderr.readline() == "trapped\n"
    process.terminate()
    result = nhmtap.finish(process)
    end = result.one("end")
    assert (result.status, end["reason"], end["command"]["exit_code"]) == (5, "terminated", 5)


INSIDE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]  # what it runs is PID 1 there


def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return int(file.read())


@pytest.mark.parametrize("before", [[], INSIDE], ids=["a process", "PID 1"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2])
def test_the_command_gets_the_signal_that_came(nhmtap, number, before):
    process = nhmtap.attach("stat", "-e", "cs", *SHELL, "for name in INT HUP TERM QUIT USR1 USR2; do "
                            "trap \"echo $name; exit 5\" $name; done; echo trapped >&2; while :; do sleep 0.05; done",
                            before=before)
    assert process.stderr.readline() == "trapped\n"
    os.kill(child_of(process.pid) if before else process.pid, number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 5
    assert number.name.removeprefix("SIG") in out.splitlines()


@pytest.mark.parametrize("before", [[], INSIDE], ids=["a process", "PID 1"])
def test_a_signal_that_is_the_commands_ends_no_measurement(nhmtap, before):
    """It comes while the command runs, and again while nhmtap waits for it after SIGTERM."""
    process = nhmtap.attach("profile", "-e", "page-faults", "-c", "1", *SHELL, "trap 'echo told >&2' USR1; trap 'exit 6' USR2; "
                            "trap 'echo asked >&2' TERM; echo trapped >&2; while :; do sleep 0.05; done", before=before)
    pid = child_of(process.pid) if before else process.pid
    for said, number in (("trapped", signal.SIGUSR1), ("told", signal.SIGTERM), ("asked", signal.SIGUSR1), ("told", signal.SIGUSR2)):
        assert process.stderr.readline() == said + "\n"
        os.kill(pid, number)
    result = nhmtap.finish(process)
    end = result.one("end")
    assert (result.status, end["reason"], end["command"]["exit_code"]) == (6, "terminated", 6)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_as_pid_1_a_signal_ends_what_has_no_command(nhmtap, number):
    process = nhmtap.attach("stat", "-e", "cs", "-a", before=INSIDE)
    os.kill(child_of(process.pid), number)
    result = nhmtap.finish(process)
    assert result.status == 0
    assert result.one("end")["reason"] == {"SIGINT": "interrupted"}.get(number.name, "terminated")


def test_as_pid_1_orphans_leave_no_zombies_and_the_commands_status_is_kept(nhmtap):
    """The command waits until no child is left."""
    result = nhmtap("stat", "-e", "cs", *SHELL, "for i in $(seq 50); do (true &); done; "
                    "while grep -q '^State:.Z' /proc/[0-9]*/status 2> /dev/null; do sleep 0.05; done; exit 7",
                    before=INSIDE)
    command_ = result.one("end")["command"]
    assert (result.status, command_["pid"], command_["exit_code"]) == (7, 2, 7)


def test_a_command_that_ends_by_the_signal_gives_128_plus_its_number(nhmtap):
    process = nhmtap.attach("stat", "-e", "cs", "--", "sleep", "100")
    process.terminate()
    result = nhmtap.finish(process)
    assert result.status == 128 + signal.SIGTERM
    assert result.one("end")["command"]["signal"] == signal.SIGTERM


@pytest.fixture
def slow(tmp_path):
    """A command that ends, with status 3 and 5000 page faults more, when `path` is opened and closed by
    the test; and not by a signal."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path, shlex.join(command("faults=5000"))


def stopping(slow, names="TERM INT HUP"):
    path, faults = slow
    return [*SHELL, f"trap 'trap \"\" {names}; echo told >&2; cat {path}; {faults} >&2; exit 3' {names}; "
                    "echo ready >&2; while :; do sleep 0.05; done"]


def wait_for(process, kind):
    """Reads records until there is one of this type. The program goes on."""
    while not process.began.endswith("\n") or f'"type":"{kind}"' not in process.began.splitlines()[-1]:
        byte = os.read(process.stdout.fileno(), 1)  # no more than that: finish() reads the rest
        assert byte, process.stderr.read()
        process.began += byte.decode()


@pytest.mark.parametrize("before", [[], INSIDE], ids=["a process", "PID 1"])
@pytest.mark.parametrize("command_", [["stat", "-e", "page-faults"], ["profile", "-e", "page-faults", "-c", "1"]],
                         ids=["stat", "profile"])
@pytest.mark.parametrize("how", ["TERM", "INT", "HUP", "duration", "stop"])
def test_a_command_is_measured_and_waited_for_until_it_has_ended(nhmtap, control, slow, how, command_, before):
    options = {"duration": ["--duration", "0.3"], "stop": [control.option]}.get(how, [])
    process = nhmtap.attach(*command_, *options, *stopping(slow), before=before)
    assert process.stderr.readline() == "ready\n"
    if how == "stop":
        control.send("stop\n")
    elif how != "duration":
        os.kill(child_of(process.pid) if before else process.pid, getattr(signal, f"SIG{how}"))
    kind = "count" if command_[0] == "stat" else "profile"
    wait_for(process, kind)  # what it did until now is written, though there is no -I
    assert process.stderr.readline() == "told\n"
    assert process.poll() is None
    with open_fifo(slow[0], "w"):
        pass
    result = nhmtap.finish(process)
    end = result.one("end")
    assert (result.status, end["command"]["exit_code"]) == (3, 3)
    assert end["reason"] == {"INT": "interrupted", "duration": "duration", "stop": "stopped"}.get(how, "terminated")
    first, last = [record for record in result.of(kind) if "value" in record]  # a long one has several parts
    assert last["value"] >= 5000


def test_a_command_that_takes_long_is_told_of(nhmtap, slow):
    process = nhmtap.attach("stat", "-e", "page-faults", *stopping(slow))
    assert process.stderr.readline() == "ready\n"
    process.terminate()
    assert process.stderr.readline() == "told\n"
    assert "has not ended yet and is still measured" in process.stderr.readline()
    with open_fifo(slow[0], "w"):
        pass
    assert nhmtap.finish(process).status == 3


@pytest.mark.parametrize("form", ["pprof", "folded", "flat", "table", "openmetrics"])
def test_what_is_one_profile_is_written_once_and_what_goes_on_at_once(nhmtap, tmp_path, slow, form):
    stacks = form in ("pprof", "folded")
    out = tmp_path / "out"

    def size():
        return out.stat().st_size if out.exists() else 0

    process = nhmtap.start("profile" if stacks else "stat", "-e", "page-faults", *(["-c", "1"] if stacks else []),
                           "-o", f"{form}={out}", "-o", "json=-", *stopping(slow))
    process.began = ""
    assert process.stderr.readline() == "ready\n"
    before = size()
    process.terminate()
    assert process.stderr.readline() == "told\n"
    if form == "pprof":
        assert "has not ended yet" in process.stderr.readline()
        assert size() == before
    else:
        while size() == before:
            time.sleep(0.01)
    with open_fifo(slow[0], "w"):
        pass
    result = nhmtap.finish(process)
    assert result.status == 3
    intervals = [record for record in result.of("profile" if stacks else "count") if "value" in record]
    assert len(intervals) == (1 if form == "pprof" else 2)
    assert size() > before


def test_commands_of_control_are_followed_while_the_command_is_waited_for(nhmtap, control, slow):
    process = nhmtap.attach("stat", "-e", "page-faults", control.option, *stopping(slow))
    assert process.stderr.readline() == "ready\n"
    process.terminate()
    assert process.stderr.readline() == "told\n"
    control.do("ping")
    control.do("snapshot")
    with open_fifo(slow[0], "w"):
        pass
    assert nhmtap.finish(process).status == 3


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_quits_at_once_and_is_the_commands_too(nhmtap, second):
    process = nhmtap.attach("stat", "-e", "page-faults", *SHELL,
                            "exec >/dev/null; trap 'echo told >&2' TERM; trap 'echo told of INT >&2' INT; echo $$ >&2;"
                            "while :; do sleep 0.05; done")
    pid = int(process.stderr.readline())
    try:
        process.terminate()
        assert process.stderr.readline() == "told\n"  # the first one has been handled
        until(lambda: process.poll() is not None or process.send_signal(second))  # soon after the first, it is the same
        assert process.returncode == 128 + second
        assert process.stderr.readline() == ("told\n" if second == signal.SIGTERM else "told of INT\n")
        assert "end" not in [json.loads(line)["type"] for line in process.stdout.read().splitlines()]
    finally:
        os.kill(pid, signal.SIGKILL)
        process.communicate()


SOON_S = 0.2  # SOON_NS in user/run/parts.h: two signals within this time are one


@pytest.mark.parametrize("before", [[], INSIDE], ids=["a process", "PID 1"])
@pytest.mark.parametrize("first, second", [("TERM", "TERM"), ("INT", "INT"), ("INT", "TERM"), ("HUP", "HUP"), ("TERM", "INT")])
def test_two_signals_at_once_are_one_and_all_is_written(nhmtap, slow, first, second, before):
    """As by timeout(1), which sends each signal to its command and to the group; by a closed terminal, whose HUP comes from the
    kernel and from the shell; by a program that was interrupted and terminates its children, which were interrupted, too."""
    took = SOON_S
    while took >= SOON_S:  # on a busy machine the second one may come after that time
        process = nhmtap.attach("stat", "-e", "page-faults", *stopping(slow), before=before)
        assert process.stderr.readline() == "ready\n"
        pid = child_of(process.pid) if before else process.pid
        began = time.monotonic()
        os.kill(pid, getattr(signal, f"SIG{first}"))
        until(lambda: not is_blocked(pid, getattr(signal, f"SIG{second}")))
        os.kill(pid, getattr(signal, f"SIG{second}"))
        took = time.monotonic() - began
        with open_fifo(slow[0], "w"):
            pass
        out, err = process.communicate(timeout=240)
    result = Result(process.returncode, process.began + out, err)
    assert (result.status, result.one("end")["command"]["exit_code"]) == (3, 3)
    assert result.one("end")["reason"] == ("interrupted" if first == "INT" else "terminated")
    assert sum(record["value"] for record in result.of("count")) >= 5000  # of one interval or two


def test_of_two_signals_at_once_the_command_gets_both_if_they_are_not_the_same(nhmtap):
    took = SOON_S
    while took >= SOON_S:
        process = nhmtap.attach("stat", "-e", "page-faults", *SHELL,
                                "trap 'echo told of INT >&2' INT; trap 'exit 5' TERM; echo ready >&2; while :; do sleep 0.05; done")
        assert process.stderr.readline() == "ready\n"
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        until(lambda: not is_blocked(process.pid, signal.SIGTERM))
        process.terminate()
        took = time.monotonic() - began
        out, err = process.communicate(timeout=240)
    result = Result(process.returncode, process.began + out, err)
    assert (result.status, result.one("end")["reason"]) == (5, "interrupted")


def test_a_second_keypress_leaves_no_command_on_the_terminal(nhmtap, tmp_path):
    """The terminal's ^C reaches the command by itself. When nhmtap goes, the command is told so."""
    keyboard, terminal = os.openpty()
    process = subprocess.Popen(
        nhmtap.command("stat", "-e", "page-faults", "-o", tmp_path / "out", *SHELL,
                       "trap 'echo told of INT' INT; trap 'echo told of HUP > {0}/hup; exit' HUP; echo ready;"
                       "while :; do sleep 0.05; done".format(tmp_path)),
        stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
    os.close(terminal)

    def until(text):
        said = b""
        while text not in said:
            said += os.read(keyboard, 1000)

    until(b"ready")
    os.write(keyboard, b"\x03")
    until(b"told of INT")
    # Of two signals at once, one may be lost. nhmtap writes an interval soon after the first.
    deadline = time.monotonic() + 60
    while '"count"' not in (tmp_path / "out").read_text(encoding="utf-8") and time.monotonic() < deadline:
        time.sleep(0.01)
    os.write(keyboard, b"\x03")
    assert process.wait(timeout=60) == 128 + signal.SIGINT
    deadline = time.monotonic() + 60
    while not (tmp_path / "hup").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (tmp_path / "hup").exists()
    os.close(keyboard)


def test_sigterm_ends_a_run_that_ignores_sigint(nhmtap):
    # Shells without job control start background jobs with SIGINT ignored. SIGTERM still works.
    process = nhmtap.attach("stat", "-e", "cs", "-a", preexec_fn=lambda: signal.signal(
        signal.SIGINT, signal.SIG_IGN))
    process.terminate()
    assert nhmtap.finish(process).one("end")["reason"] == "terminated"


# --- time -----------------------------------------------------------------------------------------


def test_a_duration_ends_the_run_without_a_command(nhmtap):
    result = nhmtap("stat", "-e", "cs", "-a", "--duration", "0.3")
    assert result.status == 0
    assert result.one("end")["reason"] == "duration"
    assert result.one("end")["duration_ns"] >= 0.3e9


def test_a_duration_ends_the_command(nhmtap):
    result = nhmtap("stat", "-e", "cs", "--duration", "0.3", "--", "sleep", "100")
    end = result.one("end")
    assert (end["reason"], result.status) == ("duration", 128 + signal.SIGTERM)


def test_a_command_that_is_faster_than_the_duration_ends_the_run(nhmtap):
    result = nhmtap("stat", "-e", "cs", "--duration", "1000", "--", "true")
    assert (result.status, result.one("end")["reason"]) == (0, "exited")


def test_a_duration_ends_with_the_last_interval(nhmtap):
    records = nhmtap("stat", "-e", "cs", "-a", "-I", "100", "--duration", "0.45").of("count")
    assert len(records) >= 2
    assert sum(record["duration_ns"] for record in records) >= 0.45e9


# --- outputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [["-I", "20"], []], ids=["intervals", "without intervals"])
def test_a_reader_that_goes_ends_the_run_quietly(nhmtap, interval):
    process = nhmtap.start("stat", "-e", "cs", "-a", *interval)
    assert json.loads(process.stdout.readline())["type"] == "start"
    process.stdout.close()
    assert process.wait(timeout=60) == 0
    assert process.stderr.read() == ""


def test_a_reader_that_goes_leaves_the_command_running_and_its_status_passed_on(nhmtap, tmp_path):
    go = tmp_path / "go"
    process = nhmtap.start("profile", "-e", "cs", "-c", "1", "-I", "20", *SHELL,
                           f"exec >/dev/null; sleep 0.05; while [ ! -e {go} ]; do sleep 0.05; done; exit 9")
    process.stdout.readline()
    process.stdout.close()
    go.touch()
    assert process.wait(timeout=60) == 9
    assert process.stderr.read() == ""


def test_a_pipe_without_a_reader_from_the_beginning_is_quiet_too(nhmtap):
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(nhmtap.command("stat", "-e", "cs", "--", "true"), stdout=theirs,
                          stderr=subprocess.PIPE, check=False)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("command_", ["stat", "profile"])
def test_a_full_disk_is_an_error(nhmtap, command_):
    result = nhmtap(command_, "-e", "cs", "-o", "/dev/full", "--", "true")
    assert result.status == 3
    assert "/dev/full: No space left on device" in result.err


PRINTED = [["--help"], ["--version"], ["--version", "-v"], ["--version", "--json"], ["help"], ["help", "--json"], ["schema"],
           ["schema", "start"], ["completion", "bash"], ["list"], ["list", "--json"], ["explain", "cs"], ["doctor"], ["machine", "--list"],
           ["show", "RECORDS"], ["symbolize", "RECORDS"], ["flamegraph", "RECORDS"], ["report", "RECORDS"],
           *[[name, "--help"] for name in ("stat", "top", "run", "machine")]]


@pytest.mark.parametrize("arguments", PRINTED, ids=" ".join)
def test_what_cannot_be_printed_is_an_error_and_a_reader_that_goes_is_none(nhmtap, tmp_path, arguments):
    """Whatever prints: a full disk, a file that was opened to be read, no stdout; and `head`, which reads no more."""
    records = tmp_path / "records"
    assert nhmtap("profile", "-e", "page-faults:u", "-c", "1", "-g", "-o", records, "--", "true").status == 0
    words = nhmtap.command(*[str(records) if word == "RECORDS" else word for word in arguments])
    ours, theirs = os.pipe()
    os.close(ours)
    for where, shell, status, told in ((theirs, '"$@"', 128 + signal.SIGPIPE, ""), (None, '"$@" > /dev/full', 3, "No space left on device"),
                                       (None, '"$@" 1< /dev/null', 3, "Bad file descriptor"), (None, '"$@" >&-', 3, "Bad file descriptor")):
        done = subprocess.run(["sh", "-c", f"{shell}; exit $?", "sh", *words], stdin=subprocess.DEVNULL, stdout=where, stderr=subprocess.PIPE,
                              text=True, check=False, timeout=60)
        said = "".join(line for line in done.stderr.splitlines() if "places have names" not in line)
        assert (done.returncode, told in said and bool(said) == bool(told)) == (status, True), (shell, done)
        assert not told or said.startswith("nhmtap: writing to stdout: "), said
    os.close(theirs)


def test_a_full_disk_behind_stdout_is_an_error(nhmtap):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run(nhmtap.command("stat", "-e", "cs", "--", "true"), stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 3
    assert "stdout: No space left on device" in done.stderr


def test_a_disk_that_fills_up_keeps_whole_records(tmp_path):
    script = ('mount -t tmpfs -o size=16k none "$1" && cd "$1" && shift && "$@"; '
              'status=$?; cat out; exit $status')
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", tmp_path, os.path.abspath(NHMTAP), "profile",
         "-e", "page-faults", "-c", "1", "--by", "ip", "-I", "20", "-o", "out", "--",
         *map(os.path.abspath, command()[:1]), *["faults=300", "spin=50"] * 20, "exit=0"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 3, done.stderr
    assert "No space left on device" in done.stderr
    records = parse("".join(line for line in done.stdout.splitlines(True) if line[0] == "{"))
    assert records[0]["type"] == "start" and len(records) > 1
    assert [record["seq"] for record in records] == list(range(len(records)))


def test_a_stdout_that_is_closed_is_an_error_and_nothing_is_written_elsewhere(nhmtap, tmp_path):
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *nhmtap.command(
        "stat", "-e", "cs", "-I", "20", "--", "sleep", "0.1")], capture_output=True, text=True,
        check=False)
    assert done.returncode == 3
    assert "stdout: Bad file descriptor" in done.stderr
    assert "{" not in done.stderr


def test_all_streams_may_be_closed(nhmtap, tmp_path):
    done = subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *nhmtap.command(
        "stat", "-e", "page-faults", "-o", tmp_path / "out", "--", "true")], check=False)
    assert done.returncode == 0
    assert parse((tmp_path / "out").read_text())[-1]["type"] == "end"


def test_a_file_is_written_anew(nhmtap, tmp_path):
    (tmp_path / "out").write_text("what was there before\n" * 1000)
    result = nhmtap.into(tmp_path / "out", "stat", "-e", "cs", "--", "true")
    assert [record["type"] for record in result.records] == ["start", "count", "end"]


def test_a_refusal_goes_into_the_file_as_well(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "stat", "-e", "cycels", "--", "true")
    assert [record["type"] for record in result.records] == ["error", "end"]
    assert result.said == ""


def test_a_folder_that_is_not_there_is_named_and_nothing_runs(nhmtap, tmp_path):
    result = nhmtap("stat", "-e", "cs", "-o", tmp_path / "no" / "out", "--", "touch",
                    tmp_path / "ran")
    assert result.status == 1
    assert "No such file or directory" in result.err
    assert not (tmp_path / "ran").exists()


def test_a_named_pipe_may_be_the_output(nhmtap, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with open(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as pipe:
        process = nhmtap.start("stat", "-e", "cs", "-o", tmp_path / "pipe", "--", "true")
        assert process.wait(timeout=60) == 0
        records = parse(pipe.read())
    assert [record["type"] for record in records] == ["start", "count", "end"]
    process.communicate()


def test_records_are_there_as_soon_as_their_interval_is_over(nhmtap):
    process = nhmtap.start("stat", "-e", "cs", "-a", "-I", "20")
    lines = [json.loads(process.stdout.readline()) for _ in range(3)]
    assert [line["type"] for line in lines] == ["start", "count", "count"]
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_signal_that_was_ignored_at_the_start_stays_ignored(nhmtap):
    # Shells without job control start background jobs this way. The run ends by its duration.
    process = nhmtap.start("stat", "-a", "-e", "cs", "--duration", 1, "-I", 50,
                           preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, parse(out)[-1]["reason"]) == (0, "duration"), err


def test_a_hangup_ends_a_run_as_a_termination_does(nhmtap):
    process = nhmtap.start("stat", "-a", "-e", "cs", "-I", 50)
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, parse(out)[-1]["reason"]) == (0, "terminated"), err


def test_a_script_without_its_interpreter_is_not_called_missing(nhmtap, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    result = nhmtap("stat", "--", script)
    assert result.status == 126
    assert "interpreter" in result.one("error")["why"]


def test_a_file_of_records_is_nobody_elses(nhmtap, tmp_path):
    out = tmp_path / "out"
    nhmtap.into(out, "stat", "-e", "cs", "--", "true")
    assert out.stat().st_mode & 0o137 == 0


@pytest.mark.parametrize("words", [["show"], ["symbolize"], ["flamegraph"], ["report"], ["analyze", "--format", "json"]], ids=" ".join)
def test_records_are_not_written_over_by_what_is_made_of_them(nhmtap, tmp_path, words):
    records, same = tmp_path / "records", tmp_path / "same"
    assert nhmtap("profile", "-e", "page-faults:u", "-c", "1", "--by", "stack", "-o", records, "--", "true").status == 0
    text = records.read_bytes()
    os.link(records, same)
    done = [nhmtap(*words, "-o", same, records)]
    if words[0] != "analyze":  # which measures where no file is named
        with open(records, encoding="utf-8") as file:
            read = subprocess.run(nhmtap.command(*words, "-o", same), stdin=file, capture_output=True, text=True, check=False)
        done.append(Result(read.returncode, "", read.stderr))
    assert {run.status for run in done} == {1} and records.read_bytes() == text
    assert words[0] == "analyze" or all("it is the file that is read" in run.err for run in done)
