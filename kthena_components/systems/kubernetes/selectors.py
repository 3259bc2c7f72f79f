"""Lists the selectors of objects that send requests to pods, with their ports.

Source: Kubernetes core/v1 Service; volcano-sh/kthena v1.0.0 pkg/apis/networking/v1alpha1
ModelServer; gateway-api-inference-extension api/v1 and apix/v1alpha2 InferencePool.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import MODEL_SERVER, Object, PodSet
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    is_map,
    mapping,
    sequence,
    unknown_inside,
)
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kubernetes.routers import routers

_SERVICE = ("", "Service")
POOLS = (
    ("inference.networking.k8s.io", "InferencePool"),
    ("inference.networking.x-k8s.io", "InferencePool"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A port at which requests arrive."""

    path: str
    stated: object
    """A number, or the name of a container's port."""
    option: str = ""
    """The option of a command line at the path, if no field states it."""
    by_default: bool = False
    """Whether the option is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Labels of pods that get requests."""

    owner: Object
    path: str
    labels: Mapping[str, Any]
    gap: Unknown | None
    """Why the labels are not known."""
    targets: tuple[Target, ...]
    """Empty: they only find pods."""
    namespace: object = None
    """Where the pods are, if it is not the owner's namespace."""
    option: str = ""
    """The option of a command line with the labels, if no field has them."""

    @property
    def place(self) -> object:
        """The namespace of the pods."""
        return self.owner.namespace if self.namespace is None else self.namespace


def selectors(cluster: ClusterObjects) -> Iterator[Selector]:
    """Return the selectors of Services, ModelServers, InferencePools and routers."""
    for kind, read in _READERS.items():
        for found in cluster.of(kind):
            for path, labels, targets in read(found):
                yield Selector(
                    owner=found,
                    path=path,
                    labels=mapping(labels),
                    gap=unknown_inside(labels),
                    targets=targets,
                )
    yield from _of_routers(cluster)


def _of_routers(cluster: ClusterObjects) -> Iterator[Selector]:
    """Return what routers state in their command lines, once for each namespace of theirs."""
    named = {pods.owner.namespace for pods in cluster.pods if isinstance(pods.owner.namespace, str)}
    every = sorted(named)
    for router in routers(cluster):
        for found in router.finds():
            target = Target(
                path=router.inner,
                stated=found.port,
                option=found.port_option,
                by_default=not found.port_stated,
            )
            for namespace in every if router.namespace is None else [router.namespace]:
                yield Selector(
                    owner=router.owner,
                    path=router.inner,
                    labels=found.labels,
                    gap=found.gap,
                    targets=(target,) if found.port is not None else (),
                    namespace=namespace,
                    option=found.option,
                )


_Read = Iterator[tuple[str, object, tuple[Target, ...]]]


def _of_service(found: Object) -> _Read:
    """Read a Service. A headless one has no ports: it gives names to pods."""
    spec = found.spec
    if spec.get("type") == "ExternalName" or not is_map(spec.get("selector")):
        return
    ports = () if spec.get("clusterIP") == "None" else sequence(spec.get("ports"))
    late = first_unknown(spec.get("type"), spec.get("clusterIP"))
    yield "spec.selector", spec.get("selector"), tuple(_service_ports(ports, late))


def _service_ports(ports: Any, late: Unknown | None) -> Iterator[Target]:
    for index, port in enumerate(map(mapping, ports)):
        if port.get("protocol") in (None, "TCP"):
            field = "port" if port.get("targetPort") in (None, "", 0) else "targetPort"
            yield Target(path=f"spec.ports[{index}].{field}", stated=late or port.get(field))


def _of_server(found: Object) -> _Read:
    """Read a ModelServer. With a pdGroup, the pods of its two sides get the requests."""
    selector, path = mapping(found.spec.get("workloadSelector")), "spec.workloadSelector"
    labels, pair = selector.get("matchLabels"), mapping(selector.get("pdGroup"))
    late = first_unknown(selector.get("pdGroup"), *map(pair.get, ("prefillLabels", "decodeLabels")))
    stated = late or mapping(found.spec.get("workloadPort")).get("port")
    port = () if stated is None else (Target(path="spec.workloadPort.port", stated=stated),)
    sides = [side for side in ("prefillLabels", "decodeLabels") if is_map(pair.get(side))]
    yield f"{path}.matchLabels", labels, () if sides else port
    for side in sides:
        yield f"{path}.pdGroup.{side}", {**mapping(labels), **pair[side]}, port


def _of_pool(found: Object) -> _Read:
    """Read an InferencePool: v1 has matchLabels and several ports, v1alpha2 labels and one."""
    selector, path = mapping(found.spec.get("selector")), "spec.selector"
    if is_map(labels := selector.get("matchLabels")):
        selector, path = labels, f"{path}.matchLabels"
    listed = enumerate(map(mapping, sequence(found.spec.get("targetPorts"))))
    targets = [(f"spec.targetPorts[{i}].number", port.get("number")) for i, port in listed]
    targets.append(("spec.targetPortNumber", found.spec.get("targetPortNumber")))
    ports = tuple(Target(path=at, stated=port) for at, port in targets if port is not None)
    yield path, selector, ports


_READERS = {_SERVICE: _of_service, MODEL_SERVER: _of_server} | dict.fromkeys(POOLS, _of_pool)


def owner_title(pods: PodSet) -> str:
    """Return the kind and the name of the object that makes some pods."""
    return f"{pods.owner.kind} {display(pods.owner.name)}"
