"""Reads the config.json of models that are not in the built-in table."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kthena_components.core.models import ModelShape, shape_from_config
from kthena_components.reading.files import Unreadable, read_text

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
