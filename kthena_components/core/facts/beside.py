"""Objects that others refer to for what they leave out, by name: a runtime, say."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from kthena_components.core.values.read import group_kind, mapping
from kthena_components.core.values.unknown import is_unresolved

_Key = tuple[tuple[str, str], str]


@dataclass(slots=True)
class Beside:
    """Objects of some kinds of one cluster."""

    kinds: Collection[tuple[str, str]] = ()
    """Their API groups and kinds. Others are ignored."""
    _found: dict[_Key, dict[str, Mapping[str, Any] | None]] = field(default_factory=dict)
    """By name and namespace. None: several of one name differ."""

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._found)

    def add(self, body: Mapping[str, Any]) -> None:
        """Add an object of the kinds that has a name."""
        kind, metadata = group_kind(body), mapping(body.get("metadata"))
        name, space = metadata.get("name"), metadata.get("namespace")
        if kind not in self.kinds or not isinstance(name, str) or is_unresolved(name):
            return
        stated = space if isinstance(space, str) and not is_unresolved(space) else ""
        spaces = self._found.setdefault((kind, name), {})
        spaces[stated] = body if spaces.get(stated, body) == body else None

    def find(self, kind: tuple[str, str], name: str, namespace: str) -> Mapping[str, Any] | None:
        """Find an object by its kind and name; None if there is none, or if several differ.

        Where either side states no namespace, the deployment sets it: a single object of that name
        matches.
        """
        spaces = self._found.get((kind, name), {})
        if namespace in spaces:
            return spaces[namespace]
        if namespace:
            return spaces.get("")
        return next(iter(spaces.values())) if len(spaces) == 1 else None
