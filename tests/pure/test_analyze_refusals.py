# SPDX-License-Identifier: GPL-2.0-only
"""What nhmtap analyze refuses before anything is opened, on machines that exist only as files."""
import json

import pytest
from hosts import NEHALEM, WITHOUT_PMU, cpuinfo

from test_loads import refusal


def test_without_counters_the_refusal_names_the_emulated_machine_and_what_works_here(nhmtap, host):
    error = refusal(nhmtap, 2, "analyze", host(WITHOUT_PMU), "--", "true")
    assert "no hardware counters" in error["why"]
    assert "analyze --machine" in error["remedy"] and "nhmtap profile" in error["remedy"]


def test_a_cpu_without_a_tree_is_told_what_counts_there(nhmtap, host):
    error = refusal(nhmtap, 2, "analyze", host(NEHALEM, {"proc/cpuinfo": cpuinfo(family=15, model=4)}), "--", "true")
    assert "no tables for this CPU, GenuineIntel family 15 model 4" in error["why"]
    assert all(name in error["remedy"] for name in ("nhmtap stat", "nhmtap profile", "--machine"))


@pytest.mark.parametrize("options, why, remedy", [
    (["--expect", "memory_bond<20%"], "no share 'memory_bond'", "did you mean memory_bound?"),
    (["--expect", "nothing_alike<20%"], "no share 'nothing_alike'", "such as memory_bound and stalled"),
    (["--expect", "memory_bound"], "it compares nothing", "'memory_bound<20%'"),
    (["--expect", "memory_bound<20parsecs"], "there is no number", "a number"),
    (["--expect", "memory_bound<0.2"], "in percent", "'memory_bound<20%'"),
    (["--expect", "memory_bound<20ms"], "in percent", "'memory_bound<20%'"),
    (["--annotate", "--no-where"], "which --no-where leaves out", "profile --annotate"),
    (["-r", "3", "--once"], "--once runs COMMAND once", "-r 5 -- COMMAND"),
    (["-r", "3", "-I", "100"], "--interval asks for more", "-r 5 -- COMMAND"),
    (["-r", "3", "-D", "100"], "--delay counts a part", "-r 5 -- COMMAND"),
    (["-r", "3", "-p", "1"], "no COMMAND that is measured", "-r 5 -- COMMAND"),
])
def test_an_option_is_refused(nhmtap, host, options, why, remedy):
    error = refusal(nhmtap, 1, "analyze", host(NEHALEM), *options, "--", "true")
    assert why in error["why"] and remedy in error["remedy"]


def test_a_limit_in_percent_suits_no_metric_that_is_none(nhmtap, host):
    error = refusal(nhmtap, 1, "stat", host(NEHALEM), "--expect", "ipc>80%", "--", "true")
    assert "'ipc' is no share in percent" in error["why"]


@pytest.fixture
def groups(nhmtap, host, tmp_path):
    """A function that returns the events of each group that an activity of a session would count, without opening any."""
    def run(*machine):
        config = tmp_path / "config"
        config.write_text(json.dumps({"activities": [{"name": "a", "command": "analyze", "all_cpus": True}]}))
        result = nhmtap("run", "--check", host(*machine), config)
        assert result.status == 0, result.err
        found = {}
        for record in result.records:
            if record["type"] == "start" and record.get("activity") == "a":
                for event in record["events"]:
                    found.setdefault(event["group"], []).append(event)
        return list(found.values())
    return run


@pytest.mark.parametrize("model", [0x1a, 0x2e, 0x25, 0x2c, 0x2f, 0x2a])
def test_each_group_has_the_cycles_and_a_counter_for_each_event(groups, model):
    for group in groups(NEHALEM, {"proc/cpuinfo": cpuinfo(model=model)}):
        assert group[0]["name"] == "CPU_CLK_UNHALTED.THREAD"
        counters = [event["counter"] for event in group]
        assert len(set(counters)) == len(counters), group
