# SPDX-License-Identifier: GPL-2.0-only
"""CPUID of the emulated processors against that of real ones: two Xeon X5550 and two X5650, as hwloc's archives
have it (tests/hwloc/x86 in its source, Intel-Nehalem-2xXeon-X5550 and Intel-Westmere-2xXeon-X5650)."""
import re

import pytest

import known
import records
from guests import nhmtap

# (leaf, sub): EAX, EBX, ECX, EDX; None: not compared. Leaf 1 has the signature, and in EBX the
# number of APIC ids of a package; the APIC ids are below.
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
# Its third-level cache has another size than the emulated one.
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


TWO_X5550 = {"packages": 2, "cores": 4, "threads": 2, "memory": 512}
AN_X5650 = {"model": "westmere-dp", "cores": 6, "threads": 2, "memory": 512}


def of_machines(names, *rows):
    """Tests of both machines; each boots in one worker."""
    return pytest.mark.parametrize(names, [pytest.param(*row, id=name, marks=pytest.mark.xdist_group(name))
                                           for name, row in zip(("two X5550", "an X5650"), rows)])


@of_machines("kind, real, ids", (TWO_X5550, X5550, X5550_IDS), (AN_X5650, X5650, X5650_IDS))
def test_cpuid_is_that_of_a_real_machine(machines, kind, real, ids):
    bench = machines(**kind)
    found = leaves(bench)
    assert [found[cpu][1, 0][1] >> 24 for cpu in sorted(found)] == ids
    for cpu, its in found.items():
        its[1, 0][1] &= 0xFFFFFF
        for leaf, words in real.items():
            assert [word if known is not None else None for word, known in zip(its[leaf], words)] == list(words), (cpu, leaf)
        if (0xB, 0) in its:
            assert {its[0xB, sub][3] for sub in range(3)} == {ids[cpu]}
    # Cores are distinguished although their numbers have gaps.
    said = bench.say("nhmtap stat -a -e cpu-clock --per core --duration 0.01", paranoid=-1)
    cores = [(r["socket"], r["core"]) for r in records.parse(said) if r["type"] == "count"]
    assert sorted(cores) == sorted({(id >> real[0xB, 1][0], (id & (1 << real[0xB, 1][0]) - 1) >> 1) for id in ids})


# Package and core of each CPU as Linux numbered them on real machines. On two X5550 (hwloc's
# archive) the first threads of all cores come first, then their second threads. On two X5650 (a
# boot log; here with one thread a core) the odd CPUs are in the second package, and the numbers of
# the cores have a gap.
@of_machines("kind, places",
             (TWO_X5550, {cpu: (cpu % 8 // 4, cpu % 4) for cpu in range(16)}),
             (AN_X5650, {cpu: (cpu % 2, (0, 1, 2, 8, 9, 10)[cpu // 2]) for cpu in range(12)}))
def test_counts_belong_to_packages_and_cores_however_linux_numbers_the_cpus(machines, kind, places):
    bench = machines(**kind)
    for cpu, (package, core) in places.items():
        siblings = ",".join(str(other) for other in places if places[other] == (package, core))
        bench.say(f"""
            mkdir -p /run/topology/{cpu} && cd /run/topology/{cpu} && echo {core} > core_id && echo {package} > physical_package_id
            echo {siblings} > thread_siblings_list && mount --bind . /sys/devices/system/cpu/cpu{cpu}/topology
        """)
    # MMX operations: no other program has any. CPU 5 runs the program once, CPU 9 twice.
    mmx, n = "r0210:u", known.numbers("float")["FP_COMP_OPS_EXE.MMX"]
    command = "taskset -c 5 float; taskset -c 9 float; taskset -c 9 float"
    expected = dict.fromkeys(places.values(), 0)
    expected[places[5]] += n
    expected[places[9]] += 2 * n
    found = nhmtap(bench, "stat", "-a", "-e", mmx, "--per", "core", "--", "sh", "-c", command)
    assert {(r["socket"], r["core"]): r["value"] for r in found if r["type"] == "count"} == expected
    found = nhmtap(bench, "stat", "-a", "-e", mmx, "--per", "socket", "--", "sh", "-c", command)
    assert {r["socket"]: r["value"] for r in found if r["type"] == "count"} == {
        package: sum(value for (of, _), value in expected.items() if of == package) for package in (0, 1)}
