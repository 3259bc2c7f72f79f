"""The resources that Volcano counts, and their units.

Source: Volcano v1.14 pkg/scheduler/api/resource_info.go NewResource; k8s.io/kubernetes
pkg/apis/core/helper/helpers.go IsIntegerResourceName and pkg/apis/core/v1/helper/helpers.go.
"""

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Decimal

from kthena_components.core.schema.metadata import is_qualified

DEFAULTED = frozenset({"cpu", "memory"})
"""Resources of every list: 0 by default."""
_WHOLE = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_MOST = 2**63 - 1


def is_whole(resource: str) -> bool:
    """Return whether a resource has no fractions: a count of objects or devices."""
    return resource in _WHOLE or _is_device(resource)


def is_counted(resource: str) -> bool:
    """Return whether Volcano counts a resource at all; it ignores others."""
    if resource.startswith("count/"):
        return False
    prefixed = resource.startswith(("hugepages-", "attachable-volumes-"))
    known = resource in DEFAULTED or resource in {"pods", "ephemeral-storage"}
    return known or prefixed or "kubernetes.io/" in resource or _is_device(resource)


def largest(resource: str) -> int:
    """Return the largest amount that Volcano can count: beyond 64 bits it compares wrongly."""
    return _MOST // _units(resource)


def in_units(resource: str, amount: Decimal) -> int:
    """Return an amount in Volcano's units: ones for memory and pods, thousandths for others."""
    return int((amount * _units(resource)).to_integral_value(ROUND_CEILING))


def together(resource: str, amounts: Iterable[Decimal]) -> Decimal:
    """Add amounts as Volcano does, each rounded up to its units."""
    return Decimal(sum(in_units(resource, amount) for amount in amounts)) / _units(resource)


def exceeds(resource: str, amounts: Sequence[Decimal], limit: Decimal | None) -> bool:
    """Return whether the sum of amounts exceeds a limit; None for a list without the resource.

    A missing resource counts as 0, and for a device even 0 is more. Resources that Volcano does not
    or can no longer count exceed nothing.
    """
    stated = [*amounts, *([] if limit is None else [limit])]
    if not (amounts and is_counted(resource)) or max(stated) > largest(resource):
        return False
    total = together(resource, amounts)
    if limit is None:
        return total > 0 or resource not in DEFAULTED
    return total > together(resource, [limit])


def _units(resource: str) -> int:
    return 1 if resource in {"memory", "pods"} else 1000


def _is_device(resource: str) -> bool:
    if "/" not in resource or "kubernetes.io/" in resource or resource.startswith("requests."):
        return False
    return is_qualified(f"requests.{resource}")
