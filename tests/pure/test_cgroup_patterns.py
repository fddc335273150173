# SPDX-License-Identifier: GPL-2.0-only
"""Patterns of cgroups: which paths they match, and which paths the search leaves out."""
import itertools

import pytest

from compiled import compiled

PARTS = ["a", "b", "a.service"]
PATHS = ["/" + "/".join(parts) for length in (1, 2, 3) for parts in itertools.product(PARTS, repeat=length)]


@pytest.fixture(scope="module")
def look(tmp_path_factory):
    said = compiled(tmp_path_factory.mktemp("patterns"), "patterns")

    def of(pattern, paths):
        lines = said("".join(f"{pattern} {path}\n" for path in paths)).splitlines()
        return [(fits == "1", below == "1", root) for fits, below, root in map(str.split, lines)]
    return of


@pytest.mark.parametrize("pattern, fit", [
    ("/*", lambda parts: len(parts) == 1),
    ("/a/*.service", lambda parts: len(parts) == 2 and parts[0] == "a" and parts[1] == "a.service"),
    ("/**", lambda parts: True),
    ("/a*/**", lambda parts: len(parts) > 1 and parts[0][0] == "a"),
    ("/**/b", lambda parts: parts[-1] == "b"),
    ("/a/**/b", lambda parts: len(parts) > 1 and parts[0] == "a" and parts[-1] == "b"),
    ("/[ab]/?", lambda parts: len(parts) == 2 and len(parts[0]) == len(parts[1]) == 1),
])
def test_a_pattern_fits_what_it_says(look, pattern, fit):
    found = look(pattern, PATHS)
    for path, (fits, _, _) in zip(PATHS, found):
        assert fits == bool(fit(path[1:].split("/"))), path
    for path, (_, below, root) in zip(PATHS, found):
        # Nothing below a path that the search leaves out matches. Every match is below the root.
        assert below or not any(fits for other, (fits, _, _) in zip(PATHS, found) if other.startswith(path + "/"))
        assert not fit(path[1:].split("/")) or path.startswith(root)


@pytest.mark.parametrize("pattern, root", [("/system.slice/*.service", "/system.slice"), ("/kubepods*/**", "/"),
                                           ("/a/b/c?", "/a/b"), ("/**", "/")])
def test_the_search_begins_where_the_pattern_does(look, pattern, root):
    assert look(pattern, ["/x"])[0][2] == root
