"""PyYAML's safe loader, faster, and with Kubernetes' rules for scalars.

Kubernetes has no dates, no sexagesimal numbers (`22:30`) and no `=`: these are text there. Source:
sigs.k8s.io/yaml, goyaml.v2/resolve.go.
"""

import re
from functools import lru_cache
from typing import Any

import yaml

_PREFIX = "tag:yaml.org,2002:"
_STR, _MAP, _SEQ, _INT = (f"{_PREFIX}{kind}" for kind in ("str", "map", "seq", "int"))
_MERGE = f"{_PREFIX}merge"
_TEXT = {f"{_PREFIX}timestamp", f"{_PREFIX}value"}
_NUMBERS = {
    _INT: re.compile(
        r"[-+]?(?:0[bB]_*[01][01_]*|0[xX]_*[0-9a-fA-F][0-9a-fA-F_]*|0[oO]_*[0-7][0-7_]*"
        r"|0[0-7_]+|0|[1-9][0-9_]*)\Z"
    ),
    f"{_PREFIX}float": re.compile(
        r"(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
    ),
}
_BASED = re.compile(r"[-+]?0[bBoOxX]")
_KNOWN = {
    (f"{_PREFIX}bool", "true"): True,
    (f"{_PREFIX}bool", "false"): False,
    (f"{_PREFIX}null", "null"): None,
    (f"{_PREFIX}null", ""): None,
}
"""Scalars that are cached: they are as common as text and numbers."""
_REMEMBERED, _LONG = 4096, 2**20
_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_IMPLICIT: dict[str, list[tuple[str, re.Pattern[str]]]] = {
    first: [(tag, _NUMBERS.get(tag, pattern)) for tag, pattern in rows if tag not in _TEXT]
    for first, rows in _SAFE.yaml_implicit_resolvers.items()
}


@lru_cache(maxsize=_REMEMBERED)
def _tag(kind: object, value: str, implicit: tuple[bool, bool]) -> str:
    """Return the tag of a value without an explicit one."""
    if kind is yaml.ScalarNode:
        for tag, pattern in _IMPLICIT.get(value[:1], ()) if implicit[0] else ():
            if pattern.match(value):
                return tag
        return _STR
    return _MAP if kind is yaml.MappingNode else _SEQ


class Loader(_SAFE):  # type: ignore[misc]  # the class depends on how PyYAML was built
    """Builds only maps, lists and scalars. Other tags are errors."""

    # All three are called for each value of a document: built-ins take a third of the time of
    # Python functions. The first two do nothing: no tag depends on a value's position.
    descend_resolver: Any = staticmethod({}.get)
    ascend_resolver: Any = staticmethod({}.clear)
    resolve = staticmethod(_tag)

    def __init__(self, text: str) -> None:
        """Begin to read a text."""
        super().__init__(text)
        self._long = len(text) > _LONG

    def dispose(self) -> None:
        """Release the text, and cached values of a long one."""
        super().dispose()
        if self._long:
            _tag.cache_clear()

    def build(self, node: Any) -> Any:
        """Build the value of a node. Its depth is limited before (limits.py)."""
        tag, kind = node.tag, type(node)
        if kind is yaml.ScalarNode:
            return node.value if tag == _STR else self._scalar(node)
        if kind is yaml.MappingNode and tag == _MAP:
            return self._map(node)
        if kind is yaml.SequenceNode and tag == _SEQ:
            return [
                item.value
                if item.tag == _STR and type(item) is yaml.ScalarNode
                else self.build(item)
                for item in node.value
            ]
        return self.construct_object(node, deep=True)

    def _map(self, node: yaml.MappingNode) -> Any:
        made, build, text, scalar = {}, self.build, _STR, yaml.ScalarNode
        for key, value in node.value:
            if key.tag == _MERGE:
                return self.construct_object(node, deep=True)
            name = key.value if key.tag == text and type(key) is scalar else self._key(key)
            plain = value.tag == text and type(value) is scalar
            made[name] = value.value if plain else build(value)
        return made

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        tag, value = node.tag, node.value
        if tag == _INT and value.isdecimal() and value[0] != "0":
            return int(value)
        if (tag, value) in _KNOWN:
            return _KNOWN[tag, value]
        if tag == _INT and _BASED.match(value):
            return int(value.replace("_", ""), 0)
        return self.construct_object(node, deep=True)

    def _key(self, node: yaml.Node) -> Any:
        key = self.build(node)
        try:
            hash(key)
        except TypeError:
            problem = "found a map or a list as a key"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None
        return key
