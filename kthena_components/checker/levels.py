"""Settings of a check: rule levels, releases of systems, and limits on accelerators.

levels.json is the table of environments. Rules or environments that are not in it keep the level of
their findings.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from kthena_components.core.findings import RULE_FAULT, Finding, Level, nearest, suggest
from kthena_components.core.hardware import NO_CHOICE, GpuChoice, parse_choice
from kthena_components.core.rules.production import PRODUCTION_NAMES
from kthena_components.core.schema.versions import (
    NAMED,
    TITLES,
    VERSIONS,
    known_version,
    read_release,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import whole
from kthena_components.core.values.unknown import Unknown

ENVIRONMENTS = ("dev", "staging", "prod")
DEFAULT = "*"
"""Means all rules that are not named."""
_VERSION_SETTINGS = {f"{system}Version": system for system in NAMED}
_RELEASES, _GPU = "releases", "gpu"
_ORDER = (Level.ADVISORY, Level.MANDATORY)
"""Levels that an environment gives, the lower first."""
_UNWEIGHED = frozenset({Level.UNKNOWN, Level.WAIVED})


class LevelOverride(StrEnum):
    """The allowed levels of a rule."""

    MANDATORY = "mandatory"
    ADVISORY = "advisory"
    DISABLED = "disabled"


SETTINGS: Mapping[str, dict[str, Any]] = {
    "environment": {
        "type": "string",
        "enum": list(ENVIRONMENTS),
        "description": "Environment whose levels apply. Default: each finding's own.",
    },
    "levels": {
        "type": "object",
        "description": "Level of a rule, or of all others (*), instead of the environment's.",
        "additionalProperties": {"type": "string", "enum": list(LevelOverride)},
    },
    **{
        setting: {
            "type": "string",
            "description": f"{TITLES[system]} version by which its objects are checked. Default "
            f"{VERSIONS[system][-1]}.",
        }
        for setting, system in _VERSION_SETTINGS.items()
    },
    _RELEASES: {
        "type": "object",
        "description": "Releases of systems by which their objects are checked: {lws: 0.9}. "
        "Default: the newest that are known.",
        "additionalProperties": {"type": "string"},
    },
    _GPU: {
        "type": "string",
        "description": "GPU of the pods whose manifests name none, for the rules about memory: "
        "h200, or with a value of node selectors: h100, POOL=h200. Default: none.",
    },
}
"""Settings of a policy's config besides enforcementLevel, as JSON schemas."""
LIMITS: Mapping[str, dict[str, Any]] = {
    "gpuBudget": {
        "type": "integer",
        "minimum": 0,
        "description": "GPUs that all pods of a cluster may request. Default: any number.",
    },
    "gpuTypes": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "description": "Resources (nvidia.com/gpu) and products of GPUs to allow. Default: all.",
    },
    "inventory": {
        "type": "string",
        "minLength": 1,
        "description": "A file of `kthena-components inventory`, into which the pods must fit.",
    },
}
"""Additional settings of a policy that sees all objects together."""


class SettingError(ValueError):
    """An invalid setting; the text is one sentence without a full stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The level of each rule; a rule that is not named keeps the level of its findings."""

    weights: Mapping[str, LevelOverride] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    """The rules whose level a user states, not an environment: it holds for every finding."""

    def apply(self, findings: Iterable[Finding]) -> list[Finding]:
        """Set the levels of findings. Disabled rules are dropped; unknown and waived stay so.

        The level for all rules does not apply to a rule's failure: only a level in its own name
        does.
        """
        weighed: list[Finding] = []
        for finding in findings:
            other = None if finding.rule == RULE_FAULT else self.weights.get(DEFAULT)
            weight = self.weights.get(finding.rule, other)
            if weight is LevelOverride.DISABLED:
                continue
            if weight is not None and finding.level not in _UNWEIGHED:
                own = finding.rule in self.own or DEFAULT in self.own
                level = Level(weight) if own else min(Level(weight), finding.most, key=_ORDER.index)
                finding = replace(finding, level=level)  # noqa: PLW2901 - the same, with its level
            weighed.append(finding)
        return weighed

    @property
    def asked(self) -> frozenset[str]:
        """The rules about production that these levels enable."""
        on = (rule for rule, weight in self.weights.items() if weight != LevelOverride.DISABLED)
        return PRODUCTION_NAMES.intersection(on)

    def overlaid(self, other: "Levels") -> "Levels":
        """Return these levels overridden by others; a level for all rules overrides them all."""
        return (
            other
            if DEFAULT in other.weights
            else Levels(weights={**self.weights, **other.weights}, own=self.own | other.own)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a policy pack."""

    levels: Levels = field(default_factory=Levels)
    versions: Mapping[str, str] = field(default_factory=dict)
    """Releases that the cluster runs, by system: the newest that is known where one is left out."""
    gpu_budget: int | None = None
    """Maximum accelerators that all pods of a cluster may request; None means no limit."""
    gpu_types: tuple[str, ...] = ()
    """Resources and products of accelerators that pods may request; empty means any."""
    gpus: GpuChoice = NO_CHOICE
    """The GPUs of pods whose manifests name none."""
    inventory: str = ""
    """The file that says what the cluster has; empty means that no pods are placed."""


def environment_levels(environment: str) -> Levels:
    """Return the levels of an environment.

    Raises:
        SettingError: The environment does not exist.
    """
    if environment not in ENVIRONMENTS:
        meant = suggest(environment, ENVIRONMENTS)
        raise SettingError(f"there is no environment '{environment}'; {meant}")
    rows = _table().items()
    return Levels(weights={rule: row[environment] for rule, row in rows if environment in row})


@cache
def _table() -> Mapping[str, Mapping[str, LevelOverride]]:
    """Read the level of each rule by environment."""
    text = resources.files(__package__).joinpath("levels.json").read_text(encoding="utf-8")
    rows: dict[str, dict[str, str]] = json.loads(text)
    return {
        rule: {key: LevelOverride(word) for key, word in row.items()} for rule, row in rows.items()
    }


def parse_levels(stated: object) -> Levels:
    """Read a map from rules, or * for all others, to levels.

    Raises:
        SettingError: It is not such a map, or it names an unknown rule or level.
    """
    if not isinstance(stated, Mapping):
        raise SettingError("must be a map from rules to levels")
    from kthena_components.checker.catalogue import rule_names  # noqa: PLC0415

    known, weights = rule_names(), {}
    for rule, weight in stated.items():
        if rule != DEFAULT and rule not in known:
            close = nearest(str(rule), known)
            meant = f"write '{close}'" if close else "'check --rules' lists all of them"
            raise SettingError(f"there is no rule '{rule}'; {meant}")
        if not isinstance(weight, str) or weight not in set(LevelOverride):
            known_weights = ", ".join(LevelOverride)
            raise SettingError(f"'{rule}' is {_shown(weight)}; known: {known_weights}")
        weights[str(rule)] = LevelOverride(weight)
    return Levels(weights=weights, own=frozenset(weights))


def parse_version(stated: object, system: str = "kthena") -> str:
    """Read a version of a system, such as Kthena's `0.4` or Volcano's `v1.14.2`.

    Raises:
        SettingError: It is not a string, or an unknown version.
    """
    known, title = ", ".join(VERSIONS[system]), TITLES[system]
    if not isinstance(stated, str):
        raise SettingError(f"{_shown(stated)} is not a version of {title}; known: {known}")
    if known_version(stated, system) is None:
        raise SettingError(f"there is no {title} '{stated}'; known: {known}")
    return ".".join(map(str, read_release(stated)))


def parse_releases(stated: object) -> dict[str, str]:
    """Read a map from systems to releases: `{"lws": "0.9"}`.

    Raises:
        SettingError: It is not such a map, or contains an unknown system or release.
    """
    if not isinstance(stated, Mapping):
        raise SettingError(f"{_RELEASES} is {_shown(stated)}, which is not a map from systems")
    for system in stated:
        if system not in VERSIONS:
            meant = suggest(str(system), VERSIONS)
            raise SettingError(f"{_RELEASES} names '{system}', which is unknown; {meant}")
    return {str(system): parse_version(version, system) for system, version in stated.items()}


def parse_budget(stated: object) -> int:
    """Read the maximum number of accelerators. It may be a float: Pulumi sends those.

    Raises:
        SettingError: It is not a count.
    """
    count = whole(stated)
    if not isinstance(count, int) or count < 0:
        raise SettingError(f"gpuBudget is {_shown(stated)}; write a number of GPUs from 0 on")
    return count


def parse_types(stated: object) -> tuple[str, ...]:
    """Read the allowed accelerators: names of resources, and of products.

    Raises:
        SettingError: It is not a list of names, or it is empty.
    """
    example = 'write, for example, ["nvidia.com/gpu"]'
    if not isinstance(stated, list | tuple):
        raise SettingError(f"gpuTypes is {_shown(stated)}, which is not a list; {example}")
    if not stated:
        raise SettingError("gpuTypes is empty, and so allows nothing; name one or remove it")
    for name in stated:
        if not isinstance(name, str) or not name.strip():
            raise SettingError(f"gpuTypes contains {_shown(name)}, which is not a name; {example}")
    return tuple(name.strip() for name in stated)


def parse_gpus(stated: object) -> GpuChoice:
    """Read the GPUs of pods whose manifests name none: names, or POOL=NAME, with commas.

    Raises:
        SettingError: It is not a string, or a GPU is unknown.
    """
    if not isinstance(stated, str):
        raise SettingError(f"{_GPU} is {_shown(stated)}; write a name, for example h200")
    choice = parse_choice([stated])
    if isinstance(choice, Unknown):
        raise SettingError(f"{_GPU}: {choice.because}")
    return choice


def parse_settings(stated: Mapping[str, object], *, together: bool = False) -> Settings:
    """Read a policy's config: an environment, levels that override it, releases of systems.

    Args:
        stated: The config, without its enforcementLevel.
        together: Whether the policy sees all objects together, and may limit accelerators.

    Raises:
        SettingError: A setting is invalid.
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
        gpus=parse_gpus(stated[_GPU]) if _GPU in stated else NO_CHOICE,
        inventory=_file(stated["inventory"]) if "inventory" in stated else "",
    )


def _file(stated: object) -> str:
    if not isinstance(stated, str) or not stated.strip():
        raise SettingError(f"inventory is {_shown(stated)}; write the path of a file")
    return stated


def _meant(name: str, known: Iterable[str]) -> str:
    elsewhere = "only policies that see all objects together have it"
    return elsewhere if name in LIMITS else suggest(name, known)


def _shown(value: object) -> str:
    """Format a value as JSON."""
    try:
        return json.dumps(value)[:60]
    except (TypeError, ValueError):
        return type(value).__name__
