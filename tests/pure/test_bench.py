# SPDX-License-Identifier: GPL-2.0-only
"""The README's price list is the benchmark's, and two of its runs are compared rightly."""
import io
import pathlib
import random
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "bench"))
import figures


def price_list():
    """The rows of the README's table: what they say, and what was measured."""
    text = (ROOT / "README.md").read_text("utf-8").partition("\n## Overhead\n")[2].partition("\n## ")[0]
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in text.splitlines()
            if line.startswith("|")][2:]


def numbers(text):
    """The numbers of a cell, without those in brackets, which are what a ratio is of."""
    words = re.sub(r"\(.*?\)", "", text).replace("no growth", "0")
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?(?= ×| ns| MiB| %| of|\b)", words)]


def test_the_readme_has_the_rows_of_the_price_list_and_no_others():
    assert [row for row, _ in price_list()] == list(figures.PRICES)


@pytest.mark.parametrize("row, measured", price_list())
def test_no_figure_of_the_readme_is_one_that_the_benchmark_calls_a_failure(row, measured):
    bounds = list(figures.PRICES[row].values())
    found = numbers(measured)[:len(bounds)]
    assert len(found) == len(bounds) and all(value <= bound for value, bound in zip(found, bounds))


def run_of(values, **figure):
    made = figures.Figures()
    for value in values:
        made.add("a figure", value, **figure)
    return made.summed_up()


def stored(tmp_path, name, values):
    path = tmp_path / name
    with path.open("w") as file:
        figures.write_records({"machine": "m", "kernel": "6.1", "cpus": 2, "commit": name}, run_of(values), file)
    return path


@pytest.mark.parametrize("before, after, said, status", [
    ([1.0, 1.1, 1.2, 1.1], [1.5, 1.6, 1.7, 1.6], "slower", 1),
    ([1.5, 1.6, 1.7, 1.6], [1.0, 1.1, 1.2, 1.1], "faster", 0),
    ([1.0, 1.1, 1.2, 1.1], [1.1, 1.2, 1.3, 1.2], "", 0),
    ([1.0, 1.1], [1.5, 1.6], "slower, with 2 rounds a guess", 1),
    ([0, 0, 0, 0], [3, 4, 5, 4], "slower", 1),
    ([0, 0, 0, 0], [0, 0, 0, 0], "", 0),
])
def test_what_lies_apart_in_all_rounds_has_changed(tmp_path, capsys, monkeypatch, before, after, said, status):
    paths = [stored(tmp_path, name, values) for name, values in (("a", before), ("b", after))]
    monkeypatch.setattr(sys, "argv", ["figures.py", *map(str, paths)])
    assert figures.main() == status
    row, = [line for line in capsys.readouterr().out.splitlines() if line.startswith("a figure")]
    assert row.endswith(said) and ("er" in row.split("figure", 1)[1]) == bool(said)


def test_the_chance_is_that_of_all_orders():
    assert figures.chance([1, 2, 3], [4, 5, 6]) == 2 / 20
    assert figures.chance([1, 2, 3, 4], [5, 6, 7, 8]) == 2 / 70
    assert figures.chance([1, 1], [1, 1]) == 1


def test_rounds_of_one_distribution_are_seldom_told_apart():
    source = random.Random(1)
    found = 0
    for _ in range(1000):
        one, other = ([source.gauss(1, 0.1) for _ in range(5)] for _ in range(2))
        least, most, p = figures.compared({"values": one}, {"values": other})
        found += bool(figures.verdict(least, most, p, 5))
    assert found <= 20  # 2 / 252 of them lie apart


def test_a_file_that_is_no_run_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("no records\n")
    monkeypatch.setattr(sys, "argv", ["figures.py", str(tmp_path / "a"), str(tmp_path / "a")])
    with pytest.raises(SystemExit, match="is not one run of make bench"):
        figures.main()


def test_a_price_has_the_bound_of_the_list():
    name = "a sample / in perf record"
    made = figures.Figures()
    made.add(name, 0.3)
    assert made.summed_up()[0]["bound"] == figures.BOUNDS[name] and made.summed_up()[0]["holds"]
    out = io.StringIO()
    figures.write_records({}, made.summed_up(), out)
    assert out.getvalue().count("\n") == 2
