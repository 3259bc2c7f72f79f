"""Read KServe's LLMInferenceService: a main workload and perhaps one that prefills.

Its presets start `vllm serve` with the sizes of `parallelism`, so such a command is what is read;
a container that has a command of its own is read as it is.
Source: kserve config/llmisvcconfig.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.context import carried
from kthena_components.core.facts.pod import DeviceFacts, PodFacts, read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests
from kthena_components.core.findings import join_path
from kthena_components.core.values.read import as_count, as_list, as_map, group_kind, name_of
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN, Unknown, is_unresolved
from kthena_components.systems.kserve.rules_llm import LlmWorkload, read_workloads
from kthena_components.systems.kserve.view import GROUP

KINDS = frozenset({(GROUP, "LLMInferenceService")})
_LATE = f"{OUTPUT_OPEN}0{OUTPUT_CLOSE}"
_ADDED = "VLLM_ADDITIONAL_ARGS"
_ELSEWHERE = Unknown("a preset or a base may state the GPUs")
_UNSPREAD = Unknown("without a worker it is not known what data is worth")


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of an LLMInferenceService; None for anything else."""
    if group_kind(body) not in KINDS:
        return None
    based = bool(as_list(as_map(body.get("spec")).get("baseRefs")))
    engines = tuple(
        _engine(workload, name_of(body), path, based=based) for workload in read_workloads(body)
    )
    return ServingFacts(path=join_path(path, "spec"), name=name_of(body), engines=engines)


def _engine(workload: LlmWorkload, name: str, path: str, *, based: bool) -> EngineFacts:
    at = join_path(path, workload.path)
    pods = workload.pods
    worker = workload.fields.get("worker")
    prefill = workload.path.endswith("prefill")
    return EngineFacts(
        path=at,
        name=f"{name}-prefill" if prefill else name,
        pods=pods,
        replicas=as_count(_plain(workload.fields.get("replicas")), "replicas", 1),
        entry=_pod(workload, "template", at, based=based),
        worker=None if pods == 1 or worker is None else _pod(workload, "worker", at, based=based),
    )


def _plain(value: object) -> object:
    return _LATE if isinstance(value, Unknown) else value


def _pod(workload: LlmWorkload, field: str, at: str, *, based: bool) -> PodFacts:
    """Read a pod spec, which stands where others have a whole template."""
    spec = _plain(workload.fields.get(field))
    stated = as_map(spec).get("containers")
    containers = as_list(stated)
    if any(map(is_unresolved, (spec, stated, *containers))):
        return read_pod(_LATE, f"{at}.{field}")
    engine = as_map(containers[0]) if containers else {}
    started = [{**engine, "name": "main", **_command(workload, engine)}, *containers[1:]]
    pod = read_pod({"spec": {**carried(as_map(spec), "volumes"), "containers": started}}, "")
    old, new = "spec.containers", f"{at}.{field}.containers"
    devices = [replace(d, path=d.path.replace(old, new, 1)) for d in pod.devices]
    if not devices and (based or not containers):
        gap = DeviceFacts(
            path=new, container="main", resource="GPUs", limit=_ELSEWHERE, request=None
        )
        devices = [gap]
    own = engine.get("command") is not None
    command = pod.command
    if command and not own and not workload.many and workload.states("data"):
        command = replace(command, data=_UNSPREAD)
    return fill_requests(
        replace(
            pod,
            command=command,
            devices=tuple(devices),
            missing=tuple(replace(k, path=k.path.replace(old, new, 1)) for k in pod.missing),
            gpus_path=pod.gpus_path.replace(old, new, 1),
            command_path=pod.command_path.replace(old, new, 1) if own else f"{at}.parallelism",
        )
    )


def _command(workload: LlmWorkload, engine: Mapping[str, Any]) -> dict[str, Any]:
    """Write the command of the preset, unless the container has one."""
    if engine.get("command") is not None:
        return {}
    flags = {"tensor": "--tensor-parallel-size"}
    if workload.many:
        flags |= {
            "pipeline": "--pipeline-parallel-size",
            "data": "--data-parallel-size",
            "dataLocal": "--data-parallel-size-local",
        }
    words = [word for name, flag in flags.items() for word in _flag(workload, name, flag)]
    return {"command": ["vllm", "serve", "/mnt/models", *words, *_additional(engine)]}


def _flag(workload: LlmWorkload, name: str, flag: str) -> Iterator[str]:
    size = workload.size(name)
    if size is not None and (isinstance(size, Unknown) or size > 0):
        yield flag
        yield _LATE if isinstance(size, Unknown) else str(size)


def _additional(engine: Mapping[str, Any]) -> list[str]:
    for item in as_list(engine.get("env")):
        entry = as_map(item)
        value = entry.get("value")
        if entry.get("name") == _ADDED and isinstance(value, str):
            return value.split()
    return []
