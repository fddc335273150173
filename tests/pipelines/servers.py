# SPDX-License-Identifier: GPL-2.0-only
"""Servers of others on loopback: started by a test, asked, and stopped."""
import json
import os
import pathlib
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).parent


def until(there, process=None, seconds=120):
    """What `there` gives, once that is something; nobody waits for a time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = there()
        if found:
            return found
        assert not process or process.poll() is None, "the server has ended"
        time.sleep(0.05)
    raise AssertionError("it did not come")


def get(url, **parameters):
    """The text of a page; None: nobody answers yet."""
    query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
    try:
        with urllib.request.urlopen(url + query, timeout=30) as answer:
            return answer.read().decode()
    except (urllib.error.URLError, ConnectionError):
        return None


def instant(base, query):
    """[value] of Prometheus' HTTP API."""
    answer = json.loads(get(f"{base}/api/v1/query", query=query) or '{"data": {"result": []}}')
    return [float(series["value"][1]) for series in answer["data"]["result"]]


def configured(name, folder, **instead):
    """A configuration of this folder, with a test's own places and ports; its path."""
    text = (HERE / name).read_text()
    for old, new in instead.items():
        assert old in text, old
        text = text.replace(old, str(new))
    path = folder / name
    path.write_text(text)
    return path


class Server:
    """A process that goes on while the with statement does; what it says is in a file."""

    def __init__(self, folder, *command, **options):
        self.log = folder / f"{os.path.basename(str(command[0]))}.log"
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([*map(str, command)], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            cwd=folder, **options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
