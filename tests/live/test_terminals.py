# SPDX-License-Identifier: GPL-2.0-only
"""Names of any bytes: the text for people contains nothing that controls their terminal, and shows
such characters as escapes."""
import json
import shutil
import unicodedata

import pytest
from records import program

NAMES = program("names")
# CSI in two bytes, CSI as an escape sequence, a right-to-left override, a zero-width space, a line
# separator, a line feed.
HOSTILE = {"c1": ("\u009b2J", r"\u009b2J"), "escape": ("\033[2J", r"\u001b[2J"), "bidi": ("\u202egpj", r"\u202egpj"),
           "hidden": ("\u200bx", r"\u200bx"), "line": ("\u2028x", r"\u2028x"), "feed": ("\nx", r"\u000ax")}
CASES = pytest.mark.parametrize("hostile, shown", HOSTILE.values(), ids=HOSTILE)


def is_plain(said):
    return all(char == "\n" or unicodedata.category(char) not in ("Cc", "Cf", "Zl", "Zp") for char in said)


@CASES
@pytest.mark.parametrize("form", ["table", "folded"])
def test_a_programs_name_steers_no_terminal(nhmtap, tmp_path, form, hostile, shown):
    path = shutil.copy(NAMES, tmp_path / hostile)
    said = nhmtap("profile", "-e", "page-faults:u", "-c", "1", "--by", "comm,stack", "--format", form,
                  "-o", tmp_path / "said", "--", path, "here=100", "child=100")
    assert said.status == 0
    said = (tmp_path / "said").read_text(encoding="utf-8")
    assert is_plain(said)
    assert shown in said or form == "table", "the table of stacks tells functions"


@CASES
def test_a_table_of_programs_steers_no_terminal(nhmtap, tmp_path, hostile, shown):
    path = shutil.copy(NAMES, tmp_path / hostile)
    nhmtap("profile", "-e", "page-faults:u", "-c", "1", "--by", "comm,symbol", "--format", "table",
           "-o", tmp_path / "said", "--", path, "here=100")
    said = (tmp_path / "said").read_text(encoding="utf-8")
    assert is_plain(said) and shown in said and f"here ({shown})" in said


@CASES
def test_messages_steer_no_terminal(nhmtap, hostile, shown):
    said = nhmtap("explain", f"cycles{hostile}").err
    assert is_plain(said) and shown in said
    caret, text = said.splitlines()[-1], said.splitlines()[-2]
    assert caret.index("^") <= len(text)


def test_bytes_that_are_no_text_are_shown_as_such(nhmtap):
    assert r"\x9b" in nhmtap("explain", b"cycles\x9b").err


@CASES
def test_a_folder_of_events_steers_no_terminal(nhmtap, tmp_path, hostile, shown):
    folder = tmp_path / "nehalem-ep"
    folder.mkdir()
    event = {"name": "CATS.SEEN", "description": f"A cat {hostile}", "code": "0xA0", "umask": "0x01", "period": 2000}
    (folder / "mine.json").write_text(json.dumps({"source": "reasoning", "events": [event]}), encoding="utf-8")
    for command in (["list", "--cpu", "nehalem-ep", "--format", "table", "CATS*"],
                    ["explain", "--cpu", "nehalem-ep", "--format", "table", "CATS.SEEN"]):
        said = nhmtap(*command, "--events-dir", tmp_path)
        assert is_plain(said.out + said.err)
        assert shown in said.out if hostile != HOSTILE["feed"][0] else said.status == 1, "a line feed is refused"
    event["name"] = f"CATS{hostile}"
    (folder / "mine.json").write_text(json.dumps({"source": "reasoning", "events": [event]}), encoding="utf-8")
    said = nhmtap("explain", "--events-dir", tmp_path, "cpu-clock")
    assert said.status == 1 and is_plain(said.err) and shown in said.err


@CASES
def test_a_configuration_steers_no_terminal(nhmtap, tmp_path, hostile, shown):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"activities": [{"name": "a", "command": "stat"}], hostile: 1}), encoding="utf-8")
    said = nhmtap("run", path)
    assert said.status == 1 and is_plain(said.err)
    assert shown in said.err
