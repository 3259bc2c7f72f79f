"""AIBrix: StormService and RoleSet, and RayClusterFleet, which uses KubeRay.

A StormService or a RoleSet has roles, each of single pods or of groups of pods. A fleet is equal
Ray clusters: its template has the metadata and the spec of a RayCluster of KubeRay.
Source: vllm-project/aibrix v0.7 {stormservice,roleset,rayclusterfleet}_types.go of
api/orchestration/v1alpha1, and of pkg/controller: roleset/rolesyncer.go GetRoleSyncerWithRecorder,
which makes groups of podGroupSize pods; podset/podset_controller.go createPodFromTemplate, which
tells each pod of a group its size and more; constants/stormservice.go for the variables.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import wraps
from typing import Any

from kthena_components.core.facts.engine_grouping import engines_among, templates_of
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests, is_serving
from kthena_components.core.findings import Finding, join_path, run_rule
from kthena_components.core.objects.engine_containers import Sketch
from kthena_components.core.objects.object import Object, PodSet, copies_in, pod_set
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.plan.controller_variables import Told, reference
from kthena_components.core.templates import HIDDEN
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    count,
    count_or_unknown,
    inside,
    is_name,
    mapping,
    name_of,
    sequence,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, product
from kthena_components.systems.ray.facts import facts as facts_of_cluster
from kthena_components.systems.ray.facts import pods_of_cluster
from kthena_components.systems.ray.facts import sketch as sketch_of_cluster
from kthena_components.systems.ray.system import SYSTEM as RAY
from kthena_components.systems.ray.view import RayView, read_ray
from kthena_components.systems.system import PRODUCTION, Kind, Restart, Rollout, System

GROUP = "orchestration.aibrix.ai"
GROUP_SIZE = "POD_GROUP_SIZE"
"""Added to every container of a group of pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One role: equal pods, or equal groups of pods."""

    path: str
    """Path in the object."""
    name: str
    template: object
    instances: MaybeInt
    """Its pods, or groups of pods, in one RoleSet."""
    size: MaybeInt
    """Pods of an instance."""
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSets:
    """A StormService, or a RoleSet."""

    object: Object
    path: str
    """Path of the spec of the RoleSet."""
    spec: Mapping[str, Any]
    copies: MaybeInt
    roles: tuple[Role, ...]
    gap: Unknown | None
    """Why the roles are not known. None: they are."""


def read_role_sets(found: Object) -> RoleSets:
    """Read the roles, whatever the object contains."""
    several = found.kind == "StormService"
    spec = found.body.get("spec")
    held = inside(inside(spec, "template"), "spec") if several else spec
    path, listed = "spec.template.spec" if several else "spec", inside(held, "roles")
    roles = enumerate(sequence(listed))
    return RoleSets(
        object=found,
        path=path,
        spec=mapping(held),
        copies=copies_in(inside(spec, "replicas"), 1) if several else 1,
        roles=tuple(_role(item, join_path(path, f"roles[{index}]")) for index, item in roles),
        gap=unknown_in(listed),
    )


def _role(item: object, path: str) -> Role:
    """Read a role of a RoleSet; an instance of it has podGroupSize pods."""
    fields = mapping(item)
    name, size = fields.get("name"), copies_in(fields.get("podGroupSize"), 1)
    return Role(
        path=path,
        name=name if is_name(name) else "?",
        template=inside(item, "template"),
        instances=copies_in(fields.get("replicas"), 1),
        size=size if isinstance(size, Unknown) else max(size, 1),
        fields=fields,
    )


def pods_in(role: Role) -> MaybeInt:
    """Count the pods of a role in one RoleSet."""
    return product(role.instances, role.size)


_CLUSTER_TEMPLATE = "spec.template"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A RayClusterFleet."""

    object: Object
    copies: MaybeInt
    cluster: RayView
    """One of its clusters, with the paths of the template."""


def read_fleet(found: Object) -> Fleet:
    """Read the template as a RayCluster, whatever the object contains."""
    spec = found.body.get("spec")
    template = inside(spec, "template")
    metadata = {**mapping(inside(template, "metadata")), "name": found.metadata.get("name")}
    body = {"metadata": metadata, "spec": inside(template, "spec")}
    cluster = replace(found, body=body, path=found.at(_CLUSTER_TEMPLATE))
    return Fleet(
        object=found, copies=copies_in(inside(spec, "replicas"), 1), cluster=read_ray(cluster)
    )


def of_cluster(
    rule: Callable[[RayView], Iterator[Finding]],
) -> Callable[[Fleet], Iterator[Finding]]:
    """Return a rule over a Ray cluster as one over a fleet."""

    @wraps(rule)
    def check(view: Fleet) -> Iterator[Finding]:
        for finding in run_rule(rule, view.cluster):
            yield finding.under(_CLUSTER_TEMPLATE)

    return check


def pods_of_roles(view: RoleSets) -> Iterator[PodSet]:
    """Yield the pods of each role in all RoleSets."""
    for role in view.roles:
        number = product(view.copies, pods_in(role))
        path = f"{role.path}.template"
        grouped = role.size != 1
        yield pod_set(view.object, path, role.template, number, by_controller=True, spread=grouped)


def pods_of_fleet(view: Fleet) -> Iterator[PodSet]:
    """Yield the pods of all Ray clusters of a fleet."""
    for pods in pods_of_cluster(view.cluster):
        yield replace(pods, count=product(view.copies, pods.count))


_STRATEGY = "schedulingStrategy"


def facts(view: RoleSets) -> ServingFacts:
    """Read the facts of all roles."""
    found = view.object
    single = [role for role in view.roles if role.size == 1]
    parts = [
        part
        for role in single
        for part in templates_of(
            role.template,
            found.at(f"{role.path}.template"),
            role.name,
            role.instances,
            found.context,
        )
    ]
    groups = [e for role in view.roles if role.size != 1 for e in _of_group(view, role)]
    alone = [_times(e, view) for e in engines_among(parts, found.context)]
    hidden = [] if view.gap is None else [_hidden(view, view.gap)]
    return ServingFacts(
        path=found.at(view.path),
        name=name_of(found.body),
        engines=(*alone, *groups, *hidden),
        gang_expected=_placed_together(view),
    )


def _times(engine: EngineFacts, view: RoleSets) -> EngineFacts:
    """Return an engine of one RoleSet with the replicas of all RoleSets."""
    return replace(engine, replicas=product(engine.replicas, view.copies))


def _of_group(view: RoleSets, role: Role) -> Iterator[EngineFacts]:
    """Read the engine of a role whose instances are groups of equal pods."""
    found, at = view.object, view.object.at(f"{role.path}.template")
    env = {} if isinstance(role.size, Unknown) else {GROUP_SIZE: str(role.size)}
    pod = fill_requests(read_pod(role.template, at, env, context=found.context))
    if is_serving(pod):
        yield EngineFacts(
            path=found.at(role.path),
            name=role.name,
            pods=role.size,
            replicas=product(role.instances, view.copies),
            entry=pod,
            worker=None,
        )


def _hidden(view: RoleSets, gap: Unknown) -> EngineFacts:
    path = view.object.at(f"{view.path}.roles")
    entry = read_pod(HIDDEN, path)
    return EngineFacts(path=path, name="?", pods=gap, replicas=1, entry=entry, worker=None)


def _placed_together(view: RoleSets) -> bool:
    """Return whether a gang places the pods, by the strategy of the RoleSet or of one role."""
    stated = [view.spec.get(_STRATEGY), *(role.fields.get(_STRATEGY) for role in view.roles)]
    specs = [mapping(mapping(role.template).get("spec")) for role in view.roles]
    schedulers = [spec.get("schedulerName") for spec in specs]
    asked = any(one is not None for one in stated) or "volcano" in schedulers
    return asked or any(map(unknown_in, schedulers))


def facts_of_fleet(view: Fleet) -> ServingFacts:
    """Return the facts of one cluster, with the name of the fleet and its replicas."""
    found = facts_of_cluster(view.cluster)
    copies = count_or_unknown(view.object.spec.get("replicas"), "replicas", 1)
    return replace(found, name=name_of(view.object.body), copies=copies)


_NAME_PARTS = ("ROLESET_NAME", "ROLE_NAME", "ROLE_TEMPLATE_HASH", "ROLE_REPLICA_INDEX")
_DOMAIN = rf"-0\.{reference('STORM_SERVICE_NAME')}"
_VARIABLES = Told(
    size=(GROUP_SIZE,),
    rank=("POD_GROUP_INDEX",),
    addresses=(
        reference("PODSET_NAME") + _DOMAIN,
        "-".join(map(reference, _NAME_PARTS)) + _DOMAIN,
    ),
    others=("STORM_SERVICE_NAME", "ROLESET_", "ROLE_NAME", "ROLE_REPLICA_INDEX", "PODSET_NAME"),
)


def tells(_view: RoleSets) -> Told:
    """Return the variables of a group of pods."""
    return _VARIABLES


def sketch_of_fleet(view: Fleet) -> Sketch:
    """Return the engine of each cluster, with the pods of all; AIBrix makes no Service itself."""
    return replace(sketch_of_cluster(view.cluster), sets=tuple(pods_of_fleet(view)), beside={})


_CLUSTER = next(kind for kind in RAY.kinds if kind.name == "RayCluster")
_ROLES = {"StormService": "spec.template.spec.roles", "RoleSet": "spec.roles"}
"""Path of the roles, by kind."""


def rollouts(view: Fleet) -> Iterator[Rollout]:
    """Return how the clusters of a fleet are updated. Without a type they are not."""
    strategy = mapping(view.object.spec.get("strategy"))
    rolling = mapping(strategy.get("rollingUpdate"))
    if strategy.get("type") == "RollingUpdate":
        yield Rollout(
            at="spec.strategy.rollingUpdate",
            replicas=count(view.object.spec.get("replicas"), 1),
            max_unavailable=rolling.get("maxUnavailable"),
            max_surge=rolling.get("maxSurge"),
            usual=(0, 0),
        )


SYSTEM = System(
    name="aibrix",
    title="AIBrix",
    kinds=(
        *(
            Kind(
                group=GROUP,
                name=name,
                view=read_role_sets,
                facts=facts,
                pods=pods_of_roles,
                tells=tells,
                templates=(f"{roles}[].template",),
                kept=kept_pods,
                restarts=Restart(
                    paths=r"spec\..*\broles\b.*\btemplate\b", how="role after role restarts"
                ),
            )
            for name, roles in _ROLES.items()
        ),
        Kind(
            group=GROUP,
            name="RayClusterFleet",
            view=read_fleet,
            facts=facts_of_fleet,
            pods=pods_of_fleet,
            rules=tuple(map(of_cluster, _CLUSTER.rules)),
            rollouts=rollouts,
            sketch=sketch_of_fleet,
            templates=tuple(f"spec.template.{at}" for at in _CLUSTER.templates),
            adds_volumes=_CLUSTER.adds_volumes,
            kept=kept_pods,
            restarts=Restart(paths=r"spec\.template\b", how="new clusters start, and old ones end"),
            title=RAY.title,
            without={PRODUCTION: _CLUSTER.without[PRODUCTION]},
        ),
    ),
)
