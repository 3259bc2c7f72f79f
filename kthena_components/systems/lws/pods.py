"""The pods of LeaderWorkerSets and DisaggregatedSets."""

from collections.abc import Iterator

from kthena_components.core.objects.object import PodSet, as_copies, copies_in, pod_set
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.lws.view import WORKER, Sets


def pods_of_groups(view: Sets) -> Iterator[PodSet]:
    """Return the leaders and the workers of each set of groups."""
    slices = copies_in(view.object.spec.get("slices"), 1)
    for group in view.groups:
        size = as_copies(group.size)
        rest = size if isinstance(size, Unknown) else max(size - 1, 0)
        groups = product(as_copies(group.replicas), slices)
        for field, number in ((group.leader, groups), (WORKER, product(groups, rest))):
            at = f"{group.path}.leaderWorkerTemplate.{field}"
            if number != 0:
                made = group.template.get(field)
                yield pod_set(view.object, at, made, number, by_controller=True, spread=rest != 0)
