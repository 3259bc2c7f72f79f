"""Rules about slips in what an engine is given: its GPU, model, image, adapters and memory.

Each function is one rule and yields its findings; ENGINE_INPUT_RULES is the list.
"""

import difflib
import re
from collections.abc import Callable, Iterator
from typing import Any

from kthena_components.core.findings import Finding, Level
from kthena_components.core.hardware import (
    Gpu,
    GpuFacts,
    find_gpu,
    is_counted_by,
    known_gpus,
    node_label,
    stated_gpu,
)
from kthena_components.core.models import all_names, find_model
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.spec.enums import GpuLabel
from kthena_components.core.spec.serving_spec import (
    ENGINE_CONTAINER,
    EngineSpec,
    ResourcesSpec,
    RoleSpec,
)
from kthena_components.core.values.display import display
from kthena_components.core.values.images import read_image
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown, is_unresolved

_LEAST = 2**20
"""The least amount that can be meant, in bytes."""
_NEAR = 0.9
"""Least similarity of a model's name and the one that is suggested (difflib's ratio)."""
_LONGEST = 120
_HUB_IMAGES = frozenset({"vllm/vllm-openai", "vllm/vllm-openai-rocm", "lmsysorg/sglang"})
_BARE_RELEASE = regex(r"[0-9]+\.[0-9]+\.[0-9]+(\.post[0-9]+)?(-[0-9a-z.-]+)?")
_ADAPTERS = ("--lora-modules", "--lora-paths")
_GPU_AGREES = "gpu-agrees"
_ADAPTER = regex(r"^(?:[^=]+=)?(/.+)$")
_IN_JSON = regex(r'^\{.*"path"\s*:\s*"(/[^"]+)"')
"""An adapter of vLLM as JSON: {"name": "sql", "path": "/adapters/sql"}."""


def amount_unit(role: RoleSpec) -> Iterator[Finding]:
    """An amount of memory or of storage is at least 1Mi: Kubernetes reads 64 as 64 bytes.

    Pass: memory 64Gi.
    Fail: memory "64"; shm 16k.
    Level: mandatory.
    Source: Kubernetes documentation, Resource Management for Pods and Containers, Memory resource
    units.
    """
    resources, cache = role.resources, role.cache
    amounts = {
        "resources.memory": resources and resources.memory,
        "resources.ephemeral_storage": resources and resources.ephemeral_storage,
        "resources.shm": resources and resources.shm,
        "cache.size": cache and cache.size,
    }
    for path, stated in amounts.items():
        amount = parse_quantity(stated) if stated else None
        if amount is None or amount >= _LEAST:
            continue
        number = re.match(r"[0-9]+", str(stated))
        meant = f"{number[0] if number and int(number[0]) else 1}Gi"
        yield Finding(
            path=path,
            seen=f"is {display(stated)}, which is {amount:f} bytes",
            remedy=write(meant, f"write a unit, such as '{meant}'"),
            rule="amount-unit",
        )


def model_name(role: RoleSpec) -> Iterator[Finding]:
    """A model that is not in the table has no name that is nearly the one of a model there.

    Rules about the sizes and the memory of a model need its shape, from the table or from
    hf_config.

    Pass: meta-llama/Llama-3.1-8B-Instruct; acme/chat-7b; a path; any name with hf_config.
    Fail: meta-llama/Llama-3.1-8B-Instuct.
    Level: advisory.
    Source: this package: the table of models.
    """
    engine = role.engine
    if engine is None or engine.hf_config is not None or not _is_name(engine.model):
        return
    if not isinstance(find_model(engine.model), Unknown):
        return
    names = {name.casefold(): name for name in all_names()}
    close = difflib.get_close_matches(engine.model.casefold(), names, n=1, cutoff=_NEAR)
    if close:
        yield Finding(
            path="engine.model",
            seen=f"is {display(engine.model)}, which is not in the table of models, so its sizes "
            "and its memory are not checked",
            remedy=either(
                write(names[close[0]]), "if the name is right, give its config.json in hf_config"
            ),
            rule="model-name",
            level=Level.ADVISORY,
        )


def _is_name(model: str) -> bool:
    return "/" in model and re.match(r"[\w-]", model) is not None and _is_short(model)


def _is_short(model: str) -> bool:
    return "://" not in model and len(model) <= _LONGEST and not is_unresolved(model)


def image_release(role: RoleSpec) -> Iterator[Finding]:
    """The tag of an image of vLLM or SGLang on Docker Hub begins with v: v0.33.0, not 0.33.0.

    Pass: vllm/vllm-openai:v0.33.0; registry.example.com/vllm-openai:0.33.0.
    Fail: vllm/vllm-openai:0.33.0.
    Level: advisory.
    Source: the tags of vllm/vllm-openai and lmsysorg/sglang on Docker Hub; vllm
    docs/deployment/docker.md.
    """
    name = role.engine.image if role.engine else None
    if name is None or is_unresolved(name):
        return
    image = read_image(name)
    tag = image.tag or ""
    if image.digest is None and image.repository in _HUB_IMAGES and _BARE_RELEASE.fullmatch(tag):
        head, _, _ = name.rpartition(":")
        yield Finding(
            path="engine.image",
            seen=f"is {display(name)}, and the tags of releases there begin with v",
            remedy=write(f"{head}:v{tag}"),
            rule="image-release",
            level=Level.ADVISORY,
        )


def adapter_mounted(role: RoleSpec) -> Iterator[Finding]:
    """The path of an adapter is on a volume of the pod, unless the image contains it.

    Pass: --lora-modules=sql=/adapters/sql, and an overlay that mounts a volume at /adapters; the
    name of an adapter on Hugging Face.
    Fail: --lora-modules=sql=/adapters/sql without a mount at /adapters.
    Level: advisory.
    Source: vllm docs/features/lora.md; sglang docs/advanced_features/lora.ipynb.
    """
    if role.engine is None:
        return
    mounts = _mounts(role)
    if mounts is None:
        return
    for path in _adapters(role.engine):
        if not any(f"{path}/".startswith(f"{mount.rstrip('/')}/") for mount in mounts):
            yield Finding(
                path="engine.extra_args",
                seen=f"names the adapter {display(path)}, and no volume is mounted there or above, "
                "so the engine finds it only if its image contains it",
                remedy=f"mount its volume: add it to overlay.spec.volumes, and to volumeMounts of "
                f"the container '{ENGINE_CONTAINER}' in overlay.spec.containers",
                rule="adapter-mounted",
                level=Level.ADVISORY,
            )


def _adapters(engine: EngineSpec) -> Iterator[str]:
    """Yield the absolute paths of adapters on the command line."""
    reading = False
    for word in engine.extra_args:
        if is_unresolved(word):
            reading = False
            continue
        if word.startswith("--"):
            option, _, value = word.partition("=")
            reading = option in _ADAPTERS
        else:
            value = word
        found = (_ADAPTER.fullmatch(value) or _IN_JSON.search(value)) if reading else None
        if found:
            yield found[1]


def _mounts(role: RoleSpec) -> list[str] | None:
    """Return where volumes are mounted in the engine; None if that is not known yet."""
    overlaid: list[Any] = [
        mount
        for container in sequence(mapping(mapping(role.overlay).get("spec")).get("containers"))
        if mapping(container).get("name") == ENGINE_CONTAINER
        for mount in sequence(mapping(container).get("volumeMounts"))
    ]
    paths = [mapping(mount).get("mountPath") for mount in overlaid]
    if any(is_unresolved(path) for path in paths):
        return None
    cached = [role.cache.mount_path] if role.cache else []
    return [*cached, *(path for path in paths if isinstance(path, str))]


def gpu_agrees(role: RoleSpec) -> Iterator[Finding]:
    """The resource, the label and the overlay of a role fit the GPU that its resources name.

    An overlay may name another product of the same GPU, such as NVIDIA-H100-PCIe for h100.

    Pass: gpu mi300x, gpu_resource amd.com/gpu; gpu h100, and an overlay with a node selector for
    NVIDIA-H100-PCIe.
    Fail: gpu mi300x, gpu_resource nvidia.com/gpu; gpu mi300x, gpu_label gke; gpu_label gke without
    a gpu; gpu h100, and an overlay with a node selector for NVIDIA-L4.
    Level: mandatory.
    Source: this package: the rules about memory would compare with one GPU, and the pods get
    another one.
    """
    resources = role.resources or ResourcesSpec()
    gpu = find_gpu(resources.gpu) if resources.gpu else None
    if not isinstance(gpu, Gpu):
        if "gpu_label" in resources.model_fields_set:
            yield Finding(
                path="resources.gpu_label",
                seen=f"is {resources.gpu_label}, but resources.gpu names no GPU",
                remedy=either(remove(), "name the GPU in resources.gpu"),
                rule=_GPU_AGREES,
            )
        return
    if not is_counted_by(resources.gpu_resource, gpu):
        yield Finding(
            path="resources.gpu_resource",
            seen=f"is {resources.gpu_resource}, but resources.gpu is {resources.gpu}, which pods "
            f"request as {gpu.resources[0]}",
            remedy=write(gpu.resources[0]),
            rule=_GPU_AGREES,
        )
    label = resources.gpu_label
    if label is not GpuLabel.NONE and node_label(gpu, label) is None:
        yield Finding(
            path="resources.gpu_label",
            seen=f"is {label}, but no such label for {resources.gpu} is known",
            remedy=either(write("none"), "name the nodes by a node selector in overlay"),
            rule=_GPU_AGREES,
        )
    yield from _overlay(role, gpu)


def _overlay(role: RoleSpec, gpu: Gpu) -> Iterator[Finding]:
    """Report an overlay whose node selector or affinity requires a GPU with other memory."""
    spec = (role.overlay or {}).get("spec") or {}
    for field in ("nodeSelector", "affinity"):
        other = stated_gpu({field: spec[field]}) if spec.get(field) else None
        if isinstance(other, GpuFacts) and other.memory_gib != gpu.memory_gib:
            yield Finding(
                path=f"overlay.spec.{field}",
                seen=f"requires {other.name} with {other.memory_gib:g} GiB, but resources.gpu is "
                f"{gpu.name} with {gpu.memory_gib:g} GiB",
                remedy=either(remove(), "write the same GPU in resources.gpu"),
                rule=_GPU_AGREES,
            )


def gpu_resource(role: RoleSpec) -> Iterator[Finding]:
    """The resource of a known GPU has its vendor's whole domain: nvidia.com/gpu, not nvidia/gpu.

    Pass: nvidia.com/gpu; acme.example/gpu.
    Fail: gpu_resource nvidia/gpu.
    Level: mandatory.
    Source: Kubernetes documentation, Device Plugins: a plugin registers vendor-domain/resourcetype.
    """
    stated = role.resources.gpu_resource if role.resources else ""
    known = {name.replace(".com/", "/"): name for gpu in known_gpus() for name in gpu.resources}
    if known.get(stated, stated) != stated:
        yield Finding(
            path="resources.gpu_resource",
            seen=f"is {display(stated)}, which no node offers: the vendor's domain is not complete",
            remedy=write(known[stated]),
            rule="gpu-resource",
        )


ENGINE_INPUT_RULES: tuple[Callable[[RoleSpec], Iterator[Finding]], ...] = (
    amount_unit,
    gpu_resource,
    model_name,
    image_release,
    adapter_mounted,
)
