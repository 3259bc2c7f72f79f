"""Rules within one role about what starts its pods, independent of the backend.

Each function is one rule and yields its findings; ROLE_RULES is the list, with the rules about
templates in template_scheduler_labels_image.py.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.engines import DRAIN, counted_flags, unsupported
from kthena_components.core.findings import Finding
from kthena_components.core.models import shape_from_config
from kthena_components.core.remedies import remove
from kthena_components.core.spec.rules.gpu_model_image_adapter_amount import (
    ENGINE_INPUT_RULES,
    gpu_agrees,
)
from kthena_components.core.spec.rules.startup_window_resource_claims_cache_grace_period import (
    POD_RULES,
)
from kthena_components.core.spec.rules.template_scheduler_labels_image import TEMPLATE_RULES
from kthena_components.core.spec.serving_spec import (
    ENGINE_CONTAINER,
    ResourcesSpec,
    RoleSpec,
    launch_of,
)
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.unknown import Unknown

_ENGINE_ONLY = (
    "resources",
    "hugging_face_token",
    "cache",
    "network",
    "startup_seconds",
    "drain_seconds",
    "overlay",
)
_SGLANG_DATA = "sglang-data-multi-node"
_KV_TRANSFER = "kv-transfer-supported"


def template_or_engine(role: RoleSpec) -> Iterator[Finding]:
    """A role defines its pods by templates or by an engine, exactly one of them.

    Pass: an engine; an entry_template.
    Fail: 1 engine and an entry_template; neither of them.
    Level: mandatory.
    Source: this package: two descriptions of one pod would contradict each other.
    """
    templates = [f for f in ("entry_template", "worker_template") if getattr(role, f) is not None]
    if role.engine is None and role.entry_template is None:
        yield Finding(
            path="",
            seen=f"role '{role.name}' has neither an entry_template nor an engine",
            remedy="give one of them",
            rule="template-or-engine",
        )
    if role.engine is not None and templates:
        yield Finding(
            path="",
            rule="template-or-engine",
            seen=f"role '{role.name}' has both an engine and {' and '.join(templates)}, "
            "and only one can write the pods",
            remedy="remove one; overlay changes single fields of an engine's pods",
        )


def engine_only_field(role: RoleSpec) -> Iterator[Finding]:
    """Fields about an engine's pods require an engine: templates are passed through unchanged.

    Pass: resources.gpus_per_pod 8 with an engine.
    Fail: resources, hugging_face_token or overlay with an entry_template.
    Level: mandatory.
    Source: this package: a field without an effect would be dropped silently.
    """
    if role.engine is not None:
        return
    for field in _ENGINE_ONLY:
        if getattr(role, field) is not None:
            yield Finding(
                path=field,
                rule="engine-only-field",
                seen="is given without an engine, and a template is passed through unchanged",
                remedy="write it into the template, or use an engine",
            )


def engine_launch(role: RoleSpec) -> Iterator[Finding]:
    """The engine supports the requested launch, and its port is free.

    The release in the tag of the engine's own image must support the launch. For several pods of
    vLLM: launcher native uses --nnodes, since 0.11.1; launcher ray uses multi-node-serving.sh,
    since 0.8.0, and in 0.11.1 the workers of a copy that spans pods with Ray exit. An image that
    states no release counts as the newest. TensorRT-LLM holds one copy of the model, and over
    several pods its words have no spaces, because trtllm-llmapi-launch splits there.

    Pass: vLLM with launcher ray or native; port 8080; 2 pods of vllm/vllm-openai:v0.33.0, native.
    Fail: SGLang with launcher ray; port 6379 with Ray over 2 pods; 2 pods of v0.11.0, native;
    TensorRT-LLM with data 2.
    Level: mandatory.
    Source: vllm/config/parallel.py, vllm/engine/arg_utils.py and vllm/v1/worker/gpu_worker.py
    init_device; sglang/srt/server_args.py; tensorrt_llm/llmapi/trtllm-llmapi-launch; this package:
    core/engines.
    """
    yield from (found for found in _refused(role) if found.rule not in {_SGLANG_DATA, _KV_TRANSFER})


def sglang_data_multi_node(role: RoleSpec) -> Iterator[Finding]:
    """SGLang's copies of a model are within one pod: over several pods, data is 1.

    Pass: tensor 16, data 1 over 2 pods; tensor 4, data 2 in 1 pod.
    Fail: tensor 8, data 2 over 2 pods.
    Level: mandatory, because SGLang rejects it at startup.
    Source: sglang/srt/arg_groups/parallel_hook.py, the assertions on nnodes.
    """
    yield from (found for found in _refused(role) if found.rule == _SGLANG_DATA)


def kv_transfer_supported(role: RoleSpec) -> Iterator[Finding]:
    """The engine has the connector that shares its KV cache, and its port is free.

    vLLM has NixlConnector since 0.9.0, and since 0.11.1 for a copy over several pods;
    MooncakeConnector of the V1 engine since 0.13.0; LMCacheConnectorV1 since 0.8.5. SGLang has
    mooncake and nixl, and each engine is one half. An image that states no release counts as the
    newest.

    Pass: connector nixl in vllm/vllm-openai:v0.33.0; connector mooncake in SGLang.
    Fail: connector mooncake in vllm/vllm-openai:v0.12.0; connector lmcache or role both in SGLang;
    kv_transfer.port 8080 with port 8080; a port with connector lmcache.
    Level: mandatory, because the engine rejects it at startup, or its halves do not connect.
    Source: vllm/distributed/kv_transfer/kv_connector/factory.py and v1/nixl; vllm/envs.py;
    sglang/srt/server_args.py; this package: core/engines/kv_transfer.py.
    """
    yield from (found for found in _refused(role) if found.rule == _KV_TRANSFER)


def _refused(role: RoleSpec) -> Iterator[Finding]:
    for field, seen, remedy, rule in unsupported(launch_of(role)) if role.engine else ():
        yield Finding(path=f"engine.{field}", seen=seen, remedy=remedy, rule=rule)


def counted_flag(role: RoleSpec) -> Iterator[Finding]:
    """extra_args contains no flag that the package sets itself.

    Pass: extra_args --max-num-seqs=8.
    Fail: extra_args --tensor-parallel-size=4, or -tp 4, or --port=8000; --kv-transfer-config={} or
    --disaggregation-mode=prefill if kv_transfer is given.
    Level: mandatory.
    Source: this package: engines use the last occurrence of a flag.
    """
    if role.engine is None:
        return
    transfer = role.engine.kv_transfer is not None
    for flag in counted_flags(launch_of(role)):
        yield Finding(
            path="engine.extra_args",
            rule="counted-flag",
            seen=f"'{flag}' sets a value that the package sets itself",
            remedy=f"remove it and use engine.{'kv_transfer, ' * transfer}parallelism, launcher, "
            "port or model"
            if flag != DRAIN
            else "remove it and use drain_seconds",
        )


def hf_config_shape(role: RoleSpec) -> Iterator[Finding]:
    """The hf_config of an engine states the model's attention heads and layers.

    A multimodal model states them in text_config. Without them, parallel sizes cannot be checked.

    Pass: num_attention_heads 64 and num_hidden_layers 80.
    Fail: num_hidden_layers 80 alone.
    Source: transformers, PretrainedConfig; vllm/config/model.py get_total_num_attention_heads.
    """
    config = role.engine.hf_config if role.engine else None
    shape = None if config is None else shape_from_config(config)
    if isinstance(shape, Unknown):
        yield Finding(
            path="engine.hf_config",
            seen=shape.because,
            remedy="write the whole config.json of the model, or remove it",
            rule="hf-config-shape",
        )


def overlay_counted(role: RoleSpec) -> Iterator[Finding]:
    """An overlay may change everything except GPUs, commands, and injected variables.

    Pass: an overlay with a limit of memory 4Gi, or imagePullPolicy.
    Fail: an overlay with command, args, nvidia.com/gpu 4, or the variable GROUP_SIZE.
    Level: mandatory.
    Source: this package: the cluster would get other numbers than those that were checked.
    """
    overlay = role.overlay or {}
    spec = overlay.get("spec")
    if "spec" in overlay and spec is None:
        yield _counted("overlay.spec")
    containers = (spec or {}).get("containers")
    if "containers" in (spec or {}) and containers is None:
        yield _counted("overlay.spec.containers")
    for container in containers or []:
        if container["name"] == ENGINE_CONTAINER:
            path = f"overlay.spec.containers[{ENGINE_CONTAINER}]"
            yield from (_counted(f"{path}.{at}", use) for at, use in _counted_in(role, container))


def overlay_container(role: RoleSpec) -> Iterator[Finding]:
    """An overlay changes the container engine; a container of another name is added, with an image.

    Pass: container engine with a limit of memory; container log with an image.
    Fail: container vllm with a limit of memory alone.
    Level: mandatory.
    Source: kubernetes pkg/apis/core/validation/validation.go validateContainerCommon.
    """
    spec = (role.overlay or {}).get("spec") or {}
    for field, own in (("containers", ENGINE_CONTAINER), ("initContainers", None)):
        for container in spec.get(field) or []:
            if container["name"] == own or container.get("image"):
                continue
            known = f"a container '{own}'" if own else "no such container"
            yield Finding(
                path=f"overlay.spec.{field}[{container['name']}]",
                rule="overlay-container",
                seen=f"is added to the pods, which have {known}, but it has no image",
                remedy=f"{f'write name: {own}, or ' if own else ''}give it an image",
            )


def _counted_in(role: RoleSpec, container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return what an overlay of the engine's container must not change, and what to use instead."""
    for field in ("command", "args"):
        if field in container:
            yield field, "engine.parallelism and engine.extra_args"
    resources = container.get("resources", {})
    if resources is None:
        yield "resources", ""
    gpu = (role.resources or ResourcesSpec()).gpu_resource
    for kind, amounts in (resources or {}).items():
        if amounts is None:
            yield f"resources.{kind}", ""
        elif isinstance(amounts, Mapping) and any(k == gpu or is_accelerator(k) for k in amounts):
            yield f"resources.{kind}", "resources.gpus_per_pod"
    for variable in container.get("env") or []:
        if variable["name"] in naming.INJECTED_ENV:
            yield f"env[{variable['name']}]", ""


def _counted(path: str, instead: str = "") -> Finding:
    return Finding(
        path=path,
        rule="overlay-counted",
        seen="an overlay may change every field of the pod except what the package sets itself: "
        "GPUs, commands and injected variables",
        remedy=f"use {instead}" if instead else remove(),
    )


ROLE_RULES: tuple[Callable[[RoleSpec], Iterator[Finding]], ...] = (
    template_or_engine,
    engine_only_field,
    *TEMPLATE_RULES,
    *POD_RULES,
    *ENGINE_INPUT_RULES,
    engine_launch,
    sglang_data_multi_node,
    gpu_agrees,
    kv_transfer_supported,
    counted_flag,
    hf_config_shape,
    overlay_counted,
    overlay_container,
)

BLOCKING = frozenset(
    {
        "role-names-unique",
        "pods-within-cluster",
        "template-or-engine",
        "worker-template",
        "template-containers",
        "template-parts",
        "data-parallel-layout",
        "sglang-data-multi-node",
        "engine-launch",
        "kv-transfer-supported",
        "counted-flag",
        "overlay-counted",
        "resource-claims",
    }
)
"""Rules whose findings prevent a plan, and so the checks of the plan."""
