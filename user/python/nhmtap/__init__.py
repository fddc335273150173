# SPDX-License-Identifier: GPL-2.0-only
"""Counts of a command, or of a block of the caller's code, for use in assertions:

    import nhmtap

    def test_sorting_stays_in_memory():
        run = nhmtap.stat(["sort", "words"], events=["page-faults"], metrics=["ipc"])
        assert run["page-faults"] < 5000
        assert run["ipc"] > 0.8

    def test_parsing_allocates_little():
        with nhmtap.measure("page-faults", "instructions:u") as m:
            parse(TEXT)
        assert m["page-faults"] < 1000

A count is an estimate with a bound if its event shared a counter. A comparison with a number within
the bound raises CannotTell. An event that the machine does not have raises Refused, with the reason
and a remedy.

profile() returns the functions of a command with their shares, mem() where its loads found their
data, and analyze() where its cycles go. find() returns the program nhmtap that is run. The pytest
plugin (nhmtap.plugin) adds a fixture with the same functions, the marker expect, baselines and
reports; see its docstring.
"""
from .errors import CannotTell, Ended, Error, Refused, Timeout
from .inprocess import Measurement, measure
from .measured import Measured, over_repeats
from .program import Program, find
from .runs import Analysis, Counts, Mem, Profile, Run, analyze, mem, profile, stat
from .version import __version__

__all__ = ["Analysis", "CannotTell", "Counts", "Ended", "Error", "Measured", "Measurement", "Mem", "Profile",
           "Program", "Refused", "Run", "Timeout", "__version__", "analyze", "find", "measure", "mem",
           "over_repeats", "profile", "stat"]
