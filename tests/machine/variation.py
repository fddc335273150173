# SPDX-License-Identifier: GPL-2.0-only
"""Varied guests. A guest does the same in each run until something in it changes its size: then the
clock ticks at other instructions and programs have other pages. No test may depend on that.
NHM_VARY=NUMBER changes what another host, compiler or version of the program would change: each
number gives other guests, and the same ones each time."""
import functools
import os
import random
import tempfile

NUMBER = os.environ.get("NHM_VARY")


def chance(what):
    return random.Random(f"{NUMBER} {what}")


@functools.cache
def filler():
    """A file of some MB, which lives as long as this process."""
    file = tempfile.NamedTemporaryFile(prefix="filler.")
    file.truncate(chance("filler").randrange(8 << 20))
    return file


def machine(usual):
    """The machine to boot instead, with another date, some MB more of memory and a file before the
    others."""
    if not NUMBER:
        return usual
    n = chance("machine")
    return usual.but(date=usual.date + n.randrange(10**6), memory=usual.memory + n.randrange(32),
                     add=(f"{filler().name}:/opt/filler", *usual.add))


def stir(guest, test):
    """Lets time pass in a guest before a test's first command, and has its CPUs write pages that they keep or free."""
    if not NUMBER:
        return
    n = chance(test)
    steps = (lambda: f"head -c {n.randrange(1 << 20)} /dev/zero > /run/stirred.{n.random()}",
             lambda: f"dd if=/dev/zero of=/dev/null count=1 bs={1 + n.randrange(2 << 20)} 2> /dev/null",
             lambda: f"i={n.randrange(2000)}; while [ $i -gt 0 ]; do i=$((i - 1)); done",
             lambda: f"usleep {n.randrange(20000)}")
    lines = [f"taskset {1 << n.randrange(guest.machine.cpus):#x} sh -c '{n.choice(steps)()}'" for _ in range(6)]
    result = guest.run("\n".join(lines))
    assert result.status == 0, str(result)
