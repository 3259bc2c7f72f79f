"""How a ModelServing that anybody wrote is read: nothing in it makes a reader raise.

A value that is not known yet is read as Unknown, one of the wrong kind as None: what is wrong
with it, the shape says (kthena_shape.py), and the rules between fields keep silent.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.findings import Finding, Level
from kthena_components.core.known import LATE_TOKEN, MaybeInt, MaybeText, Unknown, is_late
from kthena_components.core.naming import DNS_LABEL

KTHENA_VERSIONS = ("0.1", "0.2", "0.3", "0.4", "1.0")
"""Kthena's releases, oldest first."""
BY_GROUP, BY_ROLE = "ServingGroupRollingUpdate", "RoleRollingUpdate"
LATE = Unknown("the value is known only after the deployment")
_SHOWN, _BITS, _INT32 = 40, 64, 2**31
_EXACT = 2**53
"""Up to here the API server takes a float for a whole number."""
_GENERATED, _SUFFIX = 58, "xxxxx"
"""metadata.generateName: so much of it is kept, and so much is added.

Source: k8s.io/apiserver pkg/storage/names/generate.go.
"""
_RELEASE = re.compile(r"v?([0-9]+\.[0-9]+)(?:\.[0-9].*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One role of a ModelServing."""

    path: str
    fields: Mapping[str, Any]
    name: MaybeText | None
    replicas: MaybeInt | None
    workers: MaybeInt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A ModelServing, and the Kthena that is to read it."""

    manifest: object
    asked: str
    """The version as the caller wrote it; `version` is the one that is judged by."""
    version: str
    name: MaybeText | None
    spec: Mapping[str, Any]
    template: Mapping[str, Any]
    strategy: Mapping[str, Any]
    rollout: MaybeText | None
    replicas: MaybeInt | None
    roles: tuple[Role, ...]

    def since(self, version: str) -> bool:
        """Tell whether the Kthena is this version or a newer one."""
        return age(self.version) >= age(version)


def read_serving(manifest: object, asked: str) -> Serving:
    """Read what the rules need from whatever a manifest contains."""
    spec = mapping(mapping(manifest).get("spec"))
    template, strategy = mapping(spec.get("template")), mapping(spec.get("rolloutStrategy"))
    roles = template.get("roles")
    return Serving(
        manifest=manifest,
        asked=asked,
        version=known_version(asked) or KTHENA_VERSIONS[-1],
        name=object_name(mapping(mapping(manifest).get("metadata"))),
        spec=spec,
        template=template,
        strategy=strategy,
        rollout=text(strategy.get("type"), BY_GROUP),
        replicas=count(spec.get("replicas"), 1),
        roles=tuple(
            _role(f"spec.template.roles[{index}]", mapping(role))
            for index, role in enumerate(roles if isinstance(roles, list | tuple) else ())
        ),
    )


def _role(path: str, fields: Mapping[str, Any]) -> Role:
    return Role(
        path=path,
        fields=fields,
        name=text(fields.get("name")),
        replicas=count(fields.get("replicas"), 1),
        workers=count(fields.get("workerReplicas")),
    )


def object_name(metadata: Mapping[str, Any]) -> MaybeText | None:
    """Read the name that the API server will give; empty when there is none."""
    name, stem = text(metadata.get("name"), ""), text(metadata.get("generateName"), "")
    if name != "":
        return name
    return f"{stem[:_GENERATED]}{_SUFFIX}" if isinstance(stem, str) and stem else stem


def known_version(asked: str) -> str | None:
    """Find the release that a version belongs to: `v1.0.3` is of 1.0."""
    found = _RELEASE.fullmatch(asked)
    return found[1] if found and found[1] in KTHENA_VERSIONS else None


def age(version: str) -> int:
    """Order versions: an older one has a lower age."""
    return KTHENA_VERSIONS.index(version)


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
    gap = gap_of(value)
    return _NotKnown(gap) if gap else {}


def text(value: object, default: str | None = None) -> MaybeText | None:
    """Read a text."""
    if value is None:
        return default
    return gap_of(value) or (value if isinstance(value, str) else None)


def count(value: object, default: int | None = None) -> MaybeInt | None:
    """Read an int32."""
    number = default if value is None else whole(value)
    fits = not isinstance(number, int) or -_INT32 <= number < _INT32
    return number if fits else None


def whole(value: object) -> MaybeInt | None:
    """Read a whole number, 8.0 as well: JSON does not tell them apart."""
    if gap := gap_of(value):
        return gap
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not (value.is_integer() and abs(value) < _EXACT):
        return None
    return int(value)


def gap_of(value: object) -> Unknown | None:
    """Say why a value cannot be judged, if it cannot."""
    if isinstance(value, Unknown):
        return value
    return LATE if is_late(value) else None


def first_gap(*values: object) -> Unknown | None:
    """Say why values cannot be judged together, if they cannot."""
    return next((gap for gap in map(gap_of, values) if gap), None)


def not_checked(path: str, gap: Unknown, rule: str) -> Finding:
    """Say that a rule could not judge a place, and why."""
    seen = f"not checked, because {gap.because}"
    return Finding(path=path, seen=seen, rule=rule, level=Level.UNKNOWN)


def show(value: object, longest: int = _SHOWN) -> str:
    """Write a value for a message, in one line and never long."""
    match value:
        case str():
            known = LATE_TOKEN.sub("<output>", value)
            shown = repr(known if len(known) <= longest else f"{known[:longest]}…")
        case None:
            shown = "null"
        case bool():
            shown = str(value).lower()
        case int() if value.bit_length() > _BITS:
            shown = f"a number of {value.bit_length()} bits"
        case int() | float():
            shown = str(value)
        case Mapping() | list() | tuple():
            shown = "a map" if isinstance(value, Mapping) else "a list"
        case _:
            shown = f"a value of type {type(value).__name__}"
    return shown


def key_text(key: object) -> str:
    """Write a map's key for a path."""
    return key if isinstance(key, str) and len(key) <= DNS_LABEL else show(key).strip("'")


def templates(view: Serving) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """List the pod templates of all roles, with their paths."""
    for role in view.roles:
        for field in ("entryTemplate", "workerTemplate"):
            yield f"{role.path}.{field}", mapping(role.fields.get(field))
