"""Checks HyperNodes for what Volcano's webhook accepts and its scheduler then ignores.

The docstring of each rule is its documentation. topology_tier_exists.py checks the tree of all
HyperNodes, by the rules of core/topology/hypernode_tree.py.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, Level, not_checked
from kthena_components.core.objects.object import Object
from kthena_components.core.remedies import remove
from kthena_components.core.topology.domains import (
    DISCOVERY_LABEL,
    check_name,
    check_node_name,
    check_regex,
)
from kthena_components.core.values.go_regex import trouble_in_go
from kthena_components.core.values.read import (
    NOT_YET_KNOWN,
    mapping,
    object_name,
    require_known,
    sequence,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.volcano.view import SELECTORS, Rule, read_hyper_node

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
        yield from _told(check_name(name, "metadata.name"), "hypernode-name")
    for path, child in _named(found, "HyperNode"):
        yield from _told(check_name(child, path), "hypernode-name")


def hypernode_node_name(found: Object) -> Iterator[Finding]:
    """A member of type Node has a valid node name.

    Pass: gpu-1.example.com.
    Fail: GPU_1.
    Level: mandatory.
    Source: Volcano v1.14 config/crd/volcano/bases, topology.volcano.sh_hypernodes.yaml.
    """
    for path, node in _named(found, "Node"):
        yield from _told(check_node_name(node, path), "hypernode-node-name")


def _named(found: Object, wanted: str) -> Iterator[tuple[str, str]]:
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
            yield from _told(check_regex(pattern, at), rule)


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


def _told(found: Iterator[Finding], rule: str) -> Iterator[Finding]:
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
