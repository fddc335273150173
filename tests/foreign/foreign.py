# SPDX-License-Identifier: GPL-2.0-only
"""Suites that nobody here wrote, on the emulated machine, compared with tables of what is expected.

    foreign.py FOLDER SUITE...                 gets, builds and runs suites in FOLDER, and says what differs from their tables
    foreign.py FOLDER SUITE --only WORD...     the cases whose names have one of these words
    foreign.py FOLDER SUITE --left             those that the table leaves out, and no others
    foreign.py FOLDER SUITE --print            prints what was seen, as rows of a table, and the seconds that each took

A table (SUITE.txt) has a row for each test: its name, what comes out, and unless that is "pass", whose rule it is and the
reason with its source, with tabs between them. A difference in either direction is a failure: so is a test that passes
although its row says that it fails, one without a row, and a row without a test. foreign_suites.py has the suites."""
import argparse
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import typing

HERE = os.path.dirname(os.path.abspath(__file__))

OUTCOMES = ("pass", "skip", "fail", "left")
# Whose rule it is that a test does not pass: the processor's (also a real one would), the kernel's, or the suite's own (a fault
# of it, or a tool that it wants and Debian lacks). "time" is for those that are left out because they take too long.
RULES = ("hardware", "kernel", "suite", "time", "ours")
LONGEST = 300  # seconds of the emulator's CPU time, so that a busy host makes no difference
STUCK = 3600  # seconds, so that one that waits for ever ends


class Row(typing.NamedTuple):
    outcome: str
    rule: str = ""
    reason: str = ""


def table(suite):
    """{name: Row} of a suite's file."""
    rows = {}
    with open(f"{HERE}/{suite}.txt", encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if not line.startswith("#") and line.strip():
                name, *rest = line.rstrip("\n").split("\t")
                if name in rows or len(rest) not in (1, 3) or rest[0] not in OUTCOMES:
                    raise ValueError(f"{suite}.txt:{number}: not a row, or a second one of this name: {line!r}")
                rows[name] = Row(*rest)
    return rows


def differences(rows, seen):
    """A line for each difference between a table and {name: (outcome, output)}."""
    said = []
    for name in sorted(rows.keys() | seen.keys()):
        expected = rows[name].outcome if name in rows else "no row"
        outcome, output = seen.get(name, ("left", "") if expected == "left" else ("no test", ""))
        if outcome != expected:
            said.append(f"{name}: {outcome}, but the table has: {expected}\n" + "".join(f"    {line}\n" for line in output.splitlines()[-30:]))
    return said


def on_machine(command, options=()):
    """The status and the output of a command of the shell on the machine, as its root, and the CPU time that it took here."""
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8",
                   **{k: v for k, v in os.environ.items() if k in ("NHM_BUILD", "NHMTAP_MACHINE", "XDG_CACHE_HOME")}}
    words = ["prlimit", f"--cpu={LONGEST}", os.environ["NHMTAP"], "machine", "--root", *options, "--", "sh", "-c", command]
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT) as run:
            timer = threading.Timer(STUCK, run.kill)  # no emulator outlives it
            timer.start()
            _, status, used = os.wait4(run.pid, 0)
            timer.cancel()
            run.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        output = said.read().decode(errors="replace")
    took = used.ru_utime + used.ru_stime
    # The emulator's own time is limited, and what it forks does not come into `took` if it is killed.
    late = run.returncode == -signal.SIGKILL or run.returncode == 125 and took > 0.8 * LONGEST
    return None if late else run.returncode, output, took


def run_case(suite, case):
    """{name: (outcome, output)} of a case, which may have several tests, and the CPU time that it took."""
    status, output, took = on_machine(case.command, case.options)
    found = {case.name: "out of time"} if status is None else suite.read(case, status, output)
    return {name: (outcome, output) for name, outcome in found.items()}, took


def run(suite, cases, jobs, tell):
    seen = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run_case, suite, case) for case in cases]):
            found, took = done.result()
            seen |= found
            for name, (outcome, output) in found.items():
                tell(name, outcome, output, took)
    return seen


def tell_row(name, outcome, output, took):
    print(f"{name}\t{outcome}\n#    {took:.0f} s", flush=True)
    if outcome != "pass":
        print(re.sub("^", "#    ", output[-3000:], flags=re.M), flush=True)


def tell_progress(name, outcome, _, took):
    print(f"  {outcome:12} {took:4.0f} s  {name}", flush=True)


def main():
    import foreign_suites
    options = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1])
    options.add_argument("folder")
    options.add_argument("suite", nargs="+", choices=foreign_suites.SUITES)
    options.add_argument("--only", nargs="+", default=[])
    options.add_argument("--left", action="store_true")
    options.add_argument("--print", action="store_true")
    options.add_argument("--jobs", type=int, default=os.cpu_count())
    options = options.parse_args()
    different = False
    for name in options.suite:
        suite = foreign_suites.SUITES[name]
        folder = os.path.abspath(f"{options.folder}/{name}")
        foreign_suites.build(name, folder)
        rows = table(name)
        left = {n for n, row in rows.items() if row.outcome == "left"}
        cases = [c for c in suite.cases(folder)
                 if (c.name in left) == options.left and (not options.only or any(w in c.name for w in options.only))]
        print(f"# {name}: {len(cases)} commands")
        seen = run(suite, cases, options.jobs, tell_row if options.print else tell_progress)
        if options.print:
            continue
        if options.only or options.left:
            rows = {n: row for n, row in rows.items() if n in seen or not options.left and any(w in n for w in options.only)}
        for text in differences(rows, seen):
            different = True
            print(text)
    sys.exit(different)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path[:0] = [HERE + "/../lib", HERE + "/../machine", HERE + "/../../user/machine"]
    main()
