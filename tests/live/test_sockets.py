# SPDX-License-Identifier: GPL-2.0-only
"""Several outputs of one run, and sockets that appear, disappear and return."""
import os
import socket

import jsonschema
import pytest
from records import Result, parse
from sessions import DAY, Session, config_schema, faults, until, write


class Server:
    """Listens at an address. A connection's data is read only when the test asks for it."""

    def __init__(self, kind, folder):
        self.kind, self.path = kind, str(folder / "socket")
        self.socket = None
        if kind == "tcp":
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.port = free.getsockname()[1]

    @property
    def place(self):
        return f"unix:{self.path}" if self.kind == "unix" else f"tcp:127.0.0.1:{self.port}"

    def open(self):
        if self.kind == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.bind(self.path)
            self.socket.listen()
        else:
            self.socket = socket.create_server(("127.0.0.1", self.port))
        self.socket.settimeout(60)

    def accept(self):
        connection, _ = self.socket.accept()
        connection.settimeout(60)
        return connection

    def close(self):
        if self.socket:
            self.socket.close()
            self.socket = None
        if os.path.exists(self.path):
            os.unlink(self.path)


def rest(connection):
    text = b""
    while piece := connection.recv(1 << 16):
        text += piece
    return text.decode()


def lines(connection, enough):
    """Reads whole lines until there are enough of them."""
    text = b""
    while not enough(text.decode()) or not text.endswith(b"\n"):
        piece = connection.recv(1 << 16)
        assert piece
        text += piece
    return text.decode()


@pytest.fixture(params=["unix", "tcp"])
def server(request, tmp_path):
    made = Server(request.param, tmp_path)
    yield made
    made.close()


@pytest.fixture
def count(nhmtap, server, control, puppet):
    """Starts to count the puppet's faults, with the server among the outputs."""
    def begin(*options):
        return nhmtap.start("stat", "-e", "page-faults", "-I", DAY, control.option, *options, "-o", server.place, "-p",
                            puppet.pid)
    return begin


def snapshots(control, puppet, nr):
    """Intervals of three faults each."""
    for _ in range(nr):
        puppet.do("faults=3")
        control.do("snapshot")


def from_gap_to_end(server, control, process):
    """What a connection receives from a run that reports what was missed and is then stopped."""
    server.open()
    with server.accept() as connection:
        text = lines(connection, lambda text: '"gap"' in text)
        control.send("stop\n")
        text += rest(connection)
    assert process.wait(timeout=60) == 0
    process.communicate()
    return text


# --- a list of outputs ----------------------------------------------------------------------------


def test_a_run_may_have_several_outputs_each_in_its_format(nhmtap, tmp_path):
    one, other, table = (tmp_path / name for name in ("one", "other", "table"))
    result = nhmtap("stat", "-e", "page-faults", "-o", one, "-o", f"json={other}", "-o", f"table={table}", "-o",
                    "-", "--", "true")
    streams = [Result(0, path.read_text(), "") for path in (one, other)] + [result]
    assert len({stream.count("page-faults") for stream in streams}) == 1
    assert len({stream.records[0]["run_id"] for stream in streams}) == 1
    assert "page-faults" in table.read_text() and "{" not in table.read_text()


def test_a_name_before_an_equals_sign_that_is_no_format_is_the_files(nhmtap, tmp_path):
    nhmtap("stat", "-e", "cs", "-o", tmp_path / "jason=out", "--", "true")
    assert parse((tmp_path / "jason=out").read_text())[-1]["type"] == "end"


def test_an_output_that_cannot_be_opened_ends_a_run_before_it_begins(nhmtap, tmp_path):
    result = nhmtap("stat", "-e", "cs", "-o", tmp_path / "out", "-o", tmp_path / "no" / "out", "--", "touch",
                    tmp_path / "ran")
    assert result.status == 1 and "no/out" in result.err
    assert not (tmp_path / "ran").exists()


def test_an_output_may_have_the_records_of_some_types_alone(nhmtap, tmp_path, puppet):
    out = tmp_path / "counts"
    with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid)),
                                    faults("samples", "profile", pid=str(puppet.pid))],
                 outputs=[{}, {"path": str(out), "types": ["count", "end"]}]) as session:
        puppet.do("faults=10")
        whole = session.end()
    chosen = parse(out.read_text())
    assert {r["type"] for r in chosen} == {"count", "end"}
    assert [r["value"] for r in chosen if r["type"] == "count"] == [r["value"] for r in whole.of("count")]
    assert [r["seq"] for r in chosen] == list(range(len(chosen)))


@pytest.mark.parametrize("types", [[], "count", ["counts"], ["common"], [1]])
def test_types_that_there_are_not_are_refused(nhmtap, tmp_path, types):
    config = {"activities": [faults("a", "stat", all_cpus=True)], "outputs": [{"types": types}]}
    result = nhmtap("run", "--check", write(tmp_path / "config", config))
    assert result.status == 1 and "CONFIG, /outputs/0/types" in result.err
    if types not in (["counts"], ["common"]):  # the schema does not know which names exist
        with pytest.raises(jsonschema.ValidationError):
            config_schema().validate(config)


# --- sockets --------------------------------------------------------------------------------------


def test_a_stream_goes_to_whoever_listens(nhmtap, server):
    server.open()
    process = nhmtap.start("stat", "-e", "page-faults", "-o", server.place, "--", "true")
    with server.accept() as connection:
        result = Result(process.wait(timeout=60), rest(connection), "")
    assert process.communicate() == ("", "")
    assert [r["type"] for r in result.records] == ["start", "count", "end"]


def test_one_that_comes_late_gets_all_of_it(count, server, control, puppet):
    process = count()
    control.do("ping")
    assert f"writing to {server.place}: " in process.stderr.readline()
    snapshots(control, puppet, 5)
    result = Result(0, from_gap_to_end(server, control, process), "")
    gap = result.one("gap")
    assert (gap["cause"], gap["records"]) == ("disconnected", 0) and gap["why"]
    assert [r["value"] for r in result.of("count")] == [3] * 5 + [0]


def test_one_that_goes_and_returns_gets_whole_records_and_none_is_missing(count, server, control, puppet):
    server.open()
    process = count()
    with server.accept() as connection:
        control.do("ping")
        snapshots(control, puppet, 1)
        before = lines(connection, lambda text: '"count"' in text)
    server.close()
    assert "it goes on when there is a connection" in process.stderr.readline()
    snapshots(control, puppet, 5)
    records = parse(before + from_gap_to_end(server, control, process))
    assert [r["seq"] for r in records] == list(range(len(records)))
    assert [r["value"] for r in records if r["type"] == "count"] == [3] * 6 + [0]


def test_a_socket_that_nobody_listens_at_holds_nothing_up(count, server, tmp_path, control, puppet):
    out = tmp_path / "out"
    process = count("--queue", 8192, "-o", out)
    control.do("ping")
    snapshots(control, puppet, 100)
    control.send("stop\n")
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 3
    assert f"writing to {server.place}" in said and "the records end before the run does" in said
    counts = Result(0, out.read_text(), "").of("count")
    assert [r["value"] for r in counts] == [3] * 100 + [0]
    assert not any("merged" in r for r in counts)


def test_what_a_returning_one_has_missed_is_told(count, server, tmp_path, control, puppet):
    process = count("--queue", 8192, "-o", tmp_path / "out")
    control.do("ping")
    snapshots(control, puppet, 100)
    result = Result(0, from_gap_to_end(server, control, process), "")
    gap = result.one("gap")
    assert gap["cause"] == "disconnected" and gap["types"] == {"count": gap["records"]}
    assert gap["records"] + len(result.of("count")) == 101


@pytest.mark.parametrize("place", ["unix:", "unix:" + "x" * 108, "tcp:", "tcp:localhost", "tcp::80",
                                   "tcp:127.0.0.1:", "tcp:[::1]", "tcp:127.0.0.1:no-such-service"])
def test_what_is_no_address_is_refused(nhmtap, place):
    result = nhmtap("stat", "-e", "cs", "-o", place, "--", "true")
    assert result.status == 1 and "tcp:HOST:PORT" in result.err


def test_a_session_takes_addresses_too(nhmtap, server, tmp_path, puppet):
    server.open()
    with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid))],
                 outputs=[{"path": server.place}]) as session:
        with server.accept() as connection:
            session.do("stop")
            text = rest(connection)
        assert session.process.wait(timeout=60) == 0
    assert parse(text)[-1]["type"] == "end"


def test_the_second_try_comes_later_than_the_first(nhmtap, tmp_path, control):
    # strace shows each refused connection. The pauses between them start at a second and grow.
    process = nhmtap.start("stat", "-e", "cs", "-a", "-I", 100, control.option, "-o", f"unix:{tmp_path}/none",
                           before=["strace", "-f", "-ttt", "-e", "trace=connect", "-o", str(tmp_path / "trace")])
    control.do("ping")

    def tries():
        return [float(line.split()[1]) for line in (tmp_path / "trace").read_text().splitlines()
                if "/none" in line]
    until(lambda: len(tries()) >= 3)
    control.send("stop\n")
    process.communicate(timeout=60)
    first, second, third = tries()[:3]
    assert second - first >= 1 and third - second >= 2
