# SPDX-License-Identifier: GPL-2.0-only
"""Records as a limited number of series: series without new values make room for later ones."""
import json

import pytest
from compiled import compiled

MOST = 10


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """The series after each record: {comm: samples}, or {comm: begin}, the number of the step that it is of. A step is the
    comm of an entry, or a number of seconds by which the clock advances."""
    program = compiled(tmp_path_factory.mktemp("series"), "series")

    def run(*steps, what=0):
        lines = [str(MOST)]
        for number, step in enumerate(steps):
            record = {"type": "profile", "start_time": f"1970-01-01T00:00:{number:02}Z",
                "event": "page-faults", "entries": [{"comm": step, "samples": 1, "value": 1}]}
            lines.append(str(step) if isinstance(step, int) else json.dumps(record))
        found = []
        for line in program("\n".join(lines) + "\n").splitlines():
            found.append({json.loads(name.removeprefix("profile_entries")).get("comm"): pair[what]
                          for name, pair in json.loads(line).items() if name.startswith("profile_entries")})
        return found
    return run


def named(prefix, nr=MOST):
    return [f"{prefix}{i}" for i in range(nr)]


def test_what_is_too_much_is_in_other(series):
    found = series(*named("a"), *named("b"))
    assert found[-1] == {**{name: 1 for name in named("a")}, "other": MOST}


def test_what_had_no_value_for_an_hour_makes_room(series):
    found = series(*named("a"), 3700, *named("b"), 3700, *named("c"))
    assert found[-1] == {name: 1 for name in named("c")}


def test_what_goes_on_keeps_its_series_and_its_sum(series):
    found = series(*named("a"), *[1000, "a3", "a7"] * 10, *named("b"))
    assert {name: found[-1][name] for name in ("a3", "a7")} == {"a3": 11, "a7": 11}
    assert {name for name in found[-1] if name[0] == "b"} == set(named("b", MOST - 2)) and found[-1]["other"] == 2


def test_so_many_series_as_fit_stay_for_however_long(series):
    found = series(*named("a"), 100000, "a0")
    assert found[-1] == {**{name: 1 for name in named("a")}, "a0": 2}


def test_a_series_begins_with_its_first_record_and_once_more_after_it_was_forgotten(series):
    found = series(*named("a"), "a0", 3700, *named("b"), 3700, "a0", what=1)
    assert found[MOST]["a0"] == 0 and found[MOST]["a9"] == 9 * 10**9
    assert found[-1]["a0"] == (2 * MOST + 3) * 10**9
