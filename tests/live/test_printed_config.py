# SPDX-License-Identifier: GPL-2.0-only
"""run --print-config: what CONFIG means, written out as another CONFIG that means the same."""
import json
import os

import pytest
from sessions import config_schema, write

ENVIRONMENT = {**os.environ, "NHMTAP_X": "page-faults", "NHMTAP_TWICE": "${NHMTAP_X}", "NHMTAP_DOLLAR": "$${"}

CONFIGS = {
    "for an editor": {"$schema": "./config.schema.json", "activities": [{"name": "a", "command": "stat", "all_cpus": True}]},
    "the least": {"activities": [{"name": "a", "command": "stat", "all_cpus": True}]},
    "all commands": {"activities": [
        {"name": command, "command": command, "event": "page-faults", "all_cpus": True} for command in ("stat", "profile", "stream")]},
    "what is given": {"activities": [
        {"name": "a", "command": "profile", "event": "page-faults", "count": 3, "interval_ms": 7, "top": 2, "retry": True,
         "all_cpus": True}], "outputs": [{"path": "x", "format": "flat", "queue_bytes": 10000}]},
    "outputs": {"activities": [{"name": "a", "command": "stat", "all_cpus": True}], "outputs": [
        {}, {"path": "-", "format": "flat"}, {"path": "y"}, {"path": "unix:z", "format": "openmetrics"}]},
    "variables": {"activities": [{"name": "a", "command": "stat", "event": "${NHMTAP_X}", "all_cpus": True}],
                  "resource": {"x": "$${NHMTAP_X}", "y": "${NHMTAP_TWICE}", "z": "a${NHMTAP_DOLLAR}b}$$${"}},
}


def printed(nhmtap, path):
    done = nhmtap("run", "--print-config", path, env=ENVIRONMENT)
    assert done.status == 0 and not done.err, done
    return json.loads(done.out)


def opened(nhmtap, path):
    """The activities as they would be opened, and the resource's own attributes."""
    done = nhmtap("run", "--check", path, env=ENVIRONMENT)
    assert done.status == 0, done.err
    session, *activities = done.of("start")
    return session["resource"].get("x"), [
        {name: value for name, value in start.items() if name not in ("time", "run_id", "host", "resource")} for start in activities]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_printed_config_means_the_same_and_prints_itself(nhmtap, tmp_path, config):
    asked, again = write(tmp_path / "asked", config), tmp_path / "again"
    said = printed(nhmtap, asked)
    config_schema().validate(said)
    write(again, said)
    assert printed(nhmtap, again) == said
    assert opened(nhmtap, again) == opened(nhmtap, asked)


def test_defaults_are_filled_in_and_what_is_given_stays(nhmtap, tmp_path):
    said = printed(nhmtap, write(tmp_path / "c", CONFIGS["all commands"]))
    assert [a.get("freq") for a in said["activities"]] == [None, 99, 99]
    assert {a["interval_ms"] for a in said["activities"]} == {10000}
    assert said["outputs"] == [{"path": "-", "queue_bytes": 8 << 20}]
    said = printed(nhmtap, write(tmp_path / "c", CONFIGS["what is given"]))
    assert said == CONFIGS["what is given"]


def test_variables_are_replaced_once(nhmtap, tmp_path):
    said = printed(nhmtap, write(tmp_path / "c", CONFIGS["variables"]))
    assert said["activities"][0]["event"] == "page-faults"
    assert said["resource"] == {"x": "$${NHMTAP_X}", "y": "$${NHMTAP_X}", "z": "a$$${b}$$${"}


def test_a_config_with_a_mistake_is_refused_and_not_printed(nhmtap, tmp_path):
    done = nhmtap("run", "--print-config", write(tmp_path / "c", [{"name": "a", "command": "stta", "all_cpus": True}]))
    assert (done.status, done.out) == (1, "")
    assert "/activities/0/command" in done.err and "stat" in done.err
