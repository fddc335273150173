# SPDX-License-Identifier: GPL-2.0-only
"""Cgroups of version 2 for tests."""
import errno
import os
import time


def mount():
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        return next(line.split()[1] for line in mounts if line.split()[2] == "cgroup2")


def remove(folder):
    """Removes a cgroup. Processes leave it slightly after they have been waited for."""
    for _ in range(100):
        try:
            os.rmdir(folder)
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            time.sleep(0.1)


def inside(folder, *before):
    """Returns a command that moves itself into a cgroup and then executes the program."""
    return ["sh", "-c", f'echo $$ > {folder}/cgroup.procs; exec "$@"', "sh", *before]
