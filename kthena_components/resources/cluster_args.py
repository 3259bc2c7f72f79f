"""The args types of components for a whole cluster: HyperNodes and Queues.

They mirror the specs of core/topology/spec.py and core/spec/serving_spec.py, in types that Pulumi's
analyzer supports. Counts and names are plain values, label values may be Outputs.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

import pulumi

from kthena_components.core.spec.enums import VolcanoVersion

if TYPE_CHECKING:
    Amount = int | str
    VolcanoWord = VolcanoVersion | Literal["1.14.1", "1.14", "1.15"]
else:
    Amount, VolcanoWord = Any, VolcanoVersion


class HyperNodeArgs(TypedDict):
    """One network domain. Exactly one of nodes, node_regex, node_labels and children is given.

    Source: Volcano v1.14 config/crd/volcano/bases/topology.volcano.sh_hypernodes.yaml.
    """

    name: str
    """Name of the HyperNode: a DNS-1123 subdomain, unique in the cluster."""
    tier: int
    """Distance between its nodes; lower is closer, and the lowest is usually 1. A parent's tier
    must be above its children's, or Volcano silently drops topology constraints.
    """
    tier_name: NotRequired[str]
    """Name of the tier, such as rack. Default: none. A name belongs to one tier."""
    labels: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Labels of the HyperNode. Default: none."""
    nodes: NotRequired[Sequence[str]]
    """Kubernetes nodes in this domain, by exact name."""
    node_regex: NotRequired[str]
    """Pattern in Go's syntax for the names of the nodes in this domain, matched in full."""
    node_labels: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Labels of the nodes in this domain; all must match."""
    children: NotRequired[Sequence[str]]
    """Names of the HyperNodes of a lower tier in this domain."""


class InventoryNodeArgs(TypedDict):
    """One node of an inventory."""

    name: str
    """Name of the node, as `kubectl get nodes` shows it."""
    labels: NotRequired[Mapping[str, str]]
    """Labels of the node, at least the ones that the tiers name: they decide its place."""


class InventoryTierArgs(TypedDict):
    """One tier of an inventory: each value of a node label is a HyperNode."""

    label: str
    """Key of the node label whose values are the domains of this tier."""
    tier_name: NotRequired[str]
    """Name of the tier. Default: the label key after its slash."""


class InventoryArgs(TypedDict):
    """Nodes, and the labels that place them: both define the HyperNodes."""

    nodes: Sequence[InventoryNodeArgs]
    """Nodes of the cluster that belong to the topology. At least one."""
    tiers: Sequence[InventoryTierArgs]
    """Labels from the closest domain to the farthest; they become tiers 1 to n."""


class HyperNodeTopologyArgs(TypedDict):
    """The network of a cluster, from exactly one of two sources."""

    hyper_nodes: NotRequired[Sequence[HyperNodeArgs]]
    """List of HyperNodes, in any order."""
    inventory: NotRequired[InventoryArgs]
    """Nodes and labels that define HyperNodes, instead of hyper_nodes."""


class QueueArgs(TypedDict):
    """A Volcano Queue: a share of the cluster for servings.

    Source: Volcano v1.14 config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml.
    """

    name: NotRequired[str]
    """Name of the Queue, unique in the cluster. Default: the component's name."""
    weight: NotRequired[int]
    """Share relative to other queues if the cluster is full, 1 to 65535. Default 1."""
    reclaimable: NotRequired[bool]
    """Whether other queues may reclaim what this one uses above its share. Default true."""
    parent: NotRequired[pulumi.Input[str]]
    """Parent queue. Default: root. It must exist and run no pods itself. For a Queue of the same
    program pass its `name`.
    """
    capability: NotRequired[Mapping[str, Amount]]
    """Upper limit by resource: a count, or a quantity as text. Default: none."""
    deserved: NotRequired[Mapping[str, Amount]]
    """Share by resource that others may borrow and must return: a count, or a quantity as text.
    Default: by weight."""
    guarantee: NotRequired[Mapping[str, Amount]]
    """Share by resource that is reserved for this queue: a count, or a quantity as text. At most
    deserved, which is at most capability. Default: none."""
    volcano_version: NotRequired[VolcanoWord]
    """Release of Volcano in the cluster. Default 1.15. For 1.14.0, write 1.14.1: both count a
    resource that capability does not name as 0. 1.14 means its newest patch."""
