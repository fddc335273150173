# SPDX-License-Identifier: GPL-2.0-only
"""Counts and metrics with their bounds, and the statistics of repeated ones."""
from __future__ import annotations

import math
import re
import statistics
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Union

from .errors import CannotTell, NotCounted

Number = Union[int, float]
Record = Dict[str, Any]

# The confidence level of a bound from repeated measurements.
LEVEL = 0.95

NAME_TERM = re.compile(r"[^/]+/(?:.*,)? *name=(?:'([^']*)'|([^,/']*)).*/[^/]*")
NTH = re.compile(r"(.*?)( \(\d+\))?", re.DOTALL)


def found(names: Iterable[str], wanted: str) -> Optional[str]:
    """Returns the name under which an event or metric was measured, or None. The program adds the
    modifier u for users who may only measure programs: page-faults becomes page-faults:u."""
    names, wanted = list(names), wanted.lower()
    base = first_of(wanted)
    nth = wanted[len(base):]
    for spelling in (wanted, base + ":u" + nth, base + "u" + nth):
        for name in names:
            if name.lower() == spelling:
                return name
    return None


def first_of(name: str) -> str:
    """Returns the name of the first of several events of one name."""
    return NTH.fullmatch(name).group(1)  # type: ignore[union-attr]


def called(asked: Iterable[str]) -> Dict[str, str]:
    """Returns the names under which what is asked for in one run is measured, by what asks for it. An event with a term
    name= has that name; the second of one name is "NAME (2)", as in Counts."""
    names: Dict[str, str] = {}
    times: Dict[str, int] = {}
    for text in dict.fromkeys(asked):
        term = NAME_TERM.fullmatch(text)
        name = term[1] or term[2] if term else text
        times[name] = times.get(name, 0) + 1
        names[text] = name if times[name] == 1 else f"{name} ({times[name]})"
    return names


class Measured:
    """A count, metric or share: .value, between .low and .high (None: not known), and its .record.

    It can be compared with numbers. A comparison raises CannotTell if the number lies within the
    bound, or if there is no value. float() returns the value, and raises CannotTell without one.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str, record: Mapping[str, Any], value: Optional[Number]) -> None:
        bound = record.get("bound", {})
        self.name, self.record, self.value = name, record, value
        self.exact = value is not None and "bound" not in record
        self.low: Optional[Number] = value if self.exact else bound.get("low")
        self.high: Optional[Number] = value if self.exact else bound.get("high")

    @property
    def unit(self) -> str:
        """The unit of value; empty for plain counts."""
        return str(self.record.get("unit", ""))

    @property
    def least(self) -> Number:
        """low, or minus infinity."""
        return -math.inf if self.low is None else self.low

    @property
    def most(self) -> Number:
        """high, or infinity."""
        return math.inf if self.high is None else self.high

    def _there(self) -> Number:
        __tracebackhide__ = True
        if self.value is None:
            raise NotCounted(f"{self.name} has no value: {self.record.get('why', 'not counted')}")
        return self.value

    def _decide(self, other: Any, yes: Callable[[Number, Number], bool],
                no: Callable[[Number, Number], bool]) -> bool:
        __tracebackhide__ = True
        self._there()
        if yes(self.least, self.most):
            return True
        if no(self.least, self.most):
            return False
        raise CannotTell(f"{self!r} and {other}: the limit is within what it can be off by")

    def __lt__(self, limit: Number) -> bool:
        __tracebackhide__ = True
        return self._decide(limit, lambda low, high: high < limit, lambda low, high: low >= limit)

    def __le__(self, limit: Number) -> bool:
        __tracebackhide__ = True
        return self._decide(limit, lambda low, high: high <= limit, lambda low, high: low > limit)

    def __gt__(self, limit: Number) -> bool:
        __tracebackhide__ = True
        return self._decide(limit, lambda low, high: low > limit, lambda low, high: high <= limit)

    def __ge__(self, limit: Number) -> bool:
        __tracebackhide__ = True
        return self._decide(limit, lambda low, high: low >= limit, lambda low, high: high < limit)

    def __eq__(self, limit: object) -> bool:
        __tracebackhide__ = True
        number: Any = limit
        return self._decide(limit, lambda low, high: bool(low == number == high),
                            lambda low, high: not low <= number <= high)

    def __ne__(self, limit: object) -> bool:
        __tracebackhide__ = True
        return not self == limit

    def __float__(self) -> float:
        __tracebackhide__ = True
        return float(self._there())

    def __repr__(self) -> str:
        if self.value is None:
            return f"{self.name} (no value)"
        repeats = self.record.get("repeats", 1)
        text = f"{self.name} {plain(self.value)}"
        if repeats > 1:
            text += f", the median of {repeats}"
        if not self.exact:
            low, high = ("?" if side is None else f"{side:.6g}" for side in (self.low, self.high))
            text += f" (between {low} and {high})"
        return text


def plain(value: Number) -> str:
    """Formats a number: integers in full, others with six digits."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def over_repeats(measured: Sequence[Measured]) -> Measured:
    """Returns the median of repeated measurements. Its bound consists of order statistics of their
    lows and highs, which needs no assumption about the distribution. The level is at least 95 %
    from six repeats on; with fewer, it is less and in the bound (two: 50 %, five: 93.75 %). A
    single measurement, or the first without a value, is returned unchanged.
    """
    for one in measured:
        if one.value is None or len(measured) == 1:
            return one
    values = [float(one) if isinstance(one.value, float) else one.value for one in measured]
    rank, level = _rank(len(measured))
    low = sorted(one.least for one in measured)[rank - 1]
    high = sorted(one.most for one in measured)[-rank]
    record: Record = {"repeats": len(measured)}
    if measured[0].unit:
        record["unit"] = measured[0].unit
    value = statistics.median(v for v in values if v is not None)
    if low == high == value:
        return Measured(measured[0].name, record, value)
    record["bound"] = {"level": level, "readings": len(measured)}
    record["bound"].update({side: limit for side, limit in (("low", low), ("high", high))
                            if math.isfinite(limit)})
    return Measured(measured[0].name, record, value)


def _rank(n: int) -> "tuple[int, float]":
    """Returns the rank of the smallest and largest of n values that enclose the median at LEVEL,
    and the level reached."""
    rank, outside = 1, 2 * 0.5 ** n
    while True:
        more = outside + 2 * math.comb(n, rank) * 0.5 ** n
        if more > 1 - LEVEL:
            return rank, 1 - outside
        rank, outside = rank + 1, more


class Weighed(NamedTuple):
    """Samples, and the sum of their periods: what they stand for. With a frequency, samples have
    unequal periods."""
    samples: int
    period: int

    def square(self) -> float:
        """Returns the variance of the period, if each sample stands for the same."""
        return self.period ** 2 / self.samples if self.samples else 0.0


def share(name: str, part: Weighed, others: Iterable[Weighed], lost: int) -> Measured:
    """Returns the share of part in it and the others, between 0 and 1. The bound is Wilson's
    interval of 95 %: low if no lost sample belongs to part, high if all of them do. It is that of
    as many equal samples as would vary as much (as share_error() of the program)."""
    others = list(others)
    samples = part.samples + sum(other.samples for other in others)
    period = part.period + sum(other.period for other in others)
    if not samples or not period:
        return Measured(name, {"why": "there are no samples"}, None)
    value = part.period / period
    squares = sum(other.square() for other in others)
    variance = ((1 - value) ** 2 * part.square() + value ** 2 * squares) / period ** 2
    equal = period ** 2 / (part.square() + squares)
    if variance:
        equal = min(equal, value * (1 - value) / variance)
    more = lost * equal / samples
    low = _wilson(value * equal, equal + more)[0]
    high = _wilson(value * equal + more, equal + more)[1]
    bound = {"level": LEVEL, "low": low, "high": high, "readings": samples}
    return Measured(name, {"bound": bound, "samples": part.samples}, value)


def _wilson(part: float, total: float) -> "tuple[float, float]":
    z = statistics.NormalDist().inv_cdf(0.5 + LEVEL / 2)
    centre = (part + z * z / 2) / (total + z * z)
    half = z / (total + z * z) * math.sqrt(part * (total - part) / total + z * z / 4)
    return max(0.0, centre - half), min(1.0, centre + half)


def in_unit(record: Record) -> Record:
    """Returns the record of a count with the bound in the unit of its value. If the PMU's driver
    has a scale, the program's bound is that of the unscaled count."""
    if not record.get("scaled") or "value_in_unit" not in record or "bound" not in record:
        return record
    scale = record["value_in_unit"] / record["scaled"]
    bound = {side: record["bound"][side] * scale for side in ("low", "high")
             if side in record["bound"]}
    return {**record, "bound": {**record["bound"], **bound}}


def of_record(record: Record) -> Optional[Measured]:
    """Returns the value of a count or metric record, or None for other records."""
    if record["type"] == "count":
        value = record.get("value_in_unit", record.get("scaled"))
        return Measured(record["event"], in_unit(record), value)
    if record["type"] == "metric":
        return Measured(record["metric"], record, record.get("value"))
    return None


def listed(measured: List[Measured]) -> str:
    """Returns their names for a message."""
    return ", ".join(dict.fromkeys(one.name for one in measured)) or "nothing"
