"""Values of manifests: whatever stands there, reading never raises."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from kthena_components.core.values.display import INT32, show_value
from kthena_components.core.values.unknown import Blank, MaybeInt, MaybeText, Unknown, is_unresolved


def inside(value: object, key: str) -> Any:
    """Give a field; of a map that is not known yet each field is not known."""
    return value if is_unresolved(value) else mapping(value).get(key)


def name_of(body: Mapping[str, Any]) -> str:
    """Give what an object calls itself, or its kind when it has no name yet."""
    metadata = mapping(body.get("metadata"))
    given = (metadata.get(key) for key in ("name", "generateName"))
    return next((name for name in given if is_name(name)), str(body.get("kind", "")))


def is_name(value: object) -> TypeGuard[str]:
    """Tell whether a value is a text that is known and not empty."""
    return isinstance(value, str) and value != "" and not is_unresolved(value)


MAX_COUNT = 2**31 - 1
"""Counts are 32 bit in Kubernetes. What is larger is a mistake, and is not computed with."""


def count_or_unknown(value: object, what: str, default: int) -> MaybeInt:
    """Give a count; a missing one is the default, whatever is not one is unknown."""
    if value is None:
        return default
    if is_unresolved(value):
        return Unknown(f"{what} is not known yet")
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1
    if 0 <= number <= MAX_COUNT and number == int(number):
        return int(number)
    return Unknown(f"{what} is {show_value(value)}, which is not a count")


NOT_YET_KNOWN = Unknown("the value is known only after the deployment")

_EXACT = 2**53
"""Up to here the API server takes a float for a whole number."""

_GENERATED, _SUFFIX = 58, "xxxxx"
"""metadata.generateName: so much of it is kept, and so much is added.

Source: k8s.io/apiserver pkg/storage/names/generate.go.
"""


def object_name(metadata: Mapping[str, Any]) -> MaybeText | None:
    """Read the name that the API server will give; empty when there is none."""
    name, stem = text(metadata.get("name"), ""), text(metadata.get("generateName"), "")
    if name != "":
        return name
    return f"{stem[:_GENERATED]}{_SUFFIX}" if isinstance(stem, str) and stem else stem


class _NotKnown(Mapping[str, Any]):
    """A map that is not known yet. It is empty, and whatever one looks for is not known either."""

    def __init__(self, gap: Unknown) -> None:
        self._gap = gap

    def __getitem__(self, key: object) -> Unknown:
        return self._gap

    def __contains__(self, key: object) -> bool:
        return False

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


def mapping(value: object) -> Mapping[str, Any]:
    """Read a map; anything else is empty."""
    if isinstance(value, dict):  # what it mostly is, and quicker to tell
        return value
    if isinstance(value, Mapping):
        return value
    gap = unknown_in(value)
    return _NotKnown(gap) if gap else {}


def text(value: object, default: str | None = None) -> MaybeText | None:
    """Read a text."""
    if value is None:
        return default
    return unknown_in(value) or (value if isinstance(value, str) else None)


def count(value: object, default: int | None = None) -> MaybeInt | None:
    """Read an int32."""
    number = default if value is None else whole(value)
    fits = not isinstance(number, int) or -INT32 <= number < INT32
    return number if fits else None


def whole(value: object) -> MaybeInt | None:
    """Read a whole number, 8.0 as well: JSON does not tell them apart."""
    if gap := unknown_in(value):
        return gap
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not (value.is_integer() and abs(value) < _EXACT):
        return None
    return int(value)


def unknown_in(value: object) -> Unknown | None:
    """Say why a value cannot be judged, if it cannot."""
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Blank):
        return Unknown(
            f"{show_value(value)} is a placeholder, to be filled in before it is applied"
        )
    return NOT_YET_KNOWN if is_unresolved(value) else None


def first_unknown(*values: object) -> Unknown | None:
    """Say why values cannot be judged together, if they cannot."""
    return next((gap for gap in map(unknown_in, values) if gap), None)


def group_kind(manifest: object) -> tuple[str, str]:
    """Give the API group and the kind of an object; the core group is an empty text."""
    fields = manifest if isinstance(manifest, Mapping) else {}
    version, kind = fields.get("apiVersion"), fields.get("kind")
    group = version.partition("/")[0] if isinstance(version, str) and "/" in version else ""
    return group, kind if isinstance(kind, str) else ""


def spec_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the spec of an object, empty where there is none."""
    return mapping(manifest.get("spec"))


def sequence(value: object) -> Sequence[Any]:
    """Read a list; anything else is empty."""
    return value if isinstance(value, list | tuple) else ()


def pairs(value: object) -> Iterator[tuple[object, Any]]:
    """List what a map holds; in YAML a key may be anything."""
    yield from mapping(value).items()


def unknown_inside(*values: object) -> Unknown | None:
    """Say why values cannot be judged, if they or what they hold directly is not known."""
    for value in values:
        inside = value.values() if isinstance(value, Mapping) else sequence(value)
        gap = unknown_in(value) or next((gap for gap in map(unknown_in, inside) if gap), None)
        if gap:
            return gap
    return None
