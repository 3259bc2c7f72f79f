"""Reads the options `--level`, `--kthena-version`, `--volcano-version` and `--release`."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from kthena_components.core.findings import suggest
from kthena_components.judge.levels import (
    ENVIRONMENTS,
    SettingError,
    Settings,
    environment_levels,
    parse_levels,
    parse_settings,
    parse_version,
)
from kthena_components.judge.weakening import PolicyLevels
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.maps import parse_map, read_below

POLICY = "serving-rules"
"""The policy whose settings the command line uses from a config file of the policy pack."""
TOGETHER = "serving-groups"
"""The policy whose GPU limits the command line uses from such a file."""
_LEVEL = "enforcementLevel"


def read_settings(
    level: str | None, versions: Mapping[str, str] = MappingProxyType({})
) -> Settings:
    """Read the settings. Without `level`, each finding keeps the level of its rule.

    Args:
        level: An environment, a JSON file of levels by rule, or a config of the policy pack.
        versions: Releases by system. Default: those in the file, or the newest.

    Raises:
        SettingError: The file is missing, has another form, or contains an unknown name.
    """
    settings = Settings() if level is None else _read(level)
    asked = {system: parse_version(version, system) for system, version in versions.items()}
    return replace(settings, versions={**settings.versions, **asked}) if asked else settings


def _read(level: str) -> Settings:
    if level in ENVIRONMENTS:
        return Settings(levels=environment_levels(level))
    text = _text(level)
    try:
        return _settings(json.loads(text))
    except SettingError as error:
        raise SettingError(f"{level}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise SettingError(f"{level}: not valid JSON: {error}") from error


def read_policies(path: Path, root: Path) -> dict[str, PolicyLevels]:
    """Read the levels of each policy from a config of the policy pack below a folder.

    Raises:
        SettingError: The file is missing or not valid.
    """
    text = read_below(path, root)
    if isinstance(text, Unreadable):
        raise SettingError(str(text))
    return parse_policies(text, str(path))


def parse_policies(text: str, file: str) -> dict[str, PolicyLevels]:
    """Parse the levels of each policy in a config of the policy pack.

    Raises:
        SettingError: The text is not valid.
    """
    stated = parse_map(text, file)
    if isinstance(stated, Unreadable):
        raise SettingError(str(stated))
    return {str(name): _policy(config) for name, config in stated.items()}


def _policy(config: object) -> PolicyLevels:
    enforced = config.get(_LEVEL) if isinstance(config, Mapping) else config
    settings = parse_settings(_without_level(config), together=True)
    return PolicyLevels(
        enforced=enforced if isinstance(enforced, str) else None,
        weights={rule: weight.value for rule, weight in settings.levels.weights.items()},
        budget=settings.gpu_budget,
        types=settings.gpu_types,
    )


def _settings(stated: object) -> Settings:
    """Read levels by rule, or a config of policies if one of the values is a map."""
    if isinstance(stated, Mapping) and any(isinstance(part, Mapping) for part in stated.values()):
        config = stated.get(POLICY)
        if not isinstance(config, Mapping):
            raise SettingError(f"this config of policies has no entry {POLICY}; add it")
        settings = parse_settings(_without_level(config))
        others = _without_level(stated.get(TOGETHER))
        limits = parse_settings(others, together=True)
        return replace(settings, gpu_budget=limits.gpu_budget, gpu_types=limits.gpu_types)
    return Settings(levels=parse_levels(stated))


def _without_level(config: object) -> Mapping[str, object]:
    """Return a policy's config without its enforcement level. The config may be only a level."""
    if not isinstance(config, Mapping):
        return {}
    return {key: part for key, part in config.items() if key != _LEVEL}


def _text(level: str) -> str:
    if not os.path.lexists(level):
        meant = suggest(level, ENVIRONMENTS)
        raise SettingError(f"there is no level or file '{level}'; {meant}, or a file")
    text = read_text(level)
    if isinstance(text, Unreadable):
        raise SettingError(f"{level}: {text.because}")
    return text
