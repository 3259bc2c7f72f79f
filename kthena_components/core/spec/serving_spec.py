"""The input schema: every field, before anything is resolved, and the launch of a role.

Field names are Kthena's own in snake_case. rules/*.py check rules between fields; parse.py words
the errors; enums.py holds the enums.
"""

from typing import Annotated, Any

from pydantic import Field

from kthena_components.core.engines import Launch, Transfer, default_launcher, stated_release
from kthena_components.core.spec.enums import (
    EngineKind,
    Gpu,
    GpuLabel,
    KthenaVersion,
    KvConnector,
    KvRole,
    Launcher,
    RecoveryPolicy,
    RolloutType,
    TopologyMode,
    VolcanoVersion,
)
from kthena_components.core.spec.fields import (
    WORD,
    Amount,
    Budget,
    Count,
    Device,
    DnsName,
    Label,
    LabelKey,
    LabelValue,
    Namespace,
    ObjectName,
    Path,
    PodTemplate,
    Port,
    Positive,
    Quantity,
    QueueName,
    ResourceName,
    SecretKey,
    ServiceName,
    Shown,
    Spec,
    Waivers,
    Word,
)


class ParallelismSpec(Spec):
    """How one engine is split over GPUs."""

    tensor: Positive = 1
    pipeline: Positive = 1
    data: Positive = 1
    expert: bool = False


class KvTransferSpec(Spec):
    """How an engine shares its KV cache with another one."""

    role: Annotated[KvRole, WORD]
    connector: Annotated[KvConnector, WORD]
    port: Port | None = None


class EngineSpec(Spec):
    """An engine whose pods the package writes."""

    kind: Annotated[EngineKind, WORD]
    image: Shown
    model: Shown
    launcher: Annotated[Launcher, WORD] | None = None
    parallelism: ParallelismSpec = Field(default_factory=ParallelismSpec)
    port: Port = 8080
    extra_args: list[str] = Field(default_factory=list)
    kv_transfer: KvTransferSpec | None = None
    hf_config: dict[str, Any] | None = None


class SecretKeySpec(Spec):
    """A key of a Kubernetes Secret in the serving's namespace."""

    name: ObjectName
    key: SecretKey = "HF_TOKEN"


# Inputs about the pods of an engine, besides its command line: resources, cache and network.


class ResourceClaimSpec(Spec):
    """Devices of each pod by a ResourceClaimTemplate: an existing one, or one that is written."""

    name: Label
    template: ObjectName | None = None
    device_class: DnsName | None = None
    selectors: list[Word] = Field(default_factory=list)
    gpus: bool = True
    count: Positive | None = None


class ResourcesSpec(Spec):
    """What each pod of an engine requests; stated limits equal requests."""

    gpus_per_pod: Count = 1
    gpu_resource: ResourceName = "nvidia.com/gpu"
    gpu: Annotated[Gpu, WORD] | None = None
    gpu_label: Annotated[GpuLabel, WORD] = GpuLabel.PRODUCT
    claims: list[ResourceClaimSpec] = Field(default_factory=list)
    cpu: Quantity | None = None
    memory: Quantity | None = None
    ephemeral_storage: Quantity | None = None
    shm: Quantity | None = None

    @property
    def claims_gpus(self) -> bool:
        """Whether the pods get their GPUs by a claim instead of gpu_resource."""
        return any(claim.gpus for claim in self.claims)


class CacheSpec(Spec):
    """Where the pods keep the weights of the model: exactly one of claim, host_path and size."""

    claim: ObjectName | None = None
    host_path: Path | None = None
    size: Quantity | None = None
    mount_path: Path = "/var/cache/huggingface"
    download: bool = False


class RdmaSpec(Spec):
    """RDMA devices of each pod."""

    resource: ResourceName
    count: Positive = 1


class NetworkSpec(Spec):
    """The network between the pods of an engine."""

    interface: Device | None = None
    rdma: RdmaSpec | None = None
    hca: Device | None = None


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
    cache: CacheSpec | None = None
    network: NetworkSpec | None = None
    startup_seconds: Positive | None = None
    drain_seconds: Count | None = None
    overlay: PodTemplate | None = None
    max_unavailable: Budget | None = None


class GangPolicySpec(Spec):
    """The engines per role that must be placed together before any starts."""

    min_role_replicas: dict[str, Count] = Field(default_factory=dict)


class TopologySpec(Spec):
    """How close the pods of a group, or of a role instance, must be."""

    mode: Annotated[TopologyMode, WORD] = TopologyMode.HARD
    highest_tier_allowed: Count | None = None
    highest_tier_name: Annotated[Shown, Field(max_length=253)] | None = None


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

    type: Annotated[RolloutType, WORD] = RolloutType.SERVING_GROUP
    rolling_update_configuration: RollingUpdateSpec | None = None


class ExposeSpec(Spec):
    """A Service in front of the entry pods."""

    port: Port = 80
    target_port: Port | None = None
    role: Word | None = None


class GroupSpec(Spec):
    """Fields of a ServingGroup: one gang of roles."""

    name: ServiceName
    namespace: Namespace = "default"
    roles: Annotated[list[RoleSpec], Field(min_length=1)]
    scheduler_name: Word = "volcano"
    queue: QueueName | None = None
    priority_class: DnsName | None = None
    spread_over: LabelKey | None = None
    gang_policy: GangPolicySpec | None = None
    network_topology: NetworkTopologySpec | None = None
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    ready_timeout_seconds: Positive | None = None
    waivers: Waivers = Field(default_factory=dict)


class ModelServingSpec(GroupSpec):
    """Fields of a ModelServing."""

    replicas: Count = 1
    autoscaled: bool = False
    backend: Word = "native"
    backend_options: dict[str, Any] = Field(default_factory=dict)
    """Read by the model in the backend's Emitter."""
    kthena_version: Annotated[KthenaVersion, WORD] = KthenaVersion.V1_0
    rollout_strategy: RolloutStrategySpec = Field(default_factory=RolloutStrategySpec)
    recovery_policy: Annotated[RecoveryPolicy, WORD] | None = None
    restart_grace_period_seconds: Count | None = None
    expose: ExposeSpec | None = None
    pod_disruption_budget: bool | None = None
    monitoring: bool = False
    fill_requests: bool = True


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
    priority_class: DnsName | None = None
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    ready_timeout_seconds: Positive | None = None
    waivers: Waivers = Field(default_factory=dict)


class QueueSpec(Spec):
    """A Volcano Queue."""

    name: DnsName
    weight: Port = 1
    reclaimable: bool = True
    parent: QueueName | None = None
    capability: dict[str, Amount] | None = None
    deserved: dict[str, Amount] | None = None
    guarantee: dict[str, Amount] | None = None
    volcano_version: Annotated[VolcanoVersion, WORD] = VolcanoVersion.V1_15


ENGINE_CONTAINER = "engine"
DRAIN_SECONDS = 30
"""Default of drain_seconds. llm-d's guides use the same."""
ENDPOINT_SECONDS = 15
"""Seconds between the end of routing and SIGTERM: until then proxies may still send requests.
KServe's templates use the same.
"""
EXIT_SECONDS = 15
"""Seconds for an engine to exit after the last request, before SIGKILL."""


def launch_of(role: RoleSpec) -> Launch:
    """Return the launch of a role's engine."""
    if role.engine is None:
        message = f"role '{role.name}' has no engine"
        raise ValueError(message)
    engine, parallelism = role.engine, role.engine.parallelism
    release = stated_release(engine.kind, engine_image(role, engine))
    return Launch(
        kind=engine.kind,
        launcher=engine.launcher or default_launcher(engine.kind, release, parallelism.data),
        model=engine.model,
        tensor=parallelism.tensor,
        pipeline=parallelism.pipeline,
        data=parallelism.data,
        expert=parallelism.expert,
        pods=1 + role.worker_replicas,
        gpus_per_pod=(role.resources or ResourcesSpec()).gpus_per_pod,
        port=engine.port,
        extra_args=tuple(engine.extra_args),
        release=release,
        transfer=_transfer(engine),
        drain=drain_seconds(role),
    )


def _transfer(engine: EngineSpec) -> Transfer | None:
    stated = engine.kv_transfer
    if stated is None:
        return None
    return Transfer(role=stated.role.value, connector=stated.connector.value, port=stated.port)


def drain_seconds(role: RoleSpec) -> int:
    """Return how long requests may take to end after SIGTERM."""
    return DRAIN_SECONDS if role.drain_seconds is None else role.drain_seconds


def grace_seconds(role: RoleSpec) -> int:
    """Return the grace period of all pods of an engine."""
    return ENDPOINT_SECONDS + drain_seconds(role) + EXIT_SECONDS


def engine_image(role: RoleSpec, engine: EngineSpec) -> str:
    """Return the image of the engine's container: an overlay may override it."""
    spec = (role.overlay or {}).get("spec") or {}
    own = (c for c in spec.get("containers") or [] if c["name"] == ENGINE_CONTAINER)
    image = next((container.get("image") for container in own), None)
    return image if isinstance(image, str) else engine.image
