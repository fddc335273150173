# SPDX-License-Identifier: GPL-2.0-only
"""nhmtap under each setting of perf_event_paranoid and kptr_restrict: what works, and who sees the kernel's addresses."""
import re

import pytest
from records import check_stream, parse

KERNEL_ADDRESS = re.compile("ffff[89a-f][0-9a-f]{11}")


def run(bench, command, **options):
    """Status, and the records."""
    result = bench.run(f"nhmtap {command}", **options)
    found = parse(result.stdout)
    check_stream(found)
    return result.status, found


def hide(bench, level):
    bench.say(f"echo {level} > /proc/sys/kernel/kptr_restrict")


@pytest.mark.parametrize("level, counted", [(0, "page-faults"), (1, "page-faults"), (2, "page-faults:u"), (3, None)])
def test_what_a_user_may_count_is_up_to_the_level_and_no_record_of_his_has_a_kernel_address(guest, level, counted):
    for hiding in 0, 1, 2:
        hide(guest, hiding)
        status, found = run(guest, "stat --format json -e page-faults -- true", user="user", paranoid=level)
        assert [r["event"] for r in found if r["type"] == "count"] == [counted] * (status == 0)
        assert (status == 0) == (counted is not None)
        doctor = run(guest, "doctor --format json --need stat", user="user", paranoid=level)[1]
        refusal = run(guest, "profile --format json -e page-faults -- true", user="user", paranoid=level)
        assert refusal[0] == 2
        assert not KERNEL_ADDRESS.search(str(found + doctor + refusal[1]))


def test_the_kernels_addresses_are_in_records_of_its_own_side_alone_whatever_is_hidden(guest):
    for hiding in 0, 1, 2:
        hide(guest, hiding)
        both, users = (run(guest, f"profile --format json -e {event} -c 5000 --by symbol,ip -- float", paranoid=3)
                       for event in ("instructions", "instructions:u"))
        assert both[0] == users[0] == 0
        assert KERNEL_ADDRESS.search(str(both[1])) and not KERNEL_ADDRESS.search(str(users[1]))
        assert any("symbol" in entry["code"] for r in users[1] if r["type"] == "profile" for entry in r["entries"])


# Everything that has addresses of code, with events of the user's side. `branch --trace` is left
# out: BTS records the kernel's end of a branch between the sides, and the kernel refuses BTS to a
# user who may not see that (bts_event_init()).
USERS_SIDE = ("profile -g -e instructions:u -c 5000 --by symbol,ip", "mem --side u --ldlat 3 -c 50 --by ip,cacheline",
              "mem --side u --ldlat 3 -c 50 --by ip --stream", "branch --filter any,u -e branches:u -c 1009 --by edge,range",
              "branch --filter any,u -e branches:u -c 1009 -g --by edge", "offcore --side u")


@pytest.mark.parametrize("command", USERS_SIDE)
def test_no_record_of_the_users_side_has_an_address_of_the_kernel(guest, command):
    status, found = run(guest, f"{command} --format json -- kinds", paranoid=-1)
    assert status == 0 and any(r["type"] == command.split()[0] for r in found)
    assert not KERNEL_ADDRESS.search(str(found))
