#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""consumer.py KIND PLACE FILE: takes what a session sends, until it is killed, and appends it to a file.

http: each POST is a line with its path and body (base64), which is written before it is answered. unix: what comes on the
connections of a socket. page: each page of openmetrics that unix:PLACE serves, one a line (base64).
"""
import base64
import contextlib
import gzip
import http.server
import os
import socket
import sys
import time

from asked import ask


def append(path, *words):
    """Writes a line in one piece: a kill leaves it whole or leaves nothing of it."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, b" ".join(words) + b"\n")
    os.close(fd)


def take_posts(port, path):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            append(path, self.path.encode(), base64.b64encode(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    http.server.ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


def take_lines(place, path):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(place)
    server = socket.socket(socket.AF_UNIX)
    server.bind(place)
    server.listen()
    while True:
        one, _ = server.accept()
        with one, open(path, "ab", buffering=0) as file:
            while data := one.recv(1 << 16):
                file.write(data)


def take_pages(place, path):
    while True:
        with contextlib.suppress(OSError):
            status, page, _ = ask(f"unix:{place}", "/metrics")
            if status == 200:  # at its end a session has no outputs any more
                append(path, base64.b64encode(page.encode()))
        time.sleep(0.2)


if __name__ == "__main__":
    {"http": take_posts, "unix": take_lines, "page": take_pages}[sys.argv[1]](sys.argv[2], sys.argv[3])
