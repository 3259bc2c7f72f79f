"""Reads the options `--level`, `--kthena-version`, `--volcano-version` and `--release`."""

import os
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from kthena_components.checker.enforcement import PackConfig, read_pack
from kthena_components.checker.levels import (
    ENVIRONMENTS,
    SettingError,
    Settings,
    environment_levels,
    parse_levels,
    parse_settings,
    parse_version,
)
from kthena_components.core.findings import suggest
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.settings import parse_map

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
    stated = parse_map(_text(level), f"{level.removesuffix('.json')}.json")
    if isinstance(stated, Unreadable):
        raise SettingError(str(replace(stated, file=level)))
    try:
        return _settings(stated)
    except SettingError as error:
        raise SettingError(f"{level}: {error}") from error


def read_policies(text: str, file: str) -> PackConfig:
    """Read a config of the policy pack, as Pulumi and the policies do.

    Args:
        text: The content of the file. Pulumi reads it as JSON, whatever its name.
        file: Its name in messages.

    Raises:
        SettingError: It is not valid.
    """
    stated = parse_map(text, f"{file.removesuffix('.json')}.json")
    if isinstance(stated, Unreadable):
        place = f"line {stated.line}: " if stated.line else ""
        raise SettingError(f"{place}{stated.because}")
    return read_pack(stated)


def _settings(stated: object) -> Settings:
    """Read levels by rule, or a config of policies if one of the values is a map."""
    if isinstance(stated, Mapping) and (
        POLICY in stated or any(isinstance(part, Mapping) for part in stated.values())
    ):
        config = stated.get(POLICY)
        if not isinstance(config, Mapping):
            raise SettingError(
                f"this config of policies has no entry {POLICY} that is a map; write for example "
                f'{{"{POLICY}": {{"environment": "prod"}}}}'
            )
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
