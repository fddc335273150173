# SPDX-License-Identifier: GPL-2.0-only
"""Every output of a run gives each function the weight that it has by construction, however the samples were asked for. On
hardware events: machine/test_weights_on_nehalem.py."""
import os
import subprocess

import pytest
import weights
from records import parse

pytest_plugins = "browser"
pytestmark = pytest.mark.xdist_group("browser")

# thick() takes three times the faults of thin(), and they take turns. thin() needs longer for each, so that with a frequency
# its samples stand for fewer.
TURNS, THICK, THIN, LONGER = 20, 3000, 1000, 20000
SHARE = THICK / (THICK + THIN)
SOURCE = f"""
#include <stdlib.h>
#include <sys/mman.h>
static char *at;
__attribute__((noinline)) void thick(long n)
{{
	while (n--)
		*(volatile char *)(at += 4096) = 1;
}}
__attribute__((noinline)) void thin(long n)
{{
	while (n--) {{
		for (volatile int i = 0; i < {LONGER}; i++)
			;
		*(volatile char *)(at += 4096) = 2;
	}}
}}
int main(int argc, char **argv)
{{
	for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : {TURNS}); i++) {{
		long size = {THICK + THIN + 2} * 4096;
		char *all = at = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(all, size, MADV_NOHUGEPAGE);
		thick({THICK});
		thin({THIN});
		munmap(all, size);
	}}
	return 0;
}}
"""
EVENT = ["-e", "page-faults:u"]
WAYS = {"every": ["-c", "1"], "period": ["-c", "7"], "frequency": ["-F", "4999"], "share": ["-c", "1", "--cpu-share", "20%"]}
# By chance a frequency, which the kernel finds in the run, and a share give some samples of large periods.
TOLERANCE = {"every": 0.005, "period": 0.01, "frequency": 0.1, "share": 0.1}
OF_ONE_INTERVAL = ("pprof", "otlp-profiles", "callgrind", "firefox", "speedscope")
ROUNDED = 0.002  # shares of a table, with a tenth of a percent


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    path = tmp_path_factory.mktemp("uneven") / "uneven"
    subprocess.run(["gcc", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-ipa-icf", "-x", "c", "-", "-o", path], input=SOURCE, text=True,
                   check=True)
    return path


def measure(nhmtap, folder, command, way, forms, program, *more, turns=TURNS):
    paths = {form: os.fspath(folder / f"out.{form}") for form in forms}
    result = nhmtap(command, *EVENT, *WAYS[way], *more, *weights.series(forms),
                    *(f"--output={form}={path}" for form, path in paths.items()), "--", program, turns)
    assert result.status == 0, result.err
    return paths


def agreed(paths, driver, **named):
    """The share of the first function in all outputs of a run, which agree."""
    found = weights.shares(paths, "thick", "thin", driver, **named)
    assert all(abs(share - found["json"]) < ROUNDED for share in found.values()), found
    assert len({sum(weight for _, weight in weights.pairs(form, path)) for form, path in paths.items()}) == 1
    return found["json"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", ["profile", "mem"])
def test_every_format_and_every_view_gives_the_shares_that_the_program_has(nhmtap, tmp_path, uneven, driver, command, way):
    paths = measure(nhmtap, tmp_path, command, way, weights.OF_FORMATS, uneven, "--by", "stack")
    assert abs(agreed(paths, driver) - SHARE) < TOLERANCE[way]


@pytest.mark.parametrize("way", WAYS)
def test_several_intervals_in_a_file_or_a_folder_weigh_the_same_in_every_output(nhmtap, tmp_path, uneven, driver, way):
    paths, outputs = {}, []
    for form in weights.OF_FORMATS:
        folder = form in OF_ONE_INTERVAL
        (tmp_path / form).mkdir()
        paths[form] = os.fspath(tmp_path / form / ("" if folder else "all"))
        outputs.append(f"--output={form}={tmp_path / form}/{'%t' if folder else 'all'}")
    result = nhmtap("profile", *EVENT, *WAYS[way], "--by", "stack", "-I", "100", *weights.series(paths), *outputs, "--", uneven, TURNS)
    assert result.status == 0, result.err
    with open(paths["json"], encoding="utf-8") as file:
        records = [record for record in parse(file.read()) if record["type"] == "profile"]
    assert len(records) > 1 and all(len(os.listdir(paths[form])) == len(records) for form in OF_ONE_INTERVAL)
    # Half of an interval is for names, which may not do for the first ones: then both have less than their share.
    assert 0 < agreed(paths, driver, named=0.2) < 1


@pytest.mark.parametrize("way", ["every", "period"])
def test_a_stream_of_samples_gives_these_shares_as_well(nhmtap, tmp_path, uneven, driver, way):
    """Each sample is a record. The last period is not full."""
    paths = measure(nhmtap, tmp_path, "stream", way, weights.OF_STREAMS, uneven, "-g", turns=1)
    with open(paths["json"], encoding="utf-8") as file:
        count, = (record["value"] for record in parse(file.read()) if record["type"] == "stream")
    assert 0 <= count - sum(weight for _, weight in weights.pairs("json", paths["json"])) < int(WAYS[way][1])
    assert abs(agreed(paths, driver) - SHARE) < 0.02


@pytest.mark.parametrize("way", WAYS)
def test_annotated_code_weighs_what_the_function_weighs(nhmtap, tmp_path, uneven, way):
    paths = measure(nhmtap, tmp_path, "profile", way, ["json"], uneven, "--annotate", "thick")
    with open(paths["json"], encoding="utf-8") as file:
        found = parse(file.read())
    whole = sum(entry["period"] for r in found if r["type"] == "profile" for entry in [*r["entries"], r.get("rest", {"period": 0})])
    annotations = [r for r in found if r["type"] == "annotation"]  # of many instructions in parts
    assert all(sum(line.get("period", 0) for line in r["instructions"]) <= r["period"] for r in annotations)
    lines = sum(line.get("period", 0) for r in annotations for line in r["instructions"])
    assert abs(lines / whole - SHARE) < TOLERANCE[way]
