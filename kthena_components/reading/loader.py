"""PyYAML's safe loader, faster, with Kubernetes' scalars and limits for hostile documents.

Limits the cost of a hostile document to its length.

libyaml's binding composes nested nodes by recursion in C, which no Python limit stops, and aliases
expand a short string to a huge or endless one. Both are checked before anything is built.
"""

import base64
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import yaml

from kthena_components.core.values.regex import regex

_MAP = yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG
_SEQ = yaml.resolver.BaseResolver.DEFAULT_SEQUENCE_TAG


# What Kubernetes makes of a plain scalar, where PyYAML makes something else.
#
# Kubernetes has no dates, no sexagesimal numbers (`22:30`) and no `=`: these are text there. And
# `y` and `n` are booleans, `1e3`, `-.5` and `08` are numbers.
#
# Source: sigs.k8s.io/yaml v1.6.0, that is go.yaml.in/yaml/v2 v2.4.2, resolve.go.


PREFIX = "tag:yaml.org,2002:"
"""Prefix of the tags that are written with `!!`."""
STR, INT, FLOAT, BOOL, NULL, MERGE = (
    f"{PREFIX}{kind}" for kind in ("str", "int", "float", "bool", "null", "merge")
)
MOST_DEPTH = 250
"""Maximum depth of maps and lists in a document."""
MOST_NODES = 1_000_000
"""Maximum nodes of a document with aliases, each counted as often as it is used."""
_FEW_BRACKETS = MOST_DEPTH // 2
# A pattern that starts with a line feed is searched much faster than one with ^.
_DEEP_LINE, _DEEP_FIRST = (regex(rf"{start}[ \t?:-]{{{MOST_DEPTH // 4}}}") for start in (r"\n", ""))
_ANCHOR, _ALIAS = regex(r"&[\w-]"), regex(r"\*[\w-]")
_NAMED = regex(r"(?<![^\s,\[{:?-])&([^\s,\[\]{}]+)")
"""What may be an anchor."""


def _cased(*words: str) -> list[str]:
    return [form for word in words for form in (word, word.capitalize(), word.upper())]


_WORDS: Final[dict[str, tuple[str, bool | float | str | None]]] = {
    **dict.fromkeys(_cased("y", "yes", "on", "true"), (BOOL, True)),
    **dict.fromkeys(_cased("n", "no", "off", "false"), (BOOL, False)),
    **dict.fromkeys(["", "~", *_cased("null")], (NULL, None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (FLOAT, math.nan)),
    **{f"{s}.{w}": (FLOAT, math.inf) for s in ("", "+") for w in _cased("inf")},
    **{f"-.{w}": (FLOAT, -math.inf) for w in _cased("inf")},
    "<<": (MERGE, "<<"),
}
_INTEGER = regex(
    r"[-+]?(?:0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0B[01]+|0|[1-9][0-9]*)\Z|(?:[-+]?0b|0b[-+])[01]+\Z"
)
_REAL = regex(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_LONG_DECIMAL = regex(r"[-+]?[1-9][0-9]{20,}\Z")
"""An integer of more than 64 bits. Python refuses to read one of more than 4,300 digits."""
_DIGITS = "[0-9]+(?:_[0-9]+)*"
_POINT = regex(rf"\.{_DIGITS}(?:[eE][-+]?{_DIGITS})?\Z")
_FIRST = frozenset("+-.0123456789")
_REMEMBERED = 4096
Plain = bool | int | float | str | None


@lru_cache(maxsize=_REMEMBERED)
def resolve(text: str) -> tuple[str, Plain]:
    """Return the tag and the value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    number = _number(text) if text[0] in _FIRST else None
    if number is None:
        return STR, text
    return (INT if isinstance(number, int) else FLOAT), number


def _number(text: str) -> int | float | None:
    """Read a number; integers without 64 bits are floats, floats without 64 bits are text."""
    if text[0] == ".":
        return _float(text) if _POINT.match(text) else None
    digits = text.replace("_", "")
    if _INTEGER.match(digits) and not _LONG_DECIMAL.match(digits):
        integer = _integer(digits.lower())
        if -(2**63) <= integer < 2 ** (63 if digits[0] == "+" else 64):
            return integer
    return _float(digits) if _REAL.match(digits) else None


def _integer(digits: str) -> int:
    if "b" in digits and "x" not in digits:
        return int(digits.replace("0b", "", 1), 2)  # 0b-1 is -1, too
    octal = digits.lstrip("+-").replace("o", "")
    if octal[0] == "0" and "x" not in digits:
        return -int(octal, 8) if digits[0] == "-" else int(octal, 8)
    return int(digits, 0)


def _float(digits: str) -> float | None:
    found = float(digits)
    return None if math.isinf(found) else found


_IMPLIED = {BOOL, FLOAT, INT, MERGE, NULL}
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
        message = (
            f"states '{str(name)[:_SHOWN]}', and adds it by a merge key (<<) with another value"
        )
        super().__init__(
            f"{message}, and programs differ in which of the two they read: remove one"
        )
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
        """Begin to read a string."""
        super().__init__(_once_named(text))
        self._long = len(text) > _LONG

    def dispose(self) -> None:
        """Release the text, and cached values of a long one."""
        super().dispose()
        if self._long:
            resolve.cache_clear()

    def build(self, node: Any) -> Any:
        """Build the value of a node. Its depth is limited before (check_depth)."""
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
        """Build a map; keys and values that are plain strings take a shorter way."""
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


def _once_named(text: str) -> str:
    """Return a string in which no anchor has the name of an earlier one, in the same lines.

    libyaml refuses such a name. YAML 1.2 and Kubernetes' parser give an alias the last node with
    it.
    Source: YAML 1.2.2, 3.2.2.2; go.yaml.in/yaml/v2 v2.4.2, decode.go parser.anchor.
    """
    names = _NAMED.findall(text) if text.count("&") > 1 else []
    if len(names) == len({*names}):
        return text
    longest = max(map(len, names))
    parts: list[str] = []
    seen: dict[str, str] = {}
    end = 0
    try:
        event: Any  # the types of PyYAML let marks be None
        for event in yaml.parse(text, Loader=_SAFE):
            name = getattr(event, "anchor", None)
            if name is None:
                continue
            sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
            at = text.find(f"{sign}{name}", max(event.start_mark.index, end)) + 1
            if sign == "&":
                fresh = f"{name:-<{longest}}-{len(parts)}"  # longer than each name that is written
                seen[name] = name if name not in seen or not at else fresh
            parts += [text[end:at], seen.get(name, name)]
            end = at + len(name)
    except yaml.YAMLError:
        return text  # the error is reported by the caller
    return "".join([*parts, text[end:]])


def _binary(_: Any, node: yaml.ScalarNode) -> str:
    """Return the text of a value with !!binary, as kubectl does."""
    try:
        return base64.b64decode("".join(node.value.split()), validate=True).decode()
    except ValueError:
        raise _problem("found !!binary without a string in base64", node) from None


def _timestamp(loader: Any, node: yaml.ScalarNode) -> str:
    """Check a value with !!timestamp, and return it as text: Kubernetes has no dates."""
    loader.construct_yaml_timestamp(node)
    return str(node.value)


def _problem(message: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, message, node.start_mark)


Loader.add_constructor(f"{PREFIX}binary", _binary)
Loader.add_constructor(f"{PREFIX}timestamp", _timestamp)
for _kind in ("set", "omap", "pairs"):  # maps and lists for kubectl, other types in Python
    Loader.add_constructor(f"{PREFIX}{_kind}", Loader.construct_undefined)


class LimitError(ValueError):
    """A document exceeds a limit."""

    def __init__(self, text: str, mark: Any = None) -> None:
        """Keep the position, as PyYAML's own errors do."""
        super().__init__(text)
        self.problem_mark = mark


def check_depth(text: str) -> None:
    """Reject a document that is nested too deeply, before it is composed.

    Each level needs a bracket, or a column at the start of a line that at most two levels share.
    Few of both are sufficient; otherwise the document is read event by event.
    """
    brackets = text.count("[") + text.count("{")
    if brackets >= _FEW_BRACKETS:
        brackets -= text.count("[]") + text.count("{}")
    deep = _DEEP_FIRST.match(text) or _DEEP_LINE.search(text)
    if brackets < _FEW_BRACKETS and not deep:
        return
    depth = 0
    for event in yaml.parse(text, Loader=Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_DEPTH:
                raise _too_deep(event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def check_json_depth(text: str, body: object) -> None:
    """Reject JSON that is nested too deeply."""
    if text.count("[") + text.count("{") <= MOST_DEPTH:
        return
    level, depth = [body], 0
    while level := [item for part in level for item in _items(part)]:
        depth += 1
        if depth > MOST_DEPTH:
            raise _too_deep()


def _items(part: object) -> Iterator[object]:
    if isinstance(part, dict):
        yield from part.values()
    elif isinstance(part, list):
        yield from part


def check_aliases(text: str, root: yaml.Node) -> None:
    """Reject a document that contains itself, or that its aliases make too large."""
    if not (_ALIAS.search(text) and _ANCHOR.search(text)):
        return
    sizes: dict[yaml.Node, int] = {}
    heights: dict[yaml.Node, int] = {}
    path: dict[yaml.Node, Iterator[yaml.Node]] = {root: _parts(root)}
    while path:
        node = next(reversed(path))
        part = next(path[node], None)
        if part is None:
            del path[node]
            sizes[node] = 1 + sum(sizes[each] for each in _parts(node))
            heights[node] = 1 + max((heights[each] for each in _parts(node)), default=-1)
            if heights[node] > MOST_DEPTH:
                raise _too_deep(node.start_mark)
            if sizes[node] > MOST_NODES:
                seen = f"expands to more than {MOST_NODES:,} values by its aliases, the limit"
                raise LimitError(f"{seen} of a document", node.start_mark)
        elif part in path:
            raise LimitError("contains itself, by an alias inside its own anchor", part.start_mark)
        elif part not in sizes:
            if len(path) >= MOST_DEPTH:
                raise _too_deep(part.start_mark)
            path[part] = _parts(part)


def _parts(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _too_deep(mark: Any = None) -> LimitError:
    return LimitError(f"is nested more deeply than {MOST_DEPTH} levels, the limit", mark)
