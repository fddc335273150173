# SPDX-License-Identifier: GPL-2.0-only
"""Places besides outputs, commands and measured files that may be on a file system that stops to answer: the FIFOs of
--control, the socket of --listen, sockets that outputs connect to, folders and files of events. What is needed for the
start is refused; what stalls later keeps neither intervals nor SIGTERM waiting. What waited for the file system would
never end."""
import json
import os
import shutil
import signal
import socket

import pytest
from asked import ask
from sessions import Session, faults, until, write
from stalling import Mount

SAID = "its file system does not answer"
EVENT = [{"EventName": "CATS.SEEN", "EventCode": "0xA0", "UMask": "0x01", "BriefDescription": "A cat is seen"}]


@pytest.fixture(name="mount")
def fixture_mount(tmp_path):
    mount = Mount(tmp_path / "mount")
    os.mkfifo(mount.folder / "ctl")
    (mount.folder / "pmu.json").write_text(json.dumps(EVENT))
    yield mount
    mount.end()


# Each with the requests that its use needs.
PLACES = {
    "control": ("fifo:{}/ctl", ["lookup", "getattr", "all"]),
    "listen": ("unix:{}/http", ["lookup", "mknod", "all"]),
    "events_dir": ("{}", ["lookup", "getattr", "list", "all"]),
    "pmu_events": ("{}/pmu.json", ["lookup", "open", "read", "all"]),
}


@pytest.mark.parametrize("way", ["option", "CONFIG"])
@pytest.mark.parametrize("place, operation", [(place, operation) for place, (_, all_of) in PLACES.items()
                                              for operation in all_of])
def test_a_place_that_stalls_at_the_start_is_refused(nhmtap, tmp_path, mount, place, operation, way):
    value = PLACES[place][0].format(mount.folder)
    mount.stall(operation)
    if way == "option":
        result = nhmtap("stat", "-e", "page-faults", "-a", "--duration", 0.1, f"--{place.replace('_', '-')}", value)
    else:
        result = nhmtap("run", write(tmp_path / "config.json",
                                     {"activities": [faults("counts", "stat", all_cpus=True)], place: value}))
    assert result.status == 1 and SAID in result.err


def test_files_and_folders_of_events_are_read_from_such_a_file_system(nhmtap, mount, tmp_path):
    shutil.copytree(mount.folder, tmp_path / "copy" / "mount", ignore=shutil.ignore_patterns("ctl"))
    for name in ("pmu.json", ""):
        here, there = (nhmtap("list", "--pmu-events", folder / name, "--format", "json")
                       for folder in (tmp_path / "copy" / "mount", mount.folder))
        assert (here.status, here.out) == (there.status, there.out)
    (mount.folder / "cpus.json").write_text("[{]")
    result = nhmtap("list", "--events-dir", mount.folder)
    assert result.status == 1 and f"{mount.folder}/cpus.json: line 1" in result.err


def test_a_fifo_of_control_that_is_open_is_used_while_its_file_system_stalls(nhmtap, tmp_path, puppet, mount):
    for name in ("there", "back"):
        os.mkfifo(mount.folder / name)
    ctl, ack = (os.open(mount.folder / name, os.O_RDWR) for name in ("there", "back"))
    config = write(tmp_path / "config.json", {
        "activities": [faults("counts", "stat", pid=str(puppet.pid))], "outputs": [{"path": str(tmp_path / "records")}],
        "control": f"fifo:{mount.folder}/there,{mount.folder}/back"})
    run = nhmtap.start("run", config)
    os.write(ctl, b"ping\n")
    assert os.read(ack, 4) == b"ack\n"
    mount.stall("all")
    puppet.do("faults=10")
    os.write(ctl, b"snapshot\n")
    assert os.read(ack, 4) == b"ack\n"
    os.write(ctl, b"stop\n")
    assert run.wait(timeout=240) == 0
    counts = [json.loads(line) for line in (tmp_path / "records").read_text().splitlines()]
    assert sum(r["value"] for r in counts if r["type"] == "count") == 10


@pytest.mark.parametrize("operation", ["lookup", "unlink", "all"])
def test_a_socket_whose_file_system_stalls_is_removed_when_it_answers(nhmtap, tmp_path, puppet, mount, operation):
    place = mount.folder / "http"
    with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid))], listen=f"unix:{place}") as session:
        assert ask(f"unix:{place}", "/healthz")[1] == "ok\n"
        mount.stall(operation)
        puppet.do("faults=10")
        session.do("snapshot")
        result = session.end()
        assert result.status == 0
        assert sum(r["value"] for r in result.of("count")) == 10
    mount.stall("none")
    until(lambda: not place.exists())


class Reader:
    """A socket on the mount at which records are read."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(path))
        self.socket.listen()
        self.socket.settimeout(60)

    def accept(self):
        connection, _ = self.socket.accept()
        connection.settimeout(60)
        return connection


def read_until(connection, count):
    text = ""
    while sum(r["value"] for r in map(json.loads, text[:text.rfind("\n") + 1].splitlines()) if r["type"] == "count") < count:
        text += connection.recv(65536).decode()


@pytest.mark.parametrize("moment", ["start", "interval", "HUP"])
def test_a_socket_that_stalls_gets_its_records_when_there_is_an_answer(nhmtap, tmp_path, puppet, mount, moment):
    reader, place = Reader(mount.folder / "socket"), f"unix:{tmp_path}/http"
    if moment == "start":
        mount.stall("all")
    outputs = [{"path": f"unix:{mount.folder}/socket"}, {"path": str(tmp_path / "other")}]
    with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid))], outputs=outputs,
                 listen=place) as session:
        if moment != "start":
            connection = reader.accept()
            mount.stall("all")
            connection.close()
        if moment == "HUP":
            session.hup()
        puppet.do("faults=10")
        session.do("snapshot")
        assert ask(place, "/healthz")[1] == "ok\n"
        until(lambda: SAID in session.said() or moment != "start")
        mount.stall("none")
        connection = reader.accept()
        puppet.do("faults=5")
        session.do("snapshot")
        read_until(connection, 15 if moment == "start" else 5)
        session.process.send_signal(signal.SIGTERM)
        assert session.process.wait(timeout=240) in (0, 3)
    others = [json.loads(line) for line in (tmp_path / "other").read_text().splitlines()]
    assert sum(r["value"] for r in others if r["type"] == "count") == 15


@pytest.mark.parametrize("number", [1, 4])
def test_sigterm_does_not_wait_for_sockets_that_stall(nhmtap, tmp_path, mount, number):
    outputs = []
    for i in range(number):
        Reader(mount.folder / f"socket{i}")
        outputs += ["-o", f"unix:{mount.folder}/socket{i}"]
    mount.stall("all")
    result = nhmtap("stat", "-e", "page-faults", "-a", "-I", 50, "--duration", 0.2, *outputs, "-o", tmp_path / "other")
    assert result.status == 3 and result.err.count(SAID) >= number
    assert json.loads((tmp_path / "other").read_text().splitlines()[-1])["type"] == "end"


@pytest.mark.parametrize("command", [["doctor"], ["list"], ["explain", "-e", "page-faults"],
                                     ["stat", "-e", "page-faults", "-a", "--duration", "0.1"]], ids=" ".join)
@pytest.mark.parametrize("operation", ["lookup", "all"])
def test_a_root_of_the_host_that_stalls_is_refused(nhmtap, mount, command, operation):
    mount.stall(operation)
    result = nhmtap(*command, "--host-root", mount.folder)
    assert result.status and SAID in result.err
