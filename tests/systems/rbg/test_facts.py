"""RoleBasedGroup: what is read, and what the checks say of one wrong number."""

from typing import Any

import pytest

from kthena_components.checker.manifest import read_manifest
from kthena_components.core.values.unknown import Unknown
from tests.support import groups
from tests.support.groups import RBG
from tests.support.peers import GONE, LATE, Manifest, changed, gpus, refused, said_by

WORLD = "world-size-equals-gpus"
LWP = "spec/roles/1/leaderWorkerPattern"
PATCHED = "spec/roles/0/leaderWorkerPattern/templateRef/patch"
SIXTEEN = "starts tensor 16 × pipeline 1 = 16 ranks, but its "


def engines(manifest: Manifest, changes: dict[str, Any] | None = None) -> list[tuple[object, ...]]:
    """Give the name, the pods, the replicas and the GPUs a pod of each engine."""
    facts = read_manifest(changed(manifest, changes))
    assert facts is not None
    return [
        (engine.name, engine.pods, engine.replicas, engine.entry.gpus) for engine in facts.engines
    ]


@pytest.mark.parametrize(
    ("manifest", "found"),
    [
        (RBG, [("backend", 2, 1, 8)]),
        (groups.RBG_SHARED, [("backend", 2, 1, 8)]),
        (groups.RBG_OLD, [("backend", 2, 1, 8)]),
        (groups.RBG_COMPONENTS, [("engine-head", 2, 1, 8)]),
        (groups.RBG_SET, [("backend", 2, 1, 8)]),
    ],
)
def test_the_engines_of_a_guide_are_read(
    manifest: Manifest, found: list[tuple[object, ...]]
) -> None:
    assert engines(manifest) == found


@pytest.mark.parametrize(
    ("manifest", "changes", "said"),
    [
        (RBG, {f"{LWP}/size": 3}, SIXTEEN + "3 pods × 8 GPUs hold 24"),
        (
            groups.RBG_SHARED,
            {f"{PATCHED}/spec/containers/0/resources": gpus("4")},
            SIXTEEN + "2 pods × 4 GPUs hold 8",
        ),
        (groups.RBG_OLD, {"spec/roles/0/leaderWorkerSet/size": 4}, SIXTEEN + "4 pods × 8 GPUs"),
        (
            groups.RBG_COMPONENTS,
            {"spec/roles/0/customComponentsPattern/components/2/size": 2},
            "starts tensor 8 × pipeline 2 = 16 ranks, but its 3 pods × 8 GPUs hold 24",
        ),
        (
            groups.RBG_SET,
            {"spec/groupTemplate/spec/roles/1/leaderWorkerPattern/size": 1},
            SIXTEEN + "pod has 8 GPUs",
        ),
    ],
)
def test_one_wrong_number_is_found(manifest: Manifest, changes: dict[str, Any], said: str) -> None:
    found = [line for line in refused(manifest, changes) if WORLD in line]
    assert len(found) == 1
    assert said in found[0]


@pytest.mark.parametrize("key", ["$patch", "$setElementOrder/containers"])
def test_a_patch_with_a_directive_is_not_guessed(key: str) -> None:
    changes = {f"{PATCHED}/spec": {key: "replace"}}
    (line,) = said_by(WORLD, groups.RBG_SHARED, changes)
    assert "was not checked, because the containers are not known yet" in line


def test_a_patch_may_take_a_field_away_and_add_a_container() -> None:
    containers = [
        {"name": "sglang", "command": groups.SGLANG, "resources": gpus("8"), "image": None},
        {"name": "helper", "image": "h:1"},
    ]
    changes = {f"{PATCHED}/spec/containers": containers}
    assert engines(groups.RBG_SHARED, changes) == [("backend", 2, 1, 8)]


def test_a_shared_template_that_is_not_there_is_not_empty() -> None:
    changes: dict[str, Any] = {"spec/roleTemplates": []}
    assert engines(groups.RBG_SHARED, changes)[0][3] == Unknown("the containers are not known yet")


def test_findings_stand_where_the_patch_states_the_command() -> None:
    (line,) = refused(groups.RBG_SHARED, {"spec/roles/0/leaderWorkerPattern/size": 3})
    at = "spec.roles[0].leaderWorkerPattern.templateRef.patch.spec.containers[0].command: "
    assert line.startswith(at)


def test_a_workload_that_may_ignore_the_size_is_not_checked() -> None:
    pods = engines(groups.RBG_OLD, {"spec/roles/0/workload": GONE})[0][1]
    assert pods == Unknown("its workload is of a kind that may ignore leaderWorkerSet")
    assert refused(groups.RBG_OLD, {"spec/roles/0/workload": GONE}) == []


@pytest.mark.parametrize("size", [0, -1, "two"])
def test_a_size_that_is_no_count_leaves_the_engine_open(size: object) -> None:
    (engine,) = engines(RBG, {f"{LWP}/size": size})
    assert engine[1] == Unknown("the size of the instance is not a count of 1 or more")


@pytest.mark.parametrize(
    ("manifest", "path"),
    [(RBG, "spec"), (RBG, "spec/roles"), (groups.RBG_SET, "spec/groupTemplate")],
)
def test_late_parts_are_told_of(manifest: Manifest, path: str) -> None:
    assert refused(manifest, {path: LATE}) == []
    assert said_by(WORLD, manifest, {path: LATE}) != []
