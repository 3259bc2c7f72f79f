"""The objects of one cluster, read once for the rules that compare them, and selectors.

Rules look objects up by namespace and name. Reading never raises, whatever a manifest contains.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import chain
from typing import Any, TypeVar

from kthena_components.core import naming
from kthena_components.core.facts.listening import Listening
from kthena_components.core.facts.serving import GpuDemand
from kthena_components.core.objects.object import (
    EACH_POD,
    MODEL_SERVING,
    VOLCANO,
    GroupKind,
    Object,
    PodSet,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    NOT_YET_KNOWN,
    first_unknown,
    mapping,
    pairs,
    unknown_in,
    unknown_within,
)
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown, total

# Pods that are placed together, or not at all.


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """The pods that a controller puts into one PodGroup, as many as must start together."""

    owner: Object
    title: str
    """What it is, for messages: `each group`."""
    pods: tuple[tuple[PodSet, MaybeInt], ...]
    """Its pods, each with the number that must start together."""
    queue: MaybeText | None = None
    """None: it has the default one, or another gang of the same pods states it."""
    queue_path: str = ""
    """Path of its name, in the object."""
    topology: Mapping[str, Any] = field(default_factory=dict)
    """Its networkTopology."""
    topology_path: str = ""
    sure: bool = True
    """Whether its controller makes the PodGroup in any case, and not only with an option."""
    scheduler: str = VOLCANO
    """The scheduler whose PodGroup it is."""
    resources: object = None
    """What must be free for it, if the PodGroup states that. None: what its pods request."""

    @property
    def size(self) -> MaybeInt:
        """The number of pods that must start together."""
        return total([number for _, number in self.pods])


_Read = TypeVar("_Read")
Key = tuple[str, str]
"""Namespace and name."""
Ports = Mapping[str, Listening]
"""Where pods listen, by the path of their template in the object."""
_ELSEWHERE = Unknown("other pods may belong to the gang")


@dataclass(slots=True)
class ClusterObjects:
    """The given objects of a cluster, with lookups."""

    objects: list[Object] = field(default_factory=list)
    by_kind: dict[GroupKind, list[Object]] = field(default_factory=dict)
    views: dict[int, object] = field(default_factory=dict)
    """Views by the object's index; none for an unknown kind."""
    pods: list[PodSet] = field(default_factory=list)
    pods_of: dict[int, list[PodSet]] = field(default_factory=dict)
    """Pods by their object's index."""
    gangs: dict[Key, list[PodSet]] = field(default_factory=dict)
    """Pods by namespace and name of their PodGroup."""
    made_gangs: list[Gang] = field(default_factory=list)
    """Gangs whose PodGroups their controllers create."""
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
    _kept: dict[Callable[["ClusterObjects"], object], Sequence[Any]] = field(default_factory=dict)

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
        gangs: Iterable[Gang] = (),
    ) -> None:
        """Add an object.

        Args:
            pods: The pods of its templates; None if its kind has none.
            demand: Its accelerators besides those.
            gangs: The gangs that its controller makes.
        """
        self.objects.append(found)
        self.by_kind.setdefault(found.group_kind, []).append(found)
        self.views[found.index] = view
        if pods is not None:
            self.templated.add(found.group_kind)
            for one in pods:
                self.pods.append(one)
                self.pods_of.setdefault(one.owner.index, []).append(one)
                self._add_to_gang(one)
        self.made_gangs += gangs
        if demand is not None:
            self.demands.append((found, demand))

    @property
    def hidden_pods(self) -> Unknown | None:
        """Why there may be pods with unknown labels and namespace; None if there are none."""
        shown = {id(pods.owner) for pods in self.pods}
        for pods in self.pods:
            if gap := unknown_in(pods.owner.namespace):
                return gap
        silent = (o for o in self.objects if o.group_kind in self.templated and id(o) not in shown)
        return next(filter(None, (unknown_within(o.body.get("spec")) for o in silent)), None)

    def _add_to_gang(self, pods: PodSet) -> None:
        """Add pods to the gang that they name, unless a controller creates its PodGroup."""
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

    def once(self, read: Callable[["ClusterObjects"], Iterable[_Read]]) -> Sequence[_Read]:
        """Return what a function reads of the objects, for several rules.

        The result is cached: call it only after all objects were added.
        """
        if read not in self._kept:
            self._kept[read] = [*read(self)]
        return self._kept[read]

    def name_unknown(self, kind: GroupKind) -> Unknown | None:
        """Explain why the names of a kind's objects are unknown, if they are."""
        for one in self.of(kind):
            for value in (one.name, one.namespace):
                if isinstance(value, Unknown):
                    return value
        return None


# Decides whether a selector of labels matches pods, with the labels that a controller adds.


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


def surely_selects(wanted: Mapping[str, object], pods: PodSet) -> bool:
    """Return whether a selector matches pods, whatever labels their controller may add."""
    stated = pods.added is not None or wanted.keys() <= pods.labels.keys()
    return (stated or not pods.by_controller) and selects(wanted, pods) is True


def has_label(pods: PodSet, key: str, value: object) -> bool | Unknown:
    """Return whether pods have a label with a value, or may have it."""
    stated = pods.labels.get(key)
    if stated is None and pods.by_controller and pods.added is None:
        return True
    held = (pods.added or {}).get(key) if stated is None else stated
    if gap := unknown_in(held):
        return gap
    if not isinstance(held, str) and hasattr(held, "fullmatch"):  # of many values
        return isinstance(value, str) and held.fullmatch(value) is not None
    return held == value or (held is None and key in EACH_POD)


def names_serving(cluster: ClusterObjects, found: Object, wanted: object) -> bool:
    """Return whether a selector names a ModelServing among the objects by Kthena's label."""
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
        if first_unknown(pods.labels.get(""), *pods.labels.values()):
            self.hidden.append(pods)
            return
        self.known.append(pods)
        for key, value in chain(pairs(pods.labels), _surely_added(pods)):
            if isinstance(key, str) and isinstance(value, str):
                self._holding.setdefault((key, value), []).append(pods)

    def for_another_rule(self) -> "PodIndex":
        """Return an index of the same pods, which allows as many comparisons as at first."""
        return PodIndex(self.known, self.hidden, _holding=self._holding)

    def matching(self, wanted: Mapping[str, str]) -> list[PodSet]:
        """Return the pods that a selector surely matches; empty if there are too many to compare.

        What a controller adds counts if it is known.
        """
        found = []
        for pods in self._candidates(wanted):
            self.left -= 1
            if self.left < 0:
                return []
            if surely_selects(wanted, pods):
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

    def candidates(self, wanted: Mapping[str, str]) -> list[PodSet]:
        """Return the pods that a selector may match, in any order."""
        return [*self._candidates(wanted), *self.hidden]

    def _candidates(self, wanted: Mapping[str, str]) -> Iterable[PodSet]:
        """Return the pods that may match: those with the rarest of the labels."""
        own = [pair for pair in wanted.items() if pair[0] not in EACH_POD]
        found = [(self._holding.get(pair, []), self._without(pair[0])) for pair in own]
        rarest = min(found, key=lambda both: len(both[0]) + len(both[1]), default=(self.known,))
        return chain(*rarest)

    def _without(self, key: str) -> list[PodSet]:
        """Return the pods to which a controller may add a label whose value is not one string."""
        if key not in self._lacking:
            self.left -= len(self.known)
            own = (pods for pods in self.known if pods.by_controller)
            self._lacking[key] = [
                pods
                for pods in own
                if pods.labels.get(key) is None
                and (pods.added is None or not isinstance(pods.added.get(key, ""), str))
            ]
        return self._lacking[key]


def running_pods(cluster: ClusterObjects) -> dict[object, PodIndex]:
    """Return the pods by namespace, without those of templates that are scaled to nothing."""
    return {namespace: index.for_another_rule() for namespace, index in cluster.once(_running)}


Place = tuple[int, str]
"""The number of an object, and the path of a template in it."""


@dataclass(frozen=True, slots=True)
class Selected:
    """Pods of some templates, such as those of a Service, in the order of their objects."""

    pods: Sequence[PodSet] = ()
    places: frozenset[Place] = frozenset()
    running: frozenset[Place] = frozenset()
    """Those that are not scaled to nothing."""
    sure: bool = True


def place_of(pods: PodSet) -> Place:
    """Return which template pods are of."""
    return pods.owner.index, pods.path


def several(found: Sequence[PodSet], *, sure: bool = True) -> Selected:
    """Return pods with their places."""
    running = frozenset(place_of(pods) for pods in found if pods.count != 0)
    return Selected(found, frozenset(map(place_of, found)), running, sure)


def selected_by(cluster: ClusterObjects, service: Object) -> Selected:
    """Return the pods of a Service. They are found once for all rules and pods that ask."""
    found: dict[int, Selected] = cluster.once(_kept)[0]
    return found.get(service.index) or found.setdefault(service.index, _select(cluster, service))


def _kept(_: ClusterObjects) -> Iterator[dict[int, Selected]]:
    yield {}


def _select(cluster: ClusterObjects, service: Object) -> Selected:
    wanted = mapping(service.spec.get("selector"))
    index = cluster.once(_every)[0].get(service.namespace)
    if index is None or not wanted:
        return Selected()
    found = index.candidates({key: text for key, text in wanted.items() if isinstance(text, str)})
    near = [pods for pods in found if selects(wanted, pods) is not False]
    near.sort(key=lambda pods: pods.owner.index)
    return several(near, sure=all(surely_selects(wanted, pods) for pods in near))


def _every(cluster: ClusterObjects) -> Iterator[dict[object, PodIndex]]:
    yield _indexed(cluster.pods)


def _running(cluster: ClusterObjects) -> Iterable[tuple[object, PodIndex]]:
    return _indexed(pods for pods in cluster.pods if pods.count != 0).items()


def _indexed(found: Iterable[PodSet]) -> dict[object, PodIndex]:
    indexes: dict[object, PodIndex] = {}
    for pods in found:
        indexes.setdefault(pods.owner.namespace, PodIndex()).add(pods)
    return indexes


def _surely_added(pods: PodSet) -> Iterator[tuple[str, object]]:
    """Return the labels that a controller adds to pods that do not state them."""
    for key, value in (pods.added or {}).items():
        if pods.labels.get(key) is None:
            yield key, value
