"""What StatefulSets and a PodGroup do not support: an error, never dropped."""

import re
from collections.abc import Iterator

from kthena_components.core import naming
from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.findings import Finding, advise, join_path
from kthena_components.core.plan.limits import UPDATE, Limit, above_zero
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.spec.enums import RecoveryPolicy
from kthena_components.systems.kubernetes.backends import ENGINES_WITH_METRICS, WITHOUT_VOLCANO

LIMITS = (
    WITHOUT_VOLCANO,
    ENGINES_WITH_METRICS,
    Limit(
        "recovery_policy",
        "is {}, but a StatefulSet recreates only the pod that failed",
        takes="only `None`",
        when=lambda one: one.value is not RecoveryPolicy.NONE,
    ),
    Limit(
        "autoscaled",
        "is true, but each group has StatefulSets of its own, which nothing scales together",
    ),
    Limit(
        "restart_grace_period_seconds",
        "is {}, but a StatefulSet recreates a pod at once",
        when=above_zero,
    ),
    Limit(
        f"{UPDATE}.max_surge",
        "is {}, but a StatefulSet is replaced under its own name, so nothing can surge",
        remedy="remove it; max_unavailable is the only budget",
    ),
    Limit(
        "roles[].max_unavailable",
        "is {}, but the engines of a group wait for one gang, so they cannot be replaced a few at "
        "a time",
    ),
)


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report Services of one name, and a gang of no pods."""
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
