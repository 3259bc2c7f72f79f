"""Advice about the objects of a component, and whether the pods of a stack fit into a cluster.

Advice is given once: a serving has many equal objects, such as a StatefulSet for each group, and a
user changes the fields of the component.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level
from kthena_components.core.spec.serving_spec import ENGINE_CONTAINER
from kthena_components.core.values.read import mapping
from kthena_components.policies.secrets_and_stack_gpu import read_field

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
    metadata = mapping(read_field(props, "metadata"))
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


Body = Mapping[str, Any]


def check_placement(
    clusters: Sequence[Mapping[str, Body]], path: str, today: date
) -> Iterator[Finding]:
    """Report the groups that do not fit, as advice unless a level says otherwise.

    Args:
        clusters: The objects of each provider, by URN. An inventory describes one cluster.
        path: The file of the inventory.
        today: The day on which the age of the inventory counts.
    """
    # Imported here, because most stacks have no inventory.
    from kthena_components.placement.answer import answer, ask  # noqa: PLC0415
    from kthena_components.placement.inventory import InventoryError, read_inventory  # noqa: PLC0415
    from kthena_components.placement.place import FITTED, stale, unplaced  # noqa: PLC0415

    if len(clusters) > 1:
        yield _not_placed("the objects have several providers, and an inventory is of one cluster")
        return
    try:
        cluster = read_inventory([path])
    except InventoryError as error:
        yield _not_placed("; ".join(reason.rstrip(".") for reason in error.reasons))
        return
    bodies = [body for objects in clusters for body in objects.values()]
    for outcome in answer(ask(cluster, bodies)):
        if outcome.verdict not in FITTED:
            yield unplaced(outcome, cluster, Level.ADVISORY)
    yield from stale(cluster, today)


def _not_placed(because: str) -> Finding:
    from kthena_components.placement.place import RULE  # noqa: PLC0415

    return Finding(path="", seen=f"not checked, because {because}", rule=RULE, level=Level.UNKNOWN)
