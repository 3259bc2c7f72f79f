"""Applies a patch to a pod template if the result is certain.

Controllers merge such patches strategically. If a patch contains what this cannot reproduce
exactly, such as a directive, the result is unknown. Source: k8s.io/apimachinery
pkg/util/strategicpatch.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.templates.overlay import MERGE_KEYS, lay_over
from kthena_components.core.values.unknown import Unknown, is_unresolved

HIDDEN = Unknown("the template cannot be derived from its patches")
"""Placeholder for an unknown template."""
_DEEPEST = 40


def patched(template: object, *patches: object) -> object:
    """Return a template with patches applied in order.

    Returns HIDDEN if a patch is not known yet, is not a map, or cannot be merged here.
    """
    for patch in patches:
        if patch is None:
            continue
        if not isinstance(template, Mapping) or not isinstance(patch, Mapping):
            return HIDDEN
        if not (_is_plain(patch) and _is_plain(template)) or _hides(template, patch):
            return HIDDEN
        template = lay_over(template, patch)
    return template


def _is_plain(value: Mapping[Any, Any], depth: int = 0) -> bool:
    """Return whether a map only needs merging of maps and named lists."""
    if depth > _DEEPEST:
        return False
    for key, item in value.items():
        if not isinstance(key, str) or key.startswith("$"):
            return False
        if isinstance(item, Mapping) and not _is_plain(item, depth + 1):
            return False
        if key in MERGE_KEYS and not _is_named(item, MERGE_KEYS[key], depth):
            return False
    return True


def _hides(base: Mapping[str, Any], patch: Mapping[str, Any]) -> bool:
    """Return whether a patch merges into a value that is not known yet."""
    for key, change in patch.items():
        old = base.get(key)
        if is_unresolved(old) and isinstance(change, Mapping | list | tuple):
            return True
        if isinstance(old, Mapping) and isinstance(change, Mapping) and _hides(old, change):
            return True
        if key in MERGE_KEYS and isinstance(old, list | tuple) and isinstance(change, list | tuple):
            named = {item[MERGE_KEYS[key]]: item for item in old}
            pairs = ((named.get(item[MERGE_KEYS[key]]), item) for item in change)
            if any(found is not None and _hides(found, item) for found, item in pairs):
                return True
    return False


def _is_named(items: object, key: str, depth: int) -> bool:
    """Return whether a list can be merged by a key: every item is a map with that key."""
    if items is None:
        return True
    if not isinstance(items, list | tuple):
        return False
    for item in items:
        name = item.get(key) if isinstance(item, Mapping) else None
        if not isinstance(name, str | int) or is_unresolved(name) or not _is_plain(item, depth + 1):
            return False
    return True
