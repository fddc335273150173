# SPDX-License-Identifier: GPL-2.0-only
"""Runs every example of README and of the manual that begins with $, unchanged. test_image.py runs
those with the container image, machine/test_nhmtap_machine.py those on the emulated machine."""
import manual
import pytest

EXAMPLES = manual.examples("$")


def test_readme_and_each_page_have_examples():
    assert len({name for name, _ in EXAMPLES}) >= 15
    assert all("/tmp/" not in command for _, command in EXAMPLES)


@pytest.mark.parametrize("command", [command for _, command in EXAMPLES if not manual.in_container(command)
                                     and not manual.on_machine(command)])
def test_an_example_works(command, tmp_path):
    manual.run(command, tmp_path)


def test_readme_can_be_read_at_one_go():
    assert len(manual.text_of("README.md").splitlines()) <= 200
