"""Writes pod templates that are args objects of pulumi-kubernetes as maps.

The names of their fields become those of Kubernetes: `node_selector` is `nodeSelector`. Everything
else stays, so that its type is refused where it is read (_outputs.py).
"""

from collections.abc import Mapping
from typing import Any

from pulumi import _types

from kthena_components.core.findings import Finding, SpecError, path_of

_TEMPLATES = frozenset({"entry_template", "worker_template", "overlay"})
_TYPES = frozenset({"PodTemplateSpecArgs", "PodTemplateSpecPatchArgs"})
Path = tuple[str | int, ...]


def without_objects(args: Any) -> Any:
    """Return args in which each pod template, and each part of one, is a map.

    Raises:
        SpecError: With every template that is another object.
    """
    findings: list[Finding] = []
    plain = _role(args, (), findings)
    if isinstance(plain, Mapping) and isinstance(plain.get("roles"), list | tuple):
        roles = [_role(role, ("roles", i), findings) for i, role in enumerate(plain["roles"])]
        plain = {**plain, "roles": roles}
    if findings:
        raise SpecError(findings)
    return plain


def _role(role: Any, path: Path, findings: list[Finding]) -> Any:
    if not isinstance(role, Mapping) or not _TEMPLATES.intersection(role):
        return role
    templates = {field: role[field] for field in role if field in _TEMPLATES}
    findings += [
        _refused((*path, field), type(value).__name__)
        for field, value in templates.items()
        if _is_object(value) and type(value).__name__ not in _TYPES
    ]
    return {**role, **{field: _plain(value) for field, value in templates.items()}}


def _refused(path: Path, name: str) -> Finding:
    return Finding(
        path=path_of(path),
        seen=f"is of the type {name}, but must be a pod template",
        remedy="write a PodTemplateSpecArgs, or its fields as a map, with the names that "
        "Kubernetes uses",
        rule="type",
    )


def _plain(value: Any) -> Any:
    """Convert objects; other values, such as Outputs, stay the same object."""
    if _is_object(value):
        value = _types.input_type_to_dict(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _is_object(value: object) -> bool:
    return _types.is_input_type(type(value))
