# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap show on recorded runs, compared with perf report, and on a terminal."""
import re
import subprocess

import pytest
from records import NHMTAP, program
from terminal import Terminal

DEMO = program("demo")  # large_loop takes three times as long as small_loop


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("show") / "records.jsonl"
    subprocess.run([NHMTAP, "profile", "-g", "-e", "cpu-clock:u", "-o", path, "--", DEMO], check=True, stdout=subprocess.DEVNULL)
    return path


def shown(*options):
    """{function: (total, error, self)} in percent."""
    out = subprocess.run([NHMTAP, "show", "--children", "--by", "symbol", *options], capture_output=True, text=True,
                         check=True).stdout
    return {m[4]: (float(m[1]), float(m[2]), float(m[3])) for m in
            re.finditer(r"^ *[\d,]+ +([\d.]+)% +([\d.]+) +([\d.]+)% +[\d.]+ +(\S+)$", out, re.M)}


def of_perf(folder):
    """The same by perf: {function: (children, self)}."""
    data = folder / "perf.data"
    subprocess.run(["perf", "record", "-q", "-m", "4096", "--buildid-mmap", "-g", "-F", "4000", "-e", "cpu-clock:u", "-o", data,
                    DEMO], check=True, capture_output=True)
    out = subprocess.run(["perf", "report", "--stdio", "--children", "-g", "none", "-s", "sym", "-i", data, "--percent-limit", "1"],
                         capture_output=True, text=True, check=True).stdout
    return {m[3]: (float(m[1]), float(m[2])) for m in re.finditer(r"^ *([\d.]+)% +([\d.]+)% +\[.\] (\S+)$", out, re.M)}


def test_functions_have_the_shares_that_perf_report_gives_them(recorded, tmp_path):
    """Two runs, so either share has an error; the interval of 95 % of each is doubled against chance. perf walks frame
    pointers, of which this program has none, so it does not see its callers."""
    ours, theirs = shown(recorded), of_perf(tmp_path)
    for name in ("large_loop", "small_loop"):
        total, error, own = ours[name]
        assert abs(total - theirs[name][0]) < 4 * error + 2 and abs(own - theirs[name][1]) < 4 * error + 2, (ours, theirs)


def test_the_larger_loop_has_three_quarters(recorded):
    ours = shown(recorded)
    large, small = ours["large_loop"][0], ours["small_loop"][0]
    assert large / small == pytest.approx(3, rel=.4)
    assert ours["main"][0] > 90


def test_on_a_terminal_it_fits_the_width_and_the_pager_shows_it(recorded):
    with Terminal(NHMTAP, "show", recorded, columns=60, rows=12, PAGER="less", LESS="FRX") as seen:
        screen = seen.until(lambda screen: "large_loop" in screen)
        assert max(map(len, screen.splitlines())) <= 60
        seen.type("q")
        seen.end()


@pytest.mark.parametrize("options", [(), ("--children",), ("--callers", "main"), ("--by", "symbol")])
def test_everything_fits_any_terminal(recorded, options):
    for columns in (20, 27, 36, 47, 61, 250):
        with Terminal(NHMTAP, "show", *options, recorded, columns=columns, rows=200, PAGER="cat") as seen:
            # A line that the terminal has wrapped is joined to one that is too long.
            assert max(map(len, seen.tmux("capture-pane", "-pJ").splitlines() if seen.end() else [])) <= columns


def test_without_utf8_a_terminal_gets_none(recorded):
    with Terminal(NHMTAP, "show", recorded, PAGER="cat", LC_ALL="C") as seen:
        assert seen.end().isascii()


def test_without_the_pager_that_is_asked_for_the_table_is_shown_at_once(recorded):
    with Terminal(NHMTAP, "show", recorded, PAGER="nosuch") as seen:
        screen = seen.end()
        assert "nosuch" in screen and "samples" in screen
