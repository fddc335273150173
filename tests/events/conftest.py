# SPDX-License-Identifier: GPL-2.0-only
import json
import subprocess

import pytest
from facts import perfmon, read_tsv

from event_tables import CPUS, HERE, ROOT, WARNINGS, Compiled, compile_tables


@pytest.fixture(scope="session")
def known_events_c(tmp_path_factory):
    output = tmp_path_factory.mktemp("compiled") / "known_events.c"
    done = compile_tables(ROOT / "events", output)
    assert done.returncode == 0, done.stderr
    return output


@pytest.fixture(scope="session")
def compiled(known_events_c):
    program = known_events_c.with_name("dump")
    subprocess.run(["gcc", *WARNINGS, "-I", ROOT / "user", "-o", program,
                    HERE / "dump.c", known_events_c], check=True)
    return Compiled(subprocess.run([program], capture_output=True, text=True, check=True).stdout)


@pytest.fixture(scope="session")
def exceptions():
    return json.loads((HERE / "exceptions.json").read_text(encoding="utf-8"))


@pytest.fixture(params=CPUS)
def cpu(request):
    return request.param


@pytest.fixture
def facts():
    return perfmon


@pytest.fixture
def libpfm4():
    return [{**row, "config": int(row["config"], 0)} for row in read_tsv("libpfm4-nehalem.tsv")]
