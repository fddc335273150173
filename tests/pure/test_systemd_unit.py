# SPDX-License-Identifier: GPL-2.0-only
"""The systemd unit of the Debian package, checked by systemd-analyze without a running systemd."""
import json
import os
import subprocess

import pytest
from records import NHMTAP

PACKAGING = os.path.join(os.path.dirname(__file__), "..", "..", "user", "packaging", "debian")

# Exposure, from 0 to 10, in tenths, as systemd 252 rates the unit: 2.9. nhmtap needs what remains exposed: its five capabilities, other
# users' processes and files, the kernel's symbols, and sockets.
MOST_EXPOSED = 29


@pytest.fixture
def unit(tmp_path):
    """The unit, with the path of the program that was built."""
    with open(os.path.join(PACKAGING, "nhmtap.service"), encoding="utf-8") as file:
        text = file.read()
    path = tmp_path / "nhmtap.service"
    path.write_text(text.replace("/usr/bin/nhmtap", os.path.abspath(NHMTAP)))
    return path


def analyze(*arguments):
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False, timeout=120)


def test_the_unit_is_without_a_mistake(unit):
    done = analyze("verify", "--man=no", "--recursive-errors=no", unit)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_mistake_in_the_unit_would_be_seen(unit):
    unit.write_text(unit.read_text().replace("ProtectSystem=strict", "ProtectSystem=stirct"))
    assert "stirct" in analyze("verify", "--man=no", "--recursive-errors=no", unit).stderr


def test_the_unit_is_no_more_exposed_than_it_has_to_be(unit):
    done = analyze("security", "--offline=yes", f"--threshold={MOST_EXPOSED}", unit)
    assert done.returncode == 0, done.stdout


def test_the_unit_waits_until_the_program_measures_and_watches_it(unit):
    lines = unit.read_text().splitlines()
    assert "Type=notify" in lines and any(line.startswith("WatchdogSec=") for line in lines)


def test_a_crash_leaves_no_file_with_the_headers_of_a_push(unit):
    assert "LimitCORE=0" in unit.read_text().splitlines()


def test_the_configuration_that_comes_with_it_is_valid(nhmtap):
    config = os.path.join(PACKAGING, "config.json")
    result = nhmtap("run", "--check", config)
    assert (result.status, result.err) == (0, "")
    with open(config, encoding="utf-8") as file:
        assert all(output["path"].startswith("/var/log/nhmtap/") for output in json.load(file)["outputs"])
