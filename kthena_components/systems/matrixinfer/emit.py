"""Writes one ModelInfer object for the whole serving.

ModelInfer became Kthena's ModelServing, so its roles are written alike. Its controller passes
`schedulerName` to no pod, creates PodGroups only with `gangSchedule`, and labels pods with keys of
its own. Source: volcano-sh/kthena 98380a67 and e4fb6663, pkg/apis/workload/v1alpha1 and
pkg/infer-controller; docs/backends/matrixinfer.md lists every field.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from kthena_components.core import naming
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, count_of, refuse
from kthena_components.core.objects.object import VOLCANO, read_object
from kthena_components.core.plan.limits import UPDATE, Limit, SetField
from kthena_components.core.plan.manifest import (
    BACKGROUND,
    BUDGETS,
    SERVICES,
    WAIT_FOR,
    Manifest,
    Resource,
)
from kthena_components.core.plan.read_back import filled_map, stated
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan, targets_of_groups
from kthena_components.core.plan.templates import labelled
from kthena_components.core.remedies import elsewhere, remove
from kthena_components.core.spec.enums import RecoveryPolicy, RolloutType
from kthena_components.core.spec.fields import Spec
from kthena_components.core.spec.rules.rollout import scale_budget
from kthena_components.core.values.read import group_kind, mapping, sequence
from kthena_components.systems.emitter import FOR_ALL, Converter, Emitter, Pair
from kthena_components.systems.kthena.convert import (
    described_gang,
    described_role,
    described_rollout,
    filled_object,
    filled_roles,
    filled_rollout,
    renamed,
)
from kthena_components.systems.kthena.emit import until_updated, write_role
from kthena_components.systems.kthena.limits import (
    annotated,
    limits_of_roles,
    names,
    refuse_lws_names,
)
from kthena_components.systems.kubernetes.backends import ENGINES_WITH_METRICS, emit_front
from kthena_components.systems.matrixinfer.view import KIND, MODEL_INFERS, facts, read_model_infer
from kthena_components.systems.system import Body
from kthena_components.systems.volcano import emit as volcano

# What a ModelInfer does not support: an error, never dropped.
#
# Source: volcano-sh/kthena 98380a67 and e4fb6663, the CRD modelinfers, and pkg/infer-controller:
# webhook/validator.go, controller/modelinfer_controller.go and gangscheduling/manager.go. Budgets:
# manageInferGroupRollingUpdate, which reads only the partition and updates one group at a time.


def _surges(one: SetField) -> bool:
    return scale_budget(one.value, one.plan.groups, up=True) != 0


def _earlier_partition(one: SetField) -> str:
    return elsewhere(f"write at most {one.plan.groups - 1}" if one.plan.groups > 1 else remove())


LIMITS = (
    ENGINES_WITH_METRICS,
    *limits_of_roles("ModelInfer"),
    Limit(
        "scheduler_name",
        "is '{}', but MatrixInfer accepts only volcano",
        takes="only `volcano`",
        when=lambda one: one.value != VOLCANO,
        remedy=elsewhere("write volcano"),
    ),
    Limit("queue", "is given, but the PodGroups that MatrixInfer creates are in the default queue"),
    Limit(
        "network_topology.role_policy",
        "is given, but a ModelInfer has one topology, for the group",
        remedy=elsewhere("write group_policy"),
    ),
    Limit(
        "network_topology.group_policy.highest_tier_name",
        "is '{}', but a ModelInfer knows tiers only by their numbers",
        takes="no tier by name",
        remedy=elsewhere("write highest_tier_allowed"),
    ),
    Limit(
        "rollout_strategy.type",
        "is {}, but MatrixInfer updates whole groups",
        takes="no `RoleRollingUpdate`",
        when=lambda one: one.value is RolloutType.ROLE,
        remedy=elsewhere("write ServingGroupRollingUpdate"),
    ),
    Limit("roles[].max_unavailable", "is {}, but MatrixInfer updates whole groups"),
    Limit(
        f"{UPDATE}.max_unavailable",
        "is {}, but MatrixInfer's controller ignores it and updates one group at a time",
        takes="at most 1",
        when=lambda one: one.value != 1,
        remedy=elsewhere("write 1"),
    ),
    Limit(
        f"{UPDATE}.max_surge",
        "is {}, but MatrixInfer's controller ignores it and stops a group before it starts the "
        "new one",
        when=_surges,
    ),
    Limit(
        f"{UPDATE}.partition",
        lambda one: (
            f"is {one.value} of {count_of(one.plan.groups, 'group')}, but MatrixInfer requires "
            "that at least one group is updated"
        ),
        takes="not all groups",
        when=lambda one: one.plan.rollout.partition >= one.plan.groups,
        remedy=_earlier_partition,
    ),
    Limit("autoscaled", "is true, but a ModelInfer is not known to have a scale subresource"),
)


def refuse_templates(plan: ServingPlan) -> Iterator[Finding]:
    """Report variables and annotations that a ModelInfer's pods cannot have."""
    yield from refuse_lws_names(plan, "MatrixInfer")
    for path in annotated(plan):
        seen = "puts annotations into a pod template, and MatrixInfer's controller crashes on them"
        yield refuse(path, seen, elsewhere(remove()), "backend-loss")


# Reads a ModelInfer back to the arguments of a serving.
#
# Source of the defaults: volcano-sh/kthena 98380a67 and e4fb6663, pkg/apis/workload/v1alpha1.


_BY_GROUP = "InferGroupRollingUpdate"
_RECOVERY_OF = {"InferGroupRecreate": "ServingGroupRecreate"}
_TIER = {"mode": "mode", "highestTierAllowed": "highest_tier_allowed"}
_LABELS = {"name": naming.NAME, "role": naming.ROLE, "entry": naming.ENTRY}


def filled(body: Body) -> dict[str, Any]:
    """Fill in the defaults of the CRD, and the gang that an empty gangSchedule means."""
    spec = filled_map(body.get("spec"), {"replicas": 1, "recoveryPolicy": "RoleRecreate"})
    rollout = filled_rollout(spec.get("rolloutStrategy"), _BY_GROUP)
    rolling = mapping(rollout.get("rollingUpdateConfiguration"))
    rolling = {key: 0 if value == "0%" else value for key, value in rolling.items()}
    rollout["rollingUpdateConfiguration"] = filled_map(rolling, {"maxSurge": 0, "partition": 0})
    spec["rolloutStrategy"] = rollout
    template = filled_roles(spec.get("template"))
    gang = template.get("gangSchedule")
    if gang is not None:
        roles = map(mapping, sequence(template["roles"]))
        minima = {str(role.get("name")): role.get("replicas") for role in roles}
        stated_minima = mapping(mapping(gang).get("minRoleReplicas"))
        gang = {**mapping(gang), "minRoleReplicas": {**minima, **stated_minima}}
        if gang.get("networkTopology") is not None:
            gang["networkTopology"] = filled_map(gang["networkTopology"], {"mode": "hard"})
        template["gangSchedule"] = gang
    return filled_object(body, {**spec, "template": template})


def arguments(body: Body) -> dict[str, Any]:
    """Return the arguments that describe a ModelInfer whose defaults are filled in."""
    metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
    template, scheduler = mapping(spec.get("template")), spec.get("schedulerName")
    gang = mapping(template.get("gangSchedule"))
    topology = renamed(mapping(gang.get("networkTopology")), _TIER)
    recovery = spec.get("recoveryPolicy")
    return stated(
        name=metadata.get("name"),
        namespace=metadata.get("namespace"),
        replicas=spec.get("replicas"),
        scheduler_name=scheduler,
        gang_policy=_described_minima(template),
        network_topology={"group_policy": topology} if topology else None,
        rollout_strategy=_read_rollout(mapping(spec.get("rolloutStrategy"))),
        recovery_policy=_RECOVERY_OF.get(recovery, recovery) if isinstance(recovery, str) else None,
        restart_grace_period_seconds=template.get("restartGracePeriodSeconds") or None,
        roles=[described_role(role, scheduler) for role in sequence(template.get("roles"))],
        backend_options={"api_group": group_kind(body)[0]},
    )


def _described_minima(template: Any) -> dict[str, Any] | None:
    """Describe the gang, None if it covers all engines."""
    roles = map(mapping, sequence(template.get("roles")))
    full = {str(role.get("name")): role.get("replicas") for role in roles}
    policy = described_gang(template.get("gangSchedule"))
    return policy if policy and policy["min_role_replicas"] != full else None


def _read_rollout(strategy: Any) -> dict[str, Any] | None:
    """Describe a rollout. No surge and no partition are the defaults, so they are not stated."""
    rolling = mapping(strategy.get("rollingUpdateConfiguration"))
    kept = {k: v for k, v in rolling.items() if k == "maxUnavailable" or v != 0}
    kind = (
        "ServingGroupRollingUpdate" if strategy.get("type") == _BY_GROUP else strategy.get("type")
    )
    return described_rollout({"type": kind, "rollingUpdateConfiguration": kept})


def _label(pair: Pair) -> Pair | None:
    key, value = pair
    same = _LABELS.get(key.partition("/")[2])
    return None if same is None else (same, value)


CONVERTER = Converter(
    kinds=MODEL_INFERS,
    filled=filled,
    arguments=arguments,
    labels=("modelinfer.matrixinfer.ai/", "modelinfer.volcano.sh/"),
    label=_label,
)


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
    """Write the spec; what the serving does not state is left to MatrixInfer's defaults."""
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
