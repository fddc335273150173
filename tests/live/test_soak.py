# SPDX-License-Identifier: GPL-2.0-only
"""Some seconds of `make soak`, which runs as long as it is asked to: each kind of trouble comes several times."""
import contextlib

from soak import Soak, judge


def test_a_session_among_everything_that_may_happen_stays_true():
    soak = Soak(16, seed=1)
    with contextlib.closing(soak):
        figures, wrong = judge(soak, soak.run())
    assert not wrong, figures
    assert all(figures["times"].values()), "something did not happen"
