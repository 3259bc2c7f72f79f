"""RoleBasedGroup and RoleBasedGroupSet."""

from dataclasses import replace
from typing import Any

from kthena_components.core.plan.controller_variables import Told
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
    RBG,
    RBG_SET,
    STANDALONE,
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
_TOLD = Told(
    size=(GROUP_SIZE, "LWS_GROUP_SIZE"),
    leader=("RBG_LWP_LEADER_ADDRESS", "LWS_LEADER_ADDRESS"),
    rank=("RBG_LWP_WORKER_INDEX", "LWS_WORKER_INDEX"),
    others=("RBG_",),
)
_LWS = "LeaderWorkerSet"
"""What the annotation with the kind of a role's workload says."""
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
        tells=tells,
        gangs=gangs_of_group,
        without={"pod-schema": "a patch is not a whole template, and is not checked as one"},
        **known,
    )


def _makes_instances(role: RbgRole) -> bool:
    """Return whether a role is a RoleInstanceSet whose pods get the variables of this pattern."""
    known = role.pattern in {LEADER_WORKER, STANDALONE} and not role.legacy
    annotations = role.fields.get("annotations")
    return known and not unknown_within(annotations) and _LWS not in str(annotations)


def tells(view: RbgView) -> Told:
    """Return the variables of the leader-worker pattern, first those of its release.

    Only the pods of a LeaderWorkerSet have LeaderWorkerSet's variables. A role of v1alpha2 is a
    RoleInstanceSet, unless an annotation says otherwise.

    Source: sgl-project/rbg api/workloads/constants/env.go, pkg/discovery/env_builder.go;
    api/workloads/v1alpha1/constant.go (names of older releases).
    """
    named = (*_TOLD.size, *_TOLD.leader, *_TOLD.rank, *_TOLD.others)
    if any(role.legacy and role.pattern == LEADER_WORKER for role in view.roles):
        named = tuple(sorted(named, key=lambda name: not name.startswith("LWS_")))
    elif all(_makes_instances(role) for role in view.roles):
        own = replace(_TOLD, size=_TOLD.size[:1], leader=_TOLD.leader[:1], rank=_TOLD.rank[:1])
        return replace(own, exactly=(*own.size, *own.leader, *own.rank, *own.others, *_ONCE))
    return replace(_TOLD, exactly=(*named, *_ONCE))


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
