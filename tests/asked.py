# SPDX-License-Identifier: GPL-2.0-only
"""Asks a session by HTTP, at the address that --listen was given."""
import contextlib
import http.client
import random
import socket


def free_port():
    """One that nobody listens at. It is below those that the kernel gives away, and no neighbour's: each test picks its
    own at random."""
    while True:
        port = random.SystemRandom().randrange(12000, 32000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def connect(place):
    """A connection to unix:PATH or tcp:HOST:PORT."""
    kind, _, where = place.partition(":")
    connection = http.client.HTTPConnection(where if kind == "tcp" else "localhost", timeout=60)
    if kind == "unix":
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(60)
        connection.sock.connect(where)
    return connection


def ask(place, path, method="GET", connection=None):
    """The status, what was said, and the type of that."""
    own = connection or connect(place)
    own.request(method, path)
    answer = own.getresponse()
    said = answer.status, answer.read().decode(), answer.headers["Content-Type"]
    if not connection:
        own.close()
    return said
