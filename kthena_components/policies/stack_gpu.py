"""Keeps the GPU that the config of the stack names: the key `gpu` of its project, or of ours.

The engine sends the config to the pack, so no code of a branch runs for it. But the SDK keeps only
the tags of the stack, and has no public API for its config. So this module wraps the SDK's method.
If another release has no such method, the stack names no GPU.

Source: pulumi v3.259.0 sdk/go/common/resource/plugin/analyzer_plugin.go, ConfigureStack;
pulumi-policy 1.21, policy.py.
"""

from typing import Any

from pulumi_policy import policy as sdk

from kthena_components.core.hardware import NO_CHOICE, GpuChoice, parse_choice

_OURS = "kthena-components"
_METHOD = "ConfigureStack"
_named: list[GpuChoice] = []


def keep_gpu() -> None:
    """Make the SDK keep the GPU of the stack."""
    servicer: Any = getattr(sdk, "_PolicyAnalyzerServicer", None)
    own: Any = getattr(servicer, _METHOD, None)

    def configure(self: Any, request: Any, context: Any) -> Any:
        keys = [f"{project}:gpu" for project in (request.project, _OURS)]
        stated = (request.config[key] for key in keys if key in request.config)
        _keep("" if set(keys) & {*request.config_secret_keys} else next(stated, ""))
        return own(self, request, context)

    if own is not None:
        setattr(servicer, _METHOD, configure)


def _keep(stated: str) -> None:
    choice = parse_choice([stated] if stated else [])
    _named[:] = [choice] if isinstance(choice, GpuChoice) else []


def gpus_of_stack() -> GpuChoice:
    """Return the GPUs that the stack names; none if it names none that is known.

    A branch may change them, so those of the pack's own config take precedence.
    """
    return _named[0] if _named else NO_CHOICE
