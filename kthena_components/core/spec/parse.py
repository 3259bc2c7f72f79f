"""Parses a user's input to a spec, or to findings that state what to write instead.

Only structural errors are worded here: types, missing and unknown fields, ranges.
"""

import math
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from kthena_components.core.findings import Finding, SpecError, nearest, path_of
from kthena_components.core.remedies import either, remove, rename, write
from kthena_components.core.spec.fields import (
    NAME_PATTERNS,
    PATH_PATTERN,
    PATTERNS,
    QUANTITY_PATTERN,
    meant_value,
)
from kthena_components.core.values.display import display, looks_like_token
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved

M = TypeVar("M", bound=BaseModel)

_KINDS = {
    "int": "a whole number",
    "string": "text",
    "bool": "true or false",
    "list": "a list",
    "dict": "a map",
    "model": "a map of fields",
    "float": "a number",
}
_SHOWN_TOKEN = (
    "is a Hugging Face token itself, which everyone who reads this can use",
    "put the token into a Secret, write the name of that, and revoke this token",
)
_DIGITS = 18
"""A longer number is not a count."""
_LISTED = 12
"""Most fields that an error lists."""
_UNITS = regex(r"([0-9.]+) ?(?:([kmgtp])(i?)b?|v?cpus?|cores?)", re.IGNORECASE)


def parse_spec(model: type[M], data: object, subject: str = "") -> M:
    """Read data into a model, or raise one SpecError that lists every finding."""
    wrong = {finding.path: finding for finding in unwritable(data)}
    try:
        made = model.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        others = [each for each in details if path_of(each["loc"]) not in wrong]
        raise SpecError([*wrong.values(), *translate(model, others, data)], subject) from None
    if wrong:
        raise SpecError(list(wrong.values()), subject)
    return made


def translate(
    model: type[BaseModel], errors: Sequence[ErrorDetails], data: object = None
) -> list[Finding]:
    """Translate pydantic's errors about some data to findings, one for each path."""
    findings = [_finding(model, error, data) for error in errors]
    return list({finding.path: finding for finding in reversed(findings)}.values())[::-1]


def _finding(model: type[BaseModel], error: ErrorDetails, data: object) -> Finding:
    """Turn an error of pydantic into a finding."""
    path, kind, value = path_of(error["loc"]), error["type"], error["input"]
    if kind == "extra_forbidden":
        return _unknown_field(model, error["loc"], value, data)
    if kind == "missing":
        return Finding(
            path=path, seen="is missing", remedy=f"add '{error['loc'][-1]}'", rule="required"
        )
    if is_unresolved(value):
        return Finding(
            path=path,
            rule="known-when-planned",
            seen="is an Output, whose value is not known while the plan is built; counts and names "
            "decide how many resources there are",
            remedy="pass a plain value, from the program or from the stack's config",
        )
    worded = _wrong_value(kind, value, error.get("ctx", {})) or _wrong_type(kind, value)
    seen, remedy, rule = worded
    if looks_like_token(value):
        seen, remedy = _SHOWN_TOKEN
    elif (meant := meant_value(error["loc"], kind, value)) is not None:
        remedy = meant
    elif kind.startswith("model"):
        fields = sorted(known_fields(model, error["loc"])) if error["loc"] else []
        remedy += f"; known: {', '.join(fields)}" if 0 < len(fields) <= _LISTED else ""
    if value is None and not _is_required(model, error["loc"]):
        remedy = either(remove(), remedy)
    return Finding(path=path, seen=seen, remedy=remedy, rule=rule)


def _unknown_field(
    model: type[BaseModel], location: Sequence[str | int], value: object, data: object
) -> Finding:
    """Report a field that does not exist, with the field or the place that was meant."""
    # Only unknown fields need the tables of engines and pods.
    from kthena_components.core.spec.misplaced_fields import elsewhere, part_of  # noqa: PLC0415

    name = str(location[-1])
    fields = known_fields(model, location[:-1])
    close = nearest(name, fields)
    beside: Any = data
    for step in location[:-1]:
        beside = part_of(beside, step)
    known = f"remove it; known: {', '.join(sorted(fields))}"
    hint: str = rename(close) if close else remove(known)
    if close and isinstance(beside, Mapping) and close in beside:
        hint = remove(f"remove it, because {close} is stated, too")
    if not (close and _is_same(close, name)):
        hint = elsewhere(model, location, value, data, fields) or hint
    is_token = looks_like_token(value)
    return Finding(
        path=path_of(location),
        seen=_SHOWN_TOKEN[0] if is_token else f"there is no field '{name}' here",
        remedy=f"revoke this token, and {hint}" if is_token else hint,
        rule="unknown-field",
    )


def _is_same(one: str, other: str) -> bool:
    """Return whether two names differ in case, dashes and underscores only."""
    first, second = (word.replace("-", "").replace("_", "") for word in (one, other))
    return first.casefold() == second.casefold()


def _wrong_value(
    kind: str, value: object, context: Mapping[str, Any]
) -> tuple[str, str, str] | None:
    """Describe what is wrong with a value of the right type; None if the type is wrong."""
    shown, words = display(value), ""
    remedy: str
    match kind:
        case "greater_than_equal" | "less_than_equal":
            words = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
            bound = context["ge"] if "ge" in context else context["le"]
            remedy, rule = write(bound, f"write {words}"), "range"
        case "enum":
            known = re.findall(r"'([^']*)'", str(context["expected"]))
            close = nearest(str(value), known)
            words = "one of " + ", ".join(f"'{word}'" for word in known)
            quoted = [word for word in known if _is_number(value, word)]
            several = sum(word.endswith(str(value)) for word in known) > 1
            remedy = write(close) if close and not several else "choose one of them"
            begun = [word for word in known if word.startswith(f"{value}-")]
            remedy = f"write {' or '.join(begun)}" if len(begun) > 1 else remedy
            remedy = write(quoted[0], f"write '{quoted[0]}', in quotes") if quoted else remedy
            rule = "known-value"
        case "string_pattern_mismatch":
            words = PATTERNS.get(context["pattern"], f"text that matches {context['pattern']}")
            remedy, rule = _mended(str(value), context["pattern"]), "pattern"
        case "value_error":
            words, remedy, rule = str(context["error"]), "write such a value", "value"
        case "string_too_short" | "too_short":
            remedy, rule = "write some string" if value == "" else "give at least one", "length"
        case "string_too_long":
            return _too_long(str(value), context["max_length"])
        case _:
            return None
    return f"is {shown}, but must be {words}" if words else "is empty", remedy, rule


def _too_long(value: str, limit: int) -> tuple[str, str, str]:
    """Return what is wrong with a string, the remedy, and the name of the rule."""
    seen = f"is {len(value)} characters long; at most {limit} are allowed"
    return seen, f"shorten it by {len(value) - limit}", "length"


def _mended(value: str, pattern: str) -> str:
    """Suggest a string that matches the pattern."""
    if pattern == PATH_PATTERN:
        return f"write, for example, '/{value}'"
    if pattern == QUANTITY_PATTERN and (unit := _UNITS.fullmatch(value)):
        letter, binary = unit[2] or "", (unit[3] or "").lower()
        upper = letter.lower() if letter in "kK" and not binary else letter.upper()
        return f"write, for example, '{unit[1]}{upper}{binary}'"
    plain = re.sub(r"[^a-z0-9]+", "-", value.lower()).strip("-")
    fitting = (word for word in (plain, f"r{plain}") if re.search(pattern, word))
    close = next(fitting, None) if plain and pattern in NAME_PATTERNS else None
    return f"write, for example, '{close}'" if close else "write such a value"


def _is_number(value: object, word: str) -> bool:
    """Tell whether YAML has read a word as this number: 1.0 without quotes."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and bool(re.fullmatch(r"[0-9.]+", word)) and float(word) == value


def _wrong_type(kind: str, value: object) -> tuple[str, str, str]:
    """Say what a value of a wrong type is, what to write, and the rule."""
    wanted = next((words for name, words in _KINDS.items() if kind.startswith(name)), "text")
    remedy = f"write {wanted}"
    if wanted == "text" and isinstance(value, int | float) and not isinstance(value, bool):
        remedy = write(str(value), f"put it in quotes: '{value}'")
    elif wanted == _KINDS["int"] and isinstance(value, str) and value.isdecimal():
        said = f"write {value} without quotes"
        remedy = write(int(value), said) if len(value) <= _DIGITS else said
    return f"is {display(value)}, but must be {wanted}", remedy, "type"


def known_fields(model: type[BaseModel], location: Sequence[str | int]) -> list[str]:
    """List the fields that are allowed at a location below a model."""
    return list(_fields_at(model, location))


def _fields_at(model: type[BaseModel], location: Sequence[str | int]) -> dict[str, FieldInfo]:
    """Find the fields that a user could have written at a location of the input."""
    annotation: Any = model
    for part in location:
        current = _model_in(annotation)
        if isinstance(part, int) or current is None:
            # The items of a list, or the values of a map.
            annotation = (typing.get_args(_unwrap(annotation)) or (None,))[-1]
        else:
            field = _fields(current).get(part)
            annotation = field.annotation if field else None
    found = _model_in(annotation)
    return _fields(found) if found else {}


def _is_required(model: type[BaseModel], location: Sequence[str | int]) -> bool:
    """Return whether a field must be stated. An item of a list need not be there."""
    fields = _fields_at(model, location[:-1])
    field = fields.get(str(location[-1])) if location else None
    return not location or (field is not None and field.is_required())


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by the names that a user writes."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _unwrap(annotation: Any) -> Any:
    """Remove Annotated and `| None` from an annotation."""
    while typing.get_origin(annotation) in {typing.Annotated, typing.Union, types.UnionType}:
        options = [a for a in typing.get_args(annotation) if a is not type(None)]
        annotation = options[0]
    return annotation


def _model_in(annotation: Any) -> type[BaseModel] | None:
    plain = _unwrap(annotation)
    return plain if isinstance(plain, type) and issubclass(plain, BaseModel) else None


# Finds values that no object of Kubernetes can contain, in a user's input before it is parsed.
#
# A program in Python can pass numbers and strings that JSON has no form for, or that no process
# gets as an argument, a variable or the name of a file.


_BITS = 64
_NUL, _HALF = "\0", regex(r"[\ud800-\udfff]")


def unwritable(data: object) -> Iterator[Finding]:
    """Yield a finding for each value, or key of a map, that cannot be written to an object.

    Args:
        data: The input. Maps and lists of other types are left to the parser.
    """
    waiting: list[tuple[tuple[Any, ...], object]] = [((), data)]
    for path, value in waiting:
        if isinstance(value, Mapping):
            waiting += [((*path, key), item) for key, item in value.items()]
            found = next(filter(None, map(_unwritable, value)), None)
        elif isinstance(value, list | tuple):
            waiting += [((*path, index), item) for index, item in enumerate(value)]
            continue
        else:
            found = _unwritable(value)
        if found is not None:
            seen, remedy = found
            yield Finding(path=path_of(path), seen=seen, remedy=remedy, rule="value")


def _unwritable(value: object) -> tuple[str, str] | None:
    """Return what is wrong with a value, and what to do; None if it can be written."""
    if isinstance(value, str):
        return None if value.isascii() and _NUL not in value else _wrong_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f"is {value}, and JSON has no such number", "write a finite number"
    if isinstance(value, int) and value.bit_length() > _BITS:
        return f"is {display(value)}; Kubernetes reads at most {_BITS}", "write a smaller number"
    return None


def _wrong_text(text: str) -> tuple[str, str] | None:
    """Refuse NUL and unpaired surrogates, which neither programs nor the API server take."""
    if _NUL in text:
        message = f"is {display(text)}, with a NUL, where a program's argument or a variable ends"
        return message, r"remove the character \x00"
    half = _HALF.search(text)
    if half is None:
        return None
    message = f"contains {half[0]!r}, half a character, which no cluster can store"
    return message, either(remove(), "write the whole character")
