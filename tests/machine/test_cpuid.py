# SPDX-License-Identifier: GPL-2.0-only
"""CPUID of the emulated processors against that of real ones: two Xeon X5550 and two X5650, as hwloc's archives
have it (tests/hwloc/x86 in its source, Intel-Nehalem-2xXeon-X5550 and Intel-Westmere-2xXeon-X5650)."""
import re

import pytest

import records

# (leaf, sub): EAX, EBX, ECX, EDX; None: of no concern here. Of leaf 1 the signature, and of EBX the logical
# processors that a package has numbers for; APIC ids are below.
X5550 = {
    (1, 0): (0x106A5, 0x100800, None, None),
    (2, 0): (0x55035A01, 0x00F0B2E4, 0, 0x09CA212C),
    (4, 0): (0x1C004121, 0x01C0003F, 0x03F, 0),
    (4, 1): (0x1C004122, 0x00C0003F, 0x07F, 0),
    (4, 2): (0x1C004143, 0x01C0003F, 0x1FF, 0),
    (4, 3): (0x1C03C163, 0x03C0003F, 0x1FFF, 2),
    (0xA, 0): (0x07300403, 0x44, 0, 0x603),
    (0xB, 0): (1, 2, 0x100, None),
    (0xB, 1): (4, 8, 0x201, None),
    (0xB, 2): (0, 0, 2, None),
}
# Its third-level cache is another size than the emulated one.
X5650 = {
    (1, 0): (0x206C2, 0x200800, None, None),
    (4, 0): (0x3C004121, 0x01C0003F, 0x03F, 0),
    (4, 1): (0x3C004122, 0x00C0003F, 0x07F, 0),
    (4, 2): (0x3C004143, 0x01C0003F, 0x1FF, 0),
    (4, 3): (0x3C07C163, 0x03C0003F, None, 2),
    (0xA, 0): (0x07300403, 0x04, 0, 0x603),
    (0xB, 0): (1, 2, 0x100, None),
    (0xB, 1): (5, 12, 0x201, None),
    (0xB, 2): (0, 0, 2, None),
}
X5550_IDS = [*range(8), *range(0x10, 0x18)]
X5650_IDS = [0, 1, 2, 3, 4, 5, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15]  # of one package


def leaves(bench):
    """{CPU: {(leaf, sub): [EAX, EBX, ECX, EDX]}}"""
    found = {}
    for line in bench.say("cpuid").splitlines():
        cpu, leaf, sub, *words = (int(word, 0) for word in re.findall(r"(?<![a-z])(?:0x[0-9a-f]+|\d+)", line))
        found.setdefault(cpu, {})[leaf, sub] = words
    return found


@pytest.mark.parametrize("kind, real, ids", [
    ({"packages": 2, "cores": 4, "threads": 2}, X5550, X5550_IDS),
    ({"model": "westmere-dp", "cores": 6, "threads": 2}, X5650, X5650_IDS),
], ids=["two X5550", "an X5650"])
def test_cpuid_is_that_of_a_real_machine(machines, kind, real, ids):
    bench = machines(**kind, memory=512)
    found = leaves(bench)
    assert [found[cpu][1, 0][1] >> 24 for cpu in sorted(found)] == ids
    for cpu, its in found.items():
        its[1, 0][1] &= 0xFFFFFF
        for leaf, words in real.items():
            assert [word if known is not None else None for word, known in zip(its[leaf], words)] == list(words), (cpu, leaf)
        if (0xB, 0) in its:
            assert {its[0xB, sub][3] for sub in range(3)} == {ids[cpu]}
    # Cores are told apart by numbers that have gaps.
    said = bench.say("nhmtap stat -a -e cpu-clock --per core --duration 0.01", paranoid=-1)
    cores = [(r["socket"], r["core"]) for r in records.parse(said) if r["type"] == "count"]
    assert sorted(cores) == sorted({(id >> real[0xB, 1][0], (id & (1 << real[0xB, 1][0]) - 1) >> 1) for id in ids})
