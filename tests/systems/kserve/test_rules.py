"""kserve-multinode: what KServe's webhooks refuse, word for word."""

from typing import Any

import pytest

from tests.support.peers import GONE, GPU, ISVC, LATE, RUNTIME, gpus, said_by

RULE = "kserve-multinode"
LATER = f"not checked, because the value is known only after the deployment. [{RULE}]"
P, AT = "spec/predictor", "spec.predictor"
SCALER = "metadata.annotations.serving.kserve.io/autoscalerClass"
TYPES = "serving.kserve.io/gpu-resource-types"
MIG = {"resources": {"requests": {"nvidia.com/mig-1g.5gb": 1}}}


def notes(**more: object) -> dict[str, Any]:
    named = {f"serving.kserve.io/{key}": value for key, value in more.items()}
    return {"metadata/annotations": {"serving.kserve.io/autoscalerClass": "none"} | named}


def typed(value: object) -> dict[str, Any]:
    return notes(**{"gpu-resource-types": value})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {f"{P}/workerSpec": {}},
        {f"{P}/workerSpec/containers": [{"resources": gpus(1)}]},
        {f"{P}/model/env": [{"name": "HF_TOKEN", "value": "x"}]},
        {f"{P}/model/storageUri": "oci://registry/llama:1"},
        {f"{P}/model/storageUri": f"pvc://{LATE}"},
        {f"{P}/model/resources": {"limits": {"cpu": 1, "memory": "1Gi", "amd.com/gpu": 1}}},
        {**typed('["nvidia.com/mig-1g.5gb"]'), f"{P}/workerSpec/containers": [MIG]},
        {f"{P}/model": GONE, "metadata/annotations": {}},
        {f"{P}/workerSpec": GONE, "metadata/annotations": {}, f"{P}/model/storageUri": "s3://a"},
        {f"{P}/minReplicas": 1},
    ],
)
def test_what_kserve_takes_passes(changes: dict[str, Any]) -> None:
    assert said_by(RULE, ISVC, changes) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {f"{P}/workerSpec/containers": [{}, {}]},
            (
                f"{AT}.workerSpec.containers: has 2 containers, but KServe accepts one worker "
                "container. Keep worker-container only"
            ),
        ),
        (
            {f"{P}/model/env": [{"name": "TENSOR_PARALLEL_SIZE", "value": "1"}]},
            (
                f"{AT}.model.env[0]: sets TENSOR_PARALLEL_SIZE, but KServe reads that size from "
                f"workerSpec only. Remove it, and write {AT}.workerSpec.tensorParallelSize"
            ),
        ),
        (
            {f"{P}/model/env": [{"name": "PIPELINE_PARALLEL_SIZE", "value": "1"}]},
            (
                f"{AT}.model.env[0]: sets PIPELINE_PARALLEL_SIZE, but KServe reads that size from "
                f"workerSpec only. Remove it, and write {AT}.workerSpec.pipelineParallelSize"
            ),
        ),
        (
            {f"{P}/workerSpec/containers": [MIG]},
            (
                f"{AT}.workerSpec.containers[0].resources.requests: names nvidia.com/mig-1g.5gb, "
                "which is neither cpu, memory nor storage, nor a GPU type that KServe knows. Add "
                f"it to the annotation {TYPES}, or remove it"
            ),
        ),
        (
            typed("[1]"),
            (
                f"metadata.annotations.{TYPES}: is '[1]', which is not a JSON list of resource "
                "names. "
                """Write, for example, '["nvidia.com/mig-1g.5gb"]'"""
            ),
        ),
        (
            {f"{P}/model/storageUri": GONE},
            (
                f"{AT}.model.storageUri: is missing, but the pods of an engine load the model from "
                "one volume or image. Write pvc://claim/path, with a claim that is ReadWriteMany, "
                "or oci://image"
            ),
        ),
        (
            {f"{P}/model/storageUri": "hf://org/llama"},
            (
                f"{AT}.model.storageUri: is 'hf://org/llama', but with several nodes the model "
                "must come from pvc:// or oci://. Write pvc://claim/path, with a claim that is "
                "ReadWriteMany, or oci://image"
            ),
        ),
        (
            {"metadata/annotations": {}},
            f"{SCALER}: is missing, but nothing may scale an engine on several nodes. Write 'none'",
        ),
        (
            notes(autoscalerClass="hpa"),
            f"{SCALER}: is 'hpa', but nothing may scale an engine on several nodes. Write 'none'",
        ),
        (
            {f"{P}/workerSpec/pipelineParallelSize": 0},
            f"{AT}.workerSpec.pipelineParallelSize: is 0, but must be at least 1. Write 1 or more",
        ),
        (
            {f"{P}/workerSpec/tensorParallelSize": -8},
            f"{AT}.workerSpec.tensorParallelSize: is -8, but must be at least 1. Write 1 or more",
        ),
        (
            {f"{P}/canaryTrafficPercent": 10},
            (
                f"{AT}.canaryTrafficPercent: is 10, but only Knative splits traffic, which runs "
                "no workerSpec. Remove it"
            ),
        ),
        (
            {f"{P}/minReplicas": 2},
            (
                f"{AT}.minReplicas: is 2, but only one head has the workers; the others serve "
                "nothing. Write 1, and one InferenceService for each engine"
            ),
        ),
        (
            {"metadata/name": "9b"},
            (
                "metadata.name: is '9b', but must be lower-case letters, digits and dashes, a "
                "letter first. Rename it"
            ),
        ),
        (
            {f"{P}/model/env": [{"name": "PYTHONPATH", "value": "/a"}]},
            (
                f"{AT}.model.env[0]: sets PYTHONPATH, which KServe forbids. Remove it, and put the "
                "modules into the image"
            ),
        ),
    ],
)
def test_what_kserve_refuses_is_refused(changes: dict[str, Any], said: str) -> None:
    assert said_by(RULE, ISVC, changes) == [f"{said}. [{RULE}]"]


@pytest.mark.parametrize(
    ("path", "at"),
    [
        ("metadata/name", "metadata.name"),
        (f"{P}/workerSpec", f"{AT}.workerSpec"),
        (f"{P}/workerSpec/containers", f"{AT}.workerSpec.containers"),
        (f"{P}/workerSpec/tensorParallelSize", f"{AT}.workerSpec.tensorParallelSize"),
        (f"{P}/model/storageUri", f"{AT}.model.storageUri"),
        (f"{P}/canaryTrafficPercent", f"{AT}.canaryTrafficPercent"),
        ("metadata/annotations/serving.kserve.io~autoscalerClass", SCALER),
    ],
)
def test_what_is_not_known_is_not_checked(path: str, at: str) -> None:
    changes: dict[str, Any] = {path: LATE}
    if "autoscaler" in path:
        changes = notes(autoscalerClass=LATE)
    assert said_by(RULE, ISVC, changes) == [f"{at}: {LATER}"]


def test_a_runtime_has_exactly_one_worker_container() -> None:
    path, at = "spec/workerSpec/containers", "spec.workerSpec.containers"
    assert said_by(RULE, RUNTIME) == []
    assert said_by(RULE, RUNTIME, {path: []}) == [
        f"{at}: is empty, but a runtime has one worker container. Add it. [{RULE}]"
    ]
    assert said_by(RULE, RUNTIME, {path: [{}, {}]}) == [
        (
            f"{at}: has 2 containers, but KServe accepts one worker container. "
            f"Keep worker-container only. [{RULE}]"
        )
    ]


@pytest.mark.parametrize("kind", ["ServingRuntime", "ClusterServingRuntime"])
def test_a_runtime_is_checked_like_a_service(kind: str) -> None:
    wrong = {
        "kind": kind,
        "spec/containers/0/env": [{"name": "TENSOR_PARALLEL_SIZE", "value": "1"}],
        "spec/containers/0/resources": {"limits": {"rdma/ib": 1, GPU: 1}},
        "spec/workerSpec/tensorParallelSize": 0,
    }
    assert said_by(RULE, RUNTIME, wrong) == [
        (
            f"spec.workerSpec.tensorParallelSize: is 0, but must be at least 1. Write 1 or more. "
            f"[{RULE}]"
        ),
        (
            "spec.containers[0].env[0]: sets TENSOR_PARALLEL_SIZE, but KServe reads that size from "
            f"workerSpec only. Remove it, and write spec.workerSpec.tensorParallelSize. [{RULE}]"
        ),
        (
            "spec.containers[0].resources.limits: names rdma/ib, which is neither cpu, memory nor "
            f"storage, nor a GPU type that KServe knows. Add it to the annotation {TYPES}, or "
            f"remove it. [{RULE}]"
        ),
    ]
