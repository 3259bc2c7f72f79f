"""The result of a conversion: servings, and the objects that are kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components import systems
from kthena_components.compiler.compile import Compiled
from kthena_components.convert.lost_fields import Loss
from kthena_components.core.findings import Finding, SpecError
from kthena_components.core.values.display import display
from kthena_components.core.values.read import group_kind, mapping, name_of
from kthena_components.judge.crd_schema import served_versions
from kthena_components.systems.contract import Body


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
    namespace = mapping(body.get("metadata")).get("namespace")
    return f"{group_kind(body)[1]} {f'{namespace}/' if namespace else ''}{name_of(body)}"


def check_version(body: Body) -> None:
    """Refuse an object in an API version whose fields are not known.

    Raises:
        SpecError: No known release of its system has that version.
    """
    version, known = body.get("apiVersion"), served_versions(group_kind(body))
    if known and version not in known:
        finding = Finding(
            path="apiVersion",
            seen=f"is {display(version)}, in which no known release serves {group_kind(body)[1]}",
            remedy=f"write {' or '.join(known)}",
            rule="convertible",
        )
        raise SpecError([finding], title_of(body))


def no_backend(body: Body) -> Finding:
    """Report that an object has no backend to keep."""
    return Finding(
        path="kind",
        seen=f"is {body.get('kind')}, for which there is no backend",
        remedy=f"choose one with --backend: {', '.join(systems.EMITTERS)}",
        rule="convertible",
    )
