"""Read Kubernetes' own workloads: Pod, Deployment, StatefulSet, DaemonSet, Job, CronJob and more.

These may be ours or anyone's. One object shows one pod template; how many pods make one engine is
read from what the pods are told (GROUP_SIZE, --nnodes, ray_cluster_size), never guessed.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.serving import NameFacts, ServingFacts
from kthena_components.core.facts.workload import NO_SCHEDULER, _labels, read_template
from kthena_components.core.findings import join_path
from kthena_components.core.values.read import as_map, group_kind, is_name, name_of
from kthena_components.core.values.unknown import is_unresolved

TEMPLATED = {
    "apps": {"Deployment", "StatefulSet", "ReplicaSet", "DaemonSet"},
    "batch": {"Job", "CronJob"},
}

KINDS = frozenset(
    {("", "Pod"), *((group, kind) for group in TEMPLATED for kind in TEMPLATED[group])}
)


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of one workload; None for anything else."""
    group, kind = group_kind(body)
    spec = body.get("spec")
    template: object = body
    at = path
    if kind == "CronJob":
        spec, path = _job_of(spec, path)
    if kind in TEMPLATED.get(group, ()):
        template = spec if is_unresolved(spec) else as_map(spec).get("template")
        at = join_path(path, "spec.template")
    elif (group, kind) != ("", "Pod"):
        return None
    name, role = name_of(body), _labels(template).get(naming.ROLE)
    engines = read_template(template, at, role if is_name(role) else name, spec)
    scheduler = as_map(as_map(template).get("spec")).get("schedulerName")
    return ServingFacts(
        path=path,
        name=name,
        engines=tuple(engines),
        gang_expected=NO_SCHEDULER if is_unresolved(scheduler) else scheduler == "volcano",
        names=_names(body, kind, path, ours=role is not None),
    )


def _job_of(spec: object, path: str) -> tuple[object, str]:
    """Give the spec of the Jobs that a CronJob makes, and what stands before it."""
    template = spec if is_unresolved(spec) else as_map(spec).get("jobTemplate")
    inner = template if is_unresolved(template) else as_map(template).get("spec")
    return inner, join_path(path, "spec.jobTemplate")


def _names(body: Mapping[str, Any], kind: str, path: str, *, ours: bool) -> tuple[NameFacts, ...]:
    name = as_map(body.get("metadata")).get("name")
    if kind != "StatefulSet" or not isinstance(name, str):
        return ()
    at, limit = join_path(path, "metadata.name"), naming.STATEFUL_SET_NAME
    return (NameFacts(path=at, name=name, limit=limit, what="StatefulSet", made=ours),)
