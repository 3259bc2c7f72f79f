"""The fields of an inventory file, and amounts of resources that no cluster has.

Source: k8s.io/apimachinery pkg/api/resource/quantity.go, whose numbers end at 2^63 - 1; Kubernetes
pkg/apis/core/validation ValidateNonnegativeQuantity.

`kind: Inventory` of `kthena-components/v1`. docs/inventory.md documents it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from kthena_components.cluster.objects import Body, title_of
from kthena_components.core.findings import Finding
from kthena_components.core.objects.object import POD_GROUP, QUEUE, GroupKind
from kthena_components.core.spec.fields import WORD, Count, DnsName, ResourceName, Spec, Word
from kthena_components.core.spec.serving_spec import TopologySpec
from kthena_components.core.topology.spec import HyperNodeSpec
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import mapping, sequence
from kthena_components.placement.model import VOLCANO, Scheduler
from kthena_components.placement.quotas_and_limit_ranges import LIMIT_RANGE

MOST: Final = 2**63 - 1
WANTED: Final = "an amount from 0 to 2^63 - 1, such as 96 or 2Ti"
_LISTS: Final[Mapping[GroupKind, Sequence[str]]] = {
    ("", "Node"): ("status.allocatable", "status.capacity"),
    ("", "ResourceQuota"): ("spec.hard", "status.hard", "status.used"),
    QUEUE: ("spec.capability", "spec.deserved", "spec.guarantee.resource", "status.allocated"),
    POD_GROUP: ("spec.minResources",),
    ("", "Pod"): (
        "spec.overhead", "spec.resources.requests", "spec.resources.limits",
        *(f"spec.{kind}[].resources.{what}" for kind in ("containers", "initContainers")
          for what in ("requests", "limits")),
    ),
    LIMIT_RANGE: tuple(f"spec.limits[].{what}" for what in
                       ("default", "defaultRequest", "max", "maxLimitRequestRatio", "min")),
}  # fmt: skip
"""The lists of resources that are read; `[]` stands for each item."""


def amount_of(value: object) -> Decimal | None:
    """Read an amount that a cluster can have; None for any other value."""
    amount = value if isinstance(value, Decimal) else parse_quantity(value)
    return amount if amount is not None and 0 <= amount <= MOST else None


def check_amounts(kinds: Mapping[GroupKind, Sequence[Body]]) -> Iterator[Finding]:
    """Report the first amount that no cluster has, and how many more there are."""
    wrong = [
        f"{kind[1]} '{title_of(body)}': {path}.{name} is {display(value)}"
        for kind, paths in _LISTS.items()
        for body in kinds.get(kind, ())
        for pattern in paths
        for path, amounts in _at(body, pattern.split("."))
        for name, value in mapping(amounts).items()
        if value is not None and amount_of(value) is None
    ]
    if wrong:
        more = f", and {len(wrong) - 1} more like it" if len(wrong) > 1 else ""
        yield Finding(path="", seen=f"{wrong[0]}, but must be {WANTED}{more}", remedy="correct it")


def _at(value: object, parts: Sequence[str], path: str = "") -> Iterator[tuple[str, object]]:
    """Return what is at a path, with the indices of its items."""
    if not parts:
        yield path, value
        return
    name, rest = parts[0].removesuffix("[]"), parts[1:]
    inner, at = mapping(value).get(name), f"{path}.{name}" if path else name
    if name == parts[0]:
        yield from _at(inner, rest, at)
        return
    for index, item in enumerate(sequence(inner)):
        yield from _at(item, rest, f"{at}[{index}]")


API_VERSION, KIND = "kthena-components/v1", "Inventory"
MOST_COPIES = 100_000
"""More racks or nodes are not counted out."""
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _amount(value: object) -> Decimal:
    amount = amount_of(value)
    if amount is None:
        raise ValueError(WANTED)
    return amount


def _copies(value: object) -> object:
    """Read a number of equal items as a list of items without fields."""
    if isinstance(value, bool) or not isinstance(value, int | list):
        raise ValueError("a count, or a list such as [{name: a}]")  # noqa: TRY004 - pydantic reports a ValueError
    if isinstance(value, list):
        return value
    if not 0 <= value <= MOST_COPIES:
        raise ValueError(f"a count from 0 to {MOST_COPIES}, or a list")
    return [{}] * value


def _time(value: object) -> datetime:
    """Read a time with its time zone as UTC; YAML makes one of a string without quotes."""
    with suppress(ValueError, OverflowError):
        taken = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        if taken.tzinfo is not None:
            return taken.astimezone(UTC)
    raise ValueError("a time with its time zone, such as 2026-11-26T19:00:00Z")


def _effect(value: object) -> str:
    if value not in _EFFECTS:
        raise ValueError(listing(_EFFECTS, "or"))
    return str(value)


Amount = Annotated[Decimal, BeforeValidator(_amount)]
Resources = dict[str, Amount]


class TaintFields(Spec):
    """A taint of nodes."""

    key: Word
    value: str = ""
    effect: Annotated[str, BeforeValidator(_effect)] = "NoSchedule"


class MachineFields(Spec):
    """What nodes have. Racks and nodes take what they do not state from above."""

    gpus: Count | None = None
    resource: ResourceName | None = None
    """By which pods request its GPUs. Default: nvidia.com/gpu, or the product's."""
    product: Word | None = None
    """A GPU by any usual name: H200, or the value of a node label."""
    cpu: Amount | None = None
    memory: Amount | None = None
    pods: Amount | None = None
    resources: Resources = Field(default_factory=dict)
    """Any other allocatable resources."""
    labels: dict[str, str] = Field(default_factory=dict)
    taints: list[TaintFields] | None = None
    used: Resources = Field(default_factory=dict)
    """What running pods request of each node. `gpus` stands for the resource of its GPUs."""
    cordoned: bool = False
    ready: bool = True


class NodeFields(MachineFields):
    """One node, or several equal ones by their names."""

    name: DnsName | None = None
    names: list[DnsName] | None = None


class RackFields(MachineFields):
    """A rack: a HyperNode of tier 1, with its nodes."""

    name: DnsName | None = None
    nodes: Annotated[list[NodeFields], BeforeValidator(_copies)] | None = None


class QueueFields(Spec):
    """A Volcano queue."""

    name: DnsName
    weight: Count = 1
    priority: Count = 0
    parent: DnsName | None = None
    capability: Resources = Field(default_factory=dict)
    deserved: Resources = Field(default_factory=dict)
    guarantee: Resources = Field(default_factory=dict)
    used: Resources = Field(default_factory=dict)
    open: bool = True


class ScopeFields(Spec):
    """A scope of a ResourceQuota."""

    name: Word
    operator: Word = "Exists"
    values: list[str] = Field(default_factory=list)


class QuotaFields(Spec):
    """A ResourceQuota of a namespace."""

    namespace: DnsName
    name: DnsName
    hard: Resources
    used: Resources = Field(default_factory=dict)
    scopes: list[ScopeFields] = Field(default_factory=list)


class SubgroupFields(Spec):
    """One entry of subGroupPolicy."""

    name: str = ""
    match_labels: dict[str, Any] = Field(default_factory=dict)
    """A label selector of Kubernetes."""
    match_label_keys: list[str] = Field(default_factory=list)
    size: Count = 1
    minimum: Count = 0
    topology: TopologySpec | None = None


class PodFields(Spec):
    """Equal pods of a group."""

    name: Word
    count: Count = 1
    requests: Resources = Field(default_factory=dict)
    spec: dict[str, Any] = Field(default_factory=dict)
    """Their node selector, affinity, tolerations, host ports and volumes."""
    labels: dict[str, str] = Field(default_factory=dict)
    task: str = ""
    priority: int = 0


class GroupFields(Spec):
    """A PodGroup, or a pod by itself."""

    namespace: DnsName
    name: Word
    owner: str = ""
    pods: list[PodFields]
    minimum: Count = 0
    task_minimum: dict[str, Count] = Field(default_factory=dict)
    min_resources: Resources | None = None
    topology: TopologySpec | None = None
    subgroups: list[SubgroupFields] = Field(default_factory=list)
    queue: DnsName = "default"
    priority: int = 0
    scheduler: Word = VOLCANO


class NeighbourFields(Spec):
    """Equal pods that run and are in no group, for what pods ask of the pods around them."""

    namespace: DnsName
    labels: dict[str, str] = Field(default_factory=dict)
    spec: dict[str, Any] = Field(default_factory=dict)
    """Their host ports, as containers with ports, and their affinity to other pods."""
    nodes: list[DnsName]
    """The node of each."""


class RunningFields(Spec):
    """A group whose pods run."""

    group: GroupFields
    nodes: list[str]
    """The node of each of its pods; empty for one that waits."""


class SchedulerFields(Spec):
    """Volcano's version, plugins and their arguments."""

    version: Word = Scheduler().version
    plugins: list[Word] | None = None
    arguments: dict[str, dict[str, str]] = Field(default_factory=dict)


class InventoryFields(MachineFields):
    """A whole inventory file."""

    apiVersion: Annotated[str, WORD] = API_VERSION  # noqa: N815 - the name that Kubernetes uses
    kind: str = KIND
    taken: Annotated[datetime, BeforeValidator(_time)] | None = None
    source: str = ""
    notes: list[str] = Field(default_factory=list)
    racks: Annotated[list[RackFields], BeforeValidator(_copies)] = Field(default_factory=list)
    nodes_per_rack: Annotated[int, Field(ge=0, le=MOST_COPIES)] | None = None
    nodes: list[NodeFields] = Field(default_factory=list)
    hyper_nodes: list[HyperNodeSpec] = Field(default_factory=list)
    racks_from: list[Word] = Field(default_factory=list)
    """Node labels whose values are racks, then the domains above them; without HyperNodes only."""
    queues: list[QueueFields] = Field(default_factory=list)
    quotas: list[QuotaFields] = Field(default_factory=list)
    priorities: dict[str, int] = Field(default_factory=dict)
    """The values of priority classes; of the default one also without a name."""
    limit_ranges: list[dict[str, Any]] = Field(default_factory=list)
    volumes: list[dict[str, Any]] = Field(default_factory=list)
    running: list[RunningFields] = Field(default_factory=list)
    waiting: list[GroupFields] = Field(default_factory=list)
    neighbours: list[NeighbourFields] | None = None
    """All pods that run beside those of `running`. Left out: not known."""
    scheduler: SchedulerFields = SchedulerFields()
    unknown_devices: str = ""
    """Why it is not known which devices pods have claimed."""


def stated(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is empty or zero: a reader takes it as the default."""
    return {key: value for key, value in fields.items() if value not in (None, "", 0, [], {})}
