"""Messages of components."""

from collections.abc import Callable, Iterable
from contextvars import ContextVar

import pulumi

from kthena_components.core.findings import Finding, Level
from kthena_components.resources._outputs import without_tokens

worded: ContextVar[Callable[[Finding], Finding]] = ContextVar("worded", default=lambda found: found)
"""Writes a finding in the names of the program's language. Default: as it is, for Python."""


def report(component: pulumi.ComponentResource, findings: Iterable[Finding]) -> None:
    """Log non-blocking findings, duplicates once; waived mandatory findings as warnings."""
    word = worded.get()
    for line, level in {str(word(finding)): finding.level for finding in findings}.items():
        log = pulumi.log.warn if level is Level.WAIVED else pulumi.log.info
        log(without_tokens(line), resource=component)
