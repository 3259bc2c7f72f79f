"""The solver's answer is that of trying everything, and that of counting equal pods."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.fit.constraints import broken
from kthena_components.placement import exact_solver
from kthena_components.placement.exact_solver import installed, solve
from kthena_components.placement.model import Cluster, PodGroup, Verdict
from kthena_components.placement.place import exists, place
from kthena_components.placement.volcano.scheduler import Scheduler
from tests.support.placement import HARD, cluster, group, node, per_instance, pods, racks, role

SOME = settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
with_solver = pytest.mark.skipif(not installed(), reason="the extra `exact` is not installed")
CAPS = st.none() | st.sampled_from([HARD[1], HARD[2]])
SIZES = st.lists(st.integers(1, 2), min_size=1, max_size=2)
USED = st.lists(st.sampled_from([0.0, 0.0, 4.0]), min_size=4, max_size=4)


def _racks(sizes: list[int], used: list[float]) -> Cluster:
    names = [f"r{rack}-n{n}" for rack, size in enumerate(sizes) for n in range(size)]
    return racks(*sizes, used=dict(zip(names, used, strict=False)))


@st.composite
def _unequal(draw: st.DrawFn) -> PodGroup:
    """Draw a group of one to three pods that differ, or one or two engines of two pods."""
    gpus = st.sampled_from([2, 4, 6, 8])
    topology = draw(CAPS)
    if draw(st.booleans()):
        sets = [pods(1, draw(gpus), f"p{n}") for n in range(draw(st.integers(1, 3)))]
        return group(*sets, minimum=draw(st.integers(1, len(sets))), topology=topology)
    engines = draw(st.integers(1, 2))
    parts = [role("p", str(n), 1, draw(gpus)) for n in range(engines) for _ in range(2)]
    policy = per_instance("p", 2, engines, draw(CAPS))
    return group(*parts, topology=topology, subgroups=(policy,))


@st.composite
def _equal(draw: st.DrawFn) -> PodGroup:
    sets = pods(draw(st.integers(1, 6)), draw(st.sampled_from([2, 4, 8])))
    return group(sets, minimum=draw(st.integers(1, sets.count)), topology=draw(CAPS))


def _tried(where: Cluster, one: PodGroup) -> bool:
    """Try every assignment."""
    names = ["", *(each.name for each in where.nodes)]
    return any(
        sum(map(bool, nodes)) >= one.minimum
        and not any(broken(where, [one], {one.name: list(nodes)}))
        for nodes in itertools.product(names, repeat=one.size)
    )


def _solved(where: Cluster, one: PodGroup) -> bool | None:
    scheduler = Scheduler(where, [one])
    return solve(scheduler, scheduler.jobs[0])


@with_solver
@SOME
@given(SIZES, USED, _unequal())
def test_it_finds_what_trying_everything_finds(
    sizes: list[int], used: list[float], one: PodGroup
) -> None:
    where = _racks(sizes, used)
    assert _solved(where, one) is _tried(where, one)


@with_solver
@SOME
@given(SIZES, USED, _equal())
def test_it_agrees_with_the_count_of_equal_pods(
    sizes: list[int], used: list[float], one: PodGroup
) -> None:
    where = _racks(sizes, used)
    assert _solved(where, one) is exists(Scheduler(where, [one]), one)


@with_solver
def test_a_place_that_the_scheduler_misses_is_told() -> None:
    """Of the balanced scores, the larger node has the better one for the small pod."""
    where = cluster([node("a", 4), node("b", 8)])
    (outcome,) = place(where, [group(pods(1, 4), pods(1, 8))])
    assert (outcome.verdict, outcome.exists) == (Verdict.NEVER, True)
    assert outcome.note == "a place exists, but Volcano v1.14.1 leaves it waiting"


@with_solver
def test_no_place_is_told() -> None:
    (outcome,) = place(racks(1, 1), [group(pods(1, 8), pods(1, 6), topology=HARD[1])])
    assert (outcome.verdict, outcome.exists) == (Verdict.NEVER, False)


@with_solver
def test_a_limit_that_is_too_low_is_not_known() -> None:
    """Twelve pods of three GPUs do not fit six nodes of four: the solver needs steps to see it."""
    scheduler = Scheduler(racks(6), [group(pods(6, 8), pods(12, 1))])
    assert solve(scheduler, scheduler.jobs[0], steps=0.0) is None


def test_without_the_solver_it_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_solver, "installed", lambda: False)
    (outcome,) = place(racks(1, 1), [group(pods(1, 8), pods(1, 6), topology=HARD[1])])
    assert (outcome.verdict, outcome.exists, outcome.note) == (Verdict.NEVER, None, "")
