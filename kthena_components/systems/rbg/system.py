"""RoleBasedGroup and RoleBasedGroupSet."""

from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.objects.object import fields_of_kind
from kthena_components.core.plan.controller_variables import PodVariables
from kthena_components.core.values.read import unknown_within
from kthena_components.systems.rbg.facts import (
    GROUP_SIZE,
    facts,
    gangs_of_group,
    kept_roles,
    pods_of_roles,
)
from kthena_components.systems.rbg.rules.gang_and_start_order import rbg_gang, rbg_start_order
from kthena_components.systems.rbg.rules.shape_rollout_templates_dependencies import (
    rbg_dependencies,
    rbg_rollout,
    rbg_shape,
    rbg_templates,
)
from kthena_components.systems.rbg.view import (
    LEADER_WORKER,
    PREFIX,
    RBG,
    RBG_SET,
    RbgRole,
    RbgView,
    read_rbg,
)
from kthena_components.systems.system import Kind, Restart, System

_TEMPLATES = (
    "roleTemplates[].template",
    "roles[].template",
    "roles[].standalonePattern.template",
    "roles[].leaderWorkerPattern.template",
)
_PARTS = (
    r"(roleTemplates\b|roles(\[\d+\])?"
    r"(\..*([tT]emplate|\bsize\b|\bcomponents\b|\bengineRuntimes\b)|$))"
)
"""The fields that define pods. Another size of the instance is another revision, too."""
_ONE_BY_ONE = "instance after instance of each role restarts"

# v1alpha1 makes LeaderWorkerSets, whose pods have LeaderWorkerSet's variables, too.
_TOLD = PodVariables(
    size=(GROUP_SIZE, "LWS_GROUP_SIZE"),
    leader=("RBG_LWP_LEADER_ADDRESS", "LWS_LEADER_ADDRESS"),
    rank=("RBG_LWP_WORKER_INDEX", "LWS_WORKER_INDEX"),
    others=("RBG_",),
)
_LWS = "LeaderWorkerSet"
"""What the annotation with the kind of a role's workload says."""
_OF_INSTANCE = ("RBG_GROUP_", "RBG_ROLE_", "RBG_COMPONENT_")
"""Beginnings of the variables of all pods of a RoleInstanceSet."""
_ONCE = ("GROUP_NAME", "ROLE_NAME", "ROLE_INDEX", "ROLES_", "INSTANCE_", "COMPONENT_")
"""Variables of older releases, and beginnings of them."""


def _kind(group_kind: tuple[str, str], **known: Any) -> Kind[RbgView]:
    """Describe a kind of RBG; both kinds share the reader and the rules."""
    return Kind(
        group=group_kind[0],
        name=group_kind[1],
        view=read_rbg,
        facts=facts,
        pods=pods_of_roles,
        rules=(rbg_shape, rbg_rollout, rbg_templates, rbg_dependencies, rbg_start_order, rbg_gang),
        # pkg/discovery/injector.go; an engineRuntime's profile adds others (sidecar_builder.go).
        adds_volumes=("rbg-cluster-config",),
        kept=kept_roles,
        pod_variables=pod_variables,
        added_fields=added_fields,
        gangs=gangs_of_group,
        without={"pod-schema": "a patch is not a whole template, and is not checked as one"},
        **known,
    )


def _makes_instances(role: RbgRole) -> bool:
    """Return whether a role is a RoleInstanceSet, which none of an older version need be."""
    annotations = role.fields.get("annotations")
    return not role.legacy and not unknown_within(annotations) and _LWS not in str(annotations)


def pod_variables(view: RbgView) -> PodVariables:
    """Return the variables of the leader-worker pattern, first those of its release.

    Only the pods of a LeaderWorkerSet have LeaderWorkerSet's variables. A role of v1alpha2 is a
    RoleInstanceSet, unless an annotation says otherwise. Only the pods of a leader and its workers
    have a size, a leader and a number. Run on v0.8.0-alpha.5.

    Source: sgl-project/rbg api/workloads/constants/env.go, pkg/discovery/env_builder.go;
    api/workloads/v1alpha1/constant.go (names of older releases).
    """
    named = (*_TOLD.size, *_TOLD.leader, *_TOLD.rank, *_TOLD.others)
    if any(role.legacy and role.pattern == LEADER_WORKER for role in view.roles):
        named = tuple(sorted(named, key=lambda name: not name.startswith("LWS_")))
    elif all(_makes_instances(role) for role in view.roles):
        if view.roles and not _has_leaders(view):
            alone = replace(_TOLD, size=(), leader=(), rank=())
            return replace(alone, exactly=(*_OF_INSTANCE, *_ONCE))
        own = replace(_TOLD, size=_TOLD.size[:1], leader=_TOLD.leader[:1], rank=_TOLD.rank[:1])
        return replace(own, exactly=(*own.size, *own.leader, *own.rank, *own.others, *_ONCE))
    return replace(_TOLD, exactly=(*named, *_ONCE))


def _has_leaders(view: RbgView) -> bool:
    return view.gap is not None or any(role.pattern == LEADER_WORKER for role in view.roles)


def added_fields(view: RbgView) -> tuple[str, ...] | None:
    """Return the labels and annotations of the pods of a RoleInstanceSet; None for other workloads.

    Source: sgl-project/rbg v0.7.0 to v0.8.0-alpha.5 api/workloads/constants/label.go;
    pkg/reconciler/roleinstance/utils/instance_utils.go. Run on v0.8.0-alpha.5.
    """
    if not all(_makes_instances(role) for role in view.roles):
        return None
    names = ["group-name", "group-uid", "role-name", "role-instance-index", "role-instance-name"]
    names += [f"component-{name}" for name in ("id", "name", "size")]
    names += ["component-index"] if _has_leaders(view) else []
    labels = (naming.label_field(f"{PREFIX}{name}") for name in names)
    return (*labels, *fields_of_kind("StatefulSet"), *naming.fields_of_pod(naming.POD_GROUP))


SYSTEM = System(
    name="rbg",
    title="RoleBasedGroup",
    kinds=(
        _kind(
            RBG,
            templates=tuple(f"spec.{at}" for at in _TEMPLATES),
            restarts=Restart(paths=rf"spec\.{_PARTS}", how=_ONE_BY_ONE),
        ),
        _kind(
            RBG_SET,
            templates=(
                *(f"spec.template.{at}" for at in _TEMPLATES),
                *(f"spec.groupTemplate.spec.{at}" for at in _TEMPLATES),
            ),
            # All groups are updated at once: internal/controller/workloads/
            # rolebasedgroupset_controller.go, updateExistingRBGs.
            restarts=Restart(
                paths=rf"spec\.(template|groupTemplate\.spec)\.{_PARTS}",
                how=f"in all groups at once, {_ONE_BY_ONE}",
            ),
            copies="replicas",
        ),
    ),
)
