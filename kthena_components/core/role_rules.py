"""Rules that hold inside one role, whatever backend it goes to.

Each function is one rule and gives its findings; ROLE_RULES is the list.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.engines import counted_flags, unsupported
from kthena_components.core.findings import Finding
from kthena_components.core.known import Unknown
from kthena_components.core.models import shape_from_config
from kthena_components.core.pods import ENGINE_CONTAINER, launch_of
from kthena_components.core.quantity import is_accelerator
from kthena_components.core.spec import ResourcesSpec, RoleSpec
from kthena_components.core.spec_parse import show_value

_TEMPLATE = ("metadata", "spec")
_METADATA = ("annotations", "labels")


def one_way_to_pods(role: RoleSpec) -> Iterator[Finding]:
    """A role gives its pods by templates or by an engine, never both and never neither."""
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
    if role.engine is not None:
        return
    for field in ("resources", "hugging_face_token", "overlay"):
        if getattr(role, field) is not None:
            yield Finding(
                path=field,
                rule="engine-only-field",
                seen="is given without an engine, and a template is passed through untouched",
                remedy="write it into the template, or use an engine",
            )


def worker_template(role: RoleSpec) -> Iterator[Finding]:
    """Workers need a template.

    Source: Kthena v1.0.0 webhook/validator.go validateWorkerReplicas.
    """
    templates = role.engine is None and role.entry_template is not None
    if templates and role.worker_replicas and role.worker_template is None:
        yield Finding(
            path="worker_template",
            rule="worker-template",
            seen=f"is missing, but worker_replicas is {role.worker_replicas}",
            remedy="add worker_template, or write worker_replicas: 0",
        )


def template_parts(role: RoleSpec) -> Iterator[Finding]:
    """A template has metadata and a spec; of its metadata, only what reaches the pods is taken."""
    for field in ("entry_template", "worker_template", "overlay"):
        template = getattr(role, field) or {}
        for part, known in ((template, _TEMPLATE), (template.get("metadata") or {}, _METADATA)):
            path = field if part is template else f"{field}.metadata"
            for key in sorted(key for key in part if isinstance(key, str) and key not in known):
                yield Finding(
                    path=f"{path}.{key}",
                    seen=f"'{key}' is nothing that a pod template passes on to its pods",
                    remedy=f"remove it; known: {', '.join(known)}",
                    rule="template-parts",
                )
        yield from _odd_keys(field, template)


def _odd_keys(path: str, value: Any) -> Iterator[Finding]:
    """Refuse keys that YAML reads as something else than text: Kubernetes has no such fields."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _odd_keys(f"{path}[{index}]", item)
    for key, item in value.items() if isinstance(value, Mapping) else ():
        if not isinstance(key, str):
            yield Finding(
                path=path,
                seen=f"has the key {key}, and every key must be text",
                remedy=f"put it in quotes: '{key}'",
                rule="template-parts",
            )
        yield from _odd_keys(f"{path}.{key}", item)


def template_containers(role: RoleSpec) -> Iterator[Finding]:
    """A template has containers, and their images are names without blanks."""
    for field in ("entry_template", "worker_template"):
        template = getattr(role, field)
        if template is None or (field == "worker_template" and not role.worker_replicas):
            continue
        containers = (template.get("spec") or {}).get("containers") or []
        if not containers:
            yield Finding(
                path=f"{field}.spec.containers",
                seen="is empty or missing, so there is nothing to run",
                remedy="give at least one container",
                rule="template-containers",
            )
        for index, container in enumerate(containers):
            image = container.get("image")
            if image is not None and (not image or re.search(r"\s", image)):
                yield Finding(
                    path=f"{field}.spec.containers[{index}].image",
                    seen=f"is '{image}', and an image is a name without blanks",
                    remedy="write it as registry/name:tag",
                    rule="container-image",
                )


def template_scheduler(role: RoleSpec, scheduler: str) -> Iterator[Finding]:
    """A template names no other scheduler than its serving does: the serving's is used."""
    for field in ("entry_template", "worker_template", "overlay"):
        stated = ((getattr(role, field) or {}).get("spec") or {}).get("schedulerName")
        if stated is not None and stated != scheduler:
            yield Finding(
                path=f"{field}.spec.schedulerName",
                rule="template-scheduler",
                seen=f"is {show_value(stated)}, but all pods get the serving's scheduler_name, "
                f"which is '{scheduler}'",
                remedy="remove it, or write it as the serving's scheduler_name",
            )


def reserved_labels(role: RoleSpec) -> Iterator[Finding]:
    """A template does not set the labels that select the pods."""
    for field in ("entry_template", "worker_template", "overlay"):
        labels = ((getattr(role, field) or {}).get("metadata") or {}).get("labels") or {}
        for label in sorted((naming.KTHENA_LABELS | {naming.WORKER}).intersection(labels)):
            yield Finding(
                path=f"{field}.metadata.labels",
                rule="reserved-labels",
                seen=f"label '{label}' is set here, but it is how the pods of a group are found",
                remedy="remove it, or use a label of your own",
            )


def engine_launch(role: RoleSpec) -> Iterator[Finding]:
    """The engine can be started in the shape that is asked for, and no flag is stated twice."""
    if role.engine is None:
        return
    for field, seen, remedy, rule in unsupported(launch_of(role)):
        yield Finding(path=f"engine.{field}", seen=seen, remedy=remedy, rule=rule)
    for flag in counted_flags(role.engine.extra_args, role.engine.kind):
        yield Finding(
            path="engine.extra_args",
            rule="counted-flag",
            seen=f"'{flag}' states what the package counts itself",
            remedy="remove it and use engine.parallelism, launcher, port or model",
        )


def hf_config_shape(role: RoleSpec) -> Iterator[Finding]:
    """The hf_config of an engine states the model's attention heads and layers.

    A model that sees or hears states them in text_config. Without them there is no shape that a
    parallel size could be compared with.

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
    """An overlay changes anything but what is counted: GPUs, commands, and injected variables."""
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


def _counted_in(role: RoleSpec, container: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Give what an overlay of the engine's container must leave alone, and what to use instead."""
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
        seen="an overlay may change every field of the pod except what the package counts: "
        "GPUs, commands and injected variables",
        remedy=f"use {instead}" if instead else "remove it",
    )


ROLE_RULES: tuple[Callable[[RoleSpec], Iterator[Finding]], ...] = (
    one_way_to_pods,
    worker_template,
    template_parts,
    template_containers,
    reserved_labels,
    engine_launch,
    hf_config_shape,
    overlay_counted,
)

BLOCKING = frozenset(
    {
        "role-names-unique",
        "template-or-engine",
        "worker-template",
        "template-containers",
        "template-parts",
        "data-parallel-layout",
        "sglang-data-multi-node",
        "engine-launch",
        "counted-flag",
        "overlay-counted",
    }
)
"""Rules without which no plan can be made, so that the checks on a plan have to wait."""
