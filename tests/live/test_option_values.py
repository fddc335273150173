# SPDX-License-Identifier: GPL-2.0-only
"""Any value of any option, as --help lists them: it is taken, and all records fit their schemas, or it is
refused with a sentence. NHMTAP_SEED (see `make search`) chooses other values."""
import json
import os
import random
import subprocess
import unicodedata

import pytest
from idle_machine import idle_machine
from records import NHMTAP, SANITIZED, check_stream, parse
from sessions import config_schema, write

SEED = int(os.environ.get("NHMTAP_SEED", "1"))
AT_ONCE = 7  # values of an option that a run tries

BOUNDS = [0, 1, 1000, 1024, 65535, 65536, 86400000, 10**6, 10**9, 2**31, 2**32, 2**53, 2**63, 2**64, 2**127]
NUMBERS = [str(bound + by) for bound in BOUNDS for by in (-1, 0, 1)] + [
    "-2", "-0", "+5", " 5", "5 ", "\t7", "\n7", " -1", " -18446744073709551615", "-18446744073709551615", "0x10", "010", "1e9",
    "1e-9", "1e-10", "1e-300", "1e400", "1e308G", "5.0", ".5", "5.", "1e", "0x1p3", "nan", "inf", "-inf", "infinity", "1_000",
    "1,5", "1,,2", "1-", "2-1", "5k", "5M", "4G", "9T", "1ms", "50%", "0.0001%", "1e3%", "nan%", "½", "٣", "9" * 400]
TEXTS = ["", " ", ",", ",,", "/", "//", ":", "=", "a=b", "-", "--", "%s%n%d", "a\nb", "a\tb", "a\"b", "a'b", "a\\b", "\x1b[31m",
         "\x7f", "\u202egpj", "\u2028", "ü" * 2000, "a" * 4095, "a" * 4096, "a," * 40000, "x" * 65536, "*" * 2000, "[" * 3000, "**/" * 500,
         "{" * 500, "../" * 900, "NaN", "null", "\ufffe", "😀", b"\xff", b"a\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\x80" * 300,
         "tcp:127.0.0.1:65536", "tcp:[::1]:4294967376", "tcp:127.0.0.1:-1", "unix:" + "x" * 108, "unix:", "fd:4294967297", "fd:-1", "fd: 1",
         "fifo:", "http://", "json=", "otlp=", "nothing=x", "listen", "prometheus="]

# A command that can't be executed: where all else is taken, nothing runs, and nothing is repeated.
NOTHING = ["--", "/nonexistent/command"]
PREFIXES = {"stat": ["-e", "cs"], "profile": ["-e", "page-faults"], "mem": ["-e", "page-faults"], "branch": [], "offcore": [],
            "analyze": []}


@pytest.fixture(name="environment", scope="module")
def fixture_environment(tmp_path_factory):
    """Where values of `machine` and --machine are taken, no machine is started."""
    return {**os.environ, "NHMTAP_MACHINE": str(idle_machine(tmp_path_factory.mktemp("machine") / "machine", 0))}


def options():
    """(command, option) of each option that takes an argument; rows that commands share are one."""
    commands = json.loads(subprocess.run([NHMTAP, "help", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    seen = {}
    for command in commands:
        for row in command["options"]:
            if "argument" in row:
                seen.setdefault((row["name"], row["argument"], row["help"]), (command["name"], row["name"]))
    return sorted(seen.values())


def quiet_of_controls(text):
    return not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") and c not in "\n\t"]


def judge(done, value):
    assert done.returncode >= 0 and done.returncode != SANITIZED, (value[:80], done.returncode, done.stderr)
    assert done.returncode in (0, 1, 2, 3, 4, 126, 127), (value[:80], done.returncode, done.stderr)
    said = done.stderr.decode()  # UTF-8 whatever the value was
    assert quiet_of_controls(said), (value[:80], said)
    assert len(said) < 40000, (value[:80], len(said))
    told = said.startswith("nhmtap: ") and said.rstrip().endswith((".", "?", "^"))
    if done.stdout.startswith(b'{"type":'):
        records = parse(done.stdout.decode())
        check_stream(records)
        told = told or any(r["type"] == "error" and r["why"] for r in records)
    assert told or done.returncode not in (1, 2), (value[:80], done.stdout[-300:], said)


@pytest.mark.parametrize("command, option", options())
def test_a_value_is_taken_or_refused_with_a_sentence(tmp_path, environment, command, option):
    chosen = random.Random(f"{SEED} {command} {option}")
    for value in [*chosen.sample(NUMBERS, AT_ONCE - AT_ONCE // 2), *chosen.sample(TEXTS, AT_ONCE // 2)]:
        value = value if isinstance(value, bytes) else value.encode()
        measures = command in PREFIXES
        words = [NHMTAP, command, *PREFIXES.get(command, []), *["--format", "json"] * (measures and option != "format"),
                 f"--{option}=".encode() + value, *(NOTHING if measures else [])]
        judge(subprocess.run(words, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=120), value)


# --- CONFIG ---------------------------------------------------------------------------------------

JSON_NUMBERS = [bound + by for bound in BOUNDS if bound < 2**63 for by in (-1, 0, 1)] + [2**63 - 1, -2**63, -2, 0.5, 5.0, 1e-9, 1e-10, 1e9, 1e10,
                                                                                    1e308, -0.0, 1e-300]


def members():
    for case in config_schema().schema["$defs"]["activity"]["oneOf"]:
        for name in case["properties"]:
            yield case["properties"]["command"]["const"], name


@pytest.mark.parametrize("command", sorted({command for command, _ in members()}))
def test_every_member_of_config_is_taken_as_the_schema_takes_it_or_refused(tmp_path, command):
    chosen = random.Random(f"{SEED} {command}")
    for name in [name for of, name in members() if of == command and name != "command"]:
        texts = [t for t in TEXTS if isinstance(t, str)]
        for value in [*chosen.sample(JSON_NUMBERS, 2), chosen.choice(texts), chosen.choice([True, None, [], {}, [1], ["a\u0001"], "\ud800"])]:
            config = {"activities": [{"name": "a", "command": command, "all_cpus": True, **({"event": "cs"} if command == "stat" else {}),
                                      name: value}]}
            done = subprocess.run([NHMTAP, "run", "--check", write(tmp_path / "c", config)], cwd=tmp_path, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=120)
            judge(done, json.dumps(value).encode())
            assert done.returncode or config_schema().is_valid(config), (name, value)


# --- what is no number ----------------------------------------------------------------------------


@pytest.mark.parametrize("option, value, why", [
    ("--repeat", " -18446744073709551615", "it takes a whole number from 1"), ("--repeat", "+5", "it takes a whole number from 1"),
    ("--interval", "\t5", "it takes a whole number from 1"), ("--delay", " 5", "it takes a whole number from 0"),
    ("--duration", "0x10", "more than 0"), ("--duration", "1e10", "at most 1000000000"), ("--duration", "1e-10", "more than 0"),
    ("--control", "fd:4294967297", "no number of a descriptor"), ("--listen", "tcp:127.0.0.1:65536", "from 0 to 65535"),
    ("--listen", "127.0.0.1:4294967376", "from 0 to 65535"), ("--output", "tcp:127.0.0.1:70000", "from 0 to 65535"),
    ("--expect", "cs<1e308G", "number"), ("-e", "cpu-clock/period= -18446744073709551615/", "not a number"),
])
def test_a_number_is_not_what_strtoull_makes_of_a_text(nhmtap, tmp_path, option, value, why):
    events = [] if option == "-e" else ["-e", "cs"]
    result = nhmtap("stat", *events, option, value, "--", "touch", tmp_path / "ran")
    assert result.status == 1 and why in result.out + result.err and not (tmp_path / "ran").exists()
