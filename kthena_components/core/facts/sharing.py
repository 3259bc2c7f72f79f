"""Reads which accelerators a device plugin counts more often than there are devices.

With time slices or MPS, NVIDIA's device plugin offers each GPU several times under one name. A
pod that requests several may get the same device, so its number of devices is unknown.

Source: k8s-device-plugin api/config/v1/sharing.go and replicas.go.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown

SHARING = "sharing"
_WAYS = {"timeSlicing": "time slices", "mps": "shares of MPS"}
MARKS = tuple(_WAYS)
_DEEPEST = 12
_ONE = 1


@dataclass(slots=True)
class Sharing:
    """The resources that a device plugin of the cluster offers several times per device."""

    _found: dict[str, Unknown] = field(default_factory=dict)

    def add(self, value: object, file: str) -> None:
        """Add what a document configures: a ConfigMap, values of a chart, or the file itself."""
        for config in _configs(value, _DEEPEST):
            for way, words in _WAYS.items():
                part = mapping(config.get(way))
                for item in map(mapping, sequence(part.get("resources"))):
                    if _is_renamed(part, item) or not _is_several(item.get("replicas")):
                        continue
                    because = f"{item.get('name')} may be {words} of fewer devices ({file})"
                    self._found.setdefault(str(item.get("name")), Unknown(because))

    def of(self, resources: Iterator[str]) -> Unknown | None:
        """Return why the number of devices of these resources is unknown; None if it is known."""
        return next((self._found[name] for name in resources if name in self._found), None)


def _is_renamed(part: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    """Return whether shares have another resource name, such as nvidia.com/gpu.shared."""
    return part.get("renameByDefault") is True or item.get("rename") not in (None, "")


def _is_several(replicas: object) -> bool:
    return not isinstance(replicas, int) or replicas > _ONE


def _configs(value: object, deep: int) -> Iterator[Mapping[str, Any]]:
    """Return each mapping named `sharing`, in texts as well."""
    if not deep:
        return
    if isinstance(value, str):
        if SHARING in value and any(mark in value for mark in MARKS):
            from kthena_components.core.values.embedded import (  # noqa: PLC0415 - loads PyYAML
                read_yaml_text,
            )

            yield from _configs(read_yaml_text(value, "a configuration"), deep - 1)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key == SHARING and isinstance(inner, Mapping):
                yield inner
            else:
                yield from _configs(inner, deep - 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _configs(inner, deep - 1)
