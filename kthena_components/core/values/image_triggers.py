"""Finds images that OpenShift writes into an object, in place of those that the file states.

The controller of image triggers sets the images that an annotation lists when their image stream
has one, and until then a template may state a blank.

Source: openshift/openshift-controller-manager pkg/image/trigger; kubernetes v1.34
pkg/apis/core/validation/validation.go validateContainerCommon, which accepts `image: " "` for it.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.values.read import mapping
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Blank

_TRIGGERS = "image.openshift.io/triggers"
_CONTAINER = regex(
    r"\b(containers|initContainers)\[(?:\?\(@\.name==\\*[\"']([^\"'\\]+)\\*[\"']\)|(\d+))\]\.image\b"
)
_LISTS = ("containers", "initContainers")


def mark_triggered(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object whose images are unknown if a trigger sets them; the same without one."""
    listed = mapping(mapping(body.get("metadata")).get("annotations")).get(_TRIGGERS)
    if not isinstance(listed, str):
        return body
    found = frozenset((kind, name or number) for kind, name, number in _CONTAINER.findall(listed))
    marked: Mapping[str, Any] = _marked(body, found)
    return marked


def _marked(value: Any, found: frozenset[tuple[str, str]]) -> Any:
    if isinstance(value, list):
        return [_marked(item, found) for item in value]
    if not isinstance(value, Mapping):
        return value
    made = {key: _marked(item, found) for key, item in value.items()}
    for kind in _LISTS:
        for number, container in enumerate(
            each if isinstance(each := made.get(kind), list) else ()
        ):
            names = {(kind, str(number)), (kind, str(mapping(container).get("name")))}
            if isinstance(container, dict) and not found.isdisjoint(names):
                container["image"] = Blank(container.get("image") or "")
    return made
