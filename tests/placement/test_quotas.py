"""A quota of a namespace keeps pods from being created, and the change that helps is named."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kthena_components.placement.answer import answer, ask
from kthena_components.placement.changes import helps
from kthena_components.placement.from_objects import cluster_of
from kthena_components.placement.inventory import parse_inventory
from kthena_components.placement.inventory_write import write_inventory
from kthena_components.placement.model import Cause, PodGroup, PodSet, Quota, Scope, Verdict
from kthena_components.placement.node_loss_and_growth import grow
from kthena_components.placement.place import place
from kthena_components.placement.quotas_and_limit_ranges import Quotas, charged
from tests.support.for_each import for_each
from tests.support.placement import GPU, group, pods, racks, verdicts

KEY = f"requests.{GPU}"


def quota(hard: float, used: float = 0, key: str = KEY, namespace: str = "serving") -> Quota:
    return Quota(namespace=namespace, name=f"team-{key}", hard={key: Decimal(hard)},
                 used={key: Decimal(used)})  # fmt: skip


def alone(count: int) -> PodGroup:
    return group(pods(count), minimum=0)


def scoped(name: str, operator: str = "Exists", *values: str) -> Quota:
    """A quota without room, for some pods only."""
    return replace(
        quota(0), name="team", scopes=(Scope(name=name, operator=operator, values=values),)
    )


def stated(**spec: Any) -> PodGroup:
    return group(replace(pods(2), spec=spec))


HIGH = stated(priorityClassName="high")
DEADLINE = stated(activeDeadlineSeconds=60)
ELSEWHERE = stated(affinity={"podAffinity": {"preferred": [{"namespaces": ["x"]}]}})
FREE = group(replace(pods(2), requests={GPU: Decimal(8)}))
SCOPED: dict[str, tuple[Quota, PodGroup, bool]] = {
    "a class that is named": (scoped("PriorityClass", "In", "high", "x"), HIGH, True),
    "a class that is not named": (scoped("PriorityClass", "In", "x"), HIGH, False),
    "a class outside of a list": (scoped("PriorityClass", "NotIn", "x"), HIGH, True),
    "any class": (scoped("PriorityClass"), HIGH, True),
    "any class, and there is none": (scoped("PriorityClass"), group(pods(2)), False),
    "no class": (scoped("PriorityClass", "DoesNotExist"), group(pods(2)), True),
    "pods that end": (scoped("Terminating"), DEADLINE, True),
    "pods that end, and these do not": (scoped("Terminating"), HIGH, False),
    "pods that do not end": (scoped("NotTerminating"), HIGH, True),
    "best effort": (scoped("BestEffort"), FREE, True),
    "best effort, and these request CPU": (scoped("BestEffort"), HIGH, False),
    "not best effort": (scoped("NotBestEffort"), HIGH, True),
    "other namespaces": (scoped("CrossNamespacePodAffinity"), ELSEWHERE, True),
    "other namespaces, and none is named": (scoped("CrossNamespacePodAffinity"), HIGH, False),
    "a scope that is not known": (scoped("New"), HIGH, False),
    "two scopes, of which one holds": (
        replace(scoped("PriorityClass"), scopes=(
            *scoped("PriorityClass").scopes, *scoped("Terminating").scopes)), HIGH, False),
}  # fmt: skip


@for_each("limit, one, counted", SCOPED.values(), ids=SCOPED)
def test_a_scope(limit: Quota, one: PodGroup, counted: bool) -> None:
    there = racks(4, quotas=(limit,))
    assert parse_inventory(write_inventory(there)).quotas == (limit,)
    rules = [{"scopeName": one.name, "operator": one.operator, "values": list(one.values)}
             for one in limit.scopes]  # fmt: skip
    read, _ = cluster_of([{
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": "serving"},
        "spec": {"hard": {KEY: "0"}, "scopeSelector": {"matchExpressions": rules}},
        "status": {"used": {KEY: "0"}},
    }])  # fmt: skip
    assert read.quotas == (limit,)
    (outcome,) = place(there, [one])
    assert outcome.verdict is (Verdict.NEVER if counted else Verdict.FITS)
    for obstacle in outcome.obstacles:
        assert obstacle.cause is Cause.QUOTA
        assert helps(there, one, obstacle.changes[0])


ASKED: dict[str, tuple[Quota, PodGroup, Verdict, str]] = {
    "enough": (quota(16), group(pods(2)), Verdict.FITS, ""),
    "too little, ever": (quota(8), group(pods(2)), Verdict.NEVER, "by 8 to 16"),
    "too little now": (quota(16, 8), group(pods(2)), Verdict.WAITS, "by 8 to 24"),
    "CPU": (quota(1, key="requests.cpu"), group(pods(2)), Verdict.NEVER, "by 1 to 2"),
    "CPU without a prefix": (quota(1, key="cpu"), group(pods(2)), Verdict.NEVER, "by 1 to 2"),
    "the number of pods": (quota(3, 2, "pods"), group(pods(2)), Verdict.WAITS, "by 1 to 4"),
    "objects": (quota(1, key="count/pods"), group(pods(2)), Verdict.NEVER, "by 1 to 2"),
    "what no pod requests": (quota(0, 9, "requests.example.com/fpga"), group(pods(2)),
                             Verdict.FITS, ""),
    "another namespace": (quota(0, namespace="other"), group(pods(2)), Verdict.FITS, ""),
    "pods that start alone": (quota(16), alone(4), Verdict.PARTLY, "by 16 to 32"),
    "pods of another scheduler": (
        quota(8), replace(alone(2), scheduler="default-scheduler"), Verdict.PARTLY, "by 8 to 16"),
    "the minimum alone": (quota(8), group(pods(3), minimum=2), Verdict.NEVER, "by 8 to 16"),
}  # fmt: skip


@for_each("limit, one, verdict, raised", ASKED.values(), ids=ASKED)
def test_a_quota(limit: Quota, one: PodGroup, verdict: Verdict, raised: str) -> None:
    where = racks(4, quotas=(limit,))
    (outcome,) = place(where, [one])
    assert outcome.verdict is verdict
    if not raised:
        assert outcome.obstacles == ()
        return
    (obstacle,) = outcome.obstacles
    (change,) = obstacle.changes
    (key,) = limit.hard
    assert obstacle.cause is Cause.QUOTA
    used = limit.used[key] if one.minimum else limit.hard[key]
    assert f"of {limit.hard[key]} {key}, {used} are used" in obstacle.text
    assert change.text == f"In the quota {limit.name}, raise {key} {raised}"
    assert outcome.exists is False


def test_pods_without_a_quota_still_start_if_the_gang_has_its_minimum() -> None:
    """The placement names each pod in its place: the last one of the first set has none."""
    one = group(pods(2, 4, "big"), pods(1, 0, "small"), minimum=2)
    limit = quota(4)
    (outcome,) = place(racks(1, quotas=(limit,)), [one])
    assert outcome.verdict is Verdict.FITS
    assert outcome.note == "a quota keeps 1 pod from being created"
    assert outcome.placement is not None
    assert outcome.placement.nodes == ("r0-n0", "", "r0-n0")


def test_pods_that_wait_count_and_the_first_group_comes_first() -> None:
    """The first group finds no node, but its pods exist and use the quota of the second one."""
    large = group(pods(2), name="a", topology=None, queue="default")
    where = racks(1, quotas=(quota(24),))
    first, second = place(where, [large, group(pods(2), name="b")])
    assert [each.cause for each in first.obstacles] == [Cause.GPUS]
    assert [each.cause for each in second.obstacles] == [Cause.QUOTA]
    assert "of 24 requests.nvidia.com/gpu, 16 are used and 16 are asked for" in (
        second.obstacles[0].text
    )


def test_two_quotas_that_are_short_are_both_named() -> None:
    limits = (quota(8), quota(1, key="pods"))
    (outcome,) = place(racks(4, quotas=limits), [group(pods(2))])
    assert [each.cause for each in outcome.obstacles] == [Cause.QUOTA, Cause.QUOTA]
    assert [each.changes for each in outcome.obstacles] == [(), ()]


def test_copies_stay_within_a_quota() -> None:
    assert grow(racks(8, quotas=(quota(40, 8),)), [group(pods(2))]) == [2]


def _deployment(name: str, replicas: int) -> dict[str, Any]:
    container = {"name": "c", "resources": {"limits": {GPU: "8"}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    return {"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "serving"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": template}}  # fmt: skip


def test_a_deployment_is_judged_without_its_own_waiting_pods() -> None:
    """Its old pods wait and use the quota; they are gone when the new ones are created."""
    body = _deployment("chat", 2)
    (old,) = ask(racks(4), [body]).groups
    where = racks(4, quotas=(quota(16, 16),), waiting=(old,))
    assert [one.verdict for one in answer(ask(where, [body]))] == [Verdict.FITS]
    other = [one.verdict for one in answer(ask(where, [_deployment("other", 2)]))]
    assert other == [Verdict.WAITS]


SETS = st.lists(st.builds(pods, st.integers(1, 4), st.sampled_from([0, 1, 4, 8])), min_size=1,
                max_size=3)  # fmt: skip


@settings(max_examples=100, suppress_health_check=list(HealthCheck), deadline=None)
@given(SETS, st.integers(0, 40), st.integers(0, 6))
def test_as_many_pods_are_created_as_a_quota_allows(
    sets: list[PodSet], gpus: int, number: int
) -> None:
    """The same as creating one pod after another."""
    limits = [quota(gpus), quota(number, key="pods")]
    left = {key: amount for limit in limits for key, amount in limit.hard.items()}
    expected = []
    for each in sets:
        made = 0
        for _ in range(each.count):
            asked = charged(each.requests)
            if all(asked.get(key, 0) <= amount for key, amount in left.items()):
                left = {key: amount - asked.get(key, 0) for key, amount in left.items()}
                made += 1
        expected.append(made)
    assert Quotas(limits).create(group(*sets)) == expected


@settings(max_examples=30, suppress_health_check=list(HealthCheck), deadline=None)
@given(SETS, st.integers(0, 40))
@example([pods(4, 1), pods(4, 1), pods(1, 8)], 16)  # enough GPUs, but the small pods are in the way
def test_a_named_change_of_a_quota_helps_and_a_smaller_one_does_not(
    sets: list[PodSet], hard: int
) -> None:
    one, where = group(*sets), racks(8, quotas=(quota(hard),))
    (outcome,) = place(where, [one])
    short = [each for each in outcome.obstacles if each.cause is Cause.QUOTA]
    for change in (change for each in short for change in each.changes):
        assert helps(where, one, change)
        assert change.quota is not None
        less = {key: amount - 1 for key, amount in change.quota.hard.items()}
        smaller = replace(change, quota=replace(change.quota, hard=less))
        assert not helps(where, one, smaller)


def test_a_larger_quota_never_turns_fits_into_waits() -> None:
    found = [verdicts(racks(4, quotas=(quota(hard),)), group(pods(2))) for hard in range(0, 40, 4)]
    fitting = [Verdict.FITS in each for each in found]
    assert fitting == sorted(fitting)
    assert set(fitting) == {False, True}
