# SPDX-License-Identifier: GPL-2.0-only
"""What an option does that is given twice, for every option that takes a value: lists add up, of a number or a word the last one
counts, and where there is but one of what both name, the second is refused. None is dropped without a word."""
import json
import os
import subprocess

import pytest
from idle_machine import idle_machine
from records import NHMTAP

# Lists of words or names; conditions, places, functions and the like, of which each would be wanted.
JOINS = {"by", "cgroup", "container", "cpu", "event", "expect", "fields", "filter", "for-each-cgroup", "machine", "metrics", "need", "only",
         "out", "output", "per", "pid", "request", "response", "tid"}
REFUSED = {"annotate", "callees", "callers", "control", "cpu", "debug-dir", "events-dir", "headers-file", "kallsyms", "listen", "output",
           "pmu-events", "preset", "record", "symfs", "tls-ca-file", "tls-cert-file", "tls-key-file", "where"}
KEPT_APART = {"expect", "machine", "out", "output"}  # and "filter" of show: each is a value of its own
NOTHING = ["--", "/nonexistent/command"]
MEASURES = {"stat": ["-e", "cs"], "profile": ["-e", "page-faults"], "mem": ["-e", "page-faults"], "branch": [], "offcore": [],
            "analyze": [], "stream": ["-e", "page-faults"]}


def options():
    commands = json.loads(subprocess.run([NHMTAP, "help", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    return [(command["name"], option["name"], option["again"]) for command in commands for option in command["options"]
            if "argument" in option]


@pytest.fixture(name="told", scope="module")
def fixture_told(tmp_path_factory):
    """Returns (status, stderr) of a command with options."""
    folder = tmp_path_factory.mktemp("again")
    environment = {**os.environ, "NHMTAP_MACHINE": str(idle_machine(folder / "machine", 0))}

    def told(command, *given):
        measures = command in MEASURES
        done = subprocess.run([os.path.abspath(NHMTAP), command, *MEASURES.get(command, []), *given, *(NOTHING if measures else [])],
                              cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stderr
    return told


def test_each_option_is_known_to_add_up_or_to_be_refused_or_is_one_of_which_the_last_counts():
    found = {"joins": set(), "refused": set(), "replaces": set()}
    for _, option, again in options():
        found[again].add(option)
    assert (found["joins"], found["refused"]) == (JOINS, REFUSED)
    # Numbers, words, sizes, names of one thing: as usual with options, for what a script or an alias begins with.
    assert found["replaces"] == {
        "count", "cpu-share", "cpus", "date", "delay", "duration", "format", "forks", "freq", "from", "interval", "interval-count", "ips", "kernel",
        "ldlat", "max-stack", "memory", "model", "packages", "percent-limit", "queue", "repeat", "series", "side", "sort", "temporality",
        "threads", "title", "to", "top", "unwind", "vary", "where"}


@pytest.mark.parametrize("command, option", [row[:2] for row in options() if row[2] == "refused"])
def test_a_second_value_is_refused_with_the_first_one(told, command, option):
    status, error = told(command, f"--{option}=one", f"--{option}=two")
    assert status == 1
    assert f"option --{option} 'two': it was given before, with 'one', and takes one value" in error
    assert "it was given before" not in told(command, f"--{option}=one", f"--{option}=one")[1]


@pytest.mark.parametrize("command, option", [
    row[:2] for row in options() if row[2] == "joins" and row[1] not in KEPT_APART and row[:2] != ("show", "filter")])
def test_values_of_a_list_say_the_same_given_at_once_or_one_by_one(told, command, option):
    """No name of either is known: what is said tells that both were seen."""
    apart, at_once = told(command, f"--{option}=zz1", f"--{option}=zz2"), told(command, f"--{option}=zz1,zz2")
    assert apart == at_once


@pytest.mark.parametrize("command, wide", [("profile", []), ("mem", []), ("stream", ["--fields", "pid", "--fields", "comm"])])
def test_keys_that_are_given_one_by_one_are_all_told_apart(nhmtap, command, wide):
    result = nhmtap(command, "-e", "page-faults", "-c", "1", *(wide or ["--by", "pid", "--by", "comm"]), "--", "true")
    (key, keys), = [(key, result.one("start")[key]) for key in ("by", "fields") if key in result.one("start")]
    assert {"pid", "comm"} <= set(keys), key


@pytest.mark.parametrize("given, refused", [
    ("-e page-faults -G {one} -e cs", True), ("-e page-faults -G {one} -e cs -G {other}", True), ("-G {one} -e page-faults -e cs", False),
    ("-e page-faults -e cs -G {one}", False), ("-e page-faults -e cs -G {one} -G {other}", False),
])
def test_events_on_both_sides_of_a_cgroup_are_refused_because_perf_means_something_else(nhmtap, cgroup, given, refused):
    """perf-stat(1): -G gives its cgroups to the events before it."""
    for name in ("one", "other"):
        os.mkdir(f"{cgroup[1]}/{name}")
    words = given.format(one=f"{cgroup[0]}/one", other=f"{cgroup[0]}/other").split()
    result = nhmtap("stat", *words, "--duration", "0.01")
    assert result.status == (1 if refused else 0), result.err
    if refused:
        assert "here all events are counted in all cgroups" in result.err
