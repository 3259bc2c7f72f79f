"""Ten times as much is ten times the work: calls are counted, because no clock is to be trusted."""

from cProfile import Profile

import pytest

from bench.growth import SHAPES
from tests.toughness.guard import no_hang

SMALL, LARGE = 30, 300
MOST = 13
"""Times the calls that ten times as much may take. What is quadratic takes 17 at these sizes."""
HUGE = {
    "colours of a message": 1_000_000,
    "open commands": 300_000,
    "quotes": 300_000,
    "here-documents that stay open": 300_000,
    "one long word": 200_000,
    "HyperNodes by name": 50_000,
    "keys of one option": 50_000,
    "open actions": 100_000,
}
"""Where what is repeated is inside one call: so much that its square would not come to an end."""


def calls(name: str, size: int) -> int:
    """Count the functions that are called, Python's own included."""
    work, counted = SHAPES[name](size), Profile()
    counted.enable()
    try:
        work()
    finally:
        counted.disable()
    return sum(entry.callcount for entry in counted.getstats())


@pytest.mark.parametrize("name", SHAPES)
def test_work_grows_as_the_input_does(name: str) -> None:
    SHAPES[name](1)()  # what is read once and kept is not a part of it
    few, many = calls(name, SMALL), calls(name, LARGE)
    assert many <= MOST * few, f"{name}: {few:,} calls for {SMALL}, {many:,} for {LARGE}"


@pytest.mark.parametrize("name", HUGE)
def test_much_comes_to_an_end(name: str) -> None:
    work = SHAPES[name](HUGE[name])
    with no_hang(name):
        work()
