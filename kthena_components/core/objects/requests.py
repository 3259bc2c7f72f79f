"""Adds up the requests of a pod over its containers."""

from collections.abc import Mapping
from decimal import Decimal

from kthena_components.core.objects.object import PodSet
from kthena_components.core.values.quantity import is_accelerator, parse_quantity
from kthena_components.core.values.read import first_unknown, mapping, sequence, unknown_in
from kthena_components.core.values.unknown import Unknown

Amounts = Mapping[str, Decimal]


def requests_of(pods: PodSet) -> dict[str, Decimal] | Unknown:
    """Add up the requests of one pod's containers; a limit replaces a missing request.

    Init containers run before the others, so a pod requests the larger of the two. Sidecars
    (restartPolicy Always) count with the others.
    """
    return requests_in(pods.spec)


def requests_in(spec: Mapping[str, object]) -> dict[str, Decimal] | Unknown:
    """Add up the requests of the containers in the spec of a pod, as `requests_of` does."""
    if gap := first_unknown(spec.get("containers"), spec.get("initContainers")):
        return gap
    asked: dict[str, Decimal] = {}
    first: dict[str, Decimal] = {}
    for name in ("containers", "initContainers"):
        for item in sequence(spec.get(name)):
            amounts = _requests(item)
            if isinstance(amounts, Unknown):
                return amounts
            if name == "containers" or mapping(item).get("restartPolicy") == "Always":
                for key, amount in amounts.items():
                    asked[key] = asked.get(key, Decimal(0)) + amount
            else:
                for key, amount in amounts.items():
                    first[key] = max(first.get(key, Decimal(0)), amount)
    for key, amount in first.items():
        asked[key] = max(asked.get(key, amount), amount)
    return asked


def _requests(container: object) -> dict[str, Decimal] | Unknown:
    resources = mapping(container).get("resources")
    limits, requests = mapping(resources).get("limits"), mapping(resources).get("requests")
    if gap := first_unknown(container, resources, limits, requests):
        return gap
    found: dict[str, Decimal] = {}
    listed: list[tuple[object, object]] = [*mapping(limits).items(), *mapping(requests).items()]
    for resource, stated in listed:
        if gap := unknown_in(stated):
            return gap
        amount = parse_quantity(stated)
        if isinstance(resource, str) and amount is not None:
            found[resource] = amount
    return {resource: amount for resource, amount in found.items() if amount > 0}


def gpus_of(pods: PodSet) -> int | Unknown:
    """Count the accelerators of one pod."""
    asked = requests_of(pods)
    if isinstance(asked, Unknown):
        return asked
    return sum(int(amount) for resource, amount in asked.items() if is_accelerator(resource))
