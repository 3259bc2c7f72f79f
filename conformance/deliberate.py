"""Where the rules are stricter than the cluster on purpose, and where one object is not enough.

A finding is here by its rule and a part of its text. Whatever is not here must be refused by the
cluster too, and whatever the cluster refuses must be refused by a finding that is not here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kthena_components.core.findings import Finding


@dataclass(frozen=True, slots=True)
class Stricter:
    """Something that the cluster takes and we refuse."""

    rule: str
    says: str
    """A part of the finding's text; empty for all findings of the rule."""
    reason: str
    either: bool = False
    """The cluster refuses some of it."""

    def covers(self, finding: Finding) -> bool:
        """Tell whether a finding is this."""
        return finding.rule == self.rule and self.says in finding.seen


DELIBERATE: tuple[Stricter, ...] = (
    Stricter("subgroup-match-label-keys", "", "the gang waits for pods that are never counted"),
    Stricter("subgroup-names-unique", "", "the scheduler keeps one minimum for both"),
    Stricter("task-minimum", "", "the scheduler ignores every minimum, or waits for no task"),
    Stricter("min-resources-within-minimum", "", "the scheduler places none of the gang"),
    Stricter("topology-cap-stated", "", "the scheduler drops the topology"),
    Stricter("topology-cap-reachable", "", "the scheduler never places the gang"),
    Stricter("hypernode-shape", "has no selector", "the scheduler ignores the member"),
    Stricter("hypernode-shape", "is found by exactMatch", "the scheduler ignores the member"),
    Stricter("hypernode-shape", "the labelMatch is empty", "the member selects no node"),
    Stricter("hypernode-node-regex", "does not reach", "the pattern finds nodes unasked"),
    Stricter(
        "queue-quantities",
        "more than Volcano can count",
        "thousandths beyond 64 bits are compared wrongly",
        either=True,
    ),
)
SILENT: dict[str, str] = {
    "subgroup-minimum": "advisory",
    "gang-minimum-stated": "advisory",
    "hypernode-discovery-label": "advisory",
    "kthena-version": "no field of an older version is drawn, and a crash is advisory",
}
"""Rules of admission that refuse nothing in the versions that run here."""
ELSEWHERE: tuple[str, ...] = (
    "unable to find queue",
    "failed to get parent queue",
    "exceeds parent queue",
    "parent queue everything validation failed",
)
"""Refusals that tell of another object of the cluster, which one manifest does not show."""


def admission(findings: Iterable[Finding]) -> list[Finding]:
    """Give the findings that the cluster must share."""
    return [f for f in findings if not any(entry.covers(f) for entry in DELIBERATE)]


def may_differ(findings: Iterable[Finding]) -> bool:
    """Tell whether the cluster may do either."""
    either = [entry for entry in DELIBERATE if entry.either]
    return any(entry.covers(finding) for finding in findings for entry in either)
