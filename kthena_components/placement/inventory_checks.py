"""Finds queues, quotas and patterns of an inventory file that contradict themselves. Pure."""

from collections.abc import Hashable, Iterable, Iterator

from kthena_components.core.findings import Finding, count_of, nearest
from kthena_components.core.values.go_regex import trouble_in_go
from kthena_components.placement.inventory_fields import MOST_COPIES, InventoryFields
from kthena_components.placement.limit_ranges import LIMIT_RANGE
from kthena_components.placement.stated_amounts import check_amounts

_MADE_BY_VOLCANO = frozenset({"root", "default"})
"""Queues that the scheduler creates when it starts."""


def check_size(fields: InventoryFields) -> Iterator[Finding]:
    """Report more nodes than are counted out, before they are."""
    each = fields.nodes_per_rack or 0
    sizes = (each if rack.nodes is None else len(rack.nodes) for rack in fields.racks)
    number = sum(sizes) + len(fields.nodes)
    if number > MOST_COPIES:
        yield Finding(
            path="racks",
            seen=f"have {count_of(number, 'node')}, and at most {MOST_COPIES} are read",
            remedy="describe a part of the cluster",
        )  # fmt: skip


def check_fields(fields: InventoryFields) -> Iterator[Finding]:
    """Report what is listed twice, parents of queues that do not hold, and broken patterns."""
    yield from _twice("queues", [queue.name for queue in fields.queues], ".name")
    yield from _twice("quotas", [(quota.namespace, quota.name) for quota in fields.quotas])
    yield from _parents(fields)
    yield from check_amounts({LIMIT_RANGE: fields.limit_ranges})
    for index, entry in enumerate(fields.hyper_nodes):
        if entry.node_regex and (trouble := trouble_in_go(entry.node_regex)):
            yield Finding(
                path=f"hyper_nodes[{index}].node_regex",
                seen=f"Go cannot read '{entry.node_regex}' ({trouble})",
                remedy="rewrite the pattern, or list the nodes",
            )  # fmt: skip


def _twice(field: str, names: Iterable[Hashable], end: str = "") -> Iterator[Finding]:
    first: dict[Hashable, int] = {}
    for index, name in enumerate(names):
        if name in first:
            shown = "/".join(name) if isinstance(name, tuple) else name
            yield Finding(
                path=f"{field}[{index}]{end}",
                seen=f"'{shown}' is already the name of {field}[{first[name]}]",
                remedy="give it another name, or list it once",
            )  # fmt: skip
        first.setdefault(name, index)


def _parents(fields: InventoryFields) -> Iterator[Finding]:
    """Report parents that do not exist, and each cycle once."""
    parents = {queue.name: queue.parent for queue in fields.queues}
    known, done = _MADE_BY_VOLCANO | parents.keys(), set[str]()
    for index, queue in enumerate(fields.queues):
        path = f"queues[{index}].parent"
        if queue.parent is not None and queue.parent not in known:
            close = nearest(queue.parent, sorted(known))
            yield Finding(
                path=path, seen=f"is '{queue.parent}', but there is no queue of this name",
                remedy=f"write '{close}'" if close else "add the queue, or remove it here",
            )  # fmt: skip
        line = [queue.name]
        while (above := parents.get(line[-1])) and above not in line and above not in done:
            line.append(above)
        if above in line:
            cycle = " -> ".join([*line[line.index(above) :], above])
            yield Finding(
                path=path, seen=f"the parents go in a cycle, {cycle}",
                remedy="give one of them another parent, or none",
            )  # fmt: skip
        done |= {*line}
