from typing import Any

import pytest

from kthena_components.core.findings import Level
from tests.systems.kthena.test_rules_examples import GONE, chat, check_serving, said_by, told

LATE = "\ue0007\ue001"
LATER = "not checked, because the value is known only after the deployment."
ROLL = "spec.rolloutStrategy.rollingUpdateConfiguration"
TYPE = "spec.rolloutStrategy.type"
BY_ROLE = {TYPE: "RoleRollingUpdate"}
ROLE = "spec.template.roles.0.maxUnavailable"
ROLE_AT = "spec.template.roles[0].maxUnavailable"
NOT_A_BUDGET = (
    "but must be a count of at least 0 or a percentage from 0% to 100%. "
    "Write, for example, 1 or 25%."
)
NEVER = "so nothing could ever be updated. Write at least 1."


# kthena-rolling-update


@pytest.mark.parametrize("budget", [1, 2, 1.0, 99, "50%", "100%", "0050%", None])
def test_a_budget_that_is_not_0_passes(budget: Any) -> None:
    assert told(chat({f"{ROLL}.maxUnavailable": budget})) == []


@pytest.mark.parametrize("budget", [-1, "-5%", "101%", "1", "", "1.5%", "50%%"])
@pytest.mark.parametrize("field", ["maxUnavailable", "partition"])
def test_what_is_neither_count_nor_percentage_is_refused(field: str, budget: Any) -> None:
    assert told(chat({f"{ROLL}.{field}": budget})) == [
        f"{ROLL}.{field}: is {budget!r}, {NOT_A_BUDGET} [kthena-rolling-update]"
    ]


@pytest.mark.parametrize(
    ("budget", "replicas", "shown"),
    [
        (0, 2, "0"),
        ("0%", 2, "0%, which of 2 groups rounds down to 0"),
        ("49%", 2, "49%, which of 2 groups rounds down to 0"),
        ("50%", 1, "50%, which of 1 group rounds down to 0"),
        ("50%", 0, "50%, which of 0 groups rounds down to 0"),
    ],
)
def test_a_budget_of_0_is_refused(budget: Any, replicas: int, shown: str) -> None:
    changes = {f"{ROLL}.maxUnavailable": budget, "spec.replicas": replicas}
    assert told(chat(changes)) == [
        f"{ROLL}.maxUnavailable: is {shown}, {NEVER} [kthena-rolling-update]"
    ]


@pytest.mark.parametrize("field", ["maxUnavailable", "partition"])
def test_digits_of_other_scripts_are_no_percentage(field: str) -> None:
    assert told(chat({f"{ROLL}.{field}": "\u0665%"})) == [
        rf"{ROLL}.{field}: is '\u0665%', {NOT_A_BUDGET} [kthena-rolling-update]"
    ]


def test_a_count_passes_even_where_there_are_no_groups() -> None:
    assert told(chat({f"{ROLL}.maxUnavailable": 1, "spec.replicas": 0})) == []


@pytest.mark.parametrize("partition", [0, 2, 99, "0%", "50%", "100%", None])
def test_since_0_4_a_partition_has_no_bound(partition: Any) -> None:
    for version in ("0.4", "1.0"):
        assert told(chat({f"{ROLL}.partition": partition}), version) == []


@pytest.mark.parametrize("version", ["0.1", "0.2", "0.3"])
def test_before_0_4_a_partition_lies_below_replicas(version: str) -> None:
    assert told(chat({f"{ROLL}.partition": 1}), version) == []
    assert told(chat({f"{ROLL}.partition": 2}), version) == [
        (
            f"{ROLL}.partition: is 2, but Kthena {version} requires it to be below replicas, 2. "
            "Write at most 1, or remove it. [kthena-rolling-update]"
        )
    ]


@pytest.mark.parametrize("version", ["0.1", "0.2", "0.3"])
def test_before_0_4_a_partition_is_not_negative(version: str) -> None:
    assert told(chat({f"{ROLL}.partition": -1}), version) == [
        f"{ROLL}.partition: is -1, but must be at least 0. Write 0 or more. [kthena-rolling-update]"
    ]


@pytest.mark.parametrize("version", ["0.1", "0.2", "0.3"])
def test_before_0_4_a_partition_is_no_percentage(version: str) -> None:
    assert told(chat({f"{ROLL}.partition": "50%"}), version) == [
        (
            f"{ROLL}.partition: is '50%', but must be a whole number in Kthena {version}; 0.4 "
            "accepts it. Write, for example, 1, without quotes, or use Kthena 0.4. [kthena-version]"
        )
    ]


@pytest.mark.parametrize("configuration", [{}, {"maxUnavailable": 1}, {"maxUnavailable": "x"}])
def test_a_rollout_by_roles_has_no_budget_for_groups(configuration: dict[str, Any]) -> None:
    assert told(chat({ROLL: configuration, **BY_ROLE})) == [
        (
            f"{ROLL}: is given, but with RoleRollingUpdate each role has its own budget. "
            "Remove it, and write maxUnavailable on the roles. [kthena-rolling-update]"
        )
    ]


def test_0_4_lets_a_rollout_by_roles_have_a_budget_for_groups() -> None:
    assert told(chat({ROLL: {"maxUnavailable": 1}, **BY_ROLE}), "0.4") == []


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({f"{ROLL}.maxUnavailable": LATE}, f"{ROLL}.maxUnavailable"),
        ({f"{ROLL}.maxUnavailable": "50%", "spec.replicas": LATE}, f"{ROLL}.maxUnavailable"),
        ({f"{ROLL}.partition": LATE}, f"{ROLL}.partition"),
        ({ROLL: {}, TYPE: LATE}, ROLL),
    ],
)
def test_a_late_budget_is_not_checked(changes: dict[str, Any], path: str) -> None:
    assert said_by("rolling-update", changes) == [f"{path}: {LATER} [kthena-rolling-update]"]


def test_a_late_partition_bound_is_not_checked() -> None:
    changes = {f"{ROLL}.partition": 1, "spec.replicas": LATE}
    expected = f"{ROLL}.partition: {LATER} [kthena-rolling-update]"
    assert said_by("rolling-update", changes, "0.3") == [expected]


# kthena-max-surge

INSTEAD = "Remove it; a rollout takes groups down first, maxUnavailable at a time."


@pytest.mark.parametrize(
    "place", ["spec", "spec.rolloutStrategy", ROLL, "spec.template", "spec.template.roles.0"]
)
def test_a_surge_is_refused_wherever_it_stands(place: str) -> None:
    at = place.replace(".0", "[0]")
    (finding,) = check_serving(chat({f"{place}.maxSurge": 1}))
    assert str(finding) == (
        f"{at}.maxSurge: is 1, but Kthena has no surge; its CRD has no such field, which "
        f"server-side apply and kubectl reject. {INSTEAD} [kthena-max-surge]"
    )
    assert finding.level is Level.MANDATORY


@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_before_0_3_a_surge_is_stored_and_never_acted_on(version: str) -> None:
    changes = {f"{ROLL}.maxSurge": "50%", f"{ROLL}.maxUnavailable": 0}
    assert told(chat(changes), version) == [
        (
            f"{ROLL}.maxSurge: is '50%', but Kthena has no surge; Kthena {version} ignores it. "
            f"{INSTEAD} [kthena-max-surge]"
        )
    ]


@pytest.mark.parametrize("surge", [0, "0%"])
def test_a_surge_of_0_is_a_field_too_many_since_0_3(surge: Any) -> None:
    (finding,) = check_serving(chat({f"{ROLL}.maxSurge": surge}))
    assert (finding.rule, finding.level) == ("kthena-max-surge", Level.MANDATORY)
    assert told(chat({f"{ROLL}.maxSurge": surge}), "0.1") == []


def test_before_0_3_a_budget_and_a_surge_of_0_are_refused() -> None:
    changes = {f"{ROLL}.maxSurge": 0, f"{ROLL}.maxUnavailable": 0}
    assert told(chat(changes), "0.2") == [
        f"{ROLL}.maxUnavailable: is 0, {NEVER} [kthena-rolling-update]"
    ]


def test_before_0_3_a_late_surge_is_not_checked() -> None:
    assert told(chat({f"{ROLL}.maxSurge": LATE}), "0.2") == [
        f"{ROLL}.maxSurge: {LATER} [kthena-max-surge]"
    ]


def test_since_0_3_a_late_surge_is_a_field_too_many() -> None:
    (finding,) = check_serving(chat({f"{ROLL}.maxSurge": LATE}))
    assert str(finding).startswith(f"{ROLL}.maxSurge: is set, but Kthena has no surge; its CRD")


# kthena-role-budget


@pytest.mark.parametrize("budget", [1, 2, "50%", "100%", None])
def test_a_role_budget_up_to_its_replicas_passes(budget: Any) -> None:
    assert told(chat({ROLE: budget, **BY_ROLE})) == []


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (0, f"is 0, {NEVER}"),
        ("49%", f"is 49%, which of 2 replicas rounds down to 0, {NEVER}"),
        (-1, f"is -1, {NOT_A_BUDGET}"),
        ("200%", f"is '200%', {NOT_A_BUDGET}"),
        (3, "is 3, but the role has 2 replicas. Write at most 2."),
    ],
)
def test_a_role_budget_is_never_0_and_at_most_its_replicas(budget: Any, said: str) -> None:
    assert told(chat({ROLE: budget, **BY_ROLE})) == [f"{ROLE_AT}: {said} [kthena-role-budget]"]


def test_a_role_without_replicas_takes_no_budget() -> None:
    changes = {ROLE: 1, "spec.template.roles.0.replicas": 0, "spec.template.gangPolicy": GONE}
    assert told(chat(changes | BY_ROLE)) == [
        f"{ROLE_AT}: is 1, but the role has 0 replicas. Remove it. [kthena-role-budget]"
    ]


@pytest.mark.parametrize("kind", [None, "ServingGroupRollingUpdate"])
def test_a_role_budget_needs_a_rollout_by_roles(kind: Any) -> None:
    assert told(chat({TYPE: kind, ROLE: 1})) == [
        (
            f"{ROLE_AT}: is given, but spec.rolloutStrategy.type is ServingGroupRollingUpdate, and "
            "that has one budget for all. Write type: RoleRollingUpdate, or remove it. "
            "[kthena-role-budget]"
        )
    ]


@pytest.mark.parametrize("version", ["0.1", "0.2", "0.3", "0.4"])
def test_before_1_0_a_role_budget_is_refused(version: str) -> None:
    (finding,) = check_serving(chat({ROLE: 1}), version)
    assert str(finding) == (
        f"{ROLE_AT}: is not a field of ModelServing in Kthena {version}, which server-side apply "
        "and kubectl reject; 1.0 has it. Remove it, or use Kthena 1.0. [kthena-version]"
    )
    assert finding.level is Level.MANDATORY


@pytest.mark.parametrize(
    "changes",
    [
        {ROLE: LATE, **BY_ROLE},
        {ROLE: 1, TYPE: LATE},
        {ROLE: 1, "spec.template.roles.0.replicas": LATE, **BY_ROLE},
        {ROLE: "50%", "spec.template.roles.0.replicas": LATE, **BY_ROLE},
    ],
)
def test_a_role_budget_with_a_late_part_is_not_checked(changes: dict[str, Any]) -> None:
    assert said_by("role-budget", changes) == [f"{ROLE_AT}: {LATER} [kthena-role-budget]"]


# kthena-recovery-and-rollout

RECREATE = {"spec.recoveryPolicy": "ServingGroupRecreate"}


@pytest.mark.parametrize("version", ["0.4", "1.0"])
def test_groups_are_not_recreated_while_roles_roll(version: str) -> None:
    assert told(chat({**RECREATE, **BY_ROLE}), version) == [
        (
            f"{TYPE}: is RoleRollingUpdate while recoveryPolicy is ServingGroupRecreate, and each "
            "updated role would recreate its whole group. Write ServingGroupRollingUpdate, or "
            "recoveryPolicy: RoleRecreate. [kthena-recovery-and-rollout]"
        )
    ]


@pytest.mark.parametrize("changes", [RECREATE, BY_ROLE, {"spec.recoveryPolicy": "None", **BY_ROLE}])
def test_other_pairs_of_recovery_and_rollout_pass(changes: dict[str, Any]) -> None:
    assert told(chat(changes)) == []


@pytest.mark.parametrize(
    "changes", [{"spec.recoveryPolicy": LATE, **BY_ROLE}, {TYPE: LATE, **RECREATE}]
)
def test_a_late_pair_of_recovery_and_rollout_is_not_checked(changes: dict[str, Any]) -> None:
    expected = f"{TYPE}: {LATER} [kthena-recovery-and-rollout]"
    assert said_by("recovery-and-rollout", changes) == [expected]


def test_a_late_recovery_goes_with_a_rollout_by_groups() -> None:
    assert said_by("recovery-and-rollout", {"spec.recoveryPolicy": LATE}) == []


@pytest.mark.parametrize("version", ["0.1", "0.2", "0.3"])
def test_before_0_4_there_is_no_rollout_by_roles(version: str) -> None:
    assert told(chat(BY_ROLE), version) == [
        (
            f"{TYPE}: is 'RoleRollingUpdate', but must be 'ServingGroupRollingUpdate' in Kthena "
            f"{version}; 0.4 accepts it. Write 'ServingGroupRollingUpdate', or use Kthena 0.4. "
            "[kthena-version]"
        )
    ]
