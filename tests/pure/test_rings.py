# SPDX-License-Identifier: GPL-2.0-only
"""The samples of several CPUs' rings come in the order of their times, against a model that looks at all of them each time."""
import pytest
from compiled import compiled
from hypothesis import given, settings
from hypothesis import strategies as st

LEFT = 7  # of a ring of eight: the program may be writing the next one

turns = st.lists(st.tuples(st.lists(st.integers(0, 16), max_size=40), st.integers(0, 30), st.integers(0, 60)), max_size=6)


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    run = compiled(tmp_path_factory.mktemp("ringed"), "ringed")
    return lambda cpus, steps: [line.split() for line in
                                run(f"{cpus}\n" + "".join(" ".join(map(str, step)) + "\n" for step in steps)).splitlines()]


def overwrite(rings):
    """Returns how many samples were overwritten unread."""
    lost = sum(len(ring) - LEFT for ring in rings if len(ring) > LEFT)
    for ring in rings:
        del ring[:-LEFT]
    return lost


@settings(max_examples=200, deadline=None)
@given(cpus=st.integers(1, 17), turns=turns)
def test_samples_come_in_the_order_of_time_and_what_is_missing_was_counted(read, cpus, turns):
    """In each turn CPUs put samples, all of those older than a time are taken, and meanwhile CPUs put more, which are newer."""
    steps, expected, rings, time, lost = [], [], [[] for _ in range(cpus)], 0, 0

    def put(cpu):
        nonlocal time
        time += 1
        steps.append(("put", cpu % cpus, time))
        rings[cpu % cpus].append(time)

    for cpus_of_turn, meanwhile, age in turns:
        for cpu in cpus_of_turn:
            put(cpu)
        before, taken = max(0, time - age), 0
        while True:
            steps.append(("take", before))
            lost += overwrite(rings)
            first = min((ring for ring in rings if ring and ring[0] < before), key=lambda ring: ring[0], default=None)
            expected.append(str(first.pop(0)) if first else "-")
            if not first:
                break
            if taken < meanwhile:
                put(7 * taken)
            taken += 1
    steps.append(("take", time + 1))  # looks at all rings once more
    found = read(cpus, steps)
    assert [time for time, _ in found[:-1]] == expected
    assert sum(int(missing) for _, missing in found) == lost + overwrite(rings)
