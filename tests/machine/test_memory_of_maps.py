# SPDX-License-Identifier: GPL-2.0-only
"""What the kernel itself says of the memory of maps, with 16 CPUs."""
import re

import pytest


@pytest.fixture
def sixteen(machines):
    return machines(cores=16)


SIX = "page-faults:u,minor-faults:u,major-faults:u,alignment-faults:u,emulation-faults:u,page-faults:u"


@pytest.mark.parametrize("command", ["profile -g -e page-faults:u -c 1", "mem -e page-faults:u -c 1", f"stream -e {SIX} -c 1"])
def test_maps_of_16_cpus_take_64_MiB_and_no_sample_is_lost(sixteen, command):
    """fdinfo of a map has the bytes that are charged for it (bpf_map_show_fdinfo(), kernel/bpf/syscall.c)."""
    said = sixteen.say(f"nhmtap {command} -a -q -o /run/out -- sh -c 'cat /proc/$PPID/fdinfo/*; doings faults 3000'; "
                       "grep -o '\"lost\":{[^}]*}' /run/out", paranoid=-1)
    maps = [(int(size), int(charged)) for size, charged in re.findall(r"map_type:.*?\nvalue_size:\t(\d+)\n.*?memlock:\t(\d+)\n", said, re.S)]
    assert 16 * 2**20 < sum(charged for _, charged in maps) <= 64 * 2**20, maps
    assert set(re.findall(r'"table_full":(\d+)', said)) == {"0"}, said
