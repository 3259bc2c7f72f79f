"""Reads NVIDIA Dynamo's DynamoGraphDeployment and DynamoComponentDeployment.

v1alpha1 has a map of services, with a separate main container and GPUs in `resources.limits.gpu`;
v1beta1 has a list of components with a pod template. The fields of an object decide which of the
two it is. Reading never raises.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.facts.container import SHM_PATH
from kthena_components.core.objects.object import Object
from kthena_components.core.templates import HIDDEN
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
from kthena_components.core.values.regex import regex
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
    """List the components of v1alpha1, a map of services by name."""
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
    """List the components of v1beta1, a list with names."""
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


# The pod template that Dynamo's operator creates for a component, and the paths of its parts.
#
# Source: ai-dynamo/dynamo deploy/operator/internal/dynamo/graph.go, GenerateBasePodSpec.


MAIN = "main"
_GPU = "nvidia.com/gpu"
_COMMON = ("cpu", "memory")
_MEMORY = {"medium": "Memory"}
_CONTAINER = regex(r"spec\.containers\[([0-9]+)\]")
_VOLUME = regex(r"spec\.volumes\[([0-9]+)\]")
_ADDED = regex(r"\.(env|envFrom)\[([0-9]+)\]")


def template_of(component: Component) -> object:
    """Return the pod template that the operator creates, limited to GPUs and commands.

    What the operator adds for several nodes is not included.
    """
    if not component.alpha:
        return _with_shared_memory(component, component.fields.get("podTemplate"))
    extra = component.fields.get("extraPodSpec")
    main = mapping(extra).get("mainContainer")
    envs, resources = component.fields.get("envs"), component.fields.get("resources")
    if unknown_in(component.kind) or any(map(unknown_in, (extra, main))):
        return HIDDEN
    container = {
        **mapping(main),
        "name": MAIN,
        "env": HIDDEN if unknown_in(envs) else _variables(component),
        "resources": _resources(resources, mapping(main).get("resources")),
    }
    rest = {key: value for key, value in mapping(extra).items() if key != "mainContainer"}
    others = rest.get("containers")
    containers = HIDDEN if unknown_in(others) else [container, *sequence(others)]
    return _with_shared_memory(component, {"spec": {**rest, "containers": containers}})


def whole_template_of(component: Component) -> object:
    """Return the template, including Secrets and claims that the operator adds by name."""
    made, fields = template_of(component), component.fields
    if not component.alpha or unknown_in(made):
        return made
    spec, secret = mapping(mapping(made).get("spec")), fields.get("envFromSecret")
    main, *others = sequence(spec.get("containers"))
    given = [] if secret is None else [{"secretRef": {"name": secret}}]
    names = (mapping(mount).get("name") for mount in sequence(fields.get("volumeMounts")))
    claims = [{"persistentVolumeClaim": {"claimName": name}} for name in names]
    volumes = mapping(fields.get("extraPodSpec")).get("volumes")
    return {
        "metadata": fields.get("extraPodMetadata"),
        "spec": {
            **spec,
            "containers": [{**main, "envFrom": [*sequence(main.get("envFrom")), *given]}, *others],
            "volumes": [*sequence(volumes), *claims],
        },
    }


def written(component: Component, path: str) -> str:
    """Map a path in the template to a path in the object."""
    at = component.path
    if not component.alpha:
        return f"{at}.podTemplate.{path}"
    if path.startswith("metadata"):
        return f"{at}.extraPodMetadata{path.removeprefix('metadata')}"
    container, volume = _CONTAINER.match(path), _VOLUME.match(path)
    if container is not None:
        number, rest = int(container[1]), path[container.end() :]
        other = f"{at}.extraPodSpec.containers[{number - 1}]{rest}"
        return other if number else _written_in_main(component, rest)
    own = sequence(mapping(component.fields.get("extraPodSpec")).get("volumes"))
    if volume is not None and int(volume[1]) >= len(own):
        return f"{at}.volumeMounts[{int(volume[1]) - len(own)}].name"
    return f"{at}.extraPodSpec.{path.removeprefix('spec.')}"


def _written_in_main(component: Component, path: str) -> str:
    """Map a path in the main container: the component and the graph add to it."""
    fields, at, main = component.fields, component.path, main_of(component)
    match = _ADDED.match(path)
    if match is not None and (added := int(match[2]) - len(sequence(main.get(match[1])))) >= 0:
        if match[1] == "envFrom":
            return f"{at}.envFromSecret"
        envs, rest = len(sequence(fields.get("envs"))), path[match.end() :]
        return f"{at}.envs[{added}]{rest}" if added < envs else f"spec.envs[{added - envs}]{rest}"
    if path.startswith(".resources") and mapping(fields.get("resources")):
        return f"{at}{path}"
    return f"{at}.extraPodSpec.mainContainer{path}"


def main_of(component: Component) -> Mapping[str, Any]:
    """Return the main container of v1alpha1, as written."""
    return mapping(mapping(component.fields.get("extraPodSpec")).get("mainContainer"))


def _variables(component: Component) -> list[Any]:
    """Return the variables of the main container, the component and the graph, in this order.

    If several set the same one, the component takes precedence, then the graph; null marks the
    others.
    """
    main, own = sequence(main_of(component).get("env")), sequence(component.fields.get("envs"))
    stated, shared = set(map(_name, own)), set(map(_name, component.shared))
    return [*_without(main, stated | shared), *own, *_without(component.shared, stated)]


def _name(variable: object) -> str | None:
    name = mapping(variable).get("name")
    return name if isinstance(name, str) else None


def _without(variables: Sequence[Any], names: set[str | None]) -> list[Any]:
    beaten = names - {None}
    return [None if _name(item) in beaten else item for item in variables]


def _resources(own: object, main: object) -> object:
    """Convert v1alpha1 resources to those of a container; the component's override the main's."""
    if unknown_in(own) or unknown_in(main):
        return HIDDEN
    made: dict[str, Any] = {}
    for kind in ("limits", "requests"):
        stated, beneath = mapping(own).get(kind), mapping(main).get(kind)
        if unknown_in(stated) or unknown_in(beneath):
            made[kind] = HIDDEN
        elif stated is not None or beneath is not None:
            made[kind] = _merged(_amounts(mapping(stated)), mapping(beneath))
    claims = mapping(own).get("claims") or mapping(main).get("claims")
    return made if claims is None else {**made, "claims": HIDDEN if unknown_in(claims) else claims}


def _amounts(item: Mapping[str, Any]) -> dict[Any, Any]:
    """Read amounts as Kubernetes names them; `gpuType` is the resource of `gpu`."""
    amounts: dict[Any, Any] = {key: item[key] for key in _COMMON if item.get(key) is not None}
    gpu, kind = item.get("gpu"), item.get("gpuType")
    if unknown_in(kind):
        amounts[_GPU] = HIDDEN
    elif gpu is not None:
        amounts[kind if isinstance(kind, str) and kind else _GPU] = (
            HIDDEN if unknown_in(gpu) else gpu
        )
    return {**amounts, **mapping(item.get("custom"))}


def _merged(own: dict[Any, Any], main: Mapping[Any, Any]) -> dict[Any, Any]:
    """Merge two values. If they state different GPUs, the result is unknown."""
    unlike = {key for key in own if key in main and str(own[key]) != str(main[key])}
    return {**main, **own, **{key: HIDDEN for key in unlike if key not in _COMMON}}


def _with_shared_memory(component: Component, template: object) -> object:
    """Add the memory volume that the operator mounts, unless the component disables it."""
    spec = mapping(template).get("spec")
    containers = mapping(spec).get("containers")
    if unknown_in(template) or unknown_in(spec) or unknown_in(containers):
        return HIDDEN
    if _without_memory(component) or not sequence(containers):
        return template
    volumes = [*sequence(mapping(spec).get("volumes")), {"name": "dshm", "emptyDir": _MEMORY}]
    mounted = [_mounted(container) for container in sequence(containers)]
    return {
        **mapping(template),
        "spec": {**mapping(spec), "containers": mounted, "volumes": volumes},
    }


def _mounted(container: Any) -> Any:
    """Return a container with the volume that the operator mounts at /dev/shm."""
    mounts = mapping(container).get("volumeMounts")
    if unknown_in(container) or not isinstance(container, Mapping) or unknown_in(mounts):
        return HIDDEN if unknown_in(container) else container
    mount = {"name": "dshm", "mountPath": SHM_PATH}
    return {**container, "volumeMounts": [*sequence(mounts), mount]}


def _without_memory(component: Component) -> bool:
    if component.alpha:
        return mapping(component.fields.get("sharedMemory")).get("disabled") is True
    return str(component.fields.get("sharedMemorySize")) in {"0", "0Gi", "0.0"}
