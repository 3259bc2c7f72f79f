"""LeaderWorkerSet and DisaggregatedSet: what is read, and what the checks say of it."""

from typing import Any

import pytest

from kthena_components.checker.manifest import read_manifest
from kthena_components.core.values.read import group_kind
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems import INDEX
from tests.support.peers import (
    GPU,
    LATE,
    LWS_SGLANG,
    LWS_VLLM,
    Manifest,
    changed,
    disaggregated,
    ds_role,
    refused,
    said_by,
    told,
)

TEMPLATE = "spec/leaderWorkerTemplate"
AT = "spec.leaderWorkerTemplate"
PAIR = disaggregated(ds_role("prefill"), ds_role("decode"))
LEADER_GPUS = f"{TEMPLATE}/leaderTemplate/spec/containers/0/resources"
FOUR = {"limits": {GPU: 4}}
DECODE_POD = "spec/roles/1/spec/leaderWorkerTemplate/workerTemplate/spec"
PLACED = {
    f"{TEMPLATE}/{field}/spec/schedulerName": "volcano"
    for field in ("leaderTemplate", "workerTemplate")
}


def engine_of(manifest: Manifest, changes: dict[str, Any] | None = None) -> Any:
    facts = read_manifest(changed(manifest, changes))
    assert facts is not None
    return facts.engines[0]


@pytest.mark.parametrize("manifest", [LWS_VLLM, LWS_SGLANG, PAIR])
def test_a_guide_has_no_mandatory_finding(manifest: Manifest) -> None:
    assert refused(manifest) == []


def test_the_size_counts_the_leader() -> None:
    engine = engine_of(LWS_VLLM)
    assert (engine.pods, engine.replicas) == (2, 2)
    assert (engine.entry.gpus, engine.worker.gpus) == (8, 8)


def test_the_size_is_1_when_it_is_left_out() -> None:
    engine = engine_of(changed(LWS_SGLANG, {TEMPLATE: {}}))
    assert (engine.pods, engine.replicas, engine.worker) == (1, 1, None)


def test_the_group_size_is_known_to_the_command() -> None:
    assert engine_of(LWS_VLLM).entry.command.ray_cluster_size == 2
    assert engine_of(LWS_SGLANG, {f"{TEMPLATE}/size": 4}).entry.command.nnodes == 4


def test_a_leader_without_a_template_is_like_its_workers() -> None:
    engine = engine_of(LWS_SGLANG)
    assert engine.entry.command == engine.worker.command
    assert engine.entry.command_path == f"{AT}.workerTemplate.spec.containers[0].command"


@pytest.mark.parametrize(
    ("manifest", "changes", "said"),
    [
        (
            LWS_VLLM,
            {f"{TEMPLATE}/size": 3},
            (
                f"{AT}.leaderTemplate.spec.containers[0].command: engine 'vllm' starts tensor 8 × "
                "pipeline 2 = 16 ranks, but its 3 pods × 8 GPUs hold 24. Set pipeline to 3, or "
                "give the engine 2 pods. [world-size-equals-gpus]"
            ),
        ),
        (
            LWS_SGLANG,
            {f"{TEMPLATE}/size": 4},
            (
                f"{AT}.workerTemplate.spec.containers[0].command: engine 'sglang' starts tensor 16 "
                "× pipeline 1 = 16 ranks, but its 4 pods × 8 GPUs hold 32. Set pipeline to 2, or "
                "set tensor to 32, or give the engine 2 pods, or give each pod 4 GPUs. "
                "[world-size-equals-gpus]"
            ),
        ),
        (
            PAIR,
            {f"{DECODE_POD}/containers/0/resources": FOUR},
            (
                "spec.roles[1].spec.leaderWorkerTemplate.workerTemplate.spec.containers[0]"
                ".command: "
                "engine 'decode' starts tensor 8 × pipeline 1 = 8 ranks, but its pod has 4 GPUs. "
                "Set tensor to 4, or give each pod 8 GPUs. "
                "[world-size-equals-gpus]"
            ),
        ),
    ],
)
def test_one_wrong_number_is_found(manifest: Manifest, changes: dict[str, Any], said: str) -> None:
    assert refused(manifest, changes) == [said]


def test_a_leader_with_fewer_gpus_is_found() -> None:
    assert [line.rpartition(" ")[2] for line in refused(LWS_VLLM, {LEADER_GPUS: FOUR})] == [
        "[world-size-equals-gpus]",
        "[leader-worker-same-gpus]",
    ]


def test_a_late_size_leaves_the_pods_open() -> None:
    assert engine_of(LWS_VLLM, {f"{TEMPLATE}/size": LATE}).pods == Unknown("size is not known yet")
    assert refused(LWS_VLLM, {f"{TEMPLATE}/size": LATE}) == []


@pytest.mark.parametrize("path", ["spec", TEMPLATE, f"{TEMPLATE}/workerTemplate"])
def test_late_templates_are_told_of(path: str) -> None:
    assert refused(LWS_SGLANG, {path: LATE}) == []
    (line,) = said_by("world-size-equals-gpus", LWS_SGLANG, {path: LATE})
    assert line.endswith(
        "was not checked, because the containers are not known yet. [world-size-equals-gpus]"
    )


def test_requests_matter_only_to_a_gang() -> None:
    assert said_by("gpu-requests-equal-limits", LWS_VLLM) == []
    assert len(said_by("gpu-requests-equal-limits", LWS_VLLM, PLACED)) == 2


def test_volcano_is_taken_for_the_gang() -> None:
    assert len(said_by("gang-covers-engine", LWS_VLLM)) == 1
    assert said_by("gang-covers-engine", LWS_VLLM, PLACED) == []
    queue = {"metadata/annotations": {"scheduling.volcano.sh/queue-name": "research"}}
    assert said_by("gang-covers-engine", LWS_VLLM, queue) == []


def test_each_role_is_an_engine() -> None:
    facts = read_manifest(PAIR)
    assert facts is not None
    assert [(engine.name, engine.pods) for engine in facts.engines] == [
        ("prefill", 1),
        ("decode", 1),
    ]


def test_a_role_may_hold_its_fields_itself() -> None:
    roles = [{"name": role["name"], **role["spec"]} for role in PAIR["spec"]["roles"]]
    flat = changed(PAIR, {"spec/roles": roles})
    assert told(PAIR) == []
    assert {line.rpartition(" ")[2] for line in told(flat)} == {"[crd-schema]"}
    assert said_by("lws-shape", flat, {"spec/roles/0/replicas": 0}) == [
        (
            "spec.roles[0].replicas: is 0, but spec.roles[1].replicas is 1. Write 1 or more, or 0 "
            "in every role. [lws-shape]"
        )
    ]


@pytest.mark.parametrize("version", ["v1", "v1alpha1", "v2"])
def test_any_version_is_read(version: str) -> None:
    assert (
        read_manifest({**LWS_VLLM, "apiVersion": f"leaderworkerset.x-k8s.io/{version}"}) is not None
    )


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        ("apps/v1", "LeaderWorkerSet"),
        ("leaderworkerset.x-k8s.io/v1", "DisaggregatedSet"),
        ("leaderworkerset.x-k8s.io/v1", "Other"),
        ("v1", "Pod"),
    ],
)
def test_other_kinds_are_left_alone(api: str, kind: str) -> None:
    assert INDEX.get(group_kind({**LWS_VLLM, "apiVersion": api, "kind": kind})) != "lws"


def test_paths_begin_where_the_manifest_stands() -> None:
    facts = read_manifest(LWS_VLLM, "items[3]")
    assert facts is not None
    assert facts.engines[0].entry.gpus_path.startswith("items[3].spec.leaderWorkerTemplate.leader")
