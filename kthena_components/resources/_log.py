"""What components say while they are made, and the day that they go by."""

from collections.abc import Iterable
from datetime import UTC, date, datetime

import pulumi

from kthena_components.core.findings import Finding, Level
from kthena_components.resources._outputs import without_tokens


def today() -> date:
    """Return the day by which waivers are judged: that of UTC, so that it is everybody's."""
    return datetime.now(UTC).date()


def report(component: pulumi.ComponentResource, findings: Iterable[Finding]) -> None:
    """Show what stops nothing, identical lines once; as warnings what would, but for a waiver."""
    for line, level in {str(finding): finding.level for finding in findings}.items():
        log = pulumi.log.warn if level is Level.WAIVED else pulumi.log.info
        log(without_tokens(line), resource=component)
