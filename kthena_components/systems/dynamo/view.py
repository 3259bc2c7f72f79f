"""How NVIDIA Dynamo's DynamoGraphDeployment and DynamoComponentDeployment are read.

v1alpha1 has a map of services, whose main container stands apart and whose GPUs are counted in
`resources.limits.gpu`; v1beta1 has a list of components with a pod template. Which of the two an
object is, is read from its fields. Nothing in a manifest makes this raise.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.facts.container import SHM_PATH
from kthena_components.core.templates.patches import HIDDEN
from kthena_components.core.values.display import key_text
from kthena_components.core.values.read import count, items, mapping, text, unknown_in
from kthena_components.core.values.unknown import MaybeInt, MaybeText

NVIDIA = "nvidia.com"
GRAPH = (NVIDIA, "DynamoGraphDeployment")
COMPONENT = (NVIDIA, "DynamoComponentDeployment")
EXECUTOR = "nvidia.com/vllm-distributed-executor-backend"
ENABLE_GROVE = "nvidia.com/enable-grove"
MAIN = "main"
GPU = "nvidia.com/gpu"
_FEWEST_NODES = 2
_COMMON = ("cpu", "memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One service or component of a graph."""

    path: str
    fields: Mapping[str, Any]
    name: MaybeText | None
    kind: MaybeText | None
    """What it is in the graph: worker, frontend, epp and so on."""
    alpha: bool
    """Whether it is written as in v1alpha1."""
    shared: tuple[Any, ...] = ()
    """Variables that the graph gives all its components."""

    @property
    def nodes(self) -> MaybeInt | None:
        """Pods of one replica; None when that is not a count."""
        multinode = self.fields.get("multinode")
        if multinode is None:
            return 1
        return unknown_in(multinode) or count(mapping(multinode).get("nodeCount"), _FEWEST_NODES)

    @property
    def main_path(self) -> str:
        """Where the main container stands, in v1alpha1."""
        return f"{self.path}.extraPodSpec.mainContainer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The components, and what is asked of all of them."""

    kind: str
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    name: MaybeText | None
    at: str
    """Where the components are listed."""
    listed: object
    """That list or map, as it is written."""
    components: tuple[Component, ...]

    @property
    def annotations(self) -> Mapping[str, Any]:
        """The annotations of the object."""
        return mapping(self.metadata.get("annotations"))

    @property
    def without_grove(self) -> bool:
        """Whether the object asks for pods that Grove does not make."""
        value = self.annotations.get(ENABLE_GROVE)
        return isinstance(value, str) and value.lower() == "false"


def read_graph(manifest: object) -> Graph:
    """Read what the rules and the facts need from whatever a manifest contains."""
    body = mapping(manifest)
    metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
    components: tuple[Component, ...]
    kind, name = text(body.get("kind"), ""), text(mapping(metadata).get("name"))
    if kind == COMPONENT[1]:
        at, listed = "spec", body.get("spec")
        components = (_single(spec, name),) if spec else ()
    elif spec.get("services") is not None and spec.get("components") is None:
        at, listed = "spec.services", spec.get("services")
        components = tuple(_services(spec))
    else:
        at, listed = "spec.components", spec.get("components")
        components = tuple(_components(spec))
    return Graph(
        kind=kind if isinstance(kind, str) else "",
        metadata=metadata,
        spec=spec,
        name=name,
        at=at,
        listed=listed,
        components=components,
    )


def _single(spec: Mapping[str, Any], name: MaybeText | None) -> Component:
    alpha = spec.get("podTemplate") is None
    stated = spec.get("serviceName" if alpha else "name")
    kind = text(spec.get("componentType" if alpha else "type"))
    own = name if stated is None else text(stated)
    return Component(path="spec", fields=spec, name=own, kind=kind, alpha=alpha)


def _services(spec: Mapping[str, Any]) -> Iterator[Component]:
    shared = tuple(items(spec.get("envs")))
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
    shared = tuple(items(spec.get("env")))
    for index, value in enumerate(items(spec.get("components"))):
        fields = mapping(value)
        yield Component(
            path=f"spec.components[{index}]",
            fields=fields,
            name=text(fields.get("name")),
            kind=text(fields.get("type")),
            alpha=False,
            shared=shared,
        )


def template_of(component: Component) -> object:
    """Give the pod template that the operator makes, as far as it counts GPUs and commands.

    What the operator adds to run over several nodes is not in it.
    """
    if not component.alpha:
        return _with_shared_memory(component, component.fields.get("podTemplate"))
    extra = component.fields.get("extraPodSpec")
    main = mapping(extra).get("mainContainer")
    envs, resources = component.fields.get("envs"), component.fields.get("resources")
    if unknown_in(component.kind) or any(map(unknown_in, (extra, main))):
        return HIDDEN
    every = [*items(mapping(main).get("env")), *items(envs), *component.shared]
    container = {
        **mapping(main),
        "name": MAIN,
        "env": HIDDEN if unknown_in(envs) else every,
        "resources": _resources(resources, mapping(main).get("resources")),
    }
    rest = {key: value for key, value in mapping(extra).items() if key != "mainContainer"}
    others = rest.get("containers")
    containers = HIDDEN if unknown_in(others) else [container, *items(others)]
    return _with_shared_memory(component, {"spec": {**rest, "containers": containers}})


def _resources(own: object, main: object) -> object:
    """Write the resources of v1alpha1 as a container has them; own ones go before the main's."""
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
    amounts: dict[Any, Any] = {key: item[key] for key in _COMMON if item.get(key) is not None}
    gpu, kind = item.get("gpu"), item.get("gpuType")
    if unknown_in(kind):
        amounts[GPU] = HIDDEN
    elif gpu is not None:
        amounts[kind if isinstance(kind, str) and kind else GPU] = (
            HIDDEN if unknown_in(gpu) else gpu
        )
    return {**amounts, **mapping(item.get("custom"))}


def _merged(own: dict[Any, Any], main: Mapping[Any, Any]) -> dict[Any, Any]:
    """Lay one over the other. Where they state different GPUs, nothing is certain."""
    unlike = {key for key in own if key in main and str(own[key]) != str(main[key])}
    return {**main, **own, **{key: HIDDEN for key in unlike if key not in _COMMON}}


def _with_shared_memory(component: Component, template: object) -> object:
    """Add the volume in memory that the operator mounts, unless the component does without."""
    spec = mapping(template).get("spec")
    containers = mapping(spec).get("containers")
    if unknown_in(template) or unknown_in(spec) or unknown_in(containers):
        return HIDDEN
    if _without_memory(component) or not items(containers):
        return template
    volumes = [*items(mapping(spec).get("volumes")), {"name": "dshm", "emptyDir": _MEMORY}]
    mounted = [_mounted(container) for container in items(containers)]
    return {
        **mapping(template),
        "spec": {**mapping(spec), "containers": mounted, "volumes": volumes},
    }


_MEMORY = {"medium": "Memory"}


def _mounted(container: Any) -> Any:
    mounts = mapping(container).get("volumeMounts")
    if unknown_in(container) or not isinstance(container, Mapping) or unknown_in(mounts):
        return HIDDEN if unknown_in(container) else container
    mount = {"name": "dshm", "mountPath": SHM_PATH}
    return {**container, "volumeMounts": [*items(mounts), mount]}


def _without_memory(component: Component) -> bool:
    if component.alpha:
        return mapping(component.fields.get("sharedMemory")).get("disabled") is True
    return str(component.fields.get("sharedMemorySize")) in {"0", "0Gi", "0.0"}
