"""Rules over all objects of one cluster. Each rule's docstring is its documentation.

References to other objects can only be checked when all are read. The caller passes the objects of
one cluster at a time. Most of these rules belong to a system.
"""

from collections.abc import Container, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from kthena_components import systems
from kthena_components.checker.autoscaler_conflict import (
    CONFLICT,
    REMOVE_IT,
    autoscaler_conflict,
    autoscaler_target,
)
from kthena_components.checker.disruption_budget import disruption_budget
from kthena_components.checker.read_cluster_objects import read_objects
from kthena_components.checker.surge_needs_spare_gpus import surge_needs_spare_gpus
from kthena_components.core.facts.serving import GpuDemand
from kthena_components.core.findings import (
    Finding,
    checked_by,
    once_each,
    rule_name,
    run_rule,
    tidy,
)
from kthena_components.core.objects.cluster_objects import Ports
from kthena_components.core.objects.object import read_object
from kthena_components.core.values.read import group_kind, name_of, namespace_of
from kthena_components.systems.kubernetes.rules.autoscalers_and_coscheduling_pods import (
    autoscaler_replicas,
    stated_target,
)
from kthena_components.systems.kubernetes.rules.gpu_budget_and_type_rwx import (
    gpu_budget,
    gpu_type_allowed,
)
from kthena_components.systems.system import ClusterRule

OWN_RULES: tuple[ClusterRule, ...] = (autoscaler_conflict, autoscaler_target, disruption_budget)
"""Rules across all systems."""
ASKED_RULES = (gpu_budget, surge_needs_spare_gpus, gpu_type_allowed)
"""Rules that need a budget or a list, and only run if it is given."""
_LONGEST_NAME = 4096
"""Maximum length of a caller's name for an object."""


@cache
def cluster_rules(own: frozenset[str] = systems.COMPARING_OWN) -> tuple[ClusterRule, ...]:
    """List every rule that only needs the objects.

    Args:
        own: The systems that have objects and whose rules need objects.
    """
    named = (name for name in systems.COMPARING if name in own or name not in systems.COMPARING_OWN)
    comparing = map(systems.find_system, named)
    return (*(rule for system in comparing for rule in system.cluster_rules), *OWN_RULES)


@cache
def only_together() -> frozenset[str]:
    """Return the names of those that always run, which no rule over a single object has."""
    return frozenset(map(rule_name, cluster_rules(frozenset())))


def compare_objects(
    manifests: Sequence[Mapping[str, Any]],
    paths: Sequence[str] = (),
    *,
    held: Mapping[int, GpuDemand] | None = None,
    budget: int | None = None,
    gpu_types: Sequence[str] = (),
    complete: bool = True,
    sources: Sequence[str] = (),
    ports: Mapping[int, Ports] | None = None,
    versions: Mapping[str, str] = MappingProxyType({}),
) -> list[Finding]:
    """Check all objects of one cluster together, in time linear in their number.

    Args:
        manifests: The objects as they would be applied. Values that are not maps are skipped.
        paths: Their paths in the caller's input; none if left out.
        held: Accelerators of objects without pod templates, by index.
        budget: Maximum accelerators that the objects may request; no limit if left out.
        gpu_types: Resources and products of accelerators that pods may request; all if empty.
        complete: Whether these are all objects of the cluster, at least all pods of each PodGroup
            and all Services. If not, missing objects are reported as not checked, or not at all.
        sources: The file that each was read from; one file if left out. If these are not all
            objects of the cluster, the files may be alternatives.
        ports: Where their pods listen, by index; read from the objects that are not in it.
        versions: The releases that the cluster runs, by system; the newest if left out.
    """
    cluster = read_objects(
        manifests, paths, held, complete=complete, sources=sources, ports=ports, versions=versions
    )
    present = {systems.INDEX.get(found.group_kind, "") for found in cluster.objects}
    findings = checked_by(cluster_rules(systems.COMPARING_OWN & present), cluster)
    if budget is not None:
        for rule in (gpu_budget, surge_needs_spare_gpus):
            findings += run_rule(rule, cluster, budget)
    if gpu_types:
        findings += run_rule(gpu_type_allowed, cluster, gpu_types)
    return [tidy(finding) for finding in once_each(findings)]


def owner_of(finding: Finding, names: Container[str]) -> str:
    """Find the longest name that a path starts with; empty if it is about no object.

    A name ends at the end of the path, or at a dot.
    """
    path, end = finding.path, len(finding.path)
    while end > 0 and (end > _LONGEST_NAME or path[:end] not in names):
        end = path.rfind(".", 0, min(end, _LONGEST_NAME))
    return path[: max(end, 0)]


def without_contrary(
    findings: list[Finding], bodies: Mapping[str, Mapping[str, Any]]
) -> list[Finding]:
    """Leave out the advice to remove the replicas of what autoscaler-conflict says to write.

    No autoscaler scales these objects then, so no apply undoes its number. A rule about engines of
    several objects and one about single objects report the conflict.
    """
    targets = {
        _target_of(bodies[owner_of(finding, bodies)])
        for finding in findings
        if finding.rule == CONFLICT and finding.remedy.startswith(REMOVE_IT)
    }
    if not targets:
        return findings
    return [
        finding
        for finding in findings
        if finding.rule != rule_name(autoscaler_replicas)
        or _identity(bodies[owner_of(finding, bodies)]) not in targets
    ]


def _target_of(body: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the identity of what an autoscaler names."""
    scaler = read_object(body)
    target = stated_target(scaler)
    return group_kind(target), scaler.stated_namespace, target.get("name")


def _identity(body: Mapping[str, Any]) -> tuple[object, ...]:
    return group_kind(body), namespace_of(body), name_of(body)
