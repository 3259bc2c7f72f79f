"""Writes one ModelInfer object for the whole serving.

ModelInfer became Kthena's ModelServing, so its roles are written alike. Its controller passes
`schedulerName` to no pod, creates PodGroups only with `gangSchedule`, and labels pods with keys of
its own. Source: volcano-sh/kthena 98380a67 and e4fb6663, pkg/apis/workload/v1alpha1 and
pkg/infer-controller; docs/backends/matrixinfer.md lists every field.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from kthena_components.core import naming
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.objects.object import read_object
from kthena_components.core.plan.manifest import (
    BACKGROUND,
    BUDGETS,
    SERVICES,
    WAIT_FOR,
    Manifest,
    Resource,
)
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan, targets_of_groups
from kthena_components.core.plan.templates import labelled
from kthena_components.core.spec.enums import RecoveryPolicy
from kthena_components.core.spec.fields import Spec
from kthena_components.systems.emitter import FOR_ALL, Emitter
from kthena_components.systems.kthena.emit import until_updated, write_role
from kthena_components.systems.kthena.limits import names
from kthena_components.systems.kubernetes.backends import emit_front
from kthena_components.systems.matrixinfer.convert import CONVERTER
from kthena_components.systems.matrixinfer.limits import LIMITS, refuse_templates
from kthena_components.systems.matrixinfer.view import KIND, MODEL_INFERS, facts, read_model_infer
from kthena_components.systems.volcano import emit as volcano

_VERSION = "v1alpha1"
_RECOVERY = {
    RecoveryPolicy.SERVING_GROUP_RECREATE: "InferGroupRecreate",
    RecoveryPolicy.ROLE_RECREATE: "RoleRecreate",
    RecoveryPolicy.NONE: "None",
}


def emit(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write the ModelInfer and, if the serving is exposed, its front Service."""
    annotations = dict(BACKGROUND)  # as for Kthena, which this controller became
    if plan.groups:
        # Without replicas it never gets a status: the controller finds no InferGroup to count.
        annotations[WAIT_FOR] = until_updated(plan)
    metadata = {"name": plan.name, "namespace": plan.namespace, "annotations": annotations}
    body = {
        "apiVersion": f"{api_group(plan)}/{_VERSION}",
        "kind": KIND,
        "metadata": metadata,
        "spec": _spec(plan),
    }
    made = Manifest(body=body, delete_first=True, timeout_seconds=plan.ready_timeout_seconds)
    front = emit_front(plan)
    return (made, front) if front else (made,)


def _spec(plan: ServingPlan) -> dict[str, Any]:
    template: dict[str, Any] = {
        "roles": [_role(plan, role) for role in plan.roles],
        "gangSchedule": _gang(plan),
    }
    if plan.restart_grace_seconds is not None:
        template["restartGracePeriodSeconds"] = plan.restart_grace_seconds
    spec: dict[str, Any] = {
        "replicas": plan.groups,
        "schedulerName": plan.scheduler,
        "template": template,
    }
    if plan.recovery is not None:
        spec["recoveryPolicy"] = _RECOVERY[plan.recovery]
    if plan.rollout.stated is not None:
        spec["rolloutStrategy"] = _rollout(plan)
    return spec


def _gang(plan: ServingPlan) -> dict[str, Any]:
    """Write the gang and its topology. An empty one requires all replicas of all roles."""
    gang: dict[str, Any] = {}
    if plan.min_role_replicas is not None:
        gang["minRoleReplicas"] = dict(plan.min_role_replicas)
    if plan.group_topology is not None:
        gang["networkTopology"] = volcano.render_topology(plan.group_topology)
    return gang


def _rollout(plan: ServingPlan) -> dict[str, Any]:
    """Write the rollout. The CRD knows no partition in percent, so it is a count."""
    stated = plan.rollout.stated
    rolling: dict[str, Any] = {"maxUnavailable": plan.rollout.max_unavailable}
    if stated is not None and stated.max_surge is not None:
        rolling["maxSurge"] = stated.max_surge
    if stated is not None and stated.partition is not None:
        rolling["partition"] = plan.rollout.partition
    return {"type": "InferGroupRollingUpdate", "rollingUpdateConfiguration": rolling}


def _role(plan: ServingPlan, role: RolePlan) -> dict[str, Any]:
    """Write a role. The front Service and `status` find the pods by the labels."""
    own_labels = f"modelinfer.{api_group(plan).partition('.')[2]}/"
    written = write_role(plan, role, (f"{own_labels}name", f"{own_labels}group-name"))
    ours = {naming.NAME: plan.name, naming.ROLE: role.name}
    for field, own in (("entryTemplate", {naming.ENTRY: "true"}), ("workerTemplate", {})):
        if field in written:
            written[field] = labelled(written[field], {**ours, **own}, plan.scheduler)
    return written


def _read_back(bodies: Sequence[Mapping[str, Any]]) -> list[ServingFacts]:
    found = map(read_object, bodies)
    return [facts(read_model_infer(one)) for one in found if one.group_kind in MODEL_INFERS]


# What each argument becomes in the matrixinfer backend, for docs/backends.md.


WRITTEN = {
    "replicas": "`spec.replicas`",
    "roles[].replicas": "`template.roles[].replicas`",
    "roles[].worker_replicas": "`template.roles[].workerReplicas`",
    "gang_policy": "`template.gangSchedule.minRoleReplicas`",
    "network_topology.group_policy": "`template.gangSchedule.networkTopology`",
    "priority_class": "`priorityClassName` of the pods, and not of the PodGroups",
    "spread_over": "a soft `podAntiAffinity` of the pods",
    "scheduler_name": "`schedulerName`, there and in every template",
    "rollout_strategy.type": "`InferGroupRollingUpdate`",
    "rollout_strategy…max_unavailable": "nothing: the controller updates one group at a time",
    "rollout_strategy…partition": "`rolloutStrategy`; a share in percent becomes a count",
    "recovery_policy": "`recoveryPolicy`",
    "restart_grace_period_seconds": "`template.restartGracePeriodSeconds`",
    "ready_timeout_seconds": "how long `up` waits for `Available`",
    **FOR_ALL,
}
PROVEN = (
    "Pods, variables, Services, gangs, update, scaling and deletion: with the controllers and "
    "webhooks of both API groups where their programs are given, and always with Kthena's "
    "1.0, which they became. The rules of their last source are compared in tests."
)


# `backend_options` of the matrixinfer backend.
#
# Source: volcano-sh/kthena 98380a67 (charts/matrixinfer, the last state with the older group) and
# e4fb6663 (charts/kthena, the last one before ModelServing).


class ApiGroup(StrEnum):
    """API groups whose CRD was on the main branch. Except for the group, the CRDs are equal."""

    MATRIXINFER = "workload.matrixinfer.ai"
    """Until 19 September 2025."""
    VOLCANO = "workload.volcano.sh"
    """From then on until ModelServing replaced ModelInfer, on 23 September 2025."""


class MatrixInferOptions(Spec):
    """What depends on the state of MatrixInfer that the cluster runs."""

    api_group: Annotated[ApiGroup, Field(strict=False)] = ApiGroup.MATRIXINFER
    """API group of its ModelInfer."""


def api_group(plan: ServingPlan) -> str:
    """Return the API group that a plan is written for."""
    options = plan.options if isinstance(plan.options, MatrixInferOptions) else MatrixInferOptions()
    return options.api_group.value


EMITTER = Emitter(
    emit=emit,
    limits=LIMITS,
    refuse=refuse_templates,
    names=names,
    resources=(
        *(
            Resource(api_version=f"{group.value}/{_VERSION}", kind=KIND, plural="modelinfers")
            for group in ApiGroup
        ),
        SERVICES,
        BUDGETS,
    ),
    read_back=_read_back,
    is_counted=False,
    targets=targets_of_groups,
    install="Install MatrixInfer with its CRDs, or write the API group of the installed one in "
    "backend_options",
    options=MatrixInferOptions,
    converter=CONVERTER,
    written=WRITTEN,
    proven=PROVEN,
)
