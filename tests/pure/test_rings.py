# SPDX-License-Identifier: GPL-2.0-only
"""The samples of several CPUs' rings come in the order of their times, against a model that looks at all of them each time."""
import pytest
from compiled import compiled
from hypothesis import example, given, settings
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

    for cpus_of_turn, meanwhile, age in [*turns, ((), 0, -1)]:  # the last one takes all
        for cpu in cpus_of_turn:
            put(cpu)
        before, taken = max(0, time - age), 0
        while True:
            steps.append(("take", before))
            lost += overwrite(rings)
            first = min((ring for ring in rings if ring and ring[0] < before), key=lambda ring: ring[0], default=None)
            expected.append("-" if first is None else str(first.pop(0)))
            if first is None:
                break
            if taken < meanwhile:
                put(7 * taken)
            taken += 1
    found = read(cpus, steps)
    assert [time for time, *_ in found] == expected
    assert sum(int(missing) for _, missing, *_ in found) == lost


races = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 16), st.integers(1, 3 * LEFT)), max_size=6)


@settings(max_examples=300, deadline=None)
@given(cpus=st.integers(1, 4), drains=st.lists(st.tuples(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2 * LEFT)), max_size=4), races),
                                               min_size=1, max_size=4))
@example(cpus=2, drains=[([(0, LEFT), (1, 1)], [(5, 0, 3)])])  # before the next turn's time is read
def test_samples_that_are_overwritten_while_they_are_read_put_no_others_out_of_order(read, cpus, drains):
    """Each drain takes what was put before it. While it looks at the rings, CPUs put more."""
    steps = []
    for puts, meanwhile in drains:
        steps += [("burst", cpu % cpus, nr) for cpu, nr in puts]
        steps += [("meanwhile", looks, cpu % cpus, nr) for looks, cpu, nr in meanwhile]
        steps.append(("drain",))
    steps.append(("drain",))
    put, taken = {}, []  # {time: CPU}, [(time, missing, since, until)]
    for line in read(cpus, steps):
        if line[0] == "put":
            put[int(line[2])] = int(line[1])
        elif line[0] != "-":
            taken.append(tuple(map(int, line)))
    times = [time for time, *_ in taken]
    assert times == sorted(times)
    last = dict.fromkeys(range(cpus), 0)
    for time, missing, since, until in taken:
        cpu = put[time]
        between = sum(last[cpu] < other < time for other, of in put.items() if of == cpu)
        assert missing == between and (not missing or (since, until) == (last[cpu], time))
        last[cpu] = time
    assert {cpu: max((time for time, of in put.items() if of == cpu), default=0) for cpu in last} == last
