"""Pods that wait in groups that run take nodes before or after the groups that are asked about."""

from dataclasses import replace

from kthena_components.placement.model import Cluster, Queue, Running, Scheduler, Verdict
from kthena_components.placement.node_loss_and_growth import grow
from kthena_components.placement.place import place
from tests.support.for_each import for_each
from tests.support.placement import HARD, SANDBOX, group, per_instance, pods, racks, role

FITS, WAITS, NEVER = Verdict.FITS, Verdict.WAITS, Verdict.NEVER


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


USUAL = Scheduler()
"""Volcano's usual plugins, of which `drf` decides about the order of groups, too."""
SCHEDULERS = {
    "gang only: the older group, as minMember is 0 in the other": (SANDBOX, [FITS, WAITS]),
    "with drf: the one that holds less": (USUAL, [FITS, FITS]),
}


@for_each(("scheduler", "expected"), SCHEDULERS.values(), ids=SCHEDULERS)
def test_a_group_without_minmember_counts_as_ready_in_the_order(
    scheduler: Scheduler, expected: list[Verdict]
) -> None:
    """Seen on the scheduler: JobOrderFn of the plugin gang does not look at minSubGroups."""
    elastic = group(pods(3), name="elastic", minimum=1)
    engines = (per_instance("p", 1, 2, None),)
    other = group(role("p", "0", 1), role("p", "1", 1), name="new", minimum=0, subgroups=engines)
    found = place(racks(3, scheduler=scheduler), [elastic, other])
    assert [one.verdict for one in found] == expected


def test_minresources_are_promised_queue_by_queue() -> None:
    """Seen on the scheduler: the older group came too late for 1.2 times the cluster."""
    queues = (Queue(name="a"), Queue(name="b"))
    older = group(pods(2), name="older", queue="b", whole=True)
    never = group(pods(1), name="never", queue="a", whole=True, topology=HARD[0])
    small = group(pods(1, 4), name="small", queue="b", whole=True)
    where = racks(2, scheduler=USUAL, queues=queues)
    found = place(where, [older, never, small])
    assert [one.verdict for one in found] == [WAITS, NEVER, FITS]


def test_a_group_without_a_minimum_promises_its_minresources_in_one_session_only() -> None:
    """Its phase is Completed after it, and the plugins count those of Inqueue and Running."""
    queues = (Queue(name="a"), Queue(name="b"))
    older = group(pods(2), name="older", queue="b", whole=True)
    never = group(pods(1), name="never", queue="a", minimum=0, whole=True, topology=HARD[0])
    undivided = replace(USUAL, plugins=USUAL.plugins - {"proportion"})
    found = place(racks(2, scheduler=undivided, queues=queues), [older, never])
    assert [one.verdict for one in found] == [FITS, NEVER]


def test_a_queue_of_a_higher_priority_comes_first() -> None:
    queues = (Queue(name="a"), Queue(name="b", priority=5))
    asked = [group(pods(1), name=name, queue=name) for name in ("a", "b")]
    plugins = SANDBOX.plugins - {"proportion"} | {"capacity"}
    where = racks(1, queues=queues, scheduler=Scheduler(plugins=plugins))
    assert [one.verdict for one in place(where, asked)] == [WAITS, FITS]


def test_with_drf_a_group_that_holds_nothing_comes_before_one_that_lacks_its_minimum() -> None:
    rival = group(pods(2), name="old", minimum=2)
    running = (Running(group=rival, nodes=("r0-n0", "")),)
    for scheduler, verdict in ((SANDBOX, WAITS), (USUAL, FITS)):
        where = racks(2, used={"r0-n0": 8}, running=running, scheduler=scheduler)
        assert place(where, [group(pods(1))])[0].verdict is verdict
