"""Reads settings files: one map without duplicate keys, and only what Pulumi reads in the same way.

Other readers of the same file may use the first of two keys, while Python uses the last. Go's
encoding/json even merges lists of objects that are stated twice.

Refuses settings that Pulumi would read differently than this package.

Pulumi reads a stack file with Go's gopkg.in/yaml.v3 or encoding/json, writes the result, reads that
again, and passes the values to the program as text: `8.0`, `08` and `1e1` become 8 and 10, `yes`
stays a string, a date becomes a point in time. What a review compares must be what the program
gets, so a form that two readers may take differently is an error, with its place.

Source: Pulumi v3.259.0, sdk/go/common/workspace/loaders.go and sdk/go/common/resource/config/
object.go; gopkg.in/yaml.v3 v3.0.1, resolve.go, decode.go and readerc.go.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, NoReturn

import yaml

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.reading.documents import unreadable
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.loader import (
    BOOL,
    NULL,
    PREFIX,
    STR,
    LimitError,
    Loader,
    check_aliases,
    check_depth,
    check_json_depth,
    resolve,
)

_SHOWN = 60
_BOM = "\ufeff"
"""A mark of byte order, which Pulumi passes over at the start of a file."""
_MERGE = "<<"
_KEYS = frozenset({"str", "int", "float", "bool", "null", "merge"})
"""Tags that a key may have, so that its JSON text is the one that Pulumi writes."""
_EXACT = 2**53
"""Integers up to this size are exact in every reader, also in those that use floats only."""
_BREAKS = regex("\r(?!\n)|[\x85\u2028\u2029\ufeff]")
_NUMBER = regex(
    r"[-+]?(?:0[bBoOxX][-+]?[0-9a-fA-F]*|(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
)
"""Everything that one of the readers may take for a number, without underscores."""
_INTEGER = regex(r"0|-?[1-9][0-9]*")
_DECIMAL = regex(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|-?[0-9]+[eE]-[0-9]+")
_DATE = regex(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ].*)?", re.DOTALL)
_LEADING = regex("[\n\r\x85\u2028\u2029]")
_TAB = regex(r"\t.*\n", re.DOTALL)
_CONSTANTS = frozenset({"true", "True", "TRUE", "false", "False", "FALSE"})
_UNSAID = {
    _LEADING: "starts with a line break, which Pulumi drops",
    _TAB: "has several lines and starts with a tab, which Pulumi cannot read",
}
"""What yaml.v3 writes as a block of lines, and then reads as another string, or not at all."""
_QUOTE = "write it in quotes if it is a string"
_JSON = regex(
    r'"(?:[^"\\]|\\.)*"|[][{}:,]|-?[0-9][0-9.eE+-]*|-?Infinity|NaN|true|false|null', re.DOTALL
)
_WHOLE = (yaml.ScalarEvent, yaml.AliasEvent, yaml.CollectionEndEvent)
"""Events after which a key or a value is complete."""
_SURROGATE = regex("[\ud800-\udfff]")


def read_below(path: Path, root: Path) -> str | Unreadable:
    """Read a file that was found below a folder: it must be inside the folder and not block."""
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        message = f"leads out of {root.absolute()}, and is not read: put the file itself there"
        return Unreadable(file=str(path), because=message)
    return read_text(str(path), named=False)


def parse_map(text: str, file: str) -> Mapping[str, Any] | Unreadable:
    """Parse a settings text: JSON if the file's name says so, else YAML.

    What Pulumi would read differently is not read (agreed.py).
    """
    return _parsed(text.removeprefix(_BOM), file, is_settings=True)


def parse_kube_map(text: str, file: str) -> Mapping[str, Any] | Unreadable:
    """Parse the text of a kubeconfig, chart or kustomization, as programs of Kubernetes read it."""
    return _parsed(text, file, is_settings=False)


def _parsed(text: str, file: str, *, is_settings: bool) -> Mapping[str, Any] | Unreadable:
    """Read one map of settings; for settings only what all programs read alike."""
    try:
        if file.endswith(".json"):
            content = _json(text, is_settings=is_settings)
        else:
            content = _yaml(text, is_settings=is_settings)
    except json.JSONDecodeError as error:
        because = f"is not JSON: {error.msg}" if text.strip() else "is empty: write at least {}"
        return Unreadable(file=file, because=because, line=error.lineno, column=error.colno)
    except Exception as error:  # noqa: BLE001 - PyYAML raises all sorts for odd scalars
        problem = unreadable(error, text, 0, file)
        # Other programs may read what is stated twice, or beyond a limit.
        return replace(problem, is_object=isinstance(error, LimitError))
    if not isinstance(content, Mapping):
        return Unreadable(file=file, because="contains no map of settings")
    return content


def plain_scalars(text: str) -> list[str] | None:
    """List the scalars of a YAML text, keys included.

    Returns:
        None if the text is not valid YAML, or has explicit tags or merge keys: programs differ in
        what they make of them.
    """
    found: list[str] = []
    try:
        for event in yaml.parse(text, Loader=Loader):
            if getattr(event, "tag", None) is not None or getattr(event, "value", "") == _MERGE:
                return None
            if isinstance(event, yaml.ScalarEvent):
                found.append(event.value)
    except Exception:  # noqa: BLE001 - PyYAML raises many kinds of errors for odd scalars
        return None
    return found


def _json(text: str, *, is_settings: bool) -> Any:
    body = json.loads(text, object_pairs_hook=None if is_settings else _once)
    check_json_depth(text, body)
    if is_settings:
        check_json(text)
    return body


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise _twice(key)
        made[key] = value
    return made


def _yaml(text: str, *, is_settings: bool) -> Any:
    """Read one YAML document with limits for depth, aliases and keys."""
    check_depth(text)
    if is_settings:
        check_yaml(text)
    loader: Any = Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        check_aliases(text, node)
        _check_keys(node)
        return loader.build(node)
    finally:
        loader.dispose()


def _check_keys(root: yaml.Node) -> None:
    """Reject duplicate keys in any map of a document."""
    waiting, seen = [root], {id(root)}
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            _check_map(node)
        for part in _parts(node):
            if id(part) not in seen:
                seen.add(id(part))
                waiting.append(part)


def _check_map(node: yaml.MappingNode) -> None:
    """Check the keys of a map: of types that JSON has, and each once."""
    stated: set[tuple[str, str]] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.tag.rpartition(":")[2] not in _KEYS:
                message = (
                    f"has a key, '{key.value[:_SHOWN]}', that JSON does not support: write a string"
                )
                raise LimitError(message, key.start_mark)
            if (key.tag, key.value) in stated:
                raise _twice(key.value, key.start_mark)
            stated.add((key.tag, key.value))


def _parts(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _twice(key: str, mark: Any = None) -> LimitError:
    return LimitError(f"states '{key[:_SHOWN]}' twice in one map: remove one of the two", mark)


@dataclass(frozen=True, slots=True)
class Place:
    """A position as PyYAML's marks have it, counted from 0."""

    line: int
    column: int

    @classmethod
    def at(cls, text: str, index: int) -> "Place":
        """Return the place of a character of a string."""
        return cls(text.count("\n", 0, index), index - (text.rfind("\n", 0, index) + 1))


class DisputedError(ValueError):
    """Two programs may read a setting differently."""

    def __init__(self, message: str, mark: Any) -> None:
        """Keep the position, as PyYAML's own errors do."""
        super().__init__(message)
        self.problem_mark = mark


@dataclass(slots=True)
class _Open:
    """A map or list whose end is not reached."""

    is_map: bool
    keys: set[str] = field(default_factory=set)
    at_key: bool = True


def is_text(value: str) -> bool:
    """Return whether every program reads a scalar without quotes as a string."""
    return resolve(value)[0] == STR and not _looks_typed(value)


def why_unsaid(value: str | float) -> str:
    """Explain why Pulumi passes on no form of a value unchanged; empty if there is one."""
    if isinstance(value, str):
        return next((why for form, why in _UNSAID.items() if form.match(value)), "")
    if isinstance(value, bool) or _is_same_number(str(value)):
        return ""
    return f"has the number {value}, which not every program reads in the same way"


def check_yaml(text: str) -> None:
    """Reject YAML settings that Pulumi would read differently.

    Raises:
        DisputedError: A tag, a directive, a merge key, an alias or no string as a key, a key that
            is stated twice, a number or a date in a form that is not the same everywhere, `yes` and
            the like, or a line end other than LF and CRLF.
        yaml.YAMLError: It is not valid YAML.
    """
    odd = _BREAKS.search(text)
    if odd:
        message = f"contains the character U+{ord(odd[0]):04X}, which not every program treats as"
        _refuse(
            f"{message} a line end: write a line feed, or an escape", Place.at(text, odd.start())
        )
    parts: list[_Open] = []
    for event in yaml.parse(text, Loader=Loader):
        _check_event(event, parts[-1] if parts else None)
        if isinstance(event, yaml.CollectionStartEvent):
            parts.append(_Open(isinstance(event, yaml.MappingStartEvent)))
        elif isinstance(event, yaml.CollectionEndEvent):
            parts.pop()
        if parts and isinstance(
            event, yaml.ScalarEvent | yaml.AliasEvent | yaml.CollectionEndEvent
        ):
            parts[-1].at_key = not parts[-1].at_key


def _check_event(event: Any, inside: _Open | None) -> None:
    """Refuse directives, tags and scalars that programs read in different ways."""
    if isinstance(event, yaml.DocumentStartEvent) and (event.version or event.tags):
        _refuse("has a directive, which not every program reads: remove it", event.start_mark)
    if getattr(event, "tag", None) is not None:
        tag = event.tag.replace(PREFIX, "!!", 1)[:_SHOWN]
        message = f"has the tag '{tag}', which not every program reads in the same way"
        _refuse(f"{message}: write the value without it", event.start_mark)
    if isinstance(event, yaml.ScalarEvent) and (why := why_unsaid(event.value)):
        _refuse(f"has a string that {why}: remove it there", event.start_mark)
    if inside is not None and inside.is_map and inside.at_key:
        _check_key(event, inside)
    elif isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
        _check_plain(event.value, event.start_mark)


def _check_key(event: Any, inside: _Open) -> None:
    """Refuse keys that are not plain strings, stand twice, or merge another map."""
    if isinstance(event, yaml.CollectionEndEvent):
        return
    mark = event.start_mark
    if not isinstance(event, yaml.ScalarEvent):
        what = "an alias" if isinstance(event, yaml.AliasEvent) else "a map or a list"
        _refuse(f"has {what} as a key: write a string", mark)
    key = event.value
    if key == _MERGE:
        # Quoted, too: Pulumi merges what such a key has, whatever its form.
        _refuse(f"has a merge key ({_MERGE}): write the keys that it adds", mark)
    if event.implicit[0] and not is_text(key):
        message = f"has the key {key[:_SHOWN]}, which not every program reads as a string"
        _refuse(f"{message}: write it in quotes", mark)
    _stated_once(key, inside, mark)


def _stated_once(key: str, inside: _Open, mark: Any) -> None:
    if key in inside.keys:
        _refuse(f"states '{key[:_SHOWN]}' twice in one map: remove one of the two", mark)
    inside.keys.add(key)


def _check_plain(value: str, mark: Any) -> None:
    """Check a scalar without quotes."""
    shown = value[:_SHOWN]
    if value == _MERGE:
        _refuse(f"has {_MERGE} as a value: {_QUOTE}", mark)
    if _is_number(value):
        if not _is_same_number(value):
            message = f"has the number {shown}, which not every program reads in the same way"
            _refuse(
                f"{message}: write it as a decimal number, or in quotes if it is a string", mark
            )
    elif _DATE.fullmatch(value):
        _refuse(f"has {shown}, which some programs read as a date: {_QUOTE}", mark)
    elif value not in _CONSTANTS and resolve(value)[0] not in {STR, NULL}:
        instead = f"write true or false, or {_QUOTE}" if resolve(value)[0] == BOOL else _QUOTE
        _refuse(f"has {shown}, which not every program reads as the same value: {instead}", mark)


def _looks_typed(value: str) -> bool:
    return _is_number(value) or _DATE.fullmatch(value) is not None


def _is_number(value: str) -> bool:
    return _NUMBER.fullmatch(value.replace("_", "")) is not None


def _is_same_number(value: str) -> bool:
    """Return whether a number is an exact integer, or a decimal number with a fraction."""
    if _INTEGER.fullmatch(value):
        return len(value) < len(str(_EXACT)) + 2 and abs(int(value)) <= _EXACT
    if not _DECIMAL.fullmatch(value):
        return False
    number = float(value)
    return math.isfinite(number) and not number.is_integer()


def check_json(text: str) -> None:
    """Reject JSON settings that Pulumi would read differently. The text must be valid JSON.

    Raises:
        DisputedError: A key that is stated twice, a number that is not the same everywhere, or half
            of a surrogate pair.
    """
    parts: list[_Open] = []
    for token in _JSON.finditer(text):
        said = token[0]
        if said in "[{":
            parts.append(_Open(said == "{"))
        elif said in "]}":
            parts.pop()
        elif said in ":,":
            parts[-1].at_key = said == ","
        else:
            _check_token(said, parts[-1] if parts else None, Place.at(text, token.start()))


def _check_token(said: str, inside: _Open | None, place: Place) -> None:
    """Refuse strings and numbers of JSON that programs read in different ways."""
    if said[0] == '"':
        value = json.loads(said)
        if _SURROGATE.search(value):
            _refuse("has half of a surrogate pair, which is not a character: remove it", place)
        if inside is not None and inside.is_map and inside.at_key:
            _stated_once(value, inside, place)
    elif said[0] in "-0123456789NI" and not _is_same_number(said):
        message = f"has the number {said[:_SHOWN]}, which not every program reads in the same way"
        _refuse(f"{message}: write it as a decimal number, or in quotes if it is a string", place)


def _refuse(message: str, mark: Any) -> NoReturn:
    raise DisputedError(message, mark)
