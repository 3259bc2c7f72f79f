"""The options of a conversion, and its result: servings, and the objects that are kept."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import date
from typing import Any

from kthena_components import systems
from kthena_components.checker.crd_schema import served_versions
from kthena_components.checker.manifest import schema_findings
from kthena_components.compiler.compile import Compiled
from kthena_components.convert.lost_fields import Loss
from kthena_components.core.findings import Finding, Level, SpecError
from kthena_components.core.remedies import fixes_of
from kthena_components.core.schema.language import no_name
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import group_kind, is_name, mapping, name_of
from kthena_components.systems.system import Body

_RULE = "convertible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """One serving, and what its conversion loses, adds and rewrites."""

    source: Body
    """The object that was converted; the first one of several."""
    backend: str
    """The backend that the source was written for; empty if it has none."""
    args: Mapping[str, Any]
    """Arguments of a ModelServing that give the result."""
    compiled: Compiled
    losses: tuple[Loss, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An object that is not a serving. Its selector may be changed to find the converted pods."""

    source: Body
    body: Body
    """The object with its changed selector."""
    losses: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """All objects, in the order of the source. An exposing Service is part of its serving."""

    parts: tuple[Converted | Kept, ...]
    errors: tuple[SpecError, ...]

    @property
    def servings(self) -> list[Converted]:
        """The servings that were converted."""
        return [part for part in self.parts if isinstance(part, Converted)]


def title_of(body: Body) -> str:
    """Return the kind, the namespace and the name of an object."""
    metadata, kind = mapping(body.get("metadata")), group_kind(body)[1]
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    if any(is_name(metadata.get(key)) for key in ("name", "generateName")):
        return f"{kind} {namespace}{name_of(body)}"
    return f"{kind} without a name{f' in {namespace[:-1]}' if namespace else ''}"


@contextmanager
def types_reported(*bodies: Body) -> Iterator[None]:
    """Report the wrong fields of some objects where reading them ends with an exception.

    A conversion reads an object as the API server would accept it.

    Raises:
        SpecError: Reading failed, and the schema of an object has findings.
    """
    try:
        yield
    except SpecError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        for body in bodies:
            found = [each for each in schema_findings(body) if each.level is Level.MANDATORY]
            if found:
                raise SpecError(found, title_of(body)) from None
        raise


def check_head(body: Body, given: Mapping[str, Any]) -> None:
    """Refuse an object in an API version whose fields are not known, or with a name that is none.

    Args:
        given: Arguments of the result, which may have another name.

    Raises:
        SpecError: No known release of its system has that version, or its name is not a string.
    """
    findings = [*_wrong_version(body), *(() if "name" in given else _wrong_name(body))]
    if findings:
        raise SpecError(findings, title_of(body))


def _wrong_name(body: Body) -> Iterator[Finding]:
    """Report a name that YAML reads as another value, because it is not in quotes."""
    metadata = mapping(body.get("metadata"))
    name = metadata.get("name")
    if isinstance(name, int | float):
        found = no_name(name, "metadata.name", _RULE)
        fitting = fixes_of(found.remedy)[0][0].value
        yield replace(found, remedy=f"{found.remedy}, or add --set name={fitting}")
    elif name in (None, "") and not metadata.get("generateName"):
        remedy = "write, for example, 'chat', or add --set name=chat"
        yield Finding(path="metadata.name", seen="is missing", remedy=remedy, rule=_RULE)


def _wrong_version(body: Body) -> Iterator[Finding]:
    """Report a version in which no known release serves the kind."""
    version, known = body.get("apiVersion"), served_versions(group_kind(body))
    if known and version not in known:
        yield Finding(
            path="apiVersion",
            seen=f"is {display(version)}, in which no known release serves {group_kind(body)[1]}",
            remedy=f"write {' or '.join(known)}",
            rule=_RULE,
        )


def no_backend(body: Body) -> Finding:
    """Report that an object has no backend to keep."""
    return Finding(
        path="kind",
        seen=f"is {body.get('kind')}, for which there is no backend",
        remedy=f"choose one with --backend: {', '.join(systems.EMITTERS)}",
        rule=_RULE,
    )


# The options of a conversion, and changes of arguments by path. Pure.


SAME = "same"
"""Stands for the backend that an object is written for already."""
TEMPLATES = ("entry_template", "worker_template")
"""Arguments of a role with a pod template."""
_KEY = r"[A-Za-z0-9_/-]+(?:\[\d{1,4}\])?"
_PATH = re.compile(rf"{_KEY}(?:\.{_KEY}){{0,50}}")
_PART = re.compile(r"[^.\[\]]+|\[\d+\]")


class ChangeError(ValueError):
    """A change that fits no argument. The text is written for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The options of a conversion."""

    target: str
    """The backend to convert for, or SAME."""
    adopts: bool = False
    """Whether the objects stay where they are, so that each change restarts something."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that replace the described ones, by path; None removes an argument."""
    today: date | None = None
    """The day on which waivers are checked; without it, all are ignored."""


def with_changes(args: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Replace arguments by path, such as `backend_options.kind` or `roles[0].replicas`.

    Raises:
        ChangeError: A path leads into a value that has no fields, or that is not a path.
    """
    result: Any = dict(args)
    for path, value in changes.items():
        if not _PATH.fullmatch(path):
            raise ChangeError(
                f"'{path[:80]}' is not the path of an argument, such as roles[0].replicas"
            )
        result = _changed(result, _PART.findall(path), value, path)
    return dict(result)


def _changed(holder: Any, parts: Sequence[str], value: Any, path: str) -> Any:
    """Return arguments with the value at a path replaced; None removes a field."""
    if not parts:
        return value
    first, rest = parts[0], parts[1:]
    if first.startswith("["):
        index = int(first[1:-1])
        if not isinstance(holder, list) or index >= len(holder):
            raise ChangeError(f"there is no argument '{path}': there is no {first} at its place")
        return [
            _changed(item, rest, value, path) if at == index else item
            for at, item in enumerate(holder)
        ]
    if holder is not None and not isinstance(holder, Mapping):
        raise ChangeError(
            f"there is no argument '{path}': what stands before '{first}' has no fields"
        )
    fields = dict(holder or {})
    if not rest and value is None:
        fields.pop(first, None)
    else:
        fields[first] = _changed(fields.get(first), rest, value, path)
    return fields
