# SPDX-License-Identifier: GPL-2.0-only
"""Outputs whose host's name no name server answers for: the session measures meanwhile, and ends at once. A look-up
takes longer than a test may: five tries of 30 s (resolv.conf(5)), and the time limit is shorter."""
import json
import os
import signal
import socket
import threading

import pytest
from sessions import write


@pytest.fixture(name="silent")
def fixture_silent(tmp_path):
    """What to put before a command, so that its only name server is one that never answers."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        address = f"127.9.{os.getpid() % 250}.{os.getpid() // 250 % 250 + 1}"  # tests run side by side
        server.bind((address, 53))
        path = tmp_path / "resolv.conf"
        path.write_text(f"nameserver {address}\noptions timeout:30 attempts:5\n")
        yield ["unshare", "-m", "sh", "-c", f'mount --bind {path} /etc/resolv.conf && exec "$@"', "sh"]


def config(path, outputs):
    return write(path, {"activities": [{"name": "faults", "command": "stat", "event": "page-faults", "all_cpus": True,
                                        "interval_ms": 100}], "outputs": [{"format": "json", "path": "-"}, *outputs]})


def lines_until(process, found):
    lines = []
    while not found(lines):
        line = process.stdout.readline()
        assert line, process.stderr.read()
        lines.append(json.loads(line))
    return lines


def end(process):
    """Sends SIGTERM, and checks that the end does not wait for the look-up."""
    hung = threading.Timer(100, process.kill)
    hung.start()
    process.send_signal(signal.SIGTERM)
    process.stdout.read()
    said = process.stderr.read()
    process.wait()
    hung.cancel()
    assert process.returncode != -signal.SIGKILL, said


def intervals(nr):
    return lambda lines: sum(line["type"] == "count" for line in lines) >= nr


def test_sigterm_does_not_wait_for_the_name_of_a_push(nhmtap, silent, tmp_path):
    place = config(tmp_path / "c", [{"format": "otlp", "path": "http://nobody.example/v1/metrics"}])
    process = nhmtap.start("run", place, before=silent)
    lines_until(process, intervals(5))
    end(process)


def test_sighup_does_not_wait_for_the_name_of_a_connection(nhmtap, silent, tmp_path):
    place = config(tmp_path / "c", [])
    process = nhmtap.start("run", place, before=silent)
    lines_until(process, intervals(1))
    config(place, [{"format": "json", "path": "tcp:nobody.example:9"}])
    process.send_signal(signal.SIGHUP)
    error = lines_until(process, lambda lines: lines and lines[-1]["type"] == "error")[-1]
    assert "the name servers have not answered in time" in json.dumps(error)
    lines_until(process, intervals(2))
    end(process)
