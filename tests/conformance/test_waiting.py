from collections.abc import Iterator

import pytest

from conformance.support import waiting
from conformance.support.waiting import LONGEST, PERIOD, pause, wait


def test_what_comes_is_waited_for() -> None:
    looks: Iterator[bool] = iter([False, False, True])
    assert wait(lambda: next(looks), period=0)
    assert next(looks, None) is None


def test_what_does_not_come_is_told() -> None:
    assert not wait(lambda: False, seconds=0.05, period=0.01)


def test_a_pause_grows_with_the_time_waited_and_with_what_a_try_costs() -> None:
    assert pause(0, 0) == pause(0.5, 0.01) == PERIOD
    assert pause(4, 0.01) == 0.5
    assert pause(0, 0.2) == pytest.approx(0.6)
    assert pause(60, 0) == pause(0, 5) == LONGEST


class Clock:
    """A clock that only sleeps and tries move."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def tries(monkeypatch: pytest.MonkeyPatch, comes: float, cost: float) -> tuple[int, float]:
    """Count the tries until something comes, and give the time at which that is noticed."""
    clock, number = Clock(), 0
    monkeypatch.setattr(waiting, "time", clock)

    def ready() -> bool:
        nonlocal number
        number += 1
        clock.now += cost
        return clock.now >= comes

    assert wait(ready)
    return number, clock.now


def test_a_long_wait_has_few_tries_and_is_over_soon_after_it_could_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for comes, most in ((1, 12), (8, 30), (60, 85)):
        number, noticed = tries(monkeypatch, comes, 0.001)
        assert number <= most, comes
        assert noticed - comes <= max(PERIOD, comes / 8) + 0.001


def test_a_dear_try_takes_a_quarter_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    number, noticed = tries(monkeypatch, 8, 0.3)
    assert number * 0.3 <= noticed / 4 + 0.3
