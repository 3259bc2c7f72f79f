"""Writes an LLMInferenceService: a LeaderWorkerSet per role, and prefill beside decode.

KServe merges each one with a preset, of the serving's namespace or else its own. An empty one
leaves the templates as they are. Those for pipelines are not published at all. Source: kserve
v0.20.0 pkg/controller/v1alpha2/llmisvc config_merge.go and workload_multi_node.go.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.plan.manifest import WAIT_FOR, Manifest
from kthena_components.core.plan.pod_additions import RECOMMENDED
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan, prioritized
from kthena_components.core.plan.templates import with_env
from kthena_components.core.templates import Template
from kthena_components.systems.kserve.options import options_of
from kthena_components.systems.kserve.templates import gpus_of, mentions, named
from kthena_components.systems.kserve.view import GROUP

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
    """Return the labels by which the front Service finds its entries: those of KServe's leaders."""
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
        **_metadata(plan, role),
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


def _metadata(plan: ServingPlan, role: RolePlan) -> dict[str, Any]:
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
