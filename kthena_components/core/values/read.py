"""Reads values of manifests; never raises, whatever a manifest contains."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from kthena_components.core.values.display import INT32, display
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    KNOWN_TYPES,
    PREVIEW_LENGTH,
    Blank,
    MaybeInt,
    MaybeText,
    NotKnownError,
    Unknown,
    is_unresolved,
)


def inside(value: object, key: str) -> Any:
    """Return a field; every field of an unknown map is unknown."""
    return value if is_unresolved(value) else mapping(value).get(key)


def name_of(body: Mapping[str, Any]) -> str:
    """Return an object's name, or its kind if it has no name yet."""
    metadata = mapping(body.get("metadata"))
    given = (metadata.get(key) for key in ("name", "generateName"))
    return next((name for name in given if is_name(name)), str(body.get("kind", "")))


def namespace_of(body: Mapping[str, Any]) -> str:
    """Return the namespace that an object states; empty if it states none."""
    return str(mapping(body.get("metadata")).get("namespace") or "")


def may_be_in(body: Mapping[str, Any], namespace: str) -> bool:
    """Return whether an object is in a namespace; True if its own is not known."""
    metadata = body.get("metadata")
    stated = mapping(metadata).get("namespace")
    return is_unresolved(metadata) or is_unresolved(stated) or str(stated or "") == namespace


def is_name(value: object) -> TypeGuard[str]:
    """Return whether a value is a known, non-empty string."""
    return isinstance(value, str) and value != "" and not is_unresolved(value)


DEFAULT_NAMESPACE = "default"


def namespace_or_default(body: Mapping[str, Any]) -> Any:
    """Return an object's namespace; `default` if it states none."""
    return mapping(body.get("metadata")).get("namespace") or DEFAULT_NAMESPACE


MAX_PORT = 65535
MAX_COUNT = 2**31 - 1
"""Counts have 32 bits in Kubernetes. Larger ones are invalid and not used in calculations."""


def count_or_unknown(value: object, what: str, default: int) -> MaybeInt:
    """Return a count; a missing one is the default, any other value is Unknown."""
    if value is None:
        return default
    if is_unresolved(value):
        return Unknown(f"{what} is not known yet")
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else -1
    if 0 <= number <= MAX_COUNT and number == int(number):
        return int(number)
    return Unknown(f"{what} is {display(value)}, which is not a count")


NOT_YET_KNOWN = Unknown("the value is known only after the deployment")

_DIGITS = 9
"""Longer numbers may exceed 32 bits, and with thousands of digits Python refuses them."""
_EXACT = 2**53
"""Up to this, the API server accepts a float as an integer."""

_GENERATED, _SUFFIX = 58, "xxxxx"
"""metadata.generateName: maximum length that is kept, and length of the suffix.

Source: k8s.io/apiserver pkg/storage/names/generate.go.
"""


def object_name(metadata: Mapping[str, Any]) -> MaybeText | None:
    """Read the name that the API server will set; empty if there is none."""
    name, stem = text(metadata.get("name"), ""), text(metadata.get("generateName"), "")
    if name != "":
        return name
    return f"{stem[:_GENERATED]}{_SUFFIX}" if isinstance(stem, str) and stem else stem


class _NotKnown(Mapping[str, Any]):
    """A map that is not known yet. It is empty, and every lookup is unknown."""

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


_NO_MAPS = frozenset({str, int, float, bool, list, type(None)})


def is_map(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Tell whether a value is a map. Of the usual types this is quicker to tell than of others."""
    kind = type(value)
    return kind is dict or (kind not in _NO_MAPS and isinstance(value, Mapping))


def mapping(value: object) -> Mapping[str, Any]:
    """Read a map; an empty one for any other value."""
    if type(value) is dict:  # the usual type, and a faster check
        return value
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    gap = unknown_in(value)
    return _NotKnown(gap) if gap else {}


def text(value: object, default: str | None = None) -> MaybeText | None:
    """Read a string; empty for any other value."""
    if value is None:
        return default
    if type(value) is str and value.isascii() and len(value) != PREVIEW_LENGTH:
        return value  # most strings, and quicker to tell
    return unknown_in(value) or (value if isinstance(value, str) else None)


def count(value: object, default: int | None = None) -> MaybeInt | None:
    """Read an int32."""
    number = default if value is None else whole(value)
    fits = not isinstance(number, int) or -INT32 <= number < INT32
    return number if fits else None


def digits(text: object) -> int | None:
    """Read a string of at most nine decimal digits, such as a port; None for any other value."""
    if not isinstance(text, str) or len(text) > _DIGITS:
        return None
    return int(text) if text.isascii() and text.isdecimal() else None


def whole(value: object) -> MaybeInt | None:
    """Read an integer, including 8.0: JSON does not distinguish them."""
    if type(value) is int:  # what it mostly is, and quicker to tell
        return value
    if gap := unknown_in(value):
        return gap
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not (value.is_integer() and abs(value) < _EXACT):
        return None
    return int(value)


_INTEGER = regex(r"0|-?[1-9][0-9]{0,18}")
_OCTAL = regex(r"0[0-7]{1,6}")
"""A whole number in YAML 1.1, such as the mode of a file."""
_SWITCHES = {"true": True, "false": False}


def without_quotes(text: str) -> int | bool | None:
    """Return what a string is in YAML without its quotes, if that is a whole number or a switch."""
    if _OCTAL.fullmatch(text):
        return int(text, 8)
    return int(text) if _INTEGER.fullmatch(text) else _SWITCHES.get(text)


def unknown_in(value: Any) -> Unknown | None:
    """Explain why a value cannot be checked; None if it can."""
    kind = type(value)
    if kind in KNOWN_TYPES:
        return None
    if kind is str and value.isascii() and len(value) != PREVIEW_LENGTH:  # quicker to tell
        return None
    if isinstance(value, str):
        if type(value) is Blank:
            return Unknown(f"{display(value)} is a placeholder, to be filled in first")
        return NOT_YET_KNOWN if is_unresolved(value) else None
    return value if isinstance(value, Unknown) else None


def first_unknown(*values: Any) -> Unknown | None:
    """Explain why values cannot be checked together; None if they can."""
    for value in values:
        kind = type(value)
        if kind in KNOWN_TYPES or (
            kind is str and value.isascii() and len(value) != PREVIEW_LENGTH
        ):
            continue
        if gap := unknown_in(value):
            return gap
    return None


def require_known(path: str, *values: object) -> None:
    """Stop checking this path if one of some values is not known."""
    if gap := first_unknown(*values):
        raise NotKnownError(gap, path)


def group_kind(manifest: object) -> tuple[str, str]:
    """Return the API group and the kind of an object; the core group is an empty string."""
    fields = manifest if type(manifest) is dict else mapping(manifest)
    version, kind = fields.get("apiVersion"), fields.get("kind")
    group = ""
    if (type(version) is str or isinstance(version, str)) and "/" in version:
        group = version.partition("/")[0]
    return group, kind if type(kind) is str or isinstance(kind, str) else ""


def spec_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the spec of an object, empty if there is none."""
    spec = manifest.get("spec")
    return spec if type(spec) is dict else mapping(spec)


def sequence(value: object) -> Sequence[Any]:
    """Read a list; an empty one for any other value."""
    if type(value) is list or type(value) is tuple:  # the usual types, and a faster check
        return value
    return value if isinstance(value, (list, tuple)) else ()


def list_of_texts(value: object) -> list[str]:
    """Read the strings in a list; other values in it are left out."""
    return [each for each in sequence(value) if isinstance(each, str)]


def pairs(value: object) -> Iterator[tuple[object, Any]]:
    """List the items of a map; in YAML a key may have any type."""
    yield from value.items() if type(value) is dict else mapping(value).items()


def unknown_within(*values: object) -> Unknown | None:
    """Explain why values, or anything in them at any depth, cannot be checked; None if they can."""
    waiting = [*values]
    while waiting:
        value = waiting.pop()
        if gap := unknown_in(value[""] if type(value) is _NotKnown else value):
            return gap
        waiting += value.values() if isinstance(value, Mapping) else sequence(value)
    return None


def unknown_inside(*values: object) -> Unknown | None:
    """Explain why values or their direct members cannot be checked; None if they can."""
    for value in values:
        inside = value.values() if is_map(value) else sequence(value)
        if gap := first_unknown(value, *inside):
            return gap
    return None


def texts_in(tree: object) -> Iterator[str]:
    """Return every string in a value, without the keys of its maps."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, Mapping | list | tuple):
        for item in tree.values() if isinstance(tree, Mapping) else tree:
            yield from texts_in(item)


def count_from_one(value: object, what: str) -> MaybeInt:
    """Return a count whose default is 1; an unknown value keeps its reason."""
    return value if isinstance(value, Unknown) else count_or_unknown(value, what, 1)


def has_text(value: object, text: str) -> bool:
    """Return whether an object has a string as a value, at any depth."""
    if isinstance(value, Mapping):
        return any(has_text(item, text) for item in value.values())
    return value == text or (isinstance(value, list) and any(has_text(i, text) for i in value))


def has_key(value: object, key: str) -> bool:
    """Return whether an object has a field of a name, at any depth."""
    if isinstance(value, Mapping):
        return key in value or any(has_key(item, key) for item in value.values())
    return isinstance(value, list) and any(has_key(item, key) for item in value)
