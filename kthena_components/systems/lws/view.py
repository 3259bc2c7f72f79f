"""Reads LeaderWorkerSets and DisaggregatedSets as groups of a leader and its workers.

Source: kubernetes-sigs/lws api/leaderworkerset/v1 and api/disaggregatedset/v1.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import count, mapping, name_of
from kthena_components.core.values.unknown import MaybeInt, is_unresolved

LEADER_WORKER_SET: GroupKind = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
DISAGGREGATED_SET: GroupKind = ("disaggregatedset.x-k8s.io", "DisaggregatedSet")
SET_NAME = "leaderworkerset.sigs.k8s.io/name"
GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
"""Labels that the controller gives to pods."""
LEADER, WORKER = "leaderTemplate", "workerTemplate"
ROLLING = "rolloutStrategy.rollingUpdateConfiguration"
"""Path of the update strategy in a group's spec."""


_REVISION = 8
"""Characters of the revision in the names that a DisaggregatedSet generates."""


def in_slice(name: str, role: str) -> str:
    """Name the LeaderWorkerSet of a role in the first slice of a DisaggregatedSet, since LWS 0.10.

    Source: kubernetes-sigs/lws pkg/utils/disaggregatedset/utils.go GenerateName.
    """
    return f"{name}-0-{'0' * _REVISION}-{role}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The fields that define one LeaderWorkerSet."""

    path: str
    """Path of its spec."""
    engine_path: str
    """The same; the path of its role if the whole role is not known yet."""
    name: str
    """The object's name, or the role's; `?` for an unknown name."""
    stated: object
    """Its spec as written, which may be a text that is not known yet."""
    spec: Mapping[str, Any]
    template: Mapping[str, Any]
    """Its leaderWorkerTemplate."""
    annotations: Mapping[str, Any]
    annotations_path: str
    replicas: MaybeInt | None
    """1 if left out, None if invalid."""
    size: MaybeInt | None
    """Pods of one group, including the leader; 1 if left out, None if invalid."""
    role: Mapping[str, Any]
    """Its role in a DisaggregatedSet; empty without one."""
    role_path: str

    @property
    def in_role(self) -> bool:
        """Whether a DisaggregatedSet creates it."""
        return self.role_path != ""

    @property
    def leader(self) -> str:
        """Field of the leader's template: the workers' where it has none, or an empty one."""
        return LEADER if self.template.get(LEADER) else WORKER

    @property
    def schedulers(self) -> list[object]:
        """The schedulers of leader and workers, as their own templates state."""
        templates = (mapping(self.template.get(field)) for field in (LEADER, WORKER))
        return [mapping(template.get("spec")).get("schedulerName") for template in templates]

    @property
    def rolling(self) -> object:
        """The value at ROLLING."""
        return mapping(self.spec.get("rolloutStrategy")).get("rollingUpdateConfiguration")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """A LeaderWorkerSet, or those that a DisaggregatedSet creates."""

    object: Object
    groups: tuple[Group, ...]

    @property
    def disaggregated(self) -> bool:
        """Whether its groups belong to roles."""
        return self.object.group == DISAGGREGATED_SET[0]


def read_sets(found: Object) -> Sets:
    """Read the groups; never raises."""
    if found.group == DISAGGREGATED_SET[0]:
        return Sets(object=found, groups=tuple(_roles(found.spec)))
    only = _group(
        "spec",
        found.body.get("spec"),
        name=name_of(found.body),
        metadata=found.metadata,
    )
    return Sets(object=found, groups=(only,))


def _roles(spec: Mapping[str, Any]) -> Iterator[Group]:
    """Read the roles of a DisaggregatedSet. Older versions have the spec in the role itself."""
    roles = spec.get("roles")
    for index, item in enumerate(roles if isinstance(roles, list | tuple) else ()):
        role, at = mapping(item), f"spec.roles[{index}]"
        name, nested = role.get("name"), "leaderWorkerTemplate" not in role
        late = is_unresolved(item)
        yield _group(
            f"{at}.spec" if nested else at,
            role.get("spec") if nested and not late else item,
            engine_path=at if late else "",
            name=name if isinstance(name, str) and not is_unresolved(name) else "?",
            metadata=mapping(role.get("metadata")),
            role=role,
            role_path=at,
        )


def _group(
    path: str,
    stated: object,
    *,
    name: str,
    metadata: Mapping[str, Any],
    engine_path: str = "",
    role: Mapping[str, Any] | None = None,
    role_path: str = "",
) -> Group:
    spec = mapping(stated)
    template = mapping(spec.get("leaderWorkerTemplate"))
    return Group(
        path=path,
        engine_path=engine_path or path,
        name=name,
        stated=stated,
        spec=spec,
        template=template,
        annotations=mapping(metadata.get("annotations")),
        annotations_path=f"{role_path}.metadata.annotations".lstrip("."),
        replicas=count(spec.get("replicas"), 1),
        size=count(template.get("size"), 1),
        role={} if role is None else role,
        role_path=role_path,
    )
