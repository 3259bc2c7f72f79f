"""Compares how many pods are scheduled together before and after a conversion. Pure."""

from collections.abc import Iterator

from kthena_components import systems
from kthena_components.compiler.compile import Compiled
from kthena_components.compiler.losses import Loss
from kthena_components.core.findings import count_of


def _placed(compiled: Compiled) -> tuple[int, str]:
    """Return how many pods are scheduled together, and in words what they are.

    The facts of a plan show it: they have no gang for a backend that makes none.
    """
    emitter = systems.find_emitter(compiled.plan.backend)
    planned = emitter.planned(compiled.plan) if emitter is not None else []
    if not planned:
        return 0, ""
    gang = planned[0].gang
    if gang is not None and isinstance(gang.min_member, int):
        return gang.min_member, f"{count_of(gang.min_member, 'pod')} of a group together"
    if planned[0].gang_expected is True:
        return max(role.pods for role in compiled.plan.roles), "each engine by itself"
    return 1, "each pod by itself"


def lost_gang(before: Compiled, after: Compiled) -> Iterator[Loss]:
    """Report that fewer pods are scheduled together than before."""
    (pods, said), (fewer, now) = _placed(before), _placed(after)
    if fewer < pods:
        yield Loss(name="gang", seen=f"the pods are scheduled {now}, and were {said}")


def gained_gang(before: Compiled, after: Compiled) -> Iterator[str]:
    """Say that more pods are scheduled together than before."""
    (pods, said), (more, now) = _placed(before), _placed(after)
    if 0 < pods < more:
        yield f"the pods are scheduled {now}, and were {said}"
