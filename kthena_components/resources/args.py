"""What a serving and a group of it may be given, and every other args type by import.

Field for field the specs of core/spec/model.py, in types that Pulumi's analyzer can read: it
refuses unions and Literal, so those are for type checkers only.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

import pulumi

from kthena_components.core.spec.words import (
    KthenaVersion,
    RecoveryPolicy,
    RolloutType,
    TopologyMode,
)
from kthena_components.resources.cluster_args import (
    HyperNodeArgs,
    HyperNodeTopologyArgs,
    InventoryArgs,
    InventoryNodeArgs,
    InventoryTierArgs,
    QueueArgs,
)
from kthena_components.resources.role_args import (
    EngineArgs,
    ParallelismArgs,
    ResourcesArgs,
    RoleArgs,
    SecretKeyArgs,
    StandaloneRoleArgs,
)

if TYPE_CHECKING:
    Budget = int | str
    ModeWord = TopologyMode | Literal["hard", "soft"]
    RolloutWord = RolloutType | Literal["ServingGroupRollingUpdate", "RoleRollingUpdate"]
    RecoveryWord = RecoveryPolicy | Literal["ServingGroupRecreate", "RoleRecreate", "None"]
    VersionWord = KthenaVersion | Literal["0.1", "0.2", "0.3", "0.4", "1.0"]
else:
    Budget, ModeWord, RolloutWord = Any, TopologyMode, RolloutType
    RecoveryWord, VersionWord = RecoveryPolicy, KthenaVersion

__all__ = [
    "EngineArgs",
    "ExposeArgs",
    "GangPolicyArgs",
    "HyperNodeArgs",
    "HyperNodeTopologyArgs",
    "InventoryArgs",
    "InventoryNodeArgs",
    "InventoryTierArgs",
    "ModelServingArgs",
    "NetworkTopologyArgs",
    "ParallelismArgs",
    "QueueArgs",
    "ResourcesArgs",
    "RoleArgs",
    "RollingUpdateArgs",
    "RolloutStrategyArgs",
    "SecretKeyArgs",
    "ServingGroupArgs",
    "StandaloneRoleArgs",
    "TopologyArgs",
]


class GangPolicyArgs(TypedDict):
    """How much of a ServingGroup must be placeable before any of it starts."""

    min_role_replicas: NotRequired[Mapping[str, int]]
    """Engines that are needed, by role name; at most the role's replicas, and 0 makes a role
    optional. Default: all engines of every role. Kthena cannot change it on a serving that runs.
    Source: Kthena v1.0.0 webhook/validator.go validateGangPolicy."""


class TopologyArgs(TypedDict):
    """How close the pods of a ServingGroup, or of one engine, must be."""

    mode: NotRequired[ModeWord]
    """Whether the cap must hold. Default hard: without room below it the pods wait; soft: they
    start farther apart."""
    highest_tier_allowed: NotRequired[int]
    """Highest HyperNode tier that the pods may be spread over; 1 is the closest. A hard mode
    without a cap is dropped by Volcano without a word, so it is refused.
    Source: Volcano v1.14 scheduler/api/job_info.go."""
    highest_tier_name: NotRequired[str]
    """The same cap by tier name, in place of highest_tier_allowed."""


class NetworkTopologyArgs(TypedDict):
    """Topology of the whole ServingGroup, and of each engine in it."""

    group_policy: NotRequired[TopologyArgs]
    """How close all pods of a ServingGroup must be. Default: anywhere."""
    role_policy: NotRequired[TopologyArgs]
    """How close the pods of each engine must be. Default: what the group says."""


class RollingUpdateArgs(TypedDict):
    """Budget of a rolling update over ServingGroups."""

    max_unavailable: NotRequired[Budget]
    """Groups that may be down at a time: a count, or text such as 25%, rounded down. Default 1."""
    max_surge: NotRequired[Budget]
    """Groups above replicas that may run meanwhile: a count, or text such as 25%. Default: none.
    Neither StatefulSets nor Kthena v1.0 can do it, and both backends refuse it."""
    partition: NotRequired[Budget]
    """Groups, from the first, that keep their template: a count, or text such as 50%, rounded up.
    Default 0."""


class RolloutStrategyArgs(TypedDict):
    """How a changed template reaches groups that run."""

    type: NotRequired[RolloutWord]
    """Unit of the update. Default ServingGroupRollingUpdate; RoleRollingUpdate replaces single
    engines, and needs Kthena 0.4 or later."""
    rolling_update_configuration: NotRequired[RollingUpdateArgs]
    """Budget over groups. Default: one group at a time. Not with RoleRollingUpdate, whose budget
    is each role's max_unavailable."""


class ExposeArgs(TypedDict):
    """A front Service in front of the entry pods."""

    port: NotRequired[int]
    """Port of the Service. Default 80."""
    target_port: NotRequired[int]
    """Port of the pods. Default: the one that the role's engine listens on; 8080 for templates."""
    role: NotRequired[str]
    """Role whose entry pods answer. Default: the only one; needed when there are several."""


class ServingGroupArgs(TypedDict):
    """One gang of roles: what a ServingGroup alone takes. Alone it is always native."""

    roles: Sequence[RoleArgs]
    """Roles of the group, each name once. At least one."""
    name: NotRequired[str]
    """Name of the serving that the group belongs to: first part of every object's name. Default:
    the component's name."""
    namespace: NotRequired[str]
    """Kubernetes namespace. Default default. It must exist."""
    group: NotRequired[int]
    """Ordinal of the group: second part of every object's name. Default 0."""
    scheduler_name: NotRequired[str]
    """Scheduler of the pods. Default volcano; with another one there is no gang, no topology and
    no queue."""
    queue: NotRequired[pulumi.Input[str]]
    """Volcano Queue that the pods are scheduled from. Default: Volcano's default queue. For a Queue
    of the same program give its `name`, so that it is there first, in a preview as well."""
    gang_policy: NotRequired[GangPolicyArgs]
    """How much of the group must be placeable before any of it starts. Default: all."""
    network_topology: NotRequired[NetworkTopologyArgs]
    """How close the pods must be in the network. Default: anywhere."""
    ready_timeout_seconds: NotRequired[int]
    """How long `up` waits until the group is ready, in seconds. Default 1800."""
    waivers: NotRequired[Mapping[str, str]]
    """Findings that may stand, by rule: the last day as YYYY-MM-DD, and after it the reason. They
    are told as warnings, and the objects carry the waivers as annotations. Default: none."""


class ModelServingArgs(TypedDict):
    """A served model: `replicas` ServingGroups with the same roles."""

    roles: Sequence[RoleArgs]
    """Roles of every group, each name once. At least one; Kthena takes at most four."""
    name: NotRequired[str]
    """Name of the serving: first part of every object's name. Default: the component's name. A
    change makes all objects anew."""
    namespace: NotRequired[str]
    """Kubernetes namespace. Default default. It must exist."""
    replicas: NotRequired[int]
    """ServingGroups: whole copies of all roles. Default 1."""
    backend: NotRequired[str]
    """What runs the pods. Default native: StatefulSets under Volcano; kthena: a ModelServing
    resource for the Kthena controller. What a backend cannot do is refused, never dropped."""
    kthena_version: NotRequired[VersionWord]
    """Version of the Kthena controller that the kthena backend writes for. Default 1.0."""
    scheduler_name: NotRequired[str]
    """Scheduler of the pods. Default volcano; with another one there is no gang, no topology and
    no queue."""
    queue: NotRequired[pulumi.Input[str]]
    """Volcano Queue that the pods are scheduled from. Default: Volcano's default queue. For a Queue
    of the same program give its `name`, so that it is there first, in a preview as well."""
    gang_policy: NotRequired[GangPolicyArgs]
    """How much of a group must be placeable before any of it starts. Default: all."""
    network_topology: NotRequired[NetworkTopologyArgs]
    """How close the pods must be in the network. Default: anywhere."""
    rollout_strategy: NotRequired[RolloutStrategyArgs]
    """How a changed template reaches groups that run. Default: one group at a time."""
    recovery_policy: NotRequired[RecoveryWord]
    """What is made anew when a pod fails. Default: what the backend does by itself: RoleRecreate
    in Kthena, the pod alone natively. ServingGroupRecreate and RoleRecreate need Kthena."""
    restart_grace_period_seconds: NotRequired[int]
    """How long a failed pod may take to come back before anything is made anew, in seconds.
    Default: Kthena's own, 0. Needs Kthena."""
    expose: NotRequired[ExposeArgs]
    """Front Service. Default: none, and `endpoint` is null."""
    ready_timeout_seconds: NotRequired[int]
    """How long `up` waits until a group is ready, in seconds. Default 1800."""
    waivers: NotRequired[Mapping[str, str]]
    """Findings that may stand, by rule: the last day as YYYY-MM-DD, and after it the reason. They
    are told as warnings, and the objects carry the waivers as annotations. Default: none."""
