"""Rules about names and network topologies in all kinds of Volcano, for what it silently drops.

A topology is a field of a PodGroup, its subgroups, a Volcano Job, its tasks, or a ModelServing.
Volcano's admission checks little: its scheduler drops what it cannot use, or waits forever.
"""

from collections.abc import Callable, Iterator

from kthena_components.core.findings import Finding, each_of
from kthena_components.core.objects.object import POD_GROUP, Object
from kthena_components.core.remedies import write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import object_name, require_known
from kthena_components.core.values.unknown import known
from kthena_components.systems.volcano.view import HasBody, Topology, name_problem, topologies


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


def volcano_name(found: Object) -> Iterator[Finding]:
    """The names of PodGroups, Queues, Jobs and the objects they refer to are DNS-1123 subdomains.

    Pass: queue research.
    Fail: queue Research_1.
    Level: mandatory.
    Source: Volcano v1.14 config/crd/volcano/bases, scheduling.volcano.sh_podgroups.yaml.
    """
    what = f"the name of a {found.kind}"
    name, path = object_name(found.metadata), "metadata.name"
    if name == "":
        seen = f"is missing, and {what} is not optional"
        yield Finding(path=path, seen=seen, remedy="add metadata.name")
    else:
        yield from name_problem(name, path, what)
    queue = found.spec.get("queue")
    if queue != "" or found.group_kind == POD_GROUP:
        yield from name_problem(queue, "spec.queue", "the name of a Queue")
