# SPDX-License-Identifier: GPL-2.0-only
"""Counts as results of tests, for pytest.

The marker measures a test's call phase and fails it unless all of its expectations hold:

    @pytest.mark.expect("page-faults<1e5", "ipc>0.8", repeat=5)
    def test_parsing(): ...

The test runs `repeat` times with the same fixtures. The median is compared; its bound shows how
much the repeats differ. A limit within the bound is a failure ("cannot tell"). A name without a
comparison ("instructions:u") is only measured and reported.

The fixture nhmtap has the package's functions: nhmtap.stat(), .profile(), .mem(), .analyze(), .measure() and
.find(). Its measurements are reported as well.

A test that needs what this machine can't measure is skipped (with --nhmtap-strict, it fails).
`pytest --help` lists the options under nhmtap. Reports are a table at the end, user_properties
(junit), and --nhmtap-json.
"""
from __future__ import annotations

import contextlib
import copy
import json
import math
import operator
import os
import pathlib
import re
import subprocess
import time
from typing import (TYPE_CHECKING, Any, Callable, Dict, Generator, Iterator, List, NamedTuple, Optional, Sequence,
                    Tuple)

import pytest

from . import baseline, inprocess, machine, program, runs
from .errors import CannotTell, Ended, Error, NotCounted, Refused
from .measured import Measured, Record, called, first_of, found, over_repeats, plain
from .table import Table

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

SCHEMA_VERSION = "1.0.0"
# How often a test is measured for a baseline, or against one. Fewer repeats do not show the spread.
BASELINE_REPEATS = 5

OPERATORS: Dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
}
# As the program reads --expect: the last comparison, because names of events may contain = too.
EXPECTATION = re.compile(r"(?P<name>.*[^<>=\s])\s*(?P<operator>[<>=]+)\s*(?P<limit>[^<>=/]+)")

# As the program reads limits: 10k, 20ms, 5%.
SUFFIXES = {"": (1, False), "k": (1e3, False), "K": (1e3, False), "M": (1e6, False), "G": (1e9, False),
            "ns": (1, True), "us": (1e3, True), "ms": (1e6, True), "s": (1e9, True), "%": (1, False)}
SUFFIXED = re.compile(r"(.*?)\s*([kKMG%]|[num]?s)?", re.DOTALL)
ELAPSED = ("elapsed", "duration_time")

PROPERTY = "nhmtap."
MACHINE = "--nhmtap-machine"

COLLECTED = pytest.StashKey["Collected"]()
SUITE = pytest.StashKey["Suite"]()


def _number(text: str) -> float:
    """The number of a text, as strtod() takes it. Raises ValueError."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    try:
        return float.fromhex(text) if re.match("[-+]?0x", text, re.IGNORECASE) else float(text)
    except OverflowError as error:
        raise ValueError(text) from error


class Expectation(NamedTuple):
    """What is expected of an event or metric. Without an operator it is only measured."""

    text: str
    name: str
    operator: str
    limit: float  # if is_time, in nanoseconds
    is_time: bool = False
    is_percent: bool = False

    @classmethod
    def parse(cls, text: str) -> "Expectation":
        """Raises ValueError."""
        match = EXPECTATION.fullmatch(text.strip())
        if not match:
            if re.search(r"[<>]|=\s*[-+.\d]*$", text) or not text.strip():
                raise ValueError(f"expect: {text!r} is no comparison with a number")
            return cls(text, text.strip(), "", 0)
        limit, suffix = SUFFIXED.fullmatch(match["limit"].strip()).groups()  # type: ignore[union-attr]
        try:
            factor, is_time = SUFFIXES[suffix or ""]
            limit = _number(limit) * factor
        except ValueError:
            if "/" in text or match["operator"] == "=":  # the = is one of the event's terms
                return cls(text, text.strip(), "", 0)
            raise ValueError(f"expect: {match['limit']!r} in {text!r} is no number") from None
        if not math.isfinite(limit):
            raise ValueError(f"expect: {match['limit']!r} in {text!r} is no number")
        if match["operator"] not in OPERATORS:
            raise ValueError(f"expect: there is no comparison {match['operator']} ({text!r}): "
                                    f"use one of {' '.join(OPERATORS)}")
        return cls(text, match["name"].strip(), match["operator"], limit, is_time, suffix == "%")

    @property
    def means_elapsed(self) -> bool:
        """Whether it is of the time that the test takes, unless an event has this name."""
        return bool(self.operator) and self.name.lower() in ELAPSED


class Expected(NamedTuple):
    """The expectations of a test's markers."""

    expectations: List[Expectation]
    repeat: Optional[int]

    @classmethod
    def of(cls, item: pytest.Item) -> "Expected":
        """Raises ValueError."""
        markers = list(item.iter_markers("expect"))
        repeat = None
        for marker in reversed(markers):  # the nearest marker comes last and decides
            unknown = set(marker.kwargs) - {"repeat"}
            if unknown:
                raise ValueError(f"expect: there is no argument {', '.join(sorted(unknown))}")
            repeat = marker.kwargs.get("repeat", repeat)
        if repeat is not None and (not isinstance(repeat, int) or repeat < 1):
            raise ValueError(f"expect: repeat={repeat!r} is no whole number from 1")
        texts = dict.fromkeys(text for marker in reversed(markers) for text in marker.args)
        expectations = [Expectation.parse(text) for text in texts]
        for one in cls(expectations, repeat).elapsed:
            if not one.is_time:
                raise ValueError(f"expect: the limit in {one.text!r} has no unit of time: "
                                 "write ns, us, ms or s behind the number: 'elapsed<2s'")
        return cls(expectations, repeat)

    @property
    def elapsed(self) -> List[Expectation]:
        """What is expected of the time that the test takes."""
        others = {name.lower() for name in called(one.name for one in self.expectations if not one.means_elapsed).values()}
        return [one for one in self.expectations if one.means_elapsed and one.name.lower() not in others]

    @property
    def names(self) -> List[str]:
        """The names to be measured."""
        elapsed = self.elapsed
        return [one.name for one in self.expectations if one not in elapsed]


class Series:
    """The values of one event or metric in the repeats of a test."""

    def __init__(self, event: str) -> None:
        self.event = event
        self.runs: List[Measured] = []
        self.empty_block: Optional[Measured] = None
        self.change: Optional[baseline.Change] = None
        self.outcome = "measured"


class Collected:
    """All measurements of a test."""

    def __init__(self, marked: Sequence[str] = ()) -> None:
        self.marked = called(marked)  # what the marker measures, and the names that this has
        self.series: Dict[str, Series] = {}
        self.machine = ("", "")
        self.emulated: Optional[Dict[str, str]] = None
        self.expectations: List[Dict[str, Any]] = []
        self.used = False
        self._taken: Dict[str, int] = {}
        self._by_fixtures: Dict[str, int] = {}

    def begin_call(self, marked: Sequence[str]) -> None:
        """Begins the call phase: earlier measurements are of fixtures. marked: what the marker
        measures."""
        self.marked = called(marked)
        self._by_fixtures = dict(self._taken)

    def begin_repeat(self) -> None:
        """Begins a repeat, whose measurements continue the series of earlier repeats."""
        self._taken = dict(self._by_fixtures)

    def add(self, counts: runs.Counts, only: Sequence[str] = ()) -> List[Series]:
        """Adds what a call of the fixture measured of a whole process or command. only: these
        names. The first series of an event has the event's name, unless the marker measures it as
        well."""
        added = []
        for name, measured in self._whole(counts, only):
            least = 1 if any(found([name], marked) for marked in self.marked.values()) else 0
            self._taken[name] = number = self._taken.get(name, least) + 1
            added.append(self._continue(name if number == 1 else f"{name} #{number}", measured))
        return added

    def add_marked(self, counts: runs.Counts) -> List[Series]:
        """Adds what the marker measured."""
        return [self._continue(name, measured) for name, measured in self._whole(counts, list(self.marked))]

    def _whole(self, counts: runs.Counts,
               only: Sequence[str]) -> Iterator[Tuple[str, List[Measured]]]:
        self.note_machine(counts.records)
        wanted = {found(counts, name) for name in (called(only).values() if only else counts)}
        for name in counts:
            measured = counts.all(name)
            parts = any(k in m.record for m in measured for k in ("cpu", "node", "tid", "cgroup"))
            if name in wanted and not parts:
                yield name, measured

    def _continue(self, event: str, measured: List[Measured]) -> Series:
        series = self.series.setdefault(event, Series(event))
        series.runs += measured
        return series

    def note_machine(self, records: Sequence[Record]) -> None:
        """Remembers the CPU model and kernel from a start record."""
        for record in records:
            if record["type"] == "start" and "host" in record:
                host = record["host"]
                self.emulated = host.get("emulated")
                # A name of its own, so that no baseline of a real CPU is compared with a model's.
                kind = f", emulated ({self.emulated['model']})" if self.emulated else ""
                self.machine = (host.get("cpu", {}).get("model_name", "") + kind, host.get("kernel", ""))

    def record(self, test: str) -> Record:
        """Returns the record for --nhmtap-json (test.schema.json)."""
        emulated = {"emulated": self.emulated} if self.emulated else {}
        return {"type": "test", "schema_version": SCHEMA_VERSION, "test": test,
                "cpu": self.machine[0], "kernel": self.machine[1], **emulated,
                "events": [_event_record(series) for series in self.series.values()],
                "expectations": self.expectations}


def _event_record(series: Series) -> Record:
    median = over_repeats(series.runs)
    record: Record = {"event": series.event, "runs": [baseline.pack(m) for m in series.runs]}
    if median.unit:
        record["unit"] = median.unit
    if median.value is None:
        record["why"] = median.record.get("why", "not counted")
    else:
        record["median"] = baseline.pack(median)
    if series.empty_block is not None:
        record["empty_block"] = baseline.pack(series.empty_block)
    return {**record, **_compared(series)}


def _compared(series: Series) -> Record:
    record: Record = {"outcome": series.outcome}
    if series.change is not None:
        record["before"] = baseline.pack(series.change.before)
        if abs(series.change.share) != float("inf"):
            record["change"] = series.change.share
        record["real"] = series.change.real
    return record


class Tool:
    """The fixture nhmtap: the package's functions. Their results become part of the test's
    results."""

    def __init__(self, collected: Collected) -> None:
        self._collected = collected

    def find(self) -> program.Program:
        """Returns the program that is run: see nhmtap.find()."""
        __tracebackhide__ = True
        return program.find()

    def stat(self, command: Sequence[Any], events: runs.Names = (), metrics: runs.Names = (),
             options: Sequence[Any] = (), **more: Any) -> runs.Run:
        """As nhmtap.stat()."""
        __tracebackhide__ = True
        self._collected.used = True
        run = runs.stat(command, events, metrics, options, **more)
        self._collected.add(run)
        return run

    def profile(self, command: Sequence[Any], event: str = "", options: Sequence[Any] = (),
                **more: Any) -> runs.Profile:
        """As nhmtap.profile()."""
        __tracebackhide__ = True
        self._collected.used = True
        return runs.profile(command, event, options, **more)

    def mem(self, command: Sequence[Any], event: str = "", options: Sequence[Any] = (),
            **more: Any) -> runs.Mem:
        """As nhmtap.mem()."""
        __tracebackhide__ = True
        self._collected.used = True
        return runs.mem(command, event, options, **more)

    def analyze(self, command: Sequence[Any], options: Sequence[Any] = (), **more: Any) -> runs.Analysis:
        """As nhmtap.analyze()."""
        __tracebackhide__ = True
        self._collected.used = True
        return runs.analyze(command, options, **more)

    def measure(self, *names: str, options: Sequence[Any] = (),
                program: Optional[str] = None) -> inprocess.Measurement:
        """As nhmtap.measure()."""
        __tracebackhide__ = True
        self._collected.used = True
        return Block(self._collected, names, options, program)


class Block(inprocess.Measurement):
    """A measurement that becomes part of the test's results."""

    def __init__(self, collected: Collected, names: Sequence[str], options: Sequence[Any],
                 program_path: Optional[str]) -> None:
        __tracebackhide__ = True
        super().__init__(names, options, program_path)
        self._collected, self._names = collected, names

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        __tracebackhide__ = True
        super().__exit__(kind, error, traceback)
        if os.getpid() == self._owner and kind is None:
            for series in self._collected.add(self, self._names):
                series.empty_block = self.empty_block().get(series.event.split(" #")[0])


@pytest.fixture
def nhmtap(request: pytest.FixtureRequest) -> Tool:
    """nhmtap.stat(), .profile(), .mem(), .analyze(), .measure(), .find(): counts of commands and blocks."""
    return Tool(_collected(request.node))


def _collected(item: pytest.Item) -> Collected:
    return item.stash.setdefault(COLLECTED, Collected())


class Call:
    """Runs a test's call phase as often as it has to be measured, and checks the expectations."""

    def __init__(self, item: pytest.Item, suite: "Suite", runtest: Callable[[], None]) -> None:
        self.item, self.suite, self.runtest = item, suite, runtest
        self.collected = _collected(item)
        self.measurement: Optional[inprocess.Measurement] = None
        self.elapsed: List[Measured] = []  # of each repeat
        try:
            self.expected = Expected.of(item)
        except ValueError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        self.repeat = self.expected.repeat or suite.repeat
        self.collected.begin_call(self.expected.names)

    def __call__(self) -> None:
        __tracebackhide__ = True
        again = self.suite.rerun
        while True:
            try:
                self._measure()
                self._judge()
                return
            except CannotTell:
                if not again:
                    raise
                again -= 1

    def _measure(self) -> None:
        __tracebackhide__ = True
        if self.expected.names and self.measurement is None:
            self.collected.used = True
            self.measurement = inprocess.measure(*self.expected.names)
        for _ in range(self.repeat):
            self.collected.begin_repeat()
            with _globals_kept(self.item):
                if self.measurement is None:
                    self._run()
                else:
                    with self.measurement:
                        self._run()
                    for series in self.collected.add_marked(self.measurement):
                        series.empty_block = self.measurement.empty_block().get(series.event)
            if not self.collected.used and not self.expected.elapsed:
                return

    def _run(self) -> None:
        __tracebackhide__ = True
        begin = time.perf_counter_ns()
        self.runtest()
        self.elapsed.append(Measured(ELAPSED[0], {"unit": "ns"}, time.perf_counter_ns() - begin))

    def _judge(self) -> None:
        __tracebackhide__ = True
        verdicts = [self._outcome(expectation) for expectation in self.expected.expectations]
        self.collected.expectations = verdicts
        failed = [v["sentence"] for v in verdicts if v["outcome"] == "failed"]
        unknown = [v["sentence"] for v in verdicts if v["outcome"] == "cannot_tell"]
        failed += self._compare()
        if failed:
            raise pytest.fail.Exception("\n".join(failed + unknown), pytrace=False)
        if self.suite.on_machine:
            self._need_all()
        if unknown:
            raise CannotTell("\n".join(unknown))

    def _need_all(self) -> None:
        __tracebackhide__ = True
        for name in self.expected.names:
            series = self.collected.series.get(self._series_of(name) or "")
            if series:
                float(over_repeats(series.runs))

    def _series_of(self, asked: str) -> Optional[str]:
        """Returns the name of the series that the marker measures for this. An event that is asked for twice, in two
        spellings of one name, is one."""
        name = self.collected.marked[asked]
        return found(self.collected.series, name) or found(self.collected.series, first_of(name))

    def _values_of(self, expectation: Expectation) -> Tuple[str, List[Measured]]:
        """Returns the name under which it was measured, and the values of all repeats."""
        if expectation in self.expected.elapsed:
            return expectation.name, self.elapsed
        name = self._series_of(expectation.name)
        if name is None:
            raise Error(f"{expectation.name} was not measured; measured: "
                        f"{', '.join(self.collected.series) or 'nothing'}")
        return name, self.collected.series[name].runs

    def _outcome(self, expectation: Expectation) -> Dict[str, Any]:
        name, values = self._values_of(expectation)
        measured = over_repeats(values)
        record: Dict[str, Any] = {"expectation": expectation.text, "event": name,
                                  "outcome": "met", "sentence": f"{measured!r}"}
        if not expectation.operator:
            return record
        record["limit"] = expectation.limit
        if expectation.is_time and measured.unit != "ns":
            raise Error(f"expect: {expectation.text!r}: {name} is no time")
        if expectation.is_percent and measured.unit != "%":
            raise Error(f"expect: {expectation.text!r}: {name} is no share in percent")
        try:
            if not OPERATORS[expectation.operator](measured, expectation.limit):
                record.update(outcome="failed", sentence=f"expected {expectation.text}: {measured!r}")
        except CannotTell as error:
            record.update(outcome="cannot_tell",
                          sentence=f"cannot tell whether {expectation.text}: {error}")
        return record

    def _compare(self) -> List[str]:
        """Compares with the baseline. Returns a sentence for each limit that is exceeded."""
        return [sentence for series in self.collected.series.values()
                for sentence in self.suite.compare(series, self.item.nodeid, self.collected.machine, exact=False)]


@contextlib.contextmanager
def _globals_kept(item: pytest.Item) -> Iterator[None]:
    """Restores the variables of a doctest, which it drops when it has run."""
    test = getattr(item, "dtest", None)
    kept = dict(test.globs) if test else {}
    yield
    if test:
        test.globs.update(kept)


class Suite:
    """The plugin in a run, or in one of xdist's workers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.worker = hasattr(config, "workerinput")
        self.strict: bool = config.getoption("nhmtap_strict")
        self.rerun: int = config.getoption("nhmtap_rerun")
        self.save: Optional[str] = config.getoption("nhmtap_save")
        compare: Optional[str] = config.getoption("nhmtap_compare")
        self.json: Optional[str] = config.getoption("nhmtap_json")
        self.profile_on_fail: bool = config.getoption("nhmtap_profile_on_fail")
        repeat: Optional[int] = config.getoption("nhmtap_repeat")
        self.on_machine: bool = config.getoption("nhmtap_on_machine", False)
        words: Optional[str] = config.getoption("nhmtap_machine")
        # The machine counts the same each time.
        self.repeat = repeat or (BASELINE_REPEATS if (self.save or compare) and words is None else 1)
        self.machine: Optional[machine.Machine] = None
        self.records: Dict[str, Record] = {}
        self.unwritten: List[str] = []  # what to say of files that could not be written
        self.before: Optional[Dict[baseline.Key, List[baseline.Run]]] = None
        try:
            self.limits = [baseline.Limit.parse(t) for t in config.getoption("nhmtap_fail")]
            if compare:
                self.before = baseline.load(compare)
            if self.save and os.path.exists(self.save) and not os.path.isfile(self.save):
                raise ValueError(f"{self.save} is no regular file, which a baseline needs to be replaced")
            if self.save and os.path.exists(self.save):
                baseline.load(self.save)
            if self.json and os.path.isdir(self.json):
                raise ValueError(f"{self.json} is a folder")
            for path in filter(None, (self.save, self.json)):
                if not pathlib.Path(path).absolute().parent.is_dir():
                    raise ValueError(f"{path}: there is no such folder")
        except (OSError, ValueError, baseline.BadFile) as error:
            raise pytest.UsageError(f"nhmtap: {error}") from None
        if self.limits and not compare:
            raise pytest.UsageError("nhmtap: --nhmtap-fail needs --nhmtap-compare FILE")
        if words is not None and not config.getoption("collectonly") and not config.getoption("setupplan"):
            self.machine = machine.Machine(config, words, self.repeat)

    # --- on the emulated machine ----------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tells xdist's workers where the machine is."""
        if self.machine:
            node.workerinput["nhmtap_machine"] = str(self.machine.folder)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Has the machine boot and collect its tests while others run here. Not before: what it imports is in
        Python's caches by now, in each run."""
        first = next(filter(machine.marked, session.items), None)
        if self.machine and first:
            self.machine.prepare(first)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Optional[bool]:
        """Runs a marked test on the machine instead of here."""
        if not self.machine or not machine.marked(item):
            return None
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        reports, stop = self._reports_of(item, self.machine)
        for report in reports:
            item.ihook.pytest_runtest_logreport(report=report)
        if stop:
            raise stop
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return True

    def _reports_of(self, item: pytest.Item, on: machine.Machine) -> Tuple[List[pytest.TestReport], Optional[BaseException]]:
        with contextlib.suppress(AttributeError):  # pytest-timeout's: the guest has its own
            item.config.hook.pytest_timeout_cancel_timer(item=item)
        call = pytest.CallInfo.from_call(lambda: on.run(item), when="setup", reraise=(pytest.exit.Exception, KeyboardInterrupt))
        if call.excinfo:
            if isinstance(call.excinfo.value, Ended):  # as a test that fails
                call.when = "call"
            return [item.ihook.pytest_runtest_makereport(item=item, call=call)], None
        reports, stop = call.result
        for report in reports:
            self._compare_there(report)
        return reports, stop

    def _compare_there(self, report: pytest.TestReport) -> None:
        """Compares what was measured there with the baseline, of which the guest knows nothing."""
        record: Optional[Record] = getattr(report, "nhmtap", None)
        if not record or self.before is None:
            return
        sentences = []
        for event in record["events"]:
            series = Series(event["event"])
            series.runs = [Measured(series.event, {}, None) if run is None else baseline.unpack(series.event, run)
                           for run in event["runs"]]
            sentences += self.compare(series, report.nodeid, (record["cpu"], record["kernel"]), exact=True)
            event.update(_compared(series))
            if series.change:
                report.user_properties.append((f"{PROPERTY}{series.event}.change", str(series.change)))
        if sentences:
            told = [report.longreprtext] if report.failed else []
            report.outcome = record["result"] = "failed"
            report.longrepr = "\n".join(sentences + told)

    def compare(self, series: Series, test: str, cpu_and_kernel: Tuple[str, str], exact: bool) -> List[str]:
        """Compares with the baseline. Returns a sentence for each limit that is exceeded. exact: each difference is
        one of the program."""
        if self.before is None:
            return []
        before = baseline.of_machine(self.before, test, cpu_and_kernel, series.event)
        series.change = baseline.compare(series.runs, before, exact) if before else None
        if not series.change:
            series.outcome = "no_baseline"
            return []
        series.outcome = "same" if not series.change.real else "rose" if series.change.share > 0 else "fell"
        broken = [limit for limit in self.limits if limit.broken(series.event, series.change)]
        if broken:
            series.outcome = "failed"
        return [baseline.sentence(series.event, series.runs, series.change, limit) for limit in broken]

    # --- while a test runs ----------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Refuses arguments of the machine's marker, and drops what an earlier run of the test (pytest-rerunfailures) has measured."""
        for marker in item.iter_markers("nhmtap_machine"):
            if marker.args or marker.kwargs:
                pytest.fail("nhmtap_machine takes no arguments: all tests of a run share one machine, which "
                            "--nhmtap-machine=MODEL,cpus=N,… chooses", pytrace=False)
        marked: List[str] = []
        with contextlib.suppress(ValueError):  # the call phase reports it
            marked = Expected.of(item).names
        item.stash[COLLECTED] = Collected(marked)
        item.user_properties[:] = [(name, value) for name, value in item.user_properties
                                   if not name.startswith(PROPERTY)]

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Measures the call phase if the test has the marker or the fixture."""
        fixture = isinstance(getattr(item, "funcargs", {}).get("nhmtap"), Tool)
        runtest = item.runtest

        def measured() -> None:
            __tracebackhide__ = True
            Call(item, self, runtest)()

        if fixture or item.get_closest_marker("expect"):
            item.runtest = measured  # type: ignore[assignment]
        try:
            yield
        finally:
            item.__dict__.pop("runtest", None)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item,
                                  call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
        """Reports the package's errors, and adds the measurements to the report."""
        collected = item.stash.get(COLLECTED, None)
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, Error):
            call.excinfo = self._told(item, call)
        measured = None
        if collected and call.when == "call" and (collected.series or collected.expectations):
            item.user_properties += _properties(collected)
            measured = collected.record(item.nodeid)
        if (self.profile_on_fail and collected and collected.used and call.when == "call"
                and isinstance(error, (AssertionError, CannotTell, pytest.fail.Exception))):
            self._profile(item)
        outcome = yield
        report = outcome.get_result()
        if measured:
            report.nhmtap = {**measured, "result": report.outcome}

    def _told(self, item: pytest.Item,
              call: pytest.CallInfo[None]) -> pytest.ExceptionInfo[BaseException]:
        """Returns what is reported for an error of the package: a skip if the machine lacks
        something, otherwise the message, with the test's own line if the error comes from there."""
        info = call.excinfo
        assert info
        error = info.value
        told: Optional[BaseException] = None
        absent = (isinstance(error, Refused) and error.by_machine or
                  isinstance(error, NotCounted) and self.on_machine)
        if absent and not self.strict:
            told = pytest.skip.Exception(f"nhmtap: {error}", _use_item_location=True)
        elif not any(str(entry.path) == str(item.path) for entry in info.traceback):
            told = pytest.fail.Exception(f"nhmtap: {error}", pytrace=False)
        if told:
            try:
                raise told
            except BaseException:  # pylint: disable=broad-except
                return pytest.ExceptionInfo.from_current()
        here = os.path.dirname(os.path.abspath(__file__))
        info.traceback = info.traceback.filter(lambda entry: not str(entry.path).startswith(here))
        return info

    def _profile(self, item: pytest.Item) -> None:
        """Runs a failing test once more under nhmtap profile."""
        try:
            profile, records = inprocess.profile_block(item.runtest)
            page = subprocess.run([program.find().path, "flamegraph"], check=False, timeout=600,
                                  input="".join(json.dumps(r) + "\n" for r in records).encode(),
                                  capture_output=True)
            folder = self._reports()
            folder.mkdir(parents=True, exist_ok=True)
            name = re.sub(r"[^\w.-]+", "-", item.nodeid).strip("-")[-200:]
            path = folder / f"{name}.flamegraph.html"
            path.write_bytes(page.stdout)
            text = f"{profile.table()}\nflame graph: {path}"
        except (Error, OSError, subprocess.SubprocessError) as error:
            text = f"there is no profile: {error}"
        item.add_report_section("call", "nhmtap profile", text)

    def _reports(self) -> pathlib.Path:
        """Returns the folder of the report if there is one, or a default."""
        for report in (self.json, self.config.getoption("xmlpath", None)):
            if report:
                return pathlib.Path(report).absolute().parent
        return self.config.rootpath / "nhmtap-profiles"

    # --- the whole run --------------------------------------------------------------------------

    def pytest_report_header(self) -> str:
        """Names the program that is run."""
        try:
            found = program.find()
        except Error as error:
            return f"nhmtap: {error}"
        return f"nhmtap: {found.version}, {found.path} ({found.origin})"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collects what the workers measured. If a test was run again, the last run is kept."""
        record = getattr(report, "nhmtap", None)
        if record and not self.worker:
            self.records[report.nodeid] = record

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Writes the files. If one can't be written, the summary says so and the run fails."""
        if self.worker:
            return
        for option, path, write in (("save", self.save, self._save), ("json", self.json, self._write)):
            try:
                if path:
                    write(path)
            except (OSError, baseline.BadFile) as error:
                reason = getattr(error, "strerror", None) or error
                self.unwritten.append(f"nhmtap: --nhmtap-{option}={path} was not written: {reason}")
                session.exitstatus = session.exitstatus or pytest.ExitCode.USAGE_ERROR

    def _save(self, path: str) -> None:
        # Measurements of a failing test are not saved as a baseline.
        passed = [r for r in self._sorted() if r["result"] == "passed"]
        baseline.save(path, baseline.entries(passed))

    def _write(self, path: str) -> None:
        lines = [json.dumps(r, ensure_ascii=False, allow_nan=False) for r in self._sorted()]
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))

    def _sorted(self) -> List[Record]:
        return [self.records[test] for test in sorted(self.records)]

    def pytest_unconfigure(self) -> None:
        """Ends the sessions that measure this process."""
        inprocess.close_sessions()
        if self.machine:
            self.machine.close()

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Shows the table of tests and events."""
        records = self._sorted()
        if records:
            Table(terminalreporter, records, self.before is not None).write()
        for line in self.unwritten:
            terminalreporter.write_line(line, red=True)


def _properties(collected: Collected) -> List[Tuple[str, object]]:
    """Returns junit's properties: each event's median, and its bound if it has one."""
    properties: List[Tuple[str, object]] = []
    for series in collected.series.values():
        median = over_repeats(series.runs)
        if median.value is None:
            continue
        properties.append((f"{PROPERTY}{series.event}", plain(median.value)))
        if not median.exact:
            properties += [(f"{PROPERTY}{series.event}.{side}", plain(limit)) for side, limit in
                           (("low", median.low), ("high", median.high)) if limit is not None]
        if series.change:
            properties.append((f"{PROPERTY}{series.event}.change", str(series.change)))
    return properties


# --- registration ---------------------------------------------------------------------------------


def _from(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if int(text) < least:
            raise ValueError(text)
        return int(text)
    return number


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds --nhmtap-…"""
    group = parser.getgroup("nhmtap", "nhmtap: counts as results of tests")
    group.addoption(MACHINE, metavar="MODEL", nargs="?", const="",
                    help="run the measured tests, and those marked nhmtap_machine, on the emulated machine (nhmtap "
                         "machine), whose counts are the same each time; MODEL as in --machine=MODEL,cpus=2")
    group.addoption("--nhmtap-strict", action="store_true",
                    help="fail what this machine can't measure instead of skipping it")
    group.addoption("--nhmtap-rerun", metavar="N", type=_from(0), default=0,
                    help="where an outcome can't be told, measure up to N times more and take all "
                         "measurements together")
    group.addoption("--nhmtap-repeat", metavar="N", type=_from(1),
                    help="run each measured test N times, unless its marker says repeat= "
                         f"(default 1; {BASELINE_REPEATS} with --nhmtap-save or --nhmtap-compare)")
    group.addoption("--nhmtap-save", metavar="FILE",
                    help="write what the passing tests measure into FILE, as a baseline")
    group.addoption("--nhmtap-compare", metavar="FILE",
                    help="compare with the baseline in FILE")
    group.addoption("--nhmtap-fail", metavar="EVENT:PERCENT%", action="append", default=[],
                    help="with --nhmtap-compare: fail a test if EVENT has risen by so much or more and "
                         "the bounds of both measurements do not overlap, as in instructions:u:1%%; "
                         "-1%% is for a fall, +-1%% for both; repeatable")
    group.addoption("--nhmtap-json", metavar="FILE",
                    help="write a JSON record of each measured test to FILE")
    group.addoption("--nhmtap-profile-on-fail", action="store_true",
                    help="run a failing measured test once more under nhmtap profile: adds its top "
                         "functions, and a flame graph beside the report")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser, args: List[str]) -> None:
    """Keeps --nhmtap-machine from taking the next word, a path, for its value."""
    if MACHINE in args:
        args[:] = [f"{word}=" if word == MACHINE else word for word in args]
        early_config.known_args_namespace = parser.parse_known_args(args, copy.copy(early_config.option))


def pytest_configure(config: pytest.Config) -> None:
    """Adds the markers."""
    config.addinivalue_line("markers", "expect(*expectations, repeat=1): measure the test's call phase "
                                       "with nhmtap and fail unless 'ipc>0.8', 'page-faults<1e5', … hold")
    config.addinivalue_line("markers", "nhmtap_machine: with --nhmtap-machine, run the test on the emulated machine, "
                                       "as those that are measured")
    config.stash[SUITE] = Suite(config)
    config.pluginmanager.register(config.stash[SUITE], "nhmtap.suite")
