"""Facts of KServe's LLMInferenceService: a main workload and an optional one for prefill.

Its presets start `vllm serve` with the sizes of `parallelism`, so such a command is read; a
container with its own command is read as it is. Source: kserve config/llmisvcconfig.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.engines.facts import CommandFacts
from kthena_components.core.facts.container import SHM_PATH
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, NameFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests, relocated
from kthena_components.core.schema.versions import is_since, known_version
from kthena_components.core.templates import HIDDEN
from kthena_components.core.values.read import mapping, name_of, sequence
from kthena_components.core.values.unknown import UNKNOWN_WORD, Unknown, is_unresolved
from kthena_components.systems.kserve.served_models import models_of_llm, name_model, served_as
from kthena_components.systems.kserve.view import LlmService, LlmWorkload, plain
from kthena_components.systems.kubernetes.backends import leader_names

_EVALUATES = "0.18"
_ADDED = "VLLM_ADDITIONAL_ARGS"
_DECODING = "8001"
"""The port of vLLM beside the routing sidecar, in config-llm-decode-template.yaml and
config-llm-decode-worker-data-parallel.yaml of kserve v0.16.0 to v0.20.0."""
_SIDECAR = 8000
"""The port of that sidecar, which answers /health itself: llm-d-inference-scheduler
pkg/sidecar/proxy/proxy.go."""
_CERTIFICATE = "--ssl-certfile"
_SHARED_MEMORY = {"name": "dshm", "emptyDir": {"medium": "Memory"}}
_SHARED_MOUNT = {"name": "dshm", "mountPath": SHM_PATH}
_PLACED = frozenset({"nodeSelector", "affinity"})
"""Fields of a pod spec that may name the GPU."""
_UNPUBLISHED = Unknown("KServe publishes no preset for pipelines")
_ELSEWHERE = Unknown("a preset or a base may state the GPUs")
_CONFIGURED = Unknown("KServe's ConfigMap or a preset of the platform may state TLS")
_UNSPREAD = Unknown("a base may state how data is used without a worker")


def facts(view: LlmService) -> ServingFacts:
    """Return the facts of an LLMInferenceService: each workload is an engine."""
    found = view.object
    engines = tuple(_engine(view, workload) for workload in view.workloads)
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=engines,
        names=tuple(name for workload in view.workloads for name in _names(view, workload)),
    )


def _names(view: LlmService, workload: LlmWorkload) -> Iterator[NameFacts]:
    """Return the longest names of a workload of several nodes, which is a LeaderWorkerSet."""
    name, pods = view.object.metadata.get("name"), workload.pods
    if not isinstance(name, str) or pods == 1 or workload.fields.get("worker") is None:
        return
    made = f"{name}-kserve-mn{'-prefill' if workload.is_prefill else ''}"
    workers = pods - 1 if isinstance(pods, int) else pods
    at = view.object.at("metadata.name")
    yield from leader_names(at, made, workload.replicas, workers, made=False)


def _engine(view: LlmService, workload: LlmWorkload) -> EngineFacts:
    """Describe a workload's engine; without `worker` it has one pod, and one pipeline stage."""
    name, pods = name_of(view.object.body), workload.pods
    alone = pods == 1 or workload.fields.get("worker") is None
    return EngineFacts(
        path=view.object.at(workload.path),
        name=f"{name}-prefill" if workload.is_prefill else name,
        pods=pods,
        replicas=workload.replicas,
        one_stage=alone and not _has_command(workload),
        entry=_pod(view, workload, "template"),
        worker=None if alone else _pod(view, workload, "worker"),
    )


def _has_command(workload: LlmWorkload) -> bool:
    """Return whether the container has its own command, and not the preset's."""
    containers = sequence(mapping(plain(workload.fields.get("template"))).get("containers"))
    return bool(containers) and mapping(containers[0]).get("command") is not None


def _pod(view: LlmService, workload: LlmWorkload, field: str) -> PodFacts:
    """Read a pod spec, which has no surrounding template."""
    at, context = view.object.at(workload.path), view.object.context
    spec = plain(workload.fields.get(field))
    stated = mapping(spec).get("containers")
    containers = sequence(stated)
    if any(map(is_unresolved, (spec, stated, *containers))):
        return read_pod(HIDDEN, f"{at}.{field}", context=context)
    engine = mapping(containers[0]) if containers else {}
    main = {**engine, "name": "main", **_command(workload, engine, context)}
    main["volumeMounts"] = _and_of_preset(engine.get("volumeMounts"), _SHARED_MOUNT)
    volumes = _and_of_preset(mapping(spec).get("volumes"), _SHARED_MEMORY)
    placed = {key: value for key, value in mapping(spec).items() if key in _PLACED}
    made = {**placed, "volumes": volumes, "containers": [main, *containers[1:]]}
    pod = read_pod({"spec": made}, "", context=context)
    command, own = pod.command, engine.get("command") is not None
    is_stated_here = own or _is_stated_by_words(workload, command)
    if command and not own:
        command = _in_preset(view, workload, command)
    new = f"{at}.{field}.containers"
    pod = relocated(pod, lambda path: path.replace("spec.containers", new, 1))
    devices = pod.devices
    if not devices and (view.is_based or not containers):
        devices = (_elsewhere(new),)
    if workload.decodes and pod.own:
        ports = replace(pod.own.ports, mentioned=pod.own.ports.mentioned | {_SIDECAR})
        pod = replace(pod, own=replace(pod.own, ports=ports))
    command_path = pod.command_path if is_stated_here else f"{at}.parallelism"
    flags_path = "" if own or "args" not in engine else f"{new}[0].args"
    pod = replace(
        pod, command=command, devices=devices, command_path=command_path, flags_path=flags_path
    )
    pod = name_model(pod, models_of_llm(view.object.spec), context)
    return fill_requests(pod if own else served_as(pod, view.object.spec))


def _in_preset(view: LlmService, workload: LlmWorkload, command: CommandFacts) -> CommandFacts:
    """Note what the words of a preset leave open.

    TLS is on with enableLLMInferenceServiceTLS in KServe's ConfigMap, and a platform has its own
    presets. Source: kserve v0.19.0 config/llmisvcconfig/config-llm-template.yaml;
    pkg/controller/v1alpha2/llmisvc/config_loader.go.
    """
    # The preset without a worker states the tensor size only (config-llm-template).
    if not workload.many and workload.states("data") and view.is_based:
        command = replace(command, data=_UNSPREAD)
    if workload.many and workload.states("pipeline"):
        command = replace(command, executor=_UNPUBLISHED)
    return replace(command, options={_CERTIFICATE: _CONFIGURED, **command.options})


def _and_of_preset(stated: Any, own: Mapping[str, Any]) -> Any:
    """Add what each preset states to a list, behind what overrides it."""
    return stated if is_unresolved(stated) else [*sequence(stated), own]


def _elsewhere(path: str) -> DeviceFacts:
    return DeviceFacts(path=path, container="main", resource="GPUs", limit=_ELSEWHERE, request=None)


def _command(workload: LlmWorkload, engine: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Return the command and arguments with the preset, unless the container has a command."""
    if engine.get("command") is not None:
        return {}
    flags = {"tensor": "--tensor-parallel-size"}
    if workload.many:
        flags |= {
            "pipeline": "--pipeline-parallel-size",
            "data": "--data-parallel-size",
            "dataLocal": "--data-parallel-size-local",
        }
    sizes = [word for name, flag in flags.items() for word in _flag(workload, name, flag)]
    expert = workload.parallelism.get("expert") if workload.many else None
    if expert is True or is_unresolved(expert):
        sizes.append("--enable-expert-parallel" if expert is True else UNKNOWN_WORD)
    of_decode = UNKNOWN_WORD if workload.decodes is None else _DECODING
    port = [] if workload.decodes is False else ["--port", of_decode]
    words = ["vllm", "serve", "/mnt/models", *port, *sizes]
    if not (workload.many or _evaluates(context)):
        return {"command": words}
    script = " ".join([*words, *_additional(engine), *_arguments(engine)])
    return {"command": ["/bin/bash", "-c", script], "args": []}


def _is_stated_by_words(workload: LlmWorkload, command: CommandFacts | None) -> bool:
    """Return whether the args state a size: their options follow those of `parallelism`."""
    if command is None:
        return False
    stated = workload.size("tensor"), workload.size("pipeline") if workload.many else None
    read = command.tensor, command.pipeline
    return any(isinstance(n, int) and n != (s or 1) for n, s in zip(read, stated, strict=True))


def _evaluates(context: Context) -> bool:
    """Return whether the preset of one node is a shell that reads the args once more with `eval`.

    It is since 0.18, and each preset with a worker was before. Source: kserve v0.16.0 to v0.20.0
    config/llmisvcconfig/config-llm-template.yaml, config-llm-worker-data-parallel.yaml.
    """
    release = context.versions.get("kserve")
    return not (release and known_version(release, "kserve")) or is_since(release, _EVALUATES)


def _flag(workload: LlmWorkload, name: str, flag: str) -> Iterator[str]:
    size = workload.size(name)
    if size is not None and (isinstance(size, Unknown) or size > 0):
        yield flag
        yield UNKNOWN_WORD if isinstance(size, Unknown) else str(size)


def _additional(engine: Mapping[str, Any]) -> list[str]:
    for item in sequence(engine.get("env")):
        entry = mapping(item)
        value = entry.get("value")
        if entry.get("name") == _ADDED and isinstance(value, str):
            return _texts([value])
    return []


def _arguments(engine: Mapping[str, Any]) -> list[str]:
    stated = engine.get("args")
    return _texts(stated if isinstance(stated, list) else [stated] if stated is not None else [])


def _texts(items: Sequence[Any]) -> list[str]:
    """Return parts of a script: any number of words for one that is not known."""
    hidden = [UNKNOWN_WORD, UNKNOWN_WORD]
    return [
        text
        for item in items
        for text in ([item] if isinstance(item, str) and not is_unresolved(item) else hidden)
    ]
