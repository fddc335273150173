# SPDX-License-Identifier: GPL-2.0-only
"""How a session shows that it is alive: heartbeats, /readyz, and messages to systemd."""
import signal
import socket

import pytest

from asked import ask
from sessions import Session, faults


class Manager:
    """The socket of a service manager: sd_notify(3)."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(60)
        self.socket.bind(address)

    def hear(self, wanted=lambda state: state != "WATCHDOG=1"):
        """Returns the next wanted state: by default, any except those of the watchdog."""
        while True:
            state = self.socket.recv(4096).decode()
            if wanted(state):
                return state


@pytest.mark.parametrize("address", ["{}/notify", "\0nhmtap-test{}"], ids=["path", "abstract"])
def test_systemd_is_told_of_each_change(nhmtap, tmp_path, monkeypatch, address):
    address = address.format(tmp_path)[:100]
    manager = Manager(address)
    monkeypatch.setenv("NOTIFY_SOCKET", address.replace("\0", "@"))
    with Session(nhmtap, tmp_path, [faults("counts", "stat", all_cpus=True)]) as session:
        assert manager.hear() == "READY=1"
        session.hup()
        reloading, _, at = manager.hear().partition("\nMONOTONIC_USEC=")
        assert reloading == "RELOADING=1" and int(at) > 0
        assert manager.hear() == "READY=1"
        assert session.end().status == 0
        assert manager.hear() == "STOPPING=1"


def test_the_watchdog_hears_it(nhmtap, tmp_path, monkeypatch):
    manager = Manager(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "20000")
    with Session(nhmtap, tmp_path, [faults("counts", "stat", all_cpus=True)]) as session:
        for _ in range(3):
            assert manager.hear(lambda state: state.startswith("WATCHDOG")) == "WATCHDOG=1"
        session.end()


def test_another_process_s_watchdog_hears_nothing(nhmtap, tmp_path, monkeypatch):
    manager = Manager(str(tmp_path / "notify"))
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "1000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    with Session(nhmtap, tmp_path, [faults("counts", "stat", all_cpus=True, interval_ms=10)]) as session:
        session.until(lambda records: len([r for r in records if r["type"] == "count"]) > 20)
        session.end()
    assert [manager.hear(lambda state: True) for _ in range(2)] == ["READY=1", "STOPPING=1"]


def test_a_silent_session_says_that_it_is_alive(nhmtap, tmp_path):
    """One output gets nothing but heartbeats. The other one has records all the time."""
    busy = tmp_path / "busy"
    with Session(nhmtap, tmp_path,
                 [faults("slow", "stat", all_cpus=True),
                  faults("fast", "stat", all_cpus=True, interval_ms=100)],
                 outputs=[{"activities": ["slow"]}, {"path": str(busy), "activities": ["fast"]}],
                 heartbeat_s=1) as session:
        session.until(lambda records: len([r for r in records if r["type"] == "heartbeat"]) == 2)
        result = session.end()
    beats = result.of("heartbeat")
    assert all(r["activities"] == 2 and r["activity"] == "session" for r in beats)
    assert beats[1]["duration_ns"] - beats[0]["duration_ns"] >= 1e9
    assert '"heartbeat"' not in busy.read_text()


def test_it_is_ready_once_each_activity_has_written_an_interval(nhmtap, tmp_path):
    place = f"unix:{tmp_path}/s"
    with Session(nhmtap, tmp_path, [faults("slow", "stat", all_cpus=True),
                                    faults("fast", "stat", all_cpus=True, interval_ms=10)], listen=place) as session:
        session.until(lambda records: any(r["type"] == "count" for r in records))
        status, said, _ = ask(place, "/readyz")
        assert (status, said) == (503, "slow: its first interval is not written yet\n")
        assert ask(place, "/healthz")[0] == 200
        session.do("snapshot slow")
        assert ask(place, "/readyz")[:2] == (200, "ok\n")
        session.end(signal.SIGTERM)


@pytest.mark.parametrize("value", [0, -1, 1.5, "1", 86401])
def test_what_is_no_time_is_refused(nhmtap, tmp_path, value):
    from sessions import write
    path = write(tmp_path / "c", {"activities": [faults("a", "stat", all_cpus=True)], "heartbeat_s": value})
    result = nhmtap("run", "--check", path)
    assert result.status == 1 and "/heartbeat_s" in result.err + result.out
