"""Finds amounts of resources that no cluster has: below 0, above 2^63 - 1, or no quantities. Pure.

Source: k8s.io/apimachinery pkg/api/resource/quantity.go, whose numbers end at 2^63 - 1; Kubernetes
pkg/apis/core/validation ValidateNonnegativeQuantity.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from kthena_components.cluster.objects import Body, title_of
from kthena_components.core.findings import Finding
from kthena_components.core.objects.object import POD_GROUP, QUEUE, GroupKind
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import mapping, sequence
from kthena_components.placement.quotas_and_limit_ranges import LIMIT_RANGE

MOST: Final = 2**63 - 1
WANTED: Final = "an amount from 0 to 2^63 - 1, such as 96 or 2Ti"
_LISTS: Final[Mapping[GroupKind, Sequence[str]]] = {
    ("", "Node"): ("status.allocatable", "status.capacity"),
    ("", "ResourceQuota"): ("spec.hard", "status.hard", "status.used"),
    QUEUE: ("spec.capability", "spec.deserved", "spec.guarantee.resource", "status.allocated"),
    POD_GROUP: ("spec.minResources",),
    ("", "Pod"): (
        "spec.overhead", "spec.resources.requests", "spec.resources.limits",
        *(f"spec.{kind}[].resources.{what}" for kind in ("containers", "initContainers")
          for what in ("requests", "limits")),
    ),
    LIMIT_RANGE: tuple(f"spec.limits[].{what}" for what in
                       ("default", "defaultRequest", "max", "maxLimitRequestRatio", "min")),
}  # fmt: skip
"""The lists of resources that are read; `[]` stands for each item."""


def amount_of(value: object) -> Decimal | None:
    """Read an amount that a cluster can have; None for any other value."""
    amount = value if isinstance(value, Decimal) else parse_quantity(value)
    return amount if amount is not None and 0 <= amount <= MOST else None


def check_amounts(kinds: Mapping[GroupKind, Sequence[Body]]) -> Iterator[Finding]:
    """Report the first amount that no cluster has, and how many more there are."""
    wrong = [
        f"{kind[1]} '{title_of(body)}': {path}.{name} is {display(value)}"
        for kind, paths in _LISTS.items()
        for body in kinds.get(kind, ())
        for pattern in paths
        for path, amounts in _at(body, pattern.split("."))
        for name, value in mapping(amounts).items()
        if value is not None and amount_of(value) is None
    ]
    if wrong:
        more = f", and {len(wrong) - 1} more are alike" if len(wrong) > 1 else ""
        yield Finding(path="", seen=f"{wrong[0]}, but must be {WANTED}{more}", remedy="correct it")


def _at(value: object, parts: Sequence[str], path: str = "") -> Iterator[tuple[str, object]]:
    """Return what is at a path, with the indices of its items."""
    if not parts:
        yield path, value
        return
    name, rest = parts[0].removesuffix("[]"), parts[1:]
    inner, at = mapping(value).get(name), f"{path}.{name}" if path else name
    if name == parts[0]:
        yield from _at(inner, rest, at)
        return
    for index, item in enumerate(sequence(inner)):
        yield from _at(item, rest, f"{at}[{index}]")
