"""Merges changes into pod templates: a user's overlay, and patches whose result is certain.

The merge is Kubernetes' strategic merge for the lists of a pod: maps merge, named lists merge item
by item, other lists are replaced, and null removes a field. Source of the merge keys: patchMergeKey
tags in k8s.io/api/core/v1/types.go. Unlike it, another handler of a hook or a probe replaces the
old one: the API server rejects two.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kthena_components.core.values.read import digits, is_map, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Blank, Unknown, is_unresolved

Template = dict[str, Any]
"""A pod template."""
MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "resourceClaims": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
HOOKS = ("postStart", "preStop")
HANDLED = frozenset((*PROBES, *HOOKS))
HANDLERS = frozenset({"exec", "httpGet", "tcpSocket", "grpc", "sleep"})
"""Fields of those hooks and probes, of which each has one. Source: kubernetes
pkg/apis/core/validation/validation.go validateHandler."""


def lay_over(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the base with the changes merged in; does not modify its arguments."""
    result = dict(base)
    for key, change in changes.items():
        if change is None:
            result.pop(key, None)
        else:
            result[key] = _merge(key, result.get(key), change)
    return result


def _merge(field: str, old: Any, new: Any) -> Any:
    """Merge one field: maps by key, lists by their merge key, and everything else by replacement.

    A map with a handler, such as httpGet, replaces one with another handler.
    """
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        if field in HANDLED and HANDLERS.intersection(new):
            old = {k: v for k, v in old.items() if k in new or k not in HANDLERS}
        return lay_over(old, new)
    key = MERGE_KEYS.get(field)
    if key and isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return _merge_named(old, new, key)
    return new


def _merge_named(old: Sequence[Any], new: Sequence[Any], key: str) -> list[Any]:
    """Merge lists of named items; items of new names go to the end."""
    items = list(old)
    at = {name: i for i, item in enumerate(items) if (name := _name(item, key)) is not None}
    for change in new:
        name = _name(change, key)
        if name in at:
            items[at[name]] = lay_over(items[at[name]], change)
        else:
            items.append(change)
    return items


def _name(item: Any, key: str) -> str | int | None:
    name = item.get(key) if isinstance(item, Mapping) else None
    return name if isinstance(name, str | int) else None


# Applies a patch to a pod template if the result is certain.
#
# Controllers merge such patches strategically. If a patch contains what this cannot reproduce
# exactly, such as a directive, the result is unknown. Source: k8s.io/apimachinery
# pkg/util/strategicpatch.


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


# Hides what a patch may change: values that it sets are not known then. What a rule finds in an
# object with and without its hidden values, no such patch mends.


CHANGED = Blank("${PATCHED}")
_DIRECTIVE = "$"
_END = "-"
_ADD, _TEST = "add", "test"
_SETTING = frozenset({_ADD, "replace", "remove", _TEST})


def without_changed(base: object, change: object, *, by_name: bool) -> Any:
    """Return an object in which the fields of a strategic merge patch are not known.

    Args:
        base: The object, or a part of it.
        change: The patch, or the same part of it.
        by_name: Whether lists of the kind are merged by name. Other ones are replaced.
    """
    if change == base:
        return base
    if not (is_map(base) and is_map(change)) or any(str(k).startswith(_DIRECTIVE) for k in change):
        return CHANGED
    result = dict(base)
    for key, new in change.items():
        old, named = result.get(key), MERGE_KEYS.get(key) if by_name else None
        if named and _is_named(new, named, 0) and _is_named(old, named, 0) and old and new:
            result[key] = _items_without(old, new, named)
        else:
            result[key] = without_changed(old, new, by_name=by_name)
    return result


def _items_without(old: Sequence[Any], new: Sequence[Any], key: str) -> list[Any]:
    """Hide what named items change. Items of new names are added as they are."""
    items = {item[key]: item for item in old}
    for item in new:
        known = items.get(item[key])
        items[item[key]] = item if known is None else without_changed(known, item, by_name=True)
    return [*items.values()]


def without_set(base: object, operations: Sequence[Any]) -> Any:
    """Return an object in which the fields of a JSON patch are not known.

    Source: RFC 6902, 4: the operations; RFC 6901, 3 and 4: the paths.
    """
    for each in operations:
        if not is_map(each) or str(each.get("op")) not in _SETTING:
            return CHANGED
        if each["op"] == _TEST:
            continue
        path = str(each.get("path", "")).split("/")[1:]
        keys = [part.replace("~1", "/").replace("~0", "~") for part in path]
        added = each.get("value") if each["op"] == _ADD else None
        base = _without_at(base, keys, added)
    return base


def _without_at(base: object, keys: Sequence[str], added: object) -> Any:
    """Hide the value at a path. A list that gets or loses a word or an item is hidden."""
    if not keys:
        return CHANGED
    key, *below = keys
    if is_map(base):
        return {**base, key: _without_at(base.get(key), below, added)}
    items = [*sequence(base)]
    if key == _END and not below and is_map(added) and all(map(is_map, items)):
        return [*items, added]
    at = digits(key)
    if not below or at is None or at >= len(items):
        return CHANGED
    return [*items[:at], _without_at(items[at], below, added), *items[at + 1 :]]


_TAG = regex(r"@|:(?!.*/)")
"""What ends the name of an image."""


def without_image(value: object, name: str) -> Any:
    """Return a part of an object in which the images of a name are not known."""
    if is_map(value):
        image = value.get("image")
        known = {key: without_image(each, name) for key, each in value.items()}
        is_named = isinstance(image, str) and _TAG.split(image, maxsplit=1)[0] == name
        return {**known, "image": CHANGED} if is_named else known
    return [without_image(each, name) for each in value] if isinstance(value, list) else value
