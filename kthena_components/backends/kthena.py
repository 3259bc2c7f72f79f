"""Kthena: one ModelServing object for the whole serving, and its reader.

Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1 and pkg/model-serving-controller; for earlier
versions the tags v0.1.0 to v0.4.0. Field by field in docs/backends.md.
"""

import json
from collections.abc import Mapping
from typing import Any

from kthena_components.backends import services, volcano
from kthena_components.backends.base import WAIT_FOR, Manifest
from kthena_components.backends.kthena_limits import since
from kthena_components.backends.workloads import NO_SCHEDULER, group_kind
from kthena_components.core import naming
from kthena_components.core.facts import (
    EngineFacts,
    GangFacts,
    ServingFacts,
    as_count,
    as_list,
    as_map,
    read_pod,
)
from kthena_components.core.known import MaybeInt, Unknown, is_late
from kthena_components.core.plan import RolePlan, ServingPlan
from kthena_components.core.pod_template import Template
from kthena_components.core.spec import KthenaVersion, RolloutType

GROUP = "workload.serving.volcano.sh"
API_VERSION = f"{GROUP}/v1alpha1"
KIND = "ModelServing"
MODEL_SERVING = (GROUP, KIND)


def emit(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write the ModelServing and, when the serving is exposed, its front Service."""
    metadata: dict[str, Any] = {"name": plan.name, "namespace": plan.namespace}
    annotations: dict[str, str] = {}
    if plan.queue is not None:
        annotations[naming.QUEUE_NAME] = plan.queue
    if plan.groups:
        # A ModelServing made with no replicas never gets a status (Kthena 1.0.0, issue 1755).
        annotations[WAIT_FOR] = _until_updated(plan)
    if annotations:
        metadata["annotations"] = annotations
    body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": _spec(plan)}
    serving = Manifest(
        body=body,
        # The CRD forbids a change of these, so another value needs another object.
        replace_on=("spec.template.gangPolicy",),
        delete_first=True,
        timeout_seconds=plan.ready_timeout_seconds,
    )
    front = services.emit_front(plan)
    return (serving, front) if front else (serving,)


def _until_updated(plan: ServingPlan) -> str:
    """Wait until every group serves, and is a new one.

    Between two groups of an update all that exist are ready, and Kthena says Available. How many
    a partition leaves as they were depends on what was there before, so that is not waited for.
    """
    available = "condition=Available"
    if plan.rollout.partition:
        return available
    return json.dumps([available, f"jsonpath={{.status.updatedReplicas}}={plan.groups}"])


def _spec(plan: ServingPlan) -> dict[str, Any]:
    template: dict[str, Any] = {"roles": [_role(plan, role) for role in plan.roles]}
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


def _role(plan: ServingPlan, role: RolePlan) -> dict[str, Any]:
    written: dict[str, Any] = {
        "name": role.name,
        "replicas": role.replicas,
        "entryTemplate": _template(role.entry),
        "workerReplicas": role.worker_replicas,
    }
    if role.worker is not None:
        written["workerTemplate"] = _template(role.worker)
    if role.max_unavailable is not None and since(plan, KthenaVersion.V1_0):
        written["maxUnavailable"] = role.max_unavailable
    return written


def _template(template: Template) -> Template:
    """Keep what Kthena's cut-down template has: labels, annotations, and the pod's spec.

    The CRD wants a list of containers, though an empty one will do where no worker is made.
    """
    metadata = template.get("metadata") or {}
    kept = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
    spec = template.get("spec") or {}
    filled = {**spec, "containers": spec.get("containers") or []}
    return {**({"metadata": kept} if kept else {}), "spec": filled}


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of a ModelServing; None for anything else."""
    if group_kind(body) != MODEL_SERVING:
        return None
    base = f"{path}.spec" if path else "spec"
    spec = as_map(body.get("spec"))
    template = as_map(spec.get("template"))
    roles = [as_map(role) for role in as_list(template.get("roles"))]
    engines = tuple(
        _read_role(role, f"{base}.template.roles[{index}]") for index, role in enumerate(roles)
    )
    scheduler = spec.get("schedulerName", "volcano")
    volcano_places = scheduler == "volcano"
    return ServingFacts(
        path=base,
        name=str(as_map(body.get("metadata")).get("name", "")),
        engines=engines,
        gang=_read_gang(template, engines, base) if volcano_places else None,
        gang_expected=NO_SCHEDULER if is_late(scheduler) else volcano_places,
    )


def _read_role(role: Mapping[str, Any], path: str) -> EngineFacts:
    workers = as_count(role.get("workerReplicas"), "workerReplicas", 0)
    pods = workers if isinstance(workers, Unknown) else workers + 1
    env = {} if isinstance(pods, Unknown) else {naming.GROUP_SIZE: str(pods)}
    worker = role.get("workerTemplate") if workers != 0 else None
    return EngineFacts(
        path=path,
        name=str(role.get("name", "")),
        pods=pods,
        replicas=as_count(role.get("replicas"), "replicas", 1),
        entry=read_pod(role.get("entryTemplate"), f"{path}.entryTemplate", env),
        worker=None if worker is None else read_pod(worker, f"{path}.workerTemplate", env),
    )


def _read_gang(
    template: Mapping[str, Any], engines: tuple[EngineFacts, ...], base: str
) -> GangFacts:
    """Work out the gang that the controller will ask for; it always holds whole engines."""
    stated = as_map(as_map(template.get("gangPolicy")).get("minRoleReplicas"))
    minima: dict[str, MaybeInt] = {}
    member: MaybeInt = 0
    for engine in engines:
        wanted = as_count(stated.get(engine.name), f"minRoleReplicas.{engine.name}", -1)
        minimum = engine.replicas if wanted == -1 else wanted
        if isinstance(minimum, int) and isinstance(engine.replicas, int):
            minimum = min(minimum, engine.replicas)
        minima[engine.name] = minimum
        for value in (minimum, engine.pods):
            member = value if isinstance(value, Unknown) else member
        if isinstance(member, int) and isinstance(minimum, int) and isinstance(engine.pods, int):
            member += minimum * engine.pods
    return GangFacts(path=f"{base}.template.gangPolicy", min_member=member, minima=minima)
