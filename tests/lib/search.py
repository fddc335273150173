#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""search.py [SECONDS] [--seed N] [--only NAME …]: runs what searches, in turns, until the time is over.

Each turn has a seed. A turn that fails is told with the command that repeats it, and the others go on.
Run it by `make search`, which builds what the searches need.

Exit status: 0 nothing was found; 1 something was.
"""
import argparse
import contextlib
import os
import re
import shlex
import subprocess
import sys
import time

MAKE = os.environ.get("MAKE", "make")

# What searches: its command, with {seed} and {seconds} of a turn. A turn takes about that long, or as long
# as its tests take.
TURN_S = 60
SEARCHES = {
    "fuzzers": "{make} fuzz FUZZ_LIMIT='-max_total_time={few} -seed={seed}'",
    "random_configs": "NHMTAP_SEED={seed} NHMTAP_RUNS=200 {make} test T='tests/live/test_random_configs.py --reruns 0'",
    "random_ends": "NHMTAP_SEED={seed} NHMTAP_RUNS=200 {make} test T='tests/live/test_random_ends.py --reruns 0'",
    "faults": "NHMTAP_SEED={seed} {make} test T='tests/live/test_faults.py --reruns 0'",
    "memory": "NHMTAP_SEED={seed} {make} test T='tests/live/test_memory.py -k without_memory --reruns 0'",
    "seeded": "NHMTAP_SEED={seed} {make} test T='tests/live/test_seeded_sessions.py --reruns 0'",
    "spellings": "NHMTAP_SEED={seed} {make} test T='tests/events/test_spellings.py -k 500 --reruns 0'",
    "attributes": "NHMTAP_SEED={seed} {make} test T='tests/live/test_attr_as_perf.py --reruns 0'",
    "keys": "NHMTAP_SEED={seed} NHMTAP_TOP_KEYS=3000 {make} test T='tests/pure/test_top.py tests/pure/test_top_model.py"
            " -k \"no_keys or any_keys\" --reruns 0'",
    "option_values": "NHMTAP_SEED={seed} {make} test T='tests/live/test_option_values.py --reruns 0'",
    "properties": "{make} test T='tests/events/test_perf_spellings.py tests/live/test_equal_names.py tests/live/test_formats_agree.py"
                  " tests/pure/test_formula.py tests/pure/test_grammar_properties.py tests/pure/test_grouping.py"
                  " tests/pure/test_mapped.py tests/pure/test_share.py --hypothesis-seed={seed} --reruns 0'",
    "verdicts": "NHMTAP_SEED={seed} NHMTAP_RUNS=25 {make} test T='tests/machine/test_analyze_over_seeds.py --reruns 0'",
    "bounds": "NHMTAP_SEED={seed} NHMTAP_RUNS=5 {make} test jobs=0 T='tests/machine/test_multiplexing.py -k every_shape -s --reruns 0'",
    "counts": "NHMTAP_SEED={seed} NHMTAP_RUNS=1000000 {make} test T='tests/pure/test_plausible.py -k exists --reruns 0'",
    "counts_in_formats": "NHMTAP_SEED={seed} NHMTAP_RUNS=100 {make} test T='tests/live/test_random_counts.py -s --reruns 0'",
    "exact": "NHMTAP_SEED={seed} NHMTAP_RUNS=1000 {make} test T='tests/machine/test_exact_runs.py --reruns 0'",
    "soak": "{make} soak S={seconds} SEED={seed}",
    "varied_machine": "NHM_VARY={seed} {make} test T='tests/machine -m \"not thorough\" --reruns 0'",
}
FUZZERS = 16  # which share the seconds of a turn


# What a test says of itself in a turn, as "figures: WHAT: text with numbers"; the numbers of all turns are added up.
FIGURES = re.compile(r"^figures: (.*): (.*)$", re.M)
NUMBER = re.compile(r"\d+")
sums = {}


def add_figures(output):
    for what, text in FIGURES.findall(output):
        words, numbers = NUMBER.sub("{}", text), list(map(int, NUMBER.findall(text)))
        had = sums.get((what, words), [0] * len(numbers))
        sums[what, words] = [a + b for a, b in zip(had, numbers)]


def command_of(name, seed):
    return SEARCHES[name].format(make=MAKE + " --no-print-directory -s", seed=seed, seconds=TURN_S,
                                 few=max(2, TURN_S // FUZZERS))


def turn(name, seed):
    """Returns whether nothing was found."""
    command, began = command_of(name, seed), time.monotonic()
    print(f"{name:15} seed {seed}", flush=True)
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace", check=False)
    add_figures(done.stdout)
    if done.returncode:
        print(f"{done.stdout[-4000:]}\n{name:15} FOUND SOMETHING after {time.monotonic() - began:.0f} s; again: {command}",
              flush=True)
    return not done.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", type=float, nargs="?", default=3600)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000_000, help="of the first turn; the next has the next")
    parser.add_argument("--only", nargs="+", choices=SEARCHES, default=list(SEARCHES))
    asked = parser.parse_args()
    until, seed, found = time.monotonic() + asked.seconds, asked.seed, []
    with contextlib.suppress(KeyboardInterrupt):  # then what was found so far
        while time.monotonic() < until:
            name = asked.only[(seed - asked.seed) % len(asked.only)]
            if not turn(name, seed):
                found.append(command_of(name, seed))
            seed += 1
    print(f"{seed - asked.seed} turns, of which {len(found)} found something")
    for (what, words), numbers in sums.items():
        print(f"  {what}: {words.format(*numbers)}")
    for command in found:
        print("  again: " + shlex.join(["sh", "-c", command]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
