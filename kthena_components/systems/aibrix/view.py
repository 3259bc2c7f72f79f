"""Reads AIBrix's StormService and RoleSet as roles, each of single pods or of groups of pods.

Source: vllm-project/aibrix v0.7 api/orchestration/v1alpha1/{stormservice,roleset}_types.go;
pkg/controller/roleset/rolesyncer.go GetRoleSyncerWithRecorder, which makes groups of podGroupSize
pods; pkg/controller/podset/podset_controller.go, which tells each pod of a group its size.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.findings import join_path
from kthena_components.core.objects.object import Object, copies_in
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.read import inside, is_name, mapping, sequence, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown

GROUP = "orchestration.aibrix.ai"
GROUP_SIZE = "POD_GROUP_SIZE"
"""Added to every container of a group of pods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One role: equal pods, or equal groups of pods."""

    path: str
    """Path in the object."""
    name: str
    template: object
    instances: MaybeInt
    """Its pods, or groups of pods, in one RoleSet."""
    size: MaybeInt
    """Pods of an instance."""
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSets:
    """A StormService, or a RoleSet."""

    object: Object
    path: str
    """Path of the spec of the RoleSet."""
    spec: Mapping[str, Any]
    copies: MaybeInt
    roles: tuple[Role, ...]
    gap: Unknown | None
    """Why the roles are not known. None: they are."""


def read_role_sets(found: Object) -> RoleSets:
    """Read the roles, whatever the object contains."""
    several = found.kind == "StormService"
    spec = found.body.get("spec")
    held = inside(inside(spec, "template"), "spec") if several else spec
    path, listed = "spec.template.spec" if several else "spec", inside(held, "roles")
    roles = enumerate(sequence(listed))
    return RoleSets(
        object=found,
        path=path,
        spec=mapping(held),
        copies=copies_in(inside(spec, "replicas"), 1) if several else 1,
        roles=tuple(_role(item, join_path(path, f"roles[{index}]")) for index, item in roles),
        gap=unknown_in(listed),
    )


def _role(item: object, path: str) -> Role:
    fields = mapping(item)
    name, size = fields.get("name"), copies_in(fields.get("podGroupSize"), 1)
    return Role(
        path=path,
        name=name if is_name(name) else "?",
        template=inside(item, "template"),
        instances=copies_in(fields.get("replicas"), 1),
        size=size if isinstance(size, Unknown) else max(size, 1),
        fields=fields,
    )


def pods_in(role: Role) -> MaybeInt:
    """Count the pods of a role in one RoleSet."""
    return product(role.instances, role.size)
