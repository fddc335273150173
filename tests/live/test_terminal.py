# SPDX-License-Identifier: GPL-2.0-only
"""What a terminal shows: the progress line, repainted screens, sizes, characters."""
import os
import re
import subprocess

import pytest

from fifos import open_fifo
from puppet import command
from records import NHMTAP, program
from terminal import Terminal

FAULTS = ["-e", "page-faults", "-c", "1"]
TIME = re.compile(r"^\d\d:\d\d:\d\d\.\d\d\d", re.M)


def endless(*arguments):
    """Makes page faults until it is told to end."""
    return [NHMTAP, *arguments, "--", program("faults"), str(1 << 40)]


# --- the line of progress ---------------------------------------------------------------------------


def test_a_run_whose_records_go_elsewhere_says_how_far_it_is(tmp_path):
    with Terminal(*endless("profile", *FAULTS, "-I", "100", "-o", tmp_path / "out")) as seen:
        line = seen.until(lambda screen: re.search(r"^nhmtap: \d+\.\d s, .* samples", screen, re.M))
        assert re.search(r"^nhmtap: \d+\.\d s, [\d,]+ samples \([\d,]+/s\), \d+ lost, [\d.]+ [KM]iB written$", line,
                         re.M)
        assert seen.terminate() == "", "the line is gone"


def test_the_line_gives_way_to_what_the_command_writes_and_leaves_nothing_in_it(tmp_path):
    """Several lines at once, also where the screen scrolls, and the begin of a line."""
    for name in ("first", "second"):
        os.mkfifo(tmp_path / name)
    script = f"seq 9; read x < {tmp_path}/first; printf 'a\\nb\\nc'; read x < {tmp_path}/second; echo; echo last >&2"
    with Terminal(NHMTAP, "stat", "-o", tmp_path / "out", "--", "sh", "-c", script, rows=6) as seen:
        for said, name in (("7 8 9", "first"), ("a b c", "second")):
            seen.until(lambda screen, said=said: re.search(f" {said} nhmtap: .* written$", " ".join(screen.split())))
            with open_fifo(tmp_path / name, "w") as go:
                go.write("\n")
        assert seen.end().split() == [*map(str, range(1, 10)), "a", "b", "c", "last"]


def test_a_command_with_a_screen_of_its_own_sees_no_line(tmp_path):
    """An editor or a pager reads each key."""
    with Terminal(NHMTAP, "stat", "-o", tmp_path / "out", "--", "sh", "-c", "stty -icanon; sleep 1.5") as seen:
        while not seen.ended():
            assert seen.screen() == ""


def test_a_run_that_is_stopped_leaves_the_whole_screen_to_the_shell(tmp_path):
    with Terminal("PS1='> ' bash --norc --noprofile -i", rows=6, PATH=f"{os.path.dirname(os.path.abspath(NHMTAP))}:{os.environ['PATH']}") as seen:
        seen.type(f"nhmtap stat -o {tmp_path}/out -- sleep 1000\n")
        seen.until(lambda screen: screen.endswith(" written"))
        seen.tmux("send-keys", "C-z")
        seen.until(lambda screen: "Stopped" in screen and "written" not in screen)
        seen.type("seq 20\n")
        seen.until(lambda screen: screen.split() == ["16", "17", "18", "19", "20", ">"])
        seen.type("fg\n")
        seen.until(lambda screen: screen.endswith(" written"))


def test_counting_has_no_samples_to_tell_of(tmp_path):
    with Terminal(NHMTAP, "stat", "-a", "-I", "100", "-o", tmp_path / "out") as seen:
        seen.until(lambda screen: re.search(r"^nhmtap: \d+\.\d s, [\d.]+ (bytes|KiB) written$", screen, re.M))
        assert seen.terminate() == ""


def test_a_pipe_is_elsewhere_as_well():
    shell = f"{NHMTAP} stat -a -I 100 | cat > /dev/null"
    with Terminal(shell) as seen:
        seen.until(lambda screen: "written" in screen)


@pytest.mark.parametrize("option", ["-q", "--quiet"])
def test_quiet_shows_none(tmp_path, option):
    with Terminal(NHMTAP, "stat", option, "-a", "-o", tmp_path / "out", "--duration", "1.5") as seen:
        while not seen.ended():
            assert seen.screen() == ""
    assert (tmp_path / "out").stat().st_size


def test_whoever_sees_the_records_sees_no_line():
    with Terminal(NHMTAP, "stat", "-e", "page-faults", "-a", "-I", "700", "--interval-count", "3") as seen:
        while not seen.ended():
            assert "written" not in seen.screen()
        assert len(TIME.findall(seen.everything())) == 3


def test_without_a_terminal_stderr_stays_empty(nhmtap, tmp_path):
    result = nhmtap("stat", "-e", "page-faults", "-a", "--duration", "1.2", "-o", tmp_path / "out")
    assert result.err == ""


def test_a_message_takes_the_place_of_the_line(tmp_path):
    os.mkfifo(tmp_path / "control")
    with Terminal(NHMTAP, "stat", "-a", "--control", f"fifo:{tmp_path}/control", "-o", tmp_path / "out") as seen:
        seen.until(lambda screen: "written" in screen)
        with open_fifo(tmp_path / "control", "w") as control:
            control.write("dance\nstop\n")
        said = seen.end().strip()
    assert said == ("nhmtap: option --control: there is no command 'dance'. "
                    "Next: write enable, disable, snapshot, ping or stop.")


@pytest.mark.parametrize("reads, writes", [("symbolize", "-o {out}"), ("flamegraph", "-o {out}"),
                                            ("show", "-o {out}")])
def test_reading_a_large_stream_says_how_much_is_read(nhmtap, tmp_path, reads, writes):
    stored = tmp_path / "stored"
    nhmtap.into(stored, "profile", "-g", *FAULTS, "--", *command("faults=100", "exit=0"))
    # Writing the stream takes longer than the line needs to appear.
    shell = (f"(i=0; while [ $i -lt 20 ]; do cat {stored}; sleep 0.1; i=$((i+1)); done) | "
             f"{NHMTAP} {reads} {writes.format(out=tmp_path / 'out')}")
    with Terminal(shell) as seen:
        seen.until(lambda screen: re.search(r"^nhmtap: \d+\.\d s, [\d.]+ (KiB|MiB) read$", screen, re.M))
        seen.end()
        assert "read" not in seen.everything()


# --- what to try next -------------------------------------------------------------------------------

NEXT = re.compile(r"^# next: (.*)$", re.M)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Records without stacks, and with them."""
    folder = tmp_path_factory.mktemp("stored")
    for name, options in (("functions", []), ("stacks", ["-g"])):
        subprocess.run([NHMTAP, "profile", *FAULTS, *options, "-o", folder / name, "--", *command("faults=100", "exit=0")], check=True)
    return folder


@pytest.mark.parametrize("options, tells", [
    ("stat -e page-faults -I 50", "nhmtap profile, or profile -e EVENT, says in which functions"),
    ("profile -e page-faults -c 1", "nhmtap profile -g says who calls them"),
    ("profile -e page-faults -c 1 -g", "with -o FILE, nhmtap report FILE makes a page with its flame graph"),
    ("mem -e page-faults -c 1", "nhmtap mem --by line says in which lines"),
    ("show {stored}/functions", "nhmtap report FILE > page.html makes a page of it to keep"),
    ("show {stored}/stacks", "nhmtap show --children FILE adds up what functions call"),
    ("show --children {stored}/stacks", "nhmtap report FILE > page.html makes a page of it to keep"),
    ("show --diff {stored}/stacks {stored}/functions", "nhmtap report A B > page.html makes a page of both")])
def test_the_last_line_below_tables_says_once_what_to_try_next(stored, options, tells):
    words = [NHMTAP, *options.format(stored=stored).split()] + ([] if "show" in options else command("spin=120", "faults=100", "exit=0"))
    with Terminal(*words, rows=50, PAGER="cat") as seen:
        seen.end()
        said = seen.everything().rstrip()
    assert NEXT.findall(said) == [tells] and said.endswith(tells)
    for elsewhere in ([*words, "|", "cat"], [*words[:2], "-q", *words[2:]]):
        with Terminal(" ".join(map(str, elsewhere)), rows=50, PAGER="cat") as seen:
            seen.end()
            assert seen.everything().strip() and not NEXT.findall(seen.everything())


# --- repainting -------------------------------------------------------------------------------------


def test_intervals_scroll():
    with Terminal(NHMTAP, "stat", "-e", "page-faults", "-a", "-I", "100", "--interval-count", "40") as seen:
        assert len(TIME.findall(seen.end())) == 40


def test_live_shows_one_interval_at_a_time():
    with Terminal(NHMTAP, "stat", "--live", "-e", "page-faults", "-a", "-I", "200", "--interval-count",
                  "12") as seen:
        times = set()
        while not seen.ended():
            times |= set(shown := TIME.findall(seen.screen()))
            assert len(set(shown)) <= 1
        assert len(times) > 1
        assert len(set(TIME.findall(seen.everything()))) == 1, "nothing has scrolled"


def test_live_without_an_interval_shows_one_every_second():
    with Terminal(*endless("stat", "--live", "-e", "page-faults", "-a")) as seen:
        seen.until(lambda screen: len(set(TIME.findall(screen))) == 1)


@pytest.mark.parametrize("columns, together", [(80, True), (60, False)])
def test_a_metric_stands_beside_its_count_where_there_is_room(columns, together):
    with Terminal(NHMTAP, "stat", *command("faults=100", "exit=0"), columns=columns) as seen:
        seen.end()
        lines = seen.screen("-J").splitlines()
    place, = [i for i, line in enumerate(lines) if " task-clock" in line]
    assert re.fullmatch(r" +[\d,]+ ns +task-clock( +# \d+\.\d{3} CPUs utilized)?", lines[place].rstrip())
    assert ("CPUs utilized" in lines[place]) == together and ("CPUs utilized" in lines[place + 1]) == (not together)
    assert max(len(line) for line in lines[place:]) <= columns


def test_with_times_a_metric_has_room_beside_its_count_in_80_columns():
    with Terminal(NHMTAP, "stat", "-I", "20", *command("spin=30", "exit=0"), columns=80, rows=50) as seen:
        seen.end()
        lines = seen.screen("-J").splitlines()
    # In the last interval the program may not have run any more.
    clocks = [line for line in lines if "task-clock" in line and "not counted" not in line]
    assert clocks and all(TIME.match(line) and "CPUs utilized" in line and len(line) <= 80 for line in clocks)


def test_what_executions_had_in_common_keeps_its_columns_in_80_columns():
    with Terminal(NHMTAP, "stat", "-r", "3", "-e", "page-faults,task-clock,context-switches", *command("spin=2", "exit=0"), columns=80) as seen:
        seen.end()
        rows = [line for line in seen.screen("-J").splitlines() if "(mean of 3" in line or "(identical in 3" in line]
    assert len(rows) == 3 and {re.search("[a-z-]{5,} +[(]", line).start() for line in rows} == {21}, rows


def test_counts_without_a_value_leave_no_empty_lines():
    """Nothing runs in a pattern's cgroups as long as there are none."""
    with Terminal(NHMTAP, "stat", "-G", "/nosuch*", "-a", "--duration", "0.1", columns=80) as seen:
        seen.end()
        lines = seen.screen("-J").splitlines()
    places = [i for i, line in enumerate(lines) if "not counted" in line]
    assert len(places) == 4 and places == list(range(places[0], places[0] + 4))


def test_names_are_shortened_to_the_width_of_the_terminal(tmp_path):
    """Module and function have names that are longer than the terminal is wide."""
    long = "f" + "o" * 60 + "_end"
    (tmp_path / "a.c").write_text(f"volatile long n; __attribute__((noinline)) void {long}(void) {{ while (n < 300000000) n++; }}"
                                  f" int main(void) {{ {long}(); }}")
    subprocess.run(["gcc", "-O1", "-o", tmp_path / ("p" * 40), tmp_path / "a.c"], check=True)
    for options in (["--by", "comm,symbol"], ["-g"]):
        with Terminal(NHMTAP, "profile", *options, tmp_path / ("p" * 40), columns=60) as seen:
            seen.end()
            lines = [line for line in seen.everything().splitlines() if "foo" in line]
            assert lines and all(len(line) <= 60 for line in lines), lines
            assert any("_end" in line or "ppp)" in line for line in lines)


def test_live_fits_the_screen_also_when_that_changes():
    with Terminal(*endless("profile", "--live", "-I", "200", "-a", "--by", "comm,line")) as seen:
        seen.until(lambda screen: "samples in" in screen)
        seen.resize(40, 8)
        seen.until(lambda screen: TIME.match(screen) and len(screen.splitlines()) <= 8)
        lines = len(seen.everything().splitlines())
        for _ in range(5):
            before = seen.screen().splitlines()[0]
            seen.until(lambda screen: TIME.match(screen) and screen.splitlines()[0] != before)
        assert len(seen.everything().splitlines()) <= lines, "nothing has scrolled"


@pytest.mark.parametrize("words, said", [
    (["--live"], "do not go to a terminal"),
    (["--live", "-I", "100"], "do not go to a terminal")])
def test_live_is_refused_where_there_is_nothing_to_repaint(nhmtap, words, said):
    result = nhmtap("stat", *words, "-e", "page-faults", "--", "true")
    assert result.status == 1 and re.search(said, result.err)


# --- what fits and what is shown --------------------------------------------------------------------


def test_a_profile_shows_functions_on_a_screen():
    with Terminal(NHMTAP, "profile", program("demo")) as seen:
        screen = seen.end()
    assert re.search(r"^ +[\d,]+ +[\d.]+% +demo +large_loop \(demo\)$", screen, re.M)
    assert len(screen.splitlines()) <= 26


def test_a_terminal_without_utf8_gets_ascii():
    words = [NHMTAP, "profile", "-g", "--max-stack", "1", *FAULTS, "--top", "3", *command("faults=100", "exit=0")]
    with Terminal(*words) as seen:
        assert "…" in seen.end()
    with Terminal(*words, LC_ALL="C") as seen:
        screen = seen.end()
    assert "..." in screen and screen.isascii()


def test_there_is_no_colour():
    with Terminal(NHMTAP, "doctor", "--need", "software,stat") as seen:
        seen.end()
        assert "WORKS" in seen.screen("-e") and "\x1b" not in seen.screen("-e")


def test_doctor_fits_a_screen_of_80_by_24():
    with Terminal(NHMTAP, "doctor") as seen:
        assert len(seen.end().splitlines()) <= 24
        assert "WORKS" in seen.screen() and "WHAT TO DO" in seen.screen()
