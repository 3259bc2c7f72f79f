"""The pods that an update starts before old ones stop, and whether they find room. Pure.

Source: the rollouts of the kinds, which `surge-needs-spare-gpus` reads, too.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.checker.cluster_objects import known, read_objects
from kthena_components.core.findings import count_of
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import is_budget, scaled
from kthena_components.placement.findings import FITTED, first_change, why_not
from kthena_components.placement.model import Cluster, PodGroup, PodSet
from kthena_components.placement.place import place
from kthena_components.placement.pod_sets import Templates
from kthena_components.systems.system import Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class Surge:
    """What an update of an object runs beside its old pods."""

    owner: str
    groups: tuple[PodGroup, ...]
    stuck: bool
    """Whether no old pod stops before, so that the update ends only if all of them fit."""


def surges_of(objects: Iterable[Mapping[str, Any]], groups: Iterable[PodGroup]) -> list[Surge]:
    """Return the surge of each object that has one; of several strategies in one, none is read.

    Args:
        objects: The objects after the change.
        groups: Their groups.
    """
    by_owner: dict[str, list[PodGroup]] = {}
    for group in groups:
        by_owner.setdefault(group.owner, []).append(group)
    found = []
    for one, kind, view in known(read_objects(list(objects), [])):
        rollouts = list(kind.rollouts(view)) if kind.rollouts is not None else []
        owner = Templates(one, {}).title
        own = by_owner.get(owner, [])
        if len(rollouts) == 1 and own and not any(group.unknown for group in own):
            more, stuck = _more(rollouts[0])
            extra = tuple(_copies(own, rollouts[0], more))
            found += [Surge(owner=owner, groups=extra, stuck=stuck)] if extra else []
    return found


def _more(rollout: Rollout) -> tuple[int, bool]:
    """Count the replicas that start beside the old ones, and say whether these all stay."""
    replicas = rollout.replicas
    if not isinstance(replicas, int) or replicas < 1:
        return 0, False
    if rollout.all_at_once:
        return replicas, True
    stated = rollout.max_unavailable, rollout.max_surge
    down, up = (u if s is None else s for s, u in zip(stated, rollout.usual, strict=True))
    if not is_budget(up) or not is_budget(down):
        return 0, False
    return scaled(up, replicas, up=True) or 0, not scaled(down, replicas, up=False)


def _copies(own: list[PodGroup], rollout: Rollout, more: int) -> Iterator[PodGroup]:
    """Write further replicas: whole groups, or pods of the only group."""
    replicas = rollout.replicas
    if not more or not isinstance(replicas, int):
        return
    if len(own) == replicas and own[0].minimum:
        for number in range(more):
            group = own[number % len(own)]
            yield replace(group, name=f"{group.name}-update-{number}")
    elif len(own) == 1:
        pods = tuple(replace(one, count=_share(one, more, replicas)) for one in own[0].pods)
        yield replace(own[0], name=f"{own[0].name}-update", pods=pods)


def _share(pods: PodSet, more: int, replicas: int) -> int:
    return -(-pods.count * more // replicas)


def notes_of(cluster: Cluster, surges: Iterable[Surge]) -> dict[str, str]:
    """Say of each owner whose surge finds no room what the update needs.

    Args:
        cluster: With the old pods.
        surges: What is to be updated.
    """
    found = {}
    for surge in surges:
        own = {node for one in cluster.running if one.group.owner == surge.owner
               for node in one.nodes}  # fmt: skip
        there = replace(cluster, taken_by_others=cluster.taken_by_others | own)
        waiting = [one for one in place(there, surge.groups) if one.verdict not in FITTED]
        if waiting:
            number = sum(group.size for group in surge.groups)
            begins = f"during its update, {count_of(number, 'pod')} beside the old ones must fit"
            end = ", and the update never ends otherwise" if surge.stuck else ""
            why = ". ".join(filter(None, (why_not(waiting[0]), first_change(waiting[0]))))
            found[surge.owner] = f"{begins}{end}: {why}"
    return found
