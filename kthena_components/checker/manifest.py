"""Checks any manifest: reads facts and returns findings. Pure, and never raises.

Each system declares the rules of its kinds: systems/system.py.
"""

from collections.abc import Collection, Mapping
from dataclasses import field
from datetime import date
from functools import partial
from types import MappingProxyType
from typing import Any

from kthena_components.checker.crd_schema import crd_schema, like_release, once_a_place
from kthena_components.checker.installed_releases import by_installed
from kthena_components.checker.members import coscheduled, ports_in, rules_over_parts, with_pods
from kthena_components.checker.object_name_version_config_map import OF_KUBERNETES
from kthena_components.checker.pod_schema import check_templates, follow_moves
from kthena_components.checker.unread_kinds_and_parts import PART_READ, kind_read, part_read
from kthena_components.checker.waivers import RULE as WAIVER
from kthena_components.checker.waivers import annotated, waive
from kthena_components.core import naming
from kthena_components.core.facts.context import NO_CONTEXT, Context, stated_shape
from kthena_components.core.facts.serving import EngineFacts, GpuDemand, ServingFacts, gpu_demand
from kthena_components.core.findings import (
    READING,
    RULE_FAULT,
    Finding,
    checked_by,
    fault,
    once_each,
    rule_name,
    run_rule,
    tidy,
)
from kthena_components.core.models import ModelShape
from kthena_components.core.objects.cluster_objects import Ports
from kthena_components.core.objects.engine_containers import review
from kthena_components.core.objects.object import Object, read_object
from kthena_components.core.objects.retained_fields import kept_name, reduced
from kthena_components.core.rules.production import PRODUCTION, PRODUCTION_NAMES
from kthena_components.core.rules.registry import CHECKS, run_checks
from kthena_components.core.values.dataclass import dataclass, replace
from kthena_components.core.values.read import group_kind, unknown_within
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems import LABEL_OWNERS, LABELS_BY_FIELD, find_kind
from kthena_components.systems.native.facts import is_part
from kthena_components.systems.system import PRODUCTION as ALL_PRODUCTION
from kthena_components.systems.system import Body, Kind

_OWN_GROUPS = frozenset({"", "apps", "batch"})
"""API groups of Kubernetes, whose controllers add no variables but those of `pod_variables`."""


def read_manifest(
    body: Body, path: str = "", *, context: Context = NO_CONTEXT
) -> ServingFacts | None:
    """Read the facts of a manifest of a known kind; None for others.

    Args:
        path: Its path in the caller's input; a prefix of every path.
        context: Its context: ConfigMaps, and shapes of models.
    """
    kind = find_kind(group_kind(body))
    if kind is None or kind.facts is None:
        return None
    return _facts(kind, found := read_object(body, path, context), kind.view(found))


def _facts(kind: Kind[Any], found: Object, view: Any) -> ServingFacts | None:
    """Read the facts of an object, with the shape of its model if the context states it."""
    facts = kind.facts(view) if kind.facts is not None else None
    shape, context = stated_shape(found.body.get("metadata")), found.context
    if facts is None:
        return None
    as_stated = bool(kind.templates or kind.own_templates) and not kind.brings_model
    facts = replace(
        facts,
        controller_env=_variables_of_controller(kind, view),
        added_fields=_added_fields(kind, view),
        pods_as_stated=as_stated,
        label_owners=LABEL_OWNERS,
        labels_by_field=LABELS_BY_FIELD,
        gpu_option=context.gpu_option,
    )
    facts = with_pods(kind, found, view, facts)
    engines = whole = facts.engines
    if context.gpus:
        engines = tuple(_on_named_gpu(engine, context) for engine in engines)
    if shape is not None or context.shapes:
        engines = tuple(_shaped(engine, shape, context) for engine in engines)
    return facts if engines is whole else replace(facts, engines=engines)


def _variables_of_controller(kind: Kind[Any], view: Any) -> tuple[str, ...] | None:
    """Return the variables that a kind's controller gives to pods; None if they are not known."""
    if kind.pod_variables is None:
        return () if kind.group in _OWN_GROUPS else None
    variables = kind.pod_variables(view)
    every = (
        *variables.size,
        *variables.leader,
        *variables.rank,
        *variables.ordinal,
        *variables.others,
    )
    return every if variables.exactly is None else variables.exactly


def _added_fields(kind: Kind[Any], view: Any) -> frozenset[str] | None:
    """Return the labels and annotations that a kind's controller adds; None if not known."""
    added = [pods.added for pods in kind.pods(view)] if kind.pods is not None else [None]
    if kind.added_fields is None and (not added or None in added):
        return None
    stated = kind.added_fields(view) if kind.added_fields is not None else ()
    if stated is None:
        return None
    labels = (naming.label_field(key) for keys in added for key in keys or ())
    return frozenset((*stated, *labels))


def _shaped(
    engine: EngineFacts, shape: ModelShape | Unknown | None, context: Context
) -> EngineFacts:
    """Add the model's shape to an engine without a pod template."""
    entry, command = engine.entry, engine.entry.command
    if shape is None and command is not None and isinstance(command.model, str):
        shape = context.shapes.get(command.model.casefold())
    if shape is None or entry.shape is not None:
        return engine
    return replace(engine, entry=replace(entry, shape=shape))


def _on_named_gpu(engine: EngineFacts, context: Context) -> EngineFacts:
    """Add the GPU that the user names to an engine without a pod template."""
    entry = engine.entry
    if entry.gpu is not None or entry.on_cpus is not False:
        return engine
    gpu = context.gpus.of({}, entry.accelerators)
    return replace(engine, entry=replace(entry, gpu=gpu))


def has_rules(body: Body) -> bool:
    """Return whether there are rules for a manifest's group and kind."""
    kind = find_kind(group_kind(body))
    return kind is not None and kind.is_checked


def is_compared(body: Body) -> bool:
    """Return whether the rules over all objects of a cluster read a manifest's group and kind."""
    kind = find_kind(group_kind(body))
    return kind is not None and kind.kept is not None


def reduce_object(body: Body, found: Object | None = None) -> Body:
    """Return a small copy of an object for the rules over all objects of a cluster.

    Args:
        found: The object as it was read for its check, so that it is not read again.
    """
    kind = find_kind(group_kind(body))
    kept = reduced(body, kind.kept if kind and kind.kept else kept_name)
    if kind is not None and kind.kept_beside is not None and isinstance(kept.get("spec"), dict):
        kept["spec"] |= kind.kept_beside(read_object(body) if found is None else found)
    return kept


def check_manifest(
    body: Body,
    path: str = "",
    *,
    context: Context = NO_CONTEXT,
    today: date | None = None,
    versions: Mapping[str, str] = MappingProxyType({}),
    asked: Collection[str] = (),
) -> list[Finding]:
    """Check one manifest by every rule that applies to its kind.

    An object of an unknown kind that seems to run an engine gets one finding: no rule reads it
    (kind-read).

    Args:
        path: Its path in the caller's input; a prefix of every path.
        context: Its context: ConfigMaps, and shapes of models.
        today: The day on which its waivers are checked; without it, all are ignored.
        versions: The releases that the cluster runs, by system, as in `{"kthena": "0.4"}`; the
            newest that is known if left out.
        asked: Names of the rules about production that the levels enable.
    """
    return check_whole(body, path, context, today, versions, asked=asked).findings


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedObject:
    """What one object gives: its findings, and what the rules over all objects need of it."""

    findings: list[Finding]
    found: Object | None = None
    """The object itself, if its kind has rules."""
    facts: ServingFacts | None = None
    demand: GpuDemand | None = None
    """Accelerators of pods without templates in it."""
    ports: Ports = field(default_factory=dict)


def check_whole(
    body: Body,
    path: str = "",
    context: Context = NO_CONTEXT,
    today: date | None = None,
    versions: Mapping[str, str] = MappingProxyType({}),
    *,
    asked: Collection[str] = (),
) -> CheckedObject:
    """Check one manifest, and read what the rules over all objects need."""
    if versions:
        context = replace(context, versions={**context.versions, **versions})
    check = partial(by_installed, partial(_check, path=path, today=today, asked=asked), context)
    checked = check(body)
    found = follow_moves(checked.findings, body, lambda given: check(given).findings)
    return checked if found is checked.findings else replace(checked, findings=found)


def _check(
    body: Body, path: str, context: Context, today: date | None, asked: Collection[str]
) -> CheckedObject:
    """Read and check one object; what fails hides no other finding."""
    kind = find_kind(group_kind(body))
    waived = partial(_waived, body=body, path=path, today=today, asked=asked)
    if kind is None or not kind.is_checked:
        named = _name_findings(found := read_object(body, path))
        named = named if kind is None else _schema(kind, found, named)
        named = waived(named) if named else []
        findings = _unread(body, path) + [each for each in named if each.rule != WAIVER]
        return CheckedObject(findings=findings)
    context = like_release(group_kind(body), context)
    found = read_object(body, path, context)
    try:
        view = kind.view(found)
    except Exception as error:  # noqa: BLE001 - pod templates are checked nevertheless
        return CheckedObject(findings=waived(_schema(kind, found, [fault(READING, error)])))
    findings, facts, demand = list[Finding](), None, None
    ports: Ports = {}
    try:
        facts = _facts(kind, found, view)
        findings = run_checks(coscheduled(kind, view, facts)) if facts is not None else []
        findings += _production(kind, found, view, facts, asked)
        demand = _demand(kind, view, facts)
        ports = _ports(kind, view, facts)
    except Exception as error:  # noqa: BLE001 - the rules of its kind may read it nevertheless
        findings.append(fault(READING, error))
    findings += [finding.under(path) for finding in _own(kind, view)] + _name_findings(found)
    findings = _schema(kind, found, findings)
    said = tuple(findings)
    findings += map(tidy, run_rule(part_read, kind, found, view, facts, said, name=PART_READ))
    return CheckedObject(
        findings=waived(findings), found=found, facts=facts, demand=demand, ports=ports
    )


def _name_findings(found: Object) -> list[Finding]:
    findings = (each for rule in OF_KUBERNETES for each in run_rule(rule, found))
    return [tidy(finding).under(found.path) for finding in findings]


def _unread(body: Body, path: str) -> list[Finding]:
    """Report an object of unknown kind that seems to run an engine: no rule reads it."""
    findings = map(tidy, run_rule(kind_read, read_object(body, path)))
    return [finding.under(path) if finding.rule == RULE_FAULT else finding for finding in findings]


def _production(
    kind: Kind[Any], found: Object, view: Any, facts: ServingFacts | None, asked: Collection[str]
) -> list[Finding]:
    """Check the pods of an object by the enabled rules about production."""
    on = asked if ALL_PRODUCTION not in kind.without else ()
    rules = [
        rule for rule in PRODUCTION if rule_name(rule) in on and rule_name(rule) not in kind.without
    ]
    if not rules or facts is None or kind.pods is None:
        return []
    reviewed = review(found, facts, kind.pods(view))
    return [] if reviewed is None else [tidy(finding) for finding in checked_by(rules, reviewed)]


def _own(kind: Kind[Any], view: Any) -> list[Finding]:
    """Check an object by the rules of its system, with paths in the object."""
    return [tidy(finding) for finding in once_each(checked_by(kind.rules, view))]


def schema_findings(body: Body) -> list[Finding]:
    """Check the fields of an object of a known kind by its schema and by those of pods alone."""
    kind = find_kind(group_kind(body))
    if kind is None:
        return []
    of_pods = check_templates(body, kind)
    return [*of_pods, *(tidy(each) for each in run_rule(crd_schema, read_object(body)))]


def _schema(kind: Kind[Any], found: Object, findings: list[Finding]) -> list[Finding]:
    """Add findings of the pod schema and the CRD, unless a rule has one at the same path."""
    pods = check_templates(found.body, kind)
    findings += [finding.under(found.path) for finding in pods]
    crd = (tidy(finding).under(found.path) for finding in run_rule(crd_schema, found))
    return once_a_place(crd, findings)


def _demand(kind: Kind[Any], view: Any, facts: ServingFacts | None) -> GpuDemand | None:
    """Count the accelerators of an object's pods that have no templates in it."""
    if kind.kept is None:
        return None
    if kind.demand is not None:
        return kind.demand(view)
    return None if facts is None or kind.pods is not None else gpu_demand(facts)


def _ports(kind: Kind[Any], view: Any, facts: ServingFacts | None) -> Ports:
    of_engines = {} if kind.pods is None or facts is None else ports_in(kind.pods(view), facts)
    return of_engines if kind.listens is None else {**of_engines, **kind.listens(view)}


def _waived(
    findings: list[Finding], body: Body, path: str, today: date | None, asked: Collection[str]
) -> list[Finding]:
    """Apply an object's waivers, and report each failed rule once."""
    try:
        stated = () if today is None else annotated(body, path)
        if today is not None and stated:
            elsewhere = checked_elsewhere(body) | PRODUCTION_NAMES.difference(asked)
            if unknown_within(body):  # a rule may report something once all is known
                elsewhere |= {entry.rule for entry in stated}
            findings = waive(findings, stated, today, elsewhere=elsewhere)
    except Exception as error:  # noqa: BLE001 - the findings remain without them
        findings.append(fault(f"the rule {WAIVER}", error))
    if any(finding.rule == RULE_FAULT for finding in findings):
        placed = (f if f.path or f.rule != RULE_FAULT else f.under(path) for f in findings)
        findings = list(dict.fromkeys(placed))
    return findings


def checked_elsewhere(body: Body) -> frozenset[str]:
    """Return the rules that `checker/check_cluster_objects.py` runs over the object and others."""
    # Imported here, because it documents all rules, and few objects have waivers.
    from kthena_components.checker.catalogue import cluster_rule_names  # noqa: PLC0415

    shared = map(rule_name, CHECKS) if is_part(body) else ()
    return cluster_rule_names().union(shared, rules_over_parts(body))


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """One object of a known kind, with everything that is read from it."""

    kind: Kind[Any]
    found: Object
    view: Any
    facts: ServingFacts | None
    demand: GpuDemand | None
    """Accelerators of pods without templates in it."""


def read_whole(body: Body) -> Whole | None:
    """Read an object once; None for an unknown kind."""
    kind = find_kind(group_kind(body))
    if kind is None:
        return None
    view = kind.view(found := read_object(body))
    facts = _facts(kind, found, view)
    return Whole(kind=kind, found=found, view=view, facts=facts, demand=_demand(kind, view, facts))


def read_ports(found: Object) -> Ports:
    """Return where the pods of an object listen, by the path of their template in it."""
    kind = find_kind(found.group_kind)
    if kind is None or kind.facts is None or kind.pods is None:
        return {}
    view = kind.view(found)
    return _ports(kind, view, _facts(kind, found, view))


def read_demand(body: Body, context: Context = NO_CONTEXT) -> GpuDemand | None:
    """Count the accelerators of an object whose pods have no templates in it."""
    kind = find_kind(group_kind(body))
    if kind is None or (kind.demand is None and (kind.facts is None or kind.pods is not None)):
        return None
    view = kind.view(found := read_object(body, context=context))
    return _demand(kind, view, _facts(kind, found, view))
