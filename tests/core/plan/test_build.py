"""Plans: counts, gangs, batches and hashes, and what is filled in for the user."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.compiler.compile import compile_group, compile_role, compile_serving
from kthena_components.core.findings import Level
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.values.quantity import render_quantity
from tests.support.specs import (
    ENGINE_RAY,
    GANG,
    GROUP,
    GUIDE,
    NATIVE_8B,
    PREFILL_DECODE,
    REMOVED,
    ROLE,
    SGLANG,
    TEMPLATES_PLAIN,
    Args,
    changed,
)
from tests.support.strategies import LATE, law

UPDATE = "rollout_strategy.rolling_update_configuration"


def plan(args: Args, changes: Mapping[str, Any] | None = None) -> ServingPlan:
    return compile_serving(changed(args, changes)).plan


@pytest.mark.parametrize(
    ("args", "changes", "pods", "member"),
    [
        (TEMPLATES_PLAIN, {}, 8, 8),
        (GANG, {}, 8, 6),
        (GUIDE, {}, 4, 2),
        (ENGINE_RAY, {}, 4, 2),
        (PREFILL_DECODE, {"gang_policy": REMOVED}, 11, 11),
        (PREFILL_DECODE, {}, 11, 7),
        (PREFILL_DECODE, {"gang_policy.min_role_replicas.prefill": 0}, 11, 3),
        (NATIVE_8B, {"roles[0].replicas": 0}, 0, 0),
        (NATIVE_8B, {"replicas": 0}, 0, 1),
    ],
    ids=[
        "sample",
        "gang",
        "guide",
        "two-groups",
        "no-gang-policy",
        "one-of-each",
        "optional-role",
        "empty-role",
        "no-groups",
    ],
)
def test_pods_and_gangs_are_counted_in_whole_engines(
    args: Args, changes: Mapping[str, Any], pods: int, member: int
) -> None:
    planned = plan(args, changes)
    assert (planned.pods, planned.min_member) == (pods, member)


def test_a_gang_asks_for_the_requests_of_its_minimum() -> None:
    asked = {key: render_quantity(number) for key, number in plan(GUIDE).min_resources.items()}
    assert asked == {
        "cpu": "250",
        "ephemeral-storage": "1600Gi",
        "memory": "2248Gi",
        "nvidia.com/gpu": "16",
    }


def test_a_template_of_no_workers_asks_for_nothing() -> None:
    idle = {"spec": {"containers": [{"name": "w", "resources": {"requests": {"cpu": 1}}}]}}
    changes = {"roles[0].worker_replicas": 0, "roles[0].worker_template": idle}
    assert plan(TEMPLATES_PLAIN, changes).min_resources == {}


@pytest.mark.property
@law
@given(st.integers(0, 12), st.integers(1, 5))
def test_groups_form_batches_and_each_waits_for_the_one_before(groups: int, size: int) -> None:
    planned = plan(NATIVE_8B, {"replicas": groups, f"{UPDATE}.max_unavailable": size})
    for group in planned.group_numbers():
        before = list(planned.batch_before(group))
        batch = group // size
        assert before == list(range((batch - 1) * size, batch * size))[: size * bool(batch)]


@pytest.mark.parametrize(
    ("update", "budget", "partition"),
    [
        ({}, 1, 0),
        ({"max_unavailable": "50%"}, 2, 0),
        ({"max_unavailable": "49%"}, 1, 0),
        ({"max_unavailable": 9}, 9, 0),
        ({"partition": 3}, 1, 3),
        ({"partition": "26%"}, 1, 2),
    ],
    ids=["default", "half", "rounds-down", "all", "count", "rounds-up"],
)
def test_shares_become_counts_of_groups(update: Args, budget: int, partition: int) -> None:
    rollout = plan(NATIVE_8B, {"replicas": 4, UPDATE: update}).rollout
    assert (rollout.max_unavailable, rollout.partition) == (budget, partition)


CHANGE_PODS = {
    "image": {"roles[0].engine.image": "vllm/vllm-openai:v0.10.2"},
    "flag": {"roles[0].engine.extra_args": ["--seed", "1"]},
    "memory": {"roles[0].resources.memory": "1000Gi"},
    "overlay": {"roles[0].overlay.metadata.labels": {"team": "chat"}},
}
LEAVE_PODS = {
    "groups": {"replicas": 5},
    "engines": {"roles[0].replicas": 5},
    "queue": {"queue": "research"},
    "topology": {"network_topology": REMOVED},
    "expose": {"expose": REMOVED},
    "timeout": {"ready_timeout_seconds": 60},
}


@pytest.mark.parametrize("changes", CHANGE_PODS.values(), ids=CHANGE_PODS)
def test_what_changes_a_pod_changes_its_hash(changes: Args) -> None:
    before, after = plan(ENGINE_RAY), plan(ENGINE_RAY, changes)
    assert before.roles[0].template_hash != after.roles[0].template_hash
    assert before.revision != after.revision


@pytest.mark.parametrize("changes", LEAVE_PODS.values(), ids=LEAVE_PODS)
def test_what_leaves_pods_as_they_are_keeps_the_hash(changes: Args) -> None:
    assert plan(ENGINE_RAY).revision == plan(ENGINE_RAY, changes).revision


def test_the_order_of_a_templates_fields_does_not_count() -> None:
    (container,) = TEMPLATES_PLAIN["roles"][0]["entry_template"]["spec"]["containers"]
    turned = {"roles[0].entry_template.spec.containers[0]": dict(reversed(container.items()))}
    assert plan(TEMPLATES_PLAIN).revision == plan(TEMPLATES_PLAIN, turned).revision


def test_what_is_not_stated_has_its_default() -> None:
    planned = plan(changed(NATIVE_8B, {"name": "small"}))
    stated = (planned.backend, planned.namespace, planned.scheduler, planned.kthena_version)
    assert stated == ("native", "default", "volcano", "1.0")
    assert (planned.groups, planned.ready_timeout_seconds) == (1, 3600)
    (role,) = planned.roles
    assert (role.replicas, role.worker_replicas, role.gang_replicas) == (1, 0, 1)


def test_a_hash_is_ten_hexadecimal_digits() -> None:
    planned = plan(ENGINE_RAY, {"roles[0].engine.image": LATE})
    for text in (planned.revision, planned.roles[0].template_hash):
        assert len(text) == 10
        assert set(text) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    ("args", "changes", "port"),
    [
        (SGLANG, {"expose": {}}, 30000),
        (TEMPLATES_PLAIN, {"expose.role": "decode"}, 8080),
        (TEMPLATES_PLAIN, {"expose": {"role": "decode", "target_port": 9000}}, 9000),
    ],
    ids=["engine", "template", "stated"],
)
def test_the_front_service_follows_the_port_of_its_role(
    args: Args, changes: Args, port: int
) -> None:
    expose = plan(args, changes).expose
    assert expose is not None
    assert expose.target_port == port


def test_what_was_filled_in_is_noted_as_advice() -> None:
    notes = plan(GUIDE).notes
    assert [note.path for note in notes] == ["roles[0].entry_template", "roles[0].worker_template"]
    assert {note.level for note in notes} == {Level.ADVISORY}


def test_a_group_by_itself_is_one_group_of_its_own_number() -> None:
    planned = compile_group(GROUP).plan
    assert list(planned.group_numbers()) == [3]
    assert list(planned.batch_before(3)) == []


@pytest.mark.parametrize(
    ("changes", "pod_group"), [({}, "shared"), ({"pod_group": REMOVED}, "")], ids=["joins", "alone"]
)
def test_a_role_by_itself_makes_no_gang(changes: Args, pod_group: str) -> None:
    planned = compile_role(changed(ROLE, changes)).plan
    assert planned.pod_group == pod_group
    assert planned.roles[0].path == ""
