"""Read what `pulumi preview` tells: steps, findings, and how it ended.

Two forms are read: one JSON document (`--json`), which holds no findings of policies, and the
events of the engine, one JSON object a line (`--event-log FILE`). Configuration is never looked at.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from kthena_components.core.values.read import mapping, sequence
from kthena_components.judge.catalogue import rule_names

STACK_TYPE = "pulumi:pulumi:Stack"
_URN_PARTS = 4
_RULE = re.compile(r"\[([a-z][a-z0-9]*(?:-[a-z0-9]+)*)\]$")
_NOT_CHECKED = re.compile(r"\bnot checked, because\b")
_WAIVED = re.compile(r"\bWaived until \d{4}-\d\d-\d\d: ")
_COLOURS = re.compile(r"<\{%[^%\n]{0,40}%\}>|\x1b\[[0-9;]{0,40}m")
"""Pulumi's tags, such as `<{%fg 13%}>`, and what they become on a terminal. None is longer."""
_OPS = {
    "create": "create", "update": "update", "delete": "delete", "same": "same",
    "replace": "replace", "create-replacement": "replace", "delete-replaced": "replace",
    "import": "import", "import-replacement": "import",
}  # fmt: skip
_NO_REASON = "preview failed"
"""What the engine adds when a policy or the program has said why."""


class Weight(StrEnum):
    """How much a finding weighs in a review."""

    MANDATORY = "mandatory"
    ADVISORY = "advisory"
    WAIVED = "waived"
    UNKNOWN = "not checked"


class PreviewError(ValueError):
    """A file that holds no preview, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What the engine would do to one resource."""

    op: str
    """create, update, replace, delete, import or same."""
    urn: str
    old: Mapping[str, Any]
    """Inputs as they were applied; empty for a new resource."""
    new: Mapping[str, Any]
    """Inputs as they would be applied; empty for one that goes."""
    outputs: Mapping[str, Any]
    """Outputs as the last update left them."""
    paths: tuple[str, ...]
    """Fields that change, where the provider tells them."""

    @property
    def types(self) -> list[str]:
        """Types of the components that it is part of and, last, its own."""
        parts = self.urn.split("::", _URN_PARTS - 1)
        return parts[2].split("$") if len(parts) == _URN_PARTS else [""]

    @property
    def type(self) -> str:
        """Its own type: `kubernetes:apps/v1:StatefulSet`."""
        return self.types[-1]

    @property
    def kind(self) -> str:
        """Last part of its type."""
        return self.type.rpartition(":")[2]

    @property
    def is_ours(self) -> bool:
        """Whether a component of this package made it."""
        return any(kind.startswith("kthena:") for kind in self.types[:-1])

    @property
    def name(self) -> str:
        """Pulumi's name for it."""
        return self.urn.split("::", _URN_PARTS - 1)[-1]


def title_of(urn: str) -> str:
    """Give the kind and the name that a URN ends with."""
    parts = urn.split("::", _URN_PARTS - 1)
    if len(parts) < _URN_PARTS:
        return urn
    return f"{parts[2].rpartition('$')[2].rpartition(':')[2]} {parts[3]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A finding as a policy, the program or the review told it."""

    weight: Weight
    rule: str
    text: str
    """The whole sentence, with the rule's name in brackets where it has one."""
    urn: str = ""
    more: int = 0
    """Other resources of which the same is said."""

    @property
    def sentence(self) -> str:
        """Give the text without its path, which is another one in a program and in a manifest."""
        parts = self.text.split(": ")
        path = 0
        while path < len(parts) - 1 and " " not in parts[path]:
            path += 1
        return ": ".join(parts[path:])


@dataclass(slots=True, kw_only=True)
class Preview:
    """One preview of one stack."""

    stack: str
    steps: dict[str, Step] = field(default_factory=dict)
    """By URN. A replacement is one step."""
    said: list[Said] = field(default_factory=list)
    packs: int = 0
    """Policy packs that looked at it."""
    ended: bool = False
    """Whether the engine came to its end and says so."""
    failed: bool = False
    refusals: int = 0
    """Errors of the program that are findings: it registered nothing after them."""
    errors: int = 0
    """Errors that are no findings: the log of the preview tells them."""


def read_preview(stack: str, path: str) -> Preview:
    """Read the preview of a stack from a file.

    Raises:
        PreviewError: the file is missing, or holds neither of the two forms.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise PreviewError(f"{path}: cannot be read: {error}") from error
    try:
        return parse_preview(stack, text)
    except (ValueError, RecursionError) as error:
        raise PreviewError(f"{path}: is no preview of Pulumi's: {error}") from error


def parse_preview(stack: str, text: str) -> Preview:
    """Read a preview from a text.

    Raises:
        ValueError: it is neither of the two forms.
        RecursionError: it is nested too deeply to be JSON of Pulumi's.
    """
    preview = Preview(stack=stack)
    for item in _objects(text):
        if "sequence" in item:
            _take_event(preview, item)
        else:
            _take_document(preview, item)
    return preview


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    decoder, space = json.JSONDecoder(), re.compile(r"\s*")
    at = len(space.match(text)[0])  # type: ignore[index] # an empty match is one
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        if not isinstance(value, dict):
            raise ValueError("it holds a value that is no object")  # noqa: TRY004 - as JSON's own
        yield value
        at = space.match(text, at).end()  # type: ignore[union-attr]


def _take_document(preview: Preview, document: Mapping[str, Any]) -> None:
    for item in sequence(document.get("steps")):
        step = mapping(item)
        _take_step(preview, step, mapping(step.get("oldState")), mapping(step.get("newState")))
    for item in sequence(document.get("diagnostics")):
        _take_diagnostic(preview, mapping(item))
    preview.ended = preview.ended or "changeSummary" in document


def _take_event(preview: Preview, event: Mapping[str, Any]) -> None:
    data = mapping(mapping(event.get("resourcePreEvent")).get("metadata"))
    if data:
        _take_step(preview, data, mapping(data.get("old")), mapping(data.get("new")))
    if told := mapping(event.get("diagnosticEvent")):
        _take_diagnostic(preview, told)
    if told := mapping(event.get("policyEvent")):
        _take_violation(preview, told)
    if told := mapping(event.get("summaryEvent")):
        preview.ended = True
        preview.failed = preview.failed or told.get("result") == "failed"
        preview.packs = len(mapping(told.get("PolicyPacks")))


def _take_step(
    preview: Preview, data: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    urn, op = _text(data.get("urn")), _OPS.get(_text(data.get("op")))
    if op is None or not urn:
        return
    step = Step(
        op=op,
        urn=urn,
        old=mapping(old.get("inputs")),
        new=mapping(new.get("inputs")),
        outputs=mapping(old.get("outputs")),
        paths=_paths(op, mapping(data.get("detailedDiff"))),
    )
    known = preview.steps.get(urn)
    if known is not None:  # a replacement comes in parts, and each shows another side of it
        step = replace(
            step,
            old=step.old or known.old,
            new=step.new or known.new,
            outputs=step.outputs or known.outputs,
            paths=step.paths or known.paths,
        )
    preview.steps[urn] = step


def _paths(op: str, diff: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the fields that change; of a replacement those that ask for it."""
    asking = [path for path, how in diff.items() if "replace" in _kind(mapping(how))]
    return tuple(asking if op == "replace" and asking else diff)


def _kind(how: Mapping[str, Any]) -> str:
    """Give what is said of a field: `kind` in --json, `diffKind` in the events."""
    return _text(how.get("kind")) or _text(how.get("diffKind"))


def _take_diagnostic(preview: Preview, told: Mapping[str, Any]) -> None:
    severity = _text(told.get("severity"))
    if severity == "debug" or told.get("ephemeral"):
        return
    found = 0
    message = _COLOURS.sub("", _text(told.get("message")))
    for line in map(str.strip, message.splitlines()):
        named = _RULE.search(line)
        if named and (named[1] in rule_names() or named[1] == "rule-fault"):
            weight = Weight.MANDATORY if severity == "error" else Weight.ADVISORY
            _say(preview, line, weight, named[1], _text(told.get("urn")))
            found += 1
    if severity == "error":
        preview.failed = True
        preview.refusals += found > 0
        preview.errors += not found and message.removeprefix("error: ").strip() != _NO_REASON


def _take_violation(preview: Preview, told: Mapping[str, Any]) -> None:
    lines = _COLOURS.sub("", _text(told.get("message"))).strip().splitlines()
    # The engine puts the policy's description into the first line.
    text = " ".join(line.strip() for line in (lines[1:] or lines))
    named = _RULE.search(text)
    stops = told.get("enforcementLevel") == "mandatory"
    weight = Weight.MANDATORY if stops else Weight.ADVISORY
    rule = named[1] if named else _text(told.get("policyName"))
    _say(preview, text, weight, rule, _text(told.get("resourceUrn")))


def _say(preview: Preview, text: str, weight: Weight, rule: str, urn: str) -> None:
    if weight is not Weight.MANDATORY:
        # Neither policies nor diagnostics have a level for these: the words tell them apart.
        weight = Weight.UNKNOWN if _NOT_CHECKED.search(text) else weight
        weight = Weight.WAIVED if _WAIVED.search(text) else weight
    preview.said.append(Said(weight=weight, rule=rule, text=text, urn=urn))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
