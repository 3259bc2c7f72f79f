"""Writes a LeaderWorkerSet for a serving of one role, and a DisaggregatedSet for several.

A group of a LeaderWorkerSet is one engine. All engines of a role, over all ServingGroups, are the
groups of one set: its own rollout and scaling count them. Source: kubernetes-sigs/lws v0.9.0
api/leaderworkerset/v1, api/disaggregatedset/v1 and pkg; docs/backends/lws.md lists every field.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.objects.object import MODEL_SERVING, read_object
from kthena_components.core.plan.facts import facts_without_groups
from kthena_components.core.plan.manifest import (
    BUDGETS,
    REPLICAS,
    SERVICES,
    WAIT_FOR,
    Manifest,
    Resource,
)
from kthena_components.core.plan.serving_plan import (
    RolePlan,
    ScrapeTargets,
    ServingPlan,
    Unit,
    entry_labels,
    only_with_pods,
    placed,
)
from kthena_components.core.plan.templates import labelled, with_env
from kthena_components.core.spec.enums import RecoveryPolicy
from kthena_components.core.spec.rules.rollout import scale_budget
from kthena_components.core.templates import Template
from kthena_components.core.values.read import mapping
from kthena_components.systems.emitter import FOR_ALL, Emitter
from kthena_components.systems.kubernetes.backends import emit_front
from kthena_components.systems.lws.convert import ALIASES, CONVERTER, EXCLUSIVE, SUBGROUP_EXCLUSIVE
from kthena_components.systems.lws.limits import (
    LIMITS,
    STARTUP_POLICY,
    LwsOptions,
    SubdomainPolicy,
    names,
    options_of,
    refuse,
    set_name,
)
from kthena_components.systems.lws.view import (
    DISAGGREGATED_SET,
    GROUP_INDEX,
    LEADER,
    LEADER_WORKER_SET,
    WORKER,
    facts,
    read_sets,
    start_order,
)

_SIZES = (naming.GROUP_SIZE, naming.LWS_GROUP_SIZE)


def emit(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write the set and, if the serving is exposed, its front Service."""
    made = _leader_worker_set(plan) if len(plan.roles) == 1 else _disaggregated_set(plan)
    front = emit_front(plan)
    return (made, front) if front else (made,)


def _leader_worker_set(plan: ServingPlan) -> Manifest:
    """Write the LeaderWorkerSet of a serving's only role, and until when Pulumi waits."""
    (role,) = plan.roles
    metadata = _metadata(plan, role)
    waits = {WAIT_FOR: _until_updated(plan, role)}
    metadata["annotations"] = {**metadata.get("annotations", {}), **waits}
    identity = {"name": set_name(plan, role), "namespace": plan.namespace}
    body = _object(LEADER_WORKER_SET, {**identity, **metadata}, _spec(plan, role))
    return Manifest(
        body=body,
        role=role.name,
        ignore=(REPLICAS,) if plan.autoscaled else (),
        timeout_seconds=plan.ready_timeout_seconds,
    )


def _disaggregated_set(plan: ServingPlan) -> Manifest:
    """Write all roles. It is not awaited: LWS 0.9 gives a DisaggregatedSet no status."""
    roles = [
        {"name": role.name, "metadata": _metadata(plan, role), "spec": _spec(plan, role)}
        for role in plan.roles
    ]
    metadata = {"name": plan.name, "namespace": plan.namespace, "labels": {naming.NAME: plan.name}}
    return Manifest(body=_object(DISAGGREGATED_SET, metadata, {"roles": roles}))


def _object(
    group_kind: tuple[str, str], metadata: dict[str, Any], spec: dict[str, Any]
) -> dict[str, Any]:
    group, kind = group_kind
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, "spec": spec}


def _metadata(plan: ServingPlan, role: RolePlan) -> dict[str, Any]:
    """Return labels of a LeaderWorkerSet, the queue that its PodGroups get, and its topology."""
    options = options_of(plan)
    subgroup = options.subgroups.get(role.name)
    stated = {
        naming.QUEUE_NAME: plan.queue,
        EXCLUSIVE: options.exclusive_topology,
        SUBGROUP_EXCLUSIVE: subgroup.exclusive_topology if subgroup else None,
    }
    annotations = {key: value for key, value in stated.items() if value is not None}
    labels = {naming.NAME: plan.name, naming.ROLE: role.name}
    return {"labels": labels, **({"annotations": annotations} if annotations else {})}


def _until_updated(plan: ServingPlan, role: RolePlan) -> str:
    """Wait until every group is updated and serves.

    With a partition, the number of updated groups depends on the previous state, and with an
    autoscaler on that. Without groups, the status has no such number.
    """
    available, engines = "condition=Available", plan.groups * role.replicas
    if plan.rollout.partition or plan.autoscaled or not engines:
        return available
    return json.dumps([available, f"jsonpath={{.status.updatedReplicas}}={engines}"])


def _spec(plan: ServingPlan, role: RolePlan) -> dict[str, Any]:
    """Write the spec: groups × engines replicas of `size` pods; defaults of LWS are left out."""
    options = options_of(plan)
    subgroup = options.subgroups.get(role.name)
    template = {"size": role.pods, "restartPolicy": _restart(plan), **_templates(plan, role)}
    if subgroup:
        sizes = {"subGroupPolicyType": subgroup.type.value, "subGroupSize": subgroup.size}
        template["subGroupPolicy"] = sizes
    spec: dict[str, Any] = {
        "replicas": plan.groups * role.replicas,
        "startupPolicy": options.startup_policy.value,
        "leaderWorkerTemplate": template,
    }
    if options.subdomain_policy is not SubdomainPolicy.SHARED:
        spec["networkConfig"] = {"subdomainPolicy": options.subdomain_policy.value}
    rolling = _rolling(plan, role)
    if rolling:
        spec["rolloutStrategy"] = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    return spec


def _restart(plan: ServingPlan) -> str:
    """Recreate an engine with each of its pods: ranks cannot join a running engine again."""
    if plan.recovery is RecoveryPolicy.NONE:
        return "None"
    late = options_of(plan).recreate_after_start
    return "RecreateGroupAfterStart" if late else "RecreateGroupOnPodRestart"


def _rolling(plan: ServingPlan, role: RolePlan) -> dict[str, Any]:
    """Convert the budget in ServingGroups to engines."""
    stated = plan.rollout.stated
    if stated is None:
        return {} if role.max_unavailable is None else {"maxUnavailable": role.max_unavailable}
    down = scale_budget(stated.max_unavailable, plan.groups, up=False) or 0
    up = scale_budget(stated.max_surge or 0, plan.groups, up=True) or 0
    written = {"maxUnavailable": (down if down or up else 1) * max(role.replicas, 1)}
    if up:
        written["maxSurge"] = up * role.replicas
    if plan.rollout.partition:
        written["partition"] = plan.rollout.partition * role.replicas
    return written


def _templates(plan: ServingPlan, role: RolePlan) -> dict[str, Template]:
    """Write both templates. A leader without its own template gets the workers'.

    Workers that the set may get later keep the template that is stated for them.
    """
    entry = _template(plan, role, role.entry, {naming.ENTRY: "true"})
    if role.worker is None:
        return {WORKER: entry}
    return {LEADER: entry, WORKER: _template(plan, role, role.worker, {})}


def _template(
    plan: ServingPlan, role: RolePlan, template: Template, own: dict[str, str]
) -> Template:
    """Add labels, the scheduler, and Kthena's variables: its templates run unchanged."""
    shared = {naming.NAME: plan.name, naming.ROLE: role.name}
    ours = {**shared, **own}
    template = placed(plan, role, template, shared, GROUP_INDEX)
    return labelled(with_env(template, list(ALIASES)), ours, plan.scheduler)


def _planned(plan: ServingPlan) -> list[ServingFacts]:
    """Return the facts of a plan without ServingGroups: each engine is a gang."""
    return [facts_without_groups(plan, _SIZES)]


def _read_back(bodies: Sequence[Mapping[str, Any]]) -> list[ServingFacts]:
    kinds = {LEADER_WORKER_SET, DISAGGREGATED_SET}
    found = map(read_object, bodies)
    return [_by_role(facts(read_sets(one)), one.body) for one in found if one.group_kind in kinds]


def _by_role(found: ServingFacts, body: Mapping[str, Any]) -> ServingFacts:
    """Name a LeaderWorkerSet's only engine by its role, as the plan does."""
    labels = mapping(mapping(body.get("metadata")).get("labels"))
    role, name = labels.get(naming.ROLE), labels.get(naming.NAME)
    if not isinstance(role, str) or not isinstance(name, str):
        return found
    engines = tuple(replace(engine, name=role) for engine in found.engines)
    return replace(found, name=name, engines=engines)


def _addresses(plan: ServingPlan) -> list[str]:
    """Return the leaders' host names, unless there is no telling how many or with which revision.

    Source: kubernetes-sigs/lws v0.9.0 pkg/utils/pod/pod_utils.go AddLWSVariables.
    """
    if len(plan.roles) > 1 or plan.autoscaled:
        return []
    (role,) = plan.roles
    name = set_name(plan, role)
    leaders = [f"{name}-{engine}" for engine in range(plan.groups * role.replicas)]
    shared = options_of(plan).subdomain_policy is SubdomainPolicy.SHARED
    return [f"{pod}.{name if shared else pod}.{plan.namespace}" for pod in leaders]


# What each argument becomes in the lws backend, for docs/backends.md.


WRITTEN = {
    "replicas": "`spec.replicas`, times `roles[].replicas`",
    "roles[].replicas": "the same product",
    "roles[].worker_replicas": "`leaderWorkerTemplate.size`, minus 1",
    "gang_policy": "nothing: each engine is a gang",
    "queue": "annotation `scheduling.volcano.sh/queue-name`",
    "priority_class": "`priorityClassName` of the pods",
    "spread_over": "a soft `podAntiAffinity` of the pods",
    "scheduler_name": "`schedulerName` of the pods",
    "rollout_strategy.type": "nothing: LWS updates engines",
    "rollout_strategy…max_unavailable": "`rolloutStrategy`, in engines",
    "rollout_strategy…partition": "`rolloutStrategy`, in engines",
    "rollout_strategy…max_surge": "`maxSurge`",
    "roles[].max_unavailable": "`maxUnavailable`",
    "recovery_policy": "`restartPolicy`",
    "autoscaled": "nothing: `up` leaves `spec.replicas` as it is",
    "ready_timeout_seconds": "how long `up` waits; with several roles, nothing",
    **FOR_ALL,
}
PROVEN = (
    "Verdicts of the webhooks of LWS 0.9 on random objects. Pods, variables, gangs, update, "
    "scaling and deletion."
)


# How Prometheus finds the pods of a LeaderWorkerSet: a unit is one of its groups, an engine.
#
# Source: kubernetes-sigs/lws v0.9.0 pkg/controllers/pod_controller.go and
# pkg/utils/disaggregatedset/utils.go GenerateName; 0.10 puts a slice before the revision.


def targets(plan: ServingPlan) -> ScrapeTargets:
    """Return the pods of each role."""
    units = (engines_of(plan, role, _set_of(plan, role)) for role in plan.roles)
    return ScrapeTargets(entries=entry_labels(plan), units=only_with_pods(units))


def engines_of(plan: ServingPlan, role: RolePlan, name: str) -> Unit:
    """Return the engines of a role, each a group of the LeaderWorkerSet of this name."""
    return Unit(
        roles=(role.name,),
        pods=f"({name}-[0-9]+)(?:-[0-9]+)?",
        size=role.pods,
        number=None if plan.autoscaled else plan.groups * role.replicas,
    )


def _set_of(plan: ServingPlan, role: RolePlan) -> str:
    if len(plan.roles) == 1:
        return set_name(plan, role)
    return f"{plan.name}-(?:[0-9]+-)?[0-9a-f]{{8}}-{role.name}"


EMITTER = Emitter(
    emit=emit,
    limits=LIMITS,
    refuse=refuse,
    names=names,
    resources=(
        *(
            Resource(api_version=f"{group}/v1", kind=kind, plural=f"{kind.lower()}s")
            for group, kind in (LEADER_WORKER_SET, DISAGGREGATED_SET)
        ),
        SERVICES,
        BUDGETS,
    ),
    read_back=_read_back,
    targets=targets,
    install="Install LeaderWorkerSet 0.9 or later with its CRDs",
    rivals={
        MODEL_SERVING: "Kthena 0.3 and later creates a ModelServing for each LeaderWorkerSet. "
        "Remove Kthena or the controller of LeaderWorkerSet, or use backend: kthena"
    },
    sizes=_SIZES,
    controller_env=(*naming.INJECTED_ENV, "LWS_"),
    order=lambda plan: start_order(options_of(plan).startup_policy, STARTUP_POLICY),
    addresses=_addresses,
    options=LwsOptions,
    # The objects of one role and of several are of different kinds.
    stays_from=2,
    converter=CONVERTER,
    planned=_planned,
    written=WRITTEN,
    proven=PROVEN,
)
