"""Reads settings files: one document, which is a map without duplicate keys.

Other readers of the same file may use the first of two keys, while Python uses the last. Go's
encoding/json even merges lists of objects that are stated twice.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from kthena_components.reading.documents import unreadable
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.limits import (
    LimitError,
    check_aliases,
    check_depth,
    check_json_depth,
)
from kthena_components.reading.loader import Loader
from kthena_components.reading.pulumi_agreement import check_json, check_yaml

_SHOWN = 60
_BOM = "\ufeff"
"""A mark of byte order, which Pulumi passes over at the start of a file."""
_MERGE = "<<"
_KEYS = frozenset({"str", "int", "float", "bool", "null", "merge"})
"""Tags that a key may have, so that its JSON text is the one that Pulumi writes."""


def read_below(path: Path, root: Path) -> str | Unreadable:
    """Read a file that was found below a folder: it must be inside the folder and not block."""
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
        told = f"leads out of {root.absolute()}, and is not read: put the file itself there"
        return Unreadable(file=str(path), because=told)
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
    try:
        if file.endswith(".json"):
            content = _json(text, is_settings=is_settings)
        else:
            content = _yaml(text, is_settings=is_settings)
    except json.JSONDecodeError as error:
        because = f"is not JSON: {error.msg}" if text.strip() else "is empty: write at least {}"
        return Unreadable(file=file, because=because, line=error.lineno, column=error.colno)
    except Exception as error:  # noqa: BLE001 - PyYAML raises all sorts for odd scalars
        told = unreadable(error, text, 0, file)
        # Other programs may read what is stated twice, or beyond a limit.
        return replace(told, is_object=isinstance(error, LimitError))
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
    stated: set[tuple[str, str]] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.tag.rpartition(":")[2] not in _KEYS:
                told = (
                    f"has a key, '{key.value[:_SHOWN]}', that JSON does not support: write a text"
                )
                raise LimitError(told, key.start_mark)
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
