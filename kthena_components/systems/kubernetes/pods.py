"""The pods of Kubernetes' own workloads."""

from collections.abc import Iterator

from kthena_components.core.objects.object import Object, PodSet, copies_in, pod_set
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown

_NODES = Unknown("a DaemonSet has as many pods as there are nodes")


def pods_of_pod(entry: Object) -> Iterator[PodSet]:
    """Return the pod itself."""
    yield pod_set(entry, "", entry.body, 1)


def pods_of_daemons(entry: Object) -> Iterator[PodSet]:
    """Return a DaemonSet's pods."""
    yield pod_set(entry, "spec.template", entry.spec.get("template"), _NODES)


def pods_of_copies(entry: Object, key: str = "replicas") -> Iterator[PodSet]:
    """Return the pods of a workload with a number of copies."""
    yield pod_set(
        entry, "spec.template", entry.spec.get("template"), copies_in(entry.spec.get(key), 1)
    )


def pods_of_job(entry: Object) -> Iterator[PodSet]:
    """Return a Job's concurrent pods."""
    yield from pods_of_copies(entry, "parallelism")


def pods_of_cron_job(entry: Object) -> Iterator[PodSet]:
    """Return the pods of one Job of a CronJob."""
    job, at = mapping(mapping(entry.spec.get("jobTemplate")).get("spec")), "spec.jobTemplate.spec"
    yield pod_set(
        entry, f"{at}.template", job.get("template"), copies_in(job.get("parallelism"), 1)
    )
