"""The output formats. Each format is a class that receives the results one by one."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Protocol

from kthena_components.cli.check.results import Result, Summary
from kthena_components.cli.review.references import APART, MARK, broken, code_and_text
from kthena_components.cli.terminal import paint
from kthena_components.core.findings import Level
from kthena_components.core.remedies import fixes_as_json
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import visible, visible_json
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable

Write = Callable[[str], object]

WORDS = {
    Level.MANDATORY: "mandatory",
    Level.ADVISORY: "advisory",
    Level.UNKNOWN: "not checked",
    Level.WAIVED: "waived",
}
_COMMANDS = {
    Level.MANDATORY: "error",
    Level.ADVISORY: "warning",
    Level.UNKNOWN: "notice",
    Level.WAIVED: "notice",
}


class Report(Protocol):
    """The interface of a format."""

    def add(self, result: Result) -> None:
        """Add one result."""

    def skip(self, unreadable: Unreadable) -> None:
        """Add something that could not be read. The caller also writes it to standard error."""

    def close(self, summary: Summary) -> None:
        """Write the rest."""


@dataclass(slots=True)
class TextReport:
    """One line per finding, in a form that editors can jump to, and a summary line."""

    write: Write
    paint: Callable[[str], str] = str
    """Returns the word of a level in its colour."""

    def add(self, result: Result) -> None:
        """Write one line."""
        level = WORDS[result.finding.level]
        place, text = f"{result.file}:{result.line}: ", f": {result.subject}: {result.finding}"
        self.write(f"{visible(place)}{self.paint(level)}{visible(text)}\n")

    def skip(self, unreadable: Unreadable) -> None:
        """Do nothing: it is on standard error."""

    def close(self, summary: Summary) -> None:
        """Write the summary line."""
        self.write(f"{summary}\n")


@dataclass(slots=True)
class GithubReport:
    """Workflow commands of GitHub Actions, which become annotations, and a summary line.

    Source: docs.github.com, Workflow commands for GitHub Actions; escapes as in actions/toolkit
    packages/core/src/command.ts.
    """

    write: Write

    def add(self, result: Result) -> None:
        """Write the command."""
        finding = result.finding
        title = f"{finding.rule} (waived)" if finding.waiver else finding.rule
        stated = {"file": result.file, "line": result.line, "title": title}
        self._command(_COMMANDS[finding.level], stated, f"{result.subject}: {finding}")

    def skip(self, unreadable: Unreadable) -> None:
        """Write an error with the place in the file, or a warning if the user did not name it."""
        stated = {"file": unreadable.file, "line": unreadable.line, "col": unreadable.column}
        name = "warning" if unreadable.is_note else "error"
        self._command(name, {**stated, "title": "unreadable"}, str(unreadable))

    def close(self, summary: Summary) -> None:
        """Write the summary line."""
        self.write(f"{summary}\n")

    def _command(self, name: str, stated: Mapping[str, object], text: str) -> None:
        properties = ",".join(
            f"{key}={_property(visible(str(value)))}"
            for key, value in stated.items()
            if value is not None
        )
        self.write(f"::{name} {properties}::{_data(visible(text))}\n")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


@dataclass(slots=True)
class JsonReport:
    """A list of objects, one for each finding."""

    write: Write
    begun: bool = False

    def add(self, result: Result) -> None:
        """Write one object."""
        finding = result.finding
        row: dict[str, Any] = {
            "file": result.file,
            "line": result.line,
            "kind": result.kind,
            "namespace": result.namespace,
            "name": result.name,
            "level": finding.level.value,
            "rule": finding.rule,
            "path": finding.path,
            "seen": finding.seen,
            "remedy": finding.remedy,
            "message": str(finding),
        }
        if finding.fixes:
            row["fixes"] = fixes_as_json(finding.fixes)
        if result.rendered_by:
            row["rendered_by"] = list(result.rendered_by)
        if finding.waiver is not None:
            row["waiver"] = {
                "until": finding.waiver.until.isoformat(),
                "reason": finding.waiver.reason,
            }
        self.write(f"{',' if self.begun else '['}\n  {visible_json(row)}")
        self.begun = True

    def skip(self, unreadable: Unreadable) -> None:
        """Do nothing: it is on standard error."""

    def close(self, summary: Summary) -> None:  # noqa: ARG002 - a JSON list has no summary
        """Close the list."""
        self.write("\n]\n" if self.begun else "[]\n")


@dataclass(slots=True)
class MarkdownReport:
    """A table for a comment on a pull request, below a summary line."""

    write: Write
    rows: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Keep one row."""
        cells = (
            WORDS[result.finding.level],
            f"{result.file}:{result.line}",
            result.subject,
            str(result.finding),
        )
        self.rows.append(f"| {' | '.join(map(cell_text, cells))} |\n")

    def skip(self, unreadable: Unreadable) -> None:
        """Keep one line."""
        self.skipped.append(f"- {cell_text(str(unreadable))}\n")

    def close(self, summary: Summary) -> None:
        """Write the summary line, the table, and the list of what could not be read."""
        self.write(f"**{summary}**\n")
        if self.rows:
            self.write("\n| level | where | object | finding |\n|---|---|---|---|\n")
            self.write("".join(self.rows))
        if self.skipped:
            self.write("\nCould not be read:\n\n")
            self.write("".join(self.skipped))


def _text(write: Write) -> Report:
    return TextReport(write, lambda word: paint(word, sys.stdout))


def _sarif(write: Write) -> Report:
    # Imported here, because the documentation of all rules takes longer than to check an object.
    from kthena_components.cli.check.sarif import SarifReport  # noqa: PLC0415

    return SarifReport(write)


FORMATS: Mapping[str, Callable[[Write], Report]] = {
    "text": _text,
    "json": JsonReport,
    "sarif": _sarif,
    "markdown": MarkdownReport,
    "github": GithubReport,
}


_BLOCK = regex(r"^(?=[-+=/]|\d+[.)])")
"""The beginning of a list, a heading, a horizontal rule, or a quick action of GitLab."""


def cell_text(text: str) -> str:
    """Escape a string for Markdown, also inside a table.

    No part of it is a link, a mention or a reference then (cli/review/references.py).
    """
    parts = code_and_text(visible(text).strip())
    parts[::2] = map(_escaped, parts[::2])
    return _BLOCK.sub(rf"{APART}\g<0>", "".join(parts))


def _escaped(text: str) -> str:
    plain = broken(text).replace("\\", "\\\\").replace("&", "&amp;")
    plain = plain.replace("<", "&lt;").replace(">", "&gt;")
    for mark in "|*_`[]~#":
        plain = plain.replace(mark, f"\\{mark}")
    return plain.replace(MARK, APART)
