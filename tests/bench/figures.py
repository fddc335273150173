# SPDX-License-Identifier: GPL-2.0-only
"""The figures of a run of the benchmark: the price list, their table, their records, and what differs between two
runs."""
import argparse
import itertools
import json
import statistics
import sys

# The table of the README, in its order: what a row says, and its figures with their bounds. README and benchmark have
# the same list: tests/pure/test_bench.py holds the one to the other.
PRICES = {
    "a sample by pid and ip, against an empty BPF program":
        {"a sample by pid and ip / in an empty program": 1.4},
    "the program of such a sample, against one with a per-CPU hash map":
        {"a sample in the program of profile by pid and ip / of a per-CPU hash map, each beyond an empty one": 0.9},
    "a sample, against one of `perf record` with all of its cost":
        {"a sample / in perf record": 0.5},
    "bytes written for the same profile, against `perf record`":
        {"bytes written / by perf record": 0.01},
    "a branch of a stack of 16, against one in a per-CPU hash map":
        {"a branch of a stack of 16 / in a per-CPU hash map": 1.2},
    "a sample as a line of JSON, its function named, against `perf record` and `perf data convert`":
        {"a streamed sample / in perf record and perf data convert": 0.5},
    "nhmtap's own part of that, against only writing as many bytes":
        {"nhmtap's own CPU of a streamed sample / writing as many bytes": 4},
    "`nhmtap stat -- true`, against `perf stat true`":
        {"stat -- true / perf stat true": 1},
    "largest resident set of a profile over 60 s":
        {"peak resident set over 60 s": 16, "its growth after the first 10 s": 0.125},
    "a switch between two of 1000 counted cgroups, against an event for each cgroup":
        {"a switch between cgroups, 1000 counted: added up in BPF / events of each": 1},
    "samples lost while tables are read every 10 ms":
        {"samples lost by reading every 10 ms": 3},
    "a session of `stat`, `profile` and `mem`, against three processes":
        {"stat, profile and mem, 5 s, every 1000 ms: one session / three processes": 0.6,
         "peak memory of that, every 1000 ms": 0.6},
    "an idle session of `stat -a` and `profile -a`":
        {"an idle sidecar: share of a CPU": 0.2},
}
BOUNDS = {figure: bound for row in PRICES.values() for figure, bound in row.items()}


class Figures:
    """The values of all rounds, by figure."""

    def __init__(self):
        self.list = {}

    def add(self, name, value, bound=None, of="", unit="×"):
        """The bound of a price is that of the list."""
        assert bound is None or name not in BOUNDS, name
        figure = self.list.setdefault(name, {"figure": name, "unit": unit, "bound": BOUNDS.get(name, bound),
                                             "values": [], "of": []})
        figure["values"].append(value)
        figure["of"].append(of)

    def summed_up(self):
        result = []
        for figure in self.list.values():
            values = figure["values"]
            # The operands of the round nearest to the median are shown.
            median = statistics.median(values)
            nearest = min(range(len(values)), key=lambda i: abs(values[i] - median))
            result.append(figure | {
                "median": median, "min": min(values), "max": max(values), "of": figure["of"][nearest],
                "holds": None if figure["bound"] is None else median <= figure["bound"]})
        return result


# --- showing them --------------------------------------------------------------------------------

def number(value, unit):
    text = f"{value:.0f}" if value == int(value) and not unit else f"{value:.3g}"
    return f"{text} {unit}".rstrip()


def print_rows(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def print_table(figures):
    rows = [("figure", "measured", "spread", "bound", "", "of")]
    for f in figures:
        spread = f"{number(f['min'], '')} – {number(f['max'], '')}"
        bound = "" if f["bound"] is None else "≤ " + number(f["bound"], f["unit"])
        verdict = {None: "", True: "holds", False: "DOES NOT HOLD"}[f["holds"]]
        rows.append((f["figure"], number(f["median"], f["unit"]), spread, bound, verdict, f["of"]))
    print_rows(rows)


# --- records -------------------------------------------------------------------------------------

def write_records(run, figures, out):
    """Writes a line about the run, and one a figure."""
    for record in ({"type": "bench", **run}, *({"type": "figure", **figure} for figure in figures)):
        json.dump(record, out, ensure_ascii=False)
        out.write("\n")


def read_records(path):
    """Returns the line about the run, and the figures by their names."""
    with open(path, encoding="utf-8") as file:
        records = [json.loads(line) for line in file if line.startswith("{")]
    run = [record for record in records if record["type"] == "bench"]
    if len(run) != 1:
        raise ValueError(f"{path} is not one run of make bench B=--json")
    return run[0], {record["figure"]: record for record in records if record["type"] == "figure"}


# --- two runs ------------------------------------------------------------------------------------

def chance(one, other):
    """The chance that values of one distribution lie apart as these do, or more: the exact test of the sum of ranks
    (Wilcoxon, Mann and Whitney), two-sided."""
    values = sorted([*one, *other])
    ranks = {value: values.index(value) + (values.count(value) + 1) / 2 for value in values}
    found = abs(sum(ranks[value] for value in one) - len(one) * (len(values) + 1) / 2)
    sums = [abs(sum(ranks[values[i]] for i in places) - len(one) * (len(values) + 1) / 2)
            for places in itertools.combinations(range(len(values)), len(one))]
    return sum(away >= found - 1e-9 for away in sums) / len(sums)


def compared(before, after):
    """What has become of a figure: its least and its largest change in per cent by the spread of both, and the chance
    that it is none."""
    if min(before["values"]) <= 0 or min(after["values"]) <= 0:
        least, most = min(after["values"]) - max(before["values"]), max(after["values"]) - min(before["values"])
        return (least, most, chance(before["values"], after["values"]))
    low, high = (f(after["values"]) / g(before["values"]) for f, g in ((min, max), (max, min)))
    return (100 * (low - 1), 100 * (high - 1), chance(before["values"], after["values"]))


def verdict(least, most, p, rounds):
    """A figure has changed if no round of the one run lies among those of the other. With few rounds even that has a
    high chance, which is shown."""
    if least <= 0 <= most:
        return ""
    return ("slower" if least > 0 else "faster") + ("" if p <= 0.05 else f", with {rounds} rounds a guess")


def compare(before, after):
    """Prints what differs. Returns whether a figure got worse by more than the spreads."""
    (old, had), (new, has) = before, after
    for name in ("machine", "kernel", "cpus"):
        if old.get(name) != new.get(name):
            print(f"# {name}: {old.get(name)}, then {new.get(name)}: ratios compare, times do not")
    print(f"# commit {old.get('commit')}, then {new.get('commit')}")
    rows, worse = [("figure", "before", "after", "change", "p", "")], False
    for name in had.keys() & has.keys():
        least, most, p = compared(had[name], has[name])
        said = verdict(least, most, p, min(len(had[name]["values"]), len(has[name]["values"])))
        worse = worse or said.startswith("slower")
        rows.append((name, number(had[name]["median"], had[name]["unit"]), number(has[name]["median"], has[name]["unit"]),
                     f"{least:+.1f} to {most:+.1f} %", f"{p:.2g}", said))
    rows[1:] = sorted(rows[1:], key=lambda row: (not row[-1].startswith("slower"), not row[-1], row[0]))
    print_rows(rows)
    for name in had.keys() ^ has.keys():
        print(f"# only {'before' if name in had else 'after'}: {name}")
    return worse


def main():
    parser = argparse.ArgumentParser(prog="bench-compare", description="What got slower or faster between two runs of "
                                     "make bench B=--json: all figures are costs, so less is better.")
    parser.add_argument("before")
    parser.add_argument("after")
    options = parser.parse_args()
    try:
        runs = read_records(options.before), read_records(options.after)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"bench-compare: {error}. Next: make bench B=--json > FILE")
    return 1 if compare(*runs) else 0


if __name__ == "__main__":
    sys.exit(main())
