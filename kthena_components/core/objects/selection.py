"""Decides whether a selector of labels matches pods, with the labels that a controller adds."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from kthena_components.core import naming
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.kinds import MODEL_SERVING
from kthena_components.core.objects.object import EACH_POD, Object, PodSet
from kthena_components.core.values.read import mapping, pairs, unknown_in
from kthena_components.core.values.unknown import Unknown

_MOST_COMPARED = 1_000_000
"""Maximum number of comparisons of pods with selectors in one namespace."""


def selects(wanted: Mapping[str, object], pods: PodSet) -> bool | Unknown:
    """Return whether a selector matches pods; Unknown if a label decides that is not known yet.

    Args:
        wanted: The labels that it requires. Their values are known.
        pods: The pods. Labels that their controller may add match, whatever their values.
    """
    gap = unknown_in(pods.labels.get(""))
    for key, value in wanted.items():
        held = has_label(pods, key, value)
        if held is False:
            return False
        gap = gap or unknown_in(held)
    return gap or True


def has_label(pods: PodSet, key: str, value: object) -> bool | Unknown:
    """Return whether pods have a label with a value, or may have it."""
    stated = pods.labels.get(key)
    if stated is None and pods.by_controller and pods.added is None:
        return True
    held = (pods.added or {}).get(key) if stated is None else stated
    if gap := unknown_in(held):
        return gap
    if isinstance(held, re.Pattern):
        return isinstance(value, str) and held.fullmatch(value) is not None
    return held == value or (held is None and key in EACH_POD)


def names_serving(cluster: ClusterObjects, found: Object, wanted: object) -> bool:
    """Return whether a selector names a ModelServing of the stack by Kthena's label."""
    key = (str(found.namespace), str(mapping(wanted).get(naming.NAME)))
    return key in cluster.named(MODEL_SERVING)


@dataclass(slots=True)
class PodIndex:
    """The pods of one namespace by their labels, for many selectors."""

    known: list[PodSet] = field(default_factory=list)
    hidden: list[PodSet] = field(default_factory=list)
    """Pods with a label that is not known yet."""
    left: int = field(default_factory=lambda: _MOST_COMPARED)
    """Remaining number of comparisons with selectors."""
    _holding: dict[tuple[object, object], list[PodSet]] = field(default_factory=dict)
    _lacking: dict[str, list[PodSet]] = field(default_factory=dict)

    def add(self, pods: PodSet) -> None:
        """Add pods."""
        # If all labels are unknown, each single one is.
        if any(map(unknown_in, (pods.labels.get(""), *pods.labels.values()))):
            self.hidden.append(pods)
            return
        self.known.append(pods)
        for key, value in pairs(pods.labels):
            if isinstance(key, str) and isinstance(value, str):
                self._holding.setdefault((key, value), []).append(pods)

    def matching(self, wanted: Mapping[str, str]) -> list[PodSet]:
        """Return the pods that a selector surely matches; empty if there are too many to compare.

        What a controller adds counts if it is known.
        """
        found = []
        for pods in self._candidates(wanted):
            self.left -= 1
            if self.left < 0:
                return []
            stated = pods.added is not None or wanted.keys() <= pods.labels.keys()
            if (stated or not pods.by_controller) and selects(wanted, pods) is True:
                found.append(pods)
        return found

    def matches(self, wanted: Mapping[str, str]) -> bool | Unknown:
        """Return whether a selector matches any of the pods."""
        gap: Unknown | None = None
        for pods in chain(self._candidates(wanted), self.hidden):
            self.left -= 1
            if self.left < 0:
                return Unknown("there are too many pods and Services to compare them all")
            found = selects(wanted, pods)
            if found is True:
                return True
            gap = gap or unknown_in(found)
        return gap or False

    def _candidates(self, wanted: Mapping[str, str]) -> Iterable[PodSet]:
        """Return the pods that may match: those with the rarest of the labels."""
        own = [pair for pair in wanted.items() if pair[0] not in EACH_POD]
        found = [(self._holding.get(pair, []), self._without(pair[0])) for pair in own]
        rarest = min(found, key=lambda both: len(both[0]) + len(both[1]), default=(self.known,))
        return chain(*rarest)

    def _without(self, key: str) -> list[PodSet]:
        """Return the pods to which a controller may add a label."""
        if key not in self._lacking:
            self.left -= len(self.known)
            own = (pods for pods in self.known if pods.by_controller)
            self._lacking[key] = [
                pods
                for pods in own
                if pods.labels.get(key) is None and (pods.added is None or key in pods.added)
            ]
        return self._lacking[key]
