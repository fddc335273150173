# SPDX-License-Identifier: GPL-2.0-only
"""A session's share of a CPU: it uses no more, and its values stay correct when periods change."""
import json
import os
import subprocess
import time

import pytest

import cgroups
from records import NHMTAP, Result, program

CPUS = os.cpu_count()


def weights(result):
    """Returns the sum of the samples' periods, and the counted value."""
    return (sum(e["period"] for e in result.entries()),
            sum(r["value"] for r in result.of("profile") if "value" in r))


def shares(result):
    return [r["share"] for r in result.of("profile") if "share" in r]


def changes(result):
    return sum(share["changes"] for share in shares(result))


def longest(result):
    return max(share["sample_period"] for share in shares(result))


def lost(result):
    return sum(sum(r["samples"]["lost"].values()) for r in result.of("profile") if "samples" in r)


def check_periods(result, asked):
    allowed = result.one("start")["limits"]["cpu_share"]
    assert allowed["kept_by"] == "period"
    for share in shares(result):
        assert share["allowed"] == allowed["allowed"] and share["sample_period"] >= asked
        assert (share["because"] == "asked") == (share["sample_period"] in (asked, asked + 1))


# --- values across changes ------------------------------------------------------------------------


def test_page_faults_add_up_to_their_count_within_two_periods_a_cpu_though_the_period_changes(nhmtap):
    for _ in range(5):
        result = nhmtap("profile", "-a", "-e", "page-faults", "-c", "1", "--by", "cpu", "-I", "200", "--cpu-share", "0.2%",
                        "--format", "json", "--", program("faults"), "1000000")
        assert result.status == 0 and changes(result) > 0 and longest(result) > 1
        check_periods(result, 1)
        found, counted = weights(result)
        assert counted >= 1000000
        # The difference is what each CPU has counted towards its next sample, in this period and, if no
        # sample came since the last change, in the previous one; and the samples at which the kernel
        # did not run the BPF program.
        most = 2 * CPUS + lost(result)
        assert 0 <= counted - found <= (most + result.one("end")["samples"]["uncertainty"]) * longest(result)
        if counted - found <= most * longest(result):
            break  # else others were in bpf() while a period changed: the samples that were lost then are in the uncertainty
    assert counted - found <= most * longest(result)


def test_samples_of_a_clock_weigh_the_period_that_holds_not_the_one_that_it_was_opened_with(nhmtap):
    result = nhmtap("profile", "-a", "-e", "cpu-clock", "-c", "50000", "--by", "cpu", "-I", "200", "--duration", "2",
                    "--cpu-share", "0.2%", "--format", "json")
    assert result.status == 0 and changes(result) > 0
    check_periods(result, 50000)
    found, counted = weights(result)
    unsure = shares(result)[-1]["sample_period"] * CPUS + longest(result) * (lost(result) + result.one("end")["samples"]["uncertainty"])
    assert 0 <= counted - found <= unsure
    # With a weight of 50,000 ns for each sample, the sum would be much too small.
    assert result.one("end")["samples"]["aggregated"] * 50000 < found / 2


@pytest.mark.parametrize("command", ["{spin}", "{spin} & {spin} & wait"], ids=["itself", "its children"])
def test_a_command_s_clock_is_weighed_by_the_period_of_each_task(nhmtap, command):
    """Children that exist at a change keep the period that they inherited."""
    spin = "sh -c 'i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done'"
    result = nhmtap("profile", "-e", "cpu-clock", "-c", "50000", "--by", "pid", "-I", "200", "--cpu-share", "0.1%",
                    "--format", "json", "--", "sh", "-c", command.format(spin=spin))
    assert result.status == 0 and changes(result) > 0 and longest(result) > 4 * 50001
    found, counted = weights(result)
    # Ticks that come late on a busy machine are missing, and so is the period that a task had begun
    # at a change. A wrong weight would be off by the ratio of the periods.
    assert 0.3 * counted <= found <= 1.1 * counted


# --- what it costs --------------------------------------------------------------------------------


def cpu_time(folder):
    with open(f"{folder}/cpu.stat", encoding="ascii") as file:
        return int(file.readline().split()[1]) / 1e6


def profiles(out):
    lines = out.read_text(encoding="utf-8").splitlines(keepends=True)
    records = [json.loads(line) for line in lines if line.endswith("\n")]
    return [r for r in records if r["type"] == "profile" and "share" in r]


def until(out, number):
    for _ in range(6000):
        if out.exists() and len(profiles(out)) >= number:
            return
        time.sleep(0.01)
    raise AssertionError(f"no {number} intervals: {out.read_text(encoding='utf-8')}")


@pytest.mark.plain  # sanitizers cost more
def test_what_would_cost_a_fifth_of_a_cpu_keeps_to_a_hundredth_after_the_third_interval(cgroup, tmp_path):
    """nhmtap's own time is that of its cgroup. The kernel's time is the number of samples taken
    times the cost of one: a tick that a busy machine misses costs nothing."""
    out, (_, folder) = tmp_path / "out", cgroup
    with subprocess.Popen(
            cgroups.inside(folder, NHMTAP, "profile", "-a", "-e", "cpu-clock", "-c", "20000", "--by", "pid", "-I", "400",
                           "--cpu-share", "1%", "--format", "json", "-o", str(out)),
            stderr=subprocess.DEVNULL) as process:
        try:
            until(out, 3)
            before, began = cpu_time(folder), time.monotonic()
            until(out, 11)
            own = (cpu_time(folder) - before) / (time.monotonic() - began)
        finally:
            process.terminate()
    assert process.returncode == 0
    records = Result(0, out.read_text(encoding="utf-8"), "").of("profile")
    records = [r for r in records if "share" in r]
    dear, kept = records[0]["share"]["sample_cost_ns"] * CPUS / 20000, records[3:11]
    samples = sum(r["samples"]["aggregated"] * r["share"]["sample_cost_ns"] for r in kept) / sum(r["duration_ns"] for r in kept)
    assert dear > 0.012, "it would have kept to it anyway"
    assert own + samples <= 0.012, [r["share"] for r in records]
    # Its own account says the same.
    assert sum(r["share"]["used"] * r["duration_ns"] for r in kept) / sum(r["duration_ns"] for r in kept) <= 0.012


def test_what_takes_no_samples_can_t_be_made_cheaper_and_a_warning_tells_what_it_costs(nhmtap):
    result = nhmtap("stat", "-a", "-e", "cs,page-faults,migrations,task-clock", "-I", "10", "--duration", "2", "--cpu-share", "0.01%",
                    "--format", "json")
    assert result.one("start")["limits"]["cpu_share"] == {
        "allowed": 0.0001, "kept_by": "nothing", "why": "it takes no samples that could be rarer"}
    warning = result.one("warning")
    assert warning["cause"] == "share_exceeded" and warning["allowed"] == 0.0001
    assert "--cpu-share" in warning["remedy"] and "of a CPU" in result.err


# --- what is asked for ----------------------------------------------------------------------------


@pytest.mark.parametrize("share", ["", "1", "0%", "1 %", "-1%", "0.001%", "one%"])
def test_what_is_no_share_is_refused(nhmtap, share):
    result = nhmtap("profile", "--cpu-share", share, "--duration", "0.01")
    assert result.status == 1 and "--cpu-share" in result.err and "as in 1%" in result.err


def test_all_activities_of_a_config_have_the_share_together(nhmtap, tmp_path):
    config, out = tmp_path / "config", tmp_path / "out"
    common = {"command": "profile", "all_cpus": True, "by": "pid", "interval_ms": 200, "duration_s": 1}
    config.write_text(json.dumps({
        "activities": [{"name": "clock", "event": "cpu-clock", "count": 20000, **common},
                       {"name": "often", "event": "page-faults", "freq": 1000, **common},
                       {"name": "counts", "command": "stat", "event": "cs", "all_cpus": True, "duration_s": 1}],
        "outputs": [{"path": str(out)}],
        "limits": {"cpu_share": "1%", "memory": "400M"}}))
    checked = nhmtap("run", "--check", config)
    assert nhmtap("run", config).status == 0
    result = Result(0, out.read_text(), "")
    starts = {r["activity"]: r["limits"] for r in result.of("start") if "limits" in r}
    assert all(limits["memory"] == 400 << 20 for limits in starts.values())
    for begun in result, checked:
        assert {r["activity"]: r["limits"]["cpu_share"]["kept_by"] for r in begun.of("start") if "limits" in r} == {
            "clock": "period", "often": "period", "counts": "nothing"}
    last = {r["activity"]: r["share"] for r in result.of("profile") if "share" in r}
    assert last["clock"]["sample_period"] > 20000 and last["often"]["sample_freq"] < 1000


@pytest.mark.parametrize("share", [1, "1", 0.01, "2000%", None])
def test_a_config_s_share_is_a_text_of_percent(nhmtap, tmp_path, share):
    config = tmp_path / "config"
    config.write_text(json.dumps({"activities": [{"name": "a", "command": "stat", "all_cpus": True, "duration_s": 0.01}],
                                  "limits": {"cpu_share": share}}))
    result = nhmtap("run", config)
    assert result.status == 1
    assert "it takes a share of one CPU as a text, from 0.01% to 1000%" in result.err
