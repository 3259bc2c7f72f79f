"""The few numbers that checks need, read from pod templates and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kthena_components.core import naming
from kthena_components.core.container_facts import ContainerFacts, as_list, as_map
from kthena_components.core.known import MaybeBool, MaybeInt
from kthena_components.core.plan import RolePlan, ServingPlan
from kthena_components.core.pod_facts import (
    DeviceFacts,
    PodFacts,
    as_count,
    read_pod,
    read_pods,
)

__all__ = [
    "ContainerFacts",
    "DeviceFacts",
    "EngineFacts",
    "GangFacts",
    "NameFacts",
    "PodFacts",
    "ServingFacts",
    "as_count",
    "as_list",
    "as_map",
    "facts_from_plan",
    "read_pod",
    "read_pods",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """One engine: an entry pod and its workers, which run one model together."""

    path: str = field(compare=False)
    name: str
    """Role name, or the workload's own name."""
    pods: MaybeInt
    """Pods of the engine, the entry included."""
    replicas: MaybeInt
    """Engines like this one in a group."""
    entry: PodFacts
    worker: PodFacts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GangFacts:
    """What must be placeable together."""

    path: str = field(compare=False)
    min_member: MaybeInt
    minima: Mapping[str, MaybeInt]
    """Engines of each role that the gang waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFacts:
    """A name that will be generated, and how long it may be."""

    path: str = field(compare=False)
    name: str
    limit: int
    what: str
    """What carries the name, in words: `StatefulSet`."""
    made: bool = True
    """Whether it is made of the serving's and the role's name, and not written by the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFacts:
    """What the checks judge."""

    path: str = field(compare=False)
    name: str
    engines: tuple[EngineFacts, ...]
    gang: GangFacts | None = None
    gang_expected: MaybeBool = False
    """The pods ask Volcano to place them."""
    names: tuple[NameFacts, ...] = ()
    copies: MaybeInt = field(default=1, compare=False)
    """How many times all of this is there; only the sum over a whole stack asks."""


def facts_from_plan(plan: ServingPlan) -> ServingFacts:
    """Read the facts of a plan in the user's own coordinates."""
    engines = tuple(_engine_of(role) for role in plan.roles)
    gang = GangFacts(
        path="gang_policy",
        min_member=plan.min_member,
        minima={role.name: role.gang_replicas for role in plan.roles},
    )
    return ServingFacts(
        path="",
        name=plan.name,
        engines=engines,
        gang=gang if plan.gang and plan.pod_group is None else None,
        gang_expected=plan.gang,
    )


def _engine_of(role: RolePlan) -> EngineFacts:
    env = {naming.GROUP_SIZE: str(role.pods)}
    prefix = f"{role.path}." if role.path else ""
    overrides = {}
    if role.engine:
        overrides = {
            "gpus_path": f"{prefix}resources.gpus_per_pod",
            "command_path": f"{prefix}engine.parallelism",
            "role_path": role.path,
        }
    worker = role.worker if role.worker_replicas else None
    return EngineFacts(
        path=role.path,
        name=role.name,
        pods=role.pods,
        replicas=role.replicas,
        entry=read_pod(role.entry, f"{prefix}entry_template", env, **overrides),
        worker=None
        if worker is None
        else read_pod(worker, f"{prefix}worker_template", env, **overrides),
    )
