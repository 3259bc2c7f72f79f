"""The pods that the roles of a ModelServing make; those of a ModelInfer are written alike."""

from collections.abc import Iterator

from kthena_components.core.objects.object import Object, PodSet, copies_in, pod_set
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.read import items, mapping


def pods_of_roles(entry: Object) -> Iterator[PodSet]:
    """Give the entry pods and the worker pods of each role."""
    groups = copies_in(entry.spec.get("replicas"), 1)
    for i, item in enumerate(items(mapping(entry.spec.get("template")).get("roles"))):
        role, at = mapping(item), f"spec.template.roles[{i}]"
        engines = product(groups, copies_in(role.get("replicas"), 1))
        each = copies_in(role.get("workerReplicas"), 0)
        workers = product(engines, each)
        for name, number in (("entryTemplate", engines), ("workerTemplate", workers)):
            if role.get(name) is not None:
                place = f"{at}.{name}"
                yield pod_set(
                    entry, place, role[name], number, by_controller=True, spread=each != 0
                )
