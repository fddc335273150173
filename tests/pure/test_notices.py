# SPDX-License-Identifier: GPL-2.0-only
"""Notices of CPUs that go offline or online reach all listeners, whichever of them takes them."""
import pytest
from compiled import compiled

ONLINE, OFFLINE = ("says {}@/devices/system/cpu/cpu1".format(change) for change in ("online", "offline"))


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """The listeners called at each step other than a notice: {listener: CPUs that have gone}."""
    program = compiled(tmp_path_factory.mktemp("notices"), "notices")
    return lambda *steps: [dict(one.split(":") for one in line.split())
                           for line in program("\n".join(steps) + "\n").splitlines()]


@pytest.mark.parametrize("notice, gone", [(ONLINE, "-"), (OFFLINE, "1")])
@pytest.mark.parametrize("step", ["loop", "takes first", "takes second"])
def test_all_are_called_whoever_takes_a_notice(called, notice, gone, step):
    assert called(notice, step) == [{"first": gone, "second": gone}]


def test_a_cpu_that_has_gone_and_come_is_told_once_as_gone(called):
    assert called(OFFLINE, ONLINE, "takes first", "loop") == [{"first": "1", "second": "1"}, {}]


def test_one_that_takes_where_there_is_no_notice_is_called_alone(called):
    assert called("takes first", "takes second") == [{"first": "-"}, {"second": "-"}]


@pytest.mark.parametrize("step, found", [("loop", {}), ("takes first", {"first": "-"})])
def test_notices_of_other_devices_call_nobody(called, step, found):
    assert called("says add@/devices/virtual/block/loop0", "says change@/devices/system/cpu", step) == [found]
