# SPDX-License-Identifier: GPL-2.0-only
"""Where the time of a run of the tests goes: `--times N`, which is `make test TIMES=N`.

CPU time is that of the worker process and of all of its descendants, so a guest or a session that
several tests share is charged to those during which it runs. What a test's processes leave to init
is missing, and so is a forked guest that ends while the test's function runs: its parent does not wait
for it. On a busy machine, waiting for a CPU counts as waiting.
"""
import collections
import os
import time

import pytest

TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def pytest_addoption(parser):
    parser.addoption("--times", type=int, metavar="N",
                     help="print the N tests that take the most CPU time, the N that wait longest, and sums by file")


def processes():
    """Returns, for each process, its parent and the seconds of CPU time of itself and its waited-for children."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        found[int(name)] = int(fields[1]), sum(map(int, fields[11:15])) * TICK_S
    return found


def cpu_s():
    found, me = processes(), os.getpid()
    children = collections.defaultdict(list)
    for pid, (parent, _) in found.items():
        children[parent].append(pid)
    left, total = [me], 0
    while left:
        pid = left.pop()
        total += found[pid][1]
        left += children[pid]
    return total


class Clock:
    """In each process that runs tests: adds to the last report of a test what the test took."""

    def __init__(self):
        self.wall = self.cpu = None
        self.taken = 0.0

    def pytest_runtest_logstart(self):
        if self.cpu is None:  # what was collected before is no test's
            self.cpu = cpu_s()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        report = (yield).get_result()
        if call.when == "setup":
            self.wall = time.monotonic() - call.duration
        cpu = cpu_s()
        self.taken += max(0, cpu - self.cpu)  # it gets less when a forked guest ends, whose time is nobody's then
        self.cpu = cpu
        if call.when == "teardown":
            report.times = self.taken, time.monotonic() - self.wall
            self.taken = 0.0


class Table:
    """Where the results are printed."""

    def __init__(self, rows):
        self.rows, self.times = rows, collections.defaultdict(lambda: (0.0, 0.0))

    def pytest_runtest_logreport(self, report):
        for name in (report.nodeid, report.nodeid.partition("::")[0]) if hasattr(report, "times") else ():
            self.times[name] = tuple(map(sum, zip(self.times[name], report.times)))

    def pytest_terminal_summary(self, terminalreporter):
        tests = {name: times for name, times in self.times.items() if "::" in name}
        files = {name: times for name, times in self.times.items() if "::" not in name}
        for title, rows, order in (("that take the most CPU time", tests, lambda times: times[0]),
                                   ("that wait longest", tests, lambda times: times[1] - times[0]),
                                   ("by file", files, lambda times: times[0])):
            terminalreporter.section(f"tests {title}")
            terminalreporter.write_line("CPU s  wall s")
            for name, times in sorted(rows.items(), key=lambda row: -order(row[1]))[:self.rows]:
                terminalreporter.write_line(f"{times[0]:5.1f}  {times[1]:6.1f}  {name}")
        cpu, wall = map(sum, zip((0, 0), *tests.values()))
        terminalreporter.write_line(f"{cpu:5.0f}  {wall:6.0f}  all {len(tests)} tests")


def pytest_configure(config):
    rows = config.getoption("--times")
    if rows is None:
        return
    if not config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        config.pluginmanager.register(Clock())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table(rows))
