"""Facts of InferenceServices on one or several nodes, and of their runtimes.

For several nodes, KServe calculates the GPUs from requests (nodes.py), and writes the result into
requests and limits.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.pod_template import read_pods
from kthena_components.core.facts.ports import BY_KSERVE
from kthena_components.core.facts.serving import EngineFacts, NameFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests, relocated, with_default_probe
from kthena_components.core.naming import DNS_LABEL
from kthena_components.core.templates import lay_over
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import is_name, mapping, name_of, sequence
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved
from kthena_components.systems.kserve.nodes import RayNodes, Shortage
from kthena_components.systems.kserve.served_models import models_of_service, name_model
from kthena_components.systems.kserve.view import MODE, STANDARD, MultiNode, Service

_HUGGING_FACE = ("python3", "-m", "huggingfaceserver")
_OWN_RUNTIMES = "kserve-huggingfaceserver"
_NO_SIZE = Unknown("the size in workerSpec is not a number")
REFUSED = Unknown("KServe deploys nothing if pods request fewer GPUs than there are ranks")
_ELSEWHERE = Unknown("its runtime may state the GPUs")
_KNATIVE = ("Knative", "Serverless")
_ARGUMENTS = Unknown("an InferenceService adds its arguments to those of its runtime")
_PARTS = ("volumes", "nodeSelector", "affinity")
"""Fields of a predictor that its pods have, and that rules about its engine read."""


def facts(view: Service) -> ServingFacts:
    """Return the facts of an InferenceService or a (Cluster)ServingRuntime."""
    if view.many is not None:
        engines: tuple[EngineFacts, ...] = (_many(view, view.many),)
    elif view.is_service:
        engines = tuple(_one(view))
    else:
        engines = tuple(_runtime(view))
    found = view.object
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=engines,
        names=(*_labels(view), *_hosts(view)),
    )


def _labels(view: Service) -> Iterator[NameFacts]:
    """Return the label of the pods of an InferenceService in the mode Standard, or its Service.

    A Service of Knative has a name like one of Kubernetes, so any mode that the cluster may have
    has that limit. Source: kserve v0.20.0 pkg/constants/constants.go PredictorServiceName,
    GetRawServiceLabel and GetRawWorkerServiceLabel; knative.dev/pkg apis/metadata_validation.go.
    """
    found, mode = view.object, view.annotations.get(MODE)
    name = found.metadata.get("name")
    is_standard = mode in STANDARD or view.many is not None
    if not view.is_service or not is_name(name) or not found.spec.get("predictor"):
        return
    at, worker = found.at("metadata.name"), "" if view.many is None else "-worker"
    if is_standard:
        label = f"isvc.{name}-predictor{worker}"
        yield NameFacts(path=at, name=label, limit=DNS_LABEL, what="label app", made=False)
    elif mode is None or mode in _KNATIVE:
        made = f"{name}-predictor"
        yield NameFacts(path=at, name=made, limit=DNS_LABEL, what="predictor's Service", made=False)


def _hosts(view: Service) -> Iterator[NameFacts]:
    """Return the first labels of the hosts of an InferenceService in the mode Standard."""
    found, space = view.object, view.object.stated_namespace
    name, mode = found.metadata.get("name"), view.annotations.get(MODE)
    if not view.is_service or mode not in STANDARD or not is_name(name) or not is_name(space):
        return
    for part in ("predictor", "transformer", "explainer"):
        if found.spec.get(part) is not None:
            yield NameFacts(
                what=f"{part}'s host",
                name=f"{name}-{part}-{space}",
                limit=DNS_LABEL,
                path=found.at("metadata.name"),
                made=False,
                by_default=True,
            )


def _many(view: Service, many: MultiNode) -> EngineFacts:
    """Return the engine that KServe creates for a workerSpec."""
    found, nodes, name = view.object, many.nodes, name_of(view.object.body)
    at, head = found.at(many.path), found.at(f"{many.head.path}.resources")
    command = CommandFacts(
        engine="vllm", tensor=_size(many.tensor), pipeline=_size(many.pipeline), executor="ray"
    )
    if not isinstance(nodes, RayNodes):
        gap = REFUSED if isinstance(nodes, Shortage) else nodes
        entry = _with_written(_pod(gap, head, at, command), _pods(view, found.at(view.path)))
        return EngineFacts(
            path=at, name=name, pods=gap, replicas=1, entry=entry, worker=None, ray_started=True
        )
    entry = _pod(nodes.head_gpus, head, at, command)
    rest = _pod(nodes.worker_gpus, found.at(f"{many.worker.path}.resources"), at, _JOINS)
    entry = _with_written(entry, _pods(view, found.at(view.path)))
    workers = [*_bare_pods({"spec": many.fields}, f"{at}.", view)]
    worker = _joining(_with_written(rest, workers), workers) if nodes.pods > 1 else None
    return EngineFacts(
        path=at,
        name=name,
        pods=nodes.pods,
        replicas=1,
        entry=entry,
        worker=worker,
        ray_started=True,
    )


def _with_written(pod: PodFacts, written: Iterable[PodFacts]) -> PodFacts:
    """Add the containers that are written in the object, whose resources KServe replaces."""
    found = tuple(written)
    containers = (c for one in found for c in (one.own, *one.others) if c is not None)
    missing = (key for one in found for key in one.missing)
    return replace(pod, others=tuple(containers), missing=tuple(dict.fromkeys(missing)))


def _joining(pod: PodFacts, written: Sequence[PodFacts]) -> PodFacts:
    """Add where the workers join Ray, if the command that is written says so."""
    joins = [one for one in written if one.command is not None and one.command.ray_address]
    command = joins[0].command if len(joins) == 1 else None
    if pod.command is None or command is None or command.hidden or command.ray_role != "worker":
        return pod
    joined = replace(pod.command, ray_address=command.ray_address, ray_written=command.ray_written)
    return replace(pod, command=joined, stated=joins[0].stated, command_path=joins[0].command_path)


_JOINS = CommandFacts(ray_role="worker")


def _size(value: MaybeInt | None) -> MaybeInt:
    return _NO_SIZE if value is None or (isinstance(value, int) and value < 1) else value


def _pod(gpus: MaybeInt, path: str, command_path: str, command: CommandFacts) -> PodFacts:
    """Describe a pod whose command KServe writes: GPUs and parallel sizes are all it has."""
    device = DeviceFacts(path=path, container="main", resource="GPUs", limit=gpus, request=gpus)
    return PodFacts(
        devices=(device,),
        command=command,
        gpus_path=path,
        command_path=command_path,
        container="main",
    )


def _one(view: Service) -> Iterator[EngineFacts]:
    """Read an InferenceService without workerSpec: each replica is an engine of one pod."""
    for pod in _pods(view, view.object.at(view.path)):
        starts = pod.command is not None and pod.command.engine is not None
        if starts or pod.asks_for_gpus:
            yield EngineFacts(
                path=view.object.at(view.path),
                name=name_of(view.object.body),
                pods=1,
                replicas=view.replicas,
                entry=pod,
                worker=None,
            )


def _pods(view: Service, base: str) -> Iterator[PodFacts]:
    """Read the pods of a predictor, each with its model's name."""
    folders = models_of_service(view.holder, view.served)
    for pod in _written(view, base):
        yield name_model(pod, folders, view.object.context)


def _probed(pod: PodFacts, spec: Mapping[str, Any]) -> PodFacts:
    """Add the readinessProbe that KServe gives to a container without one.

    Source: kserve pkg/controller/v1beta1/inferenceservice/reconcilers/deployment/
    deployment_reconciler.go setDefaultPodSpec; pkg/constants/constants.go.
    """
    own, listed = pod.own, [mapping(each) for each in sequence(spec.get("containers"))]
    container = next((each for each in listed if each.get("name") == _ENGINE), None)
    if own is None or own.name != _ENGINE or container is None or "readinessProbe" in container:
        return pod
    return with_default_probe(pod, container.get("ports"), BY_KSERVE)


def _written(view: Service, base: str) -> Iterator[PodFacts]:
    """Read the pods of a predictor; `base` is its path in the object."""
    predictor, context, key = view.holder, view.object.context, view.served
    merged = merge(view.runtime, predictor) if view.runtime and key == "model" else None
    metadata = {"annotations": predictor.get("annotations")}
    if merged is not None:
        template = {"metadata": metadata, "spec": merged.spec}
        for read in read_pods(template, "", context=context):
            pod = _probed(read, merged.spec)
            yield fill_requests(relocated(pod, lambda path: f"{base}.{merged.place(path)}"))
        return
    if key:
        container = _model(mapping(predictor[key]), key)
        pod_spec = {**{part: predictor.get(part) for part in _PARTS}, "containers": [container]}
        template = {"metadata": metadata, "spec": pod_spec}
        for pod in read_pods(template, "", context=context):
            moved = _moved(pod, "spec.containers[0]", f"{base}.{key}")
            yield _or_runtime(fill_requests(moved), f"{base}.{key}.resources")
        return
    template = {"metadata": metadata, "spec": predictor}
    for pod in _bare_pods(template, f"{base}.", view):
        yield _probed(fill_requests(pod), predictor)


def _bare_pods(template: object, base: str, view: Service) -> Iterator[PodFacts]:
    """Read pods whose spec stands in the object without a template around it."""
    for pod in read_pods(template, "", context=view.object.context):
        yield _moved(pod, "spec.", base)


def _model(model: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the container that serves a model; KServe's own server gets its arguments."""
    container = {"name": "kserve-container", **model}
    served = key == "huggingface" or _is_hugging_face(model)
    if served and model.get("command") is None:
        container["command"] = list(_HUGGING_FACE)
    return container


def _is_hugging_face(model: Mapping[str, Any]) -> bool:
    runtime, name = model.get("runtime"), mapping(model.get("modelFormat")).get("name")
    own = runtime is None or (isinstance(runtime, str) and runtime.startswith(_OWN_RUNTIMES))
    return own and isinstance(name, str) and name == "huggingface" and not is_unresolved(name)


def _or_runtime(pod: PodFacts, path: str) -> PodFacts:
    """Mark what a model does not state as unknown: its runtime has resources, too."""
    if pod.devices:
        return pod
    device = DeviceFacts(
        path=path, container=pod.container or "", resource="GPUs", limit=_ELSEWHERE, request=None
    )
    return replace(pod, devices=(device,))


def _moved(pod: PodFacts, old: str, new: str) -> PodFacts:
    """Give the same pod in the coordinates of the object that it was read from."""
    return relocated(pod, lambda path: path.replace(old, new, 1))


def _runtime(view: Service) -> Iterator[EngineFacts]:
    """Read a runtime for one node. If it states no GPUs, the InferenceService may.

    KServe writes the arguments of the InferenceService behind those of the runtime.
    """
    spec, at = view.holder, view.object.at(view.path)
    if not sequence(spec.get("containers")):
        return
    for pod in _bare_pods({"spec": spec}, f"{at}.", view):
        if pod.asks_for_gpus:
            moved = fill_requests(pod)
            yield EngineFacts(
                path=at,
                name=name_of(view.object.body),
                pods=1,
                replicas=1,
                entry=_open(moved),
                worker=None,
            )


def _open(pod: PodFacts) -> PodFacts:
    """Return the pod of a runtime: options that it does not state may be set elsewhere."""
    command = pod.command
    if command is None or command.hidden is not None:
        return pod
    options = ("--tensor-parallel-size", "--pipeline-parallel-size")
    command = replace(command, hidden=_ARGUMENTS)
    if pod.gpus != 1 and not any(option in command.options for option in options):
        command = replace(command, tensor=_ARGUMENTS, pipeline=_ARGUMENTS)
    return replace(pod, command=command)


# The pod that KServe makes of a runtime and the model of an InferenceService.
#
# Source: kserve pkg/controller/v1beta1/inferenceservice/utils
# MergeServingRuntimeAndInferenceServiceSpecs and MergeRuntimeContainers: a strategic merge, but
# for the arguments of both.


_ENGINE = "kserve-container"


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A pod, and where its parts were written."""

    spec: Mapping[str, Any]
    place: Callable[[str], str]
    """Gives the path below the predictor for a path in the pod."""


def merge(runtime: Mapping[str, Any], predictor: Mapping[str, Any]) -> Merged | None:
    """Merge the spec of a runtime with a predictor; None if the runtime has no engine."""
    model = mapping(predictor.get("model"))
    containers = [mapping(each) for each in sequence(runtime.get("containers"))]
    names = [each.get("name") for each in containers]
    if _ENGINE not in names:
        return None
    index = names.index(_ENGINE)
    args = _joined(containers[index].get("args"), model.get("args"))
    containers[index] = {**lay_over(containers[index], model), "name": _ENGINE, "args": args}
    volumes = lay_over(
        {"volumes": runtime.get("volumes") or []}, {"volumes": predictor.get("volumes") or []}
    )
    at = f"spec.containers[{index}]"

    def place(path: str) -> str:
        field = path.removeprefix(at).lstrip(".").partition(".")[0].partition("[")[0]
        if not path.startswith(at) or (field and field not in model):
            return "model.runtime"
        # The arguments of the runtime stand in front, so no index is right.
        return "model.args" if field == "args" else path.replace(at, "model", 1)

    return Merged(spec={**volumes, "containers": containers}, place=place)


def _joined(first: Any, second: Any) -> Any:
    for each in (first, second):
        if is_unresolved(each):
            return each
    return [*sequence(first), *sequence(second)]
