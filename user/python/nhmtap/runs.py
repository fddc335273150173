# SPDX-License-Identifier: GPL-2.0-only
"""Runs commands under nhmtap: stat, profile, mem, analyze."""
from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import program as programs
from .measured import Measured, Record, Weighed, found, listed, of_record, over_repeats, share

Names = Union[str, Sequence[str]]

# The members of an event's attr that say what it counts.
ENCODING = ("type", "config", "config1", "config2", "exclude_user", "exclude_kernel", "exclude_hv",
            "exclude_idle", "exclude_host", "exclude_guest")

# The members that distinguish the rows of an interval.
ROW = ("start_time", "repeat", "cpu", "core", "socket", "node", "tid", "comm", "cgroup")


def _repeats_first(events: Sequence[Record], record: Record) -> bool:
    """Whether a count is of the same event as the first one of its name: requested twice, or for a
    metric too. Two events with one name= are not."""
    if record.get("nth", 1) == 1:
        return True
    named = [event["attr"] for event in events if event["name"] == record["event"]]
    return bool(named) and all(named[0].get(k) == named[record["nth"] - 1].get(k) for k in ENCODING)


class Counts(Mapping[str, Measured]):
    """Counts and metrics by their names. Of several events of one name (name=), the second has the name "NAME (2)",
    and so on: they count different things. .records: all records of the run."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records: List[Record] = list(records)
        self._measured: Dict[str, List[Measured]] = {}
        seen = set()
        events: Sequence[Record] = ()
        for record in records:
            events = record.get("events", events)
            measured = of_record(record)
            if not measured:
                continue
            # A metric counts its inputs once more. The requested event comes first and is kept.
            which = 1 if _repeats_first(events, record) else record["nth"]
            row = (measured.name, which, *(record.get(key) for key in ROW))
            if row not in seen:
                seen.add(row)
                if which > 1:
                    measured.name += f" ({which})"
                self._measured.setdefault(measured.name, []).append(measured)

    def all(self, name: str) -> List[Measured]:
        """Returns everything that was measured under this name: several with -r, -I or --per."""
        __tracebackhide__ = True
        known = name if name in self._measured else found(self._measured, name)
        if known:
            return list(self._measured[known])
        raise KeyError(f"{name} was not measured; measured: "
                       f"{listed([m for ms in self._measured.values() for m in ms])}")

    def over_repeats(self, name: str) -> Measured:
        """Returns the median of what was measured under this name, with a bound from its spread."""
        __tracebackhide__ = True
        return over_repeats(self.all(name))

    def __getitem__(self, name: str) -> Measured:
        __tracebackhide__ = True
        measured = self.all(name)
        if len(measured) > 1:
            raise LookupError(f"{name} was measured {len(measured)} times: see all(), over_repeats()")
        return measured[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._measured)

    def __len__(self) -> int:
        return len(self._measured)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(repr(m) for n in self for m in self.all(n))})"


class Run(Counts):
    """The results of a run. run["page-faults"] is a measured value, run.all("page-faults") the list
    of these. .status is the command's exit status, negative for a signal; .stdout and .stderr are
    its output if it was captured; .records are all records."""

    def __init__(self, done: programs.Done) -> None:
        super().__init__(done.records)
        self.stdout, self.stderr = done.stdout, done.stderr
        self.status = _status(done)


def _status(done: programs.Done) -> int:
    command = done.records[-1].get("command", {})
    return int(command.get("exit_code", -command.get("signal", 0)))


class Samples(Mapping[str, Measured]):
    """Shares of a run's samples, between 0 and 1, by name, largest first. A sample weighs what it
    stands for, its period. The bound of a share has a level of 95 % and includes that lost samples
    may have had any name. .status, .stdout, .stderr
    and .records are as in Run; .samples has the number of samples: expected, aggregated, and lost
    by cause."""

    def __init__(self, done: programs.Done, record_type: str) -> None:
        self.records, self.status = done.records, _status(done)
        self.stdout, self.stderr = done.stdout, done.stderr
        parts = [r for r in done.records if r.get("type") == record_type]
        self._parts = parts
        accounts = [r["samples"] for r in parts if "samples" in r]
        self.samples: Dict[str, Any] = {
            "expected": sum(a["expected"] for a in accounts),
            "aggregated": sum(a["aggregated"] for a in accounts),
            "lost": {cause: sum(a["lost"].get(cause, 0) for a in accounts)
                     for a in accounts for cause in a["lost"]},
        }
        totals: Dict[str, Weighed] = {}
        for name, entry in self._named():
            known = totals.get(name, Weighed(0, 0))
            totals[name] = Weighed(known.samples + entry["samples"], known.period + entry.get("period", entry["samples"]))
        self._totals = dict(sorted(totals.items(), key=lambda pair: -pair[1].period))

    def _named(self) -> Iterator[Tuple[str, Dict[str, Any]]]:
        raise NotImplementedError

    def share(self, name: str) -> Measured:
        """Returns the share of a name. A name without samples has a share of 0 with an upper
        bound."""
        lost = sum(self.samples["lost"].values())
        others = (total for other, total in self._totals.items() if other != name)
        return share(name, self._totals.get(name, Weighed(0, 0)), others, lost)

    def __getitem__(self, name: str) -> Measured:
        __tracebackhide__ = True
        if name not in self._totals:
            raise KeyError(f"{name} has no sample; the largest are {', '.join(list(self)[:5])}")
        return self.share(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._totals)

    def __len__(self) -> int:
        return len(self._totals)

    def table(self, top: int = 10) -> str:
        """Returns the names with the largest shares, one per line."""
        lines = [f"{100 * self.share(name).value:6.1f} %  {name}"  # type: ignore[operator]
                 for name in list(self)[:top]]
        return "\n".join(lines) or "no samples"


def _check_one_event(parts: Sequence[Record]) -> None:
    """Raises ValueError if the samples are of several events, which stand for different things."""
    events = sorted({(part.get("event", ""), part.get("nth", 1)) for part in parts})
    if len(events) > 1:
        raise ValueError(f"shares are of one event, and {', '.join(name for name, _ in events)} were sampled. "
                         "Next: sample each by itself")


class Profile(Samples):
    """Functions and their shares: profile["main"] > 0.2. Code without a name is listed by its
    module."""

    def __init__(self, done: programs.Done) -> None:
        super().__init__(done, "profile")
        _check_one_event(self._parts)

    def _named(self) -> Iterator[Tuple[str, Dict[str, Any]]]:
        for part in self._parts:
            for entry in part["entries"]:
                yield function_of(entry.get("code", {})), entry


class Mem(Samples):
    """Where loads found their data: mem["local_dram"] < 0.1. .entries are the entries of the
    records, with samples and latencies by the keys of --by."""

    def __init__(self, done: programs.Done) -> None:
        super().__init__(done, "mem")
        for source in self:  # stores, which --shared samples too, have sources of their own
            _check_one_event([p for p in self._parts if source in (s["source"] for s in p.get("sources", []))])
        self.entries: List[Dict[str, Any]] = [e for p in self._parts for e in p.get("entries", [])]

    def _named(self) -> Iterator[Tuple[str, Dict[str, Any]]]:
        for part in self._parts:
            for source in part.get("sources", []):
                yield source["source"], source


class Analysis(Mapping[str, Measured]):
    """Where the cycles go: analysis["memory_bound"] < 0.2. Shares are between 0 and 1. One that was not
    measured has no value, and its reason. .verdict has the largest, and then each that may be larger.
    .status, .stdout, .stderr and .records are as in Run."""

    def __init__(self, done: programs.Done) -> None:
        self.records, self.status = done.records, _status(done)
        self.stdout, self.stderr = done.stdout, done.stderr
        parts = [r for r in done.records if r.get("type") == "analysis"]
        self.verdict: List[str] = [one["name"] for one in parts[0]["verdict"]] if parts else []
        self._shares = {s["name"]: Measured(s["name"], {**s, "bound": {k: s[k] for k in ("low", "high") if k in s}},
                                            s.get("share"))
                        for part in parts for s in part["shares"]}

    def __getitem__(self, name: str) -> Measured:
        __tracebackhide__ = True
        if name not in self._shares:
            raise KeyError(f"{name} is no share; there are {', '.join(self._shares)}")
        return self._shares[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shares)

    def __len__(self) -> int:
        return len(self._shares)


def function_of(code: Mapping[str, Any]) -> str:
    """Returns the function of a piece of code, or its module if it has no name."""
    if "symbol" in code:
        return str(code["symbol"])
    return str(code.get("module", "unknown"))


def _options(chosen: Sequence[Tuple[str, Names]], options: Sequence[Any]) -> List[str]:
    texts = []
    for flag, names in chosen:
        text = names if isinstance(names, str) else ",".join(map(str, names))
        texts += [flag, text] if text else []
    return texts + [str(option) for option in options]


def values_of(options: Sequence[str], long: str, short: str = "--") -> Iterator[str]:
    """Returns the values that an option has in a list of options."""
    for i, option in enumerate(options):
        if option in (short, long):
            yield from options[i + 1:i + 2]
        elif option.startswith(long + "="):
            yield option[len(long) + 1:]
        elif option.startswith(short) and not option.startswith("--"):
            yield option[len(short):]


def _own() -> "set[str]":
    return {str(os.getpid()), *os.listdir("/proc/self/task")}


def check_ends(command: Sequence[Any], options: Sequence[str], timeout: Optional[float]) -> None:
    """Raises ValueError for a run that nothing ends: the caller would wait forever."""
    __tracebackhide__ = True
    if command or timeout is not None:
        return
    if any(o.startswith(("--duration", "--interval-count", "--control", "-h", "--help"))
           for o in options):
        return
    targets = [number for long, short in (("--pid", "-p"), ("--tid", "-t"))
               for value in values_of(options, long, short) for number in value.split(",")]
    if _own() & set(targets):
        raise ValueError("the run would end with the process that waits for it. Next: use measure() "
                         "for the test's own process, or give --duration")
    if not targets and any(o.startswith(("-a", "--all-cpus", "-C", "--cpu", "-G", "--cgroup",
                                         "--for-each-cgroup")) for o in options):
        raise ValueError("there is no command and nothing ends the run. Next: give a command, "
                         "--duration or a timeout")


def _run(activity: str, command: Sequence[Any], arguments: Sequence[str], program: Optional[str],
         timeout: Optional[float], popen: Mapping[str, Any]) -> programs.Done:
    __tracebackhide__ = True
    check_ends(command, arguments, timeout)
    return programs.run([activity, *arguments], command, program=program, timeout=timeout, **popen)


def stat(command: Sequence[Any], events: Names = (), metrics: Names = (),
         options: Sequence[Any] = (), *, repeat: int = 1, program: Optional[str] = None,
         timeout: Optional[float] = None, **popen: Any) -> Run:
    """Runs a command (a list) under `nhmtap stat` and returns its Run.

    events and metrics are as for -e and -M; without either, the defaults are measured. repeat: the
    number of runs of the command, of which over_repeats() returns medians. options: more options of
    nhmtap stat. program: see find(). Raises Refused for what nhmtap refuses, Timeout after timeout
    seconds, and Ended if nhmtap dies. Other arguments are as for subprocess.run(): capture_output,
    cwd, env, input, text, …
    """
    __tracebackhide__ = True
    arguments = _options([("-e", events), ("-M", metrics)], options)
    if repeat > 1:
        arguments += ["-r", str(repeat)]
    return Run(_run("stat", command, arguments, program, timeout, popen))


def profile(command: Sequence[Any], event: str = "", options: Sequence[Any] = (), *,
            program: Optional[str] = None, timeout: Optional[float] = None, **popen: Any) -> Profile:
    """Runs a command under `nhmtap profile` and returns the shares of its functions as a Profile. event
    is as for -e; the rest is as in stat()."""
    __tracebackhide__ = True
    arguments = ["--by", "symbol", *_options([("-e", event)], options)]
    return Profile(_run("profile", command, arguments, program, timeout, popen))


def mem(command: Sequence[Any], event: str = "", options: Sequence[Any] = (), *,
        program: Optional[str] = None, timeout: Optional[float] = None, **popen: Any) -> Mem:
    """Runs a command under `nhmtap mem` and returns where its loads found their data as a Mem. The
    arguments are as in profile()."""
    __tracebackhide__ = True
    return Mem(_run("mem", command, _options([("-e", event)], options), program, timeout, popen))


def analyze(command: Sequence[Any], options: Sequence[Any] = (), *, program: Optional[str] = None,
            timeout: Optional[float] = None, **popen: Any) -> Analysis:
    """Runs a command under `nhmtap analyze`, several times, and returns where its cycles go as an
    Analysis. The arguments are as in stat()."""
    __tracebackhide__ = True
    return Analysis(_run("analyze", command, _options([], options), program, timeout, popen))
