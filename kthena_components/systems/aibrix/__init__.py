"""AIBrix: StormService, RoleSet and PodAutoscaler, and RayClusterFleet, which uses KubeRay.

A StormService or a RoleSet has roles, each of single pods or of groups of pods. A fleet is equal
Ray clusters: its template has the metadata and the spec of a RayCluster of KubeRay.
Source: vllm-project/aibrix v0.7 {stormservice,roleset,rayclusterfleet}_types.go of
api/orchestration/v1alpha1, and of pkg/controller: roleset/rolesyncer.go GetRoleSyncerWithRecorder,
which makes groups of podGroupSize pods; podset/podset_controller.go createPodFromTemplate, which
tells each pod of a group its size and more; constants/stormservice.go for the variables.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps

from kthena_components.core.facts.engine_grouping import engines_among, templates_of
from kthena_components.core.facts.network import HostedPods, PodHosts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, NameFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests, is_serving
from kthena_components.core.findings import Finding, run_rule
from kthena_components.core.objects.engine_containers import Sketch
from kthena_components.core.objects.object import VOLCANO, Object, PodSet, copies_in
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.plan.controller_variables import PodVariables, reference
from kthena_components.core.templates import HIDDEN
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    count,
    count_or_unknown,
    group_kind,
    inside,
    is_name,
    mapping,
    name_of,
    text,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, known, product
from kthena_components.systems.aibrix.role_sets_gang import (
    GROUP,
    GROUP_SIZE,
    OF_SERVICE,
    STRATEGY,
    Role,
    RoleSets,
    added_fields,
    aibrix_gang,
    gangs_of_role_sets,
    is_grouped,
    is_numbered,
    pods_of_roles,
    read_role_sets,
)
from kthena_components.systems.kubernetes.rules.autoscalers_and_coscheduling_pods import in_order
from kthena_components.systems.ray.facts import facts as facts_of_cluster
from kthena_components.systems.ray.facts import pods_of_cluster
from kthena_components.systems.ray.facts import sketch as sketch_of_cluster
from kthena_components.systems.ray.system import SYSTEM as RAY
from kthena_components.systems.ray.view import RayView, read_ray
from kthena_components.systems.system import (
    PRODUCTION,
    Kind,
    Restart,
    Rollout,
    ScaleTarget,
    System,
    as_it_is,
)

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


def pods_of_fleet(view: Fleet) -> Iterator[PodSet]:
    """Yield the pods of all Ray clusters of a fleet."""
    for pods in pods_of_cluster(view.cluster):
        yield replace(pods, count=product(view.copies, pods.count))


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
        names=tuple(_names(view)),
        hosts=hosts(view),
    )


_LITERAL = 16
"""Most groups that are listed by number, for addresses that state the number."""
_RANDOM = 5
_HASHED = 6
"""Characters that AIBrix adds to the name of a RoleSet, and of a group for its template."""
_LONGEST = 62
"""Longest name that AIBrix does not shorten, in characters."""


def hosts(view: RoleSets) -> PodHosts | None:
    """Return the names of the pods in groups. AIBrix chooses parts of them, which stay variables.

    The Service of a StormService has its name, and those of all pods, ready or not. A RoleSet alone
    has no Service: its pods have the subdomain that its label states.

    Source: vllm-project/aibrix v0.7.0 pkg/controller/stormservice/sync.go syncHeadlessService;
    pkg/controller/podset/podset_controller.go createPodFromTemplate (Hostname, Subdomain).
    """
    found, namespace = view.object, view.object.stated_namespace
    groups = [role for role in view.roles if role.size != 1]
    labels = mapping(found.metadata.get("labels"))
    name = found.name if view.copied else labels.get(OF_SERVICE, "")
    if view.gap is not None or not groups or not (is_name(name) or name == ""):
        return None
    own = ["PODSET_NAME", *(prefix for role in groups for prefix in _prefixes(role))]
    by_path = {found.at(role.path): role for role in groups}
    return PodHosts(
        domain=str(name) or "STORM_SERVICE_NAME",
        pods=tuple(
            HostedPods(
                path=path,
                prefix=f"{prefix}-",
                count=role.size,
                written="$(PODSET_NAME)-0.$(STORM_SERVICE_NAME)",
            )
            for prefix in dict.fromkeys(own)
            for path, role in by_path.items()
        ),
        missing="" if name else "AIBrix makes a Service for a StormService, but not for a RoleSet",
        remedy="write a StormService with these roles",
        namespace=namespace,
        variables={
            **{part: part for part in (*_NAME_PARTS, "PODSET_NAME")},
            "STORM_SERVICE_NAME": str(name) or "STORM_SERVICE_NAME",
        },
        of_copy=frozenset({"ROLESET_NAME", "ROLE_REPLICA_INDEX", "PODSET_NAME"}),
        by_release=True,
    )


def _prefixes(role: Role) -> Iterator[str]:
    """Yield the names of a role's groups; variables or the object state parts of them."""
    last = role.instances if isinstance(role.instances, int) else 1
    for name in ("ROLE_NAME", role.name):
        for index in ("ROLE_REPLICA_INDEX", *map(str, range(min(last, _LITERAL)))):
            yield f"ROLESET_NAME-{name}-ROLE_TEMPLATE_HASH-{index}"


def _names(view: RoleSets) -> Iterator[NameFacts]:
    """Return the longest names of pods in groups: AIBrix cuts longer ones, so no address has them.

    Source: vllm-project/aibrix v0.7.0 pkg/controller/util/orchestration/util.go Shorten.
    """
    name = view.object.metadata.get("name")
    if not view.copied or not is_name(name):
        return
    for role in view.roles:
        if isinstance(role.size, int) and role.size > 1 and isinstance(role.instances, int):
            last, pod = max(role.instances - 1, 0), role.size - 1
            made = f"{name}-roleset-{'x' * _RANDOM}-{role.name}-{'x' * _HASHED}-{last}-{pod}"
            path = view.object.at(f"{role.path}.name")
            yield NameFacts(path=path, name=made, limit=_LONGEST, what="pod")


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
    """Return whether the pods may be placed as a gang.

    A strategy of the RoleSet or of a role, or the scheduler Volcano, or a scheduler that is not
    known yet may do so.
    """
    stated = [view.spec.get(STRATEGY), *(role.fields.get(STRATEGY) for role in view.roles)]
    schedulers = [role.scheduler for role in view.roles]
    asked = any(one is not None for one in stated) or VOLCANO in schedulers
    return asked or any(map(unknown_in, schedulers))


def facts_of_fleet(view: Fleet) -> ServingFacts:
    """Return the facts of one cluster, with the name of the fleet and its replicas."""
    found = facts_of_cluster(view.cluster)
    copies = count_or_unknown(view.object.spec.get("replicas"), "replicas", 1)
    return replace(found, name=name_of(view.object.body), copies=copies)


_NAME_PARTS = ("ROLESET_NAME", "ROLE_NAME", "ROLE_TEMPLATE_HASH", "ROLE_REPLICA_INDEX")
_DOMAIN = rf"-0\.{reference('STORM_SERVICE_NAME')}"
_IN_GROUPS = ("PODSET_NAME", "POD_GROUP_INDEX", GROUP_SIZE)
_VARIABLES = PodVariables(
    size=(GROUP_SIZE,),
    rank=("POD_GROUP_INDEX",),
    addresses=(reference("PODSET_NAME") + _DOMAIN, "-".join(map(reference, _NAME_PARTS)) + _DOMAIN),
    others=(
        *("STORM_SERVICE_NAME", "ROLESET_", "ROLE_NAME", "ROLE_TEMPLATE_HASH"),
        *("ROLE_REPLICA_INDEX", "PODSET_NAME"),
    ),
)


def pod_variables(view: RoleSets) -> PodVariables:
    """Return the variables of the pods: those of groups only if a role has groups.

    Only a StormService numbers its RoleSets. Run on AIBrix 0.7.0.
    """
    grouped, numbered = is_grouped(view), is_numbered(view)
    names = (*("STORM_SERVICE_NAME", "ROLESET_NAME"), *_NAME_PARTS[1:3])
    more = (*(_NAME_PARTS[3:] if numbered else ()), *(_IN_GROUPS if grouped else ()))
    index = ("ROLESET_INDEX",) if view.copied else ()
    return replace(_VARIABLES, exactly=(*names, *index, *more))


def sketch_of_fleet(view: Fleet) -> Sketch:
    """Return the engine of each cluster, with the pods of all; AIBrix makes no Service itself."""
    return replace(sketch_of_cluster(view.cluster), sets=tuple(pods_of_fleet(view)), beside={})


_TARGET = "spec.scaleTargetRef"


def scales(found: Object) -> Iterator[ScaleTarget]:
    """Return what a PodAutoscaler scales: an object, or a role of a StormService.

    Source: vllm-project/aibrix v0.7.0 pkg/controller/podautoscaler/workload_scale.go.
    """
    target = mapping(found.spec.get("scaleTargetRef"))
    role = mapping(found.spec.get("subTargetSelector")).get("roleName")
    yield ScaleTarget(
        at=_TARGET,
        group_kind=group_kind(target),
        name=text(target.get("name")),
        namespace=text(target.get("namespace"), ""),
        part=text(role, ""),
    )


def aibrix_autoscaler(found: Object) -> Iterator[Finding]:
    """In a PodAutoscaler, minReplicas is at most maxReplicas, which is at least 1.

    Pass: minReplicas 1, maxReplicas 4.
    Fail: minReplicas 4, maxReplicas 2; maxReplicas 0.
    Level: mandatory. AIBrix's webhook rejects it, maxReplicas 0 after v0.7.0, and its controller
    scales nothing.
    Source: vllm-project/aibrix v0.7.0 pkg/webhook/podautoscaler_webhook.go;
    pkg/controller/podautoscaler/podautoscaler_controller.go validateReplicaBounds.
    """
    low, high = "spec.minReplicas", "spec.maxReplicas"
    least = known(count(found.spec.get("minReplicas"), 0), low)
    most = known(count(found.spec.get("maxReplicas")), high)
    if least is not None and most is not None:
        yield from in_order(low, least, high, most)


_CLUSTER = next(kind for kind in RAY.kinds if kind.name == "RayCluster")
_ROLES = {"StormService": "spec.template.spec.roles", "RoleSet": "spec.roles"}
"""Path of the roles, by kind."""


def rollouts(view: Fleet) -> Iterator[Rollout]:
    """Return how the clusters of a fleet are updated. Without a type they are not."""
    strategy = mapping(view.object.spec.get("strategy"))
    if strategy.get("type") == "RollingUpdate":
        yield Rollout.of(strategy, view.object.spec.get("replicas"), usual=(0, 0))


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
                gangs=gangs_of_role_sets,
                rules=(aibrix_gang,),
                pod_variables=pod_variables,
                added_fields=added_fields,
                templates=(f"{roles}[].template",),
                kept=kept_pods,
                restarts=Restart(
                    paths=r"spec\..*\broles\b.*\btemplate\b", how="role after role restarts"
                ),
            )
            for name, roles in _ROLES.items()
        ),
        Kind(
            group="autoscaling.aibrix.ai",
            name="PodAutoscaler",
            view=as_it_is,
            rules=(aibrix_autoscaler,),
            scales=scales,
            title="AIBrix PodAutoscaler",
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
