"""What an LLMInferenceService does not support, or starts in another way.

Source: kserve v0.20.0 pkg/apis/serving/v1alpha2/llm_inference_service_validation.go and
pkg/controller/v1alpha2/llmisvc.
"""

import json
from collections.abc import Iterator

from kthena_components.core.facts.context import MODEL_CONFIG
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.findings import Finding, count_of, join_path
from kthena_components.core.plan.limits import UPDATE, Limit, SetField, gang_copies, loss, only_if
from kthena_components.core.plan.pod_additions import labels_of
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.remedies import elsewhere, remove
from kthena_components.core.spec.enums import RecoveryPolicy
from kthena_components.core.spec.rules.rollout import scale_budget
from kthena_components.core.templates import Template
from kthena_components.systems.kserve.emit_objects import (
    PREFILL,
    data_of,
    is_llm,
    model_uri,
    options_of,
    split_roles,
)
from kthena_components.systems.kubernetes.backends import leader_names

_RESERVED = ("app.kubernetes.io/", "kserve.io/", "llm-d.ai/")


_MOST_ROLES = len(("main", PREFILL))


def _names(one: SetField) -> list[str]:
    return [role.name for role in one.plan.roles]


def _other_roles(one: SetField) -> bool:
    return len(_names(one)) > _MOST_ROLES or (one.several and PREFILL not in _names(one))


def _other_recovery(one: SetField) -> bool:
    engines = sum(role.replicas for role in one.plan.roles)
    whole = one.value is RecoveryPolicy.SERVING_GROUP_RECREATE and engines > 1
    return one.value is RecoveryPolicy.NONE or whole


_ONE = "KServe updates one engine at a time"
LIMITS = only_if(
    lambda one: is_llm(one.plan),
    Limit(
        "roles",
        lambda one: (
            f"are {', '.join(_names(one))}, but an LLMInferenceService has one role, and {PREFILL} "
            "beside it"
        ),
        when=_other_roles,
        remedy=elsewhere(f"name one of two {PREFILL}"),
    ),
    Limit(
        "replicas",
        f"is {{}}, but an LLMInferenceService is one group of its {_MOST_ROLES} roles",
        when=lambda one: one.several and not _other_roles(one) and one.value > 1,
        remedy=lambda one: elsewhere(f"write 1 and multiply roles[].replicas by {one.value}"),
        takes="1 group of several roles in an LLMInferenceService",
    ),
    Limit(
        "recovery_policy",
        "is {}, but KServe always recreates the engine whose pod failed",
        when=_other_recovery,
        remedy=elsewhere("write RoleRecreate"),
        takes="LLMInferenceService: `RoleRecreate`",
    ),
    Limit(
        "gang_policy.min_role_replicas",
        lambda one: (
            f"requests {count_of(gang_copies(one), 'engine')} together, but each engine is "
            "a gang of its own"
        ),
        when=lambda one: gang_copies(one) > 1,
        remedy=elsewhere("remove gang_policy"),
        takes="at most 1 engine of an LLMInferenceService",
    ),
    Limit(
        f"{UPDATE}.max_surge",
        f"is {{}}, but {_ONE}, with none beside",
        when=lambda one: one.value and scale_budget(one.value, one.plan.groups, up=True) != 0,
        takes="not in an LLMInferenceService",
    ),
    Limit(f"{UPDATE}.max_unavailable", takes="one engine at a time in an LLMInferenceService"),
    Limit(
        "roles[].max_unavailable",
        f"is {{}}, but {_ONE}",
        when=lambda one: one.value != 1,
        remedy=elsewhere("write 1"),
        takes="1 in an LLMInferenceService",
    ),
)


def refuse_llm(plan: ServingPlan) -> Iterator[Finding]:
    """Report budgets, engines and templates that KServe does not support in this object."""
    yield from _refuse_budget(plan)
    for role in plan.roles:
        yield from _refuse_engine(plan, role)
        yield from _refuse_templates(role)
    if model_uri(plan) is None:
        yield Finding(
            path="backend_options.storage_uri",
            seen="is missing, and the command names no model of a hub",
            remedy="write pvc://claim/path or oci://image",
            rule="backend-options",
        )


def _refuse_budget(plan: ServingPlan) -> Iterator[Finding]:
    """Reject a budget of more than one engine of a role: KServe leaves the set its defaults."""
    for role in plan.roles if plan.rollout.stated is not None else ():
        engines = plan.rollout.max_unavailable * role.replicas
        if engines > 1:
            yield loss(
                f"{UPDATE}.max_unavailable",
                f"gives {count_of(engines, 'engine')} of role '{role.name}', but KServe "
                "updates one at a time",
                elsewhere(remove()),
            )


def _refuse_engine(plan: ServingPlan, role: RolePlan) -> Iterator[Finding]:
    """Reject engines whose pods KServe would change, or count differently (GetSize)."""
    at = join_path(role.path, "engine.parallelism" if role.engine else "entry_template")
    if not role.worker_replicas:
        yield loss(
            join_path(role.path, "worker_replicas"),
            "is 0, but KServe merges an engine of one pod with a preset, which has probes over TLS "
            "and a user that is not root",
            elsewhere("write backend_options.kind: InferenceService"),
        )
        return
    command = read_pod(role.entry, "").command
    if command is None or command.engine is None:
        return
    pods, pipeline, data = role.pods, command.pipeline, data_of(role)
    if data:
        yield from _refuse_data(plan, role, at, data)
    elif pipeline != pods:
        yield loss(
            at,
            f"starts pipeline {pipeline}, for which KServe creates {pipeline} of "
            f"{count_of(pods, 'pod')}",
            elsewhere(f"write pipeline {pods}"),
        )


def _refuse_data(plan: ServingPlan, role: RolePlan, at: str, data: int) -> Iterator[Finding]:
    """Reject copies of the model that KServe would count or start differently."""
    pods, command = role.pods, read_pod(role.entry, "").command
    pipeline = command.pipeline if command is not None else 1
    share, lost = divmod(data, pods)
    counts = (
        f"starts data {data}, for which KServe takes {share} on each of {count_of(pods, 'pod')}"
    )
    if lost:
        fitting = data - lost or pods
        yield loss(
            at, f"{counts}, and leaves out {lost} of {data}", elsewhere(f"write data {fitting}")
        )
    if isinstance(pipeline, int) and pipeline > 1:
        yield loss(
            at,
            f"starts data {data} and pipeline {pipeline}, but KServe accepts only one of them",
            elsewhere("divide each copy by tensor alone"),
        )
    if not options_of(plan).replaces_presets:
        yield loss(
            at,
            f"{counts}, and merges the pods with a preset that has probes over TLS and a user that "
            "is not root",
            elsewhere(
                "write backend_options.replaces_presets: true, which replaces that preset in this "
                "namespace"
            ),
        )


def _refuse_templates(role: RolePlan) -> Iterator[Finding]:
    """Refuse what KServe does not pass on to pods, or shares between leader and worker."""
    at = join_path(role.path, "overlay" if role.engine else "entry_template")
    templates = [role.entry, *([role.worker] if role.worker else [])]
    if "{{" in json.dumps(templates, default=str):
        yield loss(
            at,
            "contains '{{', which KServe expands as a template of its own",
            elsewhere("put the text into a ConfigMap and mount it"),
        )
    stated = [_stated_metadata(role, template) for template in templates]
    for key in dict.fromkeys(key for one in stated for key in one["labels"]):
        if any(part in key for part in _RESERVED):
            yield loss(
                join_path(at, "metadata.labels"),
                f"has the label {key}, by which KServe finds pods",
                "rename it",
            )
    accounts = [(one.get("spec") or {}).get("serviceAccountName") for one in templates]
    if accounts[0] != accounts[-1]:
        yield loss(
            join_path(at, "spec.serviceAccountName"),
            "differs from worker_template, but KServe gives leaders and workers the same",
            elsewhere("write the same in both"),
        )
    if stated[0] != stated[-1]:
        yield loss(
            join_path(at, "metadata"),
            "differs from worker_template, but KServe gives leaders and workers the same "
            "labels and annotations",
            elsewhere("write the same in both"),
        )


def _stated_metadata(role: RolePlan, template: Template) -> dict[str, dict[str, str]]:
    """Return what the user states: KServe gives pods its own labels in place of the defaults."""
    overlaid = ((role.stated.overlay or {}).get("metadata") or {}).get("labels") or {}
    ours = set(labels_of(role.stated, "")) - set(overlaid) if role.engine else set[str]()
    metadata = template.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    own = {key: value for key, value in annotations.items() if key != MODEL_CONFIG}
    labels = {k: v for k, v in (metadata.get("labels") or {}).items() if k not in ours}
    return {"labels": labels, "annotations": own}


def llm_names(plan: ServingPlan) -> Iterator[NameFacts]:
    """Return the longest names that LeaderWorkerSet generates of KServe's.

    The workers of an engine are a StatefulSet with the name of its leader pod. KServe cuts the
    names that it generates itself to 63 characters. Source: kserve v0.20.0
    pkg/controller/v1alpha2/llmisvc/workload_multi_node.go mainLWSName, prefillLWSName;
    knative.dev/pkg/kmeta ChildName; LeaderWorkerSet pkg/controllers/pod_controller.go.
    """
    _, prefill = split_roles(plan)
    for role in plan.roles:
        tail = f"-{PREFILL}" if role is prefill else ""
        at, made = join_path(role.path, "name"), f"{plan.name}-kserve-mn{tail}"
        yield from leader_names(at, made, plan.groups * role.replicas, role.worker_replicas)
