"""The files of a checkpoint that a loader keeps."""

from dataclasses import replace

import pytest

from kthena_components.core.memory.estimate import Estimate
from kthena_components.core.memory.held_weights import staged_files
from kthena_components.core.values.images import Version
from tests.core.memory.start_ups import start_ups
from tests.support.for_each import for_each

# Format, GiB of weights, release: GiB that files keep.
STAGED: list[tuple[object, float, Version | None, float]] = [
    ("fastsafetensors", 8.0, None, 8.0),
    ("fastsafetensors", 80.0, (0, 27, 0), 18.63),
    ("fastsafetensors", 8.0, (0, 26, 0), 0.0),
    ("safetensors", 8.0, None, 0.0),
    (None, 8.0, None, 0.0),
]


@for_each(("stated", "weights", "release", "kept"), STAGED)
def test_two_files_are_kept(
    stated: object, weights: float, release: Version | None, kept: float
) -> None:
    options = {} if stated is None else {"--load-format": stated}

    assert staged_files(options, weights, release) == pytest.approx(kept, abs=0.01)


def test_they_are_in_doubt() -> None:
    """An engine is not refused for files that the loader may not keep."""
    start = next(start for start in start_ups() if start.id == "u06")
    estimate, unstaged = start.estimate, replace(start, version="0.26.0").estimate
    assert isinstance(estimate, Estimate)
    assert isinstance(unstaged, Estimate)
    assert estimate.terms is not None
    assert unstaged.terms is not None

    assert estimate.cache == pytest.approx(unstaged.cache - estimate.terms.staged, abs=0.5)
    assert estimate.terms.doubt - unstaged.terms.doubt == pytest.approx(estimate.terms.staged)
