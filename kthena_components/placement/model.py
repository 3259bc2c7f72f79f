"""The words of placement: pods, groups, nodes with room, and the answer for each group. Pure.

A `Cluster` holds what is there, `PodGroup`s are what shall run, and each gets one `Outcome`.
Amounts are in the base unit of each resource: cores, bytes, devices.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar

from kthena_components.core.topology.domains import Domain
from kthena_components.core.topology.node_fit import Amounts
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import Unknown

T = TypeVar("T")
Body = Mapping[str, Any]

VOLCANO = "volcano"
"""The schedulerName of Volcano."""


class Computed:
    """What was computed of objects, by their identities. A change makes a new object."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._found: dict[Hashable, tuple[object, Any]] = {}

    def of(self, name: Hashable, kept: tuple[object, ...], compute: Callable[[], T]) -> T:
        """Return what a function computes of some objects, and call it only once.

        Args:
            name: What is computed, with all that decides about it besides the objects.
            kept: The objects. They are kept, so that no others get their identities.
            compute: Computes it.
        """
        key = (name, *map(id, kept))
        if (known := self._found.get(key)) is None:
            known = self._found[key] = kept, compute()
        found: T = known[1]
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The networkTopology of a PodGroup or of one subgroup."""

    hard: bool
    highest_tier: int | None = None
    highest_tier_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a LimitRange refuses a pod."""

    limit_range: str
    text: str
    change: str
    """The change of the LimitRange after which it accepts the pod: `raise max cpu to 8`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """Equal pods of one PodGroup, in the order in which their controller creates them."""

    name: str
    """What users call them: `prefill`, or the name of their StatefulSet."""
    count: int
    requests: Amounts
    """What each requests, without its slot in `pods`."""
    spec: Body = field(default_factory=dict)
    """Their pod spec: node selector, affinity, tolerations, host ports, volumes."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Their labels, which find their subgroup."""
    task: str = ""
    """The value of `volcano.sh/task-spec`."""
    priority: int = 0
    refusals: tuple[Refusal, ...] = ()
    """Why the LimitRanges of their namespace refuse them. Then they are never created."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubGroupPolicy:
    """One entry of subGroupPolicy: how pods form subgroups, and what each subgroup needs."""

    name: str
    match_labels: Mapping[str, Any] = field(default_factory=dict)
    """A label selector of Kubernetes. Empty: all pods."""
    match_label_keys: tuple[str, ...] = ()
    size: int = 1
    minimum: int = 0
    """How many subgroups must be placed."""
    topology: Topology | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """Pods that a scheduler places together: one PodGroup of Volcano, or one pod by itself."""

    namespace: str
    name: str
    owner: str
    """The object that makes it, for messages: `ModelServing serving/chat`."""
    pods: tuple[PodSet, ...]
    minimum: int
    """minMember. 0: each pod starts alone."""
    task_minimum: Mapping[str, int] = field(default_factory=dict)
    """minTaskMember."""
    min_resources: Amounts | None = None
    topology: Topology | None = None
    subgroups: tuple[SubGroupPolicy, ...] = ()
    queue: str = "default"
    priority: int = 0
    scheduler: str = VOLCANO
    unknown: Unknown | None = None
    """Why its pods or sizes are not known. Then nothing is said about it."""

    @property
    def title(self) -> str:
        """Its namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def size(self) -> int:
        """The number of its pods."""
        return sum(pods.count for pods in self.pods)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node, and what running pods leave of it."""

    name: str
    body: Body
    """Its labels, taints and conditions, as the API server lists them."""
    allocatable: Amounts
    used: Amounts
    """What the pods on it request, including their slots in `pods`."""
    accepts_pods: bool = True
    """Whether it is ready and not cordoned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """One Volcano queue."""

    name: str
    capability: Amounts = field(default_factory=dict)
    """Upper limits. A resource that is not listed has none."""
    deserved: Amounts = field(default_factory=dict)
    guarantee: Amounts = field(default_factory=dict)
    used: Amounts = field(default_factory=dict)
    parent: str = ""
    weight: int = 1
    priority: int = 0
    """Its groups come before those of queues with a lower one."""
    open: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which pods a ResourceQuota counts."""

    name: str
    """PriorityClass, BestEffort, NotBestEffort, Terminating, …"""
    operator: str = "Exists"
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What a ResourceQuota of a namespace allows and what is used, by its key: `requests.cpu`."""

    namespace: str
    name: str
    hard: Amounts
    used: Amounts
    scopes: tuple[Scope, ...] = ()
    """All must hold for a pod that it counts. Without any, it counts all pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Pods of one PodGroup that run, so that the loss of their node can be judged."""

    group: PodGroup
    nodes: tuple[str, ...]
    """The node of each pod, in the order of the group's pods; empty for one that waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Equal pods that run and are in no group, for what pods ask of the pods around them."""

    namespace: str
    pods: PodSet
    """Their labels and their spec. What they request is in the use of their nodes."""
    nodes: tuple[str, ...]
    """The node of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    """The version and the plugins of Volcano's scheduler."""

    version: str = "v1.14.1"
    plugins: frozenset[str] = frozenset(
        {"priority", "gang", "conformance", "overcommit", "drf", "predicates", "proportion",
         "nodeorder", "binpack", "network-topology-aware"}
    )  # fmt: skip
    arguments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Arguments by plugin, such as the weights of `binpack`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What a cluster has: the state that groups are placed into."""

    nodes: Sequence[Node]
    domains: Sequence[Domain] = ()
    """The HyperNodes with their nodes, lowest tiers first."""
    hyper_nodes: Sequence[Body] = ()
    """The same HyperNodes as the API server lists them."""
    queues: Sequence[Queue] = ()
    quotas: Sequence[Quota] = ()
    limit_ranges: Sequence[Body] = ()
    """The LimitRanges of namespaces, as the API server lists them."""
    volumes: Sequence[Body] = ()
    """PersistentVolumes and PersistentVolumeClaims that state where they can be used."""
    running: Sequence[Running] = ()
    neighbours: Sequence[Neighbour] | None = None
    """All other pods that run. None: not known."""
    waiting: Sequence[PodGroup] = ()
    """Groups that wait already; the scheduler tries them before later ones of equal priority."""
    scheduler: Scheduler = field(default_factory=Scheduler)
    priorities: Mapping[str, int] = field(default_factory=dict)
    """The values of priority classes; the default class is also listed without a name."""
    taken: datetime | None = None
    """When this was read. None: written by hand."""
    source: str = ""
    """Where it was read: a file, or a context."""
    notes: Sequence[str] = ()
    """What is not known of it, so was not compared. Each a clause, no full stop."""
    unstated_labels: frozenset[str] = frozenset()
    """Labels of the GPU that an inventory by hand does not state, so that nobody compares them."""
    unknown_devices: str = ""
    """Why it is not known which devices pods have claimed; empty if it is known. A clause."""
    taken_by_others: frozenset[str] = frozenset()
    """Nodes on which other groups of the same question were placed. To free them helps nobody."""
    computed: Computed = field(default_factory=Computed, repr=False, compare=False)
    """What was computed of it. Changed copies share it."""


class Verdict(StrEnum):
    """The answer for one group."""

    FITS = "fits"
    """The scheduler places it now: all pods that must start together."""
    PARTLY = "in part"
    """No gang keeps its pods together, and only some are placed now: these hold what they have."""
    WAITS = "waits"
    """Not now, but when what runs on the cluster has ended."""
    NEVER = "never"
    """Not even when the cluster is empty."""
    UNKNOWN = "not checked"


class Cause(StrEnum):
    """What keeps a group from its place."""

    GPUS = "gpus"
    CPU = "cpu"
    MEMORY = "memory"
    OTHER_RESOURCE = "resource"
    PODS = "pods per node"
    TAINT = "taint"
    SELECTOR = "selector or affinity"
    PRODUCT = "gpu product"
    CLOSED = "nodes cordoned or not ready"
    QUEUE = "queue"
    GANG_MINIMUM = "gang minimum"
    TIER = "tier"
    MEMBERSHIP = "hypernode membership"
    VOLUME = "volume topology"
    QUOTA = "namespace quota"
    LIMIT_RANGE = "limit range"
    NEIGHBOURS = "other pods"
    """Host ports, affinity between pods, or spread constraints."""
    ORDER = "scheduling order"
    """A place exists, but the scheduler's order of choices misses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The smallest change after which a group fits."""

    text: str
    """What to do: `Allow tier 2`, `Free one node in rack-3`."""
    topology: Topology | None = None
    """With this topology it fits."""
    freed_nodes: tuple[str, ...] = ()
    """It fits when nothing runs on these nodes."""
    opened_nodes: tuple[str, ...] = ()
    """It fits when these nodes are ready and not cordoned."""
    added_nodes: tuple[Node, ...] = ()
    like: str = ""
    """The node that the added ones equal: they are in its HyperNodes, too."""
    tolerations: tuple[Body, ...] = ()
    queue: Queue | None = None
    quota: Quota | None = None
    hyper_nodes: Sequence[Body] = ()
    """It fits with these HyperNodes."""
    volumes: Sequence[Body] = ()
    """It fits with these PersistentVolumes in place of those of the same names."""
    group: PodGroup | None = None
    """It fits if the group is written like this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why a group does not fit, with its numbers, and what would make it fit."""

    cause: Cause
    text: str
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The node of each pod of a group."""

    nodes: tuple[str, ...]
    """In the order of the group's pods; empty for a pod that is not placed."""
    domain: Domain | None
    """The lowest HyperNode that contains them. None: no HyperNode does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The answer for one group."""

    group: PodGroup
    verdict: Verdict
    placement: Placement | None = None
    """Where the scheduler puts it. None: nowhere."""
    exists: bool | None = None
    """Whether any assignment of its pods exists now. None: not known within the time limit."""
    obstacles: tuple[Obstacle, ...] = ()
    note: str = ""
    """What a reader must know: `fits, but Volcano v1.14.1 leaves it waiting, because …`."""
