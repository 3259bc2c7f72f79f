"""Reads the address at which the pods of one object look for a pod of another one.

Source: Kubernetes DNS-Based Service Discovery 1.1.0, 2.3 and 2.4; the search domains of a pod in
kubernetes pkg/kubelet/network/dns/dns.go.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kthena_components.core.facts.split_engines import EnginePart
from kthena_components.core.values.read import is_name, mapping, sequence, unknown_inside
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

NUMBERED = regex(r"(.+)-(\d{1,9})")
_ELSEWHERE = Unknown("the ports of the Service are not known")


class Asked(NamedTuple):
    """The parts of an address."""

    name: str
    """The Service."""
    namespace: str
    pod: str = ""
    """The pod below the Service. Empty: any."""


def number_of(pod: str) -> int:
    """Return the number in the name of a pod."""
    found = NUMBERED.fullmatch(pod)
    return int(found[2]) if found else -1


def may_have(part: EnginePart, pod: str) -> bool:
    """Return whether a StatefulSet may have the pod of a name that begins with its own."""
    return part.start is None or 0 <= number_of(pod) - part.start < part.count


def has_selector(service: Mapping[str, Any]) -> bool:
    """Return whether a Service finds its pods by labels that are known."""
    spec = mapping(service.get("spec"))
    selector = spec.get("selector")
    known = bool(mapping(selector)) and unknown_inside(selector) is None
    return known and spec.get("type") != "ExternalName"


def is_headless(service: Mapping[str, Any]) -> bool:
    """Return whether a Service only gives names to its pods, or may do so."""
    spec = mapping(service.get("spec"))
    address = spec.get("clusterIP")
    return address == "None" or unknown_inside(address) is not None


def forwarded(service: Mapping[str, Any], port: int) -> object:
    """Return the port of the pods to which a Service sends a port; None if it sends it nowhere.

    A headless Service gives the addresses of its pods, at which each port is the same. A port that
    is not known, or has a name, is Unknown.
    """
    ports = mapping(service.get("spec")).get("ports")
    if is_headless(service):
        return port
    if unknown_inside(ports, *sequence(ports)) is not None or not sequence(ports):
        return _ELSEWHERE
    found = next((mapping(p) for p in sequence(ports) if mapping(p).get("port") == port), None)
    if found is None:
        return None
    target = found.get("targetPort") or port
    return target if isinstance(target, int) else _ELSEWHERE


def first_address(part: EnginePart, reached: Iterable[str]) -> str:
    """Return the address of the first pod of a part; empty if no Service is known.

    Args:
        part: The part with the first pod.
        reached: The names of the Services that select it.
    """
    known, service = sorted(reached), part.service
    if part.kind == "StatefulSet" and is_name(service) and part.start is not None:
        return f"{part.name}-{part.start}.{service}"
    return known[0] if known else ""
