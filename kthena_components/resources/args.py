"""The args types of a serving and its groups; all other args types are re-exported.

They mirror core/spec/serving_spec.py in types that Pulumi's analyzer supports: it rejects
unions and Literal, so those are for type checkers only.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

import pulumi

from kthena_components.core.spec.enums import (
    KthenaVersion,
    RecoveryPolicy,
    RolloutType,
    TopologyMode,
    VolcanoVersion,
)
from kthena_components.resources.role_args import (
    CacheArgs,
    EngineArgs,
    KvTransferArgs,
    NetworkArgs,
    ParallelismArgs,
    RdmaArgs,
    ResourceClaimArgs,
    ResourcesArgs,
    RoleArgs,
    SecretKeyArgs,
    StandaloneRoleArgs,
)

# The args types of components for a whole cluster: HyperNodes and Queues.
#
# They mirror the specs of core/topology/spec.py and core/spec/serving_spec.py, in types that
# Pulumi's analyzer supports. Counts and names are plain values, label values may be Outputs.


if TYPE_CHECKING:
    Amount = int | str
    VolcanoWord = VolcanoVersion | Literal["1.14.1", "1.14", "1.15"]
    Budget = int | str
    ModeWord = TopologyMode | Literal["hard", "soft"]
    RolloutWord = RolloutType | Literal["ServingGroupRollingUpdate", "RoleRollingUpdate"]
    RecoveryWord = RecoveryPolicy | Literal["ServingGroupRecreate", "RoleRecreate", "None"]
    BackendWord = Literal["native", "kthena", "booster", "lws", "matrixinfer", "kaito", "kserve"]
    VersionWord = KthenaVersion | Literal["0.1", "0.2", "0.3", "0.4", "1.0"]
else:
    Amount, VolcanoWord = Any, VolcanoVersion
    BackendWord, Budget, ModeWord, RolloutWord = str, Any, TopologyMode, RolloutType
    RecoveryWord, VersionWord = RecoveryPolicy, KthenaVersion

__all__ = [
    "CacheArgs",
    "EngineArgs",
    "ExposeArgs",
    "GangPolicyArgs",
    "HyperNodeArgs",
    "HyperNodeTopologyArgs",
    "InventoryArgs",
    "InventoryNodeArgs",
    "InventoryTierArgs",
    "KvTransferArgs",
    "ModelServingArgs",
    "NetworkArgs",
    "NetworkTopologyArgs",
    "ParallelismArgs",
    "QueueArgs",
    "RdmaArgs",
    "ResourceClaimArgs",
    "ResourcesArgs",
    "RoleArgs",
    "RollingUpdateArgs",
    "RolloutStrategyArgs",
    "SecretKeyArgs",
    "ServingGroupArgs",
    "StandaloneRoleArgs",
    "TopologyArgs",
]


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


class GangPolicyArgs(TypedDict):
    """The engines of a ServingGroup that must be placed together before any starts."""

    min_role_replicas: NotRequired[Mapping[str, int]]
    """Required engines, by role name; at most the role's replicas, and 0 makes a role optional.
    Default: all engines of every role. Kthena cannot change it on a running serving.
    Source: Kthena v1.0.0 webhook/validator.go validateGangPolicy."""


class TopologyArgs(TypedDict):
    """How close the pods of a ServingGroup, or of one engine, must be."""

    mode: NotRequired[ModeWord]
    """Whether the cap is enforced. Default hard: without room below it the pods wait; soft: they
    start farther apart.
    """
    highest_tier_allowed: NotRequired[int]
    """Highest HyperNode tier that the pods may span; 1 is the closest. Volcano silently drops a
    hard mode without a cap, so it is an error.
    Source: Volcano v1.14 scheduler/api/job_info.go."""
    highest_tier_name: NotRequired[str]
    """The same cap by tier name, instead of highest_tier_allowed."""


class NetworkTopologyArgs(TypedDict):
    """Topology of the whole ServingGroup, and of each engine in it."""

    group_policy: NotRequired[TopologyArgs]
    """How close all pods of a ServingGroup must be. Default: anywhere."""
    role_policy: NotRequired[TopologyArgs]
    """How close the pods of each engine must be. Default: as for the group."""


class RollingUpdateArgs(TypedDict):
    """Budget of a rolling update over ServingGroups."""

    max_unavailable: NotRequired[Budget]
    """Groups that may be unavailable at a time: a count, or text such as 25%, rounded down. Default
    1.
    """
    max_surge: NotRequired[Budget]
    """Additional groups during an update: a count, or text such as 25%. Default: none. Needs
    backend lws or kserve: neither StatefulSets nor Kthena v1.0 support it.
    """
    partition: NotRequired[Budget]
    """The first groups that keep their template: a count, or text such as 50%, rounded up. Default
    0."""


class RolloutStrategyArgs(TypedDict):
    """How a changed template reaches running groups."""

    type: NotRequired[RolloutWord]
    """Unit of the update. Default ServingGroupRollingUpdate; RoleRollingUpdate replaces single
    engines, and needs Kthena 0.4 or later."""
    rolling_update_configuration: NotRequired[RollingUpdateArgs]
    """Budget over groups. Default: one group at a time. Not with RoleRollingUpdate, whose budget
    is each role's max_unavailable."""


class ExposeArgs(TypedDict):
    """A Service in front of the entry pods."""

    port: NotRequired[int]
    """Port of the Service. Default 80."""
    target_port: NotRequired[int]
    """Port of the pods. Default: the port of the role's engine; 8080 for templates."""
    role: NotRequired[str]
    """Role whose entry pods it selects. Default: the only role; required if there are several."""


class ServingGroupArgs(TypedDict):
    """Fields of a standalone ServingGroup: one gang of roles, always native."""

    roles: Sequence[RoleArgs]
    """Roles of the group, with unique names. At least one."""
    name: NotRequired[str]
    """Name of the serving of the group: first part of every object's name. Default: the component's
    name."""
    namespace: NotRequired[pulumi.Input[str]]
    """Kubernetes namespace. Default: the namespace `default`. It must exist, or be made by the
    same program: pass the name of that resource, so that it is created first.
    """
    group: NotRequired[int]
    """Ordinal of the group: second part of every object's name. Default 0."""
    scheduler_name: NotRequired[str]
    """Scheduler of the pods. Default volcano; others support no gang, topology or queue."""
    queue: NotRequired[pulumi.Input[str]]
    """Volcano Queue of the pods. Default: Volcano's default queue. For a Queue of the same program
    pass its `name`, so that it is created first, also in a preview.
    """
    priority_class: NotRequired[str]
    """PriorityClass of the pods, unless a template states one, and of the PodGroups that the
    package writes. Default: the cluster's."""
    spread_over: NotRequired[str]
    """Node label: each group prefers nodes with a value that no other group has. Default
    topology.kubernetes.io/zone for roles with an engine, unless their overlay has a
    podAntiAffinity; nothing for templates."""
    gang_policy: NotRequired[GangPolicyArgs]
    """Engines of the group that must be placed together before any starts. Default: all."""
    network_topology: NotRequired[NetworkTopologyArgs]
    """How close the pods must be in the network. Default: anywhere."""
    ready_timeout_seconds: NotRequired[int]
    """Seconds that `up` waits until the group is ready. Default: the longest startup_seconds
    of its roles, and 1800 for templates."""
    labels: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Labels of every object except the pods, which have the labels of their templates. Default:
    only the package's own.
    """
    waivers: NotRequired[Mapping[str, str]]
    """Findings to suppress, by rule: the last day as YYYY-MM-DD, then the reason. They are logged
    as warnings, and the objects get the waivers as annotations. Default: none.
    """


class ModelServingArgs(TypedDict):
    """A served model: `replicas` ServingGroups with the same roles."""

    roles: Sequence[RoleArgs]
    """Roles of every group, with unique names. At least one; Kthena accepts at most four."""
    name: NotRequired[str]
    """Name of the serving: first part of every object's name. Default: the component's name. A
    change replaces all objects.
    """
    namespace: NotRequired[pulumi.Input[str]]
    """Kubernetes namespace. Default: the namespace `default`. It must exist, or be made by the
    same program: pass the name of that resource, so that it is created first.
    """
    replicas: NotRequired[int]
    """ServingGroups: whole copies of all roles. Default 1."""
    autoscaled: NotRequired[bool]
    """Whether a HorizontalPodAutoscaler or a ScaledObject changes the number of groups. `replicas`
    is then the number of the first `up`, and later updates keep the present one. Needs Kthena, one
    role with LWS, or KAITO. Default false.
    """
    backend: NotRequired[BackendWord]
    """What runs the pods. Default native: StatefulSets under Volcano; kthena: a ModelServing
    resource for the Kthena controller; lws: a LeaderWorkerSet, or a DisaggregatedSet for several
    roles; matrixinfer: a ModelInfer; kaito: a Workspace, or an InferenceSet for several engines;
    kserve: an InferenceService, or an LLMInferenceService. A field that a backend does not support
    is an error, never ignored.
    """
    backend_options: NotRequired[Mapping[str, Any]]
    """Fields that only this backend has: docs/backends.md lists them. Default: none."""
    kthena_version: NotRequired[VersionWord]
    """Version of the Kthena controller for which the kthena backend writes. Default 1.0. Any other
    version needs the backend kthena.
    """
    scheduler_name: NotRequired[str]
    """Scheduler of the pods. Default volcano; others support no gang, topology or queue. A preset
    of KAITO needs default-scheduler.
    """
    queue: NotRequired[pulumi.Input[str]]
    """Volcano Queue of the pods. Default: Volcano's default queue. For a Queue of the same program
    pass its `name`, so that it is created first, also in a preview.
    """
    priority_class: NotRequired[str]
    """PriorityClass of the pods, unless a template states one, and of the PodGroups that the
    package writes. Default: the cluster's."""
    spread_over: NotRequired[str]
    """Node label: each group prefers nodes with a value that no other group has. Default
    topology.kubernetes.io/zone for roles with an engine, unless their overlay has a
    podAntiAffinity; nothing for templates."""
    gang_policy: NotRequired[GangPolicyArgs]
    """Engines of a group that must be placed together before any starts. Default: all; with backend
    lws each engine starts by itself, with kserve each pod or engine.
    """
    network_topology: NotRequired[NetworkTopologyArgs]
    """How close the pods must be in the network. Default: anywhere."""
    rollout_strategy: NotRequired[RolloutStrategyArgs]
    """How a changed template reaches running groups. Default: one group at a time."""
    recovery_policy: NotRequired[RecoveryWord]
    """What is recreated when a pod fails. Default: the backend's own: RoleRecreate in Kthena,
    MatrixInfer and LWS, only the pod with native and in an InferenceService. RoleRecreate needs
    Kthena, MatrixInfer, LWS or an LLMInferenceService; ServingGroupRecreate needs Kthena or
    MatrixInfer, or one engine per group.
    """
    restart_grace_period_seconds: NotRequired[int]
    """Seconds that a failed pod may take to recover before anything is recreated. Default: Kthena's
    own, 0. Needs Kthena or MatrixInfer.
    """
    expose: NotRequired[ExposeArgs]
    """Service in front of the entry pods. Default: none, and `endpoint` is null."""
    monitoring: NotRequired[bool]
    """Whether to add a PodMonitor per role, a PrometheusRule with alerts, and a Grafana dashboard,
    for a cluster with the Prometheus Operator. SGLang gets --enable-metrics, so a change restarts
    its engines. Default false.
    """
    fill_requests: NotRequired[bool]
    """Whether containers get requests equal to their limits where the templates state limits
    only. A change restarts the engines; `convert` writes false for objects without requests.
    Default true.
    """
    ready_timeout_seconds: NotRequired[int]
    """Seconds that `up` waits until a group is ready. Default: the longest startup_seconds of
    its roles, and 1800 for templates."""
    labels: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Labels of every object except the pods, which have the labels of their templates. Default:
    only the package's own.
    """
    pod_disruption_budget: NotRequired[bool]
    """Whether a PodDisruptionBudget allows the eviction of only one pod at a time. Default: true if
    a role has an engine and another engine serves meanwhile; with a single engine it would only
    block the drain of nodes."""
    waivers: NotRequired[Mapping[str, str]]
    """Findings to suppress, by rule: the last day as YYYY-MM-DD, then the reason. They are logged
    as warnings, and the objects get the waivers as annotations. Default: none.
    """
