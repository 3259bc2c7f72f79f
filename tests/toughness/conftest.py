"""Marks every test of this folder, so that the loop of one rule can leave them out."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the marker: `pytest -m "not toughness"` leaves these out, and `make test` runs them."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.toughness)
