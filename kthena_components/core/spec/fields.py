"""The types of single fields and of pod templates, and what a value of a wrong type means.

A pattern comes with its meaning, which parse.py quotes.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
)
from pydantic_core import CoreSchema, core_schema

from kthena_components.core.remedies import Remedy, remove, write
from kthena_components.core.templates import Template
from kthena_components.core.values.display import INT32
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import MAX_PORT
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    OUTPUT_CLOSE,
    OUTPUT_OPEN,
    is_unresolved,
    show_tokens,
)

# The parts of a user's pod template that are read or extended: the rest is passed through.
#
# Kubernetes validates pod templates itself. Only what would make the plan fail is checked here.


QUANTITY_WORDS = "a Kubernetes quantity such as 125, 500m or 15Gi"
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
"""A larger number is not a port, size or GiB, and a longer text is not a few words."""
_WORDS = frozenset({"extra_args", "args", "command"})
"""Lists of words."""
_QUOTED = regex(r"[\"'\\\\$]")
_TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_TIME = regex(r"([1-9][0-9]{0,5}) ?([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_LARGEST = 2**63
"""A longer number is not a value of an option or a variable, and Python may not write it."""


def _amount(value: Any) -> Any:
    if parse_quantity(value) is None and not is_unresolved(value):
        raise ValueError(QUANTITY_WORDS)
    return value


_Text = Annotated[str, Field(min_length=1)]
Amount = Annotated[Any, AfterValidator(_amount)]
"""A quantity, as text or as a number."""


class _Shape(BaseModel):
    """A part of a template. Fields that are not listed here may have any value."""

    model_config = ConfigDict(strict=True, extra="allow", defer_build=True)


class _Variable(_Shape):
    name: _Text


class _Resources(_Shape):
    limits: dict[str, Amount] | None = None
    requests: dict[str, Amount] | None = None


class _Container(_Shape):
    name: _Text
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[_Variable] | None = None
    resources: _Resources | None = None


class _Pod(_Shape):
    containers: list[_Container] | None = None
    init_containers: Annotated[list[_Container] | None, Field(alias="initContainers")] = None


class _Metadata(_Shape):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _PodTemplate(_Shape):
    metadata: _Metadata | None = None
    spec: _Pod | None = None


class _Shaped:
    """Make pydantic validate a mapping by its shape, and return the same mapping."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Accept what the schema accepts, and keep the value instead of the validated copy."""

        def check(value: Any, validate: Any) -> Any:
            validate(value)
            return value

        shape = handler.generate_schema(_PodTemplate)
        return core_schema.no_info_wrap_validator_function(check, shape)


PodTemplate = Annotated[Template, _Shaped()]
"""A pod template, or changes to one."""


def _plain(value: Any) -> Any:
    """Reject an Output where the plan needs the value."""
    if is_unresolved(value):
        raise ValueError("a plain value")
    return value


def _shown(value: str) -> str:
    text = show_tokens(value)
    if not text.isprintable() or not text.strip():
        raise ValueError("text without control characters and line ends, and not only blanks")
    return value


def _budget(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str) or is_unresolved(value):
        raise ValueError("a count or a percentage such as 25%")
    if isinstance(value, int) and value >= INT32:
        raise ValueError(f"a count of at most {INT32 - 1}, or a percentage such as 25%")
    return value


Count = Annotated[int, Field(ge=0, le=INT32 - 1)]
Positive = Annotated[int, Field(ge=1, le=INT32 - 1)]
Budget = Annotated[int | str, BeforeValidator(_budget)]
WORD = Field(strict=False)  # strict mode would require the enum's member instead of its text
Text = Annotated[str, Field(min_length=1)]
Shown = Annotated[Text, AfterValidator(_shown)]
"""Text that becomes a word of a command line, or a name: no control characters, not only blanks."""
Word = Annotated[Shown, AfterValidator(_plain)]
"""Text that must be known when the plan is built."""
Waivers = dict[str, Annotated[str, AfterValidator(_plain)]]
"""Waivers by rule: until when, and why. Read in checker/waivers.py."""
_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_SERVICE_NAME = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"^{_PART}([.]{_PART})*$"
_NOT_YET = f"^{OUTPUT_OPEN}[0-9]+{OUTPUT_CLOSE}$"
_QUEUE, _NAMESPACE = rf"{_SUBDOMAIN}|{_NOT_YET}", rf"{_LABEL}|{_NOT_YET}"
_QUANTITY = r"^[0-9]+(\.[0-9]+)?([KMGTPE]i|[numkMGTPE]|[eE][0-9]{1,3})?$"
_RESOURCE = r"^[a-z0-9.-]+/[A-Za-z0-9_.-]+$"
_PATH, _NO_BLANKS = "^/", r"^\S+$"
_KEY = rf"^[-._A-Za-z0-9]+$|{_NOT_YET}"
_LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
_LABEL_VALUE = rf"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$|{OUTPUT_OPEN}"
_PARTS = (
    "lower-case letters, digits, dashes and dots, with a letter or digit at both ends of each part"
)
PATTERNS = {
    _LABEL: "lower-case letters, digits and dashes, with a letter or digit at both ends",
    _SERVICE_NAME: "lower-case letters, digits and dashes, starting with a letter",
    _SUBDOMAIN: _PARTS,
    _QUEUE: _PARTS,
    _NAMESPACE: "lower-case letters, digits and dashes, with a letter or digit at both ends",
    _QUANTITY: QUANTITY_WORDS,
    _LABEL_KEY: "the key of a label, such as topology.kubernetes.io/zone",
    _LABEL_VALUE: "letters, digits, '-', '_' and '.', with a letter or digit at both ends",
    _RESOURCE: "an extended resource such as nvidia.com/gpu",
    _KEY: "the key of a Secret: letters, digits, '-', '_' and '.'",
    _PATH: "an absolute path such as /mnt/models",
    _NO_BLANKS: "text without blanks",
}
"""What each pattern means, for messages."""
QUANTITY_PATTERN, PATH_PATTERN = _QUANTITY, _PATH
NAME_PATTERNS = frozenset({_LABEL, _SERVICE_NAME, _SUBDOMAIN, _QUEUE, _NAMESPACE})
"""Patterns of names that the user may choose."""
Label = Annotated[str, Field(pattern=_LABEL, max_length=63)]
Namespace = Annotated[str, Field(pattern=_NAMESPACE, max_length=63)]
ServiceName = Annotated[str, Field(pattern=_SERVICE_NAME, max_length=63)]
QueueName = Annotated[str, Field(pattern=_QUEUE, max_length=253)]
ObjectName = QueueName
"""Name of an object that the serving refers to, perhaps an Output."""
SecretKey = Annotated[str, Field(pattern=_KEY, min_length=1, max_length=253)]
LabelValue = Annotated[str, Field(pattern=_LABEL_VALUE, max_length=63)]
LabelKey = Annotated[str, Field(pattern=_LABEL_KEY, max_length=317)]
Quantity = Annotated[str, Field(pattern=_QUANTITY, max_length=32)]
DnsName = Annotated[str, Field(pattern=_SUBDOMAIN, max_length=253)]
ResourceName = Annotated[str, Field(pattern=_RESOURCE)]
Port = Annotated[int, Field(ge=1, le=MAX_PORT)]
Path = Annotated[Word, Field(pattern=_PATH)]
Device = Annotated[Word, Field(pattern=_NO_BLANKS)]
"""Name of a network device, or a list of them as NCCL reads it."""


class Spec(BaseModel):
    """Base of every input: frozen, strict, and closed against unknown fields."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", defer_build=True)


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
    """Return what a string means instead of seconds, or instead of true or false."""
    if kind.startswith("bool"):
        return write(_TRUTHS[value.casefold()]) if value.casefold() in _TRUTHS else None
    time = _TIME.fullmatch(value) if name.endswith("_seconds") else None
    return write(int(time[1]) * _SECONDS[time[2]]) if time else None


def _map(name: str, value: object) -> Remedy | None:
    """Return what a number or a string means instead of a map."""
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
    """Return what a string or a map means instead of a list."""
    if name in _WORDS and isinstance(value, str):
        return None if _QUOTED.search(value) else _words(value.split())
    if not isinstance(value, Mapping) or not value:
        return None
    if name == "extra_args" and all(map(_is_plain, value.values())):
        return _words([word for flag, each in value.items() for word in _option(str(flag), each)])
    return write([value], "write a list with it: [ … ]") if "name" in value else _items(name, value)


def _words(words: list[str]) -> Remedy | None:
    shown = json.dumps(words)
    return write(words, f"write a list: {shown}") if words and len(shown) <= _SHORT else None


def _items(name: str, value: Mapping[str, Any]) -> Remedy | None:
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
