"""Pods that wait in groups that run take nodes before or after the groups that are asked about."""

from kthena_components.placement.faults import grow
from kthena_components.placement.model import Cluster, Running, Verdict
from kthena_components.placement.place import place
from tests.support.for_each import for_each
from tests.support.placement import group, pods, racks

FITS, WAITS = Verdict.FITS, Verdict.WAITS


def with_rival(minimum: int, priority: int, *nodes: str) -> Cluster:
    """Two nodes, of which a running group has the first; its other pods wait."""
    rival = group(pods(len(nodes)), name="old", minimum=minimum, priority=priority)
    used = {name: 8 for name in nodes if name}
    return racks(2, used=used, running=(Running(group=rival, nodes=nodes),))


CASES: dict[str, tuple[Cluster, Verdict]] = {
    "a pod above the minimum comes after a new group": (with_rival(1, 0, "r0-n0", ""), FITS),
    "a pod below the minimum comes before it": (with_rival(2, 0, "r0-n0", ""), WAITS),
    "so does one of a higher priority": (with_rival(1, 5, "r0-n0", ""), WAITS),
    "and not one of a lower priority": (with_rival(2, -5, "r0-n0", ""), FITS),
    "a group that runs whole wants nothing": (with_rival(1, 5, "r0-n0"), FITS),
    "one that finds no room takes nothing": (with_rival(3, 5, "r0-n0", "", ""), FITS),
}


@for_each(("where", "verdict"), CASES.values(), ids=CASES)
def test_waiting_pods_of_running_groups_are_rivals(where: Cluster, verdict: Verdict) -> None:
    (found,) = place(where, [group(pods(1))])
    assert found.verdict is verdict
    assert grow(where, [group(pods(1))]) == [int(verdict is FITS)]


def test_a_running_pod_counts_once() -> None:
    """Its node is in the use of the cluster already, and one GPU is left on it."""
    rival = group(pods(2, 7), name="old", minimum=1, priority=5)
    where = racks(2, used={"r0-n0": 7}, running=(Running(group=rival, nodes=("r0-n0", "")),))
    small = [group(pods(1, 1), name=f"small-{at}") for at in range(3)]
    assert [one.verdict for one in place(where, small)] == [FITS, FITS, WAITS]
