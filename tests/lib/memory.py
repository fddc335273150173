# SPDX-License-Identifier: GPL-2.0-only
"""Limits of memory, and the memory of a process's cgroup."""
import contextlib
import math
import os

import pytest

import cgroups


def possible_cpus():
    with open("/sys/devices/system/cpu/possible", encoding="ascii") as file:
        return int(file.read().strip().rpartition("-")[2]) + 1


# MiB, what a run without --memory takes at most: 64 on two CPUs; further ones have tables, of 64 MiB in all, and a ring for
# the kernel's notes each.
USUAL = 64 + min(10 * max(0, possible_cpus() - 2), 64 + possible_cpus() // 3)


def needed(nhmtap, *options):
    """The MiB that a run needs at least, as its refusal says. They go by the number of CPUs, each of which has tables."""
    why = nhmtap(*options, "--memory", "1M", "--format", "json", "--", "true").one("error")["why"]
    return math.ceil(float(why.partition(" are needed: ")[0].split()[2]))


def little(nhmtap):
    """MiB, just enough for stacks of the whole machine."""
    return needed(nhmtap, "profile", "-a", "-g") + 2


def read(pid, of_version_1, of_version_2):
    """Returns the bytes in a file of its cgroup, of whichever cgroup version has the memory
    controller."""
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        paths = {controllers: path for _, controllers, path in (line.rstrip("\n").split(":", 2) for line in file)}
    one = f"/sys/fs/cgroup/memory{paths['memory']}/{of_version_1}" if "memory" in paths else \
        f"{cgroups.mount()}{paths['']}/{of_version_2}"
    with open(one, encoding="ascii") as file:
        return int(file.read())


def hierarchy():
    """Returns the folder of the cgroups with the memory controller, and the name of the file with the peak. Skips the test
    where there is none that may be used."""
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        one = [line.split()[1] for line in mounts if line.split()[2] == "cgroup" and "memory" in line.split()[3].split(",")]
    if one:
        return one[0], "memory.max_usage_in_bytes"
    try:
        with open(f"{cgroups.mount()}/cgroup.subtree_control", "w", encoding="ascii") as file:
            file.write("+memory")
    except OSError as error:
        pytest.skip(f"no memory controller: {error}")
    return cgroups.mount(), "memory.peak"


@contextlib.contextmanager
def measured(name):
    """Yields a cgroup's folder, and a function that returns the most memory that was in it, in bytes."""
    above, file = hierarchy()
    folder = f"{above}/{name}"
    os.mkdir(folder)

    def most():
        with open(f"{folder}/{file}", encoding="ascii") as peak_file:
            return int(peak_file.read())
    try:
        yield folder, most
    finally:
        cgroups.remove(folder)


def allow(folder, size):
    """Sets the limit of a cgroup with the memory controller."""
    name = next(name for name in ("memory.limit_in_bytes", "memory.max") if os.path.exists(f"{folder}/{name}"))
    with open(f"{folder}/{name}", "w", encoding="ascii") as file:
        file.write(str(size))


def limit(pid):
    return read(pid, "memory.limit_in_bytes", "memory.max")


def peak(pid):
    return read(pid, "memory.max_usage_in_bytes", "memory.peak")
