"""PyYAML's safe loader, set to read scalars as Kubernetes does, and quicker.

Kubernetes knows no dates, no sexagesimal numbers (`22:30`) and no `=`: these are text there.
Source: sigs.k8s.io/yaml, goyaml.v2/resolve.go.
"""

import re
from typing import Any

import yaml

_PREFIX = "tag:yaml.org,2002:"
_STR, _MAP, _SEQ = (f"{_PREFIX}{kind}" for kind in ("str", "map", "seq"))
_MERGE = f"{_PREFIX}merge"
_TEXT = {f"{_PREFIX}timestamp", f"{_PREFIX}value"}
_NUMBERS = {
    f"{_PREFIX}int": re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*)\Z"),
    f"{_PREFIX}float": re.compile(
        r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
}
_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_IMPLICIT: dict[str, list[tuple[str, re.Pattern[str]]]] = {
    first: [(tag, _NUMBERS.get(tag, pattern)) for tag, pattern in rows if tag not in _TEXT]
    for first, rows in _SAFE.yaml_implicit_resolvers.items()
}


class Loader(_SAFE):  # type: ignore[misc]  # which one it is depends on how PyYAML was built
    """Builds nothing but maps, lists and scalars. A tag of another kind is an error."""

    def descend_resolver(self, *_: object) -> None:
        """Do nothing: no tag here depends on where a value stands."""

    def ascend_resolver(self) -> None:
        """Do nothing, as above."""

    def resolve(self, kind: object, value: str, implicit: tuple[bool, bool]) -> str:
        """Give the tag of a value that states none."""
        if kind is yaml.ScalarNode:
            for tag, pattern in _IMPLICIT.get(value[:1], ()) if implicit[0] else ():
                if pattern.match(value):
                    return tag
            return _STR
        return _MAP if kind is yaml.MappingNode else _SEQ

    def build(self, node: yaml.Node) -> Any:
        """Build the value of a node. Its depth is limited before (guards.py)."""
        tag, kind = node.tag, type(node)
        if kind is yaml.ScalarNode:
            if tag == _STR:
                return node.value
        elif kind is yaml.MappingNode and tag == _MAP:
            made = {}
            for key, value in node.value:
                if key.tag == _MERGE:
                    return self.construct_object(node, deep=True)
                plain = key.tag == _STR and type(key) is yaml.ScalarNode
                made[key.value if plain else self._key(key)] = self.build(value)
            return made
        elif kind is yaml.SequenceNode and tag == _SEQ:
            return [self.build(item) for item in node.value]
        return self.construct_object(node, deep=True)

    def _key(self, node: yaml.Node) -> Any:
        key = self.build(node)
        try:
            hash(key)
        except TypeError:
            problem = "found a map or a list as a key"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None
        return key
