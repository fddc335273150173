# SPDX-License-Identifier: GPL-2.0-only
"""The worker process that parses files for a session: what it may do, what happens when it ends,
what it costs, and that it never outlives the session."""
import glob
import os
import signal
import subprocess
import time

import pytest
import memory
from fifos import open_fifo
from puppet import stop
from records import NHMTAP, Result, program

FAULTS = ["-e", "page-faults:u", "-c", "1", "--by", "symbol"]
NAMES = program("names")


def until(found, *arguments):
    """Calls found() until it finds something, and returns that."""
    deadline = time.monotonic() + 60
    while not (what := found(*arguments)):
        assert time.monotonic() < deadline, f"{found.__name__}: nothing after a minute"
        time.sleep(0.005)
    return what


def status(pid):
    """The lines of /proc/PID/status by their names; {} if there is no such process."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return dict(line.rstrip("\n").split(":\t", 1) for line in file)
    except (FileNotFoundError, ProcessLookupError):
        return {}


def children(pid):
    """The children of all threads: /proc lists them by thread."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path, encoding="ascii") as file:
                found += map(int, file.read().split())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def named(pid, name):
    """The descendants of a process that have this name."""
    return [found for child in children(pid)
            for found in ([child] if status(child).get("Name") == name else []) + named(child, name)]


def workers_of(process, nr=1):
    """Waits for this many workers: one for names, and one for unwind tables. Their seccomp filter,
    which is the last step before they read anything, is in place."""
    def ready():
        found = [pid for pid in named(process.pid, "nhmtap-worker") if status(pid).get("Seccomp") == "2"]
        return len(found) == nr and found
    return until(ready)


def worker_of(process):
    return workers_of(process)[0]


def has_ended(pid):
    return status(pid).get("State", "Z")[0] == "Z"


def is_gone(pid):
    return not status(pid)


def read(path):
    return Result(0, path.read_text(encoding="utf-8"), "")


def cpu_s(pid):
    return time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3): its CPU time, in ns


@pytest.fixture(name="going")
def profile_of_a_puppet(nhmtap, puppet):
    process = nhmtap.attach("profile", *FAULTS, "-I", "100", "-p", puppet.pid, "--format", "json")
    yield process
    process.kill()
    process.communicate()


@pytest.mark.plain  # sanitizers reserve more than the limit of memory
def test_it_has_no_rights_no_network_and_a_bound_of_memory(going):
    worker = worker_of(going)
    told = status(worker)
    assert [told[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == ["0" * 16] * 4
    assert (told["NoNewPrivs"], told["Seccomp"]) == ("1", "2")
    held = {fd: os.readlink(f"/proc/{worker}/fd/{fd}") for fd in os.listdir(f"/proc/{worker}/fd")}
    assert [held.pop(fd) for fd in "012"] == ["/dev/null"] * 3
    (fd, socket), = held.items()
    assert fd == "3" and socket.startswith("socket:")
    number = socket[len("socket:["):-1]
    networks = [open(path, encoding="ascii").read() for path in glob.glob(f"/proc/{worker}/net/[tu][cd]p*")]
    assert len(networks) >= 2 and not any(number in line.split() for text in networks for line in text.splitlines())
    with open(f"/proc/{worker}/limits", encoding="ascii") as file:
        limits = {line[:26].strip(): line[26:].split()[:2] for line in file}
    soft, hard = limits["Max data size"]
    assert int(soft) == int(hard) <= 1 << 30
    assert int(limits["Max file size"][1]) <= 1 << 30
    assert limits["Max core file size"] == ["0", "0"]
    with open(f"/proc/{worker}/environ", encoding="ascii") as file:
        assert file.read() == "GLIBC_TUNABLES=glibc.malloc.hugetlb=1\0", "nothing of what nhmtap was given"


EPOLL_WAIT, FUTEX, EPOLL_PWAIT, EPOLL_PWAIT2 = 232, 202, 281, 441


def stopped_between_requests(worker):
    """Stops nhmtap. Returns its pid if no thread of it waits for the worker, which may be reading a file as soon as the command
    has begun: that file has no names if the worker ends."""
    owner = int(status(worker)["PPid"])
    stop(owner)
    calls = {open(path, encoding="ascii").read().split()[0] for path in glob.glob(f"/proc/{owner}/task/*/syscall")}
    if calls <= set(map(str, (EPOLL_WAIT, EPOLL_PWAIT, EPOLL_PWAIT2, FUTEX))):
        return owner
    os.kill(owner, signal.SIGCONT)
    return None


def test_its_end_is_waited_for_and_the_session_goes_on(nhmtap, tmp_path):
    """The same holds if nhmtap is PID 1 of its namespace, which has to reap all orphans."""
    for before in [], ["unshare", "-pf", "--mount-proc"]:
        fifo, out = str(tmp_path / "fifo"), tmp_path / "out"
        os.mkfifo(fifo)
        process = nhmtap.start("profile", *FAULTS, "-o", out, "--", "sh", "-c",
                               'read line < "$0"; "$1" here=200; exit 7', fifo, NAMES, before=before)
        worker = worker_of(process)
        owner = until(stopped_between_requests, worker)
        os.kill(worker, signal.SIGKILL)
        until(has_ended, worker)
        os.kill(owner, signal.SIGCONT)
        until(is_gone, worker)
        with open_fifo(fifo, "w") as file:
            file.write("\n")
        result = nhmtap.finish(process)
        assert result.status == 7, result.err
        records = read(out)
        names = records.one("end")["names"]
        assert sum(e["samples"] for e in records.entries() if e["code"].get("symbol") == "here") == 200
        assert names["unnamed"]["failed"] == 0, names
        os.remove(fifo)


def test_the_command_has_none_of_its_descriptors(nhmtap, tmp_path):
    result = nhmtap.into(tmp_path / "out", "profile", *FAULTS, "-g", "--", "ls", "-l", "/proc/self/fd")
    assert "pipe:" in result.said
    assert not [word for word in ("socket:", "pidfd", "memfd") if word in result.said]


def test_sigterm_ends_both(going):
    worker = worker_of(going)
    going.terminate()
    going.communicate(timeout=60)
    assert is_gone(worker)


def test_nothing_outlives_a_session_that_was_killed(going):
    """Not even a worker that can't end by itself: this one is stopped."""
    worker = worker_of(going)
    os.kill(worker, signal.SIGSTOP)
    going.kill()
    until(has_ended, worker)


# libelf's first call on a file is fcntl(). SIGKILL stands for any fault: the worker blocks other
# signals, so strace can't inject them. clone3() starts the worker, and clone() the command.
REASONS = {
    "the file ends it": ("fcntl:signal=KILL", True, "has failed on it"),
    "the file holds it up": ("fcntl:signal=PROF", True, "has failed on it"),  # its timer's signal
    "seccomp is refused": ("seccomp,prctl:error=EPERM", False, "seccomp is refused"),  # libseccomp tries both
    "fork is refused": ("clone3:error=EAGAIN", False, "can't be started"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_what_it_cannot_read_has_no_names_and_the_end_says_why(tmp_path, reason):
    fault, of_file, why = REASONS[reason]
    out, other = tmp_path / "out", program("puppet")
    # LeakSanitizer is a tracer too, and a process can have only one.
    subprocess.run(["strace", "-f", "-o", os.devnull, *(["-P", NAMES] if of_file else []),
                    "-e", f"trace={fault.partition(':')[0]}", "-e", f"inject={fault}",
                    NHMTAP, "profile", *FAULTS, "-o", out, "--", "sh", "-c", '"$0" here=50; "$1" faults=70', NAMES, other],
                   env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}, capture_output=True, check=True)
    records = read(out)
    names = records.one("end")["names"]
    assert why in names["failed_why"] and names["unnamed"]["failed"] >= 50
    found = {NAMES: set(), other: set()}
    for entry in records.entries():
        if entry["code"].get("module") in found:
            found[entry["code"]["module"]].add(entry["code"].get("symbol"))
    assert found[NAMES] == {None} and (found[other] != {None}) == of_file


@pytest.fixture(name="large")
def profile_of_a_large_program(nhmtap, tmp_path):
    """Yields the process, a function that lets the program go on, and the file of the records.
    Reading the program's files takes a tenth of a second."""
    fifo, out = tmp_path / "fifo", tmp_path / "out"
    os.mkfifo(fifo)
    process = nhmtap.start("profile", *FAULTS, "-g", "-I", "300", "-o", out, "--", "sh", "-c",
                           'read line < "$0"; clang --version; read line < "$0"', fifo, start_new_session=True)
    lines = os.open(fifo, os.O_RDWR)  # does not wait for the other end

    def go_on():
        os.write(lines, b"\n")
    yield process, go_on, out
    os.close(lines)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)  # the command as well
    process.communicate()


@pytest.mark.plain  # a sanitizer has already taken the memory
def test_a_file_that_takes_too_much_memory_is_left_out(nhmtap, large):
    process, go_on, out = large
    for worker in workers_of(process, 2):
        user = status(worker)["Uid"].split()[0]  # root may lack the capability to change its limits
        subprocess.run(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "prlimit", f"--pid={worker}",
                        f"--data={1 << 20}"], check=True)
    go_on()
    go_on()
    assert nhmtap.finish(process).status == 0
    names = read(out).one("end")["names"]
    assert names["unnamed"]["failed"] > 0 and "more memory" in names["failed_why"]


def test_their_cpu_time_is_nhmtaps_own(nhmtap, large):
    """For this program, the workers take more CPU time than nhmtap itself does until it ends."""
    process, go_on, out = large
    workers = workers_of(process, 2)
    go_on()

    def spent():
        taken = sum(map(cpu_s, workers))
        return taken >= 0.1 and taken + cpu_s(process.pid)
    least = until(spent)
    go_on()
    assert nhmtap.finish(process).status == 0
    assert read(out).one("end")["overhead"]["cpu_time_ns"] / 1e9 >= least


def pss(pid):
    """The proportional set size, which divides shared pages among their users. 0: it has ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return next((int(line.split()[1]) << 10 for line in file if line.startswith("Pss:")), 0)
    except (FileNotFoundError, ProcessLookupError):
        return 0


@pytest.mark.plain  # a sanitizer's memory would count too
def test_their_memory_counts_against_the_limit_of_the_session(nhmtap, tmp_path):
    """The sum includes all of nhmtap's memory, with code and libraries. A library whose table needs
    more than is left ends its worker, and another worker is started."""
    limit, out = (48 + 4 * memory.possible_cpus()) << 20, tmp_path / "out"
    process = nhmtap.start("profile", *FAULTS, "-g", "--unwind", "tables", "-I", "200", "--memory", f"{limit >> 20}M", "-o", out,
                           "--", "sh", "-c", "while :; do clang --version; sleep 0.05; done", start_new_session=True)
    workers_of(process, 2)
    most = 0

    def seen():
        return out.exists() and out.read_text(encoding="utf-8").count('"profile"') > 10
    try:
        while not seen() and process.poll() is None:
            most = max(most, sum(map(pss, [process.pid, *named(process.pid, "nhmtap-worker")])))
            time.sleep(0.01)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        process.communicate()
    assert 0 < most <= limit
