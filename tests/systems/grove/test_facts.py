"""PodCliqueSet: what is read, and what the checks say of one wrong number."""

from typing import Any

import pytest

from kthena_components.checker.manifest import read_manifest
from kthena_components.core.values.unknown import Unknown
from tests.support import groups
from tests.support.groups import GROVE
from tests.support.peers import LATE, Manifest, changed, gpus, refused, said_by

WORLD = "world-size-equals-gpus"
LEADER = "spec/template/cliques/1/spec"


def engines(manifest: Manifest, changes: dict[str, Any] | None = None) -> list[tuple[object, ...]]:
    """Give the name, the pods, the replicas and the GPUs a pod of each engine."""
    facts = read_manifest(changed(manifest, changes))
    assert facts is not None
    return [
        (engine.name, engine.pods, engine.replicas, engine.entry.gpus) for engine in facts.engines
    ]


@pytest.mark.parametrize(
    ("manifest", "found"),
    [(GROVE, [("engine", 4, 2, 8)]), (groups.GROVE_RICH, [("pair", 2, 1, 8), ("alone", 1, 2, 8)])],
)
def test_the_engines_of_a_guide_are_read(
    manifest: Manifest, found: list[tuple[object, ...]]
) -> None:
    assert engines(manifest) == found


@pytest.mark.parametrize(
    ("manifest", "changes", "said"),
    [
        (
            GROVE,
            {"spec/template/cliques/2/spec/replicas": 2},
            "starts tensor 8 × pipeline 4 = 32 ranks, but its 3 pods × 8 GPUs hold 24",
        ),
        (
            groups.GROVE_RICH,
            {"spec/template/cliques/0/spec/podSpec/containers/0/resources": gpus(4)},
            "starts tensor 8 × pipeline 1 = 8 ranks, but its pod has 4 GPUs",
        ),
    ],
)
def test_one_wrong_number_is_found(manifest: Manifest, changes: dict[str, Any], said: str) -> None:
    found = [line for line in refused(manifest, changes) if WORLD in line]
    assert len(found) == 1
    assert said in found[0]


def test_a_second_leader_leaves_open_which_pods_belong_together() -> None:
    changes = {f"{LEADER}/replicas": 2, "spec/template/cliques/2/spec/replicas": 2}
    (engine,) = engines(GROVE, changes)
    assert engine[1] == Unknown("it is not stated which of the pods form one engine")
    assert [line for line in refused(GROVE, changes) if WORLD in line] == []


def test_pods_with_gpus_that_start_something_else_leave_the_engine_open() -> None:
    changes = {"spec/template/cliques/2/spec/podSpec/containers/0/command": ["serve-it"]}
    found = engines(GROVE, changes)
    assert {engine[1] for engine in found} == {
        Unknown("it is not stated which of the pods form one engine")
    }
    assert [line for line in refused(GROVE, changes) if WORLD in line] == []


def test_two_engines_in_one_scaling_group_are_two_engines() -> None:
    alone = ["sh", "-c", "vllm serve m -tp 8"]
    path = "spec/template/cliques/{}/spec/podSpec/containers/0/command"
    changes = {path.format(1): alone, path.format(2): alone}
    assert engines(GROVE, changes) == [("engine-leader", 1, 2, 8), ("engine-worker", 1, 6, 8)]
    assert [line for line in refused(GROVE, changes) if WORLD in line] == []


def test_a_group_size_that_is_late_is_not_guessed() -> None:
    (engine,) = engines(GROVE, {"spec/template/cliques/2/spec/replicas": LATE})
    assert engine[1] == Unknown("replicas is not known yet")


def test_late_cliques_are_told_of() -> None:
    changes = {"spec/template/cliques": LATE}
    assert [line for line in refused(GROVE, changes) if WORLD in line] == []
    assert said_by(WORLD, GROVE, changes) != []
