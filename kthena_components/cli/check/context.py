"""The context of a check: other objects in the same files, shapes of models, and patches."""

import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from kthena_components.cli.sources import objects_of
from kthena_components.core.facts.context import (
    ConfigMap,
    ConfigMaps,
    Context,
    Definitions,
    ReferencedObjects,
)
from kthena_components.core.facts.pod_policies_and_sharing import MARKS, Sharing
from kthena_components.core.findings import Finding, Level
from kthena_components.core.objects.object import GroupKind
from kthena_components.core.schema.crds import CrdTable
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown
from kthena_components.core.values.values_in_text import may_have
from kthena_components.reading.documents import Document, read_documents
from kthena_components.reading.files import (
    MOST_BYTES,
    Unreadable,
    read_text,
    reads_again,
    shown_name,
)
from kthena_components.reading.kustomization import Patch
from kthena_components.reading.releases.operators import find_pins
from kthena_components.systems import INDEX, NAMED_BY, WITHOUT_NAMESPACE

_CONFIG_MAP = "ConfigMap"
_DEFINITION = "CustomResourceDefinition"
_MOST_KEPT = 2**23
"""Characters of files that are kept: a run asks five times for the text of each file."""
_TOO_MUCH = Unknown(f"all ConfigMaps together are larger than {MOST_BYTES // 2**20} MiB")


class Texts:
    """Reads files. It keeps the first texts, the last one, and what can be read once, as pipes."""

    def __init__(self, named: Container[str]) -> None:
        """Create an empty cache. Files that the user did not name are read only if regular."""
        self._named, self._left = named, _MOST_KEPT
        self._last: dict[str, str | Unreadable] = {}
        self._kept: dict[str, str | Unreadable] = {}

    def read(self, path: str) -> str | Unreadable:
        """Return the text of a file, or the reason why it cannot be read."""
        if path in self._kept:
            return self._kept[path]
        if path not in self._last:
            ends = path in self._named and not reads_again(path)
            text = read_text(path, named=path in self._named)
            size = 0 if ends or isinstance(text, Unreadable) else len(text)
            if ends or 0 < size <= self._left:
                self._left -= size
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

    def slip_of(self, name: str, namespace: str = "") -> str | None:
        """Return the ConfigMap whose name another one misspells, if none has that name."""
        return self._maps.slip_of(name, namespace)


def find_config_maps(paths: Iterable[str], read: Callable[[str], str | Unreadable]) -> ConfigMaps:
    """Collect the ConfigMaps in some files. Files without a ConfigMap are not parsed."""
    found, size = ConfigMaps(), 0
    for path in paths:
        text = read(path)
        if isinstance(text, Unreadable) or not may_have(text, partial(_names_any, [_CONFIG_MAP])):
            continue
        for document in _documents(text, path, _CONFIG_MAP):
            for item in () if isinstance(document, Unreadable) else objects_of(document):
                if item.body.get("kind") != _CONFIG_MAP:
                    continue
                data = mapping(item.body.get("data"))
                size += sum(len(value) for value in data.values() if isinstance(value, str))
                if size > MOST_BYTES:
                    found.add({**item.body, "data": {}}, gap=_TOO_MUCH)
                else:
                    found.add(item.body)
    return found


def _names_any(kinds: Iterable[str], text: str) -> bool:
    return any(kind in text for kind in kinds)


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
        if isinstance(text, Unreadable) or not may_have(text, partial(_names_any, adds)):
            continue
        for document in _documents(text, path, *adds):
            for item in () if isinstance(document, Unreadable) else objects_of(document):
                add = adds.get(str(item.body.get("kind")))
                if add is not None:
                    add(item.body)
    return size


class LateDefinitions(Definitions):
    """The CRDs in some files, which are read when an object of their kind is checked."""

    def __init__(self, paths: Sequence[str], stated: Container[str]) -> None:
        """Keep the paths, and the systems whose release the user states."""
        self._paths, self._stated = paths, stated
        self._found = dict[GroupKind, tuple[CrdTable, ...]]()

    def find(self, of: GroupKind, packaged: CrdTable) -> tuple[CrdTable, ...]:
        """Return what the CRDs of a kind declare, each in a table of its own."""
        if not self._paths or INDEX[of] in self._stated:
            return ()
        if of not in self._found:
            # Imported here, because most files have no CRD.
            from kthena_components.core.schema.definitions import tables_of  # noqa: PLC0415

            self._found[of] = tables_of(self._crds(of), packaged)
        return self._found[of]

    @property
    def used(self) -> frozenset[tuple[str, str]]:
        """The kinds that were checked with a CRD of the files, each with its files."""
        return frozenset(
            (kind, table.title) for (_, kind), tables in self._found.items() for table in tables
        )

    def _crds(self, of: GroupKind) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """List the definitions of a kind in the files, each with the file's name."""
        from kthena_components.core.schema.definitions import defined  # noqa: PLC0415

        group, kind = of
        defines = re.compile(rf"""\bkind["']?\s*:\s*["']?{re.escape(kind)}\b""")
        for path in self._paths:
            text, name = read_text(path), shown_name(path)
            if isinstance(text, Unreadable) or group not in text or not defines.search(text):
                continue
            for document in _documents(text, path, _DEFINITION):
                for item in objects_of(document) if isinstance(document, Document) else ():
                    if item.body.get("kind") == _DEFINITION and defined(item.body) == of:
                        yield name, item.body


def shared_by_all(
    paths: Iterable[str],
    stated: Container[str],
    deploying: Iterable[str],
    read: Callable[[str], str | Unreadable],
) -> Context:
    """Read from files what serves all objects, wherever they are.

    These are shared accelerators, CRDs, objects without a namespace that complete others, and the
    names by which objects refer to them. A device plugin is configured by a ConfigMap or by the
    values of its chart, which are no object. CRDs and installed releases do not count for the
    systems whose release the user states.

    Args:
        paths: The files with objects.
        stated: Systems whose release the user states.
        deploying: Other files, which may install operators.
        read: Reads a file.
    """
    sharing, defining = Sharing(), list[str]()
    again = [*filter(reads_again, paths)]
    wide = ReferencedObjects(WITHOUT_NAMESPACE, NAMED_BY)
    kinds = [kind for _, kind in (*WITHOUT_NAMESPACE, *NAMED_BY)]
    for path in again:
        text = read(path)
        if isinstance(text, Unreadable):
            continue
        if _DEFINITION in text:
            defining.append(path)
        if may_have(text, partial(_names_any, kinds)):
            for document in _documents(text, path, *kinds):
                for item in objects_of(document) if isinstance(document, Document) else ():
                    wide.add(item.body)
        if not any(f"{mark}:" in text for mark in MARKS):
            continue
        for document in read_documents(text, shown_name(path), lambda *_: True):
            if isinstance(document, Document):
                sharing.add(document.body, shown_name(path))
    definitions = LateDefinitions(defining, stated)
    pins = find_pins([*again, *deploying], read)
    return Context(sharing=sharing, definitions=definitions, referenced=wide, pins=pins)


def _documents(text: str, path: str, *wanted: str) -> Iterable[Any]:
    def may_hold(_version: object, kind: object, _text: str) -> bool:
        return kind in wanted or (isinstance(kind, str) and kind.endswith("List"))

    return read_documents(text, shown_name(path), may_hold)


@dataclass(slots=True)
class Changing:
    """The patches that may change an object, of kustomizations that were not built."""

    patches: Iterable[Patch]
    body: Mapping[str, Any]
    mandatory: Callable[[Mapping[str, Any]], Iterable[Finding]]
    """Returns what is mandatory in an object."""
    _left: Container[tuple[str, str]] | None = None
    """The rules and paths of what is mandatory where all that they change is not known."""

    def why(self, finding: Finding) -> str:
        """Say which kustomization may mend what a finding is about; empty if none does."""
        if finding.level is not Level.MANDATORY:
            return ""
        changing = [each for each in self.patches if each.may_change(self.body)]
        if not changing:
            return ""
        if self._left is None:
            self._left = {(each.rule, each.path) for each in self._found(changing)}
        if (finding.rule, finding.path) in self._left:
            return ""
        return f"may be changed by {changing[0].file}, which was not built"

    def _found(self, changing: Iterable[Patch]) -> Iterable[Finding]:
        left: Any = self.body
        for each in changing:
            left = each.without(left) if isinstance(left, Mapping) else None
        return self.mandatory(left) if isinstance(left, Mapping) else ()


def may_mend(
    patched: Mapping[str, Iterable[Patch]], file: str, body: Mapping[str, Any], finding: Finding
) -> str:
    """Say which kustomization may change the field of a finding over all objects; empty if none.

    `patched`: The patches of kustomizations that were not built, by the real path of a file.
    `body`: The object with the field, as it is kept. Empty: none.
    """
    if finding.level is not Level.MANDATORY or not (body and patched):
        return ""
    for each in patched.get(os.path.realpath(file), ()):
        left = each.without(body) if each.may_change(body) else body
        after, before = _field(left, finding.path), _field(body, finding.path)
        if not isinstance(left, Mapping) or after != before:
            return f"may be changed by {each.file}, which was not built"
    return ""


def _field(value: Any, path: str) -> Any:
    """Return a field of an object by its path; None if it is not there."""
    steps = path.replace("[", ".").replace("]", "").split(".") if path else []
    for at, step in enumerate(steps):
        if isinstance(value, Mapping):
            rest = ".".join(steps[at:])  # such as the name of an annotation
            if rest in value:
                return value[rest]
            value = value.get(step)
        elif isinstance(value, list | tuple):
            value = value[int(step)] if step.isdecimal() and int(step) < len(value) else None
    return value
