"""Objects that other objects name for the fields that they leave out, such as KServe's runtimes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kthena_components.core.values.read import group_kind, inside, mapping
from kthena_components.core.values.unknown import is_unresolved

_Key = tuple[tuple[str, str], str]


@dataclass(slots=True)
class ReferencedObjects:
    """The objects of one cluster that others may name, found by kind, name and namespace."""

    kinds: Collection[tuple[str, str]] = ()
    """Their API groups and kinds. Others are ignored."""
    named_by: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    """Kinds of the objects that refer to them, with the fields that lead to the name."""
    _found: dict[_Key, dict[str, Mapping[str, Any] | None]] = field(default_factory=dict)
    """By name and namespace. None: several of one name differ."""
    _named: set[object] = field(default_factory=set)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._found)

    def add(self, body: Mapping[str, Any]) -> None:
        """Add an object of the kinds that has a name, or what another object refers to."""
        kind, metadata = group_kind(body), mapping(body.get("metadata"))
        if kind in self.named_by:
            named: object = body
            for step in self.named_by[kind]:
                named = inside(named, step)
            self._named.add(named if isinstance(named, str) else None)
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

    def is_named(self, body: Mapping[str, Any]) -> bool:
        """Return whether an object refers to this one, by its name."""
        name = mapping(body.get("metadata")).get("name")
        return isinstance(name, str | None) and name in self._named
