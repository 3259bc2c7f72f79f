"""How a LeaderWorkerSet or a DisaggregatedSet that anybody wrote is read for its rules."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.findings import Finding, not_checked
from kthena_components.core.values.display import display
from kthena_components.core.values.read import count, mapping, text, unknown_in, whole
from kthena_components.core.values.unknown import MaybeInt, MaybeText

SHAPE = "lws-shape"
DISAGGREGATED_GROUP = "disaggregatedset.x-k8s.io"
_PERCENT = re.compile(r"0*(100|[0-9]{1,2})%")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What one LeaderWorkerSet would be made of."""

    path: str
    """Where its spec stands."""
    spec: Mapping[str, Any]
    template: Mapping[str, Any]
    """Its leaderWorkerTemplate."""
    annotations: Mapping[str, Any]
    annotations_path: str
    replicas: MaybeInt | None
    size: MaybeInt | None
    role: Mapping[str, Any]
    """The role of a DisaggregatedSet that it belongs to; empty when there is none."""
    role_path: str

    @property
    def in_role(self) -> bool:
        """Whether a DisaggregatedSet makes it."""
        return self.role_path != ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """A LeaderWorkerSet, or the ones that a DisaggregatedSet makes."""

    disaggregated: bool
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    name: MaybeText | None
    groups: tuple[Group, ...]


def read_sets(manifest: object) -> Sets:
    """Read what the rules need from whatever a manifest contains."""
    body = mapping(manifest)
    spec, metadata = mapping(body.get("spec")), mapping(body.get("metadata"))
    version = body.get("apiVersion")
    several = isinstance(version, str) and version.startswith(f"{DISAGGREGATED_GROUP}/")
    return Sets(
        disaggregated=several,
        metadata=metadata,
        spec=spec,
        name=text(metadata.get("name")),
        groups=tuple(role_groups(spec)) if several else (_group("spec", spec, metadata, {}, ""),),
    )


def role_groups(spec: Mapping[str, Any]) -> Iterator[Group]:
    """Read the roles of a DisaggregatedSet. Older versions hold the spec in the role itself."""
    roles = spec.get("roles")
    for index, item in enumerate(roles if isinstance(roles, list | tuple) else ()):
        role, at = mapping(item), f"spec.roles[{index}]"
        inner, nested = role.get("spec"), "leaderWorkerTemplate" not in role
        held = mapping(inner) if nested else role
        yield _group(f"{at}.spec" if nested else at, held, mapping(role.get("metadata")), role, at)


def _group(
    path: str,
    spec: Mapping[str, Any],
    metadata: Mapping[str, Any],
    role: Mapping[str, Any],
    role_path: str,
) -> Group:
    template = mapping(spec.get("leaderWorkerTemplate"))
    return Group(
        path=path,
        spec=spec,
        template=template,
        annotations=mapping(metadata.get("annotations")),
        annotations_path=f"{role_path}.metadata.annotations".lstrip("."),
        replicas=_or_one(spec.get("replicas")),
        size=_or_one(template.get("size")),
        role=role,
        role_path=role_path,
    )


def _or_one(value: object) -> MaybeInt | None:
    return count(value, 1)


def refusal(path: str, seen: str, remedy: str) -> Finding:
    """Say what the webhook refuses."""
    return Finding(path=path, seen=seen, remedy=remedy, rule=SHAPE)


def at_least(path: str, value: object, lowest: int, why: str = "") -> Iterator[Finding]:
    """Judge a count that may be left out."""
    number = whole(value)
    if value is None:
        return
    if gap := unknown_in(value):
        yield not_checked(path, gap, SHAPE)
    elif not isinstance(number, int):
        yield refusal(path, f"is {display(value)}, but must be a whole number", f"write {lowest}")
    elif number < lowest:
        seen = f"is {display(number)}, but must be at least {lowest}{why}"
        yield refusal(path, seen, f"write {lowest} or more")


def is_budget(value: object) -> bool:
    """Tell whether a value is a count or a percentage up to 100%."""
    if isinstance(value, str):
        return _PERCENT.fullmatch(value) is not None
    number = whole(value)
    return isinstance(number, int) and number >= 0


def scaled(value: object, replicas: int, default: int, *, up: bool) -> int:
    """Give a legal budget as a count of replicas."""
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match:
        share = int(match[1]) * replicas
        return -(-share // 100) if up else share // 100
    number = whole(value)
    return number if isinstance(number, int) else default
