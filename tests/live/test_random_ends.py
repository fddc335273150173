# SPDX-License-Identifier: GPL-2.0-only
"""SIGTERM at any moment: each stream that began ends properly, and all counts are reported."""
import concurrent.futures
import os
import random
import signal
import time

from records import check_stream, parse

# `make search` tries other moments, and more of them.
SEED = int(os.environ.get("NHMTAP_SEED", "2009"))
RUNS = int(os.environ.get("NHMTAP_RUNS", "24"))
TARGETS = (
    ["-a"],
    ["--", "sleep", "60"],
    # Children come and go, and their counts with them.
    ["--", "sh", "-c", "while :; do /bin/true; done"],
)


def interrupted(nhmtap, target, started, after_s):
    """The output of a run that was ended this long after its start, or after its start record."""
    process = (nhmtap.attach if started else nhmtap.start)(
        "stat", "-e", "page-faults,{cs,task-clock}", "-M", "cpus_utilized", "-I", "3", *target)
    time.sleep(after_s)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    return process.returncode, getattr(process, "began", "") + out, err


def test_a_stream_is_whole_whenever_its_end_comes(nhmtap):
    rng = random.Random(SEED)
    moments = [(rng.choice(TARGETS), i % 2, rng.uniform(0, 0.02)) for i in range(RUNS)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda run: interrupted(nhmtap, *run), moments))
    whole = 0
    for (target, _, _), (status, out, err) in zip(moments, results):
        if status == -signal.SIGTERM:  # before it handled signals
            assert (out, err) == ("", "")
            continue
        whole += 1
        assert status == (0 if target == ["-a"] else 128 + signal.SIGTERM), out + err
        assert err == ""
        records = parse(out)
        check_stream(records)
        assert records[-1]["reason"] == "terminated"
        counts = [record for record in records if record["type"] == "count"]
        # Each interval has a count of each event, the last one too.
        events = [event["name"] for event in records[0]["events"]]
        assert [count["event"] for count in counts] == events * (len(counts) // len(events))
        assert counts
        for record in counts:
            assert 0 <= record["running_ns"] <= record["enabled_ns"]
    assert whole >= RUNS / 2
