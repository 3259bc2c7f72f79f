"""How much each rule weighs, by which releases, and what may be asked for: what callers are told.

The table of the environments is levels.json. A rule, or an environment, that is not in it keeps
the level of its findings.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from kthena_components.core.findings import RULE_FAULT, Finding, Level, nearest, suggest
from kthena_components.core.schema.versions import (
    NAMED,
    TITLES,
    VERSIONS,
    known_version,
    read_release,
)
from kthena_components.core.values.read import whole
from kthena_components.judge.catalogue import rule_names

ENVIRONMENTS = ("dev", "staging", "prod")
DEFAULT = "*"
"""Stands for all rules that are not named."""
_VERSION_SETTINGS = {f"{system}Version": system for system in NAMED}
_RELEASES = "releases"
_UNWEIGHED = frozenset({Level.UNKNOWN, Level.WAIVED})


class LevelOverride(StrEnum):
    """What may be said of a rule."""

    MANDATORY = "mandatory"
    ADVISORY = "advisory"
    DISABLED = "disabled"


SETTINGS: Mapping[str, dict[str, Any]] = {
    "environment": {
        "type": "string",
        "enum": list(ENVIRONMENTS),
        "description": "Whose levels are gone by. Default: each finding's own.",
    },
    "levels": {
        "type": "object",
        "description": "Level of a rule, or of all others (*), in place of the environment's.",
        "additionalProperties": {"type": "string", "enum": list(LevelOverride)},
    },
    **{
        setting: {
            "type": "string",
            "description": f"{TITLES[system]} that objects are judged by. Default "
            f"{VERSIONS[system][-1]}.",
        }
        for setting, system in _VERSION_SETTINGS.items()
    },
    _RELEASES: {
        "type": "object",
        "description": "Release of a system that objects are judged by: {lws: 0.9}. Default: the "
        "newest that is known.",
        "additionalProperties": {"type": "string"},
    },
}
"""What a policy's config may say beside its enforcementLevel, as JSON schemas."""
LIMITS: Mapping[str, dict[str, Any]] = {
    "gpuBudget": {
        "type": "integer",
        "minimum": 0,
        "description": "GPUs that all pods of a cluster may ask for. Default: any number.",
    },
    "gpuTypes": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "description": "Resources (nvidia.com/gpu) and products of GPUs to allow. Default: all.",
    },
}
"""What the config of a policy that sees all objects together may say as well."""


class SettingError(ValueError):
    """A setting that cannot be used, and why, in one sentence without a full stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The weight of each rule; a rule that is not named keeps the level of its findings."""

    weights: Mapping[str, LevelOverride] = field(default_factory=dict)

    def apply(self, findings: Iterable[Finding]) -> list[Finding]:
        """Weigh findings. Disabled rules say nothing; what is unknown or waived stays so.

        That a rule failed is not among all others: it is silent only where it is named.
        """
        weighed: list[Finding] = []
        for finding in findings:
            other = None if finding.rule == RULE_FAULT else self.weights.get(DEFAULT)
            weight = self.weights.get(finding.rule, other)
            if weight is LevelOverride.DISABLED:
                continue
            if weight is not None and finding.level not in _UNWEIGHED:
                finding = replace(finding, level=Level(weight))  # noqa: PLW2901 - the same, weighed
            weighed.append(finding)
        return weighed

    def overlaid(self, other: "Levels") -> "Levels":
        """Give these levels changed by others; a weight for all rules leaves nothing of these."""
        return (
            other if DEFAULT in other.weights else Levels(weights={**self.weights, **other.weights})
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """By what a pack judges."""

    levels: Levels = field(default_factory=Levels)
    versions: Mapping[str, str] = field(default_factory=dict)
    """Releases that the cluster runs, by system: the newest that is known where one is left out."""
    gpu_budget: int | None = None
    """How many accelerators all pods of a cluster may ask for; no limit where it is None."""
    gpu_types: tuple[str, ...] = ()
    """Resources and products of accelerators that pods may ask for; any where it is empty."""


def environment_levels(environment: str) -> Levels:
    """Give the levels of an environment.

    Raises:
        SettingError: there is no such environment.
    """
    if environment not in ENVIRONMENTS:
        meant = suggest(environment, ENVIRONMENTS)
        raise SettingError(f"there is no environment '{environment}'; {meant}")
    rows = _table().items()
    return Levels(weights={rule: row[environment] for rule, row in rows if environment in row})


@cache
def _table() -> Mapping[str, Mapping[str, LevelOverride]]:
    """Read the weight of each rule by environment."""
    text = resources.files(__package__).joinpath("levels.json").read_text(encoding="utf-8")
    rows: dict[str, dict[str, str]] = json.loads(text)
    return {
        rule: {key: LevelOverride(word) for key, word in row.items()} for rule, row in rows.items()
    }


def parse_levels(stated: object) -> Levels:
    """Read a map from rules, or * for all others, to weights.

    Raises:
        SettingError: it is no such map, or names a rule or a weight that is not there.
    """
    if not isinstance(stated, Mapping):
        raise SettingError("must be a map from rules to levels")
    known, weights = rule_names(), {}
    for rule, weight in stated.items():
        if rule != DEFAULT and rule not in known:
            close = nearest(str(rule), known)
            meant = f"write '{close}'" if close else "'check --rules' lists those that there are"
            raise SettingError(f"there is no rule '{rule}'; {meant}")
        if not isinstance(weight, str) or weight not in set(LevelOverride):
            known_weights = ", ".join(LevelOverride)
            raise SettingError(f"'{rule}' is {_shown(weight)}; known: {known_weights}")
        weights[str(rule)] = LevelOverride(weight)
    return Levels(weights=weights)


def parse_version(stated: object, system: str = "kthena") -> str:
    """Read a version of a system, such as Kthena's `0.4` or Volcano's `v1.14.2`.

    Raises:
        SettingError: it is no text, or a version that is not known here.
    """
    known, title = ", ".join(VERSIONS[system]), TITLES[system]
    if not isinstance(stated, str):
        raise SettingError(f"{_shown(stated)} is no text that names a {title}; known: {known}")
    if known_version(stated, system) is None:
        raise SettingError(f"there is no {title} '{stated}' here; known: {known}")
    return ".".join(map(str, read_release(stated)))


def parse_releases(stated: object) -> dict[str, str]:
    """Read a map from systems to releases: `{"lws": "0.9"}`.

    Raises:
        SettingError: it is no such map, or names a system or a release that is not known here.
    """
    if not isinstance(stated, Mapping):
        raise SettingError(f"{_RELEASES} is {_shown(stated)}, which is no map from systems")
    for system in stated:
        if system not in VERSIONS:
            meant = suggest(str(system), VERSIONS)
            raise SettingError(f"{_RELEASES} names '{system}', of which none is known; {meant}")
    return {str(system): parse_version(version, system) for system, version in stated.items()}


def parse_budget(stated: object) -> int:
    """Read how many accelerators may be asked for. A count may be a float: Pulumi sends those.

    Raises:
        SettingError: it is no count.
    """
    count = whole(stated)
    if not isinstance(count, int) or count < 0:
        raise SettingError(f"gpuBudget is {_shown(stated)}; write a number of GPUs from 0 on")
    return count


def parse_types(stated: object) -> tuple[str, ...]:
    """Read which accelerators may be asked for: names of resources, and of products.

    Raises:
        SettingError: it is no list of names, or names nothing.
    """
    example = 'write for example ["nvidia.com/gpu"]'
    if not isinstance(stated, list | tuple):
        raise SettingError(f"gpuTypes is {_shown(stated)}, which is no list; {example}")
    if not stated:
        raise SettingError("gpuTypes names nothing, and so allows nothing; name one or remove it")
    for name in stated:
        if not isinstance(name, str) or not name.strip():
            raise SettingError(f"gpuTypes holds {_shown(name)}, which is no name; {example}")
    return tuple(name.strip() for name in stated)


def parse_settings(stated: Mapping[str, object], *, together: bool = False) -> Settings:
    """Read what a policy's config says: an environment, levels on top of it, versions of systems.

    Args:
        stated: The config, without its enforcementLevel.
        together: Whether the policy sees all objects together. Then it may limit accelerators.

    Raises:
        SettingError: something of it cannot be used.
    """
    known = (*SETTINGS, *LIMITS) if together else SETTINGS
    for name in stated:
        if name not in known:
            raise SettingError(f"there is no setting '{name}' here; {_meant(name, known)}")
    levels = Levels()
    if "environment" in stated:
        asked = stated["environment"]
        levels = environment_levels(asked if isinstance(asked, str) else _shown(asked))
    if "levels" in stated:
        try:
            levels = levels.overlaid(parse_levels(stated["levels"]))
        except SettingError as error:
            raise SettingError(f"levels: {error}") from None
    versions = parse_releases(stated.get(_RELEASES, {}))
    versions |= {
        system: parse_version(stated[setting], system)
        for setting, system in _VERSION_SETTINGS.items()
        if setting in stated
    }
    return Settings(
        levels=levels,
        versions=versions,
        gpu_budget=parse_budget(stated["gpuBudget"]) if "gpuBudget" in stated else None,
        gpu_types=parse_types(stated["gpuTypes"]) if "gpuTypes" in stated else (),
    )


def _meant(name: str, known: Iterable[str]) -> str:
    elsewhere = "only policies that see all objects together have it"
    return elsewhere if name in LIMITS else suggest(name, known)


def _shown(value: object) -> str:
    """Show a value as it stands in JSON."""
    try:
        return json.dumps(value)[:60]
    except (TypeError, ValueError):
        return type(value).__name__
