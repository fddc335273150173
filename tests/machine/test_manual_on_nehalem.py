# SPDX-License-Identifier: GPL-2.0-only
"""The manual's examples that need a Nehalem, on the emulated one."""
import manual
import pytest

EXAMPLES = manual.examples("nehalem#")


def test_there_are_examples_of_what_needs_the_pmu():
    assert {"nhmtap-mem.md", "nhmtap-offcore.md", "nhmtap-branch.md", "nhmtap-stat.md"} <= {name for name, _ in EXAMPLES}


@pytest.mark.modules("intel-uncore")
@pytest.mark.parametrize("command", [command for _, command in EXAMPLES])
def test_an_example_works(guest, command):
    done = guest.run(command)
    assert done.status == 0, done.stderr
