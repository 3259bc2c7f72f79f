"""The pods that KServe creates, and the part of an object for rules over a stack.

KServe merges an object into its runtime, preset or base, item by item: a variable, container or
volume in the object is in the pods. Pod specs in the object have no surrounding template. Source:
kserve pkg/controller/v1beta1/inferenceservice/components/predictor.go, buildPodSpec;
pkg/controller/v1alpha2/llmisvc/config_merge.go.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.serving import GpuDemand, gpu_demand
from kthena_components.core.objects.object import Object, PodSet, pod_set
from kthena_components.core.objects.retained_fields import kept_pods, only
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.read import mapping, sequence, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown, product, total
from kthena_components.systems.kserve.facts import REFUSED, facts
from kthena_components.systems.kserve.facts_llm import facts as facts_of_llm
from kthena_components.systems.kserve.nodes import RayNodes, Shortage
from kthena_components.systems.kserve.served_models import (
    CLAIM,
    STORAGE_URI,
    Stated,
    claims_of_llm,
    claims_of_service,
    mounted,
)
from kthena_components.systems.kserve.view import MODELS, LlmService, MultiNode, Service
from kthena_components.systems.kubernetes.rules.gpu_budget_and_type_rwx import gpus_of_pods
from kthena_components.systems.system import Body

_PARTS = ("volumes", "imagePullSecrets", "nodeSelector", "affinity")
_CONTAINERS = ("containers", "initContainers")
_HIDDEN = Unknown("the containers are not known yet")


def _pod_set(
    found: Object,
    at: str,
    spec: object,
    number: MaybeInt,
    *,
    spread: bool,
    model: str = "",
    claims: tuple[str, Iterable[Stated]] = ("", ()),
) -> PodSet:
    """Return pods whose spec in the object has no surrounding template.

    Args:
        spread: Whether they are intended for several nodes.
        model: Field next to the containers with the first one; empty if they include it.
        claims: URIs that KServe mounts as volumes, below a path of the object.
    """
    base, stated = claims
    own = sequence(mapping(spec).get("volumes"))
    added = list(mounted(stated))
    places = {f"volumes[{len(own) + i}].": path for i, (path, _) in enumerate(added)}
    if added and unknown_in(spec) is None:
        spec = {**mapping(spec), "volumes": [*own, *(volume for _, volume in added)]}

    def written(path: str) -> str:
        """Translate a path in the composed pod to the field of the service that states it."""
        inner = path.removeprefix("spec.")
        uri = next((to for start, to in places.items() if inner.startswith(start)), None)
        if uri is not None:
            return f"{base}.{uri}"
        if model and inner.startswith("containers["):
            index, rest = inner.removeprefix("containers[").split("]", 1)
            inner = f"containers[{int(index) - 1}]{rest}" if int(index) else model + rest
        return f"{at}.{inner}"

    made = {"spec": spec}
    return pod_set(found, at, made, number, by_controller=True, spread=spread, written=written)


def pods(view: Service) -> Iterator[PodSet]:
    """Return the pods of an InferenceService, without resources: KServe calculates those."""
    found, served, many = view.object, view.served, view.many
    spec = _written(view.holder, *([view.holder[served]] if served else []))
    claims = view.path, tuple(claims_of_service(view.holder, served))
    if many is None:
        yield _pod_set(
            found, view.path, spec, view.replicas, spread=False, model=served, claims=claims
        )
        return
    heads, workers = _numbers(many)
    spread = workers != 0
    yield _pod_set(found, view.path, spec, heads, spread=spread, model=served, claims=claims)
    if spread:
        rest = _written(many.fields)
        yield _pod_set(found, many.path, rest, workers, spread=True, claims=claims)


def _numbers(many: MultiNode) -> tuple[MaybeInt, MaybeInt]:
    """Count the heads and the workers."""
    nodes = many.nodes
    if isinstance(nodes, RayNodes):
        return 1, nodes.pods - 1
    gap = REFUSED if isinstance(nodes, Shortage) else nodes
    return gap, gap


def _written(holder: Mapping[str, Any], *first: object) -> Mapping[str, Any]:
    """Return the stated parts of a pod spec, with given containers first."""
    made: dict[str, Any] = {key: holder.get(key) for key in _PARTS}
    for key, before in zip(_CONTAINERS, (first, ()), strict=True):
        listed = map(mapping, (*before, *sequence(holder.get(key))))
        made[key] = [{k: v for k, v in one.items() if k != "resources"} for one in listed]
    return made


def demand(view: Service) -> GpuDemand:
    """Count the accelerators that KServe gives to the pods of an InferenceService."""
    return replace(gpu_demand(facts(view)), resources=frozenset(_accelerators(view)))


def _accelerators(view: Service) -> Iterator[str]:
    """Name the accelerators that an InferenceService requests."""
    workers = view.many.fields if view.many is not None else {}
    containers = [view.holder.get(view.served)] if view.served else []
    containers += [*sequence(view.holder.get("containers")), *sequence(workers.get("containers"))]
    for container in containers:
        resources = mapping(mapping(container).get("resources"))
        for field in ("limits", "requests"):
            yield from (str(k) for k in mapping(resources.get(field)) if is_accelerator(str(k)))


def pods_of_llm(view: LlmService) -> Iterator[PodSet]:
    """Return the pods of each workload: of its template, and of its worker."""
    claims = "spec", tuple(claims_of_llm(view.object.spec))
    for workload in view.workloads:
        size, replicas = workload.pods, workload.replicas
        rest = size if isinstance(size, Unknown) else size - 1
        for field, number in (("template", replicas), ("worker", product(replicas, rest))):
            stated = workload.fields.get(field)
            spec = _HIDDEN if unknown_in(stated) else stated
            if field == "template" or rest != 0:
                at = f"{workload.path}.{field}"
                yield _pod_set(view.object, at, spec, number, spread=rest != 0, claims=claims)


def demand_of_llm(view: LlmService) -> GpuDemand | None:
    """Return an unknown demand for pods without requests: a base or a preset may add some."""
    if isinstance(total(map(gpus_of_pods, pods_of_llm(view))), Unknown):
        return None
    counted = gpu_demand(facts_of_llm(view)).gpus
    return GpuDemand(gpus=counted) if isinstance(counted, Unknown) else None


def kept(body: Body) -> Body:
    """Keep the fields of the predictor that define its pods and their number."""
    spec = body.get("spec")
    predictor = mapping(spec).get("predictor")
    if not isinstance(predictor, Mapping):
        return {"spec": only(spec, frozenset({"predictor"}))}
    found = _kept_pod(predictor, "minReplicas", "storageUris", "annotations")
    found |= {key: _kept_model(predictor[key]) for key in MODELS if key in predictor}
    if "workerSpec" in predictor:
        worker = predictor["workerSpec"]
        found["workerSpec"] = _kept_pod(worker, "tensorParallelSize", "pipelineParallelSize")
    return {"spec": {"predictor": found}}


def _kept_pod(spec: Any, *beside: str) -> Any:
    """Keep the parts of a pod that rules over all objects read."""
    if not isinstance(spec, Mapping):
        return spec
    own = {key: spec[key] for key in (*_PARTS, *_CONTAINERS) if key in spec}
    pruned = kept_pods({"spec": {"containers": [], **own}})["spec"]
    containers = zip(sequence(spec.get("containers")), sequence(pruned["containers"]), strict=False)
    for was, kept_one in containers:
        _keep_claim(was, kept_one)
    return {**only(spec, frozenset(beside)), **pruned}


def _keep_claim(container: Any, pruned: Any) -> None:
    """Put the variable back that names a claim: pods without it would mount none."""
    for index, item in enumerate(sequence(mapping(container).get("env"))):
        value = mapping(item).get("value")
        named = mapping(item).get("name") == STORAGE_URI
        if named and isinstance(value, str) and (value.startswith(CLAIM) or unknown_in(value)):
            env = pruned.setdefault("env", [])
            env.extend([None] * (index + 1 - len(env)))
            env[index] = {"name": STORAGE_URI, "value": value}


def _kept_model(model: Any) -> Any:
    if not isinstance(model, Mapping):
        return model
    (pruned,) = kept_pods({"spec": {"containers": [model]}})["spec"]["containers"]
    return {**only(model, frozenset({"runtime", "storageUri"})), **pruned}
