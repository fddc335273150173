# SPDX-License-Identifier: GPL-2.0-only
"""The bytes that the kernel side has written, as they are in nhmtap's memory. Bytes of no member,
and of members that were not asked for, are zero, whatever was on the BPF program's stack.
tests/pure/test_holes.py lists the bytes of no member."""
import re
import subprocess
import sys

import pytest

import holes
from memory import possible_cpus
from records import NHMTAP

LONG = b"F" * 15
# Has page faults under a name of 15 letters, then under one of a single letter, behind which the
# rest of the first may remain.
RENAMED = """
import mmap
for name in "F" * 15, "b":
    open("/proc/self/comm", "w").write(name)
    pages = mmap.mmap(-1, 64 * 4096)
    for at in range(0, len(pages), 4096):
        pages[at] = 1
print("ready", flush=True)
input()
"""


def mapped(pid, size):
    """Returns the bytes of the mapped BPF map that has this size."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as file:
        places = [[int(text, 16) for text in re.match("(.*?)-(.*?) ", line).groups()] for line in file if "bpf-map" in line]
    begin, end = next(place for place in places if place[1] - place[0] == -(-size // 4096) * 4096)
    with open(f"/proc/{pid}/mem", "rb") as file:
        file.seek(begin)
        return file.read(end - begin)


@pytest.mark.parametrize("command, always", [("profile", []), ("mem", ["source"])])
def test_a_slot_holds_what_was_asked_for_and_zeros(tmp_path, command, always):
    parts = {(part.struct, part.member): part for part in holes.told(tmp_path)
             if (part.what, part.object, part.map) == ("member", command, "tables")}
    slots, comm, value = parts["table", "slots"], parts["key", "comm"], parts["slot", "value"]
    used = [comm, value, *(parts["key", member] for member in always)]
    # With so much memory, tables are whole however many CPUs there are.
    with subprocess.Popen([NHMTAP, command, "-e", "page-faults:u", "-c", "1", "--by", "comm", "--memory", "8G", "-o", tmp_path / "out", "--",
                           sys.executable, "-c", RENAMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        size = slots.offset + slots.size  # a CPU's table ends with its slots
        tables = mapped(process.pid, size * possible_cpus())
        process.communicate(b"\n")
    assert process.returncode == 0
    step = parts["slot", "key"].size + value.size
    step += -step % 64
    names = set()
    for table in range(0, size * possible_cpus(), size):
        for at in range(table + slots.offset, table + size, step):
            slot = bytearray(tables[at:at + step])
            name = bytes(slot[comm.offset:comm.offset + comm.size])
            names.add(name)
            assert not any(name[name.index(0):])
            for part in used:
                slot[part.offset:part.offset + part.size] = bytes(part.size)
            assert not any(slot)
    assert {LONG + b"\0", b"b".ljust(16, b"\0")} <= names
