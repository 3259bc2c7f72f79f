"""HyperNodes, alone: what the webhook lets in and the scheduler then ignores."""
# ruff: noqa: E501 - a message stands whole on its line, to be searched for

from typing import Any

import pytest

from kthena_components.core.findings import Level
from tests.support.admission import own_findings
from tests.support.specs import Args
from tests.systems.volcano.samples import LATE, OTHER, TREE, exact, hyper_node, lines

REGEX = "'gpu-1' does not reach from ^ to $ in every alternative, but Volcano finds a pattern"


def node(selector: Any, kind: str = "Node") -> Args:
    """Give a HyperNode with one member."""
    return hyper_node("rack-1", 1, {"type": kind, "selector": selector})


RIGHT: dict[str, Args] = {
    "by-name": TREE[0],
    "parent": TREE[2],
    "tier-0": hyper_node("rack-1", 0, exact("gpu-1")),
    "by-pattern": node({"regexMatch": {"pattern": "^gpu-[1-4]$"}}),
    "by-label": node({"labelMatch": {"matchLabels": {"rack": "1"}}}),
    "by-expression": node(
        {"labelMatch": {"matchExpressions": [{"key": "rack", "operator": "Exists"}]}}
    ),
    "two-patterns": hyper_node(
        "rack-1",
        1,
        {"type": "Node", "selector": {"regexMatch": {"pattern": "^a$"}}},
        {"type": "Node", "selector": {"regexMatch": {"pattern": "^b$"}}},
    ),
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_nothing_is_said_of_what_is_right(body: Args) -> None:
    assert lines(own_findings(body)) == []


WRONG: dict[str, tuple[Args, str]] = {
    "no-selector": (
        hyper_node("rack-1", 1, {"type": "Node"}),
        "M spec.members[0]: the member has no selector, and Volcano ignores such a member. Add an exactMatch, a regexMatch or a labelMatch. [hypernode-shape]",
    ),
    "two-selectors": (
        node({"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "^a$"}}),
        "M spec.members[0].selector: the selector has exactMatch and regexMatch, but it needs one of exactMatch with a name, regexMatch with a pattern and labelMatch. Write exactly one of them. [hypernode-shape]",
    ),
    "empty-selector": (
        node({}),
        "M spec.members[0].selector: the selector has nothing, but it needs one of exactMatch with a name, regexMatch with a pattern and labelMatch. Write exactly one of them. [hypernode-shape]",
    ),
    "parent-by-pattern": (
        node({"regexMatch": {"pattern": "^rack-.*$"}}, "HyperNode"),
        "M spec.members[0].selector: a member of type HyperNode is found by exactMatch, and Volcano ignores regexMatch. Write an exactMatch for each child. [hypernode-shape]",
    ),
    "parent-by-label": (
        node({"labelMatch": {"matchLabels": {"a": "b"}}}, "HyperNode"),
        "M spec.members[0].selector: a member of type HyperNode is found by exactMatch, and Volcano ignores labelMatch. Write an exactMatch for each child. [hypernode-shape]",
    ),
    "empty-labels": (
        node({"labelMatch": {}}),
        "M spec.members[0].selector: the labelMatch is empty, and an empty one selects no node. Add matchLabels. [hypernode-shape]",
    ),
    "no-members": (
        hyper_node("rack-1", 1),
        "M spec.members: a HyperNode needs members, and Volcano's webhook rejects one without. Add at least one. [hypernode-shape]",
    ),
    "negative-tier": (
        hyper_node("rack-1", -1, exact("a")),
        "M spec.tier: a HyperNode needs a tier, a whole number of 0 or more. Write 1 for the closest domain. [hypernode-shape]",
    ),
    "unanchored": (
        node({"regexMatch": {"pattern": "gpu-1"}}),
        f"M spec.members[0].selector.regexMatch.pattern: {REGEX} anywhere in a node's name. Write '^gpu-1$', with .* where any string may be. [hypernode-node-regex]",
    ),
    "mixed": (
        hyper_node("rack-1", 1, exact("a"), exact("b", "HyperNode")),
        "A spec.members: the members are of 2 kinds (nodes, children), and Volcano accepts them together, but a tree is clearer if each HyperNode has members of one kind. Make a HyperNode for each kind. [hypernode-members]",
    ),
    "node-name": (
        hyper_node("rack-1", 1, exact("GPU_1")),
        "M spec.members[0].selector.exactMatch.name: 'GPU_1' is not a DNS-1123 subdomain (at most 253 of a-z, 0-9, '-' and '.', each part starting and ending with a letter or digit), so no node has this name. Write the name that 'kubectl get nodes' shows. [hypernode-node-name]",
    ),
    "name": (
        hyper_node("Rack", 1, exact("a")),
        "M metadata.name: 'Rack' is not a DNS-1123 subdomain (at most 253 of a-z, 0-9, '-' and '.', each part starting and ending with a letter or digit), as the name of a HyperNode must be. Write 'rack'. [hypernode-name]",
    ),
    "tier-name": (
        hyper_node("rack-1", 1, exact("a"), tier_name="r" * 254),
        "M spec.tierName: has 254 characters, but may have 253. Shorten it by 1. [volcano-schema]",
    ),
    "discovered": (
        {
            **TREE[0],
            "metadata": {
                "name": "rack-1",
                "labels": {"volcano.sh/network-topology-source": "label"},
            },
        },
        "A metadata.labels: 'volcano.sh/network-topology-source' marks what Volcano's discovery made, and discovery deletes a HyperNode with this label that it does not find itself. Remove the label. [hypernode-discovery-label]",
    ),
}


@pytest.mark.parametrize(("body", "said"), WRONG.values(), ids=WRONG)
def test_each_trap_is_told_in_full(body: Args, said: str) -> None:
    assert lines(own_findings(body)) == [said]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (node(LATE), "spec.members[0]"),
        (node({"exactMatch": LATE}), "spec.members[0].selector"),
        (node({"labelMatch": {"matchLabels": LATE}}), "spec.members[0].selector"),
        (node({"exactMatch": {"name": LATE}}), "spec.members[0].selector.exactMatch.name"),
        (node({"regexMatch": {"pattern": LATE}}), "spec.members[0].selector.regexMatch.pattern"),
        ({**TREE[0], "spec": {**TREE[0]["spec"], "tier": LATE}}, "spec.tier"),
        ({**TREE[0], "spec": {"tier": 1, "members": LATE}}, "spec.members"),
    ],
    ids=["selector", "match", "labels", "name", "pattern", "tier", "members"],
)
def test_what_is_not_known_yet_is_told(body: Args, path: str) -> None:
    found = own_findings(body)
    assert {(finding.level, finding.seen) for finding in found} == {(Level.UNKNOWN, OTHER)}
    assert path in {finding.path for finding in found}
