"""Every trap of Volcano's gangs and network topologies, and the rule that names it.

Volcano's API server and webhook take each of these; its scheduler then drops the constraint,
places the pods anywhere, or never places them (read in v1.14, and run on 1.14.1).

- hard topology without a cap: the constraint is dropped -> topology-cap-stated
- cap 0: never placed -> topology-cap-reachable
- cap at the top tier: the boundary, in which nothing is wrong
- cap above the top tier: the virtual root, so anywhere -> topology-tier-exists
- cap on a tier below all that there are: never placed -> topology-tier-exists
- name of a tier that nobody has: the constraint is dropped -> topology-tier-exists
- a hard cap and no HyperNode in the cluster: anywhere. Nothing is said: discovery makes HyperNodes
  that no manifest shows
- a parent of its child's tier: the constraint is void -> hypernode-tier-order
- a HyperNode with two parents: no group with a topology is placed -> hypernode-two-parents
- a cycle: the same -> hypernode-cycle
- a name of a tier for two tiers: which one counts is chance -> hypernode-tier-name
- leaves of two tiers: those of the higher one score nothing -> hypernode-leaf-tiers
- a node in two leaves: counted twice -> hypernode-node-twice
- a member that does not exist: ignored -> hypernode-unknown-child
- children by label or pattern: ignored -> hypernode-shape
- a subgroup without matchLabelKeys: no pod is in it -> subgroup-match-label-keys
- subgroups that no pods make: never placed -> subgroup-has-pods
- two policies of one name: one minimum for both -> subgroup-names-unique
- minMember below the sum of minTaskMember: the minima are ignored -> task-minimum
- minTaskMember of a task that nobody has: never placed -> gang-task-exists
- pods without requests: the topology skips them -> gang-requests
- minResources beyond the minimum: none placed -> gang-resources, min-resources-within-minimum
- a gang of more pods than carry its name: never placed -> gang-has-pods
- a gang that no HyperNode of an allowed tier can hold: never placed -> gang-fits-hypernode
- the name of the PodGroup under another key: pods are no gang -> foreign-group-name
- a closed queue: refused -> queue-exists
"""

from typing import Any

import pytest

from kthena_components.checker.catalogue import rule_names
from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level
from tests.checker.cluster_samples import GANG_TOPOLOGY, STACK, TEMPLATE, TIER_NAME
from tests.support.for_each import for_each
from tests.support.specs import REMOVED, changed
from tests.systems.volcano.samples import exact, hyper_node

SUB = "spec.subGroupPolicy[0]"
M, A, U = Level.MANDATORY, Level.ADVISORY, Level.UNKNOWN
NODES = {
    f"gpu-{i}": {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"gpu-{i}"},
        "status": {"allocatable": {"pods": 110, "nvidia.com/gpu": 8}},
    }
    for i in range(1, 5)
}
WIDER = {"spec.minTaskMember": REMOVED, "spec.minResources": REMOVED}
NO_RACKS = {"rack-1": REMOVED, "rack-2": REMOVED, "spine": REMOVED}
TRAPS: dict[str, tuple[str, Level, dict[str, Any]]] = {
    "no cap": ("topology-cap-stated", M, {"gang": {TIER_NAME: {"mode": "hard"}}}),
    "cap 0": ("topology-cap-reachable", M, {"gang": {GANG_TOPOLOGY: 0}}),
    "cap above the top": ("topology-tier-exists", M, {"gang": {GANG_TOPOLOGY: 3}}),
    "cap below the lowest": (
        "topology-tier-exists",
        M,
        {"rack-1": {"spec.tier": 2}, "rack-2": {"spec.tier": 2}, "spine": {"spec.tier": 3}},
    ),
    "tier name of nobody": (
        "topology-tier-exists",
        M,
        {"gang": {TIER_NAME: {"mode": "hard", "highestTierName": "racks"}}},
    ),
    "tier order": ("hypernode-tier-order", M, {"spine": {"spec.tier": 1}}),
    "two parents": (
        "hypernode-two-parents",
        M,
        {"other": hyper_node("other", 2, exact("rack-1", "HyperNode"))},
    ),
    "cycle": ("hypernode-cycle", M, {"rack-1": {"spec.members": [exact("spine", "HyperNode")]}}),
    "one name for two tiers": ("hypernode-tier-name", M, {"spine": {"spec.tierName": "rack"}}),
    "leaves of two tiers": (
        "hypernode-leaf-tiers",
        A,
        {"lone": hyper_node("lone", 2, exact("gpu-9"))},
    ),
    "node in two leaves": (
        "hypernode-node-twice",
        A,
        {"rack-2": {"spec.members[0]": exact("gpu-1")}},
    ),
    "member that is not there": ("hypernode-unknown-child", U, {"rack-2": REMOVED}),
    "children by label": (
        "hypernode-shape",
        M,
        {"spine": {"spec.members[0].selector": {"labelMatch": {"matchLabels": {"rack": "1"}}}}},
    ),
    "no matchLabelKeys": ("subgroup-match-label-keys", M, {"gang": {f"{SUB}.matchLabelKeys": []}}),
    "subgroups of nobody": ("subgroup-has-pods", M, {"gang": {f"{SUB}.matchLabelKeys": ["x"]}}),
    "two policies of one name": (
        "subgroup-names-unique",
        M,
        {"gang": {"spec.subGroupPolicy[1]": {"name": "engine", "matchLabelKeys": ["k"]}}},
    ),
    "minima above minMember": ("task-minimum", M, {"gang": {"spec.minTaskMember.worker": 9}}),
    "task of nobody": (
        "gang-task-exists",
        M,
        {"gang": {"spec.minTaskMember": {"router": 1, "worker": 3}}},
    ),
    "no requests": (
        "gang-requests",
        M,
        {"worker": {f"{TEMPLATE}.spec.containers[0].resources": {}}},
    ),
    "resources beyond the minimum": (
        "gang-resources",
        M,
        {"other": {"spec.replicas": 3}, "gang": {"spec.minResources": {"nvidia.com/gpu": 40}}},
    ),
    "resources of more pods": (
        "min-resources-within-minimum",
        M,
        {"gang": {"spec.minResources.pods": 5}},
    ),
    "more pods than there are": ("gang-has-pods", M, {"gang": {"spec.minMember": 5, **WIDER}}),
    "no HyperNode holds it": ("gang-fits-hypernode", M, NODES),
    "another key": (
        "foreign-group-name",
        A,
        {
            "worker": {
                f"{TEMPLATE}.metadata.annotations": {"scheduling.volcano.sh/group-name": "chat-0"}
            }
        },
    ),
    "closed queue": ("queue-exists", M, {"queue": {"status": {"state": "Closed"}}}),
}


def stack_of(changes: dict[str, Any]) -> dict[str, Any]:
    """Give the stack with some objects changed, added (a whole one) or removed."""
    stack = dict(STACK)
    for name, change in changes.items():
        if change is REMOVED:
            del stack[name]
        else:
            stack[name] = change if "kind" in change else changed(stack[name], change)
    return stack


def found_in(changes: dict[str, Any]) -> set[tuple[str, Level]]:
    stack = stack_of(changes)
    alone = [finding for body in stack.values() for finding in check_manifest(body)]
    return {
        (f.rule, f.level) for f in (*alone, *compare_objects(list(stack.values()), list(stack)))
    }


@for_each(("rule", "level", "changes"), TRAPS.values(), ids=TRAPS)
def test_each_trap_is_named(rule: str, level: Level, changes: dict[str, Any]) -> None:
    assert (rule, level) in found_in(changes)


def test_each_trap_is_in_the_list_and_each_rule_exists() -> None:
    assert {rule for rule, _, _ in TRAPS.values()} <= rule_names()
    assert [rule for rule, _, _ in TRAPS.values() if rule not in str(__doc__)] == []


BOUNDARY: dict[str, dict[str, Any]] = {
    "as it is": {},
    "cap at the top tier": {"gang": {GANG_TOPOLOGY: 2}},
    "cap that holds the gang": {"gang": {GANG_TOPOLOGY: 2}, **NODES},
    "no HyperNode in any manifest": NO_RACKS,
    "minima that are not above minMember": {"gang": {"spec.minTaskMember": {"worker": 3}}},
}


@pytest.mark.parametrize("changes", BOUNDARY.values(), ids=BOUNDARY)
def test_at_the_boundary_nothing_is_said(changes: dict[str, Any]) -> None:
    traps = {rule for rule, _, _ in TRAPS.values()}
    assert [found for found in found_in(changes) if found[0] in traps] == []
