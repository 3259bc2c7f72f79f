"""Writes InferenceServices and LLMInferenceServices, with the options that only KServe has.

Source: kserve v0.20.0 pkg/apis/serving and pkg/webhook/admission/pod.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from kthena_components.core import naming
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.plan.manifest import WAIT_FOR, Manifest
from kthena_components.core.plan.pod_additions import RECOMMENDED
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan, prioritized
from kthena_components.core.plan.templates import with_env
from kthena_components.core.spec.fields import Spec
from kthena_components.core.spec.rules.rollout import scale_budget
from kthena_components.core.templates import Template
from kthena_components.systems.kserve.templates import (
    HEAD,
    WORKER,
    gpus_of,
    mentions,
    named,
    named_role,
    sizes_of,
    with_variables,
)
from kthena_components.systems.kserve.view import AUTOSCALER_CLASS, GROUP, MODE, SERVICE

# `backend_options` of the kserve backend: what only KServe has.
#
# Source: kserve v0.20.0 pkg/apis/serving/v1beta1 and pkg/webhook/admission/pod.


SCHEMES = ("pvc://", "oci://")


def _uri(value: str) -> str:
    scheme = next((one for one in SCHEMES if value.startswith(one)), None)
    if scheme is None or value == scheme:
        raise ValueError("pvc://claim/path or oci://image")
    return value


class KserveKind(StrEnum):
    """The object that serves."""

    SERVICE = "InferenceService"
    LLM = "LLMInferenceService"


class KserveOptions(Spec):
    """Fields of KServe's objects that no other backend has."""

    kind: Annotated[KserveKind, Field(strict=False)] = KserveKind.SERVICE
    storage_uri: Annotated[str, AfterValidator(_uri)] | None = None
    """Model that KServe mounts at /mnt/models: pvc://claim/path or oci://image. Default: none. An
    engine of several pods needs one.
    """
    keeps_workers: bool = False
    """Whether KServe in the cluster has pull request 5899. Version 0.20.0 deletes all workers of
    InferenceServices.
    """
    write_configs: bool = True
    """Whether to write the LLMInferenceServiceConfigs that an engine needs. A namespace has one of
    each, so only one of its servings writes them.
    """
    replaces_presets: bool = False
    """Whether the LLMInferenceServiceConfigs for data parallelism may be written, too, empty. In
    this namespace they replace KServe's own, for all servings. Data parallelism over several pods
    needs it.
    """


def is_llm(plan: ServingPlan) -> bool:
    """Return whether the plan is written as an LLMInferenceService."""
    return options_of(plan).kind is KserveKind.LLM


def options_of(plan: ServingPlan) -> KserveOptions:
    """Return the options of a plan."""
    return plan.options if isinstance(plan.options, KserveOptions) else KserveOptions()


# Writes an InferenceService: a Deployment of single pods, or one engine of several pods.
#
# An engine of several pods has its own ServingRuntime, because KServe accepts a workerSpec only
# beside one. The containers are in the InferenceService: a change of a ServingRuntime alone does
# not change the generation, by which workers find their head. Source: kserve v0.20.0
# pkg/controller/v1beta1/inferenceservice; docs/backends/kserve.md lists every field.


RUNTIME = "ServingRuntime"
FORMAT = "huggingface"


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
    metadata["annotations"] = {AUTOSCALER_CLASS: "none", MODE: "Standard", **waits}
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


# Writes an LLMInferenceService: a LeaderWorkerSet per role, and prefill beside decode.
#
# KServe merges each one with a preset, of the serving's namespace or else its own. An empty one
# leaves the templates as they are. Those for pipelines are not published at all. Source: kserve
# v0.20.0 pkg/controller/v1alpha2/llmisvc config_merge.go and workload_multi_node.go.


LLM, CONFIG = "LLMInferenceService", "LLMInferenceServiceConfig"
VERSION = f"{GROUP}/v1alpha2"
MAIN, PREFILL = "main", "prefill"
_APP, _PART = "app.kubernetes.io/name", "app.kubernetes.io/component"
_LEADER = "llminferenceservice-workload-leader"


def split_roles(plan: ServingPlan) -> tuple[RolePlan, RolePlan | None]:
    """Return the main role, and the one called prefill if there are two."""
    beside = next((r for r in plan.roles if r.name == PREFILL and len(plan.roles) > 1), None)
    return next(role for role in plan.roles if role is not beside), beside


def entry_labels(plan: ServingPlan) -> dict[str, str]:
    """Return the labels of KServe's leaders, by which the front Service finds its pods."""
    exposed = plan.expose.role if plan.expose else None
    main, _ = split_roles(plan)
    return leader_labels(plan, next((r for r in plan.roles if r.name == exposed), main))


def leader_labels(plan: ServingPlan, role: RolePlan) -> dict[str, str]:
    """Return the labels that KServe gives to the leaders of a role."""
    part = _LEADER if role is split_roles(plan)[0] else f"{_LEADER}-{PREFILL}"
    return {_APP: plan.name, _PART: part}


def emit_llm(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write the object, after the configs for its pipelines."""
    main, prefill = split_roles(plan)
    configs = tuple(_configs(plan, main, prefill)) if options_of(plan).write_configs else ()
    spec: dict[str, Any] = {"model": {"uri": model_uri(plan)}, **_workload(plan, main)}
    if options_of(plan).storage_uri is None:
        spec["storageInitializer"] = {"enabled": False}
    if prefill is not None:
        spec["prefill"] = _workload(plan, prefill)
    metadata = {
        "name": plan.name,
        "namespace": plan.namespace,
        "labels": {naming.NAME: plan.name},
        "annotations": {WAIT_FOR: "condition=Ready"},
    }
    # KServe rejects another number of pods per engine.
    sizes = tuple(
        f"spec.{at}parallelism.{size}"
        for at in ("", "prefill.")
        for size in ("pipeline", "data", "dataLocal")
    )
    made = Manifest(
        body={"apiVersion": VERSION, "kind": LLM, "metadata": metadata, "spec": spec},
        after=tuple(config.key for config in configs),
        replace_on=sizes,
        delete_first=True,
        timeout_seconds=plan.ready_timeout_seconds,
    )
    return (*configs, made)


def model_uri(plan: ServingPlan) -> str | None:
    """Return where the model is: KServe requires it, and loads only what storage_uri names."""
    main, _ = split_roles(plan)
    uri, command = options_of(plan).storage_uri, read_pod(main.entry, "").command
    model = command.model if command is not None else None
    known = isinstance(model, str) and not model.startswith(("/", "."))
    return uri or (f"hf://{model}" if known else None)


def _configs(plan: ServingPlan, main: RolePlan, prefill: RolePlan | None) -> list[Manifest]:
    """Write empty configs for the parts that KServe merges from its own namespace."""
    parts = (
        {"worker": main} if prefill is None else {"decode-worker": main, "prefill-worker": prefill}
    )
    return [
        Manifest(
            body={
                "apiVersion": VERSION,
                "kind": CONFIG,
                "metadata": {
                    "name": f"kserve-config-llm-{part}-{_kind(role)}-parallel",
                    "namespace": plan.namespace,
                },
                "spec": {},
            }
        )
        for part, role in parts.items()
    ]


def _kind(role: RolePlan) -> str:
    return "data" if data_of(role) else "pipeline"


def _workload(plan: ServingPlan, role: RolePlan) -> dict[str, Any]:
    """Write one role. KServe takes the pods of an engine from the pipeline, or data ÷ dataLocal."""
    data = data_of(role)
    sizes = {"data": data, "dataLocal": data // role.pods} if data else {"pipeline": role.pods}
    return {
        "replicas": plan.groups * role.replicas,
        "parallelism": {"tensor": tensor_of(role), **sizes},
        **_llm_metadata(plan, role),
        "template": _pod(plan, role.entry),
        "worker": _pod(plan, role.worker or role.entry),
    }


def tensor_of(role: RolePlan) -> int:
    """Return the tensor size of the command, or else the GPUs of a pod."""
    command = read_pod(role.entry, "").command
    known = command.tensor if command is not None and command.engine is not None else None
    return known if isinstance(known, int) else gpus_of(role.entry) or 1


def data_of(role: RolePlan) -> int:
    """Return the copies of the model in an engine of the command; 0 if there is one, or none."""
    command = read_pod(role.entry, "").command
    known = command.data if command is not None and command.engine is not None else None
    return known if isinstance(known, int) and known > 1 else 0


def _pod(plan: ServingPlan, template: Template) -> Mapping[str, Any]:
    """Write a pod spec, with those of Kthena's variables that it uses, as LeaderWorkerSet's."""
    aliases = [
        {"name": same, "value": f"$({name})"}
        for name, same in naming.LWS_ENV.items()
        if mentions(template, same)
    ]
    template = prioritized(plan, with_env(template, aliases) if aliases else template)
    return {**named(template, MAIN)["spec"], "schedulerName": plan.scheduler}


def _llm_metadata(plan: ServingPlan, role: RolePlan) -> dict[str, Any]:
    """Return labels and annotations: KServe gives leaders and workers the same ones."""
    found = [template.get("metadata") or {} for template in (role.entry, role.worker or {})]
    labels, annotations = (
        {key: value for one in found for key, value in (one.get(kind) or {}).items()}
        for kind in ("labels", "annotations")
    )
    # KServe selects pods by labels of this prefix, and gives them itself.
    labels = {key: value for key, value in labels.items() if not key.startswith(RECOMMENDED)}
    labels |= {naming.NAME: plan.name, naming.ROLE: role.name}
    return {"labels": labels, **({"annotations": annotations} if annotations else {})}
