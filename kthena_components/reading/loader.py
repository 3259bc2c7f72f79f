"""PyYAML's safe loader, faster, and with Kubernetes' rules for scalars (scalars.py)."""

import base64
from typing import Any

import yaml

from kthena_components.reading import scalars
from kthena_components.reading.scalars import MERGE, PREFIX, STR, resolve

_MAP = yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG
_SEQ = yaml.resolver.BaseResolver.DEFAULT_SEQUENCE_TAG
_IMPLIED = {scalars.BOOL, scalars.FLOAT, scalars.INT, scalars.MERGE, scalars.NULL}
_LONG = 2**20
_MERGES = "<<"
_SHOWN = 60
_SAFE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class MapKeyError(yaml.constructor.ConstructorError):
    """A map or a list is a key, as in a template with `{{`. kubectl refuses the document, too."""


class MergeError(ValueError):
    """A merge key adds a key that is stated before it, with another value."""

    def __init__(self, name: object, key: yaml.Node) -> None:
        """Keep the position, as PyYAML's own errors do."""
        told = f"states '{str(name)[:_SHOWN]}', and adds it by a merge key (<<) with another value"
        super().__init__(f"{told}, of which not every program reads the same one: remove one")
        self.problem_mark = key.start_mark


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
                return self._merged(node)
            name = key.value if key.tag == text and type(key) is scalar else self._key(key)
            plain = value.tag == text and type(value) is scalar
            made[name] = value.value if plain else build(value)
        return made

    def _merged(self, node: yaml.MappingNode) -> Any:
        """Build a map with merge keys.

        kubectl gives the later of two values to a key, kustomize the one outside of the merge: what
        a merge key adds must not be stated before it with another value.
        """
        made: dict[Any, Any] = {}
        for key, value in node.value:
            if key.tag != MERGE:
                made[self._key(key)] = self.build(value)
                continue
            if key.value != _MERGES:
                raise _problem("found a merge key with another name than <<", key)
            for name, merged in self._to_merge(value, key).items():
                if name in made and made[name] != merged:
                    raise MergeError(name, key)
                made[name] = merged
        return made

    def _to_merge(self, value: yaml.Node, key: yaml.Node) -> dict[Any, Any]:
        parts = value.value if type(value) is yaml.SequenceNode else [value]
        if not all(type(part) is yaml.MappingNode for part in parts):
            raise _problem("expected a map or a list of maps to merge", key)
        added: dict[Any, Any] = {}
        for part in reversed(parts):  # the first one counts
            added.update(self.build(part))
        return added

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
            raise MapKeyError(None, None, problem, node.start_mark) from None
        return key


def _binary(_: Any, node: yaml.ScalarNode) -> str:
    """Return the text of a value with !!binary, as kubectl does."""
    try:
        return base64.b64decode("".join(node.value.split()), validate=True).decode()
    except ValueError:
        raise _problem("found !!binary without a text in base64", node) from None


def _timestamp(loader: Any, node: yaml.ScalarNode) -> str:
    """Check a value with !!timestamp, and return it as text: Kubernetes has no dates."""
    loader.construct_yaml_timestamp(node)
    return str(node.value)


def _problem(told: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, told, node.start_mark)


Loader.add_constructor(f"{PREFIX}binary", _binary)
Loader.add_constructor(f"{PREFIX}timestamp", _timestamp)
for _kind in ("set", "omap", "pairs"):  # maps and lists for kubectl, other types in Python
    Loader.add_constructor(f"{PREFIX}{_kind}", Loader.construct_undefined)
