"""Checks that each role of a RoleBasedGroup has a pod template: its own, or a shared one."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, Level, not_checked
from kthena_components.core.rules.support.admission import dns_label, joined, refuse, unique
from kthena_components.core.values.display import display
from kthena_components.core.values.read import first_unknown, mapping, sequence, text, unknown_in
from kthena_components.systems.rbg.view import COMPONENTS, PLAIN, RbgRole, RbgView

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
            yield from refuse(where, seen, "write the container", _RULE)
    yield from unique(((f"{p}.name", e.get("name")) for p, e in shared), _RULE, "templates")
    names = [entry.get("name") for _, entry in shared]
    hidden = gap is not None or first_unknown(*names) is not None
    known = sorted(name for name in names if isinstance(name, str))
    for role in view.roles:
        if role.pattern != COMPONENTS:
            yield from _source(role, None if hidden else known)


def _source(role: RbgRole, known: list[str] | None) -> Iterator[Finding]:
    own, reference = role.held.get("template"), role.held.get("templateRef")
    if gap := first_unknown(own, reference):
        yield not_checked(role.at, gap, _RULE)
    elif reference is not None:
        yield from _shared(role, known)
        if own is not None:
            seen = "has both template and templateRef, and a role has only one of them"
            yield from refuse(role.at, seen, "remove one of them", _RULE)
    elif role.legacy and role.held.get("templatePatch") is not None:
        seen = "is given, but the role names no shared template (templateRef)"
        yield from refuse(f"{role.at}.templatePatch", seen, "add templateRef, or remove it", _RULE)
    elif own is None and (role.pattern != PLAIN or role.fields.get("workload") is not None):
        seen = "has neither template nor templateRef, so 0 pods are created"
        yield from refuse(role.at, seen, "write template", _RULE, Level.ADVISORY)


def _shared(role: RbgRole, known: list[str] | None) -> Iterator[Finding]:
    reference = mapping(role.held.get("templateRef"))
    name, at = text(reference.get("name")), f"{role.at}.templateRef"
    if gap := unknown_in(name):
        yield not_checked(f"{at}.name", gap, _RULE)
    elif isinstance(name, str) and known is not None and name not in known:
        seen = f"is {display(name)}, and roleTemplates has {len(known)}: {joined(known)}"
        yield from refuse(f"{at}.name", seen, "name one of roleTemplates", _RULE)
    kind = text(mapping(role.fields.get("workload")).get("kind"))
    if isinstance(kind, str) and kind in _WITHOUT:
        seen = f"is given, and a workload of kind {kind} does not support shared templates"
        yield from refuse(at, seen, "write template in the role", _RULE)
    holder, key = (role.held, "templatePatch") if role.legacy else (reference, "patch")
    if holder.get(key) is None:
        seen = f"names a shared template and {key} is not given, which the controller rejects"
        yield from refuse(at, seen, f"write {key}: {{}}", _RULE)
