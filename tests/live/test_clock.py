# SPDX-License-Identifier: GPL-2.0-only
"""The system's clock is set during a run. A shim sets it for nhmtap only."""
import time
import urllib.parse
from datetime import datetime

import pytest
from otlp import Receiver
from sessions import Session, faults


def seconds(text):
    whole, fraction = text.rstrip("Z").split(".")
    return datetime.fromisoformat(whole + "+00:00").timestamp() + float("0." + fraction)


@pytest.mark.parametrize("step", [-3600, 86400])
def test_a_clock_that_is_set_is_told_and_leaves_durations_right(nhmtap, shim, tmp_path, step):
    at = tmp_path / "step"
    at.write_text("0")
    before = ["env", f"LD_PRELOAD={shim('set_clock')}", f"STEP_FILE={at}", "ASAN_OPTIONS=verify_asan_link_order=0"]
    with Session(nhmtap, tmp_path, [faults("counts", "stat", all_cpus=True), faults("samples", "profile", all_cpus=True)],
                 before=before) as session:
        session.do("snapshot")
        at.write_text(str(step * 10**9))
        session.do("snapshot")
        session.do("snapshot")
        result = session.end()
    for name in ("counts", "samples"):
        warning = result.one("warning", activity=name, cause="clock_set")
        assert abs(warning["step_ns"] / 1e9 - step) < 60
        intervals = {r["start_time"]: r["duration_ns"] / 1e9 for r in result.records
                     if r["type"] in ("count", "profile") and r["activity"] == name}
        times = [seconds(start) for start in intervals]
        assert len(times) == 4
        # Each interval begins where the previous one ended, except after the clock was set.
        gaps = [later - (start + took) for start, took, later in zip(times, intervals.values(), times[1:])]
        assert abs(gaps[1] - step) < 60 and max(abs(gaps[0]), abs(gaps[2])) < 60
        assert all(0 <= took < 600 for took in intervals.values())
    assert "the system's clock was set by" in result.err


def test_samples_after_the_clock_was_set_have_the_new_time(nhmtap, shim, tmp_path):
    at = tmp_path / "step"
    at.write_text("0")
    before = ["env", f"LD_PRELOAD={shim('set_clock')}", f"STEP_FILE={at}", "ASAN_OPTIONS=verify_asan_link_order=0"]
    with Session(nhmtap, tmp_path, [faults("loads", "mem", stream=True, all_cpus=True)], before=before) as session:
        session.do("snapshot")
        at.write_text(str(86400 * 10**9))
        session.do("snapshot")
        result = session.end()
    # The record's time is that of writing it.
    ages = [seconds(r["time"]) - seconds(r["sample_time"]) for r in result.of("sample")]
    assert any(seconds(r["time"]) > time.time() + 3600 for r in result.of("sample")), "none is of after that"
    # The clock is read once for some records, which are written one behind the other: for 32 samples' own times, and for
    # the times of 32 records.
    assert sum(abs(age) > 3600 for age in ages) < 64


def test_what_is_sent_after_the_clock_was_set_back_does_not_end_before_it_begins(nhmtap, shim, tmp_path, puppet):
    """Pyroscope gets the interval of each request, and a refused request is told with its interval."""
    at = tmp_path / "step"
    at.write_text("0")
    before = ["env", f"LD_PRELOAD={shim('set_clock')}", f"STEP_FILE={at}", "ASAN_OPTIONS=verify_asan_link_order=0"]
    with Receiver((200, {}), (400, {}), (400, {})) as receiver:
        output = {"format": "folded", "path": receiver.url("/ingest?name=app")}
        with Session(nhmtap, tmp_path, [{**faults("samples", "profile", pid=str(puppet.pid)), "by": "stack"}],
                     outputs=[{}, output], before=before) as session:
            requests = []
            for step in (0, -3600, -7200):
                at.write_text(str(step * 10**9))
                puppet.do("faults=10")
                session.do("snapshot")
                requests.append(receiver.next())
            result = session.end()
    for request in requests:
        parameters = urllib.parse.parse_qs(urllib.parse.urlparse(request.path).query)
        assert int(parameters["from"][0]) <= int(parameters["until"][0])
    told = result.of("warning", cause="refused")
    assert told and all(record["duration_ns"] >= 0 for record in told)


@pytest.mark.parametrize("activity, kind", [("stat", "count"), ("profile", "profile")])
def test_intervals_follow_one_another_though_nhmtap_loses_its_cpu_between_two_clocks(nhmtap, shim, activity, kind):
    before = ["env", f"LD_PRELOAD={shim('preempted')}", "ASAN_OPTIONS=verify_asan_link_order=0"]
    result = nhmtap(activity, "-e", "page-faults:u", "-a", "-I", "20", "--duration", "0.6", "--format", "json", before=before)
    assert result.status == 0
    # Much that is found in an interval is in several records.
    intervals = {r["start_time"]: r["duration_ns"] / 1e9 for r in result.of(kind)}
    assert len(intervals) > 3
    gaps = [seconds(later) - (seconds(start) + took) for (start, took), later in zip(intervals.items(), list(intervals)[1:])]
    # A time as a number of seconds is exact to a quarter of a microsecond.
    assert max(map(abs, gaps)) < 50e-6, gaps
