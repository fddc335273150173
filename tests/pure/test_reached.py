# SPDX-License-Identifier: GPL-2.0-only
"""What make coverage counts, and that the tests reach every branch of what accounts for samples."""
import os
import subprocess
import sys

import reached

TESTS = os.path.join(reached.ROOT, "tests")
BUILT = [f"pure/test_{name}.py" for name in ("samples", "account", "merges")]


def test_branches_are_counted_one_by_one(tmp_path, monkeypatch):
    """A loop of three turns of which none meets the condition: three of four ways are taken."""
    folder = tmp_path / "user"
    folder.mkdir()
    (folder / "a.c").write_text("int main(int argc, char **argv)\n{\n\tfor (int i = 0; i < 3; i++)\n\t\tif (argc > 5)\n"
                                "\t\t\treturn 1;\n\treturn !argv;\n}\n")
    subprocess.run(["gcc", "-O0", "--coverage", "-o", "a", "user/a.c"], cwd=tmp_path, check=True)
    monkeypatch.setattr(reached, "ROOT", str(tmp_path))
    for turn in (1, 2):
        subprocess.run(["./a"], cwd=tmp_path, check=True)
        lines = reached.reached([str(tmp_path)])["user/a.c"]
        assert lines[3][1] == [3 * turn, turn] and lines[4][1] == [0, 3 * turn] and lines[5] == (0, [])
        assert reached.unreached({"user/a.c": lines}, ["user/a.c"]) == {("user/a.c", "if (argc > 5)"): 1}


def test_what_is_not_reached_needs_a_reason():
    lacks = {("a.c", "if (x)"): 2, ("a.c", "if (y)"): 1, ("b.c", "if (z)"): 1}
    rows = {("a.c", "if (x)"): (1, "why"), ("b.c", "if (z)"): (2, "why")}
    said = list(reached.beyond(lacks, rows))
    assert [sentence.split(":")[0] + sentence[-6:] for sentence in said] == ["a.cif (x)", "a.cif (y)"]


def test_each_row_of_the_list_is_of_a_line_of_its_file_and_has_a_reason():
    for (name, text), (number, reason) in reached.listed().items():
        assert name in reached.ACCOUNTS and number > 0 and reason, (name, text)
        assert text in map(str.strip, reached.source_of(name)), f"{name} has no such line: {text}"


def test_tests_of_the_accounts_alone_reach_each_branch_or_the_list_says_why_not(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *BUILT], cwd=TESTS, check=True,
                   env=environment | {"NHMTAP_COVERAGE": str(tmp_path)}, stdout=subprocess.PIPE)
    lacks = reached.unreached(reached.reached([str(tmp_path)]), reached.PURE)
    assert lacks == {key: number for key, (number, _) in reached.listed().items() if key[0] in reached.PURE}
