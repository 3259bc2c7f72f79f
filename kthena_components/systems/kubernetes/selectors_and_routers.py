"""Lists the selectors of a cluster: of Services, ModelServers, InferencePools and routers.

A router states its selector or its addresses in its command line. Whether a selector matches pods
is decided by `selects` in core/objects/cluster_objects.py.

Source: sgl-project/sglang sgl-router/py_src/sglang_router/router_args.py and
src/service_discovery.rs; vllm-project/production-stack src/vllm_router/parsers/parser.py and
service_discovery.py; kubernetes-sigs/gateway-api-inference-extension v1.5.0
pkg/epp/server/options.go.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from kthena_components.core.engines.argv import by_flag, pieces
from kthena_components.core.findings import join_path
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import MODEL_SERVER, Object, PodSet
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.images import read_image
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.read import (
    digits,
    first_unknown,
    is_map,
    mapping,
    sequence,
    unknown_inside,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

PICKER, STACK, SGLANG, TRTLLM = "picker", "stack", "sglang", "trtllm"
"""The programs: a gateway's endpoint picker, the vLLM production stack's router, SGLang's with
those that have its options, and trtllm-serve disaggregated, whose file has the addresses."""
_COMMANDS = regex(r"\n|;|&&|\|\|?|&(?![0-9>])")
_PAIR = regex(r"([A-Za-z0-9][-A-Za-z0-9_./]*)==?([-A-Za-z0-9_.]*)")
_BY_VARIABLE = Unknown("a variable of its script states it")
_DEFAULT_PORTS = {STACK: 8000, SGLANG: 80}


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterLabels:
    """Labels by which a router looks for pods, and the port at which it asks them."""

    option: str
    labels: Mapping[str, str]
    port: object = None
    """None: another object states it."""
    port_option: str = ""
    port_stated: bool = True
    gap: Unknown | None = None
    """Why the labels are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """An address to which a router sends requests."""

    option: str
    url: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Router:
    """A router in a container."""

    pods: PodSet
    inner: str
    """Path of its words, in the object."""
    program: str
    options: Mapping[str, Sequence[str]]

    @property
    def owner(self) -> Object:
        """The object with its pods."""
        return self.pods.owner

    @property
    def path(self) -> str:
        """Path of its words in the caller's input."""
        return self.owner.at(self.inner)

    def value(self, option: str) -> str | None:
        """Return the first word of an option; None if it has none."""
        words = self.options.get(option, ())
        return words[0] if words else None

    @property
    def namespace(self) -> object:
        """The namespace of the pods that it looks for; None for any, or an unknown one."""
        if self.program == PICKER:
            stated = self.value("--pool-namespace")
            return stated if stated and not _is_late(stated) else None
        if self.program == STACK:
            stated = self.value("--k8s-namespace") or "default"
        else:
            stated = self.value("--service-discovery-namespace")
        return None if stated is None or _is_late(stated) else stated

    def finds(self) -> Iterator[RouterLabels]:
        """Return the labels of the pods that it looks for."""
        if self.program == PICKER:
            yield from self._found("--endpoint-selector", "", ",")
        elif self.program == STACK and self.value("--service-discovery") == "k8s":
            if self.value("--k8s-service-discovery-type") in {None, "pod-ip"}:
                yield from self._found("--k8s-label-selector", "--k8s-port", ",")
        elif self.program == SGLANG and "--service-discovery" in self.options:
            pair = ("--prefill-selector", "--decode-selector")
            for option in pair if "--pd-disaggregation" in self.options else ("--selector",):
                yield from self._found(option, "--service-discovery-port", "")

    def _found(self, option: str, port: str, between: str) -> Iterator[RouterLabels]:
        """Read the labels that an option of a router states, and the port that it asks."""
        words = self.options.get(option, ())
        if not words:
            return
        gap = first_unknown(*words) or (_BY_VARIABLE if any(map(_is_late, words)) else None)
        listed = [*words[0].split(between)] if between else [*words]
        found = [_PAIR.fullmatch(part.strip()) for part in listed]
        labels = {pair[1]: pair[2] for pair in found if pair is not None}
        if gap is None and len(labels) < len(found):
            return  # other operators than =
        stated = self.value(port) if port else None
        default = _DEFAULT_PORTS.get(self.program)
        number: object = default if stated is None else _number(stated)
        yield RouterLabels(
            option=option,
            labels=labels,
            port=number if port else None,
            port_option=port,
            port_stated=stated is not None,
            gap=gap,
        )

    def backends(self) -> Iterator[Backend]:
        """Return the addresses that its command line states."""
        if self.program == STACK and self.value("--service-discovery") == "static":
            for url in (self.value("--static-backends") or "").split(","):
                yield from _backend("--static-backends", url)
        if self.program == TRTLLM:
            for field, urls in self.options.items():
                for url in urls:
                    for found in _backend(field, f"http://{url}"):
                        yield replace(found, url=url)
        if self.program == SGLANG and "--service-discovery" not in self.options:
            for option in ("--worker-urls", "--prefill", "--decode"):
                for url in self.options.get(option, ()):
                    yield from _backend(option, url)


def _is_late(word: str) -> bool:
    return "$" in word or first_unknown(word) is not None


def _number(word: str) -> object:
    if _is_late(word):
        return first_unknown(word) or _BY_VARIABLE
    return digits(word)


def _backend(option: str, url: str) -> Iterator[Backend]:
    """Read a URL of an option as host and port; the scheme gives the default port."""
    if _is_late(url) or "://" not in url:
        return
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return
    if parts.hostname:
        usual = 443 if parts.scheme == "https" else 80
        number = usual if port is None else port
        yield Backend(option=option, url=url.strip(), host=parts.hostname, port=number)


def routers(cluster: ClusterObjects) -> Sequence[Router]:
    """Return the routers in the pods of all objects."""
    return cluster.once(_routers)


def _routers(cluster: ClusterObjects) -> Iterator[Router]:
    """List the routers among the containers of all pods, with their options and paths."""
    for pods in cluster.pods:
        if pods.count == 0:
            continue
        ports = cluster.listening(pods)
        if ports is not None and ports.sends:
            sends: dict[str, list[str]] = {}
            for field, url in ports.sends:
                sends.setdefault(field, []).append(url)
            inner = f"{pods.path}.spec.containers[0]"
            yield Router(pods=pods, inner=inner, program=TRTLLM, options=sends)
        for index, container in enumerate(map(mapping, sequence(pods.spec.get("containers")))):
            for field, options in _commands(container):
                program = _program(options)
                if program:
                    at = f"spec.containers[{index}].{field}"
                    inner = join_path(pods.path, at) if pods.written is None else pods.written(at)
                    yield Router(pods=pods, inner=inner, program=program, options=options)


def _commands(container: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Sequence[str]]]]:
    """Return the options of each command of a container, with the field that has them."""
    listed = [
        (field, word)
        for field in ("command", "args")
        for word in sequence(container.get(field))
        if isinstance(word, str)
    ]
    for at, (_, word) in enumerate(listed[:-1]):
        if word.startswith("-") and word.endswith("c") and not word.startswith("--"):
            field, script = listed[at + 1]
            for command in _COMMANDS.split(script.replace("\\\n", " ")):
                yield field, _options(pieces(command))
            return
    if listed:
        with_flag = (field for field, word in listed if word.startswith("--"))
        yield next(with_flag, listed[-1][0]), _options([word for _, word in listed])


def _options(words: Sequence[str]) -> Mapping[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for flag, values in by_flag(words):
        if flag in {"--prefill", "--decode"}:  # each may stand several times
            found.setdefault(flag, []).extend(values)
        else:
            found[flag] = values
    return found


def _program(options: Mapping[str, Sequence[str]]) -> str:
    if "--pool-name" in options or "--endpoint-selector" in options:
        return PICKER
    if (found := options.get("--service-discovery")) is not None:
        return STACK if [*found[:1]] in (["k8s"], ["static"]) else SGLANG
    return SGLANG if {"--worker-urls", "--pd-disaggregation"} & options.keys() else ""


# Lists the selectors of objects that send requests to pods, with their ports.
#
# Source: Kubernetes core/v1 Service; volcano-sh/kthena v1.0.0 pkg/apis/networking/v1alpha1
# ModelServer; gateway-api-inference-extension api/v1 and apix/v1alpha2 InferencePool.


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


def selectors(cluster: ClusterObjects) -> Sequence[Selector]:
    """Return the selectors of Services, ModelServers, InferencePools and routers."""
    return cluster.once(_selectors)


def _selectors(cluster: ClusterObjects) -> Iterator[Selector]:
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


def has_engine(pods: PodSet) -> bool:
    """Return whether pods ask for accelerators, or have an engine's own image."""
    for container in map(mapping, sequence(pods.spec.get("containers"))):
        image, resources = container.get("image"), mapping(container.get("resources"))
        asked = (*mapping(resources.get("limits")), *mapping(resources.get("requests")))
        if any(is_accelerator(str(name)) for name in asked):
            return True
        if isinstance(image, str) and read_image(image).engine is not None:
            return True
    return False


def owner_title(pods: PodSet) -> str:
    """Return the kind and the name of the object that makes some pods."""
    return f"{pods.owner.kind} {display(pods.owner.name)}"
