# SPDX-License-Identifier: GPL-2.0-only
"""The package's exceptions."""
from __future__ import annotations

import subprocess
from typing import Any, Mapping


class Error(Exception):
    """nhmtap could not be found, could not do what was asked, or did not finish."""


class Refused(Error):
    """nhmtap could not do what was asked. .record is its error record."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        sentence = ": ".join(str(record[name]) for name in ("asked", "why") if record.get(name))
        if record.get("remedy"):
            sentence += f". Next: {record['remedy']}"
        super().__init__(sentence)
        self.record = record

    @property
    def by_machine(self) -> bool:
        """Whether the machine or its permissions are the reason. Otherwise the request itself is
        wrong."""
        return bool(self.record.get("exit_status") == 2)


class Ended(Error):
    """nhmtap ended before it had written all of its records."""


class Timeout(Error, subprocess.TimeoutExpired):
    """The command exceeded its timeout. Neither it nor nhmtap is still running."""

    def __init__(self, expired: subprocess.TimeoutExpired) -> None:
        subprocess.TimeoutExpired.__init__(self, expired.cmd, expired.timeout, expired.output,
                                           expired.stderr)

    def __str__(self) -> str:
        return subprocess.TimeoutExpired.__str__(self)


class CannotTell(Error):
    """The result of a comparison is unknown: the limit is within the bound of the estimate, or
    there is no value."""


class NotCounted(CannotTell):
    """There is no value to compare with."""
