# SPDX-License-Identifier: GPL-2.0-only
"""Limits of memory, and the memory of a process's cgroup."""
import cgroups


def possible_cpus():
    with open("/sys/devices/system/cpu/possible", encoding="ascii") as file:
        return int(file.read().strip().rpartition("-")[2]) + 1


# MiB, just enough for stacks of the whole machine. Each CPU's tables take 3.5 MiB with stacks, and
# do not shrink.
LITTLE = 27 + 4 * possible_cpus()


def read(pid, of_version_1, of_version_2):
    """Returns the bytes in a file of its cgroup, of whichever cgroup version has the memory
    controller."""
    with open(f"/proc/{pid}/cgroup", encoding="utf-8") as file:
        paths = {controllers: path for _, controllers, path in (line.rstrip("\n").split(":", 2) for line in file)}
    one = f"/sys/fs/cgroup/memory{paths['memory']}/{of_version_1}" if "memory" in paths else \
        f"{cgroups.mount()}{paths['']}/{of_version_2}"
    with open(one, encoding="ascii") as file:
        return int(file.read())


def limit(pid):
    return read(pid, "memory.limit_in_bytes", "memory.max")


def peak(pid):
    return read(pid, "memory.max_usage_in_bytes", "memory.peak")
