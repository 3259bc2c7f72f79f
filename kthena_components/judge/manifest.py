"""From any manifest to facts and findings: what policies call. Pure, and it never raises.

What is judged, and how, each system says of its kinds: systems/contract.py.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from types import MappingProxyType
from typing import Any

from kthena_components.core.facts.context import NO_CONTEXT, Context, stated_shape
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.totals import GpuDemand, gpu_demand
from kthena_components.core.findings import (
    READING,
    RULE_FAULT,
    Finding,
    fault,
    judged,
    once_each,
    rule_name,
    tidy,
)
from kthena_components.core.models import ModelShape
from kthena_components.core.objects.object import Object, read_object
from kthena_components.core.objects.reduction import kept_name, reduced
from kthena_components.core.rules.serving import CHECKS, run_checks
from kthena_components.core.values.read import group_kind
from kthena_components.core.values.unknown import Unknown
from kthena_components.judge.catalogue import stack_rule_names
from kthena_components.judge.crd_schema import crd_schema, once_a_place
from kthena_components.judge.pod_schema import pod_schema
from kthena_components.judge.waivers import RULE as WAIVER
from kthena_components.judge.waivers import annotated, waive
from kthena_components.systems import find_kind
from kthena_components.systems.contract import Body, Kind
from kthena_components.systems.native.facts import read_part


def read_manifest(
    body: Body, path: str = "", *, context: Context = NO_CONTEXT
) -> ServingFacts | None:
    """Read the facts of a manifest of any kind that is known; None for the others.

    Args:
        body: The object as it would be applied.
        path: Where it stands in the caller's input; a prefix of every path.
        context: What is known beside it: ConfigMaps, and shapes of models.
    """
    kind = find_kind(group_kind(body))
    if kind is None or kind.facts is None:
        return None
    found = read_object(body, path, context)
    return _facts(kind, found, kind.view(found))


def _facts(kind: Kind[Any], found: Object, view: Any) -> ServingFacts | None:
    """Read the facts of an object, with the shape of its model where that is stated beside it."""
    facts = kind.facts(view) if kind.facts is not None else None
    shape, context = stated_shape(found.body.get("metadata")), found.context
    if facts is None or (shape is None and not context.shapes):
        return facts
    return replace(facts, engines=tuple(_shaped(e, shape, context) for e in facts.engines))


def _shaped(
    engine: EngineFacts, shape: ModelShape | Unknown | None, context: Context
) -> EngineFacts:
    """Add the shape of its model to an engine that has no pod template to say it."""
    entry, command = engine.entry, engine.entry.command
    if shape is None and command is not None and isinstance(command.model, str):
        shape = context.shapes.get(command.model.casefold())
    if shape is None or entry.shape is not None:
        return engine
    return replace(engine, entry=replace(entry, shape=shape))


def has_rules(body: Body) -> bool:
    """Tell by its group and kind whether there are rules for a manifest."""
    kind = find_kind(group_kind(body))
    return kind is not None and kind.is_judged


def is_compared(body: Body) -> bool:
    """Tell by its group and kind whether the rules for a whole stack look at a manifest."""
    kind = find_kind(group_kind(body))
    return kind is not None and kind.kept is not None


def reduce_object(body: Body) -> Body:
    """Give a small copy of an object that is compared, for the rules over a stack."""
    kind = find_kind(group_kind(body))
    return reduced(body, kind.kept if kind and kind.kept else kept_name)


def judge_manifest(
    body: Body,
    path: str = "",
    *,
    context: Context = NO_CONTEXT,
    today: date | None = None,
    versions: Mapping[str, str] = MappingProxyType({}),
) -> list[Finding]:
    """Judge one manifest by every rule that applies to its kind. Unknown kinds give nothing.

    Args:
        body: The object as it would be applied.
        path: Where it stands in the caller's input; a prefix of every path.
        context: What is known beside it: ConfigMaps, and shapes of models.
        today: The day by which its waivers are judged; none is heeded if left out.
        versions: The releases that the cluster runs, by system: `{"kthena": "0.4"}`. The newest
            that is known where it is left out.
    """
    return judge_and_count(body, path, context, today, versions)[0]


def judge_and_count(
    body: Body,
    path: str = "",
    context: Context = NO_CONTEXT,
    today: date | None = None,
    versions: Mapping[str, str] = MappingProxyType({}),
) -> tuple[list[Finding], GpuDemand | None]:
    """Judge one manifest, and count the accelerators of pods that do not stand in it."""
    kind = find_kind(group_kind(body))
    if kind is None or not kind.is_judged:
        return [], None
    if versions:
        context = replace(context, versions={**context.versions, **versions})
    found = read_object(body, path, context)
    try:
        view = kind.view(found)
    except Exception as error:  # noqa: BLE001 - pod templates are judged all the same
        return _waived(_schema(kind, found, [fault(READING, error)]), body, path, today), None
    findings, demand = list[Finding](), None
    try:
        facts = _facts(kind, found, view)
        findings = run_checks(facts) if facts is not None else []
        demand = _demand(kind, view, facts)
    except Exception as error:  # noqa: BLE001 - the rules of its kind may read it all the same
        findings.append(fault(READING, error))
    findings += [finding.under(path) for finding in _own(kind, view)]
    return _waived(_schema(kind, found, findings), body, path, today), demand


def _own(kind: Kind[Any], view: Any) -> list[Finding]:
    """Judge an object by the rules of its system, in its own coordinates."""
    judge = (finding for rule in kind.rules for finding in judged(rule, view))
    return [tidy(finding) for finding in once_each(judge)]


def _schema(kind: Kind[Any], found: Object, findings: list[Finding]) -> list[Finding]:
    """Add what the schemas of its pods and of its CRD say, as far as no rule speaks of a place."""
    pods = judged(pod_schema, found.body, kind.templates)
    findings += [finding.under(found.path) for finding in pods]
    crd = (tidy(finding).under(found.path) for finding in judged(crd_schema, found))
    return once_a_place(crd, findings)


def _demand(kind: Kind[Any], view: Any, facts: ServingFacts | None) -> GpuDemand | None:
    """Count the accelerators of pods whose templates do not stand in an object."""
    if kind.kept is None:
        return None
    if kind.demand is not None:
        return kind.demand(view)
    return None if facts is None or kind.pods is not None else gpu_demand(facts)


def _waived(findings: list[Finding], body: Body, path: str, today: date | None) -> list[Finding]:
    """Heed an object's waivers, and tell each fault once, in the object where it came up."""
    try:
        stated = () if today is None else annotated(body, path)
        if today is not None and stated:
            findings = waive(findings, stated, today, elsewhere=judged_elsewhere(body))
    except Exception as error:  # noqa: BLE001 - what was found stands without them
        findings.append(fault(f"the rule {WAIVER}", error))
    if any(finding.rule == RULE_FAULT for finding in findings):
        placed = (f if f.path or f.rule != RULE_FAULT else f.under(path) for f in findings)
        findings = list(dict.fromkeys(placed))
    return findings


def judged_elsewhere(body: Body) -> frozenset[str]:
    """Give the rules that judge an object together with others (judge/stack.py) too."""
    shared = map(rule_name, CHECKS) if read_part(body) is not None else ()
    return stack_rule_names().union(shared)


def read_demand(body: Body, context: Context = NO_CONTEXT) -> GpuDemand | None:
    """Count the accelerators of an object whose pods do not stand in it as templates."""
    kind = find_kind(group_kind(body))
    if kind is None or (kind.demand is None and (kind.facts is None or kind.pods is not None)):
        return None
    view = kind.view(found := read_object(body, context=context))
    return _demand(kind, view, _facts(kind, found, view))
