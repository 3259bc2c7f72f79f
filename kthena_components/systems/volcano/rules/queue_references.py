"""Checks the queues of a cluster: references, and what each leaves for those below it."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import (
    Finding,
    advise,
    each_of,
    join_path,
    not_checked,
    part_of_rule,
)
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import (
    JOB,
    MODEL_SERVING,
    POD_GROUP,
    QUEUE,
    VOLCANO,
    Object,
)
from kthena_components.core.remedies import at_least, at_most
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.quantity import parse_quantity, render_quantity
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    text,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeText, Unknown, known
from kthena_components.systems.volcano.rules.queue import caps_only_what_it_names, exceeds, together

_ALWAYS = frozenset({"default", "root"})
"""Queues that Volcano's scheduler creates itself."""
_MANY = 20
_DEEPEST = 32
"""Queues above one that are looked at. Volcano's webhook allows 5 unless it is told otherwise."""
_WITHIN = "queue-within-parent"
_SHARED = {"guarantee.resource": "are guaranteed", "deserved": "deserve"}
"""Lists that a parent's queues share, with a verb for messages."""


def _queues_named(
    cluster: ClusterObjects,
) -> Iterator[tuple[ClusterObjects, str, MaybeText | None]]:
    """Return the path of each name of a queue, and the name."""
    for kind in (POD_GROUP, JOB):
        for entry in cluster.of(kind):
            yield cluster, entry.at("spec.queue"), text(entry.spec.get("queue"))
    for entry in cluster.of(MODEL_SERVING):
        metadata = mapping(entry.body.get("metadata"))
        name = text(mapping(metadata.get("annotations")).get(naming.QUEUE_NAME))
        yield cluster, entry.at(f"metadata.annotations.{naming.QUEUE_NAME}"), name
    for entry in cluster.of(QUEUE):
        yield cluster, entry.at("spec.parent"), text(entry.spec.get("parent"))
    if cluster.of(QUEUE):
        yield from ((cluster, path, name) for path, name in _queues_of_pods(cluster))


def _queues_of_pods(cluster: ClusterObjects) -> Iterator[tuple[str, MaybeText | None]]:
    """Return the queues of gangs that other controllers make, and of pods without one."""
    made = {gang.owner.index for gang in cluster.made_gangs}
    for gang in cluster.made_gangs:
        known = gang.owner.group_kind in {JOB, MODEL_SERVING} or gang.scheduler != VOLCANO
        if gang.queue_path and not known:
            yield gang.owner.at(gang.queue_path), gang.queue
    for pods in cluster.pods:
        scheduled = pods.spec.get("schedulerName") == VOLCANO and not pods.by_controller
        if scheduled and pods.owner.index not in made and not pods.gang and pods.count != 0:
            path = pods.at(f"metadata.annotations.{naming.QUEUE_NAME}")
            yield path, text(pods.annotations.get(naming.QUEUE_NAME))


@each_of(_queues_named)
def queue_exists(cluster: ClusterObjects, path: str, stated: MaybeText | None) -> Iterator[Finding]:
    """The queue of pods exists and is open, and so is its parent.

    Pass: a Queue research, and a PodGroup with queue research; the queue default.
    Fail: a queue whose status is Closed: Volcano's webhook rejects the PodGroup; among all objects
    of the cluster, queue night and a Queue of another name. It is the queue of a PodGroup, a Job, a
    ModelServing, a LeaderWorkerSet, a Ray cluster or of pods that Volcano schedules.
    Level: mandatory for a closed queue; advisory for one that is missing beside others if these are
    all objects of the cluster; else a missing one is not checked.
    Source: Volcano v1.14 pkg/webhooks/admission/podgroups/validate/validate_podgroup.go
    checkQueueState. Run on 1.14.1: AIBrix 0.7.0 makes pods that wait, and RoleBasedGroup
    v0.8.0-alpha.5 makes none.
    """
    if stated in _ALWAYS or stated in {None, ""}:
        return
    name = known(stated, path)
    queue = cluster.named(QUEUE).get(("", str(name)))
    if queue is None and cluster.complete and cluster.of(QUEUE):
        require_known(path, cluster.name_unknown(QUEUE))
        seen = f"is {display(name)}, but there is no such Queue, and Volcano's webhook rejects it"
        yield advise(path, seen, "add the Queue, or write the name of one that exists")
        return
    missing = Unknown(f"the queue {display(name)} is not among these objects")
    state = mapping(queue.body.get("status")).get("state") if queue else missing
    require_known(path, state)
    if state in ("Closed", "Closing"):
        yield Finding(
            path=path,
            seen=f"is {display(name)}, a queue whose state is {state}, and Volcano accepts "
            "nothing new in it",
            remedy="open the queue, or name another one",
        )


def queue_cycle(cluster: ClusterObjects) -> Iterator[Finding]:
    """No queue is its own ancestor.

    Pass: night below research.
    Fail: night below research and research below night.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/plugins/capacity/capacity.go updateAncestors.
    """
    queues = {name: entry for (_, name), entry in cluster.named(QUEUE).items()}
    parents = {name: text(entry.spec.get("parent")) for name, entry in queues.items()}
    done: set[str] = set()
    for start in queues:
        walk: dict[str, int] = {}
        name: MaybeText | None = start
        while isinstance(name, str) and name in queues and name not in done and name not in walk:
            walk[name] = len(walk)
            name = parents[name]
        if isinstance(name, str) and name in walk and parents[name] != name:
            cycle = [*list(walk)[walk[name] :], name]
            shown = cycle if len(cycle) <= _MANY else [*cycle[:_MANY], "…", name]
            yield Finding(
                path=queues[cycle[0]].at("spec.parent"),
                seen=f"the parents form a cycle, {' -> '.join(shown)}, and each queue needs its "
                "parent first",
                remedy="remove the parent of one of them",
                rule="queue-cycle",
            )
        done.update(walk)


def queue_within_parent(cluster: ClusterObjects) -> Iterator[Finding]:
    """A queue's capability is within its parent's, and siblings share what their parent has.

    Since 1.14.2 the capability of each queue is within the capability of the nearest queue above it
    that names the resource, and what the queues below a parent deserve, or are guaranteed, is in
    sum within the parent's own list. In 1.14.0 and 1.14.1 a resource that the parent's capability
    does not name counts as 0 there, and the capability replaces a list that the parent does not
    have.

    Pass: night and day with 16 GPUs each below research with 16, which deserve 8 each of its 16.
    Fail: night with capability 16 below research with 8; night, which deserves 8, below research,
    which deserves nothing (since 1.14.2).
    Level: mandatory, because Volcano's webhook rejects it.
    Source: Volcano v1.14.1, v1.14.2 and v1.15.1 pkg/webhooks/admission/queues/validate/
    validate_queue.go validateHierarchicalQueueResources; pkg/scheduler/api/resource_info.go
    LessPartly.
    """
    queues = {name: entry for (_, name), entry in cluster.named(QUEUE).items()}
    below: dict[str, list[Object]] = {}
    for name, entry in queues.items():
        parent = text(entry.spec.get("parent"))
        if isinstance(parent, Unknown):
            yield not_checked(entry.at("spec.parent"), parent, _WITHIN)
        elif isinstance(parent, str) and parent in queues and parent not in {name, "root"}:
            below.setdefault(parent, []).append(entry)
    for name, children in below.items():
        for child in children:
            if caps_only_what_it_names(child):
                yield from _below_ancestors(child, queues)
            else:
                yield from _capability(child, queues[name], name)
        for where in _SHARED:
            yield from _together(children, queues[name], name, where)


@part_of_rule
def _below_ancestors(child: Object, queues: Mapping[str, Object]) -> Iterator[Finding]:
    """Compare a capability with the nearest queue above that names the resource."""
    own, path = _amounts(child, "capability"), child.at("spec.capability")
    require_known(path, own)
    for resource, amount in mapping(own).items():
        at, (name, limit) = join_path(path, key_text(resource)), _nearest(child, queues, resource)
        number = parse_quantity(amount)
        if gap := first_unknown(amount, limit):
            yield not_checked(at, gap, _WITHIN)
        elif limit is not None and number is not None and _exceeds(resource, [number], limit):
            seen = (
                f"is {display(amount)}, but the capability of {display(name)}, the nearest queue "
                f"above that names it, has {display(limit)}, and Volcano's webhook rejects more"
            )
            yield Finding(path=at, seen=seen, remedy=at_most(limit), rule=_WITHIN)


def _nearest(child: Object, queues: Mapping[str, Object], resource: Any) -> tuple[str, object]:
    """Find the nearest queue above that names a resource, and how much of it: 0 names nothing."""
    parent, met = text(child.spec.get("parent")), set[str]()
    while isinstance(parent, str) and parent in queues and len(met) < _DEEPEST:
        if parent in {"root", *met}:
            break
        met.add(parent)
        listed = _amounts(queues[parent], "capability")
        stated = listed if unknown_in(listed) else mapping(listed).get(resource)
        if unknown_in(stated) or (parse_quantity(stated) or 0) > 0:
            return parent, stated
        parent = text(queues[parent].spec.get("parent"))
    return "", parent if isinstance(parent, Unknown) else None


@part_of_rule
def _capability(child: Object, parent: Object, name: str) -> Iterator[Finding]:
    """Compare a capability with the parent's, in which a missing resource counts as 0."""
    less, more = _amounts(child, "capability"), _amounts(parent, "capability")
    path = child.at("spec.capability")
    require_known(path, less, more)
    for resource, amount in mapping(less).items():
        number, limit = parse_quantity(amount), mapping(more).get(resource)
        at = join_path(path, key_text(resource))
        if gap := first_unknown(amount, limit):
            yield not_checked(at, gap, _WITHIN)
        elif number is not None and _exceeds(resource, [number], limit):
            has = "does not name it, which Volcano's webhook counts as 0"
            remedy = f"add it to the capability of {display(name)}, with at least {amount}"
            if limit is not None:
                has = f"has {display(limit)}, and Volcano's webhook rejects more than that"
                remedy = at_most(limit)
            seen = f"is {display(amount)}, but the capability of {display(name)}, its parent, {has}"
            yield Finding(path=at, seen=seen, remedy=remedy, rule=_WITHIN)


@part_of_rule
def _together(children: list[Object], parent: Object, name: str, where: str) -> Iterator[Finding]:
    """Compare what the queues below a queue have together with its own amounts."""
    lists = [_amounts(child, where) for child in children]
    own = _amounts(parent, where)
    place, limits = (where, own)
    if not own and not caps_only_what_it_names(parent):
        place, limits = "capability", _amounts(parent, "capability")
        if not limits:
            return
    if not any(lists):
        return
    path = parent.at(f"spec.{place}")
    require_known(path, limits, *lists)
    amounts: dict[Any, list[object]] = {}
    for each in lists:
        for key, amount in mapping(each).items():
            amounts.setdefault(key, []).append(amount)
    for resource, stated in amounts.items():
        limit, word = mapping(limits).get(resource), key_text(resource)
        if gap := first_unknown(limit, *stated):
            yield not_checked(join_path(path, word), gap, _WITHIN)
            continue
        numbers = [number for number in map(parse_quantity, stated) if number is not None]
        if _exceeds(resource, numbers, limit):
            total = together(str(resource), numbers)
            needed = f"{_SHARED[where]} {render_quantity(total)} of {display(word)} together"
            yield _too_small(path, limit, f"the queues below {display(name)} {needed}", word, total)


def _too_small(path: str, limit: object, needed: str, resource: str, total: Decimal) -> Finding:
    """Write the finding of a limit below what the queues under it need together."""
    least = render_quantity(total)
    if limit is None:
        seen = (
            f"does not name {display(resource)}, which Volcano's webhook counts as 0, but {needed}"
        )
        remedy = f"add it, with at least {least}"
        return Finding(path=path, seen=seen, remedy=remedy, rule=_WITHIN)
    seen = f"is {display(limit)}, but {needed}, and Volcano's webhook rejects more than that"
    remedy = at_least(least)
    return Finding(path=join_path(path, resource), seen=seen, remedy=remedy, rule=_WITHIN)


def _amounts(queue: Object, where: str) -> object:
    """Return a list of a queue without null values, which the API server also drops."""
    found: object = queue.spec
    for key in where.split("."):
        found = found if unknown_in(found) else mapping(found).get(key)
    if not isinstance(found, Mapping):
        return found
    return {resource: amount for resource, amount in found.items() if amount is not None}


def _exceeds(resource: object, amounts: Sequence[Decimal], limit: object) -> bool:
    number = parse_quantity(limit)
    return (limit is None or number is not None) and exceeds(str(resource), amounts, number)
