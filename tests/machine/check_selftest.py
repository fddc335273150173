# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap doctor --selftest on broken machines: the test named in a row of mutants.py notices the
fault of that row. An emulator is built for each fault."""
import contextlib
import fcntl
import os

import pytest

import mutants
import nehalem
import records
from guests import tool
from test_selftest import MODELS


@contextlib.contextmanager
def alone():
    """Lets one process at a time build in the emulator's folder."""
    with open(nehalem.build_folder() + "/mutants.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def emulator(request, tmp_path, monkeypatch):
    with alone():
        mutants.build(request.param, str(tmp_path))
    path = f"{tmp_path}/{request.param.name}"
    monkeypatch.setenv("NHM_BOCHS", path)
    yield
    os.remove(path)


@pytest.mark.parametrize("mutant, emulator", [pytest.param(m, m, id=m.name) for m in mutants.MUTANTS if m.selftest],
                         indirect=["emulator"])
def test_a_fault_of_the_machine_is_noticed(emulator, mutant):
    test, _, model = mutant.selftest.partition("@")
    kind, lacks = MODELS[model or "nehalem"]
    assert test not in lacks
    with nehalem.Guest(nehalem.Machine(add=(tool(), tool() + "-known"), rounded=True, **kind)) as guest:
        guest.run("insmod /lib/modules/intel-uncore.ko")
        result = guest.run("/opt/nhmtap", "doctor", "--selftest", "--only", test, "--format", "json", paranoid=-1)
    found, = (r for r in records.parse(result.stdout) if r["type"] == "selftest")
    # A test is left out if the fault removes the facility that it needs.
    assert found["name"] == test and found["verdict"] in ("failed", "left_out"), str(result)
