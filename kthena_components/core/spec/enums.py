"""The enums of the input schema, without pydantic: importing them is cheap."""

from enum import StrEnum


class EngineKind(StrEnum):
    """Engines that the package writes command lines for."""

    VLLM = "vllm"
    SGLANG = "sglang"
    TRTLLM = "trtllm"


class Launcher(StrEnum):
    """How the pods of one engine connect."""

    RAY = "ray"
    NATIVE = "native"
    MPI = "mpi"


class KvRole(StrEnum):
    """Half of a pair of engines: one fills the KV cache, and the other generates."""

    PREFILL = "prefill"
    DECODE = "decode"
    BOTH = "both"


class KvConnector(StrEnum):
    """What carries the KV cache from one engine to another."""

    NIXL = "nixl"
    MOONCAKE = "mooncake"
    LMCACHE = "lmcache"


class TopologyMode(StrEnum):
    """Whether Volcano enforces or prefers the topology if no HyperNode below the cap has room."""

    HARD = "hard"
    SOFT = "soft"


class RolloutType(StrEnum):
    """Unit of a rolling update."""

    SERVING_GROUP = "ServingGroupRollingUpdate"
    ROLE = "RoleRollingUpdate"


class RecoveryPolicy(StrEnum):
    """What the Kthena controller recreates when a pod fails."""

    SERVING_GROUP_RECREATE = "ServingGroupRecreate"
    ROLE_RECREATE = "RoleRecreate"
    NONE = "None"


class KthenaVersion(StrEnum):
    """Controller versions that the kthena backend writes for."""

    V0_1 = "0.1"
    V0_2 = "0.2"
    V0_3 = "0.3"
    V0_4 = "0.4"
    V1_0 = "1.0"


class VolcanoVersion(StrEnum):
    """Releases of Volcano whose webhooks check Queues differently."""

    V1_14_1 = "1.14.1"
    V1_14 = "1.14"
    V1_15 = "1.15"


class Gpu(StrEnum):
    """GPUs whose nodes have a label with their product; a test compares them with core/hardware."""

    T4 = "t4"
    V100_16GB = "v100-16gb"
    V100_32GB = "v100-32gb"
    A2 = "a2"
    A16 = "a16"
    A10 = "a10"
    A10G = "a10g"
    L4 = "l4"
    A30 = "a30"
    L20 = "l20"
    L40 = "l40"
    L40S = "l40s"
    A40 = "a40"
    RTX_A4000 = "rtx-a4000"
    RTX_A4500 = "rtx-a4500"
    RTX_A5000 = "rtx-a5000"
    RTX_A5500 = "rtx-a5500"
    RTX_A6000 = "rtx-a6000"
    RTX_3090 = "rtx-3090"
    RTX_4080 = "rtx-4080"
    RTX_4090 = "rtx-4090"
    RTX_5070_TI = "rtx-5070-ti"
    RTX_5080 = "rtx-5080"
    RTX_5090 = "rtx-5090"
    RTX_4000_ADA = "rtx-4000-ada"
    RTX_5000_ADA = "rtx-5000-ada"
    RTX_6000_ADA = "rtx-6000-ada"
    RTX_PRO_4000 = "rtx-pro-4000"
    RTX_PRO_4500 = "rtx-pro-4500"
    RTX_PRO_5000 = "rtx-pro-5000"
    RTX_PRO_6000 = "rtx-pro-6000"
    A100_40GB = "a100-40gb"
    A100_80GB = "a100-80gb"
    A800_40GB = "a800-40gb"
    A800_80GB = "a800-80gb"
    H100 = "h100"
    H100_NVL = "h100-nvl"
    H800 = "h800"
    H20 = "h20"
    H20_3E = "h20-3e"
    H200 = "h200"
    H200_NVL = "h200-nvl"
    GH200_96GB = "gh200-96gb"
    GH200_144GB = "gh200-144gb"
    GB10 = "gb10"
    B200 = "b200"
    GB200 = "gb200"
    B300 = "b300"
    GB300 = "gb300"
    MI210 = "mi210"
    MI250 = "mi250"
    MI300A = "mi300a"
    MI300X = "mi300x"
    MI325X = "mi325x"
    MI350X = "mi350x"
    MI355X = "mi355x"


class GpuLabel(StrEnum):
    """The label of nodes that names their GPU."""

    PRODUCT = "product"
    GKE = "gke"
    NONE = "none"
