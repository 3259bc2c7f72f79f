"""Checks engines whose head and workers are objects of their own by the rules for them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.checker.engine_parts import COMPARED, PORTS
from kthena_components.checker.gang_covers_parts import gang_covers_parts
from kthena_components.checker.kv_halves_of_parts import kv_halves_of_parts
from kthena_components.checker.leader_alone import leader_alone
from kthena_components.checker.leader_published import leader_published
from kthena_components.checker.leader_selected import changes_port, leader_selected
from kthena_components.checker.pod_ranks_of_parts import pod_ranks_of_parts
from kthena_components.core.facts.split_engines import EnginePart, join_engines
from kthena_components.core.findings import Finding, Level, run_rule
from kthena_components.core.rules.registry import run_checks


def check_parts(
    parts: Sequence[EnginePart], named: Mapping[str, Mapping[str, Any]], *, complete: bool
) -> Iterator[Finding]:
    """Yield what the rules about the pods of an engine say of several objects together.

    Args:
        parts: The parts of engines among the objects.
        named: All objects of the cluster, by their paths.
        complete: Whether the cluster has no other objects.
    """
    bodies = [*named.values()]
    yield from run_rule(leader_selected, parts, bodies, complete=complete)
    yield from run_rule(leader_published, parts, named)
    yield from run_rule(leader_alone, parts, bodies) if complete else ()
    yield from run_rule(gang_covers_parts, parts, named)
    yield from run_rule(pod_ranks_of_parts, parts, bodies)
    yield from run_rule(kv_halves_of_parts, parts, bodies)
    told: set[Finding] = set()
    for facts in join_engines(parts, bodies):
        for finding in run_checks(facts):
            is_new = finding.rule in COMPARED and finding not in told
            mapped = finding.rule == PORTS and changes_port(finding.path, parts, bodies)
            if is_new and finding.level is not Level.UNKNOWN and not mapped:
                told.add(finding)
                yield finding
