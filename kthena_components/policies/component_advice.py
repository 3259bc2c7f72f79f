"""Advice about the objects of a component: once for each serving, with the component's own fields.

A serving has many equal objects, such as a StatefulSet for each group, and a user changes the
fields of the component.
"""

import re
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level
from kthena_components.core.spec.launch import ENGINE_CONTAINER
from kthena_components.core.values.read import mapping
from kthena_components.policies.secret_marks import plain

_COMPONENT = "kthena:index:"
_OF_SERVING = {"priorityClassName": "priority_class of the serving"}
_OF_ENGINE = {
    "mount a PersistentVolumeClaim or a hostPath at the engine's cache (HF_HOME)": (
        "write cache.claim or cache.host_path of the role"
    ),
}
"""Fields of Kubernetes in remedies, and the fields of a component with an engine that set them."""

_first: dict[tuple[str, str, str], str] = {}
"""The URN that was the first with a text, by serving. It may be analyzed again."""


def advice_of_component(urn: str, props: Any, finding: Finding) -> Finding | None:
    """Return a finding with a component's fields; None if an equal object has said it already.

    Args:
        urn: URN of the object.
        props: Its properties, as the SDK gives them.
        finding: Any finding about it. Mandatory ones, and those of other objects, stay.
    """
    if finding.level is Level.MANDATORY or _COMPONENT not in urn.rpartition("$")[0]:
        return finding
    metadata = mapping(mapping(plain(props)).get("metadata"))
    serving = mapping(metadata.get("labels")).get(naming.NAME)
    if not isinstance(serving, str):
        return finding
    whose = str(metadata.get("namespace")), serving, str(finding)
    return _reworded(finding) if _first.setdefault(whose, urn) == urn else None


def _reworded(finding: Finding) -> Finding:
    words = dict(_OF_SERVING)
    if f"container '{ENGINE_CONTAINER}'" in finding.seen:
        words |= _OF_ENGINE
    pattern = "|".join(map(re.escape, words))
    remedy = re.sub(pattern, lambda found: words[found[0]], str(finding.remedy))
    return finding if remedy == finding.remedy else replace(finding, remedy=remedy)
