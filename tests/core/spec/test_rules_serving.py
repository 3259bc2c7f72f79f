"""Rules between the fields of a serving: what passes, and what is said when it does not."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.findings import SpecError
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.spec.rules.roles_pods_gang_expose import check_spec
from kthena_components.core.spec.rules.rollout import scale_budget
from kthena_components.core.spec.serving_spec import ModelServingSpec
from tests.support.for_each import for_each
from tests.support.specs import (
    ENGINE_RAY,
    PREFILL_DECODE,
    REMOVED,
    TEMPLATES_PLAIN,
    Args,
    Case,
    changed,
)
from tests.support.strategies import law

UPDATE = "rollout_strategy.rolling_update_configuration"
BY_ROLE = {"rollout_strategy.type": "RoleRollingUpdate"}
NOT_READ = (
    "is given, but scheduler_name is 'default-scheduler', and only Volcano reads it. Write "
    "scheduler_name: volcano, or remove the field. [volcano-scheduler]"
)
NO_BUDGET = (
    "must be a count of at least 0 or a percentage from 0% to 100%. Write, for example, 1 or 25%. "
    "[rollout-budget]"
)
NEVER = "so nothing could ever be updated. Write a count of at least 1. [rollout-budget]"


def said(args: Args, changes: Mapping[str, Any]) -> list[str]:
    """Give every finding as a line."""
    spec = parse_spec(ModelServingSpec, changed(args, changes))
    return [str(finding) for finding in check_spec(spec)]


REFUSED = {
    "three-roles-of-one-name": Case(
        PREFILL_DECODE,
        {
            "roles[1].name": "prefill",
            "roles[2]": PREFILL_DECODE["roles"][0],
            "expose": REMOVED,
            "gang_policy": REMOVED,
        },
        "roles[1].name: 3 roles have the name 'prefill' (roles[0], roles[1], roles[2]), and role "
        "names must be unique. Rename all but one. [role-names-unique]",
    ),
    "minimum-of-nothing-near": Case(
        ENGINE_RAY,
        {"gang_policy.min_role_replicas.server": 1},
        "gang_policy.min_role_replicas.server: there is no role 'server'. Known: decode. "
        "[gang-minimum]",
    ),
    "topology-of-tier-zero": Case(
        ENGINE_RAY,
        {"network_topology.group_policy.highest_tier_allowed": 0},
        "network_topology.group_policy.highest_tier_allowed: is 0, below the closest tier, so "
        "Volcano would never place the group. Write 1 for the closest tier. [topology-cap-stated]",
    ),
    "role-topology-without-a-cap": Case(
        ENGINE_RAY,
        {"network_topology.role_policy": {}},
        "network_topology.role_policy: mode is hard but no tier is given, so Volcano would drop "
        "the whole constraint. Give highest_tier_allowed, for example 1 for the closest tier. "
        "[topology-cap-stated]",
    ),
    "topology-without-volcano": Case(
        ENGINE_RAY, {"scheduler_name": "default-scheduler"}, f"network_topology: {NOT_READ}"
    ),
    "gang-without-volcano": Case(
        PREFILL_DECODE,
        {"scheduler_name": "default-scheduler", "network_topology": REMOVED},
        f"gang_policy: {NOT_READ}",
    ),
    "queue-without-volcano": Case(
        ENGINE_RAY,
        {"scheduler_name": "default-scheduler", "network_topology": REMOVED, "queue": "research"},
        f"queue: {NOT_READ}",
    ),
    "budget-of-zero": Case(
        ENGINE_RAY, {f"{UPDATE}.max_unavailable": 0}, f"{UPDATE}.max_unavailable: is 0, {NEVER}"
    ),
    "budget-that-rounds-to-zero": Case(
        ENGINE_RAY,
        {f"{UPDATE}.max_unavailable": "49%"},
        f"{UPDATE}.max_unavailable: is 49%, and of 2 groups that is 0, {NEVER}",
    ),
    "share-of-no-groups": Case(
        ENGINE_RAY,
        {f"{UPDATE}.max_unavailable": "100%", "replicas": 0},
        f"{UPDATE}.max_unavailable: is 100%, and of 0 groups that is 0, {NEVER}",
    ),
    "budget-that-is-none": Case(
        ENGINE_RAY,
        {f"{UPDATE}.max_unavailable": "101%"},
        f"{UPDATE}.max_unavailable: is '101%', but {NO_BUDGET}",
    ),
    "partition-that-is-none": Case(
        ENGINE_RAY, {f"{UPDATE}.partition": -1}, f"{UPDATE}.partition: is -1, but {NO_BUDGET}"
    ),
    "group-budget-for-an-update-by-role": Case(
        ENGINE_RAY,
        {**BY_ROLE, UPDATE: {}},
        f"{UPDATE}: is given, but with RoleRollingUpdate each role has its own budget. Remove it; "
        "with backend: kthena, set max_unavailable in a role. [rollout-budget]",
    ),
    "role-budget-for-an-update-by-group": Case(
        ENGINE_RAY,
        {"roles[0].max_unavailable": 1},
        "roles[0].max_unavailable: is given, but rollout_strategy.type is "
        "ServingGroupRollingUpdate. Write rollout_strategy.type: RoleRollingUpdate, or remove it. "
        "[rollout-budget]",
    ),
    "role-budget-above-the-replicas": Case(
        ENGINE_RAY,
        {**BY_ROLE, "roles[0].max_unavailable": 2},
        "roles[0].max_unavailable: is 2, but the role has 1 replica. Write at most 1. "
        "[rollout-budget]",
    ),
    "role-budget-of-an-empty-role": Case(
        ENGINE_RAY,
        {**BY_ROLE, "roles[0].max_unavailable": 1, "roles[0].replicas": 0},
        "roles[0].max_unavailable: is 1, but the role has 0 replicas. Remove it. [rollout-budget]",
    ),
    "role-budget-that-rounds-to-zero": Case(
        ENGINE_RAY,
        {**BY_ROLE, "roles[0].max_unavailable": "50%"},
        f"roles[0].max_unavailable: is 50%, and of 1 replica that is 0, {NEVER}",
    ),
    "recovery-of-groups-while-roles-roll": Case(
        ENGINE_RAY,
        {**BY_ROLE, "recovery_policy": "ServingGroupRecreate"},
        "rollout_strategy.type: is RoleRollingUpdate while recovery_policy is "
        "ServingGroupRecreate; each updated role would recreate its whole group. Write "
        "ServingGroupRollingUpdate, or recovery_policy: RoleRecreate. [recovery-and-rollout]",
    ),
    "template-with-its-own-scheduler": Case(
        TEMPLATES_PLAIN,
        {"roles[1].worker_template.spec.schedulerName": "default-scheduler"},
        "roles[1].worker_template.spec.schedulerName: is 'default-scheduler', but all pods get the "
        "serving's scheduler_name, which is 'volcano'. Remove it, or write it as the serving's "
        "scheduler_name. [template-scheduler]",
    ),
    "nothing-to-expose": Case(
        PREFILL_DECODE,
        {"expose": {}},
        "expose.role: is missing, and there are 2 roles (prefill, decode) to send requests to. "
        "Name the role whose entry pods answer. [expose-role]",
    ),
    "exposed-role-that-is-none": Case(
        PREFILL_DECODE,
        {"expose.role": "decoder"},
        "expose.role: there is no role 'decoder'. Write 'decode'. [expose-role]",
    ),
    "port-that-nothing-listens-on": Case(
        ENGINE_RAY,
        {"expose.target_port": 8000},
        "expose.target_port: is 8000, but the engine of role 'decode' listens on 8080. Remove it, "
        "or write 8080. [expose-port]",
    ),
}


@for_each("case", REFUSED.values(), ids=REFUSED)
def test_fields_that_do_not_go_together_are_refused(case: Case) -> None:
    assert said(case.args, case.changes) == [case.message]


ACCEPTED: dict[str, tuple[Args, Args]] = {
    "template-with-the-same-scheduler": (
        TEMPLATES_PLAIN,
        {"roles[0].entry_template.spec.schedulerName": "volcano"},
    ),
    "gang-policy-without-minima": (ENGINE_RAY, {"gang_policy": {}}),
    "optional-role": (PREFILL_DECODE, {"gang_policy.min_role_replicas": {"decode": 0}}),
    "soft-topology-without-a-cap": (
        ENGINE_RAY,
        {"network_topology.group_policy": {"mode": "soft"}},
    ),
    "tier-by-name": (ENGINE_RAY, {"network_topology.group_policy": {"highest_tier_name": "rack"}}),
    "all-groups-at-once": (ENGINE_RAY, {f"{UPDATE}.max_unavailable": "100%"}),
    "more-than-all-groups": (ENGINE_RAY, {f"{UPDATE}.max_unavailable": 3}),
    "partition-of-all-groups": (ENGINE_RAY, {f"{UPDATE}.partition": 2}),
    "partition-in-percent": (ENGINE_RAY, {f"{UPDATE}.partition": "1%"}),
    "role-budget": (ENGINE_RAY, {**BY_ROLE, "roles[0].max_unavailable": "100%"}),
    "only-role-exposed": (ENGINE_RAY, {"expose": {}}),
    "role-exposed-by-name": (ENGINE_RAY, {"expose.role": "decode"}),
}


@pytest.mark.parametrize(("args", "changes"), ACCEPTED.values(), ids=ACCEPTED)
def test_fields_that_go_together_are_taken(args: Args, changes: Args) -> None:
    assert said(args, changes) == []


def test_a_role_by_itself_is_checked_where_it_stands() -> None:
    spec = parse_spec(
        ModelServingSpec, changed(ENGINE_RAY, {"roles[0].engine.extra_args": ["-tp"]})
    )
    assert [finding.path for finding in check_spec(spec, alone=True, role_path="")] == [
        "engine.extra_args"
    ]


@pytest.mark.parametrize(
    ("budget", "down", "up"),
    [
        (0, 0, 0),
        (3, 3, 3),
        (-1, None, None),
        ("0%", 0, 0),
        ("1%", 0, 1),
        ("50%", 2, 3),
        ("100%", 5, 5),
        ("101%", None, None),
        ("-5%", None, None),
        ("5", None, None),
        ("x%", None, None),
    ],
)
def test_a_share_of_five_rounds_as_kthena_rounds(
    budget: int | str, down: int | None, up: int | None
) -> None:
    assert scale_budget(budget, 5, up=False) == down
    assert scale_budget(budget, 5, up=True) == up


@pytest.mark.property
@law
@given(st.integers(0, 100), st.integers(0, 50))
def test_a_share_lies_between_its_roundings(percent: int, of: int) -> None:
    down, up = (scale_budget(f"{percent}%", of, up=up) for up in (False, True))
    assert down is not None
    assert up is not None
    assert 0 <= down <= percent * of / 100 <= up <= of


def test_a_refusal_of_structure_comes_alone() -> None:
    with pytest.raises(SpecError):
        said(ENGINE_RAY, {"replicas": "2"})
