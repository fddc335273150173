# SPDX-License-Identifier: GPL-2.0-only
"""A small fleet: three hosts, three servers of NATS JetStream and a database. Whichever of them is
killed and started again, every line that was written to a host's socket is in the table exactly
once."""
import collections
import contextlib
import json
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import threading

import pytest
from puppet import Puppet
from servers import ClickHouse, Server, configured, until
from sessions import write

HERE = pathlib.Path(__file__).parent
PROGRAMS = os.environ.get("NHMTAP_PROGRAMS", "build/programs")
HUB, HOSTS, SERVERS = "10.77.0.1", ("host-a", "host-b", "host-c"), 3
URLS = ",".join(f"nats://{HUB}:{4222 + i}" for i in range(SERVERS))


class Network:
    """A separate network of a hub and hosts, each in a network namespace."""

    def __init__(self):
        self.names = {name: f"nhmtap-{os.getpid()}-{name}" for name in ("hub", *HOSTS)}

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True)

    def __enter__(self):
        for name in self.names.values():
            self.ip("netns", "add", name)
            self.ip("-n", name, "link", "set", "lo", "up")
        hub = self.names["hub"]
        self.ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        self.ip("-n", hub, "address", "add", f"{HUB}/24", "dev", "bridge")
        self.ip("-n", hub, "link", "set", "bridge", "up")
        for i, host in enumerate(HOSTS):
            own = self.names[host]
            self.ip("-n", hub, "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", own)
            self.ip("-n", hub, "link", "set", host, "master", "bridge", "up")
            self.ip("-n", own, "address", "add", f"10.77.0.{11 + i}/24", "dev", "eth0")
            self.ip("-n", own, "link", "set", "eth0", "up")
        return self

    def __exit__(self, *_):
        for name in self.names.values():
            self.ip("netns", "delete", name)

    def within(self, name):
        """Returns a prefix for commands that runs them in this namespace."""
        return ["nsenter", f"--net=/run/netns/{self.names[name]}"]


class Killable(contextlib.AbstractContextManager):
    """A program that can be killed and started again."""

    def __init__(self, folder, *command):
        folder.mkdir()
        self.folder, self.command, self.server = folder, command, None
        self.start()

    def start(self):
        self.server = Server(self.folder, *self.command)

    def kill(self):
        self.server.process.send_signal(signal.SIGKILL)
        self.server.process.wait()

    def __exit__(self, *_):
        self.server.__exit__()


class Wire:
    """Forwards nhmtap's lines to the shipper, and keeps a copy."""

    def __init__(self, path, to):
        self.to, self.pieces, self.lock = to, [], threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            with contextlib.suppress(OSError):
                connection, _ = self.listener.accept()
                piece = {"bytes": b"", "open": True}
                with self.lock:
                    self.pieces.append(piece)
                threading.Thread(target=self.carry, args=(connection, piece), daemon=True).start()
                continue
            return

    def carry(self, connection, piece):
        with connection, socket.socket(socket.AF_UNIX) as out:
            out.connect(str(self.to))
            while text := connection.recv(1 << 16):
                piece["bytes"] += text
                out.sendall(text)
        piece["open"] = False

    def lines(self):
        """Returns the complete lines of each connection."""
        with self.lock:
            pieces = [piece["bytes"] for piece in self.pieces]
        return [json.loads(line) for piece in pieces for line in piece[:piece.rfind(b"\n") + 1].splitlines()]

    def is_quiet(self):
        with self.lock:
            return not any(piece["open"] for piece in self.pieces)


class Host:
    """A machine of the fleet: a host name and a network of its own, a measured program, and
    nhmtap."""

    def __init__(self, stack, nhmtap, network, folder, name):
        folder.mkdir()
        self.name, self.puppet = name, stack.enter_context(Puppet())
        self.ship = stack.enter_context(Killable(folder / "ship", *network.within(name), f"{PROGRAMS}/fleet/ship", URLS,
                                                 f"nhmtap.{name}", folder / "ship.socket"))
        until((folder / "ship.socket").exists, self.ship.server)
        self.wire = Wire(folder / "socket", folder / "ship.socket")
        pid = str(self.puppet.pid)
        config = write(folder / "config.json", {
            "activities": [{"name": "counts", "command": "stat", "event": "page-faults,context-switches,task-clock",
                            "pid": pid, "interval_ms": 100},
                           {"name": "code", "command": "profile", "event": "page-faults", "count": 1, "pid": pid,
                            "by": "symbol,comm", "interval_ms": 200}],
            "outputs": [{"format": "flat", "path": f"unix:{folder}/socket"}]})
        self.nhmtap = stack.enter_context(Killable(
            folder / "nhmtap", *network.within(name), "unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', name,
            *nhmtap.command("run", config)))

    def end(self):
        self.nhmtap.server.process.terminate()
        assert self.nhmtap.server.process.wait(timeout=120) == 0, self.nhmtap.server.log.read_text()
        until(self.wire.is_quiet)


class Fleet:
    def __init__(self, stack, nhmtap, folder):
        self.network = stack.enter_context(Network())
        hub = self.network.within("hub")
        self.servers = []
        for i in range(SERVERS):
            own = folder / f"n{i + 1}"
            config = configured(HERE / "nats-server.conf", folder, **{
                "server_name: n1": f"server_name: n{i + 1}", f"listen: {HUB}:4222": f"listen: {HUB}:{4222 + i}",
                f"http: {HUB}:8222": f"http: {HUB}:{8222 + i}", "/var/lib/nats": own,
                f"listen: {HUB}:6222": f"listen: {HUB}:{6222 + i}"}).rename(folder / f"n{i + 1}.conf")
            self.servers.append(stack.enter_context(Killable(own, *hub, "nats-server", "-c", config)))
        for i in range(SERVERS):
            self.wait_for_server(i)
        (folder / "database").mkdir()
        self.database = stack.enter_context(ClickHouse(folder / "database", before=hub))
        insert = shlex.join(map(str, self.database.client("INSERT INTO nhmtap FORMAT JSONEachRow")))
        self.consumer = stack.enter_context(Killable(folder / "drain", *hub, f"{PROGRAMS}/fleet/drain", URLS, insert))
        self.hosts = [Host(stack, nhmtap, self.network, folder / name, name) for name in HOSTS]

    def wait_for_server(self, i):
        """Waits until a server has caught up with the others."""
        asked = [*self.network.within("hub"), "curl", "-sf", f"http://{HUB}:{8222 + i}/healthz"]
        until(lambda: subprocess.run(asked, stdout=subprocess.DEVNULL, check=False).returncode == 0,
              self.servers[i].server)

    def ask(self, query):
        return [line.split("\t") for line in self.database.ask(query).splitlines()]

    def rows(self):
        return int(self.ask("SELECT count() FROM nhmtap FINAL")[0][0])

    def work(self):
        for host in self.hosts:
            host.puppet.do("faults=50")

    def go_on(self):
        """Causes page faults until lines that are written from now on arrive in the table."""
        newest = {host.name: max(line["time_unix_ms"] for line in host.wire.lines()) for host in self.hosts}
        until(lambda: self.work() or all(
            int(seen) > newest[host] for host, seen in
            self.ask("SELECT `host.name`, max(time_unix_ms) FROM nhmtap GROUP BY `host.name`")))


@pytest.fixture
def fleet(nhmtap, tmp_path):
    with contextlib.ExitStack() as stack:
        one = Fleet(stack, nhmtap, tmp_path)
        until(lambda: one.work() or len(one.ask("SELECT DISTINCT `host.name` FROM nhmtap")) == len(HOSTS))
        yield one


def sums(lines, **wanted):
    found = collections.Counter()
    for line in lines:
        if all(line.get(name) == value for name, value in wanted.items()):
            found[line["host.name"]] += line.get("value", 0)
    return found


def test_whoever_is_killed_every_line_is_in_the_table_once(fleet):
    for i, server in enumerate(fleet.servers):
        server.kill()
        fleet.go_on()
        server.start()
        fleet.wait_for_server(i)
    fleet.consumer.kill()
    fleet.work()
    fleet.consumer.start()
    fleet.go_on()
    fleet.hosts[1].nhmtap.kill()
    fleet.hosts[1].nhmtap.start()
    fleet.go_on()
    fleet.database.kill()
    fleet.work()
    fleet.database.start()
    until(fleet.database.is_ready, fleet.database)
    fleet.go_on()
    for server in fleet.servers:
        server.kill()
    fleet.work()
    for server in fleet.servers:
        server.start()
    fleet.go_on()
    for host in fleet.hosts:
        host.end()

    lines = [line for host in fleet.hosts for line in host.wire.lines()]
    written = {(line["run_id"], line["seq"]) for line in lines}
    until(lambda: fleet.rows() >= len(written))
    rows = [(run_id, int(seq)) for run_id, seq in fleet.ask("SELECT run_id, seq FROM nhmtap FINAL")]
    assert len(rows) == len(set(rows)) and set(rows) == written
    assert len({run_id for run_id, _ in rows}) == len(HOSTS) + 1

    counts = sums(lines, activity="counts", event="page-faults")
    assert {host: float(total) for host, total in fleet.ask(
        "SELECT `host.name`, sum(value) FROM nhmtap FINAL WHERE activity = 'counts' AND event = 'page-faults' "
        "GROUP BY `host.name`")} == dict(counts)
    check_dashboards(fleet, lines, counts)


def check_dashboards(fleet, lines, counts):
    hosts = {row[0]: row[2:] for row in fleet.ask((HERE / "hosts.sql").read_text())}
    for host in fleet.hosts:
        own = [line for line in lines if line["host.name"] == host.name]
        assert hosts[host.name] == [str(len({line["run_id"] for line in own})), str(len(own)), "0"]
    events = collections.Counter()
    for _, host, event, number in fleet.ask((HERE / "events.sql").read_text()):
        if event == "page-faults":
            events[host] += float(number)
    assert events == counts
    functions = fleet.ask((HERE / "functions.sql").read_text())
    assert [row[3] for row in functions if row[0] == "touch"] == [str(len(HOSTS))]
    assert sum(float(row[2]) for row in functions) == sum(sums(lines, activity="code").values())
