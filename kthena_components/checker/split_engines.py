"""Checks engines whose head and workers are objects of their own, as within one object."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.checker.leader_selected import leader_selected
from kthena_components.core.facts.split_engines import EnginePart, join_engines
from kthena_components.core.findings import Finding, Level, run_rule
from kthena_components.core.rules.registry import run_checks

_COMPARED = frozenset(
    {
        "leader-worker-same-gpus",
        "leader-worker-same-parallelism",
        "nnodes-equals-group",
        "ray-cluster-size-equals-group",
        "world-size-equals-gpus",
    }
)
"""The rules that compare the pods of an engine. The others were run for each object."""


def check_split_engines(
    parts: Sequence[EnginePart], bodies: Iterable[Mapping[str, Any]]
) -> Iterator[Finding]:
    """Yield what the rules about the pods of an engine say of several objects together."""
    told: set[Finding] = set()
    bodies = [*bodies]
    yield from run_rule(leader_selected, parts, bodies)
    for facts in join_engines(parts, bodies):
        for finding in run_checks(facts):
            is_new = finding.rule in _COMPARED and finding not in told
            if is_new and finding.level is not Level.UNKNOWN:
                told.add(finding)
                yield finding
