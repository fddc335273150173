# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap machine, and --machine, from the host: with the machine's own driver, and this host's programs. Each run boots
a machine, so there are few; tests/live/test_machine_command.py has what is refused before."""
import json
import os
import pathlib
import re
import subprocess
import tempfile

import manual
import pytest
from records import NHMTAP, PROGRAMS, check_stream, parse

EXAMPLES = [command for _, command in manual.examples("$") if manual.on_machine(command)]


def test_there_are_examples():
    assert any(" mem --machine " in command for command in EXAMPLES) and len(EXAMPLES) >= 4


@pytest.mark.parametrize("command", EXAMPLES)
def test_an_example_works(command, tmp_path):
    manual.run(command, tmp_path)


def test_mem_finds_the_levels_of_a_program_of_this_host(nhmtap, tmp_path):
    """Walks of lists as large as a level of the caches: the program's own comment says how many steps are in which."""
    result = nhmtap("mem", "--machine", "-c", "40", "--by", "symbol,line", "-o", "m.json", "-o", "table=-", "--",
                    os.path.join(os.path.abspath(PROGRAMS), "levels"), cwd=tmp_path)
    assert result.status == 0, result.err
    assert re.match(r"# emulated machine \(ep, version [0-9a-f]{12}\): cycles and latencies are a model's\n", result.out)
    records = parse((tmp_path / "m.json").read_text())
    check_stream(records)
    assert records[0]["host"]["emulated"]["model"] == "ep"
    found = {}
    for record in records:
        for entry in record.get("entries", ()):
            code = entry.get("code", {})
            if code.get("symbol") in ("in_last_level", "in_memory"):
                assert code["file"].endswith("levels.c") and code["line"] > 0
                sources = found.setdefault(code["symbol"], {})
                sources[entry["source"]] = sources.get(entry["source"], 0) + entry["samples"]
    assert max(found["in_last_level"], key=found["in_last_level"].get) == "l3_hit"
    assert max(found["in_memory"], key=found["in_memory"].get) == "local_dram_exclusive"


def test_a_run_in_the_first_second_of_the_machine_is_told_as_whole_as_later_ones(nhmtap, tmp_path):
    """A snapshot goes on in that second, so CLOCK_MONOTONIC has 0 seconds when the run begins."""
    assert nhmtap("stat", "--machine", "-q", "-r", "2", "-e", "instructions:u", "-o", tmp_path / "stat", "--", "true").status == 0
    assert nhmtap("mem", "--machine", "-q", "-o", tmp_path / "mem", "--", "true").status == 0
    stat, mem = ([json.loads(line) for line in (tmp_path / name).read_text().splitlines()] for name in ("stat", "mem"))
    assert [record["type"] for record in stat] == ["start", "count", "count", "summary", "end"]
    assert stat[-1]["duration_ns"] > 0 and {"samples", "names", "duration_ns"} <= set(mem[-1]) and mem[-1]["duration_ns"] > 0


def test_each_run_has_an_id_of_its_own_though_its_counts_are_the_same(nhmtap, tmp_path):
    """By it databases know rows that they have already; the machine's random numbers are the same in all runs."""
    runs = []
    for number in "12":
        assert nhmtap("stat", "--machine", "-q", "-e", "instructions:u", "-o", number, "-o", f"otlp={number}.otlp",
                      "--", "true", cwd=tmp_path).status == 0
        runs.append([json.loads(line) for line in (tmp_path / number).read_text().splitlines()])
    ids = [{record["run_id"] for record in records} for records in runs]
    sources = [set(re.findall('"service.instance.id","value":{"stringValue":"([0-9a-f]*)"', (tmp_path / f"{number}.otlp").read_text()))
               for number in "12"]
    for one, other in (ids, sources):
        assert len(one) == len(other) == 1 and one != other
    first, second = ([record["value"] for record in records if record["type"] == "count"] for records in runs)
    assert first and first == second


def test_a_refused_run_has_its_own_status_and_words(nhmtap, tmp_path):
    result = nhmtap("stat", "--machine=westmere", "--format", "nosuch", "-o", "never", "--", "true", cwd=tmp_path)
    assert result.status == 1 and "'nosuch'" in result.err and "never" not in result.err
    assert not (tmp_path / "never").exists()


@pytest.fixture
def public():
    """A folder that everybody can use; those of pytest are its caller's."""
    with tempfile.TemporaryDirectory(prefix="nhmtap-") as folder:
        path = pathlib.Path(folder)
        path.chmod(0o777)
        yield path


def test_an_ordinary_user_measures_on_the_machine(public):
    """He is root there, and nowhere else."""
    done = subprocess.run([NHMTAP, "profile", "--machine", "-e", "instructions:u", "-c", "1000", "-o", "p.json", "--", "id", "-u"],
                          cwd=public, user="nobody", group="nogroup", extra_groups=[], capture_output=True, text=True,
                          check=False, env={**os.environ, "HOME": "/"})
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
    assert sum(json.loads(line).get("samples", {}).get("aggregated", 0) for line in open(public / "p.json", encoding="utf-8")) > 50
    assert (public / "p.json").owner() == "nobody"


@pytest.mark.parametrize("driver", [[NHMTAP, "machine"], [os.path.join(manual.ROOT, "user/machine/run"), "--here"]], ids=["nhmtap", "run"])
@pytest.mark.parametrize("redirections", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_here_is_closed_there(driver, redirections):
    """The same command shows here what it is to see there. The shell's status tells which of its calls worked."""
    command = ["/bin/sh", "-c", "/bin/cat; a=$?; echo output; b=$?; echo errors >&2; exit $((a + 2 * b + 4 * $?))"]
    here, there = (subprocess.run(["sh", "-c", f'"$@" {redirections}', "sh", *before, *command], capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, check=False) for before in ([], [*driver, "--"]))
    assert here.returncode
    assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)


def build_folder():
    """As make calls it: by another name of it the program would be linked again, while other tests run it."""
    return f"O={os.path.relpath(os.path.dirname(NHMTAP), manual.ROOT)}"


def test_the_demo_ends_with_a_histogram_of_load_latencies():
    """Of a program that walks lists as large as a level of the caches. What the demo needs is built already."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run(["make", "-s", "demo", build_folder()], cwd=manual.ROOT, env=env,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    last = done.stdout.rpartition("$ nhmtap mem --machine")[2]
    assert re.search(r"^# emulated machine \(ep, ", last, re.M)
    rows = dict(re.findall(r"^(l3_hit|local_dram_exclusive) +\d+ .* ([^ ]+)$", last, re.M))
    assert len(rows) == 2 and all(set(row) & set("▁▂▃▄▅▆▇█") for row in rows.values())


def test_the_machines_debian_package_states_its_parts_and_works_where_it_is_unpacked(tmp_path):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "NHM"))}
    built = {"NHM_BUILD": os.environ["NHM_BUILD"]} if "NHM_BUILD" in os.environ else {}
    made = subprocess.run(["make", "-s", "deb-machine", build_folder()], cwd=manual.ROOT, env=env | built,
                          capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    [package] = pathlib.Path(os.path.dirname(NHMTAP), "deb", "machine").glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", package, tmp_path], check=True)
    top = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.glob("*/*"))
    assert top == ["usr/lib", "usr/share"]  # no kernel in /boot
    assert (tmp_path / "usr/lib/nhmtap/machine/examples/Makefile").is_file()
    stated = (tmp_path / "usr/share/doc/nhmtap-machine/copyright").read_text()
    assert "Bochs 3.0 (LGPL-2.1-or-later" in stated and stated.count("GPL-2.0-only), a file of the machine: Debian package linux-image-") >= 1
    for name in re.findall("see copyrights/(.*)", stated):
        assert (tmp_path / "usr/share/doc/nhmtap-machine/copyrights" / name).stat().st_size
    assert {"busybox-static", "bochsbios", "vgabios", "libc6-dev"} <= set(re.findall("see copyrights/(.*)", stated))
    ran = subprocess.run([NHMTAP, "machine", "--no-snapshot", "--", "grep", "-c", "X5570", "/proc/cpuinfo"], capture_output=True, text=True,
                         check=False, env=env | {"NHMTAP_MACHINE": str(tmp_path / "usr/lib/nhmtap/machine")})
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr
