# SPDX-License-Identifier: GPL-2.0-only
"""Names that are wider than their column: what tells functions apart stays."""
import random
import unicodedata

import pytest
from compiled import compiled


@pytest.fixture(scope="module", name="shortened")
def fixture_shortened(tmp_path_factory):
    run = compiled(tmp_path_factory.mktemp("shortened"), "shortened")
    return lambda *asked: run("".join(f"{width} {text}\n" for width, text in asked)).split("\n")[:-1]


VECTOR = "ns::Class<std::vector<int, std::allocator<int> > >::{}(std::string const&, unsigned long) const (app)"


@pytest.mark.parametrize("name, width, short", [
    # Only as much is left out as has to be, of what is widest.
    (VECTOR.format("insert"), 95, "ns::Class<std::vector<in…ocator<int> > >::insert(std::string const&, unsigned long) const (app)"),
    (VECTOR.format("insert"), 60, "ns::Class<…>::insert(std::string c…nsigned long) const (app)"),
    (VECTOR.format("insert"), 45, "ns::Class<…>::insert(std::… long) const (app)"),
    (VECTOR.format("insert"), 36, "ns::Class<…>::insert(…) const (app)"),
    # Nothing else is in brackets: the middle.
    (VECTOR.format("insert"), 20, "ns::Class<…nst (app)"),
    ("f" + "o" * 60 + "_end (p)", 20, "fooooooooo…o_end (p)"),
    # Operators and arrows are no brackets, and neither is the file behind a blank.
    ("a::operator<<(std::ostream&, a::Value const&)", 30, "a::operator<<(std::os… const&)"),
    ("a::operator()(std::ostream&, a::Value const&)", 17, "a::operator()(…)"),
    ("a::operator->(std::ostream&, a::Value const&)", 17, "a::operator->(…)"),
    ("first -> second_with_a_long_name", 20, "first -> s…long_name"),
    ("main (a_long_name_of_a_file.so)", 20, "main (a_lo…_file.so)"),
    ("(anonymous namespace)::hidden", 20, "(anony…pace)::hidden"),
])
def test_brackets_are_emptied_before_names_are(shortened, name, width, short):
    assert shortened((width, name)) == [short] and len(short) in (width, width - 1)


def test_nothing_is_wider_than_asked_for_and_what_fits_stays(shortened):
    chosen = random.Random(1)
    texts = ["".join(chosen.choices(["<", ">", "(", ")", " ", "::", "operator", "->", "ä", "name", "…"], k=chosen.randrange(1, 40)))
             for _ in range(5000)]
    asked = [(chosen.randrange(3, 80), text) for text in texts]
    columns = lambda text: sum(unicodedata.combining(c) == 0 for c in text)
    for (width, text), got in zip(asked, shortened(*asked), strict=True):
        assert got == text if columns(text) <= width else columns(got) <= width, (width, text, got)


@pytest.mark.parametrize("row, width, lines", [
    ("        12   3.9%  f          -> g", 40, ["        12   3.9%  f          -> g"]),
    # Blanks are taken where there are several, on the right first: the columns on the left stay below each other.
    ("        12   3.9%  f          -> g", 30, ["        12   3.9%  f      -> g"]),
    ("        12   3.9%  f          -> g", 24, ["        12   3.9% f -> g"]),
    # A row that is still too wide goes on in another line.
    ("        12   3.9%  f          -> a_function", 24, ["        12   3.9%  f", "  -> a_function"]),
    ("# some words of a sentence", 12, ["# some words", "# of a", "# sentence"]),
    ("                              deep", 12, ["        deep"]),
    ("    a_name_that_is_too_long", 12, ["a_name…_long"]),
])
def test_a_row_that_is_too_wide_loses_blanks_before_it_is_broken(shortened, row, width, lines):
    assert shortened((-width, row)) == lines
