"""The rule gang-covers-engine, for engines whose pods name a PodGroup of the user."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.split_engines import EnginePart, is_whole
from kthena_components.core.facts.split_joins import joined
from kthena_components.core.facts.split_objects import SplitObjects
from kthena_components.core.findings import Finding, count_of, join_path, refuse
from kthena_components.core.objects.object import POD_GROUP
from kthena_components.core.values.display import display
from kthena_components.core.values.read import count, group_kind, mapping, name_of

_RULE = "gang-covers-engine"
_OTHER_MINIMA = ("minTaskMember", "subGroupPolicy")
"""Fields by which a PodGroup may wait for more pods than minMember."""


def gang_covers_parts(objects: SplitObjects) -> Iterator[Finding]:
    """Report a PodGroup that may start with some pods of an engine.

    The rule is documented in core/rules/gang_covers_engine.py.
    """
    if not any(part.gang for part in objects.parts):
        return
    named = objects.named
    groups = {_key(body): path for path, body in named.items() if group_kind(body) == POD_GROUP}
    told: set[str] = set()
    for head, pods in _engines(objects):
        path = groups.get((head.namespace, head.gang), "")
        spec = mapping(named[path].get("spec")) if path else {}
        member = count(spec.get("minMember"), 0)
        other = any(spec.get(field) for field in _OTHER_MINIMA)
        if other or path in told or not isinstance(member, int) or not 0 < member < pods:
            continue
        told.add(path)
        seen = f"the gang needs {count_of(member, 'pod')} to start, but the engine of {head.kind} "
        seen += f"{display(head.name)} has {pods} that must start together"
        at = join_path(path, "spec.minMember")
        yield refuse(at, seen, f"write minMember {pods}", _RULE)


def _key(body: Mapping[str, Any]) -> tuple[str, str]:
    return str(mapping(body.get("metadata")).get("namespace") or ""), name_of(body)


def _engines(objects: SplitObjects) -> Iterator[tuple[EnginePart, int]]:
    """Return engines whose pods all name one PodGroup, with the number of their pods."""
    for part in objects.parts:
        if part.gang and is_whole(part):
            yield part, part.count
    for head, workers in joined(objects):
        if head.gang and all(worker.gang == head.gang for worker in workers):
            yield head, head.count + sum(worker.count for worker in workers)
