"""Reads the parts of an engine whose head and workers are objects, such as two StatefulSets.

Reads the address at which the pods of one object look for a pod of another one.

Source: Kubernetes DNS-Based Service Discovery 1.1.0, 2.3 and 2.4; the search domains of a pod in
kubernetes pkg/kubelet/network/dns/dns.go.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from kthena_components.core import naming
from kthena_components.core.engines import CommandFacts
from kthena_components.core.engines.programs import RAY_SCRIPTS
from kthena_components.core.facts.context import NO_CONTEXT, Context, in_object
from kthena_components.core.facts.members import with_siblings
from kthena_components.core.facts.network import PORT_OPTIONS, service_asked
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.facts.workload import (
    NOT_STATED,
    OnlyTemplate,
    is_serving,
    may_have_ranks,
    only_template,
    pods_of_template,
)
from kthena_components.core.findings import join_path
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import read_image
from kthena_components.core.values.read import (
    count_or_unknown,
    digits,
    group_kind,
    inside,
    is_name,
    mapping,
    name_of,
    sequence,
    unknown_inside,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, Unknown

_SET = ("apps", "StatefulSet")
_UNNAMED = frozenset({("apps", "Deployment"), ("apps", "ReplicaSet")})
"""Kinds whose pods have no names in DNS unless their template states one."""
_SIGNS = (
    *("--nnodes", "ray start", "kv_connector", "--disaggregation-mode", *RAY_SCRIPTS),
    *("--data-parallel-size-local", "--data_parallel_size_local", "-dpl"),
    *("--data-parallel-rank", "--data_parallel_rank", "-dpn"),
)
_RAY_IMAGES = frozenset({"rayproject/ray", "rayproject/ray-llm", "rayproject/ray-ml"})
_IDLE_WORDS = ("sleep", "tail")
"""Words of commands that do nothing."""
SERVICE = ("", "Service")
_RAY_START = r"\bray\s+start\b"
_RAY_ADDRESS = regex(
    # Up to the next start: to look beyond it from each start would take the square of the time.
    rf"{_RAY_START}(?:(?!{_RAY_START})[^;&|\n])*?--address[=\s]+[\"']?([A-Za-z0-9.-]+):(\d+)"
)
_HOST = regex(r"(?:tcp://)?([A-Za-z0-9][A-Za-z0-9.-]*)(?::(\d+))?")
_ORDINAL = regex(r"-\d+$")
_MEETING = ("--master-addr", "--dist-init-addr")
_COPIES_MEET = ("--data-parallel-address", "--master-addr")
_SEVERAL = 2
NUMBERED = regex(r"(.+)-(\d{1,9})")
_ELSEWHERE = Unknown("the ports of the Service are not known")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnginePart:
    """An object with the head or the workers of an engine."""

    path: str
    name: str
    namespace: str
    names: frozenset[str]
    """The names by which other pods find it."""
    labels: frozenset[tuple[str, str]]
    """The labels of its pods."""
    labelled: bool = True
    """Whether all of them are known."""
    asks: str
    """The host of the head, as its command states it; empty if it states none."""
    port: int | None = None
    """The port there. None: not known."""
    count: int
    pod: PodFacts
    commands: tuple[CommandFacts, ...] = ()
    """The command lines of its pods, or the one that all of them have."""
    kind: str = "StatefulSet"
    service: object = None
    """The serviceName of a StatefulSet."""
    start: int | None = 0
    """The number of the first pod of a StatefulSet. None: not known."""
    own_names: bool = False
    """Whether its template states a host name."""
    gang: str = ""
    """The PodGroup that its pods name. Empty: none, or it is not known."""


def read_engine_part(
    body: Mapping[str, Any],
    path: str = "",
    context: Context = NO_CONTEXT,
    made: OnlyTemplate | None = None,
) -> EnginePart | None:
    """Read an object with a part of an engine; None for anything else.

    Args:
        made: Its only template, for a kind of another system.
    """
    made = made or only_template(body)
    if made is None:
        return None
    metadata = mapping(body.get("metadata"))
    is_own = naming.GROUP_NAME in mapping(metadata.get("labels"))  # joined by its labels
    spec = mapping(made.body.get("spec"))
    listed = None if is_own else spec.get("containers")
    if not listed or not is_name(metadata.get("name")):
        return None
    context = in_object(context, body)
    text = json.dumps([listed, *context.texts_in(spec.get("volumes"))], default=str)
    has_sign = any(sign in text for sign in _SIGNS)
    if not has_sign and not (any(word in text for word in _IDLE_WORDS) and _may_sleep(made)):
        return None
    at, count = join_path(path, made.path), made.number
    pods = [*filter(is_serving, pods_of_template(made.body, at, context))]
    if len(pods) != 1 or not isinstance(count, int) or count < 0:
        return None
    if not has_sign and not pods[0].idle:
        return None
    return _with_names(_part(body, made, pods[0], text, context), body, made, at)


def _part(
    body: Mapping[str, Any], made: OnlyTemplate, read: PodFacts, text: str, context: Context
) -> EnginePart:
    """Return a part without its path and the names by which other pods find it."""
    metadata = mapping(body.get("metadata"))
    count = made.number if isinstance(made.number, int) else 0
    name = str(metadata.get("name"))
    commands = _commands(read, made.body, body, context)
    pod = replace(read, command=commands[0]) if len(commands) == count == 1 else read
    asks, port = _head_host_and_port(pod, text)
    return EnginePart(
        path="",
        name=name,
        namespace=str(metadata.get("namespace") or ""),
        names=frozenset({name}),
        labels=frozenset(),
        asks=asks,
        port=port,
        count=count,
        pod=pod,
        commands=commands,
    )


def _may_sleep(made: OnlyTemplate) -> bool:
    """Return whether pods may sleep that could run an engine, by their images and accelerators."""
    listed = [*map(mapping, sequence(mapping(made.body.get("spec")).get("containers")))]
    words = str([(each.get("command"), each.get("args")) for each in listed])
    if not any(word in words for word in _IDLE_WORDS):
        return False
    images = [read_image(str(each.get("image", ""))) for each in listed]
    known = any(image.engine or image.repository in _RAY_IMAGES for image in images)
    return known and may_have_ranks(made)


def _with_names(
    part: EnginePart, body: Mapping[str, Any], made: OnlyTemplate, path: str
) -> EnginePart:
    """Add the path, the names and labels by which other pods find those of a part, and its gang."""
    kind, spec = group_kind(body), mapping(body.get("spec"))
    service = spec.get("serviceName")
    start = count_or_unknown(inside(spec.get("ordinals"), "start"), "start", 0)
    stated = mapping(made.body.get("metadata"))
    labels = mapping(stated.get("labels"))
    gang = mapping(stated.get("annotations")).get(naming.POD_GROUP)
    return replace(
        part,
        path=path,
        names=part.names | ({service} if isinstance(service, str) and service else set()),
        labels=frozenset((str(key), str(value)) for key, value in labels.items()),
        labelled=unknown_inside(stated, labels) is None,
        kind=kind[1],
        service=service,
        start=start if isinstance(start, int) else None,
        own_names=kind not in _UNNAMED or "hostname" in mapping(made.body.get("spec")),
        gang=gang if is_name(gang) else "",
    )


def _commands(
    pod: PodFacts, template: Mapping[str, Any], body: Mapping[str, Any], context: Context
) -> tuple[CommandFacts, ...]:
    """Return the command lines of the pods of a part, each with the number of its pod."""
    spec, name = mapping(body.get("spec")), name_of(body) if group_kind(body) == _SET else ""
    engine = EngineFacts(path="", name=name, pods=NOT_STATED, replicas=1, entry=pod, worker=None)
    (found,) = with_siblings([engine], template, spec, name=name, context=context)
    read = found.siblings.commands if found.siblings is not None else ()
    return read or (() if pod.command is None else (pod.command,))


def _head_host_and_port(pod: PodFacts, text: str) -> tuple[str, int | None]:
    """Return the host and the port at which a pod looks for the head, or has it."""
    command = pod.command
    if command is not None and command.engine is not None and command.ray_role == "head":
        return "", digits(command.ray_port)
    if command is not None and command.engine is not None:
        by_copies = spreads_copies(command)
        options = _COPIES_MEET if by_copies else _MEETING
        stated = next((v for key in options if (v := command.options.get(key))), None)
        found = _HOST.fullmatch(stated) if isinstance(stated, str) else None
        option, default = PORT_OPTIONS["--data-parallel-address" if by_copies else "--master-addr"]
        port = command.options.get(option, default) if command.engine == "vllm" else None
        if by_copies and command.headless is False:
            return "", port if isinstance(port, int) else None
    else:
        joins, port = pod.joined or command, None
        address = None if joins is None else joins.ray_address
        read = _HOST.fullmatch(address) if isinstance(address, str) else None
        found = read or _RAY_ADDRESS.search(text)
    if found is None:
        by = service_asked(pod.joined or command)
        return (by.service, by.port) if by is not None else ("", None)
    stated_port = int(found[2]) if found[2] else port
    return found[1], stated_port if isinstance(stated_port, int) else None


def is_whole(part: EnginePart) -> bool:
    """Return whether the pods of a part are all of one engine."""
    first, *others = part.commands or (None,)
    if first is None or not others or not _is_first(first) or not all(map(_is_other, others)):
        return False
    return first.ray_role == "head" or first.nnodes == len(part.commands)


def is_head(part: EnginePart) -> bool:
    """Return whether a part is the pod with the first rank of an engine."""
    return part.count == 1 and starts_first(part)


def starts_first(part: EnginePart) -> bool:
    """Return whether each pod of a part has the first rank of an engine."""
    return bool(part.commands) and all(map(_is_first, part.commands))


def _is_first(command: CommandFacts) -> bool:
    if command.engine is None or command.headless is True:
        return False
    if spreads_copies(command):
        return command.headless is False and command.data_start_rank in {0, None}
    return command.ray_role == "head" or (_spans(command.nnodes) and command.node_rank in {0, None})


def is_other(part: EnginePart) -> bool:
    """Return whether no pod of a part has the first rank of an engine."""
    return bool(part.commands) and all(map(_is_other, part.commands))


def _is_other(command: CommandFacts) -> bool:
    if command.engine is None:
        return command.ray_role == "worker"
    rank = command.node_rank
    return command.headless is True or (isinstance(rank, int) and rank > 0)


def _spans(nodes: MaybeInt | None) -> bool:
    return isinstance(nodes, int) and nodes >= _SEVERAL


def spreads_copies(command: CommandFacts) -> bool:
    """Return whether a vLLM command line starts some of the copies that its first pod balances."""
    data, local = command.data, command.data_local
    alike = command.nnodes in {None, 1} and command.data_backend in {None, "mp"}
    if command.engine != "vllm" or command.data_mode != "internal" or not alike:
        return False
    if not isinstance(data, int) or not isinstance(local, int) or command.hidden is not None:
        return False
    most = data if command.headless is True else data - 1  # The first pod may have none.
    return 0 <= local <= most


class Group(NamedTuple):
    """The engines of a namespace that are started alike: a worker of it may look for its heads."""

    namespace: str
    way: str
    """How their pods meet: ray, nodes or copies."""


def group_of_head(head: EnginePart) -> Group | None:
    """Return the group whose workers may look for a head; None if its command is not known."""
    command = head.pod.command
    if command is None:
        return None
    return Group(head.namespace, "ray" if command.ray_role == "head" else _way(command))


def _way(command: CommandFacts) -> str:
    return "copies" if spreads_copies(command) else "nodes"


def group_of_worker(part: EnginePart) -> Group | None:
    """Return the group whose heads the pods of a part may look for; None if they look for none."""
    command = part.pod.command
    if not part.asks or command is None:
        return None
    if command.engine is None:
        return Group(part.namespace, "ray") if command.ray_role == "worker" else None
    joins = spreads_copies(command) and command.headless is True
    return Group(part.namespace, _way(command)) if joins or _spans(command.nnodes) else None


def names_asked(part: EnginePart) -> set[str]:
    """Return the names in the address of a head by which its pod may be found."""
    first, _, rest = part.asks.partition(".")
    return {first, rest.partition(".")[0], _ORDINAL.sub("", first)}


def selects(service: Mapping[str, Any], part: EnginePart) -> str:
    """Return the name of a Service that selects the pods of a part; empty if it does not."""
    metadata = mapping(service.get("metadata"))
    selector = mapping(mapping(service.get("spec")).get("selector"))
    wanted = {(str(key), str(value)) for key, value in selector.items()}
    space, name = str(metadata.get("namespace") or ""), metadata.get("name")
    is_its = bool(wanted) and wanted <= part.labels and space == part.namespace
    return name if is_its and isinstance(name, str) else ""


class Address(NamedTuple):
    """The parts of an address."""

    name: str
    """The Service."""
    namespace: str
    pod: str = ""
    """The pod below the Service. Empty: any."""


def number_of(pod: str) -> int:
    """Return the number in the name of a pod."""
    found = NUMBERED.fullmatch(pod)
    return int(found[2]) if found else -1


def may_have(part: EnginePart, pod: str) -> bool:
    """Return whether a StatefulSet may have the pod of a name that begins with its own."""
    return part.start is None or 0 <= number_of(pod) - part.start < part.count


def has_selector(service: Mapping[str, Any]) -> bool:
    """Return whether a Service finds its pods by labels that are known."""
    spec = mapping(service.get("spec"))
    selector = spec.get("selector")
    known = bool(mapping(selector)) and unknown_inside(selector) is None
    return known and spec.get("type") != "ExternalName"


def is_headless(service: Mapping[str, Any]) -> bool:
    """Return whether a Service only gives names to its pods, or may do so."""
    spec = mapping(service.get("spec"))
    address = spec.get("clusterIP")
    return address == "None" or unknown_inside(address) is not None


def forwarded(service: Mapping[str, Any], port: int) -> object:
    """Return the port of the pods to which a Service sends a port; None if it sends it nowhere.

    A headless Service gives the addresses of its pods, at which each port is the same. A port that
    is not known, or has a name, is Unknown.
    """
    ports = mapping(service.get("spec")).get("ports")
    if is_headless(service):
        return port
    if unknown_inside(ports, *sequence(ports)) is not None or not sequence(ports):
        return _ELSEWHERE
    found = next((mapping(p) for p in sequence(ports) if mapping(p).get("port") == port), None)
    if found is None:
        return None
    target = found.get("targetPort") or port
    return target if isinstance(target, int) else _ELSEWHERE


def first_address(part: EnginePart, reached: Iterable[str]) -> str:
    """Return the address of the first pod of a part; empty if no Service is known.

    Args:
        part: The part with the first pod.
        reached: The names of the Services that select it.
    """
    known, service = sorted(reached), part.service
    if part.kind == "StatefulSet" and is_name(service) and part.start is not None:
        return f"{part.name}-{part.start}.{service}"
    return known[0] if known else ""
