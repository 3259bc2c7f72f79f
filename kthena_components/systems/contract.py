"""What a system is: the kinds that it brings, and what is known of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding

Body = Mapping[str, Any]

Kind = tuple[str, str]
"""API group and kind; every served version of it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Kinds that are judged alike."""

    kinds: frozenset[Kind]
    read: Callable[[Body, str], ServingFacts | None]
    """Read the facts of an object of these kinds for the rules of core/rules; None for others."""
    judge: Callable[[Body, str], list[Finding]] | None = None
    """The rules of the system's own, such as what its admission would refuse."""
    judge_version: Callable[[Body, str, str], list[Finding]] | None = None
    """The same, where they differ between Kthena's versions: the last argument is one."""
