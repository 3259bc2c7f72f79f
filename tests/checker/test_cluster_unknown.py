"""The objects of one cluster together: what is not known, the budget, and the list of rules."""
# ruff: noqa: E501 - a message stands whole on its line, to be searched for

from typing import Any

import pytest

from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.core.findings import Level
from tests.checker.cluster_samples import ENV, GANG_TOPOLOGY, TEMPLATE, said
from tests.systems.volcano.samples import (
    LATE,
    OTHER,
    POD_GROUP,
    exact,
    hyper_node,
    lines,
    pods,
    secret_env,
)

UNKNOWN: dict[str, tuple[dict[str, Any], str]] = {
    "replicas": ({"other": {"spec.replicas": LATE}}, "gang-has-pods"),
    "member": ({"gang": {"spec.minMember": LATE}}, "gang-has-pods"),
    "annotation": ({"worker": {f"{TEMPLATE}.metadata.annotations": LATE}}, "gang-has-pods"),
    "labels": ({"worker": {f"{TEMPLATE}.metadata.labels": LATE}}, "subgroup-has-pods"),
    "task": (
        {
            "worker": {
                f"{TEMPLATE}.metadata.annotations": {
                    "scheduling.k8s.io/group-name": "chat-0",
                    "volcano.sh/task-spec": LATE,
                }
            }
        },
        "gang-task-exists",
    ),
    "resources": ({"worker": {f"{TEMPLATE}.spec.containers[0].resources": LATE}}, "gang-requests"),
    "tier": ({"gang": {GANG_TOPOLOGY: LATE}}, "topology-tier-exists"),
    "queue": ({"gang": {"spec.queue": LATE}}, "queue-exists"),
    "service": ({"worker": {"spec.serviceName": LATE}}, "headless-service"),
    "key": ({"leader": {ENV: secret_env(LATE)}}, "secret-key-exists"),
    "data": ({"secret": {"data": LATE}}, "secret-key-exists"),
}


@pytest.mark.parametrize(("changes", "rule"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_known_yet_is_told(changes: dict[str, Any], rule: str) -> None:
    found = said(**changes)
    assert [line for line in found if line[0] == "M"] == []
    assert [line for line in found if line.endswith(f"{OTHER}. [{rule}]")] != []


def test_a_gang_without_pods_in_the_stack_is_not_checked() -> None:
    assert lines(compare_objects([POD_GROUP], ["g"]))[:1] == [
        "U g.spec.minMember: not checked, because none of these pods has its name. [gang-has-pods]"
    ]


def test_a_part_of_a_gang_is_not_taken_for_the_whole() -> None:
    part = [POD_GROUP, pods("chat-a", 1)]
    assert {finding.level for finding in compare_objects(part)} >= {Level.MANDATORY}
    found = compare_objects(part, ["g"], complete=False)
    assert {f.level for f in found} <= {Level.UNKNOWN, Level.ADVISORY}
    assert (
        "U g.spec.minMember: not checked, because other pods may belong to the gang. [gang-has-pods]"
        in lines(found)
    )


@pytest.mark.parametrize("place", ["labels", "annotations"])
def test_a_name_where_volcano_does_not_look_is_worth_a_look(place: str) -> None:
    body = pods("x", 1)
    body["spec"]["template"]["metadata"] = {place: {"scheduling.volcano.sh/group-name": "chat-0"}}
    (line, _) = lines(compare_objects([body]))
    assert line == (
        f"A spec.template.metadata.{place}: the {place[:-1]} scheduling.volcano.sh/group-name names a PodGroup, but Volcano only reads the annotation scheduling.k8s.io/group-name. Write the annotation scheduling.k8s.io/group-name. [foreign-group-name]"
    )


def test_a_cycle_of_hyper_nodes_is_told_once() -> None:
    one, two = (
        hyper_node("a", 1, exact("b", "HyperNode")),
        hyper_node("b", 2, exact("a", "HyperNode")),
    )
    assert lines(compare_objects([one, two], ["a", "b"])) == [
        "M a.spec.members[0].selector.exactMatch.name: the children form a cycle, b -> a -> b, but a HyperNode cannot be in itself, and with a cycle Volcano places no group that has a network topology. Remove 'b' from the children of 'a'. [hypernode-cycle]"
    ]


def test_the_budget_counts_the_accelerators_of_all_pods() -> None:
    assert said(budget=31) == [
        "M these pods request 32 GPUs, but the budget is 31. Request 1 fewer, or ask for a larger budget. [gpu-budget]"
    ]
    late = {"other": {"spec.replicas": LATE}}
    assert f"U {OTHER}. [gpu-budget]" in said(budget=16, **late)
    assert (
        "M these pods request at least 16 GPUs, but the budget is 15. Request at least 1 fewer, or ask for a larger budget. [gpu-budget]"
        in said(budget=15, **late)
    )


def test_values_of_secrets_are_never_shown() -> None:
    assert "c2VjcmV0" not in str(said(leader={ENV: secret_env("tokens")}))


def test_nothing_to_check_gives_nothing() -> None:
    assert compare_objects([], []) == []
    assert {finding.level for finding in compare_objects([POD_GROUP])} == {Level.UNKNOWN}
