"""Checks network topologies for what Volcano silently drops, or can never satisfy.

A topology is a field of a PodGroup, its subgroups, a Volcano Job, its tasks, or a ModelServing. The
docstring of each rule is its documentation.
"""

from collections.abc import Callable, Iterator

from kthena_components.core.findings import Finding, each_of
from kthena_components.core.remedies import write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import require_known
from kthena_components.core.values.unknown import known
from kthena_components.systems.volcano.view import HasBody, Topology, topologies


def _topologies(found: HasBody) -> Iterator[tuple[Topology]]:
    yield from ((topology,) for topology in topologies(found.body))


@each_of(_topologies)
def topology_cap_stated(topology: Topology) -> Iterator[Finding]:
    """A hard topology states how far apart its pods may be; otherwise Volcano drops it.

    Up to 1.13 the CRD's default was highestTierAllowed 1. Since 1.14 there is none, and the pods
    are then placed anywhere.

    Pass: mode hard, highestTierAllowed 1.
    Fail: mode hard and nothing else; an empty networkTopology.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/api/job_info.go IsHardTopologyMode; run on 1.14.1: placed
    over both racks.
    """
    stated = topology.fields.get("highestTierAllowed") is not None
    if stated or topology.tier_name is not None:
        return
    if known(topology.mode, topology.path) == "hard":
        yield Finding(
            path=topology.path,
            seen="the mode is hard but no tier is given, so Volcano drops the whole constraint",
            remedy=write(
                1,
                "add highestTierAllowed, for example 1 for the closest tier",
                at=f"{topology.path}.highestTierAllowed",
            ),
        )


@each_of(_topologies)
def topology_one_cap(topology: Topology) -> Iterator[Finding]:
    """The highest tier is given by number or by name, never both.

    Pass: highestTierName rack.
    Fail: highestTierAllowed 1 and highestTierName rack.
    Level: mandatory. Volcano's webhook rejects both; the CRD does not.
    Source: Volcano v1.14 pkg/webhooks/admission/podgroups/validate/validate_podgroup.go,
    on HighestTierAllowed and HighestTierName.
    """
    tier, name = topology.tier, topology.tier_name
    if tier is None or name is None:
        return
    require_known(topology.path, tier, name)
    yield Finding(
        path=topology.path,
        seen=f"both highestTierAllowed ({tier}) and highestTierName ({display(name)}) are "
        "given, and Volcano's webhook rejects that",
        remedy="keep one of the two",
    )


@each_of(_topologies)
def topology_cap_reachable(topology: Topology) -> Iterator[Finding]:
    """A hard cap is at least the closest tier, 1; there is no HyperNode below it.

    Pass: highestTierAllowed 1.
    Fail: highestTierAllowed 0.
    Level: mandatory.
    Source: run on Volcano 1.14.1: a group with cap 0 is never placed.
    """
    path = f"{topology.path}.highestTierAllowed"
    if topology.mode == "soft" or known(topology.tier, path) != 0:
        return
    if known(topology.mode, path) == "hard":
        yield Finding(
            path=path,
            seen="is 0, below the closest tier, so Volcano never places these pods",
            remedy=write(1, "write 1 for the closest tier"),
        )


TOPOLOGY_RULES: tuple[Callable[[HasBody], Iterator[Finding]], ...] = (
    topology_cap_stated,
    topology_one_cap,
    topology_cap_reachable,
)
"""Rules for every topology of an object."""
