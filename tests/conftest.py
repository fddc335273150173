# SPDX-License-Identifier: GPL-2.0-only
import pytest

from records import Tool


@pytest.fixture
def nhmtap():
    """Runs nhmtap; what it writes is checked against its schemas, always."""
    return Tool()
