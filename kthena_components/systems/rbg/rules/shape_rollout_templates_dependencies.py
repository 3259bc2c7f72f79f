"""Checks RoleBasedGroups.

Mandatory rules cover what the API server, the webhook or the controller rejects: if the controller
does, the object exists without pods. Advisory rules cover what is accepted and then ignored.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import (
    Finding,
    advise,
    count_of,
    each_of,
    not_checked,
    part_of_rule,
    refuse,
)
from kthena_components.core.remedies import either, write
from kthena_components.core.rules.support.admission import (
    at_least,
    cycle_in,
    dns_label,
    joined,
    unique,
)
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import scaled
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    text,
    unknown_in,
)
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.rbg.view import (
    COMPONENTS,
    LEADER_WORKER,
    PATTERNS,
    PLAIN,
    STANDALONE,
    RbgRole,
    RbgView,
)

_SHAPE, _ROLLOUT, _DEPENDENCIES = "rbg-shape", "rbg-rollout", "rbg-dependencies"


def rbg_shape(view: RbgView) -> Iterator[Finding]:
    """A RoleBasedGroup has a valid name, and roles with valid counts and one pattern each.

    The name is a DNS-1123 label; there is at least one role; role names are unique; replicas are 0
    or more and size is 1 or more. customComponentsPattern with another pattern is accepted, and one
    of them is ignored.

    Pass: 2 roles, prefill with standalonePattern and decode with leaderWorkerPattern of size 2.
    Fail: size 0; a role with standalonePattern and leaderWorkerPattern; 2 roles named decode.
    Level: mandatory; advisory for a role without a pattern, and for customComponentsPattern with
    another one.
    Source: sgl-project/rbg api/workloads/v1alpha2/rolebasedgroup_validation.go;
    config/crd/bases/workloads.x-k8s.io_rolebasedgroups.yaml.
    """
    yield from dns_label("metadata.name", view.object.metadata.get("name"), _SHAPE)
    roles = view.spec.get("roles")
    if gap := unknown_in(roles):
        yield not_checked(f"{view.path}.roles", gap, _SHAPE)
    elif not view.roles and view.spec:
        yield refuse(f"{view.path}.roles", "holds no role", "write a role", _SHAPE)
    yield from unique(((f"{role.path}.name", role.name) for role in view.roles), _SHAPE, "roles")
    for role in view.roles:
        if role.name == "":
            yield refuse(f"{role.path}.name", "is empty", "name the role", _SHAPE)
        yield from at_least(f"{role.path}.replicas", role.fields.get("replicas"), 0, _SHAPE)
        yield from _size(role)
        yield from _patterns(role)


def _size(role: RbgRole) -> Iterator[Finding]:
    if role.pattern == LEADER_WORKER:
        inner = mapping(role.fields.get("leaderWorkerSet")) if role.legacy else role.held
        at = f"{role.path}.leaderWorkerSet" if role.legacy else role.at
        yield from at_least(f"{at}.size", inner.get("size"), 1, _SHAPE, ": the leader counts")


def _patterns(role: RbgRole) -> Iterator[Finding]:
    """Report a role with no pattern, or with several."""
    given = [name for name in PATTERNS if role.fields.get(name) is not None]
    if unknown_in(role.fields.get("name")) and len(given) == len(PATTERNS):
        return  # The role itself is not known yet.
    if len(given) > 1:
        report = refuse if {STANDALONE, LEADER_WORKER} <= set(given) else advise
        yield report(
            role.path,
            f"has {len(given)} patterns, {' and '.join(given)}, and a role has one",
            "remove all but one",
            _SHAPE,
        )
    elif not given and not any(
        role.fields.get(key) is not None
        for key in ("template", "templateRef", "leaderWorkerSet", "components", "workload")
    ):
        yield advise(
            role.path,
            "has 0 patterns, so no pod is created",
            "write standalonePattern, leaderWorkerPattern or customComponentsPattern",
            _SHAPE,
        )


def _roles(view: RbgView) -> Iterator[tuple[RbgRole]]:
    yield from ((role,) for role in view.roles)


@each_of(_roles)
def rbg_rollout(role: RbgRole) -> Iterator[Finding]:
    """A role's rolling update can start and reaches a replica.

    maxSurge, whose percentages round up, and maxUnavailable, whose percentages round down, are not
    both 0; partition is below replicas.

    Pass: 4 replicas, maxUnavailable 25%, partition 3.
    Fail: maxUnavailable 0 with no maxSurge; partition 4 of 4 replicas.
    Level: mandatory.
    Source: sgl-project/rbg api/workloads/v1alpha2/rolebasedgroup_validation.go,
    ValidateRollingUpdate.
    """
    strategy = mapping(role.fields.get("rolloutStrategy"))
    given, at = strategy.get("rollingUpdate"), f"{role.path}.rolloutStrategy.rollingUpdate"
    rolling = mapping(given)
    if given is None or role.replicas == 0:
        return
    require_known(at, given, role.replicas, *rolling.values())
    if isinstance(role.replicas, int) and role.replicas > 0:
        yield from _budgets(rolling, at, role.replicas)


def _budgets(rolling: Mapping[str, Any], at: str, replicas: int) -> Iterator[Finding]:
    """Check maxUnavailable, maxSurge and partition against the replicas."""
    down = scaled(rolling.get("maxUnavailable"), replicas, 1, up=False)
    up = scaled(rolling.get("maxSurge"), replicas, 0, up=True)
    kept = scaled(rolling.get("partition"), replicas, 0, up=True)
    for key, number in (("maxUnavailable", down), ("maxSurge", up), ("partition", kept)):
        if number is None:
            seen = f"is {display(rolling.get(key))}, but must be a count or a percentage"
            yield refuse(f"{at}.{key}", seen, "write, for example, 1 or 25%", _ROLLOUT)
    if down == 0 and up == 0:
        of = (
            f" of {count_of(replicas, 'replica')}"
            if "%" in str(rolling.get("maxUnavailable"))
            else ""
        )
        seen = f"is {display(rolling.get('maxUnavailable'))}{of} and maxSurge is "
        seen += f"{display(rolling.get('maxSurge', 0))}, so no update could start"
        remedy = either(
            write(1, "write maxUnavailable: 1"), write(1, "maxSurge: 1", at=f"{at}.maxSurge")
        )
        yield refuse(f"{at}.maxUnavailable", seen, remedy, _ROLLOUT)
    if kept is not None and kept >= replicas:
        stated = f"is {display(rolling.get('partition'))}, "
        seen = (
            f"{stated}but must be below the {count_of(replicas, 'replica')}, or none "
            "would be updated"
        )
        yield refuse(f"{at}.partition", seen, f"write {replicas - 1} or less", _ROLLOUT)


def rbg_dependencies(view: RbgView) -> Iterator[Finding]:
    """Roles depend on roles of their group, without cycles.

    Pass: decode depends on prefill.
    Fail: decode depends on 1 missing role; 2 roles that depend on each other.
    Level: mandatory, because the controller rejects it and creates no pod.
    Source: sgl-project/rbg pkg/dependency/dependency.go.
    """
    names = {role.name for role in view.roles if isinstance(role.name, str)}
    known = f"the group has {len(names)}: {joined(sorted(names))}"
    hidden = any(isinstance(role.name, Unknown) for role in view.roles)
    edges: dict[str, list[str]] = {}
    for role in view.roles:
        given, at = role.fields.get("dependencies"), f"{role.path}.dependencies"
        listed_all = given if isinstance(given, list | tuple) else ()
        if gap := next((gap for gap in map(unknown_in, (given, *listed_all)) if gap), None):
            if not isinstance(role.name, Unknown):
                yield not_checked(at, gap, _DEPENDENCIES)
            continue
        wanted = [name for name in listed_all if isinstance(name, str)]
        if isinstance(role.name, str):
            edges[role.name] = wanted
        for index, name in enumerate(listed_all):
            if isinstance(name, str) and name not in names and not hidden:
                seen = f"is {display(name)}, and {known}"
                yield refuse(f"{at}[{index}]", seen, "name one of them", _DEPENDENCIES)
    if circle := cycle_in(edges):
        seen = f"is part of a cycle of {count_of(len(circle) - 1, 'role')}: "
        seen += " → ".join(display(name).strip("'") for name in circle[:8])
        remedy = "remove one of these dependencies"
        yield refuse(f"{view.path}.roles", seen, remedy, _DEPENDENCIES)


_RULE = "rbg-templates"
_WITHOUT = frozenset({"InstanceSet", "LeaderWorkerSet"})
"""Workloads of v1alpha1 that do not support shared templates."""


def rbg_templates(view: RbgView) -> Iterator[Finding]:
    """A role has its own template or names a shared one, but not both.

    Shared templates have at least one container, and unique names that are DNS-1123 labels. A role
    that names one also has a patch, at least {}; other roles have no patch. Workloads
    LeaderWorkerSet and InstanceSet of v1alpha1 do not support shared templates.

    Pass: templateRef with name base and patch {}, and 1 of roleTemplates named base.
    Fail: template and templateRef in 1 role; templateRef to 1 name that roleTemplates lack.
    Level: mandatory, because the API server or the controller rejects it; advisory for a role with
    neither.
    Source: sgl-project/rbg v0.6.0 api/workloads/v1alpha1/roletemplate_validation.go and
    v0.8.0-alpha.5 api/workloads/v1alpha2/roletemplate_validation.go.
    """
    given, at = view.spec.get("roleTemplates"), f"{view.path}.roleTemplates"
    gap = unknown_in(given)
    if gap:
        yield not_checked(at, gap, _RULE)
    shared = [(f"{at}[{index}]", mapping(item)) for index, item in enumerate(sequence(given))]
    for place, entry in shared:
        yield from dns_label(f"{place}.name", entry.get("name"), _RULE)
        held = mapping(mapping(entry.get("template")).get("spec")).get("containers")
        if unknown_in(held) is None and not sequence(held):
            seen = "has 0 containers, and a template needs at least one"
            where = f"{place}.template.spec.containers"
            yield refuse(where, seen, "write the container", _RULE)
    yield from unique(((f"{p}.name", e.get("name")) for p, e in shared), _RULE, "templates")
    names = [entry.get("name") for _, entry in shared]
    hidden = gap is not None or first_unknown(*names) is not None
    known = sorted(name for name in names if isinstance(name, str))
    for role in view.roles:
        if role.pattern != COMPONENTS:
            yield from _source(role, None if hidden else known)


@part_of_rule
def _source(role: RbgRole, known: list[str] | None) -> Iterator[Finding]:
    """Check that a role has its own template or a shared one, and not both."""
    own, reference = role.held.get("template"), role.held.get("templateRef")
    require_known(role.at, own, reference)
    if reference is not None:
        yield from _shared(role, known)
        if own is not None:
            seen = "has both template and templateRef, and a role has only one of them"
            yield refuse(role.at, seen, "remove one of them", _RULE)
    elif role.legacy and role.held.get("templatePatch") is not None:
        seen = "is given, but the role names no shared template (templateRef)"
        yield refuse(f"{role.at}.templatePatch", seen, "add templateRef, or remove it", _RULE)
    elif own is None and (role.pattern != PLAIN or role.fields.get("workload") is not None):
        seen = "has neither template nor templateRef, so 0 pods are created"
        yield advise(role.at, seen, "write template", _RULE)


def _shared(role: RbgRole, known: list[str] | None) -> Iterator[Finding]:
    """Check a reference to a shared template: its name, the workload's kind, and the patch."""
    reference = mapping(role.held.get("templateRef"))
    name, at = text(reference.get("name")), f"{role.at}.templateRef"
    if gap := unknown_in(name):
        yield not_checked(f"{at}.name", gap, _RULE)
    elif isinstance(name, str) and known is not None and name not in known:
        seen = f"is {display(name)}, and roleTemplates has {len(known)}: {joined(known)}"
        yield refuse(f"{at}.name", seen, "name one of roleTemplates", _RULE)
    kind = text(mapping(role.fields.get("workload")).get("kind"))
    if isinstance(kind, str) and kind in _WITHOUT:
        seen = f"is given, and a workload of kind {kind} does not support shared templates"
        yield refuse(at, seen, "write template in the role", _RULE)
    holder, key = (role.held, "templatePatch") if role.legacy else (reference, "patch")
    if holder.get(key) is None:
        seen = f"names a shared template and {key} is not given, which the controller rejects"
        yield refuse(at, seen, f"write {key}: {{}}", _RULE)
