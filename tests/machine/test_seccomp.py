# SPDX-License-Identifier: GPL-2.0-only
"""What takes a PMU makes no other system calls than the container's seccomp profile lists. tests/live/test_image.py shows the
same of the rest, with a kernel that enforces the profile."""
import json
import re

import pytest

import images
from records import parse

PROFILE = json.loads(images.example("seccomp.json"))
ALLOWED = {name for rule in PROFILE["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
HERE = {"all_cpus": True, "interval_ms": 100}
SESSION = {
    "activities": [
        {"name": "counts", "command": "stat", "event": "instructions:u,UOPS_RETIRED.ANY:u", **HERE},
        {"name": "cgroups", "command": "stat", "event": "cycles:u", "per": "cgroup", **HERE},
        {"name": "samples", "command": "profile", "event": "BR_INST_RETIRED.ALL_BRANCHES:upp", "count": 1009, "call_graph": True, **HERE},
        {"name": "loads", "command": "mem", "count": 100, "by": "page,symbol", **HERE},
        {"name": "branches", "command": "branch", "event": "branches:u", "count": 1009, **HERE},
        {"name": "matrix", "command": "offcore", "request": "DEMAND_DATA_RD", "response": "LOCAL_DRAM", **HERE},
        {"name": "shares", "command": "analyze", **HERE}],
    "outputs": [{}, {"path": "/tmp/x.jsonl.zst"},
                *({"path": f"/tmp/x.{name}", "format": name} for name in ("table", "openmetrics", "otlp", "otlp-profiles-json", "flat")),
                *({"path": f"/tmp/%t.{name}", "format": name} for name in ("folded", "pprof", "firefox", "callgrind", "speedscope"))]}
COMMANDS = {
    "run": ("echo '{config}' > /tmp/config", "run /tmp/config -- chase memory",
            ["stat", "profile", "mem", "branch", "offcore", "analyze"]),
    "autofdo": ("true", "branch --format autofdo -e branches:u -c 1009 -o /tmp/x -- kinds", None),
    "trace": ("true", "branch --trace --filter u -- kinds", ["branch"]),
    "annotate": ("true", "mem -c 100 --annotate chase_memory -- chase memory", ["mem"]),
    "stream": ("true", "stream -e branches:upp -c 1009 --fields comm,symbol,line -- kinds", ["stream"]),
    "shared lines": ("true", "mem --shared -c 100 -- chase memory", ["mem"]),
}


def calls_of(text):
    """The names of the calls in the table of strace -c."""
    return set(re.findall(r"^ +[\d.]+ +[\d.]+ +\d+ +\d+ +(?:\d+ +)?(\w+)$", text, re.M)) - {"total"}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_takes_a_pmu_needs_only_the_calls_of_the_profile(machines, command):
    before, words, measured = COMMANDS[command]
    before = before.replace("{config}", json.dumps(SESSION))
    bench = machines(add=("/usr/bin/strace",))
    done = bench.run(f"{before}; strace -f -qq -c -o /tmp/calls /opt/nhmtap {words} > /tmp/out; status=$?; cat /tmp/calls >&2; cat /tmp/out; "
                     "exit $status", paranoid=-1)
    assert done.status == 0, done.stderr
    calls = calls_of(done.stderr)
    assert {"perf_event_open", "execve", "ioctl"} <= calls
    assert calls - ALLOWED == set()
    records = parse(done.stdout) if measured else []
    for kind in measured or []:
        assert any(r["type"] == "start" and r["command"] == kind for r in records), kind
    assert not [r for r in records if r["type"] == "error"]
