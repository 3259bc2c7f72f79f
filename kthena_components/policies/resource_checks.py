"""Checks the resources of a preview: each one alone, advice, and placement."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cache, partial
from threading import local
from types import MappingProxyType
from typing import Any

from pulumi_policy import PolicyResource, ResourceValidationArgs

from kthena_components.checker.check_cluster_objects import is_memory_unchecked
from kthena_components.checker.levels import Settings
from kthena_components.checker.manifest import CheckedObject, check_whole, has_rules, is_compared
from kthena_components.checker.secrecy import check_sealed, is_sealed
from kthena_components.checker.unread_kinds_and_parts import is_foreign
from kthena_components.checker.waivers import FIELD, listed, waive
from kthena_components.core import naming
from kthena_components.core.facts.context import Context
from kthena_components.core.findings import Finding, Level, today
from kthena_components.core.hardware import NO_CHOICE, GpuChoice
from kthena_components.core.objects.object import pulumi_identity
from kthena_components.core.plan.report import read_shape
from kthena_components.core.rules.registry import run_checks
from kthena_components.core.spec.serving_spec import ENGINE_CONTAINER
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.policies.secret_marks_and_stack_gpu import read_field, read_props, sent_props

# Advice about the objects of a component, and whether the pods of a stack fit into a cluster.
#
# Advice is given once: a serving has many equal objects, such as a StatefulSet for each group, and
# a user changes the fields of the component.


_COMPONENT = "kthena:index:"
_OF_SERVING = {"priorityClassName": "priority_class of the serving"}
_OF_ENGINE = {
    "mount a PersistentVolumeClaim or a hostPath at the engine's cache (HF_HOME)": (
        "write cache.claim or cache.host_path of the role"
    )
}
"""Fields of Kubernetes in remedies, and the fields of a component with an engine that set them."""

_first: dict[tuple[str, str, str], str] = {}
"""The URN that was the first with a string, by serving. It may be analyzed again."""


def advice_of_component(urn: str, props: Any, finding: Finding) -> Finding | None:
    """Return a finding with a component's fields; None if an equal object has said it already.

    Args:
        urn: URN of the object.
        props: Its properties, as the SDK gives them.
        finding: Any finding about it. Mandatory ones, and those of other objects, stay.
    """
    if finding.level is Level.MANDATORY or _COMPONENT not in urn.rpartition("$")[0]:
        return finding
    metadata = mapping(read_field(props, "metadata"))
    serving = mapping(metadata.get("labels")).get(naming.NAME)
    if not isinstance(serving, str):
        return finding
    whose = str(metadata.get("namespace")), serving, str(finding)
    return _reworded(finding) if _first.setdefault(whose, urn) == urn else None


def _reworded(finding: Finding) -> Finding:
    words = dict(_OF_SERVING)
    if f"container '{ENGINE_CONTAINER}'" in finding.seen:
        words |= _OF_ENGINE
    pattern = "|".join(map(re.escape, words))
    remedy = re.sub(pattern, lambda found: words[found[0]], str(finding.remedy))
    return finding if remedy == finding.remedy else replace(finding, remedy=remedy)


Body = Mapping[str, Any]


def check_placement(
    clusters: Sequence[Mapping[str, Body]], path: str, today: date
) -> Iterator[Finding]:
    """Report the groups that do not fit, as advice unless a level says otherwise.

    Args:
        clusters: The objects of each provider, by URN. An inventory describes one cluster.
        path: The file of the inventory.
        today: The day on which the age of the inventory counts.
    """
    # Imported here, because most stacks have no inventory.
    from kthena_components.placement.answer import answer, ask  # noqa: PLC0415
    from kthena_components.placement.inventory import InventoryError, read_inventory  # noqa: PLC0415
    from kthena_components.placement.place import FITTED, stale, unplaced  # noqa: PLC0415

    if len(clusters) > 1:
        yield _not_placed("the objects have several providers, and an inventory is of one cluster")
        return
    try:
        cluster = read_inventory([path])
    except InventoryError as error:
        yield _not_placed("; ".join(reason.rstrip(".") for reason in error.reasons))
        return
    bodies = [body for objects in clusters for body in objects.values()]
    for outcome in answer(ask(cluster, bodies)):
        if outcome.verdict not in FITTED:
            yield unplaced(outcome, cluster, Level.ADVISORY)
    yield from stale(cluster, today)


def _not_placed(because: str) -> Finding:
    from kthena_components.placement.place import RULE  # noqa: PLC0415

    return Finding(path="", seen=f"not checked, because {because}", rule=RULE, level=Level.UNKNOWN)


# Checks single resources, and keeps what the rules over all objects of a stack need of them.


KUBERNETES = "kubernetes"
COMPONENTS = frozenset(f"kthena:index:{name}" for name in ("ModelServing", "ServingGroup", "Role"))
"""Components that register their sizes as rows (core/plan/report.py)."""
_MADE_OF_OTHERS = tuple(
    f"{KUBERNETES}:{name}" for name in ("yaml", "kustomize", "helm.sh/v3:Chart", "helm.sh/v4:Chart")
)
"""Types whose objects are separate resources; each is checked."""


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
    """Return whether a type has rules, or is unknown and may make pods.

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
        asked: Names of the rules about production that the levels enable.
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
