# SPDX-License-Identifier: GPL-2.0-only
"""A hundred short sessions among whatever their seeds choose: tests/lib/seeded.py. `make search` tries others.
NHMTAP_SEED=N NHMTAP_RUNS=1 repeats the one that failed."""
import os

import pytest

from records import build_shim
from seeded import Seeded

SEED = int(os.environ.get("NHMTAP_SEED", "2009"))
RUNS = int(os.environ.get("NHMTAP_RUNS", "100"))
AT_ONCE = 4

pytestmark = pytest.mark.plain  # it is about calls that fail, and time


@pytest.fixture(scope="module")
def shims(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shims")
    return [build_shim(name, str(folder)) for name in ("set_clock", "fail_calls")]


@pytest.mark.parametrize("first", range(SEED, SEED + RUNS, AT_ONCE))
def test_whatever_happens_to_a_session_its_accounts_close(nhmtap, tmp_path, shims, first):
    for seed in range(first, min(first + AT_ONCE, SEED + RUNS)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        seeded = Seeded(nhmtap, folder, seed, shims)
        print(f"again: NHMTAP_SEED={seed} NHMTAP_RUNS=1")  # shown if it fails
        done, result = seeded.run()
        assert not (wrong := seeded.judge(result)), f"{wrong} after {done}"
