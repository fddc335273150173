# SPDX-License-Identifier: GPL-2.0-only
"""The examples of README and of the manual. A line that begins with "$" runs on any machine, a line
that begins with "nehalem#" on the emulated Nehalem."""
import glob
import os
import re
import subprocess

from records import NHMTAP, PROGRAMS, check_stream, parse

ROOT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "..")
SOURCES = [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "user", "manual", "*.md")))]


def text_of(name):
    """Returns the text of README.md or of a page of the manual, such as nhmtap-stat.md."""
    path, = [path for path in SOURCES if os.path.basename(path) == name]
    with open(path, encoding="utf-8") as file:
        return file.read()


def examples(prompt):
    """Returns (file, command) of all examples, each once."""
    found = {}
    for path in SOURCES:
        name = os.path.basename(path)
        for command in re.findall(rf"^    {re.escape(prompt)} (.+)$", text_of(name), re.M):
            found.setdefault(command, name)
    return [(name, command) for command, name in found.items()]


def in_container(command):
    """Whether an example runs the container image that `make image` has made."""
    return "build/image" in command


def on_machine(command):
    """Whether an example runs something on the emulated machine."""
    return "--machine" in command or ("nhmtap machine" in command and "--list" not in command)


def run(command, folder):
    """Runs an example unchanged, in a folder next to the tables of events."""
    path = os.pathsep.join([os.path.dirname(os.path.abspath(NHMTAP)), os.path.abspath(PROGRAMS), os.environ["PATH"]])
    os.symlink(os.path.abspath(os.path.join(ROOT, "events")), folder / "events")
    done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=240, check=False,
                          env={**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8",
                               "PYTHONPATH": os.path.abspath(os.path.join(ROOT, "user", "python"))})
    files = [file for file in folder.iterdir() if file.is_file()]
    assert done.returncode == 0, done.stderr
    assert done.stdout or files
    for text in [done.stdout] + [file.read_text(errors="replace") for file in files]:
        if text.startswith('{"type":"start"'):
            check_stream(parse(text))
