"""The pods of a JobSet."""

from collections.abc import Iterator

from kthena_components.core.objects.object import PodSet, pod_set
from kthena_components.systems.jobset.view import JobSet


def pods(view: JobSet) -> Iterator[PodSet]:
    """Yield the pods of each entry."""
    for job in view.jobs:
        yield pod_set(view.object, job.path, job.template, job.pods)
