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


# GiB of weights, release, GPU: GiB that files keep: copies on the host of 16 GiB for files of 10
# GB, and a smaller one for the last file.
COPIED: list[tuple[float, Version | None, str, float]] = [
    (21.89, (0, 28, 0), "NVIDIA GB10", 16 + 4),
    (80.0, (0, 22, 0), "NVIDIA GB10", 16 + 8),
    (7.0, (0, 28, 0), "NVIDIA GB10", 8),
    (21.89, (0, 21, 0), "NVIDIA GB10", 0),
    (21.89, (0, 29, 0), "NVIDIA GB10", 18.63),
    (21.89, None, "NVIDIA GB10", 18.63),
    (21.89, (0, 28, 0), "NVIDIA H100 80GB", 18.63),
]


@for_each(("weights", "release", "gpu", "kept"), COPIED)
def test_the_host_of_gb10_keeps_a_pinned_copy_of_each_size(
    weights: float, release: Version | None, gpu: str, kept: float
) -> None:
    found = staged_files({"--load-format": "fastsafetensors"}, weights, release, gpu)

    assert found == pytest.approx(kept, abs=0.01)


def test_they_are_in_doubt() -> None:
    """An engine is not refused for files that the loader may not keep."""
    start = next(start for start in start_ups() if start.id == "u06")
    estimate, unstaged = start.estimate, replace(start, version="0.21.0").estimate
    assert isinstance(estimate, Estimate)
    assert isinstance(unstaged, Estimate)
    assert estimate.terms is not None
    assert unstaged.terms is not None

    assert estimate.cache == pytest.approx(unstaged.cache - estimate.terms.staged, abs=0.5)
    assert estimate.terms.doubt - unstaged.terms.doubt == pytest.approx(estimate.terms.staged)
