# SPDX-License-Identifier: GPL-2.0-only
"""Baselines: what tests measured before, on which machine, and whether that has changed.

The file is JSON (baseline.schema.json): a list with one entry per line, in a fixed order and with
leading commas, so that git can merge entries that different people have added.
"""
from __future__ import annotations

import json
import math
import os
import tempfile
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from .measured import Measured, Number, found, over_repeats, plain

HEADER: Dict[str, Any] = {"type": "baselines", "schema_version": "1.0.0"}


class Key(NamedTuple):
    """Identifies a baseline. event is the name of an event or metric. If a test measures it several
    times, the second one is "NAME #2"."""

    test: str
    cpu: str
    kernel: str
    event: str


Run = Union[Number, Dict[str, Number]]


def pack(measured: Measured) -> Optional[Run]:
    """Returns the JSON form: a number, or a number with its bound; None without a value."""
    if measured.value is None or measured.exact:
        return measured.value
    sides = {"low": measured.low, "high": measured.high}
    return {"value": measured.value, **{k: v for k, v in sides.items() if v is not None}}


def unpack(name: str, run: Run) -> Measured:
    """The reverse of pack()."""
    if isinstance(run, dict):
        bound = {side: run[side] for side in ("low", "high") if side in run}
        return Measured(name, {"bound": bound}, run["value"])
    return Measured(name, {}, run)


class BadFile(Exception):
    """The file does not contain baselines."""


def load(path: str) -> Dict[Key, List[Run]]:
    """Returns the baselines in a file. Raises BadFile or OSError."""
    with open(path, encoding="utf-8") as file:
        try:
            header, *entries = json.load(file)
            if header["type"] != HEADER["type"] or not header["schema_version"].startswith("1."):
                raise ValueError(f"its first entry is {header}")
            return {Key(*(entry[field] for field in Key._fields)): entry["runs"] for entry in entries}
        except (ValueError, TypeError, KeyError) as error:
            raise BadFile(f"{path} holds no baselines of version 1: {error!r}") from None


def save(path: str, baselines: Dict[Key, List[Run]]) -> None:
    """Adds the baselines to a file, replacing those of the same keys. The file is replaced
    atomically, or stays as it was."""
    known = load(path) if os.path.exists(path) else {}
    known.update(baselines)
    lines = [HEADER, *({**key._asdict(), "runs": runs} for key, runs in sorted(known.items()))]
    text = "\n,".join(json.dumps(line, ensure_ascii=False, allow_nan=False) for line in lines)
    folder = os.path.dirname(os.path.abspath(path))
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".nhmtap-")
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(f"[\n {text}\n]\n")
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


class Change(NamedTuple):
    """How a measurement differs from its baseline. share: the relative difference of the medians
    (0.01 is one percent more). real: the bounds of the two do not overlap."""

    share: float
    real: bool
    before: Measured

    def __str__(self) -> str:
        percent = "from 0" if math.isinf(self.share) else f"{100 * self.share:+.1f} %"
        return percent if self.real else f"{percent} (within the noise)"


def compare(runs: Sequence[Measured], before: Sequence[Measured], exact: bool = False) -> Optional[Change]:
    """Returns the change of repeated measurements, or None if one side has no value. exact: they differ
    by what was run alone, so that each difference is real."""
    new, old = over_repeats(runs), over_repeats(before)
    if new.value is None or old.value is None:
        return None
    change = float(new.value) - float(old.value)
    if old.value:
        change /= abs(float(old.value))
    elif change:
        change = math.copysign(math.inf, change)
    return Change(change, bool(exact and change) or new.least > old.most or new.most < old.least, old)


class Limit(NamedTuple):
    """--nhmtap-fail: how far an event may rise (+), fall (-), or either (±)."""

    event: str
    rise: bool
    fall: bool
    share: float

    @classmethod
    def parse(cls, text: str) -> "Limit":
        """Parses EVENT:[+|-|+-]PERCENT%. Raises ValueError."""
        event, _, limit = text.rpartition(":")
        sign = limit[:len(limit) - len(limit.lstrip("+-"))]
        if not event or not limit.endswith("%") or sign not in ("", "+", "-", "+-"):
            raise ValueError(f"{text!r} is not EVENT:PERCENT%, as in instructions:u:1%")
        share = float(limit[len(sign):-1]) / 100
        if not 0 <= share < math.inf:
            raise ValueError(f"{text!r} has no percentage")
        return cls(event, sign != "-", sign in ("-", "+-"), share)

    def broken(self, name: str, change: Change) -> bool:
        """Whether a change of an event is one that this limit forbids."""
        if not change.real or not found([name.split(" #")[0]], self.event):
            return False
        return (self.rise and change.share > 0 or self.fall and change.share < 0) \
            and abs(change.share) >= self.share


def sentence(name: str, runs: Sequence[Measured], change: Change, limit: Limit) -> str:
    """Returns the reason why a test fails."""
    new = over_repeats(runs)
    verb = "rose" if change.share > 0 else "fell"
    amount = "" if math.isinf(change.share) else f" by {abs(100 * change.share):.2f} %"
    return (f"{name} {verb}{amount}, the limit is {100 * limit.share:g} %: {bounded(new)} against "
            f"the baseline's {bounded(change.before)}")


def bounded(measured: Measured) -> str:
    """Returns the value with its bound, without its name."""
    text = plain(measured.value or 0)
    if measured.exact:
        return text
    sides = ("?" if side is None else plain(side) for side in (measured.low, measured.high))
    return f"{text} ({' to '.join(sides)})"


def entries(reports: Iterable[Dict[str, Any]]) -> Dict[Key, List[Run]]:
    """Returns the baselines from the tests' measurements, except those with a run without a
    value."""
    result: Dict[Key, List[Run]] = {}
    for report in reports:
        for series in report["events"]:
            if series["runs"] and None not in series["runs"]:
                key = Key(report["test"], report["cpu"], report["kernel"], series["event"])
                result[key] = series["runs"]
    return result


def of_machine(baselines: Dict[Key, List[Run]], test: str, machine: Tuple[str, str],
               event: str) -> Optional[List[Measured]]:
    """Returns what this machine measured before, or None."""
    runs = baselines.get(Key(test, *machine, event))
    return [unpack(event, run) for run in runs] if runs else None
