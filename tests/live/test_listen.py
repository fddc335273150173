# SPDX-License-Identifier: GPL-2.0-only
"""--listen: a running session answers HTTP, at a unix socket or an address of this machine."""
import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import threading
import time
import urllib.request

import pytest
from asked import ask, connect, free_port
from sessions import Session, config_schema, faults, until, write


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


def connected(place):
    kind, _, where = place.partition(":")
    if kind == "tcp":
        host, _, port = where.partition(":")
        return socket.create_connection((host, int(port)))
    one = socket.socket(socket.AF_UNIX)
    one.connect(where)
    return one


SAYS = {"nothing": b"", "half a request": b"GET /heal", "a head without an end": b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
        "a body that does not come": b"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"}


@pytest.mark.parametrize("says", SAYS)
def test_any_number_of_idle_connections_keep_nobody_out_and_leave_nothing_behind(session, place, says):
    idle = []
    for number in range(150):
        idle.append(connected(place))
        with contextlib.suppress(OSError):
            idle[-1].sendall(SAYS[says])
        if number % 10 == 0:
            assert ask(place, "/healthz")[0] == 200
    assert ask(place, "/healthz")[:2] == (200, "ok\n")
    session.do("ping")
    for one in idle:
        one.close()
    for _ in range(3):
        assert ask(place, "/healthz")[0] == 200
    assert session.end().status == 0


def test_who_connects_without_end_keeps_nobody_out(session, place):
    stop = threading.Event()

    def flood():
        held = []
        while not stop.is_set():
            with contextlib.suppress(OSError):
                held.append(connected(place))
            time.sleep(0.0005)
            if len(held) > 200:
                held.pop(0).close()
        for one in held:
            one.close()

    floods = [threading.Thread(target=flood) for _ in range(2)]
    for one in floods:
        one.start()
    for _ in range(20):
        assert ask(place, "/healthz")[0] == 200
    stop.set()
    for one in floods:
        one.join()
    assert ask(place, "/healthz")[0] == 200 and session.end().status == 0


def test_who_is_about_to_ask_is_not_put_out_by_a_crowd_that_says_nothing(nhmtap, tmp_path, puppet):
    """They come while nhmtap is stopped, so it sees all at once, and the one that will ask is the first."""
    place = f"tcp:127.0.0.1:{free_port()}"
    with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid))], listen=place) as session, \
            contextlib.ExitStack() as crowd:
        session.process.send_signal(signal.SIGSTOP)
        where = ("127.0.0.1", int(place.rpartition(":")[2]))
        one, *_ = [crowd.enter_context(socket.create_connection(where, timeout=60)) for _ in range(100)]
        session.process.send_signal(signal.SIGCONT)
        session.do("ping")
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = b""
        while part := one.recv(4096):
            answer += part
        assert answer.endswith(b"ok\n")


def test_who_asks_and_does_not_read_keeps_nobody_out(session, place):
    deaf = []
    for _ in range(64):
        deaf.append(connected(place))
        deaf[-1].settimeout(0.2)
        with contextlib.suppress(OSError):
            deaf[-1].sendall(b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
    assert ask(place, "/healthz")[0] == 200
    for one in deaf:
        one.close()
    assert ask(place, "/healthz")[0] == 200 and session.end().status == 0


def test_without_descriptors_the_listener_waits_and_does_not_spin(nhmtap, tmp_path, puppet, place):
    with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid))], listen=place) as one:
        used = len(os.listdir(f"/proc/{one.process.pid}/fd"))
        resource.prlimit(one.process.pid, resource.RLIMIT_NOFILE, (used + 5, used + 5))
        idle = [connected(place) for _ in range(20)]
        until(lambda: len(os.listdir(f"/proc/{one.process.pid}/fd")) >= used + 4)
        one.do("ping")
        assert ask(place, "/healthz")[0] == 200
        with open(f"/proc/{one.process.pid}/stat", encoding="ascii") as file:
            before = sum(map(int, file.read().split()[13:15]))
        time.sleep(0.5)
        with open(f"/proc/{one.process.pid}/stat", encoding="ascii") as file:
            assert sum(map(int, file.read().split()[13:15])) - before < 25  # hundredths of a second
        for other in idle:
            other.close()
        assert ask(place, "/healthz")[0] == 200 and one.end().status == 0


def a_file(path):
    path.write_text("precious")


def a_fifo(path):
    os.mkfifo(path)


def a_folder(path):
    path.mkdir()


def a_link(path):
    path.with_name("precious").write_text("precious")
    path.symlink_to("precious")


def a_server_that_does_not_listen_yet(path):
    other = socket.socket(socket.AF_UNIX)
    other.bind(str(path))
    return other


def a_server_of_datagrams(path):
    other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    other.bind(str(path))
    return other


def a_server_with_a_full_queue(path):
    other = socket.socket(socket.AF_UNIX)
    other.bind(str(path))
    other.listen(0)
    return other, connected(f"unix:{path}")


@pytest.mark.parametrize("thing", [a_file, a_fifo, a_folder, a_link, a_server_that_does_not_listen_yet,
                                   a_server_of_datagrams, a_server_with_a_full_queue])
def test_what_is_no_socket_that_was_left_behind_is_not_removed(nhmtap, tmp_path, thing):
    path = tmp_path / "http"
    held = thing(path)
    before = path.lstat()
    result = nhmtap("stat", "-e", "cs", "--listen", f"unix:{path}", "--", "touch", tmp_path / "ran")
    assert result.status == 1 and "already in use" in result.err and not (tmp_path / "ran").exists()
    assert path.lstat().st_ino == before.st_ino and path.lstat().st_mode == before.st_mode
    for one in held if isinstance(held, tuple) else [held] if held else []:
        one.close()


def test_the_socket_that_another_server_has_put_there_stays(nhmtap, tmp_path, puppet):
    path = tmp_path / "http"
    with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid))], listen=f"unix:{path}") as session:
        path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
            other.listen()
            session.end()
            connected(f"unix:{path}").close()


def test_the_socket_is_gone_when_the_session_is(nhmtap, tmp_path, puppet):
    path = tmp_path / "http"
    with Session(nhmtap, tmp_path, [faults("counts", "stat", pid=str(puppet.pid))],
                 listen=f"unix:{path}") as session:
        assert path.stat().st_mode & 0o777 == 0o660
        session.end()
    assert not path.exists()


def test_the_socket_goes_as_well_where_there_can_be_no_other_process(nhmtap, tmp_path):
    """Another process makes and removes it, since a file system may not answer."""
    place = tmp_path / "socket"
    calls = "clone,clone3,fork,vfork"
    refused = ["strace", "-f", "-o", tmp_path / "calls", "-e", f"trace={calls}", "-e", f"inject={calls}:error=EAGAIN", "-E",
               "ASAN_OPTIONS=detect_leaks=0"]
    done = subprocess.run([*refused, *nhmtap.command("stat", "-a", "-e", "page-faults", "--duration", "0.2", "--listen",
                                                     f"unix:{place}", "-o", tmp_path / "records")], check=False)
    assert done.returncode == 0 and (tmp_path / "calls").read_text().count("EAGAIN") >= 2
    assert not place.exists()


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


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.1"])
def test_such_an_address_is_refused_without_its_kind_as_well(nhmtap, host):
    result = nhmtap("stat", "-e", "cs", "--listen", f"{host}:9464", "--", "true")
    assert result.status == 1 and "other machines reach this address" in result.err
    assert f"write public-tcp:{host}:9464" in result.err


ALL_ADDRESSES = "127.0.0.1:9464 for programs on this machine; public-tcp:0.0.0.0:9464 for everyone"


@pytest.mark.parametrize("place, following", [
    ("9464", ALL_ADDRESSES), (":9464", ALL_ADDRESSES), ("*:9464", ALL_ADDRESSES),
    ("host.example:9464", "tcp:host.example:9464, or public-tcp:host.example:9464"),
    *((place, "write unix:PATH, 127.0.0.1:PORT or tcp:[ADDRESS]:PORT") for place in (
        "", ":", "::1", "[::1:9464", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "localhost:", "**:9464", ":65536", ":-1", "a b:9464", "/run/socket")),
])
def test_a_place_without_a_kind_gets_what_was_probably_meant(nhmtap, tmp_path, place, following):
    result = nhmtap("stat", "-e", "page-faults", "--listen", place, "--", "touch", tmp_path / "ran")
    assert result.status == 1 and f"Next: {following}" in result.err and not (tmp_path / "ran").exists()
    assert not config_schema().is_valid({"activities": [faults("a", "stat", cpu="0")], "listen": place})


@pytest.mark.parametrize("place", ["tcp:127.1.2.3", "tcp:[::1]", "tcp:[::ffff:127.0.0.1]", "public-tcp:0.0.0.0",
                                   "127.0.0.1", "127.1.2.3", "localhost", "[::1]"])
def test_loopback_is_taken_and_any_address_that_is_asked_for(nhmtap, tmp_path, place):
    asked = (place.partition(":")[2] if "tcp:" in place else place).replace("0.0.0.0", "127.0.0.1")
    assert config_schema().is_valid({"activities": [faults("a", "stat", cpu="0")], "listen": f"{place}:9464"})
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


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "tcp:localhost"])
def test_a_port_that_the_kernel_has_chosen_is_told(nhmtap, puppet, host):
    process = nhmtap.attach("stat", "-e", "page-faults", "--listen", f"{host}:0", "-p", puppet.pid)
    told = re.fullmatch(r"nhmtap: listening at (\S+:[1-9]\d*)\n", process.stderr.readline())[1]
    with urllib.request.urlopen(f"http://{told}/healthz", timeout=60) as answer:
        assert answer.read() == b"ok\n"
    assert nhmtap.interrupt(process).status == 0
