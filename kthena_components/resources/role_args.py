"""The args types of a role: the engine, its pods, or pod templates.

They mirror core/spec/serving_spec.py in types that Pulumi's analyzer supports: it rejects
unions and Literal, so those are for type checkers only. Counts and names are plain values, free
text may be an Output.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

import pulumi

from kthena_components.core.spec.enums import (
    EngineKind,
    Gpu,
    GpuLabel,
    KvConnector,
    KvRole,
    Launcher,
)

if TYPE_CHECKING:
    from pulumi_kubernetes.core.v1 import PodTemplateSpecArgs, PodTemplateSpecPatchArgs

    Budget = int | str
    EngineWord = EngineKind | Literal["vllm", "sglang", "trtllm"]
    LauncherWord = Launcher | Literal["ray", "native", "mpi"]
    TransferRoleWord = KvRole | Literal["prefill", "decode", "both"]
    ConnectorWord = KvConnector | Literal["nixl", "mooncake", "lmcache"]
    GpuWord = Gpu | str
    LabelWord = GpuLabel | Literal["product", "gke", "none"]
    HfConfig = Mapping[str, Any] | str
    PodTemplate = Mapping[str, Any] | PodTemplateSpecArgs
    Overlay = PodTemplate | PodTemplateSpecPatchArgs
else:
    Budget, EngineWord, LauncherWord, HfConfig = Any, EngineKind, Launcher, Any
    PodTemplate = Overlay = Mapping[str, Any]
    TransferRoleWord, ConnectorWord = KvRole, KvConnector
    GpuWord, LabelWord = Gpu, GpuLabel


class ParallelismArgs(TypedDict):
    """How one engine is split over GPUs: tensor × pipeline × data must equal its GPUs."""

    tensor: NotRequired[int]
    """GPUs that share each layer. Default 1. Divides the model's attention heads."""
    pipeline: NotRequired[int]
    """Stages that the layers are split into. Default 1. At most the number of layers."""
    data: NotRequired[int]
    """Full copies of the model in the engine, over all its pods. Default 1."""
    expert: NotRequired[bool]
    """Whether to distribute the experts of a mixture-of-experts model over all ranks. Default
    false: each tensor group has a slice of every expert.
    """


class KvTransferArgs(TypedDict):
    """How an engine shares its KV cache: as one half of prefill and decode."""

    role: TransferRoleWord
    """prefill: computes prompts and sends their KV cache. decode: receives it and generates. both:
    does either, as each request asks; vLLM only.
    """
    connector: ConnectorWord
    """What carries the cache. vLLM: nixl (NixlConnector), mooncake (MooncakeConnector) or lmcache
    (LMCacheConnectorV1, which is configured by variables of LMCache in an overlay). SGLang:
    mooncake or nixl. Both halves need the same one, and the image must contain its library.
    """
    port: NotRequired[int]
    """First port on which the other half asks for the cache. Default: the engine's own, 5600 for
    nixl in vLLM, 8998 otherwise. NIXL adds one port per copy of the model. With SGLang, give both
    halves and the router the same port. Not with lmcache.
    """


class EngineArgs(TypedDict):
    """An engine whose pods the package writes: command lines, probes, ports and /dev/shm."""

    kind: EngineWord
    """Engine whose command lines are written: vllm, sglang or trtllm (TensorRT-LLM)."""
    image: pulumi.Input[str]
    """Image of the entry and the workers. Pin it by version or digest; otherwise two pods of one
    engine may run different code. If the tag of vllm/vllm-openai or lmsysorg/sglang states a
    release, the commands are written for that release, and unsupported fields are errors; for any
    other image, and for an Output, they are written for the newest. With the ray launcher it must
    contain Ray: vLLM's own does up to v0.17.1."""
    model: pulumi.Input[str]
    """Model name or path, as the engine accepts it. If it is an Output, the model's shape is not
    checked; the policies report that.
    """
    launcher: NotRequired[LauncherWord]
    """How the pods of one engine connect: native by the engine's own flags, ray by a Ray cluster
    that is started first, vLLM only; mpi by Open MPI, TensorRT-LLM only. Default native, but mpi
    for TensorRT-LLM, and ray if the image states a vLLM below 0.11.1, which cannot connect its pods
    by itself unless data is above 1. No effect on an engine of one pod.
    """
    parallelism: NotRequired[ParallelismArgs]
    """How the engine is split over GPUs. Default: not at all, one GPU."""
    port: NotRequired[int]
    """Port on which the entry serves HTTP. Default 8080. The probes use it, too."""
    extra_args: NotRequired[Sequence[str]]
    """Further flags of the engine, one word per item. Default: none. Flags that the package sets
    itself, such as a parallel size, are errors.
    """
    kv_transfer: NotRequired[KvTransferArgs]
    """Makes the engine the prefill or the decode half of a pair of roles. Default: none. A proxy or
    router in front must send each request to both halves, such as a role with an entry_template.
    """
    hf_config: NotRequired[HfConfig]
    """The model's config.json as a map, or the path of that file or of its folder, relative to
    the program's working directory. Default: the shape is looked up by the model's name; for a
    model that is not in the table the rules about shapes report that they could not check. An
    unreadable file, or one without heads and layers, is an error. Its sizes become an annotation of
    the entry pods, kthena-components/model-config, so that policies see them, too.
    """


class SecretKeyArgs(TypedDict):
    """A key of a Kubernetes Secret in the serving's namespace."""

    name: pulumi.Input[str]
    """Name of the Secret. It must exist, or the pods wait for it."""
    key: NotRequired[str]
    """Key inside the Secret. Default HF_TOKEN."""


# The args types about the pods of an engine, besides its command line.


class ResourceClaimArgs(TypedDict):
    """Devices of each pod by dynamic resource allocation. Each pod gets its own claim.

    Either template or device_class is given.
    """

    name: str
    """Name of the claim in the pods."""
    template: NotRequired[pulumi.Input[str]]
    """Name of an existing ResourceClaimTemplate in the serving's namespace. Default: one is written
    for device_class."""
    device_class: NotRequired[str]
    """DeviceClass of the devices, such as gpu.nvidia.com. Default: none, with template."""
    selectors: NotRequired[Sequence[str]]
    """CEL expressions that each device meets, such as
    device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H200'. Default: none."""
    gpus: NotRequired[bool]
    """Whether the devices are the GPUs of the pods. A claim has gpus_per_pod of them, and the pods
    request no gpu_resource. Default true. Write false for other devices, such as the channel of a
    ComputeDomain or network devices."""
    count: NotRequired[int]
    """Devices of device_class that are not GPUs. Default 1."""


class ResourcesArgs(TypedDict):
    """What each pod of an engine requests. Stated amounts are also its limits; defaults are not."""

    gpus_per_pod: NotRequired[int]
    """GPUs in one pod. Default 1. Multiplied by the pods of the engine it must equal the
    parallelism.
    """
    gpu_resource: NotRequired[str]
    """Extended resource that counts the GPUs. Default nvidia.com/gpu."""
    gpu: NotRequired[GpuWord]
    """GPU of the nodes, such as h200: the rules about memory compare with it, and the node selector
    of the pods requires it. Default: none, and a node selector in an overlay may name one.
    """
    gpu_label: NotRequired[LabelWord]
    """Label of the nodes in that selector. product: nvidia.com/gpu.product of GPU feature
    discovery, or amd.com/gpu.product-name. gke: cloud.google.com/gke-accelerator. none: no
    selector, only the annotation kthena-components/gpu. Default product.
    """
    claims: NotRequired[Sequence[ResourceClaimArgs]]
    """Devices by dynamic resource allocation, which needs Kubernetes 1.34. Default: none, and the
    GPUs are requested as gpu_resource."""
    cpu: NotRequired[str]
    """Processors, as a Kubernetes quantity: 125 or 500m. Default: 2, and one for each GPU: one for
    each process of the engine. Source: vLLM's docs/configuration/optimization.md.
    """
    memory: NotRequired[str]
    """Memory, as a Kubernetes quantity: 1124Gi. Default: 4Gi, plus 4Gi for each GPU, plus the pod's
    part of the weights if the model is known. /dev/shm counts into it.
    """
    ephemeral_storage: NotRequired[str]
    """Local disk, as a Kubernetes quantity. Default: none stated."""
    shm: NotRequired[str]
    """Maximum size of /dev/shm, as a Kubernetes quantity. Default: 2Gi per GPU, at least 2Gi. NCCL
    inside a pod needs a few gibibytes."""


class CacheArgs(TypedDict):
    """Where the pods keep the weights of the model: exactly one of claim, host_path and size.

    It is mounted into the engine, and HF_HOME names it.
    """

    claim: NotRequired[pulumi.Input[str]]
    """Name of a PersistentVolumeClaim in the serving's namespace. Several pods need one that is
    ReadWriteMany or ReadOnlyMany. Default: none."""
    host_path: NotRequired[str]
    """Folder of each node, such as a local disk. It stays when the pods are deleted. The engine
    then runs as root, because only root may write there. Default: none."""
    size: NotRequired[str]
    """Size of a volume of each pod, as a Kubernetes quantity. It is deleted with the pod. Default:
    none."""
    mount_path: NotRequired[str]
    """Path in the engine's container. Default /var/cache/huggingface."""
    download: NotRequired[bool]
    """Whether an init container downloads the model before the engine starts. Its time does not
    count into startup_seconds. Default false: the engine downloads it."""


class RdmaArgs(TypedDict):
    """RDMA devices of each pod. Its engine gets the capability IPC_LOCK, and runs as root."""

    resource: str
    """Extended resource of the device plugin, such as rdma/hca or vpc.amazonaws.com/efa."""
    count: NotRequired[int]
    """Devices of each pod. Default 1."""


class NetworkArgs(TypedDict):
    """The network between the pods of an engine."""

    interface: NotRequired[str]
    """Network interface: NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME. Default: NCCL's choice."""
    rdma: NotRequired[RdmaArgs]
    """RDMA devices. Default: none."""
    hca: NotRequired[str]
    """RDMA adapters that NCCL uses, NCCL_IB_HCA. Default: NCCL's choice."""


class RoleFields(TypedDict):
    """The fields of a role in a serving and of a standalone one."""

    replicas: NotRequired[int]
    """Engines of this role, in each ServingGroup. Default 1."""
    worker_replicas: NotRequired[int]
    """Pods of one engine besides its entry. Default 0. The engine has one pod more than this."""
    entry_template: NotRequired[PodTemplate]
    """Kubernetes pod template of the entry, passed through: a PodTemplateSpecArgs of
    pulumi_kubernetes, or a map in Kubernetes' own field names.
    """
    worker_template: NotRequired[PodTemplate]
    """Kubernetes pod template of the workers, as entry_template. Required if worker_replicas is
    above 0. Without workers, only Kthena, MatrixInfer and LWS have a place for it.
    Source: Kthena v1.0.0 webhook/validator.go validateWorkerReplicas.
    """
    engine: NotRequired[EngineArgs]
    """Engine whose pods the package writes, instead of templates."""
    resources: NotRequired[ResourcesArgs]
    """What each pod of the engine requests. Default: one GPU. Only with an engine."""
    hugging_face_token: NotRequired[SecretKeyArgs]
    """Secret with the token for gated models, which the pods get as HF_TOKEN. Default: none. Only
    with an engine."""
    cache: NotRequired[CacheArgs]
    """Where the pods keep the weights of the model. Default: in the container, so every pod
    downloads them again. Only with an engine."""
    network: NotRequired[NetworkArgs]
    """The network between the pods. Default: the cluster's. Only with an engine."""
    startup_seconds: NotRequired[int]
    """Seconds that the entry may take to start before it is restarted. Default:
    ready_timeout_seconds, and at least 3600. Only with an engine."""
    drain_seconds: NotRequired[int]
    """Seconds that requests may take to end when a pod is deleted. The grace period of the pods is
    30 seconds longer. Default 30; 0 aborts them. Only with an engine."""
    overlay: NotRequired[Overlay]
    """Part of a pod template that is merged into the engine's pods, whose container is named
    engine: a map, or a PodTemplateSpecPatchArgs of pulumi_kubernetes. Lists of named items merge by
    name (docs/pods.md). Default: none. It may change everything except GPUs, commands and parallel
    sizes. Only with an engine.
    """
    max_unavailable: NotRequired[Budget]
    """Engines of this role that may be unavailable in a rolling update: a count, or text such as
    25%, rounded down. Only with RoleRollingUpdate, so not in a standalone Role. Default: all at
    once. Source: Kthena v1.0.0 webhook/validator.go."""


class RoleArgs(RoleFields):
    """One role: `replicas` engines of 1 + `worker_replicas` pods each, in every ServingGroup.

    An engine or templates define the pods, never both.
    """

    name: str
    """Name of the role, such as prefill. Part of every object's name, so a change replaces all its
    objects.
    """


class StandaloneRoleArgs(RoleFields):
    """A standalone Role: its pods and Services, without its own PodGroup.

    It has all fields of a role, and the fields that place it in a serving.
    """

    serving: str
    """Name of the serving of the role: first part of every object's name."""
    name: NotRequired[str]
    """Name of the role. Default: the component's name."""
    namespace: NotRequired[pulumi.Input[str]]
    """Kubernetes namespace. Default: the namespace `default`. It must exist, or be made by the
    same program: pass the name of that resource, so that it is created first.
    """
    group: NotRequired[int]
    """Ordinal of the ServingGroup of the role. Default 0."""
    scheduler_name: NotRequired[str]
    """Scheduler of the pods. Default volcano."""
    pod_group: NotRequired[str]
    """PodGroup that the pods join, so that they start with its other pods. Default: none; each pod
    is scheduled alone.
    """
    ready_timeout_seconds: NotRequired[int]
    """Seconds that `up` waits until the engines are ready. Default: startup_seconds."""
    priority_class: NotRequired[str]
    """PriorityClass of the pods, unless a template states one. Default: the cluster's."""
    labels: NotRequired[Mapping[str, pulumi.Input[str]]]
    """Labels of every object except the pods, which have the labels of their templates. Default:
    only the package's own.
    """
    waivers: NotRequired[Mapping[str, str]]
    """Findings to suppress, by rule: the last day as YYYY-MM-DD, then the reason. They are logged
    as warnings, and the objects get the waivers as annotations. Default: none.
    """
