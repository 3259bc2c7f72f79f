"""The pack is a process for one operation, and keeps what it reported; each test is a process."""

import pytest

from kthena_components.policies import pack, resource_checks


@pytest.fixture(autouse=True)
def nothing_reported() -> None:
    pack._reported.clear()
    pack._alone.clear()
    resource_checks._kept.clear()
