"""Reports what StatefulSets and a PodGroup do not support: an error, never dropped."""

import re
from collections.abc import Iterator

from kthena_components.core import naming
from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.findings import Finding, advise, join_path
from kthena_components.core.plan.model import ServingPlan
from kthena_components.core.remedies import elsewhere, remove
from kthena_components.core.spec.enums import RecoveryPolicy


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report what only a controller supports, instead of dropping it."""
    if plan.recovery in {RecoveryPolicy.ROLE_RECREATE, RecoveryPolicy.SERVING_GROUP_RECREATE}:
        yield _needs_controller(
            "recovery_policy",
            f"is {plan.recovery}, but a StatefulSet recreates only the pod that failed",
        )
    if plan.autoscaled:
        yield _needs_controller(
            "autoscaled",
            "is true, but each group has StatefulSets of its own, which nothing scales together",
        )
    if plan.restart_grace_seconds:
        yield _needs_controller(
            "restart_grace_period_seconds",
            f"is {plan.restart_grace_seconds}, but a StatefulSet recreates a pod at once",
        )
    if plan.rollout.stated and plan.rollout.stated.max_surge is not None:
        yield Finding(
            path="rollout_strategy.rolling_update_configuration.max_surge",
            seen=f"is {plan.rollout.stated.max_surge}, but a StatefulSet is replaced under its own "
            "name, so nothing can surge",
            remedy="remove it; max_unavailable is the only budget",
            rule="backend-loss",
        )
    for role in plan.roles:
        if role.max_unavailable is not None:
            yield _needs_controller(
                join_path(role.path, "max_unavailable"),
                f"is {role.max_unavailable}, but the engines of a group wait for one gang, "
                "so they cannot be replaced a few at a time",
            )
    yield from _same_services(plan)
    yield from _gang(plan)


def _gang(plan: ServingPlan) -> Iterator[Finding]:
    """Report what `check` reports about the PodGroups, where the user can change it."""
    if not plan.gang or plan.pod_group is not None or not plan.pods:
        return
    if plan.min_member == 0:
        yield advise(
            "gang_policy.min_role_replicas",
            "adds up to 0 pods, so nothing starts together: each pod starts as soon as it fits",
            "write the number of engines of a role that must start together, or remove the field",
            "gang-minimum-stated",
        )


def _needs_controller(path: str, seen: str) -> Finding:
    return Finding(
        path=path,
        seen=seen,
        remedy=elsewhere(remove()),
        rule="backend-loss",
    )


def _same_services(plan: ServingPlan) -> Iterator[Finding]:
    """Reject role names whose Services would collide: `a-1` and the second replica of `a`."""
    replicas = {role.name: role.replicas for role in plan.roles}
    for role in plan.roles:
        stem, _, number = role.name.rpartition("-")
        ordinal = int(number) if re.fullmatch("0|[1-9][0-9]*", number) else replicas.get(stem, 0)
        if role.replicas and ordinal < replicas.get(stem, 0):
            yield Finding(
                path=f"{role.path}.name",
                seen=f"is '{role.name}', which is also the name of a replica of role '{stem}', "
                "so two Services would have one name",
                remedy="rename one of the two roles",
                rule="name-unique",
            )


def names(plan: ServingPlan) -> Iterator[NameFacts]:
    """Return the longest name of each kind that this plan generates."""
    last = max(plan.group_numbers(), default=0)
    for role in plan.roles:
        at = join_path(role.path, "name")
        serving, instance = plan.name, max(role.replicas - 1, 0)
        entry = naming.instance_name(serving, last, role.name, instance)
        made = [("StatefulSet", entry, naming.STATEFUL_SET_NAME)]
        if role.worker_replicas:
            workers = naming.worker_set_name(serving, last, role.name, instance)
            made = [("StatefulSet", workers, naming.STATEFUL_SET_NAME)]
            made.append(("worker pod", f"{workers}-{role.worker_replicas}", naming.DNS_LABEL))
        made.append(("entry pod", f"{entry}-0", naming.DNS_LABEL))
        for what, name, limit in made:
            yield NameFacts(path=at, name=name, limit=limit, what=what)
