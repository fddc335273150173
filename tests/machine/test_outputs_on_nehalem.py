# SPDX-License-Identifier: GPL-2.0-only
"""What an output costs that nobody reads, in instructions of nhmtap and of the kernel for it."""
import json

import records

INTERVALS = 900


def instructions(bench, *outputs):
    """Of a session with these outputs beside a file, as it counts its own."""
    config = {"activities": [{"name": "counts", "command": "stat", "all_cpus": True, "per": "cpu", "interval_ms": 2,
                              "interval_count": INTERVALS, "event": "task-clock,page-faults,context-switches,"
                              "cpu-migrations,minor-faults,major-faults"}],
              "outputs": [{"path": "file"}, *({"queue_bytes": 8192, **output} for output in outputs)]}
    done = bench.run(f"""
        mkfifo unread
        sleep 1000 < unread &
        head -c 65536 /dev/zero > unread
        echo '{json.dumps(config)}' > c
        nhmtap run c
        cat file""", paranoid=-1)
    found = records.parse(done.stdout)
    assert sum(r["type"] == "count" for r in found) == 6 * INTERVALS
    return found[-1]["overhead"]["instructions"]


def test_an_output_that_nobody_reads_costs_less_than_a_fiftieth_of_the_run(guest):
    """One has a reader that does not read, whose pipe is full; the other has none."""
    alone = instructions(guest)
    assert instructions(guest, {"path": "unread"}) <= 1.02 * alone
    assert instructions(guest, {"path": "unix:/tmp/nobody"}) <= 1.02 * alone
