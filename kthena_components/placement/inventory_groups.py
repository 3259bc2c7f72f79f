"""Reads the queues, quotas, groups and the scheduler of an inventory file. Pure."""

from collections.abc import Iterable

from kthena_components.core.spec.enums import TopologyMode
from kthena_components.core.spec.serving_spec import TopologySpec
from kthena_components.placement.inventory_fields import (
    GroupFields,
    InventoryFields,
    PodFields,
    SchedulerFields,
    ScopeFields,
    SubgroupFields,
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
    """Return the other pods that run. None: not known."""
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
