"""SARIF 2.1.0, for the code scanning of GitHub and GitLab.

Source: docs.oasis-open.org/sarif/sarif/v2.1.0.
"""

from collections.abc import Callable
from dataclasses import field
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from kthena_components.checker.catalogue import RuleDoc, all_rules, explain
from kthena_components.cli.check.results import Result, Summary
from kthena_components.core.findings import Level
from kthena_components.core.remedies import fixes_as_json
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import visible_json
from kthena_components.reading.files import Unreadable

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {
    Level.MANDATORY: "error",
    Level.ADVISORY: "warning",
    Level.UNKNOWN: "note",
    Level.WAIVED: "note",
}


@dataclass(slots=True)
class SarifReport:
    """One run with all rules, their help, and one result per finding."""

    write: Callable[[str], object]
    results: list[dict[str, Any]] = field(default_factory=list)
    notifications: list[dict[str, Any]] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Store one result."""
        finding = result.finding
        row: dict[str, Any] = {
            "ruleId": finding.rule,
            "level": _LEVELS[finding.level],
            "message": {"text": f"{result.subject}: {finding}"},
            "locations": [_location(result.file, result.line)],
        }
        if finding.fixes:
            # Fixes of SARIF replace regions of a file, and these are changes of fields.
            row["properties"] = {"fixes": fixes_as_json(finding.fixes)}
        if finding.waiver is not None:
            row["suppressions"] = [
                {
                    "kind": "inSource",
                    "status": "accepted",
                    "justification": f"until {finding.waiver.until}: {finding.waiver.reason}",
                }
            ]
        self.results.append(row)

    def skip(self, unreadable: Unreadable) -> None:
        """Store a notification."""
        line, column = unreadable.line, unreadable.column
        self.notifications.append(
            {
                "level": "warning" if unreadable.is_note else "error",
                "message": {"text": str(unreadable)},
                "locations": [_location(unreadable.file, line or 1, column)],
            }
        )

    def close(self, summary: Summary) -> None:
        """Write the log."""
        if summary.passed_over:
            notification = {"level": "note", "message": {"text": summary.passed_over}}
            self.notifications.append(notification)
        driver = {"name": "kthena-components", "rules": [_rule(rule) for rule in all_rules()]}
        invocation = {
            "executionSuccessful": not (summary.unreadable or summary.faults),
            "toolExecutionNotifications": self.notifications,
        }
        run = {"tool": {"driver": driver}, "invocations": [invocation], "results": self.results}
        log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
        self.write(f"{visible_json(log, indent=2)}\n")


def _rule(rule: RuleDoc) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.summary},
        "help": {"text": explain(rule)},
        "defaultConfiguration": {"level": _LEVELS[rule.level]},
    }


def _location(file: str, line: int, column: int | None = None) -> dict[str, Any]:
    uri = quote(PurePath(file).as_posix(), errors="surrogateescape")
    if uri.startswith("/"):
        uri = f"file://{uri}"
    region = {"startLine": line} | ({} if column is None else {"startColumn": column})
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
