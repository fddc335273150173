# SPDX-License-Identifier: GPL-2.0-only
"""Which counts of cycles and instructions can't be true, on counts that are made up: those of processors that are
halted, taken away by a hypervisor, or wait for devices, and of PMUs that lie."""
import ctypes
import os
import random
import subprocess
from pathlib import Path

import pytest

USER = Path(__file__).parents[2] / "user"
CYCLES, INSTRUCTIONS = 1, 2
MS = 10**6


class Count(ctypes.Structure):
    _fields_ = [("value", ctypes.c_uint64), ("enabled_ns", ctypes.c_uint64), ("running_ns", ctypes.c_uint64)]


class Suspect(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("name", ctypes.c_char_p), ("count", Count), ("sides", ctypes.c_uint),
                ("busy", ctypes.c_bool)]


def suspect(kind, value, ms, busy=True, enabled=None, sides=0):
    return Suspect(kind, b"event", Count(int(value), int((enabled or ms) * MS), int(ms * MS)), sides, busy)


@pytest.fixture(scope="module")
def doubted(tmp_path_factory):
    """A function that returns why one of these counts is not believed; "" if all are."""
    library = tmp_path_factory.mktemp("plausible") / "plausible.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", USER, "-o", library,
                    USER / "activity/plausible.c"], check=True)
    checks = ctypes.CDLL(str(library))
    checks.implausible.restype = checks.implausible_pair.restype = ctypes.c_bool

    def run(*suspects):
        why = ctypes.create_string_buffer(300)
        for one in suspects:
            if checks.implausible(ctypes.byref(one), why, ctypes.c_size_t(300)):
                return why.value.decode()
            for other in suspects:
                if other is not one and checks.implausible_pair(ctypes.byref(one), ctypes.byref(other), why,
                                                                ctypes.c_size_t(300)):
                    return why.value.decode()
        return ""
    return run


@pytest.mark.parametrize("counts, why", [
    ([(CYCLES, 0, 300)], "only 0 in the 300 ms"),
    ([(INSTRUCTIONS, 0, 300)], "only 0 in the 300 ms"),
    ([(INSTRUCTIONS, 2600, 1000)], "only 2600 in the 1000 ms"),
    ([(INSTRUCTIONS, 2600, 1000, False), (CYCLES, 3e9, 1000, False)], "can't retire so few"),
    ([(INSTRUCTIONS, 1e9, 1000, False), (CYCLES, 0, 1000, False)], "more than any core retires"),
    ([(INSTRUCTIONS, 40e9, 1000), (CYCLES, 3e9, 1000)], "more than any core retires"),
    ([(CYCLES, 3e9, 1000), (CYCLES, 1.5e9, 1000)], "which counts the same"),
    ([(INSTRUCTIONS, 3e9, 1000), (INSTRUCTIONS, 0, 1000)], "which counts the same"),
    ([(CYCLES, 2**47, 1000)], "faster than any processor"),
])
def test_a_count_that_no_processor_has_is_told(doubted, counts, why):
    assert why in doubted(*(suspect(*count) for count in counts))


@pytest.mark.parametrize("counts", [
    [(CYCLES, 0, 1000, False), (INSTRUCTIONS, 0, 1000, False)],        # a CPU that is halted all the time
    [(CYCLES, 0, 150)],                                               # too short to tell
    [(CYCLES, 0, 0)],                                                 # it never ran
    [(CYCLES, 3e9 * 0.01, 1000), (INSTRUCTIONS, 1e7, 1000)],          # a processor that is taken away 99 % of the time
    [(CYCLES, 3e9, 1000), (INSTRUCTIONS, 1e6, 1000)],                 # nothing but waiting for a device
    [(CYCLES, 3e9, 1000), (INSTRUCTIONS, 14e9, 1000)],                # 4.7 a cycle, with fused pairs
    [(CYCLES, 1e6, 1000, False), (INSTRUCTIONS, 20e6, 1000, False)],  # something ran between both readings
    [(CYCLES, 3e9, 1000), (CYCLES, 2.95e9, 1000)],
    [(CYCLES, 3e9, 1000, True, 1000, 1), (CYCLES, 1e9, 1000, True, 1000, 2)],  # of other sides
    [(CYCLES, 3e9, 1000), (INSTRUCTIONS, 1e3, 300, False, 1000)],     # an estimate is compared with nothing
    [(CYCLES, 3e9, 1000), (CYCLES, 9e8, 300)],                        # two stretches, one of which is a part of the other
    [(CYCLES, 3e9, 1000, False), (INSTRUCTIONS, 1e4, 300, False)],
    [(0, 0, 1000)],                                                   # another event
])
def test_what_is_rare_but_true_is_believed(doubted, counts):
    assert doubted(*(suspect(*count) for count in counts)) == ""


def test_groups_that_take_turns_over_phases_are_not_doubted(doubted):
    """Each event counts in its own turns, while programs change between phases of any rate. NHMTAP_SEED, NHMTAP_RUNS: as below."""
    chance = random.Random(os.environ.get("NHMTAP_SEED", "7"))
    for _ in range(int(os.environ.get("NHMTAP_RUNS", "20000")) // 4):
        nr, ms = chance.randint(2, 7), chance.choice([300, 1000, 5000])
        turns = [(chance.uniform(0.8, 5.5) * MS, chance.uniform(0.001, 4)) for _ in range(nr * chance.randint(1, 4))]
        of_turn = ms / len(turns)
        sums = [(sum(cycles for cycles, _ in turns[g::nr]) * of_turn, sum(cycles * rate for cycles, rate in turns[g::nr]) * of_turn)
                for g in range(nr)]
        enabled = chance.choice([ms, ms, ms / nr])  # in turns, or each in an execution of its own
        counts = [suspect(CYCLES, sum(cycles for cycles, _ in sums), ms)]
        counts += [suspect(CYCLES, cycles, ms / nr, True, enabled) for cycles, _ in sums[:1]]
        counts += [suspect(INSTRUCTIONS, retired, ms / nr, True, enabled) for _, retired in sums[1:2]]
        # Executions are judged one after the other, so that no two groups have one each.
        chosen = counts if enabled == ms else counts[:2]
        assert doubted(*chosen) == "", (nr, ms, turns)


def test_no_processor_that_exists_is_doubted(doubted):
    """Programs of any kind, on parts of 0.8 to 5.5 GHz, of which a hypervisor takes up to 97 %; on CPUs that are mostly
    halted; multiplexed; and with what happens between two readings. NHMTAP_SEED chooses others, NHMTAP_RUNS their number:
    a million intervals take less than a minute, on the machine they would take days."""
    chance = random.Random(os.environ.get("NHMTAP_SEED", "7"))
    for _ in range(int(os.environ.get("NHMTAP_RUNS", "20000"))):
        ms = chance.choice([1, 10, 100, 250, 1000, 60_000]) * chance.uniform(0.9, 1.1)
        used = chance.choice([1, chance.uniform(0.03, 1), 10 ** -chance.uniform(0, 1.5)])
        busy = chance.random() < 0.5
        halted = 1 if busy else 10 ** -chance.uniform(0, 9)
        cycles = chance.uniform(0.8, 5.5) * MS * ms * used * halted
        instructions = cycles * chance.choice([chance.uniform(0.001, 5), 10 ** -chance.uniform(0, 4)])
        if busy:
            instructions = max(instructions, ms * 1000)
        between = chance.uniform(0, 1) * chance.uniform(0, 5) * MS
        running = ms * chance.choice([1, 1, chance.random()])
        counts = [suspect(CYCLES, cycles * running / ms, running, busy, ms),
                  suspect(INSTRUCTIONS, (instructions + 5 * between) * running / ms, running, busy, ms),
                  suspect(CYCLES, (cycles * chance.uniform(0.999, 1.001) + between) * running / ms, running, busy, ms)]
        assert doubted(*counts) == "", (ms, used, halted, cycles, instructions)
