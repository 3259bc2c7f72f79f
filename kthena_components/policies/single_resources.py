"""Checks single resources, and keeps what the rules over all objects of a stack need of them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date
from functools import cache, partial
from threading import local
from types import MappingProxyType
from typing import Any

from pulumi_policy import PolicyResource, ResourceValidationArgs

from kthena_components.checker.all_objects import is_memory_unchecked
from kthena_components.checker.levels import Settings
from kthena_components.checker.manifest import CheckedObject, check_whole, has_rules, is_compared
from kthena_components.checker.secrecy import check_sealed, is_sealed
from kthena_components.checker.unread_kinds_and_parts import is_foreign
from kthena_components.checker.waivers import FIELD, listed, waive
from kthena_components.core.facts.context import Context
from kthena_components.core.findings import Finding, today
from kthena_components.core.hardware import NO_CHOICE, GpuChoice
from kthena_components.core.objects.object import pulumi_identity
from kthena_components.core.plan.report import read_shape
from kthena_components.core.rules.registry import run_checks
from kthena_components.core.values.dataclass import dataclass
from kthena_components.policies.secrets_and_stack_gpu import read_props, sent_props

KUBERNETES = "kubernetes"
COMPONENTS = frozenset(f"kthena:index:{name}" for name in ("ModelServing", "ServingGroup", "Role"))
"""Components that register their sizes as rows (core/plan/report.py)."""
_MADE_OF_OTHERS = tuple(
    f"{KUBERNETES}:{name}" for name in ("yaml", "kustomize", "helm.sh/v3:Chart", "helm.sh/v4:Chart")
)
"""Types whose objects are resources of their own, each of which is checked."""
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A checked object without secrets."""

    body: Body
    by: tuple[Mapping[str, str], GpuChoice]
    """The releases and the GPUs by which it was checked."""
    checked: CheckedObject
    memory_unchecked: bool


_last = local()
_kept: dict[str, _Kept] = {}
"""By URN, for the whole operation: a stack's policies run after those of single resources."""


@cache
def is_checked(resource_type: str) -> bool:
    """Tell whether there are rules for a type, or it may make pods that nobody reads.

    No rule reads a patch: its type is `DeploymentPatch`, and it shows a part of an object only.
    """
    if not resource_type.startswith(f"{KUBERNETES}:"):
        return resource_type in COMPONENTS
    if resource_type.startswith(_MADE_OF_OTHERS):
        return False
    identity = pulumi_identity(resource_type)
    return has_rules(identity) or is_compared(identity) or is_foreign(identity)


def check_resource(
    resource_type: str,
    fields: Mapping[str, Any],
    versions: Mapping[str, str] = MappingProxyType({}),
    today: date | None = None,
    asked: frozenset[str] = frozenset(),
    *,
    gpus: GpuChoice = NO_CHOICE,
    urn: str = "",
) -> list[Finding]:
    """Check one resource by every rule for its type, and apply its waivers.

    Sealed values are checked, but findings never show them.

    Args:
        resource_type: Its type in Pulumi.
        fields: Its properties as plain data, with secrets in `Sealed`.
        versions: The releases that the cluster runs, by system; the newest if left out.
        today: The day on which its waivers are checked; without it, all are ignored.
        asked: Names of rules that only run if they are asked for.
        gpus: The GPUs of pods whose manifests name none.
        urn: Its URN, by which the result is kept for `kept_of`; empty keeps nothing.
    """
    if not is_checked(resource_type):
        return []
    if resource_type in COMPONENTS:
        return check_sealed(partial(_check_component, today=today), fields)
    body = {**fields, **pulumi_identity(resource_type)}
    check = partial(
        check_whole, context=Context(gpus=gpus), today=today, versions=versions, asked=asked
    )
    _kept.pop(urn, None)
    if is_sealed(body):
        return check_sealed(lambda tree: check(tree).findings, body)
    checked = check(body)
    if urn:
        _kept[urn] = _Kept(
            body=body,
            by=(versions, gpus),
            checked=replace(checked, facts=None),
            memory_unchecked=is_memory_unchecked(checked.facts),
        )
    return checked.findings


def _check_component(fields: Mapping[str, Any], today: date | None) -> list[Finding]:
    found = run_checks(read_shape(fields))
    if today is None:
        return found
    # The component itself reports invalid waivers.
    return waive(found, listed(fields.get(FIELD)), today)[: len(found)]


def check_once(args: ResourceValidationArgs, by: Settings) -> list[Finding]:
    """Check a resource, or return the cached findings of the other policy."""
    if not is_checked(args.resource_type):
        return []
    asked = (args.urn, args.resource_type, sent_props(args.props))
    settings = (by.versions, today(), by.levels.asked)
    if getattr(_last, "asked", None) != (asked, settings, by.gpus):
        props = read_props(args.props)
        _last.found = check_resource(
            args.resource_type, props, *settings, gpus=by.gpus, urn=args.urn
        )
        _last.asked = (asked, settings, by.gpus)
    found: list[Finding] = _last.found
    return found


def sent(resources: Iterable[PolicyResource]) -> list[tuple[str, str, str, Any]]:
    """Return resources in a form that can be compared: URN, type, provider and properties."""
    return [
        (
            one.urn,
            one.resource_type,
            one.provider.urn if one.provider else "",
            sent_props(one.props),
        )
        for one in resources
    ]


def kept_of(bodies: Mapping[str, Body], by: Settings) -> dict[str, CheckedObject]:
    """Return what the checks of equal objects gave with the same settings, by URN."""
    return {urn: one.checked for urn, one in _equal(bodies, by).items()}


def unchecked_memory_of(bodies: Mapping[str, Body], by: Settings) -> dict[int, bool]:
    """Return whether equal objects were not compared with memory, by index in `bodies`."""
    equal = _equal(bodies, by)
    return {i: equal[urn].memory_unchecked for i, urn in enumerate(bodies) if urn in equal}


def _equal(bodies: Mapping[str, Body], by: Settings) -> dict[str, _Kept]:
    found = ((urn, body, _kept.get(urn)) for urn, body in bodies.items())
    return {
        urn: kept
        for urn, body, kept in found
        if kept is not None and kept.by == (by.versions, by.gpus) and kept.body == body
    }
