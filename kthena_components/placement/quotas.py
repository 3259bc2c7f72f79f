"""Which pods the quotas of their namespace let a controller create. Pure.

Source: Kubernetes 1.34 pkg/quota/v1/evaluator/core/pods.go and
staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go. A pod counts from its
creation, also while it waits for a node. Limits are not compared.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from kthena_components.cluster.node_fit import Amounts
from kthena_components.core.topology.domains import holds
from kthena_components.core.values.quantity import add_resources
from kthena_components.core.values.read import mapping
from kthena_components.placement.model import PodGroup, PodSet, Quota, Scope


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
        return [0 if pods.refusals else self._create(group.namespace, pods) for pods in group.pods]

    def _create(self, namespace: str, pods: PodSet) -> int:
        if namespace not in self._spaces:
            return pods.count
        quotas, each = self._spaces[namespace], charged(pods.requests)
        room = (_room(quota, each) for quota in quotas if counts(quota, pods))
        number = min((pods.count, *room))
        self._spaces[namespace] = [
            replace(quota, used=add_resources(quota.used, each, number))
            if counts(quota, pods) else quota
            for quota in quotas
        ]  # fmt: skip
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


def counts(quota: Quota, pods: PodSet) -> bool:
    """Say whether a quota counts pods: all of its scopes hold."""
    return all(_in_scope(scope, pods) for scope in quota.scopes)


def _in_scope(scope: Scope, pods: PodSet) -> bool:
    spec, effort = pods.spec, any(pods.requests.get(key) for key in ("cpu", "memory"))
    ends = spec.get("activeDeadlineSeconds") is not None
    if scope.name == "PriorityClass":
        named = str(spec.get("priorityClassName") or "")
        rule = {"key": "", "operator": scope.operator, "values": list(scope.values)}
        return holds(rule, {"": named} if named else {})
    if scope.name == "CrossNamespacePodAffinity":
        affinity = mapping(spec.get("affinity"))
        others = str([affinity.get(key) for key in ("podAffinity", "podAntiAffinity")])
        return "'namespaces'" in others or "'namespaceSelector'" in others
    told = {"Terminating": ends, "NotTerminating": not ends,
            "BestEffort": not effort, "NotBestEffort": effort}  # fmt: skip
    return told.get(scope.name, False)


def released(quotas: Iterable[Quota], gone: Mapping[str, Sequence[PodSet]]) -> list[Quota]:
    """Take away what deleted pods requested: one of each set, by namespace."""
    return [
        replace(quota, used=less(quota.used, [
            charged(pods.requests)
            for pods in gone.get(quota.namespace, ())
            if counts(quota, pods)
        ]))
        for quota in quotas
    ]  # fmt: skip


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
    for quota in quotas:
        asked, left = dict[str, Decimal](), number
        for pods in group.pods:
            count = min(pods.count, left)
            left -= count
            if counts(quota, pods):
                asked = add_resources(asked, charged(pods.requests), count)
        short = {
            key: asked[key]
            for key, hard in quota.hard.items()
            if asked.get(key) and quota.used.get(key, Decimal(0)) + asked[key] > hard
        }
        if quota.namespace == group.namespace and short:
            yield quota, short
