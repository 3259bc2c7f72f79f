"""Rules of two states: what an update of one object would come to."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kthena_components.checker.update_rules import check_change
from tests.support.peers import GONE, LATE, LWS_VLLM, Manifest, changed, gpus, template
from tests.support.strategies import damaged, json_trees

SERVING: Manifest = {
    "apiVersion": "workload.serving.volcano.sh/v1alpha1",
    "kind": "ModelServing",
    "metadata": {"name": "llama"},
    "spec": {
        "template": {
            "gangPolicy": {"minRoleReplicas": {"serve": 1}},
            "networkTopology": {"groupPolicy": {"mode": "hard", "highestTierAllowed": 2}},
            "roles": [
                {
                    "name": "serve",
                    "replicas": 2,
                    "workerReplicas": 1,
                    "entryTemplate": template("leader", "vllm serve m"),
                    "workerTemplate": template("worker", "ray start"),
                }
            ],
        }
    },
}
TEMPLATE = "spec/template"
TIER = f"{TEMPLATE}/networkTopology/groupPolicy/highestTierAllowed"
ROLE = f"{TEMPLATE}/roles/0"
COMMAND = f"{ROLE}/entryTemplate/spec/containers/0/command/2"
MINIMUM = f"{TEMPLATE}/gangPolicy/minRoleReplicas/serve"
WORKER = "spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/resources"
LEADER = "spec/leaderWorkerTemplate/leaderTemplate/spec/containers/0/resources"
STAYS = (
    "changes, but no role's name, worker count or template does: Kthena only rolls out roles, so "
    "running pods keep their place. Change an annotation in the templates, too, or delete the "
    "pods of each group after the update. [gang-topology-only-change]"
)


def said(
    body: Manifest, changes: dict[str, Any], before: dict[str, Any] | None = None
) -> list[str]:
    return [str(f) for f in check_change(changed(body, before), changed(body, changes))]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {COMMAND: "vllm serve n"},
        {TIER: 1, COMMAND: "vllm serve n"},
        {TIER: 1, f"{ROLE}/workerReplicas": 2},
        {TIER: 1, f"{ROLE}/name": "server"},
    ],
)
def test_with_a_change_of_the_roles_it_is_rolled_out(changes: dict[str, Any]) -> None:
    assert said(SERVING, changes) == []


def test_a_gang_policy_that_is_added_reaches_no_pod() -> None:
    added = {f"{TEMPLATE}/gangPolicy": GONE}
    assert said(SERVING, {}, added) == [f"spec.template.gangPolicy: {STAYS}"]


def test_a_worker_count_is_the_same_number_however_it_is_written() -> None:
    changes = {TIER: 1, f"{ROLE}/workerReplicas": 1.0}
    assert said(SERVING, changes) == [f"spec.template.networkTopology: {STAYS}"]


@pytest.mark.parametrize("late", [TIER, f"{TEMPLATE}/networkTopology"])
def test_a_topology_that_is_not_known_yet_is_not_checked(late: str) -> None:
    (text,) = said(SERVING, {late: LATE})
    assert text == (
        "spec.template.networkTopology: not checked, because the value is known only after the "
        "deployment. [gang-topology-only-change]"
    )


def test_roles_that_are_not_known_yet_may_be_a_change() -> None:
    (text,) = said(SERVING, {TIER: 1, COMMAND: LATE})
    assert "not checked, because" in text
    assert said(SERVING, {COMMAND: LATE}) == []


def test_a_gang_policy_is_kept() -> None:
    found = said(SERVING, {MINIMUM: 2, COMMAND: "vllm serve n"})
    assert found == [
        (
            "spec.template.gangPolicy.minRoleReplicas: changes from {serve: 1} to {serve: 2}, but "
            "it is immutable. Keep it, or let the ModelServing be replaced. [kthena-gang-fixed]"
        )
    ]
    found = said(SERVING, {f"{TEMPLATE}/gangPolicy": GONE, COMMAND: "vllm serve n"})
    assert found == [
        (
            "spec.template.gangPolicy: is removed, but the API server rejects that: it is required "
            "once set. Keep it, or let the ModelServing be replaced. [kthena-gang-fixed]"
        )
    ]


def lws(was: int, now: int, held: object, holds: object) -> list[str]:
    before = {"spec/replicas": was, WORKER: gpus(held), LEADER: gpus(held)}
    after = {"spec/replicas": now, WORKER: gpus(holds), LEADER: gpus(holds)}
    return said(LWS_VLLM, after, before)


def test_fewer_gpus_and_more_replicas_need_room_for_both() -> None:
    # Two pods a group: 1 × 16 held, and 1 × 8 more before any of them is given up.
    assert lws(1, 2, 8, 4) == [
        (
            "spec.replicas: rises from 1 to 2 while a group goes from 16 GPUs to 8: the new groups "
            "come first, so 24 GPUs are needed at once, not 16. Lower the GPUs in one update, and "
            "raise replicas in the next. [lws-lower-then-raise]"
        )
    ]


@pytest.mark.parametrize(
    ("was", "now", "held", "holds"), [(1, 1, 8, 4), (2, 1, 8, 4), (1, 2, 8, 8), (1, 2, 4, 8)]
)
def test_one_of_the_two_alone_gets_through(was: int, now: int, held: int, holds: int) -> None:
    assert lws(was, now, held, holds) == []


def test_gpus_that_are_not_known_yet_are_not_checked() -> None:
    (text,) = lws(1, 2, 8, LATE)
    assert text.startswith("spec.replicas: not checked, because ")
    assert lws(1, 1, 8, LATE) == []


def test_another_kind_is_not_checked() -> None:
    other = {**SERVING, "kind": "ModelThing"}
    assert check_change(SERVING, other) == []
    assert check_change(other, changed(other, {TIER: 1})) == []


GOOD = (SERVING, LWS_VLLM)
fuzz = settings(max_examples=150, deadline=None)


@pytest.mark.property
@fuzz
@given(st.sampled_from(GOOD), st.data())
def test_nothing_that_an_object_holds_makes_a_rule_raise(
    body: dict[str, Any], data: st.DataObject
) -> None:
    worse, tree = data.draw(damaged(body)), data.draw(json_trees())
    odd = {"apiVersion": body["apiVersion"], "kind": body["kind"], "spec": tree}
    for before, after in ((body, worse), (worse, body), (body, odd), (odd, body), (worse, odd)):
        for finding in check_change(before, after):
            assert str(finding)
