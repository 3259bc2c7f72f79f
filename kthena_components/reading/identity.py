"""Reads which object a YAML document is, as kubectl does, without reading the rest.

A document that kubectl may take for an object of another kind is an error, because unwanted kinds
are skipped without a word. A folder may contain hundreds of megabytes of irrelevant definitions.
Parsing them would take nearly all of the time, and the first lines often say enough.

Source: kubectl v0.34, which reads sigs.k8s.io/yaml v1.6.0 and then apimachinery
pkg/apis/meta/v1/unstructured/helpers.go: names of fields are case-sensitive, a kind that is not a
string is missing, and a field `items` makes a list of any kind.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.reading.loader import MERGE, PREFIX, STR, resolve

_VERSION, _KIND, _ITEMS = "apiVersion", "kind", "items"
_READ = frozenset({_VERSION, _KIND, _ITEMS})
_FOLDED = {name.casefold(): name for name in (_VERSION, _KIND)}
_PLAIN = frozenset(f"{PREFIX}{name}" for name in ("int", "float", "bool", "null"))
"""Tags of keys that cannot be the name of a field."""
MERGES = "<<"
"""The only text that makes a merge key."""
_SHOWN = 60


class IdentityError(ValueError):
    """A document whose apiVersion and kind are in doubt."""

    def __init__(self, message: str, mark: Any = None) -> None:
        """Keep the position, as PyYAML's own errors do."""
        super().__init__(message)
        self.problem_mark = mark


class NoObjectError(IdentityError):
    """A document with apiVersion and kind that kubectl refuses, so that it is not an object."""


def identity(node: yaml.Node) -> tuple[str | None, str | None]:
    """Read apiVersion and kind; None for one that the document does not state.

    Raises:
        IdentityError: Programs differ in what they read, or one of the two is not a string.
    """
    return named(top_fields(node))


def top_fields(node: yaml.Node) -> dict[str, yaml.Node]:
    """Find the values of apiVersion, kind and items, in the document or in what it merges.

    The size of a document with merge keys is limited before (loader.py).

    Raises:
        IdentityError: One of them is stated twice, or a key has a tag.
    """
    found: dict[str, yaml.Node] = {}
    for key, value in node.value if type(node) is yaml.MappingNode else ():
        name = key.value
        if key.tag == STR:
            if name in _READ:
                _add(found, name, value, key)
        elif key.tag == MERGE and name == MERGES:
            for name, merged in _merged(value).items():
                _add(found, name, merged, key)
        elif key.tag not in _PLAIN and type(key) is yaml.ScalarNode:
            tag = key.tag.replace(PREFIX, "!!", 1)[:_SHOWN]
            message = f"has the tag '{tag}' on a key, which not every program reads"
            raise IdentityError(f"{message}: write the key without it", key.start_mark)
    if len(found) < len(_FOLDED) and type(node) is yaml.MappingNode:
        _check_case(node, found)
    return found


def _add(found: dict[str, yaml.Node], name: str, value: yaml.Node, key: yaml.Node) -> None:
    if name in found and found[name] is not value:
        message = f"states '{name}' twice, and not every program reads the same one: remove one"
        raise IdentityError(message, key.start_mark)
    found[name] = value


def _merged(value: yaml.Node) -> dict[str, yaml.Node]:
    """Find the fields that a merge key adds. Of several maps, the first one counts."""
    parts = value.value if type(value) is yaml.SequenceNode else [value]
    found: dict[str, yaml.Node] = {}
    for part in parts:
        for name, each in top_fields(part).items():
            found.setdefault(name, each)
    return found


def _check_case(node: yaml.MappingNode, found: Mapping[str, yaml.Node]) -> None:
    """Reject an object whose fields differ only in case from those that kubectl reads."""
    odd = {
        meant: key
        for key, _ in node.value
        if isinstance(key.value, str)
        and (meant := _FOLDED.get(key.value.casefold())) is not None
        and key.value != meant
    }
    if odd and {*odd, *found} >= {_VERSION, _KIND}:
        for meant, key in odd.items():
            if meant not in found:
                message = f"has the key '{key.value}', which kubectl does not read: write '{meant}'"
                raise NoObjectError(message, key.start_mark)


def named(fields: Mapping[str, yaml.Node]) -> tuple[str | None, str | None]:
    """Read apiVersion and kind from the fields of a document.

    Raises:
        IdentityError: Both are stated, and one of them is not a string.
    """
    version, kind = fields.get(_VERSION), fields.get(_KIND)
    if version is None or kind is None:
        return _text(version), _text(kind)
    for name, value in ((_VERSION, version), (_KIND, kind)):
        if not _text(value):
            message = (
                f"has {_shown(value)} as its {name}, which not every program reads as a string"
            )
            has_tag = type(value) is yaml.ScalarNode and value.tag not in {STR, *_PLAIN}
            made = IdentityError if has_tag else NoObjectError
            raise made(f"{message}: write a string, without a tag", value.start_mark)
    return version.value, kind.value


def _text(value: yaml.Node | None) -> str | None:
    is_text = type(value) is yaml.ScalarNode and value.tag == STR
    return value.value if is_text and value is not None else None


def _shown(value: yaml.Node) -> str:
    text = str(value.value)[:_SHOWN] if type(value) is yaml.ScalarNode else "a map or a list"
    return text or "nothing"


def check_body(body: Any) -> None:
    """Reject a JSON document whose apiVersion or kind kubectl does not read as a string.

    Raises:
        IdentityError: One of them is not a string, or has a name in another case.
    """
    if not isinstance(body, Mapping):
        return
    odd = {_FOLDED.get(key.casefold(), key): key for key in body if key not in _READ}
    if not {_VERSION, _KIND} <= {*odd, *body}:
        return
    for name in (_VERSION, _KIND):
        if name not in body:
            message = f"has the key '{odd[name]}', which kubectl does not read: write '{name}'"
            raise NoObjectError(message)
        _require_text(body, name, name)
    check_items(body)


def check_items(body: Any) -> None:
    """Reject a list with items whose apiVersion or kind kubectl does not read as a string.

    Raises:
        IdentityError: There is such an item.
    """
    waiting: list[tuple[str, Any]] = [("", body)]
    while waiting:
        path, part = waiting.pop()
        items = part.get(_ITEMS) if isinstance(part, dict) else None
        for index, item in enumerate(items if isinstance(items, list) else ()):
            if not isinstance(item, dict):
                continue
            for name in (_VERSION, _KIND):
                if name in item and not _is_text(item[name]):
                    _require_text(item, name, f"{path}{_ITEMS}[{index}].{name}")
            if _ITEMS in item:
                waiting.append((f"{path}{_ITEMS}[{index}].", item))


def _is_text(value: object) -> bool:
    return type(value) is str and value != ""


def _require_text(body: Mapping[Any, Any], name: str, path: str) -> None:
    if not _is_text(body[name]):
        message = f"has no string as {path}, and kubectl requires one"
        raise NoObjectError(f"{message}: write a string, without a tag")


Wanted = Callable[[object, object, str], bool]
"""Whether an object of some apiVersion and kind, written in a text, is worth reading as a whole."""

_BREAKS = ("\r", "\x85", "\u2028", "\u2029")
"""Line ends of YAML 1.1 besides the line feed: with them, keys may follow where no line seems to
start.
"""
_PASSED = r"(?>(?:[ ]*+(?:#[^\n]*+)?\n)*)"
"""Empty lines and comments. An atomic group: a possessive one matches too much in Python 3.11.2."""
_END = r"[ ]*+(?:(?<=[ ])#[^\n]*+)?(?:\n|\Z)"


def _line_with_key(key: str, value: str) -> str:
    """Match a line that states a key, with or without quotes around the value."""
    quote = f"quote_of_{key}"
    return rf"{key}:[ ]++(?P<{quote}>[\"']?)(?P<{key}>{value})(?P={quote}){_END}"


_VERSION_LINE = _line_with_key("apiVersion", r"[A-Za-z0-9][A-Za-z0-9./-]*+")
_KIND_LINE = _line_with_key("kind", r"[A-Za-z][A-Za-z0-9]*+")
_HEADS = tuple(
    regex(rf"{_PASSED}(?:---{_END}{_PASSED})?(?P<first>){one}{_PASSED}{other}{_PASSED}")
    for one, other in ((_VERSION_LINE, _KIND_LINE), (_KIND_LINE, _VERSION_LINE))
)
"""Both keys in sequence, with no quote or bracket before them, and the rest."""
_INDENTED = (" ", "\t")
"""Text that would continue the value of the previous key."""
_DOUBTFUL = regex(
    r"\n(?![ \n#]|-[ \n]|(?!(?:apiVersion|kind|items):)[A-Za-z][A-Za-z0-9_-]*+:(?:[ \n]|\Z)|\Z)"
)
"""A line that starts in the first column with anything except a comment, a list item, or another
plain key; or with `items`, which makes a list of any kind.
"""


@dataclass(frozen=True, slots=True)
class Head:
    """The identity of a document."""

    version: str
    kind: str
    line: int
    """Lines before the first key."""


def read_head(text: str, wanted: Wanted | None = None) -> Head | None:
    """Read apiVersion and kind of one document; None if that needs a parser.

    A head is what a parser would find, if it can read the document at all: all keys of a
    block-style map start in the same column, so no other line can state a key again or spell it
    differently. All doubtful cases are left to the parser: flow style, quotes, tags, anchors and
    merges around the two keys, duplicate keys, values that continue in the next line, templates in
    the first column, and JSON.

    Args:
        wanted: Selects documents that are parsed anyway, so that their head is not needed.
    """
    found = _HEADS[0].match(text) or _HEADS[1].match(text)
    if found is None or (wanted is not None and wanted(found["apiVersion"], found["kind"], text)):
        return None
    if not (_names_text(found, "kind") and _names_text(found, "apiVersion")):
        return None
    goes_on = text.startswith(_INDENTED, found.end())
    # Start at the line feed before it, so that the line after the head is checked, too.
    if goes_on or _DOUBTFUL.search(text, found.end() - 1) or any(b in text for b in _BREAKS):
        return None
    line = text.count("\n", 0, found.start("first"))
    return Head(version=found["apiVersion"], kind=found["kind"], line=line)


def _names_text(found: re.Match[str], key: str) -> bool:
    """Return whether the value of a key is a string, and no number or boolean."""
    return found[f"quote_of_{key}"] != "" or resolve(found[key])[0] == STR
