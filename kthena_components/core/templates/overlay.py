"""Merges a user's changes into a generated pod template.

The merge is Kubernetes' strategic merge for the lists of a pod: maps merge, named lists merge item
by item, other lists are replaced, and null removes a field. Source of the merge keys: patchMergeKey
tags in k8s.io/api/core/v1/types.go. Unlike it, another handler of a hook or a probe replaces the
old one: the API server rejects two.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Template = dict[str, Any]
"""A pod template."""
MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}
HANDLED = frozenset({"preStop", "postStart", "startupProbe", "readinessProbe", "livenessProbe"})
HANDLERS = frozenset({"exec", "httpGet", "tcpSocket", "grpc", "sleep"})
"""Fields of those hooks and probes, of which each has one. Source: kubernetes
pkg/apis/core/validation/validation.go validateHandler."""


def lay_over(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the base with the changes merged in; does not modify its arguments."""
    result = dict(base)
    for key, change in changes.items():
        if change is None:
            result.pop(key, None)
        else:
            result[key] = _merge(key, result.get(key), change)
    return result


def _merge(field: str, old: Any, new: Any) -> Any:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        if field in HANDLED and HANDLERS.intersection(new):
            old = {k: v for k, v in old.items() if k in new or k not in HANDLERS}
        return lay_over(old, new)
    key = MERGE_KEYS.get(field)
    if key and isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return _merge_named(old, new, key)
    return new


def _merge_named(old: Sequence[Any], new: Sequence[Any], key: str) -> list[Any]:
    items = list(old)
    at = {name: i for i, item in enumerate(items) if (name := _name(item, key)) is not None}
    for change in new:
        name = _name(change, key)
        if name in at:
            items[at[name]] = lay_over(items[at[name]], change)
        else:
            items.append(change)
    return items


def _name(item: Any, key: str) -> str | int | None:
    name = item.get(key) if isinstance(item, Mapping) else None
    return name if isinstance(name, str | int) else None
