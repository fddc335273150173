# SPDX-License-Identifier: GPL-2.0-only
"""A long stream of records for `nhmtap report`, and the page that it makes, in Chromium."""
import datetime
import json
import random

EVENTS, FUNCTIONS, STACKS = 10, 3000, 60
SOURCES = ("l2_hit", "l3_hit", "local_dram", "remote_dram")

# Scrolls the page by 40 pixels a frame, down to its end. Returns the time from each frame to the next, in ms.
SCROLL = """const done = arguments[0], times = [];
const step = time => {
  times.push(time);
  scrollBy(0, 40);
  if (scrollY + innerHeight < document.documentElement.scrollHeight - 1) requestAnimationFrame(step);
  else done(times.slice(1).map((time, i) => time - times[i]));
};
requestAnimationFrame(step);"""


def intervals(seed):
    """Yields the records of one second after the other: counts, stacks of which most are new, loads."""
    chance = random.Random(seed)
    names = [f"ns::Class{i % 37}<std::vector<int>, std::allocator<unsigned long>>::function_{i}(std::string const&)"
             for i in range(FUNCTIONS)]
    began, second = datetime.datetime(2026, 1, 31), 0
    whole = {"enabled_ns": 1, "running_ns": 1}
    while True:
        time = began + datetime.timedelta(seconds=second)
        when = {"start_time": time.strftime("%Y-%m-%dT%H:%M:%S.000000000Z"), "duration_ns": 10 ** 9}
        for i in range(EVENTS):
            count = 1000 + chance.randrange(500)
            yield {"type": "count", "event": f"event-{i}", "status": "counted", "value": count, "scaled": count, **whole, **when}
        used = sorted({min(FUNCTIONS - 1, int(chance.expovariate(1 / 300))) for _ in range(120)})
        entries = []
        for _ in range(STACKS):
            samples = chance.randrange(1, 9)
            entries.append({"stack": [chance.randrange(len(used)) for _ in range(chance.randrange(3, 25))], "comm": "server",
                            "samples": samples, "period": 1000 * samples})
        total = sum(entry["samples"] for entry in entries)
        yield {"type": "frames", "event": "cpu-clock", **when,
               "frames": [{"id": i, "symbol": names[n], "module": "/opt/bin/server"} for i, n in enumerate(used)]}
        yield {"type": "profile", "event": "cpu-clock", "value": total, "entries": entries, **whole, **when,
               "samples": {"expected": total, "aggregated": total, "lost": {}}}
        yield {"type": "mem", "event": "load-latency", "value": 80, "entries": [], **whole, **when,
               "samples": {"expected": 8, "aggregated": 8, "lost": {}},
               "sources": [{"source": source, "samples": 8, "period": 80, "latency_sum_period": 16000, "latency_max": 300,
                            "latency_histogram_period": {"128": 60, "256": 20}} for source in SOURCES]}
        second += 1


def write_stream(path, size, seed=1):
    """Writes a stream of at least so many bytes."""
    start = {"type": "start", "command": "profile", "version": "0.1.0", "target": {"process.command_args": ["server"]},
             "host": {"cpu": {"model_name": "X5570"}, "kernel": "6.1.0"}}
    made, written = intervals(seed), 0
    with open(path, "w", encoding="utf-8") as file:
        for seq, record in enumerate(record for source in ([start], made) for record in source):
            line = json.dumps({**record, "schema_version": "3.5.0", "time": "2026-01-31T23:59:59.000000000Z", "run_id": "0" * 32,
                               "seq": seq}, separators=(",", ":"))
            written += file.write(line + "\n")
            if written >= size:
                return


def read_page(driver, path):
    """Opens a page. Returns seconds until it is ready, and the times between the frames while it is scrolled, in ms."""
    driver.get(f"file://{path}")
    ready = driver.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd") / 1e3
    return ready, driver.execute_async_script(SCROLL)
