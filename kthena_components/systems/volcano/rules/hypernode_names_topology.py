"""Checks HyperNodes, and names and topologies in all kinds, for what Volcano silently drops.

A topology is a field of a PodGroup, its subgroups, a Volcano Job, its tasks, or a ModelServing.
Volcano's admission checks little: its scheduler drops what it cannot use, or waits forever.

The docstring of each rule is its documentation. topology_tier_exists.py checks the tree of all
HyperNodes, by the rules of core/topology/hypernode_tree.py.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, Level, each_of, not_checked
from kthena_components.core.objects.object import POD_GROUP, Object
from kthena_components.core.remedies import remove, write
from kthena_components.core.topology.domains import (
    DISCOVERY_LABEL,
    check_name,
    check_node_name,
    check_regex,
)
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    NOT_YET_KNOWN,
    mapping,
    object_name,
    require_known,
    sequence,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.regex import trouble_in_go
from kthena_components.core.values.unknown import Unknown, known
from kthena_components.systems.volcano.view import (
    SELECTORS,
    HasBody,
    Rule,
    Topology,
    name_problem,
    read_hyper_node,
    topologies,
)


def _topologies(found: HasBody) -> Iterator[tuple[Topology]]:
    yield from ((topology,) for topology in topologies(found.body))


@each_of(_topologies)
def topology_cap_stated(topology: Topology) -> Iterator[Finding]:
    """A hard topology states how far apart its pods may be; otherwise Volcano drops it.

    Up to 1.13 the CRD's default was highestTierAllowed 1. Since 1.14 there is none, and the pods
    are then placed anywhere.

    Pass: mode hard, highestTierAllowed 1.
    Fail: mode hard and nothing else; an empty networkTopology.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/api/job_info.go IsHardTopologyMode; run on 1.14.1: placed
    over both racks.
    """
    stated = topology.fields.get("highestTierAllowed") is not None
    if stated or topology.tier_name is not None:
        return
    if known(topology.mode, topology.path) == "hard":
        yield Finding(
            path=topology.path,
            seen="the mode is hard but no tier is given, so Volcano drops the whole constraint",
            remedy=write(
                1,
                "add highestTierAllowed, for example 1 for the closest tier",
                at=f"{topology.path}.highestTierAllowed",
            ),
        )


@each_of(_topologies)
def topology_one_cap(topology: Topology) -> Iterator[Finding]:
    """The highest tier is given by number or by name, never both.

    Pass: highestTierName rack.
    Fail: highestTierAllowed 1 and highestTierName rack.
    Level: mandatory. Volcano's webhook rejects both; the CRD does not.
    Source: Volcano v1.14 pkg/webhooks/admission/podgroups/validate/validate_podgroup.go,
    on HighestTierAllowed and HighestTierName.
    """
    tier, name = topology.tier, topology.tier_name
    if tier is None or name is None:
        return
    require_known(topology.path, tier, name)
    yield Finding(
        path=topology.path,
        seen=f"both highestTierAllowed ({tier}) and highestTierName ({display(name)}) are "
        "given, and Volcano's webhook rejects that",
        remedy="keep one of the two",
    )


@each_of(_topologies)
def topology_cap_reachable(topology: Topology) -> Iterator[Finding]:
    """A hard cap is at least the closest tier, 1; there is no HyperNode below it.

    Pass: highestTierAllowed 1.
    Fail: highestTierAllowed 0.
    Level: mandatory.
    Source: run on Volcano 1.14.1: a group with cap 0 is never placed.
    """
    path = f"{topology.path}.highestTierAllowed"
    if topology.mode == "soft" or known(topology.tier, path) != 0:
        return
    if known(topology.mode, path) == "hard":
        yield Finding(
            path=path,
            seen="is 0, below the closest tier, so Volcano never places these pods",
            remedy=write(1, "write 1 for the closest tier"),
        )


TOPOLOGY_RULES: tuple[Callable[[HasBody], Iterator[Finding]], ...] = (
    topology_cap_stated,
    topology_one_cap,
    topology_cap_reachable,
)
"""Rules for every topology of an object."""


def volcano_name(found: Object) -> Iterator[Finding]:
    """The names of PodGroups, Queues, Jobs and the objects they refer to are DNS-1123 subdomains.

    Pass: queue research.
    Fail: queue Research_1.
    Level: mandatory.
    Source: Volcano v1.14 config/crd/volcano/bases, scheduling.volcano.sh_podgroups.yaml.
    """
    what = f"the name of a {found.kind}"
    name, path = object_name(found.metadata), "metadata.name"
    if name == "":
        seen = f"is missing, and {what} is not optional"
        yield Finding(path=path, seen=seen, remedy="add metadata.name")
    else:
        yield from name_problem(name, path, what)
    queue = found.spec.get("queue")
    if queue != "" or found.group_kind == POD_GROUP:
        yield from name_problem(queue, "spec.queue", "the name of a Queue")


_LONGEST_PATTERN = 10_000
"""Maximum length of a pattern that is read."""


def hypernode_shape(found: Object) -> Iterator[Finding]:
    """A HyperNode has a tier and members, each with a type and one selector that Volcano uses.

    Only exactMatch finds a member of type HyperNode; an empty labelMatch selects nothing; the API
    server accepts a member without a selector, and Volcano ignores it.

    Pass: type Node, selector exactMatch gpu-1.
    Fail: type HyperNode, selector labelMatch; a member without a selector; two selectors.
    Level: mandatory; advisory for members of several kinds.
    Source: Volcano v1.14 pkg/webhooks/admission/hypernodes/validate/admit_hypernode.go, the CEL
    rules of topology.volcano.sh_hypernodes.yaml, pkg/scheduler/api/hyper_node_info.go GetMembers.
    """
    _, problems = read_hyper_node(found.body)
    for problem in problems:
        if problem.level is Level.UNKNOWN:
            continue
        if _is_late(found, problem.path):
            yield not_checked(problem.path, NOT_YET_KNOWN, problem.rule)
        elif problem.path != "metadata.name" or not _generates(found):
            yield problem


def _generates(found: Object) -> bool:
    return found.metadata.get("generateName") not in (None, "")


def _is_late(found: Object, path: str) -> bool:
    """Return whether the subject of a problem, or its parent, is not known yet."""
    field, _, rest = path.partition(".")
    holder = found.body.get(field)
    if unknown_in(holder):
        return True
    if not rest.startswith("members["):
        return bool(unknown_inside(mapping(holder).get(rest)))
    members = sequence(mapping(holder).get("members"))
    member = members[int(rest.removeprefix("members[").partition("]")[0])]
    selector = mapping(member).get("selector")
    chosen = [mapping(selector).get(key) for key in SELECTORS] if not unknown_in(selector) else []
    labels = [mapping(one).get("matchLabels") for one in chosen if not unknown_in(one)]
    return bool(unknown_inside(member, selector, *chosen, *labels))


def hypernode_name(found: Object) -> Iterator[Finding]:
    """The name of a HyperNode, and of each child, is a DNS-1123 subdomain, at most 253 characters.

    Pass: rack-1, and a member of type HyperNode named rack-1.
    Fail: Rack_1.
    Level: mandatory.
    Source: Volcano v1.14 config/crd/volcano/bases, topology.volcano.sh_hypernodes.yaml.
    """
    metadata = found.metadata
    name, stem = metadata.get("name"), metadata.get("generateName")
    if not name and isinstance(stem, str) and stem and not unknown_in(stem):
        name = object_name(metadata)
    if isinstance(name, str):
        yield from _late_as_not_checked(check_name(name, "metadata.name"), "hypernode-name")
    for path, child in _exact_names(found, "HyperNode"):
        yield from _late_as_not_checked(check_name(child, path), "hypernode-name")


def hypernode_node_name(found: Object) -> Iterator[Finding]:
    """A member of type Node has a valid node name.

    Pass: gpu-1.example.com.
    Fail: GPU_1.
    Level: mandatory.
    Source: Volcano v1.14 config/crd/volcano/bases, topology.volcano.sh_hypernodes.yaml.
    """
    for path, node in _exact_names(found, "Node"):
        yield from _late_as_not_checked(check_node_name(node, path), "hypernode-node-name")


def _exact_names(found: Object, wanted: str) -> Iterator[tuple[str, str]]:
    for path, kind, selector in _members(found):
        exact = mapping(selector.get("exactMatch")).get("name")
        if isinstance(exact, str) and (kind == "HyperNode") is (wanted == "HyperNode"):
            yield f"{path}.exactMatch.name", exact


def hypernode_node_regex(found: Object) -> Iterator[Finding]:
    """A node pattern reaches from ^ to $, because Volcano matches it anywhere in a node's name.

    Go must be able to read it: Volcano's webhook rejects other patterns.

    Pass: ^gpu-[1-4]$.
    Fail: gpu-1, which also matches gpu-10; ^gpu-(1$.
    Level: mandatory; advisory for a pattern that only Python cannot read.
    Source: Volcano v1.14 pkg/scheduler/api/hyper_node_info.go GetMembers (regexp.MatchString);
    pkg/webhooks/admission/hypernodes/validate/admit_hypernode.go.
    """
    for path, kind, selector in _members(found):
        pattern = mapping(selector.get("regexMatch")).get("pattern")
        at, rule = f"{path}.regexMatch.pattern", "hypernode-node-regex"
        if isinstance(pattern, str) and len(pattern) > _LONGEST_PATTERN:
            seen = f"it has {len(pattern)} characters, and at most {_LONGEST_PATTERN} are read"
            yield not_checked(at, Unknown(seen))
        elif isinstance(pattern, str) and (kind == "Node" or trouble_in_go(pattern)):
            yield from _late_as_not_checked(check_regex(pattern, at), rule)


def hypernode_discovery_label(found: Object) -> Iterator[Finding]:
    """A HyperNode that a user wrote does not have the label of those that Volcano discovers.

    Pass: no label volcano.sh/network-topology-source.
    Fail: volcano.sh/network-topology-source: label.
    Level: advisory. In the output of `kubectl get` the label is correct.
    Source: Volcano v1.14 pkg/controllers/hypernode/hypernode_controller.go and api/types.go.
    """
    labels = mapping(found.metadata.get("labels"))
    if DISCOVERY_LABEL not in labels:
        require_known("metadata.labels", labels.get(DISCOVERY_LABEL))
    else:
        yield Finding(
            path="metadata.labels",
            level=Level.ADVISORY,
            seen=f"'{DISCOVERY_LABEL}' marks what Volcano's discovery made, and discovery deletes "
            "a HyperNode with this label that it does not find itself",
            remedy=remove("remove the label"),
        )


def _members(found: Object) -> Iterator[tuple[str, object, Mapping[str, Any]]]:
    for i, item in enumerate(sequence(found.spec.get("members"))):
        member = mapping(item)
        yield f"spec.members[{i}].selector", member.get("type"), mapping(member.get("selector"))


def _late_as_not_checked(found: Iterator[Finding], rule: str) -> Iterator[Finding]:
    """Return findings; those about values that are not known yet become "not checked"."""
    for finding in found:
        late = finding.rule in {"known-when-planned", "hypernode-late-value"}
        yield not_checked(finding.path, NOT_YET_KNOWN, rule) if late else finding


HYPER_NODE_RULES: tuple[Rule, ...] = (
    hypernode_shape,
    hypernode_name,
    hypernode_node_name,
    hypernode_node_regex,
    hypernode_discovery_label,
)
