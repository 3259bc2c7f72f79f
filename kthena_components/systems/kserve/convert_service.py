"""Reads an InferenceService back to the arguments of a serving.

A ServingRuntime among the files is merged as KServe does. Source: kserve v0.20.0
pkg/controller/v1beta1/inferenceservice/utils/utils.go MergeRuntimeContainers, MergePodSpec.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, SpecError
from kthena_components.core.plan.read_back import (
    described_template,
    filled_map,
    namespaced,
    serving_and_role,
    stated,
    without_env,
)
from kthena_components.core.spec.rules.rollout import scale_budget
from kthena_components.core.templates import lay_over
from kthena_components.core.values.read import (
    count,
    group_kind,
    mapping,
    name_of,
    namespace_or_default,
    sequence,
)
from kthena_components.systems.kserve.emit_objects import RUNTIME
from kthena_components.systems.kserve.nodes import RayNodes, compute_ray_nodes
from kthena_components.systems.kserve.templates import (
    ADDRESS,
    HEAD,
    WORKER,
    gpus_of,
    spellings,
    without_variables,
)
from kthena_components.systems.kserve.view import GPU_TYPES, GROUP, MODELS, SERVICE
from kthena_components.systems.system import Body

MERGED = "runtime"
"""Our field, in an object whose predictor is merged with its runtime."""
_OF_MODEL = ("modelFormat", "runtime", "storageUri")
_NOT_OF_PODS = frozenset(
    {
        "annotations", "autoScaling", "batcher", "canaryTrafficPercent", "containerConcurrency",
        "deploymentStrategy", "labels", "logger", "maxReplicas", "minReplicas", "scaleMetric",
        "scaleMetricType", "scaleTarget", "timeout", "workerSpec",
        "pipelineParallelSize", "tensorParallelSize", *MODELS,
    }
)  # fmt: skip
"""Fields of a predictor or worker that are not fields of a pod."""
_NOT_OF_PREDICTORS = frozenset({"supportedModelFormats", "protocolVersions"})
"""Fields of a runtime by which KServe chooses one."""
_SCHEDULER = "default-scheduler"
CLUSTER_RUNTIME = "ClusterServingRuntime"
_ADDRESS = ({"name": ADDRESS, "value": ""},)
_STORAGE = "STORAGE_URI"
_QUARTER = "25%"
"""Default of both budgets of a Deployment."""


def merged(body: Body, others: Sequence[Body]) -> tuple[Body, tuple[int, ...]]:
    """Merge a predictor with the runtime that it names."""
    predictor = mapping(mapping(body.get("spec")).get("predictor"))
    name, space = mapping(predictor.get("model")).get("runtime"), namespace_or_default(body)
    for index, other in enumerate(others):
        near = group_kind(other) == (GROUP, RUNTIME) and namespace_or_default(other) == space
        if (near or group_kind(other) == (GROUP, CLUSTER_RUNTIME)) and name_of(other) == name:
            whole = _expanded(_merge(predictor, other), str(name_of(body)))
            return _with_predictor(body, whole), (index,)
    return body, ()


def _merge(predictor: Mapping[str, Any], runtime: Body) -> dict[str, Any]:
    """Merge the runtime's pod with the predictor's; containers are merged by their names."""
    spec = {k: v for k, v in mapping(runtime.get("spec")).items() if k not in _NOT_OF_PREDICTORS}
    model = mapping(predictor.get("model"))
    main = {key: value for key, value in model.items() if key not in _OF_MODEL}
    containers = [{"name": HEAD, **main}, *sequence(predictor.get("containers"))]
    own = {key: value for key, value in predictor.items() if key != "model"}
    worker = mapping(predictor.get("workerSpec"))
    named = [{**mapping(one), "name": WORKER} for one in sequence(worker.get("containers"))]
    if "workerSpec" in predictor:
        own["workerSpec"] = {**worker, **({"containers": named} if named else {})}
    whole = lay_over(spec, {**own, "containers": containers})
    kept = {key: model[key] for key in _OF_MODEL if key in model and key != "runtime"}
    return {**whole, "model": kept}


def _expanded(value: Any, name: str) -> Any:
    """Expand the only placeholder of KServe that its own runtimes use."""
    if isinstance(value, Mapping):
        return {key: _expanded(item, name) for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item, name) for item in value]
    return value.replace("{{.Name}}", name) if isinstance(value, str) else value


def _with_predictor(body: Body, predictor: Mapping[str, Any]) -> dict[str, Any]:
    spec = {**mapping(body.get("spec")), "predictor": dict(predictor)}
    return {**body, "spec": spec, MERGED: True}


def filled(body: Body) -> dict[str, Any]:
    """Fill in the number of pods, their scheduler and GPUs, and a stated strategy."""
    metadata = namespaced(body.get("metadata"))
    spec = mapping(body.get("spec"))
    predictor = filled_map(spec.get("predictor"), {"minReplicas": 1, "schedulerName": _SCHEDULER})
    if predictor.get("deploymentStrategy") is not None:
        predictor["deploymentStrategy"] = _filled_strategy(predictor)
    if isinstance(predictor.get("workerSpec"), Mapping):
        sizes = {"tensorParallelSize": 1, "pipelineParallelSize": 1}
        worker = filled_map(predictor["workerSpec"], {"schedulerName": _SCHEDULER, **sizes})
        predictor |= _with_gpus({**predictor, "workerSpec": worker})
    return {**body, "metadata": metadata, "spec": {**spec, "predictor": predictor}}


def _filled_strategy(predictor: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in a strategy, with budgets as numbers of pods; a missing one is not described."""
    strategy = filled_map(predictor["deploymentStrategy"], {"type": "RollingUpdate"})
    if strategy["type"] != "RollingUpdate":
        return strategy
    pods = count(predictor["minReplicas"])
    rolling = filled_map(
        strategy.get("rollingUpdate"), {"maxUnavailable": _QUARTER, "maxSurge": _QUARTER}
    )
    for key, up in (("maxUnavailable", False), ("maxSurge", True)):
        scaled = scale_budget(rolling[key], pods if isinstance(pods, int) else 0, up=up)
        rolling[key] = rolling[key] if scaled is None else scaled
    return {**strategy, "rollingUpdate": rolling}


def _with_gpus(predictor: Mapping[str, Any]) -> dict[str, Any]:
    """Write the GPUs that KServe gives to pods which request none."""
    worker = mapping(predictor["workerSpec"])
    if _gpus(predictor) or _gpus(worker):
        return dict(predictor)
    made = _nodes(predictor, worker)
    return {
        **_requesting(predictor, made.head_gpus),
        "workerSpec": _requesting(worker, made.worker_gpus),
    }


def _requesting(fields: Mapping[str, Any], gpus: int) -> dict[str, Any]:
    """Request GPUs in the first container, as many as the parallel sizes need on a node."""
    containers = sequence(fields.get("containers"))
    if not containers or not isinstance(containers[0], Mapping):
        return dict(fields)
    stated_resources = mapping(containers[0].get("resources"))
    resources = {
        kind: {**mapping(stated_resources.get(kind)), GPU_TYPES[0]: str(gpus)}
        for kind in ("limits", "requests")
    }
    return {**fields, "containers": [{**containers[0], "resources": resources}, *containers[1:]]}


def arguments(body: Body) -> dict[str, Any]:
    """Describe a filled object.

    Raises:
        SpecError: The pods come from a runtime that is not among the files.
    """
    metadata, predictor = mapping(body.get("metadata")), mapping(mapping(body["spec"])["predictor"])
    missing = list(_without_pods(body, predictor))
    if missing:
        raise SpecError(missing, f"{SERVICE} {name_of(body)}")
    name, role = serving_and_role(metadata)
    several, uri = "workerSpec" in predictor, mapping(predictor.get("model")).get("storageUri")
    pods = _several(predictor) if several else _single(predictor)
    return stated(
        name=name,
        namespace=metadata.get("namespace"),
        replicas=predictor.get("minReplicas"),
        recovery_policy=None if several else "RoleRecreate",
        scheduler_name=predictor.get("schedulerName"),
        rollout_strategy=_rollout(predictor),
        roles=[{"name": role, **pods}],
        backend_options=stated(
            storage_uri=uri if several else _stored(predictor),
            keeps_workers=True if several else None,
        )
        or None,
    )


def _without_pods(body: Body, predictor: Mapping[str, Any]) -> Iterator[Finding]:
    """Refuse a service without containers whose runtime is missing or not among the files."""
    if MERGED in body or sequence(predictor.get("containers")):
        return
    runtime = mapping(predictor.get("model")).get("runtime")
    seen = f"is '{runtime}', which is not among the files" if runtime else "is missing"
    yield Finding(
        path="spec.predictor.model.runtime",
        seen=f"{seen}, so the pods are not known",
        remedy="name a ServingRuntime, and add its file",
        rule="convertible",
    )


def _pod(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pod template of a map that holds a pod's spec among other fields."""
    metadata = {key: fields.get(key) for key in ("labels", "annotations")}
    spec = {key: value for key, value in fields.items() if key not in _NOT_OF_PODS}
    return {"metadata": metadata, "spec": spec}


def _single(predictor: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a service on one node; the variable of its storage becomes the model's path."""
    pod = _pod(predictor)
    spec, uri = pod["spec"], _stored(predictor)
    if uri is not None:
        main, *rest = sequence(spec.get("containers"))
        env = [one for one in main["env"] if mapping(one).get("name") != _STORAGE]
        rest = [
            {**{k: v for k, v in main.items() if k != "env"}, **({"env": env} if env else {})},
            *rest,
        ]
        pod = {**pod, "spec": {**spec, "containers": rest}}
    return {"entry_template": _described(pod, predictor, 1, worker=False)}


def _stored(predictor: Mapping[str, Any]) -> object:
    """Return the model that KServe mounts into the first container."""
    listed = sequence(predictor.get("containers"))
    env = sequence(mapping(listed[0]).get("env")) if listed else []
    return next((mapping(e).get("value") for e in env if mapping(e).get("name") == _STORAGE), None)


def _several(predictor: Mapping[str, Any]) -> dict[str, Any]:
    worker = mapping(predictor.get("workerSpec"))
    pods = _nodes(predictor, worker).pods
    templates = {
        "entry_template": _described(_pod(predictor), predictor, pods, worker=False),
        "worker_template": _described(_pod(worker), predictor, pods, worker=True),
    }
    return {"worker_replicas": pods - 1, **templates}


def _nodes(predictor: Mapping[str, Any], worker: Mapping[str, Any]) -> RayNodes:
    """Calculate the pods that KServe creates for the sizes."""
    sizes = [count(worker.get(f"{name}ParallelSize")) for name in ("tensor", "pipeline")]
    tensor, pipeline = (size if isinstance(size, int) and size > 0 else 1 for size in sizes)
    head, rest = (_gpus(fields) for fields in (predictor, worker))
    made = compute_ray_nodes(tensor * pipeline, rest, head)
    return made if isinstance(made, RayNodes) else made.nodes


def _gpus(fields: Mapping[str, Any]) -> int | None:
    containers = [one for one in sequence(fields.get("containers")) if isinstance(one, Mapping)]
    return gpus_of({"spec": {"containers": containers}}) if containers else None


def _described(
    pod: Mapping[str, Any], predictor: Mapping[str, Any], pods: int, *, worker: bool
) -> Any:
    """Leave out what the backend adds: the scheduler, and Kthena's variables."""
    found = described_template(pod, predictor.get("schedulerName"))
    if found is None:
        return None
    return without_env(without_variables(found, _variables(pods, worker=worker)), _ADDRESS)


def _variables(pods: int, *, worker: bool) -> list[dict[str, Any]]:
    address: dict[str, Any] = {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    values: dict[str, dict[str, Any]] = {
        naming.GROUP_SIZE: {"value": str(pods)},
        naming.ENTRY_ADDRESS: {"value": f"$({ADDRESS})"} if worker else address,
        naming.WORKER_INDEX: {"value": "1" if worker else "0"},
    }
    return [{"name": one, **value} for name, value in values.items() for one in spellings(name)]


def _rollout(predictor: Mapping[str, Any]) -> dict[str, Any] | None:
    """Describe the budget in pods; None for the default, one pod at a time."""
    strategy = mapping(predictor.get("deploymentStrategy"))
    rolling = mapping(strategy.get("rollingUpdate"))
    down, up = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    if not rolling or (down, up) == (1, 0):
        return None
    return {"rolling_update_configuration": stated(max_unavailable=down, max_surge=up or None)}
