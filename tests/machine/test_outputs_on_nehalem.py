# SPDX-License-Identifier: GPL-2.0-only
"""The cost of an output that nobody reads, in instructions of nhmtap and of the kernel on its
behalf."""
import json

import pages
import records

INTERVALS = 1500  # 3 s: the first tries to connect cost the same in a shorter run


def instructions(bench, *outputs, intervals=INTERVALS, interval_ms=2):
    """The instructions of a session with these outputs and a file, as counted by itself."""
    config = {"activities": [{"name": "counts", "command": "stat", "all_cpus": True, "per": "cpu",
                              "interval_ms": interval_ms, "interval_count": intervals,
                              "event": "task-clock,page-faults,context-switches,cpu-migrations,minor-faults,major-faults"}],
              "outputs": [{"path": "file"}, *({"queue_bytes": 8192, **output} for output in outputs)]}
    done = bench.run(f"""
        mkfifo unread
        sleep 1000 < unread &
        head -c 65536 /dev/zero > unread
        echo '{json.dumps(config)}' > c
        nhmtap run c
        grep -c '"type":"count"' file
        tail -n 1 file""", paranoid=-1)
    counts, last = done.stdout.splitlines(True)
    assert int(counts) == 6 * intervals
    end, = records.parse(last)
    return end["overhead"]["instructions"]


def test_an_output_that_nobody_reads_costs_less_than_150_instructions_a_record(guest):
    """The first output is a full pipe whose reader does not read; the second one has no reader. To make a record and
    write it to a file costs some 5,000, in whole intervals."""
    for place in ("unread", "unix:/tmp/nobody"):
        # A start now and then takes 3 million more, by where the clock ticks.
        assert any(instructions(guest, {"path": place}, intervals=n) - instructions(guest, intervals=n) < 150 * 6 * n
                   for n in (INTERVALS, INTERVALS + 10, INTERVALS + 20))


def test_a_server_that_is_away_costs_less_than_a_fiftieth_of_an_interval(pushing):
    """Measured for each interval from the eighth second on: before that the library is loaded, and
    the pauses between two tries are only a few seconds."""
    assert pushing.run("ifconfig lo up").status == 0

    def an_interval(*outputs):
        few, many = (instructions(pushing, *outputs, intervals=n, interval_ms=5) for n in (1600, 4800))
        return (many - few) / 3200

    away = an_interval({"path": "http://127.0.0.1:1/v1/metrics", "format": "otlp"})
    assert away <= 1.02 * an_interval()


def test_a_page_has_of_cells_that_took_turns_what_they_stand_for_as_it_has_of_events(guest):
    text = guest.say("/opt/nhmtap offcore -a -o json=x -o openmetrics=/run/page -- offcore data; cat x", paranoid=-1)
    cells = [cell for r in records.parse(text) if r["type"] == "offcore" for cell in r["cells"] if "scaled" in cell]
    assert any(cell["scaled"] > cell["value"] > 0 for cell in cells)
    page = guest.say("cat /run/page")
    for cell in cells:
        assert pages.total(page, "nhmtap_offcore_responses_total", request=cell["request"], response=cell["response"]) == cell["scaled"]
