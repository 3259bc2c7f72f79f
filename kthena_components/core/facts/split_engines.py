"""Joins an engine whose head and workers are objects of their own, such as two StatefulSets.

The workers look for the head by a name: that of a Service that selects it, of its StatefulSet's
`serviceName`, or its own. Engines are joined only if the files show all of their pods, because
others may be elsewhere.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.context import NO_CONTEXT, Context, in_object
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import is_serving, pods_of_template
from kthena_components.core.findings import join_path
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import count_or_unknown, group_kind, mapping
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, is_unresolved

_KINDS = frozenset({("apps", "StatefulSet"), ("apps", "Deployment")})
_SIGNS = ("--nnodes", "ray start")
SERVICE = ("", "Service")
_RAY_ADDRESS = regex(r"\bray\s+start\b[^;&|\n]*?--address[=\s]+[\"']?([A-Za-z0-9.-]+):\d+")
_HOST = regex(r"(?:tcp://)?([A-Za-z0-9][A-Za-z0-9.-]*)(?::\d+)?")
_ORDINAL = regex(r"-\d+$")
_MEETING = ("--master-addr", "--dist-init-addr")
_SEVERAL = 2


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
    asks: str
    """The host of the head, as its command states it; empty if it states none."""
    count: int
    pod: PodFacts = field(compare=False)


def read_engine_part(
    body: Mapping[str, Any], path: str = "", context: Context = NO_CONTEXT
) -> EnginePart | None:
    """Read a StatefulSet or a Deployment with a part of an engine; None for anything else."""
    if group_kind(body) not in _KINDS:
        return None
    metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
    template = mapping(spec.get("template"))
    text = json.dumps(mapping(template.get("spec")).get("containers"), default=str)
    is_own = naming.GROUP_NAME in mapping(metadata.get("labels"))  # joined by its labels
    name, count = metadata.get("name"), count_or_unknown(spec.get("replicas"), "replicas", 1)
    if is_own or not any(sign in text for sign in _SIGNS) or not isinstance(name, str):
        return None
    at = join_path(path, "spec.template")
    pods = [*filter(is_serving, pods_of_template(template, at, in_object(context, body)))]
    if len(pods) != 1 or not isinstance(count, int) or count < 1 or is_unresolved(name):
        return None
    service, space = spec.get("serviceName"), metadata.get("namespace")
    labels = mapping(mapping(template.get("metadata")).get("labels"))
    return EnginePart(
        path=at,
        name=name,
        namespace=str(space or ""),
        names=frozenset(each for each in (name, service) if isinstance(each, str) and each),
        labels=frozenset((str(key), str(value)) for key, value in labels.items()),
        asks=_asked(pods[0], text),
        count=count,
        pod=pods[0],
    )


def _asked(pod: PodFacts, text: str) -> str:
    """Return the host at which a pod looks for the head."""
    command = pod.command
    if command is not None and command.engine is not None:
        stated = next((v for key in _MEETING if (v := command.options.get(key))), None)
        found = _HOST.fullmatch(stated) if isinstance(stated, str) else None
    else:
        found = _RAY_ADDRESS.search(text)
    return found[1] if found is not None else ""


def join_engines(
    parts: Sequence[EnginePart], bodies: Iterable[Mapping[str, Any]]
) -> Iterator[ServingFacts]:
    """Yield each engine of which some objects are all parts.

    Args:
        parts: The parts.
        bodies: All objects of the cluster, with the Services.
    """
    if len(parts) < _SEVERAL:
        return
    services = [body for body in bodies if group_kind(body) == SERVICE]
    for head in filter(is_head, parts):
        known = head.names | {name for each in services if (name := selects(each, head))}
        workers = [part for part in parts if part is not head and joins(part, head, known)]
        if workers and _are_all(head, workers):
            yield from (_together(head, worker, workers) for worker in workers)


def is_head(part: EnginePart) -> bool:
    """Return whether a part is the pod with the first rank of an engine."""
    command = part.pod.command
    if command is None or command.engine is None or part.count != 1 or command.headless is True:
        return False
    return command.ray_role == "head" or (_spans(command.nnodes) and command.node_rank in {0, None})


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
    engine = EngineFacts(
        path=head.path,
        name=head.name,
        pods=1 + sum(each.count for each in workers),
        replicas=1,
        entry=head.pod,
        worker=worker.pod,
    )
    return ServingFacts(path="", name=head.name, engines=(engine,), told=())


def selects(service: Mapping[str, Any], part: EnginePart) -> str:
    """Return the name of a Service that selects the pods of a part; empty if it does not."""
    metadata = mapping(service.get("metadata"))
    selector = mapping(mapping(service.get("spec")).get("selector"))
    wanted = {(str(key), str(value)) for key, value in selector.items()}
    space, name = str(metadata.get("namespace") or ""), metadata.get("name")
    is_its = bool(wanted) and wanted <= part.labels and space == part.namespace
    return name if is_its and isinstance(name, str) else ""
