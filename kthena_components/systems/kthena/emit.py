"""Writes one ModelServing object for the whole serving, and what scales and routes to it.

Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1 and pkg/model-serving-controller; for earlier
versions the tags v0.1.0 to v0.4.0. docs/backends/kthena.md lists every field.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.objects.object import MODEL_SERVER, MODEL_SERVING, read_object
from kthena_components.core.plan.manifest import (
    BACKGROUND,
    BUDGETS,
    PATCH_FORCE,
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
    placed,
    targets_of_groups,
)
from kthena_components.core.spec.enums import KthenaVersion, RolloutType
from kthena_components.core.templates import Template
from kthena_components.systems.emitter import FOR_ALL, Emitter
from kthena_components.systems.kthena.convert import CONVERTER
from kthena_components.systems.kthena.emit_autoscaling import emit_autoscaling, kept_replicas
from kthena_components.systems.kthena.facts import facts
from kthena_components.systems.kthena.limits import LIMITS, names, refuse, since
from kthena_components.systems.kthena.options import KthenaOptions, options_of, render_plugins
from kthena_components.systems.kthena.router import emit_router, refuse_router
from kthena_components.systems.kthena.view import (
    BINDING,
    MODEL_ROUTE,
    PARTITION_RESTORES,
    PARTITION_SCALING,
    POLICY,
    read_serving,
)
from kthena_components.systems.kubernetes.backends import emit_front
from kthena_components.systems.volcano import emit as volcano

_Labels = tuple[str, str]
_GROUP, _KIND = MODEL_SERVING
API_VERSION = f"{_GROUP}/v1alpha1"
_UPDATE_RULES = (PARTITION_SCALING, PARTITION_RESTORES)


def emit(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write the ModelServing, its front Service, and what the router and the autoscaler read.

    A ModelServing that is applied with force comes last: an object of another stack is taken over
    then, and the policy that the other stack has, too, is rejected first.
    """
    scaling = emit_autoscaling(plan)
    forced = _is_forced(plan)
    serving = Manifest(
        body=_serving(plan),
        # The CRD forbids changing these, so another value needs another object.
        replace_on=("spec.template.gangPolicy",),
        ignore=kept_replicas(plan),
        update_rules=_UPDATE_RULES if plan.rollout.partition else (),
        delete_first=True,
        timeout_seconds=plan.ready_timeout_seconds,
        after=tuple(each.key for each in scaling) if forced else (),
    )
    front = emit_front(plan)
    first, last = (scaling, ()) if forced else ((), scaling)
    return (*first, serving, *((front,) if front else ()), *emit_router(plan), *last)


def _serving(plan: ServingPlan) -> dict[str, Any]:
    """Write the ModelServing with the annotations for its queue, its status and its updates."""
    metadata: dict[str, Any] = {"name": plan.name, "namespace": plan.namespace}
    # Kthena 1.0.0 creates pods for a ModelServing that is being deleted, too.
    annotations = dict(BACKGROUND)
    if plan.queue is not None:
        annotations[naming.QUEUE_NAME] = plan.queue
    if plan.groups:
        # A ModelServing created without replicas never gets a status (Kthena 1.0.0, issue 1755).
        annotations[WAIT_FOR] = until_updated(plan)
    if _is_forced(plan):
        # The list of roles is one value, which belongs to the autoscaler once it changes a role.
        annotations |= PATCH_FORCE
    metadata["annotations"] = annotations
    return {"apiVersion": API_VERSION, "kind": _KIND, "metadata": metadata, "spec": _spec(plan)}


def _is_forced(plan: ServingPlan) -> bool:
    return any("roles" in path for path in kept_replicas(plan))


def _refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report what Kthena does not take: fields, router options, and autoscaling if stated."""
    yield from refuse(plan)
    yield from refuse_router(plan)
    if options_of(plan).autoscaling is not None:
        # Imported here, because it loads rules that only this backend needs.
        from kthena_components.systems.kthena.limits_autoscaling import refuse_autoscaling  # noqa: PLC0415

        yield from refuse_autoscaling(plan, _serving)


def until_updated(plan: ServingPlan) -> str:
    """Wait until every group is updated and serves.

    Between two groups of an update, all existing groups are ready, and Kthena reports Available.
    How many groups a partition keeps depends on the previous state, and how many groups there are
    on the autoscaler, so that is not waited for.
    """
    available = "condition=Available"
    if plan.rollout.partition or REPLICAS in kept_replicas(plan):
        return available
    return json.dumps([available, f"jsonpath={{.status.updatedReplicas}}={plan.groups}"])


def _spec(plan: ServingPlan) -> dict[str, Any]:
    """Write the spec of the ModelServing; fields that are not stated are left out."""
    template: dict[str, Any] = {"roles": [write_role(plan, role) for role in plan.roles]}
    if plan.restart_grace_seconds is not None:
        template["restartGracePeriodSeconds"] = plan.restart_grace_seconds
    if plan.min_role_replicas is not None:
        template["gangPolicy"] = {"minRoleReplicas": dict(plan.min_role_replicas)}
    topology = _topology(plan)
    if topology:
        template["networkTopology"] = topology
    spec: dict[str, Any] = {
        "replicas": plan.groups,
        "schedulerName": plan.scheduler,
        "template": template,
    }
    if plan.recovery is not None:
        spec["recoveryPolicy"] = str(plan.recovery)
    if plugins := render_plugins(plan):
        spec["plugins"] = plugins
    rollout = _rollout(plan)
    if rollout:
        spec["rolloutStrategy"] = rollout
    return spec


def _topology(plan: ServingPlan) -> dict[str, Any]:
    """Write the topology: one flat object before 0.2, one for groups and one for roles since."""
    group, role = plan.group_topology, plan.role_topology
    if not since(plan, KthenaVersion.V0_2):
        return volcano.render_topology(group) if group else {}
    split = {"groupPolicy": group, "rolePolicy": role}
    return {key: volcano.render_topology(policy) for key, policy in split.items() if policy}


def _rollout(plan: ServingPlan) -> dict[str, Any]:
    """Write rolloutStrategy; Kthena's default is left out."""
    stated = plan.rollout.stated
    if stated is None and plan.rollout.type is RolloutType.SERVING_GROUP:
        return {}
    rollout: dict[str, Any] = {"type": str(plan.rollout.type)}
    if stated is not None:
        budget: dict[str, Any] = {"maxUnavailable": stated.max_unavailable}
        if stated.partition is not None:
            budget["partition"] = stated.partition
        rollout["rollingUpdateConfiguration"] = budget
    return rollout


def write_role(
    plan: ServingPlan, role: RolePlan, labels: _Labels = (naming.NAME, naming.GROUP_NAME)
) -> dict[str, Any]:
    """Write a role with its pod templates.

    Args:
        plan: The serving.
        labels: The controller's labels of pods with the names of the serving and of its group.
    """
    name, group = labels
    entry = placed(plan, role, role.entry, {name: plan.name}, group)
    written: dict[str, Any] = {
        "name": role.name,
        "replicas": role.replicas,
        "entryTemplate": _template(entry),
        "workerReplicas": role.worker_replicas,
    }
    if role.worker is not None:
        worker = placed(plan, role, role.worker, {name: plan.name}, group)
        written["workerTemplate"] = _template(worker)
    if role.max_unavailable is not None and since(plan, KthenaVersion.V1_0):
        written["maxUnavailable"] = role.max_unavailable
    return written


def _template(template: Template) -> Template:
    """Keep the fields of Kthena's reduced template: labels, annotations, and the pod's spec.

    The CRD requires a list of containers, which may be empty if no worker is created.
    """
    metadata = template.get("metadata") or {}
    kept = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
    spec = template.get("spec") or {}
    filled = {**spec, "containers": spec.get("containers") or []}
    return {**({"metadata": kept} if kept else {}), "spec": filled}


def _targets(plan: ServingPlan) -> ScrapeTargets:
    """Return the pods, without the numbers that an autoscaler changes."""
    found, kept = targets_of_groups(plan), kept_replicas(plan)
    number = None if REPLICAS in kept else plan.groups
    size = None if set(kept) - {REPLICAS} else plan.pods_per_group
    return replace(found, units=tuple(replace(u, size=size, number=number) for u in found.units))


def _pods(plan: ServingPlan) -> Mapping[str, str]:
    return {} if kept_replicas(plan) else {naming.NAME: plan.name}


def _read_back(bodies: Sequence[Mapping[str, Any]]) -> list[ServingFacts]:
    found = map(read_object, bodies)
    return [facts(read_serving(one)) for one in found if one.group_kind == MODEL_SERVING]


# What each argument becomes in the kthena backend, for docs/backends.md.


WRITTEN = {
    "replicas": "`spec.replicas`",
    "roles[].replicas": "`roles[].replicas`",
    "roles[].worker_replicas": "`roles[].workerReplicas`",
    "gang_policy": "`gangPolicy.minRoleReplicas`",
    "network_topology.group_policy": "`networkTopology.groupPolicy`",
    "network_topology.role_policy": "`networkTopology.rolePolicy`",
    "queue": "annotation `scheduling.volcano.sh/queue-name`",
    "priority_class": "`priorityClassName` of the pods, and not of Kthena's PodGroups",
    "spread_over": "a soft `podAntiAffinity` of the pods",
    "scheduler_name": "`schedulerName`",
    "rollout_strategy.type": "`rolloutStrategy.type`",
    "rollout_strategy…max_unavailable": "`rolloutStrategy.rollingUpdateConfiguration`",
    "rollout_strategy…partition": "`rolloutStrategy.rollingUpdateConfiguration`",
    "roles[].max_unavailable": "`roles[].maxUnavailable`",
    "recovery_policy": "`recoveryPolicy`",
    "autoscaled": "nothing: `up` leaves `spec.replicas` as it is",
    "restart_grace_period_seconds": "`restartGracePeriodSeconds`",
    "ready_timeout_seconds": "how long `up` waits for `Available`",
    **FOR_ALL,
}
PROVEN = (
    "Verdicts of the webhook of Kthena 1.0 on random ModelServings. Pods, gangs, update, scaling, "
    "autoscaling, faults, and the rights that are needed."
)


EMITTER = Emitter(
    emit=emit,
    limits=LIMITS,
    refuse=_refuse,
    names=names,
    resources=(
        Resource(api_version=API_VERSION, kind=_KIND, plural="modelservings"),
        Resource(api_version=API_VERSION, kind=POLICY[1], plural="autoscalingpolicies"),
        Resource(api_version=API_VERSION, kind=BINDING[1], plural="autoscalingpolicybindings"),
        *(
            Resource(
                api_version=f"{MODEL_SERVER[0]}/v1alpha1", kind=kind, plural=f"{kind.lower()}s"
            )
            for kind in (MODEL_SERVER[1], MODEL_ROUTE[1])
        ),
        SERVICES,
        BUDGETS,
    ),
    read_back=_read_back,
    pods=_pods,
    is_counted=False,
    targets=_targets,
    install="Install Kthena 1.0 with its CRDs",
    options=KthenaOptions,
    kthena_versions=tuple(KthenaVersion),
    converter=CONVERTER,
    written=WRITTEN,
    proven=PROVEN,
)
