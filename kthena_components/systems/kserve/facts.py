"""Read KServe: InferenceService of many nodes and of one, and runtimes with a workerSpec.

What many nodes get, KServe works out from requests (systems/kserve/view.py), and it writes
the result into both requests and limits. LLMInferenceService is in llmisvc.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.context import carried
from kthena_components.core.facts.pod import DeviceFacts, PodFacts, read_pods
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests
from kthena_components.core.findings import join_path
from kthena_components.core.values.read import as_count, as_list, as_map, group_kind, name_of
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved
from kthena_components.systems.kserve.view import (
    GROUP,
    RUNTIMES,
    SERVICE,
    MultiNode,
    RayNodes,
    Shortage,
    read_multi_node,
)

KINDS = frozenset({(GROUP, SERVICE), *((GROUP, kind) for kind in RUNTIMES)})
_HUGGING_FACE = ("python3", "-m", "huggingfaceserver")
_OWN_RUNTIMES = "kserve-huggingfaceserver"
_NO_SIZE = Unknown("the size in workerSpec is no number")
_REFUSED = Unknown("KServe deploys nothing where requests hold fewer GPUs than there are ranks")
_ELSEWHERE = Unknown("its runtime may state the GPUs")


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of an InferenceService or a (Cluster)ServingRuntime; None for the others."""
    if group_kind(body) not in KINDS:
        return None
    view = read_multi_node(body)
    if view is not None:
        engines: tuple[EngineFacts, ...] = (_many(view, name_of(body), path),)
    elif group_kind(body)[1] == SERVICE:
        engines = tuple(_one(body, join_path(path, "spec.predictor")))
    else:
        engines = tuple(_runtime(body, join_path(path, "spec")))
    return ServingFacts(path=join_path(path, "spec"), name=name_of(body), engines=engines)


def _many(view: MultiNode, name: str, path: str) -> EngineFacts:
    """Give the engine that KServe makes of a workerSpec."""
    nodes = view.nodes
    at = join_path(path, view.path)
    command = CommandFacts(
        engine="vllm", tensor=_size(view.tensor), pipeline=_size(view.pipeline), executor="ray"
    )
    if not isinstance(nodes, RayNodes):
        gap = _REFUSED if isinstance(nodes, Shortage) else nodes
        entry = _pod(gap, join_path(path, f"{view.head.path}.resources"), at, command)
        return EngineFacts(path=at, name=name, pods=gap, replicas=1, entry=entry, worker=None)
    entry = _pod(nodes.head_gpus, join_path(path, f"{view.head.path}.resources"), at, command)
    rest = _pod(nodes.worker_gpus, join_path(path, f"{view.worker.path}.resources"), at, _JOINS)
    worker = rest if nodes.pods > 1 else None
    return EngineFacts(path=at, name=name, pods=nodes.pods, replicas=1, entry=entry, worker=worker)


_JOINS = CommandFacts(ray_role="worker")


def _size(value: MaybeInt | None) -> MaybeInt:
    return _NO_SIZE if value is None or (isinstance(value, int) and value < 1) else value


def _pod(gpus: MaybeInt, path: str, command_path: str, command: CommandFacts) -> PodFacts:
    device = DeviceFacts(path=path, container="main", resource="GPUs", limit=gpus, request=gpus)
    return PodFacts(
        devices=(device,),
        command=command,
        gpus_path=path,
        command_path=command_path,
        container="main",
    )


def _one(body: Mapping[str, Any], base: str) -> Iterator[EngineFacts]:
    """Read an InferenceService without workerSpec: each replica is an engine of one pod."""
    predictor = as_map(as_map(body.get("spec")).get("predictor"))
    for pod in _pods(predictor, base):
        starts = pod.command is not None and pod.command.engine is not None
        if starts or pod.asks_for_gpus:
            yield EngineFacts(
                path=base,
                name=name_of(body),
                pods=1,
                replicas=as_count(predictor.get("minReplicas"), "minReplicas", 1),
                entry=pod,
                worker=None,
            )


def _pods(predictor: Mapping[str, Any], base: str) -> Iterator[PodFacts]:
    for key in ("model", "huggingface"):
        if predictor.get(key) is not None:
            container = _model(as_map(predictor[key]), key)
            pod_spec = {**carried(predictor, "volumes"), "containers": [container]}
            for pod in read_pods({"spec": pod_spec}, ""):
                moved = _moved(pod, "spec.containers[0]", f"{base}.{key}")
                yield _or_runtime(fill_requests(moved), f"{base}.{key}.resources")
            return
    for pod in read_pods({"spec": predictor}, ""):
        yield fill_requests(_moved(pod, "spec.containers", f"{base}.containers"))


def _model(model: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Give the container that a model is served by; KServe's own server takes its arguments."""
    container = {"name": "kserve-container", **model}
    served = key == "huggingface" or _is_hugging_face(model)
    if served and model.get("command") is None:
        container["command"] = list(_HUGGING_FACE)
    return container


def _is_hugging_face(model: Mapping[str, Any]) -> bool:
    runtime, name = model.get("runtime"), as_map(model.get("modelFormat")).get("name")
    own = runtime is None or (isinstance(runtime, str) and runtime.startswith(_OWN_RUNTIMES))
    return own and isinstance(name, str) and name == "huggingface" and not is_unresolved(name)


def _or_runtime(pod: PodFacts, path: str) -> PodFacts:
    """Leave open what a model does not state: its runtime has resources as well."""
    if pod.devices:
        return pod
    device = DeviceFacts(
        path=path, container=pod.container or "", resource="GPUs", limit=_ELSEWHERE, request=None
    )
    return replace(pod, devices=(device,))


def _moved(pod: PodFacts, old: str, new: str) -> PodFacts:
    """Give the same pod in the coordinates of the object that it was read from."""
    devices = (replace(d, path=d.path.replace(old, new, 1)) for d in pod.devices)
    missing = (replace(key, path=key.path.replace(old, new, 1)) for key in pod.missing)
    return replace(
        pod,
        devices=tuple(devices),
        missing=tuple(missing),
        gpus_path=pod.gpus_path.replace(old, new, 1),
        command_path=pod.command_path.replace(old, new, 1),
    )


def _runtime(body: Mapping[str, Any], base: str) -> Iterator[EngineFacts]:
    """Read a runtime for one node. What states no GPUs leaves them to the InferenceService."""
    spec = as_map(body.get("spec"))
    if not as_list(spec.get("containers")):
        return
    for pod in read_pods({"spec": spec}, ""):
        if pod.asks_for_gpus:
            moved = fill_requests(_moved(pod, "spec.containers", f"{base}.containers"))
            yield EngineFacts(
                path=base, name=name_of(body), pods=1, replicas=1, entry=moved, worker=None
            )
