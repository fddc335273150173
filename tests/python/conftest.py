# SPDX-License-Identifier: GPL-2.0-only
"""Runs test suites with the plugin."""
import os

import pytest
from records import NHMTAP
from suites import PACKAGE, TOUCH, Outcome


@pytest.fixture
def suite(pytester, monkeypatch):
    """Runs a test file with the plugin: suite(source, options …)."""
    monkeypatch.setenv("PYTHONPATH", PACKAGE)
    monkeypatch.setenv("NHMTAP", os.path.abspath(NHMTAP))
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT",
                 "PYTEST_XDIST_TESTRUNUID", "PYTEST_CURRENT_TEST"):
        monkeypatch.delenv(name, raising=False)
    (pytester.path / "report").mkdir()

    def run(source, *options):
        # Others' plugins are loaded where their options are given: to load all of them takes a sixth of a suite's CPU time.
        of_others = any(option.startswith(("-n", "--reruns")) for option in options)
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "" if of_others else "1")
        pytester.makepyfile(test_it="import os, pytest\n" + TOUCH + source)
        done = pytester.runpytest_subprocess(
            "-p", "nhmtap.plugin", "-p", "no:cacheprovider", "--strict-markers", "-rA",
            "--junitxml=report/junit.xml", "--nhmtap-json=report/tests.jsonl", *options, timeout=240)
        return Outcome(done, pytester.path)
    run.path = pytester.path
    return run
