# SPDX-License-Identifier: GPL-2.0-only
"""An output whose file is on a file system that stops to answer (stalling_server.py) stalls alone: the other
outputs and the session go on, SIGTERM is obeyed, and once there is an answer the output is complete or says what it
has missed."""
import json
import re
import signal
import subprocess

import pytest
from asked import ask
from records import parse
from sessions import Session, faults, until
from stalling import Mount

SAID = "its file system does not answer"


@pytest.fixture(name="mount")
def fixture_mount(tmp_path):
    mount = Mount(tmp_path / "mount")
    yield mount
    mount.end()


def of_records(path):
    return sum(r["value"] for r in parse(path.read_text()) if r["type"] == "count")


def of_page(path):
    return sum(int(n) for n in re.findall(r'^nhmtap_events_total\{activity="counts"[^}]*\} (\d+)', path.read_text(), re.M))


class Kind:
    """Outputs of a format at a place. `operations`: those that its writing needs."""

    def __init__(self, form, name, operations, reads):
        self.form, self.name, self.operations, self.reads = form, name, operations, reads

    def output(self, mount):
        return {"format": self.form, "path": str(mount.folder / self.name)}


KINDS = {
    "records": Kind("json", "x", ["write", "all"], of_records),
    "a page": Kind("prometheus", "x.prom", ["lookup", "open", "write", "flush", "rename", "all"], of_page),
}
EACH_KIND = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
EACH_OPERATION = pytest.mark.parametrize("kind, operation", [(kind, operation) for kind in KINDS.values()
                                                             for operation in kind.operations],
                                         ids=lambda value: getattr(value, "name", value))
EACH_NUMBER = pytest.mark.parametrize("others", [0, 1], ids=["1 output", "2 outputs"])


class Run(Session):
    """A session whose output stalls, beside another one that does not."""

    def __init__(self, nhmtap, folder, puppet, mount, kind, others=1):
        self.puppet, self.mount, self.other, self.place = puppet, mount, folder / "other", f"unix:{folder}/http"
        self.path, self.kind, self.done = mount.folder / kind.name, kind, 0
        outputs = [kind.output(mount), *[{"path": str(self.other)}] * others]
        super().__init__(nhmtap, folder, [faults("counts", "stat", pid=str(puppet.pid))], outputs=outputs,
                         listen=self.place)

    def count(self):
        self.puppet.do("faults=10")
        self.do("snapshot")
        self.done += 10

    def is_alive(self):
        """Intervals are measured, and the pages are served."""
        self.count()
        assert ask(self.place, "/healthz")[1] == "ok\n"
        if self.other.exists():
            until(lambda: of_records_so_far(self.other) == self.done)

    def is_told(self):
        until(lambda: SAID in self.said())
        if self.other.exists():
            errors = self.until(lambda records: any(r["type"] == "error" for r in records), path=self.other)
            assert [r["output"] for r in errors if r["type"] == "error"] == [str(self.path)]

    def is_written(self):
        """The output that stalls has all counts so far."""
        written = []

        def there():
            assert self.process.poll() is None, self.said()
            written[:] = [self.path.exists() and self.kind.reads(self.path)]
            return written == [self.done]
        until(there, lambda: f"{written} of {self.done} are written: {self.said()}")

    def terminate(self):
        """A session ends some 2 s later if an output stalls. If it waited for the file system, it would never end."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=240)


def of_records_so_far(path):
    text = path.read_text()
    return sum(r["value"] for r in map(json.loads, text[:text.rfind("\n") + 1].splitlines()) if r["type"] == "count")


@EACH_NUMBER
@EACH_OPERATION
def test_what_waits_for_an_answer_is_written_when_it_comes(nhmtap, tmp_path, puppet, mount, kind, operation, others):
    with Run(nhmtap, tmp_path, puppet, mount, kind, others) as run:
        run.count()
        run.is_written()
        mount.stall(operation)
        run.is_alive()
        run.is_told()
        run.is_alive()
        mount.stall("none")
        run.is_written()
        assert run.terminate() == 0
    assert not others or of_records(run.other) == run.done
    if kind.name == "x":
        records = parse(run.path.read_text())
        assert [r["cause"] for r in records if r["type"] == "gap"] == ["stalled"]
        assert [r["seq"] for r in records] == list(range(len(records)))


@EACH_NUMBER
@EACH_KIND
def test_what_stalls_from_the_beginning_waits_as_well(nhmtap, tmp_path, puppet, mount, kind, others):
    mount.stall("all")
    with Run(nhmtap, tmp_path, puppet, mount, kind, others) as run:
        run.is_alive()
        run.is_alive()
        mount.stall("none")
        run.is_written()
        assert run.terminate() == 0
    assert not others or of_records(run.other) == run.done


@EACH_NUMBER
@EACH_KIND
@pytest.mark.parametrize("operation", ["open", "all"])
def test_a_file_that_is_opened_again_waits_as_well(nhmtap, tmp_path, puppet, mount, kind, operation, others):
    with Run(nhmtap, tmp_path, puppet, mount, kind, others) as run:
        run.count()
        run.is_written()
        mount.stall(operation)
        run.hup()
        run.is_alive()
        run.hup()
        run.is_alive()
        mount.stall("none")
        run.is_written()
        assert run.terminate() == 0
    assert not others or of_records(run.other) == run.done


@pytest.mark.parametrize("moment", ["start", "interval", "HUP", "end"])
@EACH_OPERATION
def test_sigterm_is_obeyed_whatever_hangs(nhmtap, tmp_path, puppet, mount, kind, operation, moment):
    if moment == "start":
        mount.stall(operation)
    with Run(nhmtap, tmp_path, puppet, mount, kind) as run:
        run.count()
        mount.stall(operation)
        if moment == "HUP":
            run.hup()
        if moment != "end":
            run.is_alive()
        status = run.terminate()
        assert of_records(run.other) == run.done
        assert status == 3 and SAID in run.said()


@pytest.mark.parametrize("operation", ["write", "flush", "all"])
def test_a_duration_is_obeyed_whatever_hangs(nhmtap, tmp_path, mount, operation):
    mount.stall(operation)
    result = nhmtap("stat", "-e", "cs", "-a", "--duration", 0.2, "-o", mount.folder / "x", "-o", tmp_path / "other")
    assert result.status == 3 and SAID in result.err
    assert [r["type"] for r in parse((tmp_path / "other").read_text()) if r["type"] != "error"] == ["start", "count", "end"]


def test_a_queue_that_overflows_says_its_gap(nhmtap, tmp_path, puppet, mount):
    kind = KINDS["records"]
    with Run(nhmtap, tmp_path, puppet, mount, kind) as run:
        run.write([faults("counts", "stat", pid=str(puppet.pid))],
                  outputs=[{**kind.output(mount), "queue_bytes": 8192}, {"path": str(run.other)}])
        run.hup()
        mount.stall("all")
        for _ in range(100):
            run.count()
        run.is_told()
        mount.stall("none")
        until(lambda: any(r["type"] == "gap" and r["records"] for r in lines_so_far(run.path)))
        run.count()
        assert run.terminate() == 0
    records = parse(run.path.read_text())
    missing = sum(r.get("types", {}).get("count", 0) for r in records if r["type"] == "gap")
    intervals = run.done // 10 + 1  # the last one ends with the session
    assert missing and [r["type"] for r in records].count("count") + missing == intervals


def lines_so_far(path):
    text = path.read_text()
    return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]


def test_a_server_that_ends_is_told_and_what_takes_its_place_gets_the_rest(nhmtap, tmp_path, puppet, mount):
    kind = KINDS["records"]
    with Run(nhmtap, tmp_path, puppet, mount, kind) as run:
        run.count()
        run.is_written()
        mount.kill()
        run.is_alive()
        until(lambda: "it goes on when the file can be opened" in run.said())
        mount.unmount()  # below it is a folder of the disk
        until(lambda: run.path.exists() and of_records_so_far(run.path) == run.done - 10)
        assert run.terminate() == 0


def test_stdout_may_be_such_a_file(nhmtap, mount):
    out = mount.folder / "x"
    with open(out, "w") as file:
        subprocess.run(nhmtap.command("stat", "-e", "cs", "--", "true"), stdout=file, check=True)
    assert [r["type"] for r in parse(out.read_text())] == ["start", "count", "end"]
