# SPDX-License-Identifier: GPL-2.0-only
"""--format clickhouse: the rows of flat as blocks of columns. tests/pipelines/check_clickhouse.py has ClickHouse read
them."""
import collections
import contextlib
import json
import os
import pathlib
import re
import select
import shutil
import socket
import subprocess

import native
import pytest
from otlp import Receiver
from puppet import command
from records import NHMTAP, parse
from sessions import Session, faults
from test_flat import RUNS

PIPELINES = pathlib.Path(__file__).parents[1] / "pipelines"
TABLES = {name: dict(re.findall(r"^    `(.*?)` (\w+),?$", (PIPELINES / name).read_text(), re.MULTILINE))
          for name in ("clickhouse.sql", "clickhouse_samples.sql")}
URL = "/?query=INSERT+INTO+nhmtap+FORMAT+Native"

# What flat has in other words: constants, the time as text, and the series' sum so far.
NOT_COLUMNS = ("type", "schema_version", "run_id", "time", "total")
MORE_RUNS = {
    "fields": ["stream", "-e", "page-faults,context-switches", "-c", "1", "--fields",
               "time,ip,symbol,line,place,module,pid,tid,comm,cpu,cgroup,container,period,addr,source,page,regs"],
    "stacks of samples": ["stream", "-g", "-e", "page-faults", "-c", "1"],
    "intervals": ["stat", "-a", "-e", "page-faults", "-I", "10"],
}


def both(nhmtap, folder, *words):
    """Returns the lines of flat, and the content of the other output of the same run."""
    flat, blocks = folder / "flat", folder / "blocks"
    result = nhmtap(words[0], "-o", f"flat={flat}", "-o", f"clickhouse={blocks}", *words[1:])
    assert result.status == 0, result.err
    return parse(flat.read_text()), blocks.read_bytes()


def same(of_flat, of_column):
    """Whether a column has a line's value: addresses are numbers, and numbers that may be words are text."""
    if isinstance(of_column, str):
        return str(of_flat) == of_column
    if isinstance(of_flat, float):
        return of_column == pytest.approx(of_flat, rel=1e-13)  # flat has 15 digits
    return (int(of_flat, 16) if isinstance(of_flat, str) else of_flat) == of_column


def check(lines, content):
    rows = list(native.rows(content))
    assert len(rows) == len(lines)
    for line, row in zip(lines, rows):
        told = {name: value for name, value in line.items() if name not in NOT_COLUMNS}
        assert {name: row[name] for name, value in told.items() if not same(value, row[name])} == {}
        assert not any(value for name, value in row.items() if name not in line and name != "time_unix_ns")
        assert row["time_unix_ns"] // 10**6 == row["time_unix_ms"] == line["time_unix_ms"]
        assert f"{row['time_unix_ns'] % 10**9:09}Z" == line["time"].rpartition(".")[2]
    assert len({row["run_id"] for row in rows}) == 1
    return rows


@pytest.mark.parametrize("which", [*RUNS, *MORE_RUNS])
def test_rows_are_the_lines_of_flat(nhmtap, tmp_path, which):
    lines, content = both(nhmtap, tmp_path, *{**RUNS, **MORE_RUNS}[which], "--", *command("faults=300", "exit=0"))
    assert len(check(lines, content)) == len(lines) > 0


@pytest.mark.parametrize("keys", ["ip,pid,comm", "symbol,cgroup"])
def test_rows_are_the_same_whether_entries_are_still_text_or_another_output_has_read_them(nhmtap, tmp_path, keys):
    """Outputs get a record one after the other, and table makes objects of its entries."""
    text, objects = tmp_path / "text", tmp_path / "objects"
    result = nhmtap("profile", "-e", "page-faults", "-c", "1", "--by", keys, "--top", "40", "-o", f"clickhouse={text}",
                    "-o", f"table={tmp_path}/table", "-o", f"clickhouse={objects}", "--", *command("faults=300", "exit=0"))
    assert result.status == 0, result.err
    rows, others = ([row | {"run_id": ""} for row in native.rows(path.read_bytes())] for path in (text, objects))
    assert rows == others and sum(row["value"] for row in rows) >= 300


def test_rows_of_activities_in_turns_have_each_its_own_name(nhmtap, tmp_path):
    flat, blocks, config = tmp_path / "flat", tmp_path / "blocks", tmp_path / "config.json"
    config.write_text(json.dumps({"outputs": [{"path": str(flat), "format": "flat"}, {"path": str(blocks), "format": "clickhouse"}], "activities": [
        {"name": "each", "command": "stream", "event": "page-faults", "count": 1, "fields": "addr,pid", "interval_ms": 10},
        {"name": "sums", "command": "stat", "event": "page-faults", "interval_ms": 10}]}))
    assert nhmtap("run", config, "--", *command(*["faults=50", "spin=15"] * 5, "exit=0")).status == 0
    names = [row["activity"] for row in check(parse(flat.read_text()), blocks.read_bytes())]
    assert set(names) == {"each", "sums"} and sum(a != b for a, b in zip(names, names[1:])) > 2


@pytest.mark.parametrize("which", [*RUNS, *MORE_RUNS])
def test_a_column_has_the_same_type_in_every_block_and_in_the_tables(nhmtap, tmp_path, which):
    _, content = both(nhmtap, tmp_path, *{**RUNS, **MORE_RUNS}[which], "--", *command("faults=300", "exit=0"))
    types = collections.defaultdict(set)
    for columns, _ in native.blocks(content):
        assert list(columns)[:2] == ["run_id", "seq"]
        for name, (kind, _) in columns.items():
            types[name].add(kind)
    for table in TABLES.values():
        assert {name: kinds for name, kinds in types.items() if kinds != {table.get(name, min(kinds))}} == {}
    if which in ("samples", "fields", "stacks of samples"):
        of_samples = set(next(native.blocks(content))[0])
        assert of_samples - set(TABLES["clickhouse_samples.sql"]) <= {"page"}


HOSTILE = [b'"\\\n\t', b"\xff\xfe\x80", "é…\U0001f600".encode(), b";|`\x01", b"x" * 200]


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
@pytest.mark.parametrize("words", [["stream"], ["profile", "--by", "comm,symbol,module"]], ids=" ".join)
def test_hostile_names_are_texts_like_others(nhmtap, tmp_path, name, words):
    copy = os.path.join(os.fsencode(tmp_path), name)
    shutil.copy("/bin/true", copy)
    lines, content = both(nhmtap, tmp_path, *words, "-e", "page-faults", "-c", "1", "--", os.fsdecode(copy))
    rows = check(lines, content)
    assert any(row.get("comm") == name[:15].decode(errors="replace").split("\0")[0] for row in rows) or b"\xf0" in name


def test_each_interval_is_a_block_at_least_and_all_add_up(nhmtap, tmp_path, puppet):
    path = tmp_path / "blocks"
    with Session(nhmtap, tmp_path, [faults("each", "profile", pid=str(puppet.pid), by="pid")],
                 outputs=[{}, {"format": "clickhouse", "path": str(path)}]) as session:
        for number in (10, 20, 30):
            puppet.do(f"faults={number}")
            session.do("snapshot")
        result = session.end()
    blocks = list(native.blocks(path.read_bytes()))
    sums = [sum(columns["value"][1]) for columns, _ in blocks]
    assert sums[:3] == [10, 20, 30] and sum(sums) == sum(r["samples"]["aggregated"] for r in result.of("profile"))


def test_an_output_without_rows_is_a_block_without_rows(nhmtap, tmp_path, puppet):
    """ClickHouse's client refuses an input without a block."""
    path = tmp_path / "blocks"
    with Session(nhmtap, tmp_path, [faults("none", "stat", pid=str(puppet.pid))],
                 outputs=[{}, {"format": "clickhouse", "path": str(path), "types": ["metric"]}]) as session:
        session.do("snapshot")
        session.end()
    (columns, rows), = native.blocks(path.read_bytes())
    assert rows == 0 and "time_unix_ns" in columns


def test_samples_are_written_soon_without_an_interval(puppet):
    """A block of samples is not held back until it is large, or until the end."""
    content, blocks = b"", 0
    with subprocess.Popen([NHMTAP, "stream", "--format", "clickhouse", "-e", "page-faults", "-c", "1", "-p", str(puppet.pid)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        try:
            while blocks < 2:
                assert run.poll() is None, run.stderr.read()
                puppet.do("faults=5")
                if select.select([run.stdout], [], [], 0.05)[0]:
                    content += os.read(run.stdout.fileno(), 1 << 20)
                with contextlib.suppress(EOFError):  # in the middle of a block
                    blocks = len(list(native.blocks(content)))
            run.terminate()
            content += run.stdout.read()
        finally:
            run.kill()
    rows = list(native.rows(content))
    assert sum(row["value"] for row in rows) == sum(row["period"] for row in rows) >= 10


# --- servers ----------------------------------------------------------------------------------------------


def sent(requests):
    return [row for request in requests if request.status == 200 for row in native.rows(request.body)]


def test_requests_have_all_rows_in_order_whatever_the_server_answers_at_first(nhmtap, tmp_path, puppet):
    """503 and Code 252, TOO_MANY_PARTS, are those of a busy server."""
    with Receiver((503, {}), (500, {}, b"Code: 252, e.displayText() = DB::Exception: Too many parts")) as receiver:
        with Session(nhmtap, tmp_path, [faults("each", "stream", pid=str(puppet.pid), fields="period")],
                     outputs=[{}, {"format": "clickhouse", "path": receiver.url(URL)}]) as session:
            puppet.do("faults=2000")
            session.do("snapshot")
            requests = [receiver.next() for _ in range(3)]  # at the end nhmtap would not wait for so long
            puppet.do("faults=1000")
            result = session.end()
        requests += receiver.rest()
    assert result.status == 0, result.err
    assert [request.status for request in requests[:3]] == [503, 500, 200]
    assert requests[0].body == requests[1].body == requests[2].body
    assert {request.path for request in requests} == {URL}
    rows = sent(requests)
    assert [row["seq"] for row in rows] == list(range(len(rows)))
    assert sum(row["period"] for row in rows) == sum(r["period"] for r in result.of("sample")) == 3000
    assert sum(row["value"] for row in rows) == sum(r["value"] for r in result.of("stream"))


def test_rows_that_a_server_refuses_are_counted_as_rows(nhmtap, tmp_path, puppet):
    refused = b"Code: 60, e.displayText() = DB::Exception: Table default.nosuch doesn't exist."
    counting = faults("each", "stat", pid=str(puppet.pid), event="page-faults,context-switches,cpu-migrations,minor-faults")
    with Receiver(*[(404, {}, refused)] * 3) as receiver:
        with Session(nhmtap, tmp_path, [counting],
                     outputs=[{}, {"format": "clickhouse", "path": receiver.url(URL)}]) as session:
            rows = []
            while not any(row["missed"] for row in rows):
                session.do("snapshot")
                rows += sent([receiver.next(), *receiver.rest()])
            result = session.end()
        rows += sent(receiver.rest())
    assert "404 of HTTP: Code: 60" in result.err
    lost = sum(row["missed"] for row in rows)
    assert lost >= 4 and lost % 4 == 0 and lost + sum(1 for row in rows if not row["lost"]) == len(result.of("count"))


def read(connection, until_closed=True):
    content = b""
    connection.settimeout(60)
    while piece := connection.recv(1 << 16):
        content += piece
        if not until_closed:
            break
    return content


def test_a_consumer_that_is_killed_gets_whole_blocks_when_it_comes_back_and_the_gap(nhmtap, tmp_path, puppet):
    path = str(tmp_path / "socket")

    def listening():
        server = socket.socket(socket.AF_UNIX)
        server.bind(path)
        server.listen()
        server.settimeout(60)
        return server

    server = listening()
    with Session(nhmtap, tmp_path, [faults("each", "profile", pid=str(puppet.pid), by="pid")],
                 outputs=[{}, {"format": "clickhouse", "path": f"unix:{path}"}]) as session:
        first, _ = server.accept()
        puppet.do("faults=10")
        session.do("snapshot")
        assert sum(row["value"] for row in native.rows(read(first, False))) == 10
        first.close()
        server.close()
        os.unlink(path)
        puppet.do("faults=20")
        session.do("snapshot")
        server = listening()
        second, _ = server.accept()
        puppet.do("faults=30")
        session.do("snapshot")
        result = session.end()
        rows = list(native.rows(read(second)))
    assert sum(row["value"] for row in rows) in (30, 50) and "disconnected" in {row["lost"] for row in rows}
    assert sum(r["samples"]["aggregated"] for r in result.of("profile")) == 60


def test_it_is_refused_where_it_can_not_be(nhmtap):
    for words, why in ((["list", "--format", "clickhouse"], "it is for commands that measure, not for list"),
                       (["stat", "--listen", "tcp:127.0.0.1:0", "-e", "page-faults", "-o", "clickhouse=listen", "--", "true"],
                        "clickhouse makes no page")):
        result = nhmtap(*words)
        assert result.status == 1 and why in result.err
