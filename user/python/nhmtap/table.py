# SPDX-License-Identifier: GPL-2.0-only
"""The table of tests and events at the end of a run."""
from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, Tuple

from . import baseline
from .measured import Record

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter


class Table:
    """Shows tests and their events in the terminal: as many columns as fit, and the others
    below."""

    def __init__(self, reporter: TerminalReporter, records: List[Record],
                 compared: bool) -> None:
        self.reporter, self.records, self.compared = reporter, records, compared
        self.arrows = {"rose": "^", "fell": "v"}
        if reporter.hasmarkup and _encodes(reporter, "↑"):
            self.arrows = {"rose": "↑", "fell": "↓"}

    def write(self) -> None:
        cells = {(r["test"], e["event"]): e for r in self.records for e in r["events"]}
        events = list(dict.fromkeys(event for _, event in cells))
        tests = [r["test"] for r in self.records if r["events"]]
        if not events:
            return
        title = "nhmtap: medians" + (", change against the baseline" if self.compared else "")
        self.reporter.section(title)
        first = min(max(map(len, tests)), max(20, self.reporter._tw.fullwidth // 2))
        texts = {key: self._cell(event) for key, event in cells.items()}
        widths = {e: max(len(e), *(len(t) for k, (t, _) in texts.items() if k[1] == e))
                  for e in events}
        while events:
            fitting = [events[0]]
            for event in events[1:]:
                if first + sum(widths[e] + 2 for e in (*fitting, event)) > self.reporter._tw.fullwidth:
                    break
                fitting.append(event)
            self._rows(tests, fitting, first, widths, texts)
            events = events[len(fitting):]
        self._notes()

    def _rows(self, tests: List[str], events: List[str], first: int, widths: Dict[str, int],
              texts: Dict[Tuple[str, str], Tuple[str, Dict[str, bool]]]) -> None:
        self.reporter.write_line(" " * first + "".join(f"  {e:>{widths[e]}}" for e in events),
                                 bold=True)
        for test in tests:
            if not any((test, event) in texts for event in events):
                continue
            name = test if len(test) <= first else "..." + test[3 - first:]
            self.reporter.write(f"{name:<{first}}")
            for event in events:
                text, markup = texts.get((test, event), ("", {}))
                self.reporter.write(f"  {text:>{widths[event]}}", **markup)
            self.reporter.write_line("")

    def _cell(self, event: Record) -> Tuple[str, Dict[str, bool]]:
        if "median" not in event:
            return "not counted", {"yellow": True}
        median = baseline.unpack("", event["median"])
        value = median.value or 0
        text = f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
        if not median.exact:
            text = "~" + text
        if not self.compared:
            return text, {}
        if event["outcome"] == "no_baseline":
            return f"{text} new", {}
        amount = f"{100 * event['change']:+.1f}%" if "change" in event else "from 0"
        if not event["real"]:
            return f"{text} {amount} =", {}
        risen = "change" not in event or event["change"] > 0
        colour = {"red": True} if event["outcome"] == "failed" else {"yellow": True}
        return f"{text} {amount} {self.arrows['rose' if risen else 'fell']}", colour

    def _notes(self) -> None:
        machines = dict.fromkeys((r["cpu"], r["kernel"]) for r in self.records if r["kernel"])
        for cpu, kernel in machines:
            self.reporter.write_line(f"on {cpu}, Linux {kernel}")
        emulated = dict.fromkeys((e["model"], e["version"]) for r in self.records if (e := r.get("emulated")))
        for model, version in emulated:
            self.reporter.write_line(f"emulated machine ({model}, version {version}): cycles and latencies are a model's")
        empty = {e["event"].split(" #")[0]: e["empty_block"] for r in self.records
                 for e in r["events"] if e.get("empty_block") is not None}
        if empty:
            told = ", ".join(f"{name} {baseline.bounded(baseline.unpack('', run))}"
                             for name, run in empty.items())
            self.reporter.write_line(f"in these, of the measuring itself: {told}")


def _encodes(reporter: TerminalReporter, text: str) -> bool:
    try:
        text.encode(getattr(reporter._tw._file, "encoding", None) or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True
