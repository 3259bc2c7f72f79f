"""Reads the variables that set what the command line of an engine leaves open."""

from kthena_components.core.engines.placeholders import Scope
from kthena_components.core.values.unknown import MaybeText, Unknown


def visible_devices(scope: Scope) -> MaybeText | None:
    """Return CUDA_VISIBLE_DEVICES; None if it is not stated."""
    return stated_variable(scope, "CUDA_VISIBLE_DEVICES")


def stated_variable(scope: Scope, name: str) -> MaybeText | None:
    """Return a variable's value; None if only an unreadable source may set it."""
    value = scope.look_up(name)
    if isinstance(value, str):
        return scope.read(value)
    return value if isinstance(value, Unknown) and name in scope.env else None
