# SPDX-License-Identifier: GPL-2.0-only
"""--listen: a running session answers HTTP, at a unix socket or an address of this machine."""
import os
import signal
import socket
import subprocess

import pytest
from asked import ask, connect, free_port
from sessions import Session, faults, write


@pytest.fixture(params=["unix", "tcp"])
def place(request, tmp_path):
    return f"unix:{tmp_path}/http" if request.param == "unix" else f"tcp:127.0.0.1:{free_port()}"


@pytest.fixture
def session(nhmtap, tmp_path, puppet, place):
    with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid))],
                 listen=place) as one:
        yield one


def test_a_session_says_that_it_goes_on(session, place):
    assert ask(place, "/healthz")[:2] == (200, "ok\n")
    assert session.end().status == 0


def test_one_connection_may_ask_several_times(session, place):
    connection = connect(place)
    for _ in range(3):
        assert ask(place, "/healthz", connection=connection)[0] == 200
    assert ask(place, "/healthz", "HEAD", connection)[:2] == (200, "")
    connection.close()


def test_a_page_that_there_is_not_names_those_that_there_are(session, place):
    status, said, _ = ask(place, "/helthz")
    assert status == 404 and "/healthz" in said


def test_pages_are_only_read(session, place):
    assert ask(place, "/healthz", "POST")[0] == 405


def test_who_connects_and_says_nothing_keeps_nobody_waiting(session, place):
    silent = [connect(place) for _ in range(8)]
    for one in silent:
        if not one.sock:
            one.connect()
        one.sock.sendall(b"GET /heal")
    assert ask(place, "/healthz")[0] == 200
    session.do("ping")
    assert session.end().status == 0
    for one in silent:
        one.close()


def test_the_socket_is_gone_when_the_session_is(nhmtap, tmp_path, puppet):
    path = tmp_path / "http"
    with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid))],
                 listen=f"unix:{path}") as session:
        assert path.stat().st_mode & 0o777 == 0o660
        session.end()
    assert not path.exists()


def test_a_socket_that_a_killed_session_left_behind_is_replaced(nhmtap, tmp_path, puppet):
    path = tmp_path / "http"
    for by in (signal.SIGKILL, signal.SIGTERM):
        folder = tmp_path / by.name
        folder.mkdir()
        with Session(nhmtap, folder, [faults("counts", "stat", pid=str(puppet.pid))],
                     listen=f"unix:{path}") as session:
            assert ask(f"unix:{path}", "/healthz")[0] == 200
            session.process.send_signal(by)
            session.process.wait(timeout=60)
        assert path.exists() == (by == signal.SIGKILL)


def test_an_address_that_is_taken_ends_a_run_before_it_begins(nhmtap, tmp_path):
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "http"))
        other.listen()
        result = nhmtap("stat", "-e", "cs", "--listen", f"unix:{tmp_path}/http", "--", "touch", tmp_path / "ran")
    assert result.status == 1 and "already in use" in result.err and "--listen" in result.err
    assert not (tmp_path / "ran").exists() and (tmp_path / "http").exists()


@pytest.mark.parametrize("place, why", [("http", "unix:PATH"), ("tcp:127.0.0.1", "host and port"),
                                        ("unix:", "1 to 107 bytes")])
def test_what_is_no_address_is_refused(nhmtap, tmp_path, place, why):
    result = nhmtap("stat", "-e", "cs", "--listen", place, "--", "true")
    assert result.status == 1 and why in result.err and f"--listen '{place}'" in result.err
    config = write(tmp_path / "config", {"activities": [faults("counts", "stat", all_cpus=True)], "listen": place})
    result = nhmtap("run", config)
    assert result.status == 1 and "/listen" in result.err and why in result.err


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.1", "[::ffff:192.0.2.1]"])
def test_an_address_that_other_machines_reach_is_refused(nhmtap, tmp_path, host):
    result = nhmtap("stat", "-e", "cs", "--listen", f"tcp:{host}:9464", "--", "touch", tmp_path / "ran")
    assert result.status == 1 and "other machines reach this address" in result.err
    assert f"write public-tcp:{host}:9464" in result.err and not (tmp_path / "ran").exists()


@pytest.mark.parametrize("place", ["tcp:127.1.2.3", "tcp:[::1]", "tcp:[::ffff:127.0.0.1]", "public-tcp:0.0.0.0"])
def test_loopback_is_taken_and_any_address_that_is_asked_for(nhmtap, tmp_path, place):
    asked = place.partition(":")[2].replace("0.0.0.0", "127.0.0.1")
    run = nhmtap.command("stat", "-e", "page-faults", "-o", tmp_path / "out", "--listen", f"{place}:9464", "--", "curl",
                         "-sg", f"http://{asked}:9464/healthz")
    # In a network namespace of its own, which nobody else reaches.
    said = subprocess.run(["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "-", *run],
                          stdout=subprocess.PIPE, check=True, text=True).stdout
    assert said == "ok\n"


def test_a_single_run_answers_as_well(nhmtap, tmp_path):
    place = f"unix:{tmp_path}/http"
    said = subprocess.run(nhmtap.command(
        "stat", "-e", "page-faults", "-o", tmp_path / "out", "--listen", place, "--", "curl", "-s", "--unix-socket",
        tmp_path / "http", "http://localhost/healthz"), stdout=subprocess.PIPE, check=True, text=True).stdout
    assert said == "ok\n" and not os.path.exists(tmp_path / "http")
