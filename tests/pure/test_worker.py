# SPDX-License-Identifier: GPL-2.0-only
"""The process that parses other users' files: what it may do, and what is lost if it ends."""
import os
import shutil
import signal
import subprocess
import time

import pytest
from compiled import compiled
from naming import Names, offset_of, run, symbols

EPERM = 1
REFUSED = ["open", "open2", "execve", "fork", "clone", "clone3", "socket", "ptrace", "kill", "read_of_others", "prctl",
           "signal_of_a_file", "owner_of_a_file", "flags_of_a_file", "network", "room", "unlink", "bpf",
           "perf_event_open", "io_uring", "code", "shared_file", "file_to_write", "file_to_code",
           "memory_to_code", "huge_memory"]


def test_it_may_take_memory_and_read_what_it_was_given_and_nothing_else(tmp_path):
    compiled(tmp_path, "confined", "confined/disassemble_without.c")
    with open("/bin/true", "rb") as file:
        done = subprocess.run([tmp_path / "confined"], stdin=file, capture_output=True, text=True, check=True)
    found = {name: int(errno) for name, errno in map(str.split, done.stdout.splitlines())}
    assert found == {name: EPERM for name in REFUSED} | {"memory": 0, "file_in_memory": 0, "read": 0}


def status(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file)


def worker_of(names):
    """The worker of an engine, which runs under timeout(1)."""
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return list(map(int, file.read().split()))

    def is_worker(pid):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().startswith(b"nhmtap-worker")
    engine, = children(names.process.pid)
    worker, = filter(is_worker, children(engine))  # the others open files
    return worker


def end(pid):
    """Kills a worker and waits for its end; otherwise the next question would get the blame."""
    os.kill(pid, signal.SIGKILL)
    while status(pid)["State"][0] != "Z":
        time.sleep(0.001)


def dying_of(path, signal_name, calls="pread64"):
    """Each worker gets the signal when it reads this file."""
    return ["strace", "-f", "-o", "/dev/null", "-P", path, "-e", f"trace={calls}", "-e",
            f"inject={calls}:signal={signal_name}", "-E", "ASAN_OPTIONS=detect_leaks=0"]


@pytest.fixture(name="program")
def program_with_lines(tmp_path):
    (tmp_path / "program.c").write_text("int main(void)\n{\n\treturn 7;\n}\n")
    run("gcc", "-g", "-O0", "-o", tmp_path / "program", tmp_path / "program.c")
    (address, size), = symbols(tmp_path / "program")["main"]
    return tmp_path / "program", offset_of(tmp_path / "program", address), size


def test_it_has_no_capabilities_and_no_descriptors_but_its_socket(names_program, program, monkeypatch):
    monkeypatch.delenv("NHMTAP_REPORTS")  # which a worker of a build with sanitizers has as its stderr
    names = Names(names_program, "-l")
    path, offset, _ = program
    assert names.file(path, offset)["frames"][0]["symbol"] == "main"
    worker = worker_of(names)
    told = status(worker)
    assert [told[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == ["0" * 16] * 4
    assert (told["NoNewPrivs"], told["Seccomp"]) == ("1", "2")
    held = {fd: os.readlink(f"/proc/{worker}/fd/{fd}") for fd in os.listdir(f"/proc/{worker}/fd")}
    assert {held[fd] for fd in "012"} == {"/dev/null"} and held["3"].startswith("socket:")
    assert len(held) == 4
    names.close()


def test_another_one_reads_the_lines_again_where_it_was_ended(names_program, program):
    names = Names(names_program, "-l")
    path, offset, size = program
    for at in range(offset, offset + size):
        frame, = names.file(path, at)["frames"]
        assert (frame["symbol"], os.path.basename(frame["file"])) == ("main", "program.c")
        end(worker_of(names))
    assert names.file(path, offset)["frames"][0]["line"] == 2
    names.close()


def test_the_end_of_it_costs_the_names_of_the_file_that_it_reads_and_no_others(names_program, program):
    """SIGKILL simulates any fault."""
    names = Names(names_program, "-l", before=dying_of(program[0], "KILL"))
    path, offset, _ = program
    other = path.with_name("other")
    run("gcc", "-g", "-O1", "-o", other, path.with_name("program.c"))
    for _ in range(2):
        name = names.file(path, offset)
        assert (name["failed"], name["frames"]) == (True, [])
        assert "has failed" in name["why"]
    (address, _), = symbols(other)["main"]
    for _ in range(2):
        assert names.file(other, offset_of(other, address))["frames"][0]["file"].endswith("program.c")
    names.close()


@pytest.mark.parametrize("kind", ["program", "map"])
def test_a_file_on_which_it_failed_is_read_again_after_pauses_that_double(names_program, program, tmp_path, kind):
    """strace goes by the path that a file has when it is opened, nhmtap by the one that it asks for. A map is appended to all
    the time, and is read no sooner for that."""
    path, offset, _ = program
    folder = tmp_path / "folder"
    folder.mkdir()
    path = path.rename(folder / "program") if kind == "program" else folder / "perf-1.map"
    if kind == "map":
        path.write_text("1000 100 main\n")

    def name():
        if kind == "program":
            return names.file(path, offset)
        with path.open("a", encoding="utf-8") as file:
            file.write("2000 100 more\n")
        return names.jit(path, 0x1000)
    names = Names(names_program, "-l", before=dying_of(path, "KILL", "pread64" if kind == "program" else "read,pread64"))
    for pause in (60, 120):
        assert name()["failed"]
        names.later(pause - 30)
        assert name()["failed"]  # it is not tried: the pause would begin anew
        names.later(30)
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")
    assert name()["frames"][0]["symbol"] == "main"
    names.close()


def test_a_loop_is_ended_by_the_timer(names_program, program):
    """The test sends the signal that the kernel sends after some seconds of CPU time."""
    names = Names(names_program, "-l", before=dying_of(program[0], "PROF"))
    path, offset, _ = program
    assert names.file(path, offset)["failed"]
    names.close()


def test_files_that_end_it_one_after_the_other_take_no_cpu_for_long(names_program, program, tmp_path):
    """At most six workers may end per minute. After that, no file is read until later."""
    path, offset, _ = program
    log, files = tmp_path / "log", [tmp_path / f"copy{i}" for i in range(9)]
    for file in files:
        shutil.copy(path, file)  # has another mtime: anybody can write any build-id
    began = time.monotonic()
    names = Names(names_program, "-l", before=[
        "strace", "-f", "-o", log, "-e", "trace=pread64,execve", "-e", "inject=pread64:signal=KILL", "-E",
        "ASAN_OPTIONS=detect_leaks=0", "-P", "/proc/self/exe", *(word for file in files for word in ("-P", file))])
    whys = [names.file(file, offset)["why"] for file in files]
    names.close()
    minutes = 1 + int((time.monotonic() - began) // 60)
    started = log.read_text().count('execve("/proc/self/exe"')
    assert whys[:6] == ["the reader of files has failed on it"] * 6 and 6 <= started <= 6 * minutes + 1
    assert minutes > 1 or "rests" in whys[-1]
