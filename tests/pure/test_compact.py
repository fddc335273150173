# SPDX-License-Identifier: GPL-2.0-only
"""The JSON writer gives the same bytes as jansson. It leaves out jansson's check for loops."""
import json

import pytest
from compiled import compiled

SPECIAL = ['"', "\\", "\0", "\n", "\x1f", " ", "\x7f", "\x80", "é", "€", "\U0001f600", "/"]
VALUES = [0, -1, 9, 10, 99, 100, 101, 12345, 2**31, -2**63, 2**63 - 1, 0.5, -1e-9, 1e300, 3.0, True, False, None, {}, [],
          [[]], {"": {}}, {"a": [1, {"b": "c"}, []], "d\n": None, "e\"": [2, 3]}]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    run = compiled(tmp_path_factory.mktemp("compact"), "compact", "record/compact.c", "record/fields.c", "base/memory.c",
                   libraries=["-ljansson"])
    return lambda values: run("".join(json.dumps(value) + "\n" for value in values)).splitlines()


def check(lines, values):
    assert lines[::2] == lines[1::2] and len(lines) == 2 * len(values)
    assert [json.loads(line) for line in lines[::2]] == values


def test_texts_of_any_length_with_any_byte_at_any_place(written):
    plain = "abcdefghijklmnopqrstuvwxyz0123456789"
    texts = [plain[:place] + special + plain[place:length] for length in range(20) for place in range(length + 1)
             for special in ["", *SPECIAL]]
    check(written(texts), texts)
    named = [{text.replace("\0", ""): 1} for text in texts]
    check(written(named), named)


def test_values_of_any_kind(written):
    check(written(VALUES), VALUES)
