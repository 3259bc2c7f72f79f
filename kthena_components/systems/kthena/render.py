"""Writes options as the CRDs spell them: `min_replicas` as `minReplicas`."""

from enum import Enum
from typing import Any

from kthena_components.core.spec.fields import Spec

_SPELLED = {"server_url": "serverURL"}


def render(value: object) -> Any:
    """Write an option without the fields that are not stated. Keys of maps stay as they are."""
    if isinstance(value, Spec):
        stated = {name: getattr(value, name) for name in type(value).model_fields}
        return {
            _name(field): render(one)
            for field, one in stated.items()
            if one is not None and one not in ({}, [])
        }
    if isinstance(value, dict):
        return {key: render(one) for key, one in value.items()}
    if isinstance(value, list):
        return [render(one) for one in value]
    return value.value if isinstance(value, Enum) else value


def _name(field: str) -> str:
    first, *others = field.rstrip("_").split("_")
    return _SPELLED.get(field) or first + "".join(map(str.capitalize, others))
