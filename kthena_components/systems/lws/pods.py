"""The pods that LeaderWorkerSets and DisaggregatedSets make."""

from collections.abc import Iterator

from kthena_components.core.objects.object import (
    GroupKind,
    Object,
    PodSet,
    as_copies,
    copies_in,
    pod_set,
)
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.lws.view import DISAGGREGATED_GROUP, read_sets

LWS: GroupKind = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")

DISAGGREGATED: GroupKind = (DISAGGREGATED_GROUP, "DisaggregatedSet")


def pods_of_groups(entry: Object) -> Iterator[PodSet]:
    """Give the leaders and the workers of each set of groups."""
    for group in read_sets(entry.body).groups:
        size = as_copies(group.size)
        rest = size if isinstance(size, Unknown) else max(size - 1, 0)
        leader = "leaderTemplate" if group.template.get("leaderTemplate") else "workerTemplate"
        groups = product(as_copies(group.replicas), copies_in(entry.spec.get("slices"), 1))
        for name, number in ((leader, groups), ("workerTemplate", product(groups, rest))):
            at = f"{group.path}.leaderWorkerTemplate.{name}"
            if number != 0:
                made = group.template.get(name)
                yield pod_set(entry, at, made, number, by_controller=True, spread=rest != 0)
