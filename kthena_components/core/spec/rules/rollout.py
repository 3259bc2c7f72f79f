"""Rules for updates of a serving: budgets, partition and recovery.

Each function of ROLLOUT_RULES is one rule between fields of a spec.
"""

from collections.abc import Callable, Iterator

from kthena_components.core.findings import Finding, count_of
from kthena_components.core.remedies import at_most, either, remove, write
from kthena_components.core.spec.enums import RecoveryPolicy, RolloutType
from kthena_components.core.spec.serving_spec import ModelServingSpec, RoleSpec, RollingUpdateSpec
from kthena_components.core.values.display import display
from kthena_components.core.values.regex import regex

PERCENT = regex(r"^(?:100|[0-9]{1,2})%$")
_ROLLING = "rollout_strategy.rolling_update_configuration"


def scale_budget(budget: int | str, of: int, *, up: bool) -> int | None:
    """Convert a count or a percentage to a count; None if it is neither.

    Percentages round down for max_unavailable and up for partition, as in Kthena. Source: Kthena
    v1.0.0 pkg/model-serving-controller/utils/utils.go GetMaxUnavailable and
    controller/model_serving_controller.go getPartition.
    """
    if isinstance(budget, int):
        return budget if budget >= 0 else None
    if not PERCENT.match(budget):
        return None
    share = int(budget[:-1]) * of
    return -(-share // 100) if up else share // 100


def rollout_budget(spec: ModelServingSpec) -> Iterator[Finding]:
    """A budget is a count or a percentage above 0; a role's own budget requires rollouts by role.

    Percentages round down. A role's own max_unavailable is at most the role's replicas. With a
    max_surge above 0, max_unavailable may be 0.

    Pass: max_unavailable 1; 50% of 2 groups; 0 with max_surge 1.
    Fail: max_unavailable 0; 49% of 2 groups, which is 0; 101%; 3 of a role with 2 replicas.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go
    validateRollingUpdateConfiguration and validateMaxUnavailableForRoles.
    """
    stated = spec.rollout_strategy.rolling_update_configuration
    if stated is None:
        return
    if spec.rollout_strategy.type is RolloutType.ROLE:
        yield Finding(
            path=_ROLLING,
            rule="rollout-budget",
            seen="is given, but with RoleRollingUpdate each role has its own budget",
            remedy=remove("remove it; with backend: kthena, set max_unavailable in a role"),
        )
        return
    if not _surges(stated, spec.replicas):
        yield from _budget(
            f"{_ROLLING}.max_unavailable", stated.max_unavailable, spec.replicas, "group"
        )
    if stated.partition is not None and _partition(spec) is None:
        yield _no_budget(f"{_ROLLING}.partition", stated.partition)


def _surges(stated: RollingUpdateSpec, groups: int) -> bool:
    """Return whether new groups come first, so that none must be unavailable."""
    surge = stated.max_surge
    added = None if surge is None else scale_budget(surge, groups, up=True)
    return bool(added) and scale_budget(stated.max_unavailable, groups, up=False) == 0


def rollout_partition(spec: ModelServingSpec) -> Iterator[Finding]:
    """The partition, the number of first groups that keep their template, is at most all groups.

    It is a count or a percentage. Percentages round up.

    Pass: partition 2 of 2 groups.
    Fail: partition 3 of 2 groups.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/controller/model_serving_controller.go
    manageRollingUpdate, which updates no group if the partition is larger.
    """
    stated, partition = spec.rollout_strategy.rolling_update_configuration, _partition(spec)
    if stated is not None and partition is not None and partition > spec.replicas:
        yield Finding(
            path=f"{_ROLLING}.partition",
            rule="rollout-partition",
            seen=f"is {stated.partition}, but the serving has {count_of(spec.replicas, 'group')}; "
            "the partition counts the first groups that keep their template",
            remedy=either(at_most(spec.replicas), "a percentage such as 50%"),
        )


def _partition(spec: ModelServingSpec) -> int | None:
    """Count the groups that keep their template; None if not stated or invalid."""
    stated = spec.rollout_strategy.rolling_update_configuration
    if stated is None or stated.partition is None or spec.rollout_strategy.type is RolloutType.ROLE:
        return None
    return scale_budget(stated.partition, spec.replicas, up=True)


def _budget(path: str, budget: int | str, of: int, what: str) -> Iterator[Finding]:
    """Reject an invalid budget, or one that allows no update.

    Kthena also rejects a percentage that rounds to 0, so it is rejected for every backend.
    """
    scaled = scale_budget(budget, of, up=False)
    if scaled is None:
        yield _no_budget(path, budget)
    elif scaled == 0:
        share = "" if isinstance(budget, int) else f", and of {count_of(of, what)} that is 0"
        yield Finding(
            path=path,
            rule="rollout-budget",
            seen=f"is {budget}{share}, so nothing could ever be updated",
            remedy="write a count of at least 1",
        )


def _no_budget(path: str, budget: int | str) -> Finding:
    return Finding(
        path=path,
        rule="rollout-budget",
        seen=f"is {display(budget)}, but must be a count of at least 0 "
        "or a percentage from 0% to 100%",
        remedy="write, for example, 1 or 25%",
    )


def recovery_and_rollout(spec: ModelServingSpec) -> Iterator[Finding]:
    """Rollouts by role do not recreate whole groups.

    Pass: recovery_policy RoleRecreate with RoleRollingUpdate.
    Fail: recovery_policy ServingGroupRecreate with RoleRollingUpdate.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go
    validateRecoveryPolicyAndRolloutStrategy.
    """
    if (
        spec.recovery_policy is RecoveryPolicy.SERVING_GROUP_RECREATE
        and spec.rollout_strategy.type is RolloutType.ROLE
    ):
        yield Finding(
            path="rollout_strategy.type",
            rule="recovery-and-rollout",
            seen="is RoleRollingUpdate while recovery_policy is ServingGroupRecreate; "
            "each updated role would recreate its whole group",
            remedy=either(
                write("ServingGroupRollingUpdate", "write ServingGroupRollingUpdate"),
                write("RoleRecreate", "recovery_policy: RoleRecreate", at="recovery_policy"),
            ),
        )


def role_budget(spec: ModelServingSpec, role: RoleSpec) -> Iterator[Finding]:
    """A role's own budget needs RoleRollingUpdate and fits the role's replicas."""
    if role.max_unavailable is None:
        return
    if spec.rollout_strategy.type is not RolloutType.ROLE:
        yield Finding(
            path="max_unavailable",
            rule="rollout-budget",
            seen=f"is given, but rollout_strategy.type is {spec.rollout_strategy.type}",
            remedy=either("write rollout_strategy.type: RoleRollingUpdate", remove()),
        )
        return
    yield from _budget("max_unavailable", role.max_unavailable, role.replicas, "replica")
    scaled = scale_budget(role.max_unavailable, role.replicas, up=False)
    if scaled is not None and scaled > role.replicas:
        yield Finding(
            path="max_unavailable",
            rule="rollout-budget",
            seen=f"is {role.max_unavailable}, "
            f"but the role has {count_of(role.replicas, 'replica')}",
            remedy=f"write at most {role.replicas}" if role.replicas else remove(),
        )


ROLLOUT_RULES: tuple[Callable[[ModelServingSpec], Iterator[Finding]], ...] = (
    rollout_budget,
    rollout_partition,
    recovery_and_rollout,
)
