# SPDX-License-Identifier: GPL-2.0-only
"""Counts of a command, or of a block of one's own code, to be asserted on:

    import nhmtap

    def test_sorting_stays_in_memory():
        run = nhmtap.stat(["sort", "words"], events=["page-faults"], metrics=["ipc"])
        assert run["page-faults"] < 5000
        assert run["ipc"] > 0.8

    def test_parsing_allocates_little():
        with nhmtap.measure("page-faults", "instructions:u") as m:
            parse(TEXT)
        assert m["page-faults"] < 1000

A count that was estimated, because its event shared a counter, compares as far as its bound tells:
where the limit is within the bound, a comparison raises CannotTell instead of an answer. A machine
that does not have an event raises Refused, with the reason and what mends it.

profile() gives the functions of a command with their shares, mem() where its loads found their data.
find() says which program nhmtap is run. The pytest plugin (nhmtap.plugin) adds a fixture of the same
functions, the marker expect, baselines and reports; see its docstring.
"""
from .errors import CannotTell, Ended, Error, Refused, Timeout
from .inprocess import Measurement, measure
from .measured import Measured, over_repeats
from .program import Program, find
from .runs import Counts, Mem, Profile, Run, mem, profile, stat
from .version import __version__

__all__ = ["CannotTell", "Counts", "Ended", "Error", "Measured", "Measurement", "Mem", "Profile",
           "Program", "Refused", "Run", "Timeout", "__version__", "find", "measure", "mem",
           "over_repeats", "profile", "stat"]
