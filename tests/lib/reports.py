# SPDX-License-Identifier: GPL-2.0-only
"""What sanitizers report of processes without a stderr: user/base/reports.h."""
import os
import tempfile

import pytest


class Reports:
    """The file of this pytest worker."""

    def __init__(self):
        folder = tempfile.mkdtemp(prefix="nhmtap-reports-")
        os.chmod(folder, 0o711)
        self.path = os.path.join(folder, "reports")
        with open(self.path, "w", encoding="ascii"):
            os.chmod(self.path, 0o666)  # also for those who have given up root
        os.environ["NHMTAP_REPORTS"] = self.path

    def take(self):
        """Returns what is there, and removes it."""
        with open(self.path, "r+", encoding="utf-8", errors="replace") as file:
            text = file.read()
            file.truncate(0)
        return text

    def remove(self):
        os.unlink(self.path)
        os.rmdir(os.path.dirname(self.path))


@pytest.fixture(scope="session")
def all_reports():
    made = Reports()
    yield made
    made.remove()


@pytest.fixture(autouse=True)
def reports(all_reports):
    """Fails a test in which a sanitizer reports anything. A test that makes one report takes what is said."""
    yield all_reports
    said = all_reports.take()
    assert not said, said
