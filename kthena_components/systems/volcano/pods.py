"""The pods of a Volcano Job."""

from collections.abc import Iterator

from kthena_components.core.objects.object import Object, PodSet, copies_in, pod_set
from kthena_components.systems.volcano.view import tasks_of


def pods(found: Object) -> Iterator[PodSet]:
    """Return the pods of each task."""
    for task in tasks_of(found):
        number = copies_in(task.fields.get("replicas"), 1)
        yield pod_set(found, f"{task.path}.template", task.template, number, by_controller=True)
