"""Reads Kubernetes' own workloads: Pod, Deployment, StatefulSet, DaemonSet, Job, CronJob and more.

One object has one pod template. The number of pods in an engine is read from variables and commands
(GROUP_SIZE, --nnodes, ray_cluster_size), never guessed.
"""

from dataclasses import replace

from kthena_components.core import naming
from kthena_components.core.facts.serving import NameFacts, ServingFacts, StartOrder
from kthena_components.core.facts.statefulset_ordinals import with_siblings
from kthena_components.core.facts.workload import (
    NO_SCHEDULER,
    admitted_together,
    labels_of,
    read_template,
)
from kthena_components.core.objects.object import Object
from kthena_components.core.remedies import write
from kthena_components.core.values.read import inside, is_name, mapping, name_of
from kthena_components.core.values.unknown import MaybeBool, is_unresolved

_COPIED = frozenset({"Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"})
"""Kinds whose pods all have the same template."""
_GROUPED = frozenset({"Job", "StatefulSet"})
"""Kinds whose pods Kueue admits as one group."""
_ORDERED = "OrderedReady"


def facts_of_pod(found: Object) -> ServingFacts:
    """Read the facts of a Pod, which is its own template."""
    return _facts(found, found.body, found.path, {})


def facts_of_template(found: Object) -> ServingFacts:
    """Read the facts of a PodTemplate, whose template stands beside its metadata.

    Source: kubernetes staging/src/k8s.io/api/core/v1/types.go PodTemplate.
    """
    return _facts(found, found.body.get("template"), found.at("template"), {})


def facts_of_copies(found: Object) -> ServingFacts:
    """Read the facts of a workload with a number of copies of its template."""
    spec, template = found.body.get("spec"), inside(found.body.get("spec"), "template")
    facts = _facts(found, template, found.at("spec.template"), spec)
    if found.kind not in _COPIED:
        return facts
    name = facts.name if found.kind == "StatefulSet" and is_name(facts.name) else ""
    engines = with_siblings(
        facts.engines, template, mapping(spec), name=name, context=found.context
    )
    order = _order(found)
    return replace(facts, engines=tuple(replace(engine, order=order) for engine in engines))


def _order(found: Object) -> StartOrder | None:
    """Return why each pod of a StatefulSet waits for the one before it, if it does.

    Source: kubernetes pkg/controller/statefulset/stateful_set_control.go.
    """
    policy = found.spec.get("podManagementPolicy", _ORDERED)
    if found.kind != "StatefulSet" or policy != _ORDERED:
        return None
    why = f"is {_ORDERED}, the default, by which each pod starts when the one before it is ready"
    path = found.at("spec.podManagementPolicy")
    return StartOrder(path=path, why=why, remedy=write("Parallel"))


def facts_of_cron_job(found: Object) -> ServingFacts:
    """Read the facts of the Jobs that a CronJob creates."""
    spec = inside(inside(found.body.get("spec"), "jobTemplate"), "spec")
    at = found.at("spec.jobTemplate")
    facts = _facts(found, inside(spec, "template"), f"{at}.spec.template", spec)
    return replace(facts, path=at)


def _facts(found: Object, template: object, at: str, spec: object) -> ServingFacts:
    name, role = name_of(found.body), labels_of(template).get(naming.ROLE)
    engines = read_template(template, at, role if is_name(role) else name, spec, found.context)
    scheduler = mapping(mapping(template).get("spec")).get("schedulerName")
    return ServingFacts(
        path=found.path,
        name=name,
        engines=tuple(engines),
        gang_expected=_placed_together(found, scheduler),
        names=_names(found, ours=role is not None),
    )


def _placed_together(found: Object, scheduler: object) -> MaybeBool:
    if found.kind in _GROUPED and admitted_together(found.metadata):
        return True
    return NO_SCHEDULER if is_unresolved(scheduler) else scheduler == "volcano"


def _names(found: Object, *, ours: bool) -> tuple[NameFacts, ...]:
    name = found.metadata.get("name")
    if found.kind != "StatefulSet" or not isinstance(name, str):
        return ()
    at, limit = found.at("metadata.name"), naming.STATEFUL_SET_NAME
    return (NameFacts(path=at, name=name, limit=limit, what="StatefulSet", made=ours),)
