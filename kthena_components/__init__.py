"""Pulumi components for multi-node LLM serving on Kubernetes.

Public names are loaded on first use: `import kthena_components` costs nearly nothing, and
everything below `kthena_components.resources` works without Pulumi.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    )
    from kthena_components.resources.args import (
        ExposeArgs,
        GangPolicyArgs,
        HyperNodeArgs,
        HyperNodeTopologyArgs,
        InventoryArgs,
        InventoryNodeArgs,
        InventoryTierArgs,
        ModelServingArgs,
        NetworkTopologyArgs,
        QueueArgs,
        RollingUpdateArgs,
        RolloutStrategyArgs,
        ServingGroupArgs,
        TopologyArgs,
    )
    from kthena_components.resources.components import (
        HyperNodeTopology,
        ModelServing,
        Queue,
        RefusedError,
        Role,
        ServingGroup,
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

__version__ = "0.3.0"
__all__ = [
    "CacheArgs",
    "EngineArgs",
    "EngineKind",
    "ExposeArgs",
    "GangPolicyArgs",
    "Gpu",
    "GpuLabel",
    "HyperNodeArgs",
    "HyperNodeTopology",
    "HyperNodeTopologyArgs",
    "InventoryArgs",
    "InventoryNodeArgs",
    "InventoryTierArgs",
    "KthenaVersion",
    "KvConnector",
    "KvRole",
    "KvTransferArgs",
    "Launcher",
    "ModelServing",
    "ModelServingArgs",
    "NetworkArgs",
    "NetworkTopologyArgs",
    "ParallelismArgs",
    "Queue",
    "QueueArgs",
    "RdmaArgs",
    "RecoveryPolicy",
    "RefusedError",
    "ResourceClaimArgs",
    "ResourcesArgs",
    "Role",
    "RoleArgs",
    "RollingUpdateArgs",
    "RolloutStrategyArgs",
    "RolloutType",
    "SecretKeyArgs",
    "ServingGroup",
    "ServingGroupArgs",
    "StandaloneRoleArgs",
    "TopologyArgs",
    "TopologyMode",
]

_ENUMS = {
    "EngineKind", "Gpu", "GpuLabel", "KthenaVersion", "KvConnector", "KvRole", "Launcher",
    "RecoveryPolicy", "RolloutType", "TopologyMode",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a component, its arguments or an enum when a program first uses its name."""
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    if name in _ENUMS:
        home = "core.spec.enums"
    else:
        home = "resources.args" if name.endswith("Args") else "resources.components"
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
