"""The rule first-pod-published, for an engine whose pods are those of several objects."""

from collections.abc import Iterator

from kthena_components.checker.leader_selected import needs_workers
from kthena_components.core.facts.listening import waits_for_engine
from kthena_components.core.facts.split_engines import EnginePart, is_head, selects
from kthena_components.core.facts.split_objects import Service, SplitObjects
from kthena_components.core.findings import Finding, join_path, not_checked, refuse
from kthena_components.core.remedies import write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, mapping

_RULE = "first-pod-published"


def leader_published(objects: SplitObjects) -> Iterator[Finding]:
    """Report a Service that names a first pod only when its workers have found it.

    The rule is documented in systems/kubernetes/rules/first_pod.py.
    """
    told: set[str] = set()
    for head in filter(is_head, objects.parts):
        if not waits_for_engine(head.pod) or not needs_workers(head):
            continue
        for asked, _ in objects.meeting(head):
            service = objects.service_of(asked)
            if service is None or not selects(service.body, head) or service.path in told:
                continue
            told.add(service.path)
            yield from _check(service, head)


def _check(service: Service, head: EnginePart) -> Iterator[Finding]:
    stated = service.body.get("spec")
    spec = mapping(stated)
    published = spec.get("publishNotReadyAddresses")
    at = join_path(service.path, "spec.publishNotReadyAddresses")
    if gap := first_unknown(published, stated):
        yield not_checked(at, gap, _RULE)
    elif published is not True:
        seen = f"is not true, but the workers of {head.kind} {display(head.name)} look for its pod "
        seen += "by this Service, and that is ready only when all pods of the engine have met"
        yield refuse(at, seen, write(value=True), _RULE)
