"""Objects that nobody can apply: patches, and templates that another program fills in."""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.findings import Finding, Level
from kthena_components.core.values.read import group_kind, mapping, sequence, spec_of
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.judge.pod_schema import places_of
from kthena_components.systems import find_kind

_SELECTING = frozenset({"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"})
"""Kinds of apps, which the API server refuses without a selector."""


def partial_object(body: Mapping[str, Any]) -> Finding | None:
    """Say of an object that it is a part of one; None for any other.

    No pod template in it has containers. Or it is a workload without a selector, and a container
    has no image: the API server would refuse it for both.
    """
    kind = find_kind(group_kind(body))
    if kind is None or not kind.templates:
        return None
    places = (each for place in kind.templates for _, each in places_of(body, place))
    found = [spec for each in places if (spec := _spec(each))]
    if not found or any(map(is_unresolved, found)):
        return None
    containers = [spec.get("containers") for spec in found]
    if not any(containers):
        return _told("no pod template in it has containers")
    without = body.get("kind") in _SELECTING and "selector" not in spec_of(body)
    if without and any(_lacks_image(each) for listed in containers for each in sequence(listed)):
        return _told("it has no selector, and a container has no image")
    return None


def _spec(template: object) -> Any:
    """Give the spec of a pod template; an empty one that is there counts as well."""
    return mapping(template).get("spec") or mapping(template) or None


def _lacks_image(container: object) -> bool:
    return not is_unresolved(container) and mapping(container).get("image") is None


def _told(why: str) -> Finding:
    seen = f"not checked, because it looks like a patch or a part of a template: {why}"
    return Finding(path="", seen=seen, remedy="", rule="partial-object", level=Level.UNKNOWN)
