"""The objects of one cluster, read once for the rules that compare them.

Rules look objects up by namespace and name. Reading never raises, whatever a manifest contains.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kthena_components.core.facts.listening import Listening
from kthena_components.core.facts.totals import GpuDemand
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.values.read import NOT_YET_KNOWN, unknown_in, unknown_within
from kthena_components.core.values.unknown import Unknown

Key = tuple[str, str]
"""Namespace and name."""
Ports = Mapping[str, Listening]
"""Where pods listen, by the path of their template in the object."""
_ELSEWHERE = Unknown("pods that are not in this stack may belong to the gang")


@dataclass(slots=True)
class ClusterObjects:
    """The given objects of a cluster, with lookups."""

    objects: list[Object] = field(default_factory=list)
    by_kind: dict[GroupKind, list[Object]] = field(default_factory=dict)
    views: dict[int, object] = field(default_factory=dict)
    """Views by the object's index; none for an unknown kind."""
    pods: list[PodSet] = field(default_factory=list)
    gangs: dict[Key, list[PodSet]] = field(default_factory=dict)
    """Pods by namespace and name of their PodGroup."""
    demands: list[tuple[Object, GpuDemand]] = field(default_factory=list)
    """Accelerators of objects without pod templates."""
    unsure: Unknown | None = None
    """Why the PodGroup of some pods is unknown."""
    templated: set[GroupKind] = field(default_factory=set)
    """Kinds whose pod templates were read."""
    complete: bool = True
    """Whether the cluster has no other objects."""
    sources: Sequence[str] = ()
    """The file that each object was read from; one file if left out."""
    ports: Callable[[Object], Ports] = lambda _: {}
    """Returns where the pods of an object listen, by the path of their template."""
    _ports: dict[int, Ports] = field(default_factory=dict)
    _named: dict[GroupKind, dict[Key, Object]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Mark gangs as incomplete if there may be other objects."""
        self.unsure = self.unsure if self.complete else _ELSEWHERE

    def add(
        self,
        found: Object,
        view: object = None,
        *,
        pods: Iterable[PodSet] | None = None,
        demand: GpuDemand | None = None,
    ) -> None:
        """Add an object.

        Args:
            found: The object.
            view: Its view.
            pods: The pods of its templates; None if its kind has none.
            demand: Its accelerators besides those.
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

    @property
    def hidden_pods(self) -> Unknown | None:
        """Why there may be pods of which neither labels nor namespace are known; None if none."""
        shown = {id(pods.owner) for pods in self.pods}
        for pods in self.pods:
            if gap := unknown_in(pods.owner.namespace):
                return gap
        silent = (o for o in self.objects if o.group_kind in self.templated and id(o) not in shown)
        return next(filter(None, (unknown_within(o.body.get("spec")) for o in silent)), None)

    def _add_to_gang(self, pods: PodSet) -> None:
        gang, namespace = pods.gang, pods.owner.namespace
        if pods.by_controller or gang is None:
            return
        if isinstance(gang, str) and isinstance(namespace, str):
            self.gangs.setdefault((namespace, gang), []).append(pods)
        else:
            self.unsure = self.unsure or NOT_YET_KNOWN

    def listening(self, pods: PodSet) -> Listening | None:
        """Return where some pods listen; None if nothing is known."""
        owner = pods.owner
        if owner.index not in self._ports:
            self._ports[owner.index] = self.ports(owner)
        return self._ports[owner.index].get(pods.path)

    def source_of(self, found: Object) -> str:
        """Return the file of an object; empty if the files cannot be alternatives."""
        return "" if self.complete or not self.sources else self.sources[found.index]

    def of(self, kind: GroupKind) -> list[Object]:
        """List the objects of a group and kind."""
        return self.by_kind.get(kind, [])

    def named(self, kind: GroupKind) -> dict[Key, Object]:
        """Find the objects of a kind by namespace and name; the first of each name.

        The result is cached: call it only after all objects were added.
        """
        if kind not in self._named:
            found = self._named[kind] = {}
            for one in self.of(kind):
                if isinstance(one.name, str) and isinstance(one.namespace, str):
                    found.setdefault((one.namespace, one.name), one)
        return self._named[kind]

    def name_unknown(self, kind: GroupKind) -> Unknown | None:
        """Explain why the names of a kind's objects are unknown, if they are."""
        for one in self.of(kind):
            for value in (one.name, one.namespace):
                if isinstance(value, Unknown):
                    return value
        return None
