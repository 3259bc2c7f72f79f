"""Whether Volcano will do what one of its objects says: PodGroup, Queue, HyperNode and Job.

Volcano's admission checks little, and its scheduler then drops what it cannot use, or waits for
ever, and says neither. Each function of RULES is one rule with its documentation as docstring.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, judged, once_each, tidy
from kthena_components.core.objects.kinds import HYPER_NODE, JOB, MODEL_SERVING, POD_GROUP, QUEUE
from kthena_components.core.values.read import identity, mapping, object_name, spec_of
from kthena_components.systems.volcano.rules_gang import GANG_RULES
from kthena_components.systems.volcano.rules_hypernode import HYPER_NODE_RULES
from kthena_components.systems.volcano.rules_job import JOB_RULES
from kthena_components.systems.volcano.rules_queue import QUEUE_RULES
from kthena_components.systems.volcano.rules_topology import TOPOLOGY_RULES
from kthena_components.systems.volcano.schema import volcano_schema
from kthena_components.systems.volcano.view import Rule, TopologyRule, name_problem, topologies

__all__ = ["RULES", "TOPOLOGY_RULES", "judge_volcano_object"]


def volcano_name(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """The names of PodGroups, Queues, Jobs and what they refer to are DNS-1123 subdomains.

    Pass: queue research.
    Fail: queue Research_1.
    Level: mandatory.
    Source: Volcano v1.14 config/crd/volcano/bases, scheduling.volcano.sh_podgroups.yaml.
    """
    what = f"the name of a {identity(manifest)[1]}"
    name, path = object_name(mapping(manifest.get("metadata"))), "metadata.name"
    if name == "":
        seen = f"is missing, and {what} is not optional"
        yield Finding(path=path, seen=seen, remedy="add metadata.name", rule="volcano-name")
    else:
        yield from name_problem(name, path, what)
    queue = spec_of(manifest).get("queue")
    if queue != "" or identity(manifest) == POD_GROUP:
        yield from name_problem(queue, "spec.queue", "the name of a Queue")


RULES: Mapping[tuple[str, str], tuple[Rule, ...]] = {
    POD_GROUP: (volcano_schema, volcano_name, *GANG_RULES),
    QUEUE: (volcano_schema, volcano_name, *QUEUE_RULES),
    HYPER_NODE: (volcano_schema, *HYPER_NODE_RULES),
    JOB: (volcano_schema, volcano_name, *JOB_RULES),
    MODEL_SERVING: (),
}
"""The rules of each kind. TOPOLOGY_RULES hold for every topology that an object has."""


def judge_volcano_object(manifest: Mapping[str, Any], path: str = "") -> list[Finding]:
    """Judge one object by every rule of its kind; a kind without rules gives nothing.

    Args:
        manifest: The object as it would be applied. Values may be Unknown or late texts.
        path: Where the manifest stands in the caller's input; a prefix of every path.
    """
    return [tidy(finding).under(path) for finding in once_each(_found(manifest))]


def _found(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    for rule in RULES.get(identity(manifest), ()):
        yield from judged(rule, manifest)
    for topology in topologies(manifest):
        judges: tuple[TopologyRule, ...] = TOPOLOGY_RULES
        for judge in judges:
            yield from judged(judge, topology)
