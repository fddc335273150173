# SPDX-License-Identifier: GPL-2.0-only
"""Memory: little of it, and what a process's cgroup has."""
import cgroups


def possible_cpus():
    with open("/sys/devices/system/cpu/possible", encoding="ascii") as file:
        return int(file.read().strip().rpartition("-")[2]) + 1


# MiB, just enough for stacks of the whole machine: tables of each CPU, 3.5 MiB with stacks, are not made smaller.
LITTLE = 27 + 4 * possible_cpus()


def read(pid, of_version_1, of_version_2):
    """A file of its cgroup's, in bytes, by whichever version of cgroups has the memory."""
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
