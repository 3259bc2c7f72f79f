"""Compares our rules with the real API server and webhooks on random objects."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from conformance.__main__ import Context
from conformance.kubernetes import limit_ranges, object_names, own_fields, pod_values, yaml_scalars
from conformance.report import Part
from conformance.support.waiting import wait
from conformance.validation import published_crds
from conformance.validation.cases import KINDS, Kind, ours, theirs, wrong_pods
from conformance.validation.deliberate_differences import (
    SANDBOX,
    STRICT,
    Differences,
    Stricter,
    admission,
    may_differ,
)
from conformance.validation.shrink import shrink
from conformance.volcano import queue_hierarchies
from conformance.volcano.random_objects import PARENT
from kthena_components.cluster.client import Cluster
from kthena_components.core.findings import Finding
from kthena_components.core.schema.pod import TABLE
from sandbox.pod_fields import read_fields

_THREADS = 3
_SHRUNK = 5
"""Number of disagreements per kind to shrink. The others are only listed by their number."""
Body = dict[str, Any]


@dataclass(slots=True)
class Tally:
    """The results of many tries."""

    verdicts: Counter[str] = field(default_factory=Counter)
    rules: Counter[str] = field(default_factory=Counter)
    """How often a rule and the cluster both rejected an object."""
    alone: Counter[str] = field(default_factory=Counter)
    """The same, without findings of other rules."""
    deliberate: Counter[Stricter] = field(default_factory=Counter)
    """How often each deliberate difference occurred."""
    differ: list[int] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Add another tally."""
        self.verdicts.update(other.verdicts)
        self.rules.update(other.rules)
        self.alone.update(other.alone)
        self.deliberate.update(other.deliberate)
        self.differ += other.differ


def run(context: Context) -> None:
    """Check all objects, and compare the verdicts."""
    number = max(context.many(published_crds.NUMBER), published_crds.LEAST)
    published_crds.compare_tables(context.part, context.folder / "bare", context.seed, number)
    sandbox = context.sandbox()
    try:
        _check_table(context.part, sandbox.api)
        sandbox.api.create(PARENT)
        _wait_for_parent(sandbox.api)
        check_reach(context, KINDS, compare(context, KINDS, sandbox.layout.programs))
        number = max(context.many(queue_hierarchies.NUMBER), queue_hierarchies.LEAST)
        queue_hierarchies.compare_families(context.part, sandbox.api, context.seed, number)
        number = max(context.many(yaml_scalars.NUMBER), yaml_scalars.LEAST)
        yaml_scalars.compare_scalars(context.part, sandbox.api, context.seed, number)
        number = max(context.many(pod_values.NUMBER), pod_values.LEAST)
        pod_values.compare_values(context.part, sandbox.api, context.seed, number)
        number = max(context.many(limit_ranges.NUMBER), limit_ranges.LEAST)
        limit_ranges.compare_limits(context.part, sandbox.api, context.seed, number)
        object_names.compare_names(context.part, sandbox.api)
        own_fields.compare_fields(context.part, sandbox.api)
        own_fields.compare_limits(context.part, sandbox.api)
        own_fields.compare_together(context.part, sandbox.api)
    finally:
        sandbox.processes.stop_all()


def compare(context: Context, kinds: Iterable[Kind], kubeconfig: Path) -> Tally:
    """Compare the verdicts on objects of some kinds, and report each disagreement."""
    total = Tally()
    for kind in kinds:
        total.add(_compare(context, kind, kubeconfig))
    return total


def _check_table(part: Part, api: Cluster) -> None:
    stated = json.loads(TABLE.read_text())
    seen = read_fields(api)
    differ = sorted(k for k in stated.keys() | seen.keys() if stated.get(k) != seen.get(k))
    part.check("the fields of pods are those of the API server", holds=not differ, seen=differ)


def _wait_for_parent(api: Cluster) -> None:
    if not wait(lambda: (api.get(PARENT).get("status") or {}).get("state") == "Open"):
        raise TimeoutError("the Queue 'everything' is not open: see vc-controller-manager.log")


def _compare(context: Context, kind: Kind, kubeconfig: Path) -> Tally:
    """Try one kind, with several connections."""
    began, part, number = time.monotonic(), context.part, max(context.many(kind.number), kind.least)
    tally = Tally()
    with ThreadPoolExecutor(_THREADS) as pool:
        work = partial(_tries, kind, context.seed, kubeconfig)
        for one in pool.map(work, (range(n, number, _THREADS) for n in range(_THREADS))):
            tally.add(one)
    part.checks += number
    for verdict, times in sorted(tally.verdicts.items()):
        part.count(f"{kind.name}s {verdict}", times)
    part.say(f"{number:,} {kind.name}s in {time.monotonic() - began:.0f} s")
    api = Cluster.open(kubeconfig)
    for found, told in zip(
        sorted(tally.differ), _told(api, kind, context.seed, tally), strict=True
    ):
        part.fail(f"{kind.name} {found} of seed {context.seed}: {told}")
    return tally


def _tries(kind: Kind, seed: int, kubeconfig: Path, numbers: range) -> Tally:
    api, tally = Cluster.open(kubeconfig), Tally()
    for number in numbers:
        body = kind.body(seed, number)
        findings, refusal = ours(kind, body), theirs(api, kind, body)
        verdict = _agreed(kind, body, findings, refusal)
        tally.verdicts[verdict or "different verdicts"] += 1
        if not verdict:
            tally.differ.append(number)
        for entry in kind.differences.stricter:
            tally.deliberate[entry] += any(map(entry.covers, findings))
        shared = admission(findings, kind.differences)
        if rules := {finding.rule for finding in shared} if refusal else set():
            tally.rules.update(rules)
            tally.alone.update(rules if len(rules) == 1 else ())
    return tally


def _agreed(kind: Kind, body: Body, findings: list[Finding], refusal: str | None) -> str:
    """Describe how both agree, or return an empty string. The rules of pods count, too."""
    verdict = _verdict(findings, refusal, kind.differences)
    shared = admission(findings, kind.differences)
    if not verdict and refusal and not shared and wrong_pods(kind, body):
        return "rejected by both, by us because of its pods"
    return verdict


def _verdict(
    findings: list[Finding], refusal: str | None, differences: Differences = SANDBOX
) -> str:
    """Describe how the verdicts of a kind's own rules agree, or return an empty string."""
    shared = admission(findings, differences)
    if refusal and not shared and differences.elsewhere_alone(refusal):
        return "rejected because of another object of the cluster"
    if refusal and not shared and any(place in refusal for place in STRICT):
        return "rejected only by strict decoding"
    if may_differ(findings, differences) and (not shared or refusal):
        return "rejected by us, deliberately, for any verdict of the cluster"
    if bool(shared) != bool(refusal):
        return ""
    if refusal:
        return "rejected by both"
    return "rejected only by us, deliberately" if findings else "accepted by both"


def _told(api: Cluster, kind: Kind, seed: int, tally: Tally) -> Iterator[str]:
    """Describe each disagreement, the first ones with the smallest object."""
    for index, number in enumerate(sorted(tally.differ)):
        body = kind.body(seed, number)
        if index < _SHRUNK:
            way = _way(api, kind, body)
            body = shrink(body, lambda smaller, way=way: _way(api, kind, smaller) == way)  # type: ignore[misc]
            said = theirs(api, kind, body)
            shown = yaml.safe_dump(body, sort_keys=False, allow_unicode=True)
            by_us = "; ".join(map(str, admission(ours(kind, body), kind.differences))) or "none"
            yield f"our findings: {by_us}\n  the cluster: {said or 'accepts it'}\n{shown}"
        else:
            yield "the verdicts differ"


def _way(api: Cluster, kind: Kind, body: Body) -> tuple[bool, bool]:
    findings, refusal = ours(kind, body), theirs(api, kind, body)
    agree = bool(_agreed(kind, body, findings, refusal))
    return agree, bool(refusal)


def check_reach(context: Context, kinds: Sequence[Kind], total: Tally) -> None:
    """Check that every rule was tried, and every deliberate difference occurred.

    A run of less than full size draws too few objects for that, so it only counts them.
    """
    part, is_whole = context.part, context.scale >= 1
    for rule in sorted(_rules(kinds)):
        alone = f"{total.alone[rule]:,} of them by no other rule"
        part.count(f"rejected by {rule} and by the cluster, {alone}", total.rules[rule])
        if is_whole:
            part.check(f"{rule} was tried alone", holds=total.alone[rule] > 0)
    for entry in dict.fromkeys(e for kind in kinds for e in kind.differences.stricter):
        where = f"{entry.rule} {entry.says}".strip()
        part.count(f"deliberately stricter, {where}: {entry.reason}", total.deliberate[entry])
        if is_whole:
            part.check(f"the difference '{where}' occurred", holds=total.deliberate[entry] > 0)


def _rules(kinds: Sequence[Kind] = KINDS) -> set[str]:
    """Return the names of the admission rules, except those that the cluster does not have."""
    named = {rule for kind in kinds for rule in kind.rules}
    known = [kind.differences for kind in kinds]
    ours_alone = {e.rule for each in known for e in each.stricter if not e.says}
    return named - ours_alone - {rule for each in known for rule in each.silent}
