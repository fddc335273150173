# SPDX-License-Identifier: GPL-2.0-only
"""Formulas of metrics: which are accepted, and their values. The reference is Python's arithmetic:
the same IEEE 754 doubles, the same precedence, left-associative."""
import re
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiled import compiled


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formula")
    compiled(folder, "formula")
    return folder / "formula"


@pytest.fixture(scope="session")
def formula(program):
    """The status and the lines that the program prints."""
    def run(*arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
        assert done.stderr == ""
        return done.returncode, done.stdout.splitlines()
    return run


@pytest.mark.parametrize("text, values, expected", [
    ("a", [7], 7),
    ("a + b", [2, 3], 5),
    ("a - b - c", [10, 3, 2], 5),
    ("a / b / c", [12, 3, 2], 2),
    ("a + b * c", [1, 2, 3], 7),
    ("(a + b) * c", [1, 2, 3], 9),
    ("100 * a / (a + b)", [25, 75], 25),
    ("2.5 * a", [4], 10),
    ("a * a", [3], 9),
    ("((((a))))", [5], 5),
    ("a-b", [5], 5),  # one name
    ("a - b", [5, 3], 2),
    ("1000*A.B/C", [2, 1000], 2),
])
def test_a_formula_has_the_value_of_hand(formula, text, values, expected):
    status, (_, value) = formula(text, *values)
    assert (status, float(value)) == (0, expected)


@pytest.mark.parametrize("text, names", [
    ("INST_RETIRED.ANY / CPU_CLK_UNHALTED.THREAD", "INST_RETIRED.ANY CPU_CLK_UNHALTED.THREAD"),
    ("page-faults / task-clock", "page-faults task-clock"),
    ("cycles:k / cycles", "cycles:k cycles"),
    ("MEM_LOAD_RETIRED:L1D_HIT|L2_HIT / cycles", "MEM_LOAD_RETIRED:L1D_HIT|L2_HIT cycles"),
    ("a + b + a", "a b"),
    ("(a)-(b)", "a b"),
    ("LLC-load-misses - 1", "LLC-load-misses"),
])
def test_names_are_events_names_each_once_in_their_order(formula, text, names):
    assert formula(text) == (0, [names])


@pytest.mark.parametrize("text, message", [
    ("", "lacks an event or number"),
    ("a +", "lacks an event or number"),
    ("a + * b", "lacks an event or number"),
    ("- a", "lacks an event or number"),
    ("()", "lacks an event or number"),
    ("(a", "lacks a closing parenthesis"),
    ("a)", "does not end at \")\""),
    ("a b", "does not end at \"b\""),
    ("2 a", "does not end at \"a\""),
    ("a % b", "has something that is no event, number or operator: \"% b\""),
    ("a: + b", "has something that is no event, number or operator: \": + b\""),
    ("a + _b", "has something that is no event, number or operator: \"_b\""),
    ("1 + 1", "names no event"),
    ("(" * 100 + "a" + ")" * 100, "has too many parentheses in each other"),
])
def test_what_is_no_formula_is_refused(formula, text, message):
    assert formula(text) == (1, [message])


def test_a_division_by_zero_names_the_divisor(formula):
    assert formula("100 * a / (a - b)", 4, 4) == (
        2, ["a b", "it would be divided by (a - b), which is 0"])
    assert formula("a / b", 0, 0) == (2, ["a b", "it would be divided by b, which is 0"])


def test_a_value_beyond_all_numbers_is_none(formula):
    assert formula("a * a", 1e300) == (2, ["a", "it is too large for a number"])


TREES = st.recursive(
    st.sampled_from(["a", "b", "c"]) | st.integers(0, 10**6).map(str),
    lambda inner: st.builds("({} {} {})".format, inner, st.sampled_from("+-*/"), inner)
    | st.builds("{} {} {}".format, inner, st.sampled_from("+-*/"), inner), max_leaves=12)


@settings(max_examples=150, deadline=None)
@given(text=TREES, values=st.lists(st.integers(0, 2**48), min_size=3, max_size=3))
def test_any_formula_has_the_value_that_python_gives_it(formula, text, values):
    names = list(dict.fromkeys(letter for letter in text if letter in "abc"))
    if not names:
        assert formula(text) == (1, ["names no event"])
        return
    try:
        # The numbers of a formula are doubles; Python's integers would not be rounded.
        expected = eval(re.sub(r"\d+", r"\g<0>.0", text),
                        {name: float(value) for name, value in zip(names, values)})
    except ZeroDivisionError:
        expected = None
    status, lines = formula(text, *values[:len(names)])
    assert lines[0] == " ".join(names)
    if expected is None:
        assert status == 2 and "it would be divided by" in lines[1]
    else:
        assert (status, float(lines[1])) == (0, expected)
