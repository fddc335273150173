# SPDX-License-Identifier: GPL-2.0-only
"""System calls that fail: no hang, no crash, a documented status, and records that are whole.

The n-th call of a kind fails with an error, be it one that the call can return or not.
NHMTAP_EVERY=1 tries every call with every error, which takes hours; otherwise some are tried, and more
of them by `make search`.
"""
import os

import pytest
from attacked import EACH_COMMAND, SEED, Attacked, Calls

TRIED = None if os.environ.get("NHMTAP_EVERY") else 10 if SEED else 4

pytestmark = pytest.mark.plain  # sanitizers make calls of their own


@EACH_COMMAND
def test_whatever_call_fails_it_ends_with_a_message_and_whole_records(tmp_path, command):
    calls = Calls(Attacked(tmp_path, command))
    injected, found = calls.try_them(calls.spread(TRIED))
    assert not found, "\n".join(found)
    assert injected > TRIED if TRIED else injected
