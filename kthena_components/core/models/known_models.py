"""The table of models, one row per shape, found by any of its names.

A name is a Hugging Face id, in any case, and the organisation may be left out. Local paths are not
in the table, nor are copies in another format or of another organisation, unless a row names them.

A row with `of` is a copy: it has the sizes of an earlier row, and those that it states itself. If
it states a dtype, its weights are its own; otherwise they are those of the original.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from importlib import resources
from operator import attrgetter
from typing import Any

from kthena_components.core.models.config import ModelShape
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

_SEPARATORS = regex(r"[-_.\s]")
_SIZE = regex(r"(?<![a-z0-9.])\d+(?:\.\d+)?b(?![a-z0-9])")
"""The number of parameters in a name, but not of the active ones: 30b in qwen3-30b-a3b."""
_VERSION = regex(r"-v\d[\d.]*$")
_BYTES = {"bf16": 2, "fp8": 1, "int8": 1}
"""Bytes of a parameter, where almost all have the same."""
_GIB, _BILLION, _ROUNDED = 2**30, 10**9, 0.05
"""By which share the number of parameters in a name may differ from the number in the weights."""
_LONGEST = 60
"""Maximum length of a name in a message."""
_OWN = ("fp8_block", "group", "draft_layers", "weights_gib", "weights_source")
"""Fields that a copy in another format does not have from its original."""
_NEVER = ("gated", "files_gib")
"""Fields that no copy has from its original."""
_IN_COMMON = attrgetter(
    *(
        field.name
        for field in fields(ModelShape)
        if field.name not in {*_OWN, *_NEVER, "name", "dtype", "source"}
    )
)


def find_model(name: str) -> ModelShape | Unknown:
    """Find the shape of a model by its name."""
    shape = _index().get(name.casefold())
    if shape is None:
        return Unknown(f"'{name[:_LONGEST]}' is not in the table of models")
    return shape


def find_by_folder(path: object, served: object = None) -> ModelShape | None:
    """Find the model that a local path or a bucket is named after, such as /models/Qwen3-8B.

    The last part with a known name decides. A part may have the form of a cache,
    `models--Qwen--Qwen3-8B`. It may also be a copy of that model, in another format.

    Args:
        path: The path.
        served: A name under which it is served. None is found if this has another size: the
            folder deepseek-r1 may hold a model of 14b that was distilled from DeepSeek-R1.
    """
    if not isinstance(path, str) or not ("://" in path or path.startswith(("/", "."))):
        return None
    names = (_cached(part) for part in reversed(path.casefold().split("/")))
    found = next((_index()[name] for name in names if name in _index()), None)
    return found if found is not None and _may_be(found, served) else None


def _may_be(model: ModelShape, served: object) -> bool:
    """Return whether a name has a size of the model's name, or as many parameters, or no size."""
    sizes = set(_SIZE.findall(served.casefold())) if isinstance(served, str) else set()
    stated = _SIZE.findall(model.name.casefold())
    alike = any(_has_parameters(model, size) for size in sizes) if not stated else False
    return not sizes or not sizes.isdisjoint(stated) or alike


def _has_parameters(model: ModelShape, size: str) -> bool:
    """Return whether a size such as 671b is the number of a model's parameters, rounded."""
    each = _BYTES.get(model.dtype or "")
    number = (model.weights_gib or 0) * _GIB / each / _BILLION if each else 0
    return abs(number - float(size.removesuffix("b"))) < _ROUNDED * number


def find_by_spelling(name: object) -> ModelShape | None:
    """Find the model from whose short name a name differs in separators only.

    Names of Kubernetes objects have no dots: qwen2-5-7b-instruct. A name may also lack the version
    at the end, if there is one version only, and state the number of parameters: deepseek-r1-671b.
    """
    if not isinstance(name, str):
        return None
    unsized = _by_spelling().get(_plain(_SIZE.sub("", name.casefold())))
    rough = unsized if unsized is not None and _may_be(unsized, name) else None
    return _by_spelling().get(_plain(name)) or rough


@cache
def _by_spelling() -> Mapping[str, ModelShape]:
    """Return the shapes by short names without separators, if one model only has the name."""
    short = {name: shape for name, shape in _index().items() if "/" not in name}
    stems = ((_VERSION.sub("", name), name) for name in short if _VERSION.search(name))
    sized = ((stem, short[name]) for stem, name in stems if _SIZE.search(stem))
    found = {**_one_each(sized), **_one_each(short.items())}
    return {name: shape for name, shape in found.items() if shape is not None}


def _one_each(named: Iterable[tuple[str, ModelShape]]) -> dict[str, ModelShape | None]:
    """Map names without separators to their shapes; to None if there are several."""
    found: dict[str, ModelShape | None] = {}
    for name, shape in named:
        key = _plain(name)
        if found.setdefault(key, shape) is not shape:
            found[key] = None
    return found


def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name.casefold())


def _cached(part: str) -> str:
    """Return the name in a folder of a cache: of Hugging Face, or `owner--model`."""
    return part.removeprefix("models--").replace("--", "/", 1)


def known_models() -> Iterable[ModelShape]:
    """Return every shape once, under its first name."""
    return tuple(shape for _, shape in _rows())


def copies_of(model: ModelShape) -> list[ModelShape]:
    """Return the copies of a model in other formats: rows of its shape that contain its name."""
    roots = _roots()
    root, word = roots.get(model.name.casefold()), short_name(model.name)
    return [
        shape
        for _, shape in _rows()
        if root is not None
        and roots[shape.name.casefold()] == root
        and shape.dtype not in {None, model.dtype}
        and f"{word}-" in f"{short_name(shape.name)}-"
    ]


def short_name(name: str) -> str:
    """Return the name of a model without its organization, to compare."""
    return name.rpartition("/")[2].casefold()


@cache
def _roots() -> Mapping[str, str]:
    """Return the first name of the row with the sizes of each name, in lower case."""
    roots: dict[str, str] = {}
    for row in _table_rows():
        first = row["of"].casefold() if "of" in row else row["names"][0].casefold()
        root = roots.get(first, first)
        roots |= {name.casefold(): root for name in row["names"]}
    return roots


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
        known = short.setdefault(key, shape)
        if known and known is not shape and _IN_COMMON(known) != _IN_COMMON(shape):
            short[key] = None
    return {**{key: shape for key, shape in short.items() if shape is not None}, **full}


@cache
def _rows() -> tuple[tuple[tuple[str, ...], ModelShape], ...]:
    """Read the rows of the table; a row with `of` takes what it omits from an earlier row."""
    rows: dict[str, dict[str, Any]] = {}
    found = []
    for stated in _table_rows():
        names = tuple(stated.pop("names"))
        row = {**stated, "name": names[0]}
        if "of" in row:
            row = _copy(rows[row.pop("of")], row)
        rows.update(dict.fromkeys(names, row))
        found.append((names, ModelShape(**row)))
    return tuple(found)


def _table_rows() -> list[dict[str, Any]]:
    text = resources.files(__package__).joinpath("known_models.json").read_text(encoding="utf-8")
    return [dict(row) for row in json.loads(text)]


def _copy(of: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    left = (*_NEVER, *_OWN) if "dtype" in row else _NEVER
    kept = {field: value for field, value in of.items() if field not in left}
    source = f"{row['source']}; the shape of {of['name']}: {of['source']}"
    return {**kept, **row, "source": source}
