"""The context of a check: ConfigMaps and other objects in the same files, and shapes of models."""

import re
from collections.abc import Callable, Container, Iterable, Mapping
from functools import cached_property
from typing import Any

from kthena_components.cli.objects import objects_of
from kthena_components.core.facts.context import ConfigMap, ConfigMaps
from kthena_components.core.facts.sharing import MARKS, Sharing
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.reading.documents import Document, read_documents
from kthena_components.reading.files import (
    MOST_BYTES,
    Unreadable,
    read_text,
    reads_again,
    shown_name,
)

_HOLDS = re.compile(r"""\bkind["']?\s*:\s*["']?ConfigMap""")
_TOO_MUCH = Unknown(f"all ConfigMaps together are larger than {MOST_BYTES // 2**20} MiB")


class Texts:
    """Reads files. It caches the last file, and whatever can be read only once, such as pipes."""

    def __init__(self, named: Container[str]) -> None:
        """Create an empty cache. Files that the user did not name are read only if regular."""
        self._named = named
        self._last: dict[str, str | Unreadable] = {}
        self._kept: dict[str, str | Unreadable] = {}

    def read(self, path: str) -> str | Unreadable:
        """Return the text of a file, or the reason why it cannot be read."""
        if path in self._kept:
            return self._kept[path]
        if path not in self._last:
            ends = path in self._named and not reads_again(path)
            text = read_text(path, named=path in self._named)
            if ends:
                self._kept[path] = text
                return text
            self._last = {path: text}
        return self._last[path]


class LateConfigMaps(ConfigMaps):
    """The ConfigMaps in some files, which are read when an object first refers to a ConfigMap."""

    def __init__(self, paths: Iterable[str], read: Callable[[str], str | Unreadable]) -> None:
        """Keep the paths, and how to read them."""
        super().__init__()
        self._paths, self._read = paths, read

    def __bool__(self) -> bool:
        """Return True: there may be one."""
        return True

    @cached_property
    def _maps(self) -> ConfigMaps:
        return find_config_maps(self._paths, self._read)

    def find(self, name: str, namespace: str = "") -> ConfigMap | Unknown:
        """Find a ConfigMap by its name."""
        return self._maps.find(name, namespace)


def find_config_maps(paths: Iterable[str], read: Callable[[str], str | Unreadable]) -> ConfigMaps:
    """Collect the ConfigMaps in some files. Files without a ConfigMap are not parsed."""
    found, size = ConfigMaps(), 0
    for path in paths:
        text = read(path)
        if isinstance(text, Unreadable) or not ("ConfigMap" in text and _HOLDS.search(text)):
            continue
        for document in _documents(text, path, "ConfigMap"):
            for item in () if isinstance(document, Unreadable) else objects_of(document):
                if item.body.get("kind") != "ConfigMap":
                    continue
                data = mapping(item.body.get("data"))
                size += sum(len(value) for value in data.values() if isinstance(value, str))
                if size > MOST_BYTES:
                    found.add({**item.body, "data": {}}, gap=_TOO_MUCH)
                else:
                    found.add(item.body)
    return found


def add_from_files(
    adds: Mapping[str, Callable[[Mapping[str, Any]], object]],
    paths: Iterable[str],
    read: Callable[[str], str | Unreadable],
) -> int:
    """Pass the objects of some kinds to functions, by kind. Files without one are not parsed.

    Returns:
        The number of characters in all files.
    """
    size = 0
    for path in paths:
        text = read(path)
        size += 0 if isinstance(text, Unreadable) else len(text)
        if isinstance(text, Unreadable) or not any(kind in text for kind in adds):
            continue
        for document in _documents(text, path, *adds):
            for item in () if isinstance(document, Unreadable) else objects_of(document):
                add = adds.get(str(item.body.get("kind")))
                if add is not None:
                    add(item.body)
    return size


def sharing_in(paths: Iterable[str]) -> Sharing:
    """Read from files which accelerators several pods share.

    A device plugin is configured by a ConfigMap or by the values of its chart, which are no object.
    It serves all objects, wherever they are.
    """
    found = Sharing()
    for path in filter(reads_again, paths):
        text = read_text(path)
        if isinstance(text, Unreadable) or not any(f"{mark}:" in text for mark in MARKS):
            continue
        for document in read_documents(text, shown_name(path), lambda *_: True):
            if isinstance(document, Document):
                found.add(document.body, shown_name(path))
    return found


def _documents(text: str, path: str, *wanted: str) -> Iterable[Any]:
    def may_hold(_version: object, kind: object, _text: str) -> bool:
        return kind in wanted or (isinstance(kind, str) and kind.endswith("List"))

    return read_documents(text, shown_name(path), may_hold)
