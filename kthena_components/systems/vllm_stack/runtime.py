"""A VLLMRuntime of production-stack's operator: a Deployment with one engine of vLLM in each pod.

What the operator adds besides, probes, LMCache and a volume for /dev/shm in newer releases, is not
read. Source: vllm-project/production-stack a6c01db operator/api/v1alpha1/vllmruntime_types.go, and
operator/internal/controller/vllmruntime_controller.go deploymentForVLLMRuntime.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import MOUNTED, SHARED_MEMORY, is_serving, read_single
from kthena_components.core.hardware import stated_gpu
from kthena_components.core.objects.object import Object
from kthena_components.core.values.embedded_escapes_helm_set import go_text
from kthena_components.core.values.read import count_or_unknown, mapping, name_of, sequence
from kthena_components.core.values.unknown import UNKNOWN_WORD, MaybeInt, Unknown, is_unresolved

GROUP, RUNTIME = "production-stack.vllm.ai", "VLLMRuntime"
_FLAGS = {
    "model.maxModelLen": "--max-model-len",
    "model.dtype": "--dtype",
    "vllmConfig.tensorParallelSize": "--tensor-parallel-size",
    "model.maxNumSeqs": "--max-num-seqs",
    "vllmConfig.gpuMemoryUtilization": "--gpu-memory-utilization",
}
"""Options that the operator writes for a value, unless it is 0 or empty."""
_DEPLOYMENT = "spec.deploymentConfig"
_PLACES = {
    "command": "spec.vllmConfig",
    "env": "spec.vllmConfig.env",
    "resources": f"{_DEPLOYMENT}.resources",
    "image": f"{_DEPLOYMENT}.image.name",
    "": "spec",
}
_GPU = "nvidia.com/gpu"


def facts(found: Object) -> ServingFacts:
    """Return the facts of a VLLMRuntime."""
    pod = _pod(found)
    engine = EngineFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        pods=1,
        replicas=_replicas(found),
        entry=pod,
        worker=None,
    )
    engines = (engine,) if is_serving(pod) else ()
    return ServingFacts(path=found.at("spec"), name=name_of(found.body), engines=engines)


def _part(found: Object, name: str) -> object:
    """Return a part of the spec: a map, or a value that is not known yet."""
    part = found.spec.get(name)
    return part if is_unresolved(part) else mapping(part)


def _replicas(found: Object) -> MaybeInt:
    scaled = _part(found, "autoscalingConfig")
    if is_unresolved(scaled) or mapping(scaled).get("enabled"):
        return Unknown("KEDA scales the VLLMRuntime")
    deployment = _part(found, "deploymentConfig")
    if is_unresolved(deployment):
        return Unknown("the number of its pods is not known yet")
    return count_or_unknown(mapping(deployment).get("replicas"), "replicas", 1)


def _pod(found: Object) -> PodFacts:
    deployment, config = _part(found, "deploymentConfig"), mapping(_part(found, "vllmConfig"))
    made = mapping(deployment)
    container: dict[str, Any] = {
        "name": "vllm",
        "command": [*_command(found)],
        "env": config.get("env"),
        "resources": deployment if is_unresolved(deployment) else _requested(made),
        "volumeMounts": [MOUNTED],
        **_image(mapping(made.get("image"))),
    }
    pod = read_single(container, _PLACES, found.at, volumes=[SHARED_MEMORY], context=found.context)
    gpu = stated_gpu(_affinity(made.get("nodeSelectorTerms")))
    return pod if gpu is None else replace(pod, gpu=gpu)


def _affinity(terms: object) -> Mapping[str, Any]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}} if terms else {}


def _image(image: Mapping[str, Any]) -> dict[str, str]:
    parts = (image.get("registry"), image.get("name"))
    texts = [part for part in parts if isinstance(part, str) and not is_unresolved(part)]
    return {"image": "/".join(texts)} if len(texts) == len(parts) else {}


def _requested(deployment: Mapping[str, Any]) -> object:
    resources = deployment.get("resources")
    if is_unresolved(resources):
        return resources
    kind, count = (mapping(resources).get(key) for key in ("gpuType", "gpu"))
    if is_unresolved(kind):
        return kind
    amounts = {str(kind or _GPU): count} if count else {}
    return {"limits": amounts, "requests": amounts}


def _command(found: Object) -> Iterator[str]:
    """Write the operator's command line, as far as sizes and memory depend on it."""
    parts = {name: _part(found, name) for name in ("model", "vllmConfig")}
    if any(map(is_unresolved, parts.values())):
        yield from ("vllm", "serve", UNKNOWN_WORD, UNKNOWN_WORD)
        return
    url, extra = (
        mapping(parts[part]).get(key)
        for part, key in (("model", "modelURL"), ("vllmConfig", "extraArgs"))
    )
    named = isinstance(url, str) and not is_unresolved(url)
    yield from ("vllm", "serve", str(url) if named else UNKNOWN_WORD)
    for path, flag in _FLAGS.items():
        part, _, key = path.partition(".")
        value = mapping(parts[part]).get(key)
        if value:
            yield from (flag, UNKNOWN_WORD if is_unresolved(value) else go_text(value))
    yield from [UNKNOWN_WORD] * 2 if is_unresolved(extra) else map(go_text, sequence(extra))
