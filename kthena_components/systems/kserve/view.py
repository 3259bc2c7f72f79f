"""Reads InferenceServices with their runtimes, and LLMInferenceServices.

Source: kserve pkg/controller/v1beta1/inferenceservice/components/predictor.go.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.context import namespace_of
from kthena_components.core.objects.object import Object
from kthena_components.core.templates import HIDDEN
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import key_text
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import (
    count,
    count_or_unknown,
    first_unknown,
    mapping,
    sequence,
    spec_of,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved
from kthena_components.systems.kserve.nodes import (
    RayNodes,
    Shortage,
    compute_mp_nodes,
    compute_ray_nodes,
)

GROUP = "serving.kserve.io"
SERVICE = "InferenceService"
_RUNTIME, _OF_CLUSTER = "ServingRuntime", "ClusterServingRuntime"
RUNTIMES = frozenset({_RUNTIME, _OF_CLUSTER})
GPU_TYPES = ("nvidia.com/gpu", "amd.com/gpu", "intel.com/gpu", "habana.ai/gaudi")
GPU_ANNOTATION = "serving.kserve.io/gpu-resource-types"
PLAIN = frozenset({"cpu", "memory", "storage", "ephemeral-storage"})
"""Resources beside GPUs that the webhooks accept in an engine of several pods."""
EXECUTOR = "multinode/executor-backend"
OWN_RUNTIME = "kserve-huggingfaceserver-multinode"
"""KServe's runtime for several nodes: it states TP 1, PP 1 and no GPU requests."""
MODE, STANDARD = "serving.kserve.io/deploymentMode", ("Standard", "RawDeployment")
AUTOSCALER_CLASS = "serving.kserve.io/autoscalerClass"
MODELS = ("model", "huggingface")
_MOST = 2**31 - 1
_LONGEST_JSON = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container whose resources KServe reads."""

    path: str
    fields: Mapping[str, Any]
    request: MaybeInt | None
    """Requested GPUs; None without a request."""
    limit: MaybeInt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiNode:
    """A workerSpec, whose pods on several nodes form one engine."""

    path: str
    """Path of workerSpec."""
    fields: Mapping[str, Any]
    head: Container
    worker: Container
    tensor: MaybeInt | None
    pipeline: MaybeInt | None
    executor_mp: bool

    @property
    def total(self) -> MaybeInt:
        """Ranks of the engine."""
        product = 1
        for size, name in ((self.tensor, "tensor"), (self.pipeline, "pipeline")):
            if isinstance(size, Unknown):
                return size
            if size is None or size < 1:
                return Unknown(f"{name}ParallelSize is not a size")
            product *= size
        return product if product <= _MOST else Unknown("there are more ranks than possible pods")

    @property
    def nodes(self) -> RayNodes | Shortage | Unknown:
        """The pods that KServe creates for it."""
        return self.nodes_for(self.worker.request, self.head.request)

    def nodes_for(
        self, worker: MaybeInt | None, head: MaybeInt | None
    ) -> RayNodes | Shortage | Unknown:
        """The pods that KServe would create for these requests."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """An InferenceService, or a runtime with its pods."""

    object: Object
    path: str
    """Path of the description of its pods."""
    holder: Mapping[str, Any]
    """The predictor, or the runtime's spec."""
    many: MultiNode | None
    """None if each pod is an engine."""
    runtime: Mapping[str, Any] | None = None
    """Spec of the runtime that its model names, if it is among the objects that are checked."""

    @property
    def is_service(self) -> bool:
        """Whether it is an InferenceService."""
        return self.object.kind == SERVICE

    @property
    def served(self) -> str:
        """Field of the predictor with a model's container; empty for custom containers."""
        keys = MODELS if self.is_service else ()
        return next((key for key in keys if self.holder.get(key) is not None), "")

    @property
    def replicas(self) -> MaybeInt:
        """Minimum number of engines."""
        return count_or_unknown(self.holder.get("minReplicas"), "minReplicas", 1)

    @property
    def annotations(self) -> Mapping[str, Any]:
        """The annotations of the object."""
        return mapping(self.object.metadata.get("annotations"))


def read_service(found: Object) -> Service:
    """Read what the rules, the facts and the pods need."""
    is_service = found.kind == SERVICE
    path = "spec.predictor" if is_service else "spec"
    holder = mapping(found.spec.get("predictor")) if is_service else found.spec
    many = None if holder.get("workerSpec") is None else _many(found, path, holder)
    runtime = _runtime(found, holder) if is_service else None
    return Service(object=found, path=path, holder=holder, many=many, runtime=runtime)


def _runtime(found: Object, predictor: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Find a runtime as KServe does: in the namespace, and then in the cluster."""
    name = mapping(predictor.get("model")).get("runtime")
    if not isinstance(name, str) or unknown_in(name):
        return None
    beside, space = found.context.referenced, namespace_of(found.body)
    for kind, where in ((_RUNTIME, space), (_OF_CLUSTER, "")):
        body = beside.find((GROUP, kind), name, where)
        if body is not None:
            return spec_of(body)
    return None


def _many(found: Object, path: str, holder: Mapping[str, Any]) -> MultiNode:
    """Read workerSpec with its head; sizes are unknown if the runtime is not known."""
    is_service, at = found.kind == SERVICE, f"{path}.workerSpec"
    fields = mapping(holder.get("workerSpec"))
    gap = _runtime_gap(holder) if is_service else None
    backend = mapping(found.spec.get("annotations")).get(EXECUTOR)
    worker = _first(fields.get("containers"))
    return MultiNode(
        path=at,
        fields=fields,
        head=_head(holder, path, gap, is_service=is_service),
        worker=_container(worker, f"{at}.containers[0]", gap),
        tensor=_size(fields.get("tensorParallelSize"), gap),
        pipeline=_size(fields.get("pipelineParallelSize"), gap),
        executor_mp=not is_service and isinstance(backend, str) and backend == "mp",
    )


def _runtime_gap(predictor: Mapping[str, Any]) -> Unknown | None:
    """Explain why fields that the InferenceService leaves out are unknown; None if known."""
    runtime = mapping(predictor.get("model")).get("runtime")
    if gap := unknown_in(runtime):
        return gap
    if runtime is None or runtime == OWN_RUNTIME:
        return None
    return Unknown(f"its runtime {key_text(runtime)} may state what is missing here")


def _size(value: object, gap: Unknown | None) -> MaybeInt | None:
    if value is None and gap is not None:
        return gap
    return count(value, 1)


def _first(containers: object) -> Mapping[str, Any]:
    items = containers if isinstance(containers, list | tuple) else [containers]
    return mapping(items[0] if items else None)


def _head(
    holder: Mapping[str, Any], base: str, gap: Unknown | None, *, is_service: bool
) -> Container:
    model = holder.get("model")
    if is_service and model is not None:
        return _container(mapping(model), f"{base}.model", gap)
    return _container(_first(holder.get("containers")), f"{base}.containers[0]", gap)


def _container(fields: Mapping[str, Any], path: str, gap: Unknown | None) -> Container:
    resources = mapping(fields.get("resources"))
    amounts = [_gpus(resources.get(key)) for key in ("requests", "limits")]
    request = gap if amounts == [None, None] else amounts[0]
    return Container(path=path, fields=fields, request=request, limit=amounts[1])


def _gpus(amounts: object) -> MaybeInt | None:
    """Count the GPUs of KServe's own types; it does not count types of the annotation."""
    if gap := unknown_in(amounts):
        return gap
    for resource in GPU_TYPES:
        amount = mapping(amounts).get(resource)
        if gap := unknown_in(amount):
            return gap
        read = parse_quantity(amount)
        if read is not None and 0 < read <= _MOST and read == read.to_integral_value():
            return int(read)
        if amount is not None and read != 0:
            return Unknown(f"the amount of {resource} is not a count")
    return None


def known_gpus(annotations: Mapping[str, Any]) -> tuple[str, ...]:
    """List the resources that KServe accepts as GPUs: its own, and those in the annotation."""
    return (*GPU_TYPES, *(named_gpus(annotations.get(GPU_ANNOTATION)) or ()))


def named_gpus(value: object) -> tuple[str, ...] | None:
    """Read the annotation that names GPU types; None if KServe cannot read it."""
    if not isinstance(value, str) or len(value) > _LONGEST_JSON or unknown_in(value):
        return () if value is None or unknown_in(value) else None
    try:
        names = json.loads(value)
    except (ValueError, RecursionError):
        return None
    # KServe does not accept an empty list either.
    right = isinstance(names, list) and names and all(isinstance(n, str) and n for n in names)
    return tuple(names) if right else None


def resource_keys(container: Container) -> Iterator[tuple[str, str]]:
    """List the resources that a container names, with their paths."""
    resources = mapping(container.fields.get("resources"))
    for field in ("limits", "requests"):
        for key in mapping(resources.get(field)):
            yield key_text(key), f"{container.path}.resources.{field}"


_REMAINDER = Unknown("dataLocal does not divide data")


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmWorkload:
    """One workload of an LLMInferenceService: the main one, or prefill."""

    path: str
    fields: Mapping[str, Any]
    parallelism: Mapping[str, Any]
    many: bool
    """Whether it has a worker, and so is a LeaderWorkerSet."""
    decodes: bool | None = False
    """Whether it is the main workload beside one for prefill. None: a base may add that."""

    def size(self, name: str) -> MaybeInt | None:
        """Return a size as stated; None if it is not stated or not a number."""
        return count(self.parallelism.get(name))

    def states(self, name: str) -> bool:
        """Return whether a size is stated."""
        return self.parallelism.get(name) is not None

    @property
    def is_prefill(self) -> bool:
        """Whether it is the prefill workload."""
        return self.path.endswith("prefill")

    @property
    def replicas(self) -> MaybeInt:
        """Number of engines."""
        return count_or_unknown(plain(self.fields.get("replicas")), "replicas", 1)

    @property
    def pods(self) -> MaybeInt:
        """Pods of one engine, as KServe counts them."""
        data, local = self.size("data"), self.size("dataLocal")
        gap = first_unknown(data, local, self.size("pipeline"))
        if not self.many:
            return 1
        if gap is not None:
            return gap
        if isinstance(data, int) and isinstance(local, int) and local > 0:
            # kserve-llm-parallelism reports a remainder, and which sizes have none.
            return max(data // local, 1) if data % local == 0 else _REMAINDER
        pipeline = self.size("pipeline")
        return pipeline if isinstance(pipeline, int) and pipeline > 0 else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmService:
    """An LLMInferenceService: a main workload, and an optional one for prefill."""

    object: Object
    workloads: tuple[LlmWorkload, ...]

    @property
    def is_based(self) -> bool:
        """Whether it uses bases, which may state missing fields."""
        return bool(sequence(self.object.spec.get("baseRefs")))


def read_llm_service(found: Object) -> LlmService:
    """Read the workloads of an LLMInferenceService."""
    prefill = found.spec.get("prefill")
    is_open = is_unresolved(prefill) or (prefill is None and bool(found.spec.get("baseRefs")))
    decodes = None if is_open else prefill is not None
    workloads = [_workload("spec", found.spec, decodes=decodes)]
    if prefill is not None:
        workloads.append(_workload("spec.prefill", mapping(prefill)))
    return LlmService(object=found, workloads=tuple(workloads))


def _workload(path: str, fields: Mapping[str, Any], *, decodes: bool | None = False) -> LlmWorkload:
    return LlmWorkload(
        path=path,
        fields=fields,
        parallelism=mapping(fields.get("parallelism")),
        many=fields.get("worker") is not None,
        decodes=decodes,
    )


def plain(value: object) -> object:
    """Replace unknown values by their text in manifests."""
    return HIDDEN if isinstance(value, Unknown) else value
