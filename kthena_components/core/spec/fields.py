"""The types of single fields and of pod templates, and the base of every input.

A pattern comes with its meaning, which parse.py quotes.
"""

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

from kthena_components.core.templates import Template
from kthena_components.core.values.display import INT32
from kthena_components.core.values.quantity import parse_quantity
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
Port = Annotated[int, Field(ge=1, le=65535)]
Path = Annotated[Word, Field(pattern=_PATH)]
Device = Annotated[Word, Field(pattern=_NO_BLANKS)]
"""Name of a network device, or a list of them as NCCL reads it."""


class Spec(BaseModel):
    """Base of every input: frozen, strict, and closed against unknown fields."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", defer_build=True)
