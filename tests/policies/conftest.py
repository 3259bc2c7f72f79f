"""The pack tells once in a process what is wrong with its config; each test is a new one."""

import pytest

from kthena_components.policies import pack


@pytest.fixture(autouse=True)
def nothing_told() -> None:
    pack._told.clear()
