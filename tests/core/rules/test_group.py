"""Whether the pods of an engine come and go together."""

from collections.abc import Mapping
from typing import Any

import pytest

from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, GangFacts, ServingFacts
from kthena_components.core.findings import Level, run_rule
from kthena_components.core.rules.gang_covers_engine_nodes_whole import gang_covers_engine
from kthena_components.core.rules.nnodes_equals_group_size_variables import (
    nnodes_equals_group,
    ray_cluster_size_equals_group,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown
from tests.support.specs import gpu_template
from tests.support.strategies import LATE, SCRIPT

NOT_SAID = Unknown("nobody says")


def engine(size: str = "2", pods: MaybeInt = 2, replicas: MaybeInt = 1) -> EngineFacts:
    """Give an engine whose Ray leader waits for so many pods."""
    template = gpu_template(f"{SCRIPT} leader --ray_cluster_size={size}; vllm serve m -tp 8")
    entry = read_pod(template, "entry", {"GROUP_SIZE": "2"})
    return EngineFacts(path="e", name="e", pods=pods, replicas=replicas, entry=entry, worker=None)


def serving(
    *engines: EngineFacts,
    member: MaybeInt | None = None,
    minima: Mapping[str, MaybeInt] | None = None,
    expected: bool = False,
) -> ServingFacts:
    """Give some engines, in a gang when a number of members is given."""
    gang = None if member is None else GangFacts(path="g", min_member=member, minima=minima or {})
    return ServingFacts(path="", name="s", engines=engines, gang=gang, gang_expected=expected)


@pytest.mark.parametrize(
    "facts",
    [
        EngineFacts(
            path="e",
            name="e",
            pods=2,
            replicas=1,
            entry=read_pod(gpu_template("vllm serve m"), "entry"),
            worker=None,
        ),
        engine("3", NOT_SAID),
    ],
    ids=["no-ray", "pods-not-known"],
)
def test_without_both_numbers_there_is_nothing_to_compare(facts: EngineFacts) -> None:
    assert run_rule(ray_cluster_size_equals_group, serving(facts)) == []


@pytest.mark.parametrize(
    ("replicas", "minima", "member"),
    [(1, {}, 2), (3, {}, 6), (3, {"e": 1}, 2), (3, {"e": 0}, 0)],
    ids=["one", "all", "minimum", "optional"],
)
def test_a_gang_of_whole_engines_is_right(
    replicas: int, minima: dict[str, MaybeInt], member: int
) -> None:
    facts = serving(engine(replicas=replicas), member=member, minima=minima)
    assert run_rule(gang_covers_engine, facts) == []


def test_a_gang_of_part_of_an_engine_is_refused() -> None:
    (finding,) = run_rule(gang_covers_engine, serving(engine(), engine(replicas=2), member=1))
    assert str(finding) == (
        "g: the gang needs 1 pod to start, but its engines have 6 that must start together. Write "
        "minMember 6. [gang-covers-engine]"
    )
    assert finding.level is Level.MANDATORY


UNKNOWN: dict[str, ServingFacts] = {
    "pods": serving(engine(pods=NOT_SAID), member=2),
    "replicas": serving(engine(replicas=NOT_SAID), member=2),
    "members": serving(engine(), member=NOT_SAID),
}


@pytest.mark.parametrize("facts", UNKNOWN.values(), ids=UNKNOWN)
def test_a_gang_that_cannot_be_counted_is_told(facts: ServingFacts) -> None:
    (finding,) = run_rule(gang_covers_engine, facts)
    assert finding.level is Level.UNKNOWN
    assert str(finding) == "g: was not checked, because nobody says. [gang-covers-engine]"


def test_pods_that_nobody_gathers_are_worth_a_look() -> None:
    (finding,) = run_rule(gang_covers_engine, serving(engine()))
    assert finding.level is Level.ADVISORY
    assert str(finding) == (
        "e: engine 'e' has 2 pods that must start together, and nothing schedules them as a gang. "
        "Let Volcano schedule the pods: write schedulerName: volcano. [gang-covers-engine]"
    )


@pytest.mark.parametrize(
    "facts",
    [serving(engine(), expected=True), serving(engine(pods=1)), serving(engine(pods=NOT_SAID))],
    ids=["gathered-elsewhere", "one-pod", "pods-not-known"],
)
def test_nothing_is_said_where_a_gang_is_not_missed(facts: ServingFacts) -> None:
    assert run_rule(gang_covers_engine, facts) == []


def test_every_finding_carries_its_rule() -> None:
    found: list[Any] = [
        *run_rule(gang_covers_engine, serving(engine())),
        *run_rule(gang_covers_engine, UNKNOWN["pods"]),
    ]
    assert {finding.rule for finding in found} == {"gang-covers-engine"}


def native(nodes: str, pods: MaybeInt = 2) -> ServingFacts:
    """Give an engine that is started with so many nodes."""
    command = f"vllm serve m -tp 8 -pp 2 --nnodes {nodes} --node-rank 0"
    entry = read_pod(gpu_template(command), "entry", {"GROUP_SIZE": "2"})
    return serving(EngineFacts(path="e", name="e", pods=pods, replicas=1, entry=entry, worker=None))


def test_nodes_that_are_not_known_are_told_and_unknown_pods_are_not() -> None:
    (finding,) = run_rule(nnodes_equals_group, native(LATE))
    assert finding.level is Level.UNKNOWN
    assert run_rule(nnodes_equals_group, native("4", NOT_SAID)) == []
    assert list(run_rule(nnodes_equals_group, serving(engine()))) == []
