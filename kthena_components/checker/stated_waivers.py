"""Waivers in the config of a stack, with the objects that they are for.

A waiver is for one object: its kind, namespace and name. So it counts as new if only another
object had it before, even one of the same name in another namespace.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, NamedTuple

from kthena_components.checker.waivers import FIELD, PREFIX, Stated, read_waiver
from kthena_components.core.findings import Waiver
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import DEFAULT_NAMESPACE

_SUBJECT = ("kind", "namespace", "name")


class Subject(NamedTuple):
    """The object that a waiver is for."""

    kind: str
    """Empty for the input of a component."""
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A waiver in a config."""

    entry: Stated
    place: tuple[str, ...]
    """Its keys, and the kind, namespace and name of each map around it."""
    subject: Subject | None
    """The outermost map with a name. None if there is none."""


@dataclass(frozen=True, slots=True)
class _Part:
    path: str
    place: tuple[str, ...]
    subject: Subject | None
    value: Any


def placed_waivers(root: Mapping[str, Any]) -> Iterator[Placed]:
    """Find waivers at any depth: below `waivers`, and as annotations of an object or template."""
    parts = [_Part("", (), None, root)]
    while parts:
        part = parts.pop()
        value = _structure(part.value)
        if isinstance(value, list):
            parts += [
                _Part(
                    f"{part.path}[{_shown(item, i)}]",
                    (*part.place, _item(item, i)),
                    part.subject,
                    item,
                )
                for i, item in enumerate(value)
            ]
        if not isinstance(value, Mapping):
            continue
        place, subject = (*part.place, _label(value)), part.subject or _subject(value)
        for key, inner in value.items():
            path = f"{part.path}.{key}".removeprefix(".")
            at = _Part(path, (*place, str(key)), subject, inner)
            if isinstance(key, str) and key.startswith(PREFIX):
                yield _placed(at, key.removeprefix(PREFIX), path, inner)
            elif key == FIELD and isinstance(stated := _structure(inner), Mapping):
                if set(stated) == {"secure"}:
                    yield _placed(at, "", path, stated)
                    continue
                for rule, text in stated.items():
                    yield _placed(at, str(rule), f"{path}.{rule}", text)
            else:
                parts.append(at)


def _placed(part: _Part, rule: str, path: str, text: object) -> Placed:
    return Placed(
        entry=Stated(rule=rule, path=path, text=text), place=part.place, subject=part.subject
    )


def new_waivers(
    before: Mapping[str, Any], after: Mapping[str, Any], today: date
) -> Iterator[tuple[Stated, Waiver | None]]:
    """Yield the waivers of a branch that its base does not have, or not for as long.

    The waiver is None if its text cannot be read, because it is encrypted or no text.
    """
    had: dict[tuple[tuple[str, ...], str], list[object]] = {}
    for item in placed_waivers(before):
        had.setdefault((item.place, item.entry.rule), []).append(_read(item.entry, today))
    for item in placed_waivers(after):
        waiver, known = _read(item.entry, today), had.get((item.place, item.entry.rule), [])
        if isinstance(waiver, Waiver):
            if not any(isinstance(one, Waiver) and one.until >= waiver.until for one in known):
                yield item.entry, waiver
        elif waiver is not None and waiver not in known:
            yield item.entry, None


def waived_subjects(values: Mapping[str, Any], today: date) -> Mapping[tuple[Subject, str], date]:
    """Return the last day of each waiver in a config, by object and rule."""
    found: dict[tuple[Subject, str], date] = {}
    for item in placed_waivers(values):
        waiver = _read(item.entry, today)
        if item.subject is not None and isinstance(waiver, Waiver):
            key = item.subject, item.entry.rule
            found[key] = max(found.get(key, waiver.until), waiver.until)
    return found


def _read(entry: Stated, today: date) -> object:
    """Return a waiver, None if it has no effect, or what is written if that cannot be read."""
    if isinstance(entry.text, str | date | None):
        read = read_waiver(entry, today)
        return read if isinstance(read, Waiver) else None
    return repr(entry.text)


def _structure(value: Any) -> Any:
    """Parse a structured value that is written as JSON text, as `pulumi config set` does."""
    if not (isinstance(value, str) and value.lstrip().startswith(("[", "{"))):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _subject(value: Mapping[Any, Any]) -> Subject | None:
    kind, namespace, name = _identity(value)
    if not isinstance(name, str):
        return None
    return Subject(
        str(kind or ""), DEFAULT_NAMESPACE if namespace is None else str(namespace), name
    )


def _identity(value: Mapping[Any, Any]) -> tuple[object, ...]:
    """Return kind, namespace and name: of a manifest, or of a component's input."""
    metadata = value.get("metadata")
    if isinstance(metadata, Mapping):
        return value.get("kind"), metadata.get("namespace"), metadata.get("name")
    return tuple(value.get(key) for key in _SUBJECT)


def _label(value: Mapping[Any, Any]) -> str:
    """Name a map by its object, so that a waiver does not follow to another one."""
    kind, namespace, name = _identity(value)
    if kind is namespace is name is None:
        return ""
    return json.dumps([kind, namespace or DEFAULT_NAMESPACE, name], default=repr)


def _item(value: Any, index: int) -> str:
    """Name an item of a list so that its place does not depend on the order."""
    is_named = isinstance(value, Mapping) and _subject(value) is not None
    return "item" if is_named else str(index)


def _shown(value: Any, index: int) -> str:
    subject = _subject(value) if isinstance(value, Mapping) else None
    return str(index) if subject is None else subject.name
