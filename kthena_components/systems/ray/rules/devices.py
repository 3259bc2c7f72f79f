"""Checks the GPUs of pods that are in no engine: the rule over engines, for other groups."""

from collections.abc import Iterator
from functools import wraps

from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests
from kthena_components.core.findings import Finding
from kthena_components.core.rules.gpu_requests_equal_limits import gpu_requests_equal_limits
from kthena_components.systems.ray.facts import facts
from kthena_components.systems.ray.view import Group, RayView


@wraps(gpu_requests_equal_limits)
def gpu_requests_of_groups(view: RayView) -> Iterator[Finding]:  # noqa: D103 - it is the same rule
    apart = tuple(map(_as_engine, _apart(view)))
    yield from gpu_requests_equal_limits(ServingFacts(path="", name="", engines=apart))


def _apart(view: RayView) -> Iterator[Group]:
    """Return the groups whose pods are in no engine."""
    pods = [pod for e in facts(view).engines for pod in (e.entry, e.worker) if pod]
    shown = {(device.path, device.resource) for pod in pods for device in pod.devices}
    for group in view.cluster.groups if view.cluster is not None else ():
        devices = {(view.object.at(d.path), d.resource) for d in group.pod.devices}
        if not devices <= shown:
            yield group


def _as_engine(group: Group) -> EngineFacts:
    return EngineFacts(
        path=group.path,
        name=group.name,
        pods=1,
        replicas=1,
        entry=fill_requests(group.pod),
        worker=None,
    )
