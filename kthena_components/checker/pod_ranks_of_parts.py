"""The rule pod-ranks, for an engine whose head and workers are objects of their own."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.facts.split_addresses import (
    asked_by,
    has_selector,
    may_have,
    named_by,
    selected_by,
    service_of,
)
from kthena_components.core.facts.split_engines import (
    SERVICE,
    EnginePart,
    is_head,
    is_other,
    may_join,
    starts_first,
)
from kthena_components.core.findings import Finding, refuse
from kthena_components.core.values.display import display
from kthena_components.core.values.read import group_kind

_RULE = "pod-ranks"
_LISTED = 8


def pod_ranks_of_parts(
    parts: Sequence[EnginePart], bodies: Sequence[Mapping[str, Any]]
) -> Iterator[Finding]:
    """Report pods of several objects that have one rank, or that are more than an engine counts.

    Missing ones may be in other files. The rule is documented in core/rules/pod_ranks.py.
    """
    services = [body for body in bodies if group_kind(body) == SERVICE]
    others = [part for part in parts if is_other(part)]
    for head in filter(is_head, parts):
        command = head.pod.command
        nodes = command.nnodes if command is not None else None
        workers = [p for p in others if may_join(p, head) and leads_to(p, head, parts, services)]
        ranks = [rank for worker in workers for rank in _ranks(worker)]
        if not isinstance(nodes, int) or len(workers) < len(("one", "another")) or None in ranks:
            continue
        shown = ", ".join(map(str, [0, *ranks][:_LISTED]))
        if len({*ranks}) < len(ranks) or len(ranks) >= nodes:
            seen = (
                f"meets the pods of {display(head.name)}, whose --nnodes {nodes} needs the ranks "
            )
            seen += f"0 to {nodes - 1}, but the pods of all its objects have {shown}"
            remedy = "give each pod a --node-rank of its own, and each engine an address of its own"
            yield refuse(workers[-1].pod.command_path, seen, remedy, _RULE)


def _ranks(part: EnginePart) -> list[int | None]:
    """Return the ranks of the pods of a part; None for each that is not known."""
    found = [command.node_rank for command in part.commands]
    known = [rank if isinstance(rank, int) else None for rank in found]
    return known if len(known) == part.count else known * part.count


def leads_to(
    part: EnginePart,
    head: EnginePart,
    parts: Sequence[EnginePart],
    services: Sequence[Mapping[str, Any]],
) -> bool:
    """Return whether the address of a part surely is that of one head."""
    asked = asked_by(part, parts)
    if asked is None or asked.namespace != head.namespace:
        return False
    if asked.pod:
        named = named_by(asked.pod, head.namespace, parts) is head
        return named and head.service == asked.name and may_have(head, asked.pod)
    found = service_of(asked, services)
    if found is None or not has_selector(found[1]):
        return False
    return [each for each in selected_by(found[1], parts) if starts_first(each)] == [head]
