# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap top of what is going on."""
import json
import os
import re
import shlex

from records import NHMTAP, program
from terminal import Terminal

DEMO = program("demo")  # large_loop takes three times as long as small_loop


def test_a_command_is_shown_recorded_and_replayed(tmp_path):
    """Of a run of one interval, whose names are waited for as long as it takes."""
    kept = tmp_path / "kept.jsonl"
    with Terminal(NHMTAP, "top", "--record", kept, "-I", "60000", "--", DEMO) as seen:
        seen.until(lambda screen: re.search(r"\d+\.\d% .* demo +(large|small)_loop", screen))
        seen.type("2")
        seen.until(lambda screen: "task-clock" in screen or "instructions" in screen)
        seen.type("7")
        seen.until(lambda screen: "100.0% of the time" in screen and "accounts" in screen)
        seen.until(lambda screen: "ENDED" in screen)
        seen.type("q")
        seen.end()
        assert seen.status and open(seen.status, encoding="ascii").read() == "0\n"
    assert json.loads(kept.read_text(encoding="utf-8").splitlines()[-1])["type"] == "end"
    with Terminal(NHMTAP, "top", kept) as seen:
        seen.type("e")
        seen.until(lambda screen: re.search(r"\d+\.\d% .* demo +large_loop", screen))


def test_quitting_ends_the_command_and_leaves_nothing_behind(tmp_path):
    with Terminal(NHMTAP, "top", "-I", "100", "--", "sh", "-c", f"echo $$ > {tmp_path}/pid; echo said; while :; do :; done",
                  TMPDIR=str(tmp_path)) as seen:
        seen.until(lambda screen: "samples in" in screen)
        seen.type("8")
        seen.until(lambda screen: "said" in screen)
        seen.type("q")
        seen.end()
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text().strip()}")
    assert os.listdir(tmp_path) == ["pid"]


def test_an_activity_has_its_own_options(tmp_path):
    with Terminal(NHMTAP, "top", "stat", "-e", "page-faults", "-I", "100", "--", DEMO) as seen:
        seen.until(lambda screen: "page-faults" in screen and "2 counts" in screen)


def test_tops_own_options_hold_for_an_activity(tmp_path):
    """By construction: names.c makes 300 page faults in here(), of which every third is a sample."""
    with Terminal(NHMTAP, "top", "-e", "page-faults:u", "-c", "3", "profile", "--", program("names"), "here=300", columns=100) as seen:
        seen.until(lambda screen: re.search(r"^ +(99|100|101) +\d+\.\d% .* here \(names\)", screen, re.M))


def test_options_that_would_do_nothing_are_refused(tmp_path):
    config, kept = tmp_path / "config.json", tmp_path / "kept.jsonl"
    config.write_text(json.dumps({"activities": [{"name": "c", "command": "stat", "event": "page-faults"}]}))
    kept.write_text("")
    for words, said in (((["--record", tmp_path / "copy", kept]), "option --record of top"), (["-p", "1", kept], "option -p of top"),
                        (["-e", "cycles", config, "--", DEMO], "CONFIG says what is measured"), (["--record", tmp_path / "copy", "-"], "tee FILE")):
        with Terminal(f"true | {shlex.join(map(str, [NHMTAP, 'top', *words]))}", columns=200) as seen:
            assert said in seen.end()
            assert open(seen.status, encoding="ascii").read() == "1\n"


def test_config_is_shown_too(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"activities": [{"name": "c", "command": "stat", "event": "page-faults", "interval_ms": 100}]}))
    with Terminal(NHMTAP, "top", config, "--", DEMO) as seen:
        seen.until(lambda screen: "page-faults" in screen)


def test_what_is_refused_is_told_without_a_screen():
    with Terminal(NHMTAP, "top", "-e", "nosuchevent", "-p", "1") as seen:
        said = seen.end()
        assert said.startswith("nhmtap: event 'nosuchevent': ") and "CONFIG" not in said
        assert open(seen.status, encoding="ascii").read() != "0\n"


def test_what_comes_at_another_place_is_told_where(tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"activities": [{"name": "c", "command": "stat", "event": "page-faults"}]}))
    for words, remedy in ((["mem", "--machine=ep", "-c", "50", "--", DEMO], "nhmtap mem --machine=ep … -- COMMAND | nhmtap top -"),
                          ([config, "--record", "x", "--", DEMO], "nhmtap top --record … CONFIG -- COMMAND")):
        with Terminal(NHMTAP, "top", *words, columns=200) as seen:
            assert remedy in seen.end()


def test_single_samples_are_shown_too_while_they_come_and_replayed(tmp_path):
    """By construction: names.c makes 300 page faults in here(), each of which is a sample."""
    kept = tmp_path / "kept.jsonl"
    shown = re.compile(r"^ +300 +\d+\.\d% .* names +here \(names\)", re.M)
    with Terminal(NHMTAP, "top", "--record", kept, "stream", "-e", "page-faults:u", "-c", "1", "-I", "100", "--", program("names"),
                  "here=300", columns=100) as seen:
        seen.until(lambda screen: "ENDED" in screen and shown.search(screen))
        seen.type("7")
        seen.until(lambda screen: "accounts" in screen)  # what has ended stays on the screen
        seen.type("q")
        seen.end()
        assert open(seen.status, encoding="ascii").read() == "0\n"
    assert sum('"type":"sample"' in line for line in kept.read_text(encoding="utf-8").splitlines()) >= 300
    with Terminal(NHMTAP, "top", kept, columns=100) as seen:
        seen.type("e")
        seen.until(shown.search)


def test_signals_that_come_while_measuring_begins_lose_no_record(shim):
    """Such as that of a terminal that is resized."""
    with Terminal(NHMTAP, "top", "profile", "-e", "page-faults:u", "-c", "1", "--", program("names"), "here=300", columns=100,
                  LD_PRELOAD=shim("interrupt_polls"), ASAN_OPTIONS="verify_asan_link_order=0") as seen:
        seen.until(lambda screen: "ENDED" in screen and re.search(r"^ +300 +\d+\.\d% .* names +here \(names\)", screen, re.M))
