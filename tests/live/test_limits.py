# SPDX-License-Identifier: GPL-2.0-only
"""The limit on the memory of a session."""
import json
import os

import pytest

from memory import LITTLE
from puppet import Puppet
from records import program

MIB = 1 << 20


def parts(result):
    limits = result.one("start")["limits"]
    assert set(limits["made_smaller_from"]) <= set(limits["parts"])
    for part, had in limits["made_smaller_from"].items():
        assert limits["parts"][part] < had
    return limits


@pytest.mark.plain  # a sanitizer's memory would count too
def test_stacks_of_everything_live_in_little_memory_and_the_start_says_what_was_made_smaller(nhmtap):
    result = nhmtap("profile", "-a", "-g", "-I", "300", "--interval-count", "3", "--memory", f"{LITTLE}M", "--format", "json")
    assert result.status == 0
    limits = parts(result)
    assert limits["memory"] == LITTLE * MIB >= sum(limits["parts"].values())
    assert set(limits["made_smaller_from"]) == {"names", "queues", "entries", "unwinding"}
    assert limits["parts"]["unwinding"] == 0
    assert result.one("start")["unwind"] == {"by": "fp", "why": "the limit of memory leaves no room for their tables"}
    assert len(result.of("profile")) >= 3
    # The peak includes what BPF programs write, as it is mapped.
    assert result.one("end")["overhead"]["max_rss_bytes"] <= LITTLE * MIB


def test_what_does_not_fit_is_refused_with_the_sum(nhmtap):
    result = nhmtap("profile", "-a", "-g", "--unwind", "tables", "--duration", "0.1", "--memory", f"{LITTLE}M", "--format", "json")
    assert result.status == 2
    why = result.one("error")["why"]
    words = why.partition(" are needed: ")
    least, listed = float(words[0].split()[2]), dict(part.rsplit(" ", 1) for part in words[2].split(", "))
    assert set(listed) == {"program", "tables", "unwinding", "names", "queues", "entries"}
    assert least > LITTLE and abs(sum(map(float, listed.values())) - least) < 0.5
    assert result.one("error")["remedy"]


def test_keys_beyond_the_limit_are_lost_and_counted(nhmtap):
    """Each key has one page fault, at an address of its own."""
    result = nhmtap("profile", "-e", "page-faults:u", "-c", "1", "--by", "ip", "--memory", "12M", "--format", "json", "--",
                    program("ips"), "20000")
    most = result.one("start")["limits"]["parts"]["entries"] // 2048
    samples = next(r["samples"] for r in result.of("profile") if "samples" in r)  # the first part has it
    assert len(result.entries()) <= most < 20000
    assert samples["aggregated"] + samples["lost"]["table_full"] == samples["expected"] >= 20000


def test_samples_of_a_stack_that_is_there_already_need_no_room(nhmtap):
    """The first of two CPUs' tables has more keys than are kept: one stack under many names."""
    first, second = sorted(os.sched_getaffinity(0))[:2]
    with Puppet() as puppet:
        process = nhmtap.attach("profile", "-g", "-e", "page-faults:u", "-c", "1", "--memory", f"{LITTLE}M", "--format", "json",
                                "-p", puppet.pid)
        most = json.loads(process.began)["limits"]["parts"]["entries"] // 2048
        os.sched_setaffinity(puppet.pid, {first})
        puppet.do("faults=100")
        for i in range(most):
            puppet.do(f"name={str(i).encode().hex()}")
            puppet.do("faults=1")
        puppet.do(f"name={b'puppet'.hex()}")
        os.sched_setaffinity(puppet.pid, {second})
        puppet.do("faults=1000")
        result = nhmtap.interrupt(process)
    record = next(r for r in result.of("profile") if "samples" in r)
    samples = record["samples"]
    # The page of the code itself may be one more fault.
    assert 1100 <= result.entries()[0]["samples"] <= 1101
    assert record["rest"]["entries"] + len(result.entries()) < most
    assert samples["lost"]["table_full"] and samples["aggregated"] + samples["lost"]["table_full"] == samples["expected"]


@pytest.mark.parametrize("size", ["", "M", "0", "1", "64m", "1MB", "-1M", "1.5G", "99999999999999999999G", "1000K"])
def test_what_is_no_size_is_refused(nhmtap, size):
    result = nhmtap("stat", "--memory", size, "--duration", "0.01")
    assert result.status == 1 and "--memory" in result.err and "K, M or G" in result.err


def test_a_config_has_the_same_limit_for_all_of_its_activities(nhmtap, tmp_path):
    config, out = tmp_path / "config", tmp_path / "out"
    config.write_text(json.dumps({
        "activities": [{"name": name, "command": "profile", "all_cpus": True, "by": "pid", "duration_s": 0.2} for name in "ab"],
        "outputs": [{"path": str(out), "queue_bytes": 100000}, {"path": str(tmp_path / "other")}],
        "limits": {"memory": f"{LITTLE}M"}}))
    result = nhmtap("run", config)
    assert result.status == 0
    starts = [r for r in map(json.loads, out.read_text().splitlines()) if r["type"] == "start" and "limits" in r]
    assert [r["activity"] for r in starts] == ["a", "b"]
    limits = starts[0]["limits"]
    # A queue that was asked for keeps its size.
    assert limits["parts"]["queues"] > 100000 and "names" not in limits["parts"]
    os.remove(config)
