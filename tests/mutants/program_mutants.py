#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Breaks the program in small ways, one at a time: each fault must make the test fail that its row names.

usage: program_mutants.py [NAME...]     (`make mutants M=…`; all of them without NAME)

Works in a copy of the tree, so it disturbs nobody. First the tests have to pass there without a fault.

Exit status: 0 all were noticed; 1 some survived or do not compile (they are listed at the end);
2 a fault does not fit the source any more, or its test fails without it.
"""
import collections
import os
import pathlib
import sys
import tempfile
import time

import mutation
import rows
import trees


FAULT_S = 30  # a test that takes longer because of a fault has noticed it


class Built:
    """The program, built in a copy of the tree."""

    def __init__(self, tree, sanitize=False):
        self.tree = tree
        self.folder = f"{tree.folder}-sanitize" if sanitize else tree.folder
        self.sanitize = f"SANITIZE={int(sanitize)}"

    def make(self):
        """Returns what make says if it fails."""
        done = self.tree.run(f"O={self.folder}", self.sanitize, "-j2", f"{self.folder}/nhmtap", timeout=900)
        return done.stdout[-1000:] + done.stderr[-3000:] if done.returncode else None

    def failure(self, tests, reruns=0):
        build = f"{self.tree.path}/{self.folder}"
        environment = {"NHMTAP": build + "/nhmtap", "NHMTAP_BUILD": f"{self.tree.path}/{self.tree.folder}",
                       "NHMTAP_PROGRAMS": f"{self.tree.path}/{self.tree.folder}/programs", "LIBPERF": trees.LIBPERF,
                       "NHM_BUILD": os.environ.get("NHM_BUILD", trees.BUILD + "/machine"),
                       "PYTHONPATH": f"{self.tree.path}/user/python"}
        return mutation.first_failure(["--reruns", str(reruns), "--timeout", str(FAULT_S), *(f"tests/{test}" for test in tests)], environment, self.tree.path)


def try_out(mutant, built):
    began = time.monotonic()
    with mutation.in_place(mutant, trees.ROOT, built.tree.path):
        said = built.make()
        if said:
            print(f"{mutant.name} does not compile:\n{said}", flush=True)
        killer = None if said else built.failure(mutant.tests)
    mutation.say(mutant, killer, time.monotonic() - began)
    return killer


def tier_of(killer):
    tier = killer.split("/")[0]
    return {"events": "pure", "python": "live"}.get(tier, tier)


def main():
    os.nice(10)
    chosen = mutation.chosen(rows.MUTANTS, sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="nhmtap-mutants-") as folder:
        os.chmod(folder, 0o755)
        tree = trees.Tree(pathlib.Path(folder) / "tree")
        killers = {}
        for sanitize in sorted({mutant.sanitize for mutant in chosen}):
            built = Built(tree, sanitize)
            mutants = [mutant for mutant in chosen if mutant.sanitize == sanitize]
            said = built.make() or built.failure(sorted({test for mutant in mutants for test in mutant.tests}), reruns=1)
            if said:
                mutation.fail("without a fault: " + said)
            killers |= {mutant: try_out(mutant, built) for mutant in mutants}
            said = built.make()
            if said:
                mutation.fail("the tree does not build: " + said)
    tiers = collections.Counter(tier_of(killer) for killer in killers.values() if killer)
    print(", ".join(f"{number} by tests of {tier}/" for tier, number in sorted(tiers.items())))
    return mutation.report(list(killers), list(killers.values()))


if __name__ == "__main__":
    sys.exit(main())
