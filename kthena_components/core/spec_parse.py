"""From what a user wrote to a spec, or to findings that say what to write instead.

Only the wording of structural refusals lives here: types, missing and unknown fields, ranges.
"""

import re
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kthena_components.core.findings import Finding, SpecError, nearest, path_of, suggest
from kthena_components.core.known import is_late
from kthena_components.core.spec import PATTERNS

M = TypeVar("M", bound=BaseModel)

_KINDS = {
    "int": "a whole number",
    "string": "text",
    "bool": "true or false",
    "list": "a list",
    "dict": "a mapping",
    "model": "a mapping of fields",
    "float": "a number",
}


def parse_spec(model: type[M], data: object, subject: str = "") -> M:
    """Read data into a model, or raise one SpecError that lists every finding."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise SpecError(translate(model, details), subject) from None


def translate(model: type[BaseModel], errors: Sequence[ErrorDetails]) -> list[Finding]:
    """Word pydantic's errors as findings, one for each place."""
    found: dict[str, Finding] = {}
    for error in errors:
        location = [part for part in error["loc"] if not _is_union_tag(part)]
        finding = _finding(model, error, location)
        found.setdefault(finding.path, finding)
    return list(found.values())


def _is_union_tag(part: str | int) -> bool:
    """Spot the member names that pydantic puts into a location when a field is `int | str`."""
    return isinstance(part, str) and part in {"int", "str", "float", "bool", "constrained-str"}


def _finding(model: type[BaseModel], error: ErrorDetails, location: list[str | int]) -> Finding:
    path, kind, value = path_of(location), error["type"], error["input"]
    if kind == "extra_forbidden":
        return _unknown_field(model, location)
    if kind == "missing":
        return Finding(
            path=path, seen="is missing", remedy=f"add '{location[-1]}'", rule="required"
        )
    if is_late(value):
        return Finding(
            path=path,
            rule="known-when-planned",
            seen="is an Output, whose value is not known while the plan is made; "
            "counts and names decide how many resources there are",
            remedy="pass a plain value, from the program or from the stack's config",
        )
    seen, remedy, rule = _wrong_value(kind, value, error.get("ctx", {}))
    return Finding(path=path, seen=seen, remedy=remedy, rule=rule)


def _unknown_field(model: type[BaseModel], location: list[str | int]) -> Finding:
    name = str(location[-1])
    fields = known_fields(model, location[:-1])
    close = nearest(name, fields)
    hint = f"write '{close}'" if close else f"remove it; known: {', '.join(sorted(fields))}"
    return Finding(
        path=path_of(location),
        seen=f"there is no field '{name}' here",
        remedy=hint,
        rule="unknown-field",
    )


def _wrong_value(kind: str, value: object, context: Mapping[str, Any]) -> tuple[str, str, str]:
    shown = show_value(value)
    bounds = {
        "greater_than_equal": ("ge", "at least"),
        "less_than_equal": ("le", "at most"),
        "greater_than": ("gt", "more than"),
        "less_than": ("lt", "less than"),
    }
    if kind in bounds:
        key, words = bounds[kind]
        return (
            f"is {shown}, but must be {words} {context[key]}",
            f"write {words} {context[key]}",
            "range",
        )
    if kind == "enum":
        known = re.findall(r"'([^']*)'", str(context["expected"]))
        return f"is {shown}", suggest(str(value), known), "known-value"
    if kind == "string_pattern_mismatch":
        words = PATTERNS.get(context["pattern"], f"text that matches {context['pattern']}")
        return f"is {shown}, but must be {words}", "change it", "pattern"
    if kind == "string_too_long":
        limit, length = context["max_length"], len(str(value))
        return (
            f"is {length} characters long; at most {limit} are allowed",
            f"shorten it by {length - limit}",
            "length",
        )
    if kind in {"string_too_short", "too_short"}:
        return "is empty", "give at least one", "length"
    wanted = next(
        (words for name, words in _KINDS.items() if kind.startswith(name)), "another value"
    )
    return f"is {shown}, but must be {wanted}", f"write {wanted}", "type"


def show_value(value: object) -> str:
    """Show a value in a message: short, with the kind that made it wrong."""
    names = {str: "text", int: "a number", float: "a number", list: "a list", dict: "a mapping"}
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, str):
        return f"'{value[:60]}'"
    if isinstance(value, Enum | int | float):
        return str(value)
    return names.get(type(value), type(value).__name__)


def known_fields(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """List the fields that may stand at a location below a model."""
    annotation: Any = model
    for part in location:
        current = _model_in(annotation)
        if isinstance(part, int) or current is None:
            annotation = next(iter(typing.get_args(_unwrap(annotation))), None)
        else:
            field = current.model_fields.get(part)
            annotation = field.annotation if field else None
    found = _model_in(annotation)
    return list(found.model_fields) if found else []


def _unwrap(annotation: Any) -> Any:
    """Take Annotated and `| None` off an annotation."""
    while typing.get_origin(annotation) in {typing.Annotated, typing.Union, types.UnionType}:
        options = [a for a in typing.get_args(annotation) if a is not type(None)]
        annotation = options[0]
    return annotation


def _model_in(annotation: Any) -> type[BaseModel] | None:
    plain = _unwrap(annotation)
    return plain if isinstance(plain, type) and issubclass(plain, BaseModel) else None
