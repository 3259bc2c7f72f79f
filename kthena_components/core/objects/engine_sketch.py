"""The engines of an object whose controller completes their pods."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kthena_components.core.objects.object import PodSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """The pods of engines, as far as an object states them.

    Each engine of the object's facts has pods here. Their path equals the path of the engine's
    GPUs, or is a prefix of it.
    """

    sets: tuple[PodSet, ...]
    roles: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Arguments of roles, from fields that only this kind has. By the path of the pods."""
    unsaid: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Arguments that the object leaves to others, each with who decides, as a clause. By the path
    of the pods."""
    beside: Mapping[str, str] = field(default_factory=dict)
    """Objects that the controller makes for clients, by title, each with its use as a clause."""
    known: tuple[str, ...] = ()
    """Paths of fields that repeat other fields: either is enough for the description."""
    refused: str = ""
    """Why its engines cannot be described, as a clause. Empty: they can."""
