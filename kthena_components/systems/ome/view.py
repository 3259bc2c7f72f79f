"""Reads OME's runtimes and InferenceServices: an engine and a decoder, each on one or several pods.

Source: sgl-project/ome v0.1.5 pkg/apis/ome/v1beta1/{inference_service,servingruntime_types}.go,
pkg/controller/v1beta1/inferenceservice/components/engine.go (getWorkerSize,
setParallelismEnvVarForEngine), reconcilers/lws, utils/merging.go.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.facts.container import visible_gpus
from kthena_components.core.objects.object import Object
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.read import (
    count_or_unknown,
    inside,
    mapping,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved

GROUP, SERVICE = "ome.io", "InferenceService"
RUNTIMES = ("ClusterServingRuntime", "ServingRuntime")
PARALLELISM = "PARALLELISM_SIZE"
"""Variable of each engine container: the GPUs of all pods of the engine."""
_RUNTIME = Unknown("a runtime says what the InferenceService leaves out")
_NODES = "leader", "worker"
RUNNER = "runner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One of its pods: the only one, the leader, or a worker."""

    path: str
    """Path of its fields, in the object."""
    fields: Mapping[str, Any]

    @property
    def runner(self) -> Mapping[str, Any]:
        """Return the container that starts the engine."""
        return mapping(self.fields.get(RUNNER))

    @property
    def runners(self) -> list[Any]:
        """Return the container that starts the engine, if there is one, known or not."""
        stated = self.fields.get(RUNNER)
        return [stated] if self.runner or is_unresolved(stated) else []

    @property
    def others(self) -> object:
        """Return the other containers."""
        return self.fields.get("containers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """An engine or a decoder."""

    path: str
    name: str
    fields: Mapping[str, Any]
    entry: Node
    worker: Node | None
    pods: MaybeInt
    """Pods of one replica, including the leader."""

    @property
    def parallelism(self) -> MaybeInt:
        """Return the GPUs of all pods, as OME puts them into PARALLELISM_SIZE."""
        return product(visible_gpus(self.entry.runner), self.pods)

    @property
    def replicas(self) -> MaybeInt:
        """Return its replicas; with autoscaling, the least."""
        return count_or_unknown(self.fields.get("minReplicas"), "minReplicas", 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """What a runtime or an InferenceService states about its engine and decoder."""

    object: Object
    parts: tuple[Component, ...]
    partial: bool
    """Whether a runtime adds missing fields."""
    accelerated: Unknown | None
    """Why an AcceleratorClass may change the GPUs. None: it does not."""


def read_components(found: Object) -> Components:
    """Read the components, whatever the object contains."""
    service = found.kind == SERVICE
    spec = found.body.get("spec")
    names = ("engine", "decoder") if service else ("engineConfig", "decoderConfig")
    stated = ((name, inside(spec, name)) for name in names)
    chosen = mapping(spec).get("acceleratorSelector" if service else "acceleratorRequirements")
    gap = unknown_in(spec) or (
        None if chosen is None else Unknown("an AcceleratorClass decides what GPUs its pods get")
    )
    return Components(
        object=found,
        parts=tuple(
            _component(f"spec.{name}", fields, partial=service)
            for name, fields in stated
            if fields is not None
        ),
        partial=service,
        accelerated=gap,
    )


def _component(path: str, stated: object, *, partial: bool) -> Component:
    fields = mapping(stated)
    nodes = {name: inside(stated, name) for name in _NODES}
    several = any(node is not None for node in nodes.values())
    own = nodes["leader"] is not None
    entry = f"{path}.leader" if own else path
    worker = nodes["worker"]
    return Component(
        path=path,
        name=path.rpartition(".")[2].removesuffix("Config"),
        fields=fields,
        entry=_node(entry, nodes["leader"] if own else stated),
        worker=None if worker is None else _node(f"{path}.worker", worker),
        pods=_pods(mapping(worker), partial=partial) if several else 1,
    )


def _node(path: str, stated: object) -> Node:
    """Return a pod. The containers of an unknown one are unknown."""
    fields = {RUNNER: stated} if is_unresolved(stated) else mapping(stated)
    return Node(path=path, fields=fields)


def _pods(worker: Mapping[str, Any], *, partial: bool) -> MaybeInt:
    size = worker.get("size")
    if size is None:
        return _RUNTIME if partial else 1
    number = count_or_unknown(size, "size", 0)
    return number if isinstance(number, Unknown) else number + 1


def nodes_of(part: Component) -> Iterator[Node]:
    """Yield the leader and the workers of a component, or its only pod."""
    yield part.entry
    if part.worker is not None and part.pods != 1:
        yield part.worker
