"""Manifests of other systems' guides, cut down to what counts GPUs, and ways to change them."""

import copy
from typing import Any

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level
from kthena_components.core.rules.registry import MODEL_RULES

Manifest = dict[str, Any]
GPU = "nvidia.com/gpu"
GONE: Any = object()
"""As a change: take the field away."""
LATE = "\ue0007\ue001"
SCRIPT = "bash /vllm-workspace/examples/online_serving/multi-node-serving.sh"


def gpus(count: object, *, both: bool = True) -> Manifest:
    """Give the resources of a container that gets GPUs."""
    resources: Manifest = {"limits": {GPU: count}}
    return resources | ({"requests": {GPU: count}} if both else {})


def template(name: str, command: str, count: object = "8", **spec: Any) -> Manifest:
    """Give a pod template of one container that runs a shell script."""
    container = {
        "name": name,
        "command": ["sh", "-c", command],
        "resources": gpus(count, both=False),
    }
    return {"spec": {"containers": [container], **spec}}


def changed(manifest: Manifest, changes: dict[str, Any] | None = None) -> Manifest:
    """Copy a manifest, and change fields by their paths; `/` parts the steps."""
    result = copy.deepcopy(manifest)
    for path, value in (changes or {}).items():
        *way, last = path.split("/")
        place: Any = result
        for step in way:
            place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
        key: Any = int(last) if isinstance(place, list) else last
        if value is GONE:
            del place[key]
        else:
            place[key] = copy.deepcopy(value)
    return result


ELSEWHERE = MODEL_RULES | {"shm-present", "image-pinned", "executor-stated", "ray-in-image"}
"""Rules that any pod meets, whatever made it: they have tests of their own."""


def told(manifest: Manifest, changes: dict[str, Any] | None = None) -> list[str]:
    """Give the findings on a changed manifest as text, but for those about single containers."""
    found = check_manifest(changed(manifest, changes))
    return [str(finding) for finding in found if finding.rule not in ELSEWHERE]


def refused(manifest: Manifest, changes: dict[str, Any] | None = None) -> list[str]:
    """Give the mandatory findings only."""
    found = check_manifest(changed(manifest, changes))
    return [str(finding) for finding in found if finding.level is Level.MANDATORY]


def said_by(rule: str, manifest: Manifest, changes: dict[str, Any] | None = None) -> list[str]:
    """Give what one rule says."""
    found = check_manifest(changed(manifest, changes))
    return [str(finding) for finding in found if finding.rule == rule]


LEADER = (
    f"{SCRIPT} leader --ray_cluster_size=$(LWS_GROUP_SIZE); python3 -m "
    "vllm.entrypoints.openai.api_server --port 8080 --model meta-llama/Llama-3.1-405B-Instruct "
    "--tensor-parallel-size 8 --pipeline_parallel_size 2"
)
LWS_VLLM: Manifest = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "vllm"},
    "spec": {
        "replicas": 2,
        "leaderWorkerTemplate": {
            "size": 2,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "leaderTemplate": template("vllm-leader", LEADER),
            "workerTemplate": template(
                "vllm-worker", f"{SCRIPT} worker --ray_address=$(LWS_LEADER_ADDRESS)"
            ),
        },
    },
}
LWS_SGLANG: Manifest = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "metadata": {"name": "sglang"},
    "spec": {
        "leaderWorkerTemplate": {
            "size": 2,
            "workerTemplate": template(
                "sglang",
                "python3 -m sglang.launch_server --model-path m --tp 16 "
                "--dist-init-addr $(LWS_LEADER_ADDRESS):20000 --nnodes $(LWS_GROUP_SIZE) "
                "--node-rank $(LWS_WORKER_INDEX)",
            ),
        }
    },
}
"""One template for all pods, as its leader differs by nothing but its rank."""


def disaggregated(*roles: Manifest, name: str = "chat", **spec: Any) -> Manifest:
    """Give a DisaggregatedSet."""
    return {
        "apiVersion": "disaggregatedset.x-k8s.io/v1",
        "kind": "DisaggregatedSet",
        "metadata": {"name": name},
        "spec": {"roles": list(roles), **spec},
    }


def ds_role(name: str, tensor: int = 8, **spec: Any) -> Manifest:
    """Give a role of a DisaggregatedSet whose groups are one pod of 8 GPUs."""
    command = f"vllm serve m --tensor-parallel-size {tensor}"
    inner = {"leaderWorkerTemplate": {"size": 1, "workerTemplate": template("vllm", command)}}
    return {"name": name, "spec": {"replicas": 1, **inner, **spec}}


MODEL_INFER: Manifest = {
    "apiVersion": "workload.matrixinfer.ai/v1alpha1",
    "kind": "ModelInfer",
    "metadata": {"name": "llama-multinode"},
    "spec": {
        "schedulerName": "volcano",
        "replicas": 1,
        "template": {
            "restartGracePeriodSeconds": 60,
            "gangSchedule": {"minRoleReplicas": {"405b": 1}},
            "roles": [
                {
                    "name": "405b",
                    "replicas": 2,
                    "entryTemplate": template(
                        "leader", LEADER.replace("$(LWS_GROUP_SIZE)", "$(GROUP_SIZE)")
                    ),
                    "workerReplicas": 1,
                    "workerTemplate": template(
                        "worker", f"{SCRIPT} worker --ray_address=$(ENTRY_ADDRESS)"
                    ),
                }
            ],
        },
    },
}

ISVC: Manifest = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "metadata": {
        "name": "huggingface-llama3",
        "annotations": {
            "serving.kserve.io/deploymentMode": "Standard",
            "serving.kserve.io/autoscalerClass": "none",
        },
    },
    "spec": {
        "predictor": {
            "model": {
                "modelFormat": {"name": "huggingface"},
                "runtime": "kserve-huggingfaceserver-multinode",
                "storageUri": "pvc://llama-3-8b-pvc/hf/8b_instruction_tuned",
            },
            "workerSpec": {"pipelineParallelSize": 2, "tensorParallelSize": 1},
        }
    },
}
"""The guide's service: 2 stages of 1 GPU each."""


def isvc(
    tensor: object,
    pipeline: object,
    worker: object = None,
    head: object = None,
    changes: dict[str, Any] | None = None,
) -> Manifest:
    """Give a service of many nodes; the GPUs are those that are requested."""
    spec: Manifest = {"tensorParallelSize": tensor, "pipelineParallelSize": pipeline}
    if worker is not None:
        resources = {"requests": {GPU: worker}}
        spec["containers"] = [{"name": "worker-container", "resources": resources}]
    manifest = changed(ISVC, {"spec/predictor/workerSpec": spec})
    if head is not None:
        manifest["spec"]["predictor"]["model"]["resources"] = {"requests": {GPU: head}}
    return changed(manifest, changes)


RUNTIME: Manifest = {
    "apiVersion": "serving.kserve.io/v1alpha1",
    "kind": "ClusterServingRuntime",
    "metadata": {"name": "kserve-huggingfaceserver-multinode"},
    "spec": {
        "containers": [
            {
                "name": "kserve-container",
                "command": ["bash", "-c"],
                "args": [
                    (
                        "python3 -m huggingfaceserver "
                        "--tensor-parallel-size=${TENSOR_PARALLEL_SIZE} "
                        "--pipeline-parallel-size=${PIPELINE_PARALLEL_SIZE}"
                    )
                ],
                "resources": {"requests": {"cpu": "2", "memory": "6Gi"}},
            }
        ],
        "workerSpec": {
            "tensorParallelSize": 1,
            "pipelineParallelSize": 1,
            "containers": [{"name": "worker-container"}],
        },
    },
}


def llm(parallelism: object, count: object = "8", **spec: Any) -> Manifest:
    """Give an LLMInferenceService whose pods all have as many GPUs."""
    pod = {"containers": [{"name": "main", "resources": gpus(count, both=False)}]}
    if spec.pop("worker", False):
        spec["worker"] = pod
    return {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": "deepseek"},
        "spec": {"parallelism": parallelism, "template": pod, **spec},
    }
