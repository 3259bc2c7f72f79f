"""Why its queue keeps a group from its place, with numbers, and what would help. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

from kthena_components.cluster.node_fit import Amounts
from kthena_components.core.values.display import listing
from kthena_components.placement.changes import Case, fits
from kthena_components.placement.model import Cause, Change, Obstacle, Queue
from kthena_components.placement.relief import freed_or_added_nodes
from kthena_components.placement.volcano.queues import Share

_LIMITING = frozenset({"proportion", "capacity", "overcommit"})
"""Plugins that limit queues."""


def queue(case: Case) -> Iterator[Obstacle]:
    """Find a queue that is missing, closed, or has too little left."""
    group, queues = case.group, case.scheduler.queues
    job = case.scheduler.jobs[0]
    if not job.by_volcano:
        return
    if why := queues.missing(job):
        yield Obstacle(cause=Cause.QUEUE, text=why, changes=_usable_queue(case))
        return
    config = case.cluster.scheduler
    unlimited = replace(config, plugins=config.plugins - _LIMITING)
    if not fits(replace(case.cluster, scheduler=unlimited), group):
        return
    yield _over_capability(case) or _over_promises(case)


_NAMED = 3
"""Other queues that a sentence names."""


def _usable_queue(case: Case) -> tuple[Change, ...]:
    """Offer to add or open the queue, and to name another one."""
    shares, name = case.scheduler.queues.shares, case.group.queue
    share = shares.get(name)
    own = Change(text=f"Add the queue {name}", queue=Queue(name=name))
    if share is not None:
        own = Change(text=f"Open the queue {name}", queue=replace(share.queue, open=True))
    others = [
        replace(case.group, queue=one)
        for one, other in shares.items() if one not in {name, "root"} and other.queue.open
    ]  # fmt: skip
    useful = [one for one in others if fits(case.cluster, one)][:_NAMED]
    listed = listing([one.queue for one in useful], "or") if useful else ""
    named = [Change(text=f"Name the queue {listed} in its place", group=one) for one in useful[:1]]
    return case.changes(own, *named)


def _over_capability(case: Case) -> Obstacle | None:
    """Compare what a group asks for with what its queue and those above it may have at most."""
    name = case.group.queue
    for share in case.scheduler.queues.shares[name].chain:
        queue = share.queue
        limits = _exceeded(case, share, queue.capability)
        if not limits:
            continue
        capability = {**queue.capability, **{key: held + asked
                                             for key, (held, asked) in limits.items()}}  # fmt: skip
        raised = ", ".join(f"{amount} {_short(key)}" for key, amount in capability.items())
        change = Change(text=f"Raise the capability of the queue {queue.name} to {raised}",
                        queue=replace(queue, capability=capability))  # fmt: skip
        above = "" if queue.name == name else f", which is above {name},"
        text = f"the queue {queue.name}{above} has reached its capability: "
        text += _told(limits, queue.capability)
        return Obstacle(cause=Cause.QUEUE, text=text, changes=case.changes(change))
    return None


def _exceeded(case: Case, share: Share, most: Amounts) -> dict[str, tuple[Decimal, Decimal]]:
    """List the resources of which a group asks for more than is left, with what is used."""
    dimensions, found = case.scheduler.dimensions, dict[str, tuple[Decimal, Decimal]]()
    for at, resource in enumerate(dimensions.names):
        if resource not in most:
            continue
        number = sum(task.shape.request[at] for task in case.scheduler.jobs[0].tasks)
        asked = max(dimensions.amount(resource, number),
                    (case.group.min_resources or {}).get(resource, Decimal(0)))  # fmt: skip
        held = dimensions.amount(resource, int(share.used[at]))
        if asked and held + asked > most[resource]:
            found[resource] = held, asked
    return found


def _told(limits: Mapping[str, tuple[Decimal, Decimal]], most: Amounts) -> str:
    return "; ".join(
        f"of {most[key]} {_short(key)}, {held} are used and {asked} are asked for"
        for key, (held, asked) in limits.items()
    )


def _over_promises(case: Case) -> Obstacle:
    """Report that minResources, or the share of a queue, does not suffice."""
    name, queues = case.group.queue, case.scheduler.queues
    over = queues.blocking(case.scheduler.jobs[0])
    text = f"the queue {name} has used what it deserves beside the others"
    if over:
        resources = ", ".join(sorted({_short(resource) for _, resource in over}))
        text = "its minResources exceed what the cluster and the queue "
        text += f"{name} may promise ({resources}), so that it stays Pending"
    else:
        share, dimensions = queues.shares[name], case.scheduler.dimensions
        limit = share.deserved if queues.by_deserved else share.real
        most = {resource: dimensions.amount(resource, int(limit[at]))
                for at, resource in enumerate(dimensions.names) if at}  # fmt: skip
        told = _told(_exceeded(case, share, most), most)
        text += f": {told}" if told else ""
    smaller = Change(text="Leave out minResources",
                     group=replace(case.group, min_resources=None))  # fmt: skip
    relief = case.changes(smaller) or freed_or_added_nodes(case.cluster, case.group)
    return Obstacle(cause=Cause.QUEUE, text=text, changes=relief)


def _short(name: str) -> str:
    return "GPUs" if name == "nvidia.com/gpu" else name
