"""Writes an InferenceService: a Deployment of single pods, or one engine of several pods.

An engine of several pods has its own ServingRuntime, because KServe accepts a workerSpec only
beside one. The containers are in the InferenceService: a change of a ServingRuntime alone does not
change the generation, by which workers find their head. Source: kserve v0.20.0
pkg/controller/v1beta1/inferenceservice; docs/backends/kserve.md lists every field.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.plan.manifest import WAIT_FOR, Manifest
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan, prioritized
from kthena_components.core.spec.rules.rollout import scale_budget
from kthena_components.core.templates import Template
from kthena_components.systems.kserve.options import options_of
from kthena_components.systems.kserve.templates import (
    HEAD,
    WORKER,
    named_role,
    sizes_of,
    with_variables,
)
from kthena_components.systems.kserve.view import GROUP, SERVICE

RUNTIME = "ServingRuntime"
FORMAT = "huggingface"
_MODE, _AUTOSCALER = "serving.kserve.io/deploymentMode", "serving.kserve.io/autoscalerClass"


def service_name(plan: ServingPlan, role: RolePlan) -> str:
    """Name the InferenceService. `<serving>` is the name of the front Service."""
    return f"{plan.name}-{role.name}"


def emit_service(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write the InferenceService of the only role, after its runtime if it has one."""
    (role,) = plan.roles
    role = named_role(role)
    head = with_variables(prioritized(plan, role.entry), role, worker=False)
    if role.worker is None:
        return (_service(plan, role, _single(plan, role, head)),)
    worker = with_variables(prioritized(plan, role.worker), role, worker=True)
    runtime = _runtime(plan, role)
    predictor = _several(plan, role, head["spec"], worker["spec"])
    return (runtime, _service(plan, role, predictor, after=(runtime.key,)))


def _service(
    plan: ServingPlan, role: RolePlan, predictor: dict[str, Any], after: tuple[str, ...] = ()
) -> Manifest:
    """Write the object. Its ingress is not awaited: the front Service does not need it."""
    metadata = _identity(plan, role)
    waits = {WAIT_FOR: "condition=PredictorReady"}
    metadata["annotations"] = {_AUTOSCALER: "none", _MODE: "Standard", **waits}
    body = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": SERVICE,
        "metadata": metadata,
        "spec": {"predictor": predictor},
    }
    seconds = plan.ready_timeout_seconds
    return Manifest(body=body, role=role.name, after=after, timeout_seconds=seconds)


def _identity(plan: ServingPlan, role: RolePlan) -> dict[str, Any]:
    labels = {naming.NAME: plan.name, naming.ROLE: role.name}
    return {"name": service_name(plan, role), "namespace": plan.namespace, "labels": labels}


def _single(plan: ServingPlan, role: RolePlan, head: Template) -> dict[str, Any]:
    """Write single pods: the predictor has their containers, and KServe leaves the command."""
    spec = {**head["spec"], "schedulerName": plan.scheduler}
    uri = options_of(plan).storage_uri
    if uri is not None:
        main, *rest = spec["containers"]
        env = [*(main.get("env") or []), {"name": "STORAGE_URI", "value": uri}]
        spec["containers"] = [{**main, "env": env}, *rest]
    return {
        **_metadata(plan, role, head, {naming.ENTRY: "true"}),
        "minReplicas": plan.groups * role.replicas,
        "deploymentStrategy": _rolling(plan, role),
        **spec,
    }


def _rolling(plan: ServingPlan, role: RolePlan) -> dict[str, Any]:
    """Convert the budget in ServingGroups to pods. Default: one pod at a time, and none beside."""
    stated, down, up = plan.rollout.stated, role.max_unavailable or 1, 0
    if stated is not None:
        size = max(role.replicas, 1)
        surge = surge_of(plan)
        groups = scale_budget(stated.max_unavailable, plan.groups, up=False) or 0
        down, up = (groups if groups or surge else 1) * size, surge * size
    budget = {"maxUnavailable": down, "maxSurge": up}
    return {"type": "RollingUpdate", "rollingUpdate": budget}


def surge_of(plan: ServingPlan) -> int:
    """Return the ServingGroups that an update may start beside the others."""
    stated = plan.rollout.stated
    return scale_budget(stated.max_surge or 0, plan.groups, up=True) or 0 if stated else 0


def _several(
    plan: ServingPlan, role: RolePlan, head: Mapping[str, Any], worker: Mapping[str, Any]
) -> dict[str, Any]:
    """Write one engine. KServe calculates its pods: sizes_of has the sizes that give the plan's."""
    main, *beside = head["containers"]
    model = {key: value for key, value in main.items() if key != "name"}
    served = {
        "modelFormat": {"name": FORMAT},
        "runtime": service_name(plan, role),
        "storageUri": options_of(plan).storage_uri,
    }
    tensor, pipeline = sizes_of(role) or (1, 1)
    scheduler = {"schedulerName": plan.scheduler}
    return {
        "labels": {**_labels(plan, role), naming.ROLE_TEMPLATE_HASH: role.template_hash},
        "minReplicas": 1,
        "deploymentStrategy": _replacing(plan),
        **{key: value for key, value in head.items() if key != "containers"},
        **scheduler,
        **({"containers": beside} if beside else {}),
        "model": {**served, **model},
        "workerSpec": {
            **worker,
            **scheduler,
            "tensorParallelSize": tensor,
            "pipelineParallelSize": pipeline,
        },
    }


def _replacing(plan: ServingPlan) -> dict[str, Any]:
    """Stop the old engine first, unless the budget has room for two.

    KServe makes each rolling update of workers one with maxUnavailable 0% and maxSurge 100%, which
    never ends without free GPUs for a second engine.
    """
    if not surge_of(plan):
        return {"type": "Recreate"}
    return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}


def _runtime(plan: ServingPlan, role: RolePlan) -> Manifest:
    """Write the runtime: the names of both containers, and what only one kind of pods has."""
    worker = {**_metadata(plan, role, role.worker or {}, {}), "containers": [{"name": WORKER}]}
    spec = {
        "supportedModelFormats": [{"name": FORMAT, "autoSelect": False}],
        **_metadata(plan, role, role.entry, {naming.ENTRY: "true"}),
        "containers": [{"name": HEAD}],
        "workerSpec": worker,
    }
    body = {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": RUNTIME,
        "metadata": _identity(plan, role),
        "spec": spec,
    }
    return Manifest(body=body, role=role.name)


def _labels(plan: ServingPlan, role: RolePlan) -> dict[str, str]:
    return {naming.NAME: plan.name, naming.ROLE: role.name}


def _metadata(
    plan: ServingPlan, role: RolePlan, template: Template, own: Mapping[str, str]
) -> dict[str, Any]:
    """Return labels and annotations of pods, beside their spec as KServe has them."""
    metadata = template.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    labels = {**(metadata.get("labels") or {}), **_labels(plan, role), **own}
    return {"labels": labels, **({"annotations": annotations} if annotations else {})}
