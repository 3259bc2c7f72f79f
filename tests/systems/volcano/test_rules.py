"""PodGroups, Queues and Volcano Jobs, alone: what is dropped, refused or never placed."""
# ruff: noqa: E501 - a message stands whole on its line, to be searched for

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest, has_rules
from tests.support.admission import own_findings
from tests.support.for_each import for_each
from tests.support.specs import REMOVED, Args, changed
from tests.systems.volcano.samples import HARD, JOB, POD_GROUP, QUEUE, lines

SUB, TOPOLOGY = "spec.subGroupPolicy[0]", "spec.networkTopology"
SMALL: Args = {"spec.minTaskMember": REMOVED, "spec.minResources": REMOVED}
SECOND = {"name": "engine", "matchLabelKeys": ["k"]}
DNS = "is not a DNS-1123 subdomain (at most 253 of a-z, 0-9, '-' and '.', each part starting and ending with a letter or digit), as"
NO_CAP = "the mode is hard but no tier is given, so Volcano drops the whole constraint. Add highestTierAllowed, for example 1 for the closest tier. [topology-cap-stated]"
RIGHT: dict[str, tuple[Args, dict[str, Any]]] = {
    "group": (POD_GROUP, {}),
    "queue": (QUEUE, {}),
    "job": (JOB, {}),
    "soft-without-cap": (POD_GROUP, {TOPOLOGY: {"mode": "soft"}}),
    "cap-by-name": (POD_GROUP, {TOPOLOGY: {"highestTierName": "rack"}}),
    "no-topology": (POD_GROUP, {TOPOLOGY: None}),
    "tasks-below-minimum": (POD_GROUP, {"spec.minTaskMember": {"leader": 1}}),
    "minimum-above-subgroups": (POD_GROUP, {"spec.minMember": 9}),
    "subgroups-alone": (POD_GROUP, {**SMALL, "spec.minMember": 4.0, f"{SUB}.name": REMOVED}),
    "queue-alone": (QUEUE, {"spec": {"weight": 65535}}),
    "queue-deserves-less": (QUEUE, {"spec.deserved": {"nvidia.com/gpu": 8}}),
    "queue-equal": (QUEUE, {"spec.guarantee.resource": {"nvidia.com/gpu": "16"}}),
    "job-without-minimum": (JOB, {"spec.minAvailable": REMOVED}),
}


@pytest.mark.parametrize(("body", "changes"), RIGHT.values(), ids=RIGHT)
def test_nothing_is_said_of_what_is_right(body: Args, changes: dict[str, Any]) -> None:
    assert lines(own_findings(changed(body, changes))) == []


WRONG: dict[str, tuple[Args, dict[str, Any], list[str]]] = {
    "no-cap": (POD_GROUP, {TOPOLOGY: {"mode": "hard"}}, [f"M {TOPOLOGY}: {NO_CAP}"]),
    "empty-topology": (POD_GROUP, {TOPOLOGY: {}}, [f"M {TOPOLOGY}: {NO_CAP}"]),
    "subgroup-no-cap": (
        POD_GROUP,
        {f"{SUB}.networkTopology": {"highestTierName": ""}},
        [f"M {SUB}.networkTopology: {NO_CAP}"],
    ),
    "job-no-cap": (
        JOB,
        {TOPOLOGY: {}, "spec.tasks[0].partitionPolicy.networkTopology": {}},
        [f"M {TOPOLOGY}: {NO_CAP}", f"M spec.tasks[0].partitionPolicy.networkTopology: {NO_CAP}"],
    ),
    "two-caps": (
        POD_GROUP,
        {f"{TOPOLOGY}.highestTierName": "rack"},
        [
            (
                f"M {TOPOLOGY}: both highestTierAllowed (1) and highestTierName ('rack') are given, and Volcano's webhook rejects that. Keep one of the two. [topology-one-cap]"
            )
        ],
    ),
    "cap-0": (
        POD_GROUP,
        {f"{TOPOLOGY}.highestTierAllowed": 0},
        [
            (
                f"M {TOPOLOGY}.highestTierAllowed: is 0, below the closest tier, so Volcano never places these pods. Write 1 for the closest tier. [topology-cap-reachable]"
            )
        ],
    ),
    "no-keys": (
        POD_GROUP,
        {f"{SUB}.matchLabelKeys": REMOVED},
        [
            (
                f"M {SUB}: has no matchLabelKeys, so Volcano assigns no pod to this subgroup, and with minSubGroups 2 the gang waits forever. Add the label that distinguishes the pods of different subgroups. [subgroup-match-label-keys]"
            )
        ],
    ),
    "no-keys-no-minimum": (
        POD_GROUP,
        {f"{SUB}.matchLabelKeys": [], f"{SUB}.minSubGroups": 0},
        [
            (
                f"A {SUB}: has no matchLabelKeys, so Volcano assigns no pod to this subgroup. Add the label that distinguishes the pods of different subgroups. [subgroup-match-label-keys]"
            )
        ],
    ),
    "same-name": (
        POD_GROUP,
        {"spec.subGroupPolicy[1]": SECOND},
        [
            (
                "M spec.subGroupPolicy[1].name: is 'engine', like subGroupPolicy[0], and Volcano keeps one minimum for both: the later one. Give each policy a unique name. [subgroup-names-unique]"
            )
        ],
    ),
    "no-names": (
        POD_GROUP,
        {f"{SUB}.name": REMOVED, "spec.subGroupPolicy[1]": {"matchLabelKeys": ["k"]}},
        [
            (
                "M spec.subGroupPolicy[1].name: is missing, as in subGroupPolicy[0], and Volcano keeps one minimum for both: the later one. Give each policy a unique name. [subgroup-names-unique]"
            )
        ],
    ),
    "subgroups-above-minimum": (
        POD_GROUP,
        {**SMALL, "spec.minMember": 3},
        [
            (
                "A spec.minMember: is 3, but the subgroups that must be complete have 4 pods, and Volcano waits for both. Write minMember 4. [subgroup-minimum]"
            )
        ],
    ),
    "no-minimum": (
        POD_GROUP,
        {"spec": {"queue": "research"}},
        [
            (
                "A spec.minMember: is 0, so nothing starts together: each pod starts as soon as it fits. Write the number of pods that must start together. [gang-minimum-stated]"
            )
        ],
    ),
    "tasks-above-minimum": (
        POD_GROUP,
        {"spec.minTaskMember.worker": 4},
        [
            (
                "M spec.minTaskMember: the minima add up to 5, but minMember is 4, and Volcano then ignores all of them. Write minMember 5, or lower minima. [task-minimum]"
            )
        ],
    ),
    "task-below-0": (
        POD_GROUP,
        {"spec.minTaskMember": {"worker": -1, "": 1}},
        [
            (
                "M spec.minTaskMember.worker: is -1, but must be at least 0. Write 0 or more. [task-minimum]"
            ),
            "M spec.minTaskMember: '' is not the name of a task. Name a task. [task-minimum]",
        ],
    ),
    "resources-of-more-pods": (
        POD_GROUP,
        {"spec.minResources.pods": "5"},
        [
            (
                "M spec.minResources.pods: is '5', but the gang starts with 4 pods (minMember), and Volcano places none until there is room for all requested resources. Write 4. [min-resources-within-minimum]"
            )
        ],
    ),
    "bounds": (
        POD_GROUP,
        {f"{SUB}.subGroupSize": 0, f"{TOPOLOGY}.mode": "Soft", f"{SUB}.labelKey": "x"},
        [
            (
                f"M {TOPOLOGY}.mode: is 'Soft', but must be 'hard' or 'soft'. Write 'soft'. [volcano-schema]"
            ),
            (
                f"M {SUB}.subGroupSize: is 0, but must be at least 1. Write 1 or more. [volcano-schema]"
            ),
            (
                f"M {SUB}.labelKey: is not a field of PodGroup in Volcano 1.15, which server-side apply and kubectl reject. Remove it, because matchLabelKeys is stated, too. [volcano-schema]"
            ),
        ],
    ),
    "api-version": (
        POD_GROUP,
        {"apiVersion": "scheduling.volcano.sh/v9"},
        [
            (
                "M apiVersion: is 'scheduling.volcano.sh/v9', in which Volcano 1.15 serves no PodGroup. Write 'scheduling.volcano.sh/v1beta1'. [volcano-schema]"
            )
        ],
    ),
    "queue-name": (
        POD_GROUP,
        {"spec.queue": "Team_1"},
        [f"M spec.queue: 'Team_1' {DNS} the name of a Queue is. Write 'team-1'. [volcano-name]"],
    ),
    "weight": (
        QUEUE,
        {"spec.weight": 65536},
        [
            (
                "M spec.weight: is 65536, but must be a whole number from 1 to 65535. Write a number from 1 to 65535. [queue-weight]"
            )
        ],
    ),
    "quantities": (
        QUEUE,
        {
            "spec.guarantee.resource": {"nvidia.com/gpu": 17},
            "spec.capability": {"cpu": "99", "nvidia.com/gpu": 99},
        },
        [
            (
                "M spec.guarantee.resource.nvidia.com/gpu: is 17, but deserved has '16', and Volcano's webhook rejects more than that. Write at most 16. [queue-quantities]"
            ),
            (
                "M spec.deserved.cpu: is '100', but capability has '99', and Volcano's webhook rejects more than that. Write at most 99. [queue-quantities]"
            ),
        ],
    ),
    "own-parent": (
        QUEUE,
        {"spec.parent": "research"},
        [
            (
                "M spec.parent: is 'research', the queue itself, and Volcano's webhook rejects that. Name another queue, or remove it. [queue-parent]"
            )
        ],
    ),
    "parent-name": (
        QUEUE,
        {"spec.parent": "A"},
        [f"M spec.parent: 'A' {DNS} the name of a Queue is. Write 'a'. [volcano-name]"],
    ),
    "job-minimum": (
        JOB,
        {"spec.minAvailable": 9},
        ["M spec.minAvailable: is 9, but the tasks have 8 pods. Write at most 8. [job-minimum]"],
    ),
    "partitions": (
        JOB,
        {"spec.minAvailable": 7, "spec.tasks[0].replicas": 7, "spec.tasks[0].minAvailable": 3},
        [
            (
                "M spec.tasks[0].replicas: is 7, but totalPartitions 4 × partitionSize 2 = 8. Write 8. [job-partitions]"
            ),
            (
                "M spec.tasks[0].minAvailable: is 3, but minPartitions 2 × partitionSize 2 = 4. Write 4. [job-partitions]"
            ),
        ],
    ),
}


@for_each(("body", "changes", "said"), WRONG.values(), ids=WRONG)
def test_each_trap_is_told_in_full(body: Args, changes: dict[str, Any], said: list[str]) -> None:
    assert lines(own_findings(changed(body, changes))) == said


def test_a_model_serving_is_checked_by_its_topologies() -> None:
    at = "spec.template.networkTopology"
    topology = {"groupPolicy": {"mode": "hard"}, "rolePolicy": HARD}
    body = {
        "apiVersion": "workload.serving.volcano.sh/v1alpha1",
        "kind": "ModelServing",
        "spec": {"template": {"networkTopology": topology}},
    }
    found = [f for f in own_findings(body, "m") if f.rule.startswith("topology-")]
    assert lines(found) == [f"M m.{at}.groupPolicy: {NO_CAP}"]
    assert f"{at}.groupPolicy: {NO_CAP}" in map(str, check_manifest(body))


def test_a_manifest_is_checked_by_its_group_and_kind() -> None:
    foreign = changed(POD_GROUP, {"apiVersion": "scheduling.x-k8s.io/v1", "spec.queue": "A"})
    assert own_findings(foreign) == check_manifest(foreign) == []
    assert [has_rules(body) for body in (POD_GROUP, QUEUE, JOB, foreign)] == [True] * 3 + [False]
    (finding,) = check_manifest(changed(POD_GROUP, {TOPOLOGY: {}}), "docs[1]")
    assert finding.path == "docs[1].spec.networkTopology"
