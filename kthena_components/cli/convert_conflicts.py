"""Finds conversions that would overwrite each other, in one or in several files. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.cli.convert_sources import Source
from kthena_components.convert.conversion import Converted, title_of
from kthena_components.core.findings import Finding
from kthena_components.core.plan.stack_file import objects_once
from kthena_components.core.values.read import group_kind, name_of, namespace_or_default


def find_clashes(files: Sequence[Source], *, as_yaml: bool, as_stack: bool) -> Iterator[Finding]:
    """Report objects that two parts of the result would make, and servings of one name.

    Args:
        files: The conversions.
        as_yaml: Whether the result also contains the objects that are kept.
        as_stack: Whether the result is one stack, in which each serving needs a name.
    """
    parts = [(file, part) for file in files for part in file.conversion.parts]
    servings = [(_place(f, p.source), p) for f, p in parts if isinstance(p, Converted)]
    made = [(at, [m.title for m in part.compiled.manifests]) for at, part in servings]
    ours = {title for _, titles in made for title in titles}
    for file, part in parts if as_yaml else ():
        if not isinstance(part, Converted) and _title(part.body) in ours:
            made.append((_place(file, part.source), [_title(part.body)]))
    found = list(objects_once(made))
    yield from found
    if as_stack and not found:
        plans = [(at, part.compiled.plan) for at, part in servings]
        named = [(at, [f"serving {plan.namespace}/{plan.name}"]) for at, plan in plans]
        yield from objects_once(named)


def _place(file: Source, body: Mapping[str, Any]) -> str:
    return f"{file.place_of(body)}: {title_of(body)}"


def _title(body: Mapping[str, Any]) -> str:
    namespace = namespace_or_default(body)
    return f"{group_kind(body)[1]} {namespace}/{name_of(body)}"
