"""Settings of every test."""

from collections.abc import Iterator
from typing import NoReturn

import pytest
from hypothesis import settings

from kthena_components.core import findings

# A loaded machine is slow, not wrong: a test never depends on wall time.
settings.register_profile("project", deadline=None)
settings.load_profile("project")

_write_place = findings._raised


def _raise(error: Exception) -> NoReturn:
    raise error


# A rule that fails ends the test, as if it were not made into a finding.
findings._raised = _raise


@pytest.fixture
def faults_told() -> Iterator[None]:
    """Tell a rule that fails as users are told."""
    findings._raised = _write_place
    yield
    findings._raised = _raise
