"""Controllers create some objects after the pods: a comparison waits for them."""

from collections.abc import Iterator

from conformance.support.serving_lives import Check, settled


def test_what_comes_later_is_waited_for() -> None:
    services = iter([False, False, True])

    def compare() -> Iterator[Check]:
        yield "pods", True, 2
        yield "a Service", next(services), None

    assert settled(compare, 60) == [("pods", True, 2), ("a Service", True, None)]


def test_what_never_comes_is_reported() -> None:
    def compare() -> Iterator[Check]:
        yield "pods", True, 2
        yield "a Service", False, "none"

    assert settled(compare, 0) == [("pods", True, 2), ("a Service", False, "none")]
