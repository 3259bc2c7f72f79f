from collections.abc import Iterator

from conformance.support.waiting import wait


def test_what_comes_is_waited_for() -> None:
    looks: Iterator[bool] = iter([False, False, True])
    assert wait(lambda: next(looks), period=0)
    assert next(looks, None) is None


def test_what_does_not_come_is_told() -> None:
    assert not wait(lambda: False, seconds=0.05, period=0.01)
