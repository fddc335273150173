# SPDX-License-Identifier: GPL-2.0-only
"""Streams that a run stored with --by place, named afterwards."""
import subprocess

import pytest
import golang
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
    assert ("some places lack source lines or inlined functions: " in later.err) == told
    assert packed == "zstd" or not told


INLINED = """
#include <time.h>
static inline __attribute__((always_inline)) unsigned mix(unsigned sum)
{
	for (unsigned i = 0; i < 50; i++)
		sum = (sum ^ i) * 2654435761u;
	return sum;
}
__attribute__((noinline)) unsigned work(unsigned sum, int n) { for (int i = 0; i < n; i++) sum += mix(sum); return sum; }
int main(int n, char **words)
{
	struct timespec at;
	unsigned sum = n;

	do {
		sum = work(sum, 1000);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	} while (!at.tv_sec && at.tv_nsec < 100000000);
	return sum == 7;
}
"""


@pytest.mark.parametrize("elsewhere, told", [
    ("split", None), ("split, gone", ".dwo files"), ("shared, gone", "not found"), ("shared, compressed", "zstd"), ("shared", None)])
def test_inlined_functions_that_are_in_another_file_have_names_or_it_is_told_why_not(nhmtap, tmp_path, elsewhere, told):
    (tmp_path / "inlined.c").write_text(INLINED)
    for name in ("inlined", "other"):
        subprocess.run(["gcc", "-O2", "-g", *(["-gsplit-dwarf"] if elsewhere.startswith("split") else []), "-o", name, "inlined.c"],
                       cwd=tmp_path, check=True)
    if elsewhere == "split, gone":
        for file in tmp_path.glob("*.dwo"):
            file.unlink()
    if not elsewhere.startswith("split"):
        subprocess.run(["dwz", "-m", "shared.debug", "inlined", "other"], cwd=tmp_path, check=True)
    if elsewhere == "shared, gone":
        (tmp_path / "shared.debug").unlink()
    if elsewhere == "shared, compressed":
        subprocess.run(["objcopy", "--compress-debug-sections=zstd", "shared.debug"], cwd=tmp_path, check=True)
    result = nhmtap("profile", "-e", "cpu-clock:u", "-F", "500", "--by", "symbol,line", "--", tmp_path / "inlined")
    assert result.status == 0, result.err
    named = any(one.get("symbol") == "mix" for entry in result.entries() for one in entry["code"].get("inlined", []))
    why = result.one("end")["names"].get("lines_why")
    if told == "zstd":  # elfutils reads it from 0.189 on
        assert named == (why is None) and (named or told in why)
    else:
        assert (named, why and told in why) == ((False, True) if told else (True, None))


def test_lines_of_a_stripped_go_program_come_with_what_they_lack(nhmtap, tmp_path):
    go = golang.build(tmp_path, "-ldflags=-s -w")
    line = next(nr for nr, text in enumerate(golang.SOURCE.splitlines(), 1) if "seed = seed*" in text)
    result = nhmtap.into(tmp_path / "out", "profile", "-e", "cpu-clock:u", "-F", "500", "--by", "line", "--", go, "300000")
    found = {(code.get("symbol"), code.get("file"), code.get("line")) for code in (e["code"] for e in result.entries())}
    assert ("main.bottom", str(tmp_path / "known.go"), line) in found
    assert "Go's code without debug information" in result.one("end")["names"]["lines_why"]
