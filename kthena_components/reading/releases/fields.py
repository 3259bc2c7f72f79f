"""Fields of a kustomization that a release states. Only those that name no file and no address."""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.releases.model import OutsideError

_TARGET = frozenset(
    {"group", "version", "kind", "name", "namespace", "labelSelector", "annotationSelector"}
)
_IMAGE = frozenset({"name", "newName", "newTag", "digest"})
_WRITTEN = regex(r"(?:(?P<name>[^=]+)=)?(?P<new>[^@]*?)(?::(?P<tag>[^:/@]+))?(?:@(?P<id>.+))?")
"""An image in Argo CD's notation: `old=new:tag@digest`, each part but one optional."""


def patches_of(stated: object) -> dict[str, Any]:
    """Return the patches that are stated as text."""
    made = []
    for each in map(mapping, sequence(stated)):
        if not isinstance(each.get("patch"), str):
            raise OutsideError("it has a patch in a file, which is not read")
        kept: dict[str, Any] = {"patch": each["patch"]}
        target = mapping(each.get("target"))
        if target:
            kept["target"] = {key: str(target[key]) for key in target if key in _TARGET}
        if isinstance(each.get("options"), Mapping):
            kept["options"] = {k: v for k, v in each["options"].items() if isinstance(v, bool)}
        made.append(kept)
    return {"patches": made} if made else {}


def images_of(stated: object) -> dict[str, Any]:
    """Return the replacements of images."""
    made = []
    for each in sequence(stated):
        if isinstance(each, str):
            found = _WRITTEN.fullmatch(each)
            parts = found.groupdict() if found is not None else {}
            named = {
                "name": parts.get("name") or parts.get("new"),
                "newName": parts.get("new"),
                "newTag": parts.get("tag"),
                "digest": parts.get("id"),
            }
        else:
            named = {key: mapping(each).get(key) for key in _IMAGE}
        made.append({key: str(value) for key, value in named.items() if value})
    return {"images": made} if made else {}
