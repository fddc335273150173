# SPDX-License-Identifier: GPL-2.0-only
"""How many samples --adaptive leaves out: no more than a reader's slowness needs, so that estimates stay good."""
import random
import subprocess

import pytest

from compiled import compiled

LEVELS = 1024  # THINNING_LEVELS
STEP = LEVELS // 32
READ_MS = 5


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("thinning")
    compiled(folder, "thinning")
    return folder / "thinning"


def adapted(program, *readings):
    """n after each reading, which is (ms, whether a ring is half full, level of the queue)."""
    text = "".join(f"{ms} {behind:d} {level}\n" for ms, behind, level in readings)
    return [int(line) for line in subprocess.run([program], input=text, text=True, stdout=subprocess.PIPE, check=True).stdout.split()]


def test_a_queue_that_does_not_get_fuller_needs_no_larger_n(program):
    """What waits there was kept before."""
    levels = [16, 16, 16, 20, 19, 18, 17, 16, 20]
    assert adapted(program, *((READ_MS * i, False, level * STEP) for i, level in enumerate(levels))) == [2, 2, 2, 4, 4, 4, 4, 4, 4]


def test_a_queue_that_goes_on_filling_or_stays_full_needs_one(program):
    assert adapted(program, *((READ_MS * i, False, (15 + i) * STEP) for i in range(6))) == [1, 2, 4, 8, 16, 32]
    assert adapted(program, *((READ_MS * i, False, LEVELS) for i in range(9))) == [2] * 4 + [4] * 4 + [8]


def test_a_ring_is_emptied_at_each_reading_so_it_is_full_of_what_is_new(program):
    assert adapted(program, *((READ_MS * i, True, 0) for i in range(4))) == [2, 4, 8, 16]


def test_it_is_halved_after_each_second_in_which_nothing_is_half_full(program):
    assert adapted(program, (0, True, 0), (500, True, 0), (1400, False, LEVELS // 2 - 1), (1500, False, 0), (2400, False, 0), (2500, False, 0),
                   (4000, False, 0)) == [2, 4, 4, 2, 2, 1, 1]
    assert adapted(program, (0, True, 0), (900, False, LEVELS // 2), (1800, False, 0), (1900, False, 0)) == [2, 4, 4, 2]


@pytest.mark.parametrize("seed", range(40))
def test_n_is_at_most_some_times_what_the_reader_needs(program, seed):
    """Samples come `ratio` times as fast as the reader takes them, which it does in pieces. With n of that ratio the queue
    would not fill, and a double of it and another one are what is learnt too late."""
    chance = random.Random(seed)
    ratio = chance.uniform(1.5, 300)
    taken_ms = chance.uniform(0.001, 0.01) * LEVELS / READ_MS  # levels a ms
    piece_ms = chance.choice([READ_MS, 10 * READ_MS])
    level, most, owed, every = 0.0, 1, 0.0, 1
    with subprocess.Popen([program], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for reading in range(10000):
            process.stdin.write(f"{reading * READ_MS} 0 {int(level)}\n")
            process.stdin.flush()
            every = int(process.stdout.readline())
            most = max(most, every)
            level = min(LEVELS, level + ratio * taken_ms * READ_MS / every)
            owed += READ_MS
            if owed >= piece_ms:
                level, owed = max(0, level - taken_ms * owed), 0
        process.stdin.close()
    assert ratio / 4 < most <= 8 * ratio
