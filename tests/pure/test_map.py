# SPDX-License-Identifier: GPL-2.0-only
"""The program's map (user/base/map.h) does as a dictionary of lists does."""
import collections
import random

import pytest
from compiled import compiled


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("map"), "map")


def steps_of(chance, keys, number):
    """Yields (step, the values that it prints)."""
    known, next_value = collections.defaultdict(list), 1
    for _ in range(number):
        key = chance.choice(keys)
        step = chance.choices("+-?%", (6, 4, 4, .1))[0]
        if step == "+":
            known[key].append(next_value)
            yield f"+ {key} {next_value}", None
            next_value += 1
        elif step == "-" and known[key]:
            value = known[key].pop(chance.randrange(len(known[key])))
            yield f"- {key} {value}", None
        elif step == "?":
            yield f"? {key}", list(known[key])
        elif step == "%":
            yield "%", [value for values in known.values() for value in values]
            for key, values in known.items():
                known[key] = [value for value in values if value % 2]


@pytest.mark.parametrize("seed, keys", [
    (1, range(3)), (2, range(1, 2000)), (3, [number << 32 for number in range(500)]),
    (4, [(1 << 64) - 1 - number for number in range(60)])])
def test_it_finds_and_removes_what_a_dictionary_would(run, seed, keys):
    steps = list(steps_of(random.Random(seed), keys, 6000))
    shown = run("\n".join(step for step, _ in steps)).splitlines()
    wanted = [values for _, values in steps if values is not None]
    assert len(shown) == len(wanted)
    for line, values in zip(shown, wanted):
        # A walk that removes may meet a value twice: one that has moved behind it.
        assert sorted(set(map(int, line.split()))) == sorted(values)


def test_an_empty_one_finds_nothing_and_walks_nowhere(run):
    assert run("? 7\n%\n") == "\n\n"
