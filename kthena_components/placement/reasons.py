"""Finds what keeps a group from its place, with numbers, and the smallest change that helps. Pure.

A cause is found by leaving it out: if the group fits without the cap, the cap is the cause. A
change is offered only if the scheduler places the group after it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal

from kthena_components.core.findings import count_of
from kthena_components.core.topology.node_fit import Amounts, untolerated
from kthena_components.core.values.read import mapping
from kthena_components.placement.changes import (
    Case,
    fits,
    helps,
    tree_of_hyper_nodes,
    with_specs,
    with_topology,
)
from kthena_components.placement.model import (
    Body,
    Cause,
    Change,
    Cluster,
    Obstacle,
    PodGroup,
    Quota,
    Topology,
)
from kthena_components.placement.quotas_and_limit_ranges import shortages
from kthena_components.placement.reasons_pods_volumes_queues import (
    neighbours,
    outside_volumes,
    queue,
)
from kthena_components.placement.relief import (
    free_nodes,
    freed_or_added_nodes,
    lacking,
    refusals,
    smaller_pods_or_larger_nodes,
)
from kthena_components.placement.volcano.scheduler import Scheduler

_PRODUCT = ("gpu.product", "gpu.memory", "accelerator", "gpu.family")


def explain(cluster: Cluster, empty: Cluster, group: PodGroup) -> list[Obstacle]:
    """List what keeps a group from its place.

    Args:
        cluster: The cluster after what is placed.
        empty: The cluster with nothing on it, where a group with several causes shows one.
        group: The group that is not placed.
    """
    found = _causes(cluster, group)
    if not found:
        found = [replace(one, changes=tuple(
            change for change in one.changes if helps(cluster, group, change)))
            for one in _causes(empty, group)]  # fmt: skip
    changes = () if found else freed_or_added_nodes(cluster, group)
    text = "the scheduler's order of choices finds no place for all of its pods"
    return found or [Obstacle(cause=Cause.ORDER, text=text, changes=changes)]


def _causes(cluster: Cluster, group: PodGroup) -> list[Obstacle]:
    """List the first kind of causes without which a group fits."""
    scheduler = Scheduler(replace(cluster, waiting=()), [group])
    scheduler.run(most=0)
    case = Case(cluster, group, scheduler)
    for reasons in (_limit_range, _quota, _gang, _tree, queue, _refused, neighbours, _tier, _room):
        found = list(reasons(case))
        if found:
            return found
    return []


def _limit_range(case: Case) -> Iterator[Obstacle]:
    """Find pods that the LimitRanges of their namespace refuse."""
    group = case.group
    found = list(dict.fromkeys(one for pods in group.pods for one in pods.refusals))
    if not found:
        return
    named = " and ".join(dict.fromkeys(one.limit_range for one in found))
    said = "; ".join(dict.fromkeys(one.text for one in found))
    text = f"the LimitRange {named} of the namespace {group.namespace} refuses its pods: {said}"
    what = "; ".join(f"in the LimitRange {one.limit_range}, {one.change}" for one in found)
    accepted = replace(group, pods=tuple(replace(one, refusals=()) for one in group.pods))
    change = Change(text=what[0].upper() + what[1:], group=accepted)
    yield Obstacle(cause=Cause.LIMIT_RANGE, text=text, changes=case.changes(change))


def _quota(case: Case) -> Iterator[Obstacle]:
    """Find quotas that keep pods from being created."""
    group, job = case.group, case.scheduler.jobs[0]
    if not job.missing:
        return
    quotas = list(case.cluster.quotas)
    for quota, asked in shortages(quotas, group, group.size):
        limits = "; ".join(
            f"of {quota.hard[key]} {key}, {quota.used.get(key, Decimal(0))} are used and "
            f"{amount} are asked for"
            for key, amount in asked.items()
        )
        text = f"the quota {quota.name} of the namespace {quota.namespace} does not let all of "
        text += f"{count_of(group.size, 'pod')} be created: {limits}"
        raised = [_raised(one, more) for number in (group.minimum or group.size, group.size)
                  for one, more in shortages([quota], group, number)]  # fmt: skip
        yield Obstacle(cause=Cause.QUOTA, text=text, changes=case.changes(*raised)[:1])


def _raised(quota: Quota, asked: Amounts) -> Change:
    hard = {**quota.hard, **{key: quota.used.get(key, Decimal(0)) + amount
                             for key, amount in asked.items()}}  # fmt: skip
    each = ", ".join(f"{key} by {hard[key] - quota.hard[key]} to {hard[key]}" for key in asked)
    return Change(text=f"In the quota {quota.name}, raise {each}", quota=replace(quota, hard=hard))


def _gang(case: Case) -> Iterator[Obstacle]:
    """Report a gang whose minimum its pods can never reach."""
    job = case.scheduler.jobs[0]
    why = job.invalid()
    if not why:
        return
    least = replace(
        case.group, minimum=min(job.minimum, len(job.tasks)), task_minimum={},
        subgroups=tuple(replace(one, minimum=0) for one in case.group.subgroups),
    )  # fmt: skip
    change = Change(text="Lower that minimum, or create the pods that are missing", group=least)
    yield Obstacle(cause=Cause.GANG_MINIMUM, text=f"the scheduler passes it over: {why}",
                   changes=case.changes(change))  # fmt: skip


def _tree(case: Case) -> Iterator[Obstacle]:
    topologies = [case.group.topology, *(one.topology for one in case.group.subgroups)]
    if not case.scheduler.tree.ready and any(topologies):
        text = "a HyperNode has two parents or contains itself, and until this is repaired the "
        text += "scheduler places no group with a networkTopology"
        repaired = case.changes(tree_of_hyper_nodes(case.cluster))
        yield Obstacle(cause=Cause.MEMBERSHIP, text=text, changes=repaired)


_OTHER_NODES = {
    Cause.SELECTOR: "Leave out the selector, or label nodes with room",
    Cause.PRODUCT: "Ask for a GPU that the cluster has, or add nodes with this one",
}


def _refused(case: Case) -> Iterator[Obstacle]:
    """Find taints and selectors: nodes that would have room, and refuse the pods."""
    everything = [{"operator": "Exists"}]
    if case.without(lambda one: with_specs(one, lambda old: {**old, "tolerations": everything})):
        yield _tainted(case)
    elif case.without(lambda one: with_specs(one, _choosing_no_label)):
        asked = str([pods.spec for pods in case.group.pods])
        cause = Cause.PRODUCT if any(one in asked for one in _PRODUCT) else Cause.SELECTOR
        change = Change(text=_OTHER_NODES[cause],
                        group=with_specs(case.group, _choosing_no_label))  # fmt: skip
        yield Obstacle(cause=cause, text=refusals(case.scheduler, "without the label", "outside"),
                       changes=case.changes(change))  # fmt: skip
    elif case.without(lambda one: with_specs(one, _without_volumes)):
        yield outside_volumes(case)


def _tainted(case: Case) -> Obstacle:
    """Report taints, with the tolerations that would help, one by one or all together."""
    taints = {
        (str(taint.get("key")), str(taint.get("value") or ""), str(taint.get("effect")))
        for node in case.cluster.nodes
        for pods in case.group.pods
        for taint in untolerated(pods.spec, node.body)
    }
    added = [
        Change(text=f"Tolerate the taint {key}{'=' if value else ''}{value}:{effect}",
               tolerations=({"key": key, "operator": "Exists", "effect": effect},))
        for key, value, effect in sorted(taints)
    ]  # fmt: skip
    whole = Change(text="Tolerate these taints", tolerations=tuple(
        each for one in added for each in one.tolerations))  # fmt: skip
    return Obstacle(cause=Cause.TAINT, text=refusals(case.scheduler, "with the taint"),
                    changes=case.changes(*added) or case.changes(whole))  # fmt: skip


def _choosing_no_label(spec: Body) -> Body:
    affinity = {k: v for k, v in mapping(spec.get("affinity")).items() if k != "nodeAffinity"}
    kept = {key: value for key, value in spec.items() if key not in {"nodeSelector", "affinity"}}
    return {**kept, "affinity": affinity} if affinity else kept


def _without_volumes(spec: Body) -> Body:
    return {key: value for key, value in spec.items() if key != "volumes"}


def _tier(case: Case) -> Iterator[Obstacle]:
    """Find a cap that is too low, of the group or of its subgroups."""
    bare = replace(with_topology(case.group, None), subgroups=tuple(
        replace(one, topology=None) for one in case.group.subgroups))  # fmt: skip
    if bare == case.group or not fits(case.cluster, bare):
        return
    tree = case.scheduler.tree
    higher = [
        Change(text=f"Allow tier {tier}", group=_up_to(case.group, tier))
        for tier in tree.tiers
        if tier > min(_caps(case.group), default=tree.top)
    ]
    raised = next((one for one in higher if helps(case.cluster, case.group, one)), None)
    if raised is not None and raised.group is not None and not case.group.subgroups:
        raised = Change(text=raised.text, topology=raised.group.topology)
    changes = (*((raised,) if raised else ()), *freed_or_added_nodes(case.cluster, case.group))
    text = free_nodes(case.scheduler, min(_caps(case.group), default=0))
    yield Obstacle(cause=Cause.TIER, text=text, changes=changes)


def _caps(group: PodGroup) -> list[int]:
    """Return the highest tiers that the hard topologies of a group allow."""
    stated = [group.topology, *(one.topology for one in group.subgroups)]
    return [one.highest_tier for one in stated if one and one.hard and one.highest_tier is not None]


def _up_to(group: PodGroup, tier: int) -> PodGroup:
    """Raise all caps of a group to at least a tier."""

    def raised(topology: Topology | None) -> Topology | None:
        if topology is None or not topology.hard:
            return topology
        if topology.highest_tier is not None and topology.highest_tier >= tier:
            return topology
        return Topology(hard=True, highest_tier=tier)

    subgroups = tuple(replace(one, topology=raised(one.topology)) for one in group.subgroups)
    return replace(group, topology=raised(group.topology), subgroups=subgroups)


_CAUSES = {"cpu": Cause.CPU, "memory": Cause.MEMORY, "pods": Cause.PODS}


def _room(case: Case) -> Iterator[Obstacle]:
    """Find the resources that are short."""
    changes = freed_or_added_nodes(case.cluster, case.group)
    short = lacking(case.cluster, case.group)
    for names in short:
        text = free_nodes(case.scheduler, None, names)
        cause = _CAUSES.get(names[0], Cause.GPUS if "/" in names[0] else Cause.OTHER_RESOURCE)
        other = () if changes else smaller_pods_or_larger_nodes(case.cluster, case.group, names)
        yield Obstacle(cause=cause, text=text, changes=changes or _first_of_each(case, other))
    if not short and changes:
        number = len(case.scheduler.jobs[0].tasks)
        find = "does not find" if number == 1 else "do not find"
        text = f"its {count_of(number, 'pod')} {find} enough room as the scheduler places them"
        cause = Cause.ORDER
        if changes[0].opened_nodes:
            cause, text = Cause.CLOSED, refusals(case.scheduler, "cordoned or not ready")
        yield Obstacle(cause=cause, text=text, changes=changes)


def _first_of_each(case: Case, found: Iterable[Change]) -> tuple[Change, ...]:
    """Keep the first helpful change of the group and the first one of the nodes."""
    helpful: dict[bool, Change] = {}
    for one in found:
        added = bool(one.added_nodes)
        if added not in helpful and case.changes(one):
            helpful[added] = one
    return tuple(helpful.values())
