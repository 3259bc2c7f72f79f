"""The rule leader-selected: workers in an object of their own find the pod with the first rank."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from kthena_components.core.facts.split_engines import (
    SERVICE,
    EnginePart,
    is_head,
    joins,
    may_join,
    selects,
)
from kthena_components.core.findings import Finding, refuse
from kthena_components.core.values.display import display
from kthena_components.core.values.read import group_kind, mapping, name_of, unknown_inside
from kthena_components.core.values.regex import regex

_SVC = "svc"
_NUMBERS = regex(r"[\d.]+")


class _Asked(NamedTuple):
    """A Service in the address of a pod."""

    name: str
    namespace: str


def leader_selected(
    parts: Sequence[EnginePart], bodies: Sequence[Mapping[str, Any]]
) -> Iterator[Finding]:
    """The Service at which workers look for their engine's first pod is there and selects it.

    This is for a first pod and workers in objects of their own. The first pod must need more GPUs
    than it has, be the only one in its namespace, and have no other workers. Then the workers of
    the same namespace are its own, unless these are not all objects.

    Pass: `ray start --address=head:6379` and a Service head that selects the pods of Deployment
    head.
    Fail: --address=heads:6379 without a Service heads; a Service head that selects other pods;
    --address=head.default.svc:6379 in the namespace models.
    Level: mandatory.
    Source: Kubernetes documentation, DNS for Services and Pods; ray python/ray/scripts/scripts.py
    (start, --address).
    """
    services = [body for body in bodies if group_kind(body) == SERVICE]
    heads = [part for part in parts if is_head(part)]
    for head in heads:
        alone = [each.namespace for each in heads].count(head.namespace) == 1
        workers = [part for part in parts if part is not head and may_join(part, head)]
        reached = {name for each in services if (name := selects(each, head))}
        known = frozenset(reached | head.names)
        found = [part for part in workers if joins(part, head, known) and _asks(part, known)]
        if not alone or found or not _needs_workers(head):
            continue
        for part in workers:
            if seen := _away(part, known) or _wrong(part, known, reached, services):
                yield _finding(part, head, seen, reached)


def _needs_workers(head: EnginePart) -> bool:
    command, gpus = head.pod.command, head.pod.gpus
    copy = command.per_rank_world if command is not None else None
    return isinstance(copy, int) and isinstance(gpus, int) and copy > gpus > 0


def _asked(part: EnginePart) -> _Asked | None:
    """Return the Service that a part asks; None if its address may name something else."""
    first, *rest = part.asks.split(".")
    if _NUMBERS.fullmatch(part.asks):
        return None
    if not rest:
        return _Asked(first, part.namespace)
    if rest[1:2] == [_SVC]:
        return _Asked(first, rest[0])
    return _Asked(rest[0], rest[1]) if rest[2:3] == [_SVC] else None


def _asks(part: EnginePart, known: frozenset[str]) -> bool:
    """Return whether a part may ask a Service of the head, in the namespace of both."""
    asked = _asked(part)
    return asked is None or (asked.name in known and not _away(part, known))


def _away(part: EnginePart, known: frozenset[str]) -> str:
    """Explain that a part asks the right name in another namespace."""
    asked = _asked(part)
    if asked is None or asked.name not in known or not part.namespace:
        return ""
    other = asked.namespace != part.namespace
    return f"in the namespace {display(asked.namespace)}" if other else ""


def _wrong(
    part: EnginePart,
    known: frozenset[str],
    reached: set[str],
    services: Sequence[Mapping[str, Any]],
) -> str:
    """Explain that a part asks a Service that is not there, or that selects other pods."""
    asked = _asked(part)
    if asked is None or asked.name in known or asked.namespace != part.namespace:
        return ""
    same = [body for body in services if _is(body, asked)]
    if not same:
        return "and there is no such Service" if reached else ""
    selector = mapping(same[0].get("spec")).get("selector")
    is_known = mapping(selector) and unknown_inside(selector) is None
    return "and that Service selects other pods" if is_known else ""


def _is(service: Mapping[str, Any], asked: _Asked) -> bool:
    namespace = mapping(service.get("metadata")).get("namespace")
    return name_of(service) == asked.name and str(namespace or "") == asked.namespace


def _finding(part: EnginePart, head: EnginePart, seen: str, reached: set[str]) -> Finding:
    return refuse(
        part.pod.command_path,
        f"looks for its first rank at {display(part.asks)}, {seen}, but that rank is in the pod of "
        f"{display(head.name)}",
        f"write {min(reached)}, the Service of that pod, in the address"
        if reached
        else "write the labels of that pod in the selector of the Service",
    )
