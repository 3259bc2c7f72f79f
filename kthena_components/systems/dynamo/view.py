"""Reads NVIDIA Dynamo's DynamoGraphDeployment and DynamoComponentDeployment.

v1alpha1 has a map of services, with a separate main container and GPUs in `resources.limits.gpu`;
v1beta1 has a list of components with a pod template. The fields of an object decide which of the
two it is. Reading never raises.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.objects.object import Object
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import key_text
from kthena_components.core.values.read import (
    count,
    count_or_unknown,
    mapping,
    sequence,
    text,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown

NVIDIA = "nvidia.com"
GRAPH = (NVIDIA, "DynamoGraphDeployment")
COMPONENT = (NVIDIA, "DynamoComponentDeployment")
EXECUTOR = "nvidia.com/vllm-distributed-executor-backend"
ENABLE_GROVE = "nvidia.com/enable-grove"
LEAST_NODES = 2
"""Least multinode.nodeCount, and its default."""
_SHAPELESS = Unknown("multinode.nodeCount is not a count of 1 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One service or component of a graph."""

    path: str
    fields: Mapping[str, Any]
    name: MaybeText | None
    kind: MaybeText | None
    """Its role in the graph: worker, frontend, epp and so on."""
    alpha: bool
    """Whether it has the form of v1alpha1."""
    shared: tuple[Any, ...] = ()
    """Variables of the graph for all its components."""

    @property
    def nodes(self) -> MaybeInt | None:
        """Pods of one replica; None if invalid."""
        multinode = self.fields.get("multinode")
        if multinode is None:
            return 1
        return unknown_in(multinode) or count(mapping(multinode).get("nodeCount"), LEAST_NODES)

    @property
    def pods(self) -> MaybeInt:
        """Pods of one replica, at least 1."""
        nodes = self.nodes
        return _SHAPELESS if nodes is None or (isinstance(nodes, int) and nodes < 1) else nodes

    @property
    def replicas(self) -> MaybeInt:
        """Number of replicas."""
        replicas = self.fields.get("replicas")
        return (
            replicas if isinstance(replicas, Unknown) else count_or_unknown(replicas, "replicas", 1)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A graph: its components, and the fields that apply to all of them."""

    object: Object
    at: str
    """Path of the components."""
    listed: Any
    """The components as written: a list or a map."""
    components: tuple[Component, ...]

    @property
    def is_single(self) -> bool:
        """Whether it is a single component."""
        return self.object.kind == COMPONENT[1]

    @property
    def is_hidden(self) -> bool:
        """Whether the components, or the whole spec, are not known yet."""
        return bool(unknown_in(self.listed) or unknown_in(self.object.body.get("spec")))

    @property
    def name(self) -> MaybeText | None:
        """The name of the object."""
        return self.object.name

    @property
    def spec(self) -> Mapping[str, Any]:
        """The spec of the object."""
        return self.object.spec

    @property
    def annotations(self) -> Mapping[str, Any]:
        """The annotations of the object."""
        return mapping(self.object.metadata.get("annotations"))

    @property
    def without_grove(self) -> bool:
        """Whether the object disables Grove."""
        value = self.annotations.get(ENABLE_GROVE)
        return isinstance(value, str) and value.lower() == "false"


def read_graph(found: Object) -> Graph:
    """Read what the rules, the facts and the pods need; never raises."""
    spec = found.spec
    components: tuple[Component, ...]
    if found.kind == COMPONENT[1]:
        at, listed = "spec", found.body.get("spec")
        components = (_single(spec, found.name),) if spec else ()
    elif has_services(spec):
        at, listed = "spec.services", spec.get("services")
        components = tuple(_services(spec))
    else:
        at, listed = "spec.components", spec.get("components")
        components = tuple(_components(spec))
    return Graph(object=found, at=at, listed=listed, components=components)


def has_services(spec: Mapping[str, Any]) -> bool:
    """Return whether a graph has the form of v1alpha1."""
    return spec.get("services") is not None and spec.get("components") is None


def _single(spec: Mapping[str, Any], name: MaybeText | None) -> Component:
    alpha = spec.get("podTemplate") is None
    stated = spec.get("serviceName" if alpha else "name")
    kind = text(spec.get("componentType" if alpha else "type"))
    own = name if stated is None else text(stated)
    return Component(path="spec", fields=spec, name=own, kind=kind, alpha=alpha)


def _services(spec: Mapping[str, Any]) -> Iterator[Component]:
    shared = tuple(sequence(spec.get("envs")))
    for key, value in mapping(spec.get("services")).items():
        fields = mapping(value)
        yield Component(
            path=f"spec.services.{key_text(key)}",
            fields=fields,
            name=unknown_in(key) or key_text(key),
            kind=unknown_in(value) or text(fields.get("componentType")),
            alpha=True,
            shared=shared,
        )


def _components(spec: Mapping[str, Any]) -> Iterator[Component]:
    shared = tuple(sequence(spec.get("env")))
    for index, value in enumerate(sequence(spec.get("components"))):
        fields = mapping(value)
        yield Component(
            path=f"spec.components[{index}]",
            fields=fields,
            name=text(fields.get("name")),
            kind=text(fields.get("type")),
            alpha=False,
            shared=shared,
        )
