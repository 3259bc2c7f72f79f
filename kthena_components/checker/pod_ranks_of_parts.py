"""The rule pod-ranks, for an engine whose head and workers are objects of their own."""

from collections.abc import Iterator

from kthena_components.core.facts.split_addresses import Asked, has_selector
from kthena_components.core.facts.split_engines import EnginePart, is_head, starts_first
from kthena_components.core.facts.split_objects import SplitObjects
from kthena_components.core.findings import Finding, refuse
from kthena_components.core.values.display import display

_RULE = "pod-ranks"
_LISTED = 8
_COMPARED = 2
"""The least number of objects with workers whose ranks are compared."""


def pod_ranks_of_parts(objects: SplitObjects) -> Iterator[Finding]:
    """Report pods of several objects that have one rank, or that are more than an engine counts.

    Missing ones may be in other files. The rule is documented in core/rules/pod_ranks.py.
    """
    for head in filter(is_head, objects.parts):
        command = head.pod.command
        nodes = command.nnodes if command is not None else None
        workers = _workers(objects, head)
        ranks = [rank for worker in workers for rank in _ranks(worker)]
        if not isinstance(nodes, int) or len(workers) < _COMPARED or None in ranks:
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


def _workers(objects: SplitObjects, head: EnginePart) -> list[EnginePart]:
    """Return the parts whose address surely is that of one head."""
    found = (
        part
        for asked, parts in objects.meeting(head)
        if asked.pod or _is_only_first(objects, asked, head)
        for part in parts
    )
    return objects.in_order(found)


def _is_only_first(objects: SplitObjects, asked: Asked, head: EnginePart) -> bool:
    """Return whether a Service selects no other pod with a first rank."""
    service = objects.service_of(asked)
    if service is None or not has_selector(service.body):
        return False
    first = filter(starts_first, objects.selected_by(service))
    return next(first, None) is head and next(first, None) is None
