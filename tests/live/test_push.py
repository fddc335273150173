# SPDX-License-Identifier: GPL-2.0-only
"""Documents pushed by HTTP: OTLP's metrics, and profiles in the forms of Pyroscope and Parca."""
import base64
import collections
import contextlib
import datetime
import email
import gzip
import json
import os
import queue
import re
import signal
import socket
import struct
import subprocess
import threading
import time
import urllib.parse

import native
import otlp
import otlp_profiles
import pprof
import pytest
from asked import free_port
from otlp import Receiver
from puppet import command
from records import Result, parse, program
from sessions import Session, faults, until

COUNTS = "counts"


def counting(nhmtap, folder, puppet, *outputs, **members):
    return Session(nhmtap, folder, [faults(COUNTS, "stat", pid=str(puppet.pid))],
                   outputs=[{}, *outputs], **members)


def snapshots(session, puppet, *numbers):
    for number in numbers:
        puppet.do(f"faults={number}")
        session.do("snapshot")


def test_a_metric_of_one_side_has_a_name_that_opentelemetry_allows(nhmtap, tmp_path):
    """otlp.read() checks the names."""
    result = nhmtap("stat", "-M", "page_faults_per_second:u,page_faults_per_second", "-o", f"otlp={tmp_path / 'otlp'}",
                    "-o", f"json={tmp_path / 'json'}", "--", "true")
    assert result.status == 0, result.err
    data = otlp.read((tmp_path / "otlp").read_text())
    values = {record["metric"]: record["value"] for record in parse((tmp_path / "json").read_text()) if record["type"] == "metric"}
    for name, of in (("page_faults_per_second_u", "page_faults_per_second:u"), ("page_faults_per_second", "page_faults_per_second")):
        (_, point), = otlp.points(data, f"nhmtap.{name}")
        assert point.as_double == values[of]


def test_lines_are_metrics_of_otlp_whose_deltas_add_up_to_the_stream(nhmtap, tmp_path, puppet):
    out = tmp_path / "otlp"
    with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": str(out)},
                  resource={"deployment.environment": "test"}) as session:
        snapshots(session, puppet, 10, 20, 30)
        result = session.end()
    lines = out.read_text().splitlines()
    each = [otlp.total([line], "nhmtap.events", activity=COUNTS, event="page-faults") for line in lines]
    assert each[:3] == [10, 20, 30] and sum(each) == sum(r["value"] for r in result.of("count"))
    resource = {a.key: a.value.string_value for a in otlp.read(lines[0]).resource_metrics[0].resource.attributes}
    assert resource["deployment.environment"] == "test"
    assert resource["service.instance.id"] == result.records[0]["run_id"]


def test_no_time_is_in_two_points_of_delta(nhmtap, tmp_path):
    result = nhmtap("stat", "-e", "page-faults", "-I", "5", "--duration", "0.5", "-o", f"otlp={tmp_path / 'otlp'}", "-a")
    assert result.status == 0
    points = [point for line in (tmp_path / "otlp").read_text().splitlines() for _, point in otlp.points(otlp.read(line), "nhmtap.events")]
    assert len(points) > 3
    assert all(before.time_unix_nano <= after.start_time_unix_nano for before, after in zip(points, points[1:]))


def test_a_point_of_delta_has_its_own_activitys_interval_whatever_else_a_line_has(nhmtap, tmp_path, puppet):
    out, pid = tmp_path / "otlp", str(puppet.pid)
    activities = [faults(f"every{ms}", "stat", pid=pid, interval_ms=ms) for ms in (20, 30, 70)]
    with Session(nhmtap, tmp_path, activities, outputs=[{}, {"format": "otlp", "path": str(out)}]) as session:
        session.until(lambda records: sum(r["type"] == "count" and r["activity"] == "every70" for r in records) > 4)
        session.hup()
        result = session.end()
    told = collections.defaultdict(list)
    for line in out.read_text().splitlines():
        data = otlp.read(line)
        for labels, point in [*otlp.points(data, "nhmtap.events"), *otlp.points(data, "nhmtap.self_cpu")]:
            told[labels.get("activity")].append((point.start_time_unix_nano, point.time_unix_nano))
    assert all(before[1] <= after[0] for points in told.values() for before, after in zip(points, points[1:]))
    for ms in (20, 30, 70):
        counts = [r for r in result.of("count") if r["activity"] == f"every{ms}"]
        assert len(counts) > 4 and [end - begin for begin, end in told[f"every{ms}"]] == [
            pytest.approx(r["duration_ns"], abs=1e6) for r in counts]


def test_cumulative_points_are_of_all_since_the_start(nhmtap, tmp_path, puppet):
    out = tmp_path / "otlp"
    with counting(nhmtap, tmp_path, puppet,
                  {"format": "otlp", "path": str(out), "temporality": "cumulative"}) as session:
        snapshots(session, puppet, 10)
        session.hup()
        snapshots(session, puppet, 20, 30)
        result = session.end()
    sums, begins = [], set()
    for line in out.read_text().splitlines():
        for _, point in otlp.points(otlp.read(line, temporality=2), "nhmtap.events"):
            sums.append(point.as_int)
            begins.add(point.start_time_unix_nano)
    assert sums[:3] == [10, 30, 60] and sums[-1] == sum(r["value"] for r in result.of("count"))
    assert len(begins) == 1


def test_a_cumulative_stream_keeps_its_start_whatever_ends_later_and_began_earlier(nhmtap, tmp_path, puppet):
    """OpenTelemetry's metrics data model, "Resets and gaps": another start is a reset."""
    out, pid = tmp_path / "otlp", str(puppet.pid)
    activities = [faults("long", "stat", pid=pid), faults("short", "stat", pid=pid, interval_ms=20),
                  faults("pids", "profile", pid=pid, by="comm,pid", interval_ms=30)]
    with Session(nhmtap, tmp_path, activities, outputs=[{}, {"format": "otlp", "path": str(out), "temporality": "cumulative",
                                                             "series": 100}]) as session:
        for name in ("first", "second"):
            puppet.do(f"name={name.encode().hex()}")
            puppet.do("faults=10")
            session.until(lambda records, name=name: any(e["comm"] == name for r in records for e in r.get("entries", ())))
        session.hup()
        session.do("snapshot")
        result = session.end()
    first = {}
    for r in result.records:
        if r["type"] == "count":
            first.setdefault(r["activity"], r["start_time"])
        for entry in r.get("entries", ()):
            first.setdefault(entry["comm"], r["start_time"])
    starts, values = {}, {}
    for line in out.read_text().splitlines():
        for name in ("nhmtap.events", "nhmtap.profile_entries"):
            for labels, point in otlp.points(otlp.read(line, temporality=2), name):
                key = labels.get("comm", labels["activity"])
                starts.setdefault(key, set()).add(point.start_time_unix_nano)
                assert point.as_int >= values.get(key, 0)
                values[key] = point.as_int
    assert {key: [start / 1e9 for start in found] for key, found in starts.items()} == {
        key: [pytest.approx(datetime.datetime.fromisoformat(first[key][:26] + "+00:00").timestamp(), abs=2e-6)]
        for key in ("long", "short", "first", "second", *({"puppet"} & set(starts)))}


@pytest.mark.parametrize("asked, preferred, wanted", [([], None, 1), ([], "cumulative", 2), ([], "Cumulative", 2),
                                                      (["--temporality", "delta"], "cumulative", 1),
                                                      (["--temporality=cumulative"], "delta", 2)])
def test_temporality_is_the_options_or_else_the_environments(nhmtap, tmp_path, asked, preferred, wanted):
    env = {**os.environ, **({"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": preferred} if preferred else {})}
    result = nhmtap("stat", "-e", "page-faults", "--format", "otlp", *asked, "--", *command("faults=100", "exit=0"), env=env)
    assert result.status == 0 and otlp.read(result.out.splitlines()[-1], temporality=wanted)


RUNS = {
    "stat": ["stat", "-a", "-e", "page-faults,task-clock", "-M", "cpus_utilized", "--per", "cpu"],
    "profile": ["profile", "-e", "page-faults", "-c", "1", "--by", "symbol,comm,pid", "--series", "100"],
    "mem": ["mem", "-e", "page-faults", "-c", "1", "--by", "page,symbol,cpu"],
}


@pytest.mark.parametrize("which", RUNS)
def test_every_line_is_accepted_by_protobufs_own_reader(nhmtap, tmp_path, which):
    nested, out = tmp_path / "nested", tmp_path / "otlp"
    result = nhmtap(RUNS[which][0], "-o", nested, "-o", f"otlp={out}", *RUNS[which][1:], "--",
                    *command("faults=100", "exit=0"))
    assert result.status == 0
    records, lines = Result(0, nested.read_text(), ""), out.read_text().splitlines()
    accounts = [r["samples"]["aggregated"] for r in records.of(which) if "samples" in r]
    assert otlp.total(lines, "nhmtap.samples") == sum(accounts)
    assert otlp.total(lines, "nhmtap.events") == sum(r["scaled"] for r in records.of("count"))
    if which == "profile":
        assert otlp.total(lines, "nhmtap.profile_entries") == sum(accounts)


def test_each_interval_is_a_request(nhmtap, tmp_path, puppet):
    with Receiver() as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            for number in (10, 20):
                snapshots(session, puppet, number)
                request = receiver.next()
                assert request.path == "/v1/metrics" and request.headers["Content-Type"] == "application/json"
                assert request.headers["Content-Encoding"] == "gzip"
                assert otlp.total([request.body], "nhmtap.events") == number
            assert session.end().status == 0


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_a_server_has_no_time_for_is_sent_again(nhmtap, tmp_path, puppet, status):
    with Receiver((status, {"Retry-After": "1"})) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            snapshots(session, puppet, 10)
            requests = [receiver.next(), receiver.next()]
            assert [request.status for request in requests] == [status, 200]
            assert requests[0].body == requests[1].body
            assert session.end().status == 0
        left = [request.body for request in receiver.rest()]
    assert otlp.total([requests[1].body, *left], "nhmtap.events") == 10


def test_the_pause_is_the_one_that_the_server_asks_for(nhmtap, tmp_path, puppet):
    with Receiver((503, {"Retry-After": "3600"})) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            snapshots(session, puppet, 10)
            assert receiver.next().status == 503
            snapshots(session, puppet, 20)
            result = session.end()
        assert receiver.rest() == []
    assert result.status == 3 and "writing to http" in result.err


A_YEAR = 365 * 86400
LONG = {"a year": str(A_YEAR), "more than 64 bits of ns": "36028797018963968", "more than 64 bits": "9" * 30,
        "a date": "Fri, 31 Dec 2999 23:59:59 GMT"}
SHORT = {"negative": "-5", "a date of the past": "Fri, 31 Dec 1999 23:59:59 GMT", "words": "soon", "nothing": "",
         "a fraction": "0.5"}


@pytest.mark.parametrize("asked", LONG)
def test_a_pause_is_kept_however_long_it_is_said_to_be(nhmtap, tmp_path, puppet, asked):
    with Receiver((503, {"Retry-After": LONG[asked]})) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            snapshots(session, puppet, 10)
            assert receiver.next().status == 503
            snapshots(session, puppet, *[1] * 20)
            with pytest.raises(queue.Empty):
                receiver.taken.get(timeout=2)
            assert session.end().status == 3


@pytest.mark.parametrize("asked", SHORT)
def test_a_pause_that_is_none_is_nhmtaps_own(nhmtap, tmp_path, puppet, asked):
    with Receiver((503, {"Retry-After": SHORT[asked]})) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            snapshots(session, puppet, 10)
            began = receiver.next() and time.monotonic()
            assert receiver.next().status == 200 and time.monotonic() - began > 0.5
            assert session.end().status == 0


class Raw:
    """A server that says what it is told to, whatever it is asked."""

    def __init__(self, says):
        self.server, self.asked = socket.create_server(("127.0.0.1", 0)), threading.Semaphore(0)
        self.says, self.url = says, f"http://127.0.0.1:{self.server.getsockname()[1]}/v1/metrics"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                one, _ = self.server.accept()
                with contextlib.suppress(OSError):
                    one.recv(1 << 16)
                    self.asked.release()
                    self.says(one)
                one.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


def reset(one):
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


FAILURES = {
    "503": (lambda one: one.sendall(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"), "status 503 of HTTP"),
    "429": (lambda one: one.sendall(b"HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n"), "status 429 of HTTP"),
    "garbage": (lambda one: one.sendall(b"\0\1\2garbage\r\n\r\n"), "HTTP/0.9"),
    "a reset": (reset, "reset by peer"),
    "nothing": (lambda one: None, "mpty reply"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_what_a_server_has_answered_is_told(nhmtap, tmp_path, puppet, failure):
    says, told = FAILURES[failure]
    with Raw(says) as server, counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": server.url}) as session:
        snapshots(session, puppet, 10)
        until(lambda: told in session.said())
        assert "temporarily unavailable" not in session.said()
        result = session.end()
    assert result.status == 3 and told in result.err.splitlines()[-1]


def test_each_output_that_ends_too_early_is_told(nhmtap, tmp_path, puppet):
    busy, _ = FAILURES["503"]
    with Raw(busy) as one, Raw(busy) as other:
        places = [one.url, other.url, "/dev/full"]
        with counting(nhmtap, tmp_path, puppet, *({"format": "otlp", "path": place} for place in places)) as session:
            snapshots(session, puppet, 10)
            result = session.end()
    told = [line.split()[3].rstrip(":") for line in result.err.splitlines() if "the records end before the run does" in line]
    assert result.status == 3 and sorted(told) == sorted(places)


def endless_body(one):
    one.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        one.sendall(b"x" * 65536)


def endless_head(one):
    one.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        one.sendall(b"X: " + b"x" * 1000 + b"\r\n")


def a_gigabyte(one):
    one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
    while True:
        one.sendall(b"x" * 65536)


@pytest.mark.parametrize("says", [endless_body, endless_head, a_gigabyte])
def test_an_answer_without_an_end_is_broken_off_and_its_request_is_not_sent_again(nhmtap, tmp_path, puppet, says):
    ended = threading.Semaphore(0)

    def until_it_is_broken_off(one):
        try:
            says(one)
        finally:
            ended.release()

    with Raw(until_it_is_broken_off) as server:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": server.url}) as session:
            for _ in range(2):
                snapshots(session, puppet, 10)
                assert server.asked.acquire(timeout=60) and ended.acquire(timeout=10)
            assert not server.asked.acquire(timeout=1.5)  # longer than the first pause
            assert session.end().status == 0


def test_a_head_without_an_end_or_a_status_is_told(nhmtap, tmp_path, puppet):
    def provisional(one):
        while True:
            one.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)

    with Raw(provisional) as server, counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": server.url}) as session:
        snapshots(session, puppet, 10)
        until(lambda: "the head of its answer is longer than the 64 KiB" in session.said())
        assert session.end().status == 3


def varint(number):
    number &= (1 << 64) - 1
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def in_protobuf(points, message):
    """ExportMetricsServiceResponse of opentelemetry-proto."""
    part = b"\x08" + varint(points) + b"\x12" + varint(len(message)) + message.encode()
    return {"Content-Type": "application/x-protobuf"}, b"\x0a" + varint(len(part)) + part


SLOW = {"half of the head": b"", "no body": b"\r\n", "half of JSON": b'\r\n{"partialSuccess":',
        "half of protobuf": b"\r\n" + in_protobuf(7, "old")[1][:4]}


@pytest.mark.parametrize("which", SLOW)
def test_an_answer_whose_rest_does_not_come_holds_neither_the_next_request_nor_the_end_up(nhmtap, tmp_path, puppet, which):
    """Twenty times the time that nhmtap gives it is a failure."""
    broken_off = threading.Semaphore(0)

    def say_half(one):
        one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n" + SLOW[which])
        one.settimeout(20)
        assert one.recv(1) == b""
        broken_off.release()

    with Raw(say_half) as server, counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": server.url}) as session:
        for _ in range(2):
            snapshots(session, puppet, 10)
            assert server.asked.acquire(timeout=60) and broken_off.acquire(timeout=20)
        result = session.end()
    told = {(w["rejected"], w["why"]) for w in result.of("warning", cause="rejected")}
    assert told == {(7, "the server does not say why") if "protobuf" in which else (0, "its answer breaks off before its end")}
    assert result.status == (3 if "protobuf" in which else 0)  # it has rejected a part of the last interval, too


def in_json(points, message):
    return {"Content-Type": "application/json"}, json.dumps(
        {"partialSuccess": {"rejectedDataPoints": str(points), "errorMessage": message}}).encode()


def in_json_with_a_number(points, message):
    return {"Content-Type": "application/json"}, json.dumps(
        {"partialSuccess": {"rejectedDataPoints": points, "errorMessage": message}}).encode()


def in_json_with_a_fraction_of_zero(points, message):
    """Numbers like 7.0, which readers of protobuf's JSON have to take for integers."""
    return in_json_with_a_number(float(points), message)


def packed(points, message):
    headers, body = in_json(points, message)
    return {**headers, "Content-Encoding": "gzip"}, gzip.compress(body)


def packed_protobuf(points, message):
    headers, body = in_protobuf(points, message)
    return {**headers, "Content-Encoding": "gzip"}, gzip.compress(body)


def of_another_case(points, message):
    """Media types have no case (RFC 9110, 8.3.1)."""
    return {"Content-Type": "Application/X-Protobuf"}, in_protobuf(points, message)[1]


def without_a_type(points, message):
    """The receiver sends no Content-Type by itself."""
    return {}, in_protobuf(points, message)[1]


def of_bytes(points, message):
    """What Go's net/http finds out by itself (DetectContentType) where the server does not say it."""
    return {"Content-Type": "application/octet-stream"}, in_protobuf(points, message)[1]


def of_text(points, message):
    return {"Content-Type": "text/plain; charset=utf-8"}, in_json(points, message)[1]


def json_without_a_type(points, message):
    return {}, in_json(points, message)[1]


def with_fields_of_a_later_version(points, message):
    """Fields 3 and 4 of fixed sizes before the one that is known, and within it: readers have to skip them."""
    later = b"\x1d\1\2\3\4" + b"\x21\1\2\3\4\5\6\7\x08"
    headers, body = in_protobuf(points, message)
    part = later + body[2:]
    return headers, later + b"\x0a" + varint(len(part)) + part


def with_a_mark(points, message):
    headers, body = in_json(points, message)
    return headers, b"\xef\xbb\xbf" + body


@pytest.mark.parametrize("form", [in_protobuf, in_json, in_json_with_a_number, in_json_with_a_fraction_of_zero, packed,
                                  packed_protobuf, of_another_case, without_a_type, json_without_a_type, of_bytes, of_text,
                                  with_fields_of_a_later_version, with_a_mark])
def test_what_a_server_rejects_of_a_request_is_counted_and_told(nhmtap, tmp_path, puppet, form):
    page = tmp_path / "page"
    with Receiver((200, *form(7, "too \"old\"")), (200, *form(300, "no such tenant")), (200, *form(0, "be careful"))) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()},
                      {"format": "prometheus", "path": str(page)}) as session:
            for number in range(1, 4):
                snapshots(session, puppet, 10)
                session.until(lambda records, number=number: [r["type"] for r in records].count("warning") == number)
            snapshots(session, puppet, 10)
            assert f'nhmtap_rejected_points_total{{activity="session",output="{receiver.url()}"}} 307' in page.read_text()
            assert 'nhmtap_warnings_total{activity="session",cause="rejected"} 3' in page.read_text()
            result = session.end()
    warnings = result.of("warning", cause="rejected")
    assert [(w["rejected"], w["why"]) for w in warnings] == [(7, 'too "old"'), (300, "no such tenant"), (0, "be careful")]
    assert {w["output"] for w in warnings} == {receiver.url()} and "7 data points are rejected" in result.err
    assert len(result.of("count")) == 5 and result.status == 0


ODD = {"nothing": b"", "no JSON": b"{", "a list": b"[]", "null": b"null", "a text": b'{"partialSuccess": "x"}',
       "nested": b"[" * 60000, "a negative number": b'{"partialSuccess": {"rejectedDataPoints": -1}}',
       "no number": b'{"partialSuccess": {"rejectedDataPoints": {}}}'}


@pytest.mark.parametrize("kind", ["application/json", "application/x-protobuf"])
def test_an_odd_answer_is_a_success_like_any_other(nhmtap, tmp_path, puppet, kind):
    answers = [(200, {"Content-Type": kind}, body) for body in [*ODD.values(), b"\x0a", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                                                               b"\xff" * 100, b"\x0a\x02\x12\x7f"]]
    with Receiver(*answers) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            for _ in answers:
                snapshots(session, puppet, 1)
                receiver.next()
            result = session.end()
    assert result.status == 0 and not result.of("warning")


UNUSUAL = {"50 MB of blanks": ("gzip", gzip.compress(b" " * 50_000_000)), "not packed": ("gzip", b"{}"), "another encoding": ("br", b"{}"),
           "packed twice": ("gzip, gzip", gzip.compress(gzip.compress(b"{}"))), "cut": ("gzip", gzip.compress(b"{}")[:-9])}


@pytest.mark.parametrize("which", UNUSUAL)
def test_an_answer_that_does_not_unpack_or_unpacks_to_much_is_a_success(nhmtap, tmp_path, puppet, which):
    encoding, body = UNUSUAL[which]
    with Receiver(*[(200, {"Content-Encoding": encoding}, body)] * 2) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            for number in (10, 20):
                snapshots(session, puppet, number)
                assert otlp.total([receiver.next().body], "nhmtap.events") == number
            result = session.end()
    assert result.status == 0 and not result.of("warning")


MESSAGES = {"a long one in protobuf": (*in_protobuf(7, "m" * 5_000_000), 7, "m" * 300),
            "a long one in JSON": (*in_json(7, "m" * 5_000_000), 0, "its answer is longer than the 64 KiB that are read of it"),
            "no UTF-8": ({"Content-Type": "application/json"}, b'{"partialSuccess":{"rejectedDataPoints":7,"errorMessage":"a\xffb"}}', 7,
                         "a?b"),
            "a zero": (*in_json(7, "a\0b"), 7, "a")}


@pytest.mark.parametrize("which", MESSAGES)
def test_whatever_its_message_is_what_a_server_rejects_is_told(nhmtap, tmp_path, puppet, which):
    headers, body, points, why = MESSAGES[which]
    with Receiver((200, headers, body)) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            snapshots(session, puppet, 10)
            session.until(lambda records: [r["type"] for r in records].count("warning") == 1)
            warning, = session.end().of("warning", cause="rejected")
    assert (warning["rejected"], warning["why"]) == (points, why)


def test_a_long_message_is_cut_between_characters(nhmtap, tmp_path, puppet):
    with Receiver((200, *in_protobuf(1, "a" + "ü" * 4000))) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            snapshots(session, puppet, 10)
            session.until(lambda records: "warning" in [r["type"] for r in records])
            result = session.end()
    assert result.one("warning")["why"] == "a" + "ü" * 149 and "\\xc3" not in result.err


def test_what_is_too_large_for_a_server_is_sent_in_parts(nhmtap, tmp_path, puppet):
    with Receiver(largest=1500) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            snapshots(session, puppet, 10, 20, 30)
            result = session.end()
        requests = receiver.rest()
    taken = [request.body for request in requests if request.status == 200]
    assert {request.status for request in requests} == {200, 413} and result.status == 0
    assert otlp.total(taken, "nhmtap.events", activity=COUNTS) == sum(r["value"] for r in result.of("count"))
    assert otlp.total(taken, "nhmtap.missed_records") == 0
    assert result.err.count("it is sent in parts") + result.err.count("are sent in parts") == 1


def test_a_point_that_is_too_large_is_dropped_and_told_once(nhmtap, tmp_path, puppet):
    with Receiver(largest=0) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            snapshots(session, puppet, 10, 20)
            result = session.end()
    assert result.status == 3 and result.err.count("status 413 of HTTP: {}; it is dropped") == 1


@pytest.mark.parametrize("status", [400, 401, 403, 301])
def test_a_run_of_which_a_server_takes_nothing_does_not_end_with_0(nhmtap, tmp_path, status):
    with Receiver(*[(status, {})] * 9) as receiver:
        result = nhmtap("stat", "-e", "page-faults", "-o", tmp_path / "out", "-o", f"otlp={receiver.url()}", "--", "true")
    assert result.status == 3 and f"status {status} of HTTP" in result.err and "has refused the last records" in result.err


@pytest.mark.parametrize("form", ["folded", "pprof", "otlp-profiles"])
def test_a_server_that_refuses_the_last_profile_is_told_by_the_status_also_if_nothing_comes_after_it(nhmtap, tmp_path, puppet, form):
    with Receiver(*[(403, {})] * 9) as receiver, Session(
            nhmtap, tmp_path, [{**faults("samples", "profile", pid=str(puppet.pid)), "by": "stack"}],
            outputs=[{}, {"format": form, "path": receiver.url("/any")}]) as session:
        snapshots(session, puppet, 10)
        assert receiver.next().status == 403
        until(lambda: "status 403" in session.said())
        result = session.end()
    assert result.status == 3 and "the server has refused the last records" in result.err


@pytest.mark.parametrize("form", ["folded", "pprof", "otlp-profiles", "clickhouse"])
def test_what_a_server_refuses_is_told_in_the_other_outputs(nhmtap, tmp_path, puppet, form):
    """Folded stacks and pprof have no place for it themselves. It is told at most once a second, with a later interval."""
    page = tmp_path / "page"
    with Receiver(*[(403, {}, b"not you\nmore")] * 2) as receiver, Session(
            nhmtap, tmp_path, [{**faults("samples", "profile", pid=str(puppet.pid)), "by": "stack"}],
            outputs=[{}, {"format": form, "path": receiver.url("/any")}, {"format": "prometheus", "path": str(page)}]) as session:
        def told():
            return session.text().count('"cause":"refused"')
        for number in (1, 2):
            snapshots(session, puppet, 10)
            assert receiver.next().status == 403
            until(lambda number=number: snapshots(session, puppet, 1) or told() >= number)
        snapshots(session, puppet, 1)
        text = page.read_text()
        result = session.end()
    warnings = result.of("warning", cause="refused")
    assert len(warnings) == 2 and {w["output"] for w in warnings} == {receiver.url("/any")}
    assert {w["why"] for w in warnings} == {"status 403 of HTTP: not you"} and all(w["refused"] for w in warnings)
    refused = sum(w["refused"] for w in warnings)
    assert f'nhmtap_refused_records_total{{activity="session",output="{receiver.url("/any")}"}} {refused}' in text
    assert 'nhmtap_warnings_total{activity="session",cause="refused"} 2' in text


def test_what_a_server_refuses_in_the_last_second_of_a_run_is_told_before_its_end(nhmtap, tmp_path, puppet):
    """Otherwise it is told at most once a second."""
    with Receiver((403, {}), (410, {})) as receiver, Session(
            nhmtap, tmp_path, [{**faults("samples", "profile", pid=str(puppet.pid)), "by": "stack"}],
            outputs=[{}, {"format": "folded", "path": receiver.url("/any")}]) as session:
        for status in (403, 410):
            snapshots(session, puppet, 10)
            assert receiver.next().status == status
            until(lambda status=status: f"status {status}" in session.said())
        result = session.end()
    assert {warning["why"] for warning in result.of("warning", cause="refused")} == {"status 403 of HTTP: {}", "status 410 of HTTP: {}"}


@pytest.mark.parametrize("form, records", [("otlp", lambda body: 1), ("clickhouse", lambda body: len(list(native.rows(body))))])
def test_each_record_that_a_server_refuses_is_told_once(nhmtap, tmp_path, puppet, form, records):
    """A request also tells how many records are missing, which were refused before it. The metrics of OTLP's request are one."""
    refusals, refused = 6, 0
    with Receiver(*[(400, {})] * refusals) as receiver, counting(
            nhmtap, tmp_path, puppet, {"format": form, "path": receiver.url("/any")}) as session:
        def told():
            return sum(int(number) for number in re.findall(r'"cause":"refused",.*"refused":(\d+),', session.text()))
        for _ in range(refusals):
            snapshots(session, puppet, 10)
            request = receiver.next()
            assert request.status == 400
            refused += records(request.body)
        until(lambda: snapshots(session, puppet, 1) or (receiver.next() and told() >= refused))
        assert told() == refused
        assert session.end().status == 0


def test_a_warning_alone_is_told_as_one_and_keeps_no_rejection_from_being_told(nhmtap, tmp_path, puppet):
    """opentelemetry-proto: with no rejected points, error_message is a warning. A number below 0 is none."""
    answers = [in_json(0, "be careful"), in_protobuf(-1, "odd"), in_json(7, "too old")]
    with Receiver(*((200, *answer) for answer in answers)) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            for number in (1, 2, 3):
                snapshots(session, puppet, 10)
                session.until(lambda records, number=number: [r["type"] for r in records].count("warning") == number)
            said = session.end().err
    assert "takes what it is sent, with a warning: be careful" in said and "7 data points are rejected: too old" in said
    assert said.count("rejected") == 1 and "odd" not in said


EARLY = ["strace", "-f", "-o", os.devnull, "-e", "trace=sendto", "-e", "inject=sendto:delay_exit=300000"]


@pytest.mark.parametrize("answer, told", [((200, *in_json(7, "too old")), "7 data points are rejected: too old"), ((403, {}), "status 403")],
                         ids=["rejected", "refused"])
@pytest.mark.parametrize("before", [[], EARLY], ids=["late", "early"])
def test_what_is_not_taken_of_the_last_request_is_told_by_the_status_whenever_the_answer_comes(nhmtap, tmp_path, before, answer, told):
    """An early answer is there before the end record, a late one mostly comes after it."""
    env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"} if before else None  # LeakSanitizer is a tracer, of which there can be one
    with Receiver(answer) as receiver:
        words = nhmtap.command("stat", "-e", "page-faults", "-o", tmp_path / "out", "-o", f"otlp={receiver.url()}", "--", "true")
        done = subprocess.run([*before, *words], capture_output=True, text=True, check=False, env=env, timeout=60)
    assert done.returncode == 3 and told in done.stderr
    if before:
        assert len(Result(0, (tmp_path / "out").read_text(), "").of("warning")) == 1


@pytest.mark.parametrize("form, answer, told", [
    ("otlp-profiles", (200, {"Content-Type": "application/json"}, b'{"partialSuccess":{"rejectedProfiles":"7"}}'), "7 profiles are rejected"),
    ("pprof", (403, {}), "status 403 of HTTP")])
@pytest.mark.parametrize("more, status", [([], 3), (["-o"], 0)], ids=["alone", "beside records"])
def test_what_no_output_has_a_place_for_is_told_by_the_status(nhmtap, tmp_path, form, answer, told, more, status):
    with Receiver(answer) as receiver:
        result = nhmtap("profile", "-g", "-e", "page-faults:u", "-c", "1", "-I", "50", *more, *[tmp_path / "out"] * len(more),
                        "-o", f"{form}={receiver.url('/upload')}", "--", *command("faults=100", "spin=300", "faults=100", "exit=0"))
        requests = receiver.rest()
    assert [request.status for request in requests[:2]] == [answer[0], 200]
    assert result.status == status and told in result.err


@pytest.mark.parametrize("status", [301, 302, 307, 400, 404, 500, 501])
def test_a_status_that_repeating_would_not_change_is_told_with_what_the_server_says(nhmtap, tmp_path, puppet, status):
    with Receiver((status, {"Location": "http://127.0.0.1:1/"}, b"because\nmore")) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            snapshots(session, puppet, 10)
            assert receiver.next().status == status
            result = session.end()
    assert f"status {status} of HTTP: because; it is dropped" in result.err


def test_what_a_server_refuses_for_good_is_dropped_and_told(nhmtap, tmp_path, puppet):
    with Receiver((400, {})) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url()}) as session:
            snapshots(session, puppet, 10)
            assert receiver.next().status == 400
            snapshots(session, puppet, 20)
            bodies = [receiver.next().body]
            snapshots(session, puppet, 30)
            result = session.end()
        bodies += [request.body for request in receiver.rest()]
    assert otlp.total(bodies, "nhmtap.events") == 50 and "status 400" in result.err
    assert otlp.total(bodies, "nhmtap.missed_records") == 1


def test_a_full_queue_takes_a_document_after_each_try_in_the_place_of_its_oldest_and_counts(nhmtap, tmp_path, puppet):
    with Receiver(*[(503, {"Retry-After": "1"})] * 1000) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url(), "queue_bytes": 8192}) as session:
            snapshots(session, puppet, *range(1, 21))
            receiver.rest()
            for _ in range(2):  # the first may belong to a try before the last snapshot
                receiver.next()
            snapshots(session, puppet, 21)
            receiver.answers.clear()
            bodies, came = [], [0]
            while came[-1] != 21:  # a run's end waits two seconds, which may be too few
                request = receiver.next()
                bodies += [request.body] * (request.status == 200)
                came = [0, *(total for total in (otlp.total([body], "nhmtap.events") for body in bodies) if total)]
            result = session.end()
        bodies += [request.body for request in receiver.rest() if request.status == 200]
    assert result.status == 0
    assert came[1:] == sorted(came[1:]) and len(came[1:]) < 21
    assert otlp.total(bodies, "nhmtap.missed_records") == 21 - len(came[1:])


@pytest.mark.parametrize("temporality, told", [("delta", sum), ("cumulative", max)])
def test_records_that_a_lost_request_told_to_be_missed_are_told_again(nhmtap, tmp_path, puppet, temporality, told):
    refusals, bodies = 3, []
    with Receiver(*[(400, {})] * refusals) as receiver:
        with counting(nhmtap, tmp_path, puppet, {"format": "otlp", "path": receiver.url(), "temporality": temporality}) as session:
            for _ in range(refusals + 2):
                snapshots(session, puppet, 10)
                bodies.append(receiver.next().body)
            assert session.end().status == 0
        bodies += [request.body for request in receiver.rest()]
    taken = [otlp.read(body, ["delta", "cumulative"].index(temporality) + 1) for body in bodies[refusals:]]
    assert told(point.as_int for each in taken for _, point in otlp.points(each, "nhmtap.missed_records")) == refusals


def test_a_server_that_is_not_there_holds_nobody_up(nhmtap, tmp_path, puppet):
    with counting(nhmtap, tmp_path, puppet, {"format": "otlp",
                                             "path": f"http://127.0.0.1:{free_port()}/v1/metrics"}) as session:
        snapshots(session, puppet, 10, 20)
        result = session.end()
    assert [r["value"] for r in result.of("count")][:2] == [10, 20] and result.status == 3


def refused(tmp_path, call, error):
    """Options by which strace refuses a system call. LeakSanitizer would trace the process too."""
    return {"before": ["strace", "-f", "-o", tmp_path / "strace", "-e", f"trace={call}", "-e", f"inject={call}:error={error}"],
            "env": os.environ | {"ASAN_OPTIONS": "detect_leaks=0"}}


def test_without_a_timer_for_a_servers_answers_nothing_runs(nhmtap, tmp_path):
    result = nhmtap("stat", "-e", "page-faults", "-o", f"otlp=http://localhost:{free_port()}", "--", "touch", tmp_path / "ran",
                    **refused(tmp_path, "timerfd_create", "EMFILE"))
    assert result.status == 2 and not (tmp_path / "ran").exists()
    assert "waiting for the server's answers is refused: Too many open files" in result.err


def test_a_timer_that_cannot_be_set_holds_no_run_up(nhmtap, tmp_path):
    with Receiver() as receiver:
        result = nhmtap("stat", "-e", "page-faults", "-o", tmp_path / "out", "-o", f"otlp={receiver.url()}", "--", "true",
                        **refused(tmp_path, "timerfd_settime", "EINVAL"))
    assert "(INJECTED)" in (tmp_path / "strace").read_text()
    records = Result(0, (tmp_path / "out").read_text(encoding="utf-8"), "").records
    assert result.status in (0, 3) and records[-1]["type"] == "end"


def test_a_run_that_ends_waits_for_what_is_on_its_way(nhmtap):
    with Receiver() as receiver:
        result = nhmtap("stat", "-e", "page-faults", "-o", f"otlp={receiver.url()}", "--", "true")
        assert result.status == 0
        assert otlp.total([request.body for request in receiver.rest()], "nhmtap.events", event="page-faults") > 0


@pytest.mark.parametrize("place, why", [("json=http://127.0.0.1:1/", "makes no requests. Next: choose a format that does, such as otlp"),
                                        ("otlp=http://:x/", ""), ("otlp=grpc://127.0.0.1:4317", "nothing is sent by grpc://. Next: write http://"),
                                        ("otlp=HTTP://127.0.0.1:1/", "nothing is sent by HTTP://. Next: write http://"),
                                        ("flat=ftp://127.0.0.1/x", "nothing is sent by ftp://")])
def test_a_place_that_takes_no_requests_is_refused(nhmtap, tmp_path, place, why):
    result = nhmtap("stat", "-e", "cs", "-o", place, "--", "touch", tmp_path / "ran")
    assert result.status == 1 and why in result.err and not (tmp_path / "ran").exists()


# --- profiles -------------------------------------------------------------------------------------


def profiling(nhmtap, folder, puppet, form, url):
    return Session(nhmtap, folder, [{**faults("samples", "profile", pid=str(puppet.pid)),
                                     "by": "stack"}], outputs=[{}, {"format": form, "path": url}])


def part_of(request):
    """Returns the name and the content of a form's only part."""
    message = email.message_from_bytes(b"Content-Type: " + request.headers["Content-Type"].encode() + b"\r\n\r\n"
                                       + request.body)
    part, = message.get_payload()
    return part.get_param("name", header="content-disposition"), part.get_payload(decode=True)


def samples(path, body):
    path.write_bytes(body)
    return sum(sample.value[0] for sample in pprof.read(path).sample)


def test_a_profile_goes_to_pyroscope_as_its_ingest_takes_it(nhmtap, tmp_path, puppet):
    with Receiver() as receiver, profiling(nhmtap, tmp_path, puppet, "pprof",
                                           receiver.url("/ingest?name=app%7Benv%3Dtest%7D")) as session:
        snapshots(session, puppet, 10)
        request = receiver.next()
        parameters = urllib.parse.parse_qs(urllib.parse.urlparse(request.path).query)
        session.end()
    assert parameters["name"] == ["app{env=test}"] and parameters["format"] == ["pprof"]
    assert int(parameters["from"][0]) <= int(parameters["until"][0])
    name, body = part_of(request)
    assert name == "profile" and samples(tmp_path / "x.pb.gz", body) == 10


def test_folded_stacks_go_to_pyroscope_as_lines(nhmtap, tmp_path, puppet):
    with Receiver() as receiver, profiling(nhmtap, tmp_path, puppet, "folded",
                                           receiver.url("/ingest?name=app")) as session:
        snapshots(session, puppet, 10)
        request = receiver.next()
        session.end()
    assert "format=folded" in request.path
    assert sum(int(line.rpartition(b" ")[2]) for line in request.body.splitlines()) == 10


def test_a_profile_goes_to_parca_as_its_store_takes_it(nhmtap, tmp_path, puppet):
    with Receiver() as receiver, profiling(nhmtap, tmp_path, puppet, "pprof",
                                           receiver.url("/profiles/writeraw")) as session:
        snapshots(session, puppet, 10)
        request = receiver.next()
        session.process.send_signal(signal.SIGTERM)
        session.wait()
    series, = json.loads(request.body)["series"]
    assert {"name": "__name__", "value": "nhmtap"} in series["labels"]["labels"]
    one, = series["samples"]
    assert samples(tmp_path / "x.pb.gz", base64.b64decode(one["rawProfile"], validate=True)) == 10


def pprof_stacks(body, folder):
    """The samples of each stack in a profile, which has only what its samples name."""
    (folder / "x.pb.gz").write_bytes(body)
    profile = pprof.read(folder / "x.pb.gz")
    texts, functions = profile.string_table, {f.id: f for f in profile.function}
    locations = {location.id: location for location in profile.location}
    used = {number for sample in profile.sample for number in sample.location_id}
    assert used == set(locations)
    assert {line.function_id for location in profile.location for line in location.line} == set(functions)
    mappings = [mapping.id for mapping in profile.mapping]
    assert set(mappings) - {location.mapping_id for location in profile.location} <= set(mappings[:1])
    named = {0, *profile.comment, profile.period_type.type, profile.period_type.unit}
    named |= {number for kind in profile.sample_type for number in (kind.type, kind.unit)}
    named |= {number for m in profile.mapping for number in (m.filename, m.build_id)}
    named |= {number for f in profile.function for number in (f.name, f.system_name, f.filename)}
    named |= {number for sample in profile.sample for label in sample.label for number in (label.key, label.str)}
    assert named == set(range(len(texts)))
    assert texts[profile.mapping[0].filename].endswith("/calls")
    stacks = collections.Counter()
    for sample in profile.sample:
        stacks[tuple(texts[functions[line.function_id].name] for number in sample.location_id
                     for line in locations[number].line)] += sample.value[0]
    return stacks


def otlp_message(body):
    """Checks that its dictionary has only what is used."""
    return otlp_profiles.read(body.decode() if body.startswith(b"{") else body)


def otlp_stacks(body, folder):
    message = otlp_message(body)
    stacks = collections.Counter()
    for profile in message.profiles:
        if message.type(profile)[0] == "samples":
            for sample in profile.samples:
                stacks[tuple(message.stack(sample))] += sample.values[0]
    return stacks


def folded_stacks(body, folder):
    lines = [line.rpartition(" ") for line in body.decode().splitlines()]
    return collections.Counter({stack: int(number) for stack, _, number in lines if not stack.startswith("#")})


def native_stacks(body, folder):
    stacks = collections.Counter()
    for row in native.rows(body):
        stacks[row["stack"]] += row["value"]
    return stacks


HALVED = {"clickhouse": (native_stacks, "/?query=INSERT+INTO+nhmtap+FORMAT+Native", 2000),
          "pprof": (pprof_stacks, "/ingest?name=app", 1300), "otlp-profiles": (otlp_stacks, "/v1development/profiles", 4000),
          "otlp-profiles-json": (otlp_stacks, "/v1development/profiles", 10000), "folded": (folded_stacks, "/ingest?name=app", 250)}


def many_stacks(nhmtap, folder, form, largest):
    """Returns what a run of many stacks has written, the requests to a server that takes up to `largest` bytes, and
    the documents that it took."""
    steps = [f"deep={depth},{depth}" for depth in range(1, 30)]
    with Receiver(largest=largest) as receiver:
        result = nhmtap("profile", "-e", "page-faults:u", "-c", "1", "--by", "stack", "-o", f"{form}={folder / 'whole'}", "-o",
                        f"{form}={receiver.url(HALVED[form][1])}", "--", os.path.abspath(program("calls")), *steps)
        requests = receiver.rest()
    assert {request.status for request in requests} <= {200, 413}
    return result, requests, [without_its_boundary(request) for request in requests if request.status == 200]


@pytest.mark.parametrize("form", HALVED)
def test_a_profile_that_is_too_large_for_a_server_is_sent_in_parts_that_add_up(nhmtap, tmp_path, form):
    reader, _, largest = HALVED[form]
    result, requests, parts = many_stacks(nhmtap, tmp_path, form, largest)
    assert len(parts) > 3 and len(requests) == 2 * len(parts) - 1
    stacks = [reader(body, tmp_path) for body in parts]
    assert sum(stacks, collections.Counter()) == reader((tmp_path / "whole").read_bytes(), tmp_path)
    assert result.status == 0 and result.err.count("are sent in parts") == 1


@pytest.mark.parametrize("form", ["otlp-profiles", "otlp-profiles-json"])
def test_each_part_of_a_profile_has_an_id_of_its_own_and_one_has_the_account(nhmtap, tmp_path, form):
    _, _, parts = many_stacks(nhmtap, tmp_path, form, HALVED[form][2])
    profiles = [(message, profile) for message in map(otlp_message, parts) for profile in message.profiles]
    assert len({profile.profile_id for _, profile in profiles}) == len(profiles)
    told = [message.attributes(profile)["nhmtap.samples.aggregated"] for message, profile in profiles
            if message.type(profile)[0] == "samples" and "nhmtap.samples.aggregated" in message.attributes(profile)]
    assert told == [sum(otlp_stacks(body, tmp_path).total() for body in parts)]
    for message, profile in profiles:
        assert message.attributes(profile)["nhmtap.event"] == "page-faults:u" and profile.duration_nano


@pytest.mark.parametrize("form", HALVED)
def test_samples_each_of_which_is_too_large_are_told(nhmtap, tmp_path, form):
    result, requests, parts = many_stacks(nhmtap, tmp_path, form, 0)
    assert 6 < len(requests) <= 40 and not parts and result.status == 3  # however many stacks: more than 29
    assert result.err.count("status 413 of HTTP: {}; it is dropped, and counted") == 1


PLACES = {"pprof": "/ingest?name=app", "pprof to Parca": "/profiles/writeraw", "pprof as it is": "/upload", "folded": "/ingest?name=app",
          "callgrind": "/upload", "speedscope": "/upload", "firefox": "/upload", "otlp-profiles": "/v1development/profiles",
          "otlp-profiles-json": "/v1development/profiles", "openmetrics": "/upload", "prometheus": "/upload"}


def without_its_boundary(request):
    """The body. A form's parts are separated by random text."""
    return part_of(request)[1] if "multipart" in request.headers["Content-Type"] else request.body


@pytest.mark.parametrize("form", PLACES)
def test_every_form_is_sent_again_after_a_status_that_passes_and_dropped_after_one_that_stays(nhmtap, tmp_path, puppet, form):
    """A redirect is not followed: the request would become a GET, or go to whom nobody named."""
    stays = {413: "Next: a shorter interval", 308: "status 308", 400: "status 400"}
    if "otlp" in form:
        del stays[413]  # an entry has several values, which are sent in parts then
    with Receiver((429, {"Retry-After": "1"}), (503, {"Retry-After": "0"}), (200, {}),
                  *[(status, {"Location": "http://127.0.0.1:1/"}, b"because\nmore") for status in stays]) as receiver:
        with profiling(nhmtap, tmp_path, puppet, form.split()[0], receiver.url(PLACES[form])) as session:
            snapshots(session, puppet, 10)
            same = [receiver.next() for _ in range(3)]
            assert [request.status for request in same] == [429, 503, 200]
            assert len({without_its_boundary(request) for request in same}) == 1
            for status in stays:
                snapshots(session, puppet, 10)
                assert receiver.next().status == status
            snapshots(session, puppet, 10)
            assert receiver.next().status == 200
            result = session.end()
    for status, told in stays.items():
        assert result.err.count(f"status {status} of HTTP: because; it is dropped, and counted") == 1 and told in result.err
