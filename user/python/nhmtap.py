# SPDX-License-Identifier: GPL-2.0-only
"""Counts of a command, to be asserted on:

    import nhmtap

    def test_sorting_stays_in_memory():
        run = nhmtap.stat(["sort", "words"], events=["page-faults"], metrics=["ipc"])
        assert run["page-faults"] < 5000
        assert run["ipc"] > 0.8

A count that was estimated, because its event shared a counter, compares as far as its bound tells:
where the limit is within the bound, a comparison raises CannotTell instead of an answer. A machine
that does not have an event raises Refused, with the reason and what mends it.
"""
import json
import os
import subprocess
import tempfile

__all__ = ["CannotTell", "Measured", "Refused", "Run", "stat"]


class Refused(Exception):
    """nhmtap could not do what was asked. Its error record is .record."""

    def __init__(self, record):
        super().__init__(": ".join(record[name] for name in ("asked", "why", "remedy")
                                   if record.get(name)))
        self.record = record


class CannotTell(Exception):
    """A comparison with a limit that is within what an estimate can be off by, or with a value that
    there is none of."""


class Measured:
    """A count or metric: .value, between .low and .high (None: not known), and its .record. Compares
    with numbers; there is no value where it was not counted."""

    __hash__ = None

    def __init__(self, name, record, value):
        bound = record.get("bound", {})
        self.name, self.record, self.value = name, record, value
        self.exact = value is not None and "bound" not in record
        self.low = value if self.exact else bound.get("low")
        self.high = value if self.exact else bound.get("high")

    def _decide(self, other, yes, no):
        if self.value is None:
            raise CannotTell(f"{self.name} has no value: {self.record.get('why', 'not counted')}")
        low = float("-inf") if self.low is None else self.low
        high = float("inf") if self.high is None else self.high
        if yes(low, high):
            return True
        if no(low, high):
            return False
        raise CannotTell(f"{self!r} and {other}: the limit is within what it can be off by")

    def __lt__(self, limit):
        return self._decide(limit, lambda low, high: high < limit, lambda low, high: low >= limit)

    def __le__(self, limit):
        return self._decide(limit, lambda low, high: high <= limit, lambda low, high: low > limit)

    def __gt__(self, limit):
        return self._decide(limit, lambda low, high: low > limit, lambda low, high: high <= limit)

    def __ge__(self, limit):
        return self._decide(limit, lambda low, high: low >= limit, lambda low, high: high < limit)

    def __eq__(self, limit):
        return self._decide(limit, lambda low, high: low == limit == high,
                            lambda low, high: not low <= limit <= high)

    def __ne__(self, limit):
        return not self == limit

    def __float__(self):
        if self.value is None:
            raise CannotTell(f"{self.name} has no value: {self.record.get('why', 'not counted')}")
        return float(self.value)

    def __repr__(self):
        if self.value is None:
            return f"{self.name} (no value)"
        if self.exact:
            return f"{self.name} {self.value}"
        sides = ["?" if side is None else f"{side:.6g}" for side in (self.low, self.high)]
        return f"{self.name} {self.value} (between {sides[0]} and {sides[1]})"


class Run:
    """What a run gave: run["page-faults"] is what it measured; run.all("page-faults") where that is
    several (-I, -r, --per). .status is the command's exit status, negative for a signal; .stdout and
    .stderr what it wrote where that was captured; .records all records."""

    def __init__(self, records, done):
        self.records = records
        self.stdout, self.stderr = done.stdout, done.stderr
        command = records[-1].get("command", {})
        self.status = command.get("exit_code", -command.get("signal", 0))
        self._measured = {}
        for record in records:
            if record["type"] == "count":
                value = record.get("value_in_unit", record.get("scaled"))
                self._add(record["event"], _in_unit(record), value)
            elif record["type"] == "metric":
                self._add(record["metric"], record, record.get("value"))

    def _add(self, name, record, value):
        self._measured.setdefault(name, []).append(Measured(name, record, value))

    def all(self, name):
        return list(self._measured[name])

    def __getitem__(self, name):
        found = self._measured[name]
        if len(found) > 1:
            raise LookupError(f"{name} was measured {len(found)} times: see all()")
        return found[0]

    def __iter__(self):
        return iter(self._measured)

    def __len__(self):
        return len(self._measured)


def _in_unit(record):
    """A count whose driver gives a scale has its bound in counts: in the unit, as its value."""
    if not record.get("scaled") or "value_in_unit" not in record or "bound" not in record:
        return record
    scale = record["value_in_unit"] / record["scaled"]
    bound = {side: record["bound"][side] * scale for side in ("low", "high") if side in record["bound"]}
    return record | {"bound": record["bound"] | bound}


def _listed(names):
    return names if isinstance(names, str) else ",".join(names)


def stat(command, events=(), metrics=(), options=(), program=None, **subprocess_options):
    """Runs a command (a list) under `nhmtap stat` and returns its Run. events and metrics are as behind
    -e and -M; without either they are the default ones. options: more options of nhmtap stat.
    program: nhmtap, if not $NHMTAP or the one in PATH. What else is given goes to subprocess.run():
    capture_output, cwd, env, input, timeout, …
    """
    chosen = ["-e", _listed(events)] if events else []
    chosen += ["-M", _listed(metrics)] if metrics else []
    program = program or os.environ.get("NHMTAP") or "nhmtap"
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", errors="surrogateescape",
                                     suffix=".jsonl") as out:
        done = subprocess.run([program, "stat", "--format", "json", "-o", out.name, *chosen,
                               *options, "--", *command], check=False, **subprocess_options)
        records = [json.loads(line) for line in out.read().split("\n") if line]
    if not records:
        raise Refused({"asked": " ".join(map(str, command)),
                       "why": f"nhmtap ended with status {done.returncode} and wrote no records"})
    for record in records:
        if record["type"] == "error":
            raise Refused(record)
    return Run(records, done)
