# SPDX-License-Identifier: GPL-2.0-only
"""SIGHUP and the outputs of a session: every kind of output goes on over it, at its own place and with its own
counts; what waits for one that is removed is written or told."""
import datetime
import fcntl
import json
import os
import re
import signal
import socket
import stat
import subprocess
import threading
import time

import callgrind
import cgroups
import firefox
import native
import otlp
import otlp_profiles
import pprof
import pytest
import speedscope
from asked import ask
from fifos import open_fifo
from otlp import Receiver
from records import Result, parse
from sessions import Session, faults, until


def activities(puppet, *more):
    pid = str(puppet.pid)
    return [faults("counts", "stat", pid=pid), {**faults("samples", "profile", pid=pid), "by": "stack"}, *more]


# --- every kind of output -------------------------------------------------------------------------

class File:
    """An output in a file. `reads` makes the number of page faults of its text."""

    def __init__(self, folder, form, name, reads):
        self.form, self.path, self.reads = form, str(folder / name), reads

    def config(self):
        return {"format": self.form, "path": self.path}

    def total(self):
        return self.reads(open(self.path, encoding="utf-8").read())

    def close(self):
        pass


class Files(File):
    """A file for each interval: %t in the name. Bytes are read."""

    def total(self):
        folder, name = os.path.split(self.path)
        before, _, behind = name.partition("%t")
        paths = [os.path.join(folder, n) for n in os.listdir(folder) if n.startswith(before) and n.endswith(behind)]
        return sum(self.reads(path) for path in paths)


class Posts:
    """Requests to a server."""

    def __init__(self, form, path, reads):
        self.form, self.path, self.reads, self.sum = form, path, reads, 0
        self.receiver = Receiver()
        self.receiver.__enter__()

    def config(self):
        return {"format": self.form, "path": self.receiver.url(self.path)}

    def total(self):
        self.sum += sum(self.reads(request) for request in self.receiver.rest())
        return self.sum

    def close(self):
        self.receiver.__exit__()


class Socket(File):
    """Takes what comes to a unix socket."""

    def __init__(self, folder, form, reads):
        super().__init__(folder, form, "socket", reads)
        self.text = b""
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                one, _ = self.server.accept()
            except OSError:
                return
            while piece := one.recv(1 << 16):
                self.text += piece

    def config(self):
        return {"format": self.form, "path": f"unix:{self.path}"}

    def total(self):
        return self.reads(self.text[:self.text.rfind(b"\n") + 1].decode())

    def close(self):
        self.server.close()


class Page(File):
    def __init__(self, folder, form, place):
        super().__init__(folder, form, "listen", of_page)
        self.place = place

    def config(self):
        return {"format": self.form, "path": "listen"}

    def total(self):
        return self.reads(ask(self.place, "/metrics")[1])


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def of_records(text):
    return sum(r["value"] for r in lines(text) if r["type"] == "count" and r["activity"] == "counts")


def of_flat(text):
    rows = [r for r in lines(text) if r.get("activity") == "counts" and "value" in r]
    assert not rows or rows[-1]["total"] == sum(r["value"] for r in rows)  # from the beginning of the run
    return sum(r["value"] for r in rows)


def of_totals(text):
    return [r["total"] for r in lines(text) if r.get("activity") == "counts" and "value" in r][-1]


def of_table(text):
    return sum(int(n.replace(",", "").replace("_", "")) for n in re.findall(r"([\d,_]+)\s+page-faults$", text, re.M))


def of_page(text):
    return sum(int(n) for n in re.findall(r'^nhmtap_events_total\{activity="counts"[^}]*\} (\d+)', text, re.M))


def of_otlp(text):
    return otlp.total(text.splitlines(), "nhmtap.events", activity="counts")


def of_pprof(path):
    return sum(sample.value[0] for sample in pprof.read(path).sample)


def of_folded(text):
    return sum(int(line.rpartition(" ")[2]) for line in text.splitlines())


def of_posted_profile(folder):
    def read(request):
        (folder / "posted").write_bytes(request.body)
        return of_pprof(folder / "posted")
    return read


def of_speedscope(path):
    return sum(weight for _, weight in speedscope.stacks(speedscope.read(path), "page-faults"))


def of_callgrind(path):
    _, summary, _, _ = callgrind.read(path)
    return summary[0]


def of_firefox(path):
    return sum(weight for _, _, weight in firefox.stacks(firefox.read(path)))


def of_otlp_profiles(data):
    message = otlp_profiles.read(data)
    return sum(sample.values[0] for part in message.parts for profile in part.profiles if message.type(profile)[0] == "page-faults"
               for sample in profile.samples)


def of_native(content):
    return sum(row["value"] for row in native.rows(content) if row["activity"] == "counts" and row.get("value"))


KINDS = {
    "json": lambda folder, place: File(folder, "json", "x.json", of_records),
    "flat": lambda folder, place: File(folder, "flat", "x.flat", of_flat),
    "table": lambda folder, place: File(folder, "table", "x.table", of_table),
    "openmetrics": lambda folder, place: File(folder, "openmetrics", "x.om", of_page),
    "prometheus": lambda folder, place: File(folder, "prometheus", "x.prom", of_page),
    "otlp in a file": lambda folder, place: File(folder, "otlp", "x.otlp", of_otlp),
    "json by time": lambda folder, place: Files(folder, "json", "%t.json", lambda p: of_records(open(p).read())),
    "flat by time": lambda folder, place: Files(folder, "flat", "%t.flat", lambda p: sum(
        r["value"] for r in lines(open(p).read()) if r.get("activity") == "counts" and "value" in r)),
    "pprof by time": lambda folder, place: Files(folder, "pprof", "%t.pb.gz", of_pprof),
    "folded by time": lambda folder, place: Files(folder, "folded", "%t.folded", lambda p: of_folded(open(p).read())),
    "speedscope by time": lambda folder, place: Files(folder, "speedscope", "%t.speedscope.json", of_speedscope),
    "callgrind by time": lambda folder, place: Files(folder, "callgrind", "callgrind.out.%t", of_callgrind),
    "firefox by time": lambda folder, place: Files(folder, "firefox", "%t.json", of_firefox),
    "otlp-profiles by time": lambda folder, place: Files(
        folder, "otlp-profiles", "%t.pb", lambda p: of_otlp_profiles(open(p, "rb").read())),
    "a socket": lambda folder, place: Socket(folder, "json", of_records),
    "flat to a socket": lambda folder, place: Socket(folder, "flat", of_flat),
    "the page of --listen": lambda folder, place: Page(folder, "openmetrics", place),
    "otlp to a server": lambda folder, place: Posts("otlp", "/v1/metrics", lambda r: of_otlp(r.body.decode())),
    "pprof to a server": lambda folder, place: Posts("pprof", "/any", of_posted_profile(folder)),
    "otlp-profiles to a server": lambda folder, place: Posts("otlp-profiles", "/any", lambda r: of_otlp_profiles(r.body)),
    "clickhouse to a server": lambda folder, place: Posts("clickhouse", "/?query=x", lambda r: of_native(r.body)),
    "folded to Pyroscope": lambda folder, place: Posts("folded", "/ingest?name=x", lambda r: of_folded(r.body.decode())),
}


@pytest.fixture
def output(request, tmp_path):
    folder = tmp_path / "outputs"
    folder.mkdir()
    made = KINDS[request.param](folder, f"unix:{tmp_path}/http")
    yield made
    made.close()


@pytest.mark.parametrize("output", KINDS, indirect=True)
def test_an_output_goes_on_over_every_kind_of_hup_at_its_own_place(nhmtap, tmp_path, puppet, output):
    empty = tmp_path / "empty"
    empty.mkdir()
    one = output.config()
    others = [{"path": str(tmp_path / "other")}, {"format": "prometheus", "path": str(tmp_path / "other.prom")}]
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[one], listen=f"unix:{tmp_path}/http",
                 before=["env", "-C", empty]) as session:
        done = 0

        def count():
            nonlocal done
            puppet.do("faults=100")
            session.do("snapshot")
            done += 100
            until(lambda: output.total() == done)

        count()
        for _ in range(2):  # as logrotate does every night
            session.hup()
            count()
        session.config.write_text("{")
        session.hup()
        count()
        session.reload(activities(puppet, faults("more", "stat", pid=str(puppet.pid), event="cs")))
        count()
        session.reload(activities(puppet), outputs=[others[0], one, others[1]])
        count()
        session.reload(activities(puppet), outputs=[others[1], one])
        count()
        session.reload(activities(puppet), outputs=[one])
        count()
        assert output.total() == done == 800
        assert session.end(path=session.out).status == 0
    assert os.listdir(empty) == []


def unpacked(path):
    command = ["zstd", "-dcq"] if path.suffix == ".zst" else ["cat"]
    return subprocess.run([*command, path], stdout=subprocess.PIPE, check=True).stdout


ROTATED = {"json": of_records, "flat": lambda text: sum(r["value"] for r in lines(text) if r["activity"] == "counts" and "value" in r),
           "table": of_table, "otlp": of_otlp, "folded": of_folded}


@pytest.mark.parametrize("ending", ["", ".zst"])
@pytest.mark.parametrize("form", [*ROTATED, "clickhouse"])
def test_what_files_have_that_are_renamed_before_hup_adds_up(nhmtap, tmp_path, puppet, form, ending):
    """Each file is whole by itself, as what reads it later takes it."""
    folder = tmp_path / "files"
    folder.mkdir()
    path = folder / f"x{ending}"
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[{"format": form, "path": str(path)}]) as session:
        for number in range(3):
            puppet.do(f"faults={100 + number}")
            session.do("snapshot")
            path.rename(folder / f"{number}{ending}")
            session.hup()
        assert session.end(path=session.out).status == 0
    files = [unpacked(folder / f"{name}{ending}") for name in (0, 1, 2, "x")]
    assert [of_native(file) if form == "clickhouse" else ROTATED[form](file.decode()) for file in files] == [100, 101, 102, 0]


def test_a_configmaps_way_of_replacing_a_file_is_followed(nhmtap, tmp_path, puppet):
    """The kubelet replaces a link to a folder; the file that is read is a link through that."""
    page = tmp_path / "x.prom"
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[{}, {"format": "prometheus", "path": str(page)}]) as session:
        for version in range(3):
            (tmp_path / f"v{version}").mkdir()
            text = session.config.read_text()
            (tmp_path / f"v{version}" / "config.json").write_text(text)
            os.symlink(f"v{version}", tmp_path / "data_tmp")
            os.rename(tmp_path / "data_tmp", tmp_path / "data")
            os.symlink("data/config.json", tmp_path / "link")
            os.rename(tmp_path / "link", session.config)
            session.hup()
            puppet.do("faults=10")
            session.do("snapshot")
            assert of_page(page.read_text()) == 10 * (version + 1)
        assert session.end().status == 0


def test_a_host_that_is_renamed_has_its_new_name_in_what_begins_after_hup(nhmtap, tmp_path, puppet):
    other = tmp_path / "other"
    with Session(nhmtap, tmp_path, activities(puppet), before=["unshare", "--uts"]) as session:
        subprocess.run(["nsenter", "-t", str(session.process.pid), "--uts", "hostname", "renamed"], check=True)
        session.reload(activities(puppet), outputs=[{}, {"path": str(other)}])
        assert session.end().status == 0
    names = {r["resource"]["host.name"] for r in parse(other.read_text()) if "resource" in r}
    assert names == {"renamed"}


def test_cgroups_that_are_mounted_during_a_session_are_found_after_hup(nhmtap, tmp_path, puppet, cgroup):
    """The session's own mount namespace has none at first."""
    path, folder = cgroup
    hidden = ["unshare", "--mount", "sh", "-c", 'umount -l -a -t cgroup2; exec "$@"', "-"]
    first = activities(puppet)
    asked = [*first, faults("inside", "stat", cgroup=path), faults("by", "profile", all_cpus=True, by="cgroup")]
    with Session(nhmtap, tmp_path, first, before=hidden) as session:
        session.reload(asked)
        errors = session.until(lambda records: any(r["type"] == "error" for r in records))
        assert {r["activity"] for r in errors if r["type"] == "error"} >= {"inside"}
        subprocess.run(["nsenter", "-t", str(session.process.pid), "--mount", "mount", "-t", "cgroup2", "none",
                        cgroups.mount()], check=True)
        session.reload(asked)
        subprocess.run([*cgroups.inside(folder), "true"], check=True)
        result = session.end()
    assert result.status == 0
    inside = sum(r["value"] for r in result.of("count", activity="inside"))
    by = sum(e["samples"] for r in result.of("profile", activity="by") for e in r["entries"] if e.get("cgroup") == path)
    assert inside and inside == by


def test_a_path_that_a_variable_made_is_kept_as_well(nhmtap, tmp_path, puppet):
    page = tmp_path / "x.prom"
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[{}, {"format": "prometheus", "path": "${HERE}/x.prom"}],
                 before=["env", f"HERE={tmp_path}"]) as session:
        for number in (10, 20):
            session.hup()
            puppet.do("faults=10")
            session.do("snapshot")
            assert of_page(page.read_text()) == number
        session.end()


# --- outputs that change --------------------------------------------------------------------------

CHANGES = {"queue_bytes": {"queue_bytes": 16384}, "types": {"types": ["start", "count", "end"]},
           "activities": {"activities": ["counts"]}}


@pytest.mark.parametrize("change", CHANGES)
def test_the_counts_of_an_output_that_changes_at_its_place_go_on(nhmtap, tmp_path, puppet, change):
    flat, page = tmp_path / "flat", tmp_path / "page"
    outputs = [{"format": "flat", "path": str(flat)}, {"format": "openmetrics", "path": str(page)}]
    with Session(nhmtap, tmp_path, activities(puppet), outputs=outputs) as session:
        puppet.do("faults=10")
        session.do("snapshot")
        session.reload(activities(puppet), outputs=[{**one, **CHANGES[change]} for one in outputs])
        puppet.do("faults=5")
        session.do("snapshot")
        session.end(path=flat)
    rows = [r for r in lines(flat.read_text()) if r.get("activity") == "counts" and "value" in r]
    assert [r["total"] for r in rows if r["value"]] == [10, 15] and of_page(page.read_text()) == 15
    assert [r["seq"] for r in lines(flat.read_text())] == list(range(len(lines(flat.read_text()))))


def test_the_counts_of_an_output_that_moves_go_on(nhmtap, tmp_path, puppet):
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[
            {"format": form, "path": str(tmp_path / f"{form}.1")} for form in ("flat", "prometheus")]) as session:
        puppet.do("faults=10")
        session.reload(activities(puppet), outputs=[
            {"format": form, "path": str(tmp_path / f"{form}.2")} for form in ("flat", "prometheus")])
        puppet.do("faults=5")
        session.end(path=tmp_path / "flat.2")
    totals = [r["total"] for r in lines((tmp_path / "flat.2").read_text()) if r.get("activity") == "counts" and "value" in r]
    assert totals[-1] == 15 and of_page((tmp_path / "prometheus.2").read_text()) == 15


def of_deltas(text):
    return [n for n in map(of_otlp, text.splitlines()) if n]


def of_cumulative(text):
    """The last value since each start of the series."""
    points = [point for line in text.splitlines() for own, point in otlp.points(otlp.read(line, 2), "nhmtap.events")
              if own["activity"] == "counts"]
    return list({point.start_time_unix_nano: point.as_int for point in points}.values())


@pytest.mark.parametrize("output, read, renamed, other", [
    ({"format": "openmetrics"}, of_page, 5, 15), ({"format": "prometheus"}, of_page, 5, 15), ({"format": "flat"}, of_totals, 5, 15),
    ({"format": "otlp"}, of_deltas, [10, 5], [15]),
    ({"format": "otlp", "temporality": "cumulative"}, of_cumulative, [10, 5], [15])])
def test_a_name_that_another_event_gets_begins_anew_and_the_others_go_on(nhmtap, tmp_path, puppet, output, read, renamed, other):
    def named(event):
        pid = str(puppet.pid)
        return [faults("counts", "stat", pid=pid, event=f"{event}/name=x/"), faults("more", "stat", pid=pid)]

    path = tmp_path / "totals"
    with Session(nhmtap, tmp_path, named("page-faults"), outputs=[{"path": str(path), **output}]) as session:
        puppet.do("faults=10")
        session.reload(named("minor-faults"))
        puppet.do("faults=5")
        session.end(path=path)
    text = path.read_text()
    assert read(text) == renamed
    assert read(text.replace('"counts"', '"-"').replace('"more"', '"counts"')) == other


def test_a_record_file_that_changes_has_whole_streams_one_after_the_other(nhmtap, tmp_path, puppet):
    path = tmp_path / "x"
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[{"path": str(path)}]) as session:
        puppet.do("faults=10")
        session.reload(activities(puppet), outputs=[{"path": str(path), "activities": ["counts"]}])
        puppet.do("faults=5")
        session.end(path=path)
    records = parse(path.read_text())
    first = next(i for i, r in enumerate(records) if r["type"] == "end" and r["activity"] == "session") + 1
    assert records[first - 1]["reason"] == "reloaded" and records[first - 1]["records"] == first
    assert [r["type"] for r in records[first:] if r["type"] in ("start", "end")] == ["start", "start", "end", "end"]
    assert {r["activity"] for r in records[first:]} == {"session", "counts"}
    assert [r["seq"] for r in records] == list(range(len(records)))
    assert sum(r["value"] for r in records if r["type"] == "count") == 15


# --- outputs that are removed ---------------------------------------------------------------------

class Pipe:
    """A FIFO of one page, which is read only when the test asks for it."""

    def __init__(self, path):
        os.mkfifo(path)
        self.end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(self.end, True)
        fcntl.fcntl(self.end, fcntl.F_SETPIPE_SZ, 4096)

    def rest(self):
        text = b""
        while piece := os.read(self.end, 1 << 16):
            text += piece
        os.close(self.end)
        return text.decode()


@pytest.fixture
def stuck(nhmtap, tmp_path, puppet):
    """A session with an output that nobody reads, until more waits than the pipe holds. Then HUP removes it."""
    pipe = Pipe(tmp_path / "pipe")
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[{}, {"path": str(tmp_path / "pipe")}]) as session:
        for _ in range(200):
            puppet.do("faults=1")
            session.do("snapshot")
        session.reload(activities(puppet), outputs=[{}])
        yield session, pipe


def test_what_waits_for_an_output_that_is_removed_is_written_when_its_reader_reads(stuck):
    session, pipe = stuck
    records = parse(pipe.rest())  # to the end: it is closed
    assert sum(r["value"] for r in records if r["type"] == "count") == 200
    assert records[-1]["type"] == "end" and records[-1]["reason"] == "reloaded"
    assert records[-1]["records"] == len(records)
    result = session.end()
    assert result.status == 0 and not result.of("gap")


def test_what_waits_for_an_output_that_is_removed_and_has_no_reader_is_told(stuck):
    session, pipe = stuck
    taken = os.read(pipe.end, 1 << 20).decode()
    os.close(pipe.end)
    until(lambda: '"gap"' in session.text())
    result = session.end()
    gap = result.one("gap")
    assert gap["cause"] == "removed" and gap["output"].endswith("/pipe") and "was removed" in session.said()
    whole = parse(taken[:taken.rfind("\n") + 1])
    # What it took, what is told, and at most what the pipe held when its reader went.
    read = sum(r["type"] == "count" for r in whole)
    assert 100 < read + gap["types"]["count"] <= 200 and gap["records"] == sum(gap["types"].values())


def test_what_an_output_had_missed_before_it_was_removed_is_told_with_what_waited(nhmtap, tmp_path, puppet):
    pipe, turns = Pipe(tmp_path / "pipe"), 200
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[{}, {"path": str(tmp_path / "pipe"), "queue_bytes": 8192}]) as session:
        for _ in range(turns):
            puppet.do("faults=1")
            session.do("snapshot")
        removed = datetime.datetime.now(datetime.timezone.utc).isoformat()
        session.reload(activities(puppet), outputs=[{}])
        taken = os.read(pipe.end, 1 << 20).decode()
        os.close(pipe.end)
        until(lambda: '"gap"' in session.text())
        gap = session.end().one("gap")
    read = sum(r["type"] == "count" for r in parse(taken[:taken.rfind("\n") + 1]))
    # The pipe has taken one page at most that nobody has read.
    assert turns - 20 <= read + gap["types"]["count"] <= turns
    assert "gap" not in gap["types"] and gap["records"] == sum(gap["types"].values())
    assert gap["since"] < removed < gap["until"]


def test_an_output_that_comes_back_before_it_was_read_is_one_stream(stuck, puppet):
    session, pipe = stuck
    session.reload(activities(puppet), outputs=[{}, {"path": str(session.folder / "pipe")}])
    puppet.do("faults=7")
    session.process.send_signal(signal.SIGTERM)
    records = parse(pipe.rest())
    assert session.wait().status == 0
    assert sum(r["value"] for r in records if r["type"] == "count") == 207
    assert [r["reason"] for r in records if r["type"] == "end" and r["activity"] == "session"] == ["reloaded", "terminated"]


# --- files that can't be opened again -------------------------------------------------------------

def a_folder(path):
    path.mkdir()


def a_loop(path):
    path.symlink_to(path.name)


def a_fifo(path):
    os.mkfifo(path)


def no_folder(path):
    path.parent.rename(path.parent.with_name("gone"))


@pytest.mark.parametrize("spoil, error", [(a_folder, "EISDIR"), (a_loop, "ELOOP"), (a_fifo, "ENXIO"), (no_folder, "ENOENT")])
def test_a_file_that_cannot_be_opened_again_is_told_at_once_and_nothing_is_lost(nhmtap, tmp_path, puppet, spoil, error):
    folder = tmp_path / "folder"
    folder.mkdir()
    path, page = folder / "x", tmp_path / "page"
    outputs = [{}, {"path": str(path)}, {"format": "prometheus", "path": str(page)}]
    with Session(nhmtap, tmp_path, activities(puppet), outputs=outputs) as session:
        puppet.do("faults=10")
        session.do("snapshot")
        before = path.read_text()
        path.unlink()
        spoil(path)
        session.hup()
        told = session.until(lambda records: any(r["type"] == "error" for r in records))
        error_record = next(r for r in told if r["type"] == "error")
        assert error_record["errno"] == error and error_record["output"] == str(path)
        assert str(path) in session.said()
        puppet.do("faults=5")
        session.do("snapshot")
        assert re.search(r'nhmtap_output_failures_total\{[^}]*errno="' + error, page.read_text())
        if not folder.exists():
            folder.mkdir()
        elif spoil is a_folder:
            path.rmdir()
        else:
            path.unlink()
        until(path.exists)
        puppet.do("faults=3")
        result = session.end()
    behind = parse(path.read_text())
    counted = sum(r["value"] for r in parse(before) + behind if r["type"] == "count")
    assert result.status == 0 and counted == 18
    assert [r["cause"] for r in behind if r["type"] == "gap"] == ["unopened"]
    seqs = [r["seq"] for r in parse(before) + behind]
    assert seqs == list(range(len(seqs)))


def test_a_file_that_can_never_be_opened_again_is_told_by_the_status(nhmtap, tmp_path, puppet):
    path = tmp_path / "x"
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[{}, {"path": str(path)}]) as session:
        path.unlink()
        path.mkdir()
        session.hup()
        result = session.end()
    assert result.status == 3 and "Is a directory" in result.err


def test_a_file_that_cannot_be_opened_again_is_not_tried_with_each_record(nhmtap, tmp_path, puppet):
    folder = tmp_path / "folder"
    folder.mkdir()
    samples = {**faults("samples", "stream", pid=str(puppet.pid)), "interval_ms": 10}
    with Session(nhmtap, tmp_path, [samples], outputs=[{"path": str(folder / "x")}]) as session:
        folder.rename(tmp_path / "away")
        trace = tmp_path / "trace"
        with subprocess.Popen(["strace", "-fq", "-e", "trace=openat", "-o", trace, "-p", str(session.process.pid)]) as strace:
            until(lambda: f"TracerPid:\t{strace.pid}\n" in open(f"/proc/{session.process.pid}/status").read())
            begun = time.monotonic()
            session.hup()
            for _ in range(100):
                puppet.do("faults=512")  # as many as have what waits written
            strace.send_signal(signal.SIGINT)
        took = time.monotonic() - begun
        (tmp_path / "away").rename(folder)
        session.end()
    # At most ten times a second, and once more each by HUP and at its begin and end. A try that makes the file if it is not
    # there is two calls, of which one is exclusive.
    tries = [line for line in trace.read_text().splitlines() if f'"{folder}/x"' in line and "O_EXCL" not in line]
    assert 1 <= len(tries) <= 10 * took + 4


@pytest.mark.parametrize("mistake", ["{", '{"activities": []}', '{"activities": [{"command": "stat", "event": "none-of-these"}]}', None])
def test_renamed_files_are_left_though_the_new_config_is_refused(nhmtap, tmp_path, puppet, mistake):
    """logrotate sends HUP whatever is in CONFIG, and removes what it has renamed some day."""
    paths = [tmp_path / "x", tmp_path / "x.zst"]
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[{"path": str(path)} for path in paths]) as session:
        puppet.do("faults=10")
        for path in paths:
            path.rename(f"{path}.1")
        session.config.unlink()
        if mistake:
            session.config.write_text(mistake)
        session.hup()
        puppet.do("faults=20")
        session.end()
    for path, read in zip(paths, (["cat"], ["zstd", "-dcq"])):
        whole = [subprocess.run([*read, file], stdout=subprocess.PIPE, text=True, check=True).stdout for file in (f"{path}.1", path)]
        records = parse("".join(whole))
        assert sum(r["value"] for r in records if r["type"] == "count") == 30
        assert [r["outcome"] for r in parse(whole[1]) if r["type"] == "reload"] == ["refused"] and records[-1]["type"] == "end"


def test_a_renamed_file_takes_the_rest_if_there_is_no_other(nhmtap, tmp_path, puppet):
    path, old = tmp_path / "x", tmp_path / "x.1"
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[{}, {"path": str(path)}]) as session:
        path.rename(old)
        path.mkdir()
        session.hup()
        puppet.do("faults=10")
        session.end()
    records = parse(old.read_text())
    assert sum(r["value"] for r in records if r["type"] == "count") == 10 and records[-1]["type"] == "end"


def test_a_page_whose_folder_is_away_comes_back_with_it(nhmtap, tmp_path, puppet):
    folder = tmp_path / "folder"
    folder.mkdir()
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[{}, {"format": "prometheus", "path": str(folder / "x")}]) as session:
        folder.rename(tmp_path / "away")
        puppet.do("faults=10")
        session.do("snapshot")
        session.until(lambda records: any(r["type"] == "error" for r in records))
        (tmp_path / "away").rename(folder)
        until((folder / "x").exists)
        assert session.end().status == 0
    assert of_page((folder / "x").read_text()) == 10


def a_device(path):
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # as /dev/null


def a_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize("form, spoil", [("prometheus", a_fifo), ("prometheus", a_socket), ("openmetrics", a_device)])
def test_what_is_no_file_is_not_replaced_by_a_page_while_the_run_goes_on(nhmtap, tmp_path, puppet, spoil, form):
    """It is refused at the start as well."""
    page = tmp_path / "page"
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[{}, {"format": form, "path": str(page)}]) as session:
        puppet.do("faults=10")
        session.do("snapshot")
        until(page.exists)
        page.unlink()
        spoil(page)
        before = page.lstat()
        puppet.do("faults=5")
        session.do("snapshot")
        told = session.until(lambda records: any(r["type"] == "error" for r in records))
        refused = next(r for r in told if r["type"] == "error")
        assert refused["errno"] == "EOPNOTSUPP" and refused["output"] == str(page)
        assert "only a file can be replaced as a whole" in session.said()
        assert page.lstat().st_ino == before.st_ino and page.lstat().st_mode == before.st_mode
        page.unlink()
        until(page.exists)
        assert session.end().status == 0
    assert of_page(page.read_text()) == 15


def test_a_page_takes_the_place_of_a_link_and_leaves_what_the_link_leads_to(nhmtap, tmp_path, puppet):
    page, pipe = tmp_path / "page", tmp_path / "pipe"
    os.mkfifo(pipe)
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[{}, {"format": "prometheus", "path": str(page)}]) as session:
        page.symlink_to(pipe)
        puppet.do("faults=10")
        session.do("snapshot")
        until(lambda: not page.is_symlink())
        assert session.end().status == 0
    assert of_page(page.read_text()) == 10 and stat.S_ISFIFO(pipe.stat().st_mode)


# --- FIFOs ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("when", ["start", "HUP"])
def test_a_fifo_that_nobody_reads_holds_nobody_up_and_its_reader_gets_all(nhmtap, tmp_path, puppet, when):
    os.mkfifo(tmp_path / "pipe")
    outputs = [{}, {"path": str(tmp_path / "pipe")}]
    with Session(nhmtap, tmp_path, activities(puppet), outputs=outputs if when == "start" else [{}]) as session:
        session.reload(activities(puppet), outputs=outputs)
        puppet.do("faults=10")
        session.do("snapshot")
        until(lambda: "nobody has this FIFO open for reading" in session.said())
        with open(tmp_path / "pipe", encoding="utf-8") as pipe:
            puppet.do("faults=5")
            session.process.send_signal(signal.SIGTERM)
            records = parse(pipe.read())
        assert session.wait().status == 0
    assert sum(r["value"] for r in records if r["type"] == "count") == 15
    assert records[0]["type"] == "start" and records[-1]["type"] == "end"


def test_a_run_waits_for_the_reader_of_a_fifo(nhmtap, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    run = nhmtap.start("stat", "-e", "page-faults", "-o", tmp_path / "pipe", "--", "touch", tmp_path / "ran")
    until((tmp_path / "ran").exists)
    assert run.poll() is None
    result = Result(0, (tmp_path / "pipe").read_text(), "")
    assert [r["type"] for r in result.records] == ["start", "count", "end"] and run.wait(timeout=60) == 0
    run.communicate()


@pytest.mark.parametrize("command", [("stat", "-e", "page-faults"), ("profile", "-e", "page-faults")], ids=lambda c: c[0])
def test_a_socket_is_not_taken_for_a_fifo_without_a_reader(nhmtap, tmp_path, command):
    """open(2) answers ENXIO for all three: a FIFO that nobody reads, a socket, and the terminal of a process that has none."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        result = nhmtap(*command, "-o", f"flat={tmp_path / 'socket'}", "--", "touch", tmp_path / "ran")
    assert result.status == 1 and f"option --output '{tmp_path / 'socket'}': it is a socket. Next: write unix: before" in result.err
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"activities": [{"name": "a", "command": command[0], "event": "page-faults", "all_cpus": True}],
                                  "outputs": [{"path": str(tmp_path / "socket")}]}))
    for check in ([], ["--check"]):
        refused = nhmtap("run", *check, config)
        assert refused.status == 1 and f"/outputs/0/path: option --output '{tmp_path / 'socket'}': it is a socket." in refused.err
    result = nhmtap(*command, "-o", "flat=/dev/tty", "--", "touch", tmp_path / "ran", start_new_session=True)
    assert result.status == 1 and "option --output '/dev/tty': there is no such device, or no terminal" in result.err
    assert not (tmp_path / "ran").exists()


def hard_link(path, precious):
    os.link(precious, path)


def soft_link(path, precious):
    path.symlink_to(precious)


@pytest.mark.parametrize("trap", [lambda path, precious: os.mkfifo(path), hard_link, soft_link],
                         ids=["a FIFO", "a hard link", "a symbolic link"])
@pytest.mark.parametrize("form", ["prometheus", "openmetrics"])
def test_what_others_put_where_a_page_is_made_is_not_written_to(nhmtap, tmp_path, puppet, trap, form):
    precious, page = tmp_path / "precious", tmp_path / "page"
    precious.write_text("precious")
    with Session(nhmtap, tmp_path, activities(puppet), outputs=[{}, {"format": form, "path": str(page)}]) as session:
        trap(tmp_path / "page.new", precious)
        puppet.do("faults=10")
        session.do("snapshot")
        until(lambda: page.exists() and of_page(page.read_text()) == 10)
        assert session.end().status == 0
    assert precious.read_text() == "precious" and not (tmp_path / "page.new").exists()


# --- what is refused ------------------------------------------------------------------------------

def twice(folder):
    return folder / "x", folder / "x"


def by_another_name(folder):
    return folder / "x", folder / "." / "y" / ".." / "x"


def by_a_link(folder):
    (folder / "link").symlink_to("x")
    return folder / "x", folder / "link"


def by_a_folder(folder):
    (folder / "f").symlink_to(".")
    return folder / "x", folder / "f" / "x"


@pytest.mark.parametrize("names", [twice, by_another_name, by_a_link, by_a_folder])
@pytest.mark.parametrize("forms", [("json", "json"), ("prometheus", "prometheus"), ("json", "prometheus")], ids="-".join)
def test_two_outputs_into_one_file_are_refused(nhmtap, tmp_path, puppet, names, forms):
    (tmp_path / "y").mkdir()
    (tmp_path / "x").write_text("")
    outputs = [{"format": form, "path": f"{path}"} for form, path in zip(forms, map(os.fspath, names(tmp_path)))]
    with Session(nhmtap, tmp_path, activities(puppet)) as session:
        session.reload(activities(puppet), outputs=outputs)
        puppet.do("faults=10")
        result = session.end()
    assert "/outputs/1/path" in result.one("error")["asked"] and "same file" in result.one("error")["why"]
    assert sum(r["value"] for r in result.of("count")) == 10
    done = nhmtap("run", "--check", session.config)
    assert done.status == 1 and "/outputs/1/path" in done.err


def test_two_outputs_of_a_run_into_one_file_are_refused(nhmtap, tmp_path):
    result = nhmtap("stat", "-e", "cs", "-o", tmp_path / "x", "-o", f"flat={tmp_path}/x", "--", "touch", tmp_path / "ran")
    assert result.status == 1 and "same file" in result.err and not (tmp_path / "ran").exists()


def test_an_output_into_config_itself_is_refused(nhmtap, tmp_path, puppet):
    """Each HUP appended records to it, and the next one found no JSON there."""
    with Session(nhmtap, tmp_path, activities(puppet)) as session:
        session.reload(activities(puppet), outputs=[{}, {"format": "flat", "path": str(session.config)}])
        said = session.config.read_text()
        puppet.do("faults=10")
        result = session.end()
    assert "/outputs/1/path" in result.one("error")["asked"] and "CONFIG itself" in result.one("error")["why"]
    assert sum(r["value"] for r in result.of("count")) == 10 and session.config.read_text() == said
    assert nhmtap("run", "--check", session.config).status == 1


def test_two_outputs_into_one_device_are_not(nhmtap):
    assert nhmtap("stat", "-e", "cs", "-o", "/dev/null", "-o", "flat=/dev/null", "--", "true").status == 0


NOBODY = "4194304"  # a pid beyond the largest that Linux gives
REFUSED = {"name": "new", "command": "stat", "cpu": "0", "event": "page-faults", "interval_ms": 10}


@pytest.mark.parametrize("refused", [["-e", "page-faults", "-p", NOBODY], ["-e", "nonsense", "-a"]], ids=["process", "event"])
def test_a_run_that_is_refused_does_not_wait_for_the_reader_of_a_fifo(nhmtap, tmp_path, refused):
    os.mkfifo(tmp_path / "pipe")
    result = nhmtap("stat", *refused, "-o", tmp_path / "pipe")
    assert result.status in (1, 2) and "there is no" in result.err


@pytest.mark.parametrize("what", [{"command": "mem", "event": "mem-loads"}, {"pid": NOBODY, "cpu": None}],
                         ids=["by this machine", "by the kernel"])
def test_hup_to_an_activity_that_is_refused_does_not_end_the_service(nhmtap, tmp_path, puppet, what):
    refused = {key: value for key, value in {**REFUSED, **what}.items() if value}
    with Session(nhmtap, tmp_path, activities(puppet)) as session:
        session.reload([refused])
        session.until(lambda records: any(r["type"] == "error" for r in records))
        session.do("ping")
        session.reload(activities(puppet))
        puppet.do("faults=10")
        result = session.end()
    assert result.status == 0 and seen_last(result) == 10


def test_a_new_config_that_is_wrong_is_told_on_stderr_too(nhmtap, tmp_path, puppet):
    with Session(nhmtap, tmp_path, activities(puppet)) as session:
        session.reload([{**faults("counts", "stat", pid=str(puppet.pid)), "evnt": "x"}])
        session.until(lambda records: any(r["type"] == "error" for r in records))
        session.do("ping")
        result = session.end()
    assert "nhmtap: CONFIG, /activities/0/evnt: there is no such member. Next: did you mean event?" in result.err
    assert "the session goes on with the old one" in result.err and result.status == 0


def test_the_outcome_of_a_reload_is_a_record_and_a_metric(nhmtap, tmp_path, puppet):
    page = tmp_path / "page"
    counts, samples = activities(puppet)

    def says(number):
        return lambda: f"nhmtap_config_last_reload_successful{{}} {number}" in page.read_text().replace("ful ", "ful{} ")

    with Session(nhmtap, tmp_path, [counts, samples], outputs=[{}, {"format": "openmetrics", "path": str(page)}]) as session:
        session.do("snapshot")
        assert "last_reload" not in page.read_text()
        session.reload([{**counts, "evnt": "x"}])
        session.do("snapshot")
        until(says(0))
        session.reload([counts, {**samples, "by": "comm"}])
        session.do("snapshot")
        until(says(1))
        result = session.end()
    assert [(r["outcome"], r.get("begun"), r.get("ended")) for r in result.of("reload")] == [
        ("refused", None, None), ("taken", 1, 1)]


def seen_last(result):
    return [r["value"] for r in result.of("count", activity="counts")][-1]


def test_a_service_that_measures_nothing_does_not_end_with_status_0(nhmtap, tmp_path, puppet):
    with Session(nhmtap, tmp_path, activities(puppet)) as session:
        session.reload([{"name": "new", "command": "stat", "pid": NOBODY, "event": "page-faults"}])
        session.until(lambda records: any(r["type"] == "error" for r in records))
        session.do("ping")
        result = session.end()
    assert result.status == 2 and result.one("end", activity="session")["exit_status"] == 2


def test_an_activity_that_comes_late_does_not_miss_what_its_command_ran_before(nhmtap, tmp_path):
    """It is no sign that the kernel has ended the counting of a process."""
    os.mkfifo(tmp_path / "go")
    script = f"timeout 0.5 sh -c 'while :; do :; done'; touch {tmp_path}/ran; read line < {tmp_path}/go"
    counts, late = faults("counts", "stat"), faults("late", "stat")
    with Session(nhmtap, tmp_path, [counts], "sh", "-c", script) as session:
        until(lambda: (tmp_path / "ran").exists())
        session.reload([counts, late])
        with open_fifo(tmp_path / "go", "w") as go:
            go.write("\n")
        result = session.wait()
    assert result.of("count", activity="late") and not result.of("warning")
