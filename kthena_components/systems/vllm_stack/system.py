"""Releases of vllm-stack and llm-d-modelservice, as Argo CD, Flux and Pulumi write them.

So is the VLLMRuntime of production-stack's operator.
Source: vllm-project/production-stack helm/templates.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.container import TokenFacts, TokenKind
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import (
    MOUNTED,
    SHARED_MEMORY,
    fill_requests,
    is_serving,
    read_single,
)
from kthena_components.core.hardware import stated_gpu
from kthena_components.core.objects.object import Object
from kthena_components.core.values.display import looks_like_token
from kthena_components.core.values.read import (
    count_or_unknown,
    mapping,
    name_of,
    sequence,
    unknown_in,
)
from kthena_components.core.values.unknown import UNKNOWN_WORD, MaybeInt, Unknown, is_unresolved
from kthena_components.core.values.values_in_text import go_text
from kthena_components.systems.system import PRODUCTION, Kind, System, as_it_is
from kthena_components.systems.vllm_stack import modelservice
from kthena_components.systems.vllm_stack.modelservice import placed
from kthena_components.systems.vllm_stack.rules import number_of, vllm_stack_ignored, vllm_stack_ray
from kthena_components.systems.vllm_stack.view import (
    APPLICATION,
    HELM_CHART,
    HELM_RELEASE,
    RELEASE,
    Model,
    Releases,
    read_releases,
)

# A VLLMRuntime of production-stack's operator: a Deployment with one engine of vLLM in each pod.
#
# What the operator adds besides, probes, LMCache and a volume for /dev/shm in newer releases, is
# not read. Source: vllm-project/production-stack a6c01db
# operator/api/v1alpha1/vllmruntime_types.go, and
# operator/internal/controller/vllmruntime_controller.go deploymentForVLLMRuntime.


GROUP, RUNTIME = "production-stack.vllm.ai", "VLLMRuntime"
_RUNTIME_FLAGS = {
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


def runtime_facts(found: Object) -> ServingFacts:
    """Return the facts of a VLLMRuntime."""
    pod = _runtime_pod(found)
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


def _runtime_pod(found: Object) -> PodFacts:
    """Compose the pod of a VLLMRuntime as its operator does, and read it."""
    deployment, config = _part(found, "deploymentConfig"), mapping(_part(found, "vllmConfig"))
    made = mapping(deployment)
    container: dict[str, Any] = {
        "name": "vllm",
        "command": [*_runtime_command(found)],
        "env": config.get("env"),
        "resources": deployment if is_unresolved(deployment) else _runtime_resources(made),
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


def _runtime_resources(deployment: Mapping[str, Any]) -> object:
    """Write a VLLMRuntime's GPUs as resources of a container."""
    resources = deployment.get("resources")
    if is_unresolved(resources):
        return resources
    kind, count = (mapping(resources).get(key) for key in ("gpuType", "gpu"))
    if is_unresolved(kind):
        return kind
    amounts = {str(kind or _GPU): count} if count else {}
    return {"limits": amounts, "requests": amounts}


def _runtime_command(found: Object) -> Iterator[str]:
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
    for path, flag in _RUNTIME_FLAGS.items():
        part, _, key = path.partition(".")
        value = mapping(parts[part]).get(key)
        if value:
            yield from (flag, UNKNOWN_WORD if is_unresolved(value) else go_text(value))
    yield from [UNKNOWN_WORD] * 2 if is_unresolved(extra) else map(go_text, sequence(extra))


_FLAGS = {
    "maxModelLen": "--max-model-len",
    "tensorParallelSize": "--tensor-parallel-size",
    "gpuMemoryUtilization": "--gpu-memory-utilization",
}
_RAY_FLAGS = {**_FLAGS, "pipelineParallelSize": "--pipeline-parallel-size"}


def facts(view: Releases) -> ServingFacts:
    """Return the facts of all engines; none for a release of another chart."""
    found = view.object
    engines = [
        _engine(
            replace(
                model,
                path=found.at(model.path),
                overridden={name: found.at(at) for name, at in model.overridden.items()},
            ),
            replace(found.context, namespace=release.namespace),
        )
        for release in view.releases
        for model in (release.models if isinstance(release.models, tuple) else ())
    ]
    for release in view.modelservices:
        located = replace(release, path=found.at(release.path))
        engines += modelservice.engines(located, found.context)
    asked = [release.scheduler for release in view.releases]
    return ServingFacts(
        path=found.path,
        name=name_of(found.body),
        engines=tuple(engines),
        gang_expected="volcano" in asked or any(map(is_unresolved, asked)),
    )


def _engine(model: Model, context: Context) -> EngineFacts:
    """Return the engine of one model: a Deployment, or a Ray cluster with raySpec."""
    fields, name = model.fields, model.fields.get("name")
    replicas = count_or_unknown(number_of(fields.get("replicaCount")), "replicaCount", 1)
    many = model.ray
    pods: MaybeInt = 1
    if many is not False:
        workers = count_or_unknown(number_of(fields.get("replicaCount")), "replicaCount", 0)
        pods = workers if isinstance(workers, Unknown) else workers + 1
    if isinstance(many, Unknown):
        pods = many
    head = model.head if many is True else fields
    at = "raySpec.headNode." if many is True else ""
    command = _command(model, ray=many is True)
    joins = ["ray", "start", "--address=head:6379"]
    return EngineFacts(
        path=model.path,
        name=name if isinstance(name, str) and not is_unresolved(name) else "?",
        pods=pods,
        replicas=1 if many is True else replicas,
        entry=_pod(model, head, at, command, context),
        worker=_pod(model, fields, "", joins, context) if many is True and pods != 1 else None,
        ray_started=True,
    )


def _command(model: Model, *, ray: bool) -> list[str]:
    """Write the chart's command for a model, limited to what is checked here."""
    config = model.config
    url = model.fields.get("modelURL")
    words = ["vllm", "serve", url if isinstance(url, str) else "/model"]
    words += ["--distributed-executor-backend", "ray"] if ray else []
    for key, flag in (_RAY_FLAGS if ray else _FLAGS).items():
        if key in config or config.get(key) is not None:
            words += [flag, go_text(config.get(key))]
    extra = config.get("extraArgs")
    if is_unresolved(extra) or is_unresolved(model.fields.get("vllmConfig")):
        return [*words, UNKNOWN_WORD, UNKNOWN_WORD]
    return [*words, *(go_text(item) for item in sequence(extra))]


def _pod(
    model: Model, asked: Mapping[str, Any], at: str, command: list[str], context: Context
) -> PodFacts:
    """Read the pod that the chart creates: with its own `resources`, or the stated requests."""
    fields = model.fields
    image = [fields.get(key) for key in ("repository", "tag")]
    known = all(isinstance(part, str) for part in image)
    shm = "tensorParallelSize" in model.config
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}] if shm else []  # noqa: S108 - NCCL's memory
    container = {
        "name": "vllm",
        "command": command,
        "env": fields.get("env"),
        "resources": asked.get("resources") or _requested(asked),
        **({"image": ":".join(map(str, image))} if known else {}),
        "volumeMounts": unknown_in(fields.get("vllmConfig")) or mounts,
    }
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
    field = "resources" if asked.get("resources") else "requestGPU"
    pod = read_pod(
        {"spec": {"containers": [container], "volumes": volumes}},
        "",
        context=context,
        gpus_path=model.at(f"{at}{field}"),
        command_path=model.at("vllmConfig", *(f"vllmConfig.{key}" for key in _RAY_FLAGS)),
    )
    pod = fill_requests(placed(pod, model.path, image=f"{model.path}.tag"))
    if pod.own is None or not looks_like_token(fields.get("hf_token")):
        return pod
    at = f"{model.path}.hf_token"
    token = TokenFacts(path=at, kind=TokenKind.VALUE, variable="HF_TOKEN")
    return replace(pod, own=replace(pod.own, tokens=(*pod.own.tokens, token)))


def _requested(asked: Mapping[str, Any]) -> dict[str, Any]:
    kind, count = asked.get("requestGPUType"), asked.get("requestGPU")
    name = "nvidia.com/gpu" if kind is None else str(kind)
    return {} if count is None else {"limits": {name: count}, "requests": {name: count}}


_MADE = "production-stack's operator makes a Deployment of it"

SYSTEM = System(
    name="vllm_stack",
    title="releases of vllm-stack",
    kinds=(
        *(
            Kind(
                group=group,
                name=name,
                view=read_releases,
                facts=facts,
                rules=(vllm_stack_ray, vllm_stack_ignored),
                without={
                    "pods": "Helm creates them from the chart's values",
                    "templates": "the chart contains them, and a release its values",
                    "restarts": "the objects that Helm creates show what an update changes",
                },
            )
            for group, name in (APPLICATION, RELEASE, HELM_RELEASE, HELM_CHART)
        ),
        Kind(
            group=GROUP,
            name=RUNTIME,
            view=as_it_is,
            facts=runtime_facts,
            copies="deploymentConfig.replicas",
            not_whole="production-stack's operator completes its pods",
            without={
                "pods": _MADE,
                "templates": _MADE,
                "restarts": "a Deployment of the operator restarts its pods",
                PRODUCTION: "the operator adds probes and requests",
            },
        ),
    ),
)
