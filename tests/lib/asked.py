# SPDX-License-Identifier: GPL-2.0-only
"""Sends HTTP requests to a session that was started with --listen."""
import contextlib
import http.client
import random
import socket


def free_port():
    """A port that nobody listens on. It is below the ephemeral ports, and picked at random so that
    tests that run in parallel do not take the same."""
    while True:
        port = random.SystemRandom().randrange(12000, 32000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def connect(place):
    """Returns a connection to unix:PATH or tcp:HOST:PORT."""
    kind, _, where = place.partition(":")
    connection = http.client.HTTPConnection(where if kind == "tcp" else "localhost", timeout=60)
    if kind == "unix":
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(60)
        connection.sock.connect(where)
    return connection


def ask(place, path, method="GET", connection=None):
    """Returns the response's status, text and content type."""
    own = connection or connect(place)
    own.request(method, path)
    answer = own.getresponse()
    said = answer.status, answer.read().decode(), answer.headers["Content-Type"]
    if not connection:
        own.close()
    return said
