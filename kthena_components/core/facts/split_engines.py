"""Joins an engine whose head and workers are objects of their own, such as two StatefulSets.

The workers look for the head by a name: that of a Service that selects it, of its StatefulSet's
`serviceName`, or its own. Engines are joined only if the files show all of their pods, because
others may be elsewhere.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

from kthena_components.core import naming
from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.context import NO_CONTEXT, Context, in_object
from kthena_components.core.facts.members import with_siblings
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import NOT_STATED, is_serving, pods_of_template
from kthena_components.core.findings import join_path
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    count_or_unknown,
    group_kind,
    inside,
    is_name,
    mapping,
    unknown_inside,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, Unknown

_SET, _JOB, _POD = ("apps", "StatefulSet"), ("batch", "Job"), ("", "Pod")
_COUNTS = {
    _SET: "replicas",
    ("apps", "Deployment"): "replicas",
    ("apps", "ReplicaSet"): "replicas",
    _JOB: "parallelism",
}
"""The field with the number of pods, by kind."""
_UNNAMED = frozenset({("apps", "Deployment"), ("apps", "ReplicaSet")})
"""Kinds whose pods have no names in DNS unless their template states one."""
_SIGNS = ("--nnodes", "ray start", "kv_connector")
SERVICE = ("", "Service")
_RAY_ADDRESS = regex(r"\bray\s+start\b[^;&|\n]*?--address[=\s]+[\"']?([A-Za-z0-9.-]+):(\d+)")
_HOST = regex(r"(?:tcp://)?([A-Za-z0-9][A-Za-z0-9.-]*)(?::(\d+))?")
_ORDINAL = regex(r"-\d+$")
_MEETING = ("--master-addr", "--dist-init-addr")
_MASTER_PORT, _USUAL_PORT = "--master-port", 29501
"""vLLM's option for the port, and its default (vllm/config/parallel.py)."""
_SEVERAL = 2
_COMPARED_ALONE = Unknown("the ranks of workers in several objects are compared by themselves")


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePart:
    """An object with the head or the workers of an engine."""

    path: str = field(compare=False)
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
    pod: PodFacts = field(compare=False)
    commands: tuple[CommandFacts, ...] = field(default=(), compare=False)
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
    made: "Made | None" = None,
) -> EnginePart | None:
    """Read an object with a part of an engine; None for anything else.

    Args:
        body: The object.
        path: Its path in the caller's input.
        context: Its context.
        made: Its only template, for a kind of another system.
    """
    made = made or template_of(body)
    if made is None:
        return None
    metadata = mapping(body.get("metadata"))
    text = json.dumps(mapping(made.body.get("spec")).get("containers"), default=str)
    is_own = naming.GROUP_NAME in mapping(metadata.get("labels"))  # joined by its labels
    name = metadata.get("name")
    if is_own or not any(sign in text for sign in _SIGNS) or not is_name(name):
        return None
    at, count = join_path(path, made.path), made.number
    pods = [*filter(is_serving, pods_of_template(made.body, at, in_object(context, body)))]
    if len(pods) != 1 or not isinstance(count, int) or count < 1:
        return None
    of_set = name if group_kind(body) == _SET else ""
    commands = _commands(pods[0], made.body, mapping(body.get("spec")), of_set, context)
    pod = replace(pods[0], command=commands[0]) if len(commands) == count == 1 else pods[0]
    asks, port = _asked(pod, text)
    found = EnginePart(
        path=at,
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
    return _with_names(found, body, made)


def _with_names(part: EnginePart, body: Mapping[str, Any], made: "Made") -> EnginePart:
    """Add what decides by which names other pods find those of a part, and their PodGroup."""
    spec, kind, stated = (
        mapping(body.get("spec")),
        group_kind(body),
        mapping(made.body.get("metadata")),
    )
    service, gang = (
        spec.get("serviceName"),
        mapping(stated.get("annotations")).get(naming.POD_GROUP),
    )
    start = count_or_unknown(inside(spec.get("ordinals"), "start"), "start", 0)
    labels = mapping(stated.get("labels"))
    return replace(
        part,
        names=part.names | ({service} if isinstance(service, str) and service else set()),
        labels=frozenset((str(key), str(value)) for key, value in labels.items()),
        labelled=unknown_inside(stated, labels) is None,
        kind=kind[1],
        service=service,
        start=start if isinstance(start, int) else None,
        own_names=kind not in _UNNAMED or "hostname" in mapping(made.body.get("spec")),
        gang=gang if is_name(gang) else "",
    )


class Made(NamedTuple):
    """The template of the pods of an object, and their number."""

    body: Mapping[str, Any]
    path: str
    number: MaybeInt


def template_of(body: Mapping[str, Any]) -> Made | None:
    """Return the only template of a kind that may have a part of an engine."""
    kind, spec = group_kind(body), mapping(body.get("spec"))
    if kind == _POD:
        return Made(body, "", 1)
    if kind not in _COUNTS:
        return None
    count = count_or_unknown(spec.get(_COUNTS[kind]), _COUNTS[kind], 1)
    return Made(mapping(spec.get("template")), "spec.template", count)


def _commands(
    pod: PodFacts, template: Mapping[str, Any], spec: Mapping[str, Any], name: str, context: Context
) -> tuple[CommandFacts, ...]:
    """Return the command lines of the pods of a part, each with the number of its pod."""
    engine = EngineFacts(path="", name=name, pods=NOT_STATED, replicas=1, entry=pod, worker=None)
    (found,) = with_siblings([engine], template, spec, name=name, context=context)
    read = found.siblings.commands if found.siblings is not None else ()
    return read or (() if pod.command is None else (pod.command,))


def _asked(pod: PodFacts, text: str) -> tuple[str, int | None]:
    """Return the host and the port at which a pod looks for the head, or has it."""
    command = pod.command
    if command is not None and command.engine is not None and command.ray_role == "head":
        own = command.ray_port
        return "", int(own) if isinstance(own, str) and own.isdecimal() else None
    if command is not None and command.engine is not None:
        stated = next((v for key in _MEETING if (v := command.options.get(key))), None)
        found = _HOST.fullmatch(stated) if isinstance(stated, str) else None
        usual = command.options.get(_MASTER_PORT, _USUAL_PORT)
        port = usual if command.engine == "vllm" else None
    else:
        found, port = _RAY_ADDRESS.search(text), None
    if found is None:
        return "", None
    stated_port = int(found[2]) if found[2] else port
    return found[1], stated_port if isinstance(stated_port, int) else None


def join_engines(
    parts: Sequence[EnginePart], bodies: Iterable[Mapping[str, Any]]
) -> Iterator[ServingFacts]:
    """Yield each engine of which some objects are all parts.

    Args:
        parts: The parts.
        bodies: All objects of the cluster, with the Services.
    """
    for head, workers in joined(parts, bodies):
        yield from (_together(head, worker, workers) for worker in workers)


def joined(
    parts: Sequence[EnginePart], bodies: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[EnginePart, list[EnginePart]]]:
    """Yield the head and the workers of each engine of which some objects are all parts."""
    if len(parts) < _SEVERAL:
        return
    services = [body for body in bodies if group_kind(body) == SERVICE]
    for head in filter(is_head, parts):
        known = head.names | {name for each in services if (name := selects(each, head))}
        workers = [part for part in parts if part is not head and joins(part, head, known)]
        if workers and _are_all(head, workers):
            yield head, workers


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


def joins(part: EnginePart, head: EnginePart, known: frozenset[str]) -> bool:
    """Return whether the pods of a part look for a head, in the way that it is reached."""
    first, _, rest = part.asks.partition(".")
    named = {first, rest.partition(".")[0], _ORDINAL.sub("", first)}
    return may_join(part, head) and not known.isdisjoint(named)


def may_join(part: EnginePart, head: EnginePart) -> bool:
    """Return whether the pods of a part look for some head of this kind in their namespace."""
    mine, its = part.pod.command, head.pod.command
    if part.namespace != head.namespace or not part.asks or mine is None or its is None:
        return False
    if its.ray_role == "head":
        return mine.engine is None and mine.ray_role == "worker"
    return mine.engine is not None and _spans(mine.nnodes)


def _are_all(head: EnginePart, workers: Sequence[EnginePart]) -> bool:
    """Return whether no other pods of the engine are missing, as far as its commands tell."""
    command = head.pod.command
    if command is None or command.ray_role == "head":
        return len(workers) == 1
    sizes = {each.pod.command.nnodes for each in (head, *workers) if each.pod.command is not None}
    return 1 + sum(each.count for each in workers) in sizes


def _together(head: EnginePart, worker: EnginePart, workers: Sequence[EnginePart]) -> ServingFacts:
    pod = worker.pod if len(workers) == 1 else _without_rank(worker.pod)
    engine = EngineFacts(
        path=head.path,
        name=head.name,
        pods=1 + sum(each.count for each in workers),
        replicas=1,
        entry=head.pod,
        worker=pod,
    )
    return ServingFacts(path="", name=head.name, engines=(engine,), told=())


def _without_rank(pod: PodFacts) -> PodFacts:
    """Return a pod without its rank, if this is that of some worker."""
    command = pod.command
    if command is None or not isinstance(command.nnodes, int):
        return pod
    rank = command.node_rank
    if not isinstance(rank, int) or not 0 < rank < command.nnodes:
        return pod
    return replace(pod, command=replace(command, node_rank=_COMPARED_ALONE))


def selects(service: Mapping[str, Any], part: EnginePart) -> str:
    """Return the name of a Service that selects the pods of a part; empty if it does not."""
    metadata = mapping(service.get("metadata"))
    selector = mapping(mapping(service.get("spec")).get("selector"))
    wanted = {(str(key), str(value)) for key, value in selector.items()}
    space, name = str(metadata.get("namespace") or ""), metadata.get("name")
    is_its = bool(wanted) and wanted <= part.labels and space == part.namespace
    return name if is_its and isinstance(name, str) else ""
