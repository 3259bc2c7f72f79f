"""The pack is a process for one operation, and keeps what it told and checked; each test is one."""

import pytest

from kthena_components.policies import pack, resource_checks


@pytest.fixture(autouse=True)
def nothing_told() -> None:
    pack._told.clear()
    pack._alone.clear()
    resource_checks._kept.clear()
