"""The pods that a Volcano Job makes."""

from collections.abc import Iterator

from kthena_components.core.objects.object import Object, PodSet, copies_in, pod_set
from kthena_components.core.values.read import items, mapping


def pods_of_tasks(entry: Object) -> Iterator[PodSet]:
    """Give the pods of each task."""
    for i, item in enumerate(items(entry.spec.get("tasks"))):
        task, at = mapping(item), f"spec.tasks[{i}].template"
        number = copies_in(task.get("replicas"), 1)
        yield pod_set(entry, at, task.get("template"), number, by_controller=True)
