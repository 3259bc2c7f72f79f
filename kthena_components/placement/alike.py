"""Finds groups that get equal answers, so that each question is asked once. Pure."""

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace

from kthena_components.placement.model import Change, Cluster, Obstacle, PodGroup
from kthena_components.placement.volcano.jobs import policy_of


def likeness(cluster: Cluster, group: PodGroup, *, others: bool = False) -> Hashable:
    """Return what decides where the pods of a group fit: all but names.

    Its namespace decides, too, if a cluster has quotas or volumes. Of the labels of its pods, only
    those that form its subgroups do, unless other pods decide where they can be.
    """
    pods = tuple(replace(one, name="", labels=one.labels if others else {}) for one in group.pods)
    policies = tuple(replace(one, match_labels={}) for one in group.subgroups)
    found = replace(group, name="", namespace="", owner="", pods=pods, subgroups=policies)
    space = group.namespace if others or cluster.quotas or cluster.volumes else ""
    return repr(found), space, tuple(_subgroups(group))


def _subgroups(group: PodGroup) -> Iterator[tuple[int, tuple[str, ...]]]:
    for pods in group.pods if group.subgroups else ():
        at, values = policy_of(group, pods.labels)
        yield at, tuple(values)


def obstacles_of(group: PodGroup, found: Iterable[Obstacle]) -> tuple[Obstacle, ...]:
    """Return the obstacles of an equal group with this group's names."""
    return tuple(
        replace(one, changes=tuple(_change(group, change) for change in one.changes))
        for one in found
    )


def _change(group: PodGroup, change: Change) -> Change:
    other = change.group
    if other is None or len(other.pods) != len(group.pods):
        return change
    pods = tuple(
        replace(new, name=own.name, labels=own.labels)
        for new, own in zip(other.pods, group.pods, strict=True)
    )
    policies = tuple(
        replace(new, match_labels=own.match_labels)
        for new, own in zip(other.subgroups, group.subgroups, strict=True)
    )
    own = replace(other, namespace=group.namespace, name=group.name, owner=group.owner,
                  pods=pods, subgroups=policies)  # fmt: skip
    return replace(change, group=own)
