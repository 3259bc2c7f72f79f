"""The table of models, one row per shape, found by any of its names.

A name is a Hugging Face id, in any case, and the organisation may be left out. Local paths are not
in the table, nor are copies in another format or of another organisation, unless a row names them.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any

from kthena_components.core.models.shape import ModelShape
from kthena_components.core.values.unknown import Unknown

_LONGEST = 60
"""Maximum length of a name in a message."""


def find_model(name: str) -> ModelShape | Unknown:
    """Find the shape of a model by its name."""
    shape = _index().get(name.casefold())
    if shape is None:
        return Unknown(f"'{name[:_LONGEST]}' is not in the table of models")
    return shape


def known_models() -> Iterable[ModelShape]:
    """Return every shape once, under its first name."""
    return tuple(shape for _, shape in _rows())


@cache
def all_names() -> tuple[str, ...]:
    """Return every full name, the first one of each row before its others."""
    return tuple(name for names, _ in _rows() for name in names)


@cache
def _index() -> Mapping[str, ModelShape]:
    """Return the shapes by folded name, without short names that two organisations use."""
    full = {name.casefold(): shape for names, shape in _rows() for name in names}
    short: dict[str, ModelShape | None] = {}
    for name, shape in full.items():
        key = name.rpartition("/")[2]
        short[key] = shape if short.get(key, shape) is shape else None
    return {**{key: shape for key, shape in short.items() if shape is not None}, **full}


@cache
def _rows() -> tuple[tuple[tuple[str, ...], ModelShape], ...]:
    text = resources.files(__package__).joinpath("table.json").read_text(encoding="utf-8")
    return tuple(_row(dict(row)) for row in json.loads(text))


def _row(row: dict[str, Any]) -> tuple[tuple[str, ...], ModelShape]:
    names = tuple(row.pop("names"))
    return names, ModelShape(name=names[0], **row)
