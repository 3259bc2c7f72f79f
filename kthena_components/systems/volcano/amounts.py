"""Which resources Volcano counts, and in which units.

Source: Volcano v1.14 pkg/scheduler/api/resource_info.go NewResource; k8s.io/kubernetes
pkg/apis/core/helper/helpers.go IsIntegerResourceName and pkg/apis/core/v1/helper/helpers.go.
"""

from collections.abc import Iterable, Sequence
from decimal import ROUND_CEILING, Decimal

from kthena_components.core.schema.metadata import is_qualified

DEFAULTED = frozenset({"cpu", "memory"})
"""What every list has: 0 where it does not say."""
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
    """Return whether a resource has no fractions: a count of objects or of devices."""
    return resource in _WHOLE or _is_device(resource)


def is_counted(resource: str) -> bool:
    """Return whether Volcano counts a resource at all; of others it says nothing."""
    if resource.startswith("count/"):
        return False
    prefixed = resource.startswith(("hugepages-", "attachable-volumes-"))
    known = resource in DEFAULTED or resource in {"pods", "ephemeral-storage"}
    return known or prefixed or "kubernetes.io/" in resource or _is_device(resource)


def largest(resource: str) -> int:
    """Return the most of a resource that Volcano can count: beyond 64 bits it compares nonsense."""
    return _MOST // _units(resource)


def in_units(resource: str, amount: Decimal) -> int:
    """Return an amount as Volcano compares it: memory and pods in ones, the rest in thousandths."""
    return int((amount * _units(resource)).to_integral_value(ROUND_CEILING))


def together(resource: str, amounts: Iterable[Decimal]) -> Decimal:
    """Add amounts as Volcano does, each rounded up to its units."""
    return Decimal(sum(in_units(resource, amount) for amount in amounts)) / _units(resource)


def exceeds(resource: str, amounts: Sequence[Decimal], limit: Decimal | None) -> bool:
    """Return whether amounts are together more than a limit; None for a list that does not name it.

    That counts as 0, and of a device even 0 is more. What Volcano does not count, or cannot count
    any more, exceeds nothing.
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
