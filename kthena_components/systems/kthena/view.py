"""Reads a ModelServing; never raises.

A value that is not known yet is read as Unknown, one of the wrong type as None: schema.py reports
it, and the rules between fields skip it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.objects.object import Object
from kthena_components.core.schema.versions import KTHENA_VERSIONS, age, known_version
from kthena_components.core.values.read import count, mapping, object_name, sequence, text
from kthena_components.core.values.unknown import MaybeInt, MaybeText

BY_GROUP, BY_ROLE = "ServingGroupRollingUpdate", "RoleRollingUpdate"


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
    """A ModelServing, and the Kthena version that will read it."""

    object: Object
    asked: str
    """The version as the caller wrote it; `version` is the one by which it is checked."""
    version: str
    name: MaybeText | None
    spec: Mapping[str, Any]
    template: Mapping[str, Any]
    strategy: Mapping[str, Any]
    rollout: MaybeText | None
    replicas: MaybeInt | None
    roles: tuple[Role, ...]

    @property
    def body(self) -> Mapping[str, Any]:
        """The object as it would be applied, for Volcano's rules over topologies."""
        return self.object.body

    def since(self, version: str) -> bool:
        """Return whether Kthena has this version or a newer one."""
        return age(self.version) >= age(version)


def read_serving(found: Object) -> Serving:
    """Read a ModelServing; its context states the version of Kthena."""
    spec, asked = found.spec, found.context.versions.get("kthena", KTHENA_VERSIONS[-1])
    template, strategy = mapping(spec.get("template")), mapping(spec.get("rolloutStrategy"))
    return Serving(
        object=found,
        asked=asked,
        version=known_version(asked) or KTHENA_VERSIONS[-1],
        name=object_name(found.metadata),
        spec=spec,
        template=template,
        strategy=strategy,
        rollout=text(strategy.get("type"), BY_GROUP),
        replicas=count(spec.get("replicas"), 1),
        roles=tuple(
            _role(f"spec.template.roles[{index}]", mapping(role))
            for index, role in enumerate(sequence(template.get("roles")))
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


def templates(view: Serving) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """List the pod templates of all roles, with their paths."""
    for role in view.roles:
        for field in ("entryTemplate", "workerTemplate"):
            yield f"{role.path}.{field}", mapping(role.fields.get(field))
