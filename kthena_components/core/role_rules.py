"""Rules that hold inside one role, whatever backend it goes to.

Each function is one rule and gives its findings; ROLE_RULES is the list.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.engines import counted_flags, unsupported
from kthena_components.core.findings import Finding
from kthena_components.core.pods import ENGINE_CONTAINER, launch_of
from kthena_components.core.quantity import is_accelerator
from kthena_components.core.spec import ResourcesSpec, RoleSpec


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
    if role.engine is None and role.worker_replicas and role.worker_template is None:
        yield Finding(
            path="worker_template",
            rule="worker-template",
            seen=f"is missing, but worker_replicas is {role.worker_replicas}",
            remedy="add worker_template, or write worker_replicas: 0",
        )


def template_containers(role: RoleSpec) -> Iterator[Finding]:
    """A template has containers, each with a name and an image without blanks."""
    for field in ("entry_template", "worker_template"):
        template = getattr(role, field)
        if template is None or (field == "worker_template" and not role.worker_replicas):
            continue
        for key in sorted(set(template) - {"metadata", "spec"}):
            yield Finding(
                path=f"{field}.{key}",
                seen=f"there is no field '{key}' in a pod template",
                remedy="a pod template has metadata and spec",
                rule="template-containers",
            )
        spec = template.get("spec")
        containers = spec.get("containers") if isinstance(spec, Mapping) else None
        if not isinstance(containers, list) or not containers:
            yield Finding(
                path=f"{field}.spec.containers",
                seen="is empty or missing, so there is nothing to run",
                remedy="give at least one container",
                rule="template-containers",
            )
            continue
        for index, container in enumerate(containers):
            yield from _container(f"{field}.spec.containers[{index}]", container)


def _container(path: str, container: Any) -> Iterator[Finding]:
    fields = container if isinstance(container, Mapping) else {}
    if not isinstance(fields.get("name"), str) or not fields["name"]:
        yield Finding(
            path=f"{path}.name",
            seen="is missing",
            remedy="name the container",
            rule="template-containers",
        )
    image = fields.get("image")
    if isinstance(image, str) and (not image.strip() or re.search(r"\s", image)):
        yield Finding(
            path=f"{path}.image",
            seen=f"is '{image}', and an image has no blanks",
            remedy="write registry/name:tag",
            rule="container-image",
        )


def reserved_labels(role: RoleSpec) -> Iterator[Finding]:
    """A template does not set the labels that select the pods."""
    for field in ("entry_template", "worker_template", "overlay"):
        metadata = (getattr(role, field) or {}).get("metadata")
        labels = metadata.get("labels") if isinstance(metadata, Mapping) else None
        taken = naming.KTHENA_LABELS | {naming.WORKER}
        for label in sorted(taken.intersection(labels if isinstance(labels, Mapping) else ())):
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


def overlay_counted(role: RoleSpec) -> Iterator[Finding]:
    """An overlay changes anything but what is counted: GPUs, commands, and injected variables."""
    spec = (role.overlay or {}).get("spec")
    containers = spec.get("containers") if isinstance(spec, Mapping) else None
    gpu = (role.resources or ResourcesSpec()).gpu_resource
    for container in containers if isinstance(containers, list) else []:
        if not isinstance(container, Mapping) or container.get("name") != ENGINE_CONTAINER:
            continue
        path = f"overlay.spec.containers[{ENGINE_CONTAINER}]"
        for field in ("command", "args"):
            if field in container:
                yield _counted(f"{path}.{field}", "engine.parallelism and engine.extra_args")
        resources = container.get("resources")
        for kind, amounts in resources.items() if isinstance(resources, Mapping) else ():
            for key in amounts if isinstance(amounts, Mapping) else ():
                if key == gpu or is_accelerator(key):
                    yield _counted(f"{path}.resources.{kind}", "resources.gpus_per_pod")


def _counted(path: str, instead: str) -> Finding:
    return Finding(
        path=path,
        rule="overlay-counted",
        seen="an overlay may change every field of the pod except what the checks count",
        remedy=f"use {instead}",
    )


ROLE_RULES: tuple[Callable[[RoleSpec], Iterator[Finding]], ...] = (
    one_way_to_pods,
    worker_template,
    template_containers,
    reserved_labels,
    engine_launch,
    overlay_counted,
)

BLOCKING = frozenset(
    {
        "template-or-engine",
        "worker-template",
        "template-containers",
        "data-parallel-layout",
        "sglang-data-multi-node",
        "engine-launch",
    }
)
"""Rules without which no plan can be made, so that the checks on a plan have to wait."""
