# SPDX-License-Identifier: GPL-2.0-only
"""The perf_event_open() calls that a program makes, by strace."""
import os
import re
import subprocess

CALL = re.compile(r"perf_event_open\(\{(?P<attr>.*)\}, (?P<pid>-?\d+), (?P<cpu>-?\d+), "
                  r"(?P<group>-?\d+), (?P<flags>\w+)\) = ")


def number(text):
    return int(text, 0) if re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", text) else text


def attributes(text):
    """Returns the members of a perf_event_attr as strace -X raw -v prints them. sample_freq is
    called sample_period, which is the same member of the union."""
    text = re.sub(r" /\*.*?\*/", "", text)
    pairs = dict(pair.split("=", 1) for pair in text.split(", ") if "=" in pair)
    pairs["sample_period"] = pairs.pop("sample_freq", pairs.get("sample_period"))
    return {name: number(value) for name, value in pairs.items()}


class Call:
    def __init__(self, match):
        self.attr = attributes(match["attr"])
        self.pid, self.cpu, self.group = (int(match[name]) for name in ("pid", "cpu", "group"))


def opened(command, output, whole=False, error=None, granted=False, **environment):
    """Returns the calls of perf_event_open() that a command makes for a process, or for whole CPUs,
    in order. With `error` they all fail with it. If `granted`, they all seem to succeed, whatever
    this machine has: the descriptor that they return is not open."""
    # LeakSanitizer has to trace the process as well, and a process can have only one tracer.
    environment = os.environ | {"ASAN_OPTIONS": "detect_leaks=0"} | environment
    result = f"error={error}" if error else "retval=1000" if granted else None
    injected = ["-e", f"inject=perf_event_open:{result}"] if result else []
    subprocess.run(["strace", "-f", "-v", "-X", "raw", "-e", "trace=perf_event_open", *injected, "-o", output,
                    *command], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                   timeout=240, check=False)
    with open(output, encoding="utf-8") as lines:
        calls = [Call(match) for match in map(CALL.search, lines) if match]
    # perf record opens events to find out what the kernel supports. These have no process.
    return [call for call in calls if (call.pid < 0 if whole else call.pid > 0)]
