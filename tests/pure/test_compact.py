# SPDX-License-Identifier: GPL-2.0-only
"""The JSON writer gives the same bytes as jansson. It leaves out jansson's check for loops."""
import json
import random

import pytest
from compiled import compiled

SPECIAL = ['"', "\\", "\0", "\n", "\x1f", " ", "\x7f", "\x80", "é", "€", "\U0001f600", "/"]
VALUES = [0, -1, 9, 10, 99, 100, 101, 12345, 2**31, -2**63, 2**63 - 1, 0.5, -1e-9, 1e300, 3.0, True, False, None, {}, [],
          [[]], {"": {}}, {"a": [1, {"b": "c"}, []], "d\n": None, "e\"": [2, 3]}]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    run = compiled(tmp_path_factory.mktemp("compact"), "compact")
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


NUMBERS = [0, 11, 101, 2**31, 2**63 - 1, *(10**n + less for n in range(19) for less in (0, -1)), *(2**n - less for n in range(1, 63) for less in (0, 1))]
BYTES = [b"", b"a", b"sh", b"a comm of 15 by", b"\xff", b"a\xc3", "é€\U0001f600".encode(), b"\xc0\x80", b"\xed\xa0\x80", b'"\\\n\x01\x7f',
         *(b"abcdefg"[:n] + special + b"hijklmnopq" for n in range(8) for special in (b'"', b"\x80", b"\x1f", "ü".encode()))]


@pytest.fixture(scope="module")
def listed(tmp_path_factory):
    """The lines of lists of fields: each as text, as a tree and after the line before; at the end all together in the first
    two ways."""
    run = compiled(tmp_path_factory.mktemp("listed"), "listed")
    return lambda lists: run("".join(",".join(fields) + "\n" for fields in lists)).splitlines()


def test_a_line_that_differs_from_the_one_before_in_any_place_is_written_as_if_it_were_the_first(listed):
    """In any two lines that follow each other, some members are the same, and the others may be longer or shorter, of another
    kind or missing."""
    fields = ["number 7", "number 8", "number 9", "number 10", "number -10", "number -9", "hex 7", "hex a7",
              "time 1999999999", "time 2000000000", "time 2000000001", "time 1", "text 6162", "text 615c", "text 5c22", "text 22", "text ff", "text 6163",
              'raw {"a":1}', "value 7", 'value "ab"', "histogram 3"]
    source = random.Random(1)
    lists, list_now = [], []
    for _ in range(3000):
        list_now = list_now[:source.randrange(2, 6)] + source.choices(fields, k=source.randrange(3))
        list_now = [source.choice(fields) if source.random() < 0.2 else field for field in list_now][:5]
        lists.append(list_now)
    lines = listed(lists)[:-2]
    assert lines[::3] == lines[1::3] == lines[2::3] and len(lines) == 3 * len(lists)


def test_fields_are_the_same_as_text_and_as_a_tree(listed):
    fields = [*(f"number {sign * number}" for number in NUMBERS for sign in (1, -1)), f"number {-2**63}",
              *(f"hex {number:x}" for number in [*NUMBERS, 15, 16, 255, 256, 0x1c0, 2**64 - 1]),
              *(f"text {text.hex()}" for text in BYTES), "value null", 'raw {"a":{}}', "raw 17", "value [1]", 'value {"a":"b"}', "histogram ", "histogram 0",
              "histogram 3/17/63"]
    lists = [[], *([field] for field in fields), *([*fields[n:], *fields[:n]][:5] for n in range(len(fields)))]
    *lines, whole, opened = listed(lists)
    assert lines[::3] == lines[1::3] == lines[2::3] and len(lines) == 3 * len(lists)
    assert whole == opened == "[" + ",".join(lines[::3]) + "]"
    values = {field: list(json.loads(line).values()) for field, line in zip(fields, lines[3::3])}
    assert all(values[f"text {text.hex()}"] == [text.decode(errors="replace")] for text in BYTES if b"\xed" not in text)
    assert values["hex 1c0"] == ["0x1c0"] and values[f"number {-2**63}"] == [-2**63]
    assert values["histogram 3/17/63"] == [{"8": 3001, "131072": 17001, str(2**63): 63001}]


def test_a_list_without_elements_is_empty_in_both_ways(listed):
    assert listed([]) == ["[]", "[]"]
