"""Which pods the quotas of their namespace let a controller create. Pure.

Source: Kubernetes 1.34 pkg/quota/v1/evaluator/core/pods.go and
staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go. A pod counts from its
creation, also while it waits for a node. Limits are not compared, and quotas with scopes are not
read.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from kthena_components.cluster.node_fit import Amounts
from kthena_components.core.values.quantity import add_resources
from kthena_components.placement.model import PodGroup, PodSet, Quota


class Quotas:
    """What the quotas of a cluster have left, while pods are created."""

    def __init__(self, quotas: Iterable[Quota]) -> None:
        """Begin with what is used."""
        self._spaces: dict[str, list[Quota]] = {}
        for quota in quotas:
            self._spaces.setdefault(quota.namespace, []).append(quota)

    @property
    def now(self) -> list[Quota]:
        """The quotas with what is used now."""
        return [quota for quotas in self._spaces.values() for quota in quotas]

    def create(self, group: PodGroup) -> list[int]:
        """Create the pods of a group in their order, and count how many of each set there are."""
        if group.namespace not in self._spaces:
            return [pods.count for pods in group.pods]
        return [self._create(group.namespace, pods) for pods in group.pods]

    def _create(self, namespace: str, pods: PodSet) -> int:
        quotas, each = self._spaces[namespace], charged(pods.requests)
        number = min(pods.count, *(_room(quota, each) for quota in quotas))
        self._spaces[namespace] = [
            replace(quota, used=add_resources(quota.used, each, number)) for quota in quotas
        ]
        return number


def _room(quota: Quota, each: Amounts) -> int:
    """Count the equal pods for which a quota has room. What they do not request does not count."""
    left = (
        (hard - quota.used.get(key, Decimal(0))) // each[key]
        for key, hard in quota.hard.items()
        if each.get(key)
    )
    return max(0, int(min(left, default=Decimal(10**9))))


def charged(requests: Amounts) -> dict[str, Decimal]:
    """Return what a pod counts for in a ResourceQuota: by both keys, and as one pod."""
    return {
        "pods": Decimal(1),
        "count/pods": Decimal(1),
        **requests,
        **{f"requests.{key}": amount for key, amount in requests.items()},
    }


def released(quotas: Iterable[Quota], gone: Mapping[str, Sequence[Amounts]]) -> list[Quota]:
    """Take away what deleted pods requested, by namespace."""
    return [
        replace(quota, used=less(quota.used, map(charged, gone.get(quota.namespace, ()))))
        for quota in quotas
    ]


def less(used: Amounts, taken: Iterable[Amounts]) -> dict[str, Decimal]:
    """Subtract amounts from those that are used; nothing is negative."""
    left = dict(used)
    for amounts in taken:
        for key in left.keys() & amounts.keys():
            left[key] = max(Decimal(0), left[key] - amounts[key])
    return left


def shortages(
    quotas: Iterable[Quota], group: PodGroup, number: int
) -> Iterator[tuple[Quota, dict[str, Decimal]]]:
    """List the quotas without room for the first pods of a group, with all that these ask for."""
    asked: dict[str, Decimal] = {}
    for pods in group.pods:
        count = min(pods.count, number)
        number -= count
        asked = add_resources(asked, charged(pods.requests), count)
    for quota in quotas:
        short = {
            key: asked[key]
            for key, hard in quota.hard.items()
            if asked.get(key) and quota.used.get(key, Decimal(0)) + asked[key] > hard
        }
        if quota.namespace == group.namespace and short:
            yield quota, short
