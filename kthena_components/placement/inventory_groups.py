"""Reads the queues, quotas and groups of an inventory file, and what contradicts itself. Pure."""

from collections.abc import Hashable, Iterable, Iterator

from kthena_components.core.findings import Finding, count_of, nearest
from kthena_components.core.spec.enums import TopologyMode
from kthena_components.core.spec.serving_spec import TopologySpec
from kthena_components.core.values.regex import trouble_in_go
from kthena_components.placement.inventory_fields import (
    MOST_COPIES,
    GroupFields,
    InventoryFields,
    PodFields,
    SchedulerFields,
    ScopeFields,
    SubgroupFields,
    check_amounts,
)
from kthena_components.placement.model import (
    Neighbour,
    PodGroup,
    PodSet,
    Queue,
    Quota,
    Running,
    Scheduler,
    Scope,
    SubGroupPolicy,
    Topology,
)
from kthena_components.placement.quotas_and_limit_ranges import LIMIT_RANGE


def queues_of(fields: InventoryFields) -> tuple[Queue, ...]:
    """Return the queues; none if the file states none."""
    return tuple(Queue(**{**dict(queue), "parent": queue.parent or ""}) for queue in fields.queues)


def quotas_of(fields: InventoryFields) -> tuple[Quota, ...]:
    """Return the quotas of namespaces."""
    return tuple(Quota(**{**dict(one), "scopes": _scopes(one.scopes)}) for one in fields.quotas)


def _scopes(stated: Iterable[ScopeFields]) -> tuple[Scope, ...]:
    return tuple(
        Scope(name=one.name, operator=one.operator, values=tuple(one.values)) for one in stated
    )


def running_of(fields: InventoryFields) -> tuple[Running, ...]:
    """Return the groups that run, with the nodes of their pods."""
    return tuple(
        Running(group=_group(running.group), nodes=tuple(running.nodes))
        for running in fields.running
    )


def neighbours_of(fields: InventoryFields) -> tuple[Neighbour, ...] | None:
    """Return the other pods that run; None if they are not known."""
    if fields.neighbours is None:
        return None
    return tuple(
        Neighbour(
            namespace=one.namespace,
            pods=PodSet(name="pods", count=len(one.nodes), requests={}, spec=one.spec,
                        labels=one.labels),
            nodes=tuple(one.nodes),
        )
        for one in fields.neighbours
    )  # fmt: skip


def groups_of(groups: Iterable[GroupFields]) -> tuple[PodGroup, ...]:
    """Return groups."""
    return tuple(map(_group, groups))


def scheduler_of(fields: SchedulerFields) -> Scheduler:
    """Return the scheduler; what is not stated is Volcano's default."""
    usual = Scheduler()
    plugins = usual.plugins if fields.plugins is None else frozenset(fields.plugins)
    return Scheduler(version=fields.version, plugins=plugins, arguments=fields.arguments)


def _group(fields: GroupFields) -> PodGroup:
    """Build a group of pods from the fields of an inventory."""
    return PodGroup(
        namespace=fields.namespace,
        name=fields.name,
        owner=fields.owner or f"{fields.namespace}/{fields.name}",
        pods=tuple(map(_pods, fields.pods)),
        minimum=fields.minimum,
        task_minimum=fields.task_minimum,
        min_resources=fields.min_resources,
        topology=_topology(fields.topology),
        subgroups=tuple(map(_subgroup, fields.subgroups)),
        queue=fields.queue,
        priority=fields.priority,
        scheduler=fields.scheduler,
    )


def _pods(fields: PodFields) -> PodSet:
    return PodSet(**dict(fields))


def _subgroup(fields: SubgroupFields) -> SubGroupPolicy:
    keys, topology = tuple(fields.match_label_keys), _topology(fields.topology)
    return SubGroupPolicy(**{**dict(fields), "match_label_keys": keys, "topology": topology})


def _topology(fields: TopologySpec | None) -> Topology | None:
    if fields is None:
        return None
    return Topology(
        hard=fields.mode is TopologyMode.HARD,
        highest_tier=fields.highest_tier_allowed,
        highest_tier_name=fields.highest_tier_name,
    )


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
    """Report names that stand twice in a list of an inventory; `end` completes the path."""
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
                path=path, seen=f"the parents form a cycle, {cycle}",
                remedy="give one of them another parent, or none",
            )  # fmt: skip
        done |= {*line}
