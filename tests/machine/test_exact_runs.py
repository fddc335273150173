# SPDX-License-Identifier: GPL-2.0-only
"""A command's counts are the same in each of many runs, by a boot, from a snapshot or in a fork, beside an idle or a busy
host. NHMTAP_RUNS says how many (9; `make search` makes 1000), NHMTAP_SEED which runs are of which kind."""
import collections
import contextlib
import os
import random
import subprocess

import known
import nehalem

RUNS = int(os.environ.get("NHMTAP_RUNS", "9"))
SEED = int(os.environ.get("NHMTAP_SEED", "1"))
WAYS = {"boot": 1, "snapshot": 15, "fork": 34}  # how often, of 50
# In the user's and the kernel's mode: instructions, cycles, loads.
COMMAND = "tally c0:0:0:0 3c:0:0:0 10b:0:0:0 c0:0:0:1 -- chase l2"


@contextlib.contextmanager
def load():
    """More that wants to run than the host has processors."""
    busy = [subprocess.Popen(["sha1sum", "/dev/zero"], stdout=subprocess.DEVNULL) for _ in range(os.cpu_count() + 1)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def counted(guest):
    with guest:
        result = guest.run(COMMAND, paranoid=-1)
    assert result.status == 0, result
    return result.stdout


def test_a_command_counts_the_same_in_each_run(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    machine = nehalem.Machine(add=(known.path("tally"), known.path("chase")))
    chosen = random.Random(SEED)
    ways = list(WAYS) + chosen.choices(list(WAYS), list(WAYS.values()), k=max(0, RUNS - len(WAYS)))
    done, said = collections.Counter(), collections.Counter()
    with nehalem.Guest(machine, snapshot=True) as first:
        for number, way in enumerate(ways):
            with load() if chosen.random() < 0.5 else contextlib.nullcontext():
                guest = first.fork() if way == "fork" else nehalem.Guest(machine, snapshot=way == "snapshot")
                assert guest.from_snapshot == (way == "snapshot" or way == "fork" and first.from_snapshot), (number, way)
                said[counted(guest)] += 1
            done[way] += 1
            assert len(said) == 1, f"run {number}, by a {way}: {said}"
    counts = [int(line.split()[0]) for line in next(iter(said)).splitlines()]
    assert len(counts) == 4 and all(counts)
    print(f"{sum(done.values())} runs ({dict(done)}): {counts}")
