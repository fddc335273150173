# SPDX-License-Identifier: GPL-2.0-only
"""Documents pushed by HTTP: OTLP's metrics, and profiles in the forms of Pyroscope and Parca."""
import base64
import email
import json
import os
import signal
import urllib.parse

import otlp
import pprof
import pytest
from asked import free_port
from otlp import Receiver
from puppet import command
from records import Result
from sessions import Session, faults

COUNTS = "counts"


def counting(nhmtap, folder, puppet, *outputs, **members):
    return Session(nhmtap, folder, [faults(COUNTS, "stat", pid=str(puppet.pid))],
                   outputs=[{}, *outputs], **members)


def snapshots(session, puppet, *numbers):
    for number in numbers:
        puppet.do(f"faults={number}")
        session.do("snapshot")


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


@pytest.mark.parametrize("place, why", [("json=http://127.0.0.1:1/", "makes no requests"),
                                        ("otlp=http://:x/", "")])
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
