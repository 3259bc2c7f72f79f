"""Pulumi components for multi-node LLM serving on Kubernetes.

Public names are loaded on first use: `import kthena_components` costs nearly nothing, and
`kthena_components.core` and `.backends` work without Pulumi.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kthena_components.core.spec import (
        EngineKind,
        KthenaVersion,
        Launcher,
        RecoveryPolicy,
        RolloutType,
        TopologyMode,
    )
    from kthena_components.resources.args import (
        EngineArgs,
        ExposeArgs,
        GangPolicyArgs,
        HyperNodeArgs,
        HyperNodeTopologyArgs,
        InventoryArgs,
        InventoryNodeArgs,
        InventoryTierArgs,
        ModelServingArgs,
        NetworkTopologyArgs,
        ParallelismArgs,
        QueueArgs,
        ResourcesArgs,
        RoleArgs,
        RollingUpdateArgs,
        RolloutStrategyArgs,
        SecretKeyArgs,
        ServingGroupArgs,
        StandaloneRoleArgs,
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

__all__ = [
    "EngineArgs",
    "EngineKind",
    "ExposeArgs",
    "GangPolicyArgs",
    "HyperNodeArgs",
    "HyperNodeTopology",
    "HyperNodeTopologyArgs",
    "InventoryArgs",
    "InventoryNodeArgs",
    "InventoryTierArgs",
    "KthenaVersion",
    "Launcher",
    "ModelServing",
    "ModelServingArgs",
    "NetworkTopologyArgs",
    "ParallelismArgs",
    "Queue",
    "QueueArgs",
    "RecoveryPolicy",
    "RefusedError",
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
    "EngineKind", "KthenaVersion", "Launcher", "RecoveryPolicy", "RolloutType", "TopologyMode",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    if name in _ENUMS:
        home = "core.spec"
    else:
        home = "resources.args" if name.endswith("Args") else "resources.components"
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
