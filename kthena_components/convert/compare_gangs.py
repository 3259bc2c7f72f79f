"""Compares how many pods there are, and how many are scheduled together, in a conversion. Pure."""

from collections.abc import Iterator

from kthena_components import systems
from kthena_components.compiler.compile import Compiled
from kthena_components.convert.lost_fields import Loss
from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import count_of, join_path
from kthena_components.systems.contract import EMPTY_ROLES, IDLE_WORKERS

Placed = tuple[int, str]
"""How many pods are scheduled together, and which, in words."""


def placed(facts: ServingFacts, most: int) -> Placed:
    """Return how many pods of a serving are scheduled together.

    Args:
        facts: Its facts. They have no gang for a backend that makes none.
        most: The pods of its largest engine.
    """
    gang = facts.gang
    if gang is not None and isinstance(gang.min_member, int):
        return gang.min_member, f"{count_of(gang.min_member, 'pod')} of a group together"
    if facts.gang_expected is True:
        return most, "each engine by itself"
    return 1, "each pod by itself"


def placed_by_plan(compiled: Compiled) -> Placed:
    """Return how many pods of a plan are scheduled together."""
    emitter = systems.find_emitter(compiled.plan.backend)
    planned = emitter.planned(compiled.plan) if emitter is not None else []
    most = max(role.pods for role in compiled.plan.roles)
    return placed(planned[0], most) if planned else (0, "")


def lost_gang(before: Placed, after: Compiled) -> Iterator[Loss]:
    """Report that fewer pods are scheduled together than before."""
    (pods, said), (fewer, now) = before, placed_by_plan(after)
    if 0 < fewer < pods:
        yield Loss(name="gang", seen=f"the pods are scheduled {now}, and were {said}")


def gained_gang(before: Placed, after: Compiled) -> Iterator[str]:
    """Yield a note if more pods are scheduled together than before."""
    (pods, said), (more, now) = before, placed_by_plan(after)
    if 0 < pods < more:
        yield f"the pods are scheduled {now}, and were {said}"


def lost_pods(after: Compiled) -> Iterator[Loss]:
    """Report templates that the result does not have, because no pod has them."""
    plan, emitter = after.plan, systems.find_emitter(after.plan.backend)
    drops = () if emitter is None else emitter.drops
    for role in plan.roles:
        if EMPTY_ROLES in drops and not plan.groups * role.replicas:
            seen = f"has no pods, and {plan.backend} writes nothing for it"
            yield Loss(name=role.path, seen=seen)
        elif IDLE_WORKERS in drops and role.worker is not None and not role.worker_replicas:
            seen = f"is of no pod, and {plan.backend} does not write it"
            yield Loss(name=join_path(role.path, "worker_template"), seen=seen)
