"""Reads the steps, findings and result of a `pulumi preview`.

It accepts two forms: one JSON document (`--json`), which has no findings of policies, and the
events of the engine, one JSON object per line (`--event-log FILE`). Of the configuration it reads
only the name of the GPU.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from kthena_components.checker.catalogue import rule_names
from kthena_components.cli.review.preview_runner import reason_of, secret_values, without_values
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.documents import broken_json

STACK_TYPE = "pulumi:pulumi:Stack"
_URN_PARTS = 4
_RULE = regex(r"\[([a-z][a-z0-9]*(?:-[a-z0-9]+)*)\]$")
_REFUSED = regex(r"(?P<kind>[A-Z][A-Za-z]*) '(?P<name>[^\n]*)' is refused: \d+ problems?")
"""The line above the findings of a component that is refused."""
_NOT_CHECKED = regex(r"\bnot checked, because\b")
_WAIVED = regex(r"\bWaived until \d{4}-\d\d-\d\d: ")
_COLOURS = regex(r"<\{%[^%\n]{0,40}%\}>|\x1b\[[0-9;]{0,40}m")
"""Colours as tags of Pulumi, such as `<{%fg 13%}>`, and as escape sequences of a terminal."""
_OPS = {
    "create": "create", "update": "update", "delete": "delete", "same": "same",
    "replace": "replace", "create-replacement": "replace", "delete-replaced": "replace",
    "import": "import", "import-replacement": "import",
}  # fmt: skip
_NO_REASON = "preview failed"
"""The engine adds this error if a policy or the program has reported the reason."""
_EXITED = "an unhandled error occurred: "
"""The engine's error after a program that exited by itself, such as after a refusal."""


class Weight(StrEnum):
    """The level of a finding in a review."""

    MANDATORY = "mandatory"
    ADVISORY = "advisory"
    WAIVED = "waived"
    UNKNOWN = "not checked"


class PreviewError(ValueError):
    """A file is not a preview. The text is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The planned operation of one resource."""

    op: str
    """create, update, replace, delete, import or same."""
    urn: str
    old: Mapping[str, Any]
    """Inputs of the last update. Empty for a new resource."""
    new: Mapping[str, Any]
    """Inputs of this update. Empty for a deleted resource."""
    outputs: Mapping[str, Any]
    """Outputs of the last update."""
    paths: tuple[str, ...]
    """Fields that change, if the provider reports them."""
    is_made_first: bool = False
    """Whether a replacement creates the new resource before it deletes the old one."""
    parent: str = ""
    """The URN of the component or stack that it belongs to."""

    @property
    def types(self) -> list[str]:
        """Types of its parent components, followed by its own type."""
        parts = self.urn.split("::", _URN_PARTS - 1)
        return parts[2].split("$") if len(parts) == _URN_PARTS else [""]

    @property
    def type(self) -> str:
        """Its own type, such as `kubernetes:apps/v1:StatefulSet`."""
        return self.types[-1]

    @property
    def kind(self) -> str:
        """The last part of its type."""
        return self.type.rpartition(":")[2]

    @property
    def is_ours(self) -> bool:
        """Whether it belongs to a component of this package."""
        return any(kind.startswith("kthena:") for kind in self.types[:-1])

    @property
    def name(self) -> str:
        """Its Pulumi name."""
        return self.urn.split("::", _URN_PARTS - 1)[-1]


def title_of(urn: str) -> str:
    """Return the kind and the name from the end of a URN."""
    parts = urn.split("::", _URN_PARTS - 1)
    if len(parts) < _URN_PARTS:
        return urn
    return f"{parts[2].rpartition('$')[2].rpartition(':')[2]} {parts[3]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewFinding:
    """A finding as a policy, the program or the review reported it."""

    weight: Weight
    rule: str
    text: str
    """The full text, with the rule's name in brackets if there is one."""
    urn: str = ""
    of: str = ""
    """Kind and name of the component that was refused, and has no URN."""
    more: int = 0
    """Number of other resources with the same finding."""

    @property
    def sentence(self) -> str:
        """The text without its path, which differs between a program and a manifest."""
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
    deployed: dict[str, Step] = field(default_factory=dict)
    """By URN, the resources of its state, if that is known."""
    said: list[PreviewFinding] = field(default_factory=list)
    packs: int = 0
    """Number of policy packs that ran."""
    ended: bool = False
    """Whether the engine reported that it finished."""
    failed: bool = False
    refusals: int = 0
    """Errors of the program that are findings. The program registered nothing after them."""
    errors: int = 0
    """Errors that are not findings. They are in the log of the preview."""
    reasons: list[str] = field(default_factory=list)
    """What may be shown of each of these errors; empty for an error that is hidden."""
    hidden: tuple[str, ...] = ()
    """Values that no reason may quote."""
    gpu: str = ""
    """The GPU that the stack names; nothing else of its configuration is kept."""
    exits: int = 0
    """Errors that only report the end of the program."""


def read_preview(stack: str, path: str) -> Preview:
    """Read the preview of a stack from a file.

    Raises:
        PreviewError: The file is missing or has neither of the two forms.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        return parse_preview(stack, text, hidden=secret_values(os.environ))
    except OSError as error:
        raise PreviewError(f"{path}: cannot read the file: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        message = f"is not a preview of Pulumi, because it {broken_json(error)}"
        raise PreviewError(
            f"{path}: {message}: write it with `pulumi preview --event-log FILE`"
        ) from error


def parse_preview(stack: str, text: str, *, hidden: Sequence[str] = ()) -> Preview:
    """Parse a preview.

    Args:
        hidden: Values that no reason of a failure may quote.

    Raises:
        ValueError: The text has neither of the two forms.
        RecursionError: The JSON is nested too deeply.
    """
    preview = Preview(stack=stack, hidden=tuple(hidden))
    for item in _objects(text):
        if "sequence" in item:
            _take_event(preview, item)
        else:
            _take_document(preview, item)
    # Without another error, nothing else says that the program ended.
    preview.errors += 0 if preview.refusals or preview.errors else preview.exits
    return preview


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """Read JSON objects that follow each other in a string."""
    decoder, space = json.JSONDecoder(), re.compile(r"\s*")
    at = len(space.match(text)[0])  # type: ignore[index] # it always matches
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        if not isinstance(value, dict):
            raise ValueError("has a value that is not a JSON object")  # noqa: TRY004 - as json raises
        yield value
        at = space.match(text, at).end()  # type: ignore[union-attr]


def _take_document(preview: Preview, document: Mapping[str, Any]) -> None:
    _take_gpu(preview, mapping(document.get("config")))
    for item in sequence(document.get("steps")):
        step = mapping(item)
        _take_step(preview, step, mapping(step.get("oldState")), mapping(step.get("newState")))
    for item in sequence(document.get("diagnostics")):
        _take_diagnostic(preview, mapping(item))
    preview.ended = preview.ended or "changeSummary" in document


def _take_event(preview: Preview, event: Mapping[str, Any]) -> None:
    """Take what an engine event tells: a step, a diagnostic, a violation, or the end."""
    _take_gpu(preview, mapping(mapping(event.get("preludeEvent")).get("config")))
    data = mapping(mapping(event.get("resourcePreEvent")).get("metadata"))
    if data:
        _take_step(preview, data, mapping(data.get("old")), mapping(data.get("new")))
    if event_body := mapping(event.get("diagnosticEvent")):
        _take_diagnostic(preview, event_body)
    if event_body := mapping(event.get("policyEvent")):
        _take_violation(preview, event_body)
    if event_body := mapping(event.get("summaryEvent")):
        preview.ended = True
        preview.failed = preview.failed or event_body.get("result") == "failed"
        preview.packs = len(mapping(event_body.get("PolicyPacks")))


def _take_gpu(preview: Preview, config: Mapping[str, Any]) -> None:
    """Keep the key `gpu` of our namespace or of the project, as the policy pack reads it."""
    named = (_text(value) for key, value in config.items() if key.endswith(":gpu"))
    preview.gpu = preview.gpu or next(filter(None, named), "")


def _take_step(
    preview: Preview, data: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    """Add a step of the event log to the step of its resource."""
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
        is_made_first=data.get("op") == "create-replacement",
        parent=_text(new.get("parent")) or _text(old.get("parent")),
    )
    known = preview.steps.get(urn)
    if known is not None:  # a replacement has several steps, each with a part of the values
        step = replace(
            step,
            old=step.old or known.old,
            new=step.new or known.new,
            outputs=step.outputs or known.outputs,
            paths=step.paths or known.paths,
            is_made_first=known.is_made_first,  # the first step decides
            parent=step.parent or known.parent,
        )
    preview.steps[urn] = step


def _paths(op: str, diff: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields that change, or for a replacement those that require it."""
    asking = [path for path, how in diff.items() if "replace" in _kind(mapping(how))]
    return tuple(asking if op == "replace" and asking else diff)


def _kind(how: Mapping[str, Any]) -> str:
    """Return the kind of a field's change: `kind` in --json, `diffKind` in the events."""
    return _text(how.get("kind")) or _text(how.get("diffKind"))


def _take_diagnostic(preview: Preview, diagnostic: Mapping[str, Any]) -> None:
    """Add a message of the event log: its findings, or why the preview failed."""
    severity = _text(diagnostic.get("severity"))
    if severity == "debug" or diagnostic.get("ephemeral"):
        return
    found, of = 0, ""
    message = _COLOURS.sub("", _text(diagnostic.get("message")))
    for line in map(str.strip, message.splitlines()):
        named = _RULE.search(line)
        if refused := _REFUSED.search(line):
            of = f"{refused['kind']} {refused['name']}"
        elif named and (named[1] in rule_names() or named[1] == "rule-fault"):
            weight = Weight.MANDATORY if severity == "error" else Weight.ADVISORY
            _say(preview, line, weight, named[1], _text(diagnostic.get("urn")), of=of)
            found += 1
    if severity == "error":
        preview.failed = True
        preview.refusals += found > 0
        text = message.removeprefix("error: ").strip()
        exited = not found and text.startswith(_EXITED) and "\n" not in text
        preview.exits += exited
        if not (found or exited) and text != _NO_REASON:
            preview.errors += 1
            urn = _text(diagnostic.get("urn"))
            of_program = not urn or urn.split("::")[2:3] == [STACK_TYPE]
            known = without_values(text, preview.hidden)
            preview.reasons.append(reason_of(known, "" if of_program else title_of(urn)))


def _take_violation(preview: Preview, violation: Mapping[str, Any]) -> None:
    """Take a violation of a policy; the rule's name stands in brackets in its text."""
    lines = _COLOURS.sub("", _text(violation.get("message"))).strip().splitlines()
    # The first line is the policy's description.
    text = " ".join(line.strip() for line in (lines[1:] or lines))
    named = _RULE.search(text)
    stops = violation.get("enforcementLevel") == "mandatory"
    weight = Weight.MANDATORY if stops else Weight.ADVISORY
    rule = named[1] if named else _text(violation.get("policyName"))
    _say(preview, text, weight, rule, _text(violation.get("resourceUrn")))


def _say(preview: Preview, text: str, weight: Weight, rule: str, urn: str, *, of: str = "") -> None:
    if weight is not Weight.MANDATORY:
        # Policies and diagnostics have no level for these, so the text decides.
        weight = Weight.UNKNOWN if _NOT_CHECKED.search(text) else weight
        weight = Weight.WAIVED if _WAIVED.search(text) else weight
    preview.said.append(PreviewFinding(weight=weight, rule=rule, text=text, urn=urn, of=of))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
