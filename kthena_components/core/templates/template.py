"""The parts of a user's pod template that are read or extended: the rest is passed through.

Kubernetes validates pod templates itself. Only what would make the plan fail is checked here.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from kthena_components.core.templates.overlay import Template
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.unknown import is_unresolved

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
