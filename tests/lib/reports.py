# SPDX-License-Identifier: GPL-2.0-only
"""What sanitizers report of processes without a stderr: user/base/reports.h."""
import os
import shutil
import tempfile

import pytest


@pytest.fixture(scope="session")
def reports():
    """The path of the file of this pytest worker."""
    folder = tempfile.mkdtemp(prefix="nhmtap-reports-")
    os.chmod(folder, 0o711)
    path = os.path.join(folder, "reports")
    with open(path, "w", encoding="ascii"):
        os.chmod(path, 0o666)  # also for those who have given up root
    os.environ["NHMTAP_REPORTS"] = path
    yield path
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def nothing_reported(reports):
    """Fails a test in which a sanitizer reports anything."""
    yield
    with open(reports, "r+", encoding="utf-8", errors="replace") as file:
        said = file.read()
        file.truncate(0)
    assert not said, said
