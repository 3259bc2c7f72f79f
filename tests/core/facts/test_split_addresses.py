"""Where a Service sends a port."""

from typing import Any

from kthena_components.core.facts.split_engines import forwarded
from kthena_components.core.values.unknown import Unknown

LATE = Unknown("it is known later")


def sent(*ports: object, to: int = 80) -> object:
    spec: dict[str, Any] = {"selector": {"app": "chat"}, "ports": list(ports)}
    return forwarded({"apiVersion": "v1", "kind": "Service", "spec": spec}, to)


def test_a_port_goes_to_its_target() -> None:
    assert sent({"port": 80, "targetPort": 8000}) == 8000
    assert sent({"port": 80}) == 80
    assert sent({"port": 81}) is None


def test_a_port_that_is_not_known_may_be_any() -> None:
    assert isinstance(sent({"port": LATE}), Unknown)
    assert isinstance(sent({"port": 81}, LATE), Unknown)
    assert isinstance(sent({"port": 80, "targetPort": "http"}), Unknown)
