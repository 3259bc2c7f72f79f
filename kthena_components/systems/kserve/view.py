"""How a multi-node InferenceService or ServingRuntime is read, and KServe's GPU arithmetic.

Source: kserve pkg/controller/v1beta1/inferenceservice/components/predictor.go.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.values.display import key_text
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import count, mapping, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown

GROUP = "serving.kserve.io"
SERVICE = "InferenceService"
RUNTIMES = frozenset({"ClusterServingRuntime", "ServingRuntime"})
GPU_TYPES = ("nvidia.com/gpu", "amd.com/gpu", "intel.com/gpu", "habana.ai/gaudi")
GPU_ANNOTATION = "serving.kserve.io/gpu-resource-types"
EXECUTOR = "multinode/executor-backend"
OWN_RUNTIME = "kserve-huggingfaceserver-multinode"
"""KServe's runtime for many nodes: it states TP 1, PP 1 and no GPU requests."""
_MOST = 2**31 - 1
_LONGEST_JSON = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RayNodes:
    """The pods that KServe makes for one engine, and the GPUs that it gives them."""

    pods: int
    worker_gpus: int
    head_gpus: int

    @property
    def held(self) -> int:
        """GPUs of all pods together."""
        return self.head_gpus + self.worker_gpus * (self.pods - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """Requests that KServe refuses to deploy: they hold fewer GPUs than there are ranks."""

    nodes: RayNodes


def compute_ray_nodes(
    total: int, worker_gpus: int | None, head_gpus: int | None
) -> RayNodes | Shortage:
    """Deal the GPUs out as KServe does with Ray: computeRayNodeAndGPUs.

    Args:
        total: tensor × pipeline, 1 or more.
        worker_gpus: GPUs that the worker container requests; 0 and None are the same.
        head_gpus: GPUs that the head container requests.
    """
    worker, head = worker_gpus or 0, head_gpus or 0
    if worker > 0:
        pods = -(-total // worker)
        if head <= 0:
            head = total - worker * (pods - 1)
        elif head >= total:
            pods = 1
        if pods == 1:
            worker, head = 0, total
    elif head > 0:
        worker, pods = 1, 1 + max(0, total - head)
    else:
        pods, worker, head = total, 1, 1
    nodes = RayNodes(pods=pods, worker_gpus=worker, head_gpus=head)
    return Shortage(nodes=nodes) if total > nodes.held else nodes


def compute_mp_nodes(tensor: int, pipeline: int) -> RayNodes:
    """Deal the GPUs out as KServe does without Ray: a pod for each stage, whatever is requested."""
    return RayNodes(pods=pipeline, worker_gpus=tensor, head_gpus=tensor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container whose resources KServe reads."""

    path: str
    fields: Mapping[str, Any]
    request: MaybeInt | None
    """GPUs that it requests; None when it requests none."""
    limit: MaybeInt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiNode:
    """An InferenceService or a runtime with a workerSpec."""

    kind: str
    path: str
    """Where workerSpec stands."""
    worker_spec: Mapping[str, Any]
    holder: Mapping[str, Any]
    """The predictor, or the runtime's spec."""
    annotations: Mapping[str, Any]
    metadata: Mapping[str, Any]
    head: Container
    worker: Container
    tensor: MaybeInt | None
    pipeline: MaybeInt | None
    executor_mp: bool

    @property
    def is_service(self) -> bool:
        """Whether it is an InferenceService."""
        return self.kind == SERVICE

    @property
    def total(self) -> MaybeInt:
        """Ranks of the engine."""
        product = 1
        for size, name in ((self.tensor, "tensor"), (self.pipeline, "pipeline")):
            if isinstance(size, Unknown):
                return size
            if size is None or size < 1:
                return Unknown(f"{name}ParallelSize is no size")
            product *= size
        return product if product <= _MOST else Unknown("there are more ranks than pods can be")

    @property
    def nodes(self) -> RayNodes | Shortage | Unknown:
        """What KServe makes of it."""
        return self.nodes_for(self.worker.request, self.head.request)

    def nodes_for(
        self, worker: MaybeInt | None, head: MaybeInt | None
    ) -> RayNodes | Shortage | Unknown:
        """What KServe would make of these requests."""
        total = self.total
        if isinstance(total, Unknown):
            return total
        if self.executor_mp and isinstance(self.tensor, int) and isinstance(self.pipeline, int):
            return compute_mp_nodes(self.tensor, self.pipeline)
        for value in (worker, head):
            if isinstance(value, Unknown):
                return value
        known = (value if isinstance(value, int) else None for value in (worker, head))
        return compute_ray_nodes(total, *known)


def read_multi_node(manifest: object) -> MultiNode | None:
    """Read what the rules need; None when there is no workerSpec."""
    body = mapping(manifest)
    spec, metadata = mapping(body.get("spec")), mapping(body.get("metadata"))
    kind = body.get("kind")
    service = kind == SERVICE
    base, holder = "spec", spec
    if service:
        base, holder = "spec.predictor", mapping(spec.get("predictor"))
    worker_spec = holder.get("workerSpec")
    if worker_spec is None:
        return None
    worker_spec = mapping(worker_spec)
    annotations = mapping(metadata.get("annotations"))
    gap = _runtime_gap(holder) if service else None
    containers = worker_spec.get("containers")
    at = f"{base}.workerSpec"
    backend = mapping(spec.get("annotations")).get(EXECUTOR)
    return MultiNode(
        kind=SERVICE if service else "ServingRuntime",
        path=at,
        worker_spec=worker_spec,
        holder=holder,
        annotations=annotations,
        metadata=metadata,
        head=_head(holder, base, annotations, gap, service=service),
        worker=_container(_first(containers), f"{at}.containers[0]", annotations, gap),
        tensor=_size(worker_spec.get("tensorParallelSize"), gap),
        pipeline=_size(worker_spec.get("pipelineParallelSize"), gap),
        executor_mp=not service and isinstance(backend, str) and backend == "mp",
    )


def _runtime_gap(predictor: Mapping[str, Any]) -> Unknown | None:
    """Say why what the InferenceService leaves out is not known, if it is not."""
    runtime = mapping(predictor.get("model")).get("runtime")
    if gap := unknown_in(runtime):
        return gap
    if runtime is None or runtime == OWN_RUNTIME:
        return None
    return Unknown(f"its runtime {key_text(runtime)} may state what is left out here")


def _size(value: object, gap: Unknown | None) -> MaybeInt | None:
    if value is None and gap is not None:
        return gap
    return count(value, 1)


def _first(containers: object) -> Mapping[str, Any]:
    items = containers if isinstance(containers, list | tuple) else [containers]
    return mapping(items[0] if items else None)


def _head(
    holder: Mapping[str, Any],
    base: str,
    annotations: Mapping[str, Any],
    gap: Unknown | None,
    *,
    service: bool,
) -> Container:
    model = holder.get("model")
    if service and model is not None:
        return _container(mapping(model), f"{base}.model", annotations, gap)
    found = _first(holder.get("containers"))
    return _container(found, f"{base}.containers[0]", annotations, gap)


def _container(
    fields: Mapping[str, Any], path: str, annotations: Mapping[str, Any], gap: Unknown | None
) -> Container:
    resources = mapping(fields.get("resources"))
    amounts = [_gpus(resources.get(key), annotations) for key in ("requests", "limits")]
    request = gap if amounts == [None, None] else amounts[0]
    return Container(path=path, fields=fields, request=request, limit=amounts[1])


def _gpus(amounts: object, annotations: Mapping[str, Any]) -> MaybeInt | None:
    if gap := unknown_in(amounts):
        return gap
    for resource in known_gpus(annotations):
        amount = mapping(amounts).get(resource)
        if gap := unknown_in(amount):
            return gap
        read = parse_quantity(amount)
        if read is not None and 0 < read <= _MOST and read == read.to_integral_value():
            return int(read)
        if amount is not None and read != 0:
            return Unknown(f"the amount of {resource} is no count")
    return None


def known_gpus(annotations: Mapping[str, Any]) -> tuple[str, ...]:
    """List the resources that KServe takes for GPUs: its own, and those that are named to it."""
    return (*GPU_TYPES, *(named_gpus(annotations.get(GPU_ANNOTATION)) or ()))


def named_gpus(value: object) -> tuple[str, ...] | None:
    """Read the annotation that names GPU types; None for what KServe cannot read."""
    if not isinstance(value, str) or len(value) > _LONGEST_JSON or unknown_in(value):
        return () if value is None or unknown_in(value) else None
    try:
        names = json.loads(value)
    except (ValueError, RecursionError):
        return None
    right = isinstance(names, list) and all(isinstance(name, str) and name for name in names)
    return tuple(names) if right else None


def resource_keys(container: Container) -> Iterator[tuple[str, str]]:
    """List the resources that a container names, with their paths."""
    resources = mapping(container.fields.get("resources"))
    for field in ("limits", "requests"):
        for key in mapping(resources.get(field)):
            yield key_text(key), f"{container.path}.resources.{field}"
