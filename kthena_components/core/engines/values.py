"""Converts the text of one option to a value as the engine would, or reports why it is rejected."""

import json
import math
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.engines.options import Option, Use
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import MAX_PORT
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeText, Unknown

_INTEGER = regex(r"\s*[+-]?[0-9](?:_?[0-9]){0,17}\s*")
_UNIT = regex(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)([kKmMgGtT])\s*")
_SI = regex(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)(Ki|Mi|Gi|Ti|k|M|G|T)\s*")
_SIZED = regex(r"[0-9][kKmMgGtT]\b")
_PAIRS = regex(r"[^={},\s]{1,64}=[0-9]{1,9}(?:,[^={},\s]{1,64}=[0-9]{1,9}){0,31}", re.ASCII)
"""Keys and numbers that vLLM once took for JSON (vllm/engine/arg_utils.py `nullable_kvs`)."""
_UNEXPANDED = regex(r"\$(?:\{([A-Za-z_]\w*)[^}]*\}|([A-Za-z_]\w*))", re.ASCII)
_SUFFIXES = "kmgt"
_LISTENS = frozenset({"--master-port", "--port", "--server-port"})
"""Ports that an engine opens; others may be for a mode in which it does not run."""
NUMBERS = frozenset({"float", "int", "si-size", "size", "size-auto"})
"""The types of options that take a number."""
_NOTHING = frozenset({"", "None"})
"""Strings that vLLM reads as None for options that may be None (`optional_type`)."""
REFUSED = "refused"
"""The type of an option that exists but fails the start (SGLang's DeprecatedAction)."""
_MOST_CHOICES = 8
"""Maximum number of choices in a message."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A value that the engine rejects."""

    text: str
    """The observation and the rule. A clause, no full stop."""
    remedy: str
    hard: bool = True
    by_release: bool = False
    """Whether other releases may accept it: it is missing in a list that changes."""


def convert(option: Option, shown: str, given: MaybeText, *, in_shell: bool) -> Any:
    """Return an option's value: a number, text, bool or JSON; None leaves it to the engine.

    A value that the engine rejects is Refused.

    Args:
        shown: The value as the user wrote it, for messages.
        in_shell: Whether a shell has expanded it: a `$` is then literal.
    """
    if isinstance(given, Unknown):
        return given
    kind = option.type.removesuffix("?")
    if kind != option.type and given in _NOTHING:
        # The parser compares converted values: None must be one of the choices.
        allowed = not option.choices or str(None) in option.choices
        return None if allowed else _not_a_choice(option, shown)
    variable = unexpanded(option.name, shown, given) if kind in NUMBERS and not in_shell else None
    if variable is not None:
        return variable
    reader = _READERS.get(kind)
    value = given if reader is None else reader(option, shown, given)
    if option.choices and not isinstance(value, Refused) and str(value) not in option.choices:
        return _not_a_choice(option, shown)
    return value


def unexpanded(what: str, shown: str, given: str, sets: Container[str] = ()) -> Refused | None:
    """Reject `$NAME` and `${NAME}` where no shell runs: the engine gets the text as it is.

    Args:
        what: What has the value: an option.
        shown: The value as the user wrote it, for messages.
        sets: The variables of the pod. Another name may be filled in before the object is applied.

    Source: Kubernetes documentation, Define Dependent Environment Variables.
    """
    names = [found[1] or found[2] for found in _UNEXPANDED.finditer(given)]
    if not names:
        return None
    write = _UNEXPANDED.sub(lambda found: f"$({found[1] or found[2]})", given)
    return Refused(
        f"{what} has '{shown}', which no shell expands here",
        f"write {write}, which Kubernetes expands, or start the engine from a shell",
        hard=any(name in sets for name in names),
    )


def _not_a_choice(option: Option, shown: str) -> Refused:
    """Refuse a value that is none of the option's choices, and list the first of them."""
    listed = ", ".join(option.choices[:_MOST_CHOICES])
    more = len(option.choices) - _MOST_CHOICES
    listed += f" and {more} more" if more > 0 else ""
    return Refused(
        f"{option.name} has '{shown}', and takes one of: {listed}",
        "write one of them",
        by_release=True,
    )


def read_value(option: Option, shown: str, given: MaybeText, *, in_shell: bool) -> Any:
    """Convert a value and compare it with the option's range; the arguments are `convert`'s."""
    value = convert(option, shown, given, in_shell=in_shell)
    return out_of_range(option, shown, value) or value


def stated(use: Use, value: Any) -> Any:
    """Convert an option's value for the field that it sets, or return Refused."""
    if use.key:
        inner = value.get(use.key) if isinstance(value, Mapping) else None
        if use.item is list:
            texts = inner if isinstance(inner, list) else None
            return texts and tuple(item for item in texts if isinstance(item, str))
        return inner if type(inner) is use.item else None
    return value


def out_of_range(option: Option, shown: str, value: Any) -> Refused | None:
    """Reject a number below the engine's minimum, and a port above the last one."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    least = option.use.least if option.use else None
    if least is not None and value < least:
        text = f"{option.name} takes an integer of at least {least}, not '{shown}'"
        return Refused(text, f"write {least} or more")
    if value > MAX_PORT and option.name.endswith("port"):
        text = f"{option.name} takes a port of at most {MAX_PORT}, not '{shown}'"
        return Refused(text, f"write {MAX_PORT} or less", hard=option.name in _LISTENS)
    return None


def _int(option: Option, shown: str, given: str) -> int | Refused:
    """Read an integer as Python's `int` does."""
    if not _INTEGER.fullmatch(given):
        return Refused(f"{option.name} takes an integer, not '{shown}'", "write a number")
    return int(given)


def _size(option: Option, shown: str, given: str) -> int | Refused:
    """Read an integer with an optional unit, as vLLM does: k is 1000 and K is 1024.

    Source: vllm/engine/arg_utils.py `human_readable_int`.
    """
    match = _UNIT.fullmatch(given)
    if match is None:
        return _int(option, shown, given)
    number, unit = match.groups()
    power = 1 + _SUFFIXES.index(unit.lower())
    if unit.islower():
        return int(float(number) * 1000**power)
    if "." in number:
        return _no_decimals(option, shown, number, unit, unit.lower())
    return int(int(number) * 1024**power)


def _si_size(option: Option, shown: str, given: str) -> int | Refused:
    """Read an integer with an optional unit, as SGLang does (sglang/srt/utils/common.py)."""
    match = _SI.fullmatch(given)
    if match is None:
        return _int(option, shown, given)
    number, unit = match.groups()
    power = 1 + _SUFFIXES.index(unit[0].lower())
    if not unit.endswith("i"):
        return int(float(number) * 1000**power)
    if "." in number:
        return _no_decimals(option, shown, number, unit, unit[0])
    return int(int(number) * 1024**power)


def _no_decimals(option: Option, shown: str, number: str, unit: str, decimal: str) -> Refused:
    return Refused(
        f"{option.name} takes no decimals before '{unit}', which counts in 1024s: '{shown}'",
        f"write {number}{decimal}",
    )


def _size_or_auto(option: Option, shown: str, given: str) -> int | Refused | None:
    text = given.strip()
    return None if text == "-1" or text.lower() == "auto" else _size(option, shown, given)


def _float(option: Option, shown: str, given: str) -> float | Refused:
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if math.isnan(value) or math.isinf(value):
        return Refused(f"{option.name} takes a number, not '{shown}'", "write a number such as 0.9")
    return value


def _bool(option: Option, shown: str, given: str) -> bool | Refused:
    if given.lower() not in {"true", "false"}:
        return Refused(f"{option.name} takes true or false, not '{shown}'", "write true or false")
    return given.lower() == "true"


def _json(option: Option, shown: str, given: str) -> Any:
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        # vLLM took pairs until 0.10.0, so that another release may.
        pairs = _PAIRS.fullmatch(given) is not None
        return Refused(f"{option.name} takes JSON, not '{shown}'", "write JSON", by_release=pairs)


def _pairs_or_json(option: Option, shown: str, given: str) -> Any:
    """Read JSON as vLLM did before 0.10.0, which took `image=2,video=1` as well."""
    if _PAIRS.fullmatch(given) is None:
        return _json(option, shown, given)
    return {key.strip().lower(): int(v) for key, v in (p.split("=") for p in given.split(","))}


def _pairs_or_object(option: Option, shown: str, given: str) -> Any:
    return _only_objects(option, shown, _pairs_or_json(option, shown, given))


def _sized_json(option: Option, shown: str, given: str) -> Any:
    """Read JSON as vLLM does since 0.20.0, where 80g is a number."""
    value = _json(option, shown, given)
    sized = isinstance(value, Refused) and _SIZED.search(given) is not None
    return replace(value, hard=False) if sized else value


def _object(option: Option, shown: str, given: str) -> Any:
    return _only_objects(option, shown, _json(option, shown, given))


def _sized_object(option: Option, shown: str, given: str) -> Any:
    return _only_objects(option, shown, _sized_json(option, shown, given))


def _only_objects(option: Option, shown: str, value: Any) -> Any:
    """Reject JSON that is not an object, as vLLM does for its configurations."""
    if isinstance(value, Refused | Mapping):
        return value
    text = f"{option.name} takes a JSON object, not '{shown}'"
    return Refused(text, f"write {option.name}.KEY VALUE, or a JSON object")


def _lora(option: Option, shown: str, given: str) -> str | Refused:
    """Read a LoRA module: `name=path` or JSON (vLLM `LoRAParserAction`)."""
    named = "=" in given and "," not in given
    if not given or named or isinstance(_json(option, shown, given), Mapping):
        return given
    return Refused(f"{option.name} takes name=path or JSON, not '{shown}'", "write name=path")


def _json_or_text(_: Option, __: str, given: str) -> Any:
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given


_READERS: Mapping[str, Callable[[Option, str, str], Any]] = {
    "int": _int,
    "size": _size,
    "size-auto": _size_or_auto,
    "si-size": _si_size,
    "float": _float,
    "bool": _bool,
    "json": _json,
    "object": _object,
    "sized-object": _sized_object,
    "any-json": _json_or_text,
    "lora": _lora,
    "pairs-or-json": _pairs_or_json,
    "pairs-or-object": _pairs_or_object,
    "sized-json": _sized_json,
}
