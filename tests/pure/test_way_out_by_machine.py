# SPDX-License-Identifier: GPL-2.0-only
"""A refusal for want of a PMU, or of a kind of one, names --machine with the model that has it; but not on the emulated
machine itself."""
import pytest
from hosts import NEHALEM, WITHOUT_PMU

EMULATED = {"cpuid": "   0x4e480000 0x00: eax=0x4e480002 ebx=0x456d686e ecx=0x616c756d edx=0x6e6f6974\n"
                     "   0x4e480001 0x00: eax=0x00007065 ebx=0x00000000 ecx=0x00000000 edx=0x00000000\n"}
ASKED = [
    (WITHOUT_PMU, ["stat", "-e", "cycles"], "use cpu-clock, --machine"),
    (WITHOUT_PMU, ["profile", "-e", "instructions"], "use cpu-clock, --machine"),
    (WITHOUT_PMU, ["stat", "-M", "ipc"], "use cpu-clock, --machine"),
    (WITHOUT_PMU, ["branch"], "use cpu-clock, --machine"),
    (WITHOUT_PMU, ["mem"], "; or measure on an emulated machine: --machine"),
    (WITHOUT_PMU, ["mem", "--stores"], "; or measure on an emulated machine: --machine=sandybridge"),
    (NEHALEM, ["mem", "--stores"], "; or measure on an emulated machine: --machine=sandybridge"),
    (WITHOUT_PMU, ["offcore"], "use --machine for an emulated Nehalem"),
    (WITHOUT_PMU, ["stat", "-e", "MEM_LOAD_RETIRED.LLC_MISS"], "; or an emulated machine that has it: --machine=ep"),
    (NEHALEM, ["stat", "-e", "MEM_UOPS_RETIRED.ALL_LOADS"], "; or an emulated machine that has it: --machine=sandybridge"),
]


@pytest.mark.parametrize("machine, arguments, way", ASKED, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_a_refusal_names_the_machine(nhmtap, host, machine, arguments, way):
    command, *rest = arguments
    result = nhmtap(command, host(machine), *rest, "--", "true")
    assert result.status == 2
    assert way in result.one("error")["remedy"]


@pytest.mark.parametrize("machine, arguments, way", ASKED, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_on_the_machine_it_does_not(nhmtap, host, machine, arguments, way):
    command, *rest = arguments
    result = nhmtap(command, host(machine, EMULATED), *rest, "--", "true")
    assert result.status == 2
    assert "--machine" not in result.one("error").get("remedy", "")


def test_doctor_names_the_machine(nhmtap, host):
    result = nhmtap("doctor", "--need", "stat", host(WITHOUT_PMU))
    assert result.status == 2
    assert "use cpu-clock, --machine" in result.one("facility", name="stat")["remedy"]
