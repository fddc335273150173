# SPDX-License-Identifier: GPL-2.0-only
"""Streams that a run stored with --by place, named afterwards."""
import subprocess

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
