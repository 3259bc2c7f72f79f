"""Checks all objects of a cluster together: engines of several objects, gangs, references. Pure.

The command line and the policies read them in their own ways, and both check `ReadObjects`. That
memory was not checked, because nothing names the GPU, is said once of all objects
(docs/decisions/0051-a-missing-gpu-is-said-by-check.md).
"""

import json
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from functools import partial
from types import MappingProxyType
from typing import Any

from kthena_components.checker.cluster_rules import (
    compare_objects,
    only_together,
    owner_of,
    without_contrary,
)
from kthena_components.checker.installed_releases import together_by_installed
from kthena_components.checker.manifest import (
    CheckedObject,
    check_manifest,
    checked_elsewhere,
    has_rules,
    read_demand,
    read_manifest,
)
from kthena_components.checker.members import read_engine_part_of
from kthena_components.checker.waivers import WaiverEntry, annotated, read_waiver, unused, waive
from kthena_components.core import naming
from kthena_components.core.facts.context import Context, Pin, ReferencedObjects, gather
from kthena_components.core.facts.serving import GpuDemand, ServingFacts
from kthena_components.core.facts.split_engines import EnginePart
from kthena_components.core.findings import READING_ALL, Finding, Level, count_of, run_rule
from kthena_components.core.hardware import NO_CHOICE, GpuChoice
from kthena_components.core.objects.cluster_objects import Ports
from kthena_components.core.objects.object import read_object
from kthena_components.core.rules.memory_weights_fraction_offload import memory_unchecked
from kthena_components.core.rules.registry import run_checks
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.core.values.regex import regex
from kthena_components.systems import COMPLETING, NAMED_BY
from kthena_components.systems.native.facts import GroupMember, is_part, join_parts, read_part

RULE = "memory-weights-fit"
_NAME_THE_GPU = (
    "Name it by resources.gpu of a role, by a node selector of the pods, by kthena-components:gpu "
    "of the stack (pulumi config set kthena-components:gpu h200), or in the policies' file of "
    'levels ("gpu": "h200" in the entries serving-rules and serving-groups)'
)


def memory_unchecked_in(
    bodies: Iterable[Mapping[str, Any]],
    gpus: GpuChoice,
    unchecked_by_index: Mapping[int, bool] = MappingProxyType({}),
) -> Iterator[Finding]:
    """Report once that engines were not compared with the memory of their GPUs.

    Args:
        bodies: The objects of a stack.
        gpus: The GPUs of pods whose manifests name none.
        unchecked_by_index: What `is_memory_unchecked` returned for some of the objects.
    """
    owners: set[str] = set()
    for index, body in enumerate(bodies):
        owner = _owner(body)
        if owner in owners:
            continue
        unchecked = unchecked_by_index.get(index)
        if unchecked is None:
            unchecked = is_memory_unchecked(read_manifest(body, context=Context(gpus=gpus)))
        if unchecked:
            owners.add(owner)
    if owners:
        # Pulumi hands over resources in the order in which they come.
        first, others = min(owners), len(owners) - 1
        more = f" and {count_of(others, 'other')}" if others else ""
        seen = f"memory of {first}{more} was not checked, because nothing names the GPU"
        yield Finding(path="", seen=seen, remedy=_NAME_THE_GPU, rule=RULE, level=Level.UNKNOWN)


def is_memory_unchecked(facts: ServingFacts | None) -> bool:
    """Return whether an engine was not compared with memory, because nothing names its GPU."""
    return facts is not None and any(memory_unchecked(replace(facts, gpu_option=RULE)))


def _owner(body: Mapping[str, Any]) -> str:
    """Return the serving of an object, or the object."""
    metadata = mapping(body.get("metadata"))
    serving = mapping(metadata.get("labels")).get(naming.NAME)
    name = f"{metadata.get('namespace') or 'default'}/{serving or metadata.get('name')}"
    return f"serving {name}" if serving else f"{body.get('kind')} {name}"


Bodies = Mapping[str, Mapping[str, Any]]
"""Objects of one cluster by the caller's name for them, a prefix of every path."""
_REFERS = regex(r'"configMap|"inference"|"runtimeConfig"|"runtime"|"resourceClaim')
"""Strings in an object that may refer to a ConfigMap, a runtime or a resource claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """The options for all objects together."""

    whole: bool = False
    """Whether these are all objects of one cluster, so that missing objects are reported."""
    budget: int | None = None
    gpu_types: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    """Releases that the cluster runs, by system."""
    pins: Mapping[str, Sequence[Pin]] = field(default_factory=dict)
    """Releases that files install, by system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadObjects:
    """What the rules need of the objects of one cluster. Each part is read when it is used."""

    bodies: Sequence[Mapping[str, Any]]
    paths: Sequence[str]
    members: Iterable[GroupMember]
    """Their parts of ServingGroups of the native backend."""
    engine_parts: Iterable[EnginePart]
    """Their parts of engines of several objects."""
    held: Iterable[tuple[int, GpuDemand]]
    """GPUs of objects without pod templates, by index."""
    sources: Sequence[str] = ()
    """Their files; one if left out."""
    ports: Mapping[int, Ports] | None = None
    """Where their pods listen, by index; read from the objects that are not in it."""


def check_engines(objects: ReadObjects, *, complete: bool = False) -> list[Finding]:
    """Check engines of several objects."""
    return list(run_rule(_check_engines, objects, complete, name=READING_ALL))


def _check_engines(objects: ReadObjects, complete: bool) -> Iterator[Finding]:
    for facts in join_parts(objects.members):
        yield from run_checks(facts)
    parts, named = [*objects.engine_parts], dict(zip(objects.paths, objects.bodies, strict=False))
    files = dict(zip(objects.paths, objects.sources, strict=False))
    yield from check_split_engines(parts, named, complete=complete, files=files)


def check_split_engines(
    parts: Sequence[EnginePart],
    named: Bodies,
    *,
    complete: bool = False,
    files: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Finding]:
    """Check engines whose pods are in several objects by the rules about an engine's pods."""
    if not parts:
        return
    # Imported here, because few objects have a part of an engine.
    from kthena_components.checker.split_engines import check_parts  # noqa: PLC0415

    yield from check_parts(parts, named, complete=complete, files=files)


def compare(objects: ReadObjects, asked: StackOptions) -> list[Finding]:
    """Check the objects by the rules that compare all objects of a cluster."""
    return list(run_rule(_compare, objects, asked, name=READING_ALL))


def _compare(objects: ReadObjects, asked: StackOptions) -> list[Finding]:
    """Compare the objects under each set of installed releases, and join the findings."""
    held = dict(objects.held)

    def compared(versions: Mapping[str, str]) -> list[Finding]:
        """Compare the objects under one set of installed releases."""
        return compare_objects(
            objects.bodies,
            objects.paths,
            held=held,
            budget=asked.budget,
            gpu_types=asked.gpu_types,
            complete=asked.whole,
            sources=objects.sources,
            ports=objects.ports,
            versions=versions,
        )

    return together_by_installed(compared, asked.versions, asked.pins)


def check_objects_together(
    bodies: Bodies,
    today: date | None = None,
    *,
    budget: int | None = None,
    gpu_types: Sequence[str] = (),
    versions: Mapping[str, str] = MappingProxyType({}),
    gpus: GpuChoice = NO_CHOICE,
    checked: Mapping[str, CheckedObject] = MappingProxyType({}),
) -> list[Finding]:
    """Check objects of one cluster by the rules that need several objects.

    Findings of single objects are not repeated. The path of a finding starts with the name of the
    object to change, and its waivers apply.

    Args:
        bodies: The objects. Pods of a gang may be missing, such as those of another stack.
        today: The day on which waivers are checked; without it, all are ignored.
        budget: Maximum accelerators that they may request; no limit if left out.
        gpu_types: Resources and products of accelerators that they may request; any if left out.
        versions: The releases that the cluster runs, by system; the newest if left out.
        gpus: The GPUs of pods whose manifests name none.
        checked: What checks of single objects gave, by name, with the same versions and GPUs. The
            other objects are read again.
    """
    beside = ReferencedObjects(COMPLETING, NAMED_BY)
    for body in bodies.values():
        beside.add(body)
    maps, named = gather(bodies.values()), Context(gpus=gpus)
    context = replace(named, config_maps=maps, referenced=beside, versions=versions)
    referring = {*_referring(bodies, context)}
    alone = {name: one for name, one in checked.items() if name not in referring}
    objects = _read(bodies, context, alone)
    findings = check_engines(objects)
    findings += compare(
        objects, StackOptions(budget=budget, gpu_types=gpu_types, versions=versions)
    )
    findings += run_rule(_completed, bodies, referring, context, name=READING_ALL)
    check = partial(check_manifest, versions=versions, context=named)
    findings = _of_several(without_contrary(findings, bodies), bodies, checked, check)
    stated = {name: found for name, body in bodies.items() if (found := annotated(body, name))}
    return findings if today is None or not stated else _waived(findings, bodies, stated, today)


def _of_several(
    findings: list[Finding],
    bodies: Bodies,
    checked: Mapping[str, CheckedObject],
    check: Callable[[Mapping[str, Any]], list[Finding]],
) -> list[Finding]:
    """Leave out findings that were already reported about a single object."""
    together = only_together()
    if all(finding.rule in together for finding in findings):
        return findings
    said = {
        (finding.rule, finding.seen)
        for name, body in bodies.items()
        for finding in (checked[name].findings if name in checked else check(body))
    }
    return [finding for finding in findings if (finding.rule, finding.seen) not in said]


def _read(bodies: Bodies, context: Context, checked: Mapping[str, CheckedObject]) -> ReadObjects:
    """Read each object's pods and parts of engines; checked objects are not read again."""
    members = (
        read_part(read_object(body, name, context), name)
        for name, body in bodies.items()
        if is_part(mapping(body))
    )
    parts = (read_engine_part_of(body, name, context) for name, body in bodies.items())
    held = (
        (i, checked[name].demand if name in checked else read_demand(body, context))
        for i, (name, body) in enumerate(bodies.items())
    )
    return ReadObjects(
        bodies=[*bodies.values()],
        paths=[*bodies],
        members=(one for one in members if one is not None),
        engine_parts=(one for one in parts if one is not None),
        held=((i, demand) for i, demand in held if demand),
        ports={i: checked[name].ports for i, name in enumerate(bodies) if name in checked},
    )


def _referring(bodies: Bodies, context: Context) -> Iterator[str]:
    """Return the names of the objects that may refer to others, if there are such others."""
    for name, body in bodies.items() if context.config_maps or context.referenced else ():
        if _refers(body):
            yield name


def _refers(body: Mapping[str, Any]) -> bool:
    try:
        text = json.dumps(body, default=str, skipkeys=True)
    except (ValueError, RecursionError):  # nested too deep, or in itself
        return True
    return bool(_REFERS.search(text))


def _completed(bodies: Bodies, names: Container[str], context: Context) -> Iterator[Finding]:
    """Check the objects that refer to others again, together with these."""
    for name, body in bodies.items():
        if name in names:
            yield from check_manifest(body, name, context=context)


def _waived(
    findings: list[Finding],
    bodies: Bodies,
    stated: Mapping[str, tuple[WaiverEntry, ...]],
    today: date,
) -> list[Finding]:
    """Apply the waivers of each finding's object, and report unused waivers."""
    waived: list[Finding] = []
    used: set[tuple[str, str]] = set()
    by_rule: dict[tuple[str, str], list[WaiverEntry]] = {}
    for name, entries in stated.items():
        for entry in entries:
            by_rule.setdefault((name, entry.rule), []).append(entry)
    for finding in findings:
        heeded = by_rule.get((owner_of(finding, stated), finding.rule), [])
        used.update(map(_key, heeded))
        # The policy for single objects checks waivers.
        waived += [f for f in waive([finding], heeded, today) if f.rule == finding.rule]
    for name, entries in stated.items():
        waived += _invalid_waivers(bodies[name], entries, used, today)
    return waived


def _invalid_waivers(
    body: Mapping[str, Any],
    entries: tuple[WaiverEntry, ...],
    used: Collection[tuple[str, str]],
    today: date,
) -> Iterable[Finding]:
    """Report invalid waivers that the check of the single object leaves out.

    The objects of one component have the same waivers, so a waiver that one of them uses is not
    reported in the others.
    """
    shared = checked_elsewhere(body)
    alone: frozenset[str] | None = None
    for entry in entries:
        read = read_waiver(entry, today)
        if isinstance(read, Finding):
            if not has_rules(body):
                yield read
        elif entry.rule in shared or not has_rules(body):
            if alone is None:
                alone = frozenset(finding.rule for finding in check_manifest(body))
            if entry.rule not in alone and _key(entry) not in used:
                yield unused(entry)


def _key(entry: WaiverEntry) -> tuple[str, str]:
    return entry.rule, entry.text if isinstance(entry.text, str) else ""
