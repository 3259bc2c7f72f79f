"""Checks updates of a ModelServing: budgets, partition, surge and recovery.

Each function is one rule of rules.RULES.
"""

from collections.abc import Iterator, Mapping

from kthena_components.core.findings import Finding, count_of, join_path, not_checked, part_of_rule
from kthena_components.core.remedies import at_least, at_most, either, or_more, remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import is_budget, scaled
from kthena_components.core.values.read import (
    count,
    first_unknown,
    mapping,
    require_known,
    text,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown, is_known, known
from kthena_components.systems.kthena.view import BY_GROUP, BY_ROLE, Role, Serving

_STRATEGY = "spec.rolloutStrategy"
_CONFIGURATION = f"{_STRATEGY}.rollingUpdateConfiguration"
_MOST = 100
"""Maximum percentage of a budget or a partition."""
GROUP_RECREATE, SURGE = "ServingGroupRecreate", "maxSurge"


def kthena_rolling_update(view: Serving) -> Iterator[Finding]:
    """A rollout by groups has a budget above 0, and a valid partition.

    Both are counts or percentages; maxUnavailable is rounded down, so 50% of 1 is rejected. A
    rollout by roles has neither (rejected since 1.0). Before 0.4 the partition is a number below
    replicas. Before 0.3 maxUnavailable may be 0 if maxSurge is not.

    Pass: maxUnavailable 1; 50% of 2 groups; partition 100%.
    Fail: maxUnavailable 0; 49% of 2 groups, which is 0; partition 101%.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go
    validateRollingUpdateConfiguration.
    """
    configuration = view.strategy.get("rollingUpdateConfiguration")
    if not isinstance(configuration, Mapping):
        return
    if view.since("1.0") and (gap := unknown_in(view.rollout)):
        yield not_checked(_CONFIGURATION, gap)
    elif view.since("1.0") and view.rollout == BY_ROLE:
        seen = f"is given, but with {BY_ROLE} each role has its own budget"
        remedy = "remove it, and write maxUnavailable on the roles"
        yield Finding(path=_CONFIGURATION, seen=seen, remedy=remedy)
        return
    budget = _budget(configuration.get("maxUnavailable"))
    path = f"{_CONFIGURATION}.maxUnavailable"
    yield from _format(path, budget)
    if view.since("0.3") or _is_zero(configuration.get(SURGE)):
        yield from _not_zero(path, budget, view.replicas, "group")
    yield from _partition(view, _budget(configuration.get("partition")))


def _partition(view: Serving, partition: MaybeInt | MaybeText | None) -> Iterator[Finding]:
    """Check partition: a number or percentage since 0.4, and before that below replicas."""
    path = f"{_CONFIGURATION}.partition"
    if view.since("0.4"):
        yield from _format(path, partition)
    elif isinstance(partition, int) and partition < 0:
        seen = f"is {partition}, but must be at least 0"
        yield Finding(path=path, seen=seen, remedy=or_more(0))
    elif partition is not None and not isinstance(partition, str):
        held, replicas = known(partition, path), known(view.replicas, path)
        if replicas is not None and held >= replicas:
            seen = f"is {held}, but Kthena {view.version} requires it to be below replicas, "
            remedy = either(at_most(max(replicas - 1, 0)), remove())
            yield Finding(path=path, seen=f"{seen}{replicas}", remedy=remedy)


def kthena_role_budget(view: Serving) -> Iterator[Finding]:
    """A role's maxUnavailable needs RoleRollingUpdate, is above 0, and is at most its replicas.

    It is a count or a percentage. Percentages round down. The field exists since 1.0.

    Pass: type RoleRollingUpdate, maxUnavailable 2 of 2 replicas.
    Fail: maxUnavailable 3 of 2 replicas; 0; any with type ServingGroupRollingUpdate.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go
    validateMaxUnavailableForRoles.
    """
    for role in view.roles if view.since("1.0") else ():
        stated = role.fields.get("maxUnavailable")
        if stated is None:
            continue
        path, budget = f"{role.path}.maxUnavailable", _budget(stated)
        yield from _of_rollout(path, stated, view)
        yield from _format(path, budget)
        yield from _not_zero(path, budget, role.replicas, "replica")
        yield from _within(path, budget, role)


@part_of_rule
def _of_rollout(path: str, stated: object, view: Serving) -> Iterator[Finding]:
    require_known(path, stated, view.rollout)
    if view.rollout == BY_GROUP:
        seen = f"is given, but {_STRATEGY}.type is {BY_GROUP}, and that has one budget for all"
        by_role = write(BY_ROLE, f"write type: {BY_ROLE}", at=f"{_STRATEGY}.type")
        yield Finding(path=path, seen=seen, remedy=either(by_role, remove()))


@part_of_rule
def _within(path: str, budget: MaybeInt | MaybeText | None, role: Role) -> Iterator[Finding]:
    if not isinstance(budget, int):
        return
    replicas = known(role.replicas, path)
    if replicas is not None and budget > replicas >= 0:
        seen = f"is {display(budget)}, but the role has {count_of(role.replicas, 'replica')}"
        remedy = f"write at most {role.replicas}" if role.replicas else remove()
        yield Finding(path=path, seen=seen, remedy=remedy)


def kthena_max_surge(view: Serving) -> Iterator[Finding]:
    """No maxSurge is set: no version of Kthena surges.

    A rollout stops old pods before it starts new ones. Before 0.3 the API server stores maxSurge
    and the controller ignores it; since then the CRD has no such field, and server-side apply and
    kubectl reject it.

    Pass: no maxSurge.
    Fail: maxSurge 1.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1/model_serving_types.go
    RollingUpdateConfiguration.
    """
    rolling = mapping(view.strategy.get("rollingUpdateConfiguration"))
    places = {"spec": view.spec, _STRATEGY: view.strategy, _CONFIGURATION: rolling}
    places |= {"spec.template": view.template} | {role.path: role.fields for role in view.roles}
    for place, fields in places.items():
        if SURGE not in fields:
            continue
        surge, stored = fields[SURGE], place == _CONFIGURATION and not view.since("0.3")
        path, zero = join_path(place, SURGE), _is_zero(surge)
        if surge is None or (stored and zero):
            continue
        gap = unknown_in(surge)
        if gap and stored:
            yield not_checked(path, gap)
            continue
        lost = (
            f"Kthena {view.version} ignores it"
            if stored
            else "its CRD has no such field, which server-side apply and kubectl reject"
        )
        yield Finding(
            path=path,
            seen=f"is {'set' if gap else display(surge)}, but Kthena has no surge; {lost}",
            remedy=remove("remove it; a rollout takes groups down first, maxUnavailable at a time"),
        )


def kthena_recovery_and_rollout(view: Serving) -> Iterator[Finding]:
    """Recovery by whole groups excludes a rollout by roles (rejected since 0.4).

    Each updated role would recreate its whole group. Defaults: RoleRecreate,
    ServingGroupRollingUpdate.

    Pass: recoveryPolicy RoleRecreate with type RoleRollingUpdate.
    Fail: recoveryPolicy ServingGroupRecreate with type RoleRollingUpdate.
    Level: mandatory.
    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go
    validateRecoveryPolicyAndRolloutStrategy.
    """
    recovery, path = text(view.spec.get("recoveryPolicy")), f"{_STRATEGY}.type"
    gap = first_unknown(recovery, view.rollout)
    clash = (unknown_in(recovery) or recovery == GROUP_RECREATE) and (
        unknown_in(view.rollout) or view.rollout == BY_ROLE
    )
    if not clash or not view.since("0.4"):
        return
    require_known(path, gap)
    yield Finding(
        path=path,
        seen=f"is {BY_ROLE} while recoveryPolicy is {GROUP_RECREATE}, and each updated role would "
        "recreate its whole group",
        remedy=either(
            write(BY_GROUP, f"write {BY_GROUP}"),
            write("RoleRecreate", "recoveryPolicy: RoleRecreate", at="spec.recoveryPolicy"),
        ),
    )


def _budget(value: object) -> MaybeInt | MaybeText | None:
    """Read a count or a string."""
    return text(value) if isinstance(value, str) else count(value)


@part_of_rule
def _format(path: str, budget: MaybeInt | MaybeText | None) -> Iterator[Finding]:
    if known(budget, path) is not None and _share(budget, 1) is None:
        seen = f"is {display(budget)}, but must be a count of at least 0 or a percentage "
        remedy = "write, for example, 1 or 25%"
        yield Finding(path=path, seen=f"{seen}from 0% to 100%", remedy=remedy)


@part_of_rule
def _not_zero(
    path: str, budget: MaybeInt | MaybeText | None, of: MaybeInt | None, what: str
) -> Iterator[Finding]:
    """Refuse a budget that is 0, or a percentage that rounds down to 0."""
    if is_known(budget) and known(_share(budget, of), path) == 0:
        share = f", which of {count_of(of, what)} rounds down to 0"
        rounds = share if isinstance(budget, str) else ""
        shown = display(budget).strip("'")
        seen = f"is {shown}{rounds}, so nothing could ever be updated"
        yield Finding(path=path, seen=seen, remedy=at_least(1))


def _share(budget: MaybeInt | MaybeText | None, of: MaybeInt | None) -> MaybeInt | None:
    """Convert a count or a percentage to a count, rounded down; None if it is neither."""
    if isinstance(budget, Unknown):
        return budget
    if not is_budget(budget, _MOST):
        return None
    if isinstance(budget, int):
        return budget
    return scaled(budget, of, up=False) if isinstance(of, int) else of


def _is_zero(surge: object) -> bool:
    return surge is None or _share(_budget(surge), 100) == 0
