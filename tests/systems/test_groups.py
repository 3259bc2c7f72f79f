"""RoleBasedGroup, Grove and Dynamo: what is read, and what the checks say of one wrong number."""

from typing import Any

import pytest

from kthena_components.core.findings import Level
from kthena_components.core.values.unknown import Unknown
from kthena_components.judge.manifest import judge_manifest
from kthena_components.systems.dynamo import facts as dynamo
from kthena_components.systems.grove import facts as grove
from kthena_components.systems.rbg import facts as rbg
from tests.support import groups
from tests.support.groups import DYNAMO, DYNAMO_BETA, GROVE, RBG
from tests.support.peers import GONE, LATE, Manifest, changed, gpus, refused, said_by, told
from tests.toughness.corpus import places, put

READERS = {
    "RoleBasedGroup": rbg.read,
    "RoleBasedGroupSet": rbg.read,
    "PodCliqueSet": grove.read,
    "DynamoGraphDeployment": dynamo.read,
    "DynamoComponentDeployment": dynamo.read,
}
WORLD = "world-size-equals-gpus"
LWP = "spec/roles/1/leaderWorkerPattern"
PATCHED = "spec/roles/0/leaderWorkerPattern/templateRef/patch"
MAIN = "spec/services/decode/extraPodSpec/mainContainer"


def engines(manifest: Manifest, changes: dict[str, Any] | None = None) -> list[tuple[object, ...]]:
    """Give the name, the pods, the replicas and the GPUs a pod of each engine."""
    facts = READERS[manifest["kind"]](changed(manifest, changes), "")
    assert facts is not None
    return [
        (engine.name, engine.pods, engine.replicas, engine.entry.gpus) for engine in facts.engines
    ]


@pytest.mark.parametrize("manifest", groups.GOOD)
def test_a_guide_has_no_mandatory_finding(manifest: Manifest) -> None:
    assert refused(manifest) == []


@pytest.mark.parametrize(
    ("manifest", "found"),
    [
        (RBG, [("backend", 2, 1, 8)]),
        (groups.RBG_SHARED, [("backend", 2, 1, 8)]),
        (groups.RBG_OLD, [("backend", 2, 1, 8)]),
        (groups.RBG_COMPONENTS, [("engine-head", 2, 1, 8)]),
        (groups.RBG_SET, [("backend", 2, 1, 8)]),
        (GROVE, [("engine", 4, 2, 8)]),
        (groups.GROVE_RICH, [("pair", 2, 1, 8), ("alone", 1, 2, 8)]),
        (DYNAMO, [("decode", 2, 1, 8), ("prefill", 4, 1, 8)]),
        (DYNAMO_BETA, [("decode", 2, 1, 8)]),
        (groups.DYNAMO_ONE, [("decode", 1, 1, 4)]),
    ],
)
def test_the_engines_of_a_guide_are_read(
    manifest: Manifest, found: list[tuple[object, ...]]
) -> None:
    assert engines(manifest) == found


SIXTEEN = "starts tensor 16 × pipeline 1 = 16 ranks, but its "


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
        (
            DYNAMO,
            {"spec/services/decode/multinode/nodeCount": 3},
            "starts tensor 8 × pipeline 2 = 16 ranks, but its 3 pods × 8 GPUs hold 24",
        ),
        (
            DYNAMO,
            {"spec/services/decode/multinode": GONE},
            "starts tensor 8 × pipeline 2 = 16 ranks, but its pod has 8 GPUs",
        ),
        (
            DYNAMO,
            {"spec/services/prefill/resources/limits/gpu": "4"},
            "starts tensor 4 × pipeline 1 × data 8 = 32 ranks, but its 4 pods × 4 GPUs hold 16",
        ),
        (
            DYNAMO_BETA,
            {"spec/components/1/multinode/nodeCount": 4},
            SIXTEEN + "4 pods × 8 GPUs hold 32",
        ),
        (
            groups.DYNAMO_ONE,
            {"spec/resources/limits/gpu": "2"},
            "starts tensor 4 × pipeline 1 = 4 ranks, but its pod has 2 GPUs",
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


def test_a_workload_that_may_ignore_the_size_is_not_judged() -> None:
    pods = engines(groups.RBG_OLD, {"spec/roles/0/workload": GONE})[0][1]
    assert pods == Unknown("its workload is of a kind that may ignore leaderWorkerSet")
    assert refused(groups.RBG_OLD, {"spec/roles/0/workload": GONE}) == []


LEADER = "spec/template/cliques/1/spec"


def test_a_second_leader_leaves_open_which_pods_belong_together() -> None:
    changes = {f"{LEADER}/replicas": 2, "spec/template/cliques/2/spec/replicas": 2}
    (engine,) = engines(GROVE, changes)
    assert engine[1] == Unknown("nothing says which of the pods make one engine")
    assert refused(GROVE, changes) == []


def test_pods_with_gpus_that_start_something_else_leave_the_engine_open() -> None:
    changes = {"spec/template/cliques/2/spec/podSpec/containers/0/command": ["serve-it"]}
    found = engines(GROVE, changes)
    assert {engine[1] for engine in found} == {
        Unknown("nothing says which of the pods make one engine")
    }
    assert refused(GROVE, changes) == []


def test_two_engines_in_one_scaling_group_are_two_engines() -> None:
    alone = ["sh", "-c", "vllm serve m -tp 8"]
    path = "spec/template/cliques/{}/spec/podSpec/containers/0/command"
    changes = {path.format(1): alone, path.format(2): alone}
    assert engines(GROVE, changes) == [("engine-leader", 1, 2, 8), ("engine-worker", 1, 6, 8)]
    assert refused(GROVE, changes) == []


def test_a_group_size_that_is_late_is_not_guessed() -> None:
    (engine,) = engines(GROVE, {"spec/template/cliques/2/spec/replicas": LATE})
    assert engine[1] == Unknown("replicas is not known yet")


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (RBG, "spec"),
        (RBG, "spec/roles"),
        (groups.RBG_SET, "spec/groupTemplate"),
        (GROVE, "spec/template/cliques"),
        (DYNAMO, "spec"),
        (DYNAMO, "spec/services"),
        (DYNAMO, "spec/services/decode"),
        (DYNAMO_BETA, "spec/components"),
    ],
)
def test_late_parts_are_told_of(manifest: Manifest, path: str) -> None:
    assert refused(manifest, {path: LATE}) == []
    assert said_by(WORLD, manifest, {path: LATE}) != []


@pytest.mark.parametrize("manifest", groups.GOOD)
def test_paths_begin_where_the_manifest_stands(manifest: Manifest) -> None:
    facts = READERS[manifest["kind"]](manifest, "items[3]")
    assert facts is not None
    for engine in facts.engines:
        for pod in filter(None, (engine.entry, engine.worker)):
            assert pod.gpus_path.startswith("items[3].spec.")
            assert pod.command_path.startswith("items[3].spec.")
            assert all(device.path.startswith("items[3].spec.") for device in pod.devices)


@pytest.mark.parametrize("manifest", groups.GOOD)
def test_any_version_of_the_group_and_no_other_group(manifest: Manifest) -> None:
    group = manifest["apiVersion"].partition("/")[0]
    assert told({**manifest, "apiVersion": f"{group}/v9"}) == told(manifest)
    assert told({**manifest, "apiVersion": "example.com/v1"}) == []


@pytest.mark.parametrize("manifest", groups.GOOD)
def test_a_value_that_is_not_known_refuses_nothing(manifest: Manifest) -> None:
    for place in places(manifest):
        if place[0] not in {"apiVersion", "kind"}:
            assert [
                str(finding)
                for finding in judge_manifest(put(manifest, place, LATE))
                if finding.level is Level.MANDATORY
            ] == []
