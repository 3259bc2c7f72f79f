"""Checks engines whose head and workers are objects of their own by the rules for them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.checker.engine_parts import COMPARED, PORTS
from kthena_components.checker.gang_covers_parts import gang_covers_parts
from kthena_components.checker.kv_halves_of_parts import kv_halves_of_parts
from kthena_components.checker.leader_alone import leader_alone
from kthena_components.checker.leader_published import leader_published
from kthena_components.checker.leader_selected import changes_port, leader_selected
from kthena_components.checker.leaders_apart import leaders_apart
from kthena_components.checker.pod_ranks_of_parts import pod_ranks_of_parts
from kthena_components.core.facts.split_engines import EnginePart
from kthena_components.core.facts.split_joins import join_engines
from kthena_components.core.facts.split_objects import SplitObjects
from kthena_components.core.findings import Finding, Level, run_rule
from kthena_components.core.rules.registry import run_checks


def check_parts(
    parts: Sequence[EnginePart],
    named: Mapping[str, Mapping[str, Any]],
    *,
    complete: bool,
    files: Mapping[str, str],
) -> Iterator[Finding]:
    """Yield what the rules about the pods of an engine say of several objects together.

    Args:
        parts: The parts of engines among the objects.
        named: All objects of the cluster, by their paths.
        complete: Whether the cluster has no other objects.
        files: The file of each object, by its path; one file if left out.
    """
    objects = SplitObjects(parts, named, complete=complete, files=files)
    yield from run_rule(leader_selected, objects)
    yield from run_rule(leader_published, objects)
    yield from run_rule(leader_alone, objects) if complete else ()
    yield from run_rule(leaders_apart, objects)
    yield from run_rule(gang_covers_parts, objects)
    yield from run_rule(pod_ranks_of_parts, objects)
    yield from run_rule(kv_halves_of_parts, objects)
    first = {part.pod.command_path: part for part in reversed(parts)}
    told: set[Finding] = set()
    for facts in join_engines(objects):
        for finding in run_checks(facts):
            is_new = finding.rule in COMPARED and finding not in told
            asking = first.get(finding.path) if finding.rule == PORTS else None
            mapped = asking is not None and changes_port(objects, asking)
            if is_new and finding.level is not Level.UNKNOWN and not mapped:
                told.add(finding)
                yield finding
