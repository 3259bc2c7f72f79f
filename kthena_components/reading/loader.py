"""PyYAML's safe loader, faster, and with Kubernetes' rules for scalars (scalars.py)."""

from typing import Any

import yaml

from kthena_components.reading import scalars
from kthena_components.reading.scalars import MERGE, STR, resolve

_MAP = yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG
_SEQ = yaml.resolver.BaseResolver.DEFAULT_SEQUENCE_TAG
_IMPLIED = {scalars.BOOL, scalars.FLOAT, scalars.INT, scalars.MERGE, scalars.NULL}
_LONG = 2**20
_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _tag(kind: object, value: str, implicit: tuple[bool, bool]) -> str:
    """Return the tag of a value without an explicit one."""
    if kind is yaml.ScalarNode:
        return resolve(value)[0] if implicit[0] else STR
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
            resolve.cache_clear()

    def build(self, node: Any) -> Any:
        """Build the value of a node. Its depth is limited before (limits.py)."""
        tag, kind = node.tag, type(node)
        if kind is yaml.ScalarNode:
            return node.value if tag == STR else self._scalar(node)
        if kind is yaml.MappingNode and tag == _MAP:
            return self._map(node)
        if kind is yaml.SequenceNode and tag == _SEQ:
            return [
                item.value
                if item.tag == STR and type(item) is yaml.ScalarNode
                else self.build(item)
                for item in node.value
            ]
        return self.construct_object(node, deep=True)

    def _map(self, node: yaml.MappingNode) -> Any:
        made, build, text, scalar = {}, self.build, STR, yaml.ScalarNode
        for key, value in node.value:
            if key.tag == MERGE:
                return self.construct_object(node, deep=True)
            name = key.value if key.tag == text and type(key) is scalar else self._key(key)
            plain = value.tag == text and type(value) is scalar
            made[name] = value.value if plain else build(value)
        return made

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        tag, value = resolve(node.value)
        if tag == node.tag and tag in _IMPLIED:
            return value
        return self.construct_object(node, deep=True)

    def _key(self, node: yaml.Node) -> Any:
        key = self.build(node)
        try:
            hash(key)
        except TypeError:
            problem = "found a map or a list as a key"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None
        return key
