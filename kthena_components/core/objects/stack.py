"""The objects of one cluster, read once for the rules that compare them.

Each rule looks things up by namespace and name. Nothing in a manifest makes the reading raise.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from kthena_components.core.facts.totals import GpuDemand
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.values.read import NOT_YET_KNOWN
from kthena_components.core.values.unknown import Unknown

Key = tuple[str, str]
"""Namespace and name."""
_ELSEWHERE = Unknown("pods that are not in this stack may belong to the gang")


@dataclass(slots=True)
class Stack:
    """All objects, and where to find them."""

    objects: list[Object] = field(default_factory=list)
    by_kind: dict[GroupKind, list[Object]] = field(default_factory=dict)
    views: dict[int, object] = field(default_factory=dict)
    """What was read of an object, by its index; none for a kind that is not known."""
    pods: list[PodSet] = field(default_factory=list)
    gangs: dict[Key, list[PodSet]] = field(default_factory=dict)
    """Pods by the namespace and the name of the PodGroup that they ask for."""
    demands: list[tuple[Object, GpuDemand]] = field(default_factory=list)
    """What objects ask for whose pods do not stand in them as templates."""
    unsure: Unknown | None = None
    """Why it is not known of some pods which PodGroup they ask for."""
    templated: set[GroupKind] = field(default_factory=set)
    """The kinds among the objects whose pod templates were read."""
    complete: bool = True
    """Whether what is not here is nowhere in the cluster."""
    sources: Sequence[str] = ()
    """What each object was read from; one source if left out."""
    _named: dict[GroupKind, dict[Key, Object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Leave gangs open where there may be other objects."""
        self.unsure = self.unsure if self.complete else _ELSEWHERE

    def add(
        self,
        found: Object,
        view: object = None,
        *,
        pods: Iterable[PodSet] | None = None,
        demand: GpuDemand | None = None,
    ) -> None:
        """Take in an object.

        Args:
            found: The object.
            view: What was read of it.
            pods: The pods whose templates stand in it; None where its kind has none.
            demand: What it asks for beside those.
        """
        self.objects.append(found)
        self.by_kind.setdefault(found.group_kind, []).append(found)
        self.views[found.index] = view
        if pods is not None:
            self.templated.add(found.group_kind)
            for one in pods:
                self.pods.append(one)
                self._add_to_gang(one)
        if demand is not None:
            self.demands.append((found, demand))

    def _add_to_gang(self, pods: PodSet) -> None:
        gang, namespace = pods.gang, pods.owner.namespace
        if pods.by_controller or gang is None:
            return
        if isinstance(gang, str) and isinstance(namespace, str):
            self.gangs.setdefault((namespace, gang), []).append(pods)
        else:
            self.unsure = self.unsure or NOT_YET_KNOWN

    def source_of(self, found: Object) -> str:
        """Give what an object was read from, if another source may be there in its place."""
        return "" if self.complete or not self.sources else self.sources[found.index]

    def of(self, kind: GroupKind) -> list[Object]:
        """List the objects of a group and kind."""
        return self.by_kind.get(kind, [])

    def named(self, kind: GroupKind) -> dict[Key, Object]:
        """Find the objects of a kind by namespace and name; the first of each name.

        That is for rules, when all objects are read: it is found once.
        """
        if kind not in self._named:
            found = self._named[kind] = {}
            for one in self.of(kind):
                if isinstance(one.name, str) and isinstance(one.namespace, str):
                    found.setdefault((one.namespace, one.name), one)
        return self._named[kind]

    def name_unknown(self, kind: GroupKind) -> Unknown | None:
        """Say why it is not known what all objects of a kind are called, if it is not."""
        for one in self.of(kind):
            for value in (one.name, one.namespace):
                if isinstance(value, Unknown):
                    return value
        return None
