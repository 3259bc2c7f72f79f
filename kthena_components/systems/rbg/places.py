"""Finds where the parts of a patched template are written: in a patch, or in the base."""

import re
from collections.abc import Callable, Sequence
from functools import partial

from kthena_components.core.findings import join_path, path_of
from kthena_components.core.templates.overlay import MERGE_KEYS
from kthena_components.core.values.read import mapping, sequence
from kthena_components.systems.rbg.view import RbgTemplate

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def places_of(template: RbgTemplate) -> Callable[[str], str] | None:
    """Return a function that maps template paths to written paths; None without patches."""
    if all(patch is None for _, patch in template.patches):
        return None
    return partial(_written, template)


def _written(template: RbgTemplate, path: str) -> str:
    """Return the path where a part of a template is written: in the last patch that sets it."""
    steps = [int(index) if index else key for index, key in _STEP.findall(path)]
    for at, patch in reversed(template.patches):
        place = _place(patch, template.body, steps)
        if place is not None:
            return join_path(at, place)
    return join_path(template.path, path)


def _place(patch: object, made: object, steps: list[int | str]) -> str | None:
    """Follow a path in a patch, whose lists have other indices; None if it leads nowhere."""
    found: list[int | str] = []
    field = ""
    for step in steps:
        if isinstance(step, str):
            if step not in mapping(patch):
                return None
            field, patch, made = step, mapping(patch)[step], mapping(made).get(step)
            found.append(step)
            continue
        index = _index(sequence(patch), sequence(made)[step : step + 1], field, step)
        if index is None:
            return None
        patch, made = sequence(patch)[index], next(iter(sequence(made)[step : step + 1]), None)
        found.append(index)
    return path_of(found)


def _index(listed: Sequence[object], wanted: Sequence[object], field: str, step: int) -> int | None:
    """Find an item in a patch: by name if lists are merged, else by index."""
    key = MERGE_KEYS.get(field)
    if key is None or not wanted:
        return step if step < len(listed) else None
    name = mapping(wanted[0]).get(key)
    return next((i for i, one in enumerate(listed) if mapping(one).get(key) == name), None)
