"""Findings about groups that do not fit into a cluster: the rule placement-fits. Pure."""

from collections.abc import Iterator
from datetime import date

from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.placement.model import Cluster, Outcome, Verdict

RULE = "placement-fits"
MOST_DAYS = 7
"""After so many days, what a cluster had says little."""
FITTED = frozenset({Verdict.FITS, Verdict.UNKNOWN})
_TELLS = {
    Verdict.PARTLY: "fits in part",
    Verdict.WAITS: "waits",
    Verdict.NEVER: "never fits",
}


def unplaced(outcome: Outcome, cluster: Cluster, level: Level = Level.MANDATORY) -> Finding:
    """Report a group that waits or never fits."""
    why = why_not(outcome)
    seen = f"{outcome.group.title} {_TELLS[outcome.verdict]} on {cluster.source}"
    return Finding(
        path="",
        seen=f"{seen}: {why}" if why else seen,
        remedy=first_change(outcome) or "run `kthena-components fit` to see what is free",
        rule=RULE,
        level=level,
    )


def stale(cluster: Cluster, today: date) -> Iterator[Finding]:
    """Report a snapshot that is old, or that says it was read after today."""
    if cluster.taken is None:
        return
    days, read = (today - cluster.taken.date()).days, f"the snapshot of {cluster.source}"
    told = f"{read} is {count_of(days, 'day')} old, and after {MOST_DAYS} days it says little"
    if days < 0:
        told = f"{read} is of {cluster.taken.date()}, which is after today, so its age is not known"
    if not 0 <= days <= MOST_DAYS:
        yield Finding(
            path="",
            seen=told,
            remedy="run `kthena-components inventory` again",
            rule=RULE,
            level=Level.ADVISORY,
            most=Level.ADVISORY,
        )


def why_not(outcome: Outcome) -> str:
    """Say why a group does not fit, or what else must be known about it."""
    gap = outcome.group.unknown
    said = [outcome.note, *(obstacle.text for obstacle in outcome.obstacles)]
    return gap.because if gap else ". ".join(text.rstrip(".") for text in said if text)


def first_change(outcome: Outcome) -> str:
    """Return the smallest change after which a group fits."""
    changes = (change.text for each in outcome.obstacles for change in each.changes)
    return next(changes, "").rstrip(".")
