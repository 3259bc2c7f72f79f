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
    """Half of a pair of engines, of which one fills the KV cache and the other generates."""

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
