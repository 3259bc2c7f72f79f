"""OME: its runtimes, and the InferenceServices that use them.

Each has an engine and a decoder, on one or several pods.
Source: sgl-project/ome v0.1.5 pkg/apis/ome/v1beta1/{inference_service,servingruntime_types}.go,
pkg/controller/v1beta1/inferenceservice/components/engine.go (getWorkerSize,
setParallelismEnvVarForEngine), reconcilers/lws, utils/merging.go.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.container import SHM_PATH, visible_gpus
from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import admitted_together, fill_requests, relocated
from kthena_components.core.objects.engine_containers import Sketch
from kthena_components.core.objects.object import Object, PodSet, pod_set
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    count_or_unknown,
    inside,
    mapping,
    name_of,
    sequence,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved, product
from kthena_components.systems.system import Kind, System

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
    """Read a component of an InferenceService: one pod, or a leader with workers."""
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
        pods=_pods_of_replica(mapping(worker), partial=partial) if several else 1,
    )


def _node(path: str, stated: object) -> Node:
    """Return a pod. The containers of an unknown one are unknown."""
    fields = {RUNNER: stated} if is_unresolved(stated) else mapping(stated)
    return Node(path=path, fields=fields)


def _pods_of_replica(worker: Mapping[str, Any], *, partial: bool) -> MaybeInt:
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


_GROUP_SIZE = "LWS_GROUP_SIZE"
_CONTAINERS, _INITS = "spec.containers", "spec.initContainers"
_RDMA, _SHARED = "rdma.ome.io/", "dshm"
_ELSEWHERE = Unknown("a runtime says what its pods get")


def facts(view: Components) -> ServingFacts:
    """Return the facts of all components that state how their engine starts."""
    found = view.object
    engines = (_engine(view, part) for part in view.parts if _is_stated(view, part))
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=tuple(engines),
        # A runtime makes no pods; who places them, an InferenceService says.
        gang_expected=not view.partial or admitted_together(found.metadata),
    )


def _is_stated(view: Components, part: Component) -> bool:
    runner = part.entry.runner
    return not view.partial or "command" in runner or "resources" in runner


def _engine(view: Components, part: Component) -> EngineFacts:
    """Describe the engine of a component, with the variables that OME sets in its pods."""
    pods, parallelism = part.pods, part.parallelism
    env = {_GROUP_SIZE: str(pods)} if isinstance(pods, int) else {}
    if isinstance(parallelism, int) and view.accelerated is None:
        env[PARALLELISM] = str(parallelism)
    worker = part.worker
    return EngineFacts(
        path=view.object.at(part.path),
        name=f"{name_of(view.object.body)}-{part.name}",
        pods=pods,
        replicas=part.replicas,
        entry=_pod(view, _with_rdma(view, part, part.entry), env),
        worker=None
        if worker is None or pods == 1
        else _pod(view, _with_rdma(view, part, worker), env),
    )


def _with_rdma(view: Components, part: Component, node: Node) -> Node:
    """Return a pod with the shared memory that OME's webhook adds for RDMA.

    Source: pkg/webhook/admission/pod/rdma_injector.go, whose only profile is oci-roce.
    """
    own = view.object.metadata.get("annotations") if view.partial else None
    stated = {**mapping(own), **mapping(part.fields.get("annotations"))}
    for hidden in filter(is_unresolved, (own, part.fields.get("annotations"), *stated.values())):
        runner = {**node.runner, "volumeMounts": hidden}  # which it may add
        return replace(node, fields={**node.fields, RUNNER: runner, "volumes": hidden})
    target = stated.get(f"{_RDMA}container-name") or "ome-container"
    profile = stated.get(f"{_RDMA}profile") or "oci-roce"
    if stated.get(f"{_RDMA}auto-inject") != "true" or profile != "oci-roce":
        return node
    if node.runner.get("name") != target:
        return node
    memory = {"name": _SHARED, "emptyDir": {"medium": "Memory"}}
    mount = {"name": _SHARED, "mountPath": SHM_PATH}
    runner = {**node.runner, "volumeMounts": _added(node.runner.get("volumeMounts"), mount)}
    volumes = _added(node.fields.get("volumes"), memory)
    return replace(node, fields={**node.fields, RUNNER: runner, "volumes": volumes})


def _added(stated: object, item: Mapping[str, Any]) -> object:
    """Return a list with one more item, unless it is unknown or has one with this name."""
    names = (mapping(stated_item).get("name") for stated_item in sequence(stated))
    return stated if is_unresolved(stated) or item["name"] in names else [*sequence(stated), item]


def _pod(view: Components, node: Node, env: Mapping[str, str]) -> PodFacts:
    """Read the pod of a node, with its runner as the first container."""
    found, fields = view.object, node.fields
    runner, others = node.runners, node.others
    shift = len(runner)

    def place(path: str) -> str:
        """Translate a path in the composed pod to its field; the runner is the first container."""
        if path.startswith(_CONTAINERS):
            index, bracket, rest = path.removeprefix(f"{_CONTAINERS}[").partition("]")
            if not bracket:
                return found.at(f"{node.path}.runner" if runner else f"{node.path}.containers")
            number = int(index) - shift
            inner = "runner" if number < 0 else f"containers[{number}]"
            return found.at(f"{node.path}.{inner}{rest}")
        return found.at(f"{node.path}.{path.removeprefix('spec.')}")

    spec = {
        "containers": others if is_unresolved(others) else [*runner, *sequence(others)],
        "initContainers": fields.get("initContainers"),
        "volumes": fields.get("volumes"),
        "hostIPC": fields.get("hostIPC"),
    }
    pod = fill_requests(relocated(read_pod({"spec": spec}, "", env, context=found.context), place))
    return _completed(view, pod, found.at(f"{node.path}.runner.resources"))


def _completed(view: Components, pod: PodFacts, at: str) -> PodFacts:
    """Return a pod with unknown GPUs if another object decides them."""
    gap = view.accelerated
    if gap is None and view.partial and not pod.asks_for_gpus:
        gap = _ELSEWHERE
    if gap is None:
        return pod
    device = DeviceFacts(
        path=at, container=pod.container or "", resource="GPUs", limit=gap, request=gap
    )
    return replace(pod, devices=(device,))


_POD_FIELDS = frozenset(
    {
        *("affinity", "automountServiceAccountToken", "dnsConfig", "dnsPolicy", "hostAliases"),
        *("hostIPC", "hostNetwork", "imagePullSecrets", "initContainers", "nodeSelector"),
        *("priorityClassName", "runtimeClassName", "schedulerName", "securityContext"),
        *("serviceAccountName", "shareProcessNamespace", "terminationGracePeriodSeconds"),
        *("tolerations", "topologySpreadConstraints", "volumes"),
    }
)
"""Fields of a pod that OME has beside its own."""


def sketch(view: Components) -> Sketch:
    """Return the engine and the decoder of an InferenceService."""
    found, name = view.object, name_of(view.object.body)
    beside = "OME makes it; --set expose.port=80 writes one"
    return Sketch(
        sets=tuple(pods for part in view.parts for pods in _pod_sets(found, part)),
        beside={f"Service/{name}": beside},
    )


def _pod_sets(found: Object, part: Component) -> Iterator[PodSet]:
    for node in nodes_of(part):

        def place(path: str, node: Node = node) -> str:
            return f"{node.path}.{_inner(path)}"

        yield pod_set(found, node.path, _template(part, node), part.replicas, written=place)


def _template(part: Component, node: Node) -> dict[str, Any]:
    own = {key: item for key, item in node.fields.items() if key in _POD_FIELDS}
    containers = [*([node.runner] if node.runner else []), *sequence(node.others)]
    metadata = {key: mapping(part.fields.get(key)) for key in ("labels", "annotations")}
    return {"metadata": metadata, "spec": {**own, "containers": containers}}


def _inner(path: str) -> str:
    """Map a path in the template to one below the node."""
    own = path.removeprefix("spec.")
    return own.replace("containers[0]", RUNNER, 1) if own.startswith("containers[0]") else own


_NO_PODS = "an InferenceService takes its pods from it, and it has none itself"
_MERGED = "OME merges it with a runtime, so it may leave fields out"


def _kind(name: str, **known: Any) -> Kind[Components]:
    return Kind(group=GROUP, name=name, view=read_components, facts=facts, **known)


SYSTEM = System(
    name="ome",
    title="OME",
    kinds=(
        *(
            _kind(
                name, kept=None, without=dict.fromkeys(("pods", "templates", "restarts"), _NO_PODS)
            )
            for name in RUNTIMES
        ),
        _kind(
            SERVICE,
            sketch=sketch,
            unscalable="has no scale subresource",
            number_in="minReplicas and maxReplicas",
            without=dict.fromkeys(("pods", "templates", "restarts"), _MERGED),
        ),
    ),
)
