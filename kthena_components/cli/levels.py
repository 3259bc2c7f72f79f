"""How much each rule weighs: data, in files of this package or of the user's."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

from kthena_components.core.checks.catalogue import rule_names
from kthena_components.core.findings import Finding, Level, suggest

ENVIRONMENTS = ("dev", "staging", "prod")
DEFAULT = "*"


class Weight(StrEnum):
    """What a levels file may say of a rule."""

    MANDATORY = "mandatory"
    ADVISORY = "advisory"
    DISABLED = "disabled"


class LevelsError(ValueError):
    """A levels file that cannot be used, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The weight of each rule; a rule that is not named keeps the level of its findings."""

    weights: Mapping[str, Weight] = field(default_factory=dict)

    def apply(self, findings: Iterable[Finding]) -> list[Finding]:
        """Weigh findings. What could not be judged stays so, unless its rule is disabled."""
        weighed: list[Finding] = []
        for finding in findings:
            weight = self.weights.get(finding.rule, self.weights.get(DEFAULT))
            if weight is Weight.DISABLED:
                continue
            if weight is not None and finding.level is not Level.UNKNOWN:
                finding = replace(finding, level=Level(weight))  # noqa: PLW2901 - the same, weighed
            weighed.append(finding)
        return weighed


def read_levels(asked: str | None) -> Levels:
    """Read the levels of an environment or of a file. None are asked for: each finding's own.

    Raises:
        LevelsError: the file is missing, is not of this shape, or names a rule that is not there.
    """
    if asked is None:
        return Levels()
    if asked in ENVIRONMENTS:
        text = files("kthena_components.cli").joinpath("levels", f"{asked}.json").read_text()
    else:
        text = _own(asked)
    try:
        stated = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LevelsError(f"{asked}: is not JSON: {error}") from error
    return _levels(asked, stated)


def _own(asked: str) -> str:
    try:
        return Path(asked).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        meant = suggest(asked, ENVIRONMENTS)
        raise LevelsError(f"there is no level and no file '{asked}'; {meant}, or a file") from error
    except (OSError, ValueError) as error:
        raise LevelsError(f"{asked}: cannot be read: {error}") from error


def _levels(asked: str, stated: object) -> Levels:
    if not isinstance(stated, dict):
        raise LevelsError(f"{asked}: must be a map from rules to levels")
    known, weights = rule_names(), {}
    for rule, weight in stated.items():
        if rule != DEFAULT and rule not in known:
            meant = suggest(rule, known)
            raise LevelsError(f"{asked}: there is no rule '{rule}'; {meant}")
        if not isinstance(weight, str) or weight not in set(Weight):
            shown = json.dumps(weight)
            raise LevelsError(f"{asked}: '{rule}' is {shown}; known: {', '.join(Weight)}")
        weights[rule] = Weight(weight)
    return Levels(weights=weights)
