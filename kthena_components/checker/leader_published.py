"""The rule first-pod-published, for an engine whose pods are those of several objects."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.checker.leader_selected import needs_workers
from kthena_components.core.facts.listening import waits_for_engine
from kthena_components.core.facts.split_addresses import (
    Asked,
    asked_by,
    may_have,
    named_by,
    service_of,
)
from kthena_components.core.facts.split_engines import (
    SERVICE,
    EnginePart,
    is_head,
    is_other,
    may_join,
    selects,
)
from kthena_components.core.findings import Finding, join_path, not_checked, refuse
from kthena_components.core.remedies import write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, group_kind, mapping

_RULE = "first-pod-published"


def leader_published(
    parts: Sequence[EnginePart], named: Mapping[str, Mapping[str, Any]]
) -> Iterator[Finding]:
    """Report a Service that names a first pod only when its workers have found it.

    The rule is documented in systems/kubernetes/rules/first_pod.py.
    """
    services = {path: body for path, body in named.items() if group_kind(body) == SERVICE}
    told: set[str] = set()
    for head in filter(is_head, parts):
        workers = [part for part in parts if is_other(part) and may_join(part, head)]
        if not workers or not waits_for_engine(head.pod) or not needs_workers(head):
            continue
        for part in workers:
            asked = asked_by(part, parts)
            found = service_of(asked, [*services.values()]) if asked else None
            if asked is None or found is None or not _leads_to(asked, found[1], head, parts):
                continue
            path = [*services][found[0]]
            if path not in told:
                told.add(path)
                yield from _check(path, found[1], head)


def _leads_to(
    asked: Asked, service: Mapping[str, Any], head: EnginePart, parts: Sequence[EnginePart]
) -> bool:
    """Return whether an address is that of a first pod, by a Service."""
    if asked.namespace != head.namespace or not selects(service, head):
        return False
    if not asked.pod:
        return True
    is_its = named_by(asked.pod, head.namespace, parts) is head and head.service == asked.name
    return is_its and may_have(head, asked.pod)


def _check(path: str, service: Mapping[str, Any], head: EnginePart) -> Iterator[Finding]:
    spec = mapping(service.get("spec"))
    published = spec.get("publishNotReadyAddresses")
    at = join_path(path, "spec.publishNotReadyAddresses")
    if gap := first_unknown(published, service.get("spec")):
        yield not_checked(at, gap, _RULE)
    elif published is not True:
        seen = f"is not true, but the workers of {head.kind} {display(head.name)} look for its pod "
        seen += "by this Service, and that is ready only when all pods of the engine have met"
        yield refuse(at, seen, write(value=True), _RULE)
