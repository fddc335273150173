# SPDX-License-Identifier: GPL-2.0-only
"""Streams that a run stored with --by place, named afterwards."""
import subprocess

import pytest
from naming import offset_of, symbols
from records import NHMTAP, Result, program


def test_places_of_a_run_are_named_afterwards(nhmtap, tmp_path):
    demo, stored = program("demo"), tmp_path / "stored"
    nhmtap.into(stored, "profile", "-e", "cpu-clock", "-F", "500", "--by", "place", "--", demo)
    done = subprocess.run([NHMTAP, "symbolize", stored], capture_output=True, text=True, check=True)
    bodies = {name: range(offset_of(demo, begin), offset_of(demo, begin) + size)
              for name, ((begin, size), *_) in symbols(demo).items() if size}
    own = [entry["code"] for entry in Result(0, done.stdout, done.stderr).entries()
           if entry["code"].get("module", "").endswith("/demo")]
    assert {code["symbol"] for code in own} >= {"large_loop", "small_loop"}
    for code in own:
        body = bodies[code["symbol"]]
        assert int(code["offset"], 16) in body
        assert int(code["symbol_offset"], 16) == int(code["offset"], 16) - body.start
        assert code["file"].endswith("demo.c")


@pytest.mark.parametrize("packed", ["zstd", "zlib"])
def test_debug_information_that_cannot_be_uncompressed_is_told(nhmtap, tmp_path, packed):
    """elfutils reads zstd from 0.189 on: there are lines, or the reason why not, and never both."""
    demo = tmp_path / "demo"
    subprocess.run(["objcopy", f"--compress-debug-sections={packed}", program("demo"), demo], check=True)
    measured = "profile", "-e", "cpu-clock", "-F", "500"
    result = nhmtap(*measured, "--by", "symbol,line", "--", demo)
    stored = tmp_path / "stored"
    nhmtap.into(stored, *measured, "--by", "place", "--", demo)
    done = subprocess.run([NHMTAP, "symbolize", stored], capture_output=True, text=True, check=True)
    later = Result(0, done.stdout, done.stderr)
    told = "zstd" in result.one("end")["names"].get("lines_why", "")
    for one in (result, later):
        own = [e["code"] for e in one.entries() if e["code"].get("symbol") in ("large_loop", "small_loop")]
        assert own and all(("file" in code) != told for code in own)
    assert ("some places have no source lines: " in later.err) == told
    assert packed == "zstd" or not told
