"""Why other pods, volumes or its queue keep a group from its place, and what would help. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from kthena_components.cluster.objects import labels_of, name_of, namespace_of
from kthena_components.core.findings import count_of
from kthena_components.core.topology.node_fit import Amounts
from kthena_components.core.values.display import listing
from kthena_components.core.values.read import mapping, sequence, spec_of
from kthena_components.placement.changes import Case, SpecChange, fits, with_specs
from kthena_components.placement.model import Body, Cause, Change, Obstacle, Queue
from kthena_components.placement.relief import freed_or_added_nodes, largest, refusals, slots
from kthena_components.placement.volcano.queues import Share

_BETWEEN = ("podAffinity", "podAntiAffinity")


def neighbours(case: Case) -> Iterator[Obstacle]:
    """Find what other pods, also of the group itself, forbid."""
    if not case.scheduler.others_decide(case.scheduler.jobs[0]):
        return
    nodes = sum(map(bool, slots(case.scheduler, largest(case.scheduler))))
    if not nodes:
        return  # its own demands say more
    for named, change in _LEFT_OUT.items():
        if fits(case.cluster, with_specs(case.group, change)):
            yield _obstacle(case, nodes, f"their {named} do", change)
            return
    if fits(case.cluster, with_specs(case.group, _without_any)):
        yield _obstacle(case, nodes, "host ports, affinity to other pods and spread constraints do")
    elif fits(replace(case.cluster, running=(), neighbours=()), case.group):
        yield _obstacle(case, nodes, "the anti-affinity of pods that run does")


def _obstacle(case: Case, nodes: int, named: str, change: SpecChange | None = None) -> Obstacle:
    """Say that a group finds room on some nodes, and what does not let it be there."""
    pods = count_of(len(case.scheduler.jobs[0].tasks), "pod")
    where = f"on {count_of(nodes, 'node')}"
    text = f"its {pods} find room {where}, but {named} not let all of them be there"
    relief = freed_or_added_nodes(case.cluster, case.group)
    if not relief and change is not None:
        what = named.removeprefix("their ").removesuffix(" do")
        left = Change(text=f"Leave out the {what}", group=with_specs(case.group, change))
        relief = case.changes(left)
    return Obstacle(cause=Cause.NEIGHBOURS, text=text, changes=relief)


def _without_ports(spec: Body) -> Body:
    return {key: value for key, value in spec.items() if key != "containers"}


def _without_affinity(spec: Body) -> Body:
    affinity = {k: v for k, v in mapping(spec.get("affinity")).items() if k not in _BETWEEN}
    kept = {key: value for key, value in spec.items() if key != "affinity"}
    return {**kept, "affinity": affinity} if affinity else kept


def _without_spread(spec: Body) -> Body:
    kept = [each for each in map(mapping, sequence(spec.get("topologySpreadConstraints")))
            if each.get("whenUnsatisfiable") == "ScheduleAnyway"]  # fmt: skip
    others = {key: value for key, value in spec.items() if key != "topologySpreadConstraints"}
    return {**others, "topologySpreadConstraints": kept} if kept else others


def _without_any(spec: Body) -> Body:
    return _without_ports(_without_affinity(_without_spread(spec)))


_LEFT_OUT: dict[str, SpecChange] = {
    "host ports": _without_ports,
    "affinity to other pods": _without_affinity,
    "spread constraints": _without_spread,
}
"""What pods state of other pods, and their spec without it."""


_TRIED = 6
"""Places of a volume that are tried."""


def outside_volumes(case: Case) -> Obstacle:
    """Say which nodes a volume excludes, and offer room where it is, or another place for it."""
    changes = freed_or_added_nodes(case.cluster, case.group) or case.changes(*_moved(case))[:1]
    text = refusals(case.scheduler, "outside the topology")
    return Obstacle(cause=Cause.VOLUME, text=text, changes=changes)


def _moved(case: Case) -> Iterator[Change]:
    """Offer the volumes of the group in other places: by the label that each asks for first."""
    bound = [volume for volume in _bound(case) if _label(volume)]
    for key in dict.fromkeys(map(_label, bound)):
        own = [volume for volume in bound if _label(volume) == key]
        values = (labels_of(node.body).get(key) for node in case.cluster.nodes)
        for value in [one for one in dict.fromkeys(values) if one][:_TRIED]:
            names = " and ".join(map(name_of, own))
            what = "a PersistentVolume" if len(own) == 1 else "PersistentVolumes"
            yield Change(text=f"Bind its claim to {what} with {key}={value}, in place of {names}",
                         volumes=tuple(_at(volume, key, value) for volume in own))  # fmt: skip


def _bound(case: Case) -> list[Body]:
    """List the PersistentVolumes of the claims that the pods of a group name."""
    claims = {
        str(mapping(mapping(item).get("persistentVolumeClaim")).get("claimName"))
        for pods in case.group.pods
        for item in sequence(pods.spec.get("volumes"))
    }
    named = {
        spec_of(body).get("volumeName")
        for body in case.cluster.volumes
        if body.get("kind") == "PersistentVolumeClaim"
        and namespace_of(body) == case.group.namespace
        and name_of(body) in claims
    }
    return [body for body in case.cluster.volumes
            if body.get("kind") == "PersistentVolume" and name_of(body) in named]  # fmt: skip


def _label(volume: Body) -> str:
    """Return the first label that a volume asks nodes for."""
    required = mapping(mapping(spec_of(volume).get("nodeAffinity")).get("required"))
    for term in map(mapping, sequence(required.get("nodeSelectorTerms"))):
        for one in map(mapping, sequence(term.get("matchExpressions"))):
            return str(one.get("key"))
    return ""


def _at(volume: Body, key: str, value: str) -> Mapping[str, Any]:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    affinity = {"required": {"nodeSelectorTerms": [term]}}
    return {**volume, "spec": {**spec_of(volume), "nodeAffinity": affinity}}


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
        text += _usage_text(limits, queue.capability)
        return Obstacle(cause=Cause.QUEUE, text=text, changes=case.changes(change))
    return None


def _exceeded(case: Case, share: Share, most: Amounts) -> dict[str, tuple[Decimal, Decimal]]:
    """List the resources that a group requests beyond what is left, with the used amounts."""
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


def _usage_text(limits: Mapping[str, tuple[Decimal, Decimal]], most: Amounts) -> str:
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
        usage = _usage_text(_exceeded(case, share, most), most)
        text += f": {usage}" if usage else ""
    smaller = Change(text="Leave out minResources",
                     group=replace(case.group, min_resources=None))  # fmt: skip
    relief = case.changes(smaller) or freed_or_added_nodes(case.cluster, case.group)
    return Obstacle(cause=Cause.QUEUE, text=text, changes=relief)


def _short(name: str) -> str:
    return "GPUs" if name == "nvidia.com/gpu" else name
