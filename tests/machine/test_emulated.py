# SPDX-License-Identifier: GPL-2.0-only
"""What is measured on the emulated machine says so, in every format: its cycles and latencies are a model's, and nobody
may take them for silicon's."""
import json
import pathlib
import re

import pprof
import pytest

from records import check_stream, parse

WORDS = r"emulated machine \(ep, version [0-9a-f]{12}\)"
# One kind each of what is written: a record, a page, a row, a table, a profile.
OUTPUTS = "-o json=j -o table=t -o flat=f -o openmetrics=m -o prometheus=p -o otlp=o -o pprof=g"


@pytest.fixture
def written(guest, tmp_path):
    """A function that returns the content of a file of one run with all outputs."""
    guest.say(f"nhmtap profile -e instructions:u -c 1000 -g {OUTPUTS} -- ls /bin && nhmtap flamegraph -o page --title Own j",
              paranoid=-1)
    return lambda name: pathlib.Path(guest.fetch(name, tmp_path))


def test_every_output_says_that_the_machine_is_emulated(written):
    records = parse(written("j").read_text())
    check_stream(records)
    emulated = records[0]["host"]["emulated"]
    assert emulated["model"] == "ep" and re.fullmatch("[0-9a-f]{12}", emulated["version"])

    table = written("t").read_text()
    assert len(re.findall(WORDS, table)) == 1 and re.match(f"# {WORDS}: cycles and latencies are a model's\n", table)
    assert {json.loads(line)["host.emulated.model"] for line in written("f").read_text().splitlines()} == {"ep"}
    for page in "mp":
        assert f'nhmtap_host_emulated_info{{model="ep",version="{emulated["version"]}"}} 1\n' in written(page).read_text()
    for line in written("o").read_text().splitlines():
        attributes = {a["key"]: a["value"] for a in json.loads(line)["resourceMetrics"][0]["resource"]["attributes"]}
        assert attributes["host.emulated.model"] == {"stringValue": "ep"}
        assert attributes["host.emulated.version"] == {"stringValue": emulated["version"]}
    profile = pprof.read(written("g"))
    assert profile.string_table[profile.comment[0]] == f"emulated machine: model ep, version {emulated['version']}"
    assert '"title":"Own (emulated machine: ep)"' in written("page").read_text()
