"""The table of models, one row per shape, found by any of its names.

A name is a Hugging Face id, in any case, and the organisation may be left out. Local paths are not
in the table, nor are copies in another format or of another organisation, unless a row names them.

A row with `of` is a copy: it has the sizes of an earlier row, and those that it states itself. If
it states a dtype, its weights are its own; otherwise they are those of the original.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from kthena_components.core.models.shape import ModelShape
from kthena_components.core.values.unknown import Unknown

_LONGEST = 60
"""Maximum length of a name in a message."""
_OWN: Mapping[str, Any] = {
    "fp8_block": None,
    "weights_gib": None,
    "weights_source": None,
    "draft_layers": 0,
}
"""What a copy in another format does not have from its original."""


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
    """Return the shapes by folded name, without short names that stand for two models.

    A short name of a model and of its copies is the first one's.
    """
    full = {name.casefold(): shape for names, shape in _rows() for name in names}
    short: dict[str, ModelShape | None] = {}
    for name, shape in full.items():
        key = name.rpartition("/")[2]
        known = short.get(key, shape)
        same = known is not None and _sizes(known) == _sizes(shape)
        short[key] = known if same else None
    return {**{key: shape for key, shape in short.items() if shape is not None}, **full}


def _sizes(shape: ModelShape) -> ModelShape:
    """Return what a model and its copies have in common."""
    return replace(shape, name="", source="", dtype=None, files_gib=None, gated=False, **_OWN)


@cache
def _rows() -> tuple[tuple[tuple[str, ...], ModelShape], ...]:
    text = resources.files(__package__).joinpath("table.json").read_text(encoding="utf-8")
    shapes: dict[str, ModelShape] = {}
    rows = [_row(dict(row), shapes) for row in json.loads(text)]
    return tuple(rows)


def _row(row: dict[str, Any], shapes: dict[str, ModelShape]) -> tuple[tuple[str, ...], ModelShape]:
    """Read a row, and add its shape to those of the rows before it."""
    names, of = tuple(row.pop("names")), row.pop("of", None)
    row["name"] = names[0]
    shape = ModelShape(**row) if of is None else _copy(shapes[of], row)
    shapes.update(dict.fromkeys(names, shape))
    return names, shape


def _copy(of: ModelShape, row: dict[str, Any]) -> ModelShape:
    own = _OWN if "dtype" in row else {}
    source = f"{row['source']}; the shape of {of.name}: {of.source}"
    return replace(of, **{"gated": False, "files_gib": None, **own, **row, "source": source})
