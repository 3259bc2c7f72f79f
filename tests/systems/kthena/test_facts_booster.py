"""A ModelBooster is read as the ModelServing that Kthena makes of it."""

from typing import Any

import pytest

from kthena_components.checker.manifest import read_manifest
from kthena_components.core.facts.serving import EngineFacts, gpu_demand
from kthena_components.core.findings import Level
from tests.rules.cases import documents, judge
from tests.support.peers import GPU, LATE
from tests.support.specs import REMOVED, changed

WORKER = "spec.backend.workers[0]"
BODY = documents("booster")[0]
Changes = dict[str, Any]


def engines(changes: Changes | None = None) -> tuple[EngineFacts, ...]:
    facts = read_manifest(changed(BODY, changes))
    assert facts is not None
    return facts.engines


def refused(changes: Changes) -> list[str]:
    return [str(f) for f in judge("booster", changes) if f.level is Level.MANDATORY]


def test_a_worker_of_several_pods_is_joined_by_ray() -> None:
    (found,) = engines()
    assert (found.name, found.pods, found.replicas, found.entry.gpus) == ("server", 2, 1, 8)
    command = found.entry.command
    assert command is not None
    assert (command.tensor, command.pipeline, command.executor) == (8, 2, "ray")
    assert (command.ray_cluster_size, command.model) == (2, "Qwen/Qwen3-32B")
    assert judge("booster", {}) == []


@pytest.mark.parametrize(("replicas", "gpus"), [(1, 16), (3, 48), (0, 0)])
def test_the_replicas_of_a_backend_multiply_the_gpus(replicas: int, gpus: int) -> None:
    facts = read_manifest(changed(BODY, {"spec.backend.replicas": replicas}))
    assert facts is not None
    assert gpu_demand(facts).gpus == gpus


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {f"{WORKER}.pods": 3},
            (
                f"{WORKER}.config: engine 'server' starts tensor 8 × pipeline 2 = 16 ranks, but "
                "its 3 "
                "pods × 8 GPUs hold 24. Set pipeline to 3, or give the engine 2 pods. "
                "[world-size-equals-gpus]"
            ),
        ),
        (
            {f"{WORKER}.resources": {"limits": {GPU: 8}, "requests": {GPU: 4}}},
            (
                f"{WORKER}.resources: engine 'server', container 'engine' states {GPU} with a "
                "request of 4 and a limit of 8, and Kubernetes requires both to be equal. Write 8 "
                "in both. [gpu-requests-equal-limits]"
            ),
        ),
        (
            {f"{WORKER}.pods": 1, f"{WORKER}.config": {"tensor_parallel_size": "4"}},
            (
                f"{WORKER}.config: engine 'server' starts tensor 4 × pipeline 1 = 4 ranks, but "
                "its pod "
                "has 8 GPUs. Set tensor to 8, or set pipeline to 2, or give each pod 4 GPUs. "
                "[world-size-equals-gpus]"
            ),
        ),
    ],
)
def test_one_wrong_number_is_found(changes: Changes, said: str) -> None:
    assert said in refused(changes)


def test_prefill_and_decode_are_engines_of_one_pod() -> None:
    one = BODY["spec"]["backend"]["workers"][0]
    split = {
        "spec.backend.type": "vLLMDisaggregated",
        "spec.backend.workers": [
            {**one, "type": kind, "pods": 2} for kind in ("prefill", "decode")
        ],
    }
    assert [(e.name, e.pods) for e in engines(split)] == [("prefill", 1), ("decode", 1)]
    assert len([text for text in refused(split) if "16 ranks, but its pod has 8" in text]) == 2


def test_the_first_versions_had_several_backends() -> None:
    listed = {"spec.backends": [BODY["spec"]["backend"]], "spec.backend": REMOVED}
    (found,) = engines(listed)
    assert found.path == "spec.backends[0].workers[0]"


def test_what_is_not_known_is_said_once_a_rule() -> None:
    for path in (WORKER, f"{WORKER}.config", f"{WORKER}.resources", f"{WORKER}.pods", "spec"):
        found = judge("booster", {path: LATE})
        assert [f for f in found if f.level is Level.MANDATORY] == []


@pytest.mark.parametrize("api", ["v1", "apps/v1", "networking.serving.volcano.sh/v1alpha1"])
def test_other_kinds_are_left_alone(api: str) -> None:
    assert read_manifest({**BODY, "apiVersion": api}) is None


def test_only_a_plain_backend_has_shared_memory() -> None:
    """Kthena v1.0.0 convert/model_serving.go: VOLUMES of each of the two builders."""
    worker = {
        **BODY["spec"]["backend"]["workers"][0],
        "pods": 1,
        "config": {"tensor-parallel-size": 8},
    }
    pair = [{**worker, "type": kind} for kind in ("prefill", "decode")]
    split = {"spec.backend.type": "vLLMDisaggregated", "spec.backend.workers": pair}

    told = [f.rule for f in judge("booster", split)]

    assert told.count("shm-present") == 2
    assert "shm-present" not in [f.rule for f in judge("booster", {f"{WORKER}.pods": 1})]
