"""Finds objects that nobody can apply: patches, and parts of templates."""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.findings import Finding, Level
from kthena_components.core.values.read import group_kind, mapping, sequence, spec_of
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.judge.pod_schema import places_of
from kthena_components.systems import find_kind
from kthena_components.systems.contract import Kind

_SELECTING = frozenset({"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"})
"""Kinds that the API server rejects without a selector."""
_PLAIN = frozenset({str, int, bool, float, type(None)})
"""Types of values without fields."""


def partial_object(body: Mapping[str, Any]) -> Finding | None:
    """Return a finding for a part of an object; None for a complete object.

    In a part, no pod template has containers, or a workload has no selector and a container has no
    image. The API server would reject both. A field such as `$patch` is for another program.
    """
    kind = find_kind(group_kind(body))
    if kind is None:
        return None
    order = _order(body) if _has_order(body) else None
    why = f"the field '{order}' is for another program" if order else _part(kind, body)
    return _told(why) if why else None


def _part(kind: Kind[Any], body: Mapping[str, Any]) -> str:
    """Explain why an object is no whole one, by its pod templates; empty if it is."""
    places = (each for place in kind.templates for _, each in places_of(body, place))
    found = [spec for each in places if (spec := _spec(each))]
    if not found or any(map(is_unresolved, found)):
        return ""
    listed = [mapping(spec).get("containers") for spec in found]
    if not any(listed):
        return "no pod template in it has containers"
    images = [_image(container) for one in listed for container in sequence(one)]
    if {} in images:
        return "the image of a container is {}"
    without = body.get("kind") in _SELECTING and "selector" not in spec_of(body)
    return "it has no selector, and a container has no image" if without and None in images else ""


def _image(container: object) -> object:
    return container if is_unresolved(container) else mapping(container).get("image")


def _has_order(body: Mapping[str, Any]) -> bool:
    """Return whether any field begins with `$`: quicker than to find the first one."""
    todo: list[Any] = [body]
    for part in todo:
        if type(part) is list:
            todo += [item for item in part if type(item) not in _PLAIN]
            continue
        for key, item in part.items() if isinstance(part, Mapping) else ():
            if type(key) is str and key[:1] == "$":
                return True
            if type(item) not in _PLAIN:
                todo.append(item)
    return False


def _order(value: object) -> str | None:
    """Return a field that no API has: one that begins with `$`."""
    if isinstance(value, list):
        return next(filter(None, map(_order, value)), None)
    if not isinstance(value, Mapping):
        return None
    own = next((key for key in value if isinstance(key, str) and key.startswith("$")), None)
    return own or next(filter(None, map(_order, value.values())), None)


def _spec(template: object) -> Any:
    """Return the spec of a pod template, or the template if it has none; None if it is empty."""
    return mapping(template).get("spec") or mapping(template) or None


def _told(why: str) -> Finding:
    seen = f"not checked, because it looks like a patch or a part of a template: {why}"
    return Finding(path="", seen=seen, remedy="", rule="partial-object", level=Level.UNKNOWN)
