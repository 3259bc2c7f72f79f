"""The objects of one cluster together: gangs and their pods, tiers and HyperNodes, references."""
# ruff: noqa: E501 - a message stands whole on its line, to be searched for

from typing import Any

import pytest

from kthena_components.checker import check_cluster_objects
from kthena_components.checker.manifest import CheckedObject, check_whole
from tests.checker.cluster_samples import (
    ENOUGH,
    ENV,
    GANG_TOPOLOGY,
    SERVICE,
    TEMPLATE,
    TIER_NAME,
    said,
)
from tests.rules.test_cases import CASES
from tests.support.contents import content_of
from tests.support.for_each import for_each
from tests.support.specs import REMOVED, changed
from tests.systems.volcano.samples import exact, hyper_node, secret_env

ENOUGH_STACKS = 200
"""Cases of several objects with rules, of which there are more."""


def test_nothing_is_said_of_what_fits_together() -> None:
    assert said(budget=32) == []


WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "too-few-pods": (
        {"gang": {"spec.minMember": 5, "spec.minTaskMember": REMOVED}},
        [
            "M gang.spec.minMember: the gang waits for 5 pods, but 4 have its name, so it never starts. Write minMember 4, or give more pods the annotation. [gang-has-pods]"
        ],
    ),
    "pods-of-another-namespace": (
        {
            "leader": {"metadata.namespace": "default", f"{ENV}": []},
            "gang": {"spec.minTaskMember": REMOVED},
        },
        [
            "M gang.spec.minMember: the gang waits for 4 pods, but 3 have its name, so it never starts. Write minMember 3, or give more pods the annotation. [gang-has-pods]",
            f"M gang.spec.subGroupPolicy[0]: waits for 2 subgroups of 2 pods, but the labels of the gang's pods form 2 subgroups, of which 1 has enough pods, so none of them ever starts. {ENOUGH}",
            "U leader.spec.template.metadata.annotations: not checked, because the PodGroup 'chat-0' of these pods is not in namespace 'default'. [pod-group-exists]",
            "A leader.spec.serviceName: is 'chat', but there is no Service of that name in namespace 'default', and only that gives the pods their names in DNS. Add the headless Service. [headless-service]",
        ],
    ),
    "task-of-nobody": (
        {"gang": {"spec.minTaskMember": {"router": 1, "worker": 3}}},
        [
            "M gang.spec.minTaskMember.router: requires 1 pod of task 'router', but 0 have it among the pods of this gang, so none of them ever starts. Name the task that the annotation volcano.sh/task-spec of the pods has. [gang-task-exists]"
        ],
    ),
    "task-of-too-few": (
        {"gang": {"spec.minTaskMember": {"leader": 2}}},
        [
            "M gang.spec.minTaskMember.leader: requires 2 pods of task 'leader', but 1 has it among the pods of this gang, so none of them ever starts. Name the task that the annotation volcano.sh/task-spec of the pods has. [gang-task-exists]"
        ],
    ),
    "subgroup-of-another-label": (
        {"gang": {"spec.subGroupPolicy[0].labelSelector.matchLabels": {"app": "x"}}},
        [
            f"M gang.spec.subGroupPolicy[0]: waits for 2 subgroups of 2 pods, but the labels of the gang's pods form 0 subgroups, of which 0 have enough pods, so none of them ever starts. {ENOUGH}"
        ],
    ),
    "subgroup-key-of-nobody": (
        {"gang": {"spec.subGroupPolicy[0].matchLabelKeys": ["x"]}},
        [
            f"M gang.spec.subGroupPolicy[0]: waits for 2 subgroups of 2 pods, but the labels of the gang's pods form 0 subgroups, of which 0 have enough pods, so none of them ever starts. {ENOUGH}"
        ],
    ),
    "no-requests": (
        {
            "worker": {f"{TEMPLATE}.spec.containers[0].resources": {"requests": {"cpu": 0}}},
            "gang": {"spec.minResources": REMOVED},
        },
        [
            "M worker.spec.template.spec.containers: request no resources, so the hard network topology of PodGroup 'chat-0' does not apply to these pods. Add requests, for example of CPU, which restarts the pods. [gang-requests]"
        ],
    ),
    "resources-beyond-minimum": (
        {"other": {"spec.replicas": 3}, "gang": {"spec.minResources": {"nvidia.com/gpu": 40}}},
        [
            "M gang.spec.minResources.nvidia.com/gpu: is 40, but the 4 pods of minMember request at most 32, and Volcano places none until there is room for all requested resources. Write 32. [gang-resources]"
        ],
    ),
    "cap-above-the-top": (
        {"gang": {GANG_TOPOLOGY: 3}},
        [
            f"M gang.{GANG_TOPOLOGY}: is 3, but the highest tier of these HyperNodes is 2; above it Volcano uses the whole cluster, so the constraint has no effect. Write at most 2. [topology-tier-exists]"
        ],
    ),
    "cap-below-the-lowest": (
        {"rack_1": {"spec.tier": 2}, "rack_2": {"spec.tier": 2}, "spine": {"spec.tier": 3}},
        [
            f"M gang.{path}: is 1, but the lowest tier of these HyperNodes is 2, so Volcano never places these pods. Write at least 2. [topology-tier-exists]"
            for path in (GANG_TOPOLOGY, f"spec.subGroupPolicy[0].{GANG_TOPOLOGY.partition('.')[2]}")
        ],
    ),
    "tier-name-of-nobody": (
        {"gang": {TIER_NAME: {"highestTierName": "racks"}}},
        [
            "M gang.spec.networkTopology.highestTierName: is 'racks', but none of these HyperNodes has that tierName, and Volcano then drops the whole constraint. Write 'rack'. [topology-tier-exists]"
        ],
    ),
    "two-parents": (
        {
            "z": hyper_node("z", 2, exact("x", "HyperNode"), exact("rack-1", "HyperNode")),
            "x": hyper_node("x", 1, exact("gpu-9")),
        },
        [
            "M z.spec.members[1].selector.exactMatch.name: 'rack-1' is a child of 'spine' and of 'z', but a HyperNode has one parent; with two, Volcano places no group that has a network topology. Remove 'rack-1' from the children of 'spine' or of 'z'. [hypernode-two-parents]"
        ],
    ),
    "tier-order": (
        {"spine": {"spec.tier": 1}},
        [
            f"M spine.spec.members[{i}].selector.exactMatch.name: 'spine' has tier 1 and its child 'rack-{i + 1}' tier 1, but a parent's tier must be higher; Volcano accepts this and then silently drops topology constraints. Give 'spine' at least tier 2, or 'rack-{i + 1}' a lower one. [hypernode-tier-order]"
            for i in range(2)
        ],
    ),
    "node-twice": (
        {"rack_2": {"spec.members[0]": exact("gpu-1")}},
        [
            "A rack-2.spec.members[0].selector.exactMatch.name: node 'gpu-1' is in 'rack-1' and in 'rack-2', but a node belongs in one place; Volcano accepts this and counts the node for each HyperNode. Remove one of the two. [hypernode-node-twice]"
        ],
    ),
    "child-of-elsewhere": (
        {"rack_2": REMOVED},
        [
            "U spine.spec.members[1].selector.exactMatch.name: not checked, because the HyperNode that it names is not here, and Volcano ignores missing HyperNodes. [hypernode-unknown-child]"
        ],
    ),
    "closed-queue": (
        {"queue": {"status": {"state": "Closed"}}},
        [
            "M gang.spec.queue: is 'research', a queue whose state is Closed, and Volcano accepts nothing new in it. Open the queue, or name another one. [queue-exists]"
        ],
    ),
    "queue-of-elsewhere": (
        {"queue": REMOVED},
        [
            "A gang.spec.queue: is 'research', but there is no such Queue, and Volcano's webhook rejects it. Add the Queue, or write the name of one that exists. [queue-exists]"
        ],
    ),
    "queue-cycle": (
        {"all": {"spec.parent": "research"}},
        [
            "M queue.spec.parent: the parents form a cycle, research -> all -> research, and each queue needs its parent first. Remove the parent of one of them. [queue-cycle]"
        ],
    ),
    "twice": (
        {"again": SERVICE},
        [
            "M again.metadata.name: is 'chat', which is also the Service in namespace 'serving' of service, and the second would overwrite the first. Rename or remove one of the two. [object-twice]"
        ],
    ),
    "service-with-an-address": (
        {
            "service": {"spec": {}},
            "worker": REMOVED,
            "other": {"spec.replicas": 3},
            "gang": {"spec": {"minMember": 4}},
        },
        [
            f"A {name}.spec.serviceName: is 'chat', a Service with a cluster IP, with which not every DNS server has names for the pods. Write clusterIP: None there. [headless-service]"
            for name in ("leader", "other")
        ],
    ),
    "secret-without-the-key": (
        {"leader": {ENV: secret_env("tokens")}},
        [
            f"M leader.{ENV}[0].valueFrom.secretKeyRef.key: is 'tokens', but the Secret 'hf' has no such key, and the container does not start without it. Write 'token'. [secret-key-exists]"
        ],
    ),
}


@for_each(("changes", "wanted"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_told_in_full(changes: dict[str, Any], wanted: list[str]) -> None:
    assert said(**changes) == wanted


RIGHT: dict[str, dict[str, Any]] = {
    "cap-at-the-top": {"gang": {GANG_TOPOLOGY: 2}},
    "tier-by-name": {"gang": {TIER_NAME: {"highestTierName": "spine"}}},
    "soft-above-the-top": {"gang": {f"{TIER_NAME}.mode": "soft", GANG_TOPOLOGY: 9}},
    "no-hyper-nodes": {
        "rack_1": REMOVED,
        "rack_2": REMOVED,
        "spine": REMOVED,
        "gang": {GANG_TOPOLOGY: 9},
    },
    "minima-not-in-force": {"gang": {"spec.minTaskMember": {"router": 5}}},
    "default-queue": {"gang": {"spec.queue": "default"}},
    "same-name-elsewhere": {"again": changed(SERVICE, {"metadata.namespace": "default"})},
    "same-name-of-another-kind": {"again": changed(SERVICE, {"kind": "ConfigMap"})},
    "optional-key": {"leader": {ENV: secret_env("x", optional=True)}},
    "secret-of-elsewhere": {
        "secret": {"metadata.namespace": "default"},
        "leader": {ENV: secret_env("x")},
    },
    "key-in-plain-text": {"secret": {"data": REMOVED, "stringData": {"token": "t"}}},
    "no-requests-without-topology": {
        "gang": {"spec": {"minMember": 4}},
        "worker": {f"{TEMPLATE}.spec.containers[0].resources": {}},
    },
    "expression": {
        "gang": {
            "spec.subGroupPolicy[0].labelSelector": {
                "matchExpressions": [{"key": "app", "operator": "In", "values": ["chat"]}]
            }
        }
    },
}


@pytest.mark.parametrize("changes", RIGHT.values(), ids=RIGHT)
def test_nothing_is_said_at_the_boundary(changes: dict[str, Any]) -> None:
    assert said(**changes) == []


def test_single_objects_are_not_checked_again_for_rules_over_all_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        check_cluster_objects, "check_manifest", lambda *_, **__: pytest.fail("checked again")
    )
    gang = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup"}
    body = {**gang, "metadata": {"name": "chat"}, "spec": {"minMember": 0, "queue": "prod"}}
    found = check_cluster_objects.check_objects_together({"gang": body})
    assert "queue-exists" in {finding.rule for finding in found}


def _is_object(body: object) -> bool:
    return isinstance(body, dict) and "kind" in body


def test_kept_checks_of_single_objects_change_no_finding() -> None:
    """Most cases change one object of a stack: the others, and stacks that are equal, are checked
    once."""
    inputs = [case.input() for case in CASES if case.none is None]
    stacks = {content_of(one): one for one in inputs if all(map(_is_object, one.values()))}
    assert len(stacks) > ENOUGH_STACKS
    whole: dict[bytes, CheckedObject] = {}
    for bodies in stacks.values():
        contents = {name: content_of(body) for name, body in bodies.items()}
        for name, content in contents.items():
            if content not in whole:
                whole[content] = check_whole(bodies[name])
        checked = {name: whole[content] for name, content in contents.items()}
        again = check_cluster_objects.check_objects_together(bodies, budget=0)
        assert (
            check_cluster_objects.check_objects_together(bodies, budget=0, checked=checked) == again
        )
