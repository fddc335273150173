# SPDX-License-Identifier: GPL-2.0-only
"""A slow output never holds up the run: readers that stop reading, full disks, renamed files."""
import contextlib
import fcntl
import json
import os
import resource
import select
import signal
import socket
import stat
import subprocess
import time

import jsonschema
import pytest
from puppet import Puppet, pinned, stop
from records import Result, parse, validator
from sessions import DAY, Session, config_schema, faults, is_blocked, until

PAGE = 4096
# Samples: RING_SAMPLES_MOST of bpf/shared.h is that of a CPU's ring.
HALF_A_RING = 1 << 15


class Reader:
    """A pipe of one page that is read only when the test asks for it."""

    def __init__(self, path=None):
        if path:
            os.mkfifo(path)
            self.end, self.other = os.open(path, os.O_RDONLY | os.O_NONBLOCK), -1
        else:
            self.end, self.other = os.pipe()
        fcntl.fcntl(self.end, fcntl.F_SETPIPE_SZ, PAGE)
        fcntl.fcntl(self.end, fcntl.F_SETFL, 0)
        self.text = b""

    def rest(self):
        """Everything that comes until the writers close their ends."""
        if self.other >= 0:
            os.close(self.other)
            self.other = -1
        while piece := os.read(self.end, 1 << 16):
            self.text += piece
        return self.text.decode()

    def close(self):
        os.close(self.end)
        if self.other >= 0:
            os.close(self.other)


@pytest.fixture
def reader():
    made = Reader()
    yield made
    made.close()


@pytest.fixture
def started():
    """Starts a program whose stdout is a file or a pipe. It is killed if it still runs at the end."""
    made = []

    def start(words, **options):
        made.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, text=True,
                                     **{"stderr": subprocess.PIPE, **options}))
        return made[-1]
    yield start
    for process in made:
        if process.poll() is None:
            process.kill()
        process.communicate()


def turns(pid):
    """How often a process has begun to wait for something."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(next(line.split()[1] for line in file if line.startswith("voluntary_ctxt")))


# --- a reader that stops reading ------------------------------------------------------------------

KINDS = {"stat": ("count", []), "profile": ("profile", ["-c", 1, "--by", "ip,tid"]),
         "mem": ("mem", ["-c", 1, "--by", "ip,page"])}


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_that_find_no_room_are_merged_and_nothing_is_lost(nhmtap, control, puppet, started, reader,
                                                                    kind):
    record, options = KINDS[kind]
    process = started(nhmtap.command(kind, "-e", "page-faults", *options, "-I", DAY, "--queue", 8192,
                                     control.option, "-p", puppet.pid), stdout=reader.other)
    control.do("ping")
    for _ in range(100):
        puppet.do("faults=7")
        control.do("snapshot")
    control.send("stop\n")
    result = Result(0, reader.rest(), "")
    assert process.wait(timeout=60) == 0
    reports = [r for r in result.of(record) if r.get("part", 1) == 1]
    assert sum(r["value"] for r in reports) == 700
    assert 1 < len(reports) < 100
    assert sum(r.get("merged", 1) for r in reports) == 101  # the last one is that of the run's end
    assert result.of("gap") == []
    if kind != "stat":
        assert result.one("end")["samples"]["aggregated"] == 700


def test_what_is_merged_is_one_interval_without_a_hole(nhmtap, control, puppet, started, reader):
    process = started(nhmtap.command("stat", "-e", "page-faults", "-I", DAY, "--queue", 8192, control.option,
                                     "-p", puppet.pid), stdout=reader.other)
    for _ in range(100):
        control.do("snapshot")
        time.sleep(0.01)  # so that all of them are longer than what the start and the end take
    control.send("stop\n")
    result = Result(0, reader.rest(), "")
    assert process.wait(timeout=60) == 0
    covered = sum(r["duration_ns"] for r in result.of("count"))
    assert abs(covered - result.one("end")["duration_ns"]) < 0.1 * covered


def test_single_samples_that_find_no_room_are_counted_and_stay_in_the_tables(nhmtap, puppet, started, reader):
    process = started(nhmtap.command("mem", "-e", "page-faults", "-c", 1, "--stream", "--queue", 8192, "-p",
                                     puppet.pid), stdout=reader.other)
    reader.text = os.read(reader.end, 64)  # it has begun
    for _ in range(10):
        puppet.do("faults=100")
        seen = turns(process.pid)
        until(lambda: turns(process.pid) > seen + 2)  # so it has read these samples
    puppet.end()
    result = Result(0, reader.rest(), "")
    assert process.wait(timeout=60) == 0
    told, gaps = result.one("end"), result.of("gap")
    assert told["stream"]["queue_full"] > 0
    assert len(result.of("sample")) == told["stream"]["samples"]
    assert sum(told["stream"].values()) == told["samples"]["aggregated"] >= 1000
    assert sum(gap["types"]["sample"] for gap in gaps) == told["stream"]["queue_full"]
    assert {gap["cause"] for gap in gaps} == {"queue_full"}


@pytest.mark.parametrize("beside", [False, True])
def test_a_gap_tells_what_missing_samples_stood_for(nhmtap, tmp_path, started, reader, beside):
    """One page is read of what is written while more than half of a ring comes at once, so most of what is kept of it finds
    no room. The event is a page fault, and its table counts each."""
    more = ["-o", "-", "-o", tmp_path / "beside"] if beside else []
    with Puppet(before=pinned()) as puppet:
        process = started(nhmtap.command("stream", "--adaptive", "-e", "page-faults:u", "-c", 1, "--fields", "addr", "--queue",
                                         8192, *more, "-p", puppet.pid), stdout=reader.other)
        reader.text = os.read(reader.end, 64)  # it has begun
        stop(process.pid)
        puppet.do(f"faults={HALF_A_RING + 5000}")
        process.send_signal(signal.SIGCONT)
    result = Result(0, reader.rest(), "")
    assert process.wait(timeout=60) == 0
    end, gaps, samples = result.one("end"), result.of("gap"), result.of("sample")
    assert result.one("stream")["value"] == end["samples"]["aggregated"] >= HALF_A_RING + 5000
    records = sum(gap["types"]["sample"] for gap in gaps)
    missing = sum(gap.get("missing", gap["types"]["sample"]) for gap in gaps)  # it is told where it is more
    assert missing > records + HALF_A_RING // 4
    whole = missing + sum(r.get("every", 1) for r in samples)
    lost = sum(r["missing"] for r in result.of("lost"))
    assert records + len(samples) + end["stream"]["left_out"] + lost == end["samples"]["aggregated"]
    # Of the last samples, which the puppet's end takes, none may have been kept.
    assert abs(whole + lost - end["samples"]["aggregated"]) < 500


def test_rows_tell_what_missing_samples_stood_for_as_records_do(nhmtap, started, reader):
    with Puppet(before=pinned()) as puppet:
        process = started(nhmtap.command("stream", "--adaptive", "-e", "page-faults:u", "-c", 1, "--fields", "addr", "--queue",
                                         8192, "--format", "flat", "-p", puppet.pid), stdout=reader.other)
        while not select.select([reader.end], [], [], 0.05)[0]:  # rows have no start record
            puppet.do("faults=100")
        stop(process.pid)
        puppet.do(f"faults={HALF_A_RING + 5000}")
        process.send_signal(signal.SIGCONT)
    rows = parse(reader.rest())
    assert process.wait(timeout=60) == 0
    gaps = [row for row in rows if row.get("lost") == "queue_full"]
    assert gaps and sum(gap.get("missing", gap["missed"]) for gap in gaps) > sum(gap["missed"] for gap in gaps) + HALF_A_RING // 4


@pytest.fixture
def blocked(nhmtap, started, reader, control):
    """Starts a run whose reader stops reading, and waits until an interval finds no room. Returns the run and
    its pid."""
    def start(before=(), **options):
        process = started([*before, *nhmtap.command("stat", "-a", "-e", "cs", "-I", DAY, "--queue", 8192,
                                                    control.option)], stdout=reader.other, **options)
        for _ in range(100):
            control.do("snapshot")
        if not before:
            return process, process.pid
        with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as children:
            return process, int(children.read())
    return start


GRACE_S = 2  # DRAIN_NS in user/run/streams.c: how long a run waits for a reader that does not read
PLACES = {"host": [], "process 1": ["unshare", "--pid", "--fork"]}


@pytest.mark.parametrize("place", PLACES)
def test_a_signal_ends_a_run_whose_reader_stands_still(blocked, place):
    process, pid = blocked(PLACES[place])
    os.kill(pid, signal.SIGTERM)
    assert process.wait(timeout=60) == 3
    assert "its reader has not taken the last records" in process.stderr.read()


def interrupted(pid):
    with contextlib.suppress(ProcessLookupError):  # it may have ended
        os.kill(pid, signal.SIGINT)


@pytest.mark.parametrize("place", PLACES)
def test_a_second_signal_ends_it_at_once(blocked, place):
    took = GRACE_S
    while took >= GRACE_S:  # on a busy machine the second one may come after that time
        process, pid = blocked(PLACES[place])
        began = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        until(lambda: process.poll() is not None or not is_blocked(pid, signal.SIGINT))
        until(lambda: process.poll() is not None or interrupted(pid))  # soon after the first, it is the same
        took = time.monotonic() - began
        status = process.returncode
    assert status == 128 + signal.SIGINT


def test_a_reader_that_returns_in_time_gets_all_of_it(blocked, reader):
    process, pid = blocked()
    os.kill(pid, signal.SIGTERM)
    result = Result(0, reader.rest(), "")
    assert process.wait(timeout=60) == 0
    assert result.one("end")["reason"] == "terminated"


def test_messages_wait_for_no_reader_either(blocked, reader):
    # stderr is the same pipe, and full.
    process, pid = blocked(stderr=reader.other)
    os.kill(pid, signal.SIGTERM)
    assert process.wait(timeout=60) == 3


def test_a_run_that_ends_by_itself_waits_for_its_reader(nhmtap, started, reader):
    process = started(nhmtap.command("stat", "-a", "-e", "cs", "-I", 1, "--duration", 0.5, "--queue", 8192),
                      stdout=reader.other)
    time.sleep(0.8)
    assert process.poll() is None
    result = Result(0, reader.rest(), "")
    assert process.wait(timeout=60) == 0
    assert result.one("end")["reason"] == "duration"


def test_an_output_that_is_non_blocking_already_is_no_error(nhmtap, started, reader):
    fcntl.fcntl(reader.other, fcntl.F_SETFL, os.O_NONBLOCK)
    process = started(nhmtap.command("stat", "-a", "-e", "page-faults", "-I", 1, "--duration", 0.5), stdout=reader.other)
    time.sleep(0.2)
    result = Result(0, reader.rest(), "")
    assert (process.wait(timeout=60), process.stderr.read()) == (0, "")
    assert result.one("end")["reason"] == "duration"


def test_the_flags_of_a_pipe_that_others_have_too_stay_as_they_are(blocked, reader):
    process, pid = blocked()
    assert not fcntl.fcntl(reader.other, fcntl.F_GETFL) & os.O_NONBLOCK
    os.kill(pid, signal.SIGTERM)
    reader.rest()
    assert process.wait(timeout=60) == 0


def test_a_socket_may_be_stdout(nhmtap, started):
    ours, theirs = socket.socketpair()
    process = started(nhmtap.command("stat", "-a", "-e", "cs", "-I", 5, "--duration", 0.3), stdout=theirs)
    theirs.close()
    text = b""
    while piece := ours.recv(1 << 16):
        text += piece
    ours.close()
    assert process.wait(timeout=60) == 0
    assert Result(0, text.decode(), "").one("end")["reason"] == "duration"


def test_one_that_stands_still_holds_no_other_up_and_is_told_what_it_has_missed(nhmtap, tmp_path, puppet):
    pipe = Reader(tmp_path / "pipe")
    with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid))],
                 outputs=[{}, {"path": str(tmp_path / "pipe"), "queue_bytes": 8192}]) as session:
        for _ in range(100):
            puppet.do("faults=7")
            session.do("snapshot")
        assert len([line for line in session.text().splitlines() if '"type":"count"' in line]) == 100
        session.process.send_signal(signal.SIGTERM)
        text = pipe.rest()
        whole = session.wait()
    records = parse(text)
    gap = next(r for r in records if r["type"] == "gap")
    missed = sum(r["types"].get("count", 0) for r in records if r["type"] == "gap")
    there = [r["value"] for r in records if r["type"] == "count"]
    assert [r["value"] for r in whole.of("count")][:100] == [7] * 100
    assert "merged" not in text and missed > 50
    assert len(there) + missed == len(whole.of("count"))
    assert gap["activity"] == "session" and gap["since"] < gap["until"]
    assert records[-1]["type"] == "end" and records[-1]["records"] == len(records)
    pipe.close()


# --- files ----------------------------------------------------------------------------------------


def tmpfs(size, folder):
    """A prefix for commands: the folder is a small disk of its own while they run."""
    return ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size={size} none "$0" && exec "$@"', folder]


def test_a_full_disk_is_waited_for_and_the_stream_goes_on(nhmtap, tmp_path, puppet, control, started):
    disk = tmp_path / "disk"
    disk.mkdir()
    process = started([*tmpfs("64k", disk), *nhmtap.command(
        "stat", "-e", "page-faults", "-I", DAY, control.option, "--queue", 16384, "-o", disk / "out", "-p",
        puppet.pid)])
    control.do("ping")
    inside = f"/proc/{process.pid}/root{disk}"
    with open(f"{inside}/ballast", "wb", buffering=0) as ballast:
        with pytest.raises(OSError):
            while True:
                ballast.write(bytes(PAGE))
    for _ in range(200):
        puppet.do("faults=3")
        control.do("snapshot")
    assert "No space left on device; it goes on when there is room" in process.stderr.readline()
    os.unlink(f"{inside}/ballast")
    until(lambda: '"type":"gap"' in open(f"{inside}/out", encoding="utf-8").read())
    puppet.do("faults=3")
    control.do("snapshot")
    # The disk disappears with the process that mounted it.
    with open(f"{inside}/out", encoding="utf-8") as file:
        control.send("stop\n")
        assert process.wait(timeout=60) == 0
        result = Result(0, file.read(), "")
    gap = result.one("gap")
    assert (gap["cause"], gap["why"], gap["records"]) == ("disk_full", "No space left on device", 0)
    assert gap["since"] < gap["until"]
    assert sum(r["value"] for r in result.of("count")) == 603
    assert any("merged" in r for r in result.of("count"))


def unpacked(file):
    """Of a file that is open, and may be growing."""
    file.seek(0)
    return subprocess.run(["zstd", "-dcq"] if file.name.endswith(".zst") else ["cat"], stdin=file, capture_output=True, text=True,
                          check=False).stdout


@pytest.mark.parametrize("name", ["out", "out.zst"])
def test_what_waits_for_room_when_a_file_is_renamed_goes_into_the_next_file(nhmtap, tmp_path, puppet, control, started, name):
    disk = tmp_path / "disk"
    disk.mkdir()
    process = started([*tmpfs("64k", disk), *nhmtap.command("stat", "-e", "page-faults", "-I", DAY, control.option, "-o", disk / name,
                                                            "-p", puppet.pid)])
    control.do("ping")
    inside = f"/proc/{process.pid}/root{disk}"
    until(lambda: os.path.getsize(f"{inside}/{name}"))
    with open(f"{inside}/ballast", "wb", buffering=0) as ballast:
        with pytest.raises(OSError):
            while True:
                ballast.write(bytes(PAGE))
    done = 0

    def count():
        nonlocal done
        puppet.do("faults=3")
        control.do("snapshot")
        done += 3
        return select.select([process.stderr], [], [], 0)[0]
    until(count)
    assert "No space left on device; it goes on when there is room" in process.stderr.readline()
    count()
    os.rename(f"{inside}/{name}", f"{inside}/old-{name}")
    process.send_signal(signal.SIGHUP)
    until(lambda: os.path.exists(f"{inside}/{name}"))
    count()
    os.unlink(f"{inside}/ballast")
    with open(f"{inside}/{name}", "rb") as file:
        until(lambda: '"type":"gap"' in unpacked(file))
    # The disk disappears with the process that mounted it.
    with open(f"{inside}/old-{name}", "rb") as old, open(f"{inside}/{name}", "rb") as new:
        control.send("stop\n")
        assert process.wait(timeout=60) == 0, process.stderr.read()
        earlier, later = unpacked(old), unpacked(new)
    assert '"start"' in earlier
    result = Result(0, earlier + later, "")
    gap = result.one("gap")
    assert (gap["cause"], gap["why"], gap["records"]) == ("disk_full", "No space left on device", 0)
    assert sum(r["value"] for r in result.of("count")) == done


def test_a_file_that_may_not_get_longer_is_an_error_and_ends_with_a_whole_record(nhmtap, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
    out = tmp_path / "out"
    result = nhmtap("mem", "-e", "page-faults", "-c", 1, "--stream", "-o", out, "--", "sh", "-c",
                    "sleep 0.2; exit 0", preexec_fn=limit)
    assert result.status == 3
    assert "File too large" in result.err
    assert parse(out.read_text())[0]["type"] == "start"


@pytest.mark.parametrize("when, status", [("2", 0), ("2+", 3)], ids=["once", "from then on"])
def test_a_file_that_would_block_is_tried_again_and_nobody_waits_for_it_to_change(nhmtap, tmp_path, when, status):
    """As with a network file system whose server is busy. epoll can't watch regular files."""
    out = tmp_path / "out"
    result = nhmtap("stat", "-e", "page-faults", "-I", "20", "-o", out, "--", "sleep", "0.1", timeout=60,
                    before=["strace", "-o", "/dev/null", "-P", out, "-e", f"inject=write:error=EAGAIN:when={when}"],
                    env=os.environ | {"ASAN_OPTIONS": "detect_leaks=0"})  # a process has only one tracer
    assert result.status == status, result.err
    assert "Resource temporarily unavailable" in result.err
    records = parse(out.read_text())
    assert records[0]["type"] == "start" and (records[-1]["type"] == "end") == (not status)


def test_the_command_has_the_signal_of_long_files_as_it_was(nhmtap, tmp_path):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
    result = nhmtap("stat", "-e", "cs", "--", "sh", "-c", f"ulimit -c 0; exec head -c 200000 /dev/zero > "
                    f"{tmp_path}/long", preexec_fn=limit)
    assert result.one("end")["command"]["signal"] == signal.SIGXFSZ


@pytest.mark.parametrize("form", ["prometheus", "openmetrics"])
@pytest.mark.parametrize("kind", ["device", "link to a device", "fifo", "socket", "stdout", "directory"])
def test_a_page_does_not_take_the_place_of_what_is_no_file(nhmtap, tmp_path, kind, form):
    """The file is replaced as a whole, by a new one. Root would replace /dev/null for everyone."""
    place = tmp_path / "place"
    if kind == "device":
        os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    elif kind == "fifo":
        os.mkfifo(place)
    elif kind == "directory":
        place.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(place))
    else:
        place.symlink_to({"stdout": "/proc/self/fd/1", "link to a device": "/dev/null"}[kind])
    before = os.lstat(place)
    with open(tmp_path / "stdout", "wb") as out:
        run = subprocess.run(nhmtap.command("stat", "-e", "page-faults", "-o", f"{form}={place}", "--", "true"),
                             stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert run.returncode == 1 and ("this is none" in run.stderr or "it is a folder" in run.stderr), run.stderr
    assert os.path.samestat(os.lstat(place), before) and sorted(os.listdir(tmp_path)) == ["place", "stdout"]


def test_a_refused_run_leaves_what_was_there(nhmtap, tmp_path):
    out = tmp_path / "out"
    nhmtap.into(out, "stat", "-e", "cs", "--", "true")
    before = out.read_text()
    for wrong in (["-e", "cycels", "--", "true"], ["-e", "cs", "--", "/no/such/program"]):
        result = nhmtap("stat", "-o", out, *wrong)
        assert result.status in (1, 127) and result.err
        assert out.read_text() == before


def test_a_run_replaces_what_was_there_only_once_it_begins(nhmtap, tmp_path, control):
    out = tmp_path / "out"
    out.write_text("old\n" * 10000)
    process = nhmtap.start("stat", "-e", "cs", "-o", out, control.option, "-a")
    control.do("ping")
    assert parse(out.read_text())[0]["type"] == "start"
    control.send("stop\n")
    assert process.wait(timeout=60) == 0
    process.communicate()
    assert [r["type"] for r in parse(out.read_text())] == ["start", "count", "end"]


def test_append_keeps_what_was_there(nhmtap, tmp_path):
    out = tmp_path / "out"
    for _ in range(2):
        assert nhmtap("stat", "-e", "cs", "-o", out, "--append", "--", "true").status == 0
    records = parse(out.read_text())
    assert [r["type"] for r in records] == ["start", "count", "end"] * 2
    assert len({r["run_id"] for r in records}) == 2


def test_the_files_of_a_session_keep_what_was_there(nhmtap, tmp_path, puppet):
    out = tmp_path / "records"
    for _ in range(2):
        for name in ("ctl", "ack"):
            (tmp_path / name).unlink(missing_ok=True)
        with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid))],
                     outputs=[{"path": str(out)}]) as session:
            assert session.end(path=out).status == 0
    assert [r["type"] for r in parse(out.read_text())].count("end") == 4


def test_a_hangup_opens_the_file_of_a_run_again(nhmtap, tmp_path, puppet, control):
    out, old = tmp_path / "out", tmp_path / "out.1"
    process = nhmtap.start("stat", "-e", "page-faults", "-I", DAY, control.option, "-o", out, "-p",
                           puppet.pid)
    control.do("ping")
    puppet.do("faults=10")
    control.do("snapshot")
    out.rename(old)
    process.send_signal(signal.SIGHUP)
    until(out.exists)
    puppet.do("faults=20")
    control.do("stop")
    process.communicate(timeout=60)
    assert process.returncode == 0
    before, behind = parse(old.read_text()), parse(out.read_text())
    assert [r["value"] for r in before + behind if r["type"] == "count"] == [10, 20]
    assert [r["type"] for r in before] == ["start", "count"]
    assert [r["seq"] for r in before + behind] == list(range(4))


def test_a_file_that_is_cut_off_by_others_has_no_hole(nhmtap, tmp_path, puppet, control):
    out = tmp_path / "out"
    process = nhmtap.start("stat", "-e", "page-faults", "-I", DAY, control.option, "-o", out, "-p",
                           puppet.pid)
    control.do("ping")
    os.truncate(out, 0)  # as logrotate's copytruncate does
    puppet.do("faults=10")
    control.do("stop")
    process.communicate(timeout=60)
    assert [r["type"] for r in parse(out.read_text())] == ["count", "end"]


@pytest.mark.parametrize("size", [1, 8191])
def test_a_queue_has_room_for_a_record(nhmtap, tmp_path, size):
    result = nhmtap("stat", "-e", "cs", "--queue", size, "--", "true")
    assert result.status == 1 and "8192" in result.err
    config = {"activities": [faults("a", "stat", all_cpus=True)], "outputs": [{"queue_bytes": size}]}
    (tmp_path / "config").write_text(json.dumps(config))
    result = nhmtap("run", "--check", tmp_path / "config")
    assert result.status == 1 and "/outputs/0/queue_bytes" in result.err
    with pytest.raises(jsonschema.ValidationError):
        config_schema().validate(config)


def test_a_gap_has_a_schema_that_tells_its_causes_apart():
    gap = {"type": "gap", "schema_version": "2.0.0", "time": "2026-01-31T23:59:59.123456789Z",
           "run_id": "0" * 32, "seq": 3, "activity": "stat", "cause": "disk_full",
           "since": "2026-01-31T23:59:59.123456789Z", "until": "2026-01-31T23:59:59.123456789Z", "records": 0}
    assert not validator("gap").is_valid(gap)  # "why" must name the system's error
    validator("gap").validate({**gap, "why": "No space left on device"})
    validator("gap").validate({**gap, "cause": "queue_full", "types": {"count": 3}})


# --- a run that is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["flat", "table", "folded", "pprof", "otlp", "openmetrics", "clickhouse"])
@pytest.mark.parametrize("ending", ["", ".zst"])
def test_a_refused_run_makes_no_file_that_would_stay_empty(nhmtap, tmp_path, form, ending):
    if ending and form == "openmetrics":
        ending = ""  # a page is not compressed
    done = nhmtap("profile", "-g", "-e", "no-such-event", "-o", f"{form}=made{ending}", "--", "true", cwd=tmp_path)
    assert done.status == 1 and not os.listdir(tmp_path)
    (tmp_path / "empty").touch()  # what was there before stays
    (tmp_path / "link").symlink_to("empty")
    for place in ("empty", "link"):
        nhmtap("profile", "-g", "-e", "no-such-event", "-o", f"{form}={place}", "--", "true", cwd=tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["empty", "link"]


def test_outputs_before_one_that_is_refused_make_no_file(nhmtap, tmp_path):
    done = nhmtap("stat", "-e", "page-faults", "-o", "one", "-o", "flat=two", "-o", "nowhere/x", "--", "true", cwd=tmp_path)
    assert done.status == 1 and not os.listdir(tmp_path)


def test_a_run_without_samples_makes_its_file(nhmtap, tmp_path):
    done = nhmtap("profile", "-e", "page-faults", "-c", 10**9, "--format", "folded", "-o", "made", "--", "true", cwd=tmp_path)
    assert done.status == 0 and (tmp_path / "made").read_bytes() == b""


def test_a_reload_that_is_refused_leaves_no_file_of_its_outputs(nhmtap, tmp_path, puppet):
    activities = [faults("counts", "stat", pid=str(puppet.pid))]
    with Session(nhmtap, tmp_path, activities, outputs=[{}]) as session:
        session.reload(activities, outputs=[{}, {"path": str(tmp_path / "made")}, {"path": str(tmp_path / "none" / "x")}])
        until(lambda: "none/x" in session.said())
        assert not (tmp_path / "made").exists()
        session.end()


@pytest.mark.parametrize("place", ["there", "there/", "new/"])
@pytest.mark.parametrize("form", ["json", "openmetrics"])
def test_a_run_and_its_check_refuse_a_folder_alike(nhmtap, tmp_path, place, form):
    (tmp_path / "there").mkdir()
    (tmp_path / "config").write_text(json.dumps({"activities": [{"name": "a", "command": "stat", "event": "page-faults"}],
                                                 "outputs": [{"path": place, "format": form}]}))
    run, check = (nhmtap("run", *words, "config", "--", "true", cwd=tmp_path) for words in ([], ["--check"]))
    assert run.status == check.status == 1 and run.err == check.err
    assert f"CONFIG, /outputs/0/path: option --output '{place}': it is a folder. Next: add the name of a file" in run.err


@pytest.mark.parametrize("form", ["openmetrics", "prometheus"])
@pytest.mark.parametrize("kind", ["fifo", "device", "link"])
def test_a_run_and_its_check_refuse_a_page_in_place_of_what_is_no_file_alike(nhmtap, tmp_path, kind, form):
    if kind == "fifo":
        os.mkfifo(tmp_path / "place")
    elif kind == "link":  # to a file by way of /proc, as /dev/stdout may be
        (tmp_path / "page").touch()
        (tmp_path / "place").symlink_to("/proc/self/cwd/page")
    else:
        os.mknod(tmp_path / "place", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    (tmp_path / "config").write_text(json.dumps({"activities": [{"name": "a", "command": "stat", "event": "page-faults"}],
                                                 "outputs": [{"path": "place", "format": form}]}))
    run, check = (nhmtap("run", *words, "config", "--", "true", cwd=tmp_path) for words in ([], ["--check"]))
    assert run.status == check.status == 1 and run.err == check.err
    assert "CONFIG, /outputs/0/path: option --output 'place': only a file can be replaced as a whole, and this is none" in run.err


@pytest.mark.parametrize("ending", ["", ".zst"])
def test_a_run_that_writes_nothing_leaves_nothing_of_the_one_before(nhmtap, tmp_path, ending):
    """Stacks of no samples are no lines. A run that is refused leaves the file as it was."""
    path = tmp_path / f"x.folded{ending}"

    def text():
        with open(path, encoding="utf-8") as file:
            return unpacked(file)
    run = ["profile", "-e", "page-faults:u", "-g", "--format", "folded", "-o", path]
    assert nhmtap(*run, "-c", "1", "--", "true").status == 0
    before = text()
    assert before.startswith("true;")
    assert nhmtap(*run, "-c", "1", "--", tmp_path / "none").status == 127
    assert text() == before
    assert nhmtap(*run, "-c", "1000000", "--", "true").status == 0
    assert text() == ""
