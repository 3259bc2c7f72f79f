"""How many pods and accelerators each kind adds to a stack."""

from typing import Any

import pytest

from kthena_components.checker.cluster_rules import compare_objects
from kthena_components.checker.manifest import read_demand
from tests.rules.cases import documents
from tests.support.specs import Args, changed

LATE = "\ue0007\ue001"
POD: Args = {
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": 8}}}]}
}
SERVING: Args = documents("kthena")[0]
INFER: Args = {**SERVING, "apiVersion": "workload.matrixinfer.ai/v1alpha1", "kind": "ModelInfer"}
LWS: Args = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "l"},
    "spec": {"replicas": 2, "leaderWorkerTemplate": {"size": 3, "workerTemplate": POD}},
}
CPU: Args = {"spec": {"containers": [{"name": "c"}]}}
ROLE: Args = {"name": "a", "replicas": 2, "template": {}, **LWS["spec"]}
SETS: Args = {
    "apiVersion": "disaggregatedset.x-k8s.io/v1alpha1",
    "kind": "DisaggregatedSet",
    "metadata": {"name": "d"},
    "spec": {"slices": 2, "roles": [ROLE]},
}
ISVC: Args = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "metadata": {"name": "i"},
    "spec": {"predictor": {"minReplicas": 3, **POD["spec"]}},
}
RAY: Args = {
    "apiVersion": "ray.io/v1",
    "kind": "RayService",
    "metadata": {"name": "r"},
    "spec": {
        "rayClusterConfig": {
            "headGroupSpec": {"template": POD},
            "workerGroupSpecs": [{"replicas": 2, "numOfHosts": 2, "template": POD}],
        }
    },
}
CLIQUE: Args = {"name": "c", "spec": {"roleName": "c", "replicas": 2, "podSpec": POD["spec"]}}
CLIQUES: Args = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "PodCliqueSet",
    "metadata": {"name": "g"},
    "spec": {"replicas": 3, "template": {"cliques": [CLIQUE]}},
}
RUNTIME: Args = {**ISVC, "apiVersion": "serving.kserve.io/v1alpha1", "kind": "ServingRuntime",
                 "spec": POD["spec"]}  # fmt: skip


def used(body: Args) -> str:
    """Tell what the budget says of an object, where nothing is allowed."""
    held = read_demand(body)
    found = compare_objects([body], held={0: held} if held else {}, budget=0)
    return "; ".join(f.seen for f in found if f.rule == "gpu-budget")


@pytest.mark.parametrize(
    ("body", "gpus"),
    [
        (SERVING, 16),
        (changed(SERVING, {"spec.replicas": 3, "spec.template.roles[0].replicas": 2}), 96),
        (changed(INFER, {"spec.replicas": 2}), 32),
        (LWS, 48),
        (changed(LWS, {"spec.leaderWorkerTemplate.leaderTemplate": CPU}), 32),
        (changed(LWS, {"spec.leaderWorkerTemplate.size": 1}), 16),
        (SETS, 96),
        (ISVC, 24),
        (RAY, 40),
        (CLIQUES, 48),
        (changed(ISVC, {"spec.predictor.minReplicas": 1}), 8),
    ],
)
def test_every_pod_is_counted(body: Args, gpus: int) -> None:
    assert used(body) == f"these pods request {gpus} GPUs, but the budget is 0"


@pytest.mark.parametrize(
    "body", [RUNTIME, {}, {"kind": "Widget"}, changed(LWS, {"spec.replicas": 0})]
)
def test_what_runs_no_pod_counts_nothing(body: Args) -> None:
    assert used(body) == ""


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (LWS, "spec.replicas"),
        (LWS, "spec.leaderWorkerTemplate.size"),
        (LWS, "spec.leaderWorkerTemplate.workerTemplate"),
        (SETS, "spec.slices"),
        (ISVC, "spec.predictor.minReplicas"),
    ],
)
def test_a_count_that_is_not_known_yet_is_told(body: Args, path: str) -> None:
    changes: dict[str, Any] = {path: LATE}
    assert "not checked" in used(changed(body, changes)) or "at least" in used(
        changed(body, changes)
    )
