"""The input schema: every field, before anything is resolved.

Field names are Kthena's own in snake_case. rules_*.py check rules between fields; parse.py words
the errors; words.py holds the enums.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from kthena_components.core.spec.words import (
    EngineKind,
    KthenaVersion,
    KvConnector,
    KvRole,
    Launcher,
    RecoveryPolicy,
    RolloutType,
    TopologyMode,
    VolcanoVersion,
)
from kthena_components.core.templates.template import QUANTITY_WORDS, Amount, PodTemplate
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN, is_unresolved


def _plain(value: Any) -> Any:
    """Reject an Output where the plan needs the value."""
    if is_unresolved(value):
        raise ValueError("a plain value")
    return value


def _budget(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str) or is_unresolved(value):
        raise ValueError("a count or a percentage such as 25%")
    return value


Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
Budget = Annotated[int | str, BeforeValidator(_budget)]
_WORD = Field(strict=False)  # strict mode would require the enum's member instead of its text
Text = Annotated[str, Field(min_length=1)]
Word = Annotated[Text, AfterValidator(_plain)]
"""Text that must be known when the plan is built."""
Waivers = dict[str, Annotated[str, AfterValidator(_plain)]]
"""Waivers by rule: until when, and why. Read in judge/waivers.py."""
_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_SERVICE_NAME = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"^{_PART}([.]{_PART})*$"
_NOT_YET = f"^{OUTPUT_OPEN}[0-9]+{OUTPUT_CLOSE}$"
_QUEUE, _NAMESPACE = rf"{_SUBDOMAIN}|{_NOT_YET}", rf"{_LABEL}|{_NOT_YET}"
_QUANTITY = r"^[0-9]+(\.[0-9]+)?([KMGTPE]i|[numkMGTPE]|[eE][0-9]{1,3})?$"
_RESOURCE = r"^[a-z0-9.-]+/[A-Za-z0-9_.-]+$"
_LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_LABEL_VALUE = rf"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$|{OUTPUT_OPEN}"
_PARTS = (
    "lower-case letters, digits, dashes and dots, with a letter or digit at both ends of each part"
)
PATTERNS = {
    _LABEL: "lower-case letters, digits and dashes, with a letter or digit at both ends",
    _SERVICE_NAME: "lower-case letters, digits and dashes, starting with a letter",
    _SUBDOMAIN: _PARTS,
    _QUEUE: _PARTS,
    _NAMESPACE: "lower-case letters, digits and dashes, with a letter or digit at both ends",
    _QUANTITY: QUANTITY_WORDS,
    _LABEL_KEY: "the key of a label, such as topology.kubernetes.io/zone",
    _LABEL_VALUE: "letters, digits, '-', '_' and '.', with a letter or digit at both ends",
    _RESOURCE: "an extended resource such as nvidia.com/gpu",
}
"""What each pattern means, for messages."""
NAME_PATTERNS = frozenset({_LABEL, _SERVICE_NAME, _SUBDOMAIN, _QUEUE, _NAMESPACE})
"""Patterns of names that the user may choose."""
Label = Annotated[str, Field(pattern=_LABEL, max_length=63)]
Namespace = Annotated[str, Field(pattern=_NAMESPACE, max_length=63)]
ServiceName = Annotated[str, Field(pattern=_SERVICE_NAME, max_length=63)]
QueueName = Annotated[str, Field(pattern=_QUEUE, max_length=253)]
LabelValue = Annotated[str, Field(pattern=_LABEL_VALUE, max_length=63)]
LabelKey = Annotated[str, Field(pattern=_LABEL_KEY, max_length=317)]
Quantity = Annotated[str, Field(pattern=_QUANTITY, max_length=32)]


class Spec(BaseModel):
    """Base of every input: frozen, strict, and closed against unknown fields."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", defer_build=True)


class ParallelismSpec(Spec):
    """How one engine is split over GPUs."""

    tensor: Positive = 1
    pipeline: Positive = 1
    data: Positive = 1
    expert: bool = False


class KvTransferSpec(Spec):
    """How an engine shares its KV cache with another one."""

    role: Annotated[KvRole, _WORD]
    connector: Annotated[KvConnector, _WORD]
    port: Annotated[int, Field(ge=1, le=65535)] | None = None


class EngineSpec(Spec):
    """An engine whose pods the package writes."""

    kind: Annotated[EngineKind, _WORD]
    image: Text
    model: Text
    launcher: Annotated[Launcher, _WORD] | None = None
    parallelism: ParallelismSpec = Field(default_factory=ParallelismSpec)
    port: Annotated[int, Field(ge=1, le=65535)] = 8080
    extra_args: list[str] = []
    kv_transfer: KvTransferSpec | None = None
    hf_config: dict[str, Any] | None = None


class ResourcesSpec(Spec):
    """What each pod of an engine requests; limits equal requests."""

    gpus_per_pod: Count = 1
    gpu_resource: Annotated[str, Field(pattern=_RESOURCE)] = "nvidia.com/gpu"
    cpu: Quantity | None = None
    memory: Quantity | None = None
    ephemeral_storage: Quantity | None = None
    shm: Quantity | None = None


class SecretKeySpec(Spec):
    """A key of a Kubernetes Secret in the serving's namespace."""

    name: Text
    key: Text = "HF_TOKEN"


class RoleSpec(Spec):
    """One role: `replicas` engines of 1 + `worker_replicas` pods each."""

    name: Label
    replicas: Count = 1
    worker_replicas: Count = 0
    entry_template: PodTemplate | None = None
    worker_template: PodTemplate | None = None
    engine: EngineSpec | None = None
    resources: ResourcesSpec | None = None
    hugging_face_token: SecretKeySpec | None = None
    overlay: PodTemplate | None = None
    max_unavailable: Budget | None = None


class GangPolicySpec(Spec):
    """The engines per role that must be placed together before any starts."""

    min_role_replicas: dict[str, Count] = {}


class TopologySpec(Spec):
    """How close the pods of a group, or of a role instance, must be."""

    mode: Annotated[TopologyMode, _WORD] = TopologyMode.HARD
    highest_tier_allowed: Count | None = None
    highest_tier_name: Annotated[str, Field(min_length=1, max_length=253)] | None = None


class NetworkTopologySpec(Spec):
    """Topology of the whole group and of each role instance."""

    group_policy: TopologySpec | None = None
    role_policy: TopologySpec | None = None


class RollingUpdateSpec(Spec):
    """Budget of a rolling update over groups."""

    max_unavailable: Budget = 1
    max_surge: Budget | None = None
    partition: Budget | None = None


class RolloutStrategySpec(Spec):
    """How a changed template reaches running groups."""

    type: Annotated[RolloutType, _WORD] = RolloutType.SERVING_GROUP
    rolling_update_configuration: RollingUpdateSpec | None = None


class ExposeSpec(Spec):
    """A Service in front of the entry pods."""

    port: Annotated[int, Field(ge=1, le=65535)] = 80
    target_port: Annotated[int, Field(ge=1, le=65535)] | None = None
    role: Word | None = None


class GroupSpec(Spec):
    """Fields of a ServingGroup: one gang of roles."""

    name: ServiceName
    namespace: Namespace = "default"
    roles: Annotated[list[RoleSpec], Field(min_length=1)]
    scheduler_name: Word = "volcano"
    queue: QueueName | None = None
    gang_policy: GangPolicySpec | None = None
    network_topology: NetworkTopologySpec | None = None
    labels: dict[LabelKey, LabelValue] = {}
    ready_timeout_seconds: Positive = 1800
    waivers: Waivers = {}


class ModelServingSpec(GroupSpec):
    """Fields of a ModelServing."""

    replicas: Count = 1
    autoscaled: bool = False
    backend: Word = "native"
    backend_options: dict[str, Any] = {}
    """Read by the model in the backend's Emitter."""
    kthena_version: Annotated[KthenaVersion, _WORD] = KthenaVersion.V1_0
    rollout_strategy: RolloutStrategySpec = Field(default_factory=RolloutStrategySpec)
    recovery_policy: Annotated[RecoveryPolicy, _WORD] | None = None
    restart_grace_period_seconds: Count | None = None
    expose: ExposeSpec | None = None
    monitoring: bool = False


class StandaloneGroupSpec(GroupSpec):
    """A standalone ServingGroup."""

    group: Count = 0


class StandaloneRoleSpec(RoleSpec):
    """A standalone Role."""

    serving: ServiceName
    namespace: Namespace = "default"
    group: Count = 0
    scheduler_name: Word = "volcano"
    pod_group: Label | None = None
    labels: dict[LabelKey, LabelValue] = {}
    ready_timeout_seconds: Positive = 1800
    waivers: Waivers = {}


class QueueSpec(Spec):
    """A Volcano Queue."""

    name: Annotated[str, Field(pattern=_SUBDOMAIN, max_length=253)]
    weight: Annotated[int, Field(ge=1, le=65535)] = 1
    reclaimable: bool = True
    parent: QueueName | None = None
    capability: dict[str, Amount] | None = None
    deserved: dict[str, Amount] | None = None
    guarantee: dict[str, Amount] | None = None
    volcano_version: Annotated[VolcanoVersion, _WORD] = VolcanoVersion.V1_15
