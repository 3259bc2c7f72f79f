"""Reads what options of several commands name: levels, releases, and configs of models."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

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
from kthena_components.core.models import ModelShape, shape_from_config
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.settings import parse_map

# Reads the options `--level`, `--kthena-version`, `--volcano-version` and `--release`.


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
    """Read the levels of an environment's name, or of a settings file at that path."""
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
                f"this config of policies has no entry {POLICY} that is a map; write, for example, "
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


# Reads the config.json of models that are not in the built-in table.


_CONFIG, _QUANTISED = "config.json", "hf_quant_config.json"


class ModelConfigError(ValueError):
    """A config.json that cannot be used. The text is the reason in one sentence."""


def read_shapes(stated: Sequence[str]) -> dict[str, ModelShape]:
    """Read the shapes from `--model-config MODEL=PATH`, by lower-case model name.

    Raises:
        ModelConfigError: A file cannot be read, is not JSON, or lacks a field.
    """
    shapes = {}
    for each in stated:
        model, equals, path = each.partition("=")
        if not (model and equals and path):
            message = f"--model-config '{each}' does not have the form MODEL=PATH"
            raise ModelConfigError(message)
        shapes[model.casefold()] = shape_of(f"--model-config {model}:", path)[0]
    return shapes


def shape_of(about: str, path: str) -> tuple[ModelShape, dict[str, Any]]:
    """Read a config.json, or the one in a folder, and return the shape and the whole content.

    Args:
        about: The option that names it, for messages.
        path: The file, or its folder.

    Raises:
        ModelConfigError: It cannot be read, is not JSON, or lacks a field.
    """
    inside = Path(path).is_dir()
    place = Path(path, _CONFIG) if inside else Path(path)
    # Links are followed, because model caches contain links to the downloaded files.
    text = read_text(str(place), named=not inside)
    if isinstance(text, Unreadable):
        message = f"{about} {place} {text.because}"
        raise ModelConfigError(message)
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        message = f"{about} {place} is not JSON"
        raise ModelConfigError(message) from None
    if isinstance(config, dict) and not config.get("quantization_config"):
        config |= _quantised_beside(place.parent)
    shape = shape_from_config(config) if isinstance(config, dict) else None
    if isinstance(shape, ModelShape):
        return shape, config
    message = f"{about} {place} {'cannot be used' if shape else 'is not a JSON object'}"
    message += f": {shape.because}" if shape else ""
    raise ModelConfigError(message)


def _quantised_beside(folder: Path) -> dict[str, Any]:
    """Return the format of the weights from the file in which older ModelOpt states it."""
    text = read_text(str(folder / _QUANTISED), named=False)
    if isinstance(text, Unreadable):
        return {}
    try:
        stated = json.loads(text)["quantization"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    algorithm = stated.get("quant_algo") if isinstance(stated, dict) else None
    return {"quantization_config": {"quant_algo": algorithm}} if algorithm else {}
