"""Writes the pod templates of engines, and the defaults of all pod templates.

The only writer of generated pods. Command lines come from core/engines.
"""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from kthena_components.core.engines import Commands, write_commands
from kthena_components.core.facts.context import GPU, MODEL_CONFIG
from kthena_components.core.hardware import Gpu, find_gpu, node_label
from kthena_components.core.models import shape_keys
from kthena_components.core.plan.pod_additions import (
    STARTUP_SECONDS,
    attached_to,
    default_requests,
    download,
    labels_of,
    pre_stop,
    startup_probe,
    user_of,
)
from kthena_components.core.spec.enums import GpuLabel
from kthena_components.core.spec.serving_spec import (
    ENGINE_CONTAINER,
    ResourcesSpec,
    RoleSpec,
    grace_seconds,
    launch_of,
)
from kthena_components.core.templates import Template, lay_over
from kthena_components.core.values.quantity import add_resources, parse_quantity
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import is_unresolved


def engine_templates(
    role: RoleSpec,
    serving: str,
    startup: int = STARTUP_SECONDS,
    claims: Sequence[Mapping[str, Any]] = (),
) -> tuple[Template, Template | None]:
    """Write the entry and the worker pod template of a role with an engine.

    Args:
        serving: Name of the serving, for the pods' labels.
        startup: Seconds that the entry may take to start.
        claims: The resourceClaims of the pods.
    """
    commands = write_commands(launch_of(role))
    overlay = role.overlay or {}
    labels = labels_of(role, serving)
    claimed = {"resourceClaims": [*claims]} if claims else {}
    entry = _template(role, commands, labels, _entry_fields(role, commands, startup))
    entry["spec"] |= claimed
    entry["metadata"] |= _annotated({**_stated_shape(role), **gpu_annotations(role)})
    if commands.worker is None:
        return lay_over(entry, overlay), None
    worker = _template(role, commands, labels, {})
    worker["spec"] |= claimed
    worker["metadata"] |= _annotated(gpu_annotations(role))
    return lay_over(entry, overlay), lay_over(worker, overlay)


def _annotated(annotations: dict[str, Any]) -> dict[str, Any]:
    return {"annotations": annotations} if annotations else {}


def _stated_shape(role: RoleSpec) -> dict[str, Any]:
    """Add the model's shape that the user states, as an annotation for readers."""
    config = role.engine.hf_config if role.engine else None
    if config is None:
        return {}
    text = json.dumps(shape_keys(config), separators=(",", ":"))
    return {MODEL_CONFIG: text}


def _template(
    role: RoleSpec, commands: Commands, labels: Mapping[str, str], serving: Mapping[str, Any]
) -> dict[str, Any]:
    """Write a template. `serving` is what only the entry has, because it serves."""
    made, is_entry = attached_to(role), bool(serving)
    token = [_token_env(role)] if role.hugging_face_token else []
    env = [*token, *made.env, *commands.env]
    inits = [{**one, "securityContext": _confined([])} for one in download(role, made, token)]
    container = {
        "name": ENGINE_CONTAINER,
        "image": role.engine.image if role.engine else "",
        "command": list(commands.entry if is_entry else commands.worker or ()),
        **({"env": env} if env else {}),
        "resources": _resources(role, made.devices),
        **serving,
        "lifecycle": pre_stop(role, is_entry=is_entry),
        "securityContext": _confined(made.capabilities),
        "volumeMounts": made.mounts,
    }
    user, selector = user_of(role), gpu_selector(role)
    return {
        "metadata": {"labels": dict(labels)},
        "spec": {
            "automountServiceAccountToken": False,
            # A Service named vllm would set VLLM_PORT in the pod, which vLLM reads as its own
            # variable.
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": grace_seconds(role),
            **({"nodeSelector": selector} if selector else {}),
            **({"securityContext": user} if user else {}),
            **({"initContainers": inits} if inits else {}),
            "containers": [container],
            "volumes": made.volumes,
        },
    }


def _confined(capabilities: list[str]) -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], **({"add": capabilities} if capabilities else {})},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _entry_fields(role: RoleSpec, commands: Commands, startup: int) -> dict[str, Any]:
    """Return ports and probes: only the entry serves, so only the entry is probed.

    Source of the path: vllm/entrypoints/openai/api_server.py and sglang http_server.py, `/health`.
    """
    probe = {"httpGet": {"path": "/health", "port": role.engine.port if role.engine else 0}}
    return {
        "ports": [{"name": name, "containerPort": port} for name, port in commands.ports],
        "startupProbe": {**probe, **startup_probe(startup)},
        "readinessProbe": {**probe, "periodSeconds": 10, "failureThreshold": 3},
        "livenessProbe": {**probe, "periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6},
    }


def _token_env(role: RoleSpec) -> dict[str, Any]:
    token = role.hugging_face_token
    reference = {"name": token.name, "key": token.key} if token else {}
    return {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": reference}}


def _resources(role: RoleSpec, devices: Mapping[str, str]) -> dict[str, Any]:
    """Write the resources of an engine's container: stated amounts, default requests and claims."""
    resources = role.resources or ResourcesSpec()
    amounts: dict[str, Any] = {
        "cpu": resources.cpu,
        "memory": resources.memory,
        "ephemeral-storage": resources.ephemeral_storage,
        **devices,
    }
    if resources.gpus_per_pod and not resources.claims_gpus:
        amounts[resources.gpu_resource] = str(resources.gpus_per_pod)
    stated = {key: amount for key, amount in amounts.items() if amount is not None}
    requests = {**default_requests(role, launch_of(role)), **stated}
    claims = [{"name": claim.name} for claim in resources.claims]
    return {"limits": stated, "requests": requests, **({"claims": claims} if claims else {})}


def mirror_requests(template: Template) -> tuple[Template, list[str]]:
    """Fill in requests where a container only states limits.

    The API server does this for Pods, but not inside a custom resource, and Kthena and Volcano only
    count requests. Returns the new template and a message for each changed container. Source:
    kubernetes pkg/apis/core/v1/defaults.go SetDefaults_Pod.
    """
    spec, notes = mapping(template.get("spec")), list[str]()
    mirrored = {
        kind: [_mirror(container, notes) for container in spec[kind]]
        for kind in ("initContainers", "containers")
        if sequence(spec.get(kind))
    }
    if not notes:
        return template, notes
    return {**template, "spec": {**spec, **mirrored}}, notes


def _mirror(container: Mapping[str, Any], notes: list[str]) -> Mapping[str, Any]:
    """Copy limits to missing requests, and add a line to `notes` that names them."""
    resources = mapping(mapping(container).get("resources"))
    limits, requests = (mapping(resources.get(kind)) for kind in ("limits", "requests"))
    missing = {key: amount for key, amount in limits.items() if key not in requests}
    if not missing:
        return container
    listed = ", ".join(f"{key} {amount}" for key, amount in sorted(missing.items(), key=str))
    notes.append(f"container '{container.get('name')}': {listed}")
    return {**container, "resources": {**resources, "requests": {**requests, **missing}}}


def requests_of(template: Template | None) -> dict[str, Decimal]:
    """Sum the requests of a template's containers, for Volcano's minResources.

    A limit without a request is a request, as in the pods (see mirror_requests).

    Init containers are not counted: they have ended when the pod serves, and Kthena does not count
    them either. Unknown amounts are left out (see unknown_requests).
    """
    total: dict[str, Decimal] = {}
    for requests in _requests(template):
        read = {key: parse_quantity(amount) for key, amount in requests.items()}
        total = add_resources(total, {k: v for k, v in read.items() if v is not None})
    return total


def unknown_requests(template: Template | None) -> set[str]:
    """Return the resources whose sum is not known, as some container's amount is an Output."""
    return {
        key
        for requests in _requests(template)
        for key, amount in requests.items()
        if is_unresolved(amount)
    }


def _requests(template: Template | None) -> Iterator[dict[str, Any]]:
    for container in ((template or {}).get("spec") or {}).get("containers") or []:
        resources = container.get("resources") or {}
        yield {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def with_env(template: Template, env: list[dict[str, Any]], *, first: bool = False) -> Template:
    """Append variables to every container's env, as Kthena does.

    User entries of the same names are removed. At the end, command and args can use them, but user
    env cannot.

    Args:
        first: Whether to put them in front, as LeaderWorkerSet does: user env can use them too.
    """
    names = {entry["name"] for entry in env}
    result = copy.copy(template)
    spec = dict(template.get("spec") or {})
    for kind in ("initContainers", "containers"):
        if spec.get(kind):
            spec[kind] = [_container_with_env(item, env, names, first=first) for item in spec[kind]]
    result["spec"] = spec
    return result


def _container_with_env(
    container: Mapping[str, Any], env: list[dict[str, Any]], names: set[str], *, first: bool
) -> dict[str, Any]:
    kept = [entry for entry in container.get("env") or [] if entry["name"] not in names]
    return {**container, "env": [*env, *kept] if first else [*kept, *env]}


def labelled(template: Template, labels: Mapping[str, str], scheduler: str) -> Template:
    """Add labels and the scheduler's name, for controllers that add neither.

    User labels of the same keys are replaced. Annotations stay; other metadata is left out.
    """
    metadata = template.get("metadata") or {}
    stated = {"annotations": metadata["annotations"]} if metadata.get("annotations") else {}
    return {
        "metadata": {"labels": {**(metadata.get("labels") or {}), **labels}, **stated},
        "spec": {**(template.get("spec") or {}), "schedulerName": scheduler},
    }


# Where pods go that name their GPU: by a label of the nodes, or anywhere, with an annotation.


def gpu_selector(role: RoleSpec) -> dict[str, str]:
    """Return the node selector for the GPU of a role; empty if it has none."""
    resources = role.resources
    if resources is None or resources.gpu is None or resources.gpu_label is GpuLabel.NONE:
        return {}
    gpu = find_gpu(resources.gpu)
    label = node_label(gpu, resources.gpu_label) if isinstance(gpu, Gpu) else None
    return dict([label]) if label else {}


def gpu_annotations(role: RoleSpec) -> dict[str, Any]:
    """Return the annotation that names the GPU where no node selector does."""
    resources = role.resources
    if resources is None or resources.gpu is None or resources.gpu_label is not GpuLabel.NONE:
        return {}
    return {GPU: str(resources.gpu)}
