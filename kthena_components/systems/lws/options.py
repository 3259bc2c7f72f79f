"""`backend_options` of the lws backend: what only LeaderWorkerSets have.

Source: kubernetes-sigs/lws v0.9.0 api/leaderworkerset/v1, pkg/webhooks and pkg/controllers.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kthena_components.core.findings import Finding, count_of, nearest
from kthena_components.core.objects.object import VOLCANO
from kthena_components.core.plan.limits import wrong_option
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.spec.enums import RecoveryPolicy
from kthena_components.core.spec.fields import LabelKey, Positive, ServiceName, Spec

STARTUP_POLICY = "backend_options.startup_policy"
_WORD = Field(strict=False)


class StartupPolicy(StrEnum):
    """When the workers of an engine are created."""

    LEADER_CREATED = "LeaderCreated"
    LEADER_READY = "LeaderReady"


class SubgroupType(StrEnum):
    """Whether the leader belongs to the first subgroup."""

    LEADER_WORKER = "LeaderWorker"
    LEADER_EXCLUDED = "LeaderExcluded"


class SubdomainPolicy(StrEnum):
    """One headless Service for all engines, or one each."""

    SHARED = "Shared"
    UNIQUE = "UniquePerReplica"


class SubgroupSpec(Spec):
    """Parts of an engine: `size` pods each."""

    size: Positive
    type: Annotated[SubgroupType, _WORD] = SubgroupType.LEADER_WORKER
    exclusive_topology: LabelKey | None = None
    """Node label: each subgroup gets a value of it for itself. Default: none."""


class LwsOptions(Spec):
    """Fields of LeaderWorkerSets that no other backend has."""

    exclusive_topology: LabelKey | None = None
    """Node label: each engine gets a value of it for itself. Default: none."""
    subgroups: dict[str, SubgroupSpec] = Field(default_factory=dict)
    """By role. Default: none. They cannot be added, resized or removed later."""
    startup_policy: Annotated[StartupPolicy, _WORD] = StartupPolicy.LEADER_CREATED
    recreate_after_start: bool = False
    """Whether an engine is recreated only after all its pods have started once."""
    subdomain_policy: Annotated[SubdomainPolicy, _WORD] = SubdomainPolicy.SHARED
    set_name: ServiceName | None = None
    """Name of a LeaderWorkerSet that exists already. Default: those of serving and role."""


def options_of(plan: ServingPlan) -> LwsOptions:
    """Return the options of a plan."""
    return plan.options if isinstance(plan.options, LwsOptions) else LwsOptions()


def refuse_options(plan: ServingPlan) -> Iterator[Finding]:
    """Report options that LWS rejects, and those with which no engine starts."""
    options = options_of(plan)
    yield from _refuse_unknown_roles(plan, options)
    for role in plan.roles:
        if role.name in options.subgroups:
            yield from _refuse_subgroup(role, options.subgroups[role.name])
    yield from _refuse_exclusive(plan, options)
    yield from _refuse_set_name(plan, options)
    if options.recreate_after_start and plan.recovery is RecoveryPolicy.NONE:
        yield wrong_option(
            "recreate_after_start",
            "is true, but with recovery_policy: None nothing is recreated",
            "remove one of them",
        )


def _refuse_set_name(plan: ServingPlan, options: LwsOptions) -> Iterator[Finding]:
    """Reject a name for several sets, and one whose headless Service would be the front Service."""
    if options.set_name is None:
        return
    if len(plan.roles) > 1:
        yield wrong_option(
            "set_name", "is given, but several roles are a DisaggregatedSet", remove()
        )
    elif plan.expose is not None and options.set_name == plan.name:
        yield wrong_option(
            "set_name",
            f"is '{plan.name}', like the serving, and LWS creates a Service of this name, as "
            "expose does",
            "give the serving another name, or remove expose",
        )


def _refuse_unknown_roles(plan: ServingPlan, options: LwsOptions) -> Iterator[Finding]:
    known = [role.name for role in plan.roles]
    for name in options.subgroups:
        if name not in known:
            close = nearest(name, known)
            yield wrong_option(
                f"subgroups.{name}",
                f"is not a role; the roles are {', '.join(known)}",
                write(close) if close else "write the name of a role",
            )


def _refuse_subgroup(role: RolePlan, subgroup: SubgroupSpec) -> Iterator[Finding]:
    """Check a size as the webhook does: validateUpdateSubGroupPolicy."""
    at, size, pods = f"subgroups.{role.name}.size", subgroup.size, role.pods
    fitting = _sizes(pods, subgroup.type)
    if size in fitting:
        return
    without = subgroup.type is SubgroupType.LEADER_EXCLUDED
    workers = count_of(pods - 1, "worker")
    counted = f"the {workers}" if without else f"the {count_of(pods, 'pod')}, or the {workers}"
    yield wrong_option(
        at,
        f"is {size}, but must divide {counted}, of an engine of role '{role.name}'",
        f"write {' or '.join(map(str, fitting))}" if fitting else "remove the subgroup",
    )


def _sizes(pods: int, kind: SubgroupType) -> list[int]:
    """Return the sizes of subgroups that LWS accepts for an engine."""
    counts = [pods - 1] if kind is SubgroupType.LEADER_EXCLUDED else [pods, pods - 1]
    return [size for size in range(1, pods + 1) if any(count % size == 0 for count in counts)]


def _refuse_exclusive(plan: ServingPlan, options: LwsOptions) -> Iterator[Finding]:
    """Reject a gang whose workers are created after its leader is scheduled: it never is.

    Source: pkg/controllers/pod_controller.go Reconcile; a gang's minMember is the whole engine.
    """
    ready = options.startup_policy is StartupPolicy.LEADER_READY
    together = [role for role in plan.roles if role.worker_replicas]
    if options.exclusive_topology and plan.scheduler == VOLCANO and together and not ready:
        yield wrong_option(
            "exclusive_topology",
            "is given, so LWS creates the workers of an engine after its leader is scheduled; "
            f"Volcano schedules the {count_of(together[0].pods, 'pod')} of role "
            f"'{together[0].name}' together, "
            "so none is ever scheduled",
            either("write scheduler_name: default-scheduler", remove()),
        )
