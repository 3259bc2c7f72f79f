"""What to write instead of a value of a wrong type, if it shows what is meant."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kthena_components.core.remedies import Remedy, remove, write
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved

_SWITCHES = frozenset({"expose", "model_server"})
"""Maps of fields whose defaults are enough, which users write as true."""
_SCALARS: Mapping[str, str] = {"expose": "port", "parallelism": "tensor"}
"""Maps of fields that users write as one number, and the field that is meant."""
_BY_NAME: Mapping[str, str] = {"hugging_face_token": "name", "cache": "claim"}
"""Maps of fields that users write as one name, and the field that is meant."""
_AMOUNTS = frozenset({"memory", "ephemeral_storage", "shm", "size"})
"""Amounts in bytes, which users write as a number of GiB."""
_IMAGE = frozenset({"repository", "tag"})
"""The fields of an image in the values of charts."""
_MANY, _SHORT = 65536, 200
"""A larger number is no port, size or GiB, and a longer text is no few words."""
_WORDS = frozenset({"extra_args", "args", "command"})
"""Lists of words."""
_QUOTED = regex(r"[\"'\\\\$]")
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_TIME = regex(r"([1-9][0-9]{0,5}) ?([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_LARGEST = 2**63
"""A longer number is no value of an option or a variable, and Python may not write it."""


def meant_value(location: Sequence[str | int], kind: str, value: object) -> Remedy | None:
    """Return what to write instead of a value; None if it does not show it.

    Args:
        location: Keys and indices of the field.
        kind: Pydantic's type of the error.
        value: The value, which has another type than the field.
    """
    name = str(location[-1]) if location else ""
    if name in _SWITCHES and isinstance(value, bool):
        return write({}, "write {} for the defaults") if value else remove()
    if kind.startswith("model"):
        return _map(name, value)
    if kind.startswith("string"):
        return _text(name, value)
    if kind.startswith("list"):
        return _list(name, value)
    return _number_or_switch(name, kind, value) if isinstance(value, str) else None


def _number_or_switch(name: str, kind: str, value: str) -> Remedy | None:
    """Return what a text means instead of seconds, or instead of true or false."""
    if kind.startswith("bool"):
        return write(_TRUTHS[value.casefold()]) if value.casefold() in _TRUTHS else None
    time = _TIME.fullmatch(value) if name.endswith("_seconds") else None
    return write(int(time[1]) * _SECONDS[time[2]]) if time else None


def _map(name: str, value: object) -> Remedy | None:
    """Return what a number or a text means instead of a map."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= len(str(_MANY)):
        value = int(value)
    if name in _SCALARS and _is_count(value):
        return write({_SCALARS[name]: value})
    if name == "network" and value == "host":
        return Remedy("remove it, and write overlay.spec.hostNetwork: true in the role")
    if name == "engine" and isinstance(value, str):
        return Remedy("write a map of fields: {kind: …, image: …, model: …}")
    if name in _BY_NAME and isinstance(value, str) and 0 < len(value) <= _SHORT:
        is_folder = name == "cache" and value.startswith("/")
        return write({"host_path" if is_folder else _BY_NAME[name]: value})
    return None


def _text(name: str, value: object) -> Remedy | None:
    """Return what a number means instead of an amount, or a map instead of an image or a name."""
    if name in _AMOUNTS and _is_count(value):
        return write(f"{value}Gi", f"write a unit, such as '{value}Gi'")
    if name == "image" and isinstance(value, Mapping) and value.keys() >= _IMAGE:
        repository, tag = value["repository"], value["tag"]
        short = isinstance(repository, str) and isinstance(tag, str)
        return write(f"{repository}:{tag}") if short else None
    named = value.get("name") if isinstance(value, Mapping) and len(value) == 1 else None
    return write(named) if isinstance(named, str) and 0 < len(named) <= _SHORT else None


def _list(name: str, value: object) -> Remedy | None:
    """Return what a text or a map means instead of a list."""
    if name in _WORDS and isinstance(value, str):
        return None if _QUOTED.search(value) else _words(value.split())
    if not isinstance(value, Mapping) or not value:
        return None
    if name == "extra_args" and all(map(_is_plain, value.values())):
        return _words([word for flag, each in value.items() for word in _option(str(flag), each)])
    return write([value], "write a list with it: [ … ]") if "name" in value else _named(name, value)


def _words(words: list[str]) -> Remedy | None:
    shown = json.dumps(words)
    return write(words, f"write a list: {shown}") if words and len(shown) <= _SHORT else None


def _named(name: str, value: Mapping[str, Any]) -> Remedy | None:
    """Return the items of a list that a map has by name."""
    first = next(iter(value))
    if name == "env" and all(map(_is_plain, value.values())):
        variables = [{"name": str(key), "value": str(each)} for key, each in value.items()]
        return write(variables, f"write a list: [{{name: {first}, value: …}}]")
    if name == "roles" and all(isinstance(each, Mapping) for each in value.values()):
        roles = [{"name": str(key), **each} for key, each in value.items()]
        return write(roles, f"write a list: [{{name: {first}, …}}]")
    return None


def _option(flag: str, value: object) -> list[str]:
    flag = flag if flag.startswith("-") else f"--{flag.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag] if value else []
    return [flag, str(value)]


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _SHORT and not is_unresolved(value)
    return isinstance(value, int | float) and abs(value) < _LARGEST


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < _MANY
