"""Settings of every test."""

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from kthena_components.core import findings
from tests.support import wheel as wheels
from tests.support.shared import Shared, shared_below

# A loaded machine is slow, not wrong: a test never depends on wall time.
settings.register_profile("project", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("project")

# Collecting the tests makes some 750,000 objects that stay. To search them for cycles again and
# again takes a fifth of the processor time of the collection, in each process.
gc.set_threshold(50_000, 20, 100)

_write_place = findings._raised


def pytest_configure(config: pytest.Config) -> None:
    """Let a seed that is given repeat a run.

    Hypothesis also draws constants of the modules that are loaded, which depend on the tests that
    the process ran before. With a seed, it draws none.
    """
    if config.getoption("hypothesis_seed", None) is not None:
        providers._get_local_constants = lambda: providers._local_constants


def pytest_collection_finish() -> None:
    """Leave what stays until the end out of the searches for cycles."""
    gc.freeze()


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


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """Make folders once for all processes of a run. No test changes what is in them."""
    return shared_below(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def wheel(shared: Shared) -> Path:
    """Build the wheel of this checkout."""
    (file,) = shared("dist", wheels.build).glob("*.whl")
    return file


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give what stands for the packages that pip would download."""
    return wheels.libraries(tmp_path_factory.mktemp("shared") / "libraries")
